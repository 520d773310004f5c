"""Find staged rows that are exactly what is committed, on workers.

Rows are compared as a difference compares them, fragment by fragment of the committed version:
vectors and blobs only of rows that are equal so far, bytes only of blobs of equal size.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import DataFrame

from omnigraph.dataset_view import StagedView, blob_properties
from omnigraph.pipeline.load.fragment_scan import DatasetFragments
from omnigraph.storage.scan import EXTERNAL_BLOB
from omnigraph.types.arrow import Mask, same_values
from omnigraph.write.change_set import RowSchema
from omnigraph.write.resolved_change import column_groups

_AddressArray = npt.NDArray[np.uint64]


def rows_to_remove(pairs: DataFrame, old: DatasetFragments, new: DatasetFragments) -> DataFrame:
    """Return the row of each pair that gives way, as `addr`.

    `pairs` has the address of a committed row as `addr`, and of the staged one as `new`. Where both
    are the same the committed row stays and the staged one gives way, marked by `same`.
    """

    def run(group: pa.Table) -> pa.Table:
        ordered = group.sort_by("new")
        one, other = (ordered[name].to_numpy().astype(np.uint64) for name in ("addr", "new"))
        same = VersionPair.of(old, new).same(one, other)
        gives_way = np.where(same, other, one).astype(np.int64)
        return pa.table({"addr": gives_way, "same": same})

    by_fragment = pairs.selectExpr("*", "shiftright(addr, 32) AS fragment").groupBy("fragment")
    return by_fragment.applyInArrow(run, "addr long, same boolean")


@dataclass(frozen=True, slots=True)
class VersionPair:
    """Two versions of one type, whose rows are compared a few columns at a time."""

    shape: RowSchema
    old: StagedView
    new: StagedView

    @classmethod
    def of(cls, old: DatasetFragments, new: DatasetFragments) -> VersionPair:
        """Open both versions."""
        return cls(new.shape, old.view(), new.view())

    def same(self, old: _AddressArray, new: _AddressArray) -> Mask:
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

    def _alike(self, names: Sequence[str], old: _AddressArray, new: _AddressArray) -> Mask:
        before, after = self.old.rows_at(old, names), self.new.rows_at(new, names)
        found = np.ones(len(old), np.bool_)
        for name in names:
            if name in blob_properties(self.shape.type):
                found &= self._same_blobs(name, (before[name], after[name]), (old, new))
            else:
                found &= same_values(before[name], after[name])
        return found

    def _same_blobs(
        self,
        name: str,
        cells: tuple[pa.ChunkedArray, pa.ChunkedArray],
        addresses: tuple[_AddressArray, _AddressArray],
    ) -> Mask:
        old, new = addresses
        found = np.zeros(len(old), np.bool_)
        unsure = []
        pairs = zip(*(column.to_pylist() for column in cells), strict=True)
        for place, (one, other) in enumerate(pairs):
            if one is None or other is None:
                found[place] = one is other
            elif EXTERNAL_BLOB in (one["kind"], other["kind"]):
                uris = (one["kind"], one["blob_uri"]), (other["kind"], other["blob_uri"])
                found[place] = uris[0] == uris[1]
            elif one["size"] == other["size"]:
                unsure.append(place)
        if unsure:
            contents = zip(
                self.old.blobs_at(old[unsure], name),
                self.new.blobs_at(new[unsure], name),
                strict=True,
            )
            found[unsure] = [one == other for one, other in contents]
        return found
