"""Blobs: bytes that belong to an entity."""

import pytest

import omnigraph as og
from omnigraph.errors import InvalidInput, NotFound
from omnigraph.query.entities import BLOB_CHUNK_BYTES

SCHEMA = """
node File { name: String @key  size: I64?  body: Blob? }
edge Part: File -> File { body: Blob? }
"""
HELLO = "base64:aGVsbG8="
INSERT = "query put($name: String, $body: Blob?) { insert File { name: $name, body: $body } }"


@pytest.fixture
def graph(tmp_path):
    graph = og.init(tmp_path / "g", SCHEMA)
    for name, body in (("hello", HELLO), ("empty", "base64:"), ("none", None)):
        graph.mutate(INSERT, {"name": name, "body": body})
    return graph


def test_bytes_are_read_whole_and_in_ranges(graph):
    blob = graph.blob("File", "hello", "body")
    assert (blob.size, blob.uri, blob.read()) == (5, None, b"hello")
    assert (blob.read(1, 3), blob.read(5), blob.read(0, 0)) == (b"el", b"", b"")


@pytest.mark.parametrize(("start", "end"), [(-1, 2), (3, 2), (0, 6), (6, None)])
def test_range_outside_of_the_blob_is_refused(graph, start, end):
    with pytest.raises(InvalidInput, match="not within the 5 bytes") as caught:
        graph.blob("File", "hello", "body").read(start, end)
    assert caught.value.code == "blob_range_not_satisfiable"


def test_empty_is_not_null(graph):
    assert (
        graph.blob("File", "empty", "body").size,
        graph.blob("File", "empty", "body").read(),
    ) == (0, b"")
    with pytest.raises(NotFound, match=r"node File 'none' has no File\.body"):
        graph.blob("File", "none", "body")
    with pytest.raises(NotFound, match="node File 'nobody' does not exist"):
        graph.blob("File", "nobody", "body")


def test_other_properties_are_no_blobs(graph):
    with pytest.raises(InvalidInput, match=r"File\.size is I64\?, not a Blob"):
        graph.blob("File", "hello", "size")
    with pytest.raises(InvalidInput, match="has no property 'bod': did you mean `body`"):
        graph.blob("File", "hello", "bod")


def test_large_blob_comes_in_chunks(graph):
    data = bytes(range(256)) * (BLOB_CHUNK_BYTES // 256) + b"tail"
    graph.put_blob("File", "hello", "body", data)
    blob = graph.blob("File", "hello", "body")
    assert [len(chunk) for chunk in blob.chunks()] == [BLOB_CHUNK_BYTES, 4]
    assert blob.read() == data
    assert (
        blob.read(BLOB_CHUNK_BYTES - 2, BLOB_CHUNK_BYTES + 2)
        == data[BLOB_CHUNK_BYTES - 2 : BLOB_CHUNK_BYTES + 2]
    )


def test_reader_stays_on_its_version(graph):
    before = graph.blob("File", "hello", "body")
    graph.put_blob("File", "hello", "body", b"other")
    after = graph.blob("File", "hello", "body")
    assert (before.read(), after.read()) == (b"hello", b"other")
    assert before.etag != after.etag
    assert graph.blob("File", "hello", "body").etag == after.etag


def test_update_of_another_property_keeps_the_blob(graph):
    graph.mutate("query m() { update File set { size: 5 } where size = 0 }")
    graph.mutate('query m() { update File set { size: 5 } where name = "hello" }')
    graph.mutate('query m() { update File set { size: 0 } where name = "none" }')
    assert graph.blob("File", "hello", "body").read() == b"hello"
    with pytest.raises(NotFound):
        graph.blob("File", "none", "body")


def test_put_into_nobody_changes_nothing(graph):
    head = graph.snapshot().commit_id
    with pytest.raises(NotFound, match="node File 'nobody' does not exist"):
        graph.put_blob("File", "nobody", "body", b"x")
    with pytest.raises(InvalidInput, match="has no Blob property 'size'"):
        graph.put_blob("File", "hello", "size", b"x")
    assert graph.snapshot().commit_id == head


def test_blob_of_an_edge(graph):
    graph.mutate(
        """query m($b: Blob) { insert Part { from: "hello", to: "empty", body: $b } }""",
        {"b": HELLO},
    )
    [line] = graph.export(types=["Part"])
    id_ = line.partition('"id":"')[2][:26]
    assert graph.blob("edge:Part", id_, "body").read() == b"hello"


@pytest.mark.parametrize("text", ["base64:@@", "base64:aGVsbG8", "hello", ""])
def test_text_that_is_neither_bytes_nor_a_uri_is_refused(graph, text):
    with pytest.raises(og.OmniError, match="base64") as caught:
        graph.mutate(INSERT, {"name": "x", "body": text})
    assert caught.value.details["violations"][0]["property"] == "body"
    assert graph.entity_at("File", "x") is None
