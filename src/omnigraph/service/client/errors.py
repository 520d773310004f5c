"""Errors of a server as the embedded graph raises them: same class, same details."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, TypeVar

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
from omnigraph.policy import PolicyDenied
from omnigraph.query.limits import QueryLimit
from omnigraph.service.auth import Unauthorized
from omnigraph.service.client.decode import read_conflict
from omnigraph.service.client.migration_steps import read_code
from omnigraph.write import KeyConflict, ValidationFailed, Violation
from omnigraph.write.violations import InputLocation, ViolationRule

_ErrorT = TypeVar("_ErrorT", bound=OmniError)
_SIMPLE_ERRORS = {
    error.__name__: error
    for error in (
        AlreadyExists,
        ChangeSchemaBoundary,
        CommitHasNoParent,
        Contention,
        CursorRejected,
        FormatUnsupported,
        InvalidInput,
        NotFound,
        PageLimitExceeded,
        PolicyDenied,
        QueryLimit,
        SchemaMoved,
        StorageUnavailable,
        Unauthorized,
        VersionReclaimed,
    )
}
"""Errors that hold nothing but what every error holds."""
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
    facts = _ErrorFacts(message, problem, text)
    if facts.kind not in _DETAILED_ERRORS:
        return facts.plain()
    kind, set_members = _DETAILED_ERRORS[facts.kind]
    error = _convert_error(kind, facts.bare())
    set_members(error, facts)
    return error


def _unknown_server_error(response: httpx.Response) -> OmniError:
    """Return an error for an answer that is none of ours."""
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
    plain = OmniError(message, code=body.get("code") or f"http_{status}", category=category)
    kind = classes.get(status)
    return plain if kind is None else _convert_error(kind, plain)


class _ErrorFacts:
    """The body of an error."""

    def __init__(self, message: str, problem: Mapping[str, Any], text: str | None) -> None:
        self.message = message
        self.code = str(problem.get("code", "internal"))
        self.details: dict[str, Any] = problem.get("details") or {}
        self.kind = problem.get("kind", "")
        self.text = text
        word = problem.get("category")
        self.category = Category(word) if word in list(Category) else Category.INTERNAL

    def bare(self) -> OmniError:
        """Return the error without its class."""
        return OmniError(self.message, code=self.code, category=self.category, details=self.details)

    def plain(self) -> OmniError:
        """Return an error that holds nothing but what every error holds."""
        kind = _SIMPLE_ERRORS.get(self.kind) or _BY_CATEGORY.get(self.category, OmniError)
        return _convert_error(kind, self.bare())


def _convert_error(kind: type[_ErrorT], error: OmniError) -> _ErrorT:
    """Return an error as one of another class, with the same facts."""
    converted = kind.__new__(kind, error.message)
    OmniError.__init__(
        converted, error.message, code=error.code, category=error.category, details=error.details
    )
    return converted


def _set_version(error: ExpectedVersionMismatch, facts: _ErrorFacts) -> None:
    error.table_key = facts.details["table_key"]
    error.expected, error.actual = facts.details["expected"], facts.details["actual"]


def _set_precondition(error: PreconditionFailed, facts: _ErrorFacts) -> None:
    error.expected, error.actual = facts.details["expected"], facts.details["actual"]


def _set_commit(error: OutcomeUnknown, facts: _ErrorFacts) -> None:
    error.commit_id = facts.details["commit_id"]


def _set_gap(error: ChangeFeedGap, facts: _ErrorFacts) -> None:
    error.commit_id = facts.details["first_unreadable_commit_id"]


def _set_conflicts(error: MergeConflicts, facts: _ErrorFacts) -> None:
    error.conflicts = tuple(read_conflict(one) for one in facts.details["merge_conflicts"])


def _set_refusals(error: SchemaChangeRefused, facts: _ErrorFacts) -> None:
    error.refusals = tuple(
        UnsupportedChange(s["entity"], s["reason"], read_code(s["code"]) if "code" in s else None)
        for s in facts.details["steps"]
    )


def _set_violations(error: ValidationFailed, facts: _ErrorFacts) -> None:
    error.violations = tuple(_violation(one) for one in facts.details["violations"])
    error.total = facts.details["total"]
    error.totals = dict(Counter(facts.details["totals"]))


def _set_diagnostics(error: QueryError | SchemaError, facts: _ErrorFacts) -> None:
    error.diagnostics = tuple(_diagnostic(one, facts.text) for one in facts.details["diagnostics"])


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


_DETAILED_ERRORS: Mapping[str, tuple[type[OmniError], Callable[[Any, _ErrorFacts], None]]] = (
    MappingProxyType(
        {
            error.__name__: (error, set_members)
            for error, set_members in (
                (ChangeFeedGap, _set_gap),
                (ExpectedVersionMismatch, _set_version),
                (KeyConflict, _set_violations),
                (MergeConflicts, _set_conflicts),
                (OutcomeUnknown, _set_commit),
                (PreconditionFailed, _set_precondition),
                (QueryError, _set_diagnostics),
                (SchemaChangeRefused, _set_refusals),
                (SchemaError, _set_diagnostics),
                (ValidationFailed, _set_violations),
            )
        }
    )
)
"""Errors with members of their own, and how to set them."""
