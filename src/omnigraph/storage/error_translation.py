"""Translate exceptions of Lance and the object store into OmniErrors.

Lance raises plain OSError, ValueError and RuntimeError that differ only by text; the texts used
here are pinned in tests/substrate and tests/unit/storage/test_error_translation.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
from lance.commit import CommitConflictError
from obstore.exceptions import BaseError

from omnigraph.errors import (
    NO_SPACE,
    READ_ONLY,
    Contention,
    GraphCorrupt,
    NotFound,
    OmniError,
    StorageUnavailable,
)

_CONFLICT_TEXTS = (
    "Retryable commit conflict",
    "Commit conflict",
    "Incompatible transaction",
    "Failed to commit the transaction",
)
_NOT_FOUND_TEXTS = (
    "Not found",
    "not found",
    "No such file",
    "NotFound",
    "does not exist",
    "NoSuchKey",
    "Not a directory",
)
_CORRUPT_TEXTS = (
    "file size is too small",
    "does not have sufficient data",
    "Invalid range",
    "invalid magic",
    "does not appear to be a",
    "does not contain correct footer",
    "invalid seek",
    "failed to decode Protobuf",
    "LanceError(Arrow)",
    "LanceError(Schema)",
    "LanceError(Internal)",
    "orrupt",
    "Parquet argument error",
    "InvalidArgumentError",
    "failed to fill whole buffer",
    "out of bounds",
    "UTF-8",
    "utf-8",
)
_ACCESS_ERRORS = (
    ("the bucket does not exist", "storage_no_bucket", ("NoSuchBucket",)),
    ("no credentials", "storage_denied", ("Failed to get AWS credentials", "/latest/api/token")),
    ("permission denied", "storage_denied", ("ermission denied", "AccessDenied", "403 Forbidden")),
    (
        NO_SPACE,
        "storage_full",
        ("No space left", "File too large", "uotaExceeded", "uota exceeded"),
    ),
    (READ_ONLY, "storage_read_only", ("Read-only file system",)),
    ("storage does not respond", "storage_unavailable", ("error sending request",)),
)
_STORAGE_EXCEPTIONS = (
    CommitConflictError,
    OSError,
    ValueError,
    RuntimeError,
    BaseError,
    pa.ArrowException,
)
_MAX_TEXT = 300


@contextmanager
def translate_errors(what: str) -> Iterator[None]:
    """Run a storage call; raise an OmniError if it fails."""
    try:
        yield
    except OmniError:
        raise
    except _STORAGE_EXCEPTIONS as error:
        raise translate_error(error, what) from error
    except BaseException as error:
        if not is_panic(error):
            raise
        raise translate_error(error, what) from error


def is_panic(error: BaseException) -> bool:
    """Return whether Lance panicked: it raises a BaseException that cannot be imported."""
    return type(error).__name__ == "PanicException"


def translate_error(error: BaseException, what: str) -> OmniError:
    """Return the OmniError for an exception of storage."""
    text = str(error)
    cause = text[:_MAX_TEXT]
    if isinstance(error, CommitConflictError) or _contains_any(text, _CONFLICT_TEXTS):
        return Contention(f"{what}: another writer was first")
    if isinstance(error, FileExistsError | NotADirectoryError):
        message = f"{what}: expected a folder, but found a file"
        return StorageUnavailable(message, code="storage_not_a_folder", cause=cause)
    # Denied access is checked first: "the access key does not exist" is not a missing file.
    for outcome, code, parts in _ACCESS_ERRORS:
        if _contains_any(text, parts):
            return StorageUnavailable(f"{what}: {outcome}", code=code, cause=cause)
    if isinstance(error, FileNotFoundError) or _contains_any(text, _NOT_FOUND_TEXTS):
        return NotFound(f"{what}: not found", code="storage_not_found", cause=cause)
    if is_panic(error) or _contains_any(text, _CORRUPT_TEXTS):
        return GraphCorrupt(f"{what}: a file is damaged", cause=cause)
    return StorageUnavailable(f"{what}: storage failed", cause=cause)


def _contains_any(text: str, parts: tuple[str, ...]) -> bool:
    return any(part in text for part in parts)
