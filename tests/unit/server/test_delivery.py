"""How a blob is delivered, for everything a request may say."""

import pytest

from omnigraph.errors import InvalidInput
from omnigraph.query.entities import Blob
from omnigraph.server.responses import BlobRequestHeaders, plan_delivery

ETAG = '"abc"'


def blob(size=10, uri=None):
    return Blob(
        kind="node",
        type_name="Doc",
        entity_id="a",
        property_name="body",
        etag=ETAG,
        size=None if uri is not None else size,
        uri=uri,
        _read=lambda start, stop: iter(()),
    )


def test_a_blob_that_is_elsewhere_is_pointed_at_whatever_is_asked():
    for asking in (
        BlobRequestHeaders(),
        BlobRequestHeaders("bytes=0-1"),
        BlobRequestHeaders(if_match='"x"'),
        BlobRequestHeaders(if_none_match="*"),
    ):
        found = plan_delivery(blob(uri="https://far/away"), asking)
        assert found.status == 302
        assert found.headers == {"Location": "https://far/away", "Cache-Control": "no-store"}


@pytest.mark.parametrize(
    ("asking", "status", "range_"),
    [
        (BlobRequestHeaders(), 200, (0, 10)),
        (BlobRequestHeaders("bytes=2-3"), 206, (2, 4)),
        (BlobRequestHeaders("bytes=2-3", if_match=ETAG), 206, (2, 4)),
        (BlobRequestHeaders("bytes=2-3", if_none_match=ETAG), 304, (0, 0)),
        (BlobRequestHeaders("bytes=2-3", if_none_match='"x"'), 206, (2, 4)),
        (BlobRequestHeaders("bytes=2-3", if_range=ETAG), 206, (2, 4)),
        (BlobRequestHeaders("bytes=2-3", if_range='"x"'), 200, (0, 10)),
        (BlobRequestHeaders("bytes=2-3", if_range="Mon, 16 Nov 2026 05:00:00 GMT"), 200, (0, 10)),
        (BlobRequestHeaders("bytes=99999999999999999999-"), 200, (0, 10)),
        (BlobRequestHeaders("BYTES=0-1"), 200, (0, 10)),
        (BlobRequestHeaders(if_none_match="nonsense"), 200, (0, 10)),
        (BlobRequestHeaders(if_none_match=f"W/{ETAG}"), 304, (0, 0)),
    ],
)
def test_conditions_go_before_ranges(asking, status, range_):
    found = plan_delivery(blob(), asking)
    assert (found.status, found.range) == (status, range_)


@pytest.mark.parametrize(
    ("asking", "code"),
    [
        (BlobRequestHeaders(if_match='"x"'), "blob_changed"),
        (BlobRequestHeaders(if_match=f"W/{ETAG}"), "blob_changed"),
        (BlobRequestHeaders(if_match="abc"), "blob_changed"),
        (BlobRequestHeaders("bytes=10-"), "blob_range_not_satisfiable"),
        (BlobRequestHeaders("bytes=-0"), "blob_range_not_satisfiable"),
        (BlobRequestHeaders("bytes=50-60", if_match='"x"'), "blob_changed"),
    ],
)
def test_what_cannot_be_delivered_is_refused(asking, code):
    with pytest.raises(InvalidInput) as caught:
        plan_delivery(blob(), asking)
    assert caught.value.code == code


@pytest.mark.parametrize("asked", ["bytes=0-", "bytes=0-0", "bytes=-1"])
def test_nothing_has_no_ranges(asked):
    assert plan_delivery(blob(0), BlobRequestHeaders()).range == (0, 0)
    with pytest.raises(InvalidInput):
        plan_delivery(blob(0), BlobRequestHeaders(asked))
