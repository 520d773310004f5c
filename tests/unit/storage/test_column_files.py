"""A column of staged rows written as a file of its own: only what it holds changes."""

import pyarrow as pa
import pytest

from omnigraph.storage import staged_writes
from omnigraph.storage.columns import with_column, write_column
from omnigraph.storage.datasets import Datasets
from omnigraph.storage.location import locate

SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        ("far", pa.list_(pa.float32(), 2)),
        ("n", pa.int64()),
    ]
)
ROWS = pa.table(
    {"id": ["a", "b", "c"], "far": [[1.0, 1.0], None, None], "n": [1, 2, 3]}, schema=SCHEMA
)


@pytest.fixture
def datasets(graph_root) -> Datasets:
    return Datasets(locate(graph_root.uri, graph_root.options))


def far(*values):
    return pa.array(values, pa.list_(pa.float32(), 2))


def rows(handle):
    return {row["id"]: (row["far"], row["n"]) for row in handle.to_table().to_pylist()}


def test_rows_have_the_new_column_and_everything_else_as_it_was(datasets):
    datasets.create("t", SCHEMA.empty_table())
    base = datasets.open("t")
    [fragment] = staged_writes.write_new_fragments(ROWS, base)
    first = write_column(datasets, "t", base, "far", [far([1, 1], [2, 2]), far(None)])
    assert first["file_size_bytes"] == datasets.objects.size(f"t/data/{first['path']}") > 0
    fragment = with_column(fragment, first)
    staged = staged_writes.stage_fragments(base, [fragment], alone=False)
    assert rows(staged) == {"a": ([1, 1], 1), "b": ([2, 2], 2), "c": (None, 3)}

    # Rows may be taken out before and after, and the column may be written again.
    less = staged_writes.replace_rows(staged, [1], [])
    second = write_column(datasets, "t", less, "far", [far([1, 1], None, [3, 3])])
    [known] = less.get_fragments()
    again = with_column(known.metadata, second)
    assert [file.path for file in again.files][1:] == [second["path"]], "the other one is forgotten"
    staged = staged_writes.replace_fragments(less, [], [again])
    assert rows(staged) == {"a": ([1, 1], 1), "c": ([3, 3], 3)}
    assert staged.to_table(filter="far IS NULL").num_rows == 0
    assert rows(staged_writes.replace_rows(staged, [0], [])) == {"c": ([3, 3], 3)}
    staged.validate()
    assert rows(staged_writes.rewrite_columns(staged, ["id", "far", "n"])) == rows(staged)
    assert rows(base) == {}
