"""What changed between two states of a graph: differences, the change feed, baselines.

Per type, the rows that differ between two snapshots are found by comparing the files of both
versions (`type_delta`), and returned as entities before and after (`diff`). `commit_changes` lists
what one commit changed, `entity_history` which commits changed one entity, `feed` what happened on
a branch since a cursor, and `baseline` returns a state to start from. Cost follows the size of the
change; rows that only moved to other files did not change.
"""

from omnigraph.changes.commit_changes import ChangeBlock, Limits
from omnigraph.changes.entity_model import EntityHistory, HistoryEntry, ValueOrigin
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
    "EntityHistory",
    "EntityImage",
    "HistoryEntry",
    "Limits",
    "ValueOrigin",
]
