"""Bodies of operations beyond the common contract."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, Struct, UnsetType, field

from omnigraph.service.wire.changes import ChangeImageOutput
from omnigraph.service.wire.parameters import FromPath
from omnigraph.service.wire.requests import ChangeOpOutput, EntityKindOutput, EpochMicros, WireCount
from omnigraph.service.wire.responses import CommitOutput


class ReadyOutput(Struct, kw_only=True, omit_defaults=True):
    """That the storage of graphs answers: of how many, out of how many.

    For a cluster also the revision that is served, and a newer one that cannot be served.
    """

    status: str
    graphs: WireCount
    graphs_ready: WireCount
    cluster_revision: WireCount | None = None
    cluster_revision_refused: WireCount | None = None


class ExplainRequest(Struct, kw_only=True):
    """A query to be explained; with `analyze` it is run, too."""

    query: str
    name: str | None = None
    params: Any = None
    branch: str | None = None
    snapshot: str | None = None
    analyze: bool = False
    timeout_seconds: float | None = None
    memory_bytes: int | None = None


class ExplainOutput(Struct, kw_only=True):
    """The operators of a query, top down."""

    query_name: str
    steps: list[Any]
    choices: list[Any] = []


class DiffRequest(Struct, kw_only=True):
    """Two states, each a branch, tag, commit id or time, and which changes between them."""

    from_: str = field(name="from")
    to: str
    kind: list[EntityKindOutput] = []
    type: list[str] = []
    op: list[ChangeOpOutput] = []


class EntityOutput(Struct, kw_only=True):
    """One entity as a state shows it; null when it is not there."""

    entity: Any = None


class HistoryEntryOutput(Struct, kw_only=True):
    """A commit that changed an entity; `before` is the entity at its first parent."""

    commit: CommitOutput
    kind: EntityKindOutput
    type: str
    id: str
    op: ChangeOpOutput
    before: ChangeImageOutput | UnsetType | None = UNSET
    after: ChangeImageOutput | UnsetType | None = UNSET


class EntityHistoryOutput(Struct, kw_only=True):
    """The changes of an entity, newest first, and the commits before which they are unknown."""

    changes: list[HistoryEntryOutput]
    unknown_before: list[str]


class ValueOriginOutput(Struct, kw_only=True):
    """The commit that last set a value; null if it is `unknown_before` or older."""

    graph_commit_id: str | None = None
    actor_id: str | None = None
    created_at: EpochMicros | None = None
    message: str | None = None
    unknown_before: str | None = None


class BlameOutput(Struct, kw_only=True):
    """The origins of the values of an entity, by property; of an edge also `src` and `dst`."""

    values: dict[str, ValueOriginOutput]


class BranchOutput(Struct, kw_only=True):
    """A branch, and where it comes from."""

    name: str
    parent: str | None = None
    fork_commit_id: str | None = None
    actor_id: str | None = None
    created_at: EpochMicros | None = None


class TagOutput(Struct, kw_only=True):
    """A tag and the commit it names."""

    name: str
    graph_commit_id: str
    actor_id: str | None = None
    created_at: EpochMicros


class TagListOutput(Struct, kw_only=True):
    """The tags, by name."""

    tags: list[TagOutput]


class TagCreateRequest(Struct, kw_only=True):
    """The name of a tag, and of the state it refers to."""

    name: str
    branch: str | None = None
    snapshot: str | None = None


class PickRequest(Struct, kw_only=True):
    """A commit to be undone, or to be done again on another branch."""

    commit_id: str
    branch: str | None = None
    dry_run: bool = False
    resolve: Any = None
    message: str | None = None


class SchemaPlanRequest(Struct, kw_only=True):
    """The text of a schema, and the state whose schema would become it."""

    schema_source: str
    allow_data_loss: bool = False
    branch: str | None = None
    snapshot: str | None = None


class SchemaPlanOutput(Struct, kw_only=True):
    """The steps from one schema to another."""

    supported: bool
    step_count: WireCount
    steps: list[Any]


class MergeBaseOutput(Struct, kw_only=True):
    """The best common ancestors of two states.

    `ahead` is the number of commits that only the first one has, `behind` that of the other.
    """

    commit_ids: list[str]
    ahead: WireCount
    behind: WireCount


class RecoveryOutput(Struct, kw_only=True):
    """How an operation of a dead process was settled."""

    operation_id: str
    graph_commit_id: str
    recovery_kind: str
    recovery_for_actor: str | None = None
    operation: str
    branch: str
    per_table_outcomes: list[Any]
    created_at: EpochMicros


class RecoveryListOutput(Struct, kw_only=True):
    """The audit of recovery, oldest first."""

    recoveries: list[RecoveryOutput]


class RunningQueryQuery(Struct, kw_only=True):
    """A running query, by its ID."""

    query_id: FromPath[str]


class RunningQueryOutput(Struct, kw_only=True):
    """A query that runs in a process of the server; `query_digest` is that of its text."""

    query_id: str
    query_name: str
    query_digest: str
    actor_id: str | None
    graph_commit_id: str
    started_at: EpochMicros
    seconds: float
    operator: str | None
    process_id: WireCount


class RunningQueryListOutput(Struct, kw_only=True):
    """The running queries, oldest first."""

    queries: list[RunningQueryOutput]


class SignInRequest(Struct, kw_only=True):
    """A bearer token, or the one-time token of a local Studio."""

    token: str


class SessionOutput(Struct, kw_only=True):
    """The signed-in actor: null where callers need no token (`sign_in` is false).

    `local` servers serve one person. `expires_at` is when the session of a browser ends.
    """

    actor: str | None
    sign_in: bool
    local: bool
    expires_at: EpochMicros | None


class SessionGraphsOutput(Struct, kw_only=True):
    """The IDs of the graphs that the caller may read."""

    graphs: list[str]
