"""Compute the vectors that rows of a load lack, on workers, after the rows are validated.

Each text is embedded once, however many rows have it; a row with the same text as the entity it
replaces keeps the vector of the entity. Vectors are written as separate files beside the staged
rows, so that one publish makes both visible.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from omnigraph.catalog.model import Property
from omnigraph.embed import Embedder
from omnigraph.errors import Category, OmniError
from omnigraph.pipeline.load.embedding_cache import (
    EmbeddedTexts,
    EmbeddingCache,
    embed_texts,
    vectors_frame,
)
from omnigraph.pipeline.load.fragment_scan import DatasetFragments, FragmentTask
from omnigraph.pipeline.load.key_counts import LoadTarget
from omnigraph.pipeline.load.staging import StagingJob
from omnigraph.pipeline.sessions.tasks import map_tasks
from omnigraph.storage.datasets import Datasets
from omnigraph.storage.layout import VECTORS
from omnigraph.storage.row_lookup import ROW_ADDRESS
from omnigraph.write.embedding_models import embedded_sources
from omnigraph.write.row_embeddings import embedder_for_property, has_text

_ROWS_PER_BATCH = 8_192
"""Rows of a fragment whose vectors are in memory together."""
_MISSING_SCHEMA = "addr long, id string, text string"
_FILES_SCHEMA = "fragment long, file string, made long, kept long"
_OFFSET = 0xFFFF_FFFF


@dataclass(frozen=True, slots=True, kw_only=True)
class FilledVectors:
    """The vectors of one property: `files` by fragment, and how many were made or kept.

    `texts` is how many different texts were embedded for it in this run.
    """

    property: str
    model: str
    texts: int = 0
    made: int = 0
    kept: int = 0
    files: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)


def properties_to_fill(target: LoadTarget, optional: Sequence[str]) -> list[Property]:
    """Return the properties of a type for which vectors are to be made and rows lack some."""
    lacks = target.staged.lacks
    found = (
        p for p, _ in embedded_sources(target.shape) if not p.type.nullable or p.name in optional
    )
    return [property_ for property_ in found if lacks.get(property_.name, 0)]


@dataclass(frozen=True)
class VectorFill:
    """One property of one type that is filled.

    `whole` are the rows of the type as they were staged, those included that were taken out since;
    `before` is the model that made the vectors that are committed, as far as it is known. `others`
    are the models of all vectors beside which the property is filled, None for an unknown one.
    """

    spark: SparkSession
    job: StagingJob
    target: LoadTarget
    whole: DatasetFragments
    filled: Property
    before: str | None
    others: Collection[str | None]

    def run(self) -> FilledVectors:
        """Make the vectors and write them.

        Raises:
            OmniError: the provider failed; it says how many texts were embedded.
        """
        embedder = embedder_for_property(
            self.target.shape, self.filled, self.others, self.job.embedder
        )
        model = embedder.model
        lacking = self._lacking()
        kept = self._kept(lacking, model)
        if kept is not None:
            lacking = lacking.join(kept.select("addr"), "addr", "left_anti")
        texts = EmbeddingCache(
            location=self.job.location,
            folder=f"{self.job.folder}/{VECTORS}",
            dimension=self.filled.type.dimension or 0,
            model=model,
            most=self.target.staged.lacks[self.filled.name],
        )
        digested = lacking.select("addr", "text", f.sha2("text", 256).alias("digest"))
        embedded = embed_texts(digested.select("digest", "text"), texts, embedder)
        if embedded.error is not None:
            raise self._failure(embedded, embedder)
        vectors = vectors_frame(self.spark, texts, embedded.paths)
        rows = digested.select("addr", "digest").join(vectors, "digest")
        found = rows.selectExpr("addr", "CAST(NULL AS long) AS old", "vector")
        if kept is not None:
            found = found.unionAll(kept.selectExpr("addr", "old", "CAST(NULL AS binary)"))
        return self._written(found, model, embedded.texts)

    # --- missing vectors -----------------------------------------------------------------------

    def _lacking(self) -> DataFrame:
        """Return the rows without a vector that have a text to make it from."""
        rows, name, source = self.target.new, self.filled.name, self._source
        stripped = rows.stripped

        def read(task: FragmentTask) -> Iterator[pa.RecordBatch]:
            columns = list(dict.fromkeys(["id", source, name]))
            for table in stripped.read(columns, task.fragments):
                lacks = pc.and_(table[name].is_null(), has_text(table[source]))
                found = table.filter(lacks)
                given = {
                    "addr": pc.cast(found[ROW_ADDRESS], pa.int64()),
                    "id": found["id"],
                    "text": found[source],
                }
                yield from pa.table(given).combine_chunks().to_batches()

        return map_tasks(self.spark, rows.tasks(), read, _MISSING_SCHEMA)

    @property
    def _source(self) -> str:
        assert self.filled.embed is not None, "only such a property is filled"
        return self.filled.embed.source

    def _kept(self, lacking: DataFrame, model: str) -> DataFrame | None:
        """Return rows whose text is that of the entity, and where its vector is."""
        target = self.target
        if target.strict or not target.may_match or (self.job.replace and self.before != model):
            return None
        old, name, source = target.old.stripped, self.filled.name, self._source

        def read(task: FragmentTask) -> Iterator[pa.RecordBatch]:
            columns = list(dict.fromkeys(["id", source, name]))
            for table in old.read(columns, task.fragments):
                found = table.filter(table[name].is_valid())
                given = {
                    "old": pc.cast(found[ROW_ADDRESS], pa.int64()),
                    "id": found["id"],
                    "text": found[source],
                }
                yield from pa.table(given).combine_chunks().to_batches()

        known = map_tasks(self.spark, target.old.tasks(), read, "old long, id string, text string")
        return lacking.join(known, ["id", "text"]).select("addr", "old")

    # --- files of vectors ----------------------------------------------------------------------

    def _written(self, found: DataFrame, model: str, texts: int) -> FilledVectors:
        """Write the vectors of each fragment as a file."""
        column = VectorColumnWriter(self.whole, self.target.old, self.filled.name)

        def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for number, rows in groupby(_split_by_fragment(batches), key=lambda part: part[0]):
                counts = [0, 0]
                file = column.write(number, (part for _, part in rows), counts)
                done = {"fragment": [number], "file": [json.dumps(file)]}
                yield pa.record_batch({**done, "made": counts[:1], "kept": counts[1:]})

        placed = found.selectExpr("shiftright(addr, 32) AS fragment", "*")
        parts = placed.repartition(max(len(self.whole.sizes), 1), "fragment")
        written = parts.sortWithinPartitions("addr").mapInArrow(run, _FILES_SCHEMA).collect()
        return FilledVectors(
            property=self.filled.name,
            model=model,
            texts=texts,
            made=sum(row["made"] for row in written),
            kept=sum(row["kept"] for row in written),
            files={row["fragment"]: json.loads(row["file"]) for row in written},
        )

    def _failure(self, embedded: EmbeddedTexts, embedder: Embedder) -> OmniError:
        error = embedded.error or {}
        place = f"{self.target.shape.name}.{self.filled.name}"
        message = (
            f"{place}: {embedded.texts:,} of {embedded.wanted:,} different texts were embedded by "
            f"provider {embedder.name} (model {embedder.model}), then it failed: "
            f"{error['message']}. Nothing was published. Fix the cause, or choose another "
            "provider, and run again; a resumed run embeds only the remaining texts"
        )
        details = {
            **error["details"],
            "property": place,
            "provider": embedder.name,
            "model": embedder.model,
            "texts": embedded.wanted,
            "embedded": embedded.texts,
        }
        category = Category(error["category"])
        return OmniError(message, code=error["code"], category=category, details=details)


def _split_by_fragment(
    batches: Iterable[pa.RecordBatch],
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield the rows of each fragment apart; they come in order."""
    for batch in batches:
        fragments = batch["fragment"].to_numpy()
        starts = np.flatnonzero(np.diff(fragments, prepend=-1)).tolist() if len(fragments) else []
        for start, stop in zip(starts, [*starts[1:], len(fragments)], strict=True):
            yield int(fragments[start]), batch.slice(start, stop - start)


@dataclass(frozen=True)
class VectorColumnWriter:
    """The vectors of a property on their way to files; it travels."""

    whole: DatasetFragments
    old: DatasetFragments
    name: str

    def write(
        self, fragment: int, rows: Iterator[pa.RecordBatch], counts: list[int]
    ) -> dict[str, Any]:
        """Write the column of a fragment: what it has already, and the vectors of rows."""
        datasets, pieces = Datasets(self.whole.location), self._pieces(fragment, rows, counts)
        return self.whole.view().write_column(datasets, self.whole.path, self.name, pieces)

    def _pieces(
        self, fragment: int, rows: Iterator[pa.RecordBatch], counts: list[int]
    ) -> Iterator[pa.Array]:
        kind = self.whole.shape.schema.field(self.name).type
        there, more = _AddressOrderedRows(self._there(fragment)), _AddressOrderedRows(rows)
        size = self.whole.sizes[fragment]
        for start in range(0, size, _ROWS_PER_BATCH):
            length = min(_ROWS_PER_BATCH, size - start)
            numbers = np.zeros((length, kind.list_size), np.float32)
            valid = np.zeros(length, np.bool_)
            stop = (fragment << 32) + start + length
            for found in there.until(stop):
                _scatter_vectors(numbers, valid, found, start)
            for found in more.until(stop):
                for part in self._given(found, kind, counts):
                    _scatter_vectors(numbers, valid, part, start)
            flat = pa.array(numbers.ravel())
            yield pa.FixedSizeListArray.from_arrays(flat, type=kind, mask=pa.array(~valid))

    def _there(self, fragment: int) -> Iterator[pa.RecordBatch]:
        """Yield the vectors that rows came with."""
        for table in self.whole.read([self.name], [fragment]):
            found = table.filter(table[self.name].is_valid())
            addresses = pc.cast(found[ROW_ADDRESS], pa.int64())
            whole = pa.table({"addr": addresses, "vector": found[self.name]})
            yield from whole.combine_chunks().to_batches()

    def _given(
        self,
        rows: pa.RecordBatch,
        kind: Any,  # noqa: ANN401 - an Arrow type
        counts: list[int],
    ) -> Iterator[pa.RecordBatch]:
        """Yield vectors that were made, and those of committed entities."""
        made = rows.filter(rows["vector"].is_valid())
        counts[0] += made.num_rows
        values = np.frombuffer(b"".join(made["vector"].to_pylist()), np.float32)
        vectors = pa.FixedSizeListArray.from_arrays(pa.array(values), type=kind)
        yield pa.record_batch({"addr": made["addr"], "vector": vectors})
        kept = rows.filter(rows["vector"].is_null())
        if kept.num_rows:
            counts[1] += kept.num_rows
            addresses = kept["old"].to_numpy().astype(np.uint64)
            found = self.old.view().rows_at(addresses, [self.name])
            vectors = found[self.name].combine_chunks()
            yield pa.record_batch({"addr": kept["addr"], "vector": vectors})


def _scatter_vectors(
    numbers: npt.NDArray[np.float32],
    valid: npt.NDArray[np.bool_],
    found: pa.RecordBatch,
    start: int,
) -> None:
    places = (found["addr"].to_numpy() & _OFFSET) - start
    values = found["vector"].flatten().to_numpy(zero_copy_only=False)
    numbers[places] = values.reshape(len(places), numbers.shape[1])
    valid[places] = True


class _AddressOrderedRows:
    """Rows in the order of their addresses, read up to a given address."""

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self._batches = batches
        self._rest: pa.RecordBatch | None = None

    def until(self, address: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows before an address that were not taken yet."""
        while True:
            batch = self._rest if self._rest is not None else next(self._batches, None)
            self._rest = None
            if batch is None:
                return
            count = int(np.searchsorted(batch["addr"].to_numpy(), address))
            if count:
                yield batch.slice(0, count)
            if count < batch.num_rows:
                self._rest = batch.slice(count)
                return


def vector_report(target: LoadTarget, made: Sequence[FilledVectors]) -> dict[str, Any]:
    """Return what a report says of the vectors of a type."""
    counts = target.staged.wordless
    return {
        "type": target.shape.name,
        "properties": [
            {"name": m.property, "embedded": m.made, "kept": m.kept, "texts": m.texts} for m in made
        ],
        "skipped": sum(counts[m.property] for m in made),
        "model": made[0].model,
    }
