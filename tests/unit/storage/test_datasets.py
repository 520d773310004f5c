"""Handles at exact versions, shared and bounded; creation and plain logs."""

import pyarrow as pa
import pytest

from omnigraph.errors import AlreadyExists, GraphCorrupt, NotFound
from omnigraph.storage import Datasets, locate
from omnigraph.storage import datasets as module
from omnigraph.storage.row_lookup import count_rows
from tests.support import staging

ROWS = pa.table({"id": ["a", "b"]})


@pytest.fixture
def datasets(tmp_path):
    return Datasets(locate(tmp_path / "root"))


def ids(handle):
    return handle.to_table()["id"].to_pylist()


def test_created_dataset_starts_at_version_one(datasets):
    assert datasets.create("d", ROWS) == 1
    assert ids(datasets.open("d")) == ["a", "b"]


def test_dataset_that_exists_is_not_created_again(datasets):
    datasets.create("d", ROWS)
    with pytest.raises(AlreadyExists):
        datasets.create("d", pa.table({"id": ["c"]}))
    assert ids(datasets.open("d")) == ["a", "b"]


def test_handle_of_a_version_is_opened_once(datasets):
    datasets.create("d", ROWS)
    assert datasets.at("d", 1) is datasets.at("d", 1)
    assert datasets.open("d", 1) is not datasets.open("d", 1)


def test_kept_handle_is_found_without_opening(datasets):
    datasets.create("d", ROWS)
    staged = staging.append(datasets.at("d", 1), pa.table({"id": ["c"]}))
    datasets.keep("d", staged)
    assert datasets.at("d", int(staged.version)) is staged


def test_staged_version_is_opened_by_its_number(datasets):
    datasets.create("d", ROWS)
    staged = staging.append(datasets.at("d", 1), pa.table({"id": ["c"]}))
    assert ids(datasets.at("d", int(staged.version))) == ["a", "b", "c"]
    assert ids(datasets.open("d")) == ["a", "b"]


def test_oldest_handle_is_forgotten_when_there_are_too_many(datasets, monkeypatch):
    monkeypatch.setattr(module, "MAX_HANDLE_FRAGMENTS", 4)
    datasets = Datasets(datasets.location)
    for path in ("d1", "d2", "d3"):
        datasets.create(path, ROWS)
    first, second = datasets.at("d1", 1), datasets.at("d2", 1)
    assert datasets.at("d1", 1) is first
    datasets.at("d3", 1)
    assert datasets.at("d1", 1) is first
    assert datasets.at("d2", 1) is not second


def test_few_versions_of_one_dataset_are_kept(datasets, monkeypatch):
    monkeypatch.setattr(module, "MAX_VERSIONS", 2)
    datasets = Datasets(datasets.location)
    datasets.create("other", ROWS)
    other = datasets.at("other", 1)
    datasets.create("d", ROWS)
    handles = [datasets.at("d", 1)]
    for _ in range(2):
        handles.append(staging.append(handles[0], pa.table({"id": ["c"]})))
        datasets.keep("d", handles[-1])
    found = [datasets.at("d", int(handle.version)) for handle in handles[1:]]
    assert found == handles[1:]
    assert datasets.at("other", 1) is other
    assert datasets.at("d", 1) is not handles[0]


@pytest.mark.parametrize("version", [None, 1, (1 << 63) + 5])
def test_missing_dataset_is_not_found(datasets, version):
    with pytest.raises(NotFound) as caught:
        datasets.open("d", version)
    assert caught.value.code == "storage_not_found"
    assert caught.value.message == "opening d: not found"


def test_missing_version_is_not_found(datasets):
    datasets.create("d", ROWS)
    with pytest.raises(NotFound):
        datasets.open("d", 7)


def test_log_is_created_by_its_first_rows_and_grows(datasets, capfd):
    datasets.append("log", pa.table({"id": ["a"]}))
    datasets.append("log", pa.table({"id": ["b"]}))
    assert ids(datasets.open("log")) == ["a", "b"]
    assert capfd.readouterr() == ("", "")


def test_read_that_misses_a_file_of_a_living_version_is_corruption(datasets, tmp_path):
    datasets.create("d", ROWS)
    handle = datasets.open("d", 1)
    for file in (tmp_path / "root" / "d" / "data").iterdir():
        file.unlink()
    with pytest.raises(GraphCorrupt, match="a file of d is missing"), datasets.check_intact("d", 1):
        count_rows(handle, "id = 'a'")


def test_read_of_a_version_that_is_gone_is_not_found(datasets, tmp_path):
    datasets.create("d", ROWS)
    handle = datasets.open("d", 1)
    for file in [*(tmp_path / "root" / "d").rglob("*.*")]:
        file.unlink()
    with pytest.raises(NotFound), datasets.check_intact("d", 1):
        count_rows(handle, "id = 'a'")


def test_not_found_error_of_a_caller_is_not_corruption(datasets):
    datasets.create("d", ROWS)
    with pytest.raises(NotFound, match="no such tag"), datasets.check_intact("d", 1):
        raise NotFound("no such tag", code="tag_not_found")
