"""The root error that every public call may raise, and its categories.

A caller that wants to react catches a subclass; a caller that wants to report reads
`code`, `category`, `message` and `details`, which mean the same on every surface.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import Any


class Category(StrEnum):
    """The kind of an error, and therefore how a caller can react."""

    INVALID = "invalid"
    NOT_FOUND = "not_found"
    DENIED = "denied"
    CONFLICT = "conflict"
    CONTENTION = "contention"
    LIMIT = "limit"
    UNAVAILABLE = "unavailable"
    OUTCOME_UNKNOWN = "outcome_unknown"
    INTERNAL = "internal"


class OmniError(Exception):
    """The root of every error that OmniGraph raises on purpose."""

    def __init__(
        self,
        message: str,
        *,
        code: str,
        category: Category = Category.INVALID,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        self.message = str(_escape_surrogates(message))
        super().__init__(self.message)
        self.code = code
        self.category = category
        self.details: dict[str, Any] = _escape_surrogates(dict(details or {}))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle an error by its members: other processes cannot repeat its constructor."""
        return _restore_error, (type(self), self.args), self.__dict__

    def to_json(self) -> dict[str, Any]:
        """Return the facts of this error as plain JSON values."""
        return {
            "code": self.code,
            "category": str(self.category),
            "message": self.message,
            "details": self.details,
        }

    def _repr_html_(self) -> str:
        # Every program imports errors; only notebooks show them as HTML.
        problems = import_module("omnigraph.notebook.problems")
        html: str = problems.error_html(type(self).__name__, self.to_json())
        return html


def _restore_error(error_type: type[OmniError], arguments: tuple[Any, ...]) -> OmniError:
    """Return an error without its members, which pickle sets."""
    error = error_type.__new__(error_type)
    error.args = arguments
    return error


def _escape_surrogates(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    """Return facts with unpaired surrogates escaped, which cannot be encoded."""
    match value:
        case str():
            return value.encode("utf-8", "backslashreplace").decode()
        case Mapping():
            return {
                _escape_surrogates(name): _escape_surrogates(one) for name, one in value.items()
            }
        case list():
            return [_escape_surrogates(one) for one in value]
        case _:
            return value


class NotFound(OmniError):
    """Something named does not exist."""

    def __init__(self, message: str, *, code: str = "not_found", **details: Any) -> None:  # noqa: ANN401
        super().__init__(message, code=code, category=Category.NOT_FOUND, details=details)


class AlreadyExists(OmniError):
    """Something to be created exists already."""

    def __init__(self, message: str, *, code: str = "already_exists", **details: Any) -> None:  # noqa: ANN401
        super().__init__(message, code=code, category=Category.CONFLICT, details=details)


class InvalidInput(OmniError):
    """A name, address or option cannot be used."""

    def __init__(self, message: str, *, code: str = "invalid", **details: Any) -> None:  # noqa: ANN401
        super().__init__(message, code=code, category=Category.INVALID, details=details)


class Contention(OmniError):
    """Another writer was first and nothing was changed; retry."""

    def __init__(self, message: str, *, code: str = "contention", **details: Any) -> None:  # noqa: ANN401
        super().__init__(message, code=code, category=Category.CONTENTION, details=details)


class CleanupBegan(OmniError):
    """A cleanup began that may remove what a staged commit shares with others; stage it again."""

    def __init__(self, commit_id: str) -> None:
        message = f"a cleanup began while commit {commit_id} was staged; try again"
        details = {"commit_id": commit_id}
        super().__init__(
            message, code="cleanup_running", category=Category.CONTENTION, details=details
        )


class ExpectedVersionMismatch(OmniError):
    """A dataset moved since it was read."""

    def __init__(self, table_key: str, expected: int | None, actual: int | None) -> None:
        super().__init__(
            f"{table_key} moved: expected version {expected or 0}, found {actual or 0}",
            code="expected_version_mismatch",
            category=Category.CONFLICT,
            details={"table_key": table_key, "expected": expected, "actual": actual},
        )
        self.table_key, self.expected, self.actual = table_key, expected, actual


class SchemaMoved(OmniError):
    """The accepted schema of the branch changed since it was read."""

    def __init__(self, expected: str, actual: str) -> None:
        super().__init__(
            "the accepted schema of the branch changed; read it again and retry",
            code="schema_moved",
            category=Category.CONFLICT,
            details={"expected": expected, "actual": actual},
        )


class PreconditionFailed(OmniError):
    """The head of the branch is not the expected commit."""

    def __init__(self, expected: str, actual: str | None) -> None:
        super().__init__(
            f"the branch is at commit {actual}, not at {expected}",
            code="precondition_failed",
            category=Category.CONFLICT,
            details={"expected": expected, "actual": actual},
        )
        self.expected, self.actual = expected, actual


class OutcomeUnknown(OmniError):
    """Storage did not report whether a commit was published; look its id up before retrying."""

    def __init__(self, commit_id: str) -> None:
        super().__init__(
            f"storage did not report whether commit {commit_id} was published; "
            "look it up before retrying",
            code="outcome_unknown",
            category=Category.OUTCOME_UNKNOWN,
            details={"commit_id": commit_id},
        )
        self.commit_id = commit_id


class StorageUnavailable(OmniError):
    """Storage refused or failed."""

    def __init__(self, message: str, *, code: str = "storage_unavailable", **details: Any) -> None:  # noqa: ANN401
        super().__init__(message, code=code, category=Category.UNAVAILABLE, details=details)


NO_SPACE = "no space left; free some, for instance with `omnigraph cleanup`"
READ_ONLY = "the file system is read-only; use another folder, or mount it for writing"
_DISK_ERRORS = {
    errno.ENOSPC: (NO_SPACE, "storage_full"),
    errno.EDQUOT: (NO_SPACE, "storage_full"),
    errno.EFBIG: (NO_SPACE, "storage_full"),
    errno.EROFS: (READ_ONLY, "storage_read_only"),
    errno.EACCES: ("permission denied", "storage_denied"),
    errno.EPERM: ("permission denied", "storage_denied"),
}


@contextmanager
def translate_disk_errors(path: Path | str) -> Iterator[None]:
    """Write a local file; raise StorageUnavailable when the disk is full or refuses."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        text = str(error)
        default = (error.strerror or text, "file_unwritable")
        # Arrow puts the number of the error into its text only.
        numbers = [error.errno, *(n for n in _DISK_ERRORS if f"[errno {n}]" in text.lower())]
        why, code = next((_DISK_ERRORS[n] for n in numbers if n in _DISK_ERRORS), default)
        raise StorageUnavailable(f"cannot write {path}: {why}", code=code, cause=text) from error


def install_command(extra: str) -> str:
    """Return the command that installs an optional part of omnigraph."""
    return f"pip install 'omnigraph[{extra}]'"


class FormatUnsupported(OmniError):
    """The graph was written by another version of the format."""

    def __init__(self, message: str, *, found: str | None) -> None:
        super().__init__(
            message,
            code="format_unsupported",
            category=Category.UNAVAILABLE,
            details={"found": found},
        )


NEXT_STEP = (
    "`omnigraph repair GRAPH --to-last-good` shows how to continue, or restore it from a backup"
)
"""The next step where files that a branch needs are damaged."""


class GraphCorrupt(OmniError):
    """Stored data is inconsistent or damaged."""

    def __init__(self, message: str, **details: Any) -> None:  # noqa: ANN401
        super().__init__(message, code="graph_corrupt", category=Category.INTERNAL, details=details)


class VersionReclaimed(OmniError):
    """A version that was once published has been cleaned up."""

    def __init__(self, message: str, **details: Any) -> None:  # noqa: ANN401
        super().__init__(
            message, code="version_reclaimed", category=Category.NOT_FOUND, details=details
        )
