"""The format stamp, checked in both directions, on opening and before every publish."""

import lance
import pyarrow as pa
import pytest

import omnigraph.graph as og
from omnigraph.commit.lineage import check_format_version
from omnigraph.commit.manifest_rows import FORMAT_VERSION_KEY
from omnigraph.errors import FormatUnsupported
from tests.support.graphs import NOTE, SCHEMA, Change, insert, prepare, publish_prepared

NEWER = "this graph has format 7, newer than 2: upgrade omnigraph first"
OLDER = "this graph has format 0, older than 1: export it with the version of omnigraph that wrote"
UNREADABLE = "no readable format version"


def restamp(root, stamp):
    handle = lance.dataset(f"{root}/__manifest")
    handle.update_schema_metadata({FORMAT_VERSION_KEY.decode(): stamp})


@pytest.mark.parametrize("stamp", [b"1", b"2"])
def test_format_of_this_and_the_last_release_passes(stamp):
    assert check_format_version({FORMAT_VERSION_KEY: stamp}) is None


@pytest.mark.parametrize(
    ("metadata", "says", "found"),
    [
        ({FORMAT_VERSION_KEY: b"7"}, NEWER, "7"),
        ({FORMAT_VERSION_KEY: b"0"}, OLDER, "0"),
        ({FORMAT_VERSION_KEY: b"one"}, UNREADABLE, "one"),
        ({FORMAT_VERSION_KEY: b"\xff"}, UNREADABLE, "\ufffd"),
        ({}, UNREADABLE, None),
        (None, UNREADABLE, None),
    ],
)
def test_other_format_is_refused_with_advice(metadata, says, found):
    with pytest.raises(FormatUnsupported) as caught:
        check_format_version(metadata)
    assert says in caught.value.message
    assert caught.value.details == {"found": found}
    assert caught.value.code == "format_unsupported"


@pytest.mark.parametrize(("stamp", "says"), [("7", NEWER), ("0", OLDER), ("?", UNREADABLE)])
@pytest.mark.parametrize("mode", ["rw", "ro"])
def test_graph_of_another_format_is_not_opened(graph, stamp, says, mode):
    restamp(graph.uri, stamp)
    with pytest.raises(FormatUnsupported, match=says):
        og.open(graph.uri, mode)


def test_graph_of_another_format_is_not_created_over(graph):
    restamp(graph.uri, "7")
    with pytest.raises(FormatUnsupported, match=NEWER):
        og.init(graph.uri, SCHEMA)


def test_writer_notices_an_upgrade_that_happened_meanwhile(graph):
    prepared = prepare(graph, Change("insert", NOTE, {"a": {}}))
    restamp(graph.uri, "7")
    with pytest.raises(FormatUnsupported, match=NEWER):
        publish_prepared(graph, prepared)
    with pytest.raises(FormatUnsupported, match=NEWER):
        insert(graph, NOTE, {"b": {}})


def test_dataset_that_is_not_a_manifest_is_not_opened(tmp_path):
    lance.write_dataset(pa.table({"a": [1]}), tmp_path / "g" / "__manifest")
    with pytest.raises(FormatUnsupported, match="not written by omnigraph, or damaged"):
        og.open(tmp_path / "g")
