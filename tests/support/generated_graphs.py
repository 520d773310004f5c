"""Random small graphs: a few types with every kind of property, and data for them.

Everything is drawn from one `Random`, so that a seed gives volume and Hypothesis, handing in its
own, can shrink: the first choice of every list and the low end of every range is the simple one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any, TypeAlias, TypeVar

from omnigraph.catalog import Catalog
from omnigraph.types import PropertyType, Scalar, entity_id
from tests.support.schemas import KEYABLE, Decl, Prop, Rule, Sketch, text_of

_T = TypeVar("_T")
Pools: TypeAlias = Mapping[str, Sequence[Any]]
"""JSON values by the spelling of their type."""

NAMES: Mapping[str, str] = {
    "String": "s",
    "I32": "i",
    "Bool": "b",
    "F64": "d",
    "I64": "l",
    "U32": "u",
    "U64": "w",
    "F32": "f",
    "Date": "day",
    "DateTime": "at",
    "enum": "kind",
    "[String]": "tags",
    "[I32]": "nums",
    "[F32]": "sizes",
    "[F64]": "weights",
    "[U64]": "sums",
    "[Bool]": "flags",
    "[Date]": "days",
    "[DateTime]": "times",
    "Vector(2)": "v",
    "Blob": "file",
}
"""The name of a property tells its type."""

VECTOR_INDEXES = ("index", 'index(metric="l2")', 'index(metric="dot")')
ENUM = ("x", "y", "z-1")
_F32_TENTH = 0.10000000149011612
POOLS: Pools = {
    "String": (
        *(
            "a",
            "b",
            "",
            "ab",
            "B",
            "ship",
            "The ships sail",
            "é",
            "a b",
            "sail of a ship",
            "日本 abc",
        ),
        *("%", "_", 'say "x"\\\n', "🚢", "e\u0301", "\uffff", "\U00010000", "a\0b"),
    ),
    "Bool": (False, True),
    "I32": (0, 1, 2, -1, 3, 2**31 - 1, -(2**31)),
    "I64": (0, 1, 2, -1, 3, 2**53 + 1, 2**63 - 1, -(2**63)),
    "U32": (0, 1, 2, 3, 2**32 - 1),
    "U64": (0, 1, 2, 3, 2**53 + 1, 2**63, 2**64 - 1),
    "F32": (0.0, 1.0, 2.0, 0.5, 0.1, -1.5, -0.0, 16777216.0, 3.4028234663852886e38, 1e-45),
    "F64": (0.0, 1.0, 2.0, 0.5, 0.1, _F32_TENTH, -2.5, -0.0, 2.0**53, 2.0**63, 1e300, 5e-324),
    "Date": ("1970-01-01", "2024-02-29", "1969-12-31", "0001-01-01", "9999-12-31"),
    "DateTime": (
        *("1970-01-01T00:00:00.000Z", "2010-02-28T23:59:59.999Z", "1969-12-31T23:59:59.999Z"),
        *("2010-02-28T23:59:59.998Z", "0001-01-01T00:00:00.000Z", "9999-12-31T23:59:59.999Z"),
    ),
    "enum": ENUM,
    "Vector(2)": ([1, 0], [0, 1], [1, 1], [1, -1], [2, 0], [3, 4], [-1, 0.5], [0, 0]),
    "Blob": ("base64:aGk=", "base64:"),
}


@dataclass(frozen=True)
class Sample:
    """A schema and data for it, both as text."""

    schema: str
    lines: tuple[str, ...]


def seldom(random: Random, share: float) -> bool:
    """Return True for a share of all times; the simple outcome is False."""
    return random.random() >= 1 - share


def early(random: Random, choices: Sequence[_T]) -> _T:
    """Return one of several things, those in front more often."""
    return choices[min(random.randrange(len(choices)), random.randrange(len(choices)))]


def some_value(random: Random, base: str) -> Any:
    """Return a JSON value of a type."""
    if base.startswith("["):
        size = early(random, (0, 1, 2, 3))
        return [some_value(random, base[1:-1]) for _ in range(size)]
    return early(random, POOLS[base])


# --- schemas -----------------------------------------------------------------------------------


def some_sketch(random: Random) -> Sketch:
    """Return a schema of one to three node types and none to three edge types."""
    nodes = [_node(random, name) for name in ("A", "B", "C")[: random.randint(1, 3)]]
    names = [node.name for node in nodes]
    edges = [
        Decl(
            "edge",
            name,
            _props(random, random.randint(0, 3)),
            ends=(random.choice(names), random.choice(names)),
        )
        for name in ("Knows", "Has", "PartOf")[: random.choice((1, 2, 3, 0))]
    ]
    return (*nodes, *edges)


def _props(random: Random, count: int) -> tuple[Prop, ...]:
    found: dict[str, Prop] = {}
    for _ in range(count):
        base = random.choice(list(NAMES))
        prop = Prop(NAMES[base], base, nullable=not seldom(random, 0.3))
        if base == "enum":
            prop = replace(prop, values=ENUM)
        if base in KEYABLE and seldom(random, 0.2):
            prop = replace(prop, words=("index",))
        if base == "Vector(2)" and seldom(random, 0.6):
            prop = replace(prop, words=(random.choice(VECTOR_INDEXES),))
        found[prop.name] = prop
    return tuple(found.values())


def _node(random: Random, name: str) -> Decl:
    props = _props(random, random.randint(1, 6))
    kind = random.choice(("none", "one", "two"))
    if kind == "none":
        return Decl("node", name, props)
    bases = [base for base in KEYABLE if base != "enum"]
    first = Prop("k", random.choice(bases), nullable=False)
    if kind == "one":
        return Decl("node", name, (replace(first, words=("key",)), *props))
    second = Prop("j", random.choice(bases), nullable=False)
    return Decl("node", name, (first, second, *props), (Rule("key", ("k", "j")),))


# --- data --------------------------------------------------------------------------------------


def some_sample(random: Random) -> Sample:
    """Return a schema and none to thirty nodes, none to sixty edges for it."""
    return _filled(random, some_sketch(random))


def sample_with_interface(random: Random) -> Sample:
    """Return such a graph of two or three node types that implement `I`, with all it has."""
    shared = tuple(replace(prop, words=()) for prop in _props(random, random.randint(1, 5)))
    key = (Prop("k", "String", nullable=False),) if seldom(random, 0.5) else ()
    members = (*(replace(prop, words=("key",)) for prop in key), *shared)
    nodes = [Decl("node", name, members, implements=("I",)) for name in ("A", "B", "C")]
    nodes = nodes[: random.randint(2, 3)]
    names = [node.name for node in nodes]
    edges = [
        Decl("edge", name, ends=(random.choice(names), random.choice(names)))
        for name in ("Knows", "Has", "PartOf")
    ]
    return _filled(random, (Decl("interface", "I", (*key, *shared)), *nodes, *edges))


def _filled(random: Random, sketch: Sketch) -> Sample:
    """Return a schema with data for it."""
    lines: list[str] = []
    ids: dict[str, list[str]] = {}
    empty = seldom(random, 0.03)
    for decl in sketch:
        if decl.kind == "node":
            size = 0 if empty else early(random, (3, 4, 6, 2, 9, 12, 1, 20, 30, 0))
            records = _nodes(random, decl, size)
            ids[decl.name] = list(records)
            lines += [_line({"type": decl.name, "data": data}) for data in records.values()]
    for decl in sketch:
        if decl.kind == "edge":
            sources, targets = ids[decl.ends[0]], ids[decl.ends[1]]
            size = early(random, (4, 6, 10, 3, 15, 20, 2, 30, 60, 0)) if sources and targets else 0
            for number in range(size):
                data = {"id": f"{decl.name[0].lower()}{number}", **_data(random, decl.props)}
                ends = {"from": early(random, sources), "to": early(random, targets)}
                lines.append(_line({"edge": decl.name, **ends, "data": data}))
    return Sample(text_of(sketch), tuple(lines))


def _nodes(random: Random, decl: Decl, size: int) -> dict[str, dict[str, Any]]:
    """Return the data of nodes by what edges call them; a key that comes twice is one node."""
    found: dict[str, dict[str, Any]] = {}
    keys = [prop for prop in decl.props if prop.name in ("j", "k")]
    for number in range(size):
        data = _data(random, [prop for prop in decl.props if prop not in keys])
        if keys:
            members = {prop.name: _key(random, prop.base) for prop in keys}
            found[_id_of(members, keys)] = {**members, **data}
        else:
            id_ = f"{decl.name.lower()}{number}"
            found[id_] = {"id": id_, **data}
    return found


def _key(random: Random, base: str) -> Any:
    if base in ("I32", "I64", "U32", "U64"):
        return random.choice((random.randrange(40), early(random, POOLS[base])))
    if base == "String":
        return random.choice((f"n{random.randrange(40)}", early(random, POOLS[base]) or "-"))
    return random.choice(POOLS[base])


def _data(random: Random, props: Sequence[Prop]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for prop in props:
        if not (prop.nullable and seldom(random, 0.3)):
            found[prop.name] = some_value(random, prop.base)
    return found


def _line(record: Mapping[str, Any]) -> str:
    return json.dumps(record, ensure_ascii=False)


def _id_of(members: Mapping[str, Any], keys: Sequence[Prop]) -> str:
    """Return the id of a node of a fresh graph: its key, several members by name as JSON."""
    types = {prop.name: PropertyType(Scalar(prop.base)) for prop in keys}
    typed = [(types[name].from_json(members[name]), types[name]) for name in sorted(members)]
    return entity_id(typed)


def pools_of(sample: Sample, catalog: Catalog) -> Pools:
    """Return values to ask for: those that are there come first."""
    pools: dict[str, list[Any]] = {base: [] for base in POOLS}
    for record in map(json.loads, sample.lines):
        kinds = catalog.nodes if "type" in record else catalog.edges
        properties = kinds[record.get("type") or record["edge"]].properties
        pools["String"] += [record[end] for end in ("from", "to") if end in record]
        for name, value in record["data"].items():
            scalar = "String" if name == "id" else str(properties[name].type.scalar)
            many = name != "id" and properties[name].type.is_list
            pools.setdefault(scalar, []).extend(value if many else [value])
    return {base: [*pools[base], *POOLS[base]] for base in POOLS}
