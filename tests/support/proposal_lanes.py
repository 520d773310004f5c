"""The ways to proposals: embedded, through a server, and by the command line.

Every lane takes the same calls and answers with the wire form, so that a scenario runs on each.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import omnigraph as og
from omnigraph.errors import OmniError
from omnigraph.service.stored_checks import read_checks
from tests.support.program import omnigraph
from tests.support.serving import serving

SCHEMA = "node Port { code: String @key  depth: I64?  name: String? }\n"
CHECKS = """
query too_deep() @check("ports are shallower than 100 m") {
  match { $p: Port  $p.depth >= 100 }
  return { $p.id as id, $p.depth as depth }
  order { id }
}
query ports() { match { $p: Port } return { $p.code as code } }
"""
ADA, BOB, EVE = "act-ada", "act-bob", "act-eve"
TOKENS = {actor: f"token-{actor}" for actor in (ADA, BOB, EVE)}
POLICY = f"""version: 1
groups: {{ everybody: [{ADA}, {BOB}, {EVE}], reviewers: [{BOB}, {EVE}] }}
rules:
  - id: data
    allow: {{ actors: {{ group: everybody }}, actions: [read, export, change] }}
  - id: branches
    allow:
      actors: {{ group: everybody }}
      actions: [branch_create, branch_delete, branch_merge, schema_apply]
  - id: rest
    allow: {{ actors: {{ group: everybody }}, actions: [invoke_query, admin] }}
"""
GRAPHS = 40


class Refused(Exception):
    """A call was refused, with this error code."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code


class Actor(Protocol):
    """One actor on one graph; every call answers with the wire form, or raises Refused."""

    def call(self, verb: str, *arguments: Any, **options: Any) -> Any:
        """Do something about proposals."""

    def mutate(self, text: str, branch: str = "main") -> None:
        """Change a branch."""


@dataclass
class Library:
    """By the Python API, on an embedded or a remote graph."""

    graph: Any

    def call(self, verb: str, *arguments: Any, **options: Any) -> Any:
        try:
            return getattr(self, f"_{verb}")(*arguments, **options)
        except OmniError as error:
            raise Refused(error.code, error.message) from error

    def mutate(self, text: str, branch: str = "main") -> None:
        try:
            self.graph.mutate(text, branch=branch)
        except OmniError as error:
            raise Refused(error.code, error.message) from error

    def _branch(self, name: str, from_: str = "main") -> None:
        self.graph.branches.create(name, from_=from_)

    def _delete_branch(self, name: str) -> None:
        self.graph.branches.delete(name)

    def _create(self, source: str, into: str, title: str, **options: Any) -> Any:
        return self.graph.proposals.create(source, into=into, title=title, **options).to_json()

    def _show(self, number: int) -> Any:
        return self.graph.proposals.get(number).to_json()

    def _list(self, **options: Any) -> Any:
        return [one.to_json() for one in self.graph.proposals.list(**options)]

    def _comment(self, number: int, body: str, **options: Any) -> Any:
        return self.graph.proposals.get(number).comment(body, **options).to_json()

    def _resolve(self, number: int, comment: int, *, resolved: bool = True) -> Any:
        return self.graph.proposals.get(number).resolve(comment, resolved=resolved).to_json()

    def _review(self, number: int, verdict: str, body: str = "", **options: Any) -> Any:
        return self.graph.proposals.get(number).review(verdict, body, **options).to_json()

    def _check(self, number: int) -> Any:
        return [run.to_json() for run in self.graph.proposals.get(number).run_checks()]

    def _merge(self, number: int, **options: Any) -> Any:
        return self.graph.proposals.get(number).merge(**options).to_json()

    def _preview(self, number: int) -> Any:
        return self.graph.proposals.get(number).preview().merge.to_json()

    def _diff(self, number: int) -> Any:
        return [change.to_json() for change in self.graph.proposals.get(number).diff()]

    def _close(self, number: int, comment: str | None = None) -> Any:
        return self.graph.proposals.get(number).close(comment).to_json()

    def _reopen(self, number: int, comment: str | None = None) -> Any:
        return self.graph.proposals.get(number).reopen(comment).to_json()

    def _edit(self, number: int, **options: Any) -> Any:
        return self.graph.proposals.get(number).edit(**options).to_json()

    def _events(self, after: str | None = None, **options: Any) -> Any:
        return self.graph.proposals.events(after, **options).to_json()

    def _protect(self, rules: Sequence[Mapping[str, Any]]) -> None:
        self.graph.protection.set(rules)

    def _unprotect(self) -> None:
        self.graph.protection.clear()

    def _ports(self, at: str = "main") -> Any:
        query = (
            "query q() { match { $p: Port } "
            "return { $p.code as code, $p.depth as depth } order { code } }"
        )
        return self.graph.query(query, at=at).rows


@dataclass
class Program:
    """By the command line."""

    uri: str
    actor: str
    folder: Path
    policy: Path

    def call(self, verb: str, *arguments: Any, **options: Any) -> Any:
        return getattr(self, f"_{verb}")(*arguments, **options)

    def mutate(self, text: str, branch: str = "main") -> None:
        self._run("mutate", "-e", text, "--branch", branch)

    def _run(self, *words: Any, ok: tuple[int, ...] = (0,)) -> Any:
        ran = omnigraph(
            *map(str, words), "--store", self.uri, "--json", "--quiet", "--as", self.actor
        )
        if ran.code not in ok or (not ran.out and ran.err):
            raise _refused(ran.out, ran.err)
        facts = json.loads(ran.out) if ran.out.strip() else None
        if isinstance(facts, dict) and "error" in facts:
            raise _refused(ran.out, "")
        return facts

    def _branch(self, name: str, from_: str = "main") -> None:
        self._run("branch", "create", name, "--from", from_)

    def _delete_branch(self, name: str) -> None:
        self._run("branch", "delete", name)

    def _create(
        self,
        source: str,
        into: str,
        title: str,
        description: str = "",
        reviewers: Sequence[str] = (),
    ) -> Any:
        names = [word for name in reviewers for word in ("--reviewer", name)]
        text = ["--body", description] if description else []
        return self._run("proposal", "create", source, "--into", into, "-t", title, *names, *text)

    def _show(self, number: int) -> Any:
        return self._run("proposal", "show", number)

    def _list(self, state: str = "open", **options: Any) -> Any:
        words = [w for name, value in options.items() for w in (f"--{name}", value)]
        return self._run("proposal", "list", "--state", state, *words)["proposals"]

    def _comment(self, number: int, body: str, on: Any = None, thread: int | None = None) -> Any:
        words = [w for part in (on or ()) for w in ("--on", part)]
        words += [] if thread is None else ["--reply-to", thread]
        return self._run("proposal", "comment", number, "--body", body, *words)

    def _resolve(self, number: int, comment: int, *, resolved: bool = True) -> Any:
        option = "--resolve" if resolved else "--unresolve"
        return self._run("proposal", "comment", number, option, comment)

    def _review(self, number: int, verdict: str, body: str = "", commit: str | None = None) -> Any:
        words = [] if commit is None else ["--commit", commit]
        words += ["--body", body] if body else []
        return self._run("proposal", "review", number, verdict, *words)

    def _check(self, number: int) -> Any:
        words = ("proposal", "check", number, "--checks", self.folder)
        return self._run(*words, ok=(0, 1))["checks"]

    def _merge(self, number: int, resolve: Any = None, delete_branch: bool = False) -> Any:
        words = [] if resolve is None else ["--resolve", resolve]
        words += ["--delete-branch"] if delete_branch else []
        return self._run("proposal", "merge", number, "--checks", self.folder, *words)

    def _preview(self, number: int) -> Any:
        return self._run("proposal", "merge", number, "--dry-run", ok=(0, 1))

    def _diff(self, number: int) -> Any:
        return self._run("proposal", "diff", number)["changes"]

    def _close(self, number: int, comment: str | None = None) -> Any:
        words = [] if comment is None else ["--comment", comment]
        return self._run("proposal", "close", number, *words)

    def _reopen(self, number: int, comment: str | None = None) -> Any:
        words = [] if comment is None else ["--comment", comment]
        return self._run("proposal", "reopen", number, *words)

    def _edit(
        self,
        number: int,
        title: str | None = None,
        description: str | None = None,
        reviewers: Sequence[str] = (),
    ) -> Any:
        words = [] if title is None else ["--title", title]
        words += [] if description is None else ["--body", description]
        words += [w for name in reviewers for w in ("--reviewer", name)]
        return self._run("proposal", "edit", number, *words)

    def _events(
        self, after: str | None = None, proposal: int | None = None, limit: int = 100
    ) -> Any:
        words = ["--limit", limit] + ([] if after is None else ["--after", after])
        words += [] if proposal is None else ["--proposal", proposal]
        return self._run("proposal", "events", *words)

    def _protect(self, rules: Sequence[Mapping[str, Any]]) -> None:
        file = self.folder.parent / "rules.json"
        file.write_text(json.dumps(list(rules)))
        self._run("protection", "set", "--rules", file)

    def _unprotect(self) -> None:
        self._run("protection", "clear")

    def _ports(self, at: str = "main") -> Any:
        query = (
            "query q() { match { $p: Port } "
            "return { $p.code as code, $p.depth as depth } order { code } }"
        )
        return self._run("query", "-e", query, "--branch", at)["rows"]


def _refused(out: str, err: str) -> Refused:
    text = err or out
    try:
        facts = json.loads(text.strip().splitlines()[-1] if err else text)
        facts = facts.get("error", facts)
        return Refused(facts["code"], facts["message"])
    except (ValueError, KeyError, TypeError, IndexError):
        found = re.search(r"error\[(\w+)\]: (.*)", text)
        return Refused(found[1], found[2]) if found else Refused("", text)


@dataclass
class ProposalLane:
    """One way; `session()` returns a function from actors to what they use on a new graph."""

    name: str
    folder: Path
    queries: Path
    policy: Path
    url: str | None = None
    numbers: Iterator[int] = field(default_factory=itertools.count)

    def session(self) -> Any:
        """Return the actors of a new graph."""
        number = next(self.numbers)
        if self.name == "embedded":
            graph = og.init(self.folder / f"e{number}", SCHEMA, policy=self.policy, actor=ADA)
            checks = read_checks(self.queries)
            return lambda actor: Library(graph.as_actor(actor).with_checks(checks))
        if self.name == "cli":
            uri = og.init(self.folder / f"c{number}", SCHEMA).uri
            return lambda actor: Program(uri, actor, self.queries, self.policy)
        assert self.url is not None, "it is served"
        url = self.url
        return lambda actor: Library(og.connect(url, token=TOKENS[actor], graph=f"g{number}"))


@contextmanager
def proposal_lane(name: str, folder: Path) -> Iterator[ProposalLane]:
    """Prepare a lane: `embedded`, `cli`, or `http-N` with N workers."""
    queries, policy = folder / "queries", folder / "policy.yaml"
    queries.mkdir()
    (queries / "checks.gq").write_text(CHECKS)
    policy.write_text(POLICY)
    lane = ProposalLane(name, folder, queries, policy)
    if not name.startswith("http"):
        yield lane
        return
    (folder / "tokens.json").write_text(json.dumps(TOKENS))
    graphs = [Path(og.init(folder / f"g{number}", SCHEMA).uri) for number in range(GRAPHS)]
    words = [f"--graph={graph.name}={graph}" for graph in graphs]
    words += [f"--policy={policy}", f"--queries={queries}", f"--workers={name[-1]}"]
    tokens = {"OMNIGRAPH_SERVER_BEARER_TOKENS_FILE": str(folder / "tokens.json")}
    with serving(*words, environment=tokens) as server:
        lane.url = server.url
        yield lane
