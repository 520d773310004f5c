"""What a commit changed, and what a staged change relies on, as sets of 64-bit hashes.

A staged change may be moved onto a newer state when nothing it relies on was changed by the commits
in between. Both sides are sets of keys: the ID of an entity, an end of an edge, a unique tuple, a
counter of edges. Keys are compared by their hashes, so a match may be a coincidence; it only costs
preparing the change again.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from omnigraph.catalog import IncarnationId, TypeId

TypeKey: TypeAlias = tuple[TypeId, IncarnationId]

MAX_EXACT = 256
"""Number of hashes up to which a footprint lists them."""
MAX_FILTER_BYTES = 16 * 1024
"""Size up to which a footprint is a Bloom filter; beyond, it is whole types."""
_BITS_PER_KEY = 12
_PROBES = 4
MAX_KEYS = MAX_FILTER_BYTES * 8 // _BITS_PER_KEY
"""Number of keys above which a footprint is whole types."""

_EXACT, _FILTER, _WHOLE = b"\x01", b"\x02", b"\x03"
_HASH_BYTES = 8

_Hashes: TypeAlias = npt.NDArray[np.uint64]


def hash_key(type_: TypeKey, topic: str, *values: str) -> int:
    """Return the hash of a key: a type, what the key is about, and its values."""
    parts = (f"{type_[0]:x}-{type_[1]:x}", topic, *values)
    text = "\x00".join(f"{len(part)}:{part}" for part in parts)
    digest = hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=_HASH_BYTES)
    return int.from_bytes(digest.digest(), "little")


@dataclass(frozen=True, slots=True)
class Requirements:
    """What a staged change relies on.

    `keys` are hashes of keys it has looked up, `key_types` the types of these keys. `types` are
    types of which it has read entities by another condition than their IDs, or all of them.
    """

    keys: frozenset[int] = frozenset()
    types: frozenset[TypeKey] = frozenset()
    key_types: frozenset[TypeKey] = frozenset()


@dataclass(frozen=True, slots=True)
class Footprint:
    """What a commit changed.

    `types` are the types it changed; None if that is unknown, as for commits of older releases.
    `keys` are hashes of the keys it changed; None stands for all keys of these types.
    """

    types: frozenset[TypeKey] | None = None
    keys: frozenset[int] | FootprintFilter | None = None

    def overlaps(self, required: Requirements) -> bool:
        """Return whether the commit may have changed something that a change relies on."""
        if self.types is None:
            return True
        if not self.types.isdisjoint(required.types):
            return True
        if self.keys is None:
            return not self.types.isdisjoint(required.key_types)
        if isinstance(self.keys, FootprintFilter):
            return self.keys.has_any(required.keys)
        return not self.keys.isdisjoint(required.keys)

    def encode(self) -> bytes | None:
        """Return the stored form; None if nothing is known."""
        if self.types is None:
            return None
        types = struct.pack("<H", len(self.types)) + b"".join(
            struct.pack("<QQ", *type_) for type_ in sorted(self.types)
        )
        if self.keys is None or len(self.keys) > MAX_KEYS:
            return _WHOLE + types
        if isinstance(self.keys, FootprintFilter):
            return _FILTER + types + self.keys.bits
        hashes = np.array(sorted(self.keys), "<u8")
        if len(hashes) <= MAX_EXACT:
            return _EXACT + types + hashes.tobytes()
        return _FILTER + types + FootprintFilter.of(hashes).bits

    @classmethod
    def decode(cls, data: bytes | None) -> Footprint:
        """Read the stored form; what cannot be read is unknown."""
        if not data or data[:1] not in (_EXACT, _FILTER, _WHOLE):
            return cls()
        [count] = struct.unpack_from("<H", data, 1)
        numbers = struct.unpack_from(f"<{2 * count}Q", data, 3)
        pairs = zip(numbers[::2], numbers[1::2], strict=True)
        types = frozenset((TypeId(id_), IncarnationId(incarnation)) for id_, incarnation in pairs)
        rest = data[3 + 16 * count :]
        if data[:1] == _WHOLE:
            return cls(types)
        if data[:1] == _FILTER:
            return cls(types, FootprintFilter(rest))
        return cls(types, frozenset(np.frombuffer(rest, "<u8").tolist()))


UNKNOWN_FOOTPRINT = Footprint()
"""The footprint of a commit that may have changed anything."""
NO_FOOTPRINT = Footprint(frozenset(), frozenset())
"""The footprint of a commit that has changed no entity."""


@dataclass(frozen=True, slots=True)
class FootprintFilter:
    """A Bloom filter of hashes: it may report a key that it does not contain."""

    bits: bytes
    count: int = field(default=0, compare=False)

    @classmethod
    def of(cls, hashes: _Hashes) -> FootprintFilter:
        """Return the filter of some hashes."""
        bits = np.zeros(max(1, -(-len(hashes) * _BITS_PER_KEY // 8)) * 8, np.bool_)
        bits[_places(hashes, len(bits)).ravel()] = True
        return cls(np.packbits(bits).tobytes(), len(hashes))

    def __len__(self) -> int:
        return self.count

    def has_any(self, keys: Collection[int]) -> bool:
        """Return whether one of the keys may be in the filter."""
        if not keys:
            return False
        bits = np.unpackbits(np.frombuffer(self.bits, np.uint8)).astype(np.bool_)
        hashes = np.fromiter(keys, np.uint64, len(keys))
        return bool(bits[_places(hashes, len(bits))].all(axis=1).any())


def _places(hashes: _Hashes, size: int) -> npt.NDArray[np.int64]:
    """Return the bits of each hash, by double hashing."""
    step = (hashes >> np.uint64(32)) | np.uint64(1)
    probes = np.arange(_PROBES, dtype=np.uint64)
    mixed: npt.NDArray[np.uint64] = hashes[:, None] + step[:, None] * probes[None, :]
    return (mixed % np.uint64(size)).astype(np.int64)
