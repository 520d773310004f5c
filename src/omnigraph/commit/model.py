"""This module defines the values of history: commits, snapshots, branches, tags."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, NewType

from omnigraph.catalog import AcceptedSchema, Catalog, IncarnationId, TypeId, TypeKind
from omnigraph.errors import GraphCorrupt, InvalidInput, NotFound
from omnigraph.policy.permissions import ALL_TYPES, TypeScope

CommitId = NewType("CommitId", str)
MAIN = "main"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Counts:
    """How many entities of a type a commit inserted, updated and deleted."""

    inserted: int = 0
    updated: int = 0
    deleted: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """One published change of a graph."""

    id: CommitId
    parents: tuple[CommitId, ...]
    branch: str
    actor: str | None
    message: str | None
    operation: str
    created_at: datetime
    manifest_version: int
    counts: Mapping[str, Counts] = field(default_factory=dict)
    schema_hash: str = field(default="", compare=False)
    """Which schema the commit was made under; it is not told on the wire."""

    def to_json(self) -> dict[str, Any]:
        """Return the wire form."""
        return {
            "graph_commit_id": self.id,
            "graph_branch": None if self.branch == MAIN else self.branch,
            "graph_manifest_version": self.manifest_version,
            "parent_commit_id": self.parents[0] if self.parents else None,
            "merged_parent_commit_id": self.parents[1] if len(self.parents) > 1 else None,
            "actor_id": self.actor,
            "created_at": (self.created_at - _EPOCH) // timedelta(microseconds=1),
            "message": self.message,
            "operation": self.operation,
            "counts": {key: asdict(counts) for key, counts in self.counts.items()},
        }

    @classmethod
    def from_json(cls, facts: Mapping[str, Any]) -> Commit:
        """Read the wire form."""
        parents = (facts.get("parent_commit_id"), facts.get("merged_parent_commit_id"))
        return cls(
            id=CommitId(facts["graph_commit_id"]),
            parents=tuple(CommitId(parent) for parent in parents if parent is not None),
            branch=facts.get("graph_branch") or MAIN,
            actor=facts.get("actor_id"),
            message=facts.get("message"),
            operation=facts.get("operation") or "",
            created_at=_EPOCH + timedelta(microseconds=facts["created_at"]),
            manifest_version=facts["graph_manifest_version"],
            counts={key: Counts(**found) for key, found in (facts.get("counts") or {}).items()},
        )


@dataclass(frozen=True, slots=True)
class DatasetEntry:
    """The version of one dataset a snapshot shows.

    `version` counts 1, 2, 3 … along the lineage and is what people see; `physical` is the Lance
    version number, which decides.
    """

    type_id: TypeId
    incarnation: IncarnationId
    version: int
    physical: int
    rows: int

    @property
    def key(self) -> tuple[TypeId, IncarnationId]:
        """What identifies the dataset."""
        return (self.type_id, self.incarnation)


@dataclass(frozen=True, slots=True)
class RowChecksum:
    """How many rows a lineage has besides heads, and the sum of their hashes."""

    count: int
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """The newest state of a branch: its commit and every live dataset, folded."""

    commit_id: CommitId
    schema_hash: str
    datasets: Mapping[tuple[TypeId, IncarnationId], DatasetEntry]
    closed: bool = False
    refs: int = 0
    """Counts changes of branches and tags; only main's says anything."""
    names: int = 0
    """The oldest fragment that may hold branches and tags; only main's says anything."""
    origins: tuple[str, ...] = ()
    """Lineages that hold inherited history, besides main: nearest first."""
    swept: int = 0
    """Files the store wrote before this, in milliseconds, may have been removed by cleanup."""
    sweep: str = ""
    """Names the last announcement of a cleanup; another value means another was made since."""
    sweeping: Mapping[str, int] = field(default_factory=dict)
    """Cleanups under way and their horizons in milliseconds; only main's says anything."""
    row_sum: RowChecksum | None = None
    """The checksum of the rows of the lineage; None if a release wrote it that records none."""
    created_at: datetime | None = None
    """When the commit was made; None in heads of release 0.1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """One immutable state of a graph: what a query reads for its whole life.

    `scope` says what it shows of the graph; `whole` is the state it shows a part of.
    """

    branch: str
    native: str | None
    manifest_version: int
    head: Head
    schema: AcceptedSchema
    schema_source: str
    scope: TypeScope = field(default=ALL_TYPES, repr=False)
    whole: Snapshot | None = field(default=None, repr=False, compare=False)

    @property
    def commit_id(self) -> CommitId:
        """The commit this is the state of."""
        return self.head.commit_id

    @property
    def catalog(self) -> Catalog:
        """The types of this snapshot."""
        return self.schema.catalog

    def entry(self, table_key: str) -> DatasetEntry:
        """Return the dataset of a type, named `node:T` or `edge:E`."""
        kind, _, name = table_key.partition(":")
        type_ = self.schema.find(TypeKind(kind), name)
        if type_ is None or type_.incarnation is None:
            raise NotFound(f"unknown type {table_key}", code="unknown_type", type=table_key)
        entry = self.head.datasets.get((type_.id, type_.incarnation))
        if entry is None:
            message = f"commit {self.commit_id} shows no dataset for {table_key}"
            raise GraphCorrupt(f"{message}; `omnigraph verify` lists all damage", type=table_key)
        return entry

    def entries(self) -> dict[str, DatasetEntry]:
        """Return every live dataset by `node:T` or `edge:E`, sorted."""
        types = [*self.schema.of_kind(TypeKind.NODE), *self.schema.of_kind(TypeKind.EDGE)]
        found = {f"{t.kind}:{t.name}": self.entry(f"{t.kind}:{t.name}") for t in types}
        return dict(sorted(found.items()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """A named line of commits; `native` is the manifest lineage behind it, None for main.

    `origins` are the lineages its history goes back to. `leaving` tells that a deletion began; the
    branch is gone once its lineage is closed.
    """

    name: str
    native: str | None
    parent: str | None = None
    fork_commit: CommitId | None = None
    actor: str | None = None
    created_at: datetime | None = None
    origins: tuple[str, ...] = ()
    leaving: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Tag:
    """A name for one commit that never moves; `native` is the lineage that keeps the commit."""

    name: str
    commit_id: CommitId
    native: str | None
    origins: tuple[str, ...] = ()
    actor: str | None
    created_at: datetime


# ----------------------------------------------------------------------
# This module says which names branches and tags may have.


MAX_NAME_LENGTH = 200

_NAME_SEGMENT = re.compile(r"[\w.-]+")
_COMMIT_ID_PATTERN = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}")


def check_ref_name(name: str, what: str = "branch") -> str:
    """Return a trimmed name, or raise InvalidInput saying what is wrong with it."""
    trimmed = name.strip()
    problem = _name_problem(trimmed)
    if problem is not None:
        message = f"'{trimmed[:80]}' cannot be a {what} name: {problem}"
        raise InvalidInput(message, code=f"{what}_name_invalid", name=trimmed[:MAX_NAME_LENGTH])
    return trimmed


def is_commit_id(text: str) -> bool:
    """Tell whether a text has the form of a commit id."""
    return _COMMIT_ID_PATTERN.fullmatch(text) is not None


def _name_problem(name: str) -> str | None:
    if not name:
        return "it is empty"
    if len(name) > MAX_NAME_LENGTH:
        return f"it is longer than {MAX_NAME_LENGTH} characters"
    if name == MAIN:
        return "main always exists"
    if name.startswith("__"):
        return "names that start with `__` are reserved"
    if is_commit_id(name):
        return "it looks like a commit id"
    if name.endswith(".lock") or ".." in name:
        return "`..` and a final `.lock` are not allowed"
    if not all(_NAME_SEGMENT.fullmatch(segment) for segment in name.split("/")):
        return "use letters, digits, `.`, `-`, `_`, and `/` between parts"
    return None
