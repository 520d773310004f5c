"""Run the statements of a mutation and collect what they change.

Statements see the committed state and what came before them in the same query; nothing is written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, assert_never

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog import TypeKind
from omnigraph.catalog.defaults import default_value
from omnigraph.catalog.model import ID
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.model import Commit
from omnigraph.commit.snapshot import apply_scope, head_snapshot
from omnigraph.errors import InvalidInput, NotFound
from omnigraph.lang.query_tree import ComparisonOperator
from omnigraph.notebook.results import mutation_html
from omnigraph.plan import MutationPlan, bind_parameters, compile_query
from omnigraph.plan.expressions import (
    Case,
    Compare,
    Constant,
    EdgePath,
    EntityKind,
    Expression,
    FunctionCall,
    ParameterRef,
    PropertyRef,
)
from omnigraph.plan.query_plan import ENTITY, Delete, InsertEdge, InsertNode, Update
from omnigraph.policy.permissions import TypeScope
from omnigraph.query.entities import find_type
from omnigraph.storage.lru_cache import LruCache
from omnigraph.storage.row_lookup import ROW_ADDRESS
from omnigraph.types import Scalar
from omnigraph.types.arrow import to_column
from omnigraph.types.data_values import blob_text
from omnigraph.write.change_set import ChangeSet, RowBatch, RowSchema, type_violation
from omnigraph.write.coercion import DEFAULT_RULES, CoercionRules, coerce_value
from omnigraph.write.committed_state import CommittedState, incident_edges
from omnigraph.write.embedding_models import clear_vectors, embedded_sources, texts_differ
from omnigraph.write.external_blobs import ExternalBlobs
from omnigraph.write.group_commit import apply_changes
from omnigraph.write.ids import generate_ids, ids_from_keys
from omnigraph.write.mutation_filter import PropertyTest, filter_rows, to_filter_sql
from omnigraph.write.request import WriteRequest, check_mutation_allowed
from omnigraph.write.transaction import PendingChange
from omnigraph.write.violations import ViolationRule, abbreviate_value

MAX_CACHED_PLANS, MAX_CACHED_PLAN_TEXT = 512, 65_536

_plans: LruCache[tuple[str, TypeScope, str, str | None], MutationPlan] = LruCache(MAX_CACHED_PLANS)
"""Compiled mutations by schema, scope, text and name; a schema is identified by its content."""


@dataclass(slots=True)
class MutationExecutor:
    """One run of a mutation on one committed state."""

    plan: MutationPlan
    parameters: Mapping[str, Any]
    now: datetime
    committed: CommittedState
    changes: ChangeSet = field(default_factory=ChangeSet)
    affected_nodes: int = 0
    affected_edges: int = 0
    rules: CoercionRules = DEFAULT_RULES

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
        shape = self.committed.row_schema(TypeKind.NODE, statement.type_name)
        self.affected_nodes += 1
        columns = self._columns(shape, statement.values)
        if columns is None:
            return
        self._add(shape, columns)

    def _insert_edge(self, statement: InsertEdge) -> None:
        shape = self.committed.row_schema(TypeKind.EDGE, statement.type_name)
        self.affected_edges += 1
        ends = {"src": self._value(statement.src), "dst": self._value(statement.dst)}
        for word, end in (("from", "src"), ("to", "dst")):
            if ends[end] is None:
                self._report(
                    shape, ViolationRule.REQUIRED, word, f"`{word}` of {shape.name} is null"
                )
        columns = self._columns(shape, statement.values)
        if columns is None or None in ends.values():
            return
        endpoints = {end: pa.array([id_], pa.string()) for end, id_ in ends.items()}
        self._add(shape, {**endpoints, **columns})

    def _columns(
        self, shape: RowSchema, assigned: Mapping[str, Expression]
    ) -> dict[str, pa.Array] | None:
        """Return the properties of a new entity, with defaults; None when a value does not fit."""
        values = self._values(shape, assigned)
        if values is None:
            return None
        defaults = {
            n: default_value(p) for n, p in shape.properties.items() if values.get(n) is None
        }
        return {n: self._column(shape, n, {**values, **defaults}[n], 1) for n in shape.properties}

    def _add(self, shape: RowSchema, columns: Mapping[str, pa.Array]) -> None:
        """Add a new entity; its ID is made from its key, or generated."""
        missing = [name for name in shape.key if columns[name].null_count]
        for name in missing:
            message = f"{shape.name}.{name} is required, but null or missing"
            self._report(shape, ViolationRule.REQUIRED, name, message)
        if missing:
            return
        keys = [columns[name] for name in shape.key]
        ids = ids_from_keys(keys, shape.key_types) if keys else generate_ids(1)
        rows = pa.table({"id": ids, **columns}, schema=shape.schema)
        self.changes.of(shape).batches.append(RowBatch(rows, fresh=not keys))

    # --- updates -------------------------------------------------------------------------------

    def _update(self, statement: Update) -> None:
        shape = self.committed.row_schema(TypeKind(statement.kind), statement.type_name)
        values = self._values(shape, statement.values)
        tests = self._tests(statement.tests)
        pending = self._pending(shape)
        committed = self._found(shape, tests, shape.schema.names).drop_columns(ROW_ADDRESS)
        if pending.num_rows:
            shadowed = pc.is_in(committed["id"], value_set=pending["id"].combine_chunks())
            committed = committed.filter(pc.invert(shadowed))
        rows = pa.concat_tables([committed, filter_rows(pending, tests)]).sort_by("id")
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
        for property_, source in embedded_sources(shape):
            if source in values and property_.name not in values:
                rows = clear_vectors(
                    rows, property_.name, texts_differ(before[source], rows[source])
                )
        kept = frozenset(shape.properties.keys() - values.keys())
        self.changes.of(shape).batches.append(RowBatch(rows, kept=kept))

    def _pending(self, shape: RowSchema) -> pa.Table:
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
        shape = self.committed.row_schema(TypeKind(statement.kind), statement.type_name)
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

    def _schedule(self, shape: RowSchema, ids: pa.ChunkedArray) -> int:
        """Mark entities for deletion; return how many were not yet."""
        deleted = self.changes.of(shape).deleted
        before = len(deleted)
        deleted.update(dict.fromkeys(ids.to_pylist()))
        return len(deleted) - before

    # --- tests ---------------------------------------------------------------------------------

    def _found(
        self, shape: RowSchema, tests: Sequence[PropertyTest], columns: Sequence[str]
    ) -> pa.Table:
        """Return the committed entities that pass; a whole key is looked up as the id it makes."""
        key = {test.column: test.equals() for test in tests if test.column in shape.key}
        if shape.key and all(key.get(name) is not None for name in shape.key):
            types = shape.key_types
            members = [to_column([key[n]], t) for n, t in zip(shape.key, types, strict=True)]
            ids = ids_from_keys(members, types)
            rows = self.committed.find(shape, ids, columns)
        else:
            rows = self.committed.read(shape).select(to_filter_sql(tests), columns)
        return filter_rows(rows, tests)

    # --- values --------------------------------------------------------------------------------

    def _values(
        self, shape: RowSchema, assigned: Mapping[str, Expression]
    ) -> dict[str, Any] | None:
        """Return assigned values in the types of their properties, None when one does not fit."""
        values: dict[str, Any] = {}
        fits = True
        for name, expression in assigned.items():
            value = self._value(expression)
            type_ = shape.properties[name].type
            try:
                values[name] = coerce_value(type_, value, self.rules)
            except ValueError as error:
                fits = False
                message = f"{shape.name}.{name}: {error}"
                rule = ViolationRule.BLOB if type_.scalar is Scalar.BLOB else ViolationRule.VALUE
                self._report(shape, rule, name, message, value)
        return values if fits else None

    def _column(self, shape: RowSchema, name: str, value: Any, count: int) -> pa.Array:  # noqa: ANN401
        return to_column([value] * count, shape.properties[name].type)

    def _value(self, expression: Expression) -> Any:  # noqa: ANN401 - a value of any type
        match expression:
            case Constant(value=value):
                return value
            case ParameterRef(name=name):
                return self.parameters.get(name)
            case FunctionCall():
                return self.now
            case PropertyRef() | EdgePath() | Case():
                raise AssertionError("the checker lets none stand for a value here")
            case _ as unreachable:
                assert_never(unreachable)

    def _tests(self, tests: Sequence[Compare]) -> list[PropertyTest]:
        property_tests = []
        for test in tests:
            assert isinstance(test.left, PropertyRef), "a test is about a property"
            value = self._value(test.right)
            property_tests.append(
                PropertyTest(test.left.property, test.left.type, test.operator, value)
            )
        return property_tests

    def _report(
        self,
        shape: RowSchema,
        rule: ViolationRule,
        name: str,
        message: str,
        value: Any = None,  # noqa: ANN401 - whatever was given
    ) -> None:
        facts = {"property": name, "value": abbreviate_value(value)}
        self.changes.findings.add(type_violation(rule, message, shape, **facts))


# ----------------------------------------------------------------------
# Entry points: run a mutation, load data, return a summary.


@dataclass(frozen=True, slots=True, kw_only=True)
class MutationResult:
    """What a mutation did; `commit` is None when nothing changed."""

    name: str
    branch: str
    affected_nodes: int
    affected_edges: int
    commit: Commit | None
    actor: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the wire form."""
        return {
            "branch": self.branch,
            "query_name": self.name,
            "affected_nodes": self.affected_nodes,
            "affected_edges": self.affected_edges,
            "actor_id": self.actor,
            "commit": self.commit.to_json() if self.commit is not None else None,
        }

    def _repr_html_(self) -> str:
        return mutation_html(self.to_json())


def run_mutation(
    manifest: Manifest,
    request: WriteRequest,
    source: str,
    parameters: Mapping[str, Any] | None = None,
    name: str | None = None,
) -> MutationResult:
    """Run one mutation of a query text as one commit."""
    now = datetime.now(UTC)
    rules = CoercionRules(external=ExternalBlobs.below(request.external_blobs))
    run: list[MutationExecutor] = []

    def prepare(committed: CommittedState) -> ChangeSet:
        plan = _plan(request, committed, source, name)
        bound = bind_parameters(plan.parameters, parameters)
        run[:] = [MutationExecutor(plan, bound, now, committed, rules=rules)]
        return run[0].run()

    def again() -> bool:
        return all(isinstance(s, InsertNode | InsertEdge) for s in run[0].plan.statements)

    commit = apply_changes(manifest, PendingChange(request, prepare, again, small=True))
    return MutationResult(
        name=run[0].plan.name,
        branch=request.branch,
        affected_nodes=run[0].affected_nodes,
        affected_edges=run[0].affected_edges,
        commit=commit,
        actor=request.actor,
    )


def write_blob(
    manifest: Manifest, request: WriteRequest, selector: tuple[str, str, str], data: bytes | None
) -> Commit | None:
    """Set the blob of one entity, named by type, id and property; None sets it to null.

    Return None when the entity has this blob already.
    """
    type_name, id_, property_name = selector
    snapshot = apply_scope(manifest, head_snapshot(manifest, request.branch), request.rights.named)
    type_ = find_type(snapshot, type_name)
    property_ = type_.definition.properties.get(property_name)
    if property_ is None or property_.type.scalar is not Scalar.BLOB:
        message = f"{type_.kind} type {type_.name} has no Blob property '{property_name}'"
        raise InvalidInput(message, code="not_a_blob", type=type_.name)
    test = Compare(
        PropertyRef(ENTITY, ID.name, ID.type), ComparisonOperator.EQ, Constant(id_, ID.type)
    )
    value = Constant(None if data is None else blob_text(data), property_.type)
    kind = EntityKind(type_.kind)
    update = Update(kind, type_.name, {property_name: value}, (test,))
    plan = MutationPlan(name="put_blob", parameters=(), statements=(update,))

    def prepare(committed: CommittedState) -> ChangeSet:
        check_mutation_allowed(plan, request, committed)
        mutation = MutationExecutor(plan, {}, datetime.now(UTC), committed)
        changes = mutation.run()
        if not (mutation.affected_nodes or mutation.affected_edges):
            message = f"{type_.kind} {type_.name} '{id_}' does not exist"
            raise NotFound(message, code="entity_not_found", type=type_.name, id=id_)
        return changes

    return apply_changes(manifest, PendingChange(request, prepare))


def _plan(
    request: WriteRequest, committed: CommittedState, source: str, name: str | None
) -> MutationPlan:
    key = (committed.snapshot.head.schema_hash, request.rights.named, source, name)
    plan = _plans.get(key)
    if plan is None:
        catalog = committed.apply_scope(request.rights.named).catalog
        compiled = compile_query(catalog, source, name)
        if not isinstance(compiled, MutationPlan):
            message = f"query '{compiled.name}' reads; run it as a query, not as a mutation"
            raise InvalidInput(message, code="query_not_a_mutation", query=compiled.name)
        plan = compiled
        if len(source) <= MAX_CACHED_PLAN_TEXT:
            _plans.put(key, plan)
    check_mutation_allowed(plan, request, committed)
    return plan
