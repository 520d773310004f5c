"""Eight threads of one process that write to one branch and report every commit they got."""

from __future__ import annotations

import os
import signal
import threading
from multiprocessing.connection import Connection

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
