"""Read the older, permissive form of a graph batch: JSON values, one after the other.

What it does not know it ignores, a value of the wrong type is null where null is allowed, and an id
may be spelled in any way its key can be written. Text that is malformed is refused here too.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from omnigraph.catalog import Catalog, TypeKind
from omnigraph.types import PropertyType, entity_id, json_kind
from omnigraph.types.data_values import from_data
from omnigraph.write.change_set import RowSchema
from omnigraph.write.coercion import parse_text_value, reject_constant
from omnigraph.write.inputs.byte_streams import (
    ByteSource,
    UnreadableInput,
    open_source,
    read_chunks,
    source_name,
)
from omnigraph.write.inputs.line_parser import (
    MAX_LINE_BYTES,
    EntityRecord,
    InvalidLine,
    find_named_type,
    is_too_deep,
    make_record,
)
from omnigraph.write.progress import ProgressMeter
from omnigraph.write.row_builder import InputRows, RowBuilder
from omnigraph.write.violations import ViolationRule

BATCH_RECORDS = 16_384
"""Records that are taken in at a time."""

_BLANKS = re.compile(r"[ \t\r\n\ufeff]*")


def read_permissive(source: ByteSource, builder: RowBuilder, meter: ProgressMeter) -> None:
    """Read a stream of JSON values."""
    base = builder.open_file(source_name(source), "record")
    try:
        with open_source(source, meter, builder.encoding) as stream:
            records = enumerate(json_values(read_chunks(stream)), start=base + 1)
            while part := list(islice(records, BATCH_RECORDS)):
                _add_records(part, builder)
                meter.add_rows(len(part))
    except UnreadableInput as error:
        builder.report_file_error(ViolationRule.SYNTAX, str(error))


def json_values(pieces: Iterable[bytes], limit: int = MAX_LINE_BYTES) -> Iterator[Any]:
    """Yield the values of a stream; raise UnreadableInput where there is none."""
    decoder = json.JSONDecoder(parse_constant=reject_constant)
    number, text, at = 1, "", 0
    for piece, is_last in _decode_pieces(pieces):
        text, at = text[at:] + piece, 0
        while True:
            blanks = _BLANKS.match(text, at)
            assert blanks is not None, "it matches nothing too"
            at = blanks.end()
            if at == len(text):
                break
            start = at
            try:
                value, at = decoder.raw_decode(text, start)
            except (ValueError, RecursionError) as error:
                if is_last or len(text) - at > limit:
                    reason = getattr(error, "msg", None) or str(error)
                    raise UnreadableInput(f"record {number}: invalid JSON: {reason}") from error
                break
            if is_too_deep(value, text, start, at):
                raise UnreadableInput(f"record {number}: too deeply nested")
            yield value
            number += 1


def _decode_pieces(pieces: Iterable[bytes]) -> Iterator[tuple[str, bool]]:
    """Yield the text of pieces, and whether it is the last."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for piece in pieces:
            yield decoder.decode(piece), False
        yield decoder.decode(b"", final=True), True
    except UnicodeDecodeError as error:
        raise UnreadableInput(f"not UTF-8: {error.reason}") from error


# --- records -----------------------------------------------------------------------------------


def _add_records(part: Iterable[tuple[int, Any]], builder: RowBuilder) -> None:
    records: dict[tuple[TypeKind, str], list[tuple[int, dict[str, Any]]]] = {}
    for at, value in part:
        try:
            record = _parse_record(value, builder.schema.catalog)
            shape = builder.shape(record.kind, record.name)
            row = _record_cells(record, shape, builder)
        except InvalidLine as problem:
            builder.problem(problem.rule, problem.message, at, **problem.facts)
        else:
            records.setdefault((record.kind, record.name), []).append((at, row))
    for key, rows in records.items():
        shape = builder.shape(*key)
        builder.add(shape, [InputRows.from_records(shape, rows, forgiving=True)])


def _parse_record(value: Any, catalog: Catalog) -> EntityRecord:  # noqa: ANN401 - any JSON value
    if not isinstance(value, dict):
        raise InvalidLine(ViolationRule.SYNTAX, f"expected an object, got {json_kind(value)}")
    word = next((word for word in ("type", "edge") if word in value), None)
    if word is None:
        raise InvalidLine(ViolationRule.SYNTAX, "expected 'type' or 'edge' field")
    name = find_named_type(value[word], word, catalog)
    data = value.get("data")
    return make_record(value, word, name, {} if data is None else data)


def _record_cells(record: EntityRecord, shape: RowSchema, builder: RowBuilder) -> dict[str, Any]:
    """Return the cells of a record that its type knows."""
    names = ("id", *shape.properties)
    row = {name: value for name, value in record.data.items() if name in names}
    id_ = row.get("id")
    if record.kind is TypeKind.EDGE:
        if not isinstance(id_, str):
            row.pop("id", None)
        return {**row, "src": record.src, "dst": record.dst}
    if id_ is not None and not isinstance(id_, str):
        raise InvalidLine(
            ViolationRule.ID, f"id of {shape.name}: expected string, got {json_kind(id_)}"
        )
    if id_ is not None and shape.key:
        _register_respelled_id(id_, row, shape, builder)
    return row


def _register_respelled_id(
    id_: str, row: dict[str, Any], shape: RowSchema, builder: RowBuilder
) -> None:
    """Take an id that is a key in another spelling; edges that use it will follow."""
    types = shape.key_types
    try:
        values = [from_data(t, row.get(n)) for n, t in zip(shape.key, types, strict=True)]
        key_id = entity_id(list(zip(values, types, strict=True)))
    except ValueError:
        return  # The key itself will be reported.
    if id_ == key_id or not any(
        _is_spelling_of(id_, v, t) for v, t in zip(values, types, strict=True)
    ):
        return
    del row["id"]
    ids = builder.respelled.setdefault(shape.name, {})
    if ids.setdefault(id_, key_id) != key_id:
        message = f"ambiguous edge endpoint remap: '{id_}' is '{ids[id_]}' and '{key_id}'"
        raise InvalidLine(ViolationRule.ID, message)


def _is_spelling_of(text: str, value: Any, type_: PropertyType) -> bool:  # noqa: ANN401 - a key value
    """Return whether text is a spelling of a value."""
    try:
        return bool(from_data(type_, parse_text_value(type_, text)) == value)
    except ValueError:
        return False
