"""Blobs of a remote graph, read in ranges."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from omnigraph.errors import InvalidInput, OmniError
from omnigraph.service.client.resources import RemoteAddress
from omnigraph.service.client.transport import RemoteCall


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteBlob:
    """A blob of one entity in one state of a graph; it stays readable as it is.

    An external one has a `uri`, and no bytes here.
    """

    kind: str
    type_name: str
    entity_id: str
    property_name: str
    etag: str
    size: int | None
    uri: str | None = None
    _call: RemoteCall = field(repr=False)
    _address: RemoteAddress = field(repr=False)

    def read(self, start: int = 0, end: int | None = None) -> bytes:
        """Return the bytes from `start` up to, not including, `end`."""
        return b"".join(self.chunks(start, end))

    def chunks(self, start: int = 0, end: int | None = None) -> Iterator[bytes]:
        """Yield the bytes of a range as they come."""
        if self.size is None:
            message = f"the blob of '{self.entity_id}' is at {self.uri}, not here"
            raise InvalidInput(message, code="blob_external", uri=self.uri)
        stop = self.size if end is None else end
        if not 0 <= start <= stop <= self.size:
            message = f"range {start}..{stop} is not within the {self.size} bytes of the blob"
            facts = {"start": start, "end": stop, "length": self.size}
            raise InvalidInput(message, code="blob_range_not_satisfiable", **facts)
        if start == stop:
            return
        headers = {"Range": f"bytes={start}-{stop - 1}", "If-Match": self.etag}
        call = replace(self._call, method="GET", headers=headers)
        with self._address.transport.stream(call) as response:
            yield from response.iter_bytes()

    def to_json(self) -> dict[str, Any]:
        """Return the facts of the blob as plain JSON values."""
        facts: dict[str, Any] = {
            "selector": {
                "entity": self.kind,
                "type": self.type_name,
                "id": self.entity_id,
                "property": self.property_name,
            },
            "kind": "managed" if self.uri is None else "external",
        }
        if self.uri is None:
            return {**facts, "size": self.size, "etag": self.etag}
        return {**facts, "uri": self.uri}


def find_blob(address: RemoteAddress, kind: str, selector: dict[str, str], at: str) -> RemoteBlob:
    """Ask for a blob of the state of a commit; its bytes are read later."""
    query = tuple({"entity": kind, **selector, "snapshot": at}.items())
    call = RemoteCall(method="HEAD", path=address.path("blob"), query=query, reads=True)
    try:
        response = address.transport.send(call)
    except OmniError:
        # The answer to this has no body; that to the same question with one says what is wrong.
        address.transport.send(replace(call, method="GET"))
        raise
    external = response.status_code == 302
    return RemoteBlob(
        kind=kind,
        type_name=selector["type"],
        entity_id=selector["id"],
        property_name=selector["property"],
        etag="" if external else response.headers["ETag"],
        size=None if external else int(response.headers["Content-Length"]),
        uri=response.headers["Location"] if external else None,
        _call=call,
        _address=address,
    )
