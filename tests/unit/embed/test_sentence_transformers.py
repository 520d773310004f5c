"""The provider whose library is installed separately."""

import sys

import pytest

from omnigraph import OmniError
from omnigraph.embed.local_providers import SentenceTransformersProvider
from omnigraph.embed.provider import Role

LIBRARY = """
class SentenceTransformer:
    made = []
    def __init__(self, name):
        self.made.append(name)
    def encode(self, texts, show_progress_bar):
        return [[len(text), 1.0] for text in texts]
"""


def test_missing_library_is_reported_with_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(OmniError) as caught:
        SentenceTransformersProvider("m1").embed(["a"], 2, Role.QUERY)
    assert caught.value.code == "embedding_library_missing"
    assert "pip install 'omnigraph[sentence-transformers]'" in caught.value.message


def test_library_is_loaded_once_and_its_vectors_become_unit_vectors(monkeypatch, tmp_path):
    (tmp_path / "sentence_transformers.py").write_text(LIBRARY, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "sentence_transformers", raising=False)
    provider = SentenceTransformersProvider("m1")
    for _ in range(2):
        [vector] = provider.embed(["a"], 2, Role.DOCUMENT)
        assert vector.tolist() == pytest.approx([0.5**0.5] * 2)
    with pytest.raises(OmniError) as caught:
        provider.embed(["a"], 3, Role.DOCUMENT)
    assert caught.value.code == "embedding_answer_invalid"
    assert sys.modules["sentence_transformers"].SentenceTransformer.made == ["m1"]
    monkeypatch.delitem(sys.modules, "sentence_transformers")
