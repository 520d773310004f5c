"""Sync the files of staged commits to disk before a swap can refer to them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from omnigraph.commit.staged_commit import StagedCommit, StagedDataset
from omnigraph.errors import Contention, NotFound
from omnigraph.storage import Datasets
from omnigraph.storage.layout import version_file


def sync_staged_files(datasets: Datasets, group: Sequence[StagedCommit]) -> None:
    """Sync the files that the versions of a group add, each once.

    Raises:
        Contention: a file was removed; the commits have to be staged again.
    """
    if not datasets.objects.files.enabled:
        return
    try:
        _sync_files(datasets, group)
    except NotFound as error:
        message = f"a file of commit {group[0].id} was removed; stage it again"
        raise Contention(message, code="stage_expired", commit_id=group[0].id) from error


def _sync_files(datasets: Datasets, group: Sequence[StagedCommit]) -> None:
    changes = [change for staged in group for change in staged.datasets]
    names: dict[str, set[str]] = defaultdict(set)
    for change in changes:
        names[change.path] |= change.checksums.keys()
    datasets.objects.files.sync(f"{path}/{name}" for path in names for name in names[path])
    for change in changes:
        if not _is_listed(change, names[change.path]):
            assert change.physical is not None, "a dropped dataset has no files"
            datasets.sync_new_files(change.path, change.expected, change.physical)


def _is_listed(change: StagedDataset, names: set[str]) -> bool:
    """Return whether the checksums of the group list the files of a version."""
    if change.physical in (None, change.expected):
        return True
    return version_file(change.physical) in names
