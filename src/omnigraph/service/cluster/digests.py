"""This module gives every resource of a cluster its digest: SHA-256 over what it consists of."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any


def content_digest(data: bytes) -> str:
    """Return the digest of a file."""
    return hashlib.sha256(data).hexdigest()


def provider_digest(profile: Mapping[str, str]) -> str:
    """Return the digest of an embedding profile."""
    return content_digest(b"embedding-provider\0" + _json(profile))


def graph_digest(
    id_: str,
    schema: str,
    queries: Mapping[str, str],
    provider: tuple[str, str] | None,
    external_blobs: Mapping[str, Any] | None,
) -> str:
    """Return the digest of a graph: over those of its schema, queries by name, and the rest.

    `provider` is the address and the digest of what embeds for the graph.
    """
    parts = [b"graph", id_.encode(), b"schema", schema.encode()]
    for name, digest in sorted(queries.items()):
        parts += [b"query", name.encode(), digest.encode()]
    if provider is not None:
        parts += [b"embedding_provider", provider[0].encode(), provider[1].encode()]
    if external_blobs is not None:
        parts += [b"external_blob_policy", _json(external_blobs)]
    return content_digest(b"".join(part + b"\0" for part in parts))


def config_digest(config: Mapping[str, Any], resources: Iterable[tuple[str, str]]) -> str:
    """Return the digest of a whole configuration and of all it names."""
    text = json.dumps(config, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    listed = b"".join(f"{address}\0{digest}\0".encode() for address, digest in sorted(resources))
    return content_digest(b"cluster-config\0" + text.encode() + b"\0" + listed)


def _json(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()
