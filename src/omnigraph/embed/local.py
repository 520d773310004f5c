"""This module embeds texts in this process, with word vectors that come with the installation.

Nothing is downloaded and nothing leaves the machine. A text is the mean of the vectors of its
tokens. The model was trained so that the first numbers of a vector are a smaller vector of the same
kind; further numbers than it has are zeros, which change no cosine.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from omnigraph.embed.provider import Matrix, Role, check_texts, unit_vectors
from omnigraph.errors import Category, OmniError

MODEL = "wordllama-l2-supercat-256"
WIDTH = 256
"""Numbers the model has for a token."""
_PACKAGE = "wordllama"
_WEIGHTS = "weights/l2_supercat_256.safetensors"
_TOKENIZER = "tokenizers/l2_supercat_tokenizer_config.json"
_AT_ONCE = 1024


class LocalProvider:
    """Embeds with the static word vectors of wordllama."""

    model = MODEL

    def embed(self, texts: Sequence[str], dimension: int, role: Role) -> Matrix:
        """Return a unit vector for each text; a query is embedded like a document."""
        check_texts(texts)
        words, tokenizer = _model()
        kept = min(dimension, WIDTH)
        rows = np.zeros((len(texts), dimension), np.float64)
        for start in range(0, len(texts), _AT_ONCE):
            part = list(texts[start : start + _AT_ONCE])
            for row, found in enumerate(
                tokenizer.encode_batch_fast(part, add_special_tokens=False)
            ):
                # The sum points where the mean does.
                rows[start + row, :kept] = np.add.reduce(words.take(found.ids, 0))[:kept]
        return unit_vectors(rows, texts, dimension, self.model)


@cache
def _model() -> tuple[npt.NDArray[np.float32], Any]:
    """Read the vectors and the tokenizer, once for all graphs; they take 50 MB."""
    # Who never embeds must not wait for these libraries.
    from safetensors.numpy import load_file  # noqa: PLC0415
    from tokenizers import Tokenizer  # noqa: PLC0415

    folder = _folder()
    try:
        [words] = load_file(folder / _WEIGHTS).values()
        tokenizer = Tokenizer.from_str((folder / _TOKENIZER).read_text(encoding="utf-8"))
    except OSError as error:
        raise _missing("its files cannot be read") from error
    return words.astype(np.float32), tokenizer


def _folder() -> Path:
    spec = find_spec(_PACKAGE)
    if spec is None or spec.origin is None:
        raise _missing(f"package {_PACKAGE} is not installed")
    return Path(spec.origin).parent


def _missing(reason: str) -> OmniError:
    return OmniError(
        f"the local embedding model is not there ({reason}): install omnigraph again, "
        "or choose another provider with OMNIGRAPH_EMBED_PROVIDER",
        code="embedding_model_missing",
        category=Category.UNAVAILABLE,
    )
