"""Commits: manifest rows, snapshots, history, branches, and the one function that publishes.

A graph commit is exactly one compare-and-swap on `__manifest`. Everything written before it is
invisible, everything after it is derived. Writers pass a `StagedCommit`; readers get an immutable
`Snapshot`.
"""

from omnigraph.commit.model import Branch, Commit, CommitId, Counts, DatasetEntry, Snapshot, Tag

__all__ = ["Branch", "Commit", "CommitId", "Counts", "DatasetEntry", "Snapshot", "Tag"]
