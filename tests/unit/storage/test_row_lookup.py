"""Finding rows by values: an index, a filter and a scan all find the same."""

import lance
import pyarrow as pa
import pytest

from omnigraph.storage import row_lookup
from omnigraph.storage.row_lookup import ROW_ADDRESS, lookup_rows, select_rows
from omnigraph.types.arrow import to_column, to_values
from tests.support.scalars import ODD, SCALARS


@pytest.fixture(params=["filter", "scan"])
def strategy(request, monkeypatch):
    """Force a lookup to use the filter, or the scan, however many values there are."""
    scans = request.param == "scan"
    monkeypatch.setattr(row_lookup, "LOOKUP_CHUNK", 0 if scans else 2)
    monkeypatch.setattr(row_lookup, "SCAN_FACTOR", 1_000_000 if scans else 0)


@pytest.fixture(params=["plain", "indexed"])
def write(request, tmp_path):
    """Return a function that stores columns as a dataset of several fragments."""

    def store(rows, column):
        handle = lance.write_dataset(rows, tmp_path / "d", max_rows_per_file=2)
        if request.param == "indexed":
            handle.create_scalar_index(column, "BTREE")
        return handle

    return store


@pytest.mark.usefixtures("strategy")
@pytest.mark.parametrize("type_", SCALARS, ids=str)
def test_rows_are_found_by_every_value_of_a_type(write, type_):
    values = ODD[type_.scalar]
    column = to_column([None, *values, None], type_)
    handle = write(pa.table({"v": column, "n": range(len(column))}), "v")
    for wanted in (values, values[:1], values[-2:]):
        found = lookup_rows(handle, "v", to_column([*wanted, None], type_), ["n", "v"], len(column))
        expected = [(n, v) for n, v in enumerate(values, 1) if v in wanted]
        got = zip(found["n"].to_pylist(), to_values(found["v"], type_), strict=True)
        assert sorted(got) == expected


@pytest.mark.usefixtures("strategy")
@pytest.mark.parametrize("type_", [pa.float32(), pa.float64()])
@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_both_zeros_are_the_same_number(write, type_, zero):
    handle = write(pa.table({"v": pa.array([0.0, -0.0, 1.0, None], type_), "n": range(4)}), "v")
    found = lookup_rows(handle, "v", pa.array([zero], type_), ["n"], 4)
    assert sorted(found["n"].to_pylist()) == [0, 1]


@pytest.mark.usefixtures("strategy")
@pytest.mark.parametrize("type_", [pa.float32(), pa.float64()])
def test_numbers_that_are_none_find_nothing(write, type_):
    handle = write(pa.table({"v": pa.array([0.0, 1.0], type_)}), "v")
    odd = pa.array([float("nan"), float("inf")], type_)
    assert lookup_rows(handle, "v", odd, ["v"], 2).num_rows == 0


@pytest.mark.usefixtures("strategy")
def test_addresses_are_those_of_the_rows(write):
    handle = write(pa.table({"v": list("abcdef")}), "v")
    found = lookup_rows(handle, "v", pa.array(["f", "a", "d", "zzz"]), ["v"], 6)
    by_value = dict(zip(found["v"].to_pylist(), found[ROW_ADDRESS].to_pylist(), strict=True))
    assert by_value == {"a": 0, "d": (1 << 32) + 1, "f": (2 << 32) + 1}


@pytest.mark.usefixtures("strategy")
@pytest.mark.parametrize("values", [[], [None], ["zzz"]])
def test_values_nothing_has_find_no_rows_of_the_right_columns(write, values):
    handle = write(pa.table({"v": ["a", None], "n": [1, 2]}), "v")
    found = lookup_rows(handle, "v", pa.array(values, pa.string()), ["n", "v"], 2)
    assert found.schema.names == ["n", "v", ROW_ADDRESS]
    assert found.schema.types == [pa.int64(), pa.string(), pa.uint64()]
    assert found.num_rows == 0


@pytest.mark.usefixtures("strategy")
def test_a_value_given_twice_finds_its_rows_once(write):
    handle = write(pa.table({"v": ["a", "b"]}), "v")
    chunked = pa.chunked_array([["a"], ["a", None], []], pa.string())
    assert lookup_rows(handle, "v", chunked, ["v"], 2)["v"].to_pylist() == ["a"]


@pytest.mark.usefixtures("strategy")
def test_rows_deleted_meanwhile_are_not_found(write):
    handle = write(pa.table({"v": list("abcd")}), "v")
    handle.delete("v = 'b'")
    found = lookup_rows(handle, "v", pa.array(["b", "c"]), ["v"], 3)
    assert found["v"].to_pylist() == ["c"]


@pytest.mark.usefixtures("strategy")
def test_rows_appended_behind_an_index_are_found(write, tmp_path):
    write(pa.table({"v": ["a", "b"]}), "v")
    handle = lance.write_dataset(pa.table({"v": ["c"]}), tmp_path / "d", mode="append")
    found = lookup_rows(handle, "v", pa.array(["a", "c"]), ["v"], 3)
    assert sorted(found["v"].to_pylist()) == ["a", "c"]


def test_an_empty_dataset_is_not_even_read(tmp_path):
    handle = lance.write_dataset(pa.table({"v": pa.array([], pa.string())}), tmp_path / "d")
    assert lookup_rows(handle, "v", pa.array(["a"]), ["v"], 0).num_rows == 0


def test_blobs_come_as_bytes_and_null_is_not_empty(tmp_path):
    blobs = lance.blob_array([b"one", b"", None])
    schema = pa.schema([("v", pa.string()), lance.blob_field("b")])
    rows = pa.Table.from_arrays([pa.array(["x", "y", "z"]), blobs], schema=schema)
    handle = lance.write_dataset(rows, tmp_path / "d", data_storage_version="2.2")
    found = lookup_rows(handle, "v", pa.array(["x", "y", "z"]), ["v", "b"], 3)
    assert found["b"].to_pylist() == [b"one", b"", None]
    nothing = lookup_rows(handle, "v", pa.array(["q"]), ["v", "b"], 3)
    none_at_all = lookup_rows(handle, "v", pa.array(["q"]), ["v", "b"], 0)
    assert nothing.schema.types == none_at_all.schema.types


def test_a_condition_may_be_left_out(tmp_path):
    handle = lance.write_dataset(pa.table({"v": ["a", "b"]}), tmp_path / "d")
    assert select_rows(handle, ["v"])["v"].to_pylist() == ["a", "b"]
    assert select_rows(handle, ["v"], "v = 'b'")["v"].to_pylist() == ["b"]
    assert select_rows(handle, ["v"], "false")["v"].to_pylist() == []
