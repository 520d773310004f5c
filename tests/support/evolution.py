"""Random lives of a graph, its schema above all, beside a model that is nothing but dictionaries.

The model knows neither columns nor identities: a type is a dictionary of properties, and so is each
of its entities. What it predicts after every step, the graph must show, now and whenever somebody
looks back.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import omnigraph.graph as og
from omnigraph.graph.modes import LoadMode
from omnigraph.write import ValidationFailed
from tests.support.changes import read_state

POOLS: dict[str, Sequence[Any]] = {
    "I32": (-5, 0, 1, 7),
    "I64": (-5, 0, 1, 2**40),
    "U32": (0, 3, 4_000_000_000),
    "U64": (0, 3, 2**60),
    "F32": (-0.5, 0.0, 1.5),
    "F64": (-0.5, 0.0, 12345.6789012345),
    "enum(a, b)": ("a", "b"),
    "enum(a, b, c)": ("a", "b", "c"),
    "String": ("a", "x", "it's", ""),
    "Bool": (True, False),
    "Date": ("2020-01-01", "1969-12-31"),
    "[I32]": ([], [1, -2]),
    "[I64]": ([], [2**40]),
    "Vector(2)": ([0.5, 1.0], [0.0, -1.0]),
}
WIDER = {
    "I32": "I64",
    "U32": "U64",
    "F32": "F64",
    "[I32]": "[I64]",
    "enum(a, b)": "enum(a, b, c)",
    "enum(a, b, c)": "String",
}
PLAIN = ("I32", "I64", "U32", "U64", "F32", "F64", "enum(a, b)", "String", "Bool", "Date")
NAMES = tuple(f"p{number}" for number in range(6))
TYPES = tuple(f"T{number}" for number in range(4))
IDS = ("a", "b", "c", "d", "e")


@dataclass
class Prop:
    """A property: its type without the mark, and what the schema says of it."""

    base: str
    nullable: bool = True
    default: Any = None
    unique: bool = False
    positive: bool = False
    origin: str | None = None

    def text(self, name: str) -> str:
        """Return the declaration."""
        words = [f"{name}: {self.base}{'?' if self.nullable else ''}"]
        if self.default is not None:
            shown = str(self.default).lower() if self.base == "Bool" else self.default
            words.append(f'@default("{shown}")')
        if self.unique:
            words.append("@unique")
        if self.origin is not None:
            words.append(f'@rename_from("{self.origin}")')
        if self.positive:
            words.append(f"\n  @range({name}, 0..)")
        return " ".join(words)


@dataclass
class Type:
    """A node type with a key, or an edge type of nodes of the first type, and its entities."""

    is_edge: bool
    props: dict[str, Prop] = field(default_factory=dict)
    rows: dict[str, dict[str, Any]] = field(default_factory=dict)
    origin: str | None = None
    accepted: frozenset[str] = frozenset()

    def free(self) -> list[str]:
        """Return names that mean nothing, neither in the accepted schema nor in this one."""
        return [name for name in NAMES if name not in self.props and name not in self.accepted]

    @property
    def system(self) -> tuple[str, ...]:
        """What entities have besides properties."""
        return ("src", "dst") if self.is_edge else ("k",)


@dataclass
class World:
    """All types of one branch; `home` is the node type edges connect, which is never dropped."""

    types: dict[str, Type]
    home: str
    accepted: frozenset[str] = frozenset()

    def free(self) -> list[str]:
        """Return names of types that mean nothing."""
        return [name for name in TYPES if name not in self.types and name not in self.accepted]

    def text(self) -> str:
        """Return the schema."""
        found = []
        for name, type_ in self.types.items():
            hint = f' @rename_from("{type_.origin}")' if type_.origin is not None else ""
            key = "" if type_.is_edge else "  k: String @key\n"
            body = key + "".join(f"  {p.text(n)}\n" for n, p in type_.props.items())
            head = f"edge {name}: {self.home} -> {self.home}" if type_.is_edge else f"node {name}"
            found.append(f"{head}{hint} {{\n{body}}}\n")
        return "".join(found)

    def state(self) -> dict[str, dict[str, dict[str, Any]]]:
        """Return every entity, as `read_state` does."""
        return {name: copy.deepcopy(type_.rows) for name, type_ in self.types.items()}

    def settle(self) -> None:
        """Forget what only the last migration reported, and note what is accepted now."""
        self.accepted = frozenset(self.types)
        for type_ in self.types.values():
            type_.origin, type_.accepted = None, frozenset(type_.props)
            for prop in type_.props.values():
                prop.origin = None


def broken(world: World) -> int:
    """Count the entities that break a rule: each nullity, range, and later holder of a value."""
    count = 0
    for type_ in world.types.values():
        for name, prop in type_.props.items():
            values = [row[name] for row in type_.rows.values()]
            there = [value for value in values if value is not None]
            count += 0 if prop.nullable else len(values) - len(there)
            count += sum(value < 0 for value in there) if prop.positive else 0
            count += len(there) - len(set(there)) if prop.unique else 0
    return count


# --- edits of a schema -------------------------------------------------------------------------


def _edit(world: World, chance: random.Random) -> None:
    name = chance.choice(list(world.types))
    edit: Callable[[World, str, random.Random], None] = chance.choice(EDITS)
    edit(world, name, chance)


def _add(world: World, name: str, chance: random.Random) -> None:
    type_ = world.types[name]
    free = type_.free()
    if not free:
        return
    prop = Prop(chance.choice(list(POOLS)))
    if prop.base in PLAIN and chance.random() < 0.4:
        prop.nullable, prop.default = False, chance.choice([v for v in POOLS[prop.base] if v != ""])
    new = chance.choice(free)
    type_.props[new] = prop
    for row in type_.rows.values():
        row[new] = prop.default


def _drop(world: World, name: str, chance: random.Random) -> None:
    type_ = world.types[name]
    # What was renamed in this very migration would be asked for by its hint.
    free = [n for n, p in type_.props.items() if p.origin is None]
    if free:
        gone = chance.choice(free)
        del type_.props[gone]
        for row in type_.rows.values():
            del row[gone]


def _rename(world: World, name: str, chance: random.Random) -> None:
    type_ = world.types[name]
    free = type_.free()
    old = [n for n, p in type_.props.items() if p.origin is None and n in type_.accepted]
    if free and old:
        was, now = chance.choice(old), chance.choice(free)
        type_.props = {now if n == was else n: p for n, p in type_.props.items()}
        type_.props[now].origin = was
        for row in type_.rows.values():
            row[now] = row.pop(was)


def _widen(world: World, name: str, chance: random.Random) -> None:
    found = [p for p in world.types[name].props.values() if p.base in WIDER]
    if found:
        prop = chance.choice(found)
        prop.base = WIDER[prop.base]


def _nullity(world: World, name: str, chance: random.Random) -> None:
    type_ = world.types[name]
    # A property added in this very migration is required only with a default.
    found = [p for n, p in type_.props.items() if (p.origin or n) in type_.accepted]
    if found:
        prop = chance.choice(found)
        prop.nullable, prop.default = not prop.nullable, None


def _rule(world: World, name: str, chance: random.Random) -> None:
    type_ = world.types[name]
    found = [p for p in type_.props.values() if p.base in PLAIN]
    if found:
        prop = chance.choice(found)
        if (
            prop.base in ("I32", "I64", "F32", "F64")
            and not type_.is_edge
            and chance.random() < 0.5
        ):
            prop.positive = not prop.positive
        elif prop.base != "Bool":
            prop.unique = not prop.unique


def _rename_type(world: World, name: str, chance: random.Random) -> None:
    type_ = world.types[name]
    free = world.free()
    if free and type_.origin is None and name in world.accepted:
        now = chance.choice(free)
        world.types = {now if n == name else n: t for n, t in world.types.items()}
        type_.origin = name
        world.home = now if world.home == name else world.home


def _drop_type(world: World, name: str, chance: random.Random) -> None:
    if name != world.home and world.types[name].origin is None:
        del world.types[name]


def _add_type(world: World, name: str, chance: random.Random) -> None:
    free = world.free()
    if free:
        world.types[chance.choice(free)] = Type(is_edge=chance.random() < 0.5)


EDITS = (
    *(_add, _add, _add, _add, _drop, _rename, _rename, _widen, _widen),
    *(_nullity, _rule, _rename_type, _drop_type, _add_type),
)


# --- a life ------------------------------------------------------------------------------------


@dataclass
class Life:
    """A graph and the models of its branches; `past` is what each commit showed."""

    graph: og.Graph
    chance: random.Random
    worlds: dict[str, World] = field(default_factory=dict)
    past: dict[str, dict[str, Any]] = field(default_factory=dict)
    reported: list[str] = field(default_factory=list)

    @classmethod
    def begin(cls, folder: str, seed: int) -> Life:
        """Create a graph with one empty type."""
        world = World({"T0": Type(is_edge=False)}, "T0")
        world.settle()
        life = cls(og.init(folder, world.text()), random.Random(seed), {"main": world})
        life.remember("main")
        return life

    def step(self) -> None:
        """Do something somewhere, and look."""
        branch = self.chance.choice(list(self.worlds))
        job = self.chance.choice((self.migrate, self.migrate, self.write, self.write, self.keep))
        job(branch)
        self.remember(branch)

    def remember(self, branch: str) -> None:
        """Compare a branch with its model, and note what its commit shows."""
        state = read_state(self.graph, branch)
        assert state == self.worlds[branch].state(), (branch, self.reported)
        self.past[self.graph.snapshot(branch).commit_id] = state

    def look_back(self) -> None:
        """Compare every commit there ever was with what it showed then, in a new process's eyes."""
        graph = og.open(self.graph.uri)
        for commit, state in self.past.items():
            assert read_state(graph, commit) == state, (commit, self.reported)
        assert graph.verify().ok, (graph.verify().problems, self.reported)

    def migrate(self, branch: str) -> None:
        """Change the schema at random; what breaks a rule is refused and changes nothing."""
        world = copy.deepcopy(self.worlds[branch])
        for _ in range(self.chance.randrange(1, 4)):
            _edit(world, self.chance)
        text, wrong = world.text(), broken(world)
        self.reported.append(f"on {branch}, {wrong} wrong:\n{text}")
        try:
            self.graph.schema.apply(text, branch=branch)
        except ValidationFailed as error:
            refused = error.total
        else:
            refused = 0
        assert refused == wrong, self.reported
        if refused:
            return
        world.settle()
        self.worlds[branch] = world

    def write(self, branch: str) -> None:
        """Put, change and remove entities by whole loads and by mutations."""
        name = self.chance.choice(list(self.worlds[branch].types))
        world = copy.deepcopy(self.worlds[branch])
        type_ = world.types[name]
        if type_.is_edge and not world.types[world.home].rows:
            return
        rows = [self._row(world, type_) for _ in range(self.chance.randrange(1, 4))]
        given = {row["id"]: row for row in rows}
        mode: LoadMode = "overwrite" if type_.is_edge and self.chance.random() < 0.2 else "merge"
        if mode == "overwrite":
            type_.rows = {}
        for id_, row in given.items():
            values = {n: row.get(n, p.default) for n, p in type_.props.items()}
            type_.rows[id_] = {**{n: row[n] for n in type_.system}, **values}
        self.reported.append(f"on {branch}: {mode} {name} {rows}")
        wrong = broken(world)
        try:
            self.graph.load(
                {name: [_record(type_, row) for row in given.values()]}, mode=mode, branch=branch
            )
        except ValidationFailed:
            assert wrong, self.reported
            return
        assert not wrong, self.reported
        self.worlds[branch] = world

    def _row(self, world: World, type_: Type) -> dict[str, Any]:
        id_ = self.chance.choice(IDS)
        row: dict[str, Any] = {"id": id_}
        if type_.is_edge:
            nodes = list(world.types[world.home].rows)
            row |= {"src": self.chance.choice(nodes), "dst": self.chance.choice(nodes)}
        else:
            row["k"] = id_
        for name, prop in type_.props.items():
            if self.chance.random() < (0.3 if prop.nullable or prop.default is not None else 0):
                continue
            row[name] = self.chance.choice(POOLS[prop.base])
        return row

    def keep(self, branch: str) -> None:
        """Compact, fork, or delete an entity."""
        lot = self.chance.random()
        if lot < 0.3 and len(self.worlds) < 3:
            name = f"b{len(self.worlds)}"
            self.graph.branches.create(name, from_=branch)
            self.worlds[name] = copy.deepcopy(self.worlds[branch])
        elif lot < 0.6:
            self.graph.optimize(branch=branch)
        else:
            world = self.worlds[branch]
            edges = [(n, t) for n, t in world.types.items() if t.is_edge and t.rows]
            if edges:
                name, type_ = self.chance.choice(edges)
                row = next(iter(type_.rows.values()))
                type_.rows = {i: r for i, r in type_.rows.items() if r["src"] != row["src"]}
                text = f'query q() {{ delete {name} where from = "{row["src"]}" }}'
                self.graph.mutate(text, branch=branch)


def _record(type_: Type, row: dict[str, Any]) -> dict[str, Any]:
    """Return an entity as a load wants it."""
    ends = {"src": "from", "dst": "to"}
    found = {ends.get(name, name): value for name, value in row.items()}
    return found if type_.is_edge else {n: v for n, v in found.items() if n != "id"}
