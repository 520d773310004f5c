"""This module writes values as literals of Lance's filters, each in the type of its column.

A literal of another type would make Lance cast the column, and miss or refuse: a Date64 compared
with a timestamp fails, a 64-bit unsigned one compared with a fraction too.
"""

from __future__ import annotations

from datetime import date, datetime
from math import isfinite

import pyarrow as pa

_LOWEST = -(2**63)


def sql_text(value: str) -> str:
    """Write a string as a SQL literal of Lance's filters."""
    escaped = value.replace("'", "''")
    return f"'{escaped}'"


def sql_literals(values: pa.Array) -> list[str]:
    """Write the values of a column in the type of the column; what equals nothing is left out."""
    type_ = values.type
    if pa.types.is_date64(type_):
        numbers = values.view(pa.int64()).to_pylist()
        return [f"arrow_cast({number}, 'Date64')" for number in numbers if number is not None]
    found = (value for value in values.to_pylist() if value is not None)
    if pa.types.is_floating(type_):
        numbers = [repr(value) for value in found if isfinite(value)]
        wide = pa.types.is_float64(type_)
        return numbers if wide else [f"arrow_cast({n}, 'Float32')" for n in numbers]
    return [_literal(value) for value in found]


def _literal(value: object) -> str:
    match value:
        case str():
            return sql_text(value)
        case bool():
            return "true" if value else "false"
        case int() if value == _LOWEST:
            # Lance reads the sign apart from the digits, which alone are too large.
            return f"arrow_cast('{value}', 'Int64')"
        case int():
            return str(value)
        case datetime():
            raise ValueError("a DateTime is a date64 column")
        case date():
            return f"date '{value.isoformat()}'"
        case _:
            raise ValueError(f"{value!r} has no literal")
