"""Requests: JSON bodies, and the structs `…Query` of requests with parameters."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

from msgspec import Meta, Struct, field

from omnigraph.service.wire.parameters import (
    FromBody,
    FromHeader,
    FromPath,
    FromQuery,
    Marker,
    OptionalText,
    ParameterLocation,
)

IF_GRAPH_COMMIT = "Omnigraph-If-Graph-Commit"
"""The header that names the commit a conditional mutation expects its branch to be at."""

# Numbers: none of them is negative.

WireCount = Annotated[int, Meta(ge=0)]
WireUInt64 = Annotated[int, Meta(ge=0, extra_json_schema={"format": "int64"})]
WireUInt32 = Annotated[int, Meta(ge=0, extra_json_schema={"format": "int32"})]
EpochMicros = Annotated[int, Meta(extra_json_schema={"format": "int64"})]
"""Microseconds since 1970."""


class BlobEntityKind(StrEnum):
    """What a blob belongs to."""

    NODE = "node"
    EDGE = "edge"


class EntityKindOutput(StrEnum):
    """The two kinds of entity."""

    NODE = "node"
    EDGE = "edge"


class ChangeOpOutput(StrEnum):
    """What happened to an entity."""

    INSERT = "insert"
    UPDATE = "update"
    DELETE = "delete"


class LoadMode(StrEnum):
    """What a load does about entities that exist."""

    OVERWRITE = "overwrite"
    APPEND = "append"
    MERGE = "merge"


class QueryRequest(Struct, kw_only=True):
    """A query, and of which state: of a branch, or of the one a snapshot names."""

    query: str
    name: str | None = None
    params: Any = None
    branch: str | None = None
    snapshot: str | None = None
    timeout_seconds: float | None = None
    memory_bytes: int | None = None


class ReadRequest(Struct, kw_only=True):
    """A query as the older route takes it."""

    query_source: str
    query_name: str | None = None
    params: Any = None
    branch: str | None = None
    snapshot: str | None = None

    def modern(self) -> QueryRequest:
        """Return the same as the newer route takes it."""
        return QueryRequest(
            query=self.query_source,
            name=self.query_name,
            params=self.params,
            branch=self.branch,
            snapshot=self.snapshot,
        )


class ChangeRequest(Struct, kw_only=True):
    """A mutation and the branch it changes."""

    query: str
    name: str | None = None
    params: Any = None
    branch: str | None = None
    message: str | None = None


DEPRECATED_FIELD_NAMES = {"query_source": "query", "query_name": "name"}
"""Members of a mutation under the names they once had, which still mean the same."""


class InvokeStoredQueryRequest(Struct, kw_only=True):
    """How to run a stored query; `expect_mutation` refuses one of the other sort."""

    params: Any = None
    branch: str | None = None
    snapshot: str | None = None
    expect_mutation: bool | None = None


class IngestRequest(Struct, kw_only=True):
    """Entities as lines of JSON, and where they go."""

    data: str
    branch: str | None = None
    from_: str | None = field(default=None, name="from")
    mode: LoadMode | None = None


class BranchCreateRequest(Struct, kw_only=True):
    """The name of a branch to be made, and of the branch or the state it forks from."""

    name: str
    from_: str | None = field(default=None, name="from")
    snapshot: str | None = None


class BranchMergeRequest(Struct, kw_only=True):
    """Which branch is merged into which."""

    source: str
    target: str | None = None
    delete_branch: bool = False
    dry_run: bool = False
    strict: bool = False
    resolve: Any = None
    message: str | None = None


class SchemaApplyRequest(Struct, kw_only=True):
    """The text of the schema to be accepted."""

    schema_source: str
    allow_data_loss: bool = False
    branch: str | None = None
    dry_run: bool = False
    message: str | None = None


class ExportRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """What to export; no type names mean all types."""

    branch: str | None = None
    snapshot: str | None = None
    type_names: list[str] = []


class ChangeBaselineRequest(Struct, kw_only=True):
    """Which entities a baseline holds."""

    branch: str | None = None
    kind: list[EntityKindOutput] = []
    type: list[str] = []
    op: list[ChangeOpOutput] = []


class SnapshotQuery(Struct, kw_only=True):
    """A state of a graph; `schema` adds the text of its schema."""

    branch: FromQuery[str | None] = None
    snapshot: FromQuery[str | None] = None
    schema: FromQuery[bool | None] = None


class EntityQuery(Struct, kw_only=True):
    """One entity of a state."""

    type: FromQuery[str]
    id: FromQuery[str]
    branch: FromQuery[str | None] = None
    snapshot: FromQuery[str | None] = None


class EntityHistoryQuery(EntityQuery, kw_only=True):
    """The newest changes of one entity up to a state."""

    limit: Annotated[int | None, Marker(ParameterLocation.QUERY, schema=WireCount)] = None


class StoredQueryQuery(Struct, kw_only=True):
    """A stored query and how to run it."""

    name: FromPath[str]
    body: FromBody[InvokeStoredQueryRequest] = field(default_factory=InvokeStoredQueryRequest)


class ConditionalStoredQueryQuery(StoredQueryQuery, kw_only=True):
    """A stored mutation that runs only if the branch is at a commit."""

    if_commit: FromHeader[str] = field(name=IF_GRAPH_COMMIT)


class ConditionalChangeQuery(Struct, kw_only=True):
    """A mutation that runs only if the branch is at a commit."""

    if_commit: FromHeader[str] = field(name=IF_GRAPH_COMMIT)
    body: FromBody[ChangeRequest]


class LoadLinesQuery(Struct, kw_only=True):
    """Lines of JSON, and where they are loaded."""

    branch: FromQuery[str | None] = None
    from_: FromQuery[str | None] = field(default=None, name="from")
    mode: Annotated[str | None, Marker(ParameterLocation.QUERY, schema=LoadMode | None)] = None
    message: FromQuery[str | None] = None
    partial: FromQuery[bool | None] = None
    vectors_from: FromQuery[str | None] = None
    data: FromBody[bytes]


class BranchQuery(Struct, kw_only=True):
    """A branch, by name."""

    branch: FromPath[str]


class TagQuery(Struct, kw_only=True):
    """A tag, by name."""

    tag: FromPath[str]


class MergeBaseQuery(Struct, kw_only=True):
    """Two states, each a branch, tag, commit ID or time."""

    one: FromQuery[str]
    other: FromQuery[str]


class CommitQuery(Struct, kw_only=True):
    """A commit, by ID."""

    commit_id: FromPath[str]


class CommitListQuery(Struct, kw_only=True):
    """The history of a branch; `actor` selects the commits of one author."""

    branch: FromQuery[str | None] = None
    limit: Annotated[int | None, Marker(ParameterLocation.QUERY, schema=WireCount)] = None
    actor: FromQuery[str | None] = None


class ChangesQuery(Struct, kw_only=True):
    """A page of changes, and which of them."""

    page_token: OptionalText = None
    limit: Annotated[int | None, Marker(ParameterLocation.QUERY, schema=WireCount)] = None
    kind: Annotated[list[str], Marker(ParameterLocation.QUERY, schema=list[EntityKindOutput])] = []
    type: FromQuery[list[str]] = []
    op: Annotated[list[str], Marker(ParameterLocation.QUERY, schema=list[ChangeOpOutput])] = []


class CommitChangesQuery(ChangesQuery, kw_only=True):
    """The changes of a commit."""

    commit_id: FromPath[str]


class ChangeFeedQuery(ChangesQuery, kw_only=True):
    """The changes of a branch from a position on."""

    branch: OptionalText = None
    cursor: OptionalText = None
    start: OptionalText = None


class BlobQuery(Struct, kw_only=True):
    """A blob of one entity, and of which state; the headers select a range or a condition."""

    entity: FromQuery[BlobEntityKind]
    type: FromQuery[str]
    id: FromQuery[str]
    property: FromQuery[str]
    branch: OptionalText = None
    snapshot: OptionalText = None
    if_match: FromHeader[str | None] = field(default=None, name="If-Match")
    range: FromHeader[str | None] = field(default=None, name="Range")
    if_none_match: FromHeader[str | None] = field(default=None, name="If-None-Match")
    if_range: FromHeader[str | None] = field(default=None, name="If-Range")
