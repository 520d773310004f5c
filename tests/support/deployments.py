"""The ways to a graph: embedded, and through servers with one and with several processes.

A scenario requests an unused graph by `lane.graph()`; what it does and the results must be the
same on every lane.
"""

from __future__ import annotations

import itertools
import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import omnigraph as og
from tests.support.serving import Server, serving

ACTOR, TOKEN = "act-ada", "token-ada"
SCHEMA = """
node Person {
  name: String @key
  age: I32?
  score: F64?
  born: Date?
  seen: DateTime?
  tags: [String]?
  photo: Blob?
}
node Town { name: String @key }
edge Knows: Person -> Person { since: Date? }
edge LivesIn: Person -> Town @card(0..1)
"""
POLICY = f"""version: 1
groups: {{ everybody: [{ACTOR}] }}
rules:
  - id: everything
    allow:
      actors: {{ group: everybody }}
      actions: [read, export, change]
  - id: branches
    allow:
      actors: {{ group: everybody }}
      actions: [branch_create, branch_delete, branch_merge, schema_apply]
  - id: stored
    allow: {{ actors: {{ group: everybody }}, actions: [invoke_query, admin] }}
"""
GRAPHS = 40
"""Graphs a server is started with: one for each scenario, and some to spare."""


class Lane(Protocol):
    """One way to a graph."""

    name: str

    def graph(self) -> Any:
        """Return an unused graph."""


@dataclass
class Embedded:
    """In this process."""

    folder: Path
    name: str = "embedded"
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def graph(self) -> Any:
        """Return a new graph."""
        return og.init(self.folder / str(next(self._numbers)), SCHEMA).as_actor(ACTOR)


@dataclass
class Served:
    """Through a server."""

    server: Server
    name: str
    _numbers: Iterator[int] = field(default_factory=itertools.count)
    _opened: ExitStack = field(default_factory=ExitStack)

    def graph(self) -> Any:
        """Return the next graph of the server."""
        found = og.connect(self.server.url, token=TOKEN, graph=f"g{next(self._numbers)}")
        self._opened.callback(found.close)
        return found


@contextmanager
def served_lane(folder: Path, workers: int) -> Iterator[Served]:
    """Run a server with graphs to use."""
    folder.mkdir(parents=True, exist_ok=True)
    first = Path(og.init(folder / "first", SCHEMA).uri)
    copies = [shutil.copytree(first, folder / f"g{number}") for number in range(GRAPHS)]
    with serving_graphs(copies, workers, folder) as server:
        lane = Served(server, f"http-{workers}")
        try:
            yield lane
        finally:
            lane._opened.close()


@contextmanager
def serving_graphs(
    graphs: Sequence[Path],
    workers: int,
    folder: Path,
    environment: Mapping[str, str] | None = None,
) -> Iterator[Server]:
    """Run a server of graphs, each under the name of its folder, for the actor of all lanes."""
    named = [f"--graph={graph.name}={graph}" for graph in graphs]
    (folder / "policy.yaml").write_text(POLICY)
    (folder / "tokens.json").write_text(json.dumps({ACTOR: TOKEN}))
    tokens = {"OMNIGRAPH_SERVER_BEARER_TOKENS_FILE": str(folder / "tokens.json")}
    options = [f"--policy={folder / 'policy.yaml'}", f"--workers={workers}"]
    with serving(*named, *options, environment={**tokens, **(environment or {})}) as server:
        yield server
