"""Combine entities in three states, base, source and target, into one.

Where both sides changed different properties of one entity, it gets both changes, unless the
merge is strict. What is left undecided is a conflict, or what a reviewer decided about it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog import AcceptedType
from omnigraph.catalog.defaults import default_value
from omnigraph.changes.diff import entity_images
from omnigraph.changes.model import EntityImage
from omnigraph.errors import InvalidInput
from omnigraph.lang import did_you_mean
from omnigraph.merge.conflict_decisions import ConflictDecision, ConflictDecisions, WinningSide
from omnigraph.merge.conflict_rules import MergeVerdict, ThreeWayComparison, classify_rows
from omnigraph.merge.conflicts import Conflict, describe_divergence
from omnigraph.types.arrow import Mask, same_values, to_column
from omnigraph.write.change_set import RowSchema
from omnigraph.write.coercion import CoercionRules, coerce_value
from omnigraph.write.embedding_models import clear_vectors, embedded_sources
from omnigraph.write.external_blobs import NO_EXTERNAL_BLOBS, ExternalBlobs
from omnigraph.write.resolved_change import choose_rows

# ----------------------------------------------------------------------
# Entities of several states, aligned by ID, in the row schema of the target.


def to_target_schema(rows: pa.Table, type_: AcceptedType, shape: RowSchema) -> pa.Table:
    """Return entities of one state as another shapes them: by identity.

    What is new is null, or has its default.
    """
    former = {id_: name for name, id_ in type_.property_ids.items()}
    columns = {name: rows[name] for name in shape.system}
    for name, id_ in shape.type.property_ids.items():
        arrow = shape.schema.field(name).type
        if id_ not in former:
            default = default_value(shape.properties[name])
            columns[name] = to_column([default] * rows.num_rows, shape.properties[name].type)
        else:
            column = rows[former[id_]]
            columns[name] = (
                column if column.type == arrow else _cast_column(column, arrow, shape, name)
            )
    return pa.table(columns)


def _cast_column(
    column: pa.ChunkedArray, arrow: pa.DataType, shape: RowSchema, name: str
) -> pa.ChunkedArray:
    """Return values in the type they have here; what a narrower type cannot hold is refused."""
    try:
        converted = pc.cast(column, arrow)
        lost = np.flatnonzero(~same_values(pc.cast(converted, column.type), column))
    except pa.ArrowInvalid:
        converted, wraps = None, pc.cast(column, arrow, safe=False)
        lost = np.flatnonzero(~same_values(pc.cast(wraps, column.type, safe=False), column))
    if converted is not None and not len(lost):
        return converted
    values = "1 value does" if len(lost) == 1 else f"{len(lost)} values do"
    message = (
        f"{shape.name}.{name}: {values} not fit {shape.properties[name].type}; "
        "widen the property here first"
    )
    raise InvalidInput(message, code="type_mismatch", type=shape.name, property=name)


@dataclass(frozen=True, slots=True)
class AlignedRows:
    """Entities by their ids; a row of nulls represents an absent one."""

    rows: pa.Table
    present: Mask

    @classmethod
    def of(cls, ids: pa.Array, rows: pa.Table) -> AlignedRows:
        """Align what was found of some ids."""
        places = pc.index_in(ids, value_set=rows["id"].combine_chunks())
        return cls(rows.take(places), np.asarray(places.is_valid()))

    def at_places(self, places: np.ndarray) -> AlignedRows:
        """Return some of the entities."""
        return AlignedRows(self.rows.take(pa.array(places)), self.present[places])

    def same(self, other: AlignedRows) -> Mask:
        """Return for each id whether both sides hold the same, or both nothing."""
        alike: Mask = self.present == other.present
        for name in self.rows.column_names:
            alike &= self.same_in(other, name)
        return alike | ~(self.present | other.present)

    def same_in(self, other: AlignedRows, name: str) -> Mask:
        """Return for each id whether one column is the same."""
        return same_values(self.rows[name], other.rows[name])


def compare_three_ways(
    base: AlignedRows, source: AlignedRows, target: AlignedRows
) -> ThreeWayComparison:
    """Return where entities are, and which sides hold the same."""
    return ThreeWayComparison(
        in_base=base.present,
        in_source=source.present,
        in_target=target.present,
        source_is_base=source.same(base),
        target_is_base=target.same(base),
        source_is_target=source.same(target),
    )


_ALL_PROPERTIES = ("*",)
"""What clashes when an entity is not on both sides: all of it."""


@dataclass(frozen=True, slots=True)
class ThreeWayRows:
    """Some entities in three states; for `undecided` ones there are several bases that differ."""

    ids: pa.Array
    base: AlignedRows
    source: AlignedRows
    target: AlignedRows
    undecided: Mask

    def at(self, places: np.ndarray) -> ThreeWayRows:
        """Return some of the entities."""
        base, source, target = (s.at_places(places) for s in (self.base, self.source, self.target))
        return ThreeWayRows(
            self.ids.take(pa.array(places)), base, source, target, self.undecided[places]
        )

    def sides(self) -> ThreeWayComparison:
        """Return what the truth table looks at."""
        sides = compare_three_ways(self.base, self.source, self.target)
        return replace(
            sides,
            source_is_base=sides.source_is_base & ~self.undecided,
            target_is_base=sides.target_is_base & ~self.undecided,
        )


@dataclass(frozen=True, slots=True)
class CombinedRows:
    """What to write into the target: whole rows, ids to delete; and what stands in the way.

    `is_source` means that every entity becomes what it is in the source, `inserted` which of them
    the source has alone. `decided` are the properties to which a reviewer gave values.
    """

    rows: pa.Table
    deleted: Sequence[str]
    conflicts: Sequence[Conflict]
    is_source: bool
    inserted: pa.Array
    decided: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class RowCombiner:
    """Combines entities of one type."""

    shape: RowSchema
    decisions: ConflictDecisions
    strict: bool = False
    external: ExternalBlobs = NO_EXTERNAL_BLOBS
    """Where blobs that a decision sets may lie."""

    def combine(self, states: ThreeWayRows) -> CombinedRows:
        """Return what becomes of some entities."""
        sides = states.sides()
        verdicts = classify_rows(sides)
        taken = verdicts == MergeVerdict.TAKE_SOURCE
        rows = [states.source.rows.filter(pa.array(taken & states.source.present))]
        deleted = states.ids.filter(pa.array(taken & ~states.source.present)).to_pylist()
        torn = np.flatnonzero(verdicts > MergeVerdict.TAKE_SOURCE)
        both, clashes = self._by_property(states.at(torn), verdicts[torn])
        settled = np.array([not names for names in clashes], np.bool_)
        rows.append(self._paired(states.at(torn[settled]), both.filter(pa.array(settled))))
        conflicts: list[Conflict] = []
        decided: set[str] = set()
        for place in np.flatnonzero(~settled).tolist():
            one = states.at(torn[place : place + 1])
            decided |= self._given(one)
            row = self._decided(one, both.slice(place, 1), clashes[place])
            if row is None:
                verdict = MergeVerdict(verdicts[torn[place]])
                conflicts.append(self._conflict(one, verdict, clashes[place]))
            elif row.num_rows:
                rows.append(row)
            elif one.target.present[0]:
                deleted += one.ids.to_pylist()
        is_source = bool((taken | sides.source_is_target).all())
        inserted = states.ids.filter(pa.array(taken & ~states.base.present))
        decided_names = frozenset(decided)
        return CombinedRows(
            pa.concat_tables(rows), deleted, conflicts, is_source, inserted, decided_names
        )

    def _given(self, one: ThreeWayRows) -> set[str]:
        """Return the properties to which a reviewer gave values in an entity."""
        decision = self.decisions.about(self.shape.kind, self.shape.name, one.ids[0].as_py())
        return set() if decision is None else set(decision.values)

    def _by_property(
        self, states: ThreeWayRows, verdicts: np.ndarray
    ) -> tuple[pa.Table, list[tuple[str, ...]]]:
        """Merge entities property by property.

        Return them with what only one side changed, and the properties of each that both changed
        differently, which are the target's. An entity that is not on both sides clashes as a whole.
        """
        merging = (
            (verdicts == MergeVerdict.DIVERGENT_UPDATE) & ~states.undecided & (not self.strict)
        )
        columns, clashes = {}, {}
        for name in self.shape.schema.names:
            apart = ~states.source.same_in(states.target, name)
            ours = merging & states.target.same_in(states.base, name)
            theirs = merging & states.source.same_in(states.base, name)
            columns[name] = choose_rows(
                apart & ours, states.source.rows[name], states.target.rows[name]
            )
            clashes[name] = apart & ~ours & ~theirs
        there = states.source.present & states.target.present
        named = [
            tuple(name for name, mask in clashes.items() if mask[place])
            if there[place]
            else _ALL_PROPERTIES
            for place in range(len(there))
        ]
        return pa.table(columns), named

    def _paired(
        self, states: ThreeWayRows, merged: pa.Table, decided: Collection[str] = frozenset()
    ) -> pa.Table:
        """Return entities without the vectors that neither side has beside the same text.

        `decided` are properties that a reviewer gave values to.
        """
        for property_, source in embedded_sources(self.shape):
            if property_.name in decided:
                continue
            is_paired = np.zeros(merged.num_rows, np.bool_)
            for side in (states.source, states.target):
                pair = [same_values(side.rows[n], merged[n]) for n in (property_.name, source)]
                is_paired |= pair[0] & pair[1]
            merged = clear_vectors(merged, property_.name, ~is_paired)
        return merged

    def _decided(
        self, one: ThreeWayRows, merged: pa.Table, clashes: tuple[str, ...]
    ) -> pa.Table | None:
        """Return the row a reviewer decided for, none at all, or None when there is no decision."""
        decision = self.decisions.about(self.shape.kind, self.shape.name, one.ids[0].as_py())
        if decision is None:
            return None
        self._check(decision)
        if clashes is _ALL_PROPERTIES:
            if decision.take is None:
                return None
            side = one.source if decision.take is WinningSide.SOURCE else one.target
            merged = side.rows if side.present[0] else side.rows.slice(0, 0)
        else:
            for name in clashes:
                winner = decision.properties.get(name, decision.take)
                if winner is None and name not in decision.values:
                    return None
                if winner is WinningSide.SOURCE:
                    merged = _set_column(merged, name, one.source.rows[name])
        if not merged.num_rows:
            return merged
        for name, value in decision.values.items():
            column = self._column(name, value)
            if name in self.shape.type.key_order and column.to_pylist() != merged[name].to_pylist():
                message = f"{self.shape.name}.{name} is part of the key and cannot be set"
                raise InvalidInput(message, code="decision_invalid", type=self.shape.name)
            merged = _set_column(merged, name, column)
        return self._paired(one, merged, decision.values)

    def _check(self, decision: ConflictDecision) -> None:
        """Refuse decisions about properties that do not exist."""
        columns = set(self.shape.schema.names) - {"id"}
        settable = set(self.shape.properties)
        for name in {*decision.properties, *decision.values}:
            allowed = settable if name in decision.values else columns
            if name not in allowed:
                hint = did_you_mean(name, allowed)
                message = f"{self.shape.name} has no property `{name}` to decide about"
                full = f"{message}: {hint}" if hint else message
                raise InvalidInput(full, code="decision_invalid", type=self.shape.name)

    def _column(self, name: str, value: object) -> pa.ChunkedArray:
        type_ = self.shape.properties[name].type
        try:
            read = coerce_value(type_, value, CoercionRules(external=self.external))
            return pa.chunked_array([to_column([read], type_)])
        except ValueError as error:
            message = f"{self.shape.name}.{name}: {error}"
            raise InvalidInput(message, code="decision_invalid", type=self.shape.name) from error

    def _conflict(
        self, one: ThreeWayRows, verdict: MergeVerdict, clashes: tuple[str, ...]
    ) -> Conflict:
        id_ = one.ids[0].as_py()
        kind, message = describe_divergence(verdict, id_)
        named = () if clashes is _ALL_PROPERTIES else clashes
        if named and verdict is MergeVerdict.DIVERGENT_UPDATE:
            message = f"{message}: both changed {', '.join(named)}"
        return Conflict(
            kind=kind,
            message=message,
            entity_kind=self.shape.kind,
            type=self.shape.name,
            id=id_,
            base=self._image(one.base),
            source=self._image(one.source),
            target=self._image(one.target),
            properties=named,
        )

    def _image(self, side: AlignedRows) -> EntityImage | None:
        images = entity_images(side.rows, self.shape.type)
        return next(images)[1] if side.present[0] else None


def _set_column(row: pa.Table, name: str, column: pa.ChunkedArray) -> pa.Table:
    return row.set_column(row.column_names.index(name), row.field(name), column)
