"""Check single values: required, enum, range, pattern."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import ceil, floor

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.constraints import VALUE_CONSTRAINTS
from omnigraph.catalog.model import Check, Property, Range, ValueConstraint, constraint_word
from omnigraph.lang.source_writer import plain_number
from omnigraph.write.change_set import INPUT_POSITION
from omnigraph.write.checks.reporter import ViolationReporter
from omnigraph.write.row_embeddings import has_text
from omnigraph.write.violations import ViolationRule


def check_values(report: ViolationReporter) -> None:
    """Check every value of rows; null passes everything but `required`."""
    for property_ in report.shape.properties.values():
        if not property_.type.nullable:
            _check_required(report, property_)
        if property_.type.enum_values is not None:
            _check_enum(report, property_)
    for constraint in report.shape.definition.constraints:
        if isinstance(constraint, ValueConstraint):
            VALUE_CONSTRAINTS[constraint_word(constraint)].values.load()(report, constraint)


def _check_required(report: ViolationReporter, property_: Property) -> None:
    rows, invalid_rows = report.rows, report.changes.invalid_rows
    bad = rows[property_.name].is_null()
    hint = ""
    if property_.embed is not None:
        # Its vector is made from the source when the rows are written.
        source = property_.embed.source
        bad = pc.and_(bad, pc.invert(has_text(rows[source])))
        hint = f", and there is no text in `{source}` to make it from"
    if invalid_rows:
        # A value that could not be read has been reported already.
        positions = pa.array(sorted(invalid_rows), pa.int64())
        reported = pc.is_in(rows[INPUT_POSITION], value_set=positions)
        bad = pc.and_(bad, pc.invert(reported))
    message = f"{report.shape.name}.{property_.name} is required, but null or missing{hint}"
    report.report_mask(bad, ViolationRule.REQUIRED, property_.name, lambda _: message)


def _check_enum(report: ViolationReporter, property_: Property) -> None:
    allowed = property_.type.enum_values or ()
    place, expected = f"{report.shape.name}.{property_.name}", ", ".join(allowed)
    allowed_or_null = pa.array([*allowed, None], pa.string())
    report.report_mask(
        pc.invert(pc.is_in(report.rows[property_.name], value_set=allowed_or_null)),
        ViolationRule.ENUM,
        property_.name,
        lambda value: f"invalid enum value '{value}' for {place} (expected: {expected})",
    )


def check_range(report: ViolationReporter, rule: Range) -> None:
    """Report values outside of a closed interval."""
    place = f"@range violation on {report.shape.name}.{rule.property}"
    column = report.rows[rule.property]
    if pa.types.is_floating(column.type):
        no_number = pc.fill_null(pc.is_nan(column), False)
        report.report_mask(
            no_number, ViolationRule.RANGE, rule.property, lambda _: f"{place}: value is NaN"
        )
    bounds = ((rule.minimum, pc.less, "< min"), (rule.maximum, pc.greater, "> max"))
    for bound, compare, words in bounds:
        if bound is not None:
            limit = f"{words} {plain_number(bound)}"
            report.report_mask(
                _out_of_range(column, bound, compare),
                ViolationRule.RANGE,
                rule.property,
                partial(_range_message, place, limit),
            )


def _range_message(place: str, limit: str, value: float) -> str:
    return f"{place}: value {plain_number(value)} {limit}"


def _out_of_range(
    column: pa.ChunkedArray, bound: float, compare: Callable[..., pa.ChunkedArray]
) -> pa.ChunkedArray:
    """Return where a column is beyond a bound, compared exactly."""
    if not pa.types.is_integer(column.type):
        return pc.fill_null(compare(column, pa.scalar(float(bound), pa.float64())), False)
    whole = (ceil if compare is pc.less else floor)(bound)
    try:
        limit = pa.scalar(whole, column.type)
    except (pa.ArrowInvalid, OverflowError):
        # No value of the type reaches the bound: all are on the same side of it.
        beyond = (whole > 0) == (compare is pc.less)
        return pc.and_(column.is_valid(), pa.scalar(beyond))
    return pc.fill_null(compare(column, limit), False)


def check_pattern(report: ViolationReporter, rule: Check) -> None:
    """Report values that do not match a regular expression."""
    place = f"@check violation on {report.shape.name}.{rule.property}"
    matches = pc.match_substring_regex(report.rows[rule.property], rule.pattern)
    report.report_mask(
        pc.invert(pc.fill_null(matches, True)),
        ViolationRule.CHECK,
        rule.property,
        lambda value: f"{place}: value '{value}' does not match pattern '{rule.pattern}'",
    )
