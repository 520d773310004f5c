"""The local model: real meaning, in any dimension, with no service."""

import subprocess
import sys

import numpy as np
import pytest

from omnigraph import OmniError
from omnigraph.embed.local_providers import LocalProvider, _load_model
from omnigraph.embed.provider import Role

PAIRS = [
    ("The ship entered the harbour at dawn.", "A vessel arrived at the port in the morning."),
    ("The dog chased the cat around the garden.", "A kitten was followed by a puppy in the yard."),
    ("Interest rates rose after the bank meeting.", "The central bank made loans more expensive."),
    ("She plays the violin in an orchestra.", "He is a musician who performs symphonies."),
    ("Vaccines protect children from disease.", "Doctors immunise young patients."),
]


def embed(texts, dimension=256):
    return LocalProvider().embed(texts, dimension, Role.DOCUMENT)


@pytest.mark.parametrize("dimension", [32, 64, 128, 256, 300, 1024])
def test_related_texts_are_nearer_than_all_others(dimension):
    left = embed([one for one, _ in PAIRS], dimension)
    right = embed([other for _, other in PAIRS], dimension)
    assert (left @ right.T).argmax(axis=1).tolist() == list(range(len(PAIRS)))
    assert (right @ left.T).argmax(axis=1).tolist() == list(range(len(PAIRS)))


def test_question_finds_its_answer():
    answers = embed([text for pair in PAIRS for text in pair])
    [question] = LocalProvider().embed(["boats coming into port"], 256, Role.QUERY)
    assert {int(at) for at in np.argsort(-(answers @ question))[:2]} == {0, 1}


@pytest.mark.parametrize("dimension", [1, 3, 64, 256, 257, 4096])
def test_vectors_have_the_requested_dimension_and_length_one(dimension):
    found = embed(["harbour", "Ærø 🚢 日本語", "x"], dimension)
    assert (found.shape, found.dtype) == ((3, dimension), np.float32)
    assert np.allclose(np.linalg.norm(found, axis=1), 1, atol=1e-6)


def test_small_vector_is_the_beginning_of_a_large_one():
    small, large = embed(["harbour"], 64)[0], embed(["harbour"])[0]
    assert np.allclose(small, large[:64] / np.linalg.norm(large[:64]), atol=1e-6)


def test_further_numbers_are_zeros_and_change_no_cosine():
    texts = [one for one, _ in PAIRS]
    wide, plain = embed(texts, 500), embed(texts, 256)
    assert not wide[:, 256:].any()
    assert np.array_equal(wide[:, :256], plain)


def test_text_is_the_mean_of_its_tokens():
    words, tokenizer = _load_model()
    ids = tokenizer.encode("grey seal", add_special_tokens=False).ids
    mean = words[ids].mean(0)
    assert np.allclose(embed(["grey seal"])[0], mean / np.linalg.norm(mean), atol=1e-6)


def test_many_texts_are_embedded_like_one_at_a_time():
    texts = [f"text number {n}" for n in range(2500)]
    found = embed(texts, 16)
    assert all(np.array_equal(found[n], embed([texts[n]], 16)[0]) for n in (0, 1023, 1024, 2499))


def test_no_text_gives_no_vector():
    assert embed([], 8).shape == (0, 8)


def test_empty_text_is_refused():
    with pytest.raises(OmniError) as caught:
        embed(["fine", " "])
    assert caught.value.code == "embedding_text_empty"


def test_model_is_loaded_with_the_first_text_and_downloads_nothing():
    program = """
import socket, sys
def refuse(*a, **k): raise AssertionError("something was sent")
socket.socket.connect = socket.create_connection = socket.getaddrinfo = refuse
from omnigraph.embed.local_providers import LocalProvider, _load_model
provider = LocalProvider()
assert not {"tokenizers", "safetensors", "httpx", "wordllama"} & set(sys.modules)
assert provider.embed(["harbour"], 8, "query").shape == (1, 8)
assert "wordllama" not in sys.modules, "its own loader must not run"
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
