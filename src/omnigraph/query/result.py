"""The result of a query: an Arrow table, and the formats derived from it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import import_module
from io import BytesIO
from itertools import chain
from typing import IO, Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from omnigraph.errors import InvalidInput
from omnigraph.notebook.results import result_html, stream_html
from omnigraph.notebook.values import MAX_ROWS
from omnigraph.query.graph_view import GraphView, ReadGraph
from omnigraph.types import PropertyType, Scalar
from omnigraph.types.arrow import from_timestamps, to_json, to_timestamps

TYPE_METADATA_KEY = b"omnigraph:type"
"""Under this key the field of a column says which type of ours it has."""


@dataclass(frozen=True)
class Result:
    """Rows of named columns, and the commit they were read from."""

    name: str
    table: pa.Table
    types: Mapping[str, PropertyType] = field(repr=False)
    graph_commit_id: str
    target: Mapping[str, Any] = field(default_factory=dict, repr=False)
    read_graph: ReadGraph | None = field(default=None, repr=False, compare=False)
    """Reads what the pattern of the query matches in the same state."""

    def __repr__(self) -> str:
        rows, columns = len(self), ", ".join(self.columns)
        noun = "row" if rows == 1 else "rows"
        return f"<Result {self.name}: {rows:,} {noun} of {columns}>"

    def _repr_html_(self) -> str:
        first = replace(self, table=self.table.slice(0, MAX_ROWS))
        return result_html({**first.to_json(), "row_count": len(self)})

    def __getstate__(self) -> dict[str, Any]:
        """Return what pickle keeps: all but the connection to the graph."""
        return {name: self.__dict__[name] for name in _PICKLED}

    def graph(self, *, limit: int | None = None) -> GraphView:
        """Return a view of the nodes and edges that the pattern of the query matches.

        Notebooks show it: with the packages of `omnigraph[notebook]` on a canvas, otherwise as a
        drawing. It has at most `limit` nodes, by default and at most 2,000.
        """
        if self.read_graph is None:
            message = "this result is not bound to a graph: use `graph.subgraph(source).view()`"
            raise InvalidInput(message, code="result_unbound")
        return self.read_graph(limit)

    @property
    def columns(self) -> list[str]:
        """The names of the columns, in order."""
        return list(self.types)

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """The rows with JSON values, as every surface shows them."""
        columns = [to_json(self.table[name], type_) for name, type_ in self.types.items()]
        names = self.columns
        return [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.rows)

    def to_arrow(self) -> pa.Table:
        """Return an Arrow table; instants are timestamps in UTC."""
        return _map_columns(self.table, self.types, to_timestamps)

    def to_pandas(self) -> Any:  # noqa: ANN401 - pandas may not be installed
        """Return a pandas DataFrame."""
        _import_library("pandas")
        return self.to_arrow().to_pandas()

    def to_polars(self) -> Any:  # noqa: ANN401 - polars may not be installed
        """Return a polars DataFrame."""
        return _import_library("polars").from_arrow(self.to_arrow())

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Hand the rows to any library that speaks Arrow."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def write(self, file: IO[bytes], format_: str) -> None:
        """Write the rows as an Arrow stream or a Parquet file."""
        rows = self.to_arrow()
        if format_ == "parquet":
            pq.write_table(rows, file)
            return
        with pa.ipc.new_stream(file, rows.schema) as writer:
            writer.write_table(rows)

    def to_json(self) -> dict[str, Any]:
        """Return the wire form."""
        return {
            "query_name": self.name,
            "target": dict(self.target),
            "row_count": len(self),
            "columns": self.columns,
            "rows": self.rows,
            "graph_commit_id": self.graph_commit_id,
        }


def _import_library(name: str) -> Any:  # noqa: ANN401 - a module that may not be installed
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        message = f"to_{name}() needs the package {name}: pip install {name}"
        raise InvalidInput(message, code="library_missing", package=name) from error


@dataclass(frozen=True, slots=True)
class ResultStream:
    """The rows of a query, some at a time; they can be gone through once."""

    name: str
    types: Mapping[str, PropertyType] = field(repr=False)
    graph_commit_id: str
    row_count: int
    _parts: Iterator[pa.Table] = field(repr=False)

    @property
    def columns(self) -> list[str]:
        """The names of the columns, in order."""
        return list(self.types)

    def __len__(self) -> int:
        return self.row_count

    def parts(self) -> Iterator[Result]:
        """Yield the rows, some at a time."""
        for part in self._parts:
            yield Result(self.name, part, self.types, self.graph_commit_id)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for part in self.parts():
            yield from part.rows

    def to_reader(self) -> pa.RecordBatchReader:
        """Return a reader of Arrow batches; instants are timestamps in UTC."""
        tables = (part.to_arrow() for part in self.parts())
        first = next(tables)
        batches = (batch for table in chain([first], tables) for batch in table.to_batches())
        return pa.RecordBatchReader.from_batches(first.schema, batches)

    def arrow_chunks(self) -> Iterator[bytes]:
        """Yield the rows as an Arrow stream, some bytes at a time; its fields carry our types."""
        reader, buffer = self.to_reader(), BytesIO()
        types = {name: msgspec.json.encode(type_.to_json()) for name, type_ in self.types.items()}
        fields = [
            field.with_metadata({TYPE_METADATA_KEY: types[field.name]}) for field in reader.schema
        ]
        with pa.ipc.new_stream(buffer, pa.schema(fields)) as stream:
            for batch in reader:
                stream.write_batch(batch)
                yield _drain_buffer(buffer)
        yield _drain_buffer(buffer)

    def json_chunks(self) -> Iterator[bytes]:
        """Yield the rows as lines of JSON, some bytes at a time."""
        encoder = msgspec.json.Encoder()
        for part in self.parts():
            yield encoder.encode_lines(part.rows)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Hand the rows to any library that speaks Arrow."""
        return self.to_reader().__arrow_c_stream__(requested_schema)

    def write(self, file: IO[bytes], format_: str) -> None:
        """Write the rows as an Arrow stream or a Parquet file."""
        reader = self.to_reader()
        if format_ == "parquet":
            with pq.ParquetWriter(file, reader.schema) as writer:
                for batch in reader:
                    writer.write_batch(batch)
            return
        with pa.ipc.new_stream(file, reader.schema) as stream:
            for batch in reader:
                stream.write_batch(batch)

    def _repr_html_(self) -> str:
        return stream_html(self.name, self.columns, self.row_count)


_PICKLED = ("name", "table", "types", "graph_commit_id", "target")


def column_types(schema: pa.Schema) -> dict[str, PropertyType]:
    """Return the types of the columns of a stream that `arrow_chunks` made."""
    return {
        field.name: PropertyType.from_wire(msgspec.json.decode(field.metadata[TYPE_METADATA_KEY]))
        for field in schema
    }


def to_stored_types(table: pa.Table, types: Mapping[str, PropertyType]) -> pa.Table:
    """Return rows that were made for other libraries as a result holds them."""
    return _map_columns(table, types, from_timestamps)


def _map_columns(
    table: pa.Table,
    types: Mapping[str, PropertyType],
    convert: Callable[[pa.Array, PropertyType], pa.Array],
) -> pa.Table:
    """Return a table whose columns of instants are converted."""
    columns = {}
    for name, type_ in types.items():
        column = table[name]
        if type_.scalar is Scalar.DATE_TIME:
            # An empty array gives a column without rows its type.
            chunks = column.chunks or [pa.array([], column.type)]
            column = pa.chunked_array([convert(chunk, type_) for chunk in chunks])
        columns[name] = column
    return pa.table(columns)


def _drain_buffer(buffer: BytesIO) -> bytes:
    """Return what a buffer holds, and empty it."""
    data = buffer.getvalue()
    buffer.seek(0)
    buffer.truncate()
    return data
