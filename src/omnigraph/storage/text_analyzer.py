"""Tokenize text into stems, exactly as the text indexes of Lance do."""

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
    """Return the stems of a text, each with its position."""
    return tuple((token.text, token.position) for token in tokenize(text))


@dataclass
class TextAnalyzer:
    """Tokenizes many texts.

    The stem of a word does not depend on its neighbours, so Lance is called once for each distinct
    word. Texts are split at every character that is neither a letter nor a digit; Lance also
    classifies characters beyond ASCII.
    """

    stems: dict[str, int] = field(default_factory=dict)
    """The number of each stem seen so far."""
    _word_stems: dict[str, int] = field(default_factory=lambda: {"": -1})
    _letters: dict[str, bool] = field(default_factory=dict)

    def cut(self, texts: pa.Array) -> tuple[Int32Array, Int32Array, Int32Array]:
        """Return stems by number, the row of each and its position in the text; null is empty."""
        lists = pc.split_pattern_regex(pc.fill_null(texts, ""), pattern=self._separators(texts))
        offsets = np.asarray(lists.offsets)
        encoded = lists.values.dictionary_encode()
        numbers = self._numbers(encoded.dictionary.to_pylist())
        stems = numbers[np.asarray(encoded.indices)]
        counts = np.diff(offsets)
        rows = np.repeat(np.arange(len(texts), dtype=np.int32), counts)
        positions = np.arange(len(stems), dtype=np.int32) - np.repeat(offsets[:-1], counts)
        kept = stems >= 0
        return stems[kept], rows[kept], positions[kept]

    def _numbers(self, words: list[str]) -> Int32Array:
        """Return the stem number of each word; -1 for stop words."""
        new = [word for word in words if word not in self._word_stems]
        for start in range(0, len(new), _WORD_BATCH):
            part = new[start : start + _WORD_BATCH]
            self._word_stems.update(dict.fromkeys(part, -1))
            # Positions count from the first kept word, so a kept word is put in front.
            for token in tokenize(" ".join(["x", *part]))[1:]:
                stem = self.stems.setdefault(token.text, len(self.stems))
                self._word_stems[part[token.position - 1]] = stem
        return np.fromiter((self._word_stems[word] for word in words), np.int32, len(words))

    def _separators(self, texts: pa.Array) -> str:
        """Return a pattern that matches separators of words."""
        self._classify(_non_ascii_characters(texts))
        inside = "".join(
            f"\\x{{{ord(c):x}}}" for c, is_letter in self._letters.items() if is_letter
        )
        return f"[^{_ASCII}{inside}]+"

    def _classify(self, characters: Iterable[str]) -> None:
        new = sorted(set(characters) - self._letters.keys())
        if new:
            framed = {f"a{character}a": character for character in new}
            tokens = {token.text for token in tokenize(" ".join(framed), **_RAW_TOKENIZER_OPTIONS)}
            self._letters.update({c: frame in tokens for frame, c in framed.items()})


def _non_ascii_characters(texts: pa.Array) -> set[str]:
    """Return the characters beyond ASCII."""
    odd = texts.filter(pc.invert(pc.string_is_ascii(texts)))
    return {character for text in odd.to_pylist() for character in set(text) if character > "\x7f"}
