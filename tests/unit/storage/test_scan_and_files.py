"""Reading rows, and the files a version is made of."""

import lance
import pyarrow as pa
import pytest

from omnigraph.storage.layout import (
    dataset_schema,
    empty_table,
    property_column,
    referenced_files,
    referenced_folders,
    version_file,
)
from omnigraph.storage.row_lookup import ROW_ADDRESS
from omnigraph.storage.scan import count_ids, find_row, scan
from omnigraph.types import PropertyType, Scalar
from tests.support import staging


def test_row_is_found_by_id(base):
    found = find_row(base, "b", ["id", "text", "score"])
    assert found.drop_columns(ROW_ADDRESS).to_pylist() == [{"id": "b", "text": "bee", "score": 2}]
    assert find_row(base, "o'brien", ["id"]).num_rows == 0


def test_rows_come_in_the_order_of_their_ids(datasets):
    datasets.create("n", empty_table(dataset_schema("node", [])))
    base = datasets.at("n", 1)
    for ids in (["d", "a"], ["c", "b"]):
        base = staging.append(base, pa.table([ids], schema=base.schema))
    batches = scan(base, ["id"], by_id=True)
    assert [id_ for batch in batches for id_ in batch["id"].to_pylist()] == ["a", "b", "c", "d"]


def test_rows_and_ids_are_counted(base, table):
    assert count_ids(base) == (5, 5)
    assert count_ids(staging.append(base, table({"a": ("again", 0)}))) == (6, 5)
    assert count_ids(staging.delete(base, list("abcde"))) == (0, 0)


@pytest.mark.parametrize(
    ("version", "name"),
    [
        (1, "_versions/18446744073709551614.manifest"),
        (9_812_345_678_901_234_567, "_versions/d9812345678901234567.manifest"),
    ],
)
def test_version_file_is_named_by_the_number(version, name):
    assert version_file(version) == name


def stored(root):
    return {path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()}


def test_version_refers_to_its_data_and_deletions_and_itself(base, tmp_path):
    staged = staging.delete(base, ["a"])
    found = referenced_files(staged)
    assert version_file(int(staged.version)) in found
    assert {path.partition("/")[0] for path in found} == {"_versions", "data", "_deletions"}
    assert len(found) == 1 + 2 + 1
    assert found <= stored(tmp_path / "root" / "d")


def test_version_of_nothing_refers_only_to_itself(empty):
    assert referenced_files(empty) == {version_file(1)}
    assert referenced_folders(empty) == set()


def test_index_folder_belongs_to_its_version(tmp_path):
    made = lance.write_dataset(pa.table({"id": ["a", "b"]}), tmp_path / "i")
    made.create_scalar_index("id", "BTREE")
    (folder,) = (path for path in referenced_folders(made) if path.startswith("_indices/"))
    assert any(path.startswith(folder) for path in stored(tmp_path / "i"))


def test_folder_of_large_blobs_belongs_to_its_version(datasets, tmp_path):
    blob = property_column("file", PropertyType(Scalar.BLOB), 9)
    datasets.create("b", empty_table(dataset_schema("node", [blob])))
    base = datasets.at("b", 1)
    content = lance.blob_array([b"small", b"x" * 300_000, b"y" * 5_000_000])
    staged = staging.append(base, pa.table([["s", "m", "l"], content], schema=base.schema))
    blobs = {path for path in stored(tmp_path / "root" / "b") if path.endswith(".blob")}
    assert blobs, "large blobs stand in files of their own"
    assert all(path.startswith(tuple(referenced_folders(staged))) for path in blobs)
