"""Encode and decode the rows of `__manifest`.

Field names of `NewManifestRow` are column names and JSON keys are part of the storage format:
neither may change.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

from omnigraph.catalog import AcceptedSchema, IncarnationId, TypeId
from omnigraph.commit.model import (
    Branch,
    Commit,
    CommitId,
    Counts,
    DatasetEntry,
    Head,
    ProposalMark,
    RowChecksum,
    Tag,
)
from omnigraph.errors import GraphCorrupt
from omnigraph.storage.layout import PRIMARY_KEY
from omnigraph.version import INTERNAL_SCHEMA_VERSION

FORMAT_VERSION_KEY = b"omnigraph:internal_schema_version"
HEAD_KEY = "graph_head"
FOOTPRINT = "footprint"
NAME_ROW_TYPES = ("graph_branch", "graph_tag")

MANIFEST_SCHEMA = pa.schema(
    [
        pa.field("object_id", pa.string(), nullable=False, metadata=PRIMARY_KEY),
        pa.field("object_type", pa.string(), nullable=False),
        pa.field("location", pa.string()),
        pa.field("metadata", pa.string()),
        pa.field("base_objects", pa.list_(pa.string())),
        pa.field("table_key", pa.string()),
        pa.field("stable_table_id", pa.uint64()),
        pa.field("table_incarnation_id", pa.uint64()),
        pa.field("table_version", pa.uint64()),
        pa.field("table_branch", pa.string()),
        pa.field("row_count", pa.uint64()),
        pa.field(FOOTPRINT, pa.binary()),
    ],
    metadata={FORMAT_VERSION_KEY: str(INTERNAL_SCHEMA_VERSION).encode()},
)
_MAX_CAUSE = 300
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

HISTORY_ROW_TYPES = ("graph_commit", "table_version", "table_tombstone", "table", "schema")
"""Types of the history rows, which never change."""
HISTORY_ROW_FILTER = f"object_type IN {HISTORY_ROW_TYPES}"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewManifestRow:
    """A row of the manifest to be written; its fields are the columns."""

    object_id: str
    object_type: str
    location: str | None = None
    metadata: str | None = None
    base_objects: list[str] | None = None
    table_key: str | None = None
    stable_table_id: int | None = None
    table_incarnation_id: int | None = None
    table_version: int | None = None
    table_branch: str | None = None
    row_count: int | None = None
    footprint: bytes | None = None


_ROW_FIELDS = tuple(field.name for field in fields(NewManifestRow))


def row_values(row: NewManifestRow) -> dict[str, Any]:
    """Return the columns of a row; `asdict` would copy each value."""
    return {name: getattr(row, name) for name in _ROW_FIELDS}


def manifest_table(rows: Iterable[NewManifestRow], schema: pa.Schema = MANIFEST_SCHEMA) -> pa.Table:
    """Return rows as an Arrow table of a manifest's schema; older ones have no footprints."""
    listed = list(rows)
    columns = {name: [getattr(row, name) for row in listed] for name in schema.names}
    return pa.table(columns, schema=schema)


@contextmanager
def _corrupt_row_errors(row: Mapping[str, Any]) -> Iterator[None]:
    """Decode a row; raise GraphCorrupt that names it when a member is missing or invalid."""
    try:
        yield
    except (LookupError, ValueError, TypeError, AttributeError, ArithmeticError) as error:
        key = row.get("object_id")
        message = f"manifest row {key} cannot be read; `omnigraph verify` lists all damage"
        cause = f"{type(error).__name__}: {error}"[:_MAX_CAUSE]
        raise GraphCorrupt(message, object_id=key, cause=cause) from error


# --- head --------------------------------------------------------------------------------------


_HEAD_MEMBERS = {
    "closed": "closed",
    "generation": "generation",
    "refs": "refs",
    "names": "names",
    "origins": "ancestor_lineages",
    "swept": "cleanup_cutoff",
    "sweep": "last_cleanup",
    "sweeping": "active_cleanups",
    "relaxed": "relaxed",
    "merged": "merged",
    "protection": "protection",
    "proposals": "proposals",
}
"""Members of the stored head that are written unless empty, and their fields."""


def head_row(head: Head, version: int) -> NewManifestRow:
    """Return the row that holds the state of a lineage, for the version it is written with."""
    state: dict[str, Any] = {
        "commit": head.commit_id,
        "schema": head.schema_hash,
        "datasets": [_pack_entry(entry) for _, entry in sorted(head.datasets.items())],
    }
    members = {key: getattr(head, field) for key, field in _HEAD_MEMBERS.items()}
    state |= {key: value for key, value in members.items() if value}
    if head.row_checksum is not None:
        state["rows"] = f"{head.row_checksum.count:x}-{head.row_checksum.total:016x}"
    if head.created_at is not None:
        state["at"] = (head.created_at - _EPOCH) // timedelta(microseconds=1)
    return NewManifestRow(
        object_id=HEAD_KEY,
        object_type="graph_head",
        metadata=_dump_json(state),
        table_version=version,
    )


def read_head(row: Mapping[str, Any]) -> Head:
    """Read what `head_row` wrote."""
    with _corrupt_row_errors({"object_id": HEAD_KEY}):
        state = json.loads(row["metadata"])
        state["origins"] = tuple(state.get("origins", ()))
        entries = [_unpack_entry(text) for text in state["datasets"]]
        return Head(
            commit_id=CommitId(state["commit"]),
            schema_hash=state["schema"],
            datasets={entry.key: entry for entry in entries},
            **{_HEAD_MEMBERS[key]: value for key, value in state.items() if key in _HEAD_MEMBERS},
            row_checksum=_unpack_checksum(state.get("rows")),
            created_at=_EPOCH + timedelta(microseconds=state["at"]) if "at" in state else None,
        )


def _unpack_checksum(text: str | None) -> RowChecksum | None:
    if text is None:
        return None
    count, total = text.split("-")
    return RowChecksum(int(count, 16), int(total, 16))


def update_row_checksum(
    row_checksum: RowChecksum,
    rows: Iterable[NewManifestRow],
    removed: Iterable[Mapping[str, Any]] = (),
) -> RowChecksum:
    """Return the checksum of a set of rows after additions and removals; heads are excluded.

    It is a sum, so the order of rows does not matter.
    """
    count, total = row_checksum.count, row_checksum.total
    for row in rows:
        if row.object_type != "graph_head":
            count, total = count + 1, total + _row_hash(row_values(row))
    for stale in removed:
        count, total = count - 1, total - _row_hash(stale)
    return RowChecksum(count, total % (1 << 64))


def checksum_rows(rows: Iterable[Mapping[str, Any]]) -> RowChecksum:
    """Return the checksum of rows as they were read, heads excluded."""
    return update_row_checksum(RowChecksum(0, 0), (NewManifestRow(**row) for row in rows))


def _row_hash(row: Mapping[str, Any]) -> int:
    present = {name: value for name, value in row.items() if value is not None}
    present.pop(FOOTPRINT, None)  # a hint, which rows of older releases lack
    text = json.dumps(present, sort_keys=True, separators=(",", ":"))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest())


def _pack_entry(entry: DatasetEntry) -> str:
    """Encode an entry in about 60 characters."""
    text = f"{_identity(entry)}:{entry.version:x}:{entry.physical:x}:{entry.rows:x}"
    return f"{text}:{entry.excluded:x}" if entry.excluded else text


def _unpack_entry(text: str) -> DatasetEntry:
    identity, *numbers = text.split(":")
    type_id, incarnation = (int(part, 16) for part in identity.split("-"))
    entries = (int(number, 16) for number in numbers)
    return DatasetEntry(TypeId(type_id), IncarnationId(incarnation), *entries)


def _unpack_entries(packed: Sequence[str] | None) -> tuple[DatasetEntry, ...] | None:
    return None if packed is None else tuple(_unpack_entry(text) for text in packed)


# --- datasets ----------------------------------------------------------------------------------


def table_row(entry: DatasetEntry, table_key: str, location: str) -> NewManifestRow:
    """Return the registration of a dataset."""
    return NewManifestRow(
        object_id=f"table:{_identity(entry)}",
        object_type="table",
        location=location,
        table_key=table_key,
        stable_table_id=entry.type_id,
        table_incarnation_id=entry.incarnation,
    )


def version_row(
    entry: DatasetEntry,
    table_key: str,
    commit_id: CommitId,
    checksums: Mapping[str, str] | None = None,
) -> NewManifestRow:
    """Return the row for the version of a dataset that a commit published, with file checksums."""
    facts: dict[str, Any] = {"version": entry.version, "commit": commit_id}
    if entry.excluded:
        facts["excluded"] = entry.excluded
    if checksums:
        facts["files"] = dict(sorted(checksums.items()))
    return NewManifestRow(
        object_id=f"version:{_identity(entry)}@{commit_id}",
        object_type="table_version",
        metadata=_dump_json(facts),
        table_key=table_key,
        stable_table_id=entry.type_id,
        table_incarnation_id=entry.incarnation,
        table_version=entry.physical,
        row_count=entry.rows,
    )


def tombstone_row(entry: DatasetEntry, table_key: str, commit_id: CommitId) -> NewManifestRow:
    """Return the row that records that a commit dropped a dataset."""
    return NewManifestRow(
        object_id=f"tombstone:{_identity(entry)}@{commit_id}",
        object_type="table_tombstone",
        metadata=_dump_json({"commit": commit_id}),
        table_key=table_key,
        stable_table_id=entry.type_id,
        table_incarnation_id=entry.incarnation,
    )


def read_version(row: Mapping[str, Any]) -> tuple[CommitId, DatasetEntry]:
    """Read what `version_row` wrote."""
    with _corrupt_row_errors(row):
        metadata = json.loads(row["metadata"])
        numbers = (
            metadata["version"],
            row["table_version"],
            row["row_count"],
            metadata.get("excluded", 0),
        )
        if not all(isinstance(number, int) for number in numbers):
            raise TypeError(f"not numbers: {numbers}")
        return CommitId(metadata["commit"]), DatasetEntry(*read_identity(row), *numbers)


def read_checksums(row: Mapping[str, Any]) -> dict[str, str]:
    """Return the file checksums that `version_row` wrote; empty if there are none."""
    with _corrupt_row_errors(row):
        return {str(k): str(v) for k, v in json.loads(row["metadata"]).get("files", {}).items()}


def read_identity(row: Mapping[str, Any]) -> tuple[TypeId, IncarnationId]:
    """Return the identity of the dataset that a row refers to."""
    with _corrupt_row_errors(row):
        identity = (row["stable_table_id"], row["table_incarnation_id"])
        if not all(isinstance(number, int) for number in identity):
            raise TypeError(f"not an identity: {identity}")
        return TypeId(identity[0]), IncarnationId(identity[1])


def read_table(row: Mapping[str, Any]) -> tuple[tuple[TypeId, IncarnationId], str, str]:
    """Return the identity, the path and the type key that `table_row` wrote."""
    with _corrupt_row_errors(row):
        path, key = row["location"], row["table_key"]
        if not isinstance(path, str) or not isinstance(key, str):
            raise TypeError(f"not a path and a type key: {path}, {key}")
    return read_identity(row), path, key


def _identity(entry: DatasetEntry) -> str:
    return f"{entry.type_id:016x}-{entry.incarnation:016x}"


# --- history -----------------------------------------------------------------------------------


def commit_key(commit_id: str) -> str:
    """Return the key of a commit's row."""
    return f"commit:{commit_id}"


@dataclass(frozen=True, slots=True)
class CommitRow:
    """A commit as stored: where it was authored, and whether it only fences its id.

    `state` are the datasets in which its state differs from the head of its manifest version; None
    if it is that head. `generation` is greater than those of its parents; 0 is unknown. `datasets`
    are all its datasets, which some commits record.
    """

    commit: Commit
    lineage_id: str | None
    aborted: bool = False
    state: tuple[DatasetEntry, ...] | None = None
    generation: int = 0
    datasets: tuple[DatasetEntry, ...] | None = None


def commit_row(row: CommitRow, footprint: bytes | None = None) -> NewManifestRow:
    """Return the immutable row of a commit."""
    commit = row.commit
    facts: dict[str, Any] = {
        "parents": list(commit.parents),
        "branch": commit.branch,
        "actor": commit.actor,
        "created_at": (commit.created_at - _EPOCH) // timedelta(microseconds=1),
        "message": commit.message,
        "operation": commit.operation,
        "schema": commit.schema_hash,
        "counts": {k: [c.inserted, c.updated, c.deleted] for k, c in commit.counts.items()},
    }
    if row.state is not None:
        facts["state"] = [_pack_entry(entry) for entry in row.state]
    if row.generation:
        facts["generation"] = row.generation
    if row.datasets is not None:
        facts["datasets"] = [_pack_entry(entry) for entry in row.datasets]
    if row.aborted:
        facts["aborted"] = True
    if commit.proposal is not None:
        facts["proposal"] = asdict(commit.proposal)
    if commit.bypass:
        facts["bypass"] = True
    if commit.watermarks:
        facts["watermarks"] = {name: dict(mark) for name, mark in commit.watermarks.items()}
    return NewManifestRow(
        object_id=commit_key(commit.id),
        object_type="graph_commit",
        metadata=_dump_json(facts),
        table_version=commit.manifest_version,
        table_branch=row.lineage_id,
        footprint=footprint,
    )


def read_commit(row: Mapping[str, Any]) -> CommitRow:
    """Read what `commit_row` wrote."""
    with _corrupt_row_errors(row):
        facts = json.loads(row["metadata"])
        commit = Commit(
            id=CommitId(row["object_id"].removeprefix("commit:")),
            parents=tuple(CommitId(parent) for parent in facts["parents"]),
            branch=facts["branch"],
            actor=facts["actor"],
            message=facts["message"],
            operation=facts["operation"],
            created_at=_EPOCH + timedelta(microseconds=facts["created_at"]),
            manifest_version=row["table_version"],
            counts={key: Counts(*numbers) for key, numbers in facts["counts"].items()},
            proposal=ProposalMark(**facts["proposal"]) if "proposal" in facts else None,
            bypass=facts.get("bypass", False),
            schema_hash=facts["schema"],
            watermarks=facts.get("watermarks", {}),
        )
        if not isinstance(commit.manifest_version, int):
            raise TypeError("no manifest version")
        return CommitRow(
            commit,
            row["table_branch"],
            aborted=facts.get("aborted", False),
            state=_unpack_entries(facts.get("state")),
            generation=facts.get("generation", 0),
            datasets=_unpack_entries(facts.get("datasets")),
        )


def schema_row(schema_hash: str, source: str, document: Mapping[str, Any]) -> NewManifestRow:
    """Return the row of an accepted schema, addressed by its content."""
    metadata = _dump_json({"source": source, "ir": document})
    return NewManifestRow(
        object_id=f"schema:{schema_hash}", object_type="schema", metadata=metadata
    )


def read_schema(row: Mapping[str, Any]) -> tuple[AcceptedSchema, str]:
    """Read what `schema_row` wrote: the accepted schema and its source."""
    with _corrupt_row_errors(row):
        document = json.loads(row["metadata"])
        return AcceptedSchema.from_json(document["ir"]), document["source"]


# --- names -------------------------------------------------------------------------------------


def branch_row(branch: Branch) -> NewManifestRow:
    """Return the row that defines a branch name."""
    facts: dict[str, Any] = {
        "native": branch.lineage_id,
        "parent": branch.parent,
        "fork_commit": branch.fork_commit,
        "origins": branch.ancestor_lineages,
        "actor": branch.actor,
        "created_at": branch.created_at.isoformat() if branch.created_at else None,
    }
    if branch.deleting:
        facts["leaving"] = True
    return NewManifestRow(
        object_id=f"branch:{branch.name}",
        object_type="graph_branch",
        metadata=_dump_json(facts),
        table_branch=branch.lineage_id,
    )


def read_branch(row: Mapping[str, Any]) -> Branch:
    """Read what `branch_row` wrote."""
    with _corrupt_row_errors(row):
        facts = json.loads(row["metadata"])
        created = facts["created_at"]
        return Branch(
            name=row["object_id"].removeprefix("branch:"),
            lineage_id=facts["native"],
            parent=facts["parent"],
            fork_commit=facts["fork_commit"],
            ancestor_lineages=tuple(facts["origins"]),
            actor=facts["actor"],
            created_at=datetime.fromisoformat(created) if created else None,
            deleting=facts.get("leaving", False),
        )


def tag_row(tag: Tag) -> NewManifestRow:
    """Return the row that defines a tag name."""
    facts = {
        "commit": tag.commit_id,
        "native": tag.lineage_id,
        "origins": tag.ancestor_lineages,
        "actor": tag.actor,
        "created_at": tag.created_at.isoformat(),
    }
    return NewManifestRow(
        object_id=f"tag:{tag.name}", object_type="graph_tag", metadata=_dump_json(facts)
    )


def read_tag(row: Mapping[str, Any]) -> Tag:
    """Read what `tag_row` wrote."""
    with _corrupt_row_errors(row):
        facts = json.loads(row["metadata"])
        return Tag(
            name=row["object_id"].removeprefix("tag:"),
            commit_id=CommitId(facts["commit"]),
            lineage_id=facts["native"],
            ancestor_lineages=tuple(facts["origins"]),
            actor=facts["actor"],
            created_at=datetime.fromisoformat(facts["created_at"]),
        )


def _dump_json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
