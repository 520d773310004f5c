"""Leave rows out of a change that are exactly what is committed.

Values are compared as a difference of two states compares them, so that the counts of a commit are
those of its difference. Only rows whose id is committed are read, a few columns at a time: vectors
and blobs only of rows that are equal so far, and the bytes of a blob only where its size is equal.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.storage.read import EXTERNAL
from omnigraph.types import Scalar
from omnigraph.types.equal import Mask, same_values
from omnigraph.write.committed import ROW_ADDRESS, Committed
from omnigraph.write.image import Image
from omnigraph.write.models import gives, vectors
from omnigraph.write.shape import Shape

PLAIN_AT_ONCE = 65_536
VECTORS_AT_ONCE = 4_096
BLOBS_AT_ONCE = 64

_Places = npt.NDArray[np.int64]


def column_groups(shape: Shape) -> Iterator[tuple[Sequence[str], int]]:
    """Yield columns to compare together, cheap ones first, and of how many rows at once."""
    properties = shape.properties
    blobs = [name for name in properties if is_blob(shape, name)]
    vectors = [p.name for p in properties.values() if p.type.scalar is Scalar.VECTOR]
    heavy = {"id", *blobs, *vectors}
    plain = [name for name in shape.schema.names if name not in heavy]
    for names, step in (
        (plain, PLAIN_AT_ONCE),
        (vectors, VECTORS_AT_ONCE),
        (blobs, BLOBS_AT_ONCE),
    ):
        if names:
            yield names, step


def is_blob(shape: Shape, name: str) -> bool:
    """Return whether a column holds blobs."""
    property_ = shape.properties.get(name)
    return property_ is not None and property_.type.scalar is Scalar.BLOB


def without_unchanged(image: Image, committed: Committed) -> Image | None:
    """Return what is left of a change of one type; None when nothing is.

    A type that is replaced is written whole if anything in it changes; only the counts differ.
    """
    if image.change.adopted is not None:
        return image
    same = _Comparison(image, committed).same()
    number = int(same.sum())
    if number and _names_models(image, committed):
        # The model is recorded with the rows that have its vectors.
        return replace(image, unchanged=number)
    if image.change.replace:
        if number == image.rows.num_rows == image.replaced.num_rows:
            return None
        return replace(image, unchanged=number)
    rows, replaced = image.rows, image.replaced
    if number:
        ids = rows["id"].filter(pa.array(same)).combine_chunks()
        replaced = replaced.filter(pc.invert(pc.is_in(replaced["id"], value_set=ids)))
        rows = rows.filter(pa.array(~same))
    if not rows.num_rows and not replaced.num_rows:
        return None
    return replace(image, rows=rows, replaced=replaced)


def _names_models(image: Image, committed: Committed) -> bool:
    """Return whether a change names a model of vectors that is not the one recorded."""
    change, names = image.change, [p.name for p in vectors(image.shape)]
    given = {name: change.given_by(name) for name in names if gives(change, name)}
    models = {name: model for name, model in (given | change.made).items() if model is not None}
    return any(committed.embedding_model(image.shape, n) != model for n, model in models.items())


@dataclass(frozen=True, slots=True)
class _Comparison:
    image: Image
    committed: Committed

    @property
    def _shape(self) -> Shape:
        return self.image.shape

    def same(self) -> Mask:
        """Return which rows of the change are exactly those that are committed."""
        rows, replaced = self.image.rows, self.image.replaced
        found = np.zeros(rows.num_rows, np.bool_)
        if not replaced.num_rows or not rows.num_rows:
            return found
        where = pc.index_in(rows["id"], value_set=replaced["id"].combine_chunks())
        places: _Places = np.flatnonzero(np.asarray(where.is_valid()))
        addresses = replaced[ROW_ADDRESS].take(where.drop_null()).to_numpy()
        for names, step in column_groups(self._shape):
            masks = [
                self._alike(names, places[start : start + step], addresses[start : start + step])
                for start in range(0, len(places), step)
            ]
            alike = np.concatenate([np.zeros(0, np.bool_), *masks])
            places, addresses = places[alike], addresses[alike]
        found[places] = True
        return found

    def _alike(self, names: Sequence[str], places: _Places, addresses: Any) -> Mask:  # noqa: ANN401
        """Return which of some rows are the same in some columns."""
        old = self.committed.at(self._shape, addresses, names)
        new = self.image.rows.select(list(names)).take(pa.array(places))
        found = np.ones(len(places), np.bool_)
        for name in names:
            if is_blob(self._shape, name):
                found &= self._same_blobs(name, old[name], new[name], addresses)
                continue
            before = old[name]
            if before.type != new[name].type:
                before = pc.cast(before, new[name].type)
            found &= same_values(before, new[name]) | self._is_made(name, before, new[name])
        return found

    def _is_made(self, name: str, old: pa.ChunkedArray, new: pa.ChunkedArray) -> Mask:
        """Return where a vector would only be made again: its text is compared, too."""
        property_ = self._shape.properties.get(name)
        if property_ is None or property_.embed is None or property_.type.nullable:
            return np.zeros(len(new), np.bool_)
        if self.image.change.replace:
            return np.zeros(len(new), np.bool_)
        made: Mask = np.asarray(old.is_valid()) & np.asarray(new.is_null())
        return made

    def _same_blobs(
        self,
        name: str,
        old: pa.ChunkedArray,
        new: pa.ChunkedArray,
        addresses: Any,  # noqa: ANN401 - an array of row addresses
    ) -> Mask:
        """Compare blobs; an external one is only the same while it is referred to as before."""
        given = new.combine_chunks()
        uris = pc.struct_field(given, "uri").to_pylist()
        sizes = pc.binary_length(pc.struct_field(given, "data")).to_pylist()
        missing = given.is_null().to_pylist()
        found = np.zeros(len(given), np.bool_)
        unsure = []
        for place, cell in enumerate(old.to_pylist()):
            if cell is None or missing[place]:
                found[place] = cell is None and missing[place]
            elif cell["kind"] == EXTERNAL:
                same_uri = uris[place] == cell["blob_uri"]
                found[place] = self.image.change.replace and same_uri
            elif uris[place] is None and sizes[place] == cell["size"]:
                unsure.append(place)
        if unsure:
            contents = self.committed.blobs_at(self._shape, addresses[unsure], name)
            wanted = pc.struct_field(given, "data").take(pa.array(unsure)).to_pylist()
            found[unsure] = [one == other for one, other in zip(contents, wanted, strict=True)]
        return found
