"""What changed between two states of a graph: differences, the change feed, baselines.

Two snapshots enter, changes leave: per type the rows that differ are found by the files that
versions are made of (`delta`), and shown as entities before and after (`diff`). `block` tells what
one commit changed, `feed` what happened on a branch since a cursor, `baseline` where a reader may
begin. Cost follows the change; what only moved to other files is no change.
"""

from omnigraph.changes.commit_changes import ChangeBlock, Limits
from omnigraph.changes.errors import (
    ChangeFeedGap,
    ChangeSchemaBoundary,
    CommitHasNoParent,
    CursorRejected,
)
from omnigraph.changes.model import Change, ChangeOp, EntityImage

__all__ = [
    "Change",
    "ChangeBlock",
    "ChangeFeedGap",
    "ChangeOp",
    "ChangeSchemaBoundary",
    "CommitHasNoParent",
    "CursorRejected",
    "EntityImage",
    "Limits",
]
