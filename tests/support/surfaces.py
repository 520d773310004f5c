"""The surfaces a change can go through: each is given the same neutral form.

A surface that cannot say a change raises `Inexpressible` with the reason, which the case must know.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

import omnigraph.graph as og
from omnigraph.catalog import Catalog, TypeKind
from omnigraph.errors import OmniError
from omnigraph.graph.modes import LoadMode
from omnigraph.lang import QueryError
from omnigraph.types import PropertyType, Scalar
from omnigraph.types.arrow import to_column
from omnigraph.types.data_values import from_data
from omnigraph.write.change_set import ChangeSet, RowBatch, RowSchema
from omnigraph.write.committed_state import CommittedState
from omnigraph.write.group_commit import apply_changes
from omnigraph.write.ids import generate_ids
from omnigraph.write.request import WriteRequest
from omnigraph.write.transaction import PendingChange
from omnigraph.write.violations import ValidationFailed, Violation
from tests.support.changes import (
    Delete,
    Put,
    Reported,
    Set,
    State,
    Step,
    Values,
    Where,
    definition,
    is_edge,
    key_of,
    property_type,
    reported,
)
from tests.support.model import entity_id, stored

_ENDS = {"src": "from", "dst": "to"}


class Inexpressible(Exception):
    """A surface has no words for a change."""


@dataclass(frozen=True)
class Wanted:
    """A change of a graph: steps, how a load takes them, and what was there before.

    `in_order` tells whether steps mean to come one after the other, `together` whether all at once;
    it only matters for entities that are given twice.
    """

    steps: tuple[Step, ...]
    mode: LoadMode = "merge"
    partial: bool = False
    before: State | None = None
    in_order: bool = False
    together: bool = False

    @property
    def puts(self) -> list[Put]:
        """The entities among the steps."""
        return [step for step in self.steps if isinstance(step, Put)]


@dataclass(frozen=True)
class Verdict:
    """What a surface said: nothing when the change was made."""

    reported: Counter[Reported]
    messages: tuple[str, ...] = ()
    affected: tuple[int, int] | None = None
    commit: str | None = None
    error: OmniError | None = None


class Surface(Protocol):
    """One way to write."""

    name: str

    def run(self, graph: og.Graph, wanted: Wanted, branch: str = "main") -> Verdict:
        """Make a change, or tell what is wrong with it."""


# --- mutation ----------------------------------------------------------------------------------


class _Named:
    """Something tests print."""

    name = ""

    def __repr__(self) -> str:
        return self.name


class Mutation(_Named):
    """Statements of the query language, every value a parameter."""

    name = "mutation"

    def run(self, graph: og.Graph, wanted: Wanted, branch: str = "main") -> Verdict:
        """Run one query."""
        if wanted.mode == "overwrite":
            raise Inexpressible("a mutation replaces no type")
        if wanted.partial:
            raise Inexpressible("an insert is whole")
        catalog = graph.snapshot(branch).catalog
        if wanted.together and _repeats(catalog, wanted):
            raise Inexpressible("statements come one after the other")
        text = _Text(catalog, wanted)
        try:
            made = graph.mutate(text.query(), text.parameters, branch=branch)
        except ValidationFailed as error:
            return _refusal(error)
        except QueryError as error:
            return text.misfits(error)
        affected = (made.affected_nodes, made.affected_edges)
        commit = None if made.commit is None else made.commit.id
        return Verdict(Counter(), affected=affected, commit=commit)


class _Text:
    """The text of a query that says a change."""

    def __init__(self, catalog: Catalog, wanted: Wanted) -> None:
        self.catalog = catalog
        self.wanted = wanted
        self.parameters: dict[str, Any] = {}
        self._types: dict[str, str] = {}
        self._meant: dict[str, tuple[str, str]] = {}
        self._statements = [self._statement(step) for step in wanted.steps]

    def query(self) -> str:
        """Return the query."""
        declared = ", ".join(f"${name}: {type_}" for name, type_ in self._types.items())
        return f"query change({declared}) {{\n  " + "\n  ".join(self._statements) + "\n}"

    def misfits(self, error: QueryError) -> Verdict:
        """Return values that fit no parameter as what they are: values that fit no property."""
        found: Counter[Reported] = Counter()
        for diagnostic in error.diagnostics:
            name = diagnostic.message.partition("'")[2].partition("'")[0]
            assert name in self._meant, f"{error}\n{self.query()}"
            type_name, property_ = self._meant[name]
            found["value", type_name, None, property_] += 1
        messages = tuple(diagnostic.message for diagnostic in error.diagnostics)
        return Verdict(found, messages, error=error)

    def _statement(self, step: Step) -> str:
        match step:
            case Put():
                return self._put(step)
            case Set():
                return f"update {step.type} set {self._values(step.type, step.values)} " + (
                    self._where(step.type, step.tests)
                )
            case Delete():
                return f"delete {step.type} {self._where(step.type, step.tests)}"

    def _put(self, put: Put) -> str:
        values = dict(put.values)
        if key_of(self.catalog, put.type):
            if self.wanted.mode == "append":
                raise Inexpressible("a mutation upserts keyed nodes")
            return f"insert {put.type} {self._values(put.type, self._given(put.type, values))}"
        id_ = values.pop("id", None)
        if id_ is None:
            return f"insert {put.type} {self._values(put.type, self._given(put.type, values))}"
        there = (self.wanted.before or {}).get(put.type, {}).get(id_)
        if there is None or self.wanted.mode == "append":
            raise Inexpressible("a mutation gives no ids")
        if any(values.pop(end, there[end]) != there[end] for end in _ENDS if end in there):
            raise Inexpressible("a mutation moves no edges")
        every = definition(self.catalog, put.type).properties
        whole = {name: values.get(name) for name in every}
        if not whole:
            raise Inexpressible("a mutation updates properties")
        return f"update {put.type} set {self._values(put.type, whole)} where id = " + (
            self._parameter(put.type, "id", id_)
        )

    def _given(self, type_name: str, values: Values) -> Values:
        """Return the values with nulls for required ones that are missing, which typing wants."""
        missing = [
            p.name
            for p in definition(self.catalog, type_name).properties.values()
            if not p.type.nullable
            and p.name not in values
            and (p.embed is None or p.embed.source not in values)
        ]
        return {**values, **dict.fromkeys(missing)}

    def _values(self, type_name: str, values: Values) -> str:
        assigned = (
            f"{_ENDS.get(name, name)}: {self._parameter(type_name, name, value)}"
            for name, value in values.items()
        )
        return "{ " + ", ".join(assigned) + " }"

    def _where(self, type_name: str, tests: Sequence[Where]) -> str:
        return "where " + " and ".join(
            f"{_ENDS.get(test.property, test.property)} {test.operator} "
            f"{self._parameter(type_name, test.property, test.value)}"
            for test in tests
        )

    def _parameter(self, type_name: str, property_: str, value: Any) -> str:
        name = f"p{len(self._types)}"
        type_ = property_type(self.catalog, type_name, property_)
        text = str(type_.scalar) if type_.dimension is None else type_.base_text
        if type_.scalar is Scalar.BLOB:
            text = "String"
        if type_.spec.integer and isinstance(value, float) and not type_.is_list:
            text = "F64"
        self._types[name] = (f"[{text}]" if type_.is_list else text) + "?"
        self._meant[name] = (type_name, property_)
        self.parameters[name] = value
        return f"${name}"


# --- loads -------------------------------------------------------------------------------------


class Lines(_Named):
    """Lines of JSON."""

    name = "ndjson"

    def run(self, graph: og.Graph, wanted: Wanted, branch: str = "main") -> Verdict:
        """Load lines."""
        catalog = graph.snapshot(branch).catalog
        lines = [record(catalog, put) for put in _puts(graph, wanted)]
        return _load(graph, "\n".join(lines).encode(), wanted, branch)


class Columns(_Named):
    """Arrow tables, one for each type, in as many pieces as they have rows."""

    name = "columns"

    def run(self, graph: og.Graph, wanted: Wanted, branch: str = "main") -> Verdict:
        """Load tables."""
        catalog = graph.snapshot(branch).catalog
        tables = {
            name: columns_of(catalog, name, puts, partial=wanted.partial)
            for name, puts in _by_type(_puts(graph, wanted)).items()
        }
        return _load(graph, tables, wanted, branch)


def _load(graph: og.Graph, data: Any, wanted: Wanted, branch: str) -> Verdict:
    try:
        made = graph.load(data, mode=wanted.mode, partial=wanted.partial, branch=branch)
    except ValidationFailed as error:
        return _refusal(error)
    return Verdict(Counter(), commit=None if made.commit is None else made.commit.id)


def columns_of(catalog: Catalog, name: str, puts: Sequence[Put], *, partial: bool) -> pa.Table:
    """Return entities as a table with a column for each property any of them gives."""
    given = list(dict.fromkeys(column for put in puts for column in put.values))
    if not partial:
        properties = definition(catalog, name).properties.values()
        given += [p.name for p in properties if not p.type.nullable and p.name not in given]
    elif any(set(put.values) != set(given) for put in puts):
        raise Inexpressible("the rows of a table give the same properties")
    table = pa.table({c: _column(catalog, name, c, [p.values.get(c) for p in puts]) for c in given})
    return pa.concat_tables([table.slice(row, 1) for row in range(len(puts))])


def _column(catalog: Catalog, type_name: str, name: str, values: Sequence[Any]) -> pa.Array:
    type_ = property_type(catalog, type_name, name)
    if type_.scalar is Scalar.BLOB:
        return pa.array(values, pa.string())
    try:
        return to_column([from_data(type_, value) for value in values], type_)
    except ValueError:
        return pa.array(values)


# --- a change set, as whoever does not read text makes one -------------------------------------


class Changes(_Named):
    """A change set made of values that are typed already."""

    name = "change set"

    def run(self, graph: og.Graph, wanted: Wanted, branch: str = "main") -> Verdict:
        """Validate, stage and publish a change set."""
        puts = _puts(graph, wanted)
        if wanted.partial:
            raise Inexpressible("its rows are whole")

        def prepare(committed: CommittedState) -> ChangeSet:
            changes = ChangeSet()
            for name, given in _by_type(puts).items():
                rows = _table(committed, name, given)
                fresh = all("id" not in put.values for put in given) and not _keyed(graph, name)
                change = changes.of(_shape(committed, name))
                change.strict = wanted.mode == "append"
                change.replace = wanted.mode == "overwrite"
                change.batches.append(RowBatch(rows, fresh=fresh))
            return changes

        request = WriteRequest(branch=branch, operation="load", embedder=graph._engine.embedder)
        try:
            apply_changes(graph._manifest, PendingChange(request, prepare))
        except ValidationFailed as error:
            return _refusal(error)
        return Verdict(Counter())


def _table(committed: CommittedState, name: str, puts: Sequence[Put]) -> pa.Table:
    shape, catalog = _shape(committed, name), committed.snapshot.catalog
    columns: dict[str, pa.Array] = {}
    for column in shape.schema.names:
        type_ = property_type(catalog, name, column)
        values = [_typed(put.values.get(column), type_) for put in puts]
        if None in values and _has_default(shape, column):
            raise Inexpressible("its rows have what inputs leave to a default")
        columns[column] = to_column(values, type_)
    key = key_of(catalog, name)
    if key:
        types = [property_type(catalog, name, member) for member in key]
        members = [[stored(put.values.get(m), t) for m, t in zip(key, types)] for put in puts]  # noqa: B905
        if any(value is None for row in members for value in row):
            raise Inexpressible("a row without a key is no row of a change set")
        ids = [entity_id(list(zip(row, types, strict=True))) for row in members]
    else:
        made = generate_ids(len(puts)).to_pylist()
        ids = [p.values.get("id") or id_ for p, id_ in zip(puts, made, strict=True)]
    columns["id"] = pa.array(ids, pa.string())
    return pa.table(columns, schema=shape.schema)


def _has_default(shape: RowSchema, column: str) -> bool:
    property_ = shape.properties.get(column)
    return property_ is not None and any(a.name == "default" for a in property_.annotations)


def _typed(value: Any, type_: PropertyType) -> Any:
    try:
        return from_data(type_, value)
    except ValueError as error:
        raise Inexpressible("its values are typed") from error


def _shape(committed: CommittedState, name: str) -> RowSchema:
    edge = is_edge(committed.snapshot.catalog, name)
    return committed.row_schema(TypeKind.EDGE if edge else TypeKind.NODE, name)


def _keyed(graph: og.Graph, name: str) -> bool:
    return bool(key_of(graph.snapshot().catalog, name))


# --- shared ------------------------------------------------------------------------------------


def _puts(graph: og.Graph, wanted: Wanted) -> list[Put]:
    puts = wanted.puts
    if len(puts) < len(wanted.steps):
        raise Inexpressible("a load neither updates nor deletes")
    if wanted.in_order and _repeats(graph.snapshot().catalog, wanted):
        raise Inexpressible("the entities of a load come together")
    return puts


def _repeats(catalog: Catalog, wanted: Wanted) -> bool:
    """Return whether a key is given twice."""
    keys = [(p.type, *(p.values.get(m) for m in key_of(catalog, p.type))) for p in wanted.puts]
    keyed = [key for key in keys if len(key) > 1]
    return len(set(keyed)) < len(keyed)


def _by_type(puts: Sequence[Put]) -> dict[str, list[Put]]:
    found: dict[str, list[Put]] = defaultdict(list)
    for put in puts:
        found[put.type].append(put)
    return found


def _refusal(error: ValidationFailed) -> Verdict:
    violations: tuple[Violation, ...] = error.violations
    assert violations, "a refusal says why"
    messages = tuple(violation.message for violation in violations)
    return Verdict(reported(violations), messages, error=error)


def record(catalog: Catalog, put: Put) -> str:
    """Return an entity as a line of NDJSON."""
    values = dict(put.values)
    if not is_edge(catalog, put.type):
        return json.dumps({"type": put.type, "data": values})
    ends = {word: values.pop(end) for end, word in _ENDS.items() if end in values}
    return json.dumps({"edge": put.type, **ends, "data": values})


SURFACES: tuple[Surface, ...] = (Mutation(), Changes(), Lines(), Columns())
