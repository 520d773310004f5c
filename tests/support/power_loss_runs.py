"""Scenarios of the power-loss tests: what a process does, and the states it goes through."""

from __future__ import annotations

import io
import json
import random
import tempfile
import threading
from collections.abc import Callable, Mapping
from datetime import timedelta
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, TypeAlias

import omnigraph.graph as og
from omnigraph.commit.intent_log import IntentLog
from omnigraph.commit.lineage import MAX_TAIL_FRAGMENTS
from omnigraph.commit.staged_commit import StagedCommit, new_commit_id
from omnigraph.graph.modes import Durability
from omnigraph.maintain.cleanup import cleanup
from tests.support.group_writers import CHANGES, WRITERS, change
from tests.support.group_writers import SCHEMA as GROUP_SCHEMA
from tests.support.maintainer_children import EAGER
from tests.support.power_loss import Recorder

SCHEMA = """
node Part { slug: String @key  size: I64?  note: String? @index  photo: Blob? }
node Label { slug: String @key }
edge Labelled: Part -> Label { since: I64? }
"""
WIDER = """
node Part { slug: String @key  size: I64?  note: String? @index  photo: Blob?  weight: F64? }
node Label { slug: String @key }
node Shelf { slug: String @key  row: I64 }
edge Labelled: Part -> Label { since: I64? }
"""
LATER = 'query later() { insert Part { slug: "later", size: 99 } }'

State: TypeAlias = dict[str, Any]
"""Everything that users see, by values."""


def state(graph: og.Graph) -> State:
    """Read the whole state of a graph."""
    branches = {}
    for name in graph.branches.list():
        lines = [json.loads(line) for line in graph.export(name)]
        for line in lines:
            line["data"].pop("id", None)  # of an edge
        rows = sorted(json.dumps(line, sort_keys=True) for line in lines)
        branches[name] = (len(graph.commits.list(name)), rows)
    main = [commit.id for commit in graph.commits.list()]
    tags = {tag.name: len(main) - main.index(tag.commit_id) for tag in graph.tags.list()}
    return {
        "branches": branches,
        "tags": tags,
        "schema": graph.schema.source,
        "proposals": [_proposal_state(graph, one.number) for one in graph.proposals.list("all")],
        "protection": [rule.to_json() for rule in graph.protection.rules],
        "retention": graph.maintenance.status().retention,
    }


def _proposal_state(graph: og.Graph, number: int) -> State:
    """Read a proposal, without IDs of commits, which differ each time a scenario is performed."""
    proposal = graph.proposals.get(number)
    main = [commit.id for commit in graph.commits.list()]
    merged = proposal.merge_commit
    return {
        "number": number,
        "state": str(proposal.state),
        "title": proposal.title,
        "comments": [(one.body, one.resolved) for one in proposal.comments],
        "reviews": [(str(one.verdict), one.body) for one in proposal.reviews],
        "merged": None if merged is None else len(main) - main.index(merged),
    }


_INSERTS = {"compaction": MAX_TAIL_FRAGMENTS, "optimize": 8, "cleanup": 3, "maintain": 20}
"""Commits before a scenario, so that what it does is due."""


def start_graph(uri: str, kind: str) -> None:
    """Create the graph that a scenario starts with, if it needs one."""
    if kind == "init":
        return
    if kind == "import":
        with tempfile.TemporaryDirectory() as folder:
            start_graph(f"{folder}/graph", "merge")
            archive = Path(uri).with_name("archive.tar")
            og.open(f"{folder}/graph").export_archive(archive, history=True)
        return
    graph = og.init(uri, GROUP_SCHEMA if kind == "group" else SCHEMA)
    if kind == "group":
        return
    lines = [*(_part(n) for n in range(6)), _line("Label", slug="red"), _line("Label", slug="old")]
    lines += [_edge("p0", "red"), _edge("p1", "old")]
    graph.load(io.StringIO("\n".join(lines)))
    graph.tags.create("first")
    fill = {"compaction": MAX_TAIL_FRAGMENTS, "optimize": 8, "cleanup": 3, "maintain": 20}.get(
        kind, 0
    )
    for number in range(fill):
        _mutate(graph, f'insert Part {{ slug: "f{number}", size: {number} }}')
    if kind == "recover":
        dead = StagedCommit(id=new_commit_id(), operation="load")
        IntentLog(graph._manifest.objects).begin("main", None, dead)
    if kind == "maintain":
        graph.maintenance.set_retention(keep=2)
    if kind in ("merge", "proposal", "protection"):
        graph.branches.create("work")
        _mutate(graph, 'update Part set { size: 7 } where slug = "p1"', branch="work")
        _mutate(graph, 'insert Part { slug: "w", size: 1 }', branch="work")
        _mutate(graph, 'insert Label { slug: "blue" }')


def _line(type_name: str, **data: Any) -> str:
    return json.dumps({"type": type_name, "data": data})


def _part(number: int) -> str:
    return _line("Part", slug=f"p{number}", size=number, note=f"note {number}")


def _edge(part: str, label: str) -> str:
    return json.dumps({"edge": "Labelled", "from": part, "to": label, "data": {"since": 1}})


def _mutate(graph: og.Graph, text: str, branch: str | None = None) -> None:
    graph.mutate(f"query m() {{ {text} }}", branch=branch)


def _load(graph: og.Graph) -> None:
    graph.load(io.StringIO("\n".join([*(_part(n) for n in range(4, 40)), _edge("p5", "red")])))


def _clean(graph: og.Graph) -> None:
    cleanup(graph._manifest, keep=1, age_floor=timedelta(0))


def _maintain(graph: og.Graph) -> None:
    result = graph.maintenance.run(EAGER)
    assert result.actions, "compaction and cleanup are due"
    assert not result.errors, result.errors


def _propose(graph: og.Graph) -> None:
    graph.proposals.create("work", into="main", title="Work", description="of an agent")


def _protect(graph: og.Graph) -> None:
    graph.protection.set({"branches": ["work", "release/*"], "tags": ["v*"]})


_LABELS = [_line("Label", slug=slug) for slug in ("red", "old", "green")]
_INSERT = 'insert Part { slug: "new", size: 1 }'
_LARGE = random.Random(1).randbytes(100_000)

SCENARIOS: Mapping[str, tuple[Callable[[og.Graph], object], ...]] = {
    "one row": (
        lambda g: _mutate(g, _INSERT),
        lambda g: _mutate(g, 'update Part set { size: 2 } where slug = "new"'),
    ),
    "several types": (
        lambda g: _mutate(g, f'{_INSERT} insert Labelled {{ from: "new", to: "red" }}'),
        lambda g: _mutate(g, 'delete Part where slug = "p1"'),
    ),
    "load": (_load, lambda g: _mutate(g, _INSERT)),
    "blob": (
        lambda g: g.put_blob("Part", "p2", "photo", _LARGE),
        lambda g: g.put_blob("Part", "p2", "photo", b"small"),
    ),
    "branch": (
        lambda g: g.branches.create("work"),
        lambda g: _mutate(g, _INSERT, branch="work"),
        lambda g: g.branches.delete("work"),
    ),
    "merge": (lambda g: g.merge("work"), lambda g: _mutate(g, _INSERT)),
    "tag": (lambda g: g.tags.create("second"), lambda g: g.tags.delete("first")),
    "schema": (
        lambda g: g.schema.apply(WIDER),
        lambda g: _mutate(g, 'insert Shelf { slug: "s", row: 1 }'),
    ),
    "optimize": (lambda g: g.optimize(), lambda g: _mutate(g, _INSERT)),
    "compaction": (
        lambda g: _mutate(g, _INSERT),
        lambda g: _mutate(g, 'insert Part { slug: "newer", size: 1 }'),
    ),
    "later": (lambda g: g.mutate(LATER),),
    "recover": (
        lambda g: g.recover(stale_after=timedelta(0)),
        lambda g: _mutate(g, _INSERT),
    ),
    "cleanup": (_clean, lambda g: _mutate(g, _INSERT)),
    "maintain": (_maintain, lambda g: _mutate(g, _INSERT)),
    "retention": (
        lambda g: g.maintenance.set_retention(keep=7, older_than=timedelta(days=30)),
        lambda g: g.maintenance.clear_retention(),
    ),
    "proposal": (
        _propose,
        lambda g: g.proposals.get(1).comment("Why?", on=("Part", "p1")),
        lambda g: g.proposals.get(1).resolve(g.proposals.get(1).comments[0]),
        lambda g: g.as_actor("reviewer").proposals.get(1).review("approve", "fine"),
        lambda g: g.proposals.get(1).merge(),
        lambda g: g.proposals.get(1).comment("Thanks."),
    ),
    "protection": (_protect, _propose, lambda g: g.protection.clear()),
    "overwrite": (
        lambda g: g.load(io.StringIO("\n".join(_LABELS)), mode="overwrite"),
        lambda g: _mutate(g, _INSERT),
    ),
}
"""Changes that a process makes one after the other."""


def expected_states(uri: str, kind: str) -> list[State]:
    """Perform a scenario without a failure; return the state before and after each change."""
    graph = og.open(uri)
    states = [state(graph)]
    for step in SCENARIOS[kind]:
        step(graph)
        states.append(state(graph))
    return states


def run(
    connection: Connection,
    where: tuple[str, str, str],
    kind: str,
    step: int,
    durability: Durability,
) -> None:
    """Perform a scenario with recorded syncs; report every change whose call has returned.

    `where` names the folder of the graph, the log of syncs and the folder of old contents.
    """
    base, log, shadow = where
    recorder = Recorder(Path(base), Path(log), Path(shadow), step)
    recorder.install()
    uri = f"{base}/graph"
    if kind == "init":
        og.init(uri, SCHEMA, durability=durability)
        connection.send("done")
    elif kind == "import":
        og.import_archive(f"{base}/archive.tar", uri, durability=durability)
        connection.send("done")
    else:
        graph = og.open(uri, durability=durability)
        graph._manifest.datasets.observe = recorder.step
        if kind == "group":
            _run_group(connection, graph)
        else:
            for change_graph in SCENARIOS[kind]:
                change_graph(graph)
                connection.send("done")
    connection.send(recorder.count)


def _run_group(connection: Connection, graph: og.Graph) -> None:
    barrier, lock = threading.Barrier(WRITERS), threading.Lock()

    def work(number: int) -> None:
        barrier.wait()
        for version in range(CHANGES):
            commit = change(graph, f"w{number}", version)
            with lock:
                connection.send((number, version, commit))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(WRITERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
