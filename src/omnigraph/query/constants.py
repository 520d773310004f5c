"""This module knows the values that are the same for each row: literals, parameters, the instant.

Every engine takes them from here, so that a literal means the same whoever compares it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np

from omnigraph.errors import InvalidInput
from omnigraph.plan import operators as op
from omnigraph.plan.expressions import (
    Constant,
    Expression,
    FunctionCall,
    ParameterRef,
    PropertyRef,
)
from omnigraph.plan.functions import FunctionKind
from omnigraph.types import Scalar


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
            case FunctionCall(function=function) if function.kind is FunctionKind.SCALAR:
                return self.now
            case _:
                raise AssertionError("only constants are the same for each row")

    def value_beside(self, expression: Expression, other: Expression) -> Any:  # noqa: ANN401
        """Return a constant to compare; a decimal literal beside an F32 is rounded like it."""
        value = self.value(expression)
        if not isinstance(expression, Constant) or other.type.scalar is not Scalar.F32:
            return value
        if not isinstance(other, PropertyRef):
            return value
        return [_rounded(item) for item in value] if expression.type.is_list else _rounded(value)

    def count(self, count: op.Count | None, word: str) -> int | None:
        """Return a limit or an offset, if there is one; `word` says which, should it be wrong."""
        value = count if count is None or isinstance(count, int) else self.value(count)
        if value is not None and value < 0:
            raise InvalidInput(f"{word} is {value}; it cannot be negative", code="limit_negative")
        return None if value is None else int(value)


def _rounded(value: Any) -> Any:  # noqa: ANN401 - only decimals are rounded
    """Return a decimal as a 32-bit float has it; one that is too large for any stays as it is."""
    if not isinstance(value, float):
        return value
    with np.errstate(over="ignore"):
        rounded = float(np.float32(value))
    return rounded if np.isfinite(rounded) else value
