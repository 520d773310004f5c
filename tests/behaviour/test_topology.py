"""Arrays of edges are derived: shared, overlaid with small changes, and never missed."""

import shutil
from pathlib import Path

import pyarrow as pa
import pytest

import omnigraph.graph as og
from omnigraph.query import topology, topology_files
from omnigraph.query.engine import QuerySettings
from omnigraph.query.expansion import ExpandMode
from omnigraph.query.topology_files import TOPOLOGY_FOLDER

SCHEMA = """
node Person { name: String @key  age: I32 }
edge Knows: Person -> Person { since: I32? }
"""
PEOPLE = 60
QUERIES = {
    "two hops": "$p: Person  $p knows{1,2} $f } return { $p.name as p, $f.name as f }",
    "backwards": "$p: Person  $f knows $p } return { $p.name as p, $f.name as f }",
    "edges": "$p: Person  $p $k: knows $f } return { $p.name as p, $f.name as f, $k.since as s }",
    "count": "$p: Person  $p knows $f  $f knows $g } return { count($p) as n }",
    "triangles": "$p: Person  $p knows $f  $f knows $g  $p knows $g } return { count($p) as n }",
    "closed": "$p: Person  $p knows $f  $f knows $p } return { $p.name as p, $f.name as f }",
    "both": '$p: Person { name: "p7" }  $p <knows> $f } return { $f.name as f, $f.age as age }',
}
CHANGES = {
    "edge inserted": 'insert Knows { from: "p3", to: "p50", since: 9 }',
    "edges deleted": 'delete Knows where from = "p7"',
    "node updated": 'update Person set { age: 99 } where name = "p20"',
    "node inserted with edge": (
        'insert Person { name: "new", age: 1 } insert Knows { from: "new", to: "p7" }'
    ),
    "node deleted with its edges": 'delete Person where name = "p12"',
}


@pytest.fixture(autouse=True)
def keep_all(monkeypatch):
    """Let small types be treated like large ones."""
    monkeypatch.setattr("omnigraph.query.topology.MIN_STORED_EDGES", 0)
    monkeypatch.setattr("omnigraph.query.column_cache.SMALL_TABLE_ROWS", 0)


@pytest.fixture
def graph(tmp_path):
    made = og.init(tmp_path / "g", SCHEMA)
    names = [f"p{number}" for number in range(PEOPLE)]
    pairs = [(i, (i * k + k) % PEOPLE) for i in range(PEOPLE) for k in (1, 3, 7)]
    made.load(
        {
            "Person": pa.table({"name": names, "age": pa.array(range(PEOPLE), pa.int32())}),
            "Knows": pa.table(
                {
                    "from": [names[i] for i, _ in pairs],
                    "to": [names[j] for _, j in pairs],
                    "since": pa.array([i + j for i, j in pairs], pa.int32()),
                }
            ),
        }
    )
    return made


def ask(graph, mode=ExpandMode.TOPOLOGY):
    """Return the answers to all queries, in an order of their own."""
    found = {}
    for name, body in QUERIES.items():
        text = f"query q() {{ match {{ {body} }}"
        run = graph._engine.run(graph.snapshot(), text, {}, None, QuerySettings(expand=mode))
        found[name] = sorted(map(str, run.rows))
    return found


def change(graph, name):
    graph.mutate(f"query change() {{ {CHANGES[name]} }}")


def built(graph):
    return graph._engine.topologies.built


def folders(graph):
    return [p for p in Path(graph.uri, TOPOLOGY_FOLDER).glob("*/*") if not p.name.startswith(".")]


@pytest.mark.parametrize("name", CHANGES)
def test_a_small_change_is_laid_over_arrays_that_are_there(graph, name):
    ask(graph)
    change(graph, name)
    assert ask(graph) == ask(graph, ExpandMode.INDEXED)
    assert built(graph) == 1


def test_many_small_changes_are_laid_over_the_same_arrays(graph):
    before = ask(graph)
    for name in CHANGES:
        change(graph, name)
        assert ask(graph) == ask(graph, ExpandMode.INDEXED), name
    assert ask(graph) != before
    assert built(graph) == 1


def test_arrays_of_small_types_are_made_anew_from_what_is_in_memory(graph):
    graph._engine.store.small = 1_000
    before = ask(graph)
    for name in CHANGES:
        change(graph, name)
        assert ask(graph) == ask(graph, ExpandMode.INDEXED), name
    assert ask(graph) != before
    assert built(graph) == 1


def test_a_change_on_a_branch_is_laid_over_the_arrays_of_main(graph):
    main = ask(graph)
    branch = graph.branch("other", create=True)
    assert ask(branch) == main
    change(branch, "node deleted with its edges")
    change(graph, "edge inserted")
    for one in (graph, branch):
        assert ask(one) == ask(one, ExpandMode.INDEXED)
    assert built(graph) == built(branch) == 1


def test_arrays_of_a_branch_that_deleted_more_do_not_serve_main(graph):
    branch = graph.branch("other", create=True)
    change(branch, "edges deleted")
    ask(branch)
    main = og.open(graph.uri)
    for number in range(2):
        assert ask(main) == ask(main, ExpandMode.INDEXED)
        change(main, "edge inserted")
        change(branch, "node updated")
        assert ask(branch) == ask(branch, ExpandMode.INDEXED), number
        main = og.open(graph.uri)
    assert built(branch) == 1
    assert ask(main) == ask(main, ExpandMode.INDEXED)
    assert built(main) == 0, "older arrays of main serve, though those of the branch do not"


def test_another_process_lays_changes_over_the_files(graph):
    ask(graph)
    change(graph, "node updated")
    change(graph, "edges deleted")
    other = og.open(graph.uri, mode="ro")
    assert ask(other) == ask(graph, ExpandMode.INDEXED)
    assert built(other) == 0
    assert len(folders(graph)) == 1


def test_a_large_change_makes_new_arrays(graph, monkeypatch):
    ask(graph)
    monkeypatch.setattr("omnigraph.query.topology.MAX_DELTA_ROWS", 1)
    change(graph, "edges deleted")
    assert ask(graph) == ask(graph, ExpandMode.INDEXED)
    assert built(graph) == 2


def test_compaction_and_indexes_change_no_answer(graph):
    ask(graph)
    for name in CHANGES:
        change(graph, name)
    graph.optimize()
    assert ask(graph) == ask(graph, ExpandMode.INDEXED)


def test_arrays_of_a_version_that_was_cleaned_up_are_made_anew(graph):
    ask(graph)
    for name in CHANGES:
        change(graph, name)
    expected = ask(graph, ExpandMode.INDEXED)
    for dataset in Path(graph.uri).glob("*/*/_versions"):
        oldest = sorted(dataset.iterdir(), key=lambda path: path.stat().st_mtime)[:1]
        [path.unlink() for path in oldest if dataset.parent.parent.name in ("nodes", "edges")]
    other = og.open(graph.uri, mode="ro")
    assert ask(other) == expected


def test_deleting_all_files_between_queries_changes_no_answer(graph):
    expected = ask(graph)
    shutil.rmtree(Path(graph.uri, TOPOLOGY_FOLDER))
    assert ask(graph) == expected
    other = og.open(graph.uri)
    assert ask(other) == expected
    shutil.rmtree(Path(graph.uri, TOPOLOGY_FOLDER))
    change(other, "edge inserted")
    assert ask(other) == ask(other, ExpandMode.INDEXED)


@pytest.mark.parametrize("kind", ["*.npy", "*.json"])
@pytest.mark.parametrize("damage", [b"", b"\x93NUMPY", b"{}"])
def test_damaged_files_are_made_anew(graph, damage, kind):
    expected = ask(graph)
    for path in Path(graph.uri, TOPOLOGY_FOLDER).rglob(kind):
        path.write_bytes(damage)
    other = og.open(graph.uri)
    assert ask(other) == expected
    assert built(other) == 1


def test_only_the_newest_files_of_an_edge_type_are_kept(graph, monkeypatch):
    monkeypatch.setattr("omnigraph.query.topology.MAX_DELTA_ROWS", -1)
    monkeypatch.setattr("omnigraph.query.topology.MAX_DELTA_SHARE", -1)
    for number in range(topology_files.KEPT_VERSIONS + 2):
        graph.mutate(f'query q() {{ insert Knows {{ from: "p1", to: "p{number + 2}" }} }}')
        ask(graph)
    assert built(graph) == topology_files.KEPT_VERSIONS + 2
    assert len(folders(graph)) == topology_files.KEPT_VERSIONS


def test_optimize_stores_the_arrays_of_large_types(graph):
    shutil.rmtree(Path(graph.uri, TOPOLOGY_FOLDER), ignore_errors=True)
    graph.optimize()
    other = og.open(graph.uri, mode="ro")
    assert ask(other) == ask(graph, ExpandMode.INDEXED)
    assert built(other) == 0


def test_deleting_all_indexes_between_queries_changes_no_answer(graph):
    graph.optimize()
    expected = ask(graph)
    for folder in Path(graph.uri).rglob("_indices"):
        shutil.rmtree(folder)
    for mode in (ExpandMode.TOPOLOGY, ExpandMode.INDEXED):
        assert ask(graph, mode) == expected
        assert ask(og.open(graph.uri), mode) == expected
    large = og.open(graph.uri)
    large._engine.store.small = 0
    assert ask(large) == expected


def test_a_reader_leaves_no_files(graph):
    ask(og.open(graph.uri, mode="ro"))
    assert folders(graph) == []


def test_arrays_in_memory_are_bounded_in_bytes(tmp_path, monkeypatch):
    """Also those that later versions are applied to; a reader stores none in files."""
    types = [f"Knows{number}" for number in range(6)]
    edges = "\n".join(f"edge {name}: Person -> Person" for name in types)
    graph = og.init(tmp_path / "many", f"node Person {{ name: String @key }}\n{edges}")
    names = [f"p{number}" for number in range(PEOPLE)]
    table = pa.table({"from": names, "to": [*names[1:], names[0]]})
    graph.load({"Person": pa.table({"name": names})} | dict.fromkeys(types, table))
    reader = og.open(graph.uri, mode="ro")
    size, settings = 0, QuerySettings(expand=ExpandMode.TOPOLOGY)
    for number, name in enumerate(types):
        if number == 1:
            [base] = reader._engine.topologies._bases.values()
            size = base.nbytes
            assert size > 0
            monkeypatch.setattr(topology, "TOPOLOGY_MEMORY_BYTES", 2 * size)
            monkeypatch.setattr(topology, "_MIN_ENTRY_BYTES", 0)
            reader = og.open(graph.uri, mode="ro")
        text = f"match {{ $a: Person  $a {name[0].lower()}{name[1:]} $b }} return {{ $b.name }}"
        run = reader._engine.run(reader.snapshot(), text, {}, None, settings)
        assert len(run.rows) == PEOPLE
    kept = reader._engine.topologies
    assert kept.built == len(types) - 1
    assert [len(kept), len(kept._bases)] == [2, 2]
    assert kept._bases.total <= 2 * size
