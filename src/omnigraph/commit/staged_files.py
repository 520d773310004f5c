"""Check that cleanup removes no file of a staged commit, by the rule cleanup itself follows.

Cleanup removes files that nothing retained refers to and that the store wrote before a time, which
it announces in every head first. A writer that began after the announcement is not concerned: its
files are younger. Any other looks at the times of its files in the store and compares them with the
announced one. No clock of a machine takes part, so none can be wrong.
"""

from __future__ import annotations

from omnigraph.commit.lineage import Lineage
from omnigraph.commit.model import Head
from omnigraph.commit.staged import StagedCommit, StagedDataset
from omnigraph.errors import Contention, NotFound
from omnigraph.storage import Datasets, ObjectInfo
from omnigraph.storage.files import referenced_files, referenced_folders
from omnigraph.storage.layout import dataset_path


def check_staged_files(lineage: Lineage, head: Head, staged: StagedCommit) -> None:
    """Raise Contention when files of a staged commit may be removed, or are.

    The expected versions are those of the head.
    """
    if not head.swept or head.sweep in (staged.began, staged.sweep):
        return
    for change in staged.datasets:
        if change.physical in (None, change.expected):
            continue
        if not _all_stay(lineage.datasets, change, head.swept):
            message = (
                f"commit {staged.id} was staged before a cleanup, which may have removed files of "
                "it; stage it again. If that does not help, run `omnigraph repair --confirm`"
            )
            raise Contention(message, code="stage_expired", commit_id=staged.id)


def written_before(info: ObjectInfo, milliseconds: int) -> bool:
    """Return whether the store wrote a file before a time."""
    return info.modified.timestamp() * 1000 < milliseconds


def _all_stay(datasets: Datasets, change: StagedDataset, swept: int) -> bool:
    """Return whether all is there, and young enough, that a staged version does not inherit."""
    path = dataset_path(change.table_key.partition(":")[0], *change.key)
    try:
        made = datasets.open(path, change.physical)
        files, folders = referenced_files(made), referenced_folders(made)
    except NotFound:
        return False
    if change.expected is not None:
        base = datasets.at(path, change.expected)
        files, folders = files - referenced_files(base), folders - referenced_folders(base)
    left = set(files)
    for info in datasets.objects.list(path):
        below = info.path.removeprefix(f"{path}/")
        if below in files or any(below.startswith(folder) for folder in folders):
            if written_before(info, swept):
                return False
            left.discard(below)
    return not left
