"""One agent on a pipe and one on the web, each with a graph of its own, for all tests."""

from dataclasses import dataclass

import pytest

from tests.support.agents import Agent, agent, on_pipe, on_web
from tests.support.serving import STORED, make_graph, serving, stored_folder

# The name of the last is that of a tool.
QUERIES = f"""{STORED}
query kinds($i: I32, $b: I64, $f: F64, $d: Date, $t: DateTime, $ok: Bool, $names: [String]?) {{
  match {{ $p: Person  $p.age = $i  $p.score = $f  $p.born = $d }}
  return {{ $p.name as name }}
}}
query health() {{
  match {{ $p: Person }}
  return {{ count($p) as people }}
}}
"""


@dataclass(frozen=True)
class Connected:
    agent: Agent
    uri: str


@pytest.fixture(scope="session", params=["pipe", "web"])
def connected(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    uri, queries = make_graph(folder / "people"), stored_folder(folder / "queries", QUERIES)
    if request.param == "pipe":
        with agent(on_pipe("--store", uri, "--queries", queries)) as found:
            yield Connected(found, uri)
        return
    with (
        serving(
            f"--graph=people={uri}",
            f"--queries={queries}",
            "--unauthenticated",
            command=["mcp", "--http"],
        ) as server,
        agent(on_web(f"{server.url}/graphs/people/mcp", mode="legacy")) as found,
    ):
        yield Connected(found, uri)
