"""Files and names are synced once, in the right order, and a failure is never forgotten."""

import errno
import os
import time
from pathlib import Path

import pytest

from omnigraph.errors import InvalidInput, StorageUnavailable
from omnigraph.storage import ObjectStore, locate
from omnigraph.storage.durability import Durability, parse_durability
from omnigraph.storage.file_sync import FileSync, fsync_path
from omnigraph.storage.location import Location


@pytest.fixture
def root(tmp_path):
    (tmp_path / "g" / "nodes" / "data").mkdir(parents=True)
    return tmp_path / "g"


def recording(root, durability=Durability.FULL):
    """Return a FileSync whose syncs are recorded, as paths below the folder above the root."""
    files, synced = FileSync(Location(str(root), durability=durability)), []

    def record(path):
        assert path.exists()
        synced.append(str(path.relative_to(root.parent)))

    files.fsync = record
    return files, synced


def test_file_is_synced_before_the_names_that_lead_to_it(root):
    files, synced = recording(root)
    (root / "nodes" / "data" / "a").write_text("a")
    files.sync(["nodes/data/a"])
    assert synced == ["g/nodes/data/a", "g/nodes/data", "g/nodes", "g", "."]


def test_file_is_synced_once(root):
    files, synced = recording(root)
    (root / "nodes" / "data" / "a").write_text("a")
    files.sync(["nodes/data/a", "nodes/data/a"])
    synced.clear()
    files.sync(["nodes/data/a"])
    assert synced == []


def test_only_folders_that_changed_are_synced_again(root):
    old = time.time() - 60
    for folder in (root / "nodes", root):
        os.utime(folder, (old, old))
    files, synced = recording(root)
    for name in ("a", "b"):
        (root / "nodes" / "data" / name).write_text(name)
        files.sync([f"nodes/data/{name}"])
    assert synced[5:] == ["g/nodes/data/b", "g/nodes/data"]
    (root / "nodes" / "data" / "c").write_text("c")
    os.utime(root / "nodes", (old + 1, old + 1))  # as if a folder in it was removed and created
    files.sync(["nodes/data/c"])
    assert synced[7:] == ["g/nodes/data/c", "g/nodes/data", "g/nodes"]


def test_relaxed_and_buckets_sync_nothing(root):
    files, synced = recording(root, Durability.RELAXED)
    files.sync(["nodes/data/missing"])
    files.sync_tree(root)
    assert synced == []
    FileSync(Location("s3://bucket/g")).sync(["nodes/data/missing"])


def test_failed_sync_is_an_error_and_stays_one(root):
    files, _ = recording(root)
    (root / "nodes" / "data" / "a").write_text("a")

    def fail(path):
        raise OSError(errno.EIO, "Input/output error", str(path))

    working, files.fsync = files.fsync, fail
    with pytest.raises(StorageUnavailable) as caught:
        files.sync(["nodes/data/a"])
    assert caught.value.code == "sync_failed"
    files.fsync = working
    with pytest.raises(StorageUnavailable) as again:
        files.sync(["nodes/data/a"])
    assert again.value.code == "sync_failed"


def test_content_and_names_are_synced_by_the_system(root):
    (root / "a").write_text("a")
    FileSync(Location(str(root))).sync(["a"])


def test_file_system_that_cannot_sync_folders_is_accepted(root, monkeypatch):
    def refuse(descriptor):
        raise OSError(errno.EINVAL, "Invalid argument")

    monkeypatch.setattr(os, "fsync", refuse)
    fsync_path(root)
    (root / "a").write_text("a")
    with pytest.raises(OSError, match="Invalid argument"):
        fsync_path(root / "a")


def test_small_object_is_written_under_another_name_and_synced_first(tmp_path):
    store = ObjectStore(locate(tmp_path / "g", durability="full"))
    synced = []

    def record(path):
        names = {file.name: file.read_bytes() for file in (tmp_path / "g" / "x").iterdir()}
        synced.append((path.name.partition("#")[0], names.get("o")))

    store.files.fsync = record
    store.put("x/o", b"old")
    synced.clear()
    store.put("x/o", b"new")
    assert synced[:2] == [("o", b"old"), ("x", b"new")]
    assert not store.put_if_absent("x/o", b"other")
    assert [info.path for info in store.list("")] == ["x/o"]
    assert store.get("x/o") == b"new"


def test_new_folders_above_a_graph_are_synced(tmp_path):
    store = ObjectStore(locate(tmp_path / "a" / "b" / "g", durability="full"))
    synced = []
    store.files.fsync = lambda path: synced.append(path)
    store.put("o", b"1")
    above = [tmp_path / "a" / "b" / "g", tmp_path / "a" / "b", tmp_path / "a", tmp_path]
    assert synced[1:] == above


@pytest.mark.parametrize(
    ("argument", "variable", "expected"),
    [
        (None, None, Durability.FULL),
        (None, "", Durability.FULL),
        (None, "relaxed", Durability.RELAXED),
        ("full", "relaxed", Durability.FULL),
    ],
)
def test_durability_is_that_of_the_argument_then_of_the_environment(
    argument, variable, expected, monkeypatch
):
    monkeypatch.delenv("OMNIGRAPH_DURABILITY", raising=False)
    if variable is not None:
        monkeypatch.setenv("OMNIGRAPH_DURABILITY", variable)
    assert parse_durability(argument) is expected
    assert locate(Path("g"), durability=argument).durability is expected


@pytest.mark.parametrize(("argument", "variable"), [("fast", ""), ("", ""), (None, "fast")])
def test_unknown_durability_is_a_typed_error(argument, variable, monkeypatch):
    monkeypatch.setenv("OMNIGRAPH_DURABILITY", variable)
    with pytest.raises(InvalidInput) as caught:
        parse_durability(argument)
    assert caught.value.code == "durability_invalid"
