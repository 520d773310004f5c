"""What every provider is held to."""

import numpy as np
import pytest

from omnigraph import OmniError
from omnigraph.embed.provider import check_texts, unit_vectors


def refusal(rows, texts=("a", "b"), dimension=2):
    with pytest.raises(OmniError) as caught:
        unit_vectors(rows, texts, dimension, "m1")
    return caught.value


def test_vectors_become_unit_vectors_of_single_precision():
    found = unit_vectors([[3, 4], [0, -2]], ["a", "b"], 2, "m1")
    assert found.dtype == np.float32
    assert found.tolist() == [[np.float32(0.6), np.float32(0.8)], [0, -1]]


def test_no_text_gives_no_vector():
    assert unit_vectors(np.zeros((0, 3)), [], 3, "m1").shape == (0, 3)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([[1, 0]], "did not return a vector for each text"),
        ([1, 0], "did not return a vector for each text"),
        ([[1, 0], [1]], "did not return vectors of equal length"),
        ([[1, 0], ["x", "y"]], "did not return vectors of equal length"),
        ([[1, 0], None], "did not return vectors of equal length"),
        ([[1, 0], [0, 0]], "for 'b' is zero"),
        ([[float("nan"), 0], [1, 0]], "for 'a' is not finite"),
        ([[1, 0], [float("inf"), 0]], "for 'b' is not finite"),
        ([[1, 0, 0], [0, 1, 0]], "of dimension 3, not 2: declare Vector(3), or"),
    ],
)
def test_vectors_that_cannot_be_used_are_refused(rows, said):
    error = refusal(rows)
    assert (error.code, error.category) == ("embedding_answer_invalid", "unavailable")
    assert said in error.message
    assert error.details["model"] == "m1"


def test_message_shows_the_beginning_of_a_long_text():
    assert "'" + "x" * 60 + "…'" in refusal([[0, 0]], ["x" * 1000]).message


@pytest.mark.parametrize("text", ["", "  ", "\n\t"])
def test_text_without_content_is_refused(text):
    with pytest.raises(OmniError) as caught:
        check_texts(["fine", text])
    assert caught.value.code == "embedding_text_empty"
