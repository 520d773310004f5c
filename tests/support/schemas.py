"""Hypothesis strategies for valid schemas, for texts that mean the same, and for edits.

A `Sketch` is a schema before it is text. Everything in it remembers the name it had before the
first edit, so that the text of an edited sketch carries the rename hints. Interface properties have
names of their own (`i0`, `i1`, …), the same wherever they occur, so that an edit finds all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from random import Random
from typing import TypeAlias

from hypothesis import strategies as st

NUMBERS = ("I32", "I64", "U32", "U64", "F32", "F64")
KEYABLE = ("String", "Bool", "Date", "DateTime", *NUMBERS, "enum")
BASES = (*KEYABLE, "Blob", "[String]", "[I32]", "Vector(2)")
VALUES = ("a", "b", "c", "d-1", "2e", "_x")


@dataclass(frozen=True)
class Prop:
    """A property; `words` are shorthands, `notes` other annotations as text."""

    name: str
    base: str
    nullable: bool = True
    values: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    embed: str | None = None
    origin: str | None = None

    @property
    def indexable(self) -> bool:
        return self.base in KEYABLE

    @property
    def textual(self) -> bool:
        return self.base in ("String", "enum")


@dataclass(frozen=True)
class Rule:
    """A body constraint: `@word(names, rest)`."""

    word: str
    names: tuple[str, ...]
    rest: str = ""

    def text(self) -> str:
        return f"@{self.word}({', '.join((*self.names, *filter(None, [self.rest])))})"


@dataclass(frozen=True)
class Decl:
    """A declaration; `ends` and `card` are of edges, `implements` of nodes."""

    kind: str
    name: str
    props: tuple[Prop, ...] = ()
    rules: tuple[Rule, ...] = ()
    implements: tuple[str, ...] = ()
    ends: tuple[str, str] = ("", "")
    card: str = ""
    notes: tuple[str, ...] = ()
    origin: str | None = None

    def prop(self, name: str) -> Prop | None:
        return next((p for p in self.props if p.name == name), None)


Sketch: TypeAlias = tuple[Decl, ...]
Edit: TypeAlias = Callable[[st.DrawFn, Sketch], Sketch]


def of_kind(sketch: Sketch, *kinds: str) -> list[Decl]:
    """Return the declarations of some kinds."""
    return [decl for decl in sketch if decl.kind in kinds]


def effective(sketch: Sketch, decl: Decl) -> list[Prop]:
    """Return a declaration's own properties and those its interfaces inject."""
    found = {p.name: p for p in decl.props}
    for interface in of_kind(sketch, "interface"):
        if interface.name in decl.implements:
            for prop in interface.props:
                found.setdefault(prop.name, prop)
    return list(found.values())


# --- text --------------------------------------------------------------------------------------


def text_of(sketch: Sketch, random: Random | None = None) -> str:
    """Return the text of a sketch; given randomness, any of the texts that mean the same."""
    return _Writer(random).schema(sketch)


class _Writer:
    def __init__(self, random: Random | None) -> None:
        self.random = random

    def mixed(self, items: Iterable[str]) -> list[str]:
        found = list(items)
        if self.random is not None:
            self.random.shuffle(found)
        return found

    def comment(self) -> str:
        choices = ("\n", " // @key node X { }\n", " /* } enum( */ ", "\n\n\t")
        return "\n" if self.random is None else self.random.choice(choices)

    def schema(self, sketch: Sketch) -> str:
        return self.comment().join(self.mixed(self.decl(decl) for decl in sketch)) + "\n"

    def decl(self, decl: Decl) -> str:
        rules = [rule.text() for rule in decl.rules]
        props = []
        for prop in decl.props:
            words, body = list(prop.words), []
            if self.random is not None and decl.kind != "interface" and self.random.random() < 0.5:
                words, body = [], [f"@{word}({prop.name})" for word in words]
            props.append(self.prop(prop, words))
            rules += body
        head = f"{decl.kind} {decl.name}"
        notes = "".join(f" {note}" for note in self.mixed([*decl.notes, *hint(decl)]))
        if decl.kind == "edge":
            head += f": {decl.ends[0]} -> {decl.ends[1]} {decl.card}{notes}"
        elif decl.kind == "node":
            implements = ", ".join(self.mixed(decl.implements))
            head += notes + (f" implements {implements}" if implements else "")
        members = self.mixed([*props, *rules])
        gap = self.comment()
        return f"{head} {{{gap}{gap.join(members)}{self.comment()}}}"

    def prop(self, prop: Prop, words: list[str]) -> str:
        base = prop.base
        if base == "enum":
            base = f"enum({', '.join(self.mixed(prop.values))})"
        notes = [*prop.notes, *hint(prop), *(f"@{word}" for word in words)]
        if prop.embed is not None:
            notes.append(f'@embed({prop.embed}, model="m")')
        mark = "?" if prop.nullable else ""
        return " ".join([f"{prop.name}: {base}{mark}", *self.mixed(notes)])


def hint(thing: Prop | Decl) -> list[str]:
    """Return the rename hint of something whose name was edited."""
    renamed = thing.origin is not None and thing.origin != thing.name
    return [f'@rename_from("{thing.origin}")'] if renamed else []


# --- schemas -----------------------------------------------------------------------------------


@st.composite
def props(draw: st.DrawFn, name: str, *, nullable: bool | None = None) -> Prop:
    """Draw a property without constraints."""
    base = draw(st.sampled_from((*BASES, "enum", "enum", "I32", "I64")))
    values = draw(st.sets(st.sampled_from(VALUES), min_size=1, max_size=4))
    return Prop(
        name,
        base,
        draw(st.booleans()) if nullable is None else nullable,
        tuple(sorted(values)) if base == "enum" else (),
        notes=tuple(draw(st.sets(st.sampled_from(NOTES), max_size=2))),
    )


NOTES = ('@description("d")', "@tag", '@unit("m", scale=2)')
HEADER_NOTES = (*NOTES, '@instruction("i")')


@st.composite
def sketches(draw: st.DrawFn) -> Sketch:
    """Draw a valid schema."""
    interfaces = draw(_interfaces())
    nodes = [draw(_node(i, interfaces)) for i in range(draw(st.sampled_from((2, 1, 3, 0))))]
    edges: list[Decl] = []
    if nodes:
        names = [node.name for node in nodes]
        edges = [draw(_edge(f"E{i}", names)) for i in range(draw(st.integers(0, 2)))]
    return tuple(_settled(decl) for decl in (*interfaces, *nodes, *edges))


def _settled(decl: Decl) -> Decl:
    """Return a declaration whose present names are the ones it is known by."""
    kept = tuple(replace(p, origin=p.name) for p in decl.props)
    return replace(decl, props=kept, origin=decl.name)


@st.composite
def _interfaces(draw: st.DrawFn) -> list[Decl]:
    pool = [draw(props(f"i{i}")) for i in range(3)]
    words = st.sets(st.sampled_from(("index", "unique"))).map(tuple)
    metrics = st.sampled_from(((), ("index",), ('index(metric="l2")',), ('index(metric="dot")',)))
    pool = [replace(p, words=draw(metrics)) if p.base.startswith("Vector") else p for p in pool]
    pool = [replace(p, words=draw(words)) if p.indexable else p for p in pool]
    keyable = [p for p in pool if p.base in KEYABLE and not p.nullable]
    if draw(st.booleans()) and keyable:
        keyed = keyable[0]
        pool = [replace(p, words=(*p.words, "key")) if p is keyed else p for p in pool]
    return [
        Decl("interface", f"I{i}", tuple(draw(st.sets(st.sampled_from(pool)))))
        for i in range(draw(st.sampled_from((1, 0, 2))))
    ]


@st.composite
def _node(draw: st.DrawFn, index: int, interfaces: list[Decl]) -> Decl:
    own = [draw(props(f"p{i}")) for i in range(draw(st.sampled_from((2, 0, 1, 3, 4))))]
    implements = [i for i in interfaces if draw(st.booleans())]
    wanted = {p.name: p for interface in implements for p in interface.props}
    declared = [replace(p, words=(), notes=()) for p in wanted.values() if draw(st.booleans())]
    injected = [p for p in wanted.values() if p.name not in {d.name for d in declared}]
    own += declared
    rules = draw(_rules([*own, *injected], ("id",)))
    if not any("key" in p.words for p in injected):
        rules += draw(_key([*own, *injected]))
    sources = [p.name for p in own if p.textual]
    own = [
        replace(p, embed=sources[0])
        if p.base == "Vector(2)" and sources and p.name not in wanted and draw(st.booleans())
        else p
        for p in own
    ]
    return Decl(
        "node",
        f"N{index}",
        tuple(own),
        tuple(rules),
        tuple(i.name for i in implements),
        notes=tuple(draw(st.sets(st.sampled_from(HEADER_NOTES), max_size=2))),
    )


@st.composite
def _key(draw: st.DrawFn, available: list[Prop]) -> list[Rule]:
    keyable = sorted(p.name for p in available if p.base in KEYABLE and not p.nullable)
    if not keyable or not draw(st.booleans()):
        return []
    return [Rule("key", tuple(draw(st.sets(st.sampled_from(keyable), min_size=1, max_size=2))))]


@st.composite
def _rules(draw: st.DrawFn, available: list[Prop], system: tuple[str, ...]) -> list[Rule]:
    rules: list[Rule] = []
    names = sorted([*system, *(p.name for p in available if p.indexable)])
    for _ in range(draw(st.integers(0, 2))):
        columns = draw(st.sets(st.sampled_from(names), min_size=1, max_size=2))
        rules.append(Rule(draw(st.sampled_from(("unique", "index"))), tuple(sorted(columns))))
    if system == ("id",):
        for prop in available:
            if prop.base in NUMBERS and draw(st.booleans()):
                rules.append(Rule("range", (prop.name,), "0..100"))
            if prop.textual and draw(st.booleans()):
                rules.append(Rule("check", (prop.name,), '"^."'))
    return rules


@st.composite
def _edge(draw: st.DrawFn, name: str, nodes: list[str]) -> Decl:
    own = [draw(props(f"p{i}")) for i in range(draw(st.integers(0, 2)))]
    ends = draw(st.tuples(st.sampled_from(nodes), st.sampled_from(nodes)))
    return Decl(
        "edge",
        name,
        tuple(own),
        tuple(draw(_rules(own, ("id", "src", "dst")))),
        ends=ends,
        card=draw(st.sampled_from(("", "@card(0..1)"))),
        notes=tuple(draw(st.sets(st.sampled_from(HEADER_NOTES), max_size=1))),
    )


# --- tools for edits ---------------------------------------------------------------------------


def fresh(sketch: Sketch, letter: str) -> str:
    """Return a name nothing has or had."""
    used: set[str | None] = set()
    for decl in sketch:
        used |= {decl.name, decl.origin}
        used |= {name for prop in decl.props for name in (prop.name, prop.origin)}
    return next(name for i in range(10, 1000) if (name := f"{letter}{i}") not in used)


def update(sketch: Sketch, old: Decl, new: Decl) -> Sketch:
    """Return the sketch with one declaration replaced."""
    return tuple(new if decl is old else decl for decl in sketch)


def each_prop(sketch: Sketch, owner: Decl, name: str, change: Callable[[Prop], Prop]) -> Sketch:
    """Change a property; an interface's wherever it is declared."""
    shared = name.startswith("i")

    def edited(decl: Decl) -> Decl:
        if decl is not owner and not (shared and decl.kind in ("interface", "node")):
            return decl
        return replace(decl, props=tuple(change(p) if p.name == name else p for p in decl.props))

    return tuple(edited(decl) for decl in sketch)


def rules_named(sketch: Sketch, name: str) -> list[tuple[Decl, Rule]]:
    """Return the body constraints that speak of a property of this name."""
    return [(decl, rule) for decl in sketch for rule in decl.rules if name in rule.names]


def is_keyed(sketch: Sketch, decl: Decl, prop: Prop) -> bool:
    """Return whether a property is part of a key, here or wherever its interface is implemented."""
    places = rules_named(sketch, prop.name)
    if not prop.name.startswith("i"):
        places = [(d, r) for d, r in places if d is decl]
    words = {w for d in sketch for p in d.props if p.name == prop.name for w in p.words}
    return "key" in words or any(rule.word == "key" for _, rule in places)


def pick(
    draw: st.DrawFn, sketch: Sketch, *kinds: str, where: Callable[[Prop], bool] = lambda _: True
) -> tuple[Decl, Prop] | None:
    """Draw one declared property of some kinds of type."""
    found = [(decl, prop) for decl in of_kind(sketch, *kinds) for prop in decl.props if where(prop)]
    return draw(st.sampled_from(found)) if found else None
