"""The validator that no write can bypass: every rule, over the change alone.

Values come first; what is checked later relies on rows that are whole. All violations are collected
before anything is said.
"""

from __future__ import annotations

from omnigraph.write.change_set import ChangeSet
from omnigraph.write.checks.edges import check_cardinality, check_endpoints
from omnigraph.write.checks.reporter import ViolationReporter
from omnigraph.write.checks.unique import check_unique
from omnigraph.write.checks.values import check_values
from omnigraph.write.committed_state import CommittedState
from omnigraph.write.resolved_change import ResolvedChange, drop_unchanged_rows, resolve_changes


def validate(changes: ChangeSet, committed: CommittedState) -> dict[str, ResolvedChange]:
    """Return what the change makes of each type that changes.

    Raises ValidationFailed with all that is wrong, also with rows that change nothing.
    """
    images = resolve_changes(changes, committed)
    for image in images.values():
        for batch in image.batches:
            check_values(ViolationReporter(changes, image.shape, batch))
    for image in images.values():
        check_unique(changes, image, committed)
    check_endpoints(changes, images, committed)
    for image in images.values():
        check_cardinality(changes, image, images, committed)
    changes.findings.check()
    left = {key: drop_unchanged_rows(image, committed) for key, image in images.items()}
    return {key: image for key, image in left.items() if image is not None}
