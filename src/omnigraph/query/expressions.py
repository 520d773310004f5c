"""Evaluate expressions and predicates over rows of bindings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol, assert_never

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import InvalidInput
from omnigraph.lang.query_tree import ComparisonOperator
from omnigraph.plan import operators as op
from omnigraph.plan.expressions import (
    And,
    Case,
    Compare,
    Constant,
    EdgePath,
    Expression,
    FunctionCall,
    IsIn,
    IsNull,
    Or,
    ParameterRef,
    Predicate,
    PredicateCall,
    PropertyRef,
    is_constant,
    property_refs,
)
from omnigraph.plan.functions import FunctionKind
from omnigraph.query.column_cache import TypeTable
from omnigraph.query.comparison import Mask, Operand, compare, repeat_scalar, to_mask
from omnigraph.query.frame import NO_ENTITY, Frame
from omnigraph.query.limits import DEFAULT_MEMORY_BYTES
from omnigraph.storage.columns import Positions
from omnigraph.types import PropertyType, Scalar
from omnigraph.types.arrow import arrow_type, to_column

# ----------------------------------------------------------------------
# Constants of a query: literals, parameters, and the time of the query.
#
# Every engine takes them from here, so that a literal means the same everywhere.


@dataclass(slots=True)
class Constants:
    """The values of parameters, and the instant of the request."""

    parameters: Mapping[str, Any]
    now: datetime

    def value(self, expression: Expression) -> Any:  # noqa: ANN401 - a value of any type
        """Return the value of an expression that is the same for each row."""
        match expression:
            case Constant(value=value):
                return value
            case ParameterRef(name=name):
                return self.parameters.get(name)
            case FunctionCall(function=function) if function.kind is FunctionKind.CONSTANT:
                return function.local.load()(self)
            case _:
                raise AssertionError("only constants are the same for each row")

    def value_beside(self, expression: Expression, other: Expression) -> Any:  # noqa: ANN401
        """Return a constant to compare; a decimal literal beside an F32 is rounded like it."""
        value = self.value(expression)
        if not isinstance(expression, Constant) or other.type.scalar is not Scalar.F32:
            return value
        if not isinstance(other, PropertyRef):
            return value
        return (
            [_round_to_float32(item) for item in value]
            if expression.type.is_list
            else _round_to_float32(value)
        )

    def count(self, count: op.SliceBound | None, word: str) -> int | None:
        """Return a limit or an offset, if there is one; `word` says which, should it be wrong."""
        value = count if count is None or isinstance(count, int) else self.value(count)
        if value is not None and value < 0:
            raise InvalidInput(f"{word} is {value}; it cannot be negative", code="limit_negative")
        return None if value is None else int(value)


def now(constants: Constants) -> datetime:
    """Return the instant the request started."""
    return constants.now


def _round_to_float32(value: Any) -> Any:  # noqa: ANN401 - only decimals are rounded
    """Return a decimal as a 32-bit float has it; one that is too large for any stays as it is."""
    if not isinstance(value, float):
        return value
    with np.errstate(over="ignore"):
        rounded = float(np.float32(value))
    return rounded if np.isfinite(rounded) else value


HASHED_IN_LIST_SIZE = 16
"""A list of more values than this is looked up instead of compared one by one."""


class SearchFunctions(Protocol):
    """What answers functions that need more than the row: text predicates and rankings."""

    def column(self, call: FunctionCall, frame: Frame, evaluator: Evaluator) -> pa.Array:
        """Return the answer for each row."""

    def scores(
        self, call: FunctionCall, frame: Frame, evaluator: Evaluator
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
        """Return the score of each row, and a number that breaks ties between scores."""

    def best(
        self, call: FunctionCall, frame: Frame, evaluator: Evaluator, count: int
    ) -> npt.NDArray[np.int64] | None:
        """Return rows among which are the first by a ranking, ascending; None for all rows."""


class PathFunctions(Protocol):
    """What finds ways between nodes."""

    def column(self, call: FunctionCall, frame: Frame) -> pa.Array:
        """Return the answer for each row."""


@dataclass(slots=True)
class Evaluator(Constants):
    """Knows the values of parameters, the instant of the request, the table of each variable."""

    tables: Mapping[str, TypeTable]
    search: SearchFunctions
    paths: PathFunctions | None = None
    indirect: set[str] = field(default_factory=set)
    """Variables whose positions are not all in one table: a row may have no entity for them, at
    position `NO_ENTITY`, or one of several types."""
    unions: dict[str, Sequence[TypeTable]] = field(default_factory=dict)
    """The tables of a variable of several types; a position counts on from one to the next."""
    memory: int = DEFAULT_MEMORY_BYTES
    """Bytes that the columns may take which the query is the first to read."""
    check: Callable[[], None] = lambda: None
    """Called between the steps of long work; raises where the query is to end."""
    _whole: dict[tuple[TypeTable, str], int | None] = field(default_factory=dict)
    """How many bytes columns take that are read whole; None for one that does not fit."""
    _fetched: dict[tuple[str, str], tuple[Positions, pa.Array]] = field(default_factory=dict)

    # --- expressions ---------------------------------------------------------------------------

    def column(self, expression: Expression, frame: Frame) -> pa.Array:
        """Return the value of an expression for each row."""
        operand = self.operand(expression, frame)
        return repeat_scalar(operand, frame.rows) if isinstance(operand, pa.Scalar) else operand

    def fetch(self, expressions: Iterable[Expression], frame: Frame) -> None:
        """Read what expressions need of each entity at once, for those who ask next."""
        properties: dict[str, dict[str, None]] = {}
        for expression in expressions:
            for ref in property_refs(expression):
                properties.setdefault(ref.variable, {})[ref.property] = None
        self._fetched.clear()
        for variable, names in properties.items():
            if len(names) > 1 and variable not in self.indirect:
                positions = frame.positions[variable]
                table = self.tables[variable]
                wide = [name for name in names if not self.reads_whole(table, name)]
                columns = table.read_columns(list(names), positions, wide)
                for name, column in columns.items():
                    self._fetched[variable, name] = positions, column

    def forget(self) -> None:
        """Forget what is known of the rows of a run: it begins again."""
        self.indirect.clear()
        self.unions.clear()
        self._fetched.clear()

    def is_at_hand(self, references: Iterable[PropertyRef]) -> bool:
        """Return whether properties are in memory, so that asking often costs no more.

        Those of wide columns never are.
        """
        return all(
            table.has(ref.property) or not self.reads_whole(table, ref.property)
            for table, ref in self._read_by(references)
        )

    def rows_at_once(self, references: Iterable[PropertyRef], most: int) -> int:
        """Return of how many rows, at most `most`, the values of wide columns fit memory."""
        wide = (
            table.unread_bytes(ref.property, self.memory) / max(1, table.rows)
            for table, ref in self._read_by(references)
            if not self.reads_whole(table, ref.property)
        )
        return max(1, min(most, int(self.memory / 4 / max(1.0, sum(wide)))))

    def reads_whole(self, table: TypeTable, name: str) -> bool:
        """Return whether a whole column may be read: it fits, with those read before.

        The answer is the same for a whole run, even if another query reads the column meanwhile.
        """
        if (table, name) not in self._whole:
            left = self.memory - sum(size or 0 for size in self._whole.values())
            size = table.unread_bytes(name, left)
            self._whole[table, name] = size if size <= left else None
        return self._whole[table, name] is not None

    def _read_by(
        self, references: Iterable[PropertyRef]
    ) -> Iterator[tuple[TypeTable, PropertyRef]]:
        for ref in references:
            for table in self.unions.get(ref.variable, (self.tables[ref.variable],)):
                yield table, ref

    def operand(self, expression: Expression, frame: Frame) -> Operand:
        """Return the value of an expression, once if it is the same for each row."""
        match expression:
            case PropertyRef(variable=variable, property=name):
                positions, column = self._fetched.get((variable, name), (None, None))
                if column is not None and positions is frame.positions[variable]:
                    return column
                return self.values(variable, name, frame.positions[variable])
            case Constant() | ParameterRef():
                return self._scalar(expression)
            case Case():
                return self._computed(expression, frame)
            case FunctionCall(function=function):
                if function.kind is FunctionKind.SCALAR:
                    return self._computed(expression, frame)
                if function.kind is FunctionKind.CONSTANT:
                    return to_column([self.value(expression)], expression.type)[0]
                if function.kind is FunctionKind.PATH:
                    assert self.paths is not None, "a query has something that finds paths"
                    return self.paths.column(expression, frame)
                return self.search.column(expression, frame, self)
            case EdgePath():
                raise AssertionError("a way along edges has no value")
            case _ as unreachable:
                assert_never(unreachable)

    def values(self, variable: str, name: str, positions: Positions) -> pa.Array:
        """Return a property of entities; null where there is no entity."""
        if variable not in self.indirect:
            table = self.tables[variable]
            return table.values(name, positions, whole=self.reads_whole(table, name))
        start, places, columns = 0, list[Positions](), list[pa.Array]()
        for table in self.unions.get(variable, (self.tables[variable],)):
            inside = np.flatnonzero((positions >= start) & (positions < start + table.rows))
            if len(inside) or not columns:
                places.append(inside)
                whole = self.reads_whole(table, name)
                columns.append(table.values(name, positions[inside] - start, whole=whole))
            start += table.rows
        found = np.concatenate(places)
        order = np.full(len(positions), NO_ENTITY)
        order[found] = np.arange(len(found))
        type_ = columns[0].type
        # Arrow casts no null blob, not even to its own type.
        joined = pa.concat_arrays([c if c.type == type_ else c.cast(type_) for c in columns])
        return joined.take(pa.array(order, mask=order == NO_ENTITY))

    def _computed(self, expression: FunctionCall | Case, frame: Frame) -> Operand:
        """Compute a value for each row, once if it is the same for all; of no rows, nothing."""
        if not frame.rows:
            return pa.nulls(0, arrow_type(expression.type))
        if frame is not _ONE_ROW and not any(property_refs(expression)):
            return self.column(expression, _ONE_ROW)[0]
        if isinstance(expression, FunctionCall):
            operand: Operand = expression.function.local.load()(expression, frame, self)
            return operand
        choice = RowChoice(frame, expression.type)
        for condition, value in expression.branches:
            if choice.left.rows:
                choice.take(self.mask(condition, choice.left), value, self)
        if choice.left.rows and expression.otherwise is not None:
            choice.take(np.ones(choice.left.rows, np.bool_), expression.otherwise, self)
        return choice.column()

    def _beside(self, expression: Expression, other: Expression, frame: Frame) -> Operand:
        if not isinstance(expression, Constant):
            return self.operand(expression, frame)
        return to_column([self.value_beside(expression, other)], expression.type)[0]

    def _scalar(self, expression: Constant | ParameterRef) -> pa.Scalar:
        value = self.value(expression)
        if isinstance(value, list) and expression.type.scalar is Scalar.F64:
            value = [float(item) for item in value]
        return to_column([value], expression.type)[0]

    # --- predicates ----------------------------------------------------------------------------

    def mask(self, predicate: Predicate, frame: Frame) -> Mask:
        """Return for which rows a predicate holds."""
        match predicate:
            case Compare(left=left, operator=operator, right=right):
                return self._compare(left, operator, right, frame)
            case IsNull(operand=operand, negated=negated):
                mask = self.column(operand, frame)
                return to_mask(mask.is_valid() if negated else mask.is_null(), frame.rows)
            case IsIn(operand=operand, choices=choices):
                return self._is_in(operand, choices, frame)
            case PredicateCall(call=call):
                return to_mask(self.search.column(call, frame, self), frame.rows)
            case And(parts=parts):
                mask = np.ones(frame.rows, np.bool_)
                for part in parts:
                    mask &= self.mask(part, frame)
                return mask
            case Or(parts=parts):
                mask = np.zeros(frame.rows, np.bool_)
                for part in parts:
                    mask |= self.mask(part, frame)
                return mask

    def _compare(
        self, left: Expression, operator: ComparisonOperator, right: Expression, frame: Frame
    ) -> Mask:
        if operator is ComparisonOperator.CONTAINS and left.type.is_list:
            return self._is_in(right, left, frame)
        one, other = self._beside(left, right, frame), self._beside(right, left, frame)
        if operator in (ComparisonOperator.CONTAINS, ComparisonOperator.STARTS_WITH):
            return _match_text(one, operator, other, frame.rows)
        return compare(one, operator, other, frame.rows)

    @staticmethod
    def _has_element(lists: Operand, needle: Operand, frame: Frame) -> Mask:
        """Return which lists have an element equal to the needle."""
        if isinstance(lists, pa.Scalar):
            lists = repeat_scalar(lists, frame.rows)
        whole = lists.combine_chunks() if isinstance(lists, pa.ChunkedArray) else lists
        owners = pc.list_parent_indices(whole)
        items = pc.list_flatten(whole)
        needles = needle if isinstance(needle, pa.Scalar) else needle.take(owners)
        hits = compare(items, ComparisonOperator.EQ, needles, len(items))
        mask = np.zeros(frame.rows, np.bool_)
        mask[np.asarray(owners)[hits]] = True
        return mask

    def _is_in(self, operand: Expression, choices: Expression, frame: Frame) -> Mask:
        if not is_constant(choices):
            lists, needle = self.operand(choices, frame), self._beside(operand, choices, frame)
            return self._has_element(lists, needle, frame)
        values = self.value_beside(choices, operand)
        if values is None:
            return np.zeros(frame.rows, np.bool_)
        column = self.operand(operand, frame)
        element = choices.type.element
        present = [value for value in values if value is not None]
        if len(present) > HASHED_IN_LIST_SIZE and element.text and isinstance(column, pa.Array):
            return to_mask(pc.is_in(column, value_set=to_column(present, element)), frame.rows)
        mask = np.zeros(frame.rows, np.bool_)
        for value in present:
            mask |= compare(
                column, ComparisonOperator.EQ, _in_list_scalar(value, element), frame.rows
            )
        return mask


_ONE_ROW = Frame(1)
"""The row that values are computed for which are the same for each row."""


class RowChoice:
    """A column of which each row takes its value from one of several expressions.

    An expression is computed for the rows that take it, so that it cannot fail for others.
    """

    def __init__(self, frame: Frame, type_: PropertyType) -> None:
        self.left = frame
        """The rows that have no value yet."""
        self.type = type_
        self._rows = frame.rows
        self._numbers = np.arange(frame.rows)
        self._places: list[Positions] = []
        self._columns: list[pa.Array] = []

    def take(self, chosen: Mask, value: Expression, evaluator: Evaluator) -> None:
        """Give the chosen ones of the rows that are left the value of an expression."""
        if chosen.any():
            self.put(chosen, evaluator.column(value, self.left.take(chosen)))

    def put(self, chosen: Mask, column: pa.Array) -> None:
        """Give the chosen ones of the rows that are left these values."""
        self._places.append(self._numbers[chosen])
        self._columns.append(to_common_type(column, self.type))
        self._numbers, self.left = self._numbers[~chosen], self.left.take(~chosen)

    def column(self) -> pa.Array:
        """Return the values of all rows; those that are left have none."""
        nulls = pa.nulls(len(self._numbers), arrow_type(self.type))
        order = np.empty(self._rows, np.int64)
        order[np.concatenate([*self._places, self._numbers])] = np.arange(self._rows)
        return pa.concat_arrays([*self._columns, nulls]).take(pa.array(order))


def to_common_type(column: pa.Array, type_: PropertyType) -> pa.Array:
    """Return values of the same kind in a type that holds them; refuse integers beyond it."""
    wanted = arrow_type(type_)
    if column.type == wanted:
        return column
    try:
        return pc.cast(column, wanted, safe=type_.spec.integer)
    except pa.ArrowInvalid as error:
        raise number_overflow() from error


def number_overflow() -> InvalidInput:
    """Return the error of a computed number that its type does not hold."""
    return InvalidInput(NUMBER_OVERFLOW, code="query_number_overflow")


NUMBER_OVERFLOW = (
    "a computed number is outside the range of its type: integers are computed as I64, "
    "other numbers as F64; exclude such values, or compute with a decimal number"
)


def _in_list_scalar(value: Any, type_: PropertyType) -> pa.Scalar:  # noqa: ANN401 - of the type
    """Return one of a list of choices; an integer among floats stays what it is."""
    if type_.numeric and isinstance(value, int):
        return pa.scalar(value, pa.int64() if value < 2**63 else pa.uint64())
    return to_column([value], type_)[0]


def _match_text(text: Operand, operator: ComparisonOperator, part: Operand, rows: int) -> Mask:
    """Return which texts contain or start with a part, exactly."""
    if isinstance(part, pa.Scalar) and not isinstance(text, pa.Scalar):
        needle = part.as_py()
        if needle is None:
            return np.zeros(rows, np.bool_)
        test = pc.match_substring if operator is ComparisonOperator.CONTAINS else pc.starts_with
        return to_mask(test(text, needle), rows)
    texts = _python_values(text, rows)
    parts = _python_values(part, rows)
    pairs = zip(texts, parts, strict=True)
    if operator is ComparisonOperator.CONTAINS:
        held = [t is not None and p is not None and p in t for t, p in pairs]
    else:
        held = [t is not None and p is not None and t.startswith(p) for t, p in pairs]
    return np.array(held, np.bool_)


def _python_values(operand: Operand, rows: int) -> list[Any]:
    if isinstance(operand, pa.Scalar):
        return [operand.as_py()] * rows
    values: list[Any] = operand.to_pylist()
    return values
