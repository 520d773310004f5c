"""This module keeps the durable record of long operations in flight.

Ordinary commits need none: nothing they write before the swap is reachable. A long operation writes
its intent first, so that cleanup spares what it stages, people see it, and recovery can finish or
undo it.
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
    """A long operation: what it will publish, where, and how far it is.

    `complete` tells that everything is staged and only the publish is missing. `patience` is how
    long it waits for somebody to go on with it after its heart stopped; None for those nobody can.
    `started_at` is a time of the store, as is `heartbeat` of an intent that was listed.
    """

    id: str
    branch: str
    native: str | None
    staged: StagedCommit
    complete: bool = False
    patience: timedelta | None = None
    started_at: datetime
    heartbeat: datetime = field(compare=False)

    @property
    def path(self) -> str:
        """Where it is stored."""
        return f"{INTENTS}/{self.id}.json"


class IntentLog:
    """The intents of one graph."""

    def __init__(self, objects: ObjectStore) -> None:
        self._objects = objects

    def begin(
        self,
        branch: str,
        native: str | None,
        staged: StagedCommit,
        *,
        patience: timedelta | None = None,
    ) -> OperationIntent:
        """Write a new intent; its commit id is known to others from here on.

        Files that it does not refer to yet are written after this: cleanup keeps what is younger.
        """
        now = self._objects.now()
        intent = OperationIntent(
            id=str(ULID()),
            branch=branch,
            native=native,
            staged=replace(staged, known_id=True),
            patience=patience,
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
        """Return every intent, oldest first; one that vanishes meanwhile is fine.

        The heartbeat is the time its object was written, by the store's clock.
        """
        found = []
        for info in self._objects.list(INTENTS):
            data = self._objects.get(info.path)
            if data is not None and info.path.endswith(".json"):
                found.append(replace(_decode(data, info.path), heartbeat=info.modified))
        return sorted(found, key=lambda intent: intent.id)


def _encode(intent: OperationIntent) -> bytes:
    document = {
        "version": INTENT_VERSION,
        "id": intent.id,
        "branch": intent.branch,
        "native": intent.native,
        "complete": intent.complete,
        "patience": None if intent.patience is None else intent.patience.total_seconds(),
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
        # Beside the datasets: releases that know no checksums refuse members they do not know.
        "datasets": [_encode_dataset(dataset) for dataset in staged.datasets],
        "sums": {dataset.table_key: dict(dataset.sums) for dataset in staged.datasets},
        "reads": {key: [*identity, version] for key, (identity, version) in staged.reads.items()},
        "counts": {key: asdict(counts) for key, counts in staged.counts.items()},
        "schema": asdict(staged.schema) if staged.schema is not None else None,
    }


def _encode_dataset(dataset: StagedDataset) -> dict[str, Any]:
    return {name: value for name, value in asdict(dataset).items() if name != "sums"}


def _decode(data: bytes, path: str) -> OperationIntent:
    try:
        document = json.loads(data)
        found = document["version"]
        intent = _decode_intent(document) if found == INTENT_VERSION else None
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        raise GraphCorrupt(f"intent {path} cannot be read", cause=str(error)) from error
    if intent is None:
        message = (
            f"intent {path} has version {found}, not {INTENT_VERSION}: upgrade omnigraph first"
        )
        raise FormatUnsupported(message, found=str(found))
    return intent


def _decode_intent(document: Mapping[str, Any]) -> OperationIntent:
    patience = document.get("patience")
    return OperationIntent(
        id=document["id"],
        branch=document["branch"],
        native=document["native"],
        staged=_decode_staged(document["staged"]),
        complete=document["complete"],
        patience=None if patience is None else timedelta(seconds=patience),
        started_at=datetime.fromisoformat(document["started_at"]),
        heartbeat=datetime.fromisoformat(document["heartbeat"]),
    )


def _decode_staged(document: Mapping[str, Any]) -> StagedCommit:
    schema = document["schema"]
    reads, sums = document["reads"].items(), document.get("sums", {})
    return StagedCommit(
        id=CommitId(document["id"]),
        operation=document["operation"],
        datasets=tuple(
            StagedDataset(**dataset, sums=sums.get(dataset["table_key"], {}))
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
    )
