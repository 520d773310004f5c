"""Writing data frames into a graph: checked like any load, one commit or nothing, nothing left."""

import os
import time
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException

import omnigraph.graph as og
from omnigraph import pipeline
from omnigraph.commit.model import Counts
from omnigraph.errors import InvalidInput, NotFound, OmniError
from omnigraph.pipeline.connector.columns import arrow_schema
from omnigraph.pipeline.connector.scratch import ScratchFiles
from omnigraph.pipeline.connector.writer import GraphDataWriter, WriteTarget
from omnigraph.pipeline.errors import SparkFailed
from omnigraph.pipeline.load import local_commit
from omnigraph.pipeline.load.fragment_scan import DatasetFragments
from omnigraph.policy import PolicyDenied
from omnigraph.write import ValidationFailed
from omnigraph.write.load import parse_load_mode
from tests.support.frames import exported, rows_by_id
from tests.support.typed_graph import PARTS, columns_of, fill

SHIPS = """
node Ship { name: String @key  tons: I64?  @range(tons, 0..100) }
edge Tows: Ship -> Ship { since: Date? }
"""
WIDE = "node Item { name: String @key  text: String?  code: String? @unique }"
ROWS = "name string, text string, code string"
NEW = {"name": "new", "text": "z", "code": "new"}


@pytest.fixture
def ships(tmp_path):
    graph = og.init(tmp_path / "ships", SHIPS)
    graph.load({"Ship": [{"name": "Ada", "tons": 1}, {"name": "Bee", "tons": 2}]})
    return graph


def saved(frame, graph, type_name="Ship", save_mode="append", **options):
    writer = frame.write.format("omnigraph").mode(save_mode).option("type", type_name)
    writer.options(**options).save(graph.uri)


def tons(graph, at=None):
    return {id_: ship["tons"] for id_, ship in exported(graph, "Ship", at).items()}


def left_behind(graph):
    return [str(path) for path in Path(graph.uri).glob("_scratch/**/*") if path.is_file()]


def test_frame_that_was_read_can_be_written_back(spark, tmp_path):
    source = og.init(tmp_path / "source", PARTS)
    fill(source)
    one, other = (og.init(tmp_path / name, PARTS) for name in ("one", "other"))
    for name in ("Part", "Fits"):
        frame = pipeline.read(spark, source, name, columns=columns_of(source, name))
        result = pipeline.write(frame, one, name)
        saved(frame, other, name)
        assert exported(one, name) == exported(source, name) == exported(other, name)
        assert result.total == len(exported(source, name))
        assert result.commit == one.commits.list(limit=1)[0]
    assert one.verify().ok


@pytest.mark.parametrize("way", ["driver", "source"])
def test_modes_are_those_of_load(spark, ships, way):
    def write(rows, mode, **how):
        frame = spark.createDataFrame(rows, "name string, tons long")
        if way == "driver":
            pipeline.write(frame, ships.as_actor("ann"), "Ship", mode=mode, message="m", **how)
            return
        options = {name.rstrip("_"): value for name, value in how.items()}
        save_mode = "overwrite" if mode == "overwrite" else "append"
        saved(frame, ships, save_mode=save_mode, mode=mode, actor="ann", message="m", **options)

    before = len(ships.commits.list())
    write([("Cat", 3)], "append")
    assert tons(ships) == {"Ada": 1, "Bee": 2, "Cat": 3}
    write([("Ada", 9), ("Dot", None)], "merge")
    assert tons(ships) == {"Ada": 9, "Bee": 2, "Cat": 3, "Dot": None}
    write([("Eve", 4)], "overwrite", branch="side", from_="main")
    assert tons(ships, "side") == {"Eve": 4}
    assert tons(ships) == {"Ada": 9, "Bee": 2, "Cat": 3, "Dot": None}
    made = ships.commits.list()
    assert len(made) == before + 2
    assert {(c.actor, c.message, c.operation) for c in made[:2]} == {("ann", "m", "load")}
    assert left_behind(ships) == []


def test_partial_merge_keeps_other_properties(spark, ships):
    frame = spark.createDataFrame([("Ada",)], "name string")
    pipeline.write(frame, ships, "Ship", mode="merge", partial=True)
    assert tons(ships) == {"Ada": 1, "Bee": 2}


def test_rows_that_violate_rules_are_all_reported_and_none_is_loaded(spark, ships):
    rows = [("Ada", 5), ("Far", 500), ("Gin", -1), ("Hal", 1)]
    frame = spark.createDataFrame(rows, "name string, tons long")
    before = ships.commits.list()
    with pytest.raises(ValidationFailed) as caught:
        pipeline.write(frame, ships, "Ship")
    rules = sorted((str(v.rule), v.id) for v in caught.value.violations)
    with pytest.raises(ValidationFailed) as plain:
        ships.load({"Ship": frame.toArrow()}, mode="append")
    assert rules == sorted((str(v.rule), v.id) for v in plain.value.violations)
    assert len(rules) == 3
    with pytest.raises(PySparkException, match=r"ValidationFailed: .*500.*-1.*Ada"):
        saved(frame, ships)
    assert ships.commits.list() == before
    assert left_behind(ships) == []


def test_edges_to_missing_nodes_are_refused(spark, ships):
    frame = spark.createDataFrame([("Ada", "Nobody")], "from string, to string")
    with pytest.raises(ValidationFailed, match="Nobody"):
        pipeline.write(frame, ships, "Tows")
    pipeline.write(spark.createDataFrame([("Ada", "Bee")], "from string, to string"), ships, "Tows")
    [edge] = exported(ships, "Tows").values()
    assert (edge["from"], edge["to"]) == ("Ada", "Bee")


@pytest.mark.parametrize("way", ["driver", "source"])
def test_failing_task_leaves_nothing(spark, ships, way):
    def fail(batches):
        for batch in batches:
            if "n7" in batch["name"].to_pylist():
                raise ValueError("cannot go on")
            yield batch

    rows = spark.createDataFrame([(f"n{n}", n) for n in range(8)], "name string, tons long")
    frame = rows.repartition(4).mapInArrow(fail, "name string, tons long")
    before = ships.commits.list()
    with pytest.raises((SparkFailed, PySparkException), match="cannot go on"):
        pipeline.write(frame, ships, "Ship") if way == "driver" else saved(frame, ships)
    assert ships.commits.list() == before
    # Tasks that were still running when the job was given up may put their rows down later.
    ships.cleanup(keep=100, confirm=True)
    assert tons(ships) == {"Ada": 1, "Bee": 2}


def test_invalid_write_is_refused_before_anything_runs(spark, ships):
    def never(batches):
        raise AssertionError("nothing should have run")

    frame = spark.range(1).mapInArrow(never, "name string")
    with pytest.raises(InvalidInput, match="unknown load mode 'upsert'"):
        pipeline.write(frame, ships, "Ship", mode="upsert")
    with pytest.raises(InvalidInput, match="a partial load merges"):
        pipeline.write(frame, ships, "Ship", partial=True)
    with pytest.raises(NotFound, match="unknown type 'Shop'"):
        pipeline.write(frame, ships, "Shop")
    with pytest.raises(NotFound, match="nowhere"):
        pipeline.write(frame, ships, "Ship", branch="nowhere")
    for message, options in {
        "needs the option 'type'": {"type": ""},
        "disagree": {"mode": "overwrite"},
        "unknown load mode 'upsert'": {"mode": "upsert"},
        "a partial load merges": {"partial": "true"},
    }.items():
        writer = frame.write.format("omnigraph").mode("append").option("type", "Ship")
        with pytest.raises(PySparkException, match=message):
            writer.options(**options).save(ships.uri)


def test_empty_frame_is_an_empty_load(spark, ships):
    frame = spark.createDataFrame([], "name string, tons long")
    pipeline.write(frame, ships, "Ship")
    assert tons(ships) == {"Ada": 1, "Bee": 2}
    pipeline.write(frame, ships, "Ship", mode="overwrite")
    assert tons(ships) == {}


def test_only_named_objects_are_loaded_and_a_missing_one_is_reported(ships):
    scratch = ScratchFiles.new(ships._manifest.location)
    rows = [pa.record_batch({"name": [name], "tons": [1]}) for name in ("Cat", "Dot", "Eve")]
    paths = [scratch.put([batch]) for batch in rows]
    assert scratch.put([]) is None
    ships.load({"Ship": scratch.rows(paths[:2], rows[0].schema)}, mode="append")
    assert sorted(tons(ships)) == ["Ada", "Bee", "Cat", "Dot"]
    (Path(ships.uri) / paths[1]).unlink()
    with pytest.raises(OmniError, match="run the job again") as caught:
        ships.load({"Ship": scratch.rows(paths, rows[0].schema)}, mode="merge")
    assert caught.value.code == "scratch_removed"
    scratch.remove()
    assert left_behind(ships) == []


def test_cleanup_removes_files_of_dead_jobs_and_nothing_live(ships):
    dead, live = (ScratchFiles.new(ships._manifest.location) for _ in range(2))
    batch = pa.record_batch({"name": ["Cat"]})
    old = [dead.put([batch]), live.put([batch])]
    young = live.put([batch])
    week = time.time() - timedelta(days=8).total_seconds()
    for path in old:
        os.utime(Path(ships.uri) / path, (week, week))
    ships.cleanup(keep=1, confirm=True)
    assert sorted(left_behind(ships)) == sorted(f"{ships.uri}/{p}" for p in (old[1], young))


def test_graph_in_a_bucket_is_written_like_one_in_a_folder(spark, s3):
    uri = s3.fresh()
    graph = og.init(uri, SHIPS, storage_options=s3.options)
    frame = spark.createDataFrame([("Ada", 1), ("Bee", 2)], "name string, tons long")
    options = {f"storage.{name}": value for name, value in s3.options.items()}
    saved(frame, graph, **options)
    pipeline.write(frame.selectExpr("name", "tons + 1 as tons"), graph, "Ship", mode="merge")
    assert tons(graph) == {"Ada": 2, "Bee": 3}
    assert list(graph._manifest.objects.list("_scratch")) == []
    assert set(rows_by_id(pipeline.read(spark, graph, "Ship"))) == {"Ada", "Bee"}


POLICY = """
version: 1
groups: { crew: [act-ada], guests: [act-bo] }
rules:
  - id: crew
    allow: { actors: { group: crew }, actions: [read, change] }
  - id: guests
    allow: { actors: { group: guests }, actions: [read], types: [Ship], mask: { Ship: [tons] } }
"""


def test_a_policy_decides_about_frames_that_name_it(spark, ships, tmp_path):
    file = tmp_path / "policy.yaml"
    file.write_text(POLICY)
    frame = spark.createDataFrame([("Cat", 3)], "name string, tons long")
    head = ships.snapshot().commit_id
    for who in ({}, {"actor": "act-bo"}):
        with pytest.raises(PySparkException, match="policy denied"):
            saved(frame, ships, policy=POLICY, **who)
    with pytest.raises(PySparkException, match="policy denied action 'branch_create'"):
        saved(frame, ships, policy=POLICY, actor="act-ada", branch="side", **{"from": "main"})
    assert (ships.snapshot().commit_id, ships.branches.list()) == (head, ["main"])
    assert not list(Path(ships.uri, "_scratch").rglob("*.arrow"))
    saved(frame, ships, policy=str(file), actor="act-ada")
    assert (tons(ships)["Cat"], ships.commits.list()[0].actor) == (3, "act-ada")
    reader = spark.read.format("omnigraph").option("policy", POLICY).option("type", "Ship")
    with pytest.raises(PySparkException, match="policy denied"):
        reader.load(ships.uri)
    assert "tons" in reader.option("actor", "act-ada").load(ships.uri).columns
    assert reader.option("actor", "act-bo").load(ships.uri).columns == ["id", "name"]


def test_a_policy_decides_which_types_a_frame_may_be_written_to(spark, ships, tmp_path):
    ships.load({"Tows": [{"from": "Ada", "to": "Bee"}]})
    file = tmp_path / "policy.yaml"
    file.write_text(
        POLICY.replace("actions: [read, change] }", "actions: [read, change], types: [Ship] }")
    )
    ada = og.open(ships.uri, policy=file).as_actor("act-ada")
    frame = spark.createDataFrame([("Cat", 3), ("Ada", 7)], "name string, tons long")
    ends = spark.createDataFrame([("Bee", "Ada")], "from string, to string")
    head = ships.snapshot().commit_id
    with pytest.raises(NotFound, match="unknown type 'Tows'"):
        pipeline.write(ends, ada, "Tows")
    with pytest.raises(PolicyDenied, match="policy does not let actor 'act-ada' change"):
        pipeline.write(frame, ada, "Ship", mode="overwrite")
    assert ships.snapshot().commit_id == head
    made = pipeline.write(frame, ada, "Ship", mode="merge")
    assert (made.actor, made.nodes) == ("act-ada", {"Ship": 2})
    assert tons(ships) == {"Ada": 7, "Bee": 2, "Cat": 3}
    assert len(exported(ships, "Tows")) == 1


def test_data_source_never_reads_wide_rows_and_names_the_other_way_for_many_keys(
    spark, tmp_path, monkeypatch
):
    graph = og.init(tmp_path / "items", WIDE)
    schema = arrow_schema(spark.createDataFrame([], ROWS).schema)
    names = [f"i{number}" for number in range(8)]

    def job(mode, text):
        scratch = ScratchFiles.new(graph._manifest.location)
        target = WriteTarget(type_name="Item", mode=parse_load_mode(mode))
        writer = GraphDataWriter(scratch, target, spark.createDataFrame([], ROWS).schema)
        rows = pa.record_batch([names, [text] * 8, names[::-1]], schema=schema)
        return writer, [writer.write(iter([rows.slice(at, 4)])) for at in (0, 4)]

    read = []
    real = DatasetFragments.read
    monkeypatch.setattr(
        DatasetFragments, "read", lambda *given: read.append(tuple(given[1])) or real(*given)
    )
    writer, messages = job("append", "x")
    writer.commit(messages)
    assert set(read) == {("id", "name", "code")}
    writer, messages = job("merge", "y")
    other = og.open(graph.uri)
    monkeypatch.setattr(
        local_commit.LocalCommit, "prepared", _beside(lambda: other.load({"Item": [NEW]}))
    )
    writer.commit(messages)
    commit = graph.commits.list()[0]
    assert dict(commit.counts) == {"node:Item": Counts(updated=8)}
    texts = {name: item["text"] for name, item in exported(graph, "Item").items()}
    assert texts == {**dict.fromkeys(names, "y"), "new": "z"}
    monkeypatch.setattr(local_commit, "MAX_KEY_BYTES", 64)
    writer, messages = job("merge", "z")
    files = set(Path(graph.uri).rglob("*.lance"))
    with pytest.raises(InvalidInput, match=r"pipeline\.write\(df, graph") as refused:
        writer.commit(messages)
    assert refused.value.code == "too_many_keys"
    assert graph.commits.list()[0].id == commit.id
    assert len(files - set(Path(graph.uri).rglob("*.lance"))) == 2, "the staged fragments are gone"
    assert left_behind(graph) == []
    assert graph.verify().ok


def _beside(write):
    """Write once when the first attempt has prepared its commit."""
    real, waiting = local_commit.LocalCommit.prepared, [write]

    def prepared(*given):
        made = real(*given)
        while waiting:
            waiting.pop()()
        return made

    return prepared
