"""Blobs: whole, in ranges, not again, or from elsewhere."""

import base64

import pytest

import omnigraph as og
from omnigraph.errors import InvalidInput

G = "/graphs/blobs"
DATA = bytes(range(256)) * 40
SELECT = {"entity": "node", "type": "Doc", "id": "a", "property": "body"}


@pytest.fixture(scope="module", autouse=True)
def loaded(open_server, outside):
    text = base64.b64encode(DATA).decode()
    lines = "\n".join(
        [
            f'{{"type":"Doc","data":{{"slug":"a","body":"base64:{text}"}}}}',
            '{"type":"Doc","data":{"slug":"empty","body":"base64:"}}',
            '{"type":"Doc","data":{"slug":"none"}}',
            f'{{"type":"Doc","data":{{"slug":"far","body":"{outside.as_uri()}"}}}}',
        ]
    )
    headers = {"Content-Type": "application/x-ndjson"}
    with open_server.client() as client:
        done = client.post(f"{G}/load/ndjson", content=lines, headers=headers)
        assert done.status_code == 200
        return done.json()["commit"]["graph_commit_id"]


def get(client, method="GET", select=SELECT, **headers):
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return client.request(method, f"{G}/blob", params=select, headers=named)


def test_a_blob_comes_whole_with_its_identity(client, loaded):
    answer = get(client)
    assert answer.status_code == 200
    assert answer.content == DATA
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["content-disposition"] == "attachment"
    assert answer.headers["content-security-policy"] == "sandbox; default-src 'none'"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["content-length"] == str(len(DATA))
    assert answer.headers["accept-ranges"] == "bytes"
    assert answer.headers["omnigraph-snapshot-id"] == loaded
    assert answer.headers["etag"].startswith('"')
    head = get(client, "HEAD", Range="bytes=0-1")
    assert (head.status_code, head.content) == (200, b"")
    same = ("content-type", "content-length", "etag", "accept-ranges", "omnigraph-snapshot-id")
    for name in same:
        assert head.headers[name] == answer.headers[name]


@pytest.mark.parametrize(
    ("asked", "start", "end"),
    [
        ("bytes=0-0", 0, 1),
        ("bytes=10-19", 10, 20),
        ("bytes=10000-", 10000, len(DATA)),
        ("bytes=-5", len(DATA) - 5, len(DATA)),
        ("bytes=-999999", 0, len(DATA)),
        ("bytes=100-999999", 100, len(DATA)),
    ],
)
def test_a_range_comes_alone(client, asked, start, end):
    answer = get(client, Range=asked)
    assert answer.status_code == 206
    assert answer.content == DATA[start:end]
    assert answer.headers["content-range"] == f"bytes {start}-{end - 1}/{len(DATA)}"
    assert answer.headers["content-length"] == str(end - start)


@pytest.mark.parametrize(
    "asked", ["bytes=1-2,4-5", "bytes=", "bytes=-", "bytes=5-2", "items=0-1", "bytes=a-b", "0-1"]
)
def test_a_range_that_is_none_is_ignored(client, asked):
    answer = get(client, Range=asked)
    assert (answer.status_code, answer.content) == (200, DATA)


@pytest.mark.parametrize(("asked", "start"), [("bytes=10240-", 10240), ("bytes=-0", 0)])
def test_a_range_behind_the_end_is_refused(client, asked, start):
    answer = get(client, Range=asked)
    assert answer.status_code == 416
    assert answer.headers["content-range"] == f"bytes */{len(DATA)}"
    assert "etag" in answer.headers
    assert answer.json()["code"] == "bad_request"
    assert answer.json()["blob_range"]["start"] == start
    assert answer.json()["blob_range"]["length"] == len(DATA)


def test_an_empty_blob_has_no_ranges(client):
    empty = {**SELECT, "id": "empty"}
    whole = get(client, select=empty)
    assert (whole.status_code, whole.content) == (200, b"")
    assert whole.headers["content-length"] == "0"
    assert get(client, select=empty, Range="bytes=0-").status_code == 416


def test_a_blob_from_elsewhere_is_taken_over_if_it_can_be_read(client, outside):
    assert get(client, select={**SELECT, "id": "far"}).content == outside.read_bytes()
    gone = (outside.parent / "gone.png").as_uri()
    for uri, status in ((gone, 424), ("file:///etc/passwd", 400)):
        line = f'{{"type":"Doc","data":{{"slug":"x","body":"{uri}"}}}}'
        answer = client.post(f"{G}/load", json={"data": line})
        assert answer.status_code == status
        assert ("external_blob_source" in answer.json()) is (status == 424)
    assert get(client, select={**SELECT, "id": "x"}).status_code == 404


def test_a_blob_that_stays_elsewhere_is_pointed_at(open_server, client, outside):
    line = f'{{"type":"Doc","data":{{"slug":"far","body":"{outside.as_uri()}"}}}}'
    made = {"data": line, "branch": "elsewhere", "from": "main", "mode": "overwrite"}
    done = client.post(f"{G}/load", json=made)
    select = {**SELECT, "id": "far", "branch": "elsewhere"}
    for method in ("GET", "HEAD"):
        for headers in ({}, {"Range": "bytes=0-1"}, {"If_None_Match": "*"}, {"If_Match": '"x"'}):
            answer = get(client, method, select, **headers)
            assert (answer.status_code, answer.content) == (302, b"")
            assert answer.headers["location"] == outside.as_uri()
            assert answer.headers["cache-control"] == "no-store"
            commit = done.json()["commit"]["graph_commit_id"]
            assert answer.headers["omnigraph-snapshot-id"] == commit
            assert not {"etag", "accept-ranges"} & set(answer.headers)
    with og.connect(open_server.url, graph="blobs") as graph:
        blob = graph.blob("Doc", "far", "body", "elsewhere")
        assert (blob.uri, blob.size) == (outside.as_uri(), None)
        with pytest.raises(InvalidInput) as caught:
            blob.read()
        assert caught.value.code == "blob_external"
    assert outside.as_uri() in client.post(f"{G}/export", json={"branch": "elsewhere"}).text


def test_conditions_are_looked_at_before_anything_is_sent(client):
    etag = get(client).headers["etag"]
    same = get(client, If_None_Match=f'"x", W/{etag}')
    assert (same.status_code, same.content) == (304, b"")
    assert same.headers["etag"] == etag
    assert same.headers["content-length"] == str(len(DATA))
    assert get(client, If_None_Match="*").status_code == 304
    assert get(client, If_None_Match='"x"').status_code == 200
    assert get(client, If_Match=f'"x", {etag}').status_code == 200
    assert get(client, If_Match="*").status_code == 200
    for wrong in ('"x"', f"W/{etag}", "nonsense"):
        lost = get(client, If_Match=wrong)
        assert (lost.status_code, lost.json()["code"]) == (412, "conflict")
        assert lost.headers["etag"] == etag
    assert get(client, Range="bytes=0-1", If_Range=etag).status_code == 206
    assert get(client, Range="bytes=0-1", If_Range='"x"').status_code == 200
    assert get(client, Range="bytes=0-1", If_Range=f"W/{etag}").status_code == 200
    assert get(client, "HEAD", If_Match='"x"').status_code == 412
    assert get(client, "HEAD", If_None_Match=etag).status_code == 304


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"id": "none"}, 404),
        ({"id": "nobody"}, 404),
        ({"type": "Nope"}, 400),
        ({"entity": "edge"}, 400),
        ({"entity": "vertex"}, 400),
        ({"property": "title"}, 400),
        ({"property": "nope"}, 400),
        ({"branch": "main", "snapshot": "main"}, 400),
        ({"branch": "nope"}, 404),
    ],
)
def test_a_blob_that_is_not_there_says_why(client, change, status):
    assert get(client, select={**SELECT, **change}).status_code == status


@pytest.mark.parametrize("missing", ["entity", "type", "id", "property"])
def test_a_selector_is_complete(client, missing):
    select = {name: value for name, value in SELECT.items() if name != missing}
    answer = get(client, select=select)
    assert answer.status_code == 400
    assert f"`{missing}`" in answer.json()["error"]
