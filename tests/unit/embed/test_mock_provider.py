"""The made-up vectors: pinned, because data made with them must are the same setting for ever."""

import numpy as np
import pytest

from omnigraph.embed.local_providers import MockProvider
from omnigraph.embed.provider import Role
from tests.support.embedding import mock_vector


@pytest.mark.parametrize("text", ["a", "harbour", "Ærøskøbing 🚢", "a b", "x" * 5000])
@pytest.mark.parametrize("dimension", [1, 2, 8, 3072])
def test_vector_is_the_one_of_the_specification(text, dimension):
    [found] = MockProvider().embed([text], dimension, Role.QUERY)
    assert np.allclose(found, mock_vector(text, dimension), atol=1e-6)


def test_vectors_are_pinned():
    found = MockProvider().embed(["alpha", "beta"], 4, Role.QUERY)
    assert found.tolist() == [
        [-0.5420488119125366, -0.47179940342903137, 0.16090507805347443, 0.6765337586402893],
        [0.6659632921218872, -0.5622195601463318, -0.4163675308227539, 0.25892114639282227],
    ]


def test_vector_depends_on_the_text_alone():
    one = MockProvider("m1").embed(["a", "b"], 4, Role.QUERY)
    other = MockProvider("m2").embed(["b", "a"], 4, Role.DOCUMENT)
    assert one.tolist() == other[::-1].tolist()
    assert one[0].tolist() != one[1].tolist()
