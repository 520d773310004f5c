"""A load closes every reader and file it opened, however it ends.

A reader of Arrow that is left open reads ahead in a thread of its own, and aborts the process when
that thread calls into an interpreter that is shutting down.
"""

import builtins
import gzip
import json
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

import omnigraph.graph as og
from omnigraph.write import progress
from omnigraph.write.inputs import byte_streams
from omnigraph.write.violations import ValidationFailed

SCHEMA = "node Person { name: String @key  age: I32?  note: String?  @range(age, 0..150) }"
NOTE = "n" * 400
ROWS = 50_000
"""Rows of about 20 MB: several blocks of every format, so that a reader is ahead of the load."""


class RecordedReader:
    """An Arrow reader of batches that records whether it was read to its end and closed."""

    def __init__(self, reader: Any) -> None:
        self.reader = reader
        self.is_exhausted = False
        self.closed = False

    def __getattr__(self, name):
        return getattr(self.reader, name)

    def __iter__(self):
        return self

    def __next__(self):
        return self.read_next_batch()

    def read_next_batch(self):
        try:
            return self.reader.read_next_batch()
        except BaseException:
            self.is_exhausted = True
            raise

    def close(self):
        self.closed = True
        self.reader.close()

    def __enter__(self):
        self.reader.__enter__()
        return self

    def __exit__(self, *error):
        self.closed = True
        return self.reader.__exit__(*error)


@dataclass
class Opened:
    """Everything that was opened to be read, by what opened it."""

    items: list[tuple[str, Any]] = field(default_factory=list)

    def kinds(self):
        return {kind for kind, _ in self.items}

    def left_open(self):
        """Return the kinds of what is open, or whose thread may still be reading ahead."""
        return [
            kind
            for kind, item in self.items
            if not item.closed or (kind == "CSV reader" and not item.is_exhausted)
        ]


@pytest.fixture
def opened(monkeypatch):
    """Record what the real functions open; they do what they always do."""
    found = Opened()

    def record(owner, name, kind, wrap=lambda item: item):
        real = getattr(owner, name, getattr(builtins, name, None))

        def recording(*args, **options):
            item = wrap(real(*args, **options))
            found.items.append((kind, item))
            return item

        monkeypatch.setattr(owner, name, recording, raising=False)

    record(byte_streams, "open", "file")
    record(gzip, "GzipFile", "gzip stream")
    record(pa, "CompressedInputStream", "zstd stream")
    record(pa_csv, "open_csv", "CSV reader", RecordedReader)
    record(pq, "ParquetFile", "Parquet reader")
    record(pa.ipc, "open_stream", "Arrow stream reader", RecordedReader)
    record(pa.ipc, "open_file", "Arrow file reader", RecordedReader)
    monkeypatch.setattr(progress, "REPORT_INTERVAL_SECONDS", 0)
    return found


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    return og.init(tmp_path_factory.mktemp("readers") / "graph", SCHEMA)


# --- files ---------------------------------------------------------------------------------------


def people(*, column="age", value="7", name="p1"):
    """A table that is loaded, unless a column, a value or a name in its second row is invalid."""
    names = [f"p{number}" for number in range(ROWS)]
    values = [str(number % 90) for number in range(ROWS)]
    names[1], values[1] = name, value
    return pa.table({"name": names, column: values, "note": [NOTE] * ROWS})


def zstd(data):
    return pa.compress(data, "zstd").to_pybytes()


def csv_bytes(table, second_row=None):
    buffer = pa.BufferOutputStream()
    pa_csv.write_csv(table, buffer, pa_csv.WriteOptions(quoting_style="none"))
    lines = buffer.getvalue().to_pybytes().split(b"\n")
    lines[0] = ",".join(table.schema.names).encode()
    if second_row is not None:
        lines[2] = second_row
    return b"\n".join(lines)


def typed(table):
    """The same with integers, where all values are some: Parquet and Arrow files have types."""
    values = table.column(1)
    if values[1].as_py().isdigit():
        values = values.cast(pa.int32())
    return table.set_column(1, table.schema.names[1], values)


def write(folder, kind, table, second_row=None):
    path = folder / f"people.{kind}"
    if kind in TEXT:
        data = csv_bytes(table, second_row)
        if kind == "csv.gz":
            data = gzip.compress(data, 1)
        if kind == "csv.zst":
            data = zstd(data)
        path.write_bytes(data)
        return path
    table = typed(table)
    if kind == "parquet":
        pq.write_table(table, path, row_group_size=5_000)
        return path
    make = pa.ipc.new_file if kind == "arrow" else pa.ipc.new_stream
    with make(path, table.schema) as writer:
        writer.write_table(table, 5_000)
    return path


READERS = {
    "csv": {"file", "CSV reader"},
    "csv.gz": {"file", "gzip stream", "CSV reader"},
    "csv.zst": {"file", "zstd stream", "CSV reader"},
    "parquet": {"file", "Parquet reader"},
    "arrow": {"file", "Arrow file reader"},
    "ipc": {"file", "Arrow stream reader"},
}
TEXT = [kind for kind in READERS if kind.startswith("csv")]


# --- how loads end -------------------------------------------------------------------------------


def ended(graph, opened, path, error, match, **options):
    """Load a file that is refused, and return the kinds of readers that are open afterwards.

    The error is alive meanwhile, and with it the frames of the load: no reader is closed only
    because nothing refers to it any more.
    """
    opened.items.clear()
    with pytest.raises(error, match=match) as caught:
        graph.load({"Person": path}, **options)
    left = opened.left_open()
    assert caught.value is not None
    return left


@pytest.mark.parametrize("kind", READERS)
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"column": "years"}, "unknown property `years`"),
        ({"value": "x"}, "age"),
        ({"value": "151"}, "151"),
        ({"name": "p0"}, "p0"),
    ],
    ids=["unknown column", "invalid value", "value out of range", "duplicate key"],
)
def test_readers_are_closed_when_rows_are_refused(graph, opened, tmp_path, kind, change, message):
    path = write(tmp_path, kind, people(**change))
    assert ended(graph, opened, path, ValidationFailed, message) == []
    assert opened.kinds() == READERS[kind]


@pytest.mark.parametrize("kind", TEXT)
@pytest.mark.parametrize(
    ("row", "message"),
    [
        (b"x,y,z,a", "expected 3 cells, got 4"),
        (b'x,1,"open', "not closed|straddles"),
        (b"\xff,1,a", "UTF-8"),
    ],
    ids=["number of cells", "unclosed quote", "not UTF-8"],
)
def test_readers_are_closed_when_a_row_is_malformed(graph, opened, tmp_path, kind, row, message):
    path = write(tmp_path, kind, people(), row)
    assert ended(graph, opened, path, ValidationFailed, message) == []
    assert opened.kinds() == READERS[kind]


@pytest.mark.parametrize("kind", ["csv.gz", "csv.zst", "parquet", "arrow", "ipc"])
def test_readers_are_closed_when_a_file_is_cut_off(graph, opened, tmp_path, kind):
    path = write(tmp_path, kind, people())
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    assert ended(graph, opened, path, ValidationFailed, "people") == []
    assert "file" in opened.kinds()


@pytest.mark.parametrize("kind", READERS)
@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
@pytest.mark.parametrize("phase", ["read", "write"])
def test_readers_are_closed_when_a_load_is_interrupted(graph, opened, tmp_path, kind, error, phase):
    def interrupt(progress):
        if progress.phase == phase and progress.rows:
            raise error("stop")

    path = write(tmp_path, kind, people())
    assert ended(graph, opened, path, error, "stop", progress=interrupt) == []
    assert opened.kinds() == READERS[kind]


@pytest.mark.parametrize("suffix", ["ndjson", "ndjson.gz", "ndjson.zst"])
@pytest.mark.parametrize("error", [ValidationFailed, KeyboardInterrupt])
def test_streams_of_lines_are_closed(graph, opened, tmp_path, suffix, error):
    def interrupt(progress):
        if progress.phase == "read":
            raise KeyboardInterrupt("name")

    rows = [{"type": "Person", "data": {"name": f"p{n}", "note": NOTE}} for n in range(ROWS)]
    lines = "\n".join(map(json.dumps, rows)) + "\n{" * (error is ValidationFailed)
    pack = {"gz": lambda data: gzip.compress(data, 1), "zst": zstd}.get(suffix.rpartition(".")[2])
    path = tmp_path / f"people.{suffix}"
    path.write_bytes(pack(lines.encode()) if pack else lines.encode())
    opened.items.clear()
    progress = interrupt if error is KeyboardInterrupt else None
    with pytest.raises(error) as caught:
        graph.load(path, progress=progress)
    assert opened.left_open() == []
    assert caught.value is not None
    assert "file" in opened.kinds()


@pytest.mark.parametrize("kind", READERS)
def test_readers_are_closed_after_a_load(opened, tmp_path, kind):
    path = write(tmp_path, kind, people())
    graph = og.init(tmp_path / "graph", SCHEMA)
    opened.items.clear()
    graph.load({"Person": path})
    assert opened.left_open() == []
    assert opened.kinds() == READERS[kind]
