"""Open a version of a dataset without its newest rows; nothing is written.

A group of commits appends the rows of all its members as one fragment of one version. The state
after a member that is not the last is that version without the rows that later members appended.
Lance reads a fragment up to the number of rows that the version's manifest states, so the handle of
such a state is opened from a copy of the manifest with a smaller number. The manifest is a
protocol buffer message; `tests/substrate/test_lance_partial.py` pins the fields used here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import lance

_FRAGMENTS = 2
"""Field of `Manifest`: the fragments, repeated."""
_INDEX_SECTION = 6
"""Field of `Manifest`: where its file lists the indexes."""
_PHYSICAL_ROWS = 4
"""Field of `DataFragment`: its number of rows."""
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
"""Wire types."""


def open_without_newest(
    handle: lance.LanceDataset,
    excluded: int,
    session: Any,  # noqa: ANN401 - a Lance session
    options: dict[str, str] | None,
) -> lance.LanceDataset:
    """Return a read-only handle of a version without the last rows of its last fragment."""
    stored: Any = handle
    return lance.LanceDataset(
        handle.uri,
        version=handle.version,
        serialized_manifest=_with_fewer_rows(stored._ds.serialized_manifest(), excluded),
        session=session,
        storage_options=options,
    )


def open_without_indexes(
    handle: lance.LanceDataset, options: dict[str, str] | None
) -> lance.LanceDataset:
    """Return a handle of a version without its indexes: what is based on it has none either.

    It has a session of its own, because a session caches the indexes of a version.
    """
    stored: Any = handle
    manifest = b"".join(
        encoded
        for number, _, encoded in _fields(stored._ds.serialized_manifest())
        if number != _INDEX_SECTION
    )
    return lance.LanceDataset(
        handle.uri,
        version=handle.version,
        serialized_manifest=manifest,
        session=lance.Session(),  # type: ignore[attr-defined]
        storage_options=options,
    )


def _with_fewer_rows(manifest: bytes, excluded: int) -> bytes:
    fields = list(_fields(manifest))
    last = max(place for place, (number, _, _) in enumerate(fields) if number == _FRAGMENTS)
    _, fragment, _ = fields[last]
    assert isinstance(fragment, bytes), "a fragment is a message"
    shorter = b"".join(
        _encode(number, int(value) - excluded) if number == _PHYSICAL_ROWS else encoded
        for number, value, encoded in _fields(fragment)
    )
    return b"".join(
        _encode(number, shorter) if place == last else encoded
        for place, (number, _, encoded) in enumerate(fields)
    )


def _encode(number: int, value: int | bytes) -> bytes:
    """Return the encoding of a field."""
    if isinstance(value, int):
        return _varint(number << 3 | _VARINT) + _varint(value)
    return _varint(number << 3 | _BYTES) + _varint(len(value)) + value


def _fields(message: bytes) -> Iterator[tuple[int, int | bytes, bytes]]:
    """Yield the number, the value and the encoding of each field of a message."""
    place = 0
    while place < len(message):
        key, value_at = _read_varint(message, place)
        kind = key & 7
        if kind == _VARINT:
            value, end = _read_varint(message, value_at)
            yield key >> 3, value, message[place:end]
        else:
            size = 8 if kind == _FIXED64 else 4
            if kind == _BYTES:
                size, value_at = _read_varint(message, value_at)
            elif kind not in (_FIXED64, _FIXED32):
                raise ValueError(f"unknown wire type {kind} in a Lance manifest")
            end = value_at + size
            yield key >> 3, message[value_at:end], message[place:end]
        place = end


def _read_varint(message: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[place]
        place += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, place
        shift += 7


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 127:
        encoded.append(value & 127 | 128)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)
