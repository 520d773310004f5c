"""Check existing entities against rules that are new in a schema.

The rules are those every write obeys; only the columns they speak of are read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog import AcceptedType, Cardinality, Constraint, MigrationPlan
from omnigraph.catalog.defaults import default_value
from omnigraph.catalog.migration_steps import (
    AddConstraint,
    ChangeCardinality,
    ChangeKey,
    MakeRequired,
)
from omnigraph.catalog.model import (
    EdgeType,
    Key,
    NodeType,
    Property,
    Unique,
    ValueConstraint,
    constraint_columns,
)
from omnigraph.dataset_view import StagedView
from omnigraph.types.arrow import to_column
from omnigraph.write.change_set import ChangeSet, RowSchema, TypeChange
from omnigraph.write.checks.edges import check_sources
from omnigraph.write.checks.reporter import ViolationReporter
from omnigraph.write.checks.unique import check_unique_rows
from omnigraph.write.checks.values import check_values
from omnigraph.write.progress import ProgressMeter


@dataclass(frozen=True, slots=True)
class MigrationRules:
    """What a migration requires of the existing entities of one type, by its new names."""

    required: frozenset[str] = frozenset()
    constraints: tuple[Constraint, ...] = ()
    tighter: bool = False

    @classmethod
    def of(cls, plan: MigrationPlan, type_: AcceptedType) -> MigrationRules:
        """Return what the steps of a plan require of a type."""
        rules = cls()
        for step in plan.steps:
            match step:
                case MakeRequired(kind, name, property_name) if (kind, name) == _type_key(type_):
                    rules = replace(rules, required=rules.required | {property_name})
                case AddConstraint(kind, name, Unique() | ValueConstraint() as constraint) if (
                    kind,
                    name,
                ) == _type_key(type_):
                    rules = replace(rules, constraints=(*rules.constraints, constraint))
                case ChangeKey(kind, name, _, Key(columns)) if (kind, name) == _type_key(type_):
                    rules = replace(rules, constraints=(*rules.constraints, Unique(columns)))
                case ChangeCardinality(kind, name, old, new) if (kind, name) == _type_key(type_):
                    rules = replace(rules, tighter=not _is_looser(new, old))
                case _:
                    continue
        return rules

    def __bool__(self) -> bool:
        return bool(self.required or self.constraints or self.tighter)


def _type_key(type_: AcceptedType) -> tuple[object, str]:
    return (type_.kind, type_.name)


def _is_looser(new: Cardinality, old: Cardinality) -> bool:
    """Return whether every number of edges that was allowed still is."""
    if new.minimum > old.minimum:
        return False
    return new.maximum is None or (old.maximum is not None and old.maximum <= new.maximum)


@dataclass(frozen=True, slots=True)
class TouchedEntities:
    """What a change in the same commit does to a type; it is validated with the change.

    `ids` are the entities it writes or deletes, `sources` the nodes the edges it writes start at.
    """

    ids: pa.Array
    sources: pa.Array

    @classmethod
    def of(cls, change: TypeChange | None) -> TouchedEntities:
        """Return what a change of one type touches."""
        batches = [] if change is None else [batch.rows for batch in change.batches]
        deleted = pa.array([] if change is None else change.deleted, pa.string())
        sources = [rows["src"] for rows in batches if "src" in rows.column_names]
        return cls(
            _concat_columns([*(rows["id"] for rows in batches), deleted]), _concat_columns(sources)
        )


def _concat_columns(columns: Sequence[pa.ChunkedArray | pa.Array]) -> pa.Array:
    chunks = [c for column in columns for c in getattr(column, "chunks", [column])]
    return pa.concat_arrays([pa.array([], pa.string()), *chunks])


def check_existing_rows(
    changes: ChangeSet,
    type_: AcceptedType,
    rules: MigrationRules,
    handle: Any,  # noqa: ANN401 - a Lance handle
    meter: ProgressMeter,
    changed: TouchedEntities | None = None,
) -> None:
    """Report every entity of a type that breaks one of the new rules.

    Entities that are `changed` by the same commit are left to the validator.
    """
    changed = changed or TouchedEntities.of(None)
    shape = _type_with_new_rules(type_, rules)
    among = {n for c in rules.constraints if isinstance(c, Unique) for n in c.columns}
    among |= {"id", "src"} if rules.tighter else {"id"}
    names = sorted(among | set(shape.properties))
    parts: list[pa.Table] = []
    moved: list[pa.ChunkedArray] = []
    for rows in _scan_rows(type_, handle, names):
        stays = pc.invert(pc.is_in(rows["id"], value_set=changed.ids))
        left = rows.filter(stays)
        check_values(ViolationReporter(changes, shape, left))
        parts.append(left.select(sorted(among)))
        if rules.tighter:
            moved.append(rows["src"].filter(pc.invert(stays)))
        meter.add_rows(rows.num_rows)
    if not parts:
        return
    whole = pa.concat_tables(parts)
    check_unique_rows(ViolationReporter(changes, shape, whole))
    if rules.tighter:
        assert isinstance(shape.definition, EdgeType), "only edges are counted"
        counted = pc.is_in(whole["src"], value_set=_concat_columns([*moved, changed.sources]))
        check_sources(changes, shape.definition, whole["src"].filter(pc.invert(counted)))


def _type_with_new_rules(type_: AcceptedType, rules: MigrationRules) -> RowSchema:
    """Return a type of which only the new rules are left."""
    definition = type_.definition
    assert isinstance(definition, NodeType | EdgeType), "interfaces have no entities"
    named = {n for c in rules.constraints for n in constraint_columns(c)} | rules.required
    properties = {
        name: _property_without_rules(property_, required=name in rules.required)
        for name, property_ in definition.properties.items()
        if name in named
    }
    narrowed = replace(
        type_,
        definition=replace(definition, properties=properties, constraints=rules.constraints),
        property_ids={name: type_.property_ids[name] for name in properties},
    )
    return RowSchema(narrowed, ())


def _property_without_rules(property_: Property, *, required: bool) -> Property:
    """Return a property without rules it has had to obey before; its vector is not made."""
    type_ = replace(property_.type, enum_values=None, nullable=not required)
    return replace(property_, type=type_, embed=None)


def _scan_rows(
    type_: AcceptedType,
    handle: Any,  # noqa: ANN401 - a Lance handle
    names: Sequence[str],
) -> Iterator[pa.Table]:
    """Yield the entities as they will be: what is new has its default, or is null."""
    view = StagedView(type_, handle)
    stored = [name for name in names if view.has_column(name)]
    for batch in view.scan(stored):
        columns = {
            name: batch[name] if name in stored else _new_column(type_, name, batch.num_rows)
            for name in names
        }
        yield pa.table(columns)


def _new_column(type_: AcceptedType, name: str, count: int) -> pa.Array:
    property_ = type_.definition.properties[name]
    return to_column([default_value(property_)] * count, property_.type)
