"""Providers that embed in this process: wordllama, sentence-transformers and a mock.

The default is wordllama with the word vectors of the installation: nothing is downloaded or sent. A
text is the mean of the vectors of its tokens. The model was trained so that the first numbers of a
vector are a smaller vector of the same kind; missing numbers are zeros, which change no cosine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt

from omnigraph.embed.provider import Matrix, Role, check_texts, unit_vectors
from omnigraph.errors import Category, OmniError, install_command

LOCAL_MODEL = "wordllama-l2-supercat-256"
LOCAL_DIMENSION = 256
"""The dimension of the token vectors."""
_WORDLLAMA_PACKAGE = "wordllama"
_WEIGHTS = "weights/l2_supercat_256.safetensors"
_TOKENIZER = "tokenizers/l2_supercat_tokenizer_config.json"
_BATCH_TEXTS = 1024


class LocalProvider:
    """Embeds with the static word vectors of wordllama."""

    model = LOCAL_MODEL

    def embed(self, texts: Sequence[str], dimension: int, role: Role) -> Matrix:
        """Return a unit vector for each text; a query is embedded like a document."""
        check_texts(texts)
        words, tokenizer = _load_model()
        kept = min(dimension, LOCAL_DIMENSION)
        rows = np.zeros((len(texts), dimension), np.float64)
        for start in range(0, len(texts), _BATCH_TEXTS):
            part = list(texts[start : start + _BATCH_TEXTS])
            for row, encoding in enumerate(
                tokenizer.encode_batch_fast(part, add_special_tokens=False)
            ):
                # The sum has the direction of the mean.
                rows[start + row, :kept] = np.add.reduce(words.take(encoding.ids, 0))[:kept]
        return unit_vectors(rows, texts, dimension, self.model)


@cache
def _load_model() -> tuple[npt.NDArray[np.float32], Any]:
    """Read the vectors and the tokenizer, once for all graphs; they take 50 MB."""
    # Imported late: they are slow to load and often not needed.
    folder = _package_folder()
    try:
        load_file = import_module("safetensors.numpy").load_file
        tokenizers = import_module("tokenizers")
    except ModuleNotFoundError as error:
        raise _missing_model_error(f"package {error.name} is not installed") from error
    try:
        [words] = load_file(folder / _WEIGHTS).values()
        tokenizer = tokenizers.Tokenizer.from_str((folder / _TOKENIZER).read_text(encoding="utf-8"))
    except OSError as error:
        raise _missing_model_error("its files cannot be read") from error
    return words.astype(np.float32), tokenizer


def _package_folder() -> Path:
    spec = find_spec(_WORDLLAMA_PACKAGE)
    if spec is None or spec.origin is None:
        raise _missing_model_error(f"package {_WORDLLAMA_PACKAGE} is not installed")
    return Path(spec.origin).parent


def _missing_model_error(reason: str) -> OmniError:
    return OmniError(
        f"the local embedding model is missing ({reason}): {install_command('embed')}, "
        "or choose another provider with OMNIGRAPH_EMBED_PROVIDER",
        code="embedding_model_missing",
        category=Category.UNAVAILABLE,
    )


# --- sentence-transformers, which is installed separately ---------------------------------------


SENTENCE_TRANSFORMERS = "sentence_transformers"


class SentenceTransformersProvider:
    """Runs a transformer in this process; `model` is a model name or a folder."""

    def __init__(self, model: str) -> None:
        self.model = model
        self._loaded: Any = None
        self._lock = Lock()

    def embed(self, texts: Sequence[str], dimension: int, role: Role) -> Matrix:
        """Return a unit vector for each text."""
        check_texts(texts)
        rows = self._transformer().encode(list(texts), show_progress_bar=False)
        return unit_vectors(rows, texts, dimension, self.model)

    def _transformer(self) -> Any:  # noqa: ANN401 - a library that may not be there
        with self._lock:
            if self._loaded is None:
                self._loaded = _import_library().SentenceTransformer(self.model)
            return self._loaded


def _import_library() -> Any:  # noqa: ANN401 - a library that may not be there
    try:
        return import_module(SENTENCE_TRANSFORMERS)
    except ImportError as error:
        raise OmniError(
            "provider sentence-transformers needs a library that is not installed: "
            f"{install_command('sentence-transformers')}",
            code="embedding_library_missing",
            category=Category.UNAVAILABLE,
        ) from error


# --- mock: deterministic random vectors, for tests and examples without a model
# -------------------- The numbers never change.


_FNV_BASIS, _FNV_PRIME, _MASK_64 = 0xCBF29CE484222325, 0x100000001B3, (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class MockProvider:
    """Draws a vector by xorshift64, seeded with the FNV-1a hash of the text."""

    model: str = ""

    def embed(self, texts: Sequence[str], dimension: int, role: Role) -> Matrix:
        """Return a unit vector for each text."""
        check_texts(texts)
        rows = [_draw_vector(text, dimension) for text in texts]
        return unit_vectors(np.reshape(rows, (-1, dimension)), texts, dimension, self.model)


def _draw_vector(text: str, dimension: int) -> list[float]:
    state = _fnv1a_hash(text)
    drawn = []
    for _ in range(dimension):
        state ^= (state << 13) & _MASK_64
        state ^= state >> 7
        state ^= (state << 17) & _MASK_64
        drawn.append(float(np.float32(state / _MASK_64) * np.float32(2) - np.float32(1)))
    return drawn


def _fnv1a_hash(text: str) -> int:
    value = _FNV_BASIS
    for byte in text.encode():
        value = ((value ^ byte) * _FNV_PRIME) & _MASK_64
    return value
