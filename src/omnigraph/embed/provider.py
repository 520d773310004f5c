"""The interface of embedding providers, and the checks of their vectors."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from omnigraph.errors import Category, InvalidInput, OmniError

Matrix: TypeAlias = npt.NDArray[np.float32]
"""A vector per row."""
_MAX_SHOWN_CHARS = 60


class Role(StrEnum):
    """Whether a text is a document or a search query; some models distinguish them."""

    QUERY = "query"
    DOCUMENT = "document"


class Provider(Protocol):
    """Embeds texts; `model` identifies the model, because only its vectors are comparable."""

    @property
    def model(self) -> str:
        """The name of the model."""

    def embed(self, texts: Sequence[str], dimension: int, role: Role) -> Matrix:
        """Return a unit vector for each text, in order."""


def unit_vectors(rows: npt.ArrayLike, texts: Sequence[str], dimension: int, model: str) -> Matrix:
    """Normalize the output of a model to unit vectors; raise OmniError if it is invalid."""
    vectors = _check_shape(_as_numbers(rows, model), texts, dimension, model)
    with np.errstate(over="ignore", invalid="ignore"):
        lengths = np.linalg.norm(vectors, axis=1)
    bad = np.flatnonzero(~np.isfinite(lengths) | (lengths == 0))
    if len(bad):
        kind = "zero" if lengths[bad[0]] == 0 else "not finite"
        raise _bad_vector_error(texts[int(bad[0])], kind, model)
    units: Matrix = (vectors / lengths[:, None]).astype(np.float32)
    return units


def check_vectors(rows: npt.ArrayLike, texts: Sequence[str], dimension: int, model: str) -> Matrix:
    """Return what a provider returned as vectors; raise OmniError if it is invalid."""
    if not texts:
        return np.zeros((0, dimension), np.float32)
    vectors: Matrix
    if isinstance(rows, np.ndarray) and rows.dtype == np.float32:
        vectors = _check_shape(rows, texts, dimension, model)
    else:
        with np.errstate(over="ignore"):
            vectors = _check_shape(_as_numbers(rows, model), texts, dimension, model)
            vectors = vectors.astype(np.float32)
    bad = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
    if len(bad):
        raise _bad_vector_error(texts[int(bad[0])], "not finite", model)
    return vectors


def _as_numbers(rows: npt.ArrayLike, model: str) -> npt.NDArray[Any]:
    try:
        return np.asarray(rows, np.float64)
    except (TypeError, ValueError) as error:
        message = f"model {model} did not return vectors of equal length"
        raise bad_response_error(message, model) from error


def _check_shape(
    vectors: npt.NDArray[Any], texts: Sequence[str], dimension: int, model: str
) -> npt.NDArray[Any]:
    if vectors.ndim != 2 or len(vectors) != len(texts):
        raise bad_response_error(f"model {model} did not return a vector for each text", model)
    if vectors.shape[1] != dimension:
        message = (
            f"model {model} returns vectors of dimension {vectors.shape[1]}, not {dimension}: "
            f"declare Vector({vectors.shape[1]}), or choose a model with dimension {dimension}"
        )
        raise bad_response_error(message, model, dimension=dimension, given=vectors.shape[1])
    return vectors


def _bad_vector_error(text: str, kind: str, model: str) -> OmniError:
    shown = abbreviate_text(text)
    message = f"the vector of model {model} for {shown} is {kind}"
    return bad_response_error(message, model, text=shown)


def check_texts(texts: Sequence[str]) -> None:
    """Raise InvalidInput if a text is empty."""
    if any(not text.strip() for text in texts):
        message = "an empty text cannot be embedded; pass a text with words"
        raise InvalidInput(message, code="embedding_text_empty")


def bad_response_error(message: str, model: str, **details: object) -> OmniError:
    """Return the error for an invalid response of a model."""
    return OmniError(
        message,
        code="embedding_answer_invalid",
        category=Category.UNAVAILABLE,
        details={"model": model, **details},
    )


def abbreviate_text(text: str) -> str:
    """Return a text shortened for a message."""
    return repr(text if len(text) <= _MAX_SHOWN_CHARS else text[:_MAX_SHOWN_CHARS] + "…")
