"""The queries that run now: what they are, how to cancel them, and which of them were slow.

A process knows its own. Where several processes serve a graph, each reaches the others through
`PeerQueries`.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from secrets import token_hex
from threading import RLock
from typing import Any, Protocol

from omnigraph.errors import NotFound
from omnigraph.notebook.display import ReportDisplay
from omnigraph.query.limits import Cancellation

DIGEST_LENGTH = 16
"""Hexadecimal digits of the digest of a query's text."""
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_NUMBER = re.compile(r"(?<=[ (\[])-?\d[\w.+-]*")
_slow_log = logging.getLogger("omnigraph.slow_query")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningQuery(ReportDisplay):
    """A query or an analysis that runs: never its text, which may contain values."""

    id: str
    graph: str
    """The address of the graph in storage."""
    actor: str | None
    name: str
    digest: str
    """What the text hashes to: equal for equal texts."""
    commit_id: str
    started_at: datetime
    seconds: float
    operator: str | None
    """The operator that checked its limits last."""
    process_id: int

    def to_json(self) -> dict[str, Any]:
        """Return the facts as plain JSON values."""
        return {
            "query_id": self.id,
            "query_name": self.name,
            "query_digest": self.digest,
            "actor_id": self.actor,
            "graph_commit_id": self.commit_id,
            "started_at": self.started_at,
            "seconds": round(self.seconds, 3),
            "operator": self.operator,
            "process_id": self.process_id,
        }


class PeerQueries(Protocol):
    """The running queries of other processes that serve the same graphs."""

    def list(self, graph: str) -> list[RunningQuery]:
        """Return the queries of a graph that run there."""
        ...

    def cancel(self, id_: str, graph: str, owner: str | None) -> bool:
        """Cancel a query of an owner, by default of any; return whether it runs there."""
        ...


@dataclass(slots=True, kw_only=True)
class QueryRecord:
    """A query before and while it runs; a budget reports when it begins, goes on and ends."""

    registry: RunningQueries
    graph: str
    actor: str | None
    name: str
    text: str
    commit_id: str
    plan: Callable[[], str]
    id: str = field(default_factory=lambda: token_hex(8))
    operator: str | None = None
    started_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    _begun: float = field(default_factory=time.monotonic)
    _cancellation: Cancellation = field(default_factory=Cancellation)

    def begin(self) -> None:
        """Show the query among those that run."""
        self.registry.add(self)

    def check(self, operator: str) -> None:
        """Note the operator; raise QueryCancelled when the query was cancelled."""
        self.operator = operator
        self._cancellation.check(operator)

    def end(self) -> None:
        """Show the query no more; log it if it was slow."""
        self.registry.remove(self)

    def cancel(self) -> None:
        """Let the query stop at its next check."""
        self._cancellation.set()

    @property
    def seconds(self) -> float:
        """How long it runs."""
        return time.monotonic() - self._begun

    @property
    def digest(self) -> str:
        """What its text hashes to."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:DIGEST_LENGTH]

    def snapshot(self) -> RunningQuery:
        """Return what it is now."""
        return RunningQuery(
            id=self.id,
            graph=self.graph,
            actor=self.actor,
            name=self.name,
            digest=self.digest,
            commit_id=self.commit_id,
            started_at=self.started_at,
            seconds=self.seconds,
            operator=self.operator,
            process_id=os.getpid(),
        )


class RunningQueries:
    """The queries of this process, and those of its peers if it has any."""

    def __init__(self) -> None:
        self._records: dict[str, QueryRecord] = {}
        # The collector may end a stream that nothing reads while this thread holds the lock.
        self._lock = RLock()
        self.peers: PeerQueries | None = None
        self.slow_seconds: float | None = None
        """Seconds from which on a query is logged when it ends; None logs nothing."""

    def add(self, record: QueryRecord) -> None:
        """Add a query that begins."""
        with self._lock:
            self._records[record.id] = record

    def remove(self, record: QueryRecord) -> None:
        """Remove a query that ended, if it is here."""
        with self._lock:
            known = self._records.pop(record.id, None)
        if known is not None and self.slow_seconds is not None:
            seconds = record.seconds
            if seconds >= self.slow_seconds:
                _log_slow(record, seconds)

    def here(self, graph: str) -> list[RunningQuery]:
        """Return the queries of a graph in this process."""
        with self._lock:
            records = list(self._records.values())
        return [record.snapshot() for record in records if record.graph == graph]

    def list(self, graph: str, owner: str | None = None) -> list[RunningQuery]:
        """Return the queries of a graph in all processes that serve it, the oldest first.

        With an `owner`, only those of that actor.
        """
        queries = self.here(graph) + (self.peers.list(graph) if self.peers is not None else [])
        owned = [query for query in queries if owner is None or query.actor == owner]
        return sorted(owned, key=lambda query: (query.started_at, query.id))

    def cancel_here(self, id_: str, graph: str, owner: str | None) -> bool:
        """Cancel a query of this process; return whether it runs here."""
        with self._lock:
            record = self._records.get(id_)
        if record is None or record.graph != graph or owner not in (None, record.actor):
            return False
        record.cancel()
        return True

    def cancel(self, id_: str, graph: str, owner: str | None = None) -> bool:
        """Cancel a query of an owner, by default of any; return whether it runs."""
        if self.cancel_here(id_, graph, owner):
            return True
        return self.peers is not None and self.peers.cancel(id_, graph, owner)


RUNNING_QUERIES = RunningQueries()
"""The queries of this process."""


def unknown_running_query(id_: str) -> NotFound:
    """Return the error for a query that does not run, or not for this actor."""
    message = f"no query with the ID '{id_}' runs; it may have ended"
    return NotFound(message, code="running_query_not_found", query=id_)


def hide_literals(plan: str) -> str:
    """Return the text of a plan with a `?` for each text and number that the query contains."""
    return _NUMBER.sub("?", _STRING.sub("?", plan))


def _log_slow(record: QueryRecord, seconds: float) -> None:
    facts = {
        "query": record.name,
        "digest": record.digest,
        "milliseconds": round(seconds * 1000, 1),
        "actor": record.actor,
        "read_commit": record.commit_id,
        "plan": hide_literals(record.plan()),
    }
    _slow_log.warning("slow query '%s' took %.3f s", record.name, seconds, extra=facts)
