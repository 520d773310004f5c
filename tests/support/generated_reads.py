"""Random well-typed reads over a schema, with parameters; see `generated_graphs` for the data.

A `Reads` prints as a case that can be pasted into `tests/cases/read`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from omnigraph.catalog import Catalog, NodeType, load_catalog
from omnigraph.lang import print_queries
from omnigraph.lang import query_tree as qt
from omnigraph.lang.source import Name, TypeExpr
from omnigraph.types import PropertyType, Scalar
from tests.support.generated_graphs import (
    Pools,
    Sample,
    early,
    pools_of,
    seldom,
    some_sample,
)
from tests.support.generated_matches import MatchMaker
from tests.support.generated_values import Scope, ValueMaker, properties
from tests.support.reference.result import column_name

QUERY_TEXTS = ("ship", "Ærø 日本", "a")
QUERY_VECTORS = ([1, 0], [0, 1], [1, 1], [-2, 1], [0, 0])
_PLAIN = (Scalar.STRING, Scalar.I64, Scalar.F64, Scalar.BOOL, Scalar.DATE, Scalar.DATE_TIME)
_INTEGER = PropertyType(Scalar.I64)
_DECIMAL = PropertyType(Scalar.F64, nullable=True)
_LIST = PropertyType(Scalar.STRING, is_list=True)


@dataclass(frozen=True)
class Read:
    """A query and its parameters."""

    text: str
    params: Mapping[str, Any]


@dataclass(frozen=True)
class Reads:
    """A graph and queries to ask it."""

    sample: Sample
    queries: tuple[Read, ...]

    def __repr__(self) -> str:
        return "\n".join(["", as_case(self.sample, *self.queries)])


def as_case(sample: Sample, *queries: Read) -> str:
    """Write queries over one graph as sections of a case file."""
    parts = ["--- schema", sample.schema.strip(), "--- data", *sample.lines]
    for read in queries:
        parts += ["--- query", read.text.strip()]
        parts += ["--- params", json.dumps(read.params, ensure_ascii=False)] if read.params else []
    return "\n".join(parts)


def some_reads(random: Random, count: int = 8, *, search: bool = True) -> Reads:
    """Return a graph and queries; `search` is whether they may use text and vectors."""
    sample = some_sample(random)
    catalog = load_catalog(sample.schema)
    pools = pools_of(sample, catalog)
    queries = [random_read(random, catalog, pools, search=search) for _ in range(count)]
    return Reads(sample, tuple(queries))


def reads(count: int = 2, *, search: bool = True) -> SearchStrategy[Reads]:
    """Return a strategy that shrinks to a small graph and short queries."""
    randoms = st.randoms(use_true_random=False)
    return randoms.map(lambda random: some_reads(random, count, search=search))


def random_read(random: Random, catalog: Catalog, pools: Pools, *, search: bool) -> Read:
    """Return a query that type-checks, with parameters that fit."""
    scope, maker = Scope(), MatchMaker(random, catalog, pools, search=search)
    clauses = maker.clauses(scope)
    body = _Tail(maker, scope).body(clauses)
    declared = tuple(
        qt.ParameterDeclaration(qt.Variable(name), _written(type_))
        for name, (type_, _) in maker.parameters.items()
    )
    params = {name: value for name, (_, value) in maker.parameters.items()}
    if seldom(random, 0.1):
        params = {name: value for name, value in params.items() if value is not None}
    query = qt.QueryDecl(Name("q"), declared, (), body)
    return Read(print_queries(qt.QueryTree((query,))), params)


def _written(type_: PropertyType) -> TypeExpr:
    return TypeExpr(str(type_.scalar), type_.is_list, type_.nullable, dimension=type_.dimension)


class _Tail:
    """Makes what follows the match: return, order, limit, offset."""

    def __init__(self, maker: MatchMaker, scope: Scope) -> None:
        self.maker = maker
        self.random = maker.random
        self.scope = scope
        self.accesses = [
            (qt.PropertyAccess(qt.Variable(name), Name(property_)), type_)
            for name, entity in scope.items()
            for property_, type_ in properties(entity)
            if type_.scalar is not Scalar.BLOB
        ]
        self.projections: dict[str, tuple[qt.Projection, PropertyType]] = {}

    def body(self, clauses: tuple[qt.MatchClause, ...]) -> qt.ReadBody:
        """Return the whole query."""
        kind = self.random.choice(("plain", "plain", "grouped", "distinct"))
        for _ in range(self.random.randint(1, 3)):
            self._column(kind)
        if kind == "grouped" or not self.projections:
            self._aggregate()
        ranking = self._ranking() if kind == "plain" and self.maker.search else None
        orderings = [] if ranking is None else [ranking]
        if seldom(self.random, 0.6):
            orderings += self._orderings(kind, ranked=ranking is not None)
        needs_limit = ranking is not None
        limit = self._count() if needs_limit or seldom(self.random, 0.4) else None
        return qt.ReadBody(
            clauses,
            tuple(projection for projection, _ in self.projections.values()),
            distinct=kind == "distinct",
            orderings=tuple(orderings),
            limit=limit,
            offset=self._count() if seldom(self.random, 0.2) else None,
        )

    def _add(self, expr: qt.Expr, type_: PropertyType, natural: str | None = None) -> None:
        alias = (
            None
            if natural is not None and seldom(self.random, 0.5)
            else f"c{len(self.projections)}"
        )
        name = alias or natural
        assert name is not None
        if name not in self.projections:
            made = qt.Projection(expr, None if alias is None else Name(alias))
            self.projections[name] = (made, type_)

    def _column(self, kind: str) -> None:
        number = self.random.randrange(24)
        nodes = [*self.scope.nodes(), *self.scope.optional_nodes()]
        if number >= 20:
            self._computed()
        elif number == 19:
            type_ = self.maker.similar(PropertyType(self.random.choice(list(_PLAIN))))
            variable = self.maker.parameter(type_)
            self._add(variable, type_, variable.name)
        elif number == 18 and kind != "grouped":
            type_ = PropertyType(self.random.choice(list(_PLAIN)))
            literal = self.maker.literal(type_)
            self._add(literal, PropertyType(literal.scalar), "literal")
        elif number >= 16 and nodes:
            name = self.random.choice(nodes)
            self._add(qt.Variable(name), PropertyType(Scalar.STRING), name)
        elif number == 15 and kind == "plain" and self.maker.search and self._texts():
            predicate = self.maker.predicate(self.random.choice(self._texts()), self.scope)
            self._add(predicate, PropertyType(Scalar.BOOL), predicate.function.text)
        elif number == 14 and kind == "plain" and self.maker.search and self._rankings():
            call = self.random.choice(self._rankings())()
            self._add(call, PropertyType(Scalar.F64), call.function.text)
        elif number == 13 and kind != "grouped" and self._paths():
            call, type_ = self.random.choice(self._paths())
            self._add(call, type_, call.function.text)
        elif self.accesses:
            access, type_ = self.random.choice(self.accesses)
            self._add(access, type_, f"{access.variable.name}.{access.property}")

    def _computed(self) -> None:
        """Add a column that is computed."""
        made = ValueMaker(self.maker, self.scope).any()
        if made is not None:
            self._add(*made, column_name(qt.Projection(made[0])))

    def _aggregate(self) -> None:
        for _ in range(self.random.randint(1, 2)):
            name = self.random.choice(("count", "sum", "avg", "min", "max", "count", "collect"))
            number = ValueMaker(self.maker, self.scope).number()
            if number is not None and seldom(self.random, 0.2):
                result = {"count": _INTEGER, "collect": _LIST}.get(name, _DECIMAL)
                distinct = name in ("count", "collect") and seldom(self.random, 0.4)
                self._add(qt.CallExpression(Name(name), (number,), distinct), result)
                continue
            if seldom(self.random, 0.15):
                self._aggregate_of_something_else(name)
                continue
            fits = [
                (access, type_)
                for access, type_ in self.accesses
                if name == "count" or (type_.numeric if name in ("sum", "avg") else type_.orderable)
            ]
            if not fits:
                self._add(qt.CallExpression(Name("count"), (qt.Literal(Scalar.I64, 1),)), _INTEGER)
                continue
            access, type_ = self.random.choice(fits)
            results = {"count": _INTEGER, "sum": _DECIMAL, "avg": _DECIMAL, "collect": _LIST}
            result = results.get(name, type_)
            distinct = name in ("count", "collect") and seldom(self.random, 0.4)
            call = qt.CallExpression(Name(name), (access,), distinct)
            self._add(call, result, f"{access.variable.name}.{access.property}")

    def _aggregate_of_something_else(self, name: str) -> None:
        """Add an aggregate of a node, a parameter, a literal or a score."""
        arguments: list[qt.Expr] = [qt.Literal(Scalar.I64, 3)]
        arguments.append(self.maker.parameter(PropertyType(Scalar.F32, nullable=True)))
        if name not in ("sum", "avg"):
            arguments += [qt.Variable(name) for name in self.scope.nodes()]
            arguments += [qt.Variable(name) for name in self.scope.optional_nodes()]
        if self.maker.search and name != "collect":
            arguments += [make() for make in self._rankings()[:-1]]
        call = qt.CallExpression(Name(name), (self.random.choice(arguments),))
        self._add(call, {"count": _INTEGER, "collect": _LIST}.get(name, _DECIMAL))

    # --- order, limit, offset ------------------------------------------------------------------

    def _orderings(self, kind: str, *, ranked: bool) -> list[qt.OrderingTerm]:
        columns = [
            (alias, projection.expr)
            for alias, (projection, type_) in self.projections.items()
            if type_.orderable
            and not isinstance(projection.expr, qt.Literal)
            and not self._is_parameter(projection.expr)
        ]
        keys: list[qt.Expr] = [
            expr for _, expr in columns if isinstance(expr, qt.PropertyAccess | qt.Variable)
        ]
        keys += [
            qt.AliasRef(a) for a, _ in columns if not ranked and "." not in a and a.isidentifier()
        ]
        if kind == "plain":
            keys += [access for access, type_ in self.accesses if type_.orderable]
            made = ValueMaker(self.maker, self.scope).any()
            keys += [] if made is None or ranked else [made[0]]
        if kind == "plain" and not ranked:
            keys = [key for key in keys if not self._is_nearest(key)]
        count = early(self.random, (1, 2, 3))
        return [
            qt.OrderingTerm(self.random.choice(keys), self.random.choice((None, *qt.SortDirection)))
            for _ in range(count)
            if keys
        ]

    def _is_parameter(self, expr: qt.Expr) -> bool:
        return isinstance(expr, qt.Variable) and expr.name in self.maker.parameters

    def _is_nearest(self, key: qt.Expr) -> bool:
        """Return whether a key is the alias of a ranking that has rules of its own."""
        if not isinstance(key, qt.AliasRef):
            return False
        expr = self.projections[key.name][0].expr
        return isinstance(expr, qt.CallExpression) and expr.function.text in ("nearest", "rrf")

    def _texts(self) -> list[qt.PropertyAccess]:
        return [
            access for access, type_ in self.accesses if type_.text and self._is_searchable(access)
        ]

    def _is_searchable(self, access: qt.PropertyAccess) -> bool:
        """Return whether every row has a node to search."""
        return isinstance(self.scope.required().get(access.variable.name), NodeType)

    def _paths(self) -> list[tuple[qt.CallExpression, PropertyType]]:
        """Return calls that look for paths between nodes of the match, some of each kind."""
        found: list[tuple[qt.CallExpression, PropertyType]] = []
        for name, edge in self.maker.catalog.edges.items():
            for src, dst in ((edge.src, edge.dst), (edge.dst, edge.src)):
                if not self.scope.nodes(src) or not self.scope.nodes(dst):
                    continue
                ends = [qt.Variable(self.random.choice(self.scope.nodes(t))) for t in (src, dst)]
                undirected = edge.src == edge.dst and seldom(self.random, 0.4)
                bounds = [
                    qt.HopRange(1, 3),
                    qt.HopRange(2, 2),
                    qt.HopRange(1, None),
                    qt.HopRange(2, 9),
                    None,
                ]
                word = Name(name[0].lower() + name[1:])
                along: qt.Expr = qt.EdgePathExpression(word, undirected, self.random.choice(bounds))
                if along == qt.EdgePathExpression(word):
                    along = qt.AliasRef(word.text)
                arguments = (ends[0], along, ends[1])
                nodes = PropertyType(Scalar.STRING, is_list=True)
                found.append((qt.CallExpression(Name("shortest_path"), arguments), nodes))
                found.append((qt.CallExpression(Name("path_length"), arguments), _INTEGER))
        return found

    def _rankings(self) -> list[Callable[[], qt.CallExpression]]:
        vectors = [
            access
            for access, type_ in self.accesses
            if type_.scalar is Scalar.VECTOR and self._is_searchable(access)
        ]
        texts = self._texts()
        found: list[Callable[[], qt.CallExpression]] = []
        if texts:
            found.append(lambda: self._bm25(texts))
        if vectors:
            found.append(lambda: self._nearest(vectors))
        if found:
            arms = list(found)
            found.append(lambda: self._rrf(arms))
        return found

    def _rrf(self, arms: Sequence[Callable[[], qt.CallExpression]]) -> qt.CallExpression:
        arguments: list[qt.Expr] = [self.random.choice(arms)(), self.random.choice(arms)()]
        if seldom(self.random, 0.2):
            arguments.append(qt.Literal(Scalar.I64, 1))
        elif seldom(self.random, 0.1):
            arguments.append(self.maker.parameter(PropertyType(Scalar.U32), 10))
        return qt.CallExpression(Name("rrf"), tuple(arguments))

    def _bm25(self, texts: Sequence[qt.PropertyAccess]) -> qt.CallExpression:
        return qt.CallExpression(
            Name("bm25"), (self.random.choice(texts), self.maker.words(self.scope))
        )

    def _nearest(self, vectors: Sequence[qt.PropertyAccess]) -> qt.CallExpression:
        access, wanted = self.random.choice(vectors), self.random.choice(QUERY_VECTORS)
        if seldom(self.random, 0.1):
            others = self.scope.required().accesses(lambda type_: type_.scalar is Scalar.VECTOR)
            return qt.CallExpression(Name("nearest"), (access, self.random.choice(others)))
        if seldom(self.random, 0.2):
            return qt.CallExpression(Name("nearest"), (access, self._asked_text()))
        if seldom(self.random, 0.5):
            null = seldom(self.random, 0.1)
            type_ = PropertyType(Scalar.VECTOR, dimension=2, nullable=null)
            variable = self.maker.parameter(type_, wanted)
            if null:
                self.maker.parameters[variable.name] = (type_, None)
            return qt.CallExpression(Name("nearest"), (access, variable))
        items = tuple(qt.Literal(Scalar.F64, float(number)) for number in wanted)
        return qt.CallExpression(Name("nearest"), (access, qt.ListLiteral(items)))

    def _asked_text(self) -> qt.Expr:
        """Return a text to embed; of entities it may also be empty or null."""
        texts = self.scope.required().accesses(lambda type_: type_.text)
        if texts and seldom(self.random, 0.5):
            return self.random.choice(texts)
        text = self.random.choice(QUERY_TEXTS)
        if seldom(self.random, 0.5):
            return qt.Literal(Scalar.STRING, text)
        return self.maker.parameter(PropertyType(Scalar.STRING), text)

    def _ranking(self) -> qt.OrderingTerm | None:
        choices = self._rankings()
        if not choices or not seldom(self.random, 0.4):
            return None
        call = self.random.choice(choices)()
        direction = self.random.choice((None, None, *qt.SortDirection))
        if seldom(self.random, 0.3):
            self.projections["score"] = (qt.Projection(call, Name("score")), _DECIMAL)
            return qt.OrderingTerm(qt.AliasRef("score"), direction)
        return qt.OrderingTerm(call, direction)

    def _count(self) -> qt.CountExpression:
        number = early(self.random, (1, 2, 3, 5, 0, 9))
        if not seldom(self.random, 0.3):
            return qt.Literal(Scalar.U64, 2**64 - 1 if seldom(self.random, 0.05) else number)
        scalar = self.random.choice((Scalar.I64, Scalar.U32, Scalar.I32, Scalar.U64))
        type_ = PropertyType(scalar, nullable=seldom(self.random, 0.4))
        if type_.nullable and seldom(self.random, 0.4):
            return self.maker.parameter(type_)
        signed = scalar in (Scalar.I64, Scalar.I32)
        return self.maker.parameter(type_, -1 if signed and seldom(self.random, 0.1) else number)
