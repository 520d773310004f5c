"""Rows that a process leaves for the others of its machine."""

import pyarrow as pa
import pytest

from omnigraph.commit.shared_rows import MAX_BYTES, SharedRows, read_shared_rows, write_shared_rows

SMALL = pa.table({"id": ["a", "b"], "n": [1, None]})
LARGE = pa.table({"id": [f"row {number}" for number in range(20_000)]})
SHARED = SharedRows({"x.lance": SMALL, "y.lance": LARGE}, {("nodes/1-1", "z.lance"): SMALL})


def held(table):
    """Return the bytes that stay in memory as long as a table does."""
    sizes = 0
    for chunk in (chunk for column in table.columns for chunk in column.chunks):
        for buffer in chunk.buffers():
            while buffer is not None and buffer.parent is not None:
                buffer = buffer.parent
            sizes += 0 if buffer is None else buffer.size
    return sizes


def test_rows_are_read_as_they_were_written(tmp_path):
    write_shared_rows(tmp_path, "main", 7, SHARED)
    assert read_shared_rows(tmp_path, "main", 7) == SHARED
    assert read_shared_rows(tmp_path, "main", 8) is None


def test_table_keeps_no_other_rows_in_memory(tmp_path):
    write_shared_rows(tmp_path, "main", 7, SHARED)
    shared = read_shared_rows(tmp_path, "main", 7)
    assert held(shared.lineage["x.lance"]) < 2_000 < LARGE.nbytes
    assert held(shared.keys["nodes/1-1", "z.lance"]) < 2_000


@pytest.mark.parametrize("change", [lambda d: d[:-9], lambda d: b"", lambda d: d[:40] + d[41:]])
def test_file_that_is_not_complete_is_not_used(tmp_path, change):
    write_shared_rows(tmp_path, "main", 7, SHARED)
    [file] = tmp_path.iterdir()
    file.write_bytes(change(file.read_bytes()))
    assert read_shared_rows(tmp_path, "main", 7) is None


def test_many_rows_are_not_left(tmp_path):
    large = pa.table({"id": ["x" * MAX_BYTES]})
    write_shared_rows(tmp_path, "main", 7, SharedRows({"x.lance": large}, {}))
    assert list(tmp_path.iterdir()) == []
