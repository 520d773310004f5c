"""What eight processes do to one graph at the same time, and what they write down.

Every attempt is logged before it is made, with everything it would change, and again with its
outcome: `done`, or the code of the error. A checker can therefore rebuild what must be there.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import omnigraph.graph as og
from omnigraph.commit.staged_commit import new_commit_id
from omnigraph.errors import OmniError
from omnigraph.maintain.cleanup import cleanup
from tests.support.children import Place
from tests.support.graphs import (
    CALLS_AT,
    NOTE,
    PORT,
    SHIP,
    Change,
    Prepared,
    Rows,
    commit_with_intent,
    dump,
    prepare,
    publish_prepared,
)

SHARED = ("shared/one", "shared/one/two", "shared/three")
"""Branch names several processes fight for."""


@dataclass(frozen=True, slots=True)
class Shift:
    """What one process needs to know: where, how long, with which luck, under which age floor."""

    place: Place
    log: str
    number: int
    seconds: float
    seed: int
    age_floor: float


class Worker:
    """One process: its graph, its luck, its log."""

    def __init__(self, shift: Shift) -> None:
        self.shift = shift
        self.graph: og.Graph = shift.place.open()
        self.chance = random.Random(shift.seed)
        self.turn = 0

    def attempt(self, what: str, action: Callable[[], Any], **facts: Any) -> None:
        """Log, act, log the outcome with whatever facts the action returns."""
        entry = {"what": what, **facts}
        self._write({**entry, "begun": time.monotonic()})
        try:
            answer = action()
            entry |= {"outcome": "done", **(answer if isinstance(answer, dict) else {})}
        except OmniError as error:
            entry |= {"outcome": error.code}
        self._write({**entry, "ended": time.monotonic()})

    def commit(self, *changes: Change, branch: str = "main") -> None:
        """Stage and publish once; whoever loses comes back with a new commit."""
        try:
            prepared = prepare(self.graph, *changes, branch=branch)
        except OmniError as error:
            if error.code != "branch_not_found":
                raise
            return
        self.publish(prepared, *changes)

    def publish(self, prepared: Prepared, *changes: Change) -> None:
        """Publish what is staged, under the eyes of the log."""
        self.attempt(
            "commit",
            lambda: publish_prepared(self.graph, prepared),
            id=prepared.staged.id,
            branch=prepared.branch,
            lineage_id=prepared.lineage_id,
            changes=[asdict(change) for change in changes],
        )

    def _write(self, entry: dict[str, Any]) -> None:
        with Path(self.shift.log).open("a", encoding="utf-8") as log:
            log.write(json.dumps(entry) + "\n")


def work(shift: Shift) -> int:
    """Do the job of one of eight processes until time is up; return how often."""
    jobs: Sequence[Callable[[Worker, str], None]] = (
        count,
        count,
        insert_ports,
        write_several,
        write_long,
        write_branches,
        write_branches,
        clean,
    )
    worker = Worker(shift)
    end = time.monotonic() + shift.seconds
    while time.monotonic() < end:
        worker.turn += 1
        jobs[shift.number % len(jobs)](worker, f"{shift.number}-{worker.turn}")
    return worker.turn


def count(worker: Worker, fresh: str) -> None:
    """Add one to a number that another process adds to as well."""
    seen = worker.graph.snapshot()
    ship = worker.graph.entity_at("Ship", "fixed", seen)
    assert ship is not None
    change = Change("upsert", SHIP, {"fixed": {"name": fresh, "tons": ship["tons"] + 1}})
    prepared = prepare(worker.graph, change)
    if prepared.staged.datasets[0].expected == seen.entry(SHIP).physical:
        worker.publish(prepared, change)


def insert_ports(worker: Worker, fresh: str) -> None:
    """Insert into a type few others write to, and read everything now and then."""
    worker.commit(Change("insert", PORT, {f"p{fresh}": {"city": fresh}}))
    if worker.turn % 10 == 0:
        dump(worker.graph)


def write_several(worker: Worker, fresh: str) -> None:
    """Change several types in one commit, one of them by deleting what came before."""
    first: Rows = {"e0": {"src": "fixed", "dst": "p0"}}
    call: Rows = {f"e{fresh}": {"src": "fixed", "dst": "p0", "fee": worker.turn}}
    before = f"e{worker.shift.number}-{worker.turn - 2}"
    worker.commit(
        Change("upsert", NOTE, {"always": {"text": fresh}, f"n{fresh}": {}}),
        Change("upsert" if worker.turn % 3 else "overwrite", CALLS_AT, {**first, **call}),
    )
    worker.commit(Change("delete", CALLS_AT, {before: {}}))


def write_long(worker: Worker, fresh: str) -> None:
    """Write under an intent, which recovery may take for abandoned at any moment."""
    change = Change("insert", PORT, {f"q{fresh}": {"city": fresh}})
    commit_id = new_commit_id()
    worker.attempt(
        "commit",
        lambda: commit_with_intent(worker.graph, change, commit_id=commit_id),
        id=commit_id,
        branch="main",
        lineage_id=None,
        changes=[asdict(change)],
    )


def write_branches(worker: Worker, fresh: str) -> None:
    """Create, write and delete branches whose names another process uses too."""
    name = worker.chance.choice(SHARED)
    branches, tags = worker.graph.branches, worker.graph.tags
    match worker.chance.randrange(12):
        case 0 | 1 | 2:
            # An older commit, but not the one before there was anything.
            older = worker.graph.commits.list()[:-1][:2][-1].id
            source = worker.chance.choice(["main", *SHARED, older])
            create: Callable[[], Any] = lambda: asdict(branches.create(name, source))  # noqa: E731
            worker.attempt("branch", lambda: {"lineage_id": create()["lineage_id"]}, name=name)
        case 3 | 4:
            force = worker.chance.random() < 0.5
            worker.attempt("unbranch", lambda: branches.delete(name, force=force), name=name)
        case 5:
            worker.attempt("tag", lambda: tags.create(f"t{fresh}"), name=f"t{fresh}")
        case 6 if tags.list():
            gone = worker.chance.choice(tags.list()).name
            worker.attempt("untag", lambda: tags.delete(gone), name=gone)
        case _:
            worker.commit(Change("insert", NOTE, {f"b{fresh}": {"text": name}}), branch=name)


def clean(worker: Worker, _: str) -> None:
    """Clean up beside the writers, take slow ones for dead, and verify what is left."""
    graph, floor = worker.graph, timedelta(seconds=worker.shift.age_floor)
    worker.attempt(
        "cleanup",
        lambda: cleanup(graph._manifest, keep=3, dry_run=False, age_floor=floor).to_json(),
    )
    worker.attempt("recover", lambda: graph.recover(stale_after=timedelta(0)) and None)
    worker.attempt("verify", lambda: graph.verify().to_json())
    time.sleep(0.2)
