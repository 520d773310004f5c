"""What a read returns: columns, groups, order, limit and offset."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from fractions import Fraction
from math import inf
from typing import Any, NamedTuple

from omnigraph.lang import query_tree as qt
from omnigraph.lang.source import Name
from tests.support.reference.matching import match
from tests.support.reference.model import Answer, Inexact, RefusedError, World
from tests.support.reference.ranking import (
    BEST_IS_HIGHEST,
    fusion,
    ids_of,
    is_ranking,
    ranked_variables,
    scores,
)
from tests.support.reference.values import shown, to_json, value

AGGREGATES = ("count", "sum", "avg", "min", "max", "collect")


class Key(NamedTuple):
    """The values rows are ordered by, one per row."""

    values: Sequence[Any]
    descending: bool = False
    ranking: bool = False

    def sortable(self, place: int) -> tuple[bool, Any]:
        """Return what to compare of a row: null is lower than every value.

        Lists compare element by element, then by length; Python does the same.
        """
        return _sortable(self.values[place])


def _sortable(found: Any) -> tuple[bool, Any]:
    if isinstance(found, list):
        return True, [_sortable(item) for item in found]
    return found is not None, found


def interpret(query: qt.QueryDecl, world: World) -> Answer:
    """Return what a read that type-checks gives."""
    assert isinstance(query.body, qt.ReadBody)
    return _Reader(query.body, world).answer()


class _Reader:
    def __init__(self, body: qt.ReadBody, world: World) -> None:
        self.body = body
        self.world = world
        self.limit = self._count(body.limit, "limit")
        self.offset = self._count(body.offset, "offset") or 0
        self.depth = None if self.limit is None else self.limit + self.offset
        self.names = tuple(column_name(projection) for projection in body.projections)
        self.exprs = [projection.expr for projection in body.projections]
        self.rows = match(body.clauses, [{}], world)

    def _count(self, written: qt.CountExpression | None, word: str) -> int | None:
        if written is None:
            return None
        number: int | None = value(written, {}, self.world)
        if number is not None and number < 0:
            raise RefusedError(f"{word} is negative: {number}")
        return number

    def answer(self) -> Answer:
        if any(_is_aggregate(expr) for expr in self.exprs):
            columns = self._grouped()
            ties = [c for e, c in zip(self.exprs, columns, strict=True) if not _is_aggregate(e)]
            order = self._column_order(columns, ties)
        elif self.body.distinct:
            columns = self._distinct()
            order = self._column_order(columns, columns)
        else:
            columns = [self._column(expr) for expr in self.exprs]
            order = self._row_order()
        size = len(columns[0])
        places = sort(range(size), order)
        table = [
            {name: to_json(column[place]) for name, column in zip(self.names, columns, strict=True)}
            for place in places
        ]
        return Answer(
            columns=self.names,
            complete=table,
            keys=[tuple(key.values[place] for key in order) for place in places],
            ordered=bool(self.body.orderings),
            offset=self.offset,
            limit=self.limit,
        )

    def _column(self, expr: qt.Expr) -> list[Any]:
        """Return the value of an expression for every row of the match."""
        if is_ranking(expr):
            return list(scores(expr, self.rows, self.world, self.depth))
        return [shown(expr, row, self.world) for row in self.rows]

    # --- groups and distinct rows --------------------------------------------------------------

    def _grouped(self) -> list[list[Any]]:
        keys = [self._column(expr) for expr in self.exprs if not _is_aggregate(expr)]
        groups: dict[str, list[int]] = {} if keys else {"": []}
        for place in range(len(self.rows)):
            name = canonical([key[place] for key in keys]) if keys else ""
            groups.setdefault(name, []).append(place)
        columns = []
        for expr in self.exprs:
            if isinstance(expr, qt.CallExpression) and _is_aggregate(expr):
                whole = self._column(expr.arguments[0])
                parts = [[whole[place] for place in places] for places in groups.values()]
                columns.append([_aggregate(expr, part) for part in parts])
            else:
                whole = self._column(expr)
                columns.append([whole[places[0]] for places in groups.values()])
        return columns

    def _distinct(self) -> list[list[Any]]:
        columns = [self._column(expr) for expr in self.exprs]
        first: dict[str, int] = {}
        for place in range(len(self.rows)):
            first.setdefault(canonical([column[place] for column in columns]), place)
        return [[column[place] for place in first.values()] for column in columns]

    # --- order ---------------------------------------------------------------------------------

    def _column_order(self, columns: list[list[Any]], ties: list[list[Any]]) -> list[Key]:
        """Order grouped or distinct rows by their columns, then by those that break ties."""
        if not self.body.orderings:
            return []
        bare = [self._bare(expr) for expr in self.exprs]
        keys = []
        for ordering in self.body.orderings:
            place = bare.index(self._bare(self._meant(ordering)))
            expr = self.exprs[place]
            keys.append(Key(columns[place], _is_descending(ordering, expr), is_ranking(expr)))
        return keys + [Key(column) for column in ties]

    def _row_order(self) -> list[Key]:
        """Order rows by the keys written, then by the ids of all named variables."""
        keys, ranked = list[Key](), set[str]()
        for ordering in self.body.orderings:
            expr = self._meant(ordering)
            descending = _is_descending(ordering, expr)
            keys.append(Key(self._column(expr), descending, is_ranking(expr)))
            if isinstance(expr, qt.CallExpression) and is_ranking(expr):
                ranked |= ranked_variables(expr)
                if expr.function.text == "rrf":
                    keys.append(Key(fusion(expr, self.rows, self.world, self.depth)[1]))
        if not keys:
            return []
        together = Key([[row[name].id for name in sorted(ranked)] for row in self.rows])
        return [*keys, together, Key([ids_of(row) for row in self.rows])]

    def _meant(self, ordering: qt.OrderingTerm) -> qt.Expr:
        """Return the expression to order by, that of a column when its alias is written."""
        if isinstance(ordering.expr, qt.AliasRef):
            return self.exprs[self.names.index(ordering.expr.name)]
        return ordering.expr

    def _bare(self, expr: qt.Expr) -> qt.Expr:
        """Write the id of a node in one way: `$x` means `$x.id`."""
        if isinstance(expr, qt.Variable) and expr.name not in self.world.parameters:
            return qt.PropertyAccess(expr, Name("id"))
        return expr


def sort(places: Iterable[int], keys: Sequence[Key]) -> list[int]:
    """Sort by several keys, nulls lowest; a ranking leaves out what it gives no score."""
    rankings = [key for key in keys if key.ranking]
    found = [p for p in places if all(key.values[p] is not None for key in rankings)]
    for key in reversed(keys):
        found.sort(key=key.sortable, reverse=key.descending)
    return found


def canonical(found: Sequence[Any]) -> str:
    """Return a text that is the same for equal values; both zeros are equal."""
    return json.dumps([_positive_zero(to_json(item)) for item in found], ensure_ascii=False)


def _positive_zero(found: Any) -> Any:
    if isinstance(found, list):
        return [_positive_zero(item) for item in found]
    return 0.0 if isinstance(found, float) and found == 0 else found


def _is_descending(ordering: qt.OrderingTerm, expr: qt.Expr) -> bool:
    """Tell the direction; a ranking puts the best first, whatever is written."""
    if isinstance(expr, qt.CallExpression) and is_ranking(expr):
        return BEST_IS_HIGHEST[expr.function.text]
    return ordering.direction is qt.SortDirection.DESC


# --- aggregates --------------------------------------------------------------------------------


def _is_aggregate(expr: qt.Expr) -> bool:
    return isinstance(expr, qt.CallExpression) and expr.function.text in AGGREGATES


def _aggregate(call: qt.CallExpression, found: Sequence[Any]) -> Any:
    """Return an aggregate of the values that are not null."""
    values = [item for item in found if item is not None]
    if call.function.text == "count":
        return len({canonical([item]) for item in values} if call.distinct else values)
    if call.function.text == "collect":
        return sorted({canonical([i]): i for i in values}.values() if call.distinct else values)
    if not values:
        return None
    match call.function.text:
        case "min":
            return min(values)
        case "max":
            return max(values)
        case "sum":
            return _sum(values, 1)
        case _:
            return _sum(values, len(values))


def _sum(values: Sequence[float], parts: int) -> float:
    """Return the sum, divided; adding floats one by one may come close to it only.

    That of integers is exact, rounded once, and then divided.
    """
    if all(isinstance(number, int) for number in values):
        return _float(Fraction(sum(map(int, values)))) / parts
    exact = sum(map(Fraction, values), Fraction()) / parts
    size = sum((abs(Fraction(number)) for number in values), Fraction())
    given = max((getattr(number, "slack", 0.0) for number in values), default=0.0)
    return Inexact(_float(exact), _float(size) * 1e-9 + given, noisy=True)


def _float(exact: Fraction) -> float:
    try:
        return float(exact)
    except OverflowError:
        return inf if exact > 0 else -inf


# --- names -------------------------------------------------------------------------------------


def column_name(projection: qt.Projection) -> str:
    """Return the alias of a column, else a name made of its expression."""
    return projection.alias.text if projection.alias is not None else _name(projection.expr)


def _name(expr: qt.Expr) -> str:
    match expr:
        case qt.PropertyAccess(variable=variable, property=property_):
            return f"{variable.name}.{property_.text}"
        case qt.Variable(name=name) | qt.AliasRef(name=name):
            return name
        case qt.CallExpression(function=function, arguments=arguments):
            return _name(arguments[0]) if function.text in AGGREGATES else function.text
        case qt.ArithmeticExpression():
            return "expression"
        case qt.CaseExpression():
            return "case"
        case _:
            return "literal"
