"""Bodies of answers."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from msgspec import UNSET, Struct, UnsetType, field

from omnigraph.service.wire.requests import (
    EntityKindOutput,
    EpochMicros,
    LoadMode,
    WireCount,
    WireUInt32,
    WireUInt64,
)


class HealthOutput(Struct, kw_only=True):
    """That the server is ready, and what it is."""

    status: str
    version: str
    internal_schema_version: WireUInt32
    source_version: str | UnsetType | None = UNSET


class GraphInfo(Struct, kw_only=True):
    """A graph that is served."""

    graph_id: str
    uri: str


class GraphListResponse(Struct, kw_only=True):
    """The graphs that are served, by id."""

    graphs: list[GraphInfo]


class SnapshotDatasetOutput(Struct, kw_only=True):
    """The version of one dataset that a state shows."""

    entity_kind: EntityKindOutput
    type_name: str
    dataset_path: str
    published_dataset_version: WireUInt64
    entity_count: WireUInt64
    native_dataset_branch: str | None = None


class SnapshotOutput(Struct, kw_only=True):
    """One state of a graph."""

    graph_branch: str
    graph_manifest_version: WireUInt64
    internal_schema_version: WireUInt32
    datasets: list[SnapshotDatasetOutput]
    graph_commit_id: str
    schema_source: str | UnsetType = UNSET


class ReadTargetOutput(Struct, kw_only=True):
    """What was read."""

    branch: str | None = None
    snapshot: str | None = None


class LegacyReadOutput(Struct, kw_only=True):
    """Rows, as the older route answers."""

    query_name: str
    target: ReadTargetOutput
    row_count: WireCount
    columns: list[str] | UnsetType = UNSET
    rows: Any


class ReadOutput(LegacyReadOutput, kw_only=True):
    """Rows, and the commit they were read from."""

    graph_commit_id: str | UnsetType | None = UNSET

    def legacy(self) -> LegacyReadOutput:
        """Return the same as the older route answers it."""
        names = LegacyReadOutput.__struct_fields__
        return LegacyReadOutput(**{name: getattr(self, name) for name in names})


class CommitOutput(Struct, kw_only=True):
    """A commit; of the branch main, `graph_branch` is null."""

    graph_commit_id: str
    graph_branch: str | None = None
    graph_manifest_version: WireUInt64
    parent_commit_id: str | None = None
    merged_parent_commit_id: str | None = None
    actor_id: str | None = None
    created_at: EpochMicros
    message: str | None = None
    operation: str | None = None
    counts: dict[str, Any] | UnsetType = UNSET
    proposal: Any = UNSET
    """The proposal it merged: its number, the events it was decided on, the source commit."""
    bypassed_protection: bool | UnsetType = UNSET


class CommitListOutput(Struct, kw_only=True):
    """Commits, newest first."""

    commits: list[CommitOutput]


class ChangeOutput(Struct, kw_only=True):
    """What a mutation did; `commit` is null when nothing changed."""

    branch: str
    query_name: str
    affected_nodes: WireCount
    affected_edges: WireCount
    actor_id: str | None = None
    commit: CommitOutput | None = None


class GraphBatchDeclarationOutput(Struct, kw_only=True):
    """How many entities of a type were given."""

    name: str
    entities_loaded: WireCount


class GraphBatchLoadOutput(Struct, kw_only=True):
    """What a load did."""

    branch: str
    base_branch: str | None = None
    branch_created: bool
    mode: LoadMode
    nodes: list[GraphBatchDeclarationOutput]
    edges: list[GraphBatchDeclarationOutput]
    total_entities: WireCount
    actor_id: str | None = None
    commit: CommitOutput | None = None
    notes: list[str] | UnsetType = UNSET


class IngestOutput(Struct, kw_only=True):
    """What a load did, and to which graph."""

    uri: str
    branch: str
    base_branch: str | None = None
    branch_created: bool
    mode: LoadMode
    nodes: list[GraphBatchDeclarationOutput]
    edges: list[GraphBatchDeclarationOutput]
    total_entities: WireCount
    actor_id: str | None = None
    commit: CommitOutput | None = None
    notes: list[str] | UnsetType = UNSET


class BranchListOutput(Struct, kw_only=True):
    """The names of all branches."""

    branches: list[str]


class BranchCreateOutput(Struct, kw_only=True):
    """The branch that was made."""

    uri: str
    from_: str = field(name="from")
    name: str
    actor_id: str | None = None


class BranchDeleteOutput(Struct, kw_only=True):
    """The branch that was deleted."""

    uri: str
    name: str
    actor_id: str | None = None


class BranchMergeOutcome(StrEnum):
    """What a merge came to."""

    ALREADY_UP_TO_DATE = "already_up_to_date"
    FAST_FORWARD = "fast_forward"
    MERGED = "merged"


class BranchMergeOutput(Struct, kw_only=True):
    """What a merge did; `branch_deleted` is set if `delete_branch` was requested."""

    source: str
    target: str
    outcome: BranchMergeOutcome
    actor_id: str | None = None
    branch_deleted: bool | UnsetType | None = UNSET
    branch_delete_error: str | UnsetType | None = UNSET
    commit: CommitOutput | None = None
    counts: dict[str, Any] | UnsetType = UNSET
    conflicts: list[Any] | UnsetType = UNSET


class SchemaOutput(Struct, kw_only=True):
    """The accepted schema."""

    schema_source: str


class SchemaApplyOutput(Struct, kw_only=True):
    """What an apply did."""

    uri: str
    supported: bool
    applied: bool
    step_count: WireCount
    graph_manifest_version: WireUInt64
    steps: list[Any]
    branch: str | UnsetType = UNSET
    actor_id: str | None = None
    commit: CommitOutput | None = None


class ParamKind(StrEnum):
    """What a parameter takes."""

    STRING = "string"
    BOOL = "bool"
    INT = "int"
    BIGINT = "bigint"
    FLOAT = "float"
    DATE = "date"
    DATETIME = "datetime"
    BLOB = "blob"
    VECTOR = "vector"
    LIST = "list"


class ParamDescriptor(Struct, kw_only=True):
    """A parameter of a stored query."""

    name: str
    kind: ParamKind
    item_kind: ParamKind | UnsetType | None = UNSET
    vector_dim: WireUInt32 | UnsetType | None = UNSET
    nullable: bool


class QueryCatalogEntry(Struct, kw_only=True):
    """A stored query: what it is called, what it is for, what it takes."""

    name: str
    tool_name: str
    description: str | UnsetType | None = UNSET
    instruction: str | UnsetType | None = UNSET
    mutation: bool
    params: list[ParamDescriptor]


class QueriesCatalogOutput(Struct, kw_only=True):
    """The stored queries of a graph, by name."""

    queries: list[QueryCatalogEntry]
