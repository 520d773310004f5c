"""Sets of texts larger than memory: exact answers about repetition and containment.

The texts of a set are divided by a hash into parts, which are collected in a file and compared
one at a time. The hash only divides; texts are compared by their bytes.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias
from weakref import WeakSet

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import StorageUnavailable
from omnigraph.write.inference.column_profile import first_repeated

PARTS = 64
"""Into how many parts the texts of a set are divided: one of each of two sets is in memory."""
WAITING_BYTES = 64 * 1024 * 1024
"""Texts of all sets that are kept in memory before some are written."""

_SEED = 20_260_731
_WEIGHTS = np.random.default_rng(_SEED).integers(1, 2**63, 4096, dtype=np.uint64) | np.uint64(1)

PartNumbers: TypeAlias = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Missing:
    """How many different texts are not in another set, of how many, and one of them."""

    count: int
    of: int
    example: str | None = None


class ValueSet:
    """The texts of one column, without nulls."""

    def __init__(self, path: Path, sets: ValueSets) -> None:
        self._path = path
        self._sets = sets
        self._waiting: list[pa.Array] = []
        self._parts: list[PartNumbers] = []
        self.waiting_bytes = 0
        self._writer: pa.RecordBatchFileWriter | None = None
        self._file: pa.RecordBatchFileReader | None = None
        self._written = 0
        self._batches: list[list[int]] = [[] for _ in range(PARTS)]

    def add(self, texts: pa.Array) -> None:
        """Add texts."""
        values = texts.drop_null()
        if len(values):
            self._waiting.append(values)
            self._parts.append(part_numbers(values))
            self.waiting_bytes += values.nbytes
            self._sets.make_room()

    def write(self) -> None:
        """Move the waiting texts to the file, one batch for each part."""
        if not self._waiting:
            return
        texts, parts = pa.concat_arrays(self._waiting), np.concatenate(self._parts)
        self._waiting, self._parts, self.waiting_bytes = [], [], 0
        order = np.argsort(parts, kind="stable")
        ends = np.searchsorted(parts[order], np.arange(PARTS + 1))
        try:
            if self._writer is None:
                schema = pa.schema([pa.field("text", pa.string())])
                self._writer = pa.ipc.new_file(str(self._path), schema)
            for part in range(PARTS):
                chosen = order[ends[part] : ends[part + 1]]
                if len(chosen):
                    values = texts.take(pa.array(chosen))
                    self._writer.write_batch(pa.RecordBatch.from_arrays([values], ["text"]))
                    self._batches[part].append(self._written)
                    self._written += 1
        except OSError as error:
            message = (
                f"cannot write to the temporary folder {tempfile.gettempdir()}: {error}; free "
                "space there, or set TMPDIR to another folder"
            )
            raise StorageUnavailable(message, code="spill_failed") from error

    def _part(self, part: int) -> pa.Array:
        """Return the texts of one part; nothing can be added after."""
        if self._file is None:
            self.write()
            if self._writer is None:
                return pa.array([], pa.string())
            self._writer.close()
            self._file = pa.ipc.open_file(pa.memory_map(str(self._path)))
        found = [self._file.get_batch(number).column(0) for number in self._batches[part]]
        return pa.concat_arrays(found) if found else pa.array([], pa.string())

    def repeated(self) -> str | None:
        """Return a text that was added twice, None when all are different."""
        texts = (first_repeated(self._part(part)) for part in range(PARTS))
        return next((text for text in texts if text is not None), None)

    def missing_from(self, other: ValueSet, *, at_most: int | None = None) -> Missing:
        """Return what is not in another set; with `at_most`, stop counting when there is more."""
        count, total, example = 0, 0, None
        for part in range(PARTS):
            values = self._part(part).unique()
            lost = values.filter(pc.invert(pc.is_in(values, value_set=other._part(part))))
            if len(lost) and example is None:
                example = lost[0].as_py()
            count, total = count + len(lost), total + len(values)
            if at_most is not None and count > at_most:
                break
        return Missing(count, total, example)


def part_numbers(texts: pa.Array) -> PartNumbers:
    """Return the part of each text, by a hash over all of its bytes; none is null."""
    lengths = np.asarray(pc.binary_length(texts)).astype(np.int64)
    _, offsets, content = texts.buffers()
    begins = np.frombuffer(offsets, np.int32)[texts.offset :]
    first, last = int(begins[0]), int(begins[len(texts)])
    data = np.frombuffer(content or b"", np.uint8)[first:last]
    starts = np.cumsum(lengths) - lengths
    places = np.arange(len(data)) - np.repeat(starts, lengths)
    terms = (data.astype(np.uint64) + np.uint64(1)) * _WEIGHTS[places % len(_WEIGHTS)]
    sums = np.concatenate(([np.uint64(0)], np.cumsum(terms, dtype=np.uint64)))
    hashes = sums[starts + lengths] - sums[starts]
    parts: PartNumbers = ((hashes >> np.uint64(40)) % np.uint64(PARTS)).astype(np.uint8)
    return parts


@contextmanager
def value_sets() -> Iterator[ValueSets]:
    """Yield a factory of sets, whose files are removed at the end."""
    folder = Path(tempfile.mkdtemp(prefix="omnigraph-inference-"))
    try:
        yield ValueSets(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class ValueSets:
    """Makes sets, each with a file of its own, which share the memory for texts that wait."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._count = 0
        self._sets: WeakSet[ValueSet] = WeakSet()

    def new(self) -> ValueSet:
        """Return an empty set."""
        self._count += 1
        values = ValueSet(self._folder / f"{self._count}.arrow", self)
        self._sets.add(values)
        return values

    def make_room(self) -> None:
        """Write the sets with most waiting texts while there are too many in all."""
        waiting = sum(values.waiting_bytes for values in self._sets)
        while waiting > WAITING_BYTES:
            largest = max(self._sets, key=lambda values: values.waiting_bytes)
            waiting -= largest.waiting_bytes
            largest.write()
