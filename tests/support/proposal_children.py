"""Processes that work on the proposals of one graph at once, or die while they merge one."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import omnigraph as og
from omnigraph.errors import OmniError
from omnigraph.service.stored_checks import read_checks
from tests.support.children import drain, finish, start

SCHEMA = "node Port { code: String @key  depth: I64? }\n"
CHECKS = """
query too_deep() @check("ports are shallower than 100 m") {
  match { $p: Port  $p.depth >= 100 }
  return { $p.id as id }
}
"""
ADA, BOB = "act-ada", "act-bob"


def add(graph: Any, code: str, branch: str = "main", depth: int = 1) -> None:
    """Add a port."""
    graph.mutate(f'query q() {{ insert Port {{ code: "{code}", depth: {depth} }} }}', branch=branch)


def ports(graph: Any, at: str = "main") -> list[str]:
    """Return the codes of all ports."""
    query = "query q() { match { $p: Port } return { $p.code as code } order { code } }"
    return [row["code"] for row in graph.query(query, at=at).rows]


def opened(uri: str, actor: str = ADA) -> Any:
    """Open a graph with its checks, with nothing cached."""
    graph = og.open(uri, actor=actor)
    checks = Path(uri).parent / "checks.gq"
    return graph.with_checks(read_checks(checks)) if checks.is_file() else graph


def merge_to_step(uri: str, step: int) -> str | None:
    """Merge proposal 1 in a child killed at its `step`-th step; return the name of the step."""
    return _killed(_merge, uri, step)


def protect_to_step(uri: str, step: int, rules: list[dict[str, Any]]) -> str | None:
    """Store rules in a child killed at its `step`-th step; return the name of the step."""
    return _killed(_protect, uri, step, rules)


def _killed(work: Callable[..., None], uri: str, step: int, *arguments: Any) -> str | None:
    process, connection = start(_child_to_step, work, uri, step, arguments)
    code = finish(process)
    reported = drain(connection)
    connection.close()
    if code == 0:
        assert reported == ["done"], reported
        return None
    assert code == -signal.SIGKILL, f"the child failed: {reported}"
    return str(reported[-1])


def _child_to_step(
    connection: Connection, work: Callable[..., None], uri: str, step: int, arguments: Any
) -> None:
    left = step

    def observe(name: str) -> None:
        nonlocal left
        if left == 0:
            connection.send(name)
            os.kill(os.getpid(), signal.SIGKILL)
        left -= 1

    work(opened(uri), observe, *arguments)
    connection.send("done")


def _merge(graph: Any, observe: Callable[[str], None]) -> None:
    proposal = graph.proposals.get(1)
    graph._manifest.datasets.observe = observe
    proposal.merge(delete_branch=True)


def _protect(graph: Any, observe: Callable[[str], None], rules: list[dict[str, Any]]) -> None:
    graph._manifest.datasets.observe = observe
    graph.protection.set(rules)


def at_once(uri: str, works: list[tuple[str, tuple[Any, ...]]]) -> list[Any]:
    """Run functions of this module in one process each, all released together."""
    children = [start(_worker, uri, name, arguments) for name, arguments in works]
    for _, connection in children:
        assert connection.recv() == "ready"
    for _, connection in children:
        connection.send("go")
    answers = []
    for process, connection in children:
        assert finish(process) == 0
        answers.append(drain(connection)[-1])
        connection.close()
    return answers


def _worker(connection: Connection, uri: str, name: str, arguments: tuple[Any, ...]) -> None:
    graph = opened(uri)
    connection.send("ready")
    connection.recv()
    connection.send(WORK[name](graph, *arguments))


def converse(graph: Any, worker: int, rounds: int) -> list[tuple[int, int, str]]:
    """Comment, review and create proposals; return each acknowledged event."""
    chance = random.Random(worker)
    graph = graph.as_actor(f"act-{worker}")
    done = []
    for number in range(rounds):
        text = f"{worker}-{number}"
        proposal = graph.proposals.get(chance.randint(1, 3))
        if chance.random() < 0.5:
            id_ = proposal.comment(text).id
        else:
            id_ = proposal.review("comment", text).id
        done.append((proposal.number, id_, text))
    branch = f"own-{worker}"
    graph.branches.create(branch)
    add(graph, f"W{worker}", branch)
    made = graph.proposals.create(branch, into="main", title=branch)
    done.append((made.number, 1, branch))
    return done


def settle(graph: Any, verb: str, number: int, actor: str) -> str:
    """Merge or close a proposal; return the commit, `closed`, or the code of the error."""
    proposals = graph.as_actor(actor).proposals
    try:
        proposal = proposals.get(number)
        if verb == "merge":
            return str(proposal.merge().commit.id)
        proposal.close()
    except OmniError as error:
        return error.code
    return "closed"


WORK: dict[str, Callable[..., Any]] = {"converse": converse, "settle": settle}
