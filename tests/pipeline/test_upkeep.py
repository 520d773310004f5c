"""Upkeep on Spark: the work of optimize, verify and export on executors, with the same outcome."""

import csv
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import omnigraph as og
from omnigraph.errors import InvalidInput
from omnigraph.maintain import partitioned_export
from omnigraph.storage import compaction

pytestmark = pytest.mark.usefixtures("quick")
SCHEMA = """
node Note {
  slug: String @key
  text: String? @index
  size: U64? @unique
  at: DateTime?
  days: [Date]?
  far: Vector(2)? @index
  file: Blob?
}
node Empty { name: String @key }
edge About: Note -> Note { since: Date? @index  weight: F32? }
"""


def note(number):
    data = {
        "slug": f"n{number}",
        "text": None if number % 3 == 0 else f'about "ships", {number}\n',
        "size": 2**64 - 1 - number,
        "at": f"2024-05-01T12:00:00.{number:03}Z",
        "days": [] if number % 2 else ["0001-01-01", "2024-02-29"],
        "far": [number, 0.5],
        "file": "base64:aGk=" if number % 4 == 0 else None,
    }
    return {"type": "Note", "data": data}


def about(number):
    ends = {"from": f"n{number}", "to": f"n{(number + 1) % 12}"}
    return {"edge": "About", **ends, "data": {"id": f"a{number}", "weight": 0.1}}


def some_graph(folder):
    """Return a graph in many fragments, some with deletions, on a branch too."""
    graph = og.init(folder, SCHEMA)
    for start in range(0, 12, 3):
        rows = [note(n) for n in range(start, start + 3)]
        graph.load("\n".join(map(json.dumps, rows)).encode())
    graph.load("\n".join(json.dumps(about(n)) for n in range(12)).encode())
    graph.mutate('query q() { delete Note where slug = "n4" }')
    branch = graph.branch("more", create=True)
    branch.load(json.dumps(note(20)).encode())
    graph.tags.create("first")
    return graph


def fragments(graph):
    entries = graph.snapshot().entries()
    found = {}
    for key, entry in entries.items():
        with graph._manifest.reading(key, entry) as handle:
            found[key] = len(handle.get_fragments())
    return found


def coverage(graph):
    return [
        (s.type_key, s.column, str(s.kind), s.covered, s.segments) for s in graph.indexes.status()
    ]


def test_optimize_on_spark_has_the_result_of_optimize(spark, tmp_path):
    ours, theirs = some_graph(tmp_path / "one"), some_graph(tmp_path / "two")
    before = list(theirs.export())
    here, there = ours.optimize(), theirs.optimize(engine="spark")
    assert [d.to_json() for d in there.datasets] == [d.to_json() for d in here.datasets]
    assert (there.commit.operation, dict(there.commit.counts)) == ("optimize", {})
    assert (fragments(theirs), coverage(theirs)) == (fragments(ours), coverage(ours))
    assert list(theirs.export()) == before
    assert theirs.verify().to_json() == ours.verify().to_json()
    assert theirs.optimize(engine="spark").commit is None
    found = theirs.query('query q() { match { $n: Note { slug: "n7" } } return { $n.size } }')
    assert found.rows == [{"n.size": 2**64 - 8}]


def test_an_index_of_many_fragments_is_built_in_pieces_and_put_together(
    spark, tmp_path, monkeypatch
):
    monkeypatch.setattr(compaction, "FRAGMENT_ROWS", 1)
    graph = some_graph(tmp_path / "g")
    graph.optimize(engine="spark")
    assert fragments(graph)["node:Note"] > 2
    notes = [found for found in coverage(graph) if found[0] == "node:Note"]
    assert {found[3:] for found in notes} == {(11, 1)}
    for number in (0, 3, 6, 9):
        read = "query q($s: String) { match { $n: Note { slug: $s } } return { $n.slug } }"
        assert graph.query(read, {"s": f"n{number}"}).rows == [{"n.slug": f"n{number}"}]
    assert graph.verify().ok


def test_verify_on_spark_has_the_report_of_verify(spark, tmp_path):
    graph = some_graph(tmp_path / "g")
    whole = graph.verify(engine="spark")
    assert whole.ok
    assert whole.to_json() == graph.verify().to_json()


@pytest.mark.parametrize("damage", ["gone", "broken"])
def test_verify_on_spark_finds_the_same_damage(spark, tmp_path, damage):
    some_graph(tmp_path / "g")
    [victim, *_] = sorted((tmp_path / "g" / "nodes").rglob("data/*.lance"))
    if damage == "gone":
        victim.unlink()
    else:
        victim.write_bytes(b"\0" * victim.stat().st_size)
    report = og.open(tmp_path / "g").verify(engine="spark")
    assert not report.ok
    assert report.to_json() == og.open(tmp_path / "g").verify().to_json()


# --- export ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    return some_graph(tmp_path_factory.mktemp("exported") / "g")


@pytest.fixture(params=["local", "spark"])
def engine(request, monkeypatch):
    """Let a part be one fragment, so that there are several."""
    monkeypatch.setattr(partitioned_export, "PART_ROWS", 1)
    if request.param == "spark":
        request.getfixturevalue("spark")
    return request.param


def files(folder, type_name):
    found = sorted(Path(folder, type_name).iterdir())
    assert [path.name.partition(".")[0] for path in found] == [
        f"part-{number:05}" for number in range(len(found))
    ]
    return found


def test_parts_of_lines_are_the_lines_of_export(graph, tmp_path, engine):
    counts = graph.export_parts(tmp_path, format="ndjson", engine=engine)
    assert counts == {"edge:About": 10, "node:Empty": 0, "node:Note": 11}
    found = [*files(tmp_path, "edge-About"), *files(tmp_path, "node-Note")]
    assert len(found) > 2
    lines = [line for path in found for line in path.read_text().splitlines()]
    assert sorted(lines) == sorted(graph.export())


def test_parquet_parts_have_the_rows_of_one_file(graph, tmp_path, engine):
    graph.export_parquet(tmp_path / "whole")
    graph.export_parts(tmp_path / "parts", types=["Note"], engine=engine)
    found = pa.concat_tables(map(pq.read_table, files(tmp_path / "parts", "node-Note")))
    whole = pq.read_table(tmp_path / "whole" / "node-Note.parquet")
    assert found.schema == whole.schema
    assert found.sort_by("id").equals(whole)
    assert [path.name for path in (tmp_path / "parts").iterdir()] == ["node-Note"]


def test_parts_of_csv_are_read_back_by_load(graph, tmp_path, engine):
    graph.export_parts(tmp_path / "out", "more", format="csv", engine=engine)
    copy = og.init(tmp_path / "copy", SCHEMA)
    copy.load({"Note": [str(path) for path in files(tmp_path / "out", "node-Note")]})
    copy.load({"About": [str(path) for path in files(tmp_path / "out", "edge-About")]})
    assert list(copy.export()) == list(graph.export("more"))
    with files(tmp_path / "out", "edge-About")[0].open() as file:
        assert next(csv.reader(file)) == ["id", "from", "to", "since", "weight"]


def test_parts_are_written_into_an_empty_folder_only(graph, tmp_path):
    (tmp_path / "mine").write_text("x")
    with pytest.raises(InvalidInput, match="is not empty") as refused:
        graph.export_parts(tmp_path)
    assert refused.value.code == "export_folder_not_empty"
    with pytest.raises(InvalidInput, match="'xml'; use one of parquet, csv, ndjson"):
        graph.export_parts(tmp_path / "other", format="xml")
    with pytest.raises(InvalidInput, match="'flink'; it is one of local, spark"):
        graph.export_parts(tmp_path / "other", engine="flink")
