"""Check keys and unique tuples: inside one batch, in the final rows, and committed.

A key is its entity's id, so only repetition inside a batch is wrong with it; whether the id may
exist is a matter of the mode of the write.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.model import Unique
from omnigraph.types import PropertyType, Scalar
from omnigraph.types.arrow import to_json
from omnigraph.write.change_set import ChangeSet, RowSchema
from omnigraph.write.checks.reporter import ViolationReporter
from omnigraph.write.committed_state import CommittedState
from omnigraph.write.ids import key_texts
from omnigraph.write.resolved_change import ResolvedChange
from omnigraph.write.violations import InputLocation, ViolationRule

_ROW, _HOLDER = "@row", "@holder"


def check_unique(changes: ChangeSet, image: ResolvedChange, committed: CommittedState) -> None:
    """Check the key and every unique tuple of one type."""
    shape, change = image.shape, image.change
    final = ViolationReporter(changes, shape, image.rows)
    batches = [ViolationReporter(changes, shape, batch) for batch in image.batches]
    if change.strict:
        _check_existing_ids(final, image)
    if image.repeats and (shape.key or change.strict or change.replace):
        for batch in batches:
            _check_repeated_ids(batch)
    for columns in unique_groups(shape):
        repeated = [_check_repeated_tuples(batch, columns) for batch in batches]
        if not any(repeated) and not _check_repeated_tuples(final, columns) and not change.replace:
            _check_committed_tuples(final, image, columns, committed)


def check_unique_rows(report: ViolationReporter) -> None:
    """Check every unique tuple of one type among all its rows."""
    for columns in unique_groups(report.shape):
        _check_repeated_tuples(report, columns)


def unique_groups(shape: RowSchema) -> list[tuple[str, ...]]:
    """Return the unique tuples; one that is the key is checked as such."""
    groups = [c.columns for c in shape.definition.constraints if isinstance(c, Unique)]
    return [columns for columns in groups if set(columns) != set(shape.key)]


# --- ids ---------------------------------------------------------------------------------------


def _check_existing_ids(report: ViolationReporter, image: ResolvedChange) -> None:
    """Report ids that exist although they must be new."""
    taken = image.replaced["id"].combine_chunks()
    if len(taken):
        report_existing_ids(report, pc.is_in(report.rows["id"], value_set=taken))


def report_existing_ids(report: ViolationReporter, bad: pa.ChunkedArray | pa.Array) -> None:
    """Say that rows have ids that exist."""
    shape = report.shape
    report.report_mask(
        bad,
        ViolationRule.KEY_CONFLICT,
        "id",
        lambda id_: f"{shape.kind} {shape.name} '{id_}' exists already",
    )


def _check_repeated_ids(report: ViolationReporter) -> None:
    """Report ids that one batch gives several times."""
    pairs = _repetitions(_with_row_numbers(report.rows.select(["id"])))
    listed = report.changes.findings.reserve(repeated_rule(report.shape), len(pairs))
    for first, second in pairs[:listed].tolist():
        report_repeated_id(report, second, report.changes.place(report.rows, first))


def repeated_rule(shape: RowSchema) -> ViolationRule:
    """Return the rule that an id breaks which is given several times."""
    return ViolationRule.UNIQUE if shape.key else ViolationRule.KEY_CONFLICT


def report_repeated_id(report: ViolationReporter, row: int, earlier: InputLocation | None) -> None:
    """Say that the id of a row was given before."""
    shape = report.shape
    id_ = report.rows["id"][row].as_py()
    note = f" (first at {earlier})" if earlier is not None else ""
    if shape.key:
        message = _duplicate_message(
            shape, shape.key, _format_tuple(report, row, shape.key), id_, id_
        )
    else:
        message = f"{shape.kind} {shape.name} '{id_}' is given more than once"
    report.one(row, repeated_rule(shape), message + note)


# --- tuples ------------------------------------------------------------------------------------


def _check_repeated_tuples(report: ViolationReporter, columns: Sequence[str]) -> bool:
    """Report tuples that several rows hold; return whether there were any."""
    pairs = _repetitions(_keys(report, columns))
    listed = report.changes.findings.reserve(ViolationRule.UNIQUE, len(pairs))
    for first, second in pairs[:listed].tolist():
        report_duplicate_tuple(report, second, columns, report.rows["id"][first].as_py())
    return len(pairs) > 0


def report_duplicate_tuple(
    report: ViolationReporter, row: int, columns: Sequence[str], holder: str
) -> None:
    """Say that another entity holds the tuple of a row."""
    value = _format_tuple(report, row, columns)
    id_ = report.rows["id"][row].as_py()
    message = _duplicate_message(report.shape, columns, value, holder, id_)
    report.one(row, ViolationRule.UNIQUE, message, columns[0], value)


def _check_committed_tuples(
    report: ViolationReporter,
    image: ResolvedChange,
    columns: Sequence[str],
    committed: CommittedState,
) -> None:
    """Report tuples of the final image that an entity outside of the change holds."""
    shape, rows = report.shape, report.rows
    keys = _keys(report, columns).drop_null()  # a tuple with a null does not count
    if not keys.num_rows:
        return
    # Any column finds the candidates; the one with most different values finds the fewest.
    probe = max(columns, key=lambda name: pc.count_distinct(rows[name]).as_py())
    holders = committed.by_key(shape).lookup(probe, rows[probe], ["id", *columns])
    inside = pa.chunked_array([*rows["id"].chunks, image.removed]).combine_chunks()
    holders = holders.filter(pc.invert(pc.is_in(holders["id"], value_set=inside)))
    if not holders.num_rows:
        return
    theirs = _keys(ViolationReporter(report.changes, shape, holders), columns).drop_columns(_ROW)
    theirs = theirs.append_column(_HOLDER, holders["id"])
    pairs = keys.join(theirs, list(columns), join_type="inner")
    pairs = pairs.sort_by([(_ROW, "ascending"), (_HOLDER, "ascending")])
    listed = report.changes.findings.reserve(ViolationRule.UNIQUE, pairs.num_rows)
    for row in pairs.slice(0, listed).to_pylist():
        report_duplicate_tuple(report, row[_ROW], columns, row[_HOLDER])


# --- shared ------------------------------------------------------------------------------------


def _keys(report: ViolationReporter, columns: Sequence[str]) -> pa.Table:
    """Return the values of a tuple in forms that are equal when the tuple is, with row numbers."""
    keys = {name: _key_form(report.rows[name], report.shape.column_type(name)) for name in columns}
    return _with_row_numbers(pa.table(keys))


def _with_row_numbers(rows: pa.Table) -> pa.Table:
    return rows.append_column(_ROW, pa.array(range(rows.num_rows), pa.int64()))


def _key_form(column: pa.ChunkedArray, type_: PropertyType) -> pa.ChunkedArray | pa.Array:
    """Return a column whose values are equal when their key texts are."""
    if type_.scalar in (Scalar.F32, Scalar.F64):
        # NaN equals nothing, like null.
        return key_texts(pc.if_else(pc.is_finite(column), column, None), type_)
    if type_.scalar is Scalar.DATE_TIME:
        return pa.chunked_array([c.view(pa.int64()) for c in column.chunks], pa.int64())
    return column


def key_columns(rows: pa.Table, shape: RowSchema, columns: Sequence[str]) -> list[pa.ChunkedArray]:
    """Return the values of a tuple as texts that are equal when the tuple is."""
    return [
        pc.cast(_key_form(rows[name], shape.column_type(name)), pa.string()) for name in columns
    ]


def _repetitions(keys: pa.Table) -> npt.NDArray[np.int64]:
    """Return pairs of rows that share a tuple: its first row, and each later one, in order."""
    keys = keys.drop_null()
    rows = keys[_ROW].to_numpy()
    none = np.empty((0, 2), np.int64)
    codes = np.zeros(len(rows), np.int64)
    for name in (name for name in keys.column_names if name != _ROW):
        column = keys[name].combine_chunks().dictionary_encode()
        if len(column.dictionary) == len(rows):
            return none
        # Numbering again keeps the product of two columns within 64 bits.
        _, codes = np.unique(codes, return_inverse=True)
        codes = codes * len(column.dictionary) + column.indices.to_numpy()
    _, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
    firsts = first[inverse]
    later = np.flatnonzero(firsts != np.arange(len(rows)))
    return np.column_stack([rows[firsts[later]], rows[later]])


def _format_tuple(report: ViolationReporter, index: int, columns: Sequence[str]) -> str:
    texts = []
    for name in columns:
        cell = report.rows[name].slice(index, 1)
        [value] = to_json(cell, report.shape.column_type(name))
        texts.append(str(value).lower() if isinstance(value, bool) else str(value))
    return texts[0] if len(texts) == 1 else f"({', '.join(texts)})"


def _duplicate_message(
    shape: RowSchema, columns: Sequence[str], value: str, holder: str, other: str
) -> str:
    members = columns[0] if len(columns) == 1 else f"({', '.join(columns)})"
    place = f"{shape.name}.{members}"
    return f"@unique violation on {place}: value '{value}' held by '{holder}' and '{other}'"
