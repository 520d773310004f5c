"""An LRU cache bounded by the number or the size of its values."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Generic, TypeVar

_K = TypeVar("_K")
_V = TypeVar("_V")


class LruCache(Generic[_K, _V]):
    """A few values by key; the one not asked for longest makes room. Threads may share it.

    `most` is how many there may be, or how large all may be together by `size`; the newest stays in
    any case. Of keys that are `alike` there are at most `each`.
    """

    def __init__(
        self,
        most: int,
        size: Callable[[_V], int] = lambda _: 1,
        alike: Callable[[_K], Hashable] = lambda key: key,
        each: int = 1,
    ) -> None:
        self._most = most
        self._size = size
        self._alike = alike
        self._each = each
        self._kept: OrderedDict[_K, _V] = OrderedDict()
        self._lock = Lock()

    def __len__(self) -> int:
        with self._lock:
            return len(self._kept)

    def get(self, key: _K) -> _V | None:
        """Return what is remembered under a key, or None."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
            return self._kept.get(key)

    def put(self, key: _K, value: _V) -> _V:
        """Remember a value, and return it."""
        with self._lock:
            self._kept[key] = value
            self._kept.move_to_end(key)
            kind = self._alike(key)
            for old in [key for key in self._kept if self._alike(key) == kind][: -self._each]:
                del self._kept[old]
            total = sum(map(self._size, self._kept.values()))
            while total > self._most and len(self._kept) > 1:
                total -= self._size(self._kept.popitem(last=False)[1])
        return value
