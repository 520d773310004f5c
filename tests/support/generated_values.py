"""Random values that are computed from properties: arithmetic, functions of values, `case`."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, Protocol

from omnigraph.catalog import EdgeType, NodeType
from omnigraph.lang import query_tree as qt
from omnigraph.lang.query_tree import ArithmeticOperator
from omnigraph.lang.source import Name
from omnigraph.types import PropertyType, Scalar
from tests.support.generated_graphs import early, seldom

_DAY_PARTS = ("year", "month", "day")
_TIME_PARTS = ("hour", "minute", "second")
_SMALL = (1, 2, 0, -1, 3, 10)
_DECIMALS = (0.5, 2.0, 0.0, -1.5)
NUMBER = PropertyType(Scalar.F64, nullable=True)
TEXT = PropertyType(Scalar.STRING, nullable=True)


def properties(type_: NodeType | EdgeType) -> list[tuple[str, PropertyType]]:
    """Return the properties of a type that a query may name, its id among them."""
    found = [(name, property_.type) for name, property_ in type_.properties.items()]
    return [*found, ("id", PropertyType(Scalar.STRING))]


class Scope(dict[str, NodeType | EdgeType]):
    """The variables known at a place of the text."""

    optional: frozenset[str] = frozenset()
    """Those of `optional` blocks, for which a row may have no entity."""
    optional_here: frozenset[str] = frozenset()
    """Those of blocks beside this place; nothing goes on from them here."""

    def child(self) -> Scope:
        """Return the scope inside a block."""
        inner = Scope(self)
        inner.optional = self.optional
        return inner

    def adopt(self, inner: Scope) -> None:
        """Add what an `optional` block introduced."""
        new = frozenset(inner) - frozenset(self)
        self.update({name: inner[name] for name in inner if name in new})
        self.optional |= new
        self.optional_here |= new

    def required(self) -> Scope:
        """Return the variables that have an entity in every row."""
        return Scope({name: type_ for name, type_ in self.items() if name not in self.optional})

    def nodes(self, type_name: str | None = None) -> list[str]:
        """Return the variables for nodes to go on from, of one type or of all."""
        return [
            name
            for name, type_ in self.items()
            if isinstance(type_, NodeType)
            and type_name in (None, type_.name)
            and name not in self.optional_here
        ]

    def optional_nodes(self) -> list[str]:
        """Return the variables for nodes that a row may not have."""
        return [name for name in sorted(self.optional) if isinstance(self[name], NodeType)]

    def accesses(self, fits: Callable[[PropertyType], bool]) -> list[qt.PropertyAccess]:
        """Return the properties of all variables whose type fits."""
        return [
            qt.PropertyAccess(qt.Variable(name), Name(property_))
            for name, entity in self.items()
            for property_, type_ in properties(entity)
            if fits(type_)
        ]

    def new(self, letters: str) -> str:
        """Return a name that is free."""
        return next(letter for letter in letters if letter not in self)


class OperandMaker(Protocol):
    """What makes the operands of values."""

    random: Random

    def literal(self, type_: PropertyType) -> qt.Literal:
        """Return a literal that compares with a type."""

    def parameter(self, type_: PropertyType, value: Any = None) -> qt.Variable:
        """Declare a parameter with a value that fits."""

    def condition(self, scope: Scope, *, searches: bool = True) -> qt.Condition:
        """Return a condition over known variables."""


class ValueMaker:
    """Makes values of the properties of variables; None where no property fits."""

    def __init__(self, maker: OperandMaker, scope: Scope) -> None:
        self.maker = maker
        self.random = maker.random
        self.scope = scope

    def any(self) -> tuple[qt.Expr, PropertyType] | None:
        """Return a number or a text."""
        makers = [(self.number, NUMBER), (self.text, TEXT)]
        self.random.shuffle(makers)
        for make, type_ in makers:
            made = make()
            if made is not None:
                return made, type_
        return None

    def number(self, depth: int = 0) -> qt.Expr | None:
        """Return a number made of at least one property."""
        numbers = self._accesses(lambda type_: type_.numeric)
        makers: list[Callable[[], qt.Expr | None]] = [self._length, self._date_part]
        if numbers:
            first = self.random.choice(numbers)
            makers += [lambda: self._arithmetic(first, depth)] * 4
            makers += [lambda: self._coalesce(first, self._small)]
            makers += [lambda: self._case(first, self._small)]
        return self.random.choice(makers)()

    def text(self) -> qt.Expr | None:
        """Return a text made of at least one property."""
        texts = self._accesses(lambda type_: type_.text)
        if not texts:
            return None
        first = self.random.choice(texts)
        return self.random.choice(
            (
                lambda: self._call(self.random.choice(("lower", "upper")), first),
                lambda: self._substring(first),
                lambda: self._coalesce(first, lambda: self.maker.literal(TEXT)),
                lambda: self._case(first, lambda: self.maker.literal(TEXT)),
            )
        )()

    def _accesses(self, fits: Callable[[PropertyType], bool]) -> list[qt.PropertyAccess]:
        return self.scope.accesses(lambda type_: not type_.is_list and fits(type_))

    def _call(self, name: str, *arguments: qt.Expr) -> qt.CallExpression:
        return qt.CallExpression(Name(name), arguments)

    def _arithmetic(self, first: qt.Expr, depth: int) -> qt.Expr:
        operator = self.random.choice(list(ArithmeticOperator))
        if operator is ArithmeticOperator.REMAINDER:
            whole = self._accesses(lambda type_: type_.numeric and type_.spec.integer)
            if not whole:
                operator = ArithmeticOperator.ADD
            else:
                first = self.random.choice(whole)
        second: qt.Expr | None = None
        if depth < 2 and seldom(self.random, 0.4) and operator is not ArithmeticOperator.REMAINDER:
            second = self.number(depth + 1)
        second = second or self._small(whole=operator is ArithmeticOperator.REMAINDER)
        sides = (second, first) if seldom(self.random, 0.3) else (first, second)
        return qt.ArithmeticExpression(sides[0], operator, sides[1])

    def _small(self, *, whole: bool = False) -> qt.Expr:
        """Return a small number, mostly a literal."""
        if seldom(self.random, 0.2):
            scalar = self.random.choice((Scalar.I32, Scalar.I64))
            nullable = seldom(self.random, 0.3)
            number = self.random.choice(_SMALL)
            return self.maker.parameter(PropertyType(scalar, nullable=nullable), number)
        if not whole and seldom(self.random, 0.3):
            return qt.Literal(Scalar.F64, early(self.random, _DECIMALS))
        return qt.Literal(Scalar.I64, early(self.random, _SMALL))

    def _length(self) -> qt.Expr | None:
        text = self.text()
        return None if text is None else self._call("length", text)

    def _date_part(self) -> qt.Expr | None:
        is_instant = seldom(self.random, 0.6)
        scalar = Scalar.DATE_TIME if is_instant else Scalar.DATE
        times = self._accesses(lambda type_: type_.scalar is scalar)
        if not times:
            return None
        names = (*_DAY_PARTS, *_TIME_PARTS) if is_instant else _DAY_PARTS
        return self._call(self.random.choice(names), self.random.choice(times))

    def _substring(self, text: qt.Expr) -> qt.Expr:
        bounds: list[qt.Expr] = [self._small(whole=True)]
        if seldom(self.random, 0.6):
            bounds.append(self._length() or qt.Literal(Scalar.I64, 2))
        return self._call("substring", text, *bounds)

    def _coalesce(self, first: qt.Expr, other: Callable[[], qt.Expr]) -> qt.Expr:
        more = () if seldom(self.random, 0.7) else (first,)
        return self._call("coalesce", first, other(), *more)

    def _case(self, value: qt.Expr, other: Callable[[], qt.Expr]) -> qt.Expr:
        """Return a case of which the first value is a literal, or of a number a property."""
        values = [other(), value] if seldom(self.random, 0.5) else [other(), other()]
        branches = [
            qt.CaseBranch(self.maker.condition(self.scope, searches=False), given)
            for given in values[: self.random.randint(1, 2)]
        ]
        otherwise = value if seldom(self.random, 0.7) else None
        return qt.CaseExpression(tuple(branches), otherwise)
