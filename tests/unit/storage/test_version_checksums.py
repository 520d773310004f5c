"""Readers compare the files of a version with the checksums beside it."""

from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.errors import GraphCorrupt
from omnigraph.storage import version_checksums
from omnigraph.storage.checksums import version_files
from omnigraph.storage.layout import checksum_file, version_file
from omnigraph.storage.version_checksums import read_version_checksums

SCHEMA = "node Port { code: String @key  size: I32?  map: Blob? }"
PORT = "node:Port"


@pytest.fixture
def graph(tmp_path):
    graph = og.init(tmp_path / "graph", SCHEMA)
    graph.insert("Port", [{"code": code, "size": 1} for code in ("HAM", "OSL", "RTM")])
    graph.put_blob("Port", "HAM", "map", b"m" * 100_000)
    graph.optimize()
    graph.mutate('query m() { delete Port where code = "OSL" }')
    return graph


def folder(graph):
    return Path(graph.uri) / graph.snapshot().entries()[PORT].path(PORT)


def physical(graph):
    return graph.snapshot().entries()[PORT].physical


def sizes(graph):
    rows = og.open(graph.uri).query("query q() { match { $p: Port } return { $p.code, $p.size } }")
    return {row["p.code"]: row["p.size"] for row in rows.rows}


def flip(file):
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(bytes(data))


def test_checksums_of_a_version_list_all_its_files(graph):
    path = graph.snapshot().entries()[PORT].path(PORT)
    handle = graph._manifest.datasets.open(path, physical(graph))
    stated = read_version_checksums(folder(graph), physical(graph))
    assert set(stated) == version_files(handle)
    kinds = {name.partition("/")[0] for name in stated}
    assert kinds == {"_versions", "data", "_deletions", "_indices"}
    assert any(name.endswith(".blob") for name in stated)


@pytest.mark.parametrize("kind", ["data/*.lance", "data/*/*.blob", "_deletions/*", "_versions/d*"])
def test_damaged_file_is_an_error_and_not_data(graph, kind):
    stated = read_version_checksums(folder(graph), physical(graph))
    names = {str(file.relative_to(folder(graph))) for file in folder(graph).glob(kind)}
    name = min(names & set(stated))
    flip(folder(graph) / name)
    with pytest.raises(GraphCorrupt, match="omnigraph repair GRAPH --to-last-good") as caught:
        sizes(graph)
    assert caught.value.details["file"].endswith(f"/{name}")


def test_swapped_version_files_are_an_error(graph):
    older = graph.snapshot(graph.commits.list()[1].id).entries()[PORT].physical
    files = [folder(graph) / version_file(version) for version in (older, physical(graph))]
    contents = [file.read_bytes() for file in files]
    for file, content in zip(files, reversed(contents), strict=True):
        file.write_bytes(content)
    with pytest.raises(GraphCorrupt):
        sizes(graph)


def test_damaged_index_is_not_used_and_replaced_by_optimize(graph):
    for file in folder(graph).glob("_indices/*/*"):
        flip(file)
    assert sizes(graph) == {"HAM": 1, "RTM": 1}
    other = og.open(graph.uri)
    assert {status.covered for status in other.indexes.status()} == {0}
    other.mutate('query m() { update Port set { size: 2 } where code = "RTM" }')
    other.optimize()
    assert sizes(graph) == {"HAM": 1, "RTM": 2}
    assert {status.covered for status in og.open(graph.uri).indexes.status()} == {2}


@pytest.mark.parametrize("damage", [flip, lambda file: file.unlink(), lambda f: f.write_text("{")])
def test_damaged_checksums_do_not_prevent_reading(graph, damage):
    file = folder(graph) / checksum_file(physical(graph))
    damage(file)
    problems = [(p.message, p.harmless) for p in graph.verify(deep=True).problems]
    expected = f"{checksum_file(physical(graph))} is damaged: readers do not compare files"
    expected = [(f"{expected}; it is derived, remove it", True)]
    assert problems == (expected if file.exists() else [])
    assert sizes(graph) == {"HAM": 1, "RTM": 1}
    og.open(graph.uri).insert("Port", [{"code": "KIE"}])
    assert sizes(graph) == {"HAM": 1, "RTM": 1, "KIE": None}


def test_large_file_is_compared_by_its_size(graph, monkeypatch):
    monkeypatch.setattr(version_checksums, "CHECKED_BYTES", 1_000)
    stated = read_version_checksums(folder(graph), physical(graph))
    [blob] = [folder(graph) / name for name in stated if name.endswith(".blob")]
    flip(blob)
    assert sizes(graph) == {"HAM": 1, "RTM": 1}, "only verify --deep reads it"
    assert not graph.verify(deep=True).ok
    blob.write_bytes(blob.read_bytes()[:-1])
    with pytest.raises(GraphCorrupt):
        sizes(graph)


def test_file_is_compared_once_per_process(graph):
    reader = og.open(graph.uri)
    reader.query("query q() { match { $p: Port } return { $p.code } }")
    stated = read_version_checksums(folder(graph), physical(graph))
    path = graph.snapshot().entries()[PORT].path(PORT)
    checked = reader._manifest.datasets._checksums
    assert {name: checked.get(f"{path}/{name}") for name in stated} == stated
