"""Services over HTTP: what is asked, when it is asked again, and what errors say."""

import logging
import socket

import numpy as np
import pytest

from omnigraph import OmniError
from omnigraph.embed import Role
from omnigraph.embed.config import build_provider, read_settings
from omnigraph.embed.remote_providers import TEXTS_PER_REQUEST
from tests.support.embedding_service import (
    Reply,
    embedding_service,
    gemini_answer,
    openai_answer,
    vector_of,
)

KEY = "sk-very-secret"
QUICK = {"OMNIGRAPH_EMBED_RETRY_BACKOFF_MS": "1"}


def provider(service, kind="openai-compatible", **env):
    return build_provider(
        read_settings(
            None,
            {
                "OMNIGRAPH_EMBED_PROVIDER": kind,
                "OMNIGRAPH_EMBED_BASE_URL": service.url,
                "OMNIGRAPH_EMBED_MODEL": "m1",
                "OPENAI_API_KEY": KEY,
                "GEMINI_API_KEY": KEY,
                **QUICK,
                **env,
            },
        )
    )


@pytest.fixture
def openai():
    with embedding_service(openai_answer) as service:
        yield service


@pytest.fixture
def gemini():
    with embedding_service(gemini_answer) as service:
        yield service


def unit(text, dimension):
    vector = np.array(vector_of(text, dimension))
    return (vector / np.linalg.norm(vector)).astype(np.float32).tolist()


def failure(found, texts=("a",), dimension=3):
    with pytest.raises(OmniError) as caught:
        found.embed(list(texts), dimension, Role.QUERY)
    error = caught.value
    assert KEY not in str(error.to_json())
    return error


# --- what is asked -----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["openai", "openai-compatible"])
def test_openai_embeds_many_texts_per_request_and_responds_in_any_order(openai, kind):
    texts = ["a", "bc", "def"]
    found = provider(openai, kind).embed(texts, 4, Role.DOCUMENT)
    assert found.tolist() == [unit(text, 4) for text in texts]
    [request] = openai.asked
    assert request.path == "/v1/embeddings"
    assert request.body == {"model": "m1", "input": texts, "dimensions": 4}
    assert request.headers["authorization"] == f"Bearer {KEY}"


def test_more_texts_than_fit_a_request_are_sent_in_parts(openai):
    texts = [f"{n} " * (n % 7 + 1) for n in range(TEXTS_PER_REQUEST * 2 + 5)]
    found = provider(openai).embed(texts, 3, Role.DOCUMENT)
    assert found.tolist() == [unit(text, 3) for text in texts]
    assert [len(request.body["input"]) for request in openai.asked] == [
        TEXTS_PER_REQUEST,
        TEXTS_PER_REQUEST,
        5,
    ]


def test_no_text_asks_nothing(openai, gemini):
    assert provider(openai).embed([], 3, Role.DOCUMENT).shape == (0, 3)
    assert provider(gemini, "gemini").embed([], 3, Role.DOCUMENT).shape == (0, 3)
    assert openai.asked == gemini.asked == []


def test_self_hosted_service_is_called_without_a_key(openai):
    provider(openai, OPENAI_API_KEY="").embed(["a"], 3, Role.QUERY)
    assert "authorization" not in openai.asked[0].headers


@pytest.mark.parametrize(
    ("role", "task"), [("query", "RETRIEVAL_QUERY"), ("document", "RETRIEVAL_DOCUMENT")]
)
def test_gemini_is_called_once_per_text_with_the_task(gemini, role, task):
    texts = ["a", "bc", "def"]
    found = provider(gemini, "gemini").embed(texts, 4, Role(role))
    assert found.tolist() == [unit(text, 4) for text in texts]
    asked = sorted(gemini.asked, key=lambda request: str(request.body))
    assert [request.path for request in asked] == ["/v1/models/m1:embedContent"] * 3
    assert asked[0].body == {
        "model": "models/m1",
        "content": {"parts": [{"text": "a"}]},
        "taskType": task,
        "outputDimensionality": 4,
    }
    assert asked[0].headers["x-goog-api-key"] == KEY


def test_empty_text_is_refused_before_anything_is_sent(openai):
    assert failure(provider(openai), ["a", " "]).code == "embedding_text_empty"
    assert openai.asked == []


# --- when it is asked again --------------------------------------------------------------------


@pytest.mark.parametrize("status", [429, 500, 502, 503])
def test_busy_service_is_retried(openai, status):
    openai.queue += [Reply(status, "busy")] * 3
    assert provider(openai).embed(["a"], 3, Role.QUERY).tolist() == [unit("a", 3)]
    assert len(openai.asked) == 4


@pytest.mark.parametrize(
    ("status", "category"), [(400, "invalid"), (404, "invalid"), (401, "denied"), (403, "denied")]
)
def test_rejection_is_not_retried_and_shows_no_key(openai, status, category):
    openai.queue.append(Reply(status, {"error": f"bad key {KEY} for m1"}))
    error = failure(provider(openai))
    assert (error.code, error.category) == ("embedding_refused", category)
    assert f"returned HTTP {status}" in error.message
    assert "bad key *** for m1" in error.message
    assert len(openai.asked) == 1


def test_service_that_stays_busy_is_given_up_after_the_attempts(openai):
    openai.queue += [Reply(503, "busy")] * 9
    error = failure(provider(openai, OMNIGRAPH_EMBED_RETRY_ATTEMPTS="3"))
    assert (error.code, error.category) == ("embedding_unavailable", "unavailable")
    assert 'returned HTTP 503: "busy" (3 attempts)' in error.message
    assert len(openai.asked) == 3


def test_slow_response_is_retried(openai):
    openai.queue.append(Reply(body={}, pause=0.5))
    found = provider(openai, OMNIGRAPH_EMBED_TIMEOUT_MS="100")
    assert found.embed(["a"], 3, Role.QUERY).tolist() == [unit("a", 3)]
    assert len(openai.asked) == 2


def test_answer_that_comes_byte_by_byte_does_not_outlive_the_timeout(openai):
    openai.queue.append(Reply(body=[1] * 2000, drip=0.02))
    found = provider(openai, OMNIGRAPH_EMBED_TIMEOUT_MS="150")
    assert found.embed(["a"], 3, Role.QUERY).tolist() == [unit("a", 3)]
    assert len(openai.asked) == 2


def test_deadline_ends_the_tries(openai):
    openai.queue.append(Reply(503, "busy"))
    late = {"OMNIGRAPH_EMBED_RETRY_BACKOFF_MS": "90000", "OMNIGRAPH_EMBED_DEADLINE_MS": "60000"}
    error = failure(provider(openai, **late))
    assert (error.code, error.category) == ("embedding_deadline", "limit")
    assert "returned HTTP 503" in error.message
    assert len(openai.asked) == 1


def test_deadline_ends_a_request_too(openai):
    openai.queue.append(Reply(body={}, pause=5))
    error = failure(provider(openai, OMNIGRAPH_EMBED_DEADLINE_MS="200"))
    assert error.code == "embedding_deadline"
    assert len(openai.asked) == 1


def test_no_deadline_lets_every_try_happen(openai):
    openai.queue += [Reply(503, "busy")] * 3
    provider(openai, OMNIGRAPH_EMBED_DEADLINE_MS="0").embed(["a"], 3, Role.QUERY)
    assert len(openai.asked) == 4


def test_unreachable_service_is_reported(openai):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        openai.url = f"http://user:{KEY}@127.0.0.1:{free.getsockname()[1]}/v1"
        error = failure(provider(openai))
    assert error.code == "embedding_unavailable"
    assert "cannot be reached" in error.message
    assert error.details["host"].startswith("127.0.0.1:")


def test_tries_are_logged_without_the_key(openai, caplog):
    openai.queue.append(Reply(500, f"{KEY} failed"))
    with caplog.at_level(logging.DEBUG):
        provider(openai).embed(["a"], 3, Role.QUERY)
    assert any("retrying" in record.message for record in caplog.records)
    assert KEY not in caplog.text


# --- what cannot be used -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"<html>", "did not return JSON"),
        ([], "did not return a vector for each text"),
        ({"data": []}, "did not return a vector for each text"),
        ({"data": [{"index": 1, "embedding": [1, 0, 0]}]}, "did not return a vector for each text"),
        ({"data": [{"embedding": None}]}, "vector"),
        ({"data": [{"embedding": [1, 0]}]}, "of dimension 2, not 3"),
        ({"data": [{"embedding": [0, 0, 0]}]}, "is zero"),
    ],
)
def test_invalid_response_is_reported_and_not_retried(openai, body, said):
    openai.queue.append(Reply(body=body))
    error = failure(provider(openai))
    assert error.code == "embedding_answer_invalid"
    assert said in error.message
    assert len(openai.asked) == 1


def test_gemini_response_without_a_vector_is_reported(gemini):
    gemini.queue.append(Reply(body={"embedding": {}}))
    error = failure(provider(gemini, "gemini"))
    assert (error.code, error.message) == (
        "embedding_answer_invalid",
        "model m1 returned no vector",
    )


def test_nothing_of_a_provider_shows_its_key(openai):
    assert KEY not in repr(provider(openai))
    assert KEY not in repr(
        read_settings(None, {"OMNIGRAPH_EMBED_PROVIDER": "openai", "OPENAI_API_KEY": KEY})
    )
