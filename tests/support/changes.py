"""A change of a graph in a neutral form, which every surface that writes can be given.

Values are those of JSON data. `id`, `src` and `dst` stand among the properties of an entity.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import omnigraph.graph as og
from omnigraph.catalog import Catalog, TypeKind
from omnigraph.catalog.model import EdgeType, NodeType, Property
from omnigraph.commit.snapshot import SnapshotRef
from omnigraph.errors import OmniError
from omnigraph.types import PropertyType, Scalar
from omnigraph.types.arrow import to_json
from omnigraph.write.committed_state import CommittedState
from omnigraph.write.violations import Violation, ViolationRule

Values: TypeAlias = Mapping[str, Any]
State: TypeAlias = dict[str, dict[str, dict[str, Any]]]
"""Every entity: type, then id, then endpoints and properties."""
Reported: TypeAlias = tuple[str, str | None, str | None, str | None]
"""What a violation is about: rule, type, id (None when it was generated), property."""

_ULID_LENGTH = 26
_STRING = PropertyType(Scalar.STRING)


class _Readable:
    """Something hypothesis shows as it is written in a test."""

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        assert not cycle
        printer.text(repr(self))


@dataclass(frozen=True)
class Put(_Readable):
    """One whole entity: a record of a load, an insert of a mutation."""

    type: str
    values: Values

    def __repr__(self) -> str:
        return f"put({self.type!r}{_shown(self.values)})"


@dataclass(frozen=True)
class Where(_Readable):
    """`property operator value`."""

    property: str
    operator: str
    value: Any

    def __repr__(self) -> str:
        return f"{self.property} {self.operator} {self.value!r}"


@dataclass(frozen=True)
class Set(_Readable):
    """An update of every entity that passes all tests."""

    type: str
    values: Values
    tests: tuple[Where, ...]

    def __repr__(self) -> str:
        return f"set({self.type!r}{_shown(self.values)}, where {_all(self.tests)})"


@dataclass(frozen=True)
class Delete(_Readable):
    """A delete of every entity that passes all tests."""

    type: str
    tests: tuple[Where, ...]

    def __repr__(self) -> str:
        return f"delete({self.type!r}, where {_all(self.tests)})"


Step: TypeAlias = Put | Set | Delete


def put(type_: str, /, **values: Any) -> Put:
    """Return an entity to write."""
    return Put(type_, values)


def change(type_: str, values: Values, *tests: Where) -> Set:
    """Return an update."""
    return Set(type_, values, tests)


def delete(type_: str, *tests: Where) -> Delete:
    """Return a delete."""
    return Delete(type_, tests)


def where(property_: str, operator: str, value: Any) -> Where:
    """Return a test of an update or delete."""
    return Where(property_, operator, value)


def _shown(values: Values) -> str:
    return "".join(f", {name}={value!r}" for name, value in values.items())


def _all(tests: tuple[Where, ...]) -> str:
    return " and ".join(map(repr, tests))


# --- schemas -----------------------------------------------------------------------------------


def definition(catalog: Catalog, name: str) -> NodeType | EdgeType:
    """Return a node or edge type by name; the schemas of these tests share no names."""
    return catalog.nodes[name] if name in catalog.nodes else catalog.edges[name]


def is_edge(catalog: Catalog, name: str) -> bool:
    """Return whether a name is that of an edge type."""
    return name in catalog.edges


def key_of(catalog: Catalog, name: str) -> tuple[str, ...]:
    """Return the key of a type in the order of a fresh graph: ends, then properties by name."""
    if name in catalog.nodes:
        return tuple(sorted(catalog.nodes[name].key))
    ends = tuple(end for end in ("src", "dst") if end in catalog.edges[name].key)
    return (*ends, *sorted(set(catalog.edges[name].key) - {*ends}))


def property_type(catalog: Catalog, type_name: str, name: str) -> PropertyType:
    """Return the type of a property, an endpoint or the id."""
    found: Property | None = definition(catalog, type_name).properties.get(name)
    return _STRING if found is None else found.type


# --- what a graph shows ------------------------------------------------------------------------


def read_state(graph: og.Graph, at: SnapshotRef = "main") -> State:
    """Return every entity of a snapshot with all its values as JSON."""
    snapshot = graph.snapshot(at)
    committed = CommittedState(graph._manifest, snapshot)
    found: State = {}
    for table_key, entry in snapshot.entries().items():
        kind, _, name = table_key.partition(":")
        shape = committed.row_schema(TypeKind(kind), name)
        rows = committed.read(shape).select(None, shape.schema.names)
        assert rows.num_rows == entry.rows, f"{name} has {rows.num_rows} rows, not {entry.rows}"
        columns = {
            column: to_json(rows[column], property_type(snapshot.catalog, name, column))
            for column in shape.schema.names
        }
        ids = columns.pop("id")
        listed = [
            dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)
        ]
        found[name] = dict(zip(ids, listed or [{} for _ in ids], strict=True))
        assert len(found[name]) == len(ids), f"{name} holds an id twice"
    return found


def is_generated(id_: str | None) -> bool:
    """Return whether an id is one the graph made."""
    return id_ is not None and len(id_) == _ULID_LENGTH and id_.isalnum() and id_.isupper()


def reported(violations: tuple[Violation, ...]) -> Counter[Reported]:
    """Return what violations are about.

    A generated id is nobody's business, and a value that cannot be read may be that of the id.
    """
    anonymous = [v.rule is ViolationRule.VALUE or is_generated(v.id) for v in violations]
    return Counter(
        (str(v.rule), v.type, None if hidden else v.id, v.property)
        for v, hidden in zip(violations, anonymous, strict=True)
    )


def said(error: OmniError) -> dict[str, Any]:
    """Return what an error says, whatever ids were just made."""
    facts = json.loads(_GENERATED.sub("<new>", json.dumps(error.to_json())))
    return {"class": type(error).__name__, **facts}


_GENERATED = re.compile(r"\b[0-9A-Z]{26}\b")
