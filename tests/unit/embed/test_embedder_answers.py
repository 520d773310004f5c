"""What a provider of one's own returns is checked before it is stored or compared."""

import numpy as np
import pytest

import omnigraph as og
from omnigraph.embed import Embedder, Role

SCHEMA = """
node Draft { name: String @key  text: String?  v: Vector(3)? @embed(text) }
node Final { name: String @key  text: String  v: Vector(3) @embed(text) }
"""
NEAREST = 'match { $d: Draft } return { $d.name } order { nearest($d.v, "x") } limit 1'


class Provider:
    model = "mine"

    def __init__(self, answer):
        self.answer = answer

    def embed(self, texts, dimension, role):
        return self.answer(len(texts), dimension)


INVALID = {
    "nothing": lambda count, dimension: None,
    "one for all": lambda count, dimension: np.ones((1, dimension)) if count > 1 else [],
    "one too many": lambda count, dimension: np.ones((count + 1, dimension)),
    "a number each": lambda count, dimension: np.ones((count, 1)),
    "too wide": lambda count, dimension: np.ones((count, dimension + 1)),
    "no number": lambda count, dimension: np.full((count, dimension), np.nan),
    "infinite": lambda count, dimension: np.full((count, dimension), np.inf),
    "too large": lambda count, dimension: np.full((count, dimension), 1e300),
    "texts": lambda count, dimension: [["a"] * dimension] * count,
}


@pytest.fixture
def opened(tmp_path):
    def opened(answer):
        og.init(tmp_path / "graph", SCHEMA)
        return og.open(tmp_path / "graph", embedding=Provider(answer))

    return opened


@pytest.mark.parametrize("name", INVALID)
def test_invalid_vectors_are_refused(opened, name):
    graph = opened(INVALID[name])
    rows = [{"name": text, "text": text} for text in "abc"]
    graph.insert("Draft", rows)
    for use in (
        lambda: graph.insert("Final", rows),
        lambda: graph.embed("Draft"),
        lambda: Embedder(Provider(INVALID[name])).embed(["a", "b", "a"], 3, Role.QUERY),
    ):
        with pytest.raises(og.OmniError) as caught:
            use()
        assert caught.value.code == "embedding_answer_invalid"
    assert graph.query("match { $f: Final } return { $f.name }").rows == []


def test_an_invalid_vector_of_a_query_is_refused(opened):
    graph = opened(lambda count, dimension: np.ones((count, 1)))
    graph.insert("Draft", [{"name": "a", "text": "a", "v": [1, 0, 0]}], vectors_from="mine")
    with pytest.raises(og.OmniError) as caught:
        graph.query(NEAREST)
    assert caught.value.code == "embedding_answer_invalid"


def test_lists_of_numbers_are_vectors(opened):
    graph = opened(lambda count, dimension: [[1, 0.5, 0]] * count)
    graph.insert("Final", [{"name": str(n), "text": str(n % 2)} for n in range(3)])
    assert [graph.entity_at("Final", str(n))["v"] for n in range(3)] == [[1, 0.5, 0]] * 3
