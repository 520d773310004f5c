"""Which provider embeds, for every environment and profile."""

import logging

import pytest

from omnigraph import OmniError
from omnigraph.embed.config import (
    ProviderKind,
    build_provider,
    read_settings,
    same_model,
    settings_for_model,
)
from omnigraph.embed.embedder import Embedder, check_model
from omnigraph.embed.local_providers import LOCAL_MODEL as LOCAL
from omnigraph.embed.local_providers import MockProvider
from omnigraph.embed.provider import Role

P, U, M = "OMNIGRAPH_EMBED_PROVIDER", "OMNIGRAPH_EMBED_BASE_URL", "OMNIGRAPH_EMBED_MODEL"
ROUTER = "https://openrouter.ai/api/v1"
GOOGLE = "https://generativelanguage.googleapis.com/v1beta"
OPENAI = "https://api.openai.com/v1"
KEYS = {"OPENAI_API_KEY": "k1", "OPENROUTER_API_KEY": "k2", "GEMINI_API_KEY": "k3"}


@pytest.mark.parametrize(
    ("environ", "kind", "model", "base_url", "key"),
    [
        ({}, "local", LOCAL, None, None),
        ({**KEYS, P: "local"}, "local", LOCAL, None, None),
        ({**KEYS, M: LOCAL}, "local", LOCAL, None, None),
        (KEYS, "openai-compatible", "openai/text-embedding-3-large", ROUTER, "k2"),
        ({"OPENAI_API_KEY": "k1"}, "openai", "text-embedding-3-large", OPENAI, "k1"),
        (
            {"OPENAI_API_KEY": "k1", "GEMINI_API_KEY": "k3"},
            "openai",
            "text-embedding-3-large",
            OPENAI,
            "k1",
        ),
        ({"GEMINI_API_KEY": "k3"}, "gemini", "gemini-embedding-2", GOOGLE, "k3"),
        ({"GEMINI_API_KEY": "k3", M: "m"}, "gemini", "m", GOOGLE, "k3"),
        ({"OPENAI_API_KEY": " "}, "local", LOCAL, None, None),
        ({P: " "}, "local", LOCAL, None, None),
        ({P: "local"}, "local", LOCAL, None, None),
        ({P: "local", M: LOCAL}, "local", LOCAL, None, None),
        (
            {U: "http://h/v1"},
            "openai-compatible",
            "openai/text-embedding-3-large",
            "http://h/v1",
            None,
        ),
        ({U: "http://h/v1", M: "m"}, "openai-compatible", "m", "http://h/v1", None),
        (
            {P: "openai-compatible", **KEYS},
            "openai-compatible",
            "openai/text-embedding-3-large",
            ROUTER,
            "k2",
        ),
        (
            {P: "openai-compatible", "OPENAI_API_KEY": "k1"},
            "openai-compatible",
            "openai/text-embedding-3-large",
            ROUTER,
            "k1",
        ),
        ({P: "openai", **KEYS}, "openai", "text-embedding-3-large", OPENAI, "k1"),
        ({P: "openai", U: "http://h", M: "m", **KEYS}, "openai", "m", "http://h", "k1"),
        ({P: "gemini", **KEYS}, "gemini", "gemini-embedding-2", GOOGLE, "k3"),
        ({P: "sentence-transformers"}, "sentence-transformers", "all-MiniLM-L6-v2", None, None),
        ({P: "mock"}, "mock", "", None, None),
        ({P: "mock", M: "m"}, "mock", "m", None, None),
    ],
)
def test_environment_decides(environ, kind, model, base_url, key):
    found = read_settings(None, environ)
    assert (found.kind, found.model, found.base_url, found.key) == (kind, model, base_url, key)
    assert build_provider(found).model == model


@pytest.mark.parametrize("word", ["1", "true", "YES", " on "])
def test_mock_switch_wins_with_a_warning(word, caplog):
    environ = {"OMNIGRAPH_EMBEDDINGS_MOCK": word, P: "openai", U: "http://h", M: "m"}
    with caplog.at_level(logging.WARNING, "omnigraph.embed"):
        found = read_settings(None, environ)
    assert (found.kind, found.model) == (ProviderKind.MOCK, "m")
    assert ["OMNIGRAPH_EMBEDDINGS_MOCK" in record.message for record in caplog.records] == [True]


@pytest.mark.parametrize("word", ["", "0", "false", "no", "off"])
def test_mock_switch_that_is_off_changes_nothing(word):
    assert read_settings(None, {"OMNIGRAPH_EMBEDDINGS_MOCK": word}).kind is ProviderKind.LOCAL


@pytest.mark.parametrize(
    ("profile", "kind", "model", "base_url", "key"),
    [
        (
            {"api_key": "${K}"},
            "openai-compatible",
            "openai/text-embedding-3-large",
            ROUTER,
            "secret",
        ),
        ({"kind": "gemini", "model": "m", "api_key": "${K}"}, "gemini", "m", GOOGLE, "secret"),
        (
            {"provider": "openai", "base_url": "http://h", "api_key": "${K}"},
            "openai",
            "text-embedding-3-large",
            "http://h",
            "secret",
        ),
        ({"kind": "mock", "model": "m"}, "mock", "m", None, None),
        ({"kind": "local"}, "local", LOCAL, None, None),
    ],
)
def test_profile_wins_over_the_environment(profile, kind, model, base_url, key):
    environ = {"K": "secret", P: "gemini", U: "http://other", M: "other", "GEMINI_API_KEY": "x"}
    found = read_settings(profile, {**environ, "OMNIGRAPH_EMBEDDINGS_MOCK": "1"})
    assert (found.kind, found.model, found.base_url, found.key) == (kind, model, base_url, key)


def test_patience_comes_from_the_environment():
    plain = read_settings(None, {}).retry_policy
    assert (plain.attempts, plain.backoff, plain.timeout, plain.deadline) == (4, 0.2, 30, 60)
    other = read_settings(
        {"kind": "mock"},
        {
            "OMNIGRAPH_EMBED_RETRY_ATTEMPTS": "1",
            "OMNIGRAPH_EMBED_RETRY_BACKOFF_MS": "0",
            "OMNIGRAPH_EMBED_TIMEOUT_MS": "1500",
            "OMNIGRAPH_EMBED_DEADLINE_MS": "0",
        },
    ).retry_policy
    assert (other.attempts, other.backoff, other.timeout, other.deadline) == (1, 0, 1.5, None)


INVALID = "embedding_config_invalid"


@pytest.mark.parametrize(
    ("profile", "environ", "code", "said"),
    [
        (
            None,
            {P: "oepnai"},
            INVALID,
            "OMNIGRAPH_EMBED_PROVIDER is 'oepnai'; use one of local",
        ),
        (None, {P: "openai"}, "embedding_api_key_missing", "set OPENAI_API_KEY"),
        (
            None,
            {P: "openai-compatible"},
            "embedding_api_key_missing",
            "set OPENROUTER_API_KEY or OPENAI_API_KEY",
        ),
        (None, {P: "gemini", U: "http://h"}, "embedding_api_key_missing", "set GEMINI_API_KEY"),
        (
            None,
            {P: "openai", "OPENAI_API_KEY": " "},
            "embedding_api_key_missing",
            "set OPENAI_API_KEY",
        ),
        (None, {U: "localhost:11434"}, INVALID, "start with https://"),
        (None, {U: "ftp://h"}, INVALID, "start with https://"),
        (
            None,
            {M: "m"},
            INVALID,
            "provider local has only model",
        ),
        (
            None,
            {"OMNIGRAPH_EMBED_TIMEOUT_MS": "fast"},
            INVALID,
            "OMNIGRAPH_EMBED_TIMEOUT_MS is 'fast'",
        ),
        (None, {"OMNIGRAPH_EMBED_TIMEOUT_MS": "0"}, INVALID, "at least 1"),
        (None, {"OMNIGRAPH_EMBED_RETRY_ATTEMPTS": "-1"}, INVALID, "at least 1"),
        (None, {"OMNIGRAPH_EMBED_DEADLINE_MS": "²"}, INVALID, "at least 0"),
        ({"kind": "openai"}, {}, "embedding_api_key_required", "${NAME}"),
        ({"kind": "openai", "api_key": "sk-secret"}, {}, "embedding_api_key_inline", "${NAME}"),
        ({"kind": "openai", "api_key": "${K}"}, {}, "embedding_api_key_missing", "refers to K"),
        ({"kind": "x"}, {}, INVALID, "the kind of the embedding profile is 'x'"),
        ({"kind": "mock", "url": "x"}, {}, INVALID, "unknown key 'url'"),
        ({"kind": "mock", "provider": "mock"}, {}, INVALID, "are the same setting"),
    ],
)
def test_invalid_configuration_is_reported_with_the_next_step(profile, environ, code, said):
    with pytest.raises(OmniError) as caught:
        read_settings(profile, environ)
    assert (caught.value.code, caught.value.category) == (code, "invalid")
    assert said in caught.value.message
    assert "sk-secret" not in caught.value.message


# --- the model that vectors were made by -------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "environ", "kind", "name", "key"),
    [
        (LOCAL, KEYS, "local", LOCAL, None),
        (f"local/{LOCAL}", {}, "local", LOCAL, None),
        ("text-embedding-3-large", KEYS, "openai", "text-embedding-3-large", "k1"),
        ("openai/text-embedding-3-small", KEYS, "openai", "text-embedding-3-small", "k1"),
        (
            "openai/text-embedding-3-small",
            {"OPENROUTER_API_KEY": "k2"},
            "openai-compatible",
            "openai/text-embedding-3-small",
            "k2",
        ),
        ("gemini-embedding-2", KEYS, "gemini", "gemini-embedding-2", "k3"),
        ("google/m", KEYS, "gemini", "m", "k3"),
        ("openai-compatible/m", KEYS, "openai-compatible", "m", "k2"),
        ("sentence-transformers/m", {}, "sentence-transformers", "m", None),
    ],
)
def test_environment_gives_the_model_vectors_were_made_by(model, environ, kind, name, key):
    found = settings_for_model(model, environ)
    assert found is not None
    assert (found.kind, found.model, found.key) == (kind, name, key)
    assert same_model(build_provider(found).model, model)


@pytest.mark.parametrize(
    ("model", "environ"),
    [
        ("openai/text-embedding-3-small", {}),
        ("openai/text-embedding-3-small", {"GEMINI_API_KEY": "k3"}),
        ("acme/m", {"OPENAI_API_KEY": "k1"}),
        ("acme/m", KEYS),
        ("mock/m", KEYS),
        ("local/m", KEYS),
        (LOCAL, {P: "openai", **KEYS}),
        (LOCAL, {U: "http://h"}),
        ("openai/text-embedding-3-small", {M: "m", **KEYS}),
        ("openai/text-embedding-3-small", {"OMNIGRAPH_EMBEDDINGS_MOCK": "1", **KEYS}),
    ],
)
def test_environment_is_not_second_guessed(model, environ):
    assert settings_for_model(model, environ) is None


def test_embedder_chosen_by_the_caller_is_kept():
    given = Embedder(Counting(), KEYS)
    assert given.for_model(LOCAL) is given
    by_key = Embedder(environ=KEYS)
    assert by_key.for_model(None) is by_key
    local = by_key.for_model(LOCAL)
    assert (local.model, local.is_local) == (LOCAL, True)
    assert by_key.for_model(LOCAL) is local


# --- the provider of a handle ------------------------------------------------------------------


class Counting:
    model = "counting"

    def __init__(self):
        self.asked = []

    def embed(self, texts, dimension, role):
        self.asked.append(list(texts))
        return MockProvider().embed(texts, dimension, role)


def test_invalid_configuration_is_reported_at_the_first_text():
    embedder = Embedder(environ={P: "nothing"})
    with pytest.raises(OmniError):
        embedder.embed(["a"], 3, Role.QUERY)


def test_provider_is_built_once():
    embedder = Embedder(environ={P: "mock"})
    assert embedder.provider is embedder.provider
    assert Embedder(given := Counting()).provider is given


def test_equal_texts_are_embedded_once():
    counting = Counting()
    found = Embedder(counting).embed(["b", "a", "b", "b"], 3, Role.DOCUMENT)
    assert counting.asked == [["b", "a"]]
    plain = MockProvider().embed(["b", "a", "b", "b"], 3, Role.DOCUMENT)
    assert found.tolist() == plain.tolist()


def test_other_model_is_refused_naming_both():
    check_model("Doc.v", None, "m2", declared=True)
    check_model("Doc.v", "m2", "m2", declared=True)
    for declared, why in ((True, "is declared with"), (False, "holds vectors of")):
        with pytest.raises(OmniError) as caught:
            check_model("Doc.v", "m1", "m2", declared=declared)
        assert caught.value.code == "embedding_model_mismatch"
        assert f"Doc.v {why} model 'm1', but texts are embedded by 'm2'" in caught.value.message
        assert "OMNIGRAPH_EMBED_MODEL" in caught.value.message
