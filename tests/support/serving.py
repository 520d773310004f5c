"""Start real servers: `omnigraph serve` on a port of its own, as people start it.

A server of a test about something else starts from a process that has made its imports.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

import omnigraph.graph as og
from tests.support.preloaded_cli import Started, warm
from tests.support.wire_contract import Held

SCHEMA = """
node Person { name: String @key  age: I32?  score: F64?  born: Date?  seen: DateTime? }
node Doc { slug: String @key  title: String?  body: Blob? }
edge Knows: Person -> Person { since: Date? }
"""
STORED = """
query adults($min: I32) @description("People of an age") @instruction("Ask for an age") {
  match { $p: Person  $p.age >= $min }
  return { $p.name as name, $p.age as age }
  order { name }
}
query add_person($name: String, $age: I32?) {
  insert Person { name: $name, age: $age }
}
"""
ALL_PEOPLE = """
query people() {
  match { $p: Person }
  return { $p.name as name, $p.age as age }
  order { name }
}
"""
INSERT = "query add($name: String, $age: I32?) { insert Person { name: $name, age: $age } }"
UPDATE = (
    "query set($name: String, $age: I32) { update Person set { age: $age } where name = $name }"
)
TOKENS = {"act-ada": "token-ada", "act-bob": "token-bob", "act-eve": "token-eve"}
PATIENCE = 120.0
"""Seconds after which something that should have happened is a failure."""


@dataclass(slots=True)
class Server:
    """A server that runs."""

    process: subprocess.Popen[str] | Started
    url: str
    log: deque[str] = field(default_factory=lambda: deque(maxlen=5_000))

    def client(self, token: str | None = None, **options: Any) -> httpx.Client:
        """Return a client; `token` says who it is."""
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        return Held(base_url=self.url, headers=headers, timeout=PATIENCE, **options)

    @property
    def address(self) -> tuple[str, int]:
        """Where it listens."""
        host, _, port = self.url.removeprefix("http://").rpartition(":")
        return host, int(port)

    def stop(self) -> int:
        """Ask it to stop, and return how it ended."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE)


@contextmanager
def serving(
    *arguments: str | Path,
    environment: Mapping[str, str] | None = None,
    scheme: str = "http",
    command: Sequence[str] = ("serve",),
    preloaded: bool = True,
) -> Iterator[Server]:
    """Run `omnigraph serve` with some arguments within the block.

    Only what is not `preloaded` ends as any process of Python does, and has a maintenance process,
    which takes longer to start than most of these tests, unless arguments are about maintenance.
    """
    words = [*command, "--bind", "127.0.0.1:0", *map(str, arguments)]
    if preloaded and command == ("serve",) and "--maintenance" not in " ".join(words):
        words.append("--no-maintenance")
    process = _start(words, {**_clean(), **(environment or {})}, preloaded)
    assert process.stdout is not None, "it has a pipe"
    assert process.stderr is not None, "it has a pipe"
    server = Server(process, "")
    reader = threading.Thread(target=server.log.extend, args=(process.stderr,), daemon=True)
    reader.start()
    try:
        line = process.stdout.readline()
        if not line.startswith("OMNIGRAPH_LISTEN_ADDR="):
            process.wait(PATIENCE)
            reader.join(PATIENCE)
            raise AssertionError("".join(server.log))
        server.url = f"{scheme}://{line.removeprefix('OMNIGRAPH_LISTEN_ADDR=').strip()}"
        yield server
    finally:
        if process.poll() is None:
            server.stop()
        reader.join(PATIENCE)
        process.stdout.close()
        process.stderr.close()


def _start(
    words: Sequence[str], environment: Mapping[str, str], preloaded: bool
) -> subprocess.Popen[str] | Started:
    if preloaded:
        return warm().start(words, Path.cwd(), environment)
    return subprocess.Popen(
        [sys.executable, "-m", "omnigraph.cli", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=dict(environment),
    )


def make_graph(folder: Path, schema: str = SCHEMA) -> str:
    """Make a graph and return where it is."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    return og.init(folder, schema).uri


def stored_folder(folder: Path, text: str = STORED) -> Path:
    """Make a folder of stored queries."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "people.gq").write_text(text)
    return folder


def _clean() -> dict[str, str]:
    """Return the environment without what would tell a server who may ask."""
    return {name: text for name, text in os.environ.items() if not name.startswith("OMNIGRAPH_")}
