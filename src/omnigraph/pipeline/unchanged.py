"""Find staged rows that are exactly what is committed, on workers.

Rows are compared as a difference compares them, fragment by fragment of the committed version:
vectors and blobs only of rows that are equal so far, bytes only of blobs of equal size.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import DataFrame

from omnigraph.pipeline.scan import Rows
from omnigraph.storage.columns import rows_at
from omnigraph.storage.probe import ROW_ADDRESS
from omnigraph.storage.read import EXTERNAL, read_blobs
from omnigraph.types.equal import Mask, same_values
from omnigraph.write.committed import Committed
from omnigraph.write.shape import Shape
from omnigraph.write.unchanged import column_groups, is_blob

_Addresses = npt.NDArray[np.uint64]


def rows_to_take_out(pairs: DataFrame, old: Rows, new: Rows) -> DataFrame:
    """Return the row of each pair that gives way, as `addr`.

    `pairs` has the address of a committed row as `addr`, and of the staged one as `new`. Where both
    are the same the committed row stays and the staged one gives way, marked by `same`.
    """

    def run(group: pa.Table) -> pa.Table:
        ordered = group.sort_by("new")
        one, other = (ordered[name].to_numpy().astype(np.uint64) for name in ("addr", "new"))
        same = _Pair.of(old, new).same(one, other)
        gives_way = np.where(same, other, one).astype(np.int64)
        return pa.table({"addr": gives_way, "same": same})

    by_fragment = pairs.selectExpr("*", "shiftright(addr, 32) AS fragment").groupBy("fragment")
    return by_fragment.applyInArrow(run, "addr long, same boolean")


@dataclass(frozen=True, slots=True)
class _Version:
    handle: Any
    names: dict[str, str]

    @classmethod
    def of(cls, rows: Rows) -> _Version:
        handle = rows.open()
        return cls(handle, Committed.physical_names(rows.shape, handle))

    def at(self, addresses: _Addresses, columns: Sequence[str]) -> pa.Table:
        found = rows_at(self.handle, addresses, [self.names[name] for name in columns])
        return found.rename_columns(list(columns))

    def blobs(self, addresses: _Addresses, column: str) -> list[bytes | str | None]:
        name = self.names[column]
        rows = rows_at(self.handle, addresses, [name])
        rows = rows.append_column(ROW_ADDRESS, pa.array(addresses, pa.uint64()))
        return list(read_blobs(self.handle, name, rows))


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two versions of one type."""

    shape: Shape
    old: _Version
    new: _Version

    @classmethod
    def of(cls, old: Rows, new: Rows) -> _Pair:
        return cls(new.shape, _Version.of(old), _Version.of(new))

    def same(self, old: _Addresses, new: _Addresses) -> Mask:
        """Return which pairs of rows are the same."""
        found = np.zeros(len(old), np.bool_)
        places = np.arange(len(old))
        for names, step in column_groups(self.shape):
            alike = [np.zeros(0, np.bool_)]
            for start in range(0, len(places), step):
                some = places[start : start + step]
                alike.append(self._alike(names, old[some], new[some]))
            places = places[np.concatenate(alike)]
        found[places] = True
        return found

    def _alike(self, names: Sequence[str], old: _Addresses, new: _Addresses) -> Mask:
        before, after = self.old.at(old, names), self.new.at(new, names)
        found = np.ones(len(old), np.bool_)
        for name in names:
            if is_blob(self.shape, name):
                found &= self._same_blobs(name, (before[name], after[name]), (old, new))
            else:
                found &= same_values(before[name], after[name])
        return found

    def _same_blobs(
        self,
        name: str,
        cells: tuple[pa.ChunkedArray, pa.ChunkedArray],
        addresses: tuple[_Addresses, _Addresses],
    ) -> Mask:
        old, new = addresses
        found = np.zeros(len(old), np.bool_)
        unsure = []
        pairs = zip(*(column.to_pylist() for column in cells), strict=True)
        for place, (one, other) in enumerate(pairs):
            if one is None or other is None:
                found[place] = one is other
            elif EXTERNAL in (one["kind"], other["kind"]):
                uris = (one["kind"], one["blob_uri"]), (other["kind"], other["blob_uri"])
                found[place] = uris[0] == uris[1]
            elif one["size"] == other["size"]:
                unsure.append(place)
        if unsure:
            contents = zip(
                self.old.blobs(old[unsure], name), self.new.blobs(new[unsure], name), strict=True
            )
            found[unsure] = [one == other for one, other in contents]
        return found
