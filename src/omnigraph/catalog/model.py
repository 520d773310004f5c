"""The catalog: a schema with every name resolved and every rule checked."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from reprlib import repr as brief
from typing import Any, ClassVar, TypeAlias

from omnigraph.catalog.identity import IncarnationId, PropertyId, TypeId
from omnigraph.errors import Category, OmniError
from omnigraph.lang.source import NO_SPAN, TextSpan
from omnigraph.lang.source_writer import plain_number
from omnigraph.lang.tokens import encode_string
from omnigraph.notebook.graphs import schema_html
from omnigraph.types import PropertyType, Scalar

_EXACT_FLOATS = 2**53
_KEY_ENDS = ("src", "dst")


class TypeKind(StrEnum):
    """What a declaration declares; also the order in which kinds are listed."""

    INTERFACE = "interface"
    NODE = "node"
    EDGE = "edge"


@dataclass(frozen=True, slots=True)
class Annotation:
    """An annotation that has no meaning for storage: text for people, agents and tools."""

    name: str
    value: str | None = None
    named: tuple[tuple[str, str], ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the wire form."""
        wire: dict[str, Any] = {"name": self.name, "value": self.value}
        if self.named:
            wire["kwargs"] = dict(self.named)
        return wire


def annotation_text(annotation: Annotation) -> str:
    """Return an annotation as it is written in a schema: `@description("a vessel")`."""
    if annotation.value is None:
        return f"@{annotation.name}"
    named = "".join(f", {name}={encode_string(value)}" for name, value in annotation.named)
    return f"@{annotation.name}({encode_string(annotation.value)}{named})"


@dataclass(frozen=True, slots=True)
class Embed:
    """`@embed`: the String property a vector is made from, and by which model."""

    source: str
    model: str | None = None


# --- constraints -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Key:
    """The properties an entity's id is made from; of an edge first its two ends."""

    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Unique:
    """No two entities share this tuple of values; a tuple with a null is exempt."""

    columns: tuple[str, ...]


class Metric(StrEnum):
    """How far apart two vectors are; the smaller, the nearer.

    `cosine` is one minus the cosine of their angle, `l2` the square of the Euclidean distance,
    `dot` one minus their product.
    """

    COSINE = "cosine"
    L2 = "l2"
    DOT = "dot"


@dataclass(frozen=True, slots=True)
class Index:
    """An index is wanted; of a vector possibly by another metric than `cosine`."""

    columns: tuple[str, ...]
    metric: Metric | None = None


JsonMembers: TypeAlias = Mapping[str, Callable[[Any], Any]]


@dataclass(frozen=True, slots=True)
class ValueConstraint(ABC):
    """A rule about the values of one property; its row is in `catalog.constraints`.

    `json_members` are the names of its other fields in JSON, with what reads each.
    """

    property: str
    json_members: ClassVar[JsonMembers] = {}

    def members(self) -> dict[str, Any]:
        """Return the JSON members beside the property."""
        names = [field.name for field in fields(self)][1:]
        return dict(zip(self.json_members, (getattr(self, n) for n in names), strict=True))

    @abstractmethod
    def argument_text(self) -> str:
        """Return the arguments after the property, as they are written in a schema."""


def read_bound(value: object) -> int | float | None:
    """Return a bound of a range in JSON; raise ValueError for anything else."""
    if value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
        return value
    raise ValueError(f"expected a number or null, found {brief(value)}")


def read_string(value: object) -> str:
    """Return a string in JSON; raise ValueError for anything else."""
    if isinstance(value, str):
        return value
    raise ValueError(f"expected str, found {brief(value)}")


@dataclass(frozen=True, slots=True)
class Range(ValueConstraint):
    """A number lies in a closed interval; either side may be open."""

    json_members: ClassVar[JsonMembers] = {"min": read_bound, "max": read_bound}
    minimum: int | float | None
    maximum: int | float | None

    def __post_init__(self) -> None:
        # `0..1` and `0.0..1.0` mean the same, so they are kept alike.
        object.__setattr__(self, "minimum", _exact_bound(self.minimum))
        object.__setattr__(self, "maximum", _exact_bound(self.maximum))

    def argument_text(self) -> str:
        """Return the bounds: `0..9`."""
        return "..".join("" if b is None else plain_number(b) for b in (self.minimum, self.maximum))


@dataclass(frozen=True, slots=True)
class Check(ValueConstraint):
    """A String matches a regular expression somewhere."""

    json_members: ClassVar[JsonMembers] = {"pattern": read_string}
    pattern: str

    def argument_text(self) -> str:
        """Return the pattern as a string literal."""
        return encode_string(self.pattern)


def _exact_bound(bound: float | None) -> int | float | None:
    """Return a bound as an integer when it is one that floats represent exactly."""
    if isinstance(bound, float) and bound.is_integer() and abs(bound) < _EXACT_FLOATS:
        return int(bound)
    return bound


Constraint: TypeAlias = Key | Unique | Index | ValueConstraint
COLUMN_CONSTRAINTS: Mapping[str, type[Key | Unique | Index]] = {
    "key": Key,
    "unique": Unique,
    "index": Index,
}


SHORTHANDS = (*COLUMN_CONSTRAINTS, f"index:{Metric.L2}", f"index:{Metric.DOT}")
"""The constraints of one property, as words; `index:l2` is an index by another metric."""


def shorthand_constraint(word: str, name: str) -> Constraint:
    """Return the constraint of a word beside a property."""
    kind, _, metric = word.partition(":")
    if metric:
        return Index((name,), Metric(metric))
    return COLUMN_CONSTRAINTS[kind]((name,))


def constraint_columns(constraint: Constraint) -> tuple[str, ...]:
    """Return the properties a constraint speaks of."""
    return (constraint.property,) if isinstance(constraint, ValueConstraint) else constraint.columns


def constraint_word(constraint: Constraint) -> str:
    """Return the annotation word of a constraint: `key`, `unique`, …."""
    return type(constraint).__name__.lower()


def constraint_text(constraint: Constraint) -> str:
    """Return a constraint as it is written in a body: `@unique(a, b)`.

    >>> constraint_text(Range("draught", 0, 30.5))
    '@range(draught, 0..30.5)'
    """
    match constraint:
        case Index(columns, Metric() as metric):
            arguments = f"{', '.join(columns)}, metric={encode_string(metric)}"
        case Key(columns) | Unique(columns) | Index(columns):
            arguments = ", ".join(columns)
        case ValueConstraint(name):
            arguments = f"{name}, {constraint.argument_text()}"
    return f"@{constraint_word(constraint)}({arguments})"


def constraint_to_json(constraint: Constraint) -> dict[str, Any]:
    """Return the wire form, tagged by kind."""
    match constraint:
        case Index(columns, Metric() as metric):
            return {"Index": {"properties": list(columns), "metric": str(metric)}}
        case Key(columns) | Unique(columns) | Index(columns):
            return {type(constraint).__name__: list(columns)}
        case ValueConstraint(name):
            return {type(constraint).__name__: {"property": name, **constraint.members()}}


def key_of(constraints: Iterable[Constraint]) -> tuple[str, ...]:
    """Return the members of the key among some constraints; empty when there is none."""
    return next((c.columns for c in constraints if isinstance(c, Key)), ())


def ordered_columns(names: Iterable[str], constraint: type, kind: TypeKind) -> tuple[str, ...]:
    """Return the members of a constraint by name; in a key of edges the ends come first."""
    ends = _KEY_ENDS if constraint is Key and kind is TypeKind.EDGE else ()
    given = set(names)
    return (*(end for end in ends if end in given), *sorted(given.difference(ends)))


def canonical_constraints(constraints: list[Constraint]) -> tuple[Constraint, ...]:
    """Return constraints without repetition, in the order of their wire text."""
    by_text = {json.dumps(constraint_to_json(c), sort_keys=True): c for c in constraints}
    return tuple(by_text[text] for text in sorted(by_text))


# --- types -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Property:
    """A property of a type.

    `shorthands` are the words of `@key`, `@unique`, `@index` on an interface property; on nodes and
    edges they have become constraints of the type. `satisfies` names the interfaces that require
    this property; `declared_directly` is false when it exists only because of them.
    """

    name: str
    type: PropertyType
    annotations: tuple[Annotation, ...] = ()
    embed: Embed | None = None
    shorthands: tuple[str, ...] = ()
    declared_directly: bool = True
    satisfies: tuple[str, ...] = ()
    rename_from: str | None = None
    span: TextSpan = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class Cardinality:
    """How many edges of a type may leave one node; no maximum means any number."""

    minimum: int = 0
    maximum: int | None = None

    def __str__(self) -> str:
        return f"{self.minimum}..{'' if self.maximum is None else self.maximum}"


ID = Property(name="id", type=PropertyType(Scalar.STRING))
SRC = Property(name="src", type=PropertyType(Scalar.STRING))
DST = Property(name="dst", type=PropertyType(Scalar.STRING))


@dataclass(frozen=True, slots=True, kw_only=True)
class InterfaceType:
    """Properties several node types share."""

    name: str
    properties: Mapping[str, Property]
    span: TextSpan = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeType:
    """A kind of node."""

    name: str
    properties: Mapping[str, Property]
    constraints: tuple[Constraint, ...] = ()
    interfaces: tuple[str, ...] = ()
    annotations: tuple[Annotation, ...] = ()
    rename_from: str | None = None
    span: TextSpan = field(default=NO_SPAN, compare=False)

    @property
    def key(self) -> tuple[str, ...]:
        """The key properties by name; empty when ids are generated."""
        return key_of(self.constraints)

    def lookup(self, name: str) -> Property | None:
        """Return a declared property or the system property `id`."""
        return ID if name == ID.name else self.properties.get(name)


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeType:
    """A kind of edge."""

    name: str
    src: str
    dst: str
    properties: Mapping[str, Property]
    cardinality: Cardinality = Cardinality()
    constraints: tuple[Constraint, ...] = ()
    annotations: tuple[Annotation, ...] = ()
    rename_from: str | None = None
    span: TextSpan = field(default=NO_SPAN, compare=False)

    @property
    def key(self) -> tuple[str, ...]:
        """`src`, `dst` and the key properties by name; empty when ids are generated."""
        return key_of(self.constraints)

    def lookup(self, name: str) -> Property | None:
        """Return a declared property or the system property `id`."""
        return ID if name == ID.name else self.properties.get(name)


Definition: TypeAlias = InterfaceType | NodeType | EdgeType


def definition_kind(definition: Definition) -> TypeKind:
    """Return what kind of declaration a definition comes from."""
    return TypeKind(type(definition).__name__.removesuffix("Type").lower())


def type_constraints(definition: Definition) -> tuple[Constraint, ...]:
    """Return the constraints of a type; those of an interface are its properties' shorthands."""
    if not isinstance(definition, InterfaceType):
        return definition.constraints
    return canonical_constraints(
        [
            shorthand_constraint(word, property_.name)
            for property_ in definition.properties.values()
            for word in property_.shorthands
        ]
    )


def vector_metric(definition: Definition, name: str) -> Metric:
    """Return how distances between vectors of a property are measured."""
    declared = (c for c in type_constraints(definition) if isinstance(c, Index))
    metric = next((c.metric for c in declared if c.columns == (name,)), None)
    return metric or Metric.COSINE


@dataclass(frozen=True, slots=True)
class Catalog:
    """All types of a graph; node, edge and interface names are three separate namespaces."""

    interfaces: Mapping[str, InterfaceType] = field(default_factory=dict)
    nodes: Mapping[str, NodeType] = field(default_factory=dict)
    edges: Mapping[str, EdgeType] = field(default_factory=dict)
    _edges_folded: dict[str, str] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        self._edges_folded.update({name.lower(): name for name in self.edges})

    def definitions(self) -> list[Definition]:
        """Return every type: interfaces, then nodes, then edges, each by name."""
        kinds: tuple[Mapping[str, Definition], ...] = (self.interfaces, self.nodes, self.edges)
        return [types[name] for types in kinds for name in sorted(types)]

    def edge(self, word: str) -> EdgeType | None:
        """Return an edge type by the word used for it: exact, else case-insensitive."""
        name = word if word in self.edges else self._edges_folded.get(word.lower())
        return None if name is None else self.edges[name]

    def incident_edges(self, node_name: str) -> list[EdgeType]:
        """Return the edge types that start or end at a node type, by name."""
        incident = (e for e in self.edges.values() if node_name in (e.src, e.dst))
        return sorted(incident, key=lambda edge: edge.name)

    def _repr_html_(self) -> str:
        return schema_html(self.describe())

    def describe(self, rows: Mapping[str, int] | None = None) -> list[dict[str, Any]]:
        """Return nodes and then edges with their properties, as notebooks show them.

        `rows` are numbers of entities by `node:T` and `edge:E`.
        """
        counts = rows or {}
        nodes = [
            {"kind": "node", **_describe(one), "rows": counts.get(f"node:{name}")}
            for name, one in sorted(self.nodes.items())
        ]
        edges = [
            {
                "kind": "edge",
                **_describe(one),
                "src": one.src,
                "dst": one.dst,
                "rows": counts.get(f"edge:{name}"),
            }
            for name, one in sorted(self.edges.items())
        ]
        return nodes + edges


def _describe(type_: NodeType | EdgeType) -> dict[str, Any]:
    """Return the name and the properties of a type, its key first, with their constraints."""
    properties = [
        {"name": one.name, "type": str(one.type), "rules": _rules(type_, one.name)}
        for one in sorted(
            type_.properties.values(), key=lambda p: (p.name not in type_.key, p.name)
        )
    ]
    return {"name": type_.name, "properties": properties}


def _rules(type_: NodeType | EdgeType, name: str) -> str:
    """Return the names of the constraints of a property."""
    rules = []
    for one in type_.constraints:
        columns = (one.property,) if isinstance(one, ValueConstraint) else one.columns
        if name in columns:
            rules.append(type(one).__name__.lower())
    return ", ".join(rules)


# ----------------------------------------------------------------------
# Accepted types: declarations with their identities


KIND_ORDER: Mapping[TypeKind, int] = {kind: order for order, kind in enumerate(TypeKind)}


class SchemaCorrupt(OmniError):
    """An accepted schema contradicts itself."""

    def __init__(self, message: str) -> None:
        super().__init__(
            f"the accepted schema is corrupt: {message}",
            code="schema_corrupt",
            category=Category.INTERNAL,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptedType:
    """A type with its identities; an interface stores nothing, so it has no incarnation.

    The definition is kept without source places and rename hints, its properties by name.
    """

    id: TypeId
    incarnation: IncarnationId | None
    definition: Definition
    property_ids: Mapping[str, PropertyId]

    def __post_init__(self) -> None:
        object.__setattr__(self, "definition", _stored_definition(self.definition))
        if (self.incarnation is None) != (self.kind is TypeKind.INTERFACE):
            raise SchemaCorrupt(f"{self.entity} has the wrong kind of incarnation")
        if set(self.property_ids) != set(self.definition.properties):
            raise SchemaCorrupt(f"{self.entity} does not give each property one identity")

    @property
    def kind(self) -> TypeKind:
        """What kind of declaration this is."""
        return definition_kind(self.definition)

    @property
    def name(self) -> str:
        """The name the type has now."""
        return self.definition.name

    @property
    def entity(self) -> str:
        """The spelling of this type in refusals: `node:Ship`."""
        return f"{self.kind}:{self.name}"

    @property
    def key_order(self) -> tuple[str, ...]:
        """The members of the key in the order in which they form ids: ends, then by identity.

        It does not change when a property is renamed.
        """
        columns = key_of(type_constraints(self.definition))
        ends = [name for name in columns if name not in self.property_ids]
        rest = [name for name in columns if name in self.property_ids]
        return (*ends, *sorted(rest, key=lambda name: self.property_ids[name]))

    @property
    def key_identity(self) -> tuple[int | str, ...]:
        """The members of the key by identity; equal keys make equal ids."""
        return tuple(self.property_ids.get(name, name) for name in self.key_order)

    @property
    def order(self) -> tuple[int, str]:
        """Sort key: interfaces, nodes, edges, each by name."""
        return KIND_ORDER[self.kind], self.name


def _stored_definition(definition: Definition) -> Definition:
    properties = {
        name: replace(property_, rename_from=None, span=NO_SPAN)
        for name, property_ in sorted(definition.properties.items())
    }
    if isinstance(definition, InterfaceType):
        return replace(definition, properties=properties, span=NO_SPAN)
    return replace(definition, properties=properties, rename_from=None, span=NO_SPAN)


# ----------------------------------------------------------------------
# Columns of edge endpoints: `from` and `to`, or `src` and `dst`
#
# Edge types may have properties called `from` and `to`. Then `src` and `dst` are the ends, which no
# property of an edge can be called.


_ENDPOINT_WORDS = {"src": "from", "dst": "to"}


def endpoint_column_names(properties: Container[str]) -> dict[str, str]:
    """Return the column of each endpoint in tables that also have the properties of the edge."""
    return {end: end if word in properties else word for end, word in _ENDPOINT_WORDS.items()}


def resolve_endpoint_columns(columns: Container[str], properties: Container[str]) -> dict[str, str]:
    """Return the endpoint that each column name means.

    `from` is the property of that name only where `src` is given, too.
    """
    taken = {word for end, word in _ENDPOINT_WORDS.items() if end in columns and word in properties}
    meant = {name: end for end, word in _ENDPOINT_WORDS.items() for name in (end, word)}
    return {name: end for name, end in meant.items() if name not in taken}
