"""This module cuts text into words, exactly as Lance's text indexes do."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from lance import tokenize

Int32Array: TypeAlias = npt.NDArray[np.int32]
_ASCII = "0-9A-Za-z"
_RAW_TOKENIZER_OPTIONS: dict[str, Any] = {
    "lower_case": False,
    "stem": False,
    "remove_stop_words": False,
    "ascii_folding": False,
    "max_token_length": None,
}
_WORD_BATCH = 4096


def tokenize_text(text: str) -> tuple[tuple[str, int], ...]:
    """Return the words of a text as stems, each with its position."""
    return tuple((token.text, token.position) for token in tokenize(text))


@dataclass
class TextAnalyzer:
    """Cuts many texts into words.

    What becomes of a word depends on nothing beside it, so each different one is asked about once.
    Texts are cut at every character that is neither letter nor digit, which of those beyond ASCII
    are is asked too.
    """

    stems: dict[str, int] = field(default_factory=dict)
    """The number of each stem there was so far."""
    _known: dict[str, int] = field(default_factory=lambda: {"": -1})
    _letters: dict[str, bool] = field(default_factory=dict)

    def cut(self, texts: pa.Array) -> tuple[Int32Array, Int32Array, Int32Array]:
        """Return stems by number, the text each stands in, and its place there; null is empty."""
        lists = pc.split_pattern_regex(pc.fill_null(texts, ""), pattern=self._separators(texts))
        offsets = np.asarray(lists.offsets)
        encoded = lists.values.dictionary_encode()
        numbers = self._numbers(encoded.dictionary.to_pylist())
        stems = numbers[np.asarray(encoded.indices)]
        counts = np.diff(offsets)
        rows = np.repeat(np.arange(len(texts), dtype=np.int32), counts)
        places = np.arange(len(stems), dtype=np.int32) - np.repeat(offsets[:-1], counts)
        kept = stems >= 0
        return stems[kept], rows[kept], places[kept]

    def _numbers(self, written: list[str]) -> Int32Array:
        """Return the stem of each word as it is written; -1 when it is left out."""
        new = [word for word in written if word not in self._known]
        for start in range(0, len(new), _WORD_BATCH):
            part = new[start : start + _WORD_BATCH]
            self._known.update(dict.fromkeys(part, -1))
            # Positions are counted from the first word that is kept, so one stands in front.
            for token in tokenize(" ".join(["x", *part]))[1:]:
                stem = self.stems.setdefault(token.text, len(self.stems))
                self._known[part[token.position - 1]] = stem
        return np.fromiter((self._known[word] for word in written), np.int32, len(written))

    def _separators(self, texts: pa.Array) -> str:
        """Return a pattern of what stands between words."""
        self._learn(_non_ascii_characters(texts))
        inside = "".join(f"\\x{{{ord(c):x}}}" for c, found in self._letters.items() if found)
        return f"[^{_ASCII}{inside}]+"

    def _learn(self, characters: Iterable[str]) -> None:
        new = sorted(set(characters) - self._letters.keys())
        if new:
            framed = {f"a{character}a": character for character in new}
            found = {token.text for token in tokenize(" ".join(framed), **_RAW_TOKENIZER_OPTIONS)}
            self._letters.update({c: frame in found for frame, c in framed.items()})


def _non_ascii_characters(texts: pa.Array) -> set[str]:
    """Return the characters beyond ASCII."""
    odd = texts.filter(pc.invert(pc.string_is_ascii(texts)))
    return {character for text in odd.to_pylist() for character in set(text) if character > "\x7f"}
