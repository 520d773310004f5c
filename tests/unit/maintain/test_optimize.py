"""Upkeep of datasets: fewer fragments, complete indexes, and nothing else changes."""

import json
import threading

import lance
import pytest

import omnigraph as og
from omnigraph.errors import ExpectedVersionMismatch
from omnigraph.maintain.indexes import required_indexes
from omnigraph.maintain.optimize import LocalMaintenanceExecutor, OptimizeOptions, optimize
from omnigraph.storage.index import MAX_SEGMENTS, IndexKind, build_segment
from omnigraph.storage.layout import dataset_path
from omnigraph.write.request import MAINTENANCE_OPERATION

SCHEMA = """
node Note {
  slug: String @key
  text: String @index
  kind: enum(a, b)? @index
  size: I64? @unique
  tags: [String]?
  far: Vector(2)? @index
}
node Empty { name: String @key }
edge About: Note -> Note { since: Date? @index }
"""
ADD = 'query add($s: String, $t: String) { insert Note { slug: $s, text: $t, kind: "a" } }'


@pytest.fixture
def graph(tmp_path):
    graph = og.init(tmp_path / "g", SCHEMA)
    for number in range(12):
        graph.mutate(ADD, {"s": f"n{number}", "t": f"about ships {number}"})
    graph.load({"About": [{"from": "n0", "to": f"n{n}"} for n in range(12)]})
    return graph


def fragments(graph, table_key="node:Note"):
    entry = graph.snapshot().entry(table_key)
    with graph._manifest.reading(table_key, entry) as handle:
        return len(handle.get_fragments())


def coverage(graph):
    return {
        (one.type_key, one.column, str(one.kind)): (one.covered, one.rows)
        for one in graph.indexes.status()
    }


def test_optimize_changes_no_entity(graph):
    before = list(graph.export())
    done = graph.optimize()
    assert list(graph.export()) == before
    assert (done.commit.operation, dict(done.commit.counts)) == ("optimize", {})
    assert graph.verify().ok
    assert graph.commits.list()[0] == done.commit


def test_optimize_leaves_few_fragments_and_complete_indexes(graph):
    assert fragments(graph) == 12
    graph.optimize()
    assert fragments(graph) == 1
    assert coverage(graph) == {
        ("edge:About", "id", "btree"): (12, 12),
        ("edge:About", "src", "btree"): (12, 12),
        ("edge:About", "dst", "btree"): (12, 12),
        ("edge:About", "since", "btree"): (12, 12),
        ("node:Empty", "id", "btree"): (0, 0),
        ("node:Note", "id", "btree"): (12, 12),
        ("node:Note", "kind", "btree"): (12, 12),
        ("node:Note", "size", "btree"): (12, 12),
        ("node:Note", "text", "btree"): (12, 12),
    }


def test_second_optimize_has_nothing_to_do(graph):
    graph.optimize()
    head = graph.snapshot().commit_id
    assert graph.optimize().commit is None
    assert graph.snapshot().commit_id == head
    assert not list(graph._manifest.objects.list("__recovery"))


def test_indexes_are_extended_by_segments_and_rebuilt_when_there_are_many(graph):
    graph.indexes.ensure()
    assert fragments(graph) == 12
    for number in range(MAX_SEGMENTS + 2):
        graph.mutate(ADD, {"s": f"later{number}", "t": "ships"})
        assert coverage(graph)["node:Note", "id", "btree"] == (12 + number, 13 + number)
        graph.indexes.ensure()
        assert coverage(graph)["node:Note", "id", "btree"] == (13 + number, 13 + number)
    segments = {one.segments for one in graph.indexes.status() if one.type_key == "node:Note"}
    assert max(segments) <= MAX_SEGMENTS


def test_branch_is_optimized_by_itself(graph):
    graph.branches.create("side")
    graph.optimize(branch="side")
    assert fragments(graph) == 12
    assert graph.snapshot("side").entry("node:Note").version == 14
    assert graph.query(
        "query q() { match { $n: Note } return { count($n) as n } }", at="side"
    ).rows == [{"n": 12}]


def test_other_readers_of_lance_see_main_after_optimize(graph):
    entry = graph.snapshot().entry("node:Note")
    address = f"{graph.uri}/{dataset_path('node', *entry.key)}"
    assert lance.dataset(address).count_rows() == 0
    graph.optimize()
    assert sorted(lance.dataset(address).to_table(columns=["id"])["id"].to_pylist()) == sorted(
        f"n{number}" for number in range(12)
    )


def test_writer_concurrent_with_maintenance_is_not_rejected(graph):
    """An update decides on what it saw; upkeep changes nothing it could have seen."""
    other = og.open(graph.uri)
    waiting = [lambda: other.optimize()]

    def observe(step):
        if step.startswith("staged") and waiting:
            waiting.pop()()

    graph._manifest.datasets.observe = observe
    done = graph.mutate('query m() { update Note set { kind: "b" } where slug = "n3" }')
    assert not waiting, "upkeep ran in between"
    assert (done.affected_nodes, graph.entity_at("Note", "n3")["kind"]) == (1, "b")
    assert graph.verify().ok


def test_writer_that_meets_a_writer_of_the_same_entity_is_refused(graph):
    other = og.open(graph.uri)
    waiting = [
        lambda: other.mutate('query m() { update Note set { kind: "b" } where slug = "n3" }')
    ]

    def observe(step):
        if step.startswith("staged") and waiting:
            waiting.pop()()

    graph._manifest.datasets.observe = observe
    with pytest.raises(ExpectedVersionMismatch):
        graph.mutate('query m() { update Note set { kind: "b" } where slug = "n3" }')


def beside(graph, *changes):
    """Let another handle make changes, each after a further type was staged."""
    waiting = list(changes)

    def observe(step):
        if step == "maintenance: staged" and waiting:
            waiting.pop(0)()

    graph._manifest.datasets.observe = observe
    return waiting


def test_maintenance_beside_writers_carries_their_changes_over(graph):
    other = og.open(graph.uri)
    update = 'query m($s: String) { update Note set { kind: "b" } where slug = $s }'
    delete = "query m($s: String) { delete Note where slug = $s }"

    def write():
        other.mutate(ADD, {"s": "new", "t": "ships"})
        other.mutate(ADD, {"s": "short-lived", "t": "ships"})
        other.load({"Note": [{"slug": f"many{n}", "text": "m"} for n in range(5)]})
        for slug in ("n3", "many2"):
            other.mutate(update, {"s": slug})
        for slug in ("n5", "many4", "short-lived"):
            other.mutate(delete, {"s": slug})

    waiting = beside(graph, write)
    done = graph.optimize()
    assert not waiting, "the writer came between staging and publishing"
    assert graph.commits.list()[0] == done.commit
    rows = {row["slug"]: row["kind"] for row in map(note, graph.export()) if row}
    slugs = {f"n{number}" for number in range(12)} | {f"many{number}" for number in range(5)}
    assert rows.keys() == (slugs | {"new"}) - {"n5", "many4"}
    assert {slug for slug, kind in rows.items() if kind == "b"} == {"n3", "many2"}
    assert coverage(graph)["node:Note", "id", "btree"][0] == 10, "rewritten and still there"
    assert graph.verify().ok
    assert graph.verify(deep=True).ok
    assert not graph.recoveries()


def note(line):
    record = json.loads(line)
    return record["data"] if record.get("type") == "Note" else None


def test_maintenance_beside_a_schema_change_stages_the_type_again(graph):
    other = og.open(graph.uri)
    changed = SCHEMA.replace("size: I64? @unique", "size: I64? @unique  extra: String?")
    waiting = beside(graph, lambda: other.schema.apply(changed))
    graph.optimize()
    assert not waiting
    assert fragments(graph) == 1
    assert coverage(graph)["node:Note", "id", "btree"] == (12, 12)
    assert graph.entity_at("Note", "n3")["extra"] is None
    assert graph.verify().ok


def test_optimize_of_some_types_and_parts_leaves_the_rest_alone(graph):
    request = graph._request(MAINTENANCE_OPERATION, None, None)
    before = graph.snapshot().entry("edge:About")
    optimize(graph._manifest, request, OptimizeOptions(types=["node:Note"], index=False))
    assert (fragments(graph), coverage(graph)["node:Note", "id", "btree"]) == (1, (0, 12))
    assert graph.snapshot().entry("edge:About") == before
    optimize(graph._manifest, request, OptimizeOptions(types=["edge:About"], compact=False))
    assert coverage(graph)["edge:About", "src", "btree"] == (12, 12)
    assert coverage(graph)["node:Note", "id", "btree"] == (0, 12)


def test_maintenance_with_writers_in_threads_loses_nothing(graph):
    def write(first):
        for number in range(first, first + 10):
            graph.mutate(ADD, {"s": f"t{number}", "t": "ships"})

    threads = [threading.Thread(target=write, args=(start,)) for start in (100, 200)]
    for thread in threads:
        thread.start()
    for _ in range(3):
        og.open(graph.uri).optimize()
    for thread in threads:
        thread.join()
    found = graph.query("query q() { match { $n: Note } return { count($n) as n } }").rows
    assert found == [{"n": 32}]
    assert graph.verify().ok


def test_vectors_are_indexed_only_when_there_are_many(graph):
    type_ = graph.snapshot().schema.find("node", "Note")
    assert ("far", IndexKind.VECTOR) not in list(required_indexes(type_, 99_999))
    assert ("far", IndexKind.VECTOR) in list(required_indexes(type_, 100_000))


class Pieces(LocalMaintenanceExecutor):
    """Builds what can be put together in as many pieces as there are fragments."""

    def index(self, base, place, tasks):
        return [[build_segment(base, piece) for piece in task.split(99)] for task in tasks]


@pytest.mark.parametrize("luck", range(3))
def test_indexes_built_in_pieces_are_put_together(graph, monkeypatch, luck):
    """Numbers of staged versions are random, and so is whether Lance takes one for a later one."""
    monkeypatch.setattr("omnigraph.storage.compaction.FRAGMENT_ROWS", 1)
    request = graph._request(MAINTENANCE_OPERATION, None, None)
    optimize(graph._manifest, request, executor=Pieces())
    assert fragments(graph) > 2
    assert {(one.covered, one.segments) for one in graph.indexes.status() if one.rows} == {(12, 1)}
    for number in range(12):
        read = "query q($s: String) { match { $n: Note { slug: $s } } return { $n.slug } }"
        assert graph.query(read, {"s": f"n{number}"}).rows == [{"n.slug": f"n{number}"}]
    assert graph.verify().ok


@pytest.mark.parametrize(
    "schemas",
    [
        ("node B { k: String @key }", "node A { k: String @key }\nnode B { k: String @key }"),
        (
            'node C @rename_from("A") { k: String @key }\nnode B { k: String @key }',
            'node C { k: String @key }\nnode A @rename_from("B") { k: String @key }',
        ),
    ],
    ids=["created again", "renamed"],
)
def test_maintenance_goes_on_when_another_type_gets_the_name_of_one(tmp_path, schemas):
    graph = og.init(tmp_path / "g", "node A { k: String @key }\nnode B { k: String @key }")
    rows = [[{"k": f"{n}"}] for n in range(3)]
    for row in rows:
        graph.load({"A": row, "B": row})
    other = og.open(graph.uri)

    def migrate():
        for schema in schemas:
            other.schema.apply(schema)
        if not other.snapshot().entry("node:A").rows:
            for row in rows:
                other.insert("A", row)

    waiting = beside(graph, migrate)
    report = graph.optimize()
    assert not waiting
    assert report.commit is not None
    assert graph.snapshot().entry("node:A").rows == len(rows)
    assert graph.verify().ok
