"""What a return to the last good versions would restore and lose, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from omnigraph.commit.model import Commit
from omnigraph.notebook.display import ReportDisplay


@dataclass(frozen=True, slots=True, kw_only=True)
class LineagePlan:
    """The last good version of the lineage of one branch, and what is lost by returning to it.

    `newest` is the greatest manifest version that ever existed; `last_good` is the newest whole
    one, None if there is none. `republished` are later versions, with the data file of each, whose
    rows are intact although their version file is not: they are published again. What is lost are
    `lost_commits`, newest first, `lost_names` of branches and tags, and what `unreadable_versions`
    manifest versions held, which cannot be read. The ids in `merged_commits` are those of lost
    commits that the history of another branch keeps.
    """

    branch: str
    lineage_id: str | None
    newest: int
    last_good: int | None
    damage: tuple[str, ...] = ()
    republished: tuple[tuple[int, str], ...] = ()
    lost_commits: tuple[Commit, ...] = ()
    merged_commits: tuple[str, ...] = ()
    lost_names: tuple[str, ...] = ()
    unreadable_versions: int = 0

    @property
    def is_whole(self) -> bool:
        """Whether the newest version is whole."""
        return self.last_good == self.newest

    @property
    def kept(self) -> int:
        """The newest manifest version whose content is kept; 0 if nothing is."""
        return self.republished[-1][0] if self.republished else self.last_good or 0

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {
            "branch": self.branch,
            "lineage": self.lineage_id,
            "newest_manifest_version": self.newest,
            "last_good_manifest_version": self.last_good,
            "damage": list(self.damage),
            "republished": [{"version": v, "file": file} for v, file in self.republished],
            "lost_commits": [commit.to_json() for commit in self.lost_commits],
            "merged_commits": list(self.merged_commits),
            "lost_names": list(self.lost_names),
            "unreadable_manifest_versions": self.unreadable_versions,
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> LineagePlan:
        """Read what `to_json` wrote."""
        return cls(
            branch=document["branch"],
            lineage_id=document["lineage"],
            newest=document["newest_manifest_version"],
            last_good=document["last_good_manifest_version"],
            damage=tuple(document["damage"]),
            republished=tuple((r["version"], r["file"]) for r in document["republished"]),
            lost_commits=tuple(Commit.from_json(c) for c in document["lost_commits"]),
            merged_commits=tuple(document["merged_commits"]),
            lost_names=tuple(document["lost_names"]),
            unreadable_versions=document["unreadable_manifest_versions"],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LastGoodReport(ReportDisplay):
    """The plans of all lineages, main first; `quarantine` holds the files that were set aside."""

    lineages: tuple[LineagePlan, ...]
    confirmed: bool = False
    quarantine: str | None = None

    @property
    def damaged(self) -> tuple[LineagePlan, ...]:
        """The lineages whose newest version is not whole."""
        return tuple(plan for plan in self.lineages if not plan.is_whole)

    @property
    def is_possible(self) -> bool:
        """Whether main has a whole version."""
        return self.lineages[0].last_good is not None

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {
            "damaged": bool(self.damaged),
            "possible": self.is_possible,
            "confirm": self.confirmed,
            "quarantine": self.quarantine,
            "lineages": [plan.to_json() for plan in self.lineages],
        }
