"""This module checks the format stamp of a manifest, in both directions."""

from __future__ import annotations

from collections.abc import Mapping

from omnigraph.commit.rows import STAMP
from omnigraph.errors import FormatUnsupported
from omnigraph.version import INTERNAL_SCHEMA_VERSION


def check_stamp(metadata: Mapping[bytes, bytes] | None) -> None:
    """Refuse a manifest this package cannot read, saying what to do about it."""
    found = (metadata or {}).get(STAMP)
    text = None if found is None else found.decode(errors="replace")
    if text == str(INTERNAL_SCHEMA_VERSION):
        return
    if text is None or not text.isdigit():
        raise FormatUnsupported(
            "this manifest has no readable format stamp: not made by omnigraph, or damaged",
            found=text,
        )
    if int(text) > INTERNAL_SCHEMA_VERSION:
        raise FormatUnsupported(
            f"this graph has format {text}, newer than {INTERNAL_SCHEMA_VERSION}: "
            "upgrade omnigraph first",
            found=text,
        )
    raise FormatUnsupported(
        f"this graph has format {text}, older than {INTERNAL_SCHEMA_VERSION}: export it with the "
        "version of omnigraph that wrote it, and import it with this one",
        found=text,
    )
