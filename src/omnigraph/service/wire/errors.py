"""Bodies of errors."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from msgspec import UNSET, Struct, UnsetType

from omnigraph.service.wire.requests import EntityKindOutput, WireUInt64


class ErrorCode(StrEnum):
    """What kind of trouble it is; some statuses have none."""

    UNAUTHORIZED = "unauthorized"
    FORBIDDEN = "forbidden"
    BAD_REQUEST = "bad_request"
    NOT_FOUND = "not_found"
    METHOD_NOT_ALLOWED = "method_not_allowed"
    CONFLICT = "conflict"
    TOO_MANY_REQUESTS = "too_many_requests"
    INTERNAL = "internal"


class MergeConflictKindOutput(StrEnum):
    """Why two changes do not go together."""

    DIVERGENT_INSERT = "divergent_insert"
    DIVERGENT_UPDATE = "divergent_update"
    DELETE_VS_UPDATE = "delete_vs_update"
    ORPHAN_EDGE = "orphan_edge"
    UNIQUE_VIOLATION = "unique_violation"
    CARDINALITY_VIOLATION = "cardinality_violation"
    VALUE_CONSTRAINT_VIOLATION = "value_constraint_violation"


class MergeConflictOutput(Struct, kw_only=True):
    """One thing two branches do not agree on."""

    entity_kind: EntityKindOutput
    type_name: str
    entity_id: str | None = None
    kind: MergeConflictKindOutput
    message: str


class PublishedDatasetVersionConflictOutput(Struct, kw_only=True):
    """A dataset moved since it was read."""

    entity_kind: EntityKindOutput
    type_name: str
    expected_published_dataset_version: WireUInt64
    actual_published_dataset_version: WireUInt64


class ReadSetConflictOutput(Struct, kw_only=True):
    """Something moved since it was read."""

    member: str
    expected: str | None = None
    actual: str | None = None


class KeyConflictOutput(Struct, kw_only=True):
    """An entity to be inserted exists."""

    entity_kind: EntityKindOutput
    type_name: str
    entity_id: str | UnsetType | None = UNSET


class ResourceLimitOutput(Struct, kw_only=True):
    """More was requested than is allowed."""

    resource: str
    limit: WireUInt64
    actual: WireUInt64


class BlobRangeOutput(Struct, kw_only=True):
    """A range that a blob does not have."""

    start: WireUInt64
    end: WireUInt64
    length: WireUInt64


class ExternalBlobSourceOutput(Struct, kw_only=True):
    """A blob elsewhere that cannot be read."""

    uri: str
    reason: str


class RecoveryRequiredOutput(Struct, kw_only=True):
    """An operation whose outcome has to be looked up."""

    operation_id: str


class PreconditionFailureOutput(Struct, kw_only=True):
    """The branch is at another commit."""

    expected: str
    actual: str | UnsetType | None = UNSET


class ChangeFeedGapOutput(Struct, kw_only=True):
    """Changes that can no longer be read."""

    cursor: str | UnsetType | None = UNSET
    first_unreadable_commit_id: str


class ChangeDiffRefusalReason(StrEnum):
    """Why the changes of a commit cannot be listed."""

    PARENTLESS_COMMIT = "parentless_commit"
    SCHEMA_BOUNDARY = "schema_boundary"
    UNKNOWN = "unknown"


class ChangeDiffRefusalOutput(Struct, kw_only=True):
    """A commit whose changes cannot be listed."""

    reason: ChangeDiffRefusalReason
    graph_commit_id: str
    type_name: str | UnsetType | None = UNSET


class ProblemOutput(Struct, kw_only=True):
    """The same trouble as the embedded graph raises it: its stable code, category and facts."""

    code: str
    category: str
    kind: str | UnsetType = UNSET
    """The name of the class of the error."""
    details: dict[str, Any] | UnsetType = UNSET


class ErrorOutput(Struct, kw_only=True):
    """What went wrong, and the facts of it."""

    error: str
    code: ErrorCode | UnsetType | None = UNSET
    merge_conflicts: list[MergeConflictOutput] | UnsetType = UNSET
    published_dataset_version_conflict: PublishedDatasetVersionConflictOutput | UnsetType | None = (
        UNSET
    )
    read_set_conflict: ReadSetConflictOutput | UnsetType | None = UNSET
    key_conflict: KeyConflictOutput | UnsetType | None = UNSET
    resource_limit: ResourceLimitOutput | UnsetType | None = UNSET
    blob_range: BlobRangeOutput | UnsetType | None = UNSET
    external_blob_source: ExternalBlobSourceOutput | UnsetType | None = UNSET
    recovery_required: RecoveryRequiredOutput | UnsetType | None = UNSET
    precondition_failure: PreconditionFailureOutput | UnsetType | None = UNSET
    change_feed_gap: ChangeFeedGapOutput | UnsetType | None = UNSET
    change_diff_refusal: ChangeDiffRefusalOutput | UnsetType | None = UNSET
    problem: ProblemOutput | UnsetType | None = UNSET


class ChangeErrorOutput(Struct, kw_only=True):
    """What went wrong on a route of changes."""

    error: str
    code: ErrorCode | UnsetType | None = UNSET
    resource_limit: ResourceLimitOutput | UnsetType | None = UNSET
    recovery_required: RecoveryRequiredOutput | UnsetType | None = UNSET
    change_feed_gap: ChangeFeedGapOutput | UnsetType | None = UNSET
    change_diff_refusal: ChangeDiffRefusalOutput | UnsetType | None = UNSET
    problem: ProblemOutput | UnsetType | None = UNSET
