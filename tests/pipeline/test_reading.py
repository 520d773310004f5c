"""Reading a graph as data frames: the values of export, pinned, whatever storage looks like."""

from datetime import date
from functools import reduce
from random import Random

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql.datasource import EqualTo, GreaterThan, In, IsNotNull, Not, StringStartsWith

import omnigraph.graph as og
from omnigraph import pipeline
from omnigraph.errors import InvalidInput, NotFound, VersionReclaimed
from omnigraph.pipeline.connector.columns import arrow_schema
from omnigraph.pipeline.connector.filters import apply_conditions, stored_filter
from omnigraph.pipeline.connector.table_scan import manifest_at, pin_table
from omnigraph.storage.scan import group_fragments
from tests.support.frames import exported, rows_by_id
from tests.support.generated_graphs import some_sample
from tests.support.typed_graph import PARTS, columns_of, fill


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    """A graph whose types have indexes that lag, deleted rows, and several fragments."""
    graph = og.init(tmp_path_factory.mktemp("parts") / "graph", PARTS)
    fill(graph)
    return graph


def test_frames_equal_the_export_of_every_type(spark, parts):
    for name in ("Part", "Fits"):
        frame = pipeline.read(spark, parts, name, columns=columns_of(parts, name))
        assert rows_by_id(frame) == exported(parts, name)


def test_frames_of_generated_graphs_equal_their_export(spark, tmp_path):
    for seed in (1, 2, 3):
        sample = some_sample(Random(seed))
        graph = og.init(tmp_path / str(seed), sample.schema)
        graph.load("\n".join(sample.lines).encode())
        catalog = graph.schema.catalog
        for name, type_ in [*catalog.nodes.items(), *catalog.edges.items()]:
            ends = ["from", "to"] if name in catalog.edges else []
            frame = pipeline.read(spark, graph, name, columns=["id", *ends, *type_.properties])
            assert rows_by_id(frame) == exported(graph, name), (seed, name)


def test_properties_called_like_ends_stand_beside_them(spark, tmp_path):
    schema = """
    node P { k: String @key }
    edge Job: P -> P { from: I32?  to: String?  @unique(src, from) }
    """
    graph = og.init(tmp_path / "graph", schema)
    graph.load({"P": [{"k": "a"}, {"k": "b"}]})
    job = {"id": "j", "src": "a", "dst": "b", "from": 7, "to": "x"}
    graph.load({"Job": [job]})
    frame = pipeline.read(spark, graph, "Job")
    assert [row.asDict() for row in frame.collect()] == [job]
    query = "query q() { match { $a $j:job $b  $j.from > 6 } return { $a, $j.from, $j.to, $b } }"
    answer = [{"a": "a", "j.from": 7, "j.to": "x", "b": "b"}]
    assert graph.query(query).rows == answer
    assert [row.asDict() for row in graph.query(query, engine="spark").collect()] == answer
    pipeline.write(frame.replace("j", "k", "id").replace(7, 8, "from"), graph, "Job")
    assert graph.entity_at("Job", "k") == {**job, "id": "k", "from": 8}


CONDITIONS = [
    "id = 'p7'",
    "id in ('p1', 'p31', 'p50', 'nobody')",
    "s = 'a'",
    "s like 'a%'",
    "s like '%b'",
    "s like '%a%'",
    "s like '%\\\\%%'",
    "s > 'B'",
    "s is null",
    "s is not null and i is null",
    "s <> 'a'",
    "s <=> null",
    "i = 1",
    "i >= 1 and i < 2147483647",
    "i in (1, 2, null)",
    "not (i in (1, 2))",
    "not (i = 1)",
    "b",
    "b = false",
    "l = 9223372036854775807",
    "l > -9223372036854775808",
    "u = 4294967295",
    "u < 5000000000",
    "u > -1",
    "w = 18446744073709551615",
    "w >= 9223372036854775808",
    "w = 1.5",
    "f = 0.0",
    "f >= 0.0",
    "f = cast(0.1 as float)",
    "f > 0.1",
    "d = 0.1",
    "d < 0.0",
    "d >= -0.0",
    "d in (0.0, 1.0)",
    "d = 'NaN'",
    "day = date'1970-01-01'",
    "day < date'1970-01-01'",
    "at = timestamp'2010-02-28 23:59:59.999'",
    "at > timestamp'2010-02-28 23:59:59.9981'",
    "at < timestamp'1970-01-01 00:00:00'",
    "at <= timestamp'2010-03-01 00:59:59.998+01:00'",
    "kind in ('x', 'z-1')",
    "tags is null",
    "v is not null",
    "size(tags) > 1 and i = 2",
    "i = 1 or s = 'a'",
    "s = id",
]


PUSHDOWN = "spark.sql.python.filterPushdown.enabled"


@pytest.fixture
def pushing(spark):
    """A session that offers filters to Python data sources."""
    spark.conf.set(PUSHDOWN, "true")
    yield spark
    spark.conf.unset(PUSHDOWN)


def pushed(spark, graph):
    reader = spark.read.format("omnigraph").option("type", "Part").option("pushdown", "true")
    return reader.load(graph.uri)


def matching(frames):
    """Return the ids for which each condition holds, found by one job."""
    found = [
        frame.where(condition).select(f.lit(number).alias("n"), "id")
        for number, (condition, frame) in enumerate(zip(CONDITIONS, frames, strict=True))
    ]
    answers = [set() for _ in CONDITIONS]
    for row in reduce(DataFrame.union, found).collect():
        answers[row.n].add(row.id)
    return dict(zip(CONDITIONS, answers, strict=True))


def test_pushed_filters_answer_like_spark_itself(pushing, parts):
    frame = pipeline.read(pushing, parts, "Part")
    plain = pushing.createDataFrame(frame.toArrow(), frame.schema)
    expected = matching([plain] * len(CONDITIONS))
    assert matching([pushed(pushing, parts) for _ in CONDITIONS]) == expected
    assert sum(bool(ids) for ids in expected.values()) > 35, expected


def test_frame_used_with_several_filters_in_one_query_answers_each(pushing, parts):
    frame = pipeline.read(pushing, parts, "Part")
    one, two = frame.where("i = 1"), frame.where("i = 2")
    ids = {id_: row["i"] for id_, row in exported(parts, "Part").items() if row["i"] in (1, 2)}
    assert {row.id: row.i for row in one.union(two).select("id", "i").collect()} == ids


def test_filters_that_storage_answers_are_not_applied_again(parts):
    snapshot = parts.snapshot()
    found = pin_table(parts._manifest, snapshot, "Part")
    negated = Not(EqualTo(("s",), "a"))
    deep = EqualTo(("s", "x"), "a")
    zero = GreaterThan(("d",), 0.0)
    taken = [IsNotNull(("i",)), In(("i",), (1, 2)), StringStartsWith(("s",), "it's")]
    text, left = stored_filter([*taken, negated, deep, zero], found.columns)
    assert text == "`i` IS NOT NULL AND `i` IN (1, 2) AND starts_with(`s`, 'it''s')"
    assert left == [negated, deep, zero]


def test_pushed_filter_reads_only_the_rows_it_wants(pushing, parts):
    frame = pushed(pushing, parts).where("i = 2")
    wanted = {id_ for id_, row in exported(parts, "Part").items() if row["i"] == 2}
    assert {row.id for row in frame.select("id").collect()} == wanted
    plan = frame._jdf.queryExecution().executedPlan().toString()
    assert "Filter" not in plan.replace("RuntimeFilters", "")  # so the scan gave no other row


WHERE = {
    ("i", "=", 2): lambda row: row["i"] == 2,
    ("i", "in", (1, 2)): lambda row: row["i"] in (1, 2),
    ("s", "starts_with", "a"): lambda row: row["s"] is not None and row["s"].startswith("a"),
    ("w", ">=", 2**63): lambda row: row["w"] is not None and row["w"] >= 2**63,
    ("day", "<", date(1970, 1, 1)): lambda row: (row["day"] or "9") < "1970",
    ("at", ">", "1970-01-01T00:00:00Z"): lambda row: (
        (row["at"] or "0") > "1970-01-01T00:00:00.000Z"
    ),
    ("f", "=", 0.1): lambda row: row["f"] == 0.1 or row["f"] == 0.10000000149011612,
    ("kind", "is null"): lambda row: row["kind"] is None,
}


@pytest.mark.parametrize("condition", WHERE, ids=str)
def test_condition_leaves_out_exactly_the_rows_for_which_it_does_not_hold(parts, condition):
    found = apply_conditions(
        pin_table(parts._manifest, parts.snapshot(), "Part"), [condition]
    ).named(["id"])
    [part] = found.parts()
    rows = pa.Table.from_batches(found.rows(part, found.schema), arrow_schema(found.schema))
    expected = [id_ for id_, row in exported(parts, "Part").items() if WHERE[condition](row)]
    assert sorted(rows["id"].to_pylist()) == sorted(expected)
    assert expected


def test_conditions_reach_storage_through_a_frame(spark, parts):
    where = [("i", "in", {1, 2}), ("day", ">=", date(1970, 1, 1)), ("s", "is not null")]
    frame = pipeline.read(spark, parts, "Part", columns=["id"], where=where)
    expected = {
        id_
        for id_, row in exported(parts, "Part").items()
        if row["i"] in (1, 2) and (row["day"] or "0") >= "1970" and row["s"] is not None
    }
    assert {row.id for row in frame.collect()} == expected
    assert expected


def test_invalid_conditions_are_all_reported(spark, parts):
    where = [
        ("x", "=", 1),
        ("i", "is", 1),
        ("i", "="),
        ("i", "=", "one"),
        ("d", ">", 0.0),
        ("tags", "is null"),
        ("s", "in", "abc"),
    ]
    with pytest.raises(InvalidInput) as caught:
        pipeline.read(spark, parts, "Part", where=where)
    assert caught.value.code == "filter_invalid"
    reported_apart = [problem.partition(": ")[2] for problem in caught.value.details["problems"]]
    exact = "storage cannot evaluate it exactly; filter the data frame instead"
    assert reported_apart[0] == "there is no column x"
    assert reported_apart[1].startswith("unknown operator 'is', use one of =, >, ")
    assert reported_apart[2:] == [
        "'=' takes one value",
        "expected integer number, got string 'one'",
        exact,
        exact,
        "'in' takes a list",
    ]


def test_frame_stays_as_it_was_while_others_commit(spark, tmp_path):
    graph = og.init(tmp_path / "graph", "node Ship { name: String @key  tons: I64? }")
    graph.load({"Ship": [{"name": "Ada", "tons": 1}]})
    reader = spark.read.format("omnigraph").option("type", "Ship")
    frames = [pipeline.read(spark, graph, "Ship"), reader.load(graph.uri)]
    loose = reader.schema("id string, tons long").load(graph.uri)
    graph.load({"Ship": [{"name": "Ada", "tons": 2}, {"name": "Bee", "tons": 3}]})
    graph.optimize()
    assert [rows_by_id(frame)["Ada"]["tons"] for frame in frames] == [1, 1]
    assert {len(rows_by_id(frame)) for frame in frames} == {1}
    assert rows_by_id(loose) == {"Ada": {"id": "Ada", "tons": 2}, "Bee": {"id": "Bee", "tons": 3}}


def test_states_are_named_by_branch_tag_commit_and_time(spark, tmp_path):
    graph = og.init(tmp_path / "graph", "node Ship { name: String @key  tons: I64? }")
    first = graph.load({"Ship": [{"name": "Ada", "tons": 1}]}).commit
    graph.tags.create("old")
    graph.branches.create("side")
    graph.load({"Ship": [{"name": "Ada", "tons": 2}]})
    graph.load({"Ship": [{"name": "Ada", "tons": 3}]}, branch="side")
    graph.schema.apply('node Ship { name: String @key  weight: I64? @rename_from("tons") }')

    def tons(column="tons", **options):
        reader = spark.read.format("omnigraph").options(type="Ship", **options)
        return [row[column] for row in reader.load(graph.uri).collect()]

    assert tons("weight") == [2]
    assert tons(branch="side") == tons(at="side") == [3]
    assert tons(tag="old") == tons(at="old") == tons(commit=first.id) == tons(at=first.id) == [1]
    when = first.created_at.isoformat()
    assert tons(timestamp=when) == tons(branch="side", timestamp=when) == [1]
    assert rows_by_id(pipeline.read(spark, graph.branch("side"), "Ship"))["Ada"]["tons"] == 3


def test_invalid_options_are_reported_before_anything_runs(spark, parts):
    with pytest.raises(NotFound, match="did you mean `Part`") as caught:
        pipeline.read(spark, parts, "Parts")
    assert caught.value.code == "unknown_type"
    with pytest.raises(NotFound, match="node:Part has no column nothing, more"):
        pipeline.read(spark, parts, "Part", columns=["nothing", "s", "more"])
    with pytest.raises(InvalidInput, match="once"):
        pipeline.read(spark, parts, "Part", columns=["s", "s"])
    with pytest.raises(NotFound, match="does not match any branch, tag, commit ID or timestamp"):
        pipeline.read(spark, parts, "Part", at="nowhere")
    for message, options in {
        "needs the option 'type'": {},
        "give only one of the options tag, timestamp": {
            "type": "Part",
            "tag": "a",
            "timestamp": "b",
        },
        "such as 2024-05-01T12:30:00Z, got 'b'": {"type": "Part", "timestamp": "b"},
        "tag 'a' does not exist": {"type": "Part", "tag": "a"},
        "the option 'where' must be JSON": {"type": "Part", "where": "i = 1"},
    }.items():
        with pytest.raises(PySparkException, match=message):
            spark.read.format("omnigraph").options(**options).load(parts.uri)
    with pytest.raises(PySparkException, match="i is int, not string"):
        spark.read.format("omnigraph").option("type", "Part").schema("i string").load(
            parts.uri
        ).collect()


def test_fragments_are_read_apart_if_large_and_together_if_small(parts, monkeypatch):
    found = pin_table(parts._manifest, parts.snapshot(), "Part").named(["id"])
    fragments = [fragment for part in found.parts() for fragment in part]
    assert len(found.parts()) == 1
    assert len(fragments) > 1
    rows = [found.rows([fragment], found.schema) for fragment in fragments]
    apart = [pa.Table.from_batches(list(batches))["id"].to_pylist() for batches in rows]
    assert sorted(id_ for ids in apart for id_ in ids) == sorted(exported(parts, "Part"))
    assert group_fragments({0: 5, 1: 5, 2: 5}, 5) == [[0], [1], [2]]
    assert group_fragments({}, 5) == []


def test_empty_type_is_an_empty_frame(spark, tmp_path):
    graph = og.init(tmp_path / "graph", "node Ship { name: String @key }")
    frame = pipeline.read(spark, graph.uri, "Ship")
    assert frame.collect() == []
    assert frame.columns == ["id", "name"]


def test_reading_a_reclaimed_version_raises(tmp_path):
    graph = og.init(tmp_path / "graph", "node Ship { name: String @key }")
    graph.load({"Ship": [{"name": "Ada"}]})
    found = pin_table(graph._manifest, graph.snapshot(), "Ship")
    for file in (tmp_path / "graph" / "nodes").rglob("*.manifest"):
        file.unlink()
    manifest_at(graph._manifest.location)  # another process has nothing cached
    with pytest.raises(VersionReclaimed, match="has been cleaned up"):
        list(found.rows([0], found.schema))


def test_graph_in_a_bucket_is_read_like_one_in_a_folder(spark, s3):
    uri = s3.fresh()
    graph = og.init(uri, "node Ship { name: String @key }", storage_options=s3.options)
    graph.load({"Ship": [{"name": "Ada"}, {"name": "Bee"}]})
    assert set(rows_by_id(pipeline.read(spark, graph, "Ship"))) == {"Ada", "Bee"}
    options = {f"storage.{name}": value for name, value in s3.options.items()}
    reader = spark.read.format("omnigraph").options(type="Ship", **options)
    assert set(rows_by_id(reader.load(uri).where("name = 'Bee'"))) == {"Bee"}
