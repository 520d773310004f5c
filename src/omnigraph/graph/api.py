"""The public API of an embedded graph: open it, read it, change it, maintain it."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal

import omnigraph.pipeline as spark
from omnigraph.changes.diff import diff
from omnigraph.changes.entity_history import read_blame, read_entity_history
from omnigraph.changes.entity_model import EntityHistory, ValueOrigin
from omnigraph.changes.model import Change, ChangeFilter, check_filter_types
from omnigraph.commit.branches import delete_branch
from omnigraph.commit.graph_creation import create_graph, open_graph
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.model import MAIN, Commit, Snapshot
from omnigraph.commit.protection_store import spread_protection
from omnigraph.commit.recovery import RecoveryAction, read_audit, recover
from omnigraph.commit.snapshot import SnapshotRef, head_snapshot
from omnigraph.commit.torn_recovery import set_aside_torn_versions
from omnigraph.embed.config import VectorsFrom, read_models
from omnigraph.embed.embedder import Embedder, ProviderChoice
from omnigraph.errors import InvalidInput, OmniError
from omnigraph.graph.context import GraphContext
from omnigraph.graph.history import Branches, Changes, Commits, Tags
from omnigraph.graph.listings import CheckResults
from omnigraph.graph.maintenance import Maintenance
from omnigraph.graph.modes import Durability, EngineName, OpenMode
from omnigraph.graph.proposals import Proposals, Protection
from omnigraph.graph.protocol import CommitOptions, GraphApi, MergeCall, QueryCall
from omnigraph.graph.schema import Indexes, Schema, read_schema_text
from omnigraph.maintain.archive import ArchiveReport, read_archive, write_archive
from omnigraph.maintain.cleanup import cleanup
from omnigraph.maintain.cleanup_report import CleanupReport
from omnigraph.maintain.export import export_lines, export_parquet
from omnigraph.maintain.last_good_model import LastGoodReport
from omnigraph.maintain.last_good_subprocess import find_last_good
from omnigraph.maintain.optimize import MaintenanceReport, optimize
from omnigraph.maintain.partitioned_export import PartExportOptions, export_parts, parse_part_format
from omnigraph.maintain.repair import DatasetRepair, repair
from omnigraph.maintain.return_to_last_good import return_to_last_good
from omnigraph.maintain.verify import VerifyReport, verify
from omnigraph.maintain.verify_subprocess import verify_in_subprocess
from omnigraph.merge.conflict_decisions import parse_decisions
from omnigraph.merge.conflicts import MergeConflicts
from omnigraph.merge.merge import cherry_pick, merge, revert
from omnigraph.merge.model import MergeOptions, MergeResult
from omnigraph.notebook.display import ReportList
from omnigraph.pipeline.api import Pipelines
from omnigraph.policy import Policy, PolicyAction
from omnigraph.policy.authorization import Authorizer
from omnigraph.query.analytics.run import GraphAnalysis
from omnigraph.query.checks import CheckResult, StateCheck, run_every_check
from omnigraph.query.engine import Engine, QuerySettings
from omnigraph.query.engine_names import LOCAL_ENGINE, is_spark_engine
from omnigraph.query.entities import Blob, open_blob, read_entity
from omnigraph.query.explain import Explanation
from omnigraph.query.limits import DEFAULT_MEMORY_BYTES
from omnigraph.query.neighbours import Neighbours, read_neighbours
from omnigraph.query.result import Result, ResultStream
from omnigraph.query.running import RUNNING_QUERIES, RunningQuery, unknown_running_query
from omnigraph.query.subgraph import Subgraph, read_subgraph
from omnigraph.storage import locate
from omnigraph.write.embedding_backfill import EmbedOptions, EmbedResult, embed_type
from omnigraph.write.external_blobs import ExternalBlobs
from omnigraph.write.load import LoadOptions, LoadResult, load
from omnigraph.write.mutation import MutationResult, run_mutation, write_blob
from omnigraph.write.progress import ProgressListener
from omnigraph.write.request import MAINTENANCE_OPERATION, WriteRequest


def init(  # noqa: PLR0913 - the options of a graph
    uri: str | os.PathLike[str],
    schema: str | os.PathLike[str],
    *,
    storage_options: Mapping[str, str] | None = None,
    external_blobs: Sequence[str] = (),
    embedding: ProviderChoice = None,
    policy: Policy | str | os.PathLike[str] | None = None,
    actor: str | None = None,
    durability: Durability | None = None,
) -> Graph:
    """Create an empty graph at an address that has none.

    `schema` is `.pg` text, or the path of a file with it. `external_blobs` are places below which
    blobs given as a URI may lie; by default there is none. `embedding` says what turns texts into
    vectors: a profile (`kind`, `base_url`, `model`, `api_key` as `${NAME}`) or a provider; by
    default the environment says it. A `policy` (a file, its text, or one that was read) decides
    what the `actor` may do. `durability` is that of `open`.
    """
    gate = Authorizer(None if policy is None else Policy.of(policy), actor)
    gate.check(PolicyAction.SCHEMA_APPLY, target_branch=MAIN)
    manifest = Manifest(locate(uri, storage_options, durability))
    ExternalBlobs.below(external_blobs)
    create_graph(manifest, read_schema_text(schema))
    set_aside_torn_versions(manifest)
    engine = Engine(manifest, may_write=True, embedder=Embedder(embedding))
    blobs = tuple(external_blobs)
    context = GraphContext(
        manifest=manifest, engine=engine, mode="rw", external_blobs=blobs, gate=gate
    )
    return Graph(context)


def open(  # noqa: PLR0913 - the options of a graph
    uri: str | os.PathLike[str],
    mode: OpenMode = "rw",
    *,
    storage_options: Mapping[str, str] | None = None,
    external_blobs: Sequence[str] = (),
    embedding: ProviderChoice = None,
    policy: Policy | str | os.PathLike[str] | None = None,
    actor: str | None = None,
    durability: Durability | None = None,
) -> Graph:
    """Open a graph; `ro` never writes, `rw` first settles what a dead process left in flight.

    Blobs may stay where they are below the bases of `external_blobs`. `embedding` is a profile or
    a provider of vectors for texts; by default the environment says it. A `policy` (a file, its
    text, or one that was read) decides what the `actor` may do; without an actor, nothing.

    On a local disk, `durability="full"` syncs every commit before the call returns, so that it
    survives a power failure; `"relaxed"` leaves that to the operating system. The default is the
    environment variable OMNIGRAPH_DURABILITY, or `"full"`.
    """
    gate = Authorizer(None if policy is None else Policy.of(policy), actor)
    if mode not in ("rw", "ro"):
        raise InvalidInput(f"mode is 'rw' or 'ro', not '{mode}'", code="mode_invalid")
    manifest = Manifest(locate(uri, storage_options, durability))
    ExternalBlobs.below(external_blobs)
    if mode == "rw":
        set_aside_torn_versions(manifest)
    open_graph(manifest)
    if mode == "rw":
        recover(manifest)
        spread_protection(manifest)
    engine = Engine(manifest, may_write=mode == "rw", embedder=Embedder(embedding))
    blobs = tuple(external_blobs)
    context = GraphContext(
        manifest=manifest, engine=engine, mode=mode, external_blobs=blobs, gate=gate
    )
    return Graph(context)


def import_archive(
    path: str | os.PathLike[str],
    uri: str | os.PathLike[str],
    *,
    storage_options: Mapping[str, str] | None = None,
    policy: Policy | str | os.PathLike[str] | None = None,
    actor: str | None = None,
    durability: Durability | None = None,
) -> ArchiveReport:
    """Make a graph of a file that `export_archive` wrote, at an address that has none."""
    Authorizer(None if policy is None else Policy.of(policy), actor).check(PolicyAction.ADMIN)
    manifest = Manifest(locate(uri, storage_options, durability))
    return read_archive(manifest, Path(path), actor=actor)


def repair_to_last_good(
    uri: str | os.PathLike[str],
    *,
    confirm: bool = False,
    storage_options: Mapping[str, str] | None = None,
    policy: Policy | str | os.PathLike[str] | None = None,
    actor: str | None = None,
) -> LastGoodReport:
    """Return every branch to its newest whole version; without `confirm` only report.

    It works on a graph that cannot be opened. The report lists what is lost. Files that are set
    aside stay in a folder `_quarantine` of the graph.
    """
    gate = Authorizer(None if policy is None else Policy.of(policy), actor)
    gate.check(PolicyAction.ADMIN)
    gate.require_unrestricted("repair")
    location = locate(uri, storage_options)
    report = find_last_good(location)
    return return_to_last_good(Manifest(location), report, actor=actor) if confirm else report


class Graph(GraphApi[GraphContext, SnapshotRef]):
    """A typed property graph; `branch_name` is the branch it reads and writes by default."""

    def __init__(self, context: GraphContext) -> None:
        super().__init__(context)
        self.branches: Branches = Branches(context)
        self.tags: Tags = Tags(context)
        self.commits: Commits = Commits(context)
        self.changes: Changes = Changes(context)
        self.schema: Schema = Schema(context)
        self.proposals: Proposals = Proposals(context)
        self.protection: Protection = Protection(context)
        self.indexes = Indexes(context)
        self.maintenance = Maintenance(context)

    @property
    def _manifest(self) -> Manifest:
        return self._context.manifest

    @property
    def _engine(self) -> Engine:
        return self._context.engine

    @property
    def mode(self) -> OpenMode:
        return self._context.mode

    @property
    def actor(self) -> str | None:
        return self._context.gate.actor

    @property
    def uri(self) -> str:
        return self._manifest.location.uri

    def as_actor(self, actor: str) -> Graph:
        """Return the same graph bound to an actor, whose name its commits carry.

        If the graph has a policy, it decides what that actor may do.
        """
        gate = replace(self._context.gate, actor=actor)
        return Graph(replace(self._context, gate=gate, verified=False))

    def as_verified_actor(self, actor: str) -> Graph:
        """Return the same graph bound to an actor that the caller has identified.

        Events of proposals record that; the name given to `as_actor` is a claim.
        """
        gate = replace(self._context.gate, actor=actor)
        return Graph(replace(self._context, gate=gate, verified=True))

    def with_checks(self, checks: Sequence[StateCheck]) -> Graph:
        """Return the same graph with checks, which run before a proposal is merged.

        `og.read_checks(folder)` reads them from files.
        """
        given: Sequence[object] = checks
        if not all(isinstance(one, StateCheck) for one in given):
            message = "checks are what `og.read_checks(folder)` returns"
            raise InvalidInput(message, code="check_invalid")
        return Graph(replace(self._context, checks=tuple(checks)))

    def with_policy(self, policy: Policy) -> Graph:
        """Return the same graph with a policy, which decides what each actor may do."""
        return Graph(replace(self._context, gate=replace(self._context.gate, policy=policy)))

    def under(self, policy: Policy) -> Graph:
        """Return `with_policy(policy)`; a deprecated name of it."""
        warnings.warn("`under` is deprecated: use `with_policy`", DeprecationWarning, stacklevel=2)
        return self.with_policy(policy)

    def _has_branch(self, name: str) -> bool:
        return self._context.has_branch(name)

    def snapshot(self, at: SnapshotRef | None = None) -> Snapshot:
        return self._context.snapshot(at)

    def _diff(self, a: SnapshotRef, b: SnapshotRef, scope: ChangeFilter) -> Iterator[Change]:
        old, new = self.snapshot(a), self.snapshot(b)
        check_filter_types(scope, [old.schema, new.schema])
        return diff(self._manifest, old, new, scope)

    def entity_at(
        self, type_name: str, id: str, at: SnapshotRef | None = None
    ) -> dict[str, Any] | None:
        return read_entity(self._manifest, self.snapshot(at), type_name, id)

    def history(
        self, type_name: str, id: str, at: SnapshotRef | None = None, *, limit: int | None = None
    ) -> EntityHistory:
        return read_entity_history(self._manifest, self.snapshot(at), type_name, id, limit)

    def blame(
        self, type_name: str, id: str, at: SnapshotRef | None = None
    ) -> Mapping[str, ValueOrigin]:
        return read_blame(self._manifest, self.snapshot(at), type_name, id)

    def neighbours(
        self, type_name: str, id: str, at: SnapshotRef | None = None, *, limit: int | None = None
    ) -> Neighbours:
        snapshot, settings = self.snapshot(at), self._settings(None, None)

        def run(source: str, parameters: dict[str, Any]) -> Result:
            return self._engine.run(snapshot, source, parameters, None, settings)

        return read_neighbours(snapshot, type_name, id, limit, run)

    def _subgraph(self, call: QueryCall[SnapshotRef], limit: int | None) -> Subgraph:
        snapshot, settings = self.snapshot(call.at), self._settings(call.timeout, call.memory)

        def run(source: str, _: dict[str, Any]) -> Result:
            return self._engine.run(snapshot, source, call.params, None, settings)

        return read_subgraph(snapshot, call.source, call.name, limit, run)

    def blob(self, type_name: str, id: str, property: str, at: SnapshotRef | None = None) -> Blob:
        return open_blob(self._manifest, self.snapshot(at), type_name, id, property)

    def _query(self, call: QueryCall[SnapshotRef], engine: EngineName) -> Any:  # noqa: ANN401 - by engine
        source, params, name = call.source, call.params, call.name
        if is_spark_engine(engine, timeout=call.timeout, memory=call.memory):
            return spark.query_frame(self, source, params, name=name, at=call.at)
        settings = self._settings(call.timeout, call.memory)
        return self._engine.run(self.snapshot(call.at), source, params, name, settings)

    def _stream(self, call: QueryCall[SnapshotRef], engine: EngineName) -> ResultStream:
        source, params, name = call.source, call.params, call.name
        if is_spark_engine(engine, timeout=call.timeout, memory=call.memory):
            return spark.query_stream(self, source, params, name=name, at=call.at)
        settings = self._settings(call.timeout, call.memory)
        return self._engine.stream(self.snapshot(call.at), source, params, name, settings)

    def _settings(self, timeout: float | None, memory: int | None) -> QuerySettings:
        memory = DEFAULT_MEMORY_BYTES if memory is None else memory
        return QuerySettings(timeout=timeout, memory=memory, actor=self.actor)

    def running_queries(self) -> list[RunningQuery]:
        running = RUNNING_QUERIES.list(self.uri, self._context.query_owner())
        return ReportList("Running queries", running)

    def cancel_query(self, id: str) -> None:
        if not RUNNING_QUERIES.cancel(id, self.uri, self._context.query_owner()):
            raise unknown_running_query(id)

    @property
    def checks(self) -> tuple[StateCheck, ...]:
        """The checks that run before a proposal is merged."""
        return self._context.checks

    def run_checks(self, *, at: SnapshotRef | None = None) -> list[CheckResult]:
        return CheckResults(run_every_check(self._engine, self.snapshot(at), self._context.checks))

    def can_name(self, source: str, name: str) -> bool:
        """Return whether the actor may see everything a query names, on some branch.

        Rules about types hide what they leave out: such a query does not exist for the actor.
        """
        return self._context.can_name(source, name)

    def _explain(self, call: QueryCall[SnapshotRef], *, analyze: bool) -> Explanation:
        settings = self._settings(call.timeout, call.memory)
        snapshot = self.snapshot(call.at)
        if analyze:
            return self._engine.analyze(snapshot, call.source, call.params, call.name, settings)
        return self._engine.explain(snapshot, call.source, call.name)

    def analyze(
        self,
        algorithm: str,
        edges: Sequence[str],
        *,
        at: SnapshotRef | None = None,
        engine: EngineName = LOCAL_ENGINE,
        timeout: float | None = None,
        memory: int | None = None,
        **options: Any,  # noqa: ANN401 - those of the algorithm
    ) -> Any:  # noqa: ANN401 - by engine
        """Run a graph algorithm over edges of some types; return a value for every node.

        `algorithm` is `pagerank`, `components`, `labels`, `degrees`, `shortest_paths`, `kcore` or
        `triangles`. The rows have the columns `type`, `id` and `value`, in the order of type and
        ID. It may take `timeout` seconds and `memory` bytes, 2 GiB by default. With
        `engine="spark"` the answer is a Spark data frame, without these limits.
        """
        snapshot = self.snapshot(at)
        run = GraphAnalysis.of(snapshot, algorithm, edges, options)
        if spark.check_engine(run.algorithm, engine, timeout=timeout, memory=memory):
            self._for_spark()
            return spark.value_frame(self, run)
        return run.run(self._engine, self._settings(timeout, memory)).result(snapshot.commit_id)

    def _mutate(self, call: QueryCall[SnapshotRef], target: CommitOptions) -> MutationResult:
        request = self._context.write_request("mutation", target)
        return run_mutation(self._manifest, request, call.source, call.params, call.name)

    def _set_blob(
        self, selector: tuple[str, str, str], data: bytes | None, target: CommitOptions
    ) -> Commit | None:
        request = self._context.write_request("mutation", target)
        return write_blob(self._manifest, request, selector, data)

    def export(self, at: SnapshotRef | None = None, *, types: Sequence[str] = ()) -> Iterator[str]:
        return export_lines(self._manifest, self._context.snapshot(at, PolicyAction.EXPORT), types)

    def export_parquet(
        self,
        folder: str | os.PathLike[str],
        at: SnapshotRef | None = None,
        *,
        types: Sequence[str] = (),
    ) -> dict[str, int]:
        """Write one Parquet file per type; return how many entities each holds."""
        snapshot = self._context.snapshot(at, PolicyAction.EXPORT)
        return export_parquet(self._manifest, snapshot, Path(folder), types)

    def export_parts(
        self,
        folder: str | os.PathLike[str],
        at: SnapshotRef | None = None,
        *,
        types: Sequence[str] = (),
        format: str = "parquet",
        engine: EngineName = LOCAL_ENGINE,
    ) -> dict[str, int]:
        """Write a folder of files per type; return how many entities each type has.

        `folder` may be an `s3://` address; `format` is `parquet`, `csv` or `ndjson`. With
        `engine="spark"` executors write, each what it reads.
        """
        options = PartExportOptions(
            target=locate(folder), format=parse_part_format(format), types=tuple(types)
        )
        run = spark.on_spark if is_spark_engine(engine) else None
        snapshot = self._context.snapshot(at, PolicyAction.EXPORT)
        return export_parts(self._manifest, snapshot, options, run)

    def export_archive(
        self, path: str | os.PathLike[str], at: SnapshotRef | None = None, *, history: bool = False
    ) -> ArchiveReport:
        """Write one state, or with `history` the whole graph, into a file for `import_archive`."""
        if history:
            self._context.check_maintenance("an archive with history")
        snapshot = self._context.snapshot(at, PolicyAction.EXPORT)
        self._context.gate.require_unrestricted("an archive", snapshot.branch)
        return write_archive(self._manifest, snapshot, Path(path), history=history)

    def _load(
        self,
        data: Any,  # noqa: ANN401 - a path, a file, bytes, or tables by type
        options: LoadOptions,
        target: CommitOptions,
        vectors_from: VectorsFrom,
        engine: EngineName,
    ) -> LoadResult:
        self._context.check_fork(target.branch, options.from_)
        request = self._context.write_request("load", target)
        request = replace(request, vectors_from=read_models(vectors_from))
        if is_spark_engine(engine):
            return spark.load_sources(self._for_spark(), request, data, options, spark.session())
        return load(self._manifest, request, data, options)

    def embed(
        self,
        type_name: str,
        property: str | None = None,
        *,
        all: bool = False,
        branch: str | None = None,
        message: str | None = None,
        progress: ProgressListener | None = None,
    ) -> EmbedResult:
        """Make the vectors a type lacks from its texts, as one commit; with `all`, every vector.

        `property` says which, if the type has several properties with `@embed`.
        """
        options = EmbedOptions(type_name=type_name, property=property, all=all, progress=progress)
        return embed_type(
            self._manifest,
            self._context.write_request("embed", CommitOptions(branch, message)),
            options,
        )

    def _merge(self, source: str, target: CommitOptions, call: MergeCall) -> MergeResult:
        deletes = call.delete_branch and not call.dry_run
        target_branch = self._context.branch(target.branch)
        if call.dry_run:
            self._context.check_preview(source, target_branch)
        else:
            self._context.gate.check(PolicyAction.BRANCH_MERGE, source, target_branch)
        if deletes:
            self._context.gate.check(PolicyAction.BRANCH_DELETE, target_branch=source)
        request = self._context.merge_request("merge", target)
        options = _merge_options(call)
        state = head_snapshot(self._manifest, source)
        try:
            result = merge(self._manifest, request, state, options)
        except MergeConflicts as error:
            self._context.check_conflicts_shown(error.conflicts, state.branch, target_branch)
            raise
        if not deletes:
            return result
        try:
            permit = self._context.permit(source)
            delete_branch(self._manifest, source, permit=permit, unchanged_since=state)
        except OmniError as error:
            return replace(result, branch_deleted=False, branch_delete_error=error.message)
        return replace(result, branch_deleted=True)

    def _apply_commit(
        self,
        operation: Literal["revert", "cherry_pick"],
        commit: str,
        target: CommitOptions,
        call: MergeCall,
    ) -> MergeResult:
        branch = self._context.branch(target.branch)
        self._context.gate.check(PolicyAction.CHANGE, branch)
        if operation == "cherry_pick":
            self._context.check_cherry_pick(commit, branch)
        else:
            self._context.check_revert(commit, branch)
        request = self._context.merge_request(operation, target)
        apply = revert if operation == "revert" else cherry_pick
        try:
            result = apply(self._manifest, request, commit, _merge_options(call))
        except MergeConflicts as error:
            self._context.check_conflicts_shown(error.conflicts, branch, branch)
            raise
        self._context.check_conflicts_shown(result.conflicts, branch, branch)
        return result

    @property
    def pipeline(self) -> Pipelines:
        """The pipelines of the graph: files that say what is loaded on Spark, and their runs."""
        self._context.gate.check(PolicyAction.READ)
        return Pipelines(self)

    def _for_spark(self) -> Manifest:
        """Return the graph for a job that sees all types."""
        self._context.gate.require_unrestricted("a job on Spark")
        return self._manifest

    def _load_request(
        self, branch: str | None, from_: str | None, message: str | None
    ) -> WriteRequest:
        """Allow a load of one type on Spark, before its rows are computed."""
        self._context.check_fork(branch, from_)
        return self._context.write_request("load", CommitOptions(branch, message))

    def _request(self, operation: str, branch: str | None, message: str | None) -> WriteRequest:
        """Allow a job on Spark to write."""
        self._for_spark()
        return self._context.pipeline_request(operation, branch, message)

    def optimize(
        self, *, branch: str | None = None, engine: EngineName = LOCAL_ENGINE
    ) -> MaintenanceReport:
        """Compact every type and complete its indexes, as one commit that changes no entity.

        With `engine="spark"` executors do the work.
        """
        self._context.check_maintenance("optimize")
        request = self._context.request(MAINTENANCE_OPERATION, CommitOptions(branch, None))
        if is_spark_engine(engine):
            return spark.optimize_on_spark(self._manifest, request)
        return optimize(self._manifest, request)

    def verify(self, *, deep: bool = False, engine: EngineName = LOCAL_ENGINE) -> VerifyReport:
        """Prove that the graph is whole; with `engine="spark"`, executors read it.

        `deep` compares every file with its checksum first, in a process with limited memory.
        """
        self._context.check_maintenance("verify")
        if is_spark_engine(engine):
            report = verify_in_subprocess(self._manifest.location, plain=False) if deep else None
            if report is not None and not report.ok:
                return report
            return spark.verify_on_spark(self._manifest, report=report)
        return verify_in_subprocess(self._manifest.location) if deep else verify(self._manifest)

    def repair(self, *, confirm: bool = False) -> list[DatasetRepair]:
        """Bring derived state up to date; without `confirm` only report."""
        self._context.check_maintenance("repair")
        if confirm:
            self._context.require_writable()
        return ReportList("Repair", repair(self._manifest, confirm=confirm))

    def recover(self, *, stale_after: timedelta | None = None) -> list[RecoveryAction]:
        """Finish or undo what dead processes left in flight."""
        self._context.check_maintenance("recover")
        self._context.require_writable()
        return recover(self._manifest, stale_after=stale_after)

    def recoveries(self) -> list[dict[str, Any]]:
        self._context.check_maintenance("the audit of recovery")
        return read_audit(self._manifest)

    def cleanup(
        self,
        *,
        keep: int | None = None,
        older_than: timedelta | None = None,
        confirm: bool = False,
    ) -> CleanupReport:
        """Remove what no retained snapshot needs; without `confirm` only report what would go."""
        self._context.check_maintenance("cleanup")
        if confirm:
            self._context.require_writable()
        return cleanup(self._manifest, keep=keep, older_than=older_than, dry_run=not confirm)


def _merge_options(call: MergeCall) -> MergeOptions:
    decisions = parse_decisions(call.resolve)
    return MergeOptions(dry_run=call.dry_run, strict=call.strict, decisions=decisions)
