"""Tables to infer from: files of Parquet, CSV, Arrow or JSON lines, read again as often as needed.

Each is read as Arrow batches. Cells of CSV are text; members of JSON have the type of their values.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from glob import glob, has_magic
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from omnigraph.errors import InvalidInput
from omnigraph.types import json_kind
from omnigraph.write.coercion import reject_constant
from omnigraph.write.inference.names import is_type_name
from omnigraph.write.inputs.byte_streams import (
    READ_ERRORS,
    UnreadableInput,
    describe_read_error,
    open_source,
)
from omnigraph.write.inputs.csv_reader import HEADER_BYTES, CsvDialect, open_csv
from omnigraph.write.inputs.table_reader import memory_table
from omnigraph.write.progress import ProgressMeter

MIXED = "mixed"
"""The marker of a column of JSON whose values in one batch have several kinds."""

_KINDS = {
    ".csv": "csv",
    ".tsv": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
}
_PACKED = (".gz", ".zst")
_DELIMITERS = (",", "\t", ";", "|")
_ROWS = 65_536
_JSON_ROWS = 8_192
_NAMED = re.compile(r"(?P<name>[A-Za-z_][A-Za-z0-9_]*)=(?P<path>.+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class InputFile:
    """One table: the files it is in, what they are, and the name its type is to have, if given."""

    label: str
    kind: str
    paths: tuple[Path, ...]
    stem: str
    named: str | None = None
    delimiter: str = ","
    encoding: str | None = None
    data: pa.Table | None = field(default=None, compare=False, repr=False)
    """The rows of a table in memory, which has no path."""

    @property
    def is_text(self) -> bool:
        """Whether cells are text, parsed by the types of properties."""
        return self.kind == "csv"

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Yield the rows, or some columns of them; raise InvalidInput when they cannot be read."""
        if self.data is not None:
            names = [name for name in self.data.schema.names if columns is None or name in columns]
            yield from self.data.select(names).to_batches(max_chunksize=_ROWS)
        for path in self.paths:
            try:
                yield from _READERS[self.kind](self, path, columns)
            except (UnreadableInput, *READ_ERRORS) as error:
                why = (
                    str(error) if isinstance(error, UnreadableInput) else describe_read_error(error)
                )
                message = f"cannot read {path}: {why}"
                raise InvalidInput(message, code="input_unreadable", file=str(path)) from error


def memory_input(name: str, data: Any) -> InputFile:  # noqa: ANN401 - whatever people have
    """Return an Arrow table, a data frame or a stream of batches, whose rows have a type."""
    if not is_type_name(name):
        message = f"'{name}' is not a name of a type: it begins with an upper-case letter"
        raise InvalidInput(message, code="input_unknown")
    table = memory_table(data)
    if table is None:
        message = f"cannot infer from {type(data).__name__}: give a table, a data frame or a path"
        raise InvalidInput(message, code="input_unknown", type=name)
    rows = pa.Table.from_batches(list(table.batches))
    return InputFile(label=name, kind="memory", paths=(), stem=name, named=name, data=rows)


def find_input_files(texts: Iterable[str], encoding: str | None = None) -> list[InputFile]:
    """Return the tables that `FILE`, `Type=FILE`, folders and patterns stand for.

    Raises:
        InvalidInput: lists all of them that cannot be used.
    """
    found: list[InputFile] = []
    problems: list[str] = []
    for text in texts:
        try:
            found.append(_find_input_file(text, encoding))
        except InvalidInput as error:
            problems.append(error.message)
    if problems:
        raise InvalidInput("; ".join(problems), code="input_unreadable")
    return found


def _find_input_file(text: str, encoding: str | None) -> InputFile:
    match = None if Path(text).exists() else _NAMED.fullmatch(text)
    named, address = (match["name"], match["path"]) if match else (None, text)
    if named is not None and not is_type_name(named):
        message = f"'{named}' is not a name of a type: it begins with an upper-case letter"
        raise InvalidInput(message, code="input_unknown")
    paths = _paths(address)
    kinds = {_kind_of(path) for path in paths}
    if len(kinds) > 1 or None in kinds:
        message = (
            f"{address} is not a Parquet, CSV, Arrow or JSON lines file, or a folder of one kind"
        )
        raise InvalidInput(message, code="input_unknown", file=address)
    [kind] = kinds
    assert kind is not None, "it was checked above"
    root = Path(address)
    fixed = re.split(r"[*?\[]", root.name)[0] if len(paths) > 1 else root.name
    stem = fixed.partition(".")[0].strip("-_ ") or root.parent.name
    table = InputFile(
        label=address, kind=kind, paths=paths, stem=stem, named=named, encoding=encoding
    )
    return replace(table, delimiter=_find_delimiter(table)) if kind == "csv" else table


def _paths(address: str) -> tuple[Path, ...]:
    root = Path(address)
    if root.is_dir():
        inner = [file for file in root.rglob("*") if file.is_file()]
        paths = sorted(file for file in inner if not file.name.startswith((".", "_")))
        if any("=" in part for file in paths for part in file.relative_to(root).parts[:-1]):
            message = f"{address} has folders of partitions: name the files or one of the folders"
            raise InvalidInput(message, code="input_unknown", file=address)
    elif has_magic(address) and not root.exists():
        paths = sorted(Path(file) for file in glob(address))
    else:
        paths = [root]
    if not paths or not all(path.is_file() for path in paths):
        message = f"file {address} does not exist"
        raise InvalidInput(message, code="input_unreadable", file=address)
    return tuple(paths)


def _kind_of(path: Path) -> str | None:
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if len(suffixes) > 1 and suffixes[-1] in _PACKED:
        suffixes.pop()
        return _KINDS.get(suffixes[-1]) if suffixes[-1] in (".csv", ".tsv", ".jsonl") else None
    return _KINDS.get(suffixes[-1]) if suffixes else None


# --- CSV ---------------------------------------------------------------------------------------


def _find_delimiter(table: InputFile) -> str:
    """Return what divides the header into most columns."""
    with (
        suppress(*READ_ERRORS),
        open_source(table.paths[0], ProgressMeter(), table.encoding) as file,
    ):
        head = file.read(HEADER_BYTES).decode("utf-8-sig", "replace")
        lines = head.splitlines()[:1]
        counts = [len(next(csv.reader(lines, delimiter=one), [])) for one in _DELIMITERS]
        return _DELIMITERS[counts.index(max(counts))]
    return ","


def _read_csv(
    table: InputFile, path: Path, columns: Sequence[str] | None
) -> Iterator[pa.RecordBatch]:
    dialect = CsvDialect(table.delimiter)
    with (
        open_source(path, ProgressMeter(), table.encoding) as stream,
        open_csv(stream, dialect) as file,
    ):
        _check_names(file.names)
        chosen = [i for i, name in enumerate(file.names) if columns is None or name in columns]
        names = [file.names[i] for i in chosen]
        for batch in file.batches:
            if file.skipped:
                bad = file.skipped[0]
                raise UnreadableInput(f"row {bad.number}: {bad.reason}")
            yield pa.RecordBatch.from_arrays([batch.column(i) for i in chosen], names)
        if not names:
            return
        # Columns of a file without rows are known, too.
        yield pa.RecordBatch.from_arrays([pa.array([], pa.string())] * len(names), names)


def _check_names(names: Sequence[str]) -> None:
    """Refuse columns without a name, and those that differ in nothing but case."""
    if not all(names):
        raise UnreadableInput(f"column {list(names).index('') + 1} has no name")
    seen: dict[str, str] = {}
    for name in names:
        if name.lower() in seen:
            raise UnreadableInput(f"columns `{seen[name.lower()]}` and `{name}` have the same name")
        seen[name.lower()] = name


# --- Parquet and Arrow -------------------------------------------------------------------------


def _read_parquet(
    table: InputFile, path: Path, columns: Sequence[str] | None
) -> Iterator[pa.RecordBatch]:
    with pq.ParquetFile(path) as file:
        names = file.schema_arrow.names
        _check_names(names)
        chosen = [name for name in names if columns is None or name in columns]
        fields = [file.schema_arrow.field(name) for name in chosen]
        yield pa.RecordBatch.from_arrays([pa.nulls(0, one.type) for one in fields], chosen)
        yield from file.iter_batches(batch_size=_ROWS, columns=chosen)


def _read_arrow(
    table: InputFile, path: Path, columns: Sequence[str] | None
) -> Iterator[pa.RecordBatch]:
    with pa.memory_map(str(path)) as source:
        is_file = source.read(6) == b"ARROW1"
        source.seek(0)
        reader = pa.ipc.open_file(source) if is_file else pa.ipc.open_stream(source)
        _check_names(reader.schema.names)
        chosen = [name for name in reader.schema.names if columns is None or name in columns]
        if is_file:
            batches = (reader.get_batch(i) for i in range(reader.num_record_batches))
        else:
            batches = iter(reader)
        for batch in batches:
            for start in range(0, batch.num_rows, _ROWS):
                yield batch.slice(start, _ROWS).select(chosen)


# --- JSON lines --------------------------------------------------------------------------------


def json_records(table: InputFile) -> Generator[dict[str, Any], None, None]:
    """Yield the objects of a file with one on each line."""
    for path in table.paths:
        with open_source(path, ProgressMeter(), table.encoding) as stream:
            for number, line in enumerate(stream, start=1):
                if line.strip():
                    yield _json_object(line, number)


def _json_object(line: bytes, number: int) -> dict[str, Any]:
    try:
        value = json.loads(line, parse_constant=reject_constant)
    except (ValueError, RecursionError) as error:
        raise UnreadableInput(f"line {number}: {error}") from error
    if not isinstance(value, dict):
        raise UnreadableInput(f"line {number}: expected an object, got {json_kind(value)}")
    is_node = isinstance(value.get("type"), str) and isinstance(value.get("data"), dict)
    if number == 1 and (is_node or (isinstance(value.get("edge"), str) and "from" in value)):
        message = "it is a graph batch, whose lines name types: load it with a schema"
        raise UnreadableInput(message)
    return value


def _read_json(
    table: InputFile, path: Path, columns: Sequence[str] | None
) -> Iterator[pa.RecordBatch]:
    with closing(json_records(replace(table, paths=(path,)))) as records:
        while part := list(islice(records, _JSON_ROWS)):
            found = dict.fromkeys(name for record in part for name in record)
            names = [name for name in found if columns is None or name in columns]
            _check_names(names)
            arrays = [_json_column([record.get(name) for record in part]) for name in names]
            if names:
                fields = [
                    pa.field(name, array.type, metadata={MIXED: "1"} if mixed else None)
                    for name, (array, mixed) in zip(names, arrays, strict=True)
                ]
                yield pa.RecordBatch.from_arrays([a for a, _ in arrays], schema=pa.schema(fields))


def _json_column(values: list[Any]) -> tuple[pa.Array, bool]:
    """Return the values of a member as a column, and whether they are of several kinds."""
    with suppress(pa.ArrowException, OverflowError, TypeError):
        kinds = {type(value) for value in values if value is not None}
        if len(kinds) <= 1 or kinds == {int, float}:
            return pa.array(values), False
    texts = [None if value is None else json.dumps(value) for value in values]
    return pa.array(texts, pa.string()), True


_READERS = {"csv": _read_csv, "parquet": _read_parquet, "arrow": _read_arrow, "json": _read_json}
