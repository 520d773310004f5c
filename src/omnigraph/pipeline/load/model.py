"""Options and results of distributed loads."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from omnigraph.commit.model import Commit, Counts, Snapshot
from omnigraph.errors import InvalidInput
from omnigraph.notebook.display import ReportDisplay
from omnigraph.pipeline.runs.run import PipelineRun
from omnigraph.write.load import WriteMode
from omnigraph.write.progress import ProgressListener

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FILE, ROW = "@file", "@at"
"""The columns with the origin of a row: the number of its file, and its number in the file."""
FAULTY = "@faulty"
"""The column of `TypeFrame.present` that says that a row cannot become an entity."""


class OnViolation(StrEnum):
    """How to handle rows that break a rule: fail the whole load, or reject these rows."""

    FAIL = "fail"
    REJECT = "reject"


@dataclass(frozen=True, slots=True)
class TypeFrame:
    """Rows of one type.

    `table_key` is `node:Person` or `edge:Knows`. The columns of `frame` are named like properties;
    `id`, and `from` and `to` (or `src` and `dst`) of edges, have their usual meaning. The origin of
    a row is given by `@file`, an index in `SparkLoadOptions.files`, and `@at`, its number in the
    file; without them violations have no source. `text` means that every cell is text to be parsed,
    as in CSV. `deleted` are the ids of entities to delete. Of a full snapshot of a type, `present`
    are the ids there are: others are deleted; `unreadable` counts rows that could not be read.
    """

    table_key: str
    frame: DataFrame
    text: bool = False
    deleted: DataFrame | None = None
    present: DataFrame | None = None
    unreadable: int = 0
    stable: bool = False
    """Its partitions have the same rows each time that the same input is read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkLoadOptions:
    """How to load on Spark.

    `max_rejects` is the limit of rejected rows: a number of rows, or below 1 a share of the input;
    if it is exceeded, the load fails. `rejects` is the folder of rejected rows, by default one
    below the graph. `from_` is the base of a branch that does not exist. `files` are the names and
    units (`line` or `row`) that positions refer to. `embed` names optional properties by type whose
    missing vectors are computed. `run` is the run this load belongs to; its finished stages are not
    repeated.
    """

    mode: WriteMode = WriteMode.MERGE
    partial: bool = False
    on_violation: OnViolation = OnViolation.FAIL
    max_rejects: float | None = None
    unreadable: int = 0
    """Rows of the input that could not be read, which `max_rejects` counts, too."""
    rejects: str | None = None
    from_: str | None = None
    files: tuple[tuple[str, str], ...] = ()
    embed: Mapping[str, Sequence[str]] = field(default_factory=dict)
    progress: ProgressListener | None = None
    run: PipelineRun | None = None
    check: Callable[[Snapshot], None] | None = None
    """Called with the state that is about to be published; it raises what prevents that."""
    signature: str | None = None
    """Equal for runs over the same input; with it, a resumed run keeps what tasks have staged."""
    watermarks: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """How far the input was read, for the commit that has its rows."""

    def __post_init__(self) -> None:
        if self.partial and self.mode is not WriteMode.MERGE:
            message = f"a partial load needs the mode merge, not {self.mode}"
            raise InvalidInput(message, code="load_mode_invalid")
        if self.max_rejects is not None and self.max_rejects < 0:
            message = "`max_rejects` must be a number of rows, or a share of them below 1"
            raise InvalidInput(message, code="max_rejects_invalid")


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeLoadResult:
    """The result of one type; `rejected` counts rows by the first rule that they break."""

    given: int = 0
    accepted: int = 0
    rejected: Mapping[str, int] = field(default_factory=dict)
    counts: Counts = field(default_factory=Counts)
    bytes: int = 0

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {
            "given": self.given,
            "accepted": self.accepted,
            "rejected": dict(self.rejected),
            "inserted": self.counts.inserted,
            "updated": self.counts.updated,
            "deleted": self.counts.deleted,
            "bytes": self.bytes,
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> TypeLoadResult:
        """Return the value that `to_json` serialised."""
        facts = {name: document[name] for name in ("given", "accepted", "rejected", "bytes")}
        changed = {name: document[name] for name in ("inserted", "updated", "deleted")}
        return cls(**facts, counts=Counts(**changed))


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkLoadResult(ReportDisplay):
    """The result of a load on Spark.

    `types` are by `node:T` and `edge:E`; `seconds` by stage, in order. `rejects` is where rejected
    rows are, None when there are none. `embedded` lists the computed vectors by type. `repeated` is
    true if a run with the same key was published before and nothing was done; `commit` is then the
    commit of that run.
    """

    commit: Commit
    types: Mapping[str, TypeLoadResult] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)
    embedded: Sequence[Mapping[str, Any]] = ()
    rejects: str | None = None
    branch_created: bool = False
    repeated: bool = False
    run: PipelineRun | None = None
    notes: Sequence[str] = ()

    @property
    def bytes(self) -> int:
        """How many bytes were written."""
        return sum(type_.bytes for type_ in self.types.values())

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {
            "commit": self.commit.to_json(),
            "types": {key: type_.to_json() for key, type_ in sorted(self.types.items())},
            "seconds": dict(self.seconds),
            "bytes": self.bytes,
            "embedded": [dict(facts) for facts in self.embedded],
            "rejects": self.rejects,
            "branch_created": self.branch_created,
            "repeated": self.repeated,
            "run": None if self.run is None else self.run.id,
            "notes": list(self.notes),
        }
