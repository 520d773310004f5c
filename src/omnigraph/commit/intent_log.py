"""Store intents: durable records of long operations in progress.

Ordinary commits need none: nothing they write before the swap is reachable. A long operation writes
its intent first, so that cleanup keeps the files it stages, users see it, and recovery can roll it
forward or back.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from ulid import ULID

from omnigraph.catalog import IncarnationId, TypeId
from omnigraph.commit.model import CommitId, Counts
from omnigraph.commit.staged_commit import StagedCommit, StagedDataset, StagedSchema
from omnigraph.errors import FormatUnsupported, GraphCorrupt
from omnigraph.storage import ObjectStore
from omnigraph.storage.layout import INTENTS

INTENT_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationIntent:
    """A long operation in progress: its branch, its staged commit and its state.

    `complete` means that everything is staged and only the publish is missing. `resume_window`
    is how long a resumable operation is kept after its last heartbeat; None if it cannot resume.
    `started_at` is a time of the store, as is `heartbeat` of an intent that was listed.
    """

    id: str
    branch: str
    lineage_id: str | None
    staged: StagedCommit
    complete: bool = False
    resume_window: timedelta | None = None
    started_at: datetime
    heartbeat: datetime = field(compare=False)

    @property
    def path(self) -> str:
        """The path of the stored intent."""
        return f"{INTENTS}/{self.id}.json"


class IntentLog:
    """The intents of one graph."""

    def __init__(self, objects: ObjectStore) -> None:
        self._objects = objects

    def begin(
        self,
        branch: str,
        lineage_id: str | None,
        staged: StagedCommit,
        *,
        resume_window: timedelta | None = None,
    ) -> OperationIntent:
        """Write a new intent; from now on other processes know its commit ID.

        Files it does not refer to yet must be written after this: cleanup keeps newer files.
        """
        now = self._objects.now()
        intent = OperationIntent(
            id=str(ULID()),
            branch=branch,
            lineage_id=lineage_id,
            staged=replace(staged, known_id=True),
            resume_window=resume_window,
            started_at=now,
            heartbeat=now,
        )
        self._objects.put(intent.path, _encode(intent))
        return intent

    def update(
        self, intent: OperationIntent, staged: StagedCommit, *, complete: bool = False
    ) -> OperationIntent:
        """Record progress and a heartbeat."""
        newer = replace(
            intent,
            staged=replace(staged, known_id=True),
            complete=complete,
            heartbeat=datetime.now(UTC),
        )
        self._objects.put(newer.path, _encode(newer))
        return newer

    def end(self, intent: OperationIntent) -> None:
        """Remove an intent whose operation has ended."""
        self._objects.delete([intent.path])

    def list(self) -> list[OperationIntent]:
        """Return every intent, oldest first; intents removed during the listing are skipped.

        The heartbeat is the time its object was written, by the store's clock.
        """
        intents = []
        for info in self._objects.list(INTENTS):
            data = self._objects.get(info.path)
            if data is not None and info.path.endswith(".json"):
                intents.append(replace(_decode(data, info.path), heartbeat=info.modified))
        return sorted(intents, key=lambda intent: intent.id)


def _encode(intent: OperationIntent) -> bytes:
    document = {
        "version": INTENT_VERSION,
        "id": intent.id,
        "branch": intent.branch,
        "native": intent.lineage_id,
        "complete": intent.complete,
        "patience": None if intent.resume_window is None else intent.resume_window.total_seconds(),
        "started_at": intent.started_at.isoformat(),
        "heartbeat": intent.heartbeat.isoformat(),
        "staged": _encode_staged(intent.staged),
    }
    return json.dumps(document, indent=2).encode()


def _encode_staged(staged: StagedCommit) -> dict[str, Any]:
    return {
        **{name: getattr(staged, name) for name in ("id", "operation", "read_schema", "actor")},
        "message": staged.message,
        "if_commit": staged.if_commit,
        "merged_parents": list(staged.merged_parents),
        # Checksums are stored separately: older releases reject unknown members of datasets.
        "datasets": [_encode_dataset(dataset) for dataset in staged.datasets],
        "sums": {dataset.table_key: dict(dataset.checksums) for dataset in staged.datasets},
        "reads": {key: [*identity, version] for key, (identity, version) in staged.reads.items()},
        "counts": {key: asdict(counts) for key, counts in staged.counts.items()},
        "schema": asdict(staged.schema) if staged.schema is not None else None,
        "watermarks": {name: dict(mark) for name, mark in staged.watermarks.items()},
    }


def _encode_dataset(dataset: StagedDataset) -> dict[str, Any]:
    return {name: value for name, value in asdict(dataset).items() if name != "checksums"}


def _decode(data: bytes, path: str) -> OperationIntent:
    try:
        document = json.loads(data)
        version = document["version"]
        intent = _decode_intent(document) if version == INTENT_VERSION else None
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        raise GraphCorrupt(f"intent {path} cannot be read", cause=str(error)) from error
    if intent is None:
        message = (
            f"intent {path} has version {version}, not {INTENT_VERSION}: upgrade omnigraph first"
        )
        raise FormatUnsupported(message, found=str(version))
    return intent


def _decode_intent(document: Mapping[str, Any]) -> OperationIntent:
    resume_window = document.get("patience")
    return OperationIntent(
        id=document["id"],
        branch=document["branch"],
        lineage_id=document["native"],
        staged=_decode_staged(document["staged"]),
        complete=document["complete"],
        resume_window=None if resume_window is None else timedelta(seconds=resume_window),
        started_at=datetime.fromisoformat(document["started_at"]),
        heartbeat=datetime.fromisoformat(document["heartbeat"]),
    )


def _decode_staged(document: Mapping[str, Any]) -> StagedCommit:
    schema = document["schema"]
    reads, checksums = document["reads"].items(), document.get("sums", {})
    return StagedCommit(
        id=CommitId(document["id"]),
        operation=document["operation"],
        datasets=tuple(
            StagedDataset(**dataset, checksums=checksums.get(dataset["table_key"], {}))
            for dataset in document["datasets"]
        ),
        read_schema=document["read_schema"],
        reads={key: ((TypeId(t), IncarnationId(i)), version) for key, (t, i, version) in reads},
        schema=StagedSchema(**schema) if schema is not None else None,
        actor=document["actor"],
        message=document["message"],
        counts={key: Counts(**counts) for key, counts in document["counts"].items()},
        if_commit=document["if_commit"],
        merged_parents=tuple(document["merged_parents"]),
        known_id=True,
        watermarks=document.get("watermarks", {}),
    )
