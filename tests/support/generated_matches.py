"""Random well-typed match blocks over a schema."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from omnigraph.catalog import Catalog, EdgeType, NodeType
from omnigraph.lang import query_tree as qt
from omnigraph.lang.query_tree import ANONYMOUS, ComparisonOperator
from omnigraph.lang.source import Name
from omnigraph.types import PropertyType, Scalar
from tests.support.generated_graphs import ENUM, Pools, early, seldom
from tests.support.generated_values import Scope, ValueMaker, properties

NUMBERS = ("I64", "F64", "I32", "U32", "U64", "F32")
COMPARISONS = [sign for sign in ComparisonOperator if not sign.isidentifier()]
WORDS = ("ship", "a b", "sailing", "The", "", "日本", "shp", "sail ships", "É", "of a ship")


class MatchMaker:
    """Makes match blocks over a catalog, and declares the parameters they use."""

    def __init__(self, random: Random, catalog: Catalog, pools: Pools, *, search: bool) -> None:
        self.random = random
        self.catalog = catalog
        self.pools = pools
        self.search = search
        self.parameters: dict[str, tuple[PropertyType, Any]] = {}
        self.components = 0

    def clauses(self, scope: Scope) -> tuple[qt.MatchClause, ...]:
        """Return a whole match block; what it binds is added to the scope."""
        first = self._start(scope)
        more = [self._clause(scope, 0) for _ in range(early(self.random, (1, 0, 2, 3, 4, 5)))]
        return (first, *more)

    # --- clauses -------------------------------------------------------------------------------

    def _start(self, scope: Scope) -> qt.MatchClause:
        if self.catalog.edges and seldom(self.random, 0.3):
            return self._traversal(scope, mention=False)
        return self._binding(scope)

    def _clause(self, scope: Scope, depth: int) -> qt.MatchClause:
        choices: list[Callable[[], qt.MatchClause]] = [
            lambda: qt.FilterClause(self.condition(scope)),
            lambda: self._binding(scope),
        ]
        if self.catalog.edges:
            choices += [lambda: self._traversal(scope)] * 3
        if depth < 2 and scope:
            choices += [lambda: self._block(scope, depth)] * 2
        return self.random.choice(choices)()

    def _block(self, scope: Scope, depth: int) -> qt.MatchClause:
        inner = scope.child()
        first: list[Callable[[], qt.MatchClause]] = [
            lambda: qt.FilterClause(self._simple(inner, bound=True))
        ]
        if scope.nodes() and self.catalog.edges:
            first += [lambda: self._traversal(inner, mention=True)] * 2
        clauses = [self.random.choice(first)()]
        more = early(self.random, (0, 1, 2))
        whole = (*clauses, *(self._clause(inner, depth + 1) for _ in range(more)))
        kind = self.random.choice((qt.NegationClause, qt.ExistsClause, qt.OptionalClause))
        if kind is qt.OptionalClause:
            scope.adopt(inner)
        return kind(whole)

    def _binding(self, scope: Scope) -> qt.MatchClause:
        again = scope.nodes()
        if again and (self.components >= 2 or seldom(self.random, 0.3)):
            name = self.random.choice(again)
        else:
            name = ANONYMOUS if scope and seldom(self.random, 0.1) else scope.new("abcdmn")
            self.components += 1
        type_ = scope.get(name) or self.random.choice(list(self.catalog.nodes.values()))
        assert isinstance(type_, NodeType)
        if name != ANONYMOUS:
            scope[name] = type_
        matches = [self._match(type_) for _ in range(early(self.random, (0, 0, 0, 1, 2)))]
        kept = tuple(match for match in matches if match is not None)
        return qt.BindingClause(qt.Variable(name), Name(type_.name), kept)

    def _match(self, type_: NodeType) -> qt.PropertyMatch | None:
        name, wanted = early(self.random, properties(type_))
        if wanted.scalar in (Scalar.VECTOR, Scalar.BLOB):
            return None
        element = wanted.element if wanted.is_list else wanted
        if element.scalar is Scalar.DATE_TIME and seldom(self.random, 0.1):
            return qt.PropertyMatch(Name(name), qt.CallExpression(Name("now")))
        if seldom(self.random, 0.3):
            return qt.PropertyMatch(Name(name), self.parameter(self.similar(element)))
        return qt.PropertyMatch(Name(name), self.literal(element))

    def _traversal(self, scope: Scope, *, mention: bool | None = None) -> qt.MatchClause:
        """Return a traversal; `mention` is whether it must touch a variable that is known."""
        edge = self.random.choice(list(self.catalog.edges.values()))
        fits = [*scope.nodes(edge.src), *scope.nodes(edge.dst)]
        if mention and not fits:
            return qt.FilterClause(self._simple(scope, bound=True))
        if not mention and self.components < 2 and seldom(self.random, 0.15):
            fits = []
        names = self._ends(edge, scope, fits)
        hops, edge_name = None, None
        if seldom(self.random, 0.35):
            edge_name = ANONYMOUS if seldom(self.random, 0.1) else scope.new("efghwxyz")
        elif seldom(self.random, 0.4):
            low = early(self.random, (1, 2, 3))
            hops = qt.HopRange(low, low + early(self.random, (0, 1, 2, 5)))
        if edge_name is not None and edge_name != ANONYMOUS:
            scope[edge_name] = edge
        word = edge.name[0].lower() + edge.name[1:]
        return qt.TraversalClause(
            qt.Variable(names[0]),
            Name(word.lower() if seldom(self.random, 0.1) else word),
            qt.Variable(names[1]),
            None if edge_name is None else qt.Variable(edge_name),
            undirected=edge.src == edge.dst and seldom(self.random, 0.3),
            hops=hops,
        )

    def _ends(self, edge: EdgeType, scope: Scope, fits: Sequence[str]) -> tuple[str, str]:
        """Return the variables of a traversal, of which one is known if any fits."""
        ends, place = [edge.src, edge.dst], self.random.randrange(2)
        if not fits:
            self.components += 1
            known = scope.new("abcdmnopqr")
            scope[known] = self.catalog.nodes[ends[place]]
            other = scope.new("abcdmnopqr")
            if place == 1 and edge.src != edge.dst and seldom(self.random, 0.3):
                other = ANONYMOUS
        else:
            known = self.random.choice(fits)
            # It may be written from either end; the known variable tells the direction.
            if scope[known].name != ends[place]:
                ends.reverse()
            other = self._end(scope, ends[1 - place])
        if edge.src == edge.dst and seldom(self.random, 0.05):
            other = known
        if other != ANONYMOUS:
            scope.setdefault(other, self.catalog.nodes[ends[1 - place]])
        return (known, other) if place == 0 else (other, known)

    def _end(self, scope: Scope, type_name: str) -> str:
        """Return a variable for the other end of a traversal: new, known, or none at all."""
        known = scope.nodes(type_name)
        if known and seldom(self.random, 0.2):
            return self.random.choice(known)
        return ANONYMOUS if seldom(self.random, 0.15) else scope.new("abcdmnopqr")

    # --- conditions ----------------------------------------------------------------------------

    def condition(self, scope: Scope, *, searches: bool = True) -> qt.Condition:
        """Return a condition over known variables."""

        def simple() -> qt.Condition:
            return self._simple(scope, searches=searches)

        if seldom(self.random, 0.25):
            parts = [simple() for _ in range(self.random.randint(2, 3))]
            if seldom(self.random, 0.3):
                parts[0] = qt.AndCondition((parts[0], simple()))
            return qt.OrCondition(tuple(parts))
        return simple()

    def _computed(self, scope: Scope) -> qt.Condition | None:
        """Return a condition on a value that is computed."""
        made = ValueMaker(self, scope).any()
        if made is None:
            return None
        expr, type_ = made
        if seldom(self.random, 0.15):
            return qt.NullCondition(expr, self.random.choice((False, True)))
        if seldom(self.random, 0.15):
            return qt.MembershipCondition(expr, self._choices(type_))
        signs = list(ComparisonOperator) if type_.text else COMPARISONS
        return qt.ComparisonCondition(expr, self.random.choice(signs), self._operand(type_, scope))

    def _simple(self, scope: Scope, *, bound: bool = False, searches: bool = True) -> qt.Condition:
        if not scope:
            return qt.NullCondition(self.literal(PropertyType(Scalar.STRING)), True)
        computed = self._computed(scope) if seldom(self.random, 0.12) else None
        if computed is not None:
            return computed
        name = self.random.choice(list(scope))
        property_, type_ = early(self.random, properties(scope[name]))
        access = qt.PropertyAccess(qt.Variable(name), Name(property_))
        if type_.scalar in (Scalar.VECTOR, Scalar.BLOB) or seldom(self.random, 0.1):
            return qt.NullCondition(access, self.random.choice((False, True)))
        if type_.is_list:
            needle = self._operand(type_.element, scope)
            if seldom(self.random, 0.2):
                return qt.MembershipCondition(needle, access)
            return qt.ComparisonCondition(access, ComparisonOperator.CONTAINS, needle)
        searchable = self.search and searches and type_.text and name in scope.required().nodes()
        if searchable and seldom(self.random, 0.2):
            return qt.CallCondition(self.predicate(access, scope))
        if seldom(self.random, 0.15):
            return qt.MembershipCondition(access, self._choices(type_))
        if seldom(self.random, 0.05):
            items = tuple(self.literal(type_) for _ in range(self.random.randint(1, 3)))
            return qt.ComparisonCondition(
                qt.ListLiteral(items), ComparisonOperator.CONTAINS, access
            )
        signs = list(ComparisonOperator) if type_.text else COMPARISONS
        sides = [access, self._operand(type_, scope)]
        if seldom(self.random, 0.1) and not bound:
            sides.reverse()
        if isinstance(sides[0], qt.Variable) and signs is not COMPARISONS:
            signs = COMPARISONS  # `$p contains $x` would be a traversal
        return qt.ComparisonCondition(sides[0], self.random.choice(signs), sides[1])

    def predicate(self, access: qt.PropertyAccess, scope: Scope) -> qt.CallExpression:
        """Return a text predicate over a property."""
        name = self.random.choice(("search", "match_text", "fuzzy"))
        arguments: list[qt.Expr] = [access, self.words(scope)]
        if name == "fuzzy" and seldom(self.random, 0.5):
            edits = self.random.randint(0, 3)
            arguments.append(
                self.parameter(PropertyType(Scalar.I32), edits)
                if seldom(self.random, 0.3)
                else qt.Literal(Scalar.I64, edits)
            )
        return qt.CallExpression(Name(name), tuple(arguments))

    def words(self, scope: Scope) -> qt.Expr:
        """Return what to look for in texts: now and then, the text of another property."""
        if seldom(self.random, 0.1):
            texts = scope.required().accesses(lambda type_: type_.text)
            return self.random.choice(texts) if texts else qt.Literal(Scalar.STRING, "ship")
        if seldom(self.random, 0.1):
            return self.parameter(PropertyType(Scalar.STRING, nullable=True))
        text = self.random.choice(WORDS)
        if seldom(self.random, 0.3):
            return self.parameter(PropertyType(Scalar.STRING), text)
        return qt.Literal(Scalar.STRING, text)

    def _operand(self, type_: PropertyType, scope: Scope) -> qt.Expr:
        """Return something to compare a value of a type with."""
        if seldom(self.random, 0.2):
            others = scope.accesses(type_.comparable_with)
            if others:
                return self.random.choice(others)
        if type_.scalar is Scalar.DATE_TIME and seldom(self.random, 0.1):
            return qt.CallExpression(Name("now"))
        if seldom(self.random, 0.3):
            return self.parameter(self.similar(type_))
        return self.literal(type_)

    def _choices(self, type_: PropertyType) -> qt.Expr:
        if seldom(self.random, 0.4):
            similar = self.similar(type_)
            return self.parameter(PropertyType(similar.scalar, is_list=True))
        size = early(self.random, (1, 2, 3, 0, 20))
        items = [self.literal(type_) for _ in range(size)]
        return qt.ListLiteral(tuple(items))

    def similar(self, type_: PropertyType) -> PropertyType:
        """Return a parameter type that compares with a type."""
        scalar = type_.scalar
        if type_.spec.numeric:
            scalar = Scalar(self.random.choice((str(scalar), *NUMBERS)))
        return PropertyType(scalar, nullable=seldom(self.random, 0.3))

    # --- values --------------------------------------------------------------------------------

    def literal(self, type_: PropertyType) -> qt.Literal:
        """Return a literal that compares with a type."""
        if type_.enum_values is not None:
            return qt.Literal(Scalar.STRING, self.random.choice(type_.enum_values))
        scalar = type_.scalar
        if type_.spec.numeric:
            scalar = self.random.choice((Scalar.I64, Scalar.F64))
            pool = self.pools[str(type_.scalar)]
            pool = [v for v in pool if scalar is Scalar.F64 or v == int(v)]
            found = early(self.random, pool)
            if scalar is Scalar.I64:
                return qt.Literal(scalar, max(-(2**63), min(2**63 - 1, int(found))))
            return qt.Literal(scalar, float(found))
        return qt.Literal(scalar, early(self.random, self.pools[str(scalar)]))

    def parameter(self, type_: PropertyType, value: Any = None) -> qt.Variable:
        """Declare a parameter with a value that fits."""
        name = f"p{len(self.parameters)}"
        if value is None and not (type_.nullable and seldom(self.random, 0.3)):
            pool = ENUM if type_.enum_values is not None else self.pools[str(type_.scalar)]
            size = early(self.random, (1, 2, 0, 20)) if type_.is_list else 1
            values = [early(self.random, pool) for _ in range(size)]
            value = values if type_.is_list else values[0]
        self.parameters[name] = (type_, value)
        return qt.Variable(name)
