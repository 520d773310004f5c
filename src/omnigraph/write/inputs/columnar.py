"""This module reads tables of one type: their columns are checked first, then rows stream in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.catalog import TypeKind
from omnigraph.catalog.ends import ends_meant
from omnigraph.types import PropertyType, Scalar
from omnigraph.write.ahead import ahead
from omnigraph.write.inputs.csv_files import BadRow
from omnigraph.write.inputs.grammar import check_member
from omnigraph.write.inputs.streams import UNREADABLE, Broken, unreadable
from omnigraph.write.intake import Intake, Raw
from omnigraph.write.progress import Meter
from omnigraph.write.shape import Shape
from omnigraph.write.violations import Rule

SLICE_ROWS = 131_072
SLICE_BYTES = 64 * 1024 * 1024
"""What is taken in at a time."""

Numbers: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Table:
    """A table to be read: its columns, and its rows piece by piece.

    `text` says that cells are text to be parsed. `skipped` are rows the reader could make nothing
    of; it grows while rows are read. `before` is how many rows of the same file
    are read by others. `positions` gives the rows of a batch other positions than their numbers.
    """

    names: Sequence[str]
    batches: Iterable[pa.RecordBatch]
    text: bool = False
    skipped: Sequence[BadRow] = ()
    before: int = 0
    positions: Callable[[pa.RecordBatch, int], pa.Array] | None = None


def read_table(table: Table, name: str, shape: Shape, intake: Intake, meter: Meter) -> None:
    """Read a table of one type."""
    base = intake.open_file(name, "row")
    intake.touch(shape)
    targets = _targets(table.names, shape, intake)
    if targets is None:
        return
    with closing(ahead(_unbroken(table.batches))) as reading:
        _read_rows(table, reading, targets, shape, intake, meter, base=base)
    for bad in table.skipped:
        intake.problem(Rule.SYNTAX, bad.reason, base + bad.number, shape, record=bad.text)


def _read_rows(  # noqa: PLR0913 - what `read_table` found out
    table: Table,
    batches: Iterable[pa.RecordBatch],
    targets: Sequence[str],
    shape: Shape,
    intake: Intake,
    meter: Meter,
    *,
    base: int,
) -> None:
    given = frozenset(targets)
    rows = table.before
    try:
        for batch in _slices(batches):
            if not _types_fit(batch, targets, table, shape, intake):
                return
            columns = {target: batch.column(i) for i, target in enumerate(targets)}
            if table.positions is not None:
                at = table.positions(batch, rows)
            else:
                at = pa.array(base + row_numbers(rows, batch.num_rows, table.skipped))
            intake.add(shape, [Raw(columns, at, text=table.text, given=given)])
            rows += batch.num_rows
            meter.took(batch.num_rows)
    except Broken as error:
        intake.file_problem(Rule.SYNTAX, str(error), shape)


def _unbroken(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the same; raise Broken when the file behind it cannot be read on."""
    reading = iter(batches)
    while True:
        try:
            batch = next(reading)
        except StopIteration:
            return
        except UNREADABLE as error:
            raise Broken(unreadable(error)) from error
        yield batch


def row_numbers(before: int, count: int, skipped: Sequence[BadRow]) -> Numbers:
    """Return the numbers of rows, which the skipped ones have moved on."""
    numbers = np.arange(before, before + count, dtype=np.int64) + 1
    if not skipped:
        return numbers
    gaps = np.array(sorted(bad.number for bad in skipped)) - np.arange(len(skipped))
    return numbers + np.searchsorted(gaps, numbers, side="right")


def _targets(names: Sequence[str], shape: Shape, intake: Intake) -> list[str] | None:
    """Return what each column is called in a change; None when the columns cannot be used."""
    is_edge = shape.kind is TypeKind.EDGE
    ends = ends_meant(names, shape.properties) if is_edge else {}
    targets = [ends.get(name, name) for name in names]
    fits = True

    def refuse(rule: Rule, message: str, name: str) -> None:
        nonlocal fits
        fits = False
        intake.file_problem(rule, message, shape, property=name[:80])

    known = shape.schema.names
    for name, target in zip(names, targets, strict=True):
        if target not in known:
            refuse(Rule.UNKNOWN_PROPERTY, f"column: {check_member(name, TypeKind.NODE)}", name)
        elif targets.count(target) > 1:
            refuse(Rule.SYNTAX, f"column `{name}` is given more than once", name)
    for name in _required(shape, intake):
        if name not in targets:
            word = {"src": "from", "dst": "to"}.get(name, name) if is_edge else name
            refuse(Rule.REQUIRED, f"column `{word}` of {shape.name} is missing", word)
    return targets if fits else None


def _required(shape: Shape, intake: Intake) -> list[str]:
    """Return the columns that must be there."""
    ends = [name for name in shape.system if name != "id"]
    if intake.partial:
        return [*ends, *shape.key]
    properties = shape.properties.values()
    return [*ends, *(p.name for p in properties if not p.type.nullable and p.embed is None)]


def _types_fit(
    batch: pa.RecordBatch, targets: Sequence[str], table: Table, shape: Shape, intake: Intake
) -> bool:
    """Tell whether all columns may hold what their properties want, and report those that not."""
    if table.text:
        return True
    fits = True
    for name, target, column in zip(table.names, targets, batch.columns, strict=True):
        property_ = shape.properties.get(target)
        type_ = PropertyType(Scalar.STRING) if property_ is None else property_.type
        if column.null_count < len(column) and not can_hold(column.type, type_):
            fits = False
            wanted = f"{shape.name}.{name} is {type_}" if property_ is not None else "it is text"
            message = f"column `{name}` has type {column.type}, but {wanted}"
            intake.file_problem(Rule.VALUE, message, shape, property=name)
    return fits


def can_hold(kind: pa.DataType, type_: PropertyType) -> bool:
    """Tell whether some values of an Arrow type may be values of a property."""
    types = pa.types
    if isinstance(kind, pa.BaseExtensionType):
        return can_hold(kind.storage_type, type_)
    if types.is_dictionary(kind):
        return can_hold(kind.value_type, type_)
    if types.is_null(kind):
        return True
    if type_.is_list or type_.dimension is not None:
        item = PropertyType(Scalar.F32) if type_.dimension is not None else type_.element
        return hasattr(kind, "value_type") and can_hold(kind.value_type, item)
    is_text = types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)
    is_time = types.is_date(kind) or types.is_timestamp(kind)
    match type_.scalar:
        case Scalar.STRING:
            return bool(is_text)
        case Scalar.BOOL:
            return bool(types.is_boolean(kind))
        case Scalar.DATE | Scalar.DATE_TIME:
            return bool(is_text or is_time or types.is_integer(kind))
        case Scalar.BLOB:
            is_bytes = types.is_binary(kind) or types.is_large_binary(kind)
            return bool(is_text or is_bytes or types.is_binary_view(kind))
        case Scalar.F32 | Scalar.F64:
            is_number = types.is_integer(kind) or types.is_floating(kind)
            return bool(is_number or types.is_decimal(kind))
        case _:
            return bool(types.is_integer(kind) or types.is_decimal(kind))


def _slices(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        size = max(1, batch.nbytes)
        step = min(SLICE_ROWS, max(1, batch.num_rows * SLICE_BYTES // size))
        for start in range(0, batch.num_rows, step):
            yield batch.slice(start, step)
