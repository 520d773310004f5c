"""Blobs of a remote graph, read in ranges."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from omnigraph.errors import OmniError
from omnigraph.query.entities import Blob
from omnigraph.service.client.resources import RemoteAddress
from omnigraph.service.client.transport import RemoteCall


def find_blob(address: RemoteAddress, kind: str, selector: dict[str, str], at: str) -> Blob:
    """Request a blob of the state of a commit; its bytes are read later."""
    query = tuple({"entity": kind, **selector, "snapshot": at}.items())
    call = RemoteCall(method="HEAD", path=address.path("blob"), query=query, reads=True)
    try:
        response = address.transport.send(call)
    except OmniError:
        # The answer to this has no body; that to the same question with one says what is wrong.
        address.transport.send(replace(call, method="GET"))
        raise
    external = response.status_code == 302
    etag = "" if external else response.headers["ETag"]
    return Blob(
        kind=kind,
        type_name=selector["type"],
        entity_id=selector["id"],
        property_name=selector["property"],
        etag=etag,
        size=None if external else int(response.headers["Content-Length"]),
        uri=response.headers["Location"] if external else None,
        _read=partial(_read_range, address, call, etag),
    )


def _read_range(
    address: RemoteAddress, call: RemoteCall, etag: str, start: int, stop: int
) -> Iterator[bytes]:
    headers = {"Range": f"bytes={start}-{stop - 1}", "If-Match": etag}
    with address.transport.stream(replace(call, method="GET", headers=headers)) as response:
        yield from response.iter_bytes()
