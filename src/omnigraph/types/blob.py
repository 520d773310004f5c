"""This module reads what stands for a blob in data: `base64:…` is bytes, other text is a URI."""

from __future__ import annotations

import base64
import binascii
from typing import Any

MANAGED = "base64:"
MAX_URI = 65_536


def blob_cell(value: str | bytes | None) -> dict[str, Any] | None:
    """Return the bytes or the URI a value means; raise ValueError when it means neither."""
    if value is None:
        return None
    if isinstance(value, bytes):
        return {"data": value, "uri": None}
    if not isinstance(value, str):
        raise ValueError("expected `base64:…` text or a URI")
    if value.startswith(MANAGED):
        try:
            data = base64.b64decode(value[len(MANAGED) :], validate=True)
        except binascii.Error as error:
            raise ValueError(f"invalid base64: {error}") from error
        return {"data": data, "uri": None}
    if len(value.encode()) > MAX_URI:
        raise ValueError(f"a blob URI is at most {MAX_URI} bytes")
    if "://" not in value:
        raise ValueError(f"expected `base64:…` or an absolute URI, got '{value[:40]}'")
    return {"data": None, "uri": value}


def blob_text(data: bytes) -> str:
    """Write bytes as data files do."""
    return MANAGED + base64.b64encode(data).decode()
