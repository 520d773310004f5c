"""Storage of a cluster: the ledger, its lock, contents by digest, records.

The ledger is replaced by compare-and-swap only. The lock prevents concurrent commands; that no
update is lost does not depend on it.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from ulid import ULID

from omnigraph.errors import InvalidInput, OmniError
from omnigraph.service.cluster.diagnostics import ClusterOperationRefused
from omnigraph.service.cluster.ledger import (
    ClusterState,
    content_digest,
    read_state,
    state_token,
    write_state,
)
from omnigraph.storage import Location, ObjectStore, locate

STATE_FILE = "__cluster/state.json"
LOCK_FILE = "__cluster/lock.json"
RESOURCES = "__cluster/resources"
RECOVERIES = "__cluster/recoveries"
APPROVALS = "__cluster/approvals"
GRAPHS_FOLDER = "graphs"
PAYLOADS = ("query", "policy", "pipeline")
"""The kinds of resources whose content is stored under its digest."""
_RecordT = TypeVar("_RecordT")


@dataclass(frozen=True, slots=True)
class ClusterLedger:
    """A state and the text it was read from; None without a ledger."""

    state: ClusterState
    text: bytes | None

    @property
    def token(self) -> str | None:
        """The digest of the text."""
        return None if self.text is None else state_token(self.text)


@dataclass(frozen=True, slots=True)
class ClusterLock:
    """The holder of the lock, and since when."""

    lock_id: str
    operation: str
    created_at: str
    pid: int

    @property
    def age(self) -> int:
        """Seconds since it was taken."""
        taken = datetime.fromisoformat(self.created_at)
        return max(0, int((datetime.now(UTC) - taken).total_seconds()))


class ClusterStore:
    """The objects of a cluster below its storage root."""

    def __init__(self, root: Location) -> None:
        self.root = root
        self.objects = ObjectStore(root)

    @property
    def state_path(self) -> str:
        """The address of the ledger."""
        return self.root.child(STATE_FILE)

    @property
    def lock_path(self) -> str:
        """The address of the lock."""
        return self.root.child(LOCK_FILE)

    # --- ledger

    def read(self) -> ClusterLedger:
        """Return the ledger; it is empty if none is stored."""
        text = self._get(STATE_FILE, "state_read_error")
        if text is None:
            return ClusterLedger(ClusterState(), None)
        return ClusterLedger(read_state(text, self.state_path), text)

    def write(self, base: ClusterLedger, state: ClusterState) -> ClusterLedger:
        """Replace the state that a new one is based on, as the next revision.

        Nothing is written when nothing changed.
        """
        if base.text is not None and replace(state, revision=base.state.revision) == base.state:
            return base
        newest = replace(state, revision=base.state.revision + 1)
        text = write_state(newest)
        try:
            if base.text is None:
                won = self.objects.put_if_absent(STATE_FILE, text)
            else:
                won = self.objects.replace(STATE_FILE, base.text, text)
        except OmniError as error:
            raise ClusterOperationRefused(
                "state_write_error", self.state_path, error.message
            ) from error
        if not won:
            message = "another process changed the ledger meanwhile; plan and apply again"
            raise ClusterOperationRefused("state_cas_mismatch", self.state_path, message)
        return ClusterLedger(newest, text)

    # --- lock

    def lock(self) -> ClusterLock | None:
        """Return the lock, if a process holds it."""
        text = self._get(LOCK_FILE, "state_read_error")
        if text is None:
            return None
        try:
            facts = json.loads(text)
            version = facts.pop("version")
            lock = ClusterLock(**facts)
            datetime.fromisoformat(lock.created_at)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            message = "the lock cannot be read; remove the file if no process uses this cluster"
            raise ClusterOperationRefused("invalid_state_lock", self.lock_path, message) from error
        if version != 1:
            message = f"the lock has version {version}, this program reads 1: upgrade it"
            raise ClusterOperationRefused("unsupported_state_lock_version", self.lock_path, message)
        return lock

    def take_lock(self, operation: str) -> ClusterLock:
        """Acquire the lock for an operation, or raise with its holder."""
        created = datetime.now(UTC).isoformat(timespec="milliseconds")
        mine = ClusterLock(str(ULID()), operation, created, os.getpid())
        if self.objects.put_if_absent(LOCK_FILE, _pretty({"version": 1, **asdict(mine)})):
            return mine
        held = self.lock()
        if held is None:
            return self.take_lock(operation)
        if held.lock_id == mine.lock_id:
            return mine  # only the answer was lost
        message = (
            f"{held.operation} of process {held.pid} has held the lock since {held.created_at};"
            f" wait for it, or if it is gone: omnigraph cluster force-unlock {held.lock_id}"
        )
        raise ClusterOperationRefused("state_lock_held", self.lock_path, message)

    def release_lock(self, lock_id: str) -> bool:
        """Release the lock, if it is still the one that was acquired."""
        held = self.lock()
        if held is None or held.lock_id != lock_id:
            return False
        self.objects.delete([LOCK_FILE])
        return True

    # --- contents

    def payload_path(self, address: str, digest: str) -> str:
        """Return the path of the content of a query, policy or pipeline."""
        kind, _, name = address.partition(".")
        suffix = "gq" if kind == "query" else "yaml"
        return f"{RESOURCES}/{kind}/{name.replace('.', '/')}/{digest}.{suffix}"

    def put_payload(self, address: str, digest: str, content: bytes) -> None:
        """Store a content under its digest, unless it is stored already."""
        path = self.payload_path(address, digest)
        if not self.objects.put_if_absent(path, content) and self.objects.get(path) != content:
            self.objects.put(path, content)

    def payload(self, address: str, digest: str) -> bytes:
        """Return a content; raise ClusterOperationRefused if it is missing or was changed."""
        content = self.objects.get(self.payload_path(address, digest))
        if content is not None and content_digest(content) == digest:
            return content
        missing = content is None
        code = "catalog_payload_missing" if missing else "catalog_payload_digest_mismatch"
        problem = "its stored content is missing" if missing else "its content was changed"
        message = f"{problem}; run `cluster refresh` and `cluster apply`"
        raise ClusterOperationRefused(code, address, message)

    def payload_fault(self, address: str, digest: str) -> str | None:
        """Return `missing` or `mismatch` if a content does not match its digest."""
        try:
            self.payload(address, digest)
        except ClusterOperationRefused as error:
            return error.code.rpartition("_")[2]
        return None

    # --- records

    def records(self, folder: str) -> dict[str, Any]:
        """Return the records of a folder by id, oldest first; one that is not JSON is None."""
        records: dict[str, Any] = {}
        for info in sorted(self.objects.list(folder), key=lambda info: info.path):
            name = info.path.rsplit("/", 1)[-1]
            text = self.objects.get(info.path) if name.endswith(".json") else None
            if text is None:
                continue
            try:
                facts = json.loads(text)
            except ValueError:
                facts = None
            records[name.removesuffix(".json")] = facts if isinstance(facts, dict) else None
        return records

    def put_record(self, folder: str, id_: str, facts: dict[str, Any]) -> None:
        """Write or replace a record."""
        self.objects.put(f"{folder}/{id_}.json", _pretty({"schema_version": 1, **facts}))

    def delete_record(self, folder: str, id_: str) -> None:
        """Remove a record."""
        self.objects.delete([f"{folder}/{id_}.json"])

    # --- graphs

    def graph_location(self, id_: str) -> Location:
        """Return the location of a graph of the cluster."""
        return Location(self.graph_uri(id_), self.root.options)

    def graph_uri(self, id_: str) -> str:
        """Return the address of a graph of the cluster."""
        return self.root.child(f"{GRAPHS_FOLDER}/{id_}.omni")

    def has_graph_files(self, id_: str) -> bool:
        """Return whether any object exists at the address of a graph."""
        return next(iter(self.objects.list(f"{GRAPHS_FOLDER}/{id_}.omni")), None) is not None

    def remove_graph(self, id_: str) -> None:
        """Remove everything at the address of a graph, its manifest first."""
        prefix = f"{GRAPHS_FOLDER}/{id_}.omni"
        paths = [info.path for info in self.objects.list(prefix)]
        self.objects.delete(sorted(paths, key=lambda path: ("/__manifest/" not in path, path)))

    def _get(self, path: str, code: str) -> bytes | None:
        try:
            return self.objects.get(path)
        except OmniError as error:
            raise ClusterOperationRefused(code, self.root.child(path), error.message) from error


def read_record(kind: type[_RecordT], facts: dict[str, Any] | None) -> _RecordT | None:
    """Return the dataclass that a record holds, or None if the record is invalid."""
    members = dict(facts or {})
    if members.pop("schema_version", None) != 1:
        return None
    try:
        return kind(**members)
    except TypeError:
        return None


def _pretty(facts: dict[str, Any]) -> bytes:
    return (json.dumps(facts, indent=2, ensure_ascii=False) + "\n").encode()


# ----------------------------------------------------------------------
# Graphs that belong to a cluster


_GRAPH_PATH = re.compile(rf"(?P<root>.+)/{GRAPHS_FOLDER}/(?P<id>[^/]+)\.omni")


def refuse_managed(uri: str | os.PathLike[str], what: str) -> None:
    """Raise InvalidInput when an address is that of a graph of a cluster."""
    location = locate(uri)
    place = _GRAPH_PATH.fullmatch(location.uri)
    if place is None:
        return
    root = Location(place["root"], location.options)
    if (not root.is_local or Path(root.uri).is_dir()) and ObjectStore(root).exists(STATE_FILE):
        message = (
            f"graph '{place['id']}' belongs to the cluster at {root}: {what} there, and run"
            " `omnigraph cluster apply`"
        )
        raise InvalidInput(message, code="graph_managed", cluster=root.uri)
