"""This module defines what a writer hands to the door: a staged commit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from ulid import ULID

from omnigraph.catalog import IncarnationId, TypeId
from omnigraph.commit.lineage import Lineage
from omnigraph.commit.manifest_rows import NewManifestRow
from omnigraph.commit.model import CommitId, Counts, Head
from omnigraph.errors import Contention, NotFound
from omnigraph.storage import Datasets, ObjectInfo
from omnigraph.storage.layout import dataset_path, referenced_files, referenced_folders


def new_commit_id() -> CommitId:
    """Return a new commit id; it makes publishing idempotent."""
    return CommitId(str(ULID()))


def commit_id_time(id_: str) -> datetime:
    """Return when an id was minted, by the clock of who did."""
    return ULID.from_str(id_).datetime


@dataclass(frozen=True, slots=True)
class StagedDataset:
    """A staged version of one dataset and the published one it was made from.

    `expected` is the physical version the change is based on, None for a dataset made by this very
    commit. `physical` None drops the dataset. `sums` are the checksums of the files it adds.
    """

    table_key: str
    type_id: TypeId
    incarnation: IncarnationId
    expected: int | None
    physical: int | None
    rows: int = 0
    location: str | None = None
    sums: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.expected is None and (self.physical is None or self.location is None):
            raise ValueError("a new dataset has a version and a location")

    @property
    def key(self) -> tuple[TypeId, IncarnationId]:
        """What identifies the dataset."""
        return (self.type_id, self.incarnation)


def with_checksums(datasets: Datasets, staged: StagedDataset) -> StagedDataset:
    """Return a staged version with the checksums of the files that the published one has not."""
    if staged.physical is None:
        return staged
    path = dataset_path(staged.table_key.partition(":")[0], *staged.key)
    return replace(staged, sums=datasets.new_sums(path, staged.expected, staged.physical))


@dataclass(frozen=True, slots=True)
class StagedSchema:
    """An accepted schema a commit brings in."""

    hash: str
    source: str
    document: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedCommit:
    """Everything a commit will be, written but not visible.

    `began` is the last announcement of a cleanup on the branch when staging began: files are looked
    at before they are published if there was another since, or if it is not known. `read_schema` is
    the accepted schema the writer used; publishing fails when it moved. `reads` are datasets the
    writer only looked at: they must not have moved either. `history` are rows of commits this one
    descends from through a merged parent. `sweep` is the cleanup that had begun last when files of
    others that it shares were surely kept. `known_id` tells that the id may have been published or
    fenced before, because another process knows it.
    """

    id: CommitId
    operation: str
    datasets: tuple[StagedDataset, ...] = ()
    read_schema: str | None = None
    reads: Mapping[str, tuple[tuple[TypeId, IncarnationId], int]] = field(default_factory=dict)
    schema: StagedSchema | None = None
    actor: str | None = None
    message: str | None = None
    counts: Mapping[str, Counts] = field(default_factory=dict)
    if_commit: CommitId | None = None
    merged_parents: tuple[CommitId, ...] = ()
    history: tuple[NewManifestRow, ...] = ()
    sweep: str | None = None
    known_id: bool = False
    began: str | None = None

    def __post_init__(self) -> None:
        keys = [dataset.key for dataset in self.datasets]
        if len(set(keys)) != len(keys):
            raise ValueError("a commit changes a dataset once")


# ----------------------------------------------------------------------
# Check that cleanup removes no file of a staged commit, by the rule cleanup itself follows.
#
# Cleanup removes files that nothing retained refers to and that the store wrote before a time,
# which
# it announces in every head first. A writer that began after the announcement is not concerned: its
# files are younger. Any other looks at the times of its files in the store and compares them with
# the
# announced one. No clock of a machine takes part, so none can be wrong.


def check_staged_files(lineage: Lineage, head: Head, staged: StagedCommit) -> None:
    """Raise Contention when files of a staged commit may be removed, or are.

    The expected versions are those of the head.
    """
    if not head.swept or head.sweep in (staged.began, staged.sweep):
        return
    for change in staged.datasets:
        if change.physical in (None, change.expected):
            continue
        if not _all_files_kept(lineage.datasets, change, head.swept):
            message = (
                f"commit {staged.id} was staged before a cleanup, which may have removed files of "
                "it; stage it again. If that does not help, run `omnigraph repair --confirm`"
            )
            raise Contention(message, code="stage_expired", commit_id=staged.id)


def written_before(info: ObjectInfo, milliseconds: int) -> bool:
    """Return whether the store wrote a file before a time."""
    return info.modified.timestamp() * 1000 < milliseconds


def _all_files_kept(datasets: Datasets, change: StagedDataset, swept: int) -> bool:
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
