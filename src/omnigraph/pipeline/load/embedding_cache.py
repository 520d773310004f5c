"""Embed the distinct texts of a load on workers, and cache the vectors of a run.

A task stores vectors as soon as they are computed, under a digest of the text. A repeated task and
a resumed run find them there and embed only the remaining texts.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from ulid import ULID

from omnigraph.embed import Embedder, Role
from omnigraph.errors import OmniError
from omnigraph.pipeline.sessions.tasks import map_tasks
from omnigraph.storage.location import Location
from omnigraph.storage.object_store import ObjectStore

TASK_TEXTS = 8_192
"""About how many texts one task embeds, as far as there may be more tasks."""
SERVICE_TASKS = 4
"""Tasks that call a service concurrently, one request each, to respect its rate limit."""
LOCAL_TASKS = 512
"""Tasks that embed on their own machine."""
TEXTS_PER_OBJECT = 960
"""Texts that are stored together: ten requests to a service."""

_OBJECTS_PER_TASK = 16
"""Objects one task reads."""
_RESULT_SCHEMA = "path string, texts long, wanted long, error string"
_VECTORS = "digest string, vector binary"


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingCache:
    """The vectors of a model and the folder that stores them; `most` bounds their number."""

    location: Location
    folder: str
    dimension: int
    model: str
    most: int

    @property
    def place(self) -> str:
        """Where vectors of this model and length are."""
        said = blake2b(f"{self.dimension} {self.model}".encode(), digest_size=8).hexdigest()
        return f"{self.folder}/{said}"


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddedTexts:
    """The objects with vectors, and how many of the requested texts they hold.

    `error` is the first error of the provider.
    """

    paths: Sequence[str]
    texts: int
    wanted: int
    error: Mapping[str, Any] | None = None


def embed_texts(frame: DataFrame, texts: EmbeddingCache, embedder: Embedder) -> EmbeddedTexts:
    """Embed the different texts of a frame of `digest` and `text`."""
    tasks = max(-(-texts.most // TASK_TEXTS), 1)
    tasks = min(tasks, LOCAL_TASKS if embedder.is_local else SERVICE_TASKS)
    different = frame.groupBy("digest").agg(f.first("text").alias("text"))

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        number = 0 if context is None else context.partitionId()
        part = _EmbeddingTask(texts, embedder, f"{texts.place}/{number:05}-{tasks:05}")
        yield from part.run(batches)

    # By digest, so that a task that is repeated has the same texts.
    results = different.repartition(tasks, "digest").mapInArrow(run, _RESULT_SCHEMA).collect()
    errors = [json.loads(row["error"]) for row in results if row["error"] is not None]
    return EmbeddedTexts(
        paths=sorted({row["path"] for row in results if row["path"] is not None}),
        texts=sum(row["texts"] for row in results),
        wanted=sum(row["wanted"] for row in results),
        error=errors[0] if errors else None,
    )


class _EmbeddingTask:
    """The texts of one task."""

    def __init__(self, texts: EmbeddingCache, embedder: Embedder, folder: str) -> None:
        self._texts = texts
        self._embedder = embedder
        self._folder = folder
        self._objects = ObjectStore(texts.location)

    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Embed texts that have no vector yet, and yield the paths of all vectors."""
        known: set[str] = set()
        for info in sorted(self._objects.list(self._folder), key=lambda info: info.path):
            found = set(_read(self._objects, info.path, ["digest"])["digest"].to_pylist())
            yield _task_result(path=info.path)
            known |= found
        failure: OmniError | None = None
        for batch in _regrouped(batches):
            new = [(d, text) for d, text in batch if d not in known]
            there = len(batch) - len(new)
            if failure is None and new:
                try:
                    path = self._embed(new)
                except OmniError as error:
                    failure = error
                else:
                    yield _task_result(path=path, texts=len(batch), wanted=len(batch))
                    continue
            # Texts after a failure are only counted.
            yield _task_result(texts=there, wanted=len(batch))
        if failure is not None:
            yield _task_result(error=json.dumps(failure.to_json()))

    def _embed(self, new: Sequence[tuple[str, str]]) -> str:
        dimension = self._texts.dimension
        vectors = self._embedder.embed([text for _, text in new], dimension, Role.DOCUMENT)
        flat = pa.array(np.ascontiguousarray(vectors, np.float32).ravel())
        column = pa.FixedSizeListArray.from_arrays(flat, dimension)
        table = pa.table({"digest": [digest for digest, _ in new], "vector": column})
        sink, path = io.BytesIO(), f"{self._folder}/{ULID()}.parquet"
        pq.write_table(table, sink, use_dictionary=False)
        self._objects.put(path, sink.getvalue())
        return path


def _task_result(
    path: str | None = None, texts: int = 0, wanted: int = 0, error: str | None = None
) -> pa.RecordBatch:
    columns = {
        "path": pa.array([path], pa.string()),
        "texts": [texts],
        "wanted": [wanted],
        "error": pa.array([error], pa.string()),
    }
    return pa.record_batch(columns)


def _regrouped(batches: Iterable[pa.RecordBatch]) -> Iterator[list[tuple[str, str]]]:
    """Yield digests and texts in groups that are stored together."""
    held: list[tuple[str, str]] = []
    for batch in batches:
        held += zip(batch["digest"].to_pylist(), batch["text"].to_pylist(), strict=True)
        while len(held) >= TEXTS_PER_OBJECT:
            yield held[:TEXTS_PER_OBJECT]
            held = held[TEXTS_PER_OBJECT:]
    if held:
        yield held


def _read(objects: ObjectStore, path: str, columns: Sequence[str]) -> pa.Table:
    data = objects.get(path)
    assert data is not None, "a run keeps its vectors until it ends"
    return pq.read_table(io.BytesIO(data), columns=list(columns))


def vectors_frame(spark: SparkSession, texts: EmbeddingCache, paths: Sequence[str]) -> DataFrame:
    """Return the vectors of objects by digest, as plain bytes."""
    location, width = texts.location, 4 * texts.dimension

    def read(some: Sequence[str]) -> Iterator[pa.RecordBatch]:
        for path in some:
            table = _read(ObjectStore(location), path, ["digest", "vector"])
            digests, vectors = (column.combine_chunks() for column in table.columns)
            data = pa.py_buffer(vectors.flatten().to_numpy().tobytes())
            fixed = pa.Array.from_buffers(pa.binary(width), len(digests), [None, data])
            yield pa.record_batch({"digest": digests, "vector": fixed.cast(pa.binary())})

    tasks = [
        list(paths[start : start + _OBJECTS_PER_TASK])
        for start in range(0, len(paths), _OBJECTS_PER_TASK)
    ]
    # Two attempts of one task may both have stored a text.
    return map_tasks(spark, tasks, read, _VECTORS).dropDuplicates(["digest"])
