"""This module defines the bodies of requests."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

from msgspec import Meta, Struct, field

# ----------------------------------------------------------------------
# This module names the numbers of the wire: none of them is negative.


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


class ChangesQuery(Struct, kw_only=True):
    """What a reader of changes asks for; a commit has no branch, cursor and start."""

    branch: str | None = None
    cursor: str | None = None
    start: str | None = None
    page_token: str | None = None
    limit: WireCount | None = None
    kind: list[str] = []
    type: list[str] = []
    op: list[str] = []


class BlobQuery(Struct, kw_only=True):
    """Which blob, and of which state."""

    entity: BlobEntityKind
    type: str
    id: str
    property: str
    branch: str | None = None
    snapshot: str | None = None
