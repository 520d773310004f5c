"""A load on Spark takes what a load in one process takes, and says the same of what is broken."""

import gzip
import json
import os
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import omnigraph.graph as og
from omnigraph.errors import OmniError
from omnigraph.pipeline.sources import splits
from tests.support.changes import read_state, said
from tests.support.spark_loads import SCHEMA

NAMES = [f"p{number}" for number in range(300)]
TABLE = pa.table({"name": NAMES, "age": [number % 90 for number in range(300)]})


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    monkeypatch.setattr(splits, "SPLIT_BYTES", 2000)


def both(tmp_path, data, **options):
    """Load on both engines; return what each did or said, and the state it left."""
    found = {}
    for engine in ("local", "spark"):
        graph = og.init(tmp_path / engine, SCHEMA)
        try:
            done = graph.load(data, engine=engine, **options).to_json()
            outcome = [done[name] for name in ("nodes", "edges", "mode", "branch_created")]
        except OmniError as error:
            outcome = said(error)
        state = read_state(graph)
        state["Knows"] = sorted((e["src"], e["dst"]) for e in state["Knows"].values())
        found[engine] = outcome, state, graph.verify().ok
    assert found["spark"] == found["local"]
    return found["spark"]


def test_tables_are_cut_by_row_groups_and_rows_keep_their_numbers(spark, tmp_path):
    bad = TABLE.set_column(1, "age", pa.array([999 if n == 250 else 1 for n in range(300)]))
    pq.write_table(bad, tmp_path / "people.parquet", row_group_size=50, compression="none")
    outcome, _, _ = both(tmp_path, {"Person": tmp_path / "people.parquet"})
    [violation] = outcome["details"]["violations"]
    assert violation["source"]["row"] == 251


def test_lines_are_cut_anywhere_and_keep_their_numbers(spark, tmp_path):
    lines = [json.dumps({"type": "Person", "data": {"name": name}}) for name in NAMES]
    lines += [json.dumps({"edge": "Knows", "from": f"p{n}", "to": "p0"}) for n in range(1, 300)]
    lines[201] = "{broken"
    lines.insert(100, "")
    (tmp_path / "a.ndjson").write_text("\n".join(lines))
    (tmp_path / "b.ndjson.gz").write_bytes(gzip.compress(b'{"edge":"Knows","from":"p0","to":"?"}'))
    files = [tmp_path / "a.ndjson", tmp_path / "b.ndjson.gz"]
    outcome, _, _ = both(tmp_path, files, mode="append")
    places = [violation["source"] for violation in outcome["details"]["violations"]]
    assert {"file": str(files[0]), "line": 203} in places
    assert {"file": str(files[1]), "line": 1} in places


def test_good_sources_of_every_kind_are_loaded(spark, tmp_path):
    folder = tmp_path / "people"
    folder.mkdir()
    pq.write_table(TABLE.slice(0, 100), folder / "1.parquet")
    # Columns may differ from file to file.
    pq.write_table(TABLE.slice(100, 100).select(["name"]), folder / "2.parquet")
    csv = tmp_path / "knows.csv"
    csv.write_text("from,to,since\n" + "".join(f"p{n},p{n + 1},2020-01-01\n" for n in range(99)))
    _, state, _ = both(
        tmp_path,
        {"Person": folder, "Knows": csv, "Town": [{"name": "x"}]},
        mode="overwrite",
    )
    assert len(state["Person"]) == 200
    assert len(state["Knows"]) == 99


def test_drifted_and_truncated_files_are_reported_by_name(spark, tmp_path):
    folder = tmp_path / "people"
    folder.mkdir()
    pq.write_table(TABLE, folder / "1.parquet")
    pq.write_table(TABLE.rename_columns(["name", "years"]), folder / "2.parquet", row_group_size=50)
    whole = (folder / "1.parquet").read_bytes()
    (folder / "3.parquet").write_bytes(whole[: len(whole) // 2])
    outcome, _, _ = both(tmp_path, {"Person": folder})
    files = [violation["source"]["file"] for violation in outcome["details"]["violations"]]
    assert files == [str(folder / "2.parquet"), str(folder / "3.parquet")]
    outcome, _, _ = both(tmp_path / "again", {"Person": tmp_path / "nothing.parquet"})
    assert outcome["code"] == "input_unreadable"


def test_empty_sources_commit_nothing_or_replace_everything(spark, tmp_path):
    (tmp_path / "empty.ndjson").write_text("\n")
    both(tmp_path / "lines", tmp_path / "empty.ndjson")
    both(tmp_path / "rows", {"Person": TABLE.slice(0, 0)}, mode="overwrite")


SKEWED = """
import sys
import omnigraph.graph as og
from omnigraph import pipeline
uri, people, knows = sys.argv[1:]
spark = pipeline.session("local[2]", config={"spark.driver.memory": "2g"})
assert spark.conf.get("spark.driver.memory") == "2g"
graph = og.open(uri)
graph.load({"Person": people, "Knows": knows}, engine="spark")
"""


def skewed(tmp_path, count):
    """Write people, and so many edges of one of them; return a graph and both files."""
    graph = og.init(tmp_path / "graph", SCHEMA.replace(" @card(0..3)", ""))
    ends = pa.array([f"p{n}" for n in range(300)]).take(pa.array(np.arange(count) % 300))
    hub = pa.table({"from": pa.repeat("p0", count), "to": ends})
    pq.write_table(hub, tmp_path / "hub.parquet", row_group_size=max(10_000, count // 8))
    pq.write_table(TABLE, tmp_path / "people.parquet")
    return graph, tmp_path / "people.parquet", tmp_path / "hub.parquet"


def check_skewed(graph, count):
    entry = graph.snapshot().entry("edge:Knows")
    with graph._manifest.reading("edge:Knows", entry) as rows:
        edges = rows.to_table(columns=["src", "dst"])
    assert edges["src"].unique().to_pylist() == ["p0"]
    found = {each["values"]: each["counts"] for each in edges["dst"].value_counts().to_pylist()}
    assert found == {f"p{n}": len(range(n, count, 300)) for n in range(300)}


def test_one_node_may_have_very_many_edges(spark, tmp_path):
    count = 50_000
    graph, people, hub = skewed(tmp_path, count)
    graph.load({"Person": people, "Knows": hub}, engine="spark")
    check_skewed(graph, count)
    with pytest.raises(OmniError, match="exists"):
        graph.load({"Person": TABLE}, mode="append", engine="spark")


@pytest.mark.skipif(not os.environ.get("SOAK_SECONDS"), reason="only a soak has the time")
def test_one_node_may_have_two_million_edges_and_little_memory(tmp_path):
    count = 2_000_000
    graph, people, hub = skewed(tmp_path, count)
    command = [sys.executable, "-c", SKEWED, graph.uri, str(people), str(hub)]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    check_skewed(og.open(graph.uri), count)
    assert graph.verify().ok
