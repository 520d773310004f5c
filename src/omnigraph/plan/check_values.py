"""Type checks of values: literals, parameters and calls without arguments."""

from __future__ import annotations

from typing import Any

from omnigraph.catalog.model import Property
from omnigraph.lang import Code, did_you_mean
from omnigraph.lang import query_tree as qt
from omnigraph.lang.diagnostics import quote
from omnigraph.plan.expressions import Constant, Expression, FunctionCall, ParameterRef
from omnigraph.plan.functions import FUNCTIONS
from omnigraph.plan.type_check_context import TypeCheckContext
from omnigraph.types import PropertyType, Scalar, parse_date, parse_datetime

_TEMPORAL = {Scalar.DATE: parse_date, Scalar.DATE_TIME: parse_datetime}


def check_literal(
    literal: qt.Literal | qt.ListLiteral, context: TypeCheckContext
) -> Constant | None:
    """Return the value a literal means, with its natural type."""
    if isinstance(literal, qt.ListLiteral):
        return _check_list_literal(literal, context)
    value: Any = literal.value
    parse = _TEMPORAL.get(literal.scalar)
    if parse is not None:
        try:
            value = parse(str(literal.value))
        except ValueError as error:
            context.error(
                Code.TEMPORAL_LITERAL_INVALID, replace_unprintable(str(error)), literal.span
            )
            return None
    return Constant(value, PropertyType(literal.scalar))


def replace_unprintable(text: str) -> str:
    """Return an error text that quotes user input, safe to print."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def _check_list_literal(literal: qt.ListLiteral, context: TypeCheckContext) -> Constant | None:
    items: list[Constant] = []
    for item in literal.items:
        if isinstance(item, qt.ListLiteral):
            message = "a list literal cannot hold lists"
            context.error(Code.LIST_LITERAL_INVALID, message, item.span)
            return None
        value = check_literal(item, context)
        if value is None:
            return None
        items.append(value)
    if not items:
        return Constant([], PropertyType(Scalar.STRING, is_list=True))
    first = items[0].type
    for checked, written in zip(items, literal.items, strict=True):
        if not first.comparable_with(checked.type):
            message = f"a list literal cannot mix {first} and {checked.type}"
            context.error(Code.LIST_LITERAL_INVALID, message, written.span)
            return None
    scalars = {item.type.scalar for item in items}
    scalar = first.scalar if len(scalars) == 1 else Scalar.F64
    return Constant([item.value for item in items], PropertyType(scalar, is_list=True))


def check_parameter(variable: qt.Variable, context: TypeCheckContext) -> ParameterRef | None:
    """Return the parameter a variable used as a value means."""
    type_ = context.parameters.get(variable.name)
    if type_ is None:
        context.error(
            Code.UNDECLARED_PARAMETER,
            f"`${variable.name}` is not a declared parameter",
            variable.span,
            hint=did_you_mean(variable.name, context.parameters, prefix="$")
            or context.declaration_hint(variable.name),
        )
        return None
    return ParameterRef(variable.name, type_)


def check_constant_call(call: qt.CallExpression, context: TypeCheckContext) -> FunctionCall | None:
    """Check a call without arguments, like `now()`: its value is the same for each row."""
    spec = FUNCTIONS[call.function.text]
    if call.arguments or call.distinct:
        context.error(Code.FUNCTION_MISUSE, f"{spec.name}() takes no arguments", call.span)
        return None
    assert isinstance(spec.result, PropertyType), "a constant has a type of its own"
    return FunctionCall(spec, (), spec.result)


def check_match_value(
    value: qt.ValueExpression, property_: Property, place: str, context: TypeCheckContext
) -> Expression | None:
    """Check `property: value` of a binding: equality, or membership for a list property."""
    type_ = property_.type
    if type_.scalar is Scalar.BLOB:
        context.error(Code.LITERAL_MISFIT, f"blob {place} cannot be matched", value.span)
        return None
    if type_.scalar is Scalar.VECTOR:
        context.error(
            Code.INCOMPATIBLE_TYPES,
            f"vector {place} cannot be matched",
            value.span,
            hint="rank by similarity with `order { nearest(…) }`",
        )
        return None
    if isinstance(value, qt.ListLiteral):
        message = f"{place} is {type_}: a list literal cannot be matched"
        hint = (
            "give one value to ask for membership"
            if type_.is_list
            else "several values are asked for with `$x.p in [ … ]`"
        )
        context.error(Code.LITERAL_MISFIT, message, value.span, hint=hint)
        return None
    if type_.is_list:
        return check_value(value, type_.element, f"an element of {place}", context, exact=False)
    return check_value(value, type_, place, context, exact=False)


def check_value(
    value: qt.ValueExpression,
    expected: PropertyType,
    place: str,
    context: TypeCheckContext,
    *,
    exact: bool,
) -> Expression | None:
    """Check a value that is assigned to a property (`exact`: it must be storable) or compared."""
    match value:
        case qt.Variable():
            parameter = check_parameter(value, context)
            if parameter is not None and not _is_parameter_compatible(
                parameter.type, expected, exact=exact
            ):
                message = (
                    f"{place} is {expected.base_text}, but `${parameter.name}` is {parameter.type}"
                )
                context.error(Code.INCOMPATIBLE_TYPES, message, value.span)
                return None
            return parameter
        case qt.CallExpression():
            call = check_constant_call(value, context)
            if call is not None and not (
                expected.scalar is Scalar.DATE_TIME and not expected.is_list
            ):
                message = f"now() is a DateTime, but {place} is {expected.base_text}"
                context.error(Code.INCOMPATIBLE_TYPES, message, value.span)
                return None
            return call
        case qt.Literal() | qt.ListLiteral():
            literal = check_literal(value, context)
            if literal is None:
                return None
            problem, hint = find_literal_mismatch(literal, expected, exact=exact)
            if problem is not None:
                context.error(Code.LITERAL_MISFIT, f"{place} {problem}", value.span, hint=hint)
                return None
            return _to_stored_form(literal, expected.as_nullable(False), exact=exact)


def _is_parameter_compatible(actual: PropertyType, expected: PropertyType, *, exact: bool) -> bool:
    if exact and expected.scalar is Scalar.BLOB:
        return actual.text or actual.scalar is Scalar.BLOB
    return expected.comparable_with(actual)


def find_literal_mismatch(
    literal: Constant, type_: PropertyType, *, exact: bool
) -> tuple[str | None, str | None]:
    """Return why a literal does not fit a type and a hint, or (None, None).

    `exact` asks for a value the property can store; otherwise any comparable value will do.
    """
    if literal.type.is_list:
        return _find_list_mismatch(literal, type_)
    expected = f"is {type_.base_text}, not {literal.type}"
    if type_.is_list or not type_.comparable_with(literal.type):
        return expected, _temporal_hint(literal, type_)
    if type_.enum_values is not None and literal.value not in type_.enum_values:
        problem = f"has no enum value `{quote(literal.value)}`"
        return problem, did_you_mean(literal.value, type_.enum_values)
    if exact and type_.spec.numeric:
        try:
            type_.spec.from_json(literal.value)
        except ValueError as error:
            return f"is {type_.base_text}: {error}", None
    return None, None


def _find_list_mismatch(literal: Constant, expected: PropertyType) -> tuple[str | None, str | None]:
    if expected.dimension is not None:
        if literal.value and not literal.type.spec.numeric:
            return f"is {expected.base_text}, not {literal.type}", None
        if len(literal.value) != expected.dimension:
            return f"is {expected.base_text}, but the literal has {len(literal.value)} values", None
    elif not expected.is_list:
        return f"is {expected.base_text}, not a list", None
    elif literal.value and not expected.element.comparable_with(literal.type.element):
        return f"is {expected.base_text}, not {literal.type}", None
    try:
        expected.as_nullable(False).from_json(literal.value)
    except ValueError as error:
        return f"is {expected.base_text}: {error}", None
    return None, None


def _to_stored_form(literal: Constant, expected: PropertyType, *, exact: bool) -> Constant:
    """Return a literal in the form its property stores, or as it is when no stored value is so."""
    try:
        value = expected.from_json(literal.value)
    except ValueError:
        return literal
    # An integer is rounded to be stored as a float, not to be compared with one.
    same = exact or not isinstance(literal.value, int) or value == literal.value
    return Constant(value, expected) if same else literal


def _temporal_hint(literal: Constant, expected: PropertyType) -> str | None:
    if expected.scalar not in _TEMPORAL or literal.type.scalar is not Scalar.STRING:
        return None
    word = "date" if expected.scalar is Scalar.DATE else "datetime"
    return f'write `{word}("{quote(str(literal.value))}")`'
