"""This module cuts a stream into blocks of whole lines, never holding more than a line may be."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

LINE_BYTES = 32 * 1024 * 1024
"""The longest line of a graph batch."""

_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Block:
    """Whole lines, each with its newline, and the number of the first."""

    data: bytes
    first: int


@dataclass(frozen=True, slots=True)
class TooLong:
    """A line that was skipped because it is too long."""

    line: int


def blocks(chunks: Iterable[bytes], limit: int = LINE_BYTES) -> Iterator[Block | TooLong]:
    """Yield all lines in blocks; skip lines beyond the limit without holding them."""
    number = 1
    waiting: list[bytes] = []
    held = 0
    skipping = False
    at_start = True
    for chunk in chunks:
        data = chunk.removeprefix(_BOM) if at_start else chunk
        at_start = False
        if skipping:
            end = data.find(b"\n")
            if end < 0:
                continue
            skipping, number, data = False, number + 1, data[end + 1 :]
        cut = data.rfind(b"\n") + 1
        if cut:
            block = b"".join([*waiting, data[:cut]])
            yield Block(block, number)
            number += block.count(b"\n")
            waiting, held, data = [], 0, data[cut:]
        waiting.append(data)
        held += len(data)
        if held > limit:
            yield TooLong(number)
            waiting, held, skipping = [], 0, True
    if held:
        yield Block(b"".join([*waiting, b"\n"]), number)


@dataclass(frozen=True, slots=True)
class Lines:
    """The lines of a block: its bytes, where each line begins, and the position of the first.

    `says_null` tells whether the word null is anywhere.
    """

    data: bytes
    starts: np.ndarray[Any, Any]
    first: int
    says_null: bool

    @classmethod
    def of(cls, block: Block, base: int) -> Lines:
        """Find the lines of a block; `base` is what positions in its file begin with."""
        ends = np.flatnonzero(np.frombuffer(block.data, np.uint8) == ord("\n")) + 1
        starts = np.concatenate([np.zeros(1, np.int64), ends]).astype(np.int32)
        return cls(block.data, starts, base + block.first, b"null" in block.data)

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, index: int) -> bytes:
        return self.data[self.starts[index] : self.starts[index + 1]]
