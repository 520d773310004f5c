"""This module defines what a writer hands to the door: a staged commit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from ulid import ULID

from omnigraph.catalog import IncarnationId, TypeId
from omnigraph.commit.model import CommitId, Counts
from omnigraph.commit.rows import Row
from omnigraph.storage import Datasets
from omnigraph.storage.layout import dataset_path


def mint_commit_id() -> CommitId:
    """Return a new commit id; it makes publishing idempotent."""
    return CommitId(str(ULID()))


def minted_at(id_: str) -> datetime:
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


def with_sums(datasets: Datasets, staged: StagedDataset) -> StagedDataset:
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
    history: tuple[Row, ...] = ()
    sweep: str | None = None
    known_id: bool = False
    began: str | None = None

    def __post_init__(self) -> None:
        keys = [dataset.key for dataset in self.datasets]
        if len(set(keys)) != len(keys):
            raise ValueError("a commit changes a dataset once")
