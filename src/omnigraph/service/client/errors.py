"""Errors of a server as the embedded graph raises them: same class, same details."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import httpx
import msgspec

from omnigraph.catalog import SchemaChangeRefused
from omnigraph.catalog.migration_steps import UnsupportedChange
from omnigraph.changes import (
    ChangeFeedGap,
    ChangeSchemaBoundary,
    CommitHasNoParent,
    CursorRejected,
)
from omnigraph.changes.errors import PageLimitExceeded
from omnigraph.errors import (
    AlreadyExists,
    Category,
    Contention,
    ExpectedVersionMismatch,
    FormatUnsupported,
    InvalidInput,
    NotFound,
    OmniError,
    OutcomeUnknown,
    PreconditionFailed,
    SchemaMoved,
    StorageUnavailable,
    VersionReclaimed,
)
from omnigraph.lang import Diagnostic, QueryError, SchemaError, Severity, SourceText, TextSpan
from omnigraph.merge.conflicts import MergeConflicts
from omnigraph.merge.key_changes import KeyChangeBlocked
from omnigraph.policy import PolicyDenied
from omnigraph.query.limits import QueryLimit
from omnigraph.service.auth import Unauthorized
from omnigraph.service.client.decode import read_conflict
from omnigraph.service.client.migration_steps import read_code
from omnigraph.write import KeyConflict, ValidationFailed, Violation
from omnigraph.write.violations import InputLocation, ViolationRule

_ERRORS: Mapping[str, type[OmniError]] = {
    error.__name__: error
    for error in (
        AlreadyExists,
        ChangeFeedGap,
        ChangeSchemaBoundary,
        CommitHasNoParent,
        Contention,
        CursorRejected,
        ExpectedVersionMismatch,
        FormatUnsupported,
        InvalidInput,
        KeyChangeBlocked,
        KeyConflict,
        MergeConflicts,
        NotFound,
        OutcomeUnknown,
        PageLimitExceeded,
        PolicyDenied,
        PreconditionFailed,
        QueryError,
        QueryLimit,
        SchemaChangeRefused,
        SchemaError,
        SchemaMoved,
        StorageUnavailable,
        Unauthorized,
        ValidationFailed,
        VersionReclaimed,
    )
}
"""The error classes of the embedded graph that a server reports by name."""
_BY_CATEGORY: Mapping[Category, type[OmniError]] = MappingProxyType(
    {
        Category.INVALID: InvalidInput,
        Category.NOT_FOUND: NotFound,
        Category.DENIED: PolicyDenied,
        Category.CONTENTION: Contention,
        Category.UNAVAILABLE: StorageUnavailable,
    }
)


def decode_error(response: httpx.Response, text: str | None = None) -> OmniError:
    """Return the error of an answer; `text` is the query or schema that was sent."""
    try:
        body = msgspec.json.decode(response.content)
        message, problem = body["error"], body.get("problem") or {}
    except (msgspec.DecodeError, KeyError, TypeError, AttributeError):
        return _unknown_server_error(response)
    if not problem:
        return _contract_error(response, message, body)
    word, details = problem.get("category"), problem.get("details") or {}
    category = Category(word) if word in list(Category) else Category.INTERNAL
    kind = _ERRORS.get(problem.get("kind", "")) or _BY_CATEGORY.get(category, OmniError)
    error = _build_error(kind, message, str(problem.get("code", "internal")), category, details)
    for name, value in _members(kind.__name__, details, text).items():
        setattr(error, name, value)
    return error


def _build_error(
    kind: type[OmniError],
    message: str,
    code: str,
    category: Category,
    details: Mapping[str, Any] | None = None,
) -> OmniError:
    """Return an error of a class without its constructor, which would build another message."""
    error = kind.__new__(kind, message)
    OmniError.__init__(error, message, code=code, category=category, details=details)
    return error


def _unknown_server_error(response: httpx.Response) -> OmniError:
    """Return the error for a response that does not have the error body of a server."""
    status = response.status_code
    message = f"{response.request.url.host} answered with status {status}"
    if status == 404:
        return NotFound(f"{message}: no such route; is this an omnigraph server?", code="not_found")
    category = Category.UNAVAILABLE if status >= 500 else Category.INVALID
    return OmniError(message, code=f"http_{status}", category=category)


def _contract_error(response: httpx.Response, message: str, body: Mapping[str, Any]) -> OmniError:
    """Return an error of a server that has only the common contract."""
    status = response.status_code
    if status == 412 and "precondition_failure" in body:
        failure = body["precondition_failure"]
        return PreconditionFailed(failure["expected"], failure.get("actual"))
    classes = {401: Unauthorized, 403: PolicyDenied, 404: NotFound, 409: Contention}
    category = Category.UNAVAILABLE if status >= 500 else Category.INVALID
    kind = classes.get(status, OmniError)
    return _build_error(kind, message, body.get("code") or f"http_{status}", category)


def _members(kind: str, details: Mapping[str, Any], text: str | None) -> dict[str, Any]:
    """Return the attributes of an error class, besides those of every error."""
    match kind:
        case "ChangeFeedGap":
            return {"commit_id": details["first_unreadable_commit_id"]}
        case "ExpectedVersionMismatch":
            return {name: details[name] for name in ("table_key", "expected", "actual")}
        case "PreconditionFailed":
            return {name: details[name] for name in ("expected", "actual")}
        case "KeyChangeBlocked":
            return {"branches": tuple(details["branches"])}
        case "OutcomeUnknown":
            return {"commit_id": details["commit_id"]}
        case "MergeConflicts":
            return {"conflicts": tuple(map(read_conflict, details["merge_conflicts"]))}
        case "SchemaChangeRefused":
            return {"refusals": tuple(map(_refusal, details["steps"]))}
        case "KeyConflict" | "ValidationFailed":
            violations = tuple(map(_violation, details["violations"]))
            totals = dict(details["totals"])
            return {"violations": violations, "total": details["total"], "totals": totals}
        case "QueryError" | "SchemaError":
            return {"diagnostics": tuple(_diagnostic(one, text) for one in details["diagnostics"])}
    return {}


def _refusal(members: Mapping[str, Any]) -> UnsupportedChange:
    code = read_code(members["code"]) if "code" in members else None
    return UnsupportedChange(members["entity"], members["reason"], code)


def _violation(members: Mapping[str, Any]) -> Violation:
    source = members.get("source")
    names = ("kind", "type", "id", "property", "value")
    return Violation(
        rule=ViolationRule(members["rule"]),
        message=members["message"],
        source=None if source is None else _read_place(source),
        **{name: members.get(name) for name in names},
    )


def _read_place(members: Mapping[str, Any]) -> InputLocation:
    numbers = [(unit, number) for unit, number in members.items() if unit != "file"]
    unit, number = numbers[0] if numbers else ("line", None)
    return InputLocation(members.get("file") or "", number, unit)


def _diagnostic(members: Mapping[str, Any], text: str | None) -> Diagnostic:
    span = members.get("span")
    name = members.get("file")
    return Diagnostic(
        read_code(members["code"]),
        members["message"],
        None if span is None else TextSpan(span["start"], span["end"]),
        members.get("hint"),
        Severity(members["severity"]),
        None if name is None or text is None else SourceText(text.removeprefix("\ufeff"), name),
    )
