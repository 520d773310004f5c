"""The history of an entity, and the origins of its values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from omnigraph.changes.model import Change
from omnigraph.commit.model import Commit, CommitId
from omnigraph.notebook.changes import history_html
from omnigraph.notebook.results import records_html

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryEntry(Change):
    """What one commit changed in an entity, by the names of its schema.

    `before` is the entity as the first parent of the commit shows it.
    """

    commit: Commit

    def to_json(self) -> dict[str, Any]:
        """Return the wire form."""
        # Called on the base by name: a dataclass with slots is another class than the one here.
        return {"commit": self.commit.to_json(), **Change.to_json(self)}

    def _repr_html_(self) -> str:
        return history_html([self.to_json()], ())


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityHistory:
    """The changes of an entity, the newest first.

    `unknown_before` are commits whose older versions were cleaned up: whether they, or commits
    before them on the same line, changed the entity is unknown.
    """

    changes: tuple[HistoryEntry, ...] = ()
    unknown_before: tuple[CommitId, ...] = ()

    def __iter__(self) -> Iterator[HistoryEntry]:
        return iter(self.changes)

    def __len__(self) -> int:
        return len(self.changes)

    def __getitem__(self, place: int) -> HistoryEntry:
        return self.changes[place]

    def to_json(self) -> dict[str, Any]:
        """Return the wire form."""
        return {
            "changes": [entry.to_json() for entry in self.changes],
            "unknown_before": list(self.unknown_before),
        }

    def _repr_html_(self) -> str:
        return history_html([entry.to_json() for entry in self.changes], self.unknown_before)


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueOrigin:
    """The commit that last set a value of an entity.

    Where it is not known because older versions were cleaned up, it is `unknown_before` or one of
    the commits before that, and the other fields are None.
    """

    commit_id: CommitId | None = None
    actor: str | None = None
    created_at: datetime | None = None
    message: str | None = None
    unknown_before: CommitId | None = None

    @classmethod
    def of(cls, commit: Commit) -> ValueOrigin:
        """Return the origin of values that a commit set."""
        return cls(
            commit_id=commit.id,
            actor=commit.actor,
            created_at=commit.created_at,
            message=commit.message,
        )

    def to_json(self) -> dict[str, Any]:
        """Return the wire form."""
        at = self.created_at
        return {
            "graph_commit_id": self.commit_id,
            "actor_id": self.actor,
            "created_at": None if at is None else (at - _EPOCH) // timedelta(microseconds=1),
            "message": self.message,
            "unknown_before": self.unknown_before,
        }

    def _repr_html_(self) -> str:
        return records_html("Origin", [self.to_json()])


class ValueOrigins(dict[str, ValueOrigin]):
    """The origins of the values of an entity by property."""

    def _repr_html_(self) -> str:
        rows = [{"property": name, **origin.to_json()} for name, origin in self.items()]
        return records_html("Origins of values", rows)
