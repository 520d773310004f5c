"""Eight threads of one process that write to one branch and report every commit they got."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Sequence
from multiprocessing.connection import Connection
from typing import Any

import omnigraph.graph as og
from tests.support.children import Place

SCHEMA = """
node Part { slug: String @key
  version: I64 }
node Label { slug: String @key }
edge Labelled: Part -> Label @card(0..1)
"""
WRITERS = 8
CHANGES = 3
ADD = """query add($slug: String) {
  insert Part { slug: $slug, version: 0 }
  insert Label { slug: $slug }
  insert Labelled { from: $slug, to: $slug }
}"""
SET = """query set($slug: String, $version: I64) {
  update Part set { version: $version } where slug = $slug
}"""


def write_and_die(connection: Connection, place: Place, step: int) -> None:
    """Let all writers write; kill the process at its `step`-th step."""
    graph = place.open()
    lock, left = threading.Lock(), [step]

    def observe(name: str) -> None:
        with lock:
            if left[0] == 0:
                connection.send(("killed", name))
                os.kill(os.getpid(), signal.SIGKILL)
            left[0] -= 1

    graph._manifest.datasets.observe = observe
    start = threading.Barrier(WRITERS)

    def work(number: int) -> None:
        start.wait()
        for version in range(CHANGES):
            commit = change(graph, f"w{number}", version)
            with lock:
                connection.send(("done", number, version, commit))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(WRITERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    connection.send(("end",))


def change(graph: og.Graph, slug: str, version: int) -> str:
    """Add a part with its label, or set its version; return the commit."""
    if version == 0:
        result = graph.mutate(ADD, {"slug": slug})
    else:
        result = graph.mutate(SET, {"slug": slug, "version": version})
    assert result.commit is not None, "every change changes something"
    return result.commit.id


def check_writers(graph: og.Graph, acknowledged: Sequence[tuple[int, int, str]]) -> set[str]:
    """Compare the graph with what the writers received; return which outcomes there were."""
    report = graph.verify()
    assert report.ok, report.problems
    commits = {commit.id: commit for commit in graph.commits.list()}
    parts = {
        row["p.slug"]: row["p.version"] for row in _rows(graph, "$p: Part", "$p.slug, $p.version")
    }
    labels = {row["l.slug"] for row in _rows(graph, "$l: Label", "$l.slug")}
    edges = {
        (row["p.slug"], row["l.slug"])
        for row in _rows(graph, "$p: Part  $p labelled $l", "$p.slug, $l.slug")
    }
    assert set(parts) == labels, "a commit adds both or neither"
    assert edges == {(slug, slug) for slug in parts}
    outcomes: set[str] = set()
    for number in range(WRITERS):
        done = {version: commit for writer, version, commit in acknowledged if writer == number}
        assert set(done.values()) <= commits.keys()
        last = max(done, default=-1)
        version = parts.get(f"w{number}", -1)
        # The change that was under way when the process died may have been published.
        assert last <= version <= min(last + 1, CHANGES - 1), (number, done, version)
        outcomes.add("acknowledged" if done else "absent" if version < 0 else "unknown")
    assert len(commits) == 1 + sum(version + 1 for version in parts.values())
    return outcomes


def _rows(graph: og.Graph, pattern: str, columns: str) -> list[Any]:
    """Query one pattern."""
    return list(graph.query(f"query q() {{ match {{ {pattern} }} return {{ {columns} }} }}"))
