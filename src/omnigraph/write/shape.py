"""This module says how the entities of one type look while they are on their way into a graph."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from omnigraph.catalog import AcceptedSchema, AcceptedType, TypeKind
from omnigraph.catalog.model import EdgeType, NodeType, Property
from omnigraph.types.arrow import arrow_type

AT = "@at"
"""The column that remembers where in the input a row came from; no property has such a name."""

GIVEN = "@given"
"""The column of a partial batch that says which properties a row gives."""

_NODE_SYSTEM = ("id",)
_EDGE_SYSTEM = ("id", "src", "dst")


@dataclass(frozen=True)
class Shape:
    """A type as a change sees it: `id`, endpoints, and properties by name.

    `key` names the key properties in the order in which they form ids; it is empty when ids are
    generated.
    """

    type: AcceptedType
    key: tuple[str, ...]

    @property
    def table_key(self) -> str:
        """The name of the dataset: `node:Ship` or `edge:CallsAt`."""
        return self.type.entity

    @property
    def kind(self) -> TypeKind:
        """Node or edge."""
        return self.type.kind

    @property
    def name(self) -> str:
        """The name of the type."""
        return self.type.name

    @property
    def definition(self) -> NodeType | EdgeType:
        """What the schema says of the type."""
        assert isinstance(self.type.definition, NodeType | EdgeType), "interfaces store nothing"
        return self.type.definition

    @property
    def properties(self) -> Mapping[str, Property]:
        """The properties by name."""
        return self.definition.properties

    @property
    def system(self) -> tuple[str, ...]:
        """The columns that are no properties."""
        return _EDGE_SYSTEM if self.kind is TypeKind.EDGE else _NODE_SYSTEM

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns of a whole row, in order."""
        fields = [pa.field(name, pa.string()) for name in self.system]
        properties = self.properties.values()
        return pa.schema([*fields, *((p.name, arrow_type(p.type)) for p in properties)])

    def no_rows(self) -> pa.Table:
        """Return a table of this shape without rows."""
        return pa.schema([*self.schema, (AT, pa.int64())]).empty_table()


def find_shape(schema: AcceptedSchema, kind: TypeKind, name: str) -> Shape:
    """Return the shape of a type that exists."""
    type_ = schema.find(kind, name)
    assert type_ is not None, "the caller looked the name up"
    return Shape(type_, schema.key_order(name) if kind is TypeKind.NODE else ())
