"""Find the positions of many IDs in a column, through a hash table that is made once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from secrets import randbits

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.query import kernel_library
from omnigraph.query.kernel_library import Numbers
from omnigraph.query.limits import chunk_slices

STEP_IDS = 250_000
"""IDs that are entered or looked up between two checks."""
UNKNOWN = -1
_SEED = randbits(62)
"""Differs between processes, so that no IDs can be chosen that fall into the same places."""


@dataclass(frozen=True, slots=True)
class IdLookup:
    """The IDs of a column and their hash table; none where there are no compiled kernels."""

    ids: pa.Array
    table: npt.NDArray[np.int32] | None

    @classmethod
    def of(cls, ids: pa.Array, check: Callable[[], None]) -> IdLookup:
        """Enter all IDs; between parts of them `check` is called, which may raise."""
        library = kernel_library.LIBRARY
        if library is None:
            return cls(ids, None)
        table = np.full(1 << (2 * len(ids)).bit_length(), UNKNOWN, np.int32)
        offsets, letters = _buffers(ids)
        for part in chunk_slices(len(ids), STEP_IDS):
            check()
            arguments = (letters, table, len(table) - 1, _SEED, part.start, part.stop)
            library.run("index_texts", offsets, *arguments, nodes=offsets)
        return cls(ids, table)

    def find(self, texts: pa.ChunkedArray, check: Callable[[], None]) -> npt.NDArray[np.int32]:
        """Return the positions of IDs, `UNKNOWN` for what is not in the column."""
        parts = [np.empty(0, np.int32)]
        for chunk in texts.cast(self.ids.type).chunks:
            for part in chunk_slices(len(chunk), STEP_IDS):
                check()
                parts.append(self._found(chunk[part]))
        return np.concatenate(parts)

    def _found(self, texts: pa.Array) -> npt.NDArray[np.int32]:
        library = kernel_library.LIBRARY
        if self.table is None or library is None or texts.null_count:
            return np.asarray(
                pc.fill_null(pc.index_in(texts, value_set=self.ids), UNKNOWN), np.int32
            )
        found = np.empty(len(texts), np.int32)
        known, known_letters = _buffers(self.ids)
        offsets, letters = _buffers(texts)
        index = (known, known_letters, self.table, len(self.table) - 1, _SEED)
        library.run("find_texts", *index, offsets, letters, found, 0, len(texts), nodes=offsets)
        return found


def _buffers(texts: pa.Array) -> tuple[Numbers, npt.NDArray[np.uint8]]:
    """Return where texts begin and end, and their bytes."""
    _, offsets, letters = texts.buffers()
    kind: type[np.int64 | np.int32] = np.int32
    if pa.types.is_large_string(texts.type):
        kind = np.int64
    if offsets is None or not len(texts):
        nothing: Numbers = np.zeros(1, kind)
        return nothing, np.empty(0, np.uint8)
    places: Numbers = np.frombuffer(offsets, kind)
    places = places[texts.offset : texts.offset + len(texts) + 1]
    return places, np.frombuffer(letters or b"", np.uint8)
