"""What is inferred: types with their properties, each with the evidence for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from omnigraph.types import PropertyType
from omnigraph.write.inference.input_tables import InputFile


@dataclass(frozen=True, slots=True, kw_only=True)
class InferredProperty:
    """One property, the column it is read from, and the evidence for its type."""

    name: str
    column: str
    type: PropertyType
    evidence: tuple[str, ...] = ()
    is_key: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return the wire form."""
        return {
            "name": self.name,
            "column": self.column,
            "type": str(self.type),
            "key": self.is_key,
            "evidence": list(self.evidence),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class InferredEndpoint:
    """One end of an edge type: the column with the ids of its nodes."""

    column: str
    node: str
    evidence: str

    def to_json(self) -> dict[str, Any]:
        """Return the wire form."""
        return {"column": self.column, "type": self.node, "evidence": self.evidence}


@dataclass(frozen=True, slots=True, kw_only=True)
class InferredNode:
    """A node type: its table, its properties, and the column of the id if it has no key."""

    name: str
    table: InputFile
    properties: tuple[InferredProperty, ...]
    id_column: str | None = None
    evidence: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    """Columns that become no property, each with the reason."""

    def to_json(self) -> dict[str, Any]:
        """Return the wire form."""
        return {
            "kind": "node",
            "name": self.name,
            "file": self.table.label,
            "id": self.id_column,
            "properties": [property_.to_json() for property_ in self.properties],
            "evidence": list(self.evidence),
            "left_out": list(self.left_out),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class InferredEdge:
    """An edge type. With `is_keyed` there is one edge at most between two nodes.

    `is_reference` means that its table is that of a node type, one column of which refers to
    another node; rows where that is null have no edge.
    """

    name: str
    table: InputFile
    src: InferredEndpoint
    dst: InferredEndpoint
    properties: tuple[InferredProperty, ...] = ()
    id_column: str | None = None
    is_keyed: bool = False
    is_reference: bool = False
    evidence: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the wire form."""
        return {
            "kind": "edge",
            "name": self.name,
            "file": self.table.label,
            "from": self.src.to_json(),
            "to": self.dst.to_json(),
            "id": self.id_column,
            "keyed": self.is_keyed,
            "properties": [property_.to_json() for property_ in self.properties],
            "evidence": list(self.evidence),
            "left_out": list(self.left_out),
        }


InferredType: TypeAlias = InferredNode | InferredEdge


@dataclass(frozen=True, slots=True, kw_only=True)
class UndecidedTable:
    """A table that looks like an edge type, whose endpoints the data does not decide."""

    name: str
    table: InputFile
    reasons: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the wire form."""
        return {"name": self.name, "file": self.table.label, "reasons": list(self.reasons)}


@dataclass(frozen=True, slots=True, kw_only=True)
class InferredSchema:
    """All types, and what was left undecided."""

    nodes: tuple[InferredNode, ...] = ()
    edges: tuple[InferredEdge, ...] = ()
    undecided: tuple[UndecidedTable, ...] = ()

    @property
    def types(self) -> Sequence[InferredType]:
        """The node types and then the edge types, in the order of the inputs."""
        return (*self.nodes, *self.edges)

    @property
    def warnings(self) -> list[str]:
        """What the data does not decide, or what would be lost."""
        left_out = [f"{type_.name}: {text}" for type_ in self.types for text in type_.left_out]
        return left_out + [
            f"{one.table.label} is not loaded: {reason}"
            for one in self.undecided
            for reason in one.reasons
        ]

    def to_json(self) -> dict[str, Any]:
        """Return the wire form."""
        return {
            "types": [type_.to_json() for type_ in self.types],
            "undecided": [one.to_json() for one in self.undecided],
            "warnings": self.warnings,
        }
