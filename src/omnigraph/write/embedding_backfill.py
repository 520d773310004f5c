"""Fill missing vectors of a type from its texts, as one commit.

Entities are read, embedded and gathered some at a time. Who lost a race looks again at what is
there now, and uses the vectors it has for texts that have not changed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.catalog.model import Property
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.model import Commit
from omnigraph.dataset_view import blob_properties
from omnigraph.embed import Embedder, Role
from omnigraph.embed.provider import Matrix
from omnigraph.errors import InvalidInput
from omnigraph.lang import did_you_mean
from omnigraph.notebook.display import ReportDisplay
from omnigraph.query.entities import find_type
from omnigraph.write.change_set import ChangeSet, RowBatch, RowSchema
from omnigraph.write.committed_state import CommittedState
from omnigraph.write.embedding_models import embedded_sources
from omnigraph.write.group_commit import apply_changes
from omnigraph.write.progress import ProgressListener, ProgressMeter
from omnigraph.write.request import WriteRequest, check_whole_types_allowed
from omnigraph.write.row_embeddings import (
    embedder_for_property,
    has_text,
    replace_vectors,
)
from omnigraph.write.spilling import SpillManager
from omnigraph.write.transaction import PendingChange

BATCH_ROWS = 1_024
"""Entities read and embedded together."""
BATCH_ROWS_WITH_BLOBS = 32
"""The same for a type with blobs, which may be large."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbedOptions:
    """What to embed: one property or all of a type, what is missing or everything."""

    type_name: str
    property: str | None = None
    all: bool = False
    progress: ProgressListener | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbedResult(ReportDisplay):
    """What was embedded; `skipped` counts vectors for which there is no text, `commit` may be none.

    `embedded` counts the vectors that were made, by property.
    """

    branch: str
    type: str
    model: str
    embedded: dict[str, int]
    skipped: int
    commit: Commit | None
    actor: str | None = None

    @property
    def total(self) -> int:
        """How many vectors were made."""
        return sum(self.embedded.values())

    def to_json(self) -> dict[str, Any]:
        """Return the wire form."""
        return {
            "branch": self.branch,
            "type": self.type,
            "properties": [{"name": n, "embedded": count} for n, count in self.embedded.items()],
            "skipped": self.skipped,
            "model": self.model,
            "actor_id": self.actor,
            "commit": self.commit.to_json() if self.commit is not None else None,
        }


def embed_type(manifest: Manifest, request: WriteRequest, options: EmbedOptions) -> EmbedResult:
    """Fill vectors of one type, as one commit; nothing to do makes no commit."""
    run: _BackfillAttempt | None = None
    with SpillManager() as spill:

        def prepare(committed: CommittedState) -> ChangeSet:
            nonlocal run
            type_ = find_type(committed.apply_scope(request.rights.named), options.type_name)
            check_whole_types_allowed([type_], request, committed)
            run = _BackfillAttempt(committed, request.embedder, options, spill, run)
            return run.changes()

        commit = apply_changes(manifest, PendingChange(request, prepare))
    assert run is not None, "a change is prepared at least once"
    return EmbedResult(
        branch=request.branch,
        type=run.shape.name,
        model=run.model,
        embedded={name: len(places) for name, places in run.places.items()},
        skipped=run.skipped,
        commit=commit,
        actor=request.actor,
    )


class _BackfillAttempt:
    """One look at the committed state, and what is embedded for it.

    `places` says by property and id where in `rows` a vector is that was made. `earlier` is the run
    that lost its race.
    """

    def __init__(
        self,
        committed: CommittedState,
        embedder: Embedder,
        options: EmbedOptions,
        spill: SpillManager,
        earlier: _BackfillAttempt | None,
    ) -> None:
        self.committed = committed
        self.embedder = embedder
        self.all = options.all
        self.shape, self.targets = _target_properties(committed, options)
        self.places: dict[str, dict[str, int]] = {target.name: {} for target in self.targets}
        self.rows: pa.Table = self.shape.schema.empty_table()
        self.skipped = 0
        self._left: Counter[str] = Counter()
        view = committed.view(self.shape)
        self._recorded = {t.name: view.embedding_model(t.name) for t in self.targets}
        self._embedders: dict[str, Embedder] = {}
        self._earlier = earlier
        self._gathered = spill.new_rows(self.shape.schema)
        self._meter = ProgressMeter(options.progress)

    def changes(self) -> ChangeSet:
        """Embed what is to be embedded; return the entities with their vectors."""
        for target in self.targets:
            self._agree(target)
        self._meter.start_phase("embed")
        entities, names = self.committed.read(self.shape), self.shape.schema.names
        rows = BATCH_ROWS_WITH_BLOBS if blob_properties(self.shape.type) else BATCH_ROWS
        for part in entities.select_in_batches(self._condition(), names, rows):
            self._take(part)
        self._meter.start_phase("write")
        self.rows, self._earlier = self._gathered.table(), None
        changes = ChangeSet()
        if self.rows.num_rows:
            change = changes.of(self.shape)
            change.batches.append(RowBatch(self.rows, kept=frozenset(self.shape.properties)))
            for target in (t for t in self.targets if self.places[t.name]):
                change.made[target.name] = model = self._embedders[target.name].model
                if self._recorded[target.name] != model and not self._others(target):
                    change.alone.add(target.name)
        return changes

    def _agree(self, target: Property, unknown: Collection[None] = ()) -> None:
        """Choose what embeds for a property; raise OmniError if its model is another."""
        recorded = self._recorded[target.name]
        others = unknown if self.all or recorded is None else [recorded]
        self._embedders[target.name] = embedder_for_property(
            self.shape, target, others, self.embedder
        )

    def _check_others(self, target: Property) -> None:
        """Raise OmniError when a vector would be made beside those of an unknown model."""
        if self.all or self._recorded[target.name] is not None or self.places[target.name]:
            return
        if self.committed.read(self.shape).has_vectors(target.name):
            self._agree(target, [None])

    @property
    def model(self) -> str:
        """The models that embed, of which there is more than one only if the schema has several."""
        return ", ".join(dict.fromkeys(embedder.model for embedder in self._embedders.values()))

    def _condition(self) -> str:
        """Return the filter for entities that may have something to embed."""
        texts = [f"`{_source_property(target)}` IS NOT NULL" for target in self.targets]
        if not self.all:
            missing = [f"`{target.name}` IS NULL" for target in self.targets]
            texts = [f"({t} AND {m})" for t, m in zip(texts, missing, strict=True)]
        return " OR ".join(texts)

    def _take(self, part: pa.Table) -> None:
        """Embed the texts of some entities, and gather those that changed."""
        changed_rows = np.zeros(part.num_rows, np.bool_)
        masks: dict[str, npt.NDArray[np.bool_]] = {}
        for target in self.targets:
            column = part[target.name].combine_chunks()
            empty = np.asarray(column.is_null())
            worded = np.asarray(has_text(part[_source_property(target)]), np.bool_)
            where = worded if self.all else worded & empty
            self.skipped += int(np.sum(empty & ~worded))
            self._left[target.name] += int(np.sum(~empty & ~where))
            if where.any():
                self._check_others(target)
                vectors = self._vectors(part, target, where)
                place = part.column_names.index(target.name)
                part = part.set_column(place, target.name, replace_vectors(column, where, vectors))
            masks[target.name] = where
            changed_rows |= where
        first = self._gathered.rows
        numbers = first + np.cumsum(changed_rows) - 1
        ids = part["id"].to_pylist()
        for name, where in masks.items():
            self.places[name].update((ids[row], int(numbers[row])) for row in np.flatnonzero(where))
        changed = part.filter(pa.array(changed_rows))
        self._gathered.add(pa.Table.from_arrays(changed.columns, schema=self.shape.schema))
        self._meter.add_rows(changed.num_rows)

    def _vectors(self, part: pa.Table, target: Property, where: npt.NDArray[np.bool_]) -> Matrix:
        """Return the vectors of texts, of which the run that lost may have some."""
        chosen = part.filter(pa.array(where)).select(["id", _source_property(target)])
        ids, texts = (column.to_pylist() for column in chosen.columns)
        dimension = target.type.dimension or 0
        pairs = zip(ids, texts, strict=True)
        earlier = [self._known(target, id_, text) for id_, text in pairs]
        missing = [text for text, vector in zip(texts, earlier, strict=True) if vector is None]
        embedder = self._embedders[target.name]
        fresh = iter(embedder.embed(missing, dimension, Role.DOCUMENT) if missing else ())
        vectors = [next(fresh) if vector is None else vector for vector in earlier]
        return np.reshape(np.asarray(vectors, np.float32), (-1, dimension))

    def _known(self, target: Property, id_: str, text: str) -> Sequence[float] | None:
        earlier = self._earlier
        place = None if earlier is None else earlier.places.get(target.name, {}).get(id_)
        if earlier is None or place is None:
            return None
        if earlier._embedders[target.name].model != self._embedders[target.name].model:
            return None
        if earlier.rows[_source_property(target)][place].as_py() != text:
            return None
        vector: Sequence[float] = earlier.rows[target.name][place].as_py()
        return vector

    def _others(self, target: Property) -> int:
        """Return how many entities have a vector that was not made now."""
        entities = self.committed.read(self.shape)
        if not self.all:
            return entities.count(f"`{target.name}` IS NOT NULL")
        unread = f"`{target.name}` IS NOT NULL AND `{_source_property(target)}` IS NULL"
        return self._left[target.name] + entities.count(unread)


def _source_property(target: Property) -> str:
    assert target.embed is not None, "only such a property is embedded"
    return target.embed.source


def _target_properties(
    committed: CommittedState, options: EmbedOptions
) -> tuple[RowSchema, list[Property]]:
    """Return a type and the properties of it that are to be embedded."""
    type_ = find_type(committed.snapshot, options.type_name)
    shape = committed.row_schema(type_.kind, type_.name)
    properties = [property_ for property_, _ in embedded_sources(shape)]
    if not properties:
        message = (
            f"{type_.kind} type {type_.name} has no property with @embed: declare one, "
            "e.g. `embedding: Vector(256)? @embed(text)`"
        )
        raise InvalidInput(message, code="nothing_to_embed", type=type_.name)
    if options.property is None:
        return shape, properties
    chosen = [target for target in properties if target.name == options.property]
    if not chosen:
        hint = did_you_mean(options.property, [target.name for target in properties])
        message = f"{type_.name}.{options.property} is not a property with @embed; {hint}"
        raise InvalidInput(message, code="nothing_to_embed", type=type_.name)
    return shape, chosen
