"""A streamed result is the same as one that is made at once."""

import io
import sys

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import omnigraph.graph as og
from omnigraph.errors import InvalidInput
from omnigraph.query import engine

SCHEMA = """
node P { k: String @key  n: I64?  at: DateTime?  tags: [String]?  v: Vector(2)? }
edge To: P -> P
"""
QUERIES = {
    "plain": "match { $p: P } return { $p.k, $p.n, $p.at, $p.tags, $p.v }",
    "ordered": "match { $p: P } return { $p.k } order { $p.n desc } limit 7 offset 1",
    "distinct": "match { $p: P } return distinct { $p.n }",
    "grouped": "match { $p: P } return { $p.n, count($p) as c } order { $p.n }",
    "traversed": "match { $p: P  $p to $q } return { $p.k as a, $q.k as b } order { $p.k, $q.k }",
    "ranked": (
        'match { $p: P } return { $p.k, rrf(nearest($p.v, [1.0, 0.0]), bm25($p.k, "p3")) as s } '
        "order { nearest($p.v, [1.0, 0.0]) } limit 5"
    ),
    "nothing": 'match { $p: P { k: "none" } } return { $p.k, $p.n, $p.at }',
}


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    made = og.init(tmp_path_factory.mktemp("streams") / "graph", SCHEMA)
    people = [
        {
            "k": f"p{n}",
            "n": None if n == 4 else n % 3,
            "at": f"2024-05-{n + 1:02d}T10:00:00Z",
            "tags": [str(n)] * (n % 3),
            "v": [n, 1],
        }
        for n in range(11)
    ]
    made.insert("P", people)
    ends = [{"from": f"p{n}", "to": f"p{(n * 3) % 11}"} for n in range(11)]
    made.insert("To", ends)
    return made


@pytest.fixture(params=[3, 65_536])
def part(request, monkeypatch):
    monkeypatch.setattr(engine, "STREAM_BATCH_ROWS", request.param)
    return request.param


@pytest.mark.parametrize("name", QUERIES)
def test_rows_are_the_same(graph, part, name):
    text = f"query q() {{ {QUERIES[name]} }}"
    whole = graph.query(text)
    stream = graph.stream(text)
    assert (len(stream), stream.columns) == (len(whole), whole.columns)
    assert stream.graph_commit_id == whole.graph_commit_id
    assert list(stream) == whole.rows
    parts = [len(found) for found in graph.stream(text).parts()]
    assert sum(parts) == len(whole)
    assert max(parts) <= part


@pytest.mark.parametrize("name", QUERIES)
def test_arrow_is_the_same(graph, part, name):
    text = f"query q() {{ {QUERIES[name]} }}"
    whole = graph.query(text).to_arrow()
    assert pa.table(graph.stream(text)).combine_chunks() == whole.combine_chunks()
    file = io.BytesIO()
    graph.stream(text).write(file, "arrow")
    assert pa.ipc.open_stream(file.getvalue()).read_all().combine_chunks() == whole.combine_chunks()
    file = io.BytesIO()
    graph.stream(text).write(file, "parquet")
    file.seek(0)
    assert pq.read_table(file).to_pylist() == whole.to_pylist()


def test_other_libraries_take_results(graph):
    text = f"query q() {{ {QUERIES['plain']} }}"
    rows = graph.query(text).to_arrow().to_pylist()
    assert pl.DataFrame(graph.stream(text)).to_dicts() == rows
    assert graph.query(text).to_polars().to_dicts() == rows
    with duckdb.connect() as database:
        database.register("result", graph.query(text))
        found = database.sql('select "p.k" from result order by 1').fetchall()
    assert found == sorted((row["p.k"],) for row in rows)
    frame = graph.query(text).to_pandas()
    assert isinstance(frame, pd.DataFrame)
    assert frame["p.k"].tolist() == [row["p.k"] for row in rows]


def test_what_duckdb_computes_is_loaded(graph):
    with duckdb.connect() as database:
        computed = database.sql("select 'x' || range as k, range as n from range(3)")
        graph.branch("computed", create=True).insert("P", computed)
    query = 'match { $p: P  $p.k >= "x" } return { $p.k as k, $p.n as n } order { k }'
    rows = graph.query(query, at="computed").rows
    assert rows == [{"k": f"x{n}", "n": n} for n in range(3)]


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_library_that_is_missing_is_named_with_the_command_that_installs_it(
    graph, monkeypatch, library
):
    result = graph.query(f"query q() {{ {QUERIES['plain']} }}")
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(InvalidInput, match=f"needs the package {library}: pip install {library}$"):
        getattr(result, f"to_{library}")()


def test_values_are_read_as_they_are_taken(graph, monkeypatch):
    monkeypatch.setattr(engine, "STREAM_BATCH_ROWS", 2)
    stream = graph.stream(f"query q() {{ {QUERIES['plain']} }}")
    taken = iter(stream)
    first = next(taken)
    graph.branches.create("elsewhere")
    graph.insert("P", [{"k": "late", "n": 1}], branch="elsewhere")
    assert [first, *taken] == graph.query(f"query q() {{ {QUERIES['plain']} }}").rows
