"""This module holds the states a branch went through: its first parents, the oldest first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from omnigraph.changes.model import Scope
from omnigraph.changes.steps import Steps
from omnigraph.changes.tokens import digest, filter_digest
from omnigraph.commit.history import History, first_parents, read_history
from omnigraph.commit.lineage import LineageState
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.model import MAIN, Branch, Commit, CommitId, Snapshot
from omnigraph.commit.snapshot import snapshots_along


@dataclass(frozen=True, slots=True)
class Line:
    """The first-parent line of a branch, up to the head it had when it was read."""

    manifest: Manifest
    branch: Branch
    state: LineageState
    history: History
    commits: tuple[CommitId, ...]

    @classmethod
    def read(cls, manifest: Manifest, branch_name: str) -> Line:
        """Read the line of a branch."""
        branch, state = manifest.head_state(branch_name)
        history = read_history(manifest.line(state))
        commits = tuple(first_parents(history.commits, state.head.commit_id))
        return cls(manifest, branch, state, history, commits[::-1])

    @property
    def head(self) -> Snapshot:
        """The newest state."""
        return self.snapshots(len(self.commits) - 1, len(self.commits))[0]

    def commit(self, place: int) -> Commit:
        """Return a commit by its place."""
        return self.history.commits[self.commits[place]].commit

    def place(self, commit_id: str) -> int | None:
        """Return where a commit stands, None when it is not on the line."""
        return next((i for i, known in enumerate(self.commits) if known == commit_id), None)

    def snapshots(self, start: int, stop: int) -> list[Snapshot]:
        """Return the states of some commits."""
        line = self.commits[start:stop]
        return snapshots_along(self.manifest, self.branch.name, self.state, self.history, line)

    def steps(self) -> Steps:
        """Return the steps between states of this line."""
        return Steps(self.manifest, (), self.history)

    def bound(self, scope: Scope) -> Mapping[str, str]:
        """Return what tokens for this line and a scope are bound to."""
        schema, _ = self.manifest.schema(self.state.head.schema_hash, self.state)
        return {
            "graph": digest(schema.domain),
            "genesis": self.commits[0],
            "branch": digest(self.branch.name),
            "incarnation": self.branch.native or MAIN,
            "filter": filter_digest(scope),
        }
