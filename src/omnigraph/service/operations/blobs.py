"""Operations on blobs."""

from __future__ import annotations

from dataclasses import dataclass

from omnigraph.errors import InvalidInput, NotFound
from omnigraph.query.entities import Blob
from omnigraph.service import wire
from omnigraph.service.operations.access import READ_STATE, state
from omnigraph.service.operations.operation import OCTETS, operation
from omnigraph.service.session import GraphSession

_EXAMPLE = {"entity": "node", "type": "Person", "id": "ada", "property": "photo"}


@dataclass(frozen=True, slots=True)
class OpenedBlob:
    """A blob, and the commit of the state it was read from."""

    blob: Blob
    commit_id: str


@operation(
    name="cluster_getBlob",
    route="GET /blob",
    tag="blobs",
    summary="Return a blob, or a range of it",
    answer=OCTETS,
    errors=(302, 304, 400, 404, 412, 416, 500),
    access=READ_STATE,
    example=_EXAMPLE,
    handler="blob",
)
def get_blob(session: GraphSession, request: wire.BlobQuery) -> OpenedBlob:
    """Return the bytes of a blob of one entity; an external blob is a redirect to its URI.

    `Range` and the conditional headers work as for a static file.
    """
    at = state(session, request.branch, request.snapshot)
    name = f"{request.entity}:{request.type}"
    try:
        blob = session.graph.blob(name, request.id, request.property, at)
    except NotFound as error:
        if error.code != "unknown_type":
            raise
        raise InvalidInput(error.message, code=error.code, **error.details) from error
    return OpenedBlob(blob, at.commit_id)


head_blob = get_blob.variant(
    name="cluster_headBlob",
    method="HEAD",
    summary="Return the headers of a blob",
    description="Return the size and the entity tag of a blob without its bytes.",
    answer=None,
    errors=(302, 304, 400, 404, 412, 500),
)
