"""The parts of a remote graph: branches, tags, commits, changes, schema."""

from __future__ import annotations

import os
import tempfile
import weakref
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import IO, Any, TypeVar
from urllib.parse import quote

import msgspec
from msgspec import Struct

from omnigraph.catalog import Catalog, MigrationPlan
from omnigraph.changes.commit_changes import CommitChangesPage, Limits
from omnigraph.changes.feed import FeedPage, FeedRequest
from omnigraph.changes.model import parse_change_filter
from omnigraph.commit.model import MAIN, Branch, Commit, CommitId, Snapshot, Tag
from omnigraph.errors import InvalidInput, StorageUnavailable, translate_disk_errors
from omnigraph.graph.protocol import (
    BranchesProtocol,
    ChangesProtocol,
    CommitsProtocol,
    SchemaProtocol,
    TagsProtocol,
    documented_by,
)
from omnigraph.graph.schema import read_schema_text
from omnigraph.service import wire
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
from omnigraph.service.operations.branches import (
    create_branch,
    create_tag,
    delete_branch,
    delete_tag,
    get_branch,
    list_branches,
    list_tags,
    merge_base,
)
from omnigraph.service.operations.changes import (
    baseline,
    commit_changes,
    get_commit,
    list_commits,
    poll_changes,
)
from omnigraph.service.operations.operation import Operation
from omnigraph.service.operations.paths import GRAPH_PATH
from omnigraph.service.operations.queries import snapshot
from omnigraph.service.operations.schema import apply_schema, plan_schema
from omnigraph.service.wire.parameters import ParameterLocation
from omnigraph.write.progress import ProgressListener
from omnigraph.write.schema_migration import SchemaResult

RemoteTarget = str | datetime | Snapshot | RemoteSnapshot
"""A branch, tag, commit id, instant, or a snapshot itself."""
_RequestT = TypeVar("_RequestT", bound=Struct)
_AnswerT = TypeVar("_AnswerT")
_SPOOL_BYTES = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class RemoteAddress:
    """A graph of a server, and the branch it is bound to.

    Without a name the address of the server is that of the graph, as behind a gateway.
    """

    transport: Transport
    graph: str | None
    branch: str = MAIN

    @property
    def uri(self) -> str:
        """The address of the graph."""
        return f"{self.transport.base}{self.path()}"

    def path(self, *parts: str) -> str:
        """Return the path of something of the graph; every part is one segment."""
        place = () if self.graph is None else ("graphs", self.graph)
        return "".join(f"/{quote(part, safe='')}" for part in (*place, *parts))

    def request(
        self,
        operation: Operation[Any, _RequestT, Any],
        request: _RequestT,
        *,
        text: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> RemoteCall:
        """Return the HTTP request of an operation; errors point into `text`."""
        path = (operation.path or "").removeprefix(GRAPH_PATH)
        query: list[tuple[str, str]] = []
        sent = dict(headers or {})
        for parameter in operation.parameters:
            value = getattr(request, parameter.field)
            if parameter.location is ParameterLocation.PATH:
                path = path.replace(f"{{{parameter.name}}}", quote(value, safe=""))
            elif parameter.location is ParameterLocation.HEADER and value is not None:
                sent[parameter.name] = value
            elif parameter.location is ParameterLocation.QUERY:
                query += [(parameter.name, one) for one in _query_values(value)]
        body = operation.body
        content = None
        if body is not None:
            content = request if body.field is None else getattr(request, body.field)
        is_json = content is not None and not isinstance(content, bytes)
        return RemoteCall(
            method=operation.method,
            path=self.path() + path,
            query=tuple(query),
            json=msgspec.to_builtins(content) if is_json else None,
            content=content if isinstance(content, bytes) else None,
            headers=sent,
            reads=not operation.writes,
            text=text,
        )

    def call(
        self,
        operation: Operation[Any, _RequestT, _AnswerT],
        request: _RequestT,
        *,
        text: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> _AnswerT:
        """Call an operation of the server; return its declared answer."""
        call = self.request(operation, request, text=text, headers=headers)
        answer: _AnswerT = self.transport.decoded(call, operation.answer)
        return answer

    def lines(
        self, operation: Operation[Any, _RequestT, Any], request: _RequestT
    ) -> Iterator[bytes]:
        """Call an operation that streams; yield the lines of its answer as they arrive."""
        with self.transport.stream(self.request(operation, request)) as response:
            for line in response.iter_lines():
                if line:
                    yield line.encode()

    def state(self, at: RemoteTarget | None) -> dict[str, str]:
        """Return the members of a request that name the state to read."""
        return {"branch": self.branch} if at is None else {"snapshot": target_name(at)}


def _query_values(value: object) -> list[str]:
    match value:
        case None:
            return []
        case bool():
            return ["true"] if value else []
        case list():
            return [str(one) for one in value]
        case _:
            return [str(value)]


def members(answer: Struct) -> dict[str, Any]:
    """Return the JSON members of an answer."""
    values: dict[str, Any] = msgspec.to_builtins(answer)
    return values


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


def filter_members(
    kinds: Sequence[str] | None, types: Sequence[str] | None, ops: Sequence[str] | None
) -> dict[str, Any]:
    """Return the members of a request that select changes; refuse unknown words."""
    parse_change_filter(kinds, types, ops)
    words = (("kind", kinds), ("type", types), ("op", ops))
    return {name: [str(one) for one in values] for name, values in words if values}


@documented_by(BranchesProtocol)
class RemoteBranches:
    """The branches of a graph."""

    def __init__(self, address: RemoteAddress) -> None:
        self._address = address

    def create(self, name: str, from_: RemoteTarget | None = None) -> Branch:
        at = self._address.branch if from_ is None else target_name(from_)
        where = {"from": at} if from_ is None or at in self.list() else {"snapshot": at}
        request = msgspec.convert({"name": name, **where}, wire.BranchCreateRequest)
        self._address.call(create_branch, request)
        return self.get(name)

    def list(self) -> list[str]:
        return self._address.call(list_branches, wire.NoRequest()).branches

    def get(self, name: str) -> Branch:
        return read_branch(members(self._address.call(get_branch, wire.BranchQuery(branch=name))))

    def delete(self, name: str, *, force: bool = False) -> None:
        if force:
            message = "a server deletes no branch that others descend from; delete those first"
            raise InvalidInput(message, code="remote_unsupported")
        self._address.call(delete_branch, wire.BranchQuery(branch=name))


@documented_by(TagsProtocol)
class RemoteTags:
    """The tags of a graph."""

    def __init__(self, address: RemoteAddress) -> None:
        self._address = address

    def create(self, name: str, at: RemoteTarget | None = None) -> Tag:
        request = wire.TagCreateRequest(name=name, **self._address.state(at))
        return read_tag(members(self._address.call(create_tag, request)))

    def list(self) -> list[Tag]:
        answer = self._address.call(list_tags, wire.NoRequest())
        return [read_tag(members(tag)) for tag in answer.tags]

    def delete(self, name: str) -> None:
        self._address.call(delete_tag, wire.TagQuery(tag=name))


@documented_by(CommitsProtocol)
class RemoteCommits:
    """The history of a graph."""

    def __init__(self, address: RemoteAddress) -> None:
        self._address = address

    def list(
        self, branch: str | None = None, limit: int | None = None, *, actor: str | None = None
    ) -> list[Commit]:
        name = branch or self._address.branch
        request = wire.CommitListQuery(branch=name, limit=limit, actor=actor)
        answer = self._address.call(list_commits, request)
        return [Commit.from_json(members(commit)) for commit in answer.commits]

    def get(self, id: str) -> Commit:
        answer = self._address.call(get_commit, wire.CommitQuery(commit_id=id))
        return Commit.from_json(members(answer))

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
        request = wire.CommitChangesQuery(
            commit_id=id,
            page_token=page_token,
            limit=None if limits is None else limits.changes,
            **filter_members(kinds, types, ops),
        )
        return read_commit_page(members(self._address.call(commit_changes, request)))

    def merge_base(self, one: RemoteTarget, other: RemoteTarget) -> tuple[CommitId, ...]:
        request = wire.MergeBaseQuery(one=target_name(one), other=target_name(other))
        answer = self._address.call(merge_base, request)
        return tuple(CommitId(id_) for id_ in answer.commit_ids)


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


@documented_by(ChangesProtocol)
class RemoteChanges:
    """What happened on a branch, commit by commit, for a reader that keeps a copy of it."""

    def __init__(self, address: RemoteAddress) -> None:
        self._address = address

    def poll(  # noqa: PLR0913 - the arguments of a poll
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
        name = branch or self._address.branch
        FeedRequest(branch=name, start=start, cursor=cursor, page_token=page_token)
        request = wire.ChangeFeedQuery(
            branch=name,
            start=start,
            cursor=cursor,
            page_token=page_token,
            limit=None if limits is None else limits.changes,
            **filter_members(kinds, types, ops),
        )
        return read_feed(members(self._address.call(poll_changes, request)))

    def baseline(
        self,
        *,
        branch: str | None = None,
        kinds: Sequence[str] | None = None,
        types: Sequence[str] | None = None,
        ops: Sequence[str] | None = None,
    ) -> RemoteBaseline:
        request = wire.ChangeBaselineRequest(
            branch=branch or self._address.branch, **filter_members(kinds, types, ops)
        )
        file = tempfile.SpooledTemporaryFile(_SPOOL_BYTES)  # noqa: SIM115 - the baseline holds it
        end, last = 0, b""
        for line in self._address.lines(baseline, request):
            end = file.tell()
            with translate_disk_errors(tempfile.gettempdir()):
                file.write(line + b"\n")
            last = line
        record = msgspec.json.decode(last) if last else {}
        if "baseline" not in record:
            message = "the baseline broke off before its end; take it again"
            raise StorageUnavailable(message, code="server_unreachable")
        facts = record["baseline"]
        commit_id = CommitId(facts["snapshot_commit_id"])
        return RemoteBaseline(commit_id, facts["resume_cursor"], file, end)


@documented_by(SchemaProtocol)
class RemoteSchema:
    """The schema of a graph."""

    def __init__(self, address: RemoteAddress) -> None:
        self._address = address

    def snapshot(self, at: RemoteTarget | None = None) -> RemoteSnapshot:
        """Return the state a branch, tag, commit id or time names."""
        request = wire.SnapshotQuery(schema=True, **self._address.state(at))
        return RemoteSnapshot.of(members(self._address.call(snapshot, request)))

    @property
    def source(self) -> str:
        return self.snapshot().schema_source

    @property
    def catalog(self) -> Catalog:
        return self.snapshot().catalog

    def plan(
        self, text: str, *, allow_data_loss: bool = False, at: RemoteTarget | None = None
    ) -> MigrationPlan:
        request = wire.SchemaPlanRequest(
            schema_source=text, allow_data_loss=allow_data_loss, **self._address.state(at)
        )
        return read_plan(members(self._address.call(plan_schema, request, text=text)))

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
        source = read_schema_text(text)
        request = wire.SchemaApplyRequest(
            schema_source=source,
            allow_data_loss=allow_data_loss,
            branch=branch or self._address.branch,
            dry_run=dry_run,
            message=message,
        )
        return read_schema_result(members(self._address.call(apply_schema, request, text=source)))

    def diff(self, old: RemoteTarget, new: RemoteTarget) -> MigrationPlan:
        return self.plan(self.snapshot(new).schema_source, at=old)
