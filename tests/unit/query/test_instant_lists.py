"""Instants of lists keep their time of day wherever rows leave a graph."""

import io
from datetime import UTC, datetime

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import omnigraph.graph as og
from omnigraph.query.result import to_stored_types
from omnigraph.types.arrow import to_json

SCHEMA = "node Log { name: String @key  at: DateTime?  times: [DateTime]? }"
ONE, TWO = datetime(2024, 5, 1, 12, 30, 15, 123_000, UTC), datetime(1960, 1, 1, 23, 59, tzinfo=UTC)
TIMES = {"a": [ONE, TWO], "b": None, "c": [], "d": [TWO]}
QUERY = "match { $l: Log } return { $l.name as name, $l.times as times } order { name }"
COLLECT = "match { $l: Log } return { collect($l.at) as times }"


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    made = og.init(tmp_path_factory.mktemp("instants") / "graph", SCHEMA)
    made.insert("Log", [{"name": name, "at": ONE, "times": t} for name, t in TIMES.items()])
    return made


def test_arrow_tables_have_timestamps(graph):
    times = graph.query(QUERY).to_arrow()["times"]
    assert times.type.value_type == pa.timestamp("ms", "UTC")
    assert times.to_pylist() == list(TIMES.values())
    assert graph.query(COLLECT).to_arrow()["times"].to_pylist() == [[ONE] * len(TIMES)]


def test_slices_and_batches_have_them(graph):
    result, reader = graph.query(QUERY), graph.stream(QUERY).to_reader()
    assert reader.read_all()["times"].to_pylist() == list(TIMES.values())
    rows = to_stored_types(result.to_arrow().slice(2), result.types)
    assert to_json(rows["times"], result.types["times"]) == [row["times"] for row in result][2:]


def test_data_frames_have_them(graph):
    result = graph.query(QUERY)
    assert result.to_polars()["times"].to_list() == list(TIMES.values())
    [first, *_] = result.to_pandas()["times"]
    assert [pd.Timestamp(moment).tz_localize("UTC") for moment in first] == TIMES["a"]


def test_parquet_files_have_them(graph, tmp_path):
    file = io.BytesIO()
    graph.query(QUERY).write(file, "parquet")
    assert pq.read_table(file)["times"].to_pylist() == list(TIMES.values())
    graph.export_parquet(tmp_path / "out")
    [path] = (tmp_path / "out").rglob("*.parquet")
    exported = pq.read_table(path).sort_by("id")
    assert exported["times"].to_pylist() == list(TIMES.values())
    copy = og.init(tmp_path / "copy", SCHEMA)
    copy.load({"Log": path})
    assert copy.query(QUERY).rows == graph.query(QUERY).rows
