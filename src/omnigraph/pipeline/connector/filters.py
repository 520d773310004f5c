"""Translate conditions on columns into filters that storage evaluates.

Only conditions with exactly the same meaning in storage are translated. Comparisons with a float
zero are not, because one side distinguishes it from minus zero. Negations are not, because an index
may include nulls in what does not match.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from types import MappingProxyType
from typing import Any, TypeAlias

from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    StringContains,
    StringEndsWith,
    StringStartsWith,
)

from omnigraph.errors import InvalidInput
from omnigraph.pipeline.connector.table_scan import ScanColumn, TableScan
from omnigraph.query.pushdown import exact_literals
from omnigraph.storage.row_lookup import sql_text
from omnigraph.types import PropertyType, Scalar

FilterCondition: TypeAlias = Sequence[Any]
"""A column, an operator of `FILTER_OPERATORS`, and a value unless it tests for null."""

_COMPARED: Mapping[type[Filter], str] = MappingProxyType(
    {
        EqualTo: "=",
        GreaterThan: ">",
        GreaterThanOrEqual: ">=",
        LessThan: "<",
        LessThanOrEqual: "<=",
    }
)
_TEXTUAL: Mapping[type[Filter], str] = MappingProxyType(
    {StringContains: "contains", StringEndsWith: "ends_with", StringStartsWith: "starts_with"}
)
_NULL: Mapping[type[Filter], str] = MappingProxyType({IsNull: "is null", IsNotNull: "is not null"})
FILTER_OPERATORS: Mapping[str, type[Filter]] = MappingProxyType(
    {
        word: kind
        for table in (_COMPARED, {In: "in"}, _TEXTUAL, _NULL)
        for kind, word in table.items()
    }
)


def apply_conditions(pinned: TableScan, conditions: Sequence[FilterCondition]) -> TableScan:
    """Return only the rows for which all conditions hold; storage leaves out the others."""
    known = {column.name: column for column in pinned.columns}
    texts, wrong = [], []
    for condition in conditions:
        try:
            texts.append(_read(condition, known))
        except ValueError as error:
            wrong.append(f"{list(condition)}: {error}")
    if wrong:
        message = f"{pinned.entity} cannot be filtered: {'; '.join(wrong)}"
        raise InvalidInput(message, code="filter_invalid", entity=pinned.entity, problems=wrong)
    return replace(pinned, where=" AND ".join(texts)) if texts else pinned


def _read(condition: FilterCondition, known: Mapping[str, ScanColumn]) -> str:
    """Return the filter of a condition; raise ValueError if storage has none."""
    name, word, *values = condition
    column, kind = known.get(name), FILTER_OPERATORS.get(word)
    if column is None:
        raise ValueError(f"there is no column {name}")
    if kind is None:
        raise ValueError(f"unknown operator '{word}', use one of {', '.join(FILTER_OPERATORS)}")
    if len(values) != (0 if kind in _NULL else 1):
        raise ValueError(f"'{word}' takes {'no value' if kind in _NULL else 'one value'}")
    text = _text(_filter(kind, column, values), known)
    if text is None:
        raise ValueError("storage cannot evaluate it exactly; filter the data frame instead")
    return text


def _filter(kind: type[Filter], column: ScanColumn, values: Sequence[Any]) -> Filter:
    convert = column.type.element.from_json
    if kind is In:
        if not isinstance(values[0], list | tuple | set | frozenset):
            raise ValueError("'in' takes a list")
        return In((column.name,), tuple(convert(value) for value in values[0]))
    return kind((column.name,), *map(convert, values))  # type: ignore[call-arg]


def stored_filter(
    filters: Sequence[Filter], columns: Sequence[ScanColumn]
) -> tuple[str | None, list[Filter]]:
    """Return the filter that storage evaluates, or None, and the remaining filters."""
    known = {column.name: column for column in columns}
    texts = [_text(filter_, known) for filter_ in filters]
    taken = [text for text in texts if text is not None]
    left = [filter_ for filter_, text in zip(filters, texts, strict=True) if text is None]
    return (" AND ".join(taken) if taken else None), left


def _text(filter_: Filter, known: Mapping[str, ScanColumn]) -> str | None:
    path: tuple[str, ...] = getattr(filter_, "attribute", ())
    column = known.get(path[0]) if len(path) == 1 else None
    if column is None or column.is_blob or column.type.is_list or column.type.dimension:
        return None
    name = f"`{column.column}`"
    match filter_:
        case IsNull() | IsNotNull():
            return f"{name} {_NULL[type(filter_)].upper()}"
        case In(value=values):
            literals = _literals(list(values), column.type)
            return literals and f"{name} IN ({literals})"
        case StringContains() | StringEndsWith() | StringStartsWith():
            call = f"{_TEXTUAL[type(filter_)]}({name}, {sql_text(filter_.value)})"
            return call if column.type.text else None
        case EqualTo() | GreaterThan() | GreaterThanOrEqual() | LessThan() | LessThanOrEqual():
            literals = _literals([filter_.value], column.type)
            return literals and f"{name} {_COMPARED[type(filter_)]} {literals}"
        case _:
            return None


def _literals(values: Sequence[object], type_: PropertyType) -> str | None:
    ours = [_to_stored_value(value) for value in values]
    if type_.scalar in (Scalar.F32, Scalar.F64) and 0 in ours:
        return None
    if type_.scalar is Scalar.DATE_TIME and not all(map(_is_stored_exactly, ours)):
        return None
    return exact_literals(ours, type_)


def _to_stored_value(value: object) -> object:
    """Return a value as we have it: Spark's unsigned numbers are decimals."""
    if isinstance(value, Decimal) and value == value.to_integral_value():
        return int(value)
    return value


def _is_stored_exactly(value: object) -> bool:
    return (
        isinstance(value, datetime) and value.tzinfo is not None and value.microsecond % 1000 == 0
    )
