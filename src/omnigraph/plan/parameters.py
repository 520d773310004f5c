"""Bind the JSON parameters of a request to typed values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from omnigraph.lang import Code, Diagnostic, QueryError
from omnigraph.lang.diagnostics import MAX_DIAGNOSTICS, nearest_name, quote
from omnigraph.plan.query_plan import Parameter
from omnigraph.types import PropertyType, json_kind
from omnigraph.types.data_values import to_python

_SAFE_INTEGER = 2**53 - 1


def bind_parameters(
    declared: Sequence[Parameter], given: object = None, *, javascript: bool = False
) -> dict[str, Any]:
    """Return a value for every declared parameter; raise QueryError naming every invalid one.

    A nullable parameter that is absent is null; undeclared keys are kept as they are. With
    `javascript`, integers a double cannot hold are refused and whole floats are integers.
    """
    if given is None:
        given = {}
    if not isinstance(given, Mapping):
        message = f"parameters must be an object, got {json_kind(given)}"
        raise QueryError([Diagnostic(Code.PARAMETERS_NOT_AN_OBJECT, message)])
    problems: list[Diagnostic] = []
    bound: dict[str, Any] = {}
    names = {parameter.name for parameter in declared}
    undeclared = {name: value for name, value in given.items() if name not in names}
    for parameter in declared:
        if len(problems) >= MAX_DIAGNOSTICS:
            break
        try:
            bound[parameter.name] = _bind(parameter, given, javascript=javascript)
        except LookupError:
            near = nearest_name(parameter.name, map(str, undeclared))
            hint = f"`{quote(near)}` is given, but not declared" if near else None
            message = f"parameter '{parameter.name}' not provided ({parameter.type})"
            problems.append(Diagnostic(Code.PARAMETER_MISSING, message, hint=hint))
        except ValueError as error:
            message = f"param '{parameter.name}': {error}"
            problems.append(Diagnostic(Code.PARAMETER_VALUE, message))
    for name, value in undeclared.items():
        if isinstance(value, Mapping):
            message = f"param '{quote(str(name))}': an object cannot be a parameter"
            problems.append(Diagnostic(Code.PARAMETER_VALUE, message))
    if problems:
        raise QueryError(problems)
    return bound | undeclared


def _bind(parameter: Parameter, given: Mapping[Any, Any], *, javascript: bool) -> object:
    if parameter.name not in given and not parameter.type.nullable:
        raise LookupError(parameter.name)
    value = to_python(given.get(parameter.name))
    if isinstance(value, list | tuple):
        value = [to_python(item) for item in value]
    if javascript:
        value = _from_javascript(value, parameter.type)
    return parameter.type.from_json(value)


def _from_javascript(value: object, type_: PropertyType) -> object:
    """Read numbers as a JavaScript client writes them: all of them doubles."""
    if isinstance(value, list | tuple):
        return [_from_javascript(item, type_) for item in value]
    if isinstance(value, bool) or not isinstance(value, int | float) or not type_.spec.integer:
        return value
    if not abs(value) <= _SAFE_INTEGER:
        raise ValueError(f"value {value} exceeds ±{_SAFE_INTEGER}; pass it as a decimal string")
    return int(value) if value == int(value) else value
