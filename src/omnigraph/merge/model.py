"""Options and result of a merge."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from omnigraph.commit.model import Commit, Counts
from omnigraph.merge.conflict_decisions import ConflictDecisions
from omnigraph.merge.conflicts import Conflict
from omnigraph.notebook.reviews import merge_html
from omnigraph.write.transaction import StagedInspector


class MergeOutcome(StrEnum):
    """What a merge came to."""

    ALREADY_UP_TO_DATE = "already_up_to_date"
    FAST_FORWARD = "fast_forward"
    MERGED = "merged"


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeResult:
    """What a merge did, or would do: counts by type, conflicts that stand in the way.

    `commit` is None when nothing was published. `branch_deleted` is whether the source branch is
    gone, None if that was not requested.
    """

    source: str
    target: str
    outcome: MergeOutcome
    commit: Commit | None = None
    counts: Mapping[str, Counts] = field(default_factory=dict)
    conflicts: tuple[Conflict, ...] = ()
    actor: str | None = None
    branch_deleted: bool | None = None
    branch_delete_error: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values, those of the wire among them."""
        facts: dict[str, Any] = {
            "source": self.source,
            "target": self.target,
            "outcome": str(self.outcome),
            "actor_id": self.actor,
            "commit": None if self.commit is None else self.commit.to_json(),
            "counts": {key: asdict(counts) for key, counts in self.counts.items()},
            "conflicts": [conflict.to_json() for conflict in self.conflicts],
        }
        if self.branch_deleted is not None:
            facts["branch_deleted"] = self.branch_deleted
        if self.branch_delete_error is not None:
            facts["branch_delete_error"] = self.branch_delete_error
        return facts

    def _repr_html_(self) -> str:
        return merge_html(self.to_json())


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeOptions:
    """How to merge: `dry_run` publishes nothing, `strict` merges no entity property by property."""

    dry_run: bool = False
    strict: bool = False
    decisions: ConflictDecisions = field(default_factory=ConflictDecisions)
    inspect: StagedInspector | None = field(default=None, compare=False)
    """Called with the staged merge before it is published; returns it, or raises."""
