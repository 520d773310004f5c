"""Staged commits: what a writer passes to `publish`, and the check against cleanups."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from ulid import ULID

from omnigraph.catalog import IncarnationId, TypeId
from omnigraph.commit.footprint import UNKNOWN_FOOTPRINT, Footprint, Requirements
from omnigraph.commit.lineage import Lineage
from omnigraph.commit.manifest_rows import NewManifestRow
from omnigraph.commit.model import CommitId, Counts, Head
from omnigraph.commit.protection import NO_PERMIT, WritePermit
from omnigraph.errors import Contention, NotFound
from omnigraph.storage import Datasets, ObjectInfo
from omnigraph.storage.layout import dataset_path, referenced_files, referenced_folders


def new_commit_id() -> CommitId:
    """Return a new commit id; it makes publishing idempotent."""
    return CommitId(str(ULID()))


def commit_id_time(id_: str) -> datetime:
    """Return when an ID was created, by the clock of its creator."""
    return ULID.from_str(id_).datetime


@dataclass(frozen=True, slots=True)
class StagedDataset:
    """A staged version of one dataset and the published one it is based on.

    `expected` is the physical version the change is based on, None for a dataset created by this
    commit. `physical` None drops the dataset. `checksums` are those of the files it adds.
    `excluded` newest rows of the version belong to later commits of the group. Except `checksums`,
    field names are part of the format of intents.
    """

    table_key: str
    type_id: TypeId
    incarnation: IncarnationId
    expected: int | None
    physical: int | None
    rows: int = 0
    location: str | None = None
    checksums: Mapping[str, str] = field(default_factory=dict)
    excluded: int = 0

    def __post_init__(self) -> None:
        if self.expected is None and (self.physical is None or self.location is None):
            raise ValueError("a new dataset needs a version and a location")

    @property
    def key(self) -> tuple[TypeId, IncarnationId]:
        """The identity of the dataset."""
        return (self.type_id, self.incarnation)

    @property
    def path(self) -> str:
        """The path of the dataset."""
        return dataset_path(self.table_key.partition(":")[0], *self.key)

    @property
    def versions(self) -> set[int]:
        """The physical versions it refers to."""
        return {v for v in (self.physical, self.expected) if v is not None}


def with_checksums(datasets: Datasets, staged: StagedDataset) -> StagedDataset:
    """Return a staged version with the checksums of the files that it adds."""
    if staged.physical is None:
        return staged
    checksums = datasets.new_checksums(staged.path, staged.expected, staged.physical)
    return replace(staged, checksums=checksums)


@dataclass(frozen=True, slots=True)
class StagedSchema:
    """An accepted schema that a commit introduces; field names are part of the intent format."""

    hash: str
    source: str
    document: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedCommit:
    """The content of a commit, written but not visible.

    `began` is the last cleanup announced on the branch when staging started: if another was
    announced since, or if it is None, files are checked before publishing. `read_schema` is the
    accepted schema the writer used; publishing fails if it has changed. `reads` are datasets the
    writer only read: they must not have changed either. `history` are rows of commits this one
    descends from through a merged parent, whose generation is `merged_generation`: those that the
    lineage did not hold at `history_version`. `last_cleanup` is the last announced cleanup when
    shared files of other branches were known to be kept. `known_id` means that the ID may have been
    published or fenced before, because another process knows it. `footprint` is what it changes;
    `requirements` is what it relies on, None for the versions of the datasets it read and changes.
    `permit` is what it shows where the branch is protected; `maintenance` changes no entity and
    needs none. `watermarks` say how far incremental sources were read.
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
    merged_generation: int = 0
    history: tuple[NewManifestRow, ...] = ()
    history_version: int = 0
    last_cleanup: str | None = None
    known_id: bool = False
    began: str | None = None
    footprint: Footprint = UNKNOWN_FOOTPRINT
    requirements: Requirements | None = None
    permit: WritePermit = NO_PERMIT
    maintenance: bool = False
    watermarks: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        keys = [dataset.key for dataset in self.datasets]
        if len(set(keys)) != len(keys):
            raise ValueError("a commit changes a dataset once")


# --- check that cleanup removes no file of a staged commit --------------------------------------
#
# Cleanup removes unreferenced files that the store wrote before a cutoff, which it first announces
# in every head. Files of a writer that started after the announcement are newer. Any other writer
# compares the times of its files in the store with the cutoff. Clocks of machines are not used.


def check_staged_files(lineage: Lineage, head: Head, staged: StagedCommit) -> None:
    """Raise Contention if cleanup may remove, or has removed, files of a staged commit.

    The expected versions must be those of the head.
    """
    if not head.cleanup_cutoff or head.last_cleanup in (staged.began, staged.last_cleanup):
        return
    for change in staged.datasets:
        if change.physical in (None, change.expected):
            continue
        if not _all_files_kept(lineage.datasets, change, head.cleanup_cutoff):
            message = (
                f"commit {staged.id} was staged before a cleanup that may have removed its files; "
                "stage it again. If that does not help, run `omnigraph repair --confirm`"
            )
            raise Contention(message, code="stage_expired", commit_id=staged.id)


def written_before(info: ObjectInfo, milliseconds: int) -> bool:
    """Return whether the store wrote a file before a time."""
    return info.modified.timestamp() * 1000 < milliseconds


def _all_files_kept(datasets: Datasets, change: StagedDataset, cleanup_cutoff: int) -> bool:
    """Return whether all files that a staged version adds exist and are newer than the cutoff."""
    path = change.path
    try:
        staged = datasets.open(path, change.physical)
        files, folders = referenced_files(staged), referenced_folders(staged)
    except NotFound:
        return False
    if change.expected is not None:
        base = datasets.at(path, change.expected)
        files, folders = files - referenced_files(base), folders - referenced_folders(base)
    left = set(files)
    for info in datasets.objects.list(path):
        below = info.path.removeprefix(f"{path}/")
        if below in files or any(below.startswith(folder) for folder in folders):
            if written_before(info, cleanup_cutoff):
                return False
            left.discard(below)
    return not left
