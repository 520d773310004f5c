"""Perform single operations on a graph, and state what each makes of a known state.

`observed` reads everything people can see of a graph; `expected` computes, without any storage,
what an operation that landed makes of it. Comparing both is how crash tests know old from new.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import pairwise
from typing import Any

import omnigraph.graph as og
from omnigraph.commit.model import Commit
from tests.support.graphs import (
    CALLS_AT,
    NOTE,
    PORT,
    SHIP,
    Change,
    Dump,
    clean_at_once,
    commit,
    commit_with_intent,
    dump,
)

COMMITS = ("insert", "upsert", "delete", "overwrite", "several", "add", "widen", "intent")
"""The kinds that publish a commit."""
NAMES = ("branch", "unbranch", "disown", "tag", "untag")
"""The kinds that change names; `disown` deletes a branch and hands its descendants on."""


FIRST = (
    Change("insert", SHIP, {"fixed": {"name": "F", "tons": 1}, "idle": {"name": "I"}}),
    Change("insert", PORT, {"p0": {"city": "P", "depth": 3}}),
    Change("insert", NOTE, {"always": {"text": "A"}}),
    Change("insert", CALLS_AT, {"e0": {"src": "fixed", "dst": "p0"}}),
)


def populate(graph: og.Graph) -> og.Graph:
    """Give every type an entity that stays, and return the graph."""
    commit(graph, *FIRST)
    return graph


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation; `number` makes its ids and names its own.

    `branch` is what it works on or starts from; `source` is what a new branch or tag points to: a
    branch, or a commit of `branch`; or the tag to delete.
    """

    kind: str
    number: int
    branch: str = "main"
    source: str = "main"

    @property
    def name(self) -> str:
        """The name a new branch or tag gets."""
        return f"{self.kind}/{self.number}"


@dataclass(frozen=True, slots=True)
class Line:
    """A branch: where it comes from, its commits with the newest first, its entities."""

    parent: str | None
    commits: tuple[str, ...]
    rows: Dump


@dataclass(frozen=True, slots=True)
class State:
    """Everything people can see of a graph."""

    branches: Mapping[str, Line]
    tags: Mapping[str, str] = field(default_factory=dict)

    def known_as_new(self, before: State) -> State:
        """Return the same state with every commit that `before` does not know called `new`."""
        known = {id_ for line in before.branches.values() for id_ in line.commits}
        known |= set(before.tags.values())

        def called(commit_id: str) -> str:
            return commit_id if commit_id in known else "new"

        branches = {
            name: dataclasses.replace(line, commits=tuple(map(called, line.commits)))
            for name, line in self.branches.items()
        }
        return State(branches, {name: called(id_) for name, id_ in self.tags.items()})


def difference(found: State, wanted: State) -> list[str]:
    """Say where two states differ, for people who look for the reason."""
    said = []
    if found.tags != wanted.tags:
        said.append(f"tags {found.tags}, not {wanted.tags}")
    if found.branches.keys() != wanted.branches.keys():
        said.append(f"branches {list(found.branches)}, not {list(wanted.branches)}")
    for name in found.branches.keys() & wanted.branches.keys():
        one, other = found.branches[name], wanted.branches[name]
        if one.parent != other.parent:
            said.append(f"{name} descends from {one.parent}, not {other.parent}")
        if one.commits != other.commits:
            said.append(f"{name} has commits {one.commits[:4]}…, not {other.commits[:4]}…")
        said += [
            f"{name} {key} has {one.rows[key]}, not {other.rows[key]}"
            for key in one.rows
            if one.rows[key] != other.rows[key]
        ]
    return said


def observed(graph: og.Graph) -> State:
    """Read the whole visible state of a graph; every branch must be one chain of commits."""
    branches = {}
    for name in graph.branches.list():
        commits = graph.commits.list(name)
        for child, parent in pairwise(commits):
            assert child.parents == (parent.id,), f"{name}: {child.id} is not on {parent.id}"
        parent_name = graph.branches.get(name).parent
        branches[name] = Line(parent_name, tuple(c.id for c in commits), dump(graph, name))
    return State(branches, {tag.name: tag.commit_id for tag in graph.tags.list()})


def perform(graph: og.Graph, operation: Operation) -> str:
    """Perform an operation; return the id of the commit it made, if any."""
    made: Commit | None = None
    match operation.kind:
        case "branch":
            graph.branches.create(operation.name, operation.source)
        case "unbranch" | "disown":
            graph.branches.delete(operation.branch, force=operation.kind == "disown")
        case "tag":
            graph.tags.create(operation.name, operation.source)
        case "untag":
            graph.tags.delete(operation.source)
        case "recover":
            graph.recover(stale_after=timedelta(0))
        case "cleanup":
            clean_at_once(graph, keep=1)
        case "intent":
            made = commit_with_intent(graph, *_changes(operation), branch=operation.branch)
        case _:
            made = commit(graph, *_changes(operation), branch=operation.branch)
    return made.id if made is not None else ""


def expected(
    before: State, operation: Operation, commit_id: str = "new", fork: Line | None = None
) -> State:
    """Return what an operation that landed makes of a state.

    A branch made from a commit is given as `fork`; one made from a branch is known.
    """
    branches, tags = dict(before.branches), dict(before.tags)
    match operation.kind:
        case "branch":
            line = fork or before.branches[operation.source]
            branches[operation.name] = dataclasses.replace(line, parent=operation.branch)
        case "unbranch" | "disown":
            gone = branches.pop(operation.branch)
            for name, line in branches.items():
                if line.parent == operation.branch:
                    branches[name] = dataclasses.replace(line, parent=gone.parent)
        case "tag":
            tags[operation.name] = before.branches[operation.source].commits[0]
        case "untag":
            del tags[operation.source]
        case "recover" | "cleanup":
            pass
        case _:
            old = branches[operation.branch]
            rows = applied(old.rows, _changes(operation))
            branches[operation.branch] = Line(old.parent, (commit_id, *old.commits), rows)
    return State(branches, tags)


def applied(before: Dump, changes: tuple[Change, ...]) -> Dump:
    """Return what changes make of the entities of a branch, in the order they are given."""
    rows = dict(before)
    for change in changes:
        old = rows[change.table_key]
        columns = dict.fromkeys(_columns(before, change.table_key))
        new = {id_: {**columns, **values} for id_, values in change.rows.items()}
        match change.verb:
            case "insert" | "upsert":
                rows[change.table_key] = {**old, **new}
            case "delete":
                rows[change.table_key] = {k: v for k, v in old.items() if k not in change.rows}
            case "overwrite":
                rows[change.table_key] = new
            case "add_column":
                rows[change.table_key] = {k: {**v, change.column: None} for k, v in old.items()}
            case "widen_column":
                wide = {k: {**v, change.wider: v[change.column]} for k, v in old.items()}
                rows[change.table_key] = wide
    return rows


def _columns(rows: Dump, table_key: str) -> list[str]:
    """Return the columns of a type; `populate` sees to it that there is an entity to ask."""
    return list(next(iter(rows[table_key].values())))


def _changes(operation: Operation) -> tuple[Change, ...]:
    """Return what an operation changes; it works on whatever was done before it."""
    n = operation.number
    fixed: dict[str, dict[str, Any]] = {"fixed": {"name": f"v{n}", "tons": n}}
    match operation.kind:
        case "insert":
            return (Change("insert", SHIP, {f"i{n}": {"name": "I", "tons": n}}),)
        case "upsert":
            return (Change("upsert", SHIP, {**fixed, f"u{n}": {"name": "U"}}),)
        case "delete":
            return (Change("delete", SHIP, {f"i{n - 1}": {}, f"u{n - 2}": {}, "fixed": {}}),)
        case "overwrite":
            return (Change("overwrite", NOTE, {f"o{n}": {"text": "O"}, "always": {}}),)
        case "several":
            call = {f"e{n}": {"src": "fixed", "dst": f"p{n}", "fee": n}}
            return (
                Change("insert", PORT, {f"p{n}": {"city": "P", "depth": n}}),
                Change("upsert", SHIP, fixed),
                Change("insert", CALLS_AT, call),
            )
        case "add":
            return (Change("add_column", NOTE, column=f"c{n}"),)
        case "widen":
            return (Change("widen_column", PORT, column="depth", wider=f"depth{n}"),)
        case "intent":
            return (Change("insert", PORT, {f"q{n}": {"city": "Q"}}),)
    raise AssertionError(f"{operation.kind} publishes no commit")
