"""The protocol of a graph: what an embedded and a remote one have in common.

Signatures and docstrings of the shared methods are here; `Graph` and `RemoteGraph` inherit them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, Protocol, TypeAlias, TypeVar, overload

from omnigraph.catalog import Catalog, MigrationPlan
from omnigraph.changes.commit_changes import CommitChangesPage, Limits
from omnigraph.changes.feed import FeedPage
from omnigraph.changes.model import Change
from omnigraph.commit.model import Branch, Commit, CommitId, Snapshot, Tag
from omnigraph.merge.model import MergeResult
from omnigraph.query.explain import Explanation
from omnigraph.query.result import Result, ResultStream
from omnigraph.write.load import LoadResult
from omnigraph.write.mutation import MutationResult
from omnigraph.write.progress import ProgressListener
from omnigraph.write.schema_migration import SchemaResult

_ClassT = TypeVar("_ClassT", bound=type)

StateRef: TypeAlias = str | datetime | Snapshot
"""A branch, tag, commit ID or time, or a snapshot itself."""


class SnapshotProtocol(Protocol):
    """One immutable state of a graph."""

    @property
    def branch(self) -> str:
        """The branch of its commit."""
        ...

    @property
    def commit_id(self) -> CommitId:
        """The ID of its commit."""
        ...

    @property
    def schema_source(self) -> str:
        """The text of its schema."""
        ...

    @property
    def catalog(self) -> Catalog:
        """Its types."""
        ...


class BlobProtocol(Protocol):
    """A blob of one entity; an external one has a `uri` and no bytes here."""

    @property
    def etag(self) -> str:
        """The entity tag."""
        ...

    @property
    def size(self) -> int | None:
        """The number of bytes; None of an external blob."""
        ...

    @property
    def uri(self) -> str | None:
        """The address of an external blob."""
        ...

    def read(self, start: int = 0, end: int | None = None) -> bytes:
        """Return the bytes from `start` up to, not including, `end`."""
        ...

    def chunks(self, start: int = 0, end: int | None = None) -> Iterator[bytes]:
        """Yield the bytes of a range in pieces."""
        ...


class BaselineProtocol(Protocol):
    """All entities of a state as lines of JSON, and how to continue from it."""

    @property
    def snapshot_commit_id(self) -> CommitId:
        """The commit of the state."""
        ...

    @property
    def resume_cursor(self) -> str:
        """The cursor that continues from the state."""
        ...

    @property
    def lines(self) -> Iterator[str]:
        """The entities."""
        ...


class BranchesProtocol(Protocol):
    """The branches of a graph."""

    def create(self, name: str, from_: StateRef | None = None) -> Branch:
        """Create a branch at the state of another branch, tag, commit or time."""
        ...

    def list(self) -> list[str]:
        """Return the names of all branches, main among them, sorted."""
        ...

    def get(self, name: str) -> Branch:
        """Return a branch by name."""
        ...

    def delete(self, name: str, *, force: bool = False) -> None:
        """Delete a branch; `force` hands branches that descend from it to its parent."""
        ...


class TagsProtocol(Protocol):
    """The tags of a graph."""

    def create(self, name: str, at: StateRef | None = None) -> Tag:
        """Create a name for a commit that never moves."""
        ...

    def list(self) -> list[Tag]:
        """Return all tags by name."""
        ...

    def delete(self, name: str) -> None:
        """Delete a tag."""
        ...


class CommitsProtocol(Protocol):
    """The history of a graph."""

    def list(
        self, branch: str | None = None, limit: int | None = None, *, actor: str | None = None
    ) -> list[Commit]:
        """Return the commits a branch descends from, newest first; with `actor`, only theirs."""
        ...

    def get(self, id: str) -> Commit:
        """Return a commit of any branch by ID."""
        ...

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
        ...

    def merge_base(self, one: StateRef, other: StateRef) -> tuple[CommitId, ...]:
        """Return the best common ancestors of two states."""
        ...


class ChangesProtocol(Protocol):
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
        ...

    def baseline(
        self,
        *,
        branch: str | None = None,
        kinds: Sequence[str] | None = None,
        types: Sequence[str] | None = None,
        ops: Sequence[str] | None = None,
    ) -> BaselineProtocol:
        """Return all entities of the newest state and the cursor that continues from there.

        `ops` do not limit the entities, only the changes that are polled afterwards.
        """
        ...


class SchemaProtocol(Protocol):
    """The schema of a graph."""

    @property
    def source(self) -> str:
        """The text of the accepted schema."""
        ...

    @property
    def catalog(self) -> Catalog:
        """The types of the accepted schema."""
        ...

    def plan(
        self, text: str, *, allow_data_loss: bool = False, at: StateRef | None = None
    ) -> MigrationPlan:
        """Return the steps from the accepted schema to another, or why there are none."""
        ...

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
        """Apply a schema, as one commit.

        `text` is `.pg` text, or the path of a file with it. Dropped data stays readable in older
        states, unless `allow_data_loss` is set, which removes it. With `dry_run`, everything is
        checked and nothing changed.
        """
        ...

    def diff(self, old: StateRef, new: StateRef) -> MigrationPlan:
        """Return the steps from the schema of one state to that of another."""
        ...


class GraphProtocol(Protocol):
    """A typed property graph; `branch_name` is the branch it reads and writes by default."""

    @property
    def branches(self) -> BranchesProtocol:
        """Its branches."""
        ...

    @property
    def tags(self) -> TagsProtocol:
        """Its tags."""
        ...

    @property
    def commits(self) -> CommitsProtocol:
        """Its history."""
        ...

    @property
    def changes(self) -> ChangesProtocol:
        """The changes of its branches."""
        ...

    @property
    def schema(self) -> SchemaProtocol:
        """Its schema."""
        ...

    @property
    def mode(self) -> str:
        """How it was opened: `rw` or `ro`."""
        ...

    @property
    def actor(self) -> str | None:
        """The actor, which is recorded in commits."""
        ...

    @property
    def branch_name(self) -> str:
        """The branch it reads and writes by default."""
        ...

    @property
    def uri(self) -> str:
        """The address of the graph."""
        ...

    def branch(
        self,
        name: str,
        from_: StateRef | None = None,
        *,
        create: bool = False,
        merge_into: str | None = None,
    ) -> GraphProtocol:
        """Return the same graph bound to an existing branch.

        With `create`, or with `from_` (the branch, tag, commit ID or time to start from), a branch
        that does not exist is created. Used as a context, `with graph.branch("agent/42",
        create=True, merge_into="main") as b:`, it merges the branch into `merge_into` on exit,
        unless the block raised.
        """
        ...

    def snapshot(self, at: StateRef | None = None) -> SnapshotProtocol:
        """Return the state of a branch, tag, commit ID or time, without hidden types."""
        ...

    def diff(
        self,
        a: StateRef,
        b: StateRef,
        *,
        kinds: Sequence[str] | None = None,
        types: Sequence[str] | None = None,
        ops: Sequence[str] | None = None,
    ) -> Iterator[Change]:
        """Yield the entities that differ between two states, nodes first, by type and ID.

        `kinds` are `node` and `edge`, `ops` `insert`, `update` and `delete`; by default all.
        """
        ...

    def entity_at(
        self, type_name: str, id: str, at: StateRef | None = None
    ) -> dict[str, Any] | None:
        """Return one entity of a state, or None when it does not exist there."""
        ...

    def blob(
        self, type_name: str, id: str, property: str, at: StateRef | None = None
    ) -> BlobProtocol:
        """Return a blob of an entity, to be read in ranges."""
        ...

    @overload
    def query(
        self,
        source: str,
        params: Mapping[str, Any] | None = None,
        *,
        name: str | None = None,
        at: StateRef | None = None,
        timeout: float | None = None,
        memory: int | None = None,
        engine: Literal["local"] = "local",
    ) -> Result: ...

    @overload
    def query(
        self,
        source: str,
        params: Mapping[str, Any] | None = None,
        *,
        name: str | None = None,
        at: StateRef | None = None,
        timeout: float | None = None,
        memory: int | None = None,
        engine: str,
    ) -> Any: ...

    def query(
        self,
        source: str,
        params: Mapping[str, Any] | None = None,
        *,
        name: str | None = None,
        at: StateRef | None = None,
        timeout: float | None = None,
        memory: int | None = None,
        engine: str = "local",
    ) -> Any:
        """Run a query on the state of a branch, tag, commit ID or time.

        It may take `timeout` seconds, and `memory` bytes for its rows. With `engine="spark"` the
        answer is a Spark data frame, without these limits.
        """
        ...

    def stream(
        self,
        source: str,
        params: Mapping[str, Any] | None = None,
        *,
        name: str | None = None,
        at: StateRef | None = None,
        timeout: float | None = None,
        memory: int | None = None,
        engine: str = "local",
    ) -> ResultStream:
        """Run a query whose rows may not fit in memory; they are read as they are consumed.

        It may take `timeout` seconds, and `memory` bytes for rows that have to be computed first.
        With `engine="spark"` Spark computes them, and they are kept in memory.
        """
        ...

    def explain(
        self,
        source: str,
        params: Mapping[str, Any] | None = None,
        *,
        name: str | None = None,
        at: StateRef | None = None,
        analyze: bool = False,
        timeout: float | None = None,
        memory: int | None = None,
    ) -> Explanation:
        """Return the plan of a query.

        With `analyze`, run it within the limits of a query, and add rows and times.
        """
        ...

    def mutate(
        self,
        source: str,
        params: Mapping[str, Any] | None = None,
        *,
        name: str | None = None,
        branch: str | None = None,
        if_commit: str | None = None,
        message: str | None = None,
    ) -> MutationResult:
        """Run a mutation as one commit; `if_commit` refuses when the branch is not at that one."""
        ...

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
        ...

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
        ...

    def export(self, at: StateRef | None = None, *, types: Sequence[str] = ()) -> Iterator[str]:
        """Yield every entity as one line of JSON, which `load` reads back."""
        ...

    def load(
        self,
        data: Any,
        *,
        mode: str = "merge",
        branch: str | None = None,
        from_: str | None = None,
        message: str | None = None,
        partial: bool = False,
        strict: bool = True,
        vectors_from: str | None = None,
        progress: ProgressListener | None = None,
        engine: str = "local",
        encoding: str | None = None,
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
        """
        ...

    def insert(
        self,
        type_name: str,
        rows: Any,
        *,
        mode: str = "append",
        branch: str | None = None,
        message: str | None = None,
        vectors_from: str | None = None,
    ) -> LoadResult:
        """Load rows of one type as one commit."""
        ...

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
    ) -> MergeResult:
        """Merge a branch into another, which then has its history; conflicts change nothing.

        `resolve` says who wins where both changed the same: `source`, `target`, or decisions by
        type and entity. `strict` does not merge different properties of one entity. `dry_run`
        returns what would happen, conflicts included.
        """
        ...

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
        ...

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
        ...

    def recoveries(self) -> list[dict[str, Any]]:
        """Return the audit of recovery: what became of interrupted operations."""
        ...


def documented_by(protocol: type) -> Callable[[_ClassT], _ClassT]:
    """Return a decorator that takes missing docstrings of a class from a protocol."""

    def document(implementation: _ClassT) -> _ClassT:
        for name, declared in vars(protocol).items():
            member = vars(implementation).get(name)
            if not name.startswith("_") and member is not None and not member.__doc__:
                member.__doc__ = declared.__doc__
        return implementation

    return document
