"""What can be said about the sources of a pipeline without Spark."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from omnigraph.pipeline.config.source_check import check_pipeline
from omnigraph.pipeline.config.spec import PipelineError, read_pipeline
from tests.support.catalogs import sound

SCHEMA = """
node Person { name: String @key  age: I32?  home: String }
edge Knows: Person -> Person { since: Date? }
"""
KNOWS = "edges: {Knows: {source: s, from: a, to: b}}"
PERSON = "nodes: {Person: {source: s, properties: {name: who, home: upper(town)}}}"


@pytest.fixture
def check(tmp_path):
    (tmp_path / "full.csv").write_text("\ufeffWho,age,town\nada,36,York\n", encoding="utf-8")
    (tmp_path / "semi.csv").write_text("who;town\n")
    (tmp_path / "twice.csv").write_text("who,WHO\n")
    (tmp_path / "named.csv").write_text("name,home\n")
    (tmp_path / "folder").mkdir()
    for number, column in enumerate(("a", "b")):
        table = pa.table({column: ["x"], "since": ["y"]})
        pq.write_table(table, tmp_path / "folder" / f"{number}.parquet")
    (tmp_path / "batch.ndjson").write_text('\n{"type": "Person", "data": {}}\n')
    (tmp_path / "other.ndjson").write_text('{"type": "Persn", "data": {}}\n')
    (tmp_path / "rows.ndjson").write_text('{"name": "ada"}\n')

    def run(source, mapping=PERSON, more=""):
        file = tmp_path / "p.yaml"
        file.write_text(f"version: 1\nsources:\n  s: {source}\n{mapping}\n{more}")
        try:
            return check_pipeline(read_pipeline(file), sound(SCHEMA)).unchecked
        except PipelineError as error:
            found = [
                (d.code.value, d.source.position(d.span.start), d.message)
                for d in error.diagnostics
            ]
            return [(code, at.line, at.column, text) for code, at, text in found]

    return run


def test_columns_that_exist_are_accepted_whatever_their_case(check):
    assert check("{csv: full.csv}") == {}
    assert check("{csv: '*ull.csv'}") == {}
    assert check("{csv: semi.csv, options: {sep: ;}}") == {}
    assert check("{parquet: folder}", KNOWS) == {}
    assert check("{csv: full.csv, options: {header: 'false'}}", PERSON.replace("who", "_c0")) == {}
    assert check("{ndjson: batch.ndjson}", "") == {}
    text = PERSON.replace("who", "current_date")
    assert check("{csv: full.csv}", text) == {}


@pytest.mark.parametrize(
    ("source", "place"),
    [
        ("{csv: gone.csv}", 12),
        ("{parquet: [folder, 'x*.parquet']}", 25),
        ("{ndjson: g.ndjson}", 15),
    ],
)
def test_file_that_does_not_exist_is_an_error_at_its_path(check, tmp_path, source, place):
    mapping = "" if "ndjson" in source else KNOWS.replace("a,", "since,").replace(" b", " since")
    [(code, line, column, message)] = check(source, mapping)
    assert (code, line, column) == ("Y401", 3, place)
    assert message.startswith(f"source `s`: file {tmp_path}/")


def test_column_that_does_not_exist_is_an_error_at_its_expression(check):
    mapping = PERSON.replace("who", "hwo")
    assert check("{csv: full.csv}", mapping) == [("Y402", 4, 48, "source `s` has no column `hwo`")]
    mapping = KNOWS.replace("b}", "'`c d`'}")
    assert [found[3] for found in check("{parquet: folder}", mapping)] == [
        "source `s` has no column `c d`"
    ]
    dedupe = PERSON.replace("}}}", "}, where: ok, dedupe: {by: who, keep: max(rev)}}}")
    assert [found[3] for found in check("{csv: full.csv}", dedupe)] == [
        "source `s` has no column `ok`",
        "source `s` has no column `rev`",
    ]


def test_columns_that_are_taken_by_name_must_be_there(check):
    assert check("{csv: named.csv}", "nodes: {Person: {source: s}}") == {}
    [found] = check("{csv: full.csv}", "nodes: {Person: {source: s, properties: {name: who}}}")
    assert found[3] == "node `Person`: `home` is not nullable and has no value"
    missing = [f[3] for f in check("{csv: full.csv}", "nodes: {Person: {source: s}}")]
    assert missing == [
        "node `Person`: source `s` has no column `name`",
        "node `Person`: source `s` has no column `home`",
    ]
    assert [f[3] for f in check("{csv: full.csv}", "edges: {Knows: {source: s}}")] == [
        "edge `Knows` has no `from`, and its source has no such column",
        "edge `Knows` has no `to`, and its source has no such column",
    ]


def test_graph_batch_must_begin_with_an_entity_of_the_graph(check):
    [found] = check("{ndjson: other.ndjson}", "")
    assert found[0] == "Y301"
    assert "the graph has no node type `Persn`" in found[3]
    [found] = check("{ndjson: rows.ndjson}", "")
    assert "is not an entity with `type` or `edge`" in found[3]
    assert check("{ndjson: rows.ndjson}", "", "on_violation: reject\n") == {}


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("{jdbc: 'jdbc:x', table: t}", "database"),
        ("{sql: select 1 as who}", "query"),
        ("{format: delta, path: x}", "other format"),
        ("{csv: 's3://b/x.csv'}", "remote files"),
        ("{csv: '{full,semi}.csv'}", "pattern with braces"),
        ("{csv: twice.csv}", "empty or repeated names in the header"),
        ("{csv: full.csv, options: {encoding: latin1}}", "options of the CSV reader"),
        ("{csv: full.csv, columns: 'x string'}", "declared columns"),
        ("{json: rows.ndjson}", "columns of JSON"),
    ],
)
def test_what_only_spark_can_open_is_listed_as_not_checked(check, source, why):
    assert check(source) == {"s": why}


def test_spark_server_reads_its_own_files(check):
    assert check("{csv: gone.csv}", more="spark: {master: 'sc://h:1'}\n") == {"s": "Spark server"}
