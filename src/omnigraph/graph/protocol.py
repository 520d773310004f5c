"""The protocol of a graph: the methods that an embedded and a remote one share.

Every shared method is declared and documented here once. `Graph` and `RemoteGraph` implement the
abstract ones, and the hooks (`_query`, `_load`, …) that methods with many arguments call.
"""

from __future__ import annotations

import os
import warnings
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, Literal, NamedTuple, Protocol, Self, TypeVar, overload

from omnigraph.catalog import Catalog, MigrationPlan
from omnigraph.changes.baseline import Baseline
from omnigraph.changes.commit_changes import CommitChangesPage, Limits
from omnigraph.changes.difference import Difference
from omnigraph.changes.entity_model import EntityHistory, ValueOrigin
from omnigraph.changes.feed import FeedPage, FeedRequest
from omnigraph.changes.model import Change, ChangeFilter, parse_change_filter
from omnigraph.commit.commit_log import AheadBehind
from omnigraph.commit.manifest import unknown_branch_error
from omnigraph.commit.model import Branch, Commit, CommitId, Tag
from omnigraph.embed.config import VectorsFrom
from omnigraph.errors import OmniError
from omnigraph.graph.modes import EngineName, LoadMode, OpenMode
from omnigraph.graph.part import BranchContext, GraphPart
from omnigraph.graph.proposal_protocol import ProposalsApi, ProtectionApi
from omnigraph.graph.type_summary import TypeList
from omnigraph.merge.model import MergeResult
from omnigraph.notebook.elements import public_uri
from omnigraph.notebook.graphs import graph_html, schema_html
from omnigraph.query.checks import CheckResult
from omnigraph.query.engine_names import LOCAL_ENGINE
from omnigraph.query.entities import Blob
from omnigraph.query.explain import Explanation
from omnigraph.query.graph_view import GraphView
from omnigraph.query.neighbours import Neighbours
from omnigraph.query.result import Result, ResultStream
from omnigraph.query.running import RunningQuery
from omnigraph.query.subgraph import Subgraph
from omnigraph.write.load import LoadOptions, LoadResult, parse_load_mode
from omnigraph.write.mutation import MutationResult
from omnigraph.write.progress import ProgressListener
from omnigraph.write.schema_migration import SchemaOptions, SchemaResult

_ContextT = TypeVar("_ContextT", bound=BranchContext)
_StateT = TypeVar("_StateT")
"""What names a state: a branch, tag, commit ID or time, or a snapshot itself."""


@dataclass(frozen=True, slots=True)
class QueryCall(Generic[_StateT]):
    """A query to run, on which state, and within which limits."""

    source: str
    params: Mapping[str, Any] | None
    name: str | None = None
    at: _StateT | None = None
    timeout: float | None = None
    memory: int | None = None


class CommitOptions(NamedTuple):
    """The branch to commit to (the current one by default), the message, the expected commit.

    `timeout` is how many seconds to wait for other writers, 30 by default.
    """

    branch: str | None
    message: str | None
    if_commit: str | None = None
    timeout: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeCall:
    """How to merge, or to apply a commit."""

    dry_run: bool
    resolve: str | Mapping[str, Any] | None
    strict: bool = False
    delete_branch: bool = False


class SnapshotProtocol(Protocol):
    """One immutable state of a graph."""

    @property
    def branch(self) -> str:
        """The branch of its commit."""

    @property
    def commit_id(self) -> CommitId:
        """The ID of its commit."""

    @property
    def schema_source(self) -> str:
        """The text of its schema."""

    @property
    def catalog(self) -> Catalog:
        """Its types."""

    def type_facts(self) -> list[dict[str, Any]]:
        """Return its types with properties and numbers of entities, as notebooks show them."""


class BranchesApi(GraphPart[_ContextT, _StateT]):
    """The branches of a graph."""

    @abstractmethod
    def create(self, name: str, from_: _StateT | None = None) -> Branch:
        """Create a branch at the state of another branch, tag, commit or time."""

    @abstractmethod
    def list(self) -> list[str]:
        """Return the names of all branches, main among them, sorted."""

    @abstractmethod
    def get(self, name: str) -> Branch:
        """Return a branch by name."""

    @abstractmethod
    def delete(self, name: str, *, force: bool = False) -> None:
        """Delete a branch; `force` hands branches that descend from it to its parent."""


class TagsApi(GraphPart[_ContextT, _StateT]):
    """The tags of a graph."""

    @abstractmethod
    def create(self, name: str, at: _StateT | None = None) -> Tag:
        """Create a name for a commit that never moves."""

    @abstractmethod
    def list(self) -> list[Tag]:
        """Return all tags by name."""

    @abstractmethod
    def delete(self, name: str) -> None:
        """Delete a tag."""


class CommitsApi(GraphPart[_ContextT, _StateT]):
    """The history of a graph."""

    @abstractmethod
    def list(
        self, branch: str | None = None, limit: int | None = None, *, actor: str | None = None
    ) -> list[Commit]:
        """Return the commits a branch descends from, newest first; with `actor`, only theirs."""

    @abstractmethod
    def get(self, id: str) -> Commit:
        """Return a commit of any branch by ID."""

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
        return self._changes(id, parse_change_filter(kinds, types, ops), page_token, limits)

    @abstractmethod
    def _changes(
        self, id: str, scope: ChangeFilter, page_token: str | None, limits: Limits | None
    ) -> CommitChangesPage: ...

    def merge_base(self, one: _StateT, other: _StateT) -> tuple[CommitId, ...]:
        """Return the best common ancestors of two states."""
        return self.divergence(one, other).bases

    @abstractmethod
    def divergence(self, one: _StateT, other: _StateT) -> AheadBehind:
        """Return the best common ancestors of two states, and how far each is ahead of them.

        `ahead` counts the commits of `one` that `other` lacks, `behind` those that `one` lacks.
        """


class ChangesApi(GraphPart[_ContextT, _StateT]):
    """The changes of a branch, commit by commit, for a reader that keeps a copy."""

    def poll(
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
        """Return the next page of changes, and how to continue.

        The position is `start` (`now`, which is the default, `beginning` or `after:ID`), the
        `cursor` of an earlier page, or its `page_token` if it ended within a commit.
        """
        request = FeedRequest(
            branch=self._branch(branch),
            start=start,
            cursor=cursor,
            page_token=page_token,
            scope=parse_change_filter(kinds, types, ops),
            limits=limits or Limits(),
        )
        return self._poll(request)

    @abstractmethod
    def _poll(self, request: FeedRequest) -> FeedPage: ...

    def baseline(
        self,
        *,
        branch: str | None = None,
        kinds: Sequence[str] | None = None,
        types: Sequence[str] | None = None,
        ops: Sequence[str] | None = None,
    ) -> Baseline:
        """Return all entities of the newest state and the cursor that continues from there.

        `ops` do not limit the entities, only the changes that are polled afterwards.
        """
        return self._baseline(self._branch(branch), parse_change_filter(kinds, types, ops))

    @abstractmethod
    def _baseline(self, branch: str, scope: ChangeFilter) -> Baseline: ...


class SchemaApi(GraphPart[_ContextT, _StateT]):
    """The schema of a graph."""

    @property
    @abstractmethod
    def source(self) -> str:
        """The text of the accepted schema."""

    @property
    @abstractmethod
    def catalog(self) -> Catalog:
        """The types of the accepted schema."""

    def __repr__(self) -> str:
        return f"<Schema of {self._context.current_branch}>"

    def _repr_html_(self) -> str:
        return schema_html(self.catalog.describe())

    @abstractmethod
    def plan(
        self, text: str, *, allow_data_loss: bool = False, at: _StateT | None = None
    ) -> MigrationPlan:
        """Return the steps from the accepted schema to another, or why there are none."""

    def apply(
        self,
        text: str | os.PathLike[str],
        *,
        branch: str | None = None,
        allow_data_loss: bool = False,
        message: str | None = None,
        dry_run: bool = False,
        progress: ProgressListener | None = None,
        timeout: float | None = None,
    ) -> SchemaResult:
        """Apply a schema, as one commit.

        `text` is `.pg` text, or the path of a file with it. Dropped data stays readable in older
        states, unless `allow_data_loss` is set, which removes it. With `dry_run`, everything is
        checked and nothing changed. It waits `timeout` seconds for other writers, by default 30.
        """
        options = SchemaOptions(allow_data_loss=allow_data_loss, dry_run=dry_run, progress=progress)
        return self._apply(text, options, CommitOptions(branch, message, timeout=timeout))

    @abstractmethod
    def _apply(
        self, text: str | os.PathLike[str], options: SchemaOptions, target: CommitOptions
    ) -> SchemaResult: ...

    @abstractmethod
    def diff(self, old: _StateT, new: _StateT) -> MigrationPlan:
        """Return the steps from the schema of one state to that of another."""


class GraphApi(GraphPart[_ContextT, _StateT]):
    """A typed property graph; `branch_name` is the branch it reads and writes by default."""

    branches: BranchesApi[_ContextT, _StateT]
    tags: TagsApi[_ContextT, _StateT]
    commits: CommitsApi[_ContextT, _StateT]
    changes: ChangesApi[_ContextT, _StateT]
    schema: SchemaApi[_ContextT, _StateT]
    proposals: ProposalsApi[_ContextT, _StateT]
    protection: ProtectionApi[_ContextT, _StateT]
    _merge_into: str | None = None

    @property
    @abstractmethod
    def mode(self) -> OpenMode:
        """How it was opened: `rw` or `ro`."""

    @property
    @abstractmethod
    def actor(self) -> str | None:
        """The actor, which is recorded in commits."""

    @property
    def branch_name(self) -> str:
        """The branch it reads and writes by default."""
        return self._context.current_branch

    @property
    def types(self) -> TypeList:
        """The types of its newest state, with their properties and numbers of entities."""
        return TypeList(self.snapshot().type_facts())

    @property
    def on(self) -> str:
        """Deprecated name of `branch_name`."""
        warnings.warn("`on` is deprecated: use `branch_name`", DeprecationWarning, stacklevel=2)
        return self.branch_name

    @property
    @abstractmethod
    def uri(self) -> str:
        """The address of the graph."""

    def branch(
        self,
        name: str,
        from_: _StateT | None = None,
        *,
        create: bool = False,
        merge_into: str | None = None,
    ) -> Self:
        """Return the same graph bound to an existing branch.

        With `create`, or with `from_` (the branch, tag, commit ID or time to start from), a branch
        that does not exist is created. Used as a context, `with graph.branch("agent/42",
        create=True, merge_into="main") as b:`, it merges the branch into `merge_into` on exit,
        unless the block raised.
        """
        name = name.strip()
        if not self._has_branch(name):
            if from_ is None and not create:
                raise unknown_branch_error(name, self.branches.list())
            self.branches.create(name, from_=from_)
        graph = type(self)(self._context.on_branch(name))
        graph._merge_into = merge_into
        return graph

    def _has_branch(self, name: str) -> bool:
        return name in self.branches.list()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {public_uri(self.uri)} on {self.branch_name}>"

    def _repr_html_(self) -> str:
        about: dict[str, Any] = {"uri": public_uri(self.uri), "branch": self.branch_name}
        about |= {"actor": self.actor, "mode": self.mode}
        try:
            state = self.snapshot()
            newest = self.commits.get(state.commit_id).to_json()
            return graph_html({**about, "types": state.type_facts(), "commit": newest})
        except OmniError as error:
            return graph_html({**about, "problem": error.message})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        """Merge the branch if `merge_into` was given and no error was raised; else release it."""
        if self._merge_into is None:
            self._release()
        elif error is None:
            self.merge(self.branch_name, into=self._merge_into)

    def _release(self) -> None:
        """Release what is held for this graph alone; nothing by default."""

    @abstractmethod
    def snapshot(self, at: _StateT | None = None) -> SnapshotProtocol:
        """Return the state of a branch, tag, commit ID or time, without hidden types."""

    def diff(
        self,
        a: _StateT,
        b: _StateT,
        *,
        kinds: Sequence[str] | None = None,
        types: Sequence[str] | None = None,
        ops: Sequence[str] | None = None,
    ) -> Difference:
        """Return the entities that differ between two states, nodes first, by type and ID.

        They are read as they are iterated. `kinds` are `node` and `edge`, `ops` `insert`, `update`
        and `delete`; by default all.
        """
        return Difference(self._diff(a, b, parse_change_filter(kinds, types, ops)))

    @abstractmethod
    def _diff(self, a: _StateT, b: _StateT, scope: ChangeFilter) -> Iterator[Change]: ...

    @abstractmethod
    def entity_at(
        self, type_name: str, id: str, at: _StateT | None = None
    ) -> dict[str, Any] | None:
        """Return one entity of a state, or None when it does not exist there."""

    @abstractmethod
    def history(
        self, type_name: str, id: str, at: _StateT | None = None, *, limit: int | None = None
    ) -> EntityHistory:
        """Return the commits up to a state that changed an entity, newest first.

        Each has the entity before and after, by the names its schema had. An entity that was
        deleted has a history, too, while its type exists. Where cleanup removed older versions,
        the answer names the commits before which it is unknown.
        """

    @abstractmethod
    def blame(
        self, type_name: str, id: str, at: _StateT | None = None
    ) -> Mapping[str, ValueOrigin]:
        """Return the commit that last set each property of an entity of a state.

        Of an edge, also the commits that set its ends, as `src` and `dst`.
        """

    @abstractmethod
    def run_checks(self, *, at: _StateT | None = None) -> list[CheckResult]:
        """Run the checks on the state of a branch, tag, commit ID or time."""

    @abstractmethod
    def blob(self, type_name: str, id: str, property: str, at: _StateT | None = None) -> Blob:
        """Return a blob of an entity, to be read in ranges."""

    @abstractmethod
    def neighbours(
        self, type_name: str, id: str, at: _StateT | None = None, *, limit: int | None = None
    ) -> Neighbours:
        """Return the neighbours of a node of a state, by edge type and direction.

        Each group has the number of edges and the first `limit` of them by ID, at most 1,000.
        """

    def subgraph(
        self,
        source: str,
        params: Mapping[str, Any] | None = None,
        *,
        name: str | None = None,
        at: _StateT | None = None,
        limit: int | None = None,
        timeout: float | None = None,
        memory: int | None = None,
    ) -> Subgraph:
        """Return the nodes and edges that the pattern of a query matches, for a drawing.

        What the query returns, its order and its limit do not matter. It has at most `limit`
        nodes, by default and at most 2,000.
        """
        return self._subgraph(QueryCall(source, params, name, at, timeout, memory), limit)

    @abstractmethod
    def _subgraph(self, call: QueryCall[_StateT], limit: int | None) -> Subgraph: ...

    @overload
    def query(
        self,
        source: str,
        params: Mapping[str, Any] | None = None,
        *,
        name: str | None = None,
        at: _StateT | None = None,
        timeout: float | None = None,
        memory: int | None = None,
        engine: Literal["local"] = LOCAL_ENGINE,
    ) -> Result: ...

    @overload
    def query(
        self,
        source: str,
        params: Mapping[str, Any] | None = None,
        *,
        name: str | None = None,
        at: _StateT | None = None,
        timeout: float | None = None,
        memory: int | None = None,
        engine: EngineName,
    ) -> Any: ...

    def query(
        self,
        source: str,
        params: Mapping[str, Any] | None = None,
        *,
        name: str | None = None,
        at: _StateT | None = None,
        timeout: float | None = None,
        memory: int | None = None,
        engine: EngineName = LOCAL_ENGINE,
    ) -> Any:
        """Run a query on the state of a branch, tag, commit ID or time.

        It may take `timeout` seconds, and `memory` bytes for its rows. With `engine="spark"` the
        answer is a Spark data frame, without these limits.
        """
        call = QueryCall(source, params, name, at, timeout, memory)
        answer = self._query(call, engine)
        return self._with_graph(answer, call) if isinstance(answer, Result) else answer

    def _with_graph(self, result: Result, call: QueryCall[_StateT]) -> Result:
        """Return a result that can read the graph of its query."""

        def read(limit: int | None) -> GraphView:
            # The commit that was read: the branch may have moved.
            read_state: Any = result.graph_commit_id
            return self._subgraph(replace(call, at=read_state), limit).view()

        return replace(result, read_graph=read)

    @abstractmethod
    def _query(self, call: QueryCall[_StateT], engine: EngineName) -> Any: ...

    def stream(
        self,
        source: str,
        params: Mapping[str, Any] | None = None,
        *,
        name: str | None = None,
        at: _StateT | None = None,
        timeout: float | None = None,
        memory: int | None = None,
        engine: EngineName = LOCAL_ENGINE,
    ) -> ResultStream:
        """Run a query whose rows may not fit in memory; they are read as they are consumed.

        It may take `timeout` seconds, and `memory` bytes for rows that have to be computed first.
        With `engine="spark"` Spark computes them, and they are kept in memory.
        """
        return self._stream(QueryCall(source, params, name, at, timeout, memory), engine)

    @abstractmethod
    def _stream(self, call: QueryCall[_StateT], engine: EngineName) -> ResultStream: ...

    def explain(
        self,
        source: str,
        params: Mapping[str, Any] | None = None,
        *,
        name: str | None = None,
        at: _StateT | None = None,
        analyze: bool = False,
        timeout: float | None = None,
        memory: int | None = None,
    ) -> Explanation:
        """Return the plan of a query.

        With `analyze`, run it within the limits of a query, and add rows and times.
        """
        call = QueryCall(source, params, name, at, timeout, memory)
        return self._explain(call, analyze=analyze)

    @abstractmethod
    def running_queries(self) -> list[RunningQuery]:
        """Return the queries and analyses of this graph that run now, the oldest first.

        An embedded graph shows those of its process, a served one those of all processes of the
        server. With a policy, an actor sees its own, and with the action `admin` all.
        """

    @abstractmethod
    def cancel_query(self, id: str) -> None:
        """Cancel a running query; it fails with `query_cancelled` at its next check."""

    @abstractmethod
    def _explain(self, call: QueryCall[_StateT], *, analyze: bool) -> Explanation: ...

    def mutate(
        self,
        source: str,
        params: Mapping[str, Any] | None = None,
        *,
        name: str | None = None,
        branch: str | None = None,
        if_commit: str | None = None,
        message: str | None = None,
        timeout: float | None = None,
    ) -> MutationResult:
        """Run a mutation as one commit; `if_commit` refuses when the branch is not at that one.

        It waits `timeout` seconds for other writers of the branch, by default 30.
        """
        return self._mutate(
            QueryCall(source, params, name), CommitOptions(branch, message, if_commit, timeout)
        )

    @abstractmethod
    def _mutate(self, call: QueryCall[_StateT], target: CommitOptions) -> MutationResult: ...

    def put_blob(
        self,
        type_name: str,
        id: str,
        property: str,
        data: bytes,
        *,
        branch: str | None = None,
        message: str | None = None,
    ) -> Commit | None:
        """Set a blob of an existing entity, as one commit; None if it has these bytes already."""
        return self._set_blob((type_name, id, property), data, CommitOptions(branch, message))

    def clear_blob(
        self,
        type_name: str,
        id: str,
        property: str,
        *,
        branch: str | None = None,
        message: str | None = None,
    ) -> Commit | None:
        """Set an optional blob of an existing entity to null, as one commit; None if it is."""
        return self._set_blob((type_name, id, property), None, CommitOptions(branch, message))

    @abstractmethod
    def _set_blob(
        self, selector: tuple[str, str, str], data: bytes | None, target: CommitOptions
    ) -> Commit | None: ...

    @abstractmethod
    def export(self, at: _StateT | None = None, *, types: Sequence[str] = ()) -> Iterator[str]:
        """Yield every entity as one line of JSON, which `load` reads back."""

    def load(
        self,
        data: Any,
        *,
        mode: LoadMode = "merge",
        branch: str | None = None,
        from_: str | None = None,
        message: str | None = None,
        partial: bool = False,
        strict: bool = True,
        vectors_from: VectorsFrom = None,
        progress: ProgressListener | None = None,
        engine: EngineName = LOCAL_ENGINE,
        encoding: str | None = None,
        timeout: float | None = None,
    ) -> LoadResult:
        """Load data as one commit.

        `data` is NDJSON (a path, several, an open file, bytes), or a dictionary from the name of a
        type to its rows: a table, a data frame, dictionaries, or the path of a Parquet, CSV or
        Arrow file. `append` refuses entities that exist, `merge` replaces them, `overwrite`
        replaces all of each type; `partial` keeps properties that are not given. `from_` is where
        a branch that does not exist is forked from. Without `strict`, lines are read by the older,
        forgiving grammar. `vectors_from` is the model that made the vectors given, as
        `provider/model`, for all properties or by `Type.property`; a text is only compared with
        vectors of a known model. `engine` is `local`, or `spark`, which does the same on the
        running Spark session, or on one of this machine that it starts. `encoding` is that of CSV
        and NDJSON files, such as `latin-1`; without it they are UTF-8, and other bytes are refused.
        `timeout` is how many seconds to wait for other writers of the branch, by default 30.
        """
        options = LoadOptions(
            mode=parse_load_mode(mode),
            partial=partial,
            strict=strict,
            from_=from_,
            progress=progress,
            encoding=encoding,
        )
        target = CommitOptions(branch, message, timeout=timeout)
        return self._load(data, options, target, vectors_from, engine)

    @abstractmethod
    def _load(
        self,
        data: Any,
        options: LoadOptions,
        target: CommitOptions,
        vectors_from: VectorsFrom,
        engine: EngineName,
    ) -> LoadResult: ...

    def insert(
        self,
        type_name: str,
        rows: Any,
        *,
        mode: LoadMode = "append",
        branch: str | None = None,
        message: str | None = None,
        vectors_from: VectorsFrom = None,
    ) -> LoadResult:
        """Load rows of one type as one commit."""
        rows_by_type = {type_name: rows}
        return self.load(
            rows_by_type, mode=mode, branch=branch, message=message, vectors_from=vectors_from
        )

    def merge(
        self,
        source: str,
        into: str | None = None,
        *,
        dry_run: bool = False,
        strict: bool = False,
        resolve: str | Mapping[str, Any] | None = None,
        delete_branch: bool = False,
        message: str | None = None,
        timeout: float | None = None,
    ) -> MergeResult:
        """Merge a branch into another, which then has its history; conflicts change nothing.

        `resolve` says who wins where both changed the same: `source`, `target`, or decisions by
        type and entity. `strict` does not merge different properties of one entity. `dry_run`
        returns what would happen, conflicts included. It waits `timeout` seconds for other writers
        of the target, by default 30.
        """
        call = MergeCall(
            dry_run=dry_run, strict=strict, resolve=resolve, delete_branch=delete_branch
        )
        return self._merge(source.strip(), CommitOptions(into, message, timeout=timeout), call)

    @abstractmethod
    def _merge(self, source: str, target: CommitOptions, call: MergeCall) -> MergeResult: ...

    def revert(
        self,
        commit: str,
        *,
        branch: str | None = None,
        dry_run: bool = False,
        resolve: str | Mapping[str, Any] | None = None,
        message: str | None = None,
    ) -> MergeResult:
        """Undo what a commit did, as a commit; later changes of the same entities are conflicts."""
        call = MergeCall(dry_run=dry_run, resolve=resolve)
        return self._apply_commit("revert", commit, CommitOptions(branch, message), call)

    def cherry_pick(
        self,
        commit: str,
        *,
        branch: str | None = None,
        dry_run: bool = False,
        resolve: str | Mapping[str, Any] | None = None,
        message: str | None = None,
    ) -> MergeResult:
        """Apply the changes of a commit to another branch, as a commit."""
        call = MergeCall(dry_run=dry_run, resolve=resolve)
        return self._apply_commit("cherry_pick", commit, CommitOptions(branch, message), call)

    @abstractmethod
    def _apply_commit(
        self,
        operation: Literal["revert", "cherry_pick"],
        commit: str,
        target: CommitOptions,
        call: MergeCall,
    ) -> MergeResult: ...

    @abstractmethod
    def recoveries(self) -> list[dict[str, Any]]:
        """Return the audit of recovery: what became of interrupted operations."""
