"""Diagnostics of a cluster: errors and warnings."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any, TypedDict, Unpack

from omnigraph.errors import OmniError


class _SourcePosition(TypedDict, total=False):
    file: str | None
    line: int | None


@dataclass(frozen=True, slots=True)
class ClusterDiagnostic:
    """An error or warning: its code, its resource or path, and its file and line, if any."""

    code: str
    severity: str
    path: str
    message: str
    file: str | None = None
    line: int | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the wire form."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    def __str__(self) -> str:
        word = "ERROR" if self.severity == "error" else "WARN"
        place = "" if self.file is None else f" ({self.file}:{self.line or 1})"
        return f"{word}  {self.code} {self.path}: {self.message}{place}"


class ClusterOperationRefused(OmniError):
    """A step of a cluster operation cannot be taken; `path` is what it is about."""

    def __init__(self, code: str, path: str, message: str) -> None:
        super().__init__(message, code=code, details={"path": path})
        self.path = path


class ClusterDiagnostics:
    """The diagnostics so far, in order."""

    def __init__(self) -> None:
        self.recorded: list[ClusterDiagnostic] = []

    def __iter__(self) -> Iterator[ClusterDiagnostic]:
        return iter(self.recorded)

    @property
    def ok(self) -> bool:
        """Whether no error was found."""
        return all(finding.severity != "error" for finding in self.recorded)

    def error(self, code: str, path: str, message: str, **source: Unpack[_SourcePosition]) -> None:
        """Record an error."""
        self.recorded.append(ClusterDiagnostic(code, "error", path, message, **source))

    def warn(self, code: str, path: str, message: str, **source: Unpack[_SourcePosition]) -> None:
        """Record a warning."""
        self.recorded.append(ClusterDiagnostic(code, "warning", path, message, **source))

    @contextmanager
    def catching(self, path: str) -> Iterator[None]:
        """Record an error that is raised inside, and continue after the block."""
        try:
            yield
        except ClusterOperationRefused as error:
            self.error(error.code, error.path, error.message)
        except OmniError as error:
            self.error(error.code, path, error.message)
