"""A damaged row of the manifest is reported by verify and is a typed error everywhere else."""

from contextlib import suppress
from dataclasses import asdict, replace
from datetime import timedelta

import pytest

import omnigraph.graph as og
from omnigraph.commit.manifest_rows import NewManifestRow
from omnigraph.errors import OmniError
from tests.support.graphs import CALLS_AT, NOTE, PORT, SHIP, insert

CASES = [
    ("commit", {"metadata": None}),
    ("commit", {"metadata": '{"parents":'}),
    ("commit", {"table_version": None}),
    ("version", {"metadata": "{}"}),
    ("version", {"metadata": "[]"}),
    ("version", {"stable_table_id": None}),
    ("version", {"row_count": None}),
    ("table", {"stable_table_id": None}),
    ("table", {"location": None}),
    ("schema", {"metadata": "{}"}),
    ("branch", {"metadata": "{}"}),
    ("tag", {"metadata": '{"commit":1}'}),
]
COMMANDS = {
    "query": lambda g: g.query("query q() { match { $n: Note } return { $n.text } }").rows,
    "commit log": lambda g: g.commits.list(),
    "diff": lambda g: g.diff(g.commits.list()[-1].id, "main"),
    "export": lambda g: list(g.export()),
    "cleanup": lambda g: g.cleanup(keep=1),
    "repair": lambda g: g.repair(),
    "recover": lambda g: g.recover(),
    "tags": lambda g: g.tags.list(),
    "branches": lambda g: g.branches.list(),
    "old": lambda g: g.snapshot("old"),
    "optimize": lambda g: g.optimize(),
    "confirmed cleanup": lambda g: g.cleanup(older_than=timedelta(0), confirm=True),
}


@pytest.fixture
def graph(graph):
    insert(graph, NOTE, {"a": {"text": "x"}})
    insert(graph, SHIP, {"s": {"name": "Aurora", "tons": 7}})
    insert(graph, PORT, {"p": {"city": "Kiel"}})
    insert(graph, CALLS_AT, {"c": {"src": "s", "dst": "p"}})
    graph.tags.create("old")
    graph.branches.create("side")
    insert(graph, NOTE, {"b": {"text": "y"}})
    return graph


def plant(graph, kind, changed):
    """Write a row of one kind with damage in place of the sound one."""
    state = graph._manifest.main.state()
    note = graph.snapshot().entries()[NOTE]
    start = {
        "commit": f"commit:{graph.commits.list()[2].id}",
        "version": f"version:{note.type_id:016x}",
        "table": f"table:{note.type_id:016x}",
    }.get(kind, f"{kind}:")
    found = next(f for f in state.rows("object_id <> 'x'") if f.row["object_id"].startswith(start))
    row = replace(NewManifestRow(**found.row), **changed)
    assert asdict(row) != found.row
    state.lineage.swap(state, state.head, [row], [found])
    return row.object_id


@pytest.mark.parametrize(("kind", "changed"), CASES)
def test_damaged_row_is_reported_and_never_a_traceback(graph, kind, changed):
    key = plant(graph, kind, changed)
    found = og.open(graph.uri, "ro").verify()
    assert not found.ok
    assert any(key in problem.message for problem in found.problems), found.problems
    for command in COMMANDS.values():
        with suppress(OmniError):
            command(og.open(graph.uri))
