"""Groups that a process has prepared while another has the turn, for that one to publish.

A process that waits for the turn has written and synced its rows. It leaves a description of its
group in a file beside the lock files of the branch; the process with the turn takes such groups,
checks what they rely on and publishes them by its own swap. Taking a group renames its file, so
either it was taken, or its owner withdraws it and publishes it. The owner holds a lock on the file:
what a process that ended has left is not published. Whether a taken group was published is decided
by its commits in the manifest. Groups are left on local disks only, where a swap that a process had
begun before it died cannot become visible later.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from omnigraph.catalog import IncarnationId, TypeId
from omnigraph.commit.footprint import Footprint, Requirements, TypeKey
from omnigraph.commit.model import CommitId, Counts

try:
    import fcntl
except ImportError:  # a system without file locks, where processes have no turns
    fcntl = None  # type: ignore[assignment]

MAX_KEYS = 256
"""Keys that a change of a group in a file writes at most."""
_READY, _TAKEN, _UNFINISHED = ".ready", ".taken", ".unfinished"
_FORMAT = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedChange:
    """A change of a prepared group; its permit is that of an unprotected branch."""

    id: CommitId
    operation: str
    actor: str | None
    message: str | None
    counts: Mapping[str, Counts]
    footprint: Footprint
    requirements: Requirements
    types_read: tuple[str, ...]

    @property
    def written(self) -> frozenset[int]:
        """The hashes of the keys that it writes."""
        assert isinstance(self.footprint.keys, frozenset), "changes of many keys are not left"
        return self.footprint.keys


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedRows:
    """Rows that a group adds to a type, in fragments that no version refers to yet.

    `rows` are the number of each change and that of its rows, in the order of the fragments.
    `schema` identifies the columns that the fragments have; `keys` are key columns by data file.
    """

    table_key: str
    schema: str
    rows: tuple[tuple[int, int], ...]
    fragments: tuple[Mapping[str, Any], ...]
    keys: Mapping[str, Mapping[str, Sequence[str]]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedGroup:
    """Changes that only add rows, prepared on a version of a lineage; None is that of main."""

    lineage_id: str | None
    version: int
    schema_hash: str
    last_cleanup: str
    durability: str
    changes: tuple[PreparedChange, ...]
    rows: tuple[PreparedRows, ...]


class LeftGroup:
    """A group that this process has left for others."""

    def __init__(self, ready: Path) -> None:
        self._ready = ready
        self._taken = ready.with_suffix(_TAKEN)

    def withdraw(self) -> bool:
        """Withdraw the group; return False if another process has taken it."""
        try:
            self._ready.unlink()
        except FileNotFoundError:
            return False
        return True

    def is_published(self) -> bool:
        """Return whether another process has reported that it has published the group."""
        # A group that is being taken has one of the two names at any time, first `ready`.
        return not self._ready.exists() and not self._taken.exists()


class FoundGroup:
    """A group that another process has left."""

    def __init__(self, ready: Path, group: PreparedGroup) -> None:
        self._ready = ready
        self._taken = ready.with_suffix(_TAKEN)
        self.group = group

    def take(self) -> bool:
        """Take the group; return False if its owner has withdrawn it."""
        try:
            self._ready.rename(self._taken)
        except OSError:
            return False
        return True

    def report_published(self) -> None:
        """Report to the owner, who need not wait for the turn, that the group is published."""
        with suppress(OSError):
            self._taken.unlink()


@dataclass(frozen=True, slots=True)
class PreparedGroups:
    """The groups that the processes of a machine have left for a branch."""

    folder: Path

    @contextmanager
    def left(self, group: PreparedGroup) -> Iterator[LeftGroup | None]:
        """Leave a group for the process that has the turn; None if that is not possible."""
        # The first commit ID is unique, and names in its order are those that wait longest.
        ready = self.folder / f"{group.changes[0].id}-{os.getpid()}{_READY}"
        unfinished = ready.with_suffix(_UNFINISHED)
        try:
            self.folder.mkdir(exist_ok=True)
            file = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        except OSError:
            yield None
            return
        left: LeftGroup | None = None
        try:
            with suppress(OSError):
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                with open(file, "wb", closefd=False) as content:
                    content.write(json.dumps(_encode(group)).encode())
                unfinished.rename(ready)
                left = LeftGroup(ready)
            yield left
        finally:
            for name in (unfinished, ready, ready.with_suffix(_TAKEN)):
                with suppress(OSError):
                    name.unlink()
            os.close(file)

    def find(self) -> Iterator[FoundGroup]:
        """Yield the groups of waiting processes; those of processes that ended are removed."""
        try:
            names = sorted(os.listdir(self.folder))
        except OSError:
            return
        for name in names:
            if name.endswith(_READY):
                path = self.folder / name
                with suppress(OSError, ValueError, KeyError, TypeError):
                    if (group := _read(path)) is not None:
                        yield FoundGroup(path, group)


def _read(path: Path) -> PreparedGroup | None:
    """Read a group; None if its owner has ended."""
    with path.open("rb") as file:
        try:
            fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:  # its owner has locked it
            return _decode(json.load(file))
        path.unlink()
        return None


# --- the format of the files ---------------------------------------------------------------------
#
# Only processes that run at the same time read it; another format is another release's.


def _encode(group: PreparedGroup) -> dict[str, Any]:
    return {
        "format": _FORMAT,
        "lineage": group.lineage_id,
        "version": group.version,
        "schema": group.schema_hash,
        "cleanup": group.last_cleanup,
        "durability": group.durability,
        "changes": [_encode_change(change) for change in group.changes],
        "rows": [
            {
                "table": rows.table_key,
                "schema": rows.schema,
                "rows": rows.rows,
                "fragments": rows.fragments,
                "keys": rows.keys,
            }
            for rows in group.rows
        ],
    }


def _encode_change(change: PreparedChange) -> dict[str, Any]:
    required = change.requirements
    footprint = change.footprint.encode()
    assert footprint is not None, "a prepared change knows what it writes"
    return {
        "id": change.id,
        "operation": change.operation,
        "actor": change.actor,
        "message": change.message,
        "counts": {key: [c.inserted, c.updated, c.deleted] for key, c in change.counts.items()},
        "footprint": base64.b64encode(footprint).decode(),
        "keys": sorted(required.keys),
        "types": sorted(required.types),
        "key_types": sorted(required.key_types),
        "types_read": change.types_read,
    }


def _decode(document: Mapping[str, Any]) -> PreparedGroup | None:
    if document["format"] != _FORMAT:
        return None
    return PreparedGroup(
        lineage_id=document["lineage"],
        version=document["version"],
        schema_hash=document["schema"],
        last_cleanup=document["cleanup"],
        durability=document["durability"],
        changes=tuple(_decode_change(change) for change in document["changes"]),
        rows=tuple(
            PreparedRows(
                table_key=rows["table"],
                schema=rows["schema"],
                rows=tuple((number, count) for number, count in rows["rows"]),
                fragments=tuple(rows["fragments"]),
                keys=rows["keys"],
            )
            for rows in document["rows"]
        ),
    )


def _decode_change(document: Mapping[str, Any]) -> PreparedChange:
    return PreparedChange(
        id=CommitId(document["id"]),
        operation=document["operation"],
        actor=document["actor"],
        message=document["message"],
        counts={key: Counts(*numbers) for key, numbers in document["counts"].items()},
        footprint=Footprint.decode(base64.b64decode(document["footprint"])),
        requirements=Requirements(
            frozenset(document["keys"]),
            _type_keys(document["types"]),
            _type_keys(document["key_types"]),
        ),
        types_read=tuple(document["types_read"]),
    )


def _type_keys(pairs: Sequence[Sequence[int]]) -> frozenset[TypeKey]:
    return frozenset((TypeId(id_), IncarnationId(incarnation)) for id_, incarnation in pairs)
