"""This module is the parts of a remote graph: branches, tags, commits, changes, schema."""

from __future__ import annotations

import os
import tempfile
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import IO, Any
from urllib.parse import quote

import msgspec

from omnigraph.catalog import Catalog, MigrationPlan
from omnigraph.changes.commit_changes import CommitChangesPage, Limits
from omnigraph.changes.feed import FeedPage, FeedRequest
from omnigraph.changes.model import parse_change_filter
from omnigraph.commit.model import MAIN, Branch, Commit, CommitId, Snapshot, Tag
from omnigraph.errors import InvalidInput, StorageUnavailable, translate_disk_errors
from omnigraph.graph.schema import read_schema_text
from omnigraph.service.client.decode import (
    RemoteSnapshot,
    read_branch,
    read_commit_page,
    read_feed,
    read_plan,
    read_schema_result,
    read_tag,
)
from omnigraph.service.client.transport import RemoteCall, Transport
from omnigraph.write.progress import ProgressListener
from omnigraph.write.schema_migration import SchemaResult

RemoteTarget = str | datetime | Snapshot | RemoteSnapshot
"""A branch, tag, commit id, instant, or a snapshot itself."""
_SPOOL_BYTES = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class RemoteAddress:
    """A graph of a server, and the branch it is bound to.

    Without a name the address of the server is that of the graph, as a gateway may publish it.
    """

    transport: Transport
    graph: str | None
    on: str = MAIN

    @property
    def uri(self) -> str:
        """The address of the graph."""
        return f"{self.transport.base}{self.path()}"

    def path(self, *parts: str) -> str:
        """Return the path of something of the graph; every part is one segment."""
        place = () if self.graph is None else ("graphs", self.graph)
        return "".join(f"/{quote(part, safe='')}" for part in (*place, *parts))

    def get(self, *parts: str, query: Sequence[tuple[str, str]] = ()) -> Any:  # noqa: ANN401
        """Ask for something."""
        call = RemoteCall(method="GET", path=self.path(*parts), query=tuple(query), reads=True)
        return self.transport.json(call)

    def post(
        self,
        *parts: str,
        body: Any,  # noqa: ANN401 - the wire form of a request
        reads: bool = False,
        text: str | None = None,
        headers: dict[str, str] | None = None,
    ) -> Any:  # noqa: ANN401 - the wire form of an answer
        """Send something; `text` is what errors point into."""
        call = RemoteCall(
            method="POST",
            path=self.path(*parts),
            json=body,
            reads=reads,
            text=text,
            headers=headers,
        )
        return self.transport.json(call)

    def delete(self, *parts: str) -> Any:  # noqa: ANN401 - the wire form of an answer
        """Delete something."""
        return self.transport.json(RemoteCall(method="DELETE", path=self.path(*parts)))

    def lines(self, *parts: str, body: Any) -> Iterator[bytes]:  # noqa: ANN401
        """Yield the lines of an answer as they come."""
        call = RemoteCall(method="POST", path=self.path(*parts), json=body, reads=True)
        with self.transport.stream(call) as response:
            for line in response.iter_lines():
                if line:
                    yield line.encode()

    def state(self, at: RemoteTarget | None) -> dict[str, str]:
        """Return how a request says which state it is about."""
        return {"branch": self.on} if at is None else {"snapshot": target_name(at)}


def target_name(at: RemoteTarget | int) -> str:
    """Return the name of a state."""
    match at:
        case Snapshot() | RemoteSnapshot():
            return at.commit_id
        case datetime():
            return at.isoformat()
        case str():
            return at
        case _:
            message = "a remote state is a branch, tag, commit id, time or snapshot"
            raise InvalidInput(message, code="target_invalid")


def _filter_query(
    kinds: Sequence[str] | None, types: Sequence[str] | None, ops: Sequence[str] | None
) -> list[tuple[str, list[str]]]:
    parse_change_filter(kinds, types, ops)
    named = (("kind", kinds), ("type", types), ("op", ops))
    return [(name, [str(one) for one in given]) for name, given in named if given]


def filter_body(
    kinds: Sequence[str] | None, types: Sequence[str] | None, ops: Sequence[str] | None
) -> dict[str, list[str]]:
    """Return which changes are asked for, for a body; refuse words there are none of."""
    return dict(_filter_query(kinds, types, ops))


class RemoteBranches:
    """The branches of a graph."""

    def __init__(self, address: RemoteAddress) -> None:
        self._address = address

    def create(self, name: str, from_: RemoteTarget | None = None) -> Branch:
        """Create a branch at the state of another branch, tag, commit or time."""
        at = self._address.on if from_ is None else target_name(from_)
        where = {"from": at} if from_ is None or at in self.list() else {"snapshot": at}
        self._address.post("branches", body={"name": name, **where})
        return self.get(name)

    def list(self) -> list[str]:
        """Return the names of all branches, main among them, sorted."""
        found: list[str] = self._address.get("branches")["branches"]
        return found

    def get(self, name: str) -> Branch:
        """Return a branch by name."""
        return read_branch(self._address.get("branches", name))

    def delete(self, name: str, *, force: bool = False) -> None:
        """Delete a branch."""
        if force:
            message = "a server deletes no branch that others descend from; delete those first"
            raise InvalidInput(message, code="remote_unsupported")
        self._address.delete("branches", name)


class RemoteTags:
    """The tags of a graph."""

    def __init__(self, address: RemoteAddress) -> None:
        self._address = address

    def create(self, name: str, at: RemoteTarget | None = None) -> Tag:
        """Give a commit a name that never moves."""
        return read_tag(self._address.post("tags", body={"name": name, **self._address.state(at)}))

    def list(self) -> list[Tag]:
        """Return all tags by name."""
        return [read_tag(one) for one in self._address.get("tags")["tags"]]

    def delete(self, name: str) -> None:
        """Forget a tag."""
        self._address.delete("tags", name)


class RemoteCommits:
    """The history of a graph."""

    def __init__(self, address: RemoteAddress) -> None:
        self._address = address

    def list(
        self, branch: str | None = None, limit: int | None = None, *, actor: str | None = None
    ) -> list[Commit]:
        """Return the commits a branch descends from, newest first; with `actor`, only theirs."""
        query = [("branch", branch or self._address.on)]
        query += [] if limit is None else [("limit", str(limit))]
        query += [] if actor is None else [("actor", actor)]
        found = self._address.get("commits", query=query)["commits"]
        return [Commit.from_json(one) for one in found]

    def get(self, id: str) -> Commit:
        """Return a commit by id, on whatever branch it is."""
        return Commit.from_json(self._address.get("commits", id))

    def changes(
        self,
        id: str,
        *,
        kinds: Sequence[str] | None = None,
        types: Sequence[str] | None = None,
        ops: Sequence[str] | None = None,
        page_token: str | None = None,
        limits: Limits | None = None,
    ) -> CommitChangesPage:
        """Return what a commit changed against its first parent, a page of it at a time."""
        query = _page_query(_filter_query(kinds, types, ops), limits)
        query += [] if page_token is None else [("page_token", page_token)]
        return read_commit_page(self._address.get("commits", id, "changes", query=query))

    def merge_base(self, one: RemoteTarget, other: RemoteTarget) -> tuple[CommitId, ...]:
        """Return the best common ancestors of two states."""
        query = [("one", target_name(one)), ("other", target_name(other))]
        found = self._address.get("merge-base", query=query)["commit_ids"]
        return tuple(CommitId(id_) for id_ in found)


def _page_query(
    wanted: Sequence[tuple[str, Sequence[str]]], limits: Limits | None
) -> list[tuple[str, str]]:
    query = [(name, one) for name, given in wanted for one in given]
    return query + ([] if limits is None else [("limit", str(limits.changes))])


@dataclass(frozen=True)
class RemoteBaseline:
    """The entities of a state, one line of JSON each, and how to go on from it."""

    snapshot_commit_id: CommitId
    resume_cursor: str
    _file: IO[bytes]
    _end: int

    def __post_init__(self) -> None:
        weakref.finalize(self, self._file.close)

    @property
    def lines(self) -> Iterator[str]:
        """The entities, from the first on."""
        self._file.seek(0)
        while self._file.tell() < self._end:
            yield self._file.readline().decode().rstrip("\n")

    @property
    def handshake(self) -> RemoteBaseline:
        """The state and how to go on from it."""
        return self

    def to_json(self) -> dict[str, Any]:
        """Return the wire form of the handshake."""
        return {
            "snapshot_commit_id": self.snapshot_commit_id,
            "resume_cursor": self.resume_cursor,
        }


class RemoteChanges:
    """What happened on a branch, commit by commit, for a reader that keeps a copy of it."""

    def __init__(self, address: RemoteAddress) -> None:
        self._address = address

    def poll(  # noqa: PLR0913 - everything a poll can be told
        self,
        *,
        branch: str | None = None,
        start: str | None = None,
        cursor: str | None = None,
        page_token: str | None = None,
        kinds: Sequence[str] | None = None,
        types: Sequence[str] | None = None,
        ops: Sequence[str] | None = None,
        limits: Limits | None = None,
    ) -> FeedPage:
        """Return the next page of changes, and how to go on."""
        place = {"start": start, "cursor": cursor, "page_token": page_token}
        FeedRequest(
            branch=branch or self._address.on, start=start, cursor=cursor, page_token=page_token
        )
        query = [("branch", branch or self._address.on)]
        query += [(name, value) for name, value in place.items() if value is not None]
        query += _page_query(_filter_query(kinds, types, ops), limits)
        return read_feed(self._address.get("changes", query=query))

    def baseline(
        self,
        *,
        branch: str | None = None,
        kinds: Sequence[str] | None = None,
        types: Sequence[str] | None = None,
        ops: Sequence[str] | None = None,
    ) -> RemoteBaseline:
        """Return all entities of the newest state and the cursor that goes on from there.

        All of it is fetched first: only the last line says that the lines are whole.
        """
        body = {"branch": branch or self._address.on, **filter_body(kinds, types, ops)}
        file = tempfile.SpooledTemporaryFile(_SPOOL_BYTES)  # noqa: SIM115 - the baseline holds it
        end, last = 0, b""
        for line in self._address.lines("changes", "baseline", body=body):
            end = file.tell()
            with translate_disk_errors(tempfile.gettempdir()):
                file.write(line + b"\n")
            last = line
        told = msgspec.json.decode(last) if last else {}
        if "baseline" not in told:
            message = "the baseline broke off before its end; take it again"
            raise StorageUnavailable(message, code="server_unreachable")
        facts = told["baseline"]
        commit_id = CommitId(facts["snapshot_commit_id"])
        return RemoteBaseline(commit_id, facts["resume_cursor"], file, end)


class RemoteSchema:
    """The schema of a graph."""

    def __init__(self, address: RemoteAddress) -> None:
        self._address = address

    def snapshot(self, at: RemoteTarget | None = None) -> RemoteSnapshot:
        """Return the state a branch, tag, commit id or time names."""
        query = [*self._address.state(at).items(), ("schema", "true")]
        return RemoteSnapshot.of(self._address.get("snapshot", query=query))

    @property
    def source(self) -> str:
        """The text of the accepted schema."""
        return self.snapshot().schema_source

    @property
    def catalog(self) -> Catalog:
        """What the accepted schema means."""
        return self.snapshot().catalog

    def plan(
        self, text: str, *, allow_data_loss: bool = False, at: RemoteTarget | None = None
    ) -> MigrationPlan:
        """Return the steps from the accepted schema to another, or what stands in the way."""
        body = {
            "schema_source": text,
            "allow_data_loss": allow_data_loss,
            **self._address.state(at),
        }
        return read_plan(self._address.post("schema", "plan", body=body, reads=True, text=text))

    def apply(
        self,
        text: str | os.PathLike[str],
        *,
        branch: str | None = None,
        allow_data_loss: bool = False,
        message: str | None = None,
        dry_run: bool = False,
        progress: ProgressListener | None = None,
    ) -> SchemaResult:
        """Make another schema the accepted one, as one commit."""
        source = read_schema_text(text)
        body = {
            "schema_source": source,
            "allow_data_loss": allow_data_loss,
            "branch": branch or self._address.on,
            "dry_run": dry_run,
            "message": message,
        }
        return read_schema_result(self._address.post("schema", "apply", body=body, text=source))

    def diff(self, old: RemoteTarget, new: RemoteTarget) -> MigrationPlan:
        """Return the steps from the schema of one state to that of another."""
        return self.plan(self.snapshot(new).schema_source, at=old)
