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
        counted = stack.enter_context(_count_bytes(raw, meter))
        unpacked = stack.enter_context(_decompress(counted))
        yield stack.enter_context(_as_utf8(unpacked, encoding))


def check_encoding(name: str | None) -> str | None:
    """Return the encoding a name means, None for UTF-8; raise InvalidInput when it is unknown."""
    if name is None:
        return None
    try:
        found = codecs.lookup(name)
    except LookupError:
        found = None
    if found is None or not found._is_text_encoding:
        message = f"'{name}' is not a text encoding; use for example utf-8, latin-1 or utf-16"
        raise InvalidInput(message, code="encoding_unknown", encoding=name)
    return None if found.name == "utf-8" else found.name


def _as_utf8(stream: IO[bytes], encoding: str | None) -> IO[bytes]:
    known = check_encoding(encoding)
    return (
        stream
        if known is None
        else io.BufferedReader(_TranscodingReader(stream, known), CHUNK_BYTES)
    )


class _TranscodingReader(io.RawIOBase):
    """Text of another encoding as UTF-8."""

    def __init__(self, stream: IO[bytes], encoding: str) -> None:
        super().__init__()
        self._stream = stream
        self._encoding = encoding
        self._decoder = codecs.getincrementaldecoder(encoding)()
        self._left = b""
        self._read = 0
        self._is_done = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:  # noqa: ANN401 - any writable buffer
        while not self._left and not self._is_done:
            data = self._stream.read(_TRANSCODE_BYTES)
            self._is_done = not data
            try:
                self._left = self._decoder.decode(data, self._is_done).encode()
            except UnicodeError as error:
                at = self._read + getattr(error, "start", 0) + 1
                reason = getattr(error, "reason", error)
                raise ValueError(f"not {self._encoding}: {reason} near byte {at}") from error
            self._read += len(data)
        count = min(len(buffer), len(self._left))
        buffer[:count] = self._left[:count]
        self._left = self._left[count:]
        return count


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


class _LinesReader(io.RawIOBase):
    """Lines as a file that is read once."""

    def __init__(self, lines: Iterator[str]) -> None:
        super().__init__()
        self._lines = lines
        self._rest = b""

    def readable(self) -> bool:
        """Say that it can be read."""
        return True

    def readinto(self, buffer: Any) -> int:  # noqa: ANN401 - a writable buffer
        """Fill a buffer as far as one line goes."""
        if not self._rest:
            line = next(self._lines, None)
            self._rest = b"" if line is None else f"{line}\n".encode()
        count = min(len(buffer), len(self._rest))
        buffer[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        return count


def lines_as_file(lines: Iterator[str]) -> IO[bytes]:
    """Return lines as a file; no more of them are held than are being read."""
    return io.BufferedReader(_LinesReader(lines), CHUNK_BYTES)


def _count_bytes(raw: IO[Any], meter: ProgressMeter) -> io.BufferedReader:
    return io.BufferedReader(_CountingReader(raw, meter), CHUNK_BYTES)


def read_chunks(stream: IO[bytes]) -> Iterator[bytes]:
    """Yield what a stream holds; raise Broken when it cannot be read to its end."""
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
    text = " ".join(str(error).split())
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


class _CountingReader(io.RawIOBase):
    """Reports what is read to a meter; returns bytes, whatever the file returns."""

    def __init__(self, raw: IO[Any], meter: ProgressMeter) -> None:
        super().__init__()
        self._inner = raw
        self._meter = meter
        self._left = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:  # noqa: ANN401 - any writable buffer
        data = self._left or self._inner.read(len(buffer)) or b""
        if isinstance(data, str):
            data = data.encode("utf-8", "surrogatepass")
        self._left = data[len(buffer) :]
        data = data[: len(buffer)]
        buffer[: len(data)] = data
        self._meter.read(len(data))
        return len(data)


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
