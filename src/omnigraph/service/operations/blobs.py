"""This module finds blobs."""

from __future__ import annotations

from dataclasses import dataclass

from omnigraph.errors import InvalidInput, NotFound
from omnigraph.query.entities import Blob
from omnigraph.service import wire
from omnigraph.service.operations.targets import state
from omnigraph.service.session import GraphSession


@dataclass(frozen=True, slots=True)
class OpenedBlob:
    """A blob, and the commit of the state it was found in."""

    blob: Blob
    commit_id: str


def open_blob(visit: GraphSession, asked: wire.BlobQuery) -> OpenedBlob:
    """Find the blob of one entity."""
    at = state(visit, asked.branch, asked.snapshot)
    try:
        found = visit.graph.blob(f"{asked.entity}:{asked.type}", asked.id, asked.property, at)
    except NotFound as error:
        if error.code != "unknown_type":
            raise
        raise InvalidInput(error.message, code=error.code, **error.details) from error
    return OpenedBlob(found, at.commit_id)
