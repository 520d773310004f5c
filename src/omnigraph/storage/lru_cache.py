"""An LRU cache bounded by the number or the size of its values."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Generic, TypeVar

_K = TypeVar("_K", bound=Hashable)
_V = TypeVar("_V")


class LruCache(Generic[_K, _V]):
    """Values by key; the least recently used one is evicted first. Threads may share a cache.

    `capacity` bounds the number of values or, with `size`, the sum of their sizes when they were
    put; the newest value stays in any case. With `group`, at most `group_capacity` keys of one
    group are kept. `on_evict` is called with each evicted key and value.
    """

    def __init__(
        self,
        capacity: int,
        size: Callable[[_V], int] | None = None,
        group: Callable[[_K], Hashable] | None = None,
        group_capacity: int = 1,
        on_evict: Callable[[_K, _V], None] | None = None,
    ) -> None:
        self._capacity = capacity
        self._size = size
        self._group = group
        self._group_capacity = group_capacity
        self._on_evict = on_evict
        self._values: OrderedDict[_K, tuple[_V, int]] = OrderedDict()
        self._groups: dict[Hashable, OrderedDict[_K, None]] = {}
        self._total = 0
        self._lock = Lock()

    @property
    def total(self) -> int:
        """The number of the values, or the sum of their sizes."""
        return self._total

    def __len__(self) -> int:
        with self._lock:
            return len(self._values)

    def __contains__(self, key: _K) -> bool:
        with self._lock:
            return key in self._values

    def values(self) -> list[_V]:
        """Return all values, the least recently used one first."""
        with self._lock:
            return [value for value, _ in self._values.values()]

    def peek(self, key: _K) -> _V | None:
        """Return the value of a key without marking it as used, or None."""
        with self._lock:
            entry = self._values.get(key)
            return None if entry is None else entry[0]

    def get(self, key: _K) -> _V | None:
        """Return the value of a key, or None."""
        with self._lock:
            entry = self._values.get(key)
            if entry is None:
                return None
            self._values.move_to_end(key)
            if self._group is not None:
                self._groups[self._group(key)].move_to_end(key)
            return entry[0]

    def put(self, key: _K, value: _V) -> _V:
        """Cache a value and return it."""
        with self._lock:
            evicted = self._insert(key, value)
        if self._on_evict is not None:
            for old_key, old_value in evicted:
                self._on_evict(old_key, old_value)
        return value

    def remove(self, key: _K) -> None:
        """Remove a key, if it exists."""
        with self._lock:
            if key in self._values:
                self._pop(key)

    def clear(self) -> None:
        """Remove all keys."""
        with self._lock:
            self._values.clear()
            self._groups.clear()
            self._total = 0

    def _insert(self, key: _K, value: _V) -> list[tuple[_K, _V]]:
        """Add a value; return what was evicted for it."""
        if key in self._values:
            self._pop(key)
        size = 1 if self._size is None else self._size(value)
        self._values[key] = (value, size)
        self._total += size
        evicted = []
        if self._group is not None:
            members = self._groups.setdefault(self._group(key), OrderedDict())
            members[key] = None
            while len(members) > self._group_capacity:
                oldest = next(iter(members))
                evicted.append((oldest, self._pop(oldest)))
        while self._total > self._capacity and len(self._values) > 1:
            oldest = next(iter(self._values))
            evicted.append((oldest, self._pop(oldest)))
        return evicted

    def _pop(self, key: _K) -> _V:
        value, size = self._values.pop(key)
        self._total -= size
        if self._group is not None:
            group = self._group(key)
            del self._groups[group][key]
            if not self._groups[group]:
                del self._groups[group]
        return value
