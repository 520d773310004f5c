"""What a match block finds: every way to give its variables entities, clause by clause."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import assert_never, cast

from omnigraph.catalog import EdgeType, NodeType
from omnigraph.lang import query_tree as qt
from omnigraph.lang.query_tree import ANONYMOUS, ComparisonOperator
from omnigraph.lang.source import Name
from tests.support.reference.model import Edge, Entity, Row, World
from tests.support.reference.values import compare, holds, operands


def match(clauses: Iterable[qt.MatchClause], rows: Iterable[Row], world: World) -> list[Row]:
    """Extend rows by what clauses bind, and keep those for which they hold."""
    clauses, found = list(clauses), list(rows)
    for variable, written in _interfaces(clauses, world).items():
        nodes = world.catalog.nodes.values()
        chosen = (node for node in nodes if written <= {node.name, *node.interfaces})
        parts = (match(_with_type(clauses, variable, n.name), found, world) for n in chosen)
        return [row for part in parts for row in part]
    types: dict[str, NodeType | EdgeType] = {}
    for row in found:
        types = {name: entity.type for name, entity in row.items()}
    for clause in clauses:
        match clause:
            case qt.BindingClause():
                found = [new for row in found for new in _bind(clause, row, world)]
                types.setdefault(clause.variable.name, world.catalog.nodes[clause.type_name.text])
            case qt.TraversalClause():
                walk = _Walk(clause, types, world)
                found = [new for row in found for new in walk.extend(row)]
                types = walk.types
            case qt.FilterClause(condition=condition):
                found = [row for row in found if holds(condition, row, world)]
            case qt.NegationClause(clauses=inner):
                found = [row for row in found if not match(inner, [row], world)]
            case qt.ExistsClause(clauses=inner):
                found = [row for row in found if match(inner, [row], world)]
            case qt.OptionalClause(clauses=inner):
                introduced = _introduced(inner, types, world)
                nothing = {name: _no_entity(type_) for name, type_ in introduced.items()}
                found = [
                    new for row in found for new in match(inner, [row], world) or [row | nothing]
                ]
                types |= introduced
            case _ as unreachable:
                assert_never(unreachable)
        types.pop(ANONYMOUS, None)
    return found


def _interfaces(clauses: Sequence[qt.MatchClause], world: World) -> dict[str, set[str]]:
    """Return what is written as types of variables that are bound to interfaces."""
    found: dict[str, set[str]] = {}
    for place, clause in enumerate(clauses):
        if isinstance(clause, qt.BindingClause):
            found.setdefault(_key(clause, place), set()).add(clause.type_name.text)
    return {name: types for name, types in found.items() if not types <= {*world.catalog.nodes}}


def _key(clause: qt.BindingClause, place: int) -> str:
    name = clause.variable.name
    return f"{name}{place}" if name == ANONYMOUS else name


def _with_type(
    clauses: Sequence[qt.MatchClause], variable: str, type_name: str
) -> list[qt.MatchClause]:
    return [
        replace(clause, type_name=Name(type_name))
        if isinstance(clause, qt.BindingClause) and _key(clause, place) == variable
        else clause
        for place, clause in enumerate(clauses)
    ]


def _introduced(
    clauses: Iterable[qt.MatchClause], known: Mapping[str, NodeType | EdgeType], world: World
) -> dict[str, NodeType | EdgeType]:
    """Return the variables that clauses add to those that are known, with their types."""
    types = dict(known)
    for clause in clauses:
        match clause:
            case qt.BindingClause():
                types.setdefault(clause.variable.name, world.catalog.nodes[clause.type_name.text])
            case qt.TraversalClause():
                types = _Walk(clause, types, world).types
            case qt.OptionalClause(clauses=inner):
                types |= _introduced(inner, types, world)
            case _:
                pass
        types.pop(ANONYMOUS, None)
    return {name: type_ for name, type_ in types.items() if name not in known}


def _no_entity(type_: NodeType | EdgeType) -> Entity:
    """Return what a variable stands for where there is no entity: its id is null."""
    return Entity(type_, cast(str, None), {})


def _with(row: Row, variable: qt.Variable | None, entity: Entity) -> Row:
    if variable is None or variable.name == ANONYMOUS:
        return row
    return {**row, variable.name: entity}


# --- bindings ----------------------------------------------------------------------------------


def _bind(clause: qt.BindingClause, row: Row, world: World) -> Iterator[Row]:
    known = row.get(clause.variable.name)
    type_ = world.catalog.nodes[clause.type_name.text]
    for node in world.nodes(type_) if known is None else [known]:
        if all(_matches(written, node, world) for written in clause.matches):
            yield _with(row, clause.variable, node)


def _matches(written: qt.PropertyMatch, node: Entity, world: World) -> bool:
    """Return whether a property equals the value or, being a list, contains it."""
    access = qt.PropertyAccess(qt.Variable("it"), written.property)
    left, right = operands(access, written.value, {"it": node}, world)
    sign = ComparisonOperator.CONTAINS if isinstance(left, list) else ComparisonOperator.EQ
    return compare(sign, left, right)


# --- traversals --------------------------------------------------------------------------------


class _Walk:
    """One traversal clause: from each node on the left to those on the right."""

    def __init__(
        self, clause: qt.TraversalClause, known: dict[str, NodeType | EdgeType], world: World
    ) -> None:
        self.clause = clause
        self.world = world
        edge = world.catalog.edge(clause.edge.text)
        assert edge is not None
        self.edge = edge
        self.backwards = not clause.undirected and self._is_backwards(known)
        ends = (edge.dst, edge.src) if self.backwards else (edge.src, edge.dst)
        self.left, self.right = (world.catalog.nodes[name] for name in ends)
        sides = ((clause.src.name, self.left), (clause.dst.name, self.right))
        # A type that stands for an interface may be none that the edge connects.
        self.is_possible = all(known.get(name, type_) is type_ for name, type_ in sides)
        self.types = {**known}
        self.types.setdefault(clause.src.name, self.left)
        self.types.setdefault(clause.dst.name, self.right)
        self.binds_edge = clause.edge_variable not in (None, qt.Variable(ANONYMOUS))
        if self.binds_edge and clause.edge_variable is not None:
            self.types[clause.edge_variable.name] = edge
        self.known_destinations: dict[str, list[tuple[Entity | None, str]]] = {}

    def _is_backwards(self, known: dict[str, NodeType | EdgeType]) -> bool:
        """Tell the direction by the type that is known, of the left variable before the right."""
        left, right = known.get(self.clause.src.name), known.get(self.clause.dst.name)
        if left is not None:
            return left.name != self.edge.src
        return right is not None and right.name != self.edge.dst

    def extend(self, row: Row) -> Iterator[Row]:
        """Yield a row for each destination, or for each edge if that has a variable."""
        known = row.get(self.clause.src.name)
        if not self.is_possible:
            return
        for src in self.world.nodes(self.left) if known is None else [known]:
            started = _with(row, self.clause.src, src)
            wanted = started.get(self.clause.dst.name)
            for edge, id_ in self._destinations(src.id):
                if id_ not in self.world.graph.nodes.get(self.right.name, {}):
                    continue
                if wanted is None or wanted.id == id_:
                    ended = _with(started, self.clause.dst, self.world.node(self.right.name, id_))
                    yield ended if edge is None else _with(ended, self.clause.edge_variable, edge)

    def _destinations(self, start: str) -> list[tuple[Entity | None, str]]:
        if start not in self.known_destinations:
            self.known_destinations[start] = self._found_destinations(start)
        return self.known_destinations[start]

    def _found_destinations(self, start: str) -> list[tuple[Entity | None, str]]:
        if self.binds_edge:
            steps = self._steps(start)
            return [(Entity(self.edge, e.id, e.properties), id_) for e, id_ in steps]
        hops = self.clause.hops
        low, high = (1, 1) if hops is None else (hops.minimum, hops.maximum)
        assert high is not None
        return [(None, id_) for id_ in self._reached(start, low, high)]

    def _steps(self, start: str) -> list[tuple[Edge, str]]:
        """Return the edges at a node that may be followed, with the node they lead to."""
        forwards, backwards = not self.backwards, self.backwards or self.clause.undirected
        found: list[tuple[Edge, str]] = []
        for edge in self.world.graph.edges.get(self.edge.name, ()):
            if forwards and edge.src == start:
                found.append((edge, edge.dst))
            # Seen from both ends, a self-loop is still one edge.
            if backwards and edge.dst == start and (edge, edge.src) not in found:
                found.append((edge, edge.src))
        return found

    def _reached(self, start: str, low: int, high: int) -> list[str]:
        """Search breadth first: each node once, at its least distance; loops do not lead on."""
        visited, frontier, found = {start}, [start], dict[str, None]()
        same = self.left is self.right  # only then an edge leads on, or back to its node
        for hop in range(1, high + 1 if same else 2):
            reached: list[str] = []
            for node in frontier:
                for _, other in self._steps(node):
                    if same and other == node:
                        if low <= hop:
                            found[other] = None
                    elif not same or other not in visited:
                        visited.add(other)
                        reached.append(other)
            if low <= hop:
                found.update(dict.fromkeys(reached))
            frontier = reached
            if not frontier:
                break
        return list(found)
