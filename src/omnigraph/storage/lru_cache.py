"""An LRU cache bounded by the number or the size of its values."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Generic, TypeVar

_K = TypeVar("_K")
_V = TypeVar("_V")


class LruCache(Generic[_K, _V]):
    """A thread-safe cache that evicts the least recently used values.

    `capacity` limits the number of values, or their total `size`; the newest value always stays.
    Keys with the same `group` keep at most `per_group` values.
    """

    def __init__(
        self,
        capacity: int,
        size: Callable[[_V], int] = lambda _: 1,
        group: Callable[[_K], Hashable] = lambda key: key,
        per_group: int = 1,
    ) -> None:
        self._capacity = capacity
        self._size = size
        self._group = group
        self._per_group = per_group
        self._values: OrderedDict[_K, _V] = OrderedDict()
        self._lock = Lock()

    def __len__(self) -> int:
        with self._lock:
            return len(self._values)

    def get(self, key: _K) -> _V | None:
        """Return the cached value of a key, or None."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
            return self._values.get(key)

    def put(self, key: _K, value: _V) -> _V:
        """Cache a value and return it."""
        with self._lock:
            self._values[key] = value
            self._values.move_to_end(key)
            group = self._group(key)
            for old in [key for key in self._values if self._group(key) == group][
                : -self._per_group
            ]:
                del self._values[old]
            total = sum(map(self._size, self._values.values()))
            while total > self._capacity and len(self._values) > 1:
                total -= self._size(self._values.popitem(last=False)[1])
        return value
