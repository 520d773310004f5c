"""Small objects beside the datasets: create-if-absent, replace, list, delete, probe."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from omnigraph.errors import StorageUnavailable
from omnigraph.storage import ObjectStore, locate


@pytest.fixture
def objects(tmp_path):
    return ObjectStore(locate(tmp_path / "root"))


def paths(objects, prefix):
    return sorted(info.path for info in objects.list(prefix))


def test_first_creator_wins_and_the_second_changes_nothing(objects):
    assert objects.put_if_absent("a/one", b"first") is True
    assert objects.put_if_absent("a/one", b"second") is False
    assert objects.get("a/one") == b"first"


def test_of_many_racing_creators_exactly_one_wins(objects):
    with ThreadPoolExecutor(8) as pool:
        won = list(pool.map(lambda n: objects.put_if_absent("race", b"%d" % n), range(32)))
    assert won.count(True) == 1
    assert objects.get("race") == b"%d" % won.index(True)


def test_put_replaces_what_is_there(objects):
    objects.put("a", b"old")
    objects.put("a", b"new")
    assert objects.get("a") == b"new"


def test_replace_needs_the_content_that_is_there(objects):
    assert objects.replace("a", b"old", b"new") is False
    assert objects.get("a") is None
    objects.put("a", b"old")
    assert objects.replace("a", b"other", b"new") is False
    assert objects.get("a") == b"old"
    assert objects.replace("a", b"old", b"new") is True
    assert objects.get("a") == b"new"


def test_of_many_that_replace_the_same_content_exactly_one_wins(objects):
    objects.put("race", b"old")
    with ThreadPoolExecutor(8) as pool:
        won = list(pool.map(lambda n: objects.replace("race", b"old", b"%d" % n), range(32)))
    assert won.count(True) == 1
    assert objects.get("race") == b"%d" % won.index(True)


def test_missing_object_reads_as_none(objects):
    assert objects.get("nothing/here") is None


def test_part_of_an_object_is_read_by_itself(objects):
    objects.put("a", b"0123456789")
    assert bytes(objects.part("a", 3, 6)) == b"345"


def test_list_yields_everything_below_a_prefix_with_its_size(objects):
    objects.put("a/one", b"1")
    objects.put("a/deep/two", b"22")
    objects.put("ab/three", b"333")
    assert {(info.path, info.size) for info in objects.list("a")} == {
        ("a/one", 1),
        ("a/deep/two", 2),
    }
    assert all(info.modified.tzinfo is not None for info in objects.list("a"))


def test_list_of_nothing_is_empty(objects):
    assert paths(objects, "nothing") == []


def test_folders_are_those_right_below_a_prefix(objects):
    for path in ("nodes/a/data/1", "nodes/b/data/1", "nodes/file", "edges/c/1"):
        objects.put(path, b"")
    assert sorted(objects.folders("nodes")) == ["a", "b"]
    assert objects.folders("nothing") == ()


def test_delete_removes_what_is_there_and_ignores_what_is_not(objects):
    objects.put("a/one", b"1")
    objects.put("a/two", b"2")
    objects.delete(["a/one", "a/never", "b/never"])
    assert paths(objects, "a") == ["a/two"]


def test_probe_accepts_a_disk_and_leaves_nothing_behind(objects):
    objects.probe()
    assert paths(objects, "") == []


class Lying(ObjectStore):
    """A store that lets everybody create, as some S3 look-alikes do."""

    def put_if_absent(self, path, data):
        self.put(path, data)
        return True


def test_probe_refuses_a_store_that_ignores_create_if_absent(tmp_path):
    objects = Lying(locate(tmp_path))
    with pytest.raises(StorageUnavailable) as caught:
        objects.probe()
    assert caught.value.code == "storage_unsafe"
    assert "would lose updates" in caught.value.message
    assert paths(objects, "") == []


def test_file_in_the_place_of_the_folder_is_a_typed_error(tmp_path):
    (tmp_path / "root").write_text("not a folder")
    with pytest.raises(StorageUnavailable) as caught:
        ObjectStore(locate(tmp_path / "root")).put("a", b"")
    assert caught.value.code == "storage_not_a_folder"
    assert "expected a folder, but found a file" in caught.value.message
