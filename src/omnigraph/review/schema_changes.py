"""The schema change of a proposal: the steps of its migration, and what each does to the data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from omnigraph.catalog import AcceptedType, MigrationPlan, MigrationStep, plan_migration
from omnigraph.catalog.migration_steps import (
    AddConstraint,
    AddProperty,
    ChangeCardinality,
    ChangeKey,
    DropProperty,
    DropType,
    MakeRequired,
    WidenProperty,
)
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.model import Snapshot
from omnigraph.dataset_view import DatasetView


@dataclass(frozen=True, slots=True)
class SchemaReview:
    """Describes the schema change from a merge base to a source, on the data of a target."""

    manifest: Manifest
    base: Snapshot
    source: Snapshot
    target: Snapshot

    def to_json(self) -> dict[str, Any] | None:
        """Return the plan with the effect of each step; None if the schema does not change."""
        if self.base.head.schema_hash == self.source.head.schema_hash:
            return None
        plan = plan_migration(self.base.schema, self.source.schema)
        steps = list(self._steps(plan))
        texts = [
            f"{step.describe()}: {facts['effect']}" if "effect" in facts else step.describe()
            for step, facts in zip(plan.steps, steps, strict=True)
        ]
        return {**plan.to_json(), "steps": steps, "descriptions": texts}

    def _steps(self, plan: MigrationPlan) -> Iterator[dict[str, Any]]:
        for step in plan.steps:
            affected = self._affected(step)
            facts = step.to_json()
            yield (
                facts
                if affected is None
                else {
                    **facts,
                    "affected": affected,
                    "effect": _effect_text(step, affected),
                }
            )

    def _affected(self, step: MigrationStep) -> int | None:
        """Return how many entities of the target a step changes or checks; None if it has none."""
        match step:
            case DropProperty():
                return self._values(step)
            case DropType():
                return self._rows(self._type_of(step))
            case AddProperty() | WidenProperty() | MakeRequired() | AddConstraint():
                return self._rows(self._type_of(step))
            case ChangeKey() | ChangeCardinality():
                return self._rows(self._type_of(step))
            case _:
                return None

    def _type_of(self, step: Any) -> AcceptedType | None:  # noqa: ANN401 - any step with a type
        """Return the type of a step in the target; steps have the names of the source."""
        if isinstance(step, DropType):
            found = self.base.schema.find(step.type_kind, step.name)
        else:
            found = self.source.schema.find(step.type_kind, step.type_name)
        return None if found is None else self.target.schema.by_id(found.id)

    def _rows(self, type_: AcceptedType | None) -> int:
        if type_ is None or type_.incarnation is None:
            return 0
        return self.target.entry(type_.entity).rows

    def _values(self, step: DropProperty) -> int:
        """Return how many entities of the target have a value of a property that is dropped."""
        type_ = self._type_of(step)
        before = None if type_ is None else self.base.schema.by_id(type_.id)
        if type_ is None or before is None or not self._rows(type_):
            return 0
        id_ = before.property_ids[step.property_name]
        name = next((name for name, other in type_.property_ids.items() if other == id_), None)
        if name is None:
            return 0
        return DatasetView.of(self.manifest, self.target, type_).count(f"`{name}` IS NOT NULL")


def _effect_text(step: MigrationStep, affected: int) -> str:
    match step:
        case AddProperty(default=None):
            what = "{} null"
        case AddProperty():
            what = "{} the default"
        case DropProperty():
            return f"{affected:,} {'value is' if affected == 1 else 'values are'} dropped"
        case DropType():
            return f"{affected:,} {'entity is' if affected == 1 else 'entities are'} dropped"
        case WidenProperty():
            return f"{affected:,} {'value is' if affected == 1 else 'values are'} converted"
        case ChangeKey():
            what = "{} a new ID"
        case _:
            return f"{affected:,} {'entity is' if affected == 1 else 'entities are'} checked"
    return f"{affected:,} " + what.format("entity gets" if affected == 1 else "entities get")
