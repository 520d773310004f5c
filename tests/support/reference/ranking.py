"""What rankings give: a score for each row, or none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import hypot

from omnigraph.catalog.model import Definition, Index, type_constraints
from omnigraph.lang import query_tree as qt
from tests.support.reference import text
from tests.support.reference.model import Inexact, RefusedError, Row, World
from tests.support.reference.values import value

BEST_IS_HIGHEST = {"bm25": True, "nearest": False, "rrf": True}


def is_ranking(expr: qt.Expr) -> bool:
    """Return whether an expression is a ranking."""
    return isinstance(expr, qt.CallExpression) and expr.function.text in BEST_IS_HIGHEST


def ranked_variables(expr: qt.Expr) -> set[str]:
    """Return the variables whose nodes a ranking ranks."""
    assert isinstance(expr, qt.CallExpression)
    if expr.function.text == "rrf":
        return {name for arm in expr.arguments[:2] for name in ranked_variables(arm)}
    field = expr.arguments[0]
    assert isinstance(field, qt.PropertyAccess)
    return {field.variable.name}


def scores(
    call: qt.Expr, rows: Sequence[Row], world: World, depth: int | None
) -> list[Inexact | None]:
    """Return the score of each row; `depth` is how many nodes a `nearest` in `rrf` ranks."""
    assert isinstance(call, qt.CallExpression)
    if call.function.text == "rrf":
        return fusion(call, rows, world, depth)[0]
    field, query = call.arguments
    assert isinstance(field, qt.PropertyAccess)
    found: list[Inexact | None] = []
    relevance: dict[str, Mapping[str, float]] = {}
    for row in rows:
        wanted = value(query, row, world)
        score: float | None = None
        if call.function.text == "nearest":
            if isinstance(wanted, str):
                wanted = _embedded(query, wanted, field, row, world)
            metric = _metric(row[field.variable.name].type, field.property.text)
            score = _distance(metric, value(field, row, world), wanted)
        elif wanted is not None:
            if wanted not in relevance:
                relevance[wanted] = text.bm25(_texts(field, row, world), wanted)
            score = relevance[wanted].get(row[field.variable.name].id)
        found.append(None if score is None else Inexact(score, 1e-5 * (1 + abs(score))))
    return found


def _texts(field: qt.PropertyAccess, row: Row, world: World) -> dict[str, str | None]:
    """Return the texts of all nodes of the type, whichever the query asks about."""
    nodes = world.graph.nodes[row[field.variable.name].type.name]
    name = field.property.text
    return {id_: id_ if name == "id" else found.get(name) for id_, found in nodes.items()}


def _embedded(
    query: qt.Expr, words: str, field: qt.PropertyAccess, row: Row, world: World
) -> Sequence[float] | None:
    """Return the vector of a text; an empty one of an entity has none, another is refused."""
    if not words.strip():
        if isinstance(query, qt.PropertyAccess):
            return None
        raise RefusedError("an empty text is asked for")
    assert world.embed is not None, "a text is embedded by the caller"
    type_ = row[field.variable.name].type.properties[field.property.text].type
    return world.embed(words, type_.dimension or 0)


def _metric(type_: Definition, name: str) -> str:
    """Return the metric the index of a property declares; without an index it is cosine."""
    found = [c for c in type_constraints(type_) if isinstance(c, Index) and c.columns == (name,)]
    return next((str(index.metric) for index in found if index.metric is not None), "cosine")


def _distance(
    metric: str, vector: Sequence[float] | None, query: Sequence[float] | None
) -> float | None:
    """Return the distance; a vector that is null has none, nor one without length a cosine."""
    if vector is None or query is None:
        return None
    product: float = sum(a * b for a, b in zip(vector, query, strict=True))
    if metric == "l2":
        apart: float = sum((a - b) ** 2 for a, b in zip(vector, query, strict=True))
        return apart
    if metric == "dot":
        return 1 - product
    lengths = hypot(*vector) * hypot(*query)
    return None if lengths == 0 else 1 - product / lengths


# --- rrf ---------------------------------------------------------------------------------------


def fusion(
    call: qt.CallExpression, rows: Sequence[Row], world: World, depth: int | None
) -> tuple[list[Inexact | None], list[int]]:
    """Return the fused score of each row, and its place by which ties are broken.

    The place counts the nodes of the first ranking, then those only the second ranks.
    """
    [variable] = ranked_variables(call.arguments[0])
    k = value(call.arguments[2], {}, world) if len(call.arguments) > 2 else None
    k = 60 if k is None else k
    if k < 1:
        raise RefusedError(f"k is not positive: {k}")
    arms = [_ranks(arm, variable, rows, world, depth) for arm in call.arguments[:2]]
    order = list(dict.fromkeys([*arms[0], *arms[1]]))
    total = {id_: sum(1 / (k + arm[id_]) for arm in arms if id_ in arm) for id_ in order}
    places = {id_: place for place, id_ in enumerate(order)}
    ids = [row[variable].id for row in rows]
    fused = [Inexact(total[id_], 1e-9) if id_ in total else None for id_ in ids]
    return fused, [places.get(id_, len(order)) for id_ in ids]


def _ranks(
    arm: qt.Expr, variable: str, rows: Sequence[Row], world: World, depth: int | None
) -> dict[str, int]:
    """Number the different nodes of a variable from 1, best row first."""
    assert isinstance(arm, qt.CallExpression)
    name = arm.function.text
    sign = -1 if BEST_IS_HIGHEST[name] else 1
    ranked = sorted(ranked_variables(arm))
    scored = [
        (sign * score, [row[first].id for first in ranked], row)
        for row, score in zip(rows, scores(arm, rows, world, depth), strict=True)
        if score is not None
    ]
    scored.sort(key=lambda item: (item[0], item[1], ids_of(item[2])))
    nodes = list(dict.fromkeys(row[variable].id for _, _, row in scored))
    kept = nodes[:depth] if name == "nearest" else nodes
    return {id_: rank for rank, id_ in enumerate(kept, 1)}


def ids_of(row: Row) -> list[str]:
    """Return the ids of all named variables, the variables by name."""
    return [row[name].id for name in sorted(row)]
