"""Scan versions of datasets on workers: selected columns, fragment by fragment."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from omnigraph.dataset_view import StagedView
from omnigraph.pipeline.sessions.tasks import map_tasks
from omnigraph.storage.datasets import Datasets
from omnigraph.storage.location import Location
from omnigraph.storage.row_lookup import ROW_ADDRESS
from omnigraph.write.change_set import RowSchema
from omnigraph.write.checks.unique import key_columns

PIECE_ROWS = 1_048_576
"""About how many rows one worker reads at a time."""

_BATCH = 65_536


@dataclass(frozen=True, slots=True)
class FragmentTask:
    """The fragments one task reads, and where their input positions are."""

    fragments: tuple[int, ...]
    position_files: Mapping[int, tuple[str, int]] = field(default_factory=dict)


@dataclass(frozen=True)
class DatasetFragments:
    """Some fragments of one version of a dataset.

    `position_files` has by fragment the file with its input positions, and its first row there.
    """

    location: Location
    path: str
    version: int
    shape: RowSchema
    sizes: Mapping[int, int]
    position_files: Mapping[int, tuple[str, int]] = field(default_factory=dict)

    @property
    def task_groups(self) -> list[tuple[int, ...]]:
        """The fragments, those for one worker together."""
        pieces: list[list[int]] = []
        held = PIECE_ROWS
        for fragment, rows in sorted(self.sizes.items()):
            if held + rows > PIECE_ROWS:
                pieces.append([])
                held = 0
            pieces[-1].append(fragment)
            held += rows
        return [tuple(piece) for piece in pieces]

    def tasks(self, *, positions: bool = False) -> list[FragmentTask]:
        """Return the tasks that read all fragments, with their input positions if required."""
        files = self.position_files if positions else {}
        return [
            FragmentTask(group, {number: files[number] for number in group if number in files})
            for group in self.task_groups
        ]

    @property
    def stripped(self) -> DatasetFragments:
        """The same version without its fragments, as it is sent to all tasks."""
        return replace(self, sizes={}, position_files={})

    def open(self) -> Any:  # noqa: ANN401 - a Lance handle
        """Open the version."""
        return Datasets(self.location).open(self.path, self.version)

    def view(self) -> StagedView:
        """Open the version, to be read under logical names."""
        return StagedView(self.shape.type, self.open())

    def read(self, columns: Sequence[str], fragments: Sequence[int]) -> Iterator[pa.Table]:
        """Yield logical columns of fragments, and row addresses."""
        for batch in self.view().scan(columns, fragments=fragments, batch_rows=_BATCH):
            yield pa.Table.from_batches([batch])


@dataclass(frozen=True)
class ScanProjection:
    """What to read of rows: columns, the key texts of tuples, addresses, positions."""

    columns: tuple[str, ...] = ()
    key: tuple[str, ...] = ()
    address: bool = False
    place: bool = False

    @property
    def schema(self) -> str:
        """The columns as a schema of Spark."""
        texts = [*self.columns, *(f"k{number}" for number in range(len(self.key)))]
        longs = [*(["addr"] if self.address else []), *(["at"] if self.place else [])]
        return ", ".join([*(f"`{n}` string" for n in texts), *(f"`{n}` long" for n in longs)])


def scan_frame(spark: SparkSession, rows: DatasetFragments, wanted: ScanProjection) -> DataFrame:
    """Return rows as a frame."""
    tasks = rows.tasks(positions=wanted.place)
    return map_tasks(spark, tasks, partial(_scan, rows.stripped, wanted), wanted.schema)


def _scan(
    rows: DatasetFragments, wanted: ScanProjection, task: FragmentTask
) -> Iterator[pa.RecordBatch]:
    names = list(dict.fromkeys([*wanted.columns, *wanted.key])) or ["id"]
    finder = InputPositions(replace(rows, position_files=task.position_files))
    for table in rows.read(names, task.fragments):
        columns: dict[str, Any] = {name: table[name] for name in wanted.columns}
        for number, text in enumerate(key_columns(table, rows.shape, wanted.key)):
            columns[f"k{number}"] = text
        if wanted.address:
            columns["addr"] = pc.cast(table[ROW_ADDRESS], pa.int64())
        if wanted.place:
            columns["at"] = finder.positions(table[ROW_ADDRESS])
        yield from pa.table(columns).combine_chunks().to_batches()


class InputPositions:
    """Finds the input positions of rows."""

    def __init__(self, rows: DatasetFragments) -> None:
        self._rows = rows
        self._objects = Datasets(rows.location).objects
        self._known: dict[str, npt.NDArray[np.int64]] = {}

    def positions(self, addresses: pa.ChunkedArray) -> pa.Array:
        """Return the position of each row."""
        numbers = addresses.to_numpy().astype(np.int64)
        fragments, offsets = numbers >> 32, numbers & 0xFFFF_FFFF
        found = np.empty(len(numbers), np.int64)
        for fragment in np.unique(fragments).tolist():
            here = fragments == fragment
            path, start = self._rows.position_files[fragment]
            found[here] = self._file(path)[start + offsets[here]]
        return pa.array(found)

    def _file(self, path: str) -> npt.NDArray[np.int64]:
        if path not in self._known:
            data = self._objects.get(path)
            assert data is not None, "a run keeps its positions until it ends"
            self._known[path] = pq.read_table(io.BytesIO(data))[0].to_numpy()
        return self._known[path]


def take_rows(rows: DatasetFragments, addresses: Sequence[int], columns: Sequence[str]) -> pa.Table:
    """Return rows by their addresses, in the requested order; an address may occur twice."""
    wanted = pa.array(addresses, pa.uint64())
    fragments = sorted({address >> 32 for address in addresses})
    parts = (
        table.filter(pc.is_in(table[ROW_ADDRESS], value_set=wanted))
        for table in rows.read(columns, fragments)
    )
    found = pa.concat_tables(parts)
    return found.take(pc.index_in(wanted, found[ROW_ADDRESS].combine_chunks()))
