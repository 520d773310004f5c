"""Data classes of history: commits, snapshots, branches and tags; rules for their names."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, NewType, TypeAlias

from omnigraph.catalog import AcceptedSchema, AcceptedType, Catalog, IncarnationId, TypeId, TypeKind
from omnigraph.errors import GraphCorrupt, InvalidInput, NotFound
from omnigraph.notebook.graphs import snapshot_html
from omnigraph.notebook.history import commit_html, refs_html
from omnigraph.policy.permissions import ALL_TYPES, TypeScope
from omnigraph.storage.layout import dataset_path

CommitId = NewType("CommitId", str)
MAIN = "main"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class _DeprecatedAlias:
    """An attribute under its former name."""

    def __init__(self, new: str) -> None:
        self._new = new

    def __set_name__(self, owner: type, old: str) -> None:
        self._message = f"{owner.__name__}.{old} is deprecated; use {self._new}"

    def __get__(self, instance: object, owner: type) -> Any:  # noqa: ANN401 - of any type
        if instance is None:
            return self
        warnings.warn(self._message, DeprecationWarning, stacklevel=2)
        return getattr(instance, self._new)


@dataclass(frozen=True, slots=True)
class Counts:
    """Numbers of entities of a type that a commit inserted, updated and deleted."""

    inserted: int = 0
    updated: int = 0
    deleted: int = 0


@dataclass(frozen=True, slots=True)
class ProposalMark:
    """The proposal that a merge commit carries out, as it was when the merge was decided.

    `version` is the number of the last event of all proposals that the merge has read.
    """

    number: int
    version: int
    source_commit_id: CommitId


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
    proposal: ProposalMark | None = None
    bypass: bool = False
    """Whether it was published past the protection of its branch, by who may do that."""
    schema_hash: str = field(default="", compare=False)
    """The hash of the accepted schema; not part of the wire form."""
    watermarks: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, compare=False)
    """How far incremental sources were read, by pipeline and source; not part of the wire form."""

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
            **({} if self.proposal is None else {"proposal": asdict(self.proposal)}),
            **({"bypassed_protection": True} if self.bypass else {}),
        }

    def _repr_html_(self) -> str:
        return commit_html(self.to_json())

    @classmethod
    def from_json(cls, facts: Mapping[str, Any]) -> Commit:
        """Read the wire form."""
        parents = (facts.get("parent_commit_id"), facts.get("merged_parent_commit_id"))
        mark = facts.get("proposal")
        return cls(
            id=CommitId(facts["graph_commit_id"]),
            parents=tuple(CommitId(parent) for parent in parents if parent is not None),
            branch=facts.get("graph_branch") or MAIN,
            actor=facts.get("actor_id"),
            message=facts.get("message"),
            operation=facts.get("operation") or "",
            created_at=_EPOCH + timedelta(microseconds=facts["created_at"]),
            manifest_version=facts["graph_manifest_version"],
            counts={key: Counts(**counts) for key, counts in (facts.get("counts") or {}).items()},
            proposal=None if mark is None else ProposalMark(**mark),
            bypass=bool(facts.get("bypassed_protection")),
        )


VersionState: TypeAlias = tuple[int, int]
"""A physical version, and the number of its newest rows that a state does not show."""


@dataclass(frozen=True, slots=True)
class DatasetEntry:
    """The version of one dataset in a snapshot.

    `version` counts 1, 2, 3 … along the lineage and is the version users see; `physical` is the
    Lance version number that is read. `excluded` is the number of its newest rows that are not part
    of this state: later commits of the same group appended them.
    """

    type_id: TypeId
    incarnation: IncarnationId
    version: int
    physical: int
    rows: int
    excluded: int = 0

    @property
    def key(self) -> tuple[TypeId, IncarnationId]:
        """The identity of the dataset."""
        return (self.type_id, self.incarnation)

    @property
    def state(self) -> VersionState:
        """What identifies the rows: entries of a dataset with equal states have equal rows."""
        return (self.physical, self.excluded)

    def path(self, table_key: str) -> str:
        """Return the path of the dataset of `node:T` or `edge:E`."""
        return dataset_path(table_key.partition(":")[0], *self.key)


@dataclass(frozen=True, slots=True)
class RowChecksum:
    """The number of rows of a lineage, heads excluded, and the sum of their hashes."""

    count: int
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """The newest state of a branch: its commit and every live dataset."""

    commit_id: CommitId
    schema_hash: str
    datasets: Mapping[tuple[TypeId, IncarnationId], DatasetEntry]
    closed: bool = False
    refs: int = 0
    """Number of changes of branches and tags; used on main only."""
    names: int = 0
    """The oldest fragment that may hold branches and tags; used on main only."""
    ancestor_lineages: tuple[str, ...] = ()
    """Lineages that hold inherited history, besides main; nearest first. JSON key `origins`."""
    cleanup_cutoff: int = 0
    """Cleanup may have removed files written before this store time, in milliseconds (`swept`)."""
    last_cleanup: str = ""
    """The id of the last announced cleanup; it changes with every announcement (`sweep`)."""
    active_cleanups: Mapping[str, int] = field(default_factory=dict)
    """Running cleanups and their horizons in milliseconds; used on main only (`sweeping`)."""
    row_checksum: RowChecksum | None = None
    """The checksum of the rows of the lineage; None in heads of releases that record none."""
    created_at: datetime | None = None
    """The creation time of the commit; None in heads of release 0.1."""
    generation: int = 0
    """One more than the greatest generation of the parents of the commit; 0 is unknown."""
    relaxed: bool = False
    """Whether files of the state may not be synced to the disk."""
    merged: Mapping[str, str] = field(default_factory=dict)
    """The proposals merged here, and their merge commits, until that is recorded as an event."""
    protection: Mapping[str, Any] = field(default_factory=dict)
    """The protection of branches, as it is stored on main."""
    proposals: Mapping[str, Any] = field(default_factory=dict)
    """The open proposals and counters; used by the lineage of proposals only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """One immutable state of a graph; a query reads one snapshot from start to end.

    `scope` limits the visible types; `whole` is the snapshot without that limit. `lineage_id` is
    the lineage of the branch, None for main.
    """

    branch: str
    lineage_id: str | None
    manifest_version: int
    head: Head
    schema: AcceptedSchema
    schema_source: str
    scope: TypeScope = field(default=ALL_TYPES, repr=False)
    whole: Snapshot | None = field(default=None, repr=False, compare=False)

    native = _DeprecatedAlias("lineage_id")

    @property
    def commit_id(self) -> CommitId:
        """The commit that produced this state."""
        return self.head.commit_id

    @property
    def catalog(self) -> Catalog:
        """The types of this snapshot."""
        return self.schema.catalog

    def entry(self, table_key: str) -> DatasetEntry:
        """Return the dataset of a type given as `node:T` or `edge:E`."""
        kind, _, name = table_key.partition(":")
        type_ = self.schema.find(TypeKind(kind), name)
        if type_ is None or type_.incarnation is None:
            raise NotFound(f"unknown type {table_key}", code="unknown_type", type=table_key)
        entry = self.head.datasets.get((type_.id, type_.incarnation))
        if entry is None:
            message = f"commit {self.commit_id} has no dataset for {table_key}"
            raise GraphCorrupt(f"{message}; `omnigraph verify` lists all damage", type=table_key)
        return entry

    def entries(self) -> dict[str, DatasetEntry]:
        """Return every live dataset by `node:T` or `edge:E`, sorted."""
        return {key: self.entry(key) for key in sorted(type_.entity for type_ in self.types())}

    def types(self) -> list[AcceptedType]:
        """Return the node types and then the edge types."""
        return [t for kind in (TypeKind.NODE, TypeKind.EDGE) for t in self.schema.of_kind(kind)]

    def type_of(self, table_key: str) -> AcceptedType:
        """Return a type that exists, given as `node:T` or `edge:E`."""
        kind, _, name = table_key.partition(":")
        type_ = self.schema.find(TypeKind(kind), name)
        assert type_ is not None, "a snapshot lists the types of its schema"
        return type_

    def _repr_html_(self) -> str:
        return snapshot_html(self.branch, self.commit_id, self.type_facts())

    def type_facts(self) -> list[dict[str, Any]]:
        """Return its types with properties and numbers of entities, as notebooks show them."""
        return self.catalog.describe({key: entry.rows for key, entry in self.entries().items()})


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """A named line of commits; `lineage_id` is its manifest lineage, None for main.

    `ancestor_lineages` are the lineages that hold its inherited history. `deleting` means that a
    deletion has started; the branch is deleted once its lineage is closed.
    """

    name: str
    lineage_id: str | None
    parent: str | None = None
    fork_commit: CommitId | None = None
    actor: str | None = None
    created_at: datetime | None = None
    ancestor_lineages: tuple[str, ...] = ()
    deleting: bool = False

    native = _DeprecatedAlias("lineage_id")
    origins = _DeprecatedAlias("ancestor_lineages")
    leaving = _DeprecatedAlias("deleting")

    def _repr_html_(self) -> str:
        return refs_html("Branch", [branch_facts(self)])


@dataclass(frozen=True, slots=True, kw_only=True)
class Tag:
    """A fixed name for one commit; `lineage_id` is the lineage that holds the commit."""

    name: str
    commit_id: CommitId
    lineage_id: str | None
    ancestor_lineages: tuple[str, ...] = ()
    actor: str | None
    created_at: datetime

    native = _DeprecatedAlias("lineage_id")
    origins = _DeprecatedAlias("ancestor_lineages")

    def _repr_html_(self) -> str:
        return refs_html("Tag", [tag_facts(self)])


def branch_facts(branch: Branch) -> dict[str, Any]:
    """Return what notebooks show of a branch."""
    return {
        "name": branch.name,
        "parent": branch.parent,
        "fork_commit": branch.fork_commit,
        "actor": branch.actor,
        "created_at": branch.created_at,
    }


def tag_facts(tag: Tag) -> dict[str, Any]:
    """Return what notebooks show of a tag."""
    return {
        "name": tag.name,
        "commit": tag.commit_id,
        "actor": tag.actor,
        "created_at": tag.created_at,
    }


# --- names of branches and tags ----------------------------------------------------------------


MAX_NAME_LENGTH = 200

_NAME_SEGMENT = re.compile(r"[\w.-]+")
_COMMIT_ID_PATTERN = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}")


def check_ref_name(name: str, what: str = "branch") -> str:
    """Return the trimmed name; raise InvalidInput with the reason if it is not valid."""
    trimmed = name.strip()
    problem = _name_problem(trimmed)
    if problem is not None:
        message = f"'{trimmed[:80]}' is not a valid {what} name: {problem}"
        raise InvalidInput(message, code=f"{what}_name_invalid", name=trimmed[:MAX_NAME_LENGTH])
    return trimmed


def is_commit_id(text: str) -> bool:
    """Return whether a text has the form of a commit ID."""
    return _COMMIT_ID_PATTERN.fullmatch(text) is not None


def _name_problem(name: str) -> str | None:
    if not name:
        return "it is empty"
    if len(name) > MAX_NAME_LENGTH:
        return f"it is longer than {MAX_NAME_LENGTH} characters"
    if name == MAIN:
        return "main is reserved for the default branch"
    if name.startswith("__"):
        return "names that start with `__` are reserved"
    if is_commit_id(name):
        return "it looks like a commit ID"
    if name.endswith(".lock") or ".." in name:
        return "`..` and a final `.lock` are not allowed"
    if not all(_NAME_SEGMENT.fullmatch(segment) for segment in name.split("/")):
        return "use letters, digits, `.`, `-`, `_`, and `/` between parts"
    return None
