"""Find, read and atomically replace files."""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from omnigraph.catalog import Catalog, read_catalog
from omnigraph.errors import Category, OmniError
from omnigraph.lang import Code, DiagnosticReport, SchemaError, report_for_bytes


def read_bytes(path: Path) -> bytes:
    """Return the content of a file; raise OmniError if it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        missing = isinstance(error, FileNotFoundError)
        raise OmniError(
            f"cannot read {path}: {error.strerror or error}",
            code="file_not_found" if missing else "file_unreadable",
            category=Category.NOT_FOUND if missing else Category.INVALID,
            details={"path": str(path)},
        ) from error


def read_schema_report(path: Path) -> DiagnosticReport:
    """Return the report of a schema file, with an error if it is not UTF-8 text."""
    return report_for_bytes(read_bytes(path), str(path), Code.SCHEMA_UNREADABLE)


def read_query_report(path: Path) -> DiagnosticReport:
    """Return the report of a query file, with an error if it is not UTF-8 text."""
    return report_for_bytes(read_bytes(path), str(path), Code.QUERY_UNREADABLE)


def open_catalog(path: Path) -> tuple[Catalog, DiagnosticReport]:
    """Return the catalog of a schema file; raise SchemaError with all its errors."""
    report = read_schema_report(path)
    catalog = read_catalog(report)
    if report.errors:
        raise SchemaError(report.sorted())
    return catalog, report


def expand_paths(paths: Iterable[Path], *suffixes: str) -> list[Path]:
    """Return the files of paths; of a folder, every matching file below it, in order.

    Raises:
        OmniError: a path does not exist, or a folder has no matching file.
    """
    files: dict[Path, None] = {}
    for path in paths:
        if not path.is_dir():
            files[path] = None
            continue
        below = sorted(_files_below(path, suffixes))
        if not below:
            patterns = " or ".join(f"*{suffix}" for suffix in suffixes)
            message = f"no {patterns} file below {path}"
            raise OmniError(message, code="file_not_found", category=Category.NOT_FOUND)
        files.update(dict.fromkeys(below))
    return list(files)


def _files_below(folder: Path, suffixes: tuple[str, ...]) -> Iterable[Path]:
    """Yield files with one of the suffixes, except in hidden folders."""
    for parent, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        yield from (Path(parent) / name for name in names if name.endswith(suffixes))


@contextmanager
def replaced_file(path: Path) -> Iterator[IO[bytes]]:
    """Yield a temporary file that atomically replaces `path` when the block ends."""
    lock = path.with_name(f"{path.name}.lock")
    try:
        with lock.open("wb") as guard:
            fcntl.flock(guard, fcntl.LOCK_EX | fcntl.LOCK_NB)
            try:
                with _written_beside(path) as file:
                    yield file
            finally:
                lock.unlink(missing_ok=True)
    except BlockingIOError as error:
        raise OmniError(f"another process is writing {path}", code="file_in_use") from error
    except OSError as error:
        message = f"cannot write {path}: {error.strerror or error}"
        raise OmniError(message, code="file_unwritable") from error


@contextmanager
def _written_beside(path: Path) -> Iterator[IO[bytes]]:
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
        try:
            yield file
            file.flush()
            os.fsync(file.fileno())
            Path(file.name).replace(path)
        except BaseException:
            Path(file.name).unlink(missing_ok=True)
            raise
    # A rename is durable once its folder is synced, too.
    descriptor = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
