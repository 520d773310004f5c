"""This module runs the statements of a mutation and gathers what they change.

Statements see the committed state and what came before them in the same query; nothing is written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, assert_never

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog import TypeKind
from omnigraph.catalog.defaults import default_value
from omnigraph.plan.expressions import (
    Compare,
    Constant,
    EdgePath,
    Expression,
    FunctionCall,
    ParameterRef,
    PropertyRef,
)
from omnigraph.plan.query import Delete, InsertEdge, InsertNode, MutationPlan, Update
from omnigraph.types import Scalar
from omnigraph.types.column import to_column
from omnigraph.write.cascade import incident_edges
from omnigraph.write.change_set import Batch, ChangeSet
from omnigraph.write.coerce import PLAIN, Rules, fit
from omnigraph.write.committed import ROW_ADDRESS, Committed
from omnigraph.write.ids import fresh_ids, key_ids
from omnigraph.write.predicate import Test, filter_text, passing
from omnigraph.write.shape import Shape
from omnigraph.write.stale import cleared, differing, embedded
from omnigraph.write.violations import Rule, Violation, shown_value


@dataclass(slots=True)
class Mutation:
    """One run of a mutation on one committed state."""

    plan: MutationPlan
    parameters: Mapping[str, Any]
    now: datetime
    committed: Committed
    changes: ChangeSet = field(default_factory=ChangeSet)
    affected_nodes: int = 0
    affected_edges: int = 0
    rules: Rules = PLAIN

    def run(self) -> ChangeSet:
        """Run every statement in order and return what they change together."""
        for statement in self.plan.statements:
            match statement:
                case InsertNode():
                    self._insert_node(statement)
                case InsertEdge():
                    self._insert_edge(statement)
                case Update():
                    self._update(statement)
                case Delete():
                    self._delete(statement)
                case _ as unreachable:
                    assert_never(unreachable)
        return self.changes

    # --- inserts -------------------------------------------------------------------------------

    def _insert_node(self, statement: InsertNode) -> None:
        shape = self.committed.shape(TypeKind.NODE, statement.type_name)
        self.affected_nodes += 1
        values = self._values(shape, statement.values)
        if values is None:
            return
        values = _with_defaults(shape, values)
        columns = {
            name: self._column(shape, name, values.get(name), 1) for name in shape.properties
        }
        if not shape.key:
            ids = fresh_ids(1)
        elif any(values.get(name) is None for name in shape.key):
            self._null_key(shape, values)
            return
        else:
            types = [shape.properties[name].type for name in shape.key]
            ids = key_ids([columns[name] for name in shape.key], types)
        rows = pa.table({"id": ids, **columns}, schema=shape.schema)
        self._add(shape, rows, fresh=not shape.key)

    def _insert_edge(self, statement: InsertEdge) -> None:
        shape = self.committed.shape(TypeKind.EDGE, statement.type_name)
        self.affected_edges += 1
        ends = {"src": self._value(statement.src), "dst": self._value(statement.dst)}
        for word, end in (("from", "src"), ("to", "dst")):
            if ends[end] is None:
                self._report(shape, Rule.REQUIRED, word, f"`{word}` of {shape.name} is null")
        values = self._values(shape, statement.values)
        if values is None or None in ends.values():
            return
        values = _with_defaults(shape, values)
        columns = {
            name: self._column(shape, name, values.get(name), 1) for name in shape.properties
        }
        system = {"id": fresh_ids(1), **{end: pa.array([ends[end]], pa.string()) for end in ends}}
        self._add(shape, pa.table({**system, **columns}, schema=shape.schema), fresh=True)

    def _add(self, shape: Shape, rows: pa.Table, *, fresh: bool) -> None:
        self.changes.of(shape).batches.append(Batch(rows, fresh=fresh))

    def _null_key(self, shape: Shape, values: Mapping[str, Any]) -> None:
        for name in shape.key:
            if values.get(name) is None:
                message = f"{shape.name}.{name} is required, but null or missing"
                self._report(shape, Rule.REQUIRED, name, message)

    # --- updates -------------------------------------------------------------------------------

    def _update(self, statement: Update) -> None:
        shape = self.committed.shape(TypeKind(statement.kind), statement.type_name)
        values = self._values(shape, statement.values)
        tests = self._tests(statement.tests)
        pending = self._pending(shape)
        found = self._found(shape, tests, shape.schema.names).drop_columns(ROW_ADDRESS)
        if pending.num_rows:
            shadowed = pc.is_in(found["id"], value_set=pending["id"].combine_chunks())
            found = found.filter(pc.invert(shadowed))
        rows = pa.concat_tables([found, passing(pending, tests)]).sort_by("id")
        if shape.kind is TypeKind.NODE:
            self.affected_nodes += rows.num_rows
        else:
            self.affected_edges += rows.num_rows
        if values is None or not rows.num_rows:
            return
        before = rows
        for name, value in values.items():
            column = self._column(shape, name, value, rows.num_rows)
            rows = rows.set_column(shape.schema.get_field_index(name), name, column)
        for property_, source in embedded(shape):
            if source in values and property_.name not in values:
                rows = cleared(rows, property_.name, differing(before[source], rows[source]))
        kept = frozenset(shape.properties.keys() - values.keys())
        self.changes.of(shape).batches.append(Batch(rows, kept=kept))

    def _pending(self, shape: Shape) -> pa.Table:
        """Return what the statements so far make of the entities they touch."""
        rows: pa.Table = shape.schema.empty_table()
        for batch in self.changes.of(shape).batches:
            if rows.num_rows:
                stale = pc.is_in(rows["id"], value_set=batch.rows["id"].combine_chunks())
                rows = rows.filter(pc.invert(stale))
            rows = pa.concat_tables([rows, batch.rows])
        return rows

    # --- deletes -------------------------------------------------------------------------------

    def _delete(self, statement: Delete) -> None:
        shape = self.committed.shape(TypeKind(statement.kind), statement.type_name)
        tests = self._tests(statement.tests)
        columns = list(dict.fromkeys(["id", *(test.column for test in tests)]))
        ids = self._found(shape, tests, columns)["id"]
        if shape.kind is TypeKind.EDGE:
            self.affected_edges += self._schedule(shape, ids)
            return
        before = set(self.changes.of(shape).deleted)
        self.affected_nodes += self._schedule(shape, ids)
        new = pa.array([id_ for id_ in self.changes.of(shape).deleted if id_ not in before])
        if not len(new):
            return
        for incident, edges in incident_edges(self.committed, shape, new.cast(pa.string())):
            self.affected_edges += self._schedule(incident, edges)

    def _schedule(self, shape: Shape, ids: pa.ChunkedArray) -> int:
        """Mark entities for deletion; return how many were not yet."""
        deleted = self.changes.of(shape).deleted
        before = len(deleted)
        deleted.update(dict.fromkeys(ids.to_pylist()))
        return len(deleted) - before

    # --- tests ---------------------------------------------------------------------------------

    def _found(self, shape: Shape, tests: Sequence[Test], columns: Sequence[str]) -> pa.Table:
        """Return the committed entities that pass; a whole key is looked up as the id it makes."""
        key = {test.column: test.equals() for test in tests if test.column in shape.key}
        if shape.key and all(key.get(name) is not None for name in shape.key):
            types = [shape.properties[name].type for name in shape.key]
            members = [to_column([key[n]], t) for n, t in zip(shape.key, types, strict=True)]
            found = self.committed.by(shape, "id", key_ids(members, types), columns)
        else:
            condition = filter_text(tests, self.committed.names(shape))
            found = self.committed.where(shape, condition, columns)
        return passing(found, tests)

    # --- values --------------------------------------------------------------------------------

    def _values(self, shape: Shape, assigned: Mapping[str, Expression]) -> dict[str, Any] | None:
        """Return assigned values in the types of their properties, None when one does not fit."""
        values: dict[str, Any] = {}
        fits = True
        for name, expression in assigned.items():
            given = self._value(expression)
            type_ = shape.properties[name].type
            try:
                values[name] = fit(type_, given, self.rules)
            except ValueError as error:
                fits = False
                message = f"{shape.name}.{name}: {error}"
                rule = Rule.BLOB if type_.scalar is Scalar.BLOB else Rule.VALUE
                self._report(shape, rule, name, message, given)
        return values if fits else None

    def _column(self, shape: Shape, name: str, value: Any, count: int) -> pa.Array:  # noqa: ANN401
        return to_column([value] * count, shape.properties[name].type)

    def _value(self, expression: Expression) -> Any:  # noqa: ANN401 - a value of any type
        match expression:
            case Constant(value=value):
                return value
            case ParameterRef(name=name):
                return self.parameters.get(name)
            case FunctionCall():
                return self.now
            case PropertyRef() | EdgePath():
                raise AssertionError("the checker lets neither stand for a value here")
            case _ as unreachable:
                assert_never(unreachable)

    def _tests(self, tests: Sequence[Compare]) -> list[Test]:
        found = []
        for test in tests:
            assert isinstance(test.left, PropertyRef), "a test is about a property"
            value = self._value(test.right)
            found.append(Test(test.left.property, test.left.type, test.operator, value))
        return found

    def _report(
        self,
        shape: Shape,
        rule: Rule,
        name: str,
        message: str,
        value: Any = None,  # noqa: ANN401 - whatever was given
    ) -> None:
        self.changes.findings.add(
            Violation(
                rule=rule,
                message=message,
                kind=str(shape.kind),
                type=shape.name,
                property=name,
                value=shown_value(value),
            )
        )


def _with_defaults(shape: Shape, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values together with those of properties that have one although none is given."""
    missing = (p for name, p in shape.properties.items() if values.get(name) is None)
    return {**values, **{p.name: default_value(p) for p in missing}}
