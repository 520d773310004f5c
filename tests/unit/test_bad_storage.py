"""Storage that refuses, is full or damaged: a typed error that helps, and nothing changed."""

import shutil
from pathlib import Path

import pytest

import omnigraph.graph as og
from omnigraph.errors import GraphCorrupt, NotFound, OmniError, StorageUnavailable
from omnigraph.storage.small_fragments import clear_cached_columns
from tests.support.failing_storage import can_mount, outcomes
from tests.support.graphs import NOTE, SCHEMA, dump, insert, upsert

WRITES = ("insert", "branch", "tag", "intent", "init")
BEFORE = {"a": {"text": "x"}}
mounting = pytest.mark.skipif(not can_mount(), reason="mounting is not allowed here")


@pytest.fixture
def graph(graph):
    insert(graph, NOTE, BEFORE)
    return graph


@pytest.mark.parametrize(
    ("kind", "code", "says"),
    [
        ("denied", "storage_denied", "permission denied"),
        ("limited", "storage_full", "no space left"),
        pytest.param("full", "storage_full", "no space left", marks=mounting),
        pytest.param(
            "read-only", "storage_read_only", "the file system is read-only", marks=mounting
        ),
    ],
)
def test_writes_fail_typed_and_reads_go_on(graph, tmp_path, kind, code, says):
    open_up(tmp_path)
    if kind == "denied":
        forbid(tmp_path, 0o555)
    found = outcomes(kind, Path(graph.uri))
    if kind == "denied":
        forbid(tmp_path, 0o755)
    for name in WRITES:
        assert found[name][:2] == ("StorageUnavailable", code), (name, found[name])
        assert f": {says}" in found[name][2]
    for name in ("read", "read again"):
        assert found[name] == ("ok", "", str(BEFORE))
    for name in ("verify", "verify again"):
        assert found[name] == ("ok", "", "True")
    assert dump(og.open(graph.uri))[NOTE] == BEFORE
    insert(og.open(graph.uri), NOTE, {"next": {}})


def test_graph_that_may_not_be_read_says_so(graph, tmp_path):
    open_up(tmp_path)
    Path(graph.uri).chmod(0)
    found = outcomes("unreadable", Path(graph.uri), "read", "init")
    Path(graph.uri).chmod(0o755)
    for name in ("read", "init"):
        assert found[name][:2] == ("StorageUnavailable", "storage_denied"), (name, found[name])
        assert found[name][2] == "opening __manifest: permission denied"


def open_up(folder):
    """Let everybody come as far as the folder of the test."""
    for place in (folder, *folder.parents):
        if place.stat().st_uid == Path("/proc/self").stat().st_uid and place != Path("/"):
            place.chmod(place.stat().st_mode | 0o555)


def forbid(root, mode):
    for folder in [root / "graph", *(root / "graph").rglob("*")]:
        if folder.is_dir():
            folder.chmod(mode)


# --- not a graph, or one that lost something ---------------------------------------------------


def manifests(root):
    return sorted((root / "__manifest" / "_versions").glob("*.manifest"))


def newest_data(root):
    return max((root / "__manifest" / "data").iterdir(), key=lambda file: file.stat().st_mtime_ns)


def write(path, data):
    path.write_bytes(data)


DAMAGE = {
    "two newest manifests empty": (
        lambda root: [write(file, b"") for file in manifests(root)[:2]],
        GraphCorrupt,
    ),
    "only manifest cut": (
        lambda root: (
            [file.unlink() for file in manifests(root)[1:]],
            write(manifests(root)[0], manifests(root)[0].read_bytes()[:-20]),
        ),
        GraphCorrupt,
    ),
    "only manifest garbage": (
        lambda root: (
            [file.unlink() for file in manifests(root)[1:]],
            write(manifests(root)[0], b"\x07" * 5000),
        ),
        GraphCorrupt,
    ),
    "newest rows lost": (lambda root: newest_data(root).unlink(), GraphCorrupt),
    "newest rows cut": (
        lambda root: write(newest_data(root), newest_data(root).read_bytes()[:100]),
        GraphCorrupt,
    ),
    "newest rows garbage": (
        lambda root: write(newest_data(root), b"\x07" * newest_data(root).stat().st_size),
        GraphCorrupt,
    ),
    "all versions lost": (lambda root: shutil.rmtree(root / "__manifest" / "_versions"), NotFound),
    "manifest lost": (lambda root: shutil.rmtree(root / "__manifest"), NotFound),
    "manifest is a file": (
        lambda root: (shutil.rmtree(root / "__manifest"), write(root / "__manifest", b"x")),
        NotFound,
    ),
    "graph is a file": (lambda root: (shutil.rmtree(root), write(root, b"x")), NotFound),
}


def stored(root):
    return sorted((str(path), path.stat().st_mtime_ns) for path in root.rglob("*"))


@pytest.mark.parametrize(("plant", "kind"), DAMAGE.values(), ids=DAMAGE)
def test_damaged_graph_is_not_opened(graph, tmp_path, plant, kind):
    plant(Path(graph.uri))
    before = stored(tmp_path)
    with pytest.raises(OmniError) as caught:
        og.open(graph.uri)
    assert type(caught.value) is kind, caught.value
    assert stored(tmp_path) == before


@pytest.mark.parametrize("plant", [DAMAGE[name][0] for name in list(DAMAGE)[:6]])
def test_damaged_graph_is_not_created_over(graph, tmp_path, plant):
    plant(Path(graph.uri))
    manifest = stored(Path(graph.uri) / "__manifest")
    with pytest.raises(OmniError):
        og.init(graph.uri, SCHEMA)
    assert stored(Path(graph.uri) / "__manifest") == manifest


def test_file_where_a_graph_should_be_made_is_left_alone(tmp_path):
    write(tmp_path / "g", b"mine")
    with pytest.raises(StorageUnavailable) as caught:
        og.init(tmp_path / "g", SCHEMA)
    assert caught.value.code == "storage_not_a_folder"
    assert (tmp_path / "g").read_bytes() == b"mine"


@pytest.mark.parametrize(
    ("content", "says"),
    [(None, "a file of nodes/"), (b"", "is damaged"), (b"\x07" * 3000, "is damaged")],
    ids=["lost", "empty", "garbage"],
)
def test_entity_whose_data_file_is_damaged_is_a_typed_error(graph, content, says):
    for file in (Path(graph.uri) / "nodes").rglob("*.lance"):
        if content is None:
            file.unlink()
        else:
            write(file, content)
    clear_cached_columns()  # as in another process
    fresh = og.open(graph.uri)
    with pytest.raises(GraphCorrupt) as caught:
        fresh.entity_at("Note", "a")
    assert says in caught.value.message
    with pytest.raises(OmniError):
        upsert(fresh, NOTE, {"b": {}})
    assert fresh.snapshot().entries()[NOTE].rows == 1


def test_graph_removed_while_it_is_open_is_not_found(graph):
    shutil.rmtree(graph.uri)
    with pytest.raises(NotFound):
        graph.snapshot()
    with pytest.raises(NotFound):
        insert(graph, NOTE, {"b": {}})
    assert not Path(graph.uri).exists()
