"""The status and the body of an error.

Internal and storage errors have a fixed text: no paths, no causes, no stack.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import ceil
from types import MappingProxyType
from typing import Any

import msgspec
from msgspec import UNSET

from omnigraph.error_codes import http_status
from omnigraph.errors import Category, ExpectedVersionMismatch, OmniError
from omnigraph.merge.conflicts import Conflict, ConflictKind, MergeConflicts
from omnigraph.service import wire
from omnigraph.service.admission import RETRY_AFTER_SECONDS
from omnigraph.service.auth import Unauthorized
from omnigraph.write.inputs.line_parser import MAX_LINE_BYTES, MAX_STRUCTURAL_CHARS
from omnigraph.write.violations import ViolationRule

_CODES: Mapping[int, wire.ErrorCode] = MappingProxyType(
    {
        **dict.fromkeys((400, 408, 413, 415, 416, 422), wire.ErrorCode.BAD_REQUEST),
        401: wire.ErrorCode.UNAUTHORIZED,
        403: wire.ErrorCode.FORBIDDEN,
        404: wire.ErrorCode.NOT_FOUND,
        405: wire.ErrorCode.METHOD_NOT_ALLOWED,
        409: wire.ErrorCode.CONFLICT,
        429: wire.ErrorCode.TOO_MANY_REQUESTS,
        500: wire.ErrorCode.INTERNAL,
    }
)
_FIXED: Mapping[str, str] = MappingProxyType(
    {
        "internal": "something went wrong in the server; its log says what, under the request id",
        "storage": "storage did not do what it should; try again, or look into the server's log",
    }
)


@dataclass(frozen=True, slots=True)
class ErrorDescription:
    """The status, the headers and the bodies of an error."""

    status: int
    body: wire.ErrorOutput
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def change_body(self) -> wire.ChangeErrorOutput:
        """The body on the routes of changes."""
        names = wire.ChangeErrorOutput.__struct_fields__
        return wire.ChangeErrorOutput(**{name: getattr(self.body, name) for name in names})


def describe_error(error: Exception) -> ErrorDescription:
    """Return the status and the body of an error."""
    if not isinstance(error, OmniError):
        return _internal_error(500, "internal", Category.INTERNAL, _FIXED["internal"])
    status = status_of(error)
    if status == 500:
        text = _FIXED["storage" if error.category is Category.UNAVAILABLE else "internal"]
        return _internal_error(status, error.code, error.category, text)
    facts = {name: make(error) for name, make in _FACTS.items()}
    is_conflict = error.code == "blob_changed"
    body = wire.ErrorOutput(
        error=error.message,
        code=wire.ErrorCode.CONFLICT if is_conflict else _CODES.get(status, UNSET),
        problem=_problem(error),
        **{name: fact for name, fact in facts.items() if fact is not None},
    )
    return ErrorDescription(status, body, _headers(status, error))


def status_of(error: OmniError) -> int:
    """Return the HTTP status of an error, by the registry of error codes."""
    if _line_limit(error) is not None:
        return 413
    return http_status(error.code, error.category)


def _internal_error(status: int, code: str, category: Category, text: str) -> ErrorDescription:
    problem = wire.ProblemOutput(code=code, category=str(category))
    return ErrorDescription(
        status, wire.ErrorOutput(error=text, code=_CODES[status], problem=problem)
    )


def _problem(error: OmniError) -> wire.ProblemOutput:
    details = {name: fact for name, fact in error.details.items() if name != "cause"}
    plain = msgspec.to_builtins(details, enc_hook=_to_json_value, str_keys=True)
    kind = type(error).__name__
    return wire.ProblemOutput(
        code=error.code, category=str(error.category), kind=kind, details=plain
    )


def _to_json_value(value: Any) -> Any:  # noqa: ANN401 - whatever stands among the facts of an error
    """Return a value as JSON has it: numbers of arrays are numbers, the rest is text."""
    return value.item() if hasattr(value, "item") else str(value)


def _headers(status: int, error: OmniError) -> dict[str, str]:
    if status == 429:
        return {"Retry-After": str(getattr(error, "retry_after", RETRY_AFTER_SECONDS))}
    if isinstance(error, Unauthorized):
        reason = ', error="invalid_token"' if error.is_invalid else ""
        return {"WWW-Authenticate": f'Bearer realm="omnigraph"{reason}'}
    if status == 416:
        return {"Content-Range": f"bytes */{error.details['length']}"}
    return {}


# ---------------------------------------------------------------- facts


def _merge_conflicts(error: OmniError) -> list[wire.MergeConflictOutput] | None:
    if not isinstance(error, MergeConflicts):
        return None
    return [_conflict(conflict) for conflict in error.conflicts]


def _conflict(conflict: Conflict) -> wire.MergeConflictOutput:
    known = conflict.kind is not ConflictKind.SCHEMA_CONFLICT
    kind = conflict.kind if known else ConflictKind.VALUE_CONSTRAINT_VIOLATION
    return wire.MergeConflictOutput(
        entity_kind=wire.EntityKindOutput(conflict.entity_kind or "node"),
        type_name=conflict.type or "",
        entity_id=conflict.id,
        kind=wire.MergeConflictKindOutput(kind),
        message=conflict.message,
    )


def _version_conflict(error: OmniError) -> wire.PublishedDatasetVersionConflictOutput | None:
    if not isinstance(error, ExpectedVersionMismatch):
        return None
    kind, _, name = error.table_key.partition(":")
    return wire.PublishedDatasetVersionConflictOutput(
        entity_kind=wire.EntityKindOutput(kind),
        type_name=name,
        expected_published_dataset_version=error.expected or 0,
        actual_published_dataset_version=error.actual or 0,
    )


def _read_set(error: OmniError) -> wire.ReadSetConflictOutput | None:
    details = error.details
    if isinstance(error, ExpectedVersionMismatch):
        expected, actual = (str(n or 0) for n in (error.expected, error.actual))
        return wire.ReadSetConflictOutput(member=error.table_key, expected=expected, actual=actual)
    if error.code == "schema_moved":
        facts = {name: str(details[name]) for name in ("expected", "actual")}
        return wire.ReadSetConflictOutput(member="schema", **facts)
    if error.category is Category.CONTENTION:
        return wire.ReadSetConflictOutput(member="graph_head")
    return None


def _key_conflict(error: OmniError) -> wire.KeyConflictOutput | None:
    if error.code != "key_conflict":
        return None
    return wire.KeyConflictOutput(
        entity_kind=wire.EntityKindOutput(error.details["entity_kind"]),
        type_name=error.details["type_name"],
        entity_id=error.details["entity_id"] or UNSET,
    )


def _line_limit(error: OmniError) -> wire.ResourceLimitOutput | None:
    """Return which limit a line of a batch goes beyond, if one does."""
    for violation in getattr(error, "violations", ()):
        if violation.rule in _LINE_LIMITS:
            resource, limit = _LINE_LIMITS[violation.rule]
            # A line that is too long is not read to its end.
            actual = violation.value or limit + 1
            return wire.ResourceLimitOutput(resource=resource, limit=limit, actual=actual)
    return None


_LINE_LIMITS = {
    ViolationRule.LINE_BYTES: ("graph_batch_line_bytes", MAX_LINE_BYTES),
    ViolationRule.LINE_SLOTS: ("graph_batch_json_structural_slots", MAX_STRUCTURAL_CHARS),
}
_QUERY_RESOURCES = {
    "query_timeout": "query_seconds",
    "query_memory": "query_memory_bytes",
    "query_memory_busy": "query_memory_total_bytes",
    "query_count_overflow": "query_count",
}


def _resource_limit(error: OmniError) -> wire.ResourceLimitOutput | None:
    details = error.details
    if error.code == "validation_failed":
        return _line_limit(error)
    if error.code in _QUERY_RESOURCES:
        limit = ceil(details["limit"])
        resource = _QUERY_RESOURCES[error.code]
        return wire.ResourceLimitOutput(resource=resource, limit=limit, actual=limit)
    if error.category is not Category.LIMIT or "resource" not in details:
        return None
    facts = {name: details[name] for name in ("resource", "limit", "actual")}
    return wire.ResourceLimitOutput(**facts)


def _details_of(code: str, shape: type[msgspec.Struct]) -> Callable[[OmniError], Any]:
    """Return a function that returns the details of errors with a code, as a struct."""
    return lambda error: msgspec.convert(error.details, shape) if error.code == code else None


def _external(error: OmniError) -> wire.ExternalBlobSourceOutput | None:
    if error.code != "external_blob_source":
        return None
    uri, reason = error.details.get("uri", ""), error.details.get("reason", error.message)
    return wire.ExternalBlobSourceOutput(uri=str(uri), reason=str(reason))


def _recovery(error: OmniError) -> wire.RecoveryRequiredOutput | None:
    if error.category is not Category.OUTCOME_UNKNOWN:
        return None
    return wire.RecoveryRequiredOutput(operation_id=error.details.get("commit_id", "unknown"))


def _precondition(error: OmniError) -> wire.PreconditionFailureOutput | None:
    if error.code != "precondition_failed":
        return None
    actual = error.details["actual"]
    return wire.PreconditionFailureOutput(
        expected=error.details["expected"], actual=UNSET if actual is None else actual
    )


def _refusal(error: OmniError) -> wire.ChangeDiffRefusalOutput | None:
    if "reason" not in error.details or "graph_commit_id" not in error.details:
        return None
    return msgspec.convert(error.details, wire.ChangeDiffRefusalOutput)


_FACTS: Mapping[str, Callable[[OmniError], Any]] = MappingProxyType(
    {
        "merge_conflicts": _merge_conflicts,
        "published_dataset_version_conflict": _version_conflict,
        "read_set_conflict": _read_set,
        "key_conflict": _key_conflict,
        "resource_limit": _resource_limit,
        "blob_range": _details_of("blob_range_not_satisfiable", wire.BlobRangeOutput),
        "external_blob_source": _external,
        "recovery_required": _recovery,
        "precondition_failure": _precondition,
        "change_feed_gap": _details_of("change_feed_gap", wire.ChangeFeedGapOutput),
        "change_diff_refusal": _refusal,
    }
)
