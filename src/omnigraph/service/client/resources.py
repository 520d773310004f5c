"""The parts of a remote graph: branches, tags, commits, changes, schema."""

from __future__ import annotations

import math
import os
import tempfile
import weakref
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import IO, Any, TypeVar
from urllib.parse import quote

import msgspec
from msgspec import Struct

from omnigraph.catalog import Catalog, MigrationPlan
from omnigraph.changes.baseline import Baseline
from omnigraph.changes.commit_changes import CommitChangesPage, Limits
from omnigraph.changes.feed import FeedPage, FeedRequest
from omnigraph.changes.model import ChangeFilter
from omnigraph.commit.commit_log import AheadBehind
from omnigraph.commit.model import MAIN, Branch, Commit, CommitId, Snapshot, Tag
from omnigraph.errors import InvalidInput, StorageUnavailable, translate_disk_errors
from omnigraph.graph.listings import BranchNames, CommitList, TagList
from omnigraph.graph.protocol import (
    BranchesApi,
    ChangesApi,
    CommitOptions,
    CommitsApi,
    SchemaApi,
    TagsApi,
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
from omnigraph.service.client.uploads import unsupported_value
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
from omnigraph.write.inputs.byte_streams import chunks_as_file
from omnigraph.write.request import check_timeout
from omnigraph.write.schema_migration import SchemaOptions, SchemaResult

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
    current_branch: str = MAIN

    @property
    def uri(self) -> str:
        """The address of the graph."""
        return f"{self.transport.base}{self.path()}"

    def on_branch(self, name: str) -> RemoteAddress:
        """Return the same graph bound to another branch."""
        return replace(self, current_branch=name)

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
            json=msgspec.to_builtins(content, enc_hook=unsupported_value) if is_json else None,
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
            # Lines of texts end with "\n" alone; httpx splits at any line end of Unicode.
            for line in chunks_as_file(response.iter_bytes()):
                if line != b"\n":
                    yield line.removesuffix(b"\n")

    def state(self, at: RemoteTarget | None) -> dict[str, str]:
        """Return the members of a request that name the state to read."""
        return {"branch": self.current_branch} if at is None else {"snapshot": target_name(at)}


def prefer_wait(target: CommitOptions) -> dict[str, str]:
    """Return the header that states how many seconds a write may wait for other writers."""
    if target.timeout is None:
        return {}
    check_timeout(target.timeout)
    return {"Prefer": f"wait={math.ceil(target.timeout)}"}


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


def filter_members(scope: ChangeFilter) -> dict[str, Any]:
    """Return the members of a request that select changes."""
    words = {"kind": scope.kinds, "type": scope.types, "op": scope.ops}
    return {name: sorted(map(str, values)) for name, values in words.items() if values}


class RemoteBranches(BranchesApi[RemoteAddress, RemoteTarget]):
    """The branches of a graph."""

    def create(self, name: str, from_: RemoteTarget | None = None) -> Branch:
        at = self._context.current_branch if from_ is None else target_name(from_)
        where = {"from": at} if from_ is None or at in self.list() else {"snapshot": at}
        request = msgspec.convert({"name": name, **where}, wire.BranchCreateRequest)
        self._context.call(create_branch, request)
        return self.get(name)

    def list(self) -> list[str]:
        return BranchNames(self._context.call(list_branches, wire.NoRequest()).branches)

    def get(self, name: str) -> Branch:
        return read_branch(members(self._context.call(get_branch, wire.BranchQuery(branch=name))))

    def delete(self, name: str, *, force: bool = False) -> None:
        if force:
            message = "a server deletes no branch that others descend from; delete those first"
            raise InvalidInput(message, code="remote_unsupported")
        self._context.call(delete_branch, wire.BranchQuery(branch=name))


class RemoteTags(TagsApi[RemoteAddress, RemoteTarget]):
    """The tags of a graph."""

    def create(self, name: str, at: RemoteTarget | None = None) -> Tag:
        request = wire.TagCreateRequest(name=name, **self._context.state(at))
        return read_tag(members(self._context.call(create_tag, request)))

    def list(self) -> list[Tag]:
        answer = self._context.call(list_tags, wire.NoRequest())
        return TagList(read_tag(members(tag)) for tag in answer.tags)

    def delete(self, name: str) -> None:
        self._context.call(delete_tag, wire.TagQuery(tag=name))


class RemoteCommits(CommitsApi[RemoteAddress, RemoteTarget]):
    """The history of a graph."""

    def list(
        self, branch: str | None = None, limit: int | None = None, *, actor: str | None = None
    ) -> list[Commit]:
        request = wire.CommitListQuery(branch=self._branch(branch), limit=limit, actor=actor)
        answer = self._context.call(list_commits, request)
        return CommitList(Commit.from_json(members(commit)) for commit in answer.commits)

    def get(self, id: str) -> Commit:
        answer = self._context.call(get_commit, wire.CommitQuery(commit_id=id))
        return Commit.from_json(members(answer))

    def _changes(
        self, id: str, scope: ChangeFilter, page_token: str | None, limits: Limits | None
    ) -> CommitChangesPage:
        request = wire.CommitChangesQuery(
            commit_id=id,
            page_token=page_token,
            limit=None if limits is None else limits.changes,
            **filter_members(scope),
        )
        return read_commit_page(members(self._context.call(commit_changes, request)))

    def divergence(self, one: RemoteTarget, other: RemoteTarget) -> AheadBehind:
        request = wire.MergeBaseQuery(one=target_name(one), other=target_name(other))
        answer = self._context.call(merge_base, request)
        bases = tuple(CommitId(id_) for id_ in answer.commit_ids)
        return AheadBehind(bases, ahead=answer.ahead, behind=answer.behind)


class RemoteChanges(ChangesApi[RemoteAddress, RemoteTarget]):
    """What happened on a branch, commit by commit, for a reader that keeps a copy of it."""

    def _poll(self, request: FeedRequest) -> FeedPage:
        query = wire.ChangeFeedQuery(
            branch=request.branch,
            start=request.start,
            cursor=request.cursor,
            page_token=request.page_token,
            limit=request.limits.changes,
            **filter_members(request.scope),
        )
        return read_feed(members(self._context.call(poll_changes, query)))

    def _baseline(self, branch: str, scope: ChangeFilter) -> Baseline:
        request = wire.ChangeBaselineRequest(branch=branch, **filter_members(scope))
        file = tempfile.SpooledTemporaryFile(_SPOOL_BYTES)  # noqa: SIM115 - the lines hold it
        end, last = 0, b""
        for line in self._context.lines(baseline, request):
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
        lines = _stored_lines(file, end)
        weakref.finalize(lines, file.close)
        return Baseline(commit_id, facts["resume_cursor"], lines)


def _stored_lines(file: IO[bytes], end: int) -> Iterator[str]:
    file.seek(0)
    while file.tell() < end:
        yield file.readline().decode().rstrip("\n")


class RemoteSchema(SchemaApi[RemoteAddress, RemoteTarget]):
    """The schema of a graph."""

    def snapshot(self, at: RemoteTarget | None = None) -> RemoteSnapshot:
        """Return the state a branch, tag, commit id or time names."""
        request = wire.SnapshotQuery(schema=True, **self._context.state(at))
        return RemoteSnapshot.of(members(self._context.call(snapshot, request)))

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
            schema_source=text, allow_data_loss=allow_data_loss, **self._context.state(at)
        )
        return read_plan(members(self._context.call(plan_schema, request, text=text)))

    def _apply(
        self, text: str | os.PathLike[str], options: SchemaOptions, target: CommitOptions
    ) -> SchemaResult:
        source = read_schema_text(text)
        request = wire.SchemaApplyRequest(
            schema_source=source,
            allow_data_loss=options.allow_data_loss,
            branch=self._branch(target.branch),
            dry_run=options.dry_run,
            message=target.message,
        )
        headers = prefer_wait(target)
        answer = self._context.call(apply_schema, request, text=source, headers=headers)
        return read_schema_result(members(answer))

    def diff(self, old: RemoteTarget, new: RemoteTarget) -> MigrationPlan:
        return self.plan(self.snapshot(new).schema_source, at=old)
