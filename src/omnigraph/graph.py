"""This module is the public face of a graph: it delegates, it decides nothing."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import islice
from pathlib import Path
from typing import Any

from omnigraph import pipeline
from omnigraph.catalog import Catalog, MigrationPlan, plan_migration
from omnigraph.changes.baseline import Baseline, capture
from omnigraph.changes.block import Limits
from omnigraph.changes.commit_page import CommitPage, commit_page
from omnigraph.changes.diff import diff
from omnigraph.changes.feed import FeedPage, Poll, poll
from omnigraph.changes.model import Change
from omnigraph.changes.scope import check_types, read_scope
from omnigraph.commit.branches import create_branch, create_tag, delete_branch, delete_tag
from omnigraph.commit.create import create_graph, open_graph
from omnigraph.commit.history import find_commit, merge_bases, newest_first, read_commits
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.model import MAIN, Branch, Commit, CommitId, Snapshot, Tag
from omnigraph.commit.recovery import Recovery, read_audit, recover
from omnigraph.commit.snapshot import Target, head_snapshot, resolve_snapshot
from omnigraph.embed.embedder import Choice, Embedder
from omnigraph.errors import InvalidInput, OmniError
from omnigraph.maintain.archive import ArchiveReport, read_archive, write_archive
from omnigraph.maintain.cleanup import CleanupReport, cleanup
from omnigraph.maintain.export import export_lines, export_parquet
from omnigraph.maintain.indexes import IndexStatus, index_status
from omnigraph.maintain.optimize import UpkeepReport, optimize
from omnigraph.maintain.purge import purge
from omnigraph.maintain.repair import DatasetRepair, repair
from omnigraph.maintain.verify import Verification, verify
from omnigraph.merge.decisions import read_decisions
from omnigraph.merge.merge import MergeOptions, MergeResult, cherry_pick, merge, revert
from omnigraph.query.blob import Blob, open_blob
from omnigraph.query.budget import DEFAULT_MEMORY
from omnigraph.query.engine import Engine, Settings
from omnigraph.query.entity import read_entity
from omnigraph.query.explain import Explanation
from omnigraph.query.result import Result, ResultStream
from omnigraph.storage import locate
from omnigraph.write.embed import EmbedOptions, EmbedResult, embed_type
from omnigraph.write.external import ExternalBlobs
from omnigraph.write.load import LoadOptions, LoadResult, check_engine, load, mode_of
from omnigraph.write.migrate import (
    SCHEMA_APPLY,
    SchemaOptions,
    SchemaResult,
    apply_schema,
    plan_schema,
)
from omnigraph.write.progress import Listener
from omnigraph.write.request import UPKEEP, Request
from omnigraph.write.run import MutationResult, run_mutation, write_blob


def init(
    uri: str | os.PathLike[str],
    schema: str | os.PathLike[str],
    *,
    storage_options: Mapping[str, str] | None = None,
    external_blobs: Sequence[str] = (),
    embedding: Choice = None,
) -> Graph:
    """Create an empty graph at an address that has none.

    `schema` is `.pg` text, or the path of a file with it. `external_blobs` are places below which
    blobs given as a URI may lie; by default there is none. `embedding` says what turns texts into
    vectors: a profile (`kind`, `base_url`, `model`, `api_key` as `${NAME}`) or a provider; by
    default the environment says it.
    """
    manifest = Manifest(locate(uri, storage_options))
    ExternalBlobs.below(external_blobs)
    create_graph(manifest, _schema_text(schema))
    engine = Engine(manifest, may_write=True, embedder=Embedder(embedding))
    return Graph(manifest, mode="rw", external_blobs=external_blobs, engine=engine)


def open(
    uri: str | os.PathLike[str],
    mode: str = "rw",
    *,
    storage_options: Mapping[str, str] | None = None,
    external_blobs: Sequence[str] = (),
    embedding: Choice = None,
) -> Graph:
    """Open a graph; `ro` never writes, `rw` first settles what a dead process left in flight.

    Blobs may stay where they are below the bases of `external_blobs`. `embedding` is a profile or
    a provider of vectors for texts; by default the environment says it.
    """
    if mode not in ("rw", "ro"):
        raise InvalidInput(f"mode is 'rw' or 'ro', not '{mode}'", code="mode_invalid")
    manifest = Manifest(locate(uri, storage_options))
    ExternalBlobs.below(external_blobs)
    open_graph(manifest)
    if mode == "rw":
        recover(manifest)
    engine = Engine(manifest, may_write=mode == "rw", embedder=Embedder(embedding))
    return Graph(manifest, mode=mode, external_blobs=external_blobs, engine=engine)


def import_archive(
    path: str | os.PathLike[str],
    uri: str | os.PathLike[str],
    *,
    storage_options: Mapping[str, str] | None = None,
    actor: str | None = None,
) -> ArchiveReport:
    """Make a graph of a file that `export_archive` wrote, at an address that has none."""
    manifest = Manifest(locate(uri, storage_options))
    return read_archive(manifest, Path(path), actor=actor)


def _schema_text(schema: str | os.PathLike[str]) -> str:
    if isinstance(schema, str) and ("\n" in schema or "{" in schema or not schema.endswith(".pg")):
        return schema
    try:
        return Path(schema).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        message = f"cannot read the schema file {os.fspath(schema)}: {reason}"
        raise InvalidInput(message, code="schema_file_unreadable") from error


class Graph:
    """A typed property graph; `on` is the branch it reads and writes unless told otherwise."""

    def __init__(
        self,
        manifest: Manifest,
        *,
        mode: str,
        actor: str | None = None,
        on: str = MAIN,
        external_blobs: Sequence[str] = (),
        engine: Engine | None = None,
    ) -> None:
        self._manifest = manifest
        self._merge_into: str | None = None
        self._engine = engine or Engine(manifest, may_write=mode == "rw")
        self.mode = mode
        self.actor = actor
        self.on = on
        self._external_blobs = tuple(external_blobs)
        self.branches = Branches(self)
        self.tags = Tags(self)
        self.commits = Commits(self)
        self.changes = Changes(self)
        self.schema = Schema(self)
        self.indexes = Indexes(self)

    @property
    def uri(self) -> str:
        """The address of the graph."""
        return self._manifest.location.uri

    def as_actor(self, actor: str) -> Graph:
        """Return the same graph bound to an actor, whose name its commits carry."""
        return self._bound(actor=actor, on=self.on)

    def branch(
        self, name: str, from_: Target | None = None, *, merge_into: str | None = None
    ) -> Graph:
        """Return the same graph bound to a branch, which is created unless it exists.

        As a context it reads well: `with graph.branch("agent/42") as b: b.mutate(…)`. Once that is
        left without an error, the branch is merged into the one `merge_into` names.
        """
        if name not in self.branches.list():
            self.branches.create(name, from_=from_)
        bound = self._bound(actor=self.actor, on=name)
        bound._merge_into = merge_into
        return bound

    def _bound(self, *, actor: str | None, on: str) -> Graph:
        return Graph(
            self._manifest,
            mode=self.mode,
            actor=actor,
            on=on,
            external_blobs=self._external_blobs,
            engine=self._engine,
        )

    def __enter__(self) -> Graph:
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        """Merge the branch if that was asked for and all went well; it stays in any case."""
        if error is None and self._merge_into is not None:
            self.merge(self.on, into=self._merge_into)

    def snapshot(self, at: Target | None = None) -> Snapshot:
        """Return the state a branch, tag, commit id or time names."""
        return resolve_snapshot(self._manifest, self.on if at is None else at, branch=self.on)

    def diff(
        self,
        a: Target,
        b: Target,
        *,
        kinds: Sequence[str] | None = None,
        types: Sequence[str] | None = None,
        ops: Sequence[str] | None = None,
    ) -> Iterator[Change]:
        """Yield what became of each entity from one state to another, nodes first, by type and id.

        `kinds` are `node` and `edge`, `ops` `insert`, `update` and `delete`; by default all.
        """
        old, new = self.snapshot(a), self.snapshot(b)
        scope = read_scope(kinds, types, ops)
        check_types(scope, [old.schema, new.schema])
        return diff(self._manifest, old, new, scope)

    def entity_at(self, type_name: str, id: str, at: Target | None = None) -> dict[str, Any] | None:
        """Return one entity as it was, or None when it was not there."""
        return read_entity(self._manifest, self.snapshot(at), type_name, id)

    def blob(self, type_name: str, id: str, property: str, at: Target | None = None) -> Blob:
        """Return a blob of an entity, to be read in ranges."""
        return open_blob(self._manifest, self.snapshot(at), type_name, id, property)

    def query(
        self,
        source: str,
        params: Mapping[str, Any] | None = None,
        *,
        name: str | None = None,
        at: Target | None = None,
        timeout: float | None = None,
        memory: int | None = None,
    ) -> Result:
        """Answer a query on the state a branch, tag, commit id or time names.

        It may take `timeout` seconds, and `memory` bytes for its rows.
        """
        settings = Settings(timeout=timeout, memory=memory or DEFAULT_MEMORY)
        return self._engine.run(self.snapshot(at), source, params, name, settings)

    def stream(
        self,
        source: str,
        params: Mapping[str, Any] | None = None,
        *,
        name: str | None = None,
        at: Target | None = None,
        timeout: float | None = None,
    ) -> ResultStream:
        """Answer a query whose rows may not fit memory; they are read as somebody takes them."""
        settings = Settings(timeout=timeout)
        return self._engine.stream(self.snapshot(at), source, params, name, settings)

    def explain(
        self,
        source: str,
        params: Mapping[str, Any] | None = None,
        *,
        name: str | None = None,
        at: Target | None = None,
        analyze: bool = False,
    ) -> Explanation:
        """Show how a query would be answered; with `analyze`, run it and tell what happened."""
        return self._engine.explain(self.snapshot(at), source, params, name, analyze=analyze)

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
        request = self._request("mutation", branch, message, if_commit)
        return run_mutation(self._manifest, request, source, params, name)

    def put_blob(
        self,
        type_name: str,
        id: str,
        property: str,
        data: bytes,
        *,
        branch: str | None = None,
        message: str | None = None,
    ) -> Commit:
        """Set a blob of an entity that exists, as one commit."""
        request = self._request("mutation", branch, message)
        return write_blob(self._manifest, request, (type_name, id, property), data)

    def export(self, at: Target | None = None, *, types: Sequence[str] = ()) -> Iterator[str]:
        """Yield every entity as one line of JSON, which `load` reads back."""
        return export_lines(self._manifest, self.snapshot(at), types)

    def export_parquet(
        self, folder: str | os.PathLike[str], at: Target | None = None, *, types: Sequence[str] = ()
    ) -> dict[str, int]:
        """Write one Parquet file per type; return how many entities each holds."""
        return export_parquet(self._manifest, self.snapshot(at), Path(folder), types)

    def export_archive(
        self, path: str | os.PathLike[str], at: Target | None = None, *, history: bool = False
    ) -> ArchiveReport:
        """Write one state, or with `history` the whole graph, into a file for `import_archive`."""
        return write_archive(self._manifest, self.snapshot(at), Path(path), history=history)

    def load(  # noqa: PLR0913 - everything a load can be told
        self,
        data: Any,  # noqa: ANN401 - a path, a file, bytes, or tables by type
        *,
        mode: str = "merge",
        branch: str | None = None,
        from_: str | None = None,
        message: str | None = None,
        partial: bool = False,
        strict: bool = True,
        progress: Listener | None = None,
        engine: str = "local",
    ) -> LoadResult:
        """Load data as one commit.

        `data` is NDJSON (a path, several, an open file, bytes), or a dictionary from the name of a
        type to its rows: a table, a data frame, dictionaries, or the path of a Parquet, CSV or
        Arrow file. `append` refuses entities that exist, `merge` replaces them, `overwrite`
        replaces all of each type; `partial` keeps properties that are not given. `from_` is where
        a branch that does not exist is forked from. Without `strict`, lines are read by the older,
        forgiving grammar. `engine` is `local`, or `spark`, which does the same on the running Spark
        session, or on one of this machine that it starts.
        """
        options = LoadOptions(
            mode=mode_of(mode), partial=partial, strict=strict, from_=from_, progress=progress
        )
        request = self._request("load", branch, message)
        if check_engine(engine) == "spark":
            return pipeline.load_sources(self._manifest, request, data, options, pipeline.session())
        return load(self._manifest, request, data, options)

    def insert(
        self,
        type_name: str,
        rows: Any,  # noqa: ANN401 - a table, a data frame, dictionaries, or a path
        *,
        mode: str = "append",
        branch: str | None = None,
        message: str | None = None,
    ) -> LoadResult:
        """Load rows of one type as one commit."""
        return self.load({type_name: rows}, mode=mode, branch=branch, message=message)

    def embed(
        self,
        type_name: str,
        property: str | None = None,
        *,
        all: bool = False,
        branch: str | None = None,
        message: str | None = None,
        progress: Listener | None = None,
    ) -> EmbedResult:
        """Make the vectors a type lacks from its texts, as one commit; with `all`, every vector.

        `property` says which, if the type has several properties with `@embed`.
        """
        options = EmbedOptions(type_name=type_name, property=property, all=all, progress=progress)
        return embed_type(self._manifest, self._request("embed", branch, message), options)

    def _request(
        self, operation: str, branch: str | None, message: str | None, if_commit: str | None = None
    ) -> Request:
        self._writable()
        return Request(
            branch=self.on if branch is None else branch,
            operation=operation,
            actor=self.actor,
            message=message,
            if_commit=CommitId(if_commit) if if_commit is not None else None,
            external_blobs=self._external_blobs,
            embedder=self._engine.embedder,
        )

    def merge(  # noqa: PLR0913 - everything a merge can be told
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
        type and entity. `strict` does not merge different properties of one entity. `dry_run` tells
        what would happen, conflicts included.
        """
        request = self._request("merge", into, message)
        options = MergeOptions(dry_run=dry_run, strict=strict, decisions=read_decisions(resolve))
        snapshot = head_snapshot(self._manifest, source)
        result = merge(self._manifest, request, snapshot, options)
        if not delete_branch or dry_run:
            return result
        try:
            self.branches.delete(source)
        except OmniError as error:
            return replace(result, branch_deleted=False, branch_delete_error=error.message)
        return replace(result, branch_deleted=True)

    def revert(
        self,
        commit: str,
        *,
        branch: str | None = None,
        dry_run: bool = False,
        resolve: str | Mapping[str, Any] | None = None,
        message: str | None = None,
    ) -> MergeResult:
        """Undo what a commit did, as a commit; what others did to the same since is a conflict."""
        request = self._request("revert", branch, message)
        options = MergeOptions(dry_run=dry_run, decisions=read_decisions(resolve))
        return revert(self._manifest, request, commit, options)

    def cherry_pick(
        self,
        commit: str,
        *,
        branch: str | None = None,
        dry_run: bool = False,
        resolve: str | Mapping[str, Any] | None = None,
        message: str | None = None,
    ) -> MergeResult:
        """Do on a branch what a commit did elsewhere, as a commit."""
        request = self._request("cherry_pick", branch, message)
        options = MergeOptions(dry_run=dry_run, decisions=read_decisions(resolve))
        return cherry_pick(self._manifest, request, commit, options)

    def optimize(self, *, branch: str | None = None) -> UpkeepReport:
        """Compact every type and complete its indexes, as one commit that changes no entity."""
        return optimize(self._manifest, self._request(UPKEEP, branch, None))

    def verify(self) -> Verification:
        """Prove that the graph is whole."""
        return verify(self._manifest)

    def repair(self, *, confirm: bool = False) -> list[DatasetRepair]:
        """Bring derived state up to date; without `confirm` only tell."""
        if confirm:
            self._writable()
        return repair(self._manifest, confirm=confirm)

    def recover(self, *, stale_after: timedelta | None = None) -> list[Recovery]:
        """Finish or undo what dead processes left in flight."""
        self._writable()
        if stale_after is None:
            return recover(self._manifest)
        return recover(self._manifest, stale_after=stale_after)

    def recoveries(self) -> list[dict[str, Any]]:
        """Return the audit of everything recovery ever did."""
        return read_audit(self._manifest)

    def cleanup(
        self,
        *,
        keep: int | None = None,
        older_than: timedelta | None = None,
        confirm: bool = False,
    ) -> CleanupReport:
        """Remove what no retained snapshot needs; without `confirm` only tell what would go."""
        if confirm:
            self._writable()
        return cleanup(self._manifest, keep=keep, older_than=older_than, dry_run=not confirm)

    def _writable(self) -> None:
        if self.mode != "rw":
            raise InvalidInput("this graph is open read-only", code="read_only")


class Schema:
    """The schema of a graph."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    @property
    def source(self) -> str:
        """The text of the accepted schema."""
        return self._graph.snapshot().schema_source

    @property
    def catalog(self) -> Catalog:
        """What the accepted schema means."""
        return self._graph.snapshot().catalog

    def plan(
        self, text: str, *, allow_data_loss: bool = False, at: Target | None = None
    ) -> MigrationPlan:
        """Return the steps from the accepted schema to another, or what stands in the way."""
        accepted = self._graph.snapshot(at).schema
        return plan_schema(accepted, text, allow_data_loss=allow_data_loss)[0]

    def apply(
        self,
        text: str | os.PathLike[str],
        *,
        branch: str | None = None,
        allow_data_loss: bool = False,
        message: str | None = None,
        dry_run: bool = False,
        progress: Listener | None = None,
    ) -> SchemaResult:
        """Make another schema the accepted one, as one commit.

        `text` is `.pg` text, or the path of a file with it. What is dropped stays readable in older
        states, unless `allow_data_loss` says that it shall be gone. With `dry_run`, everything is
        checked and nothing changed.
        """
        graph = self._graph
        options = SchemaOptions(allow_data_loss=allow_data_loss, dry_run=dry_run, progress=progress)
        request = graph._request(SCHEMA_APPLY, branch, message)
        result = apply_schema(graph._manifest, request, _schema_text(text), options)
        if result.lost:
            purge(graph._manifest, result.lost, result.branch)
        return result

    def diff(self, old: Target, new: Target) -> MigrationPlan:
        """Return the steps from the schema of one state to that of another."""
        before, after = (self._graph.snapshot(target).schema for target in (old, new))
        return plan_migration(before, after)


class Indexes:
    """The indexes of a graph: derived, allowed to lag, never needed for a right answer."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    def status(self, at: Target | None = None) -> list[IndexStatus]:
        """Return every index the schema asks for, and how much of its type it covers."""
        return index_status(self._graph._manifest, self._graph.snapshot(at))

    def ensure(self, *, branch: str | None = None) -> UpkeepReport:
        """Build what is missing, as one commit that changes no entity."""
        request = self._graph._request(UPKEEP, branch, None)
        return optimize(self._graph._manifest, request, compacting=False)


class Branches:
    """The branches of a graph."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    def create(self, name: str, from_: Target | None = None) -> Branch:
        """Create a branch at the state of another branch, tag, commit or time."""
        self._graph._writable()
        source = self._graph.snapshot(from_)
        return create_branch(self._graph._manifest, name, source, actor=self._graph.actor)

    def list(self) -> list[str]:
        """Return the names of all branches, main among them, sorted."""
        return sorted([MAIN, *self._graph._manifest.branches()])

    def get(self, name: str) -> Branch:
        """Return a branch by name."""
        return self._graph._manifest.branch(name)

    def delete(self, name: str, *, force: bool = False) -> None:
        """Delete a branch; `force` hands branches that descend from it to its parent."""
        self._graph._writable()
        delete_branch(self._graph._manifest, name, reparent=force)


class Tags:
    """The tags of a graph."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    def create(self, name: str, at: Target | None = None) -> Tag:
        """Give a commit a name that never moves."""
        self._graph._writable()
        source = self._graph.snapshot(at)
        return create_tag(self._graph._manifest, name, source, actor=self._graph.actor)

    def list(self) -> list[Tag]:
        """Return all tags by name."""
        return sorted(self._graph._manifest.tags().values(), key=lambda tag: tag.name)

    def delete(self, name: str) -> None:
        """Forget a tag."""
        self._graph._writable()
        delete_tag(self._graph._manifest, name)


class Commits:
    """The history of a graph."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    def list(self, branch: str | None = None, limit: int | None = None) -> list[Commit]:
        """Return the commits a branch descends from, newest first."""
        snapshot = head_snapshot(self._graph._manifest, branch or self._graph.on)
        state = self._graph._manifest.lineage(snapshot.native).state()
        commits = read_commits(self._graph._manifest.line(state))
        found = newest_first(commits, snapshot.commit_id)
        return list(islice(found, limit))

    def get(self, id: str) -> Commit:
        """Return a commit by id, on whatever branch it is."""
        return find_commit(self._graph._manifest, id)[0].commit

    def changes(
        self,
        id: str,
        *,
        kinds: Sequence[str] | None = None,
        types: Sequence[str] | None = None,
        ops: Sequence[str] | None = None,
        page_token: str | None = None,
        limits: Limits | None = None,
    ) -> CommitPage:
        """Return what a commit changed against its first parent, a page of it at a time."""
        scope = read_scope(kinds, types, ops)
        manifest = self._graph._manifest
        return commit_page(manifest, id, scope, page_token=page_token, limits=limits)

    def merge_base(self, one: Target, other: Target) -> tuple[CommitId, ...]:
        """Return the best common ancestors of two states."""
        manifest = self._graph._manifest
        states = [self._graph.snapshot(target) for target in (one, other)]
        heads = [manifest.lineage(state.native).state() for state in states]
        commits = read_commits(state for head in heads for state in manifest.line(head))
        return tuple(merge_bases(commits, states[0].commit_id, states[1].commit_id))


class Changes:
    """What happened on a branch, commit by commit, for a reader that keeps a copy of it."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

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
        """Return the next page of changes, and how to go on.

        From where is said by `start` (`now`, which is the default, `beginning` or `after:ID`), by
        the `cursor` of an earlier page, or by its `page_token` if it ended within a commit.
        """
        asked = Poll(
            branch=branch or self._graph.on,
            start=start,
            cursor=cursor,
            page_token=page_token,
            scope=read_scope(kinds, types, ops),
            limits=limits or Limits(),
        )
        return poll(self._graph._manifest, asked)

    def baseline(
        self,
        *,
        branch: str | None = None,
        kinds: Sequence[str] | None = None,
        types: Sequence[str] | None = None,
        ops: Sequence[str] | None = None,
    ) -> Baseline:
        """Return all entities of the newest state and the cursor that goes on from there.

        `ops` do not limit the entities, only the changes that are polled afterwards.
        """
        scope, manifest = read_scope(kinds, types, ops), self._graph._manifest
        found = capture(manifest, branch or self._graph.on, scope)
        lines = export_lines(manifest, found.snapshot, found.types) if found.types else iter(())
        return Baseline(found, lines)
