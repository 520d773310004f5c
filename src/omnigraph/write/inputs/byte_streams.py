"""Open inputs as streams of bytes, decompressed if needed, and count them."""

from __future__ import annotations

import codecs
import gzip
import io
import os
import zlib
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import IO, Any, TypeAlias, TypeVar, cast

import pyarrow as pa

from omnigraph.errors import InvalidInput
from omnigraph.write.progress import ProgressMeter

CHUNK_BYTES = 8 * 1024 * 1024
"""Bytes that are read at a time."""

ByteSource: TypeAlias = str | os.PathLike[str] | bytes | IO[Any]
READ_ERRORS = (OSError, EOFError, ValueError, zlib.error, pa.ArrowException)
"""What readers raise when bytes are not what they should be."""

_TRANSCODE_BYTES = 256 * 1024
_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"


class UnreadableInput(Exception):
    """The bytes of an input end or stop making sense in the middle."""


def source_name(source: ByteSource) -> str:
    """Return what people call a source; nothing for bytes that have no name."""
    if isinstance(source, str | os.PathLike):
        return os.fspath(source)
    name = getattr(source, "name", "")
    return name if isinstance(name, str) else ""


@contextmanager
def open_source(
    source: ByteSource, meter: ProgressMeter, encoding: str | None = None
) -> Iterator[IO[bytes]]:
    """Open a source as UTF-8, unpacking it if it is packed; `encoding` is what it is written in."""
    with ExitStack() as stack:
        if isinstance(source, str | os.PathLike):
            raw: IO[Any] = stack.enter_context(open_input_file(source))
        else:
            raw = io.BytesIO(source) if isinstance(source, bytes) else source
        counted = stack.enter_context(chunks_as_file(_count_bytes(raw, meter)))
        unpacked = stack.enter_context(_decompress(counted))
        yield stack.enter_context(_as_utf8(unpacked, encoding))


def check_encoding(name: str | None) -> str | None:
    """Return the encoding a name means, None for UTF-8; raise InvalidInput when it is unknown."""
    if name is None:
        return None
    try:
        codec = codecs.lookup(name)
    except LookupError:
        codec = None
    if codec is None or not codec._is_text_encoding:
        message = f"'{name}' is not a text encoding; use for example utf-8, latin-1 or utf-16"
        raise InvalidInput(message, code="encoding_unknown", encoding=name)
    return None if codec.name == "utf-8" else codec.name


class _ChunkReader(io.RawIOBase):
    """Chunks of bytes as a file that is read once."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        super().__init__()
        self._chunks = chunks
        self._left = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:  # noqa: ANN401 - any writable buffer
        while not self._left:
            chunk = next(self._chunks, None)
            if chunk is None:
                return 0
            self._left = chunk
        count = min(len(buffer), len(self._left))
        buffer[:count] = self._left[:count]
        self._left = self._left[count:]
        return count


def chunks_as_file(chunks: Iterable[bytes]) -> io.BufferedReader:
    """Return chunks as a file; no more of them are held than are being read."""
    return io.BufferedReader(_ChunkReader(iter(chunks)), CHUNK_BYTES)


def _as_utf8(stream: IO[bytes], encoding: str | None) -> IO[bytes]:
    name = check_encoding(encoding)
    return stream if name is None else chunks_as_file(_transcode(stream, name))


def _transcode(stream: IO[bytes], encoding: str) -> Iterator[bytes]:
    """Yield text of another encoding as UTF-8."""
    decoder, start, is_last = codecs.getincrementaldecoder(encoding)(), 0, False
    while not is_last:
        data = stream.read(_TRANSCODE_BYTES)
        is_last = not data
        try:
            yield decoder.decode(data, is_last).encode()
        except UnicodeError as error:
            at = start + getattr(error, "start", 0) + 1
            reason = getattr(error, "reason", error)
            raise ValueError(f"not {encoding}: {reason} near byte {at}") from error
        start += len(data)


@contextmanager
def open_input_file(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Open a file; raise InvalidInput when that cannot be done."""
    try:
        file = open(path, "rb")  # noqa: SIM115 - closed below
    except OSError as error:
        name = os.fspath(path)
        message = f"cannot read {name}: {error.strerror}"
        raise InvalidInput(message, code="input_unreadable", file=name) from error
    with file:
        yield file


def lines_as_file(lines: Iterable[str]) -> IO[bytes]:
    """Return lines as a file."""
    return chunks_as_file(f"{line}\n".encode() for line in lines)


def _count_bytes(raw: IO[Any], meter: ProgressMeter) -> Iterator[bytes]:
    """Yield bytes, whatever the file returns, and report them to a meter."""
    while data := raw.read(CHUNK_BYTES):
        chunk = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
        meter.read(len(chunk))
        yield chunk


def read_chunks(stream: IO[bytes]) -> Iterator[bytes]:
    """Yield what a stream holds; raise UnreadableInput when it cannot be read to its end."""
    while True:
        try:
            chunk = stream.read(CHUNK_BYTES)
        except READ_ERRORS as error:
            raise UnreadableInput(describe_read_error(error)) from error
        if not chunk:
            return
        yield chunk


def describe_read_error(error: Exception) -> str:
    """Say why bytes cannot be read on."""
    # Arrow adds the traceback of an error in a reader that is written in Python.
    text = " ".join(str(error).partition(". Detail: Python exception:")[0].split())
    text = text.removeprefix("Unknown error: ")
    if isinstance(error, EOFError) or "runcated" in text or "frame" in text:
        return "the packed data ends too early"
    return text or type(error).__name__


def is_compressed(start: bytes) -> bool:
    """Return whether an input is compressed, by its first bytes."""
    return start.startswith((_GZIP, _ZSTD))


def _decompress(stream: io.BufferedReader) -> IO[bytes]:
    start = stream.peek(4)[:4]
    if start.startswith(_GZIP):
        return cast(IO[bytes], gzip.GzipFile(fileobj=stream))
    if start.startswith(_ZSTD):
        return cast(IO[bytes], pa.CompressedInputStream(pa.PythonFile(stream), "zstd"))
    return stream


# ----------------------------------------------------------------------
# Read-ahead: a thread reads the next piece while one is processed.


_T = TypeVar("_T")


def prefetch(items: Iterable[_T]) -> Generator[_T, None, None]:
    """Yield the same items, of which the next is always being made already."""
    reading = iter(items)
    nothing = object()
    with ThreadPoolExecutor(1) as thread:
        coming = thread.submit(next, reading, nothing)
        while (item := coming.result()) is not nothing:
            coming = thread.submit(next, reading, nothing)
            yield item  # type: ignore[misc]
