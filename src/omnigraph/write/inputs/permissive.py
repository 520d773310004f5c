"""This module reads the older, forgiving form of a graph batch: JSON values, one after the other.

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

import pyarrow as pa

from omnigraph.catalog import Catalog, TypeKind
from omnigraph.types import PropertyType, entity_id, json_kind
from omnigraph.types.data import from_data
from omnigraph.write.inputs.grammar import LineProblem, Record, end_of, type_named
from omnigraph.write.inputs.lines import LINE_BYTES
from omnigraph.write.inputs.streams import Broken, ByteSource, chunks, opened, source_name
from omnigraph.write.intake import Intake, Raw
from omnigraph.write.progress import Meter
from omnigraph.write.shape import Shape
from omnigraph.write.text import from_text
from omnigraph.write.violations import Rule

RECORDS = 16_384
"""Records that are taken in at a time."""

_BLANKS = re.compile(r"[ \t\r\n\ufeff]*")


def read_permissive(source: ByteSource, intake: Intake, meter: Meter) -> None:
    """Read a stream of JSON values."""
    base = intake.open_file(source_name(source), "record")
    try:
        with opened(source, meter, intake.encoding) as stream:
            records = enumerate(json_values(chunks(stream)), start=base + 1)
            while part := list(islice(records, RECORDS)):
                _take(part, intake)
                meter.took(len(part))
    except Broken as error:
        intake.file_problem(Rule.SYNTAX, str(error))


def json_values(pieces: Iterable[bytes], limit: int = LINE_BYTES) -> Iterator[Any]:
    """Yield the values of a stream; raise Broken where there is none."""
    decoder = json.JSONDecoder(parse_constant=_no_constant)
    number, text, at = 1, "", 0
    for piece, is_last in _texts(pieces):
        text, at = text[at:] + piece, 0
        while True:
            blanks = _BLANKS.match(text, at)
            assert blanks is not None, "it matches nothing too"
            at = blanks.end()
            if at == len(text):
                break
            try:
                value, at = decoder.raw_decode(text, at)
            except (ValueError, RecursionError) as error:
                if is_last or len(text) - at > limit:
                    reason = getattr(error, "msg", None) or str(error)
                    raise Broken(f"record {number}: invalid JSON: {reason}") from error
                break
            yield value
            number += 1


def _texts(pieces: Iterable[bytes]) -> Iterator[tuple[str, bool]]:
    """Yield the text of pieces, and whether it is the last."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for piece in pieces:
            yield decoder.decode(piece), False
        yield decoder.decode(b"", final=True), True
    except UnicodeDecodeError as error:
        raise Broken(f"not UTF-8: {error.reason}") from error


def _no_constant(word: str) -> Any:  # noqa: ANN401 - never returns
    raise ValueError(f"{word} is no number")


# --- records -----------------------------------------------------------------------------------


def _take(part: Iterable[tuple[int, Any]], intake: Intake) -> None:
    found: dict[tuple[TypeKind, str], list[tuple[int, dict[str, Any]]]] = {}
    for at, value in part:
        try:
            record = _record(value, intake.schema.catalog)
            shape = intake.shape(record.kind, record.name)
            row = _row(record, shape, intake)
        except LineProblem as problem:
            intake.problem(problem.rule, problem.message, at, **problem.facts)
        else:
            found.setdefault((record.kind, record.name), []).append((at, row))
    for (kind, name), rows in found.items():
        shape = intake.shape(kind, name)
        columns = {name: [row.get(name) for _, row in rows] for name in shape.schema.names}
        at_all = pa.array([at for at, _ in rows], pa.int64())
        given = [frozenset(row) for _, row in rows]
        intake.add(shape, [Raw(columns, at_all, forgiving=True, given=given)])


def _record(value: Any, catalog: Catalog) -> Record:  # noqa: ANN401 - any JSON value
    if not isinstance(value, dict):
        raise LineProblem(Rule.SYNTAX, f"expected an object, got {json_kind(value)}")
    word = next((word for word in ("type", "edge") if word in value), None)
    if word is None:
        raise LineProblem(Rule.SYNTAX, "expected 'type' or 'edge' field")
    name = type_named(value[word], word, catalog)
    data = value.get("data")
    data = {} if data is None else data
    if not isinstance(data, dict):
        raise LineProblem(Rule.SYNTAX, f"`data` is an object, not {json_kind(data)}")
    if word == "type":
        return Record(TypeKind.NODE, name, data)
    return Record(TypeKind.EDGE, name, data, end_of(value, "from"), end_of(value, "to"))


def _row(record: Record, shape: Shape, intake: Intake) -> dict[str, Any]:
    """Return the cells of a record that its type knows."""
    known = ("id", *shape.properties)
    row = {name: value for name, value in record.data.items() if name in known}
    id_ = row.get("id")
    if record.kind is TypeKind.EDGE:
        if not isinstance(id_, str):
            row.pop("id", None)
        return {**row, "src": record.src, "dst": record.dst}
    if id_ is not None and not isinstance(id_, str):
        raise LineProblem(Rule.ID, f"id of {shape.name}: expected string, got {json_kind(id_)}")
    if id_ is not None and shape.key:
        _respell(id_, row, shape, intake)
    return row


def _respell(id_: str, row: dict[str, Any], shape: Shape, intake: Intake) -> None:
    """Take an id that is a key in another spelling; edges that use it will follow."""
    types = [shape.properties[name].type for name in shape.key]
    try:
        values = [from_data(t, row.get(n)) for n, t in zip(shape.key, types, strict=True)]
        wanted = entity_id(list(zip(values, types, strict=True)))
    except ValueError:
        return  # The key itself will be told.
    if id_ == wanted or not any(_means(id_, v, t) for v, t in zip(values, types, strict=True)):
        return
    del row["id"]
    known = intake.respelled.setdefault(shape.name, {})
    if known.setdefault(id_, wanted) != wanted:
        message = f"ambiguous edge endpoint remap: '{id_}' is '{known[id_]}' and '{wanted}'"
        raise LineProblem(Rule.ID, message)


def _means(text: str, value: Any, type_: PropertyType) -> bool:  # noqa: ANN401 - a key value
    """Tell whether text is a spelling of a value."""
    try:
        return bool(from_data(type_, from_text(type_, text)) == value)
    except ValueError:
        return False
