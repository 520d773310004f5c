"""A version reads fewer rows of its last fragment when its manifest states fewer."""

import lance
import pyarrow as pa
import pytest
from lance import LanceDataset, LanceOperation
from lance.fragment import write_fragments

from omnigraph.storage.partial_version import open_without_indexes, open_without_newest

ROWS = 10


@pytest.fixture
def group(tmp_path):
    """A detached version: 100 indexed rows in one fragment, one of them deleted, then 10 rows."""
    base = lance.write_dataset(people("a", 100), tmp_path / "d")
    base.create_scalar_index("id", "BTREE")
    base.delete("id = 'a007'")
    base = lance.dataset(tmp_path / "d", session=lance.Session())
    new = write_fragments(people("b", ROWS), base, mode="append", return_transaction=True)
    operation = LanceOperation.Append(new.operation.fragments)
    return LanceDataset.commit(base, operation, read_version=base.version, detached=True)


def people(letter, count):
    ids = [f"{letter}{number:03}" for number in range(count)]
    return pa.table({"id": ids, "age": pa.array(range(count), pa.int64())})


def without(group, excluded):
    return open_without_newest(group, excluded, group.session(), None)


@pytest.mark.parametrize("excluded", [1, 4, ROWS - 1])
def test_every_read_ends_before_the_excluded_rows(group, excluded):
    shown = without(group, excluded)
    expected = [*group.to_table()["id"].to_pylist()[: 99 + ROWS - excluded]]
    fragment = shown.get_fragments()[-1]
    last, next_ = f"b{ROWS - excluded - 1:03}", f"b{ROWS - excluded:03}"
    assert shown.version == group.version
    assert shown.count_rows() == len(expected)
    assert shown.to_table()["id"].to_pylist() == expected
    assert shown.count_rows("age >= 0") == len(expected)
    assert shown.scanner(filter=f"id = '{last}'").to_table().num_rows == 1
    assert shown.scanner(filter=f"id = '{next_}'").to_table().num_rows == 0
    assert fragment.physical_rows == fragment.count_rows() == ROWS - excluded
    assert fragment.to_table()["id"].to_pylist() == expected[99:]
    assert shown.take([len(expected) - 1])["id"].to_pylist() == [last]
    with pytest.raises((OSError, ValueError)):
        shown.take([len(expected)])


def test_indexed_rows_are_still_found_by_the_index(group):
    scanner = without(group, 3).scanner(filter="id IN ('a005', 'b001')", columns=["id"])
    assert sorted(scanner.to_table()["id"].to_pylist()) == ["a005", "b001"]
    assert "ScalarIndexQuery" in scanner.explain_plan()


def test_version_without_indexes_has_the_same_rows_and_passes_none_on(group):
    assert [index.name for index in group.describe_indices()] == ["id_idx"]
    bare = open_without_indexes(group, None)
    scanner = bare.scanner(filter="id IN ('a005', 'b001')", columns=["id"])
    assert "ScalarIndexQuery" not in scanner.explain_plan()
    assert sorted(scanner.to_table()["id"].to_pylist()) == ["a005", "b001"]
    assert (bare.version, bare.to_table()) == (group.version, group.to_table())
    new = write_fragments(people("c", 1), bare, mode="append", return_transaction=True)
    operation = LanceOperation.Append(new.operation.fragments)
    staged = LanceDataset.commit(bare, operation, read_version=bare.version, detached=True)
    again = lance.dataset(bare.uri, version=staged.version, session=lance.Session())
    assert (again.describe_indices(), again.count_rows()) == ([], group.count_rows() + 1)
    assert [index.name for index in group.describe_indices()] == ["id_idx"]


def test_the_whole_version_is_not_affected(group):
    without(group, 3).to_table()
    assert group.count_rows() == 99 + ROWS
    assert lance.dataset(group.uri, version=group.version).count_rows() == 99 + ROWS
