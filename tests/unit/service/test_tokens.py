"""Tokens: where they come from, what is refused, and that only digests are kept."""

import json
import sys

import boto3
import pytest

from omnigraph.errors import InvalidInput
from omnigraph.service.auth import (
    AWS_SECRET_VARIABLE,
    TOKEN_VARIABLE,
    TOKENS_FILE_VARIABLE,
    TOKENS_JSON_VARIABLE,
    TokenStore,
    Unauthorized,
)


def actors(environment):
    return sorted(actor for _, actor in TokenStore.from_environment(environment).entries)


def test_nothing_set_means_no_tokens():
    assert not TokenStore.from_environment({})
    assert not TokenStore.from_environment(
        {TOKEN_VARIABLE: " ", TOKENS_JSON_VARIABLE: "", TOKENS_FILE_VARIABLE: "\n"}
    )


def test_sources_go_before_each_other_and_the_single_token_is_added(tmp_path):
    file = tmp_path / "tokens.json"
    file.write_text(json.dumps({"act-file": "f"}))
    inline = json.dumps({"act-inline": "i"})
    assert actors({TOKENS_FILE_VARIABLE: str(file), TOKENS_JSON_VARIABLE: inline}) == ["act-file"]
    assert actors({TOKENS_JSON_VARIABLE: inline}) == ["act-inline"]
    assert actors({TOKENS_JSON_VARIABLE: inline, TOKEN_VARIABLE: "s"}) == ["act-inline", "default"]
    assert actors({TOKENS_FILE_VARIABLE: str(file), TOKEN_VARIABLE: "s"}) == ["act-file", "default"]
    assert actors({TOKEN_VARIABLE: "s"}) == ["default"]


@pytest.mark.parametrize(
    "environment",
    [
        {TOKENS_FILE_VARIABLE: "/nowhere/tokens.json"},
        {TOKENS_JSON_VARIABLE: "not json"},
        {TOKENS_JSON_VARIABLE: "[]"},
        {TOKENS_JSON_VARIABLE: '{"a": 1}'},
        {TOKENS_JSON_VARIABLE: '{"a": " "}'},
        {TOKENS_JSON_VARIABLE: '{" ": "x"}'},
        {TOKENS_JSON_VARIABLE: '{"a": "x", "a": "y"}'},
        {TOKENS_JSON_VARIABLE: '{"a": "x", " a ": "y"}'},
        {TOKENS_JSON_VARIABLE: '{"a": "x", "b": " x "}'},
        {TOKENS_JSON_VARIABLE: '{"default": "x"}', TOKEN_VARIABLE: "y"},
        {TOKENS_JSON_VARIABLE: '{"a": "same"}', TOKEN_VARIABLE: "same"},
        {TOKENS_JSON_VARIABLE: '{"a": []}'},
        {TOKENS_JSON_VARIABLE: '{"a": ["x", "same", "z"]}'},
        {TOKENS_JSON_VARIABLE: '{"a": ["same", "same"]}'},
        {TOKENS_JSON_VARIABLE: '{"a": ["x", 1]}'},
        {TOKENS_JSON_VARIABLE: '{"a": {"x": "y"}}'},
        {TOKENS_JSON_VARIABLE: '{"a": ["x", " "]}'},
    ],
)
def test_what_is_wrong_is_refused_without_showing_a_token(environment):
    with pytest.raises(InvalidInput) as caught:
        TokenStore.from_environment(environment)
    assert caught.value.code == "tokens_invalid"
    assert "same" not in caught.value.message.replace("the same", "")


def test_only_digests_are_kept():
    tokens = TokenStore.of([("ada", ["very-secret"])])
    assert "very-secret" not in repr(tokens)
    assert tokens.actor_of("Bearer very-secret") == "ada"
    assert tokens.actor_of("Bearer  very-secret ") == "ada"
    assert tokens.actor_of("bearer very-secret") == tokens.actor_of("BEARER very-secret") == "ada"


def test_an_actor_may_hold_two_tokens_while_they_are_rotated():
    tokens = TokenStore.from_environment(
        {TOKENS_JSON_VARIABLE: '{"ada": ["new", "old"], "bob": "b"}'}
    )
    shown = [tokens.actor_of(f"Bearer {token}") for token in ("new", "old", "b")]
    assert shown == ["ada", "ada", "bob"]


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (None, "missing bearer token"),
        ("", "missing bearer token"),
        ("Bearer", "missing bearer token"),
        ("Bearer ", "missing bearer token"),
        ("Basic very-secret", "missing bearer token"),
        ("Bearer other", "invalid bearer token"),
        ("Bearer \udcff", "invalid bearer token"),
    ],
)
def test_a_header_without_a_good_token_is_refused(header, message):
    with pytest.raises(Unauthorized, match=message):
        TokenStore.of([("ada", ["very-secret"])]).actor_of(header)


def test_every_digest_is_compared(monkeypatch):
    seen = []
    monkeypatch.setattr(
        "omnigraph.service.auth.hmac.compare_digest",
        lambda one, other: seen.append(one) or one == other,
    )
    tokens = TokenStore.of([("a", ["1"]), ("b", ["2"]), ("c", ["3"])])
    assert tokens.actor_of("Bearer 1") == "a"
    assert len(seen) == 3


@pytest.fixture
def secrets(s3, monkeypatch):
    """Return a client of a real server of secrets, which the environment leads to."""
    for name, value in s3.environment.items():
        monkeypatch.setenv(name, value)
    return boto3.client("secretsmanager", region_name="us-east-1")


def test_secret_of_aws_goes_before_everything_else(secrets, s3):
    made = secrets.create_secret(Name="tokens", SecretString='{"act-aws": "a", "act-ada": "b"}')
    around = {**s3.environment, TOKENS_JSON_VARIABLE: '{"act-inline": "i"}', TOKEN_VARIABLE: "s"}
    assert actors({AWS_SECRET_VARIABLE: "tokens", **around}) == ["act-ada", "act-aws"]
    assert actors({AWS_SECRET_VARIABLE: made["ARN"], **around, "AWS_REGION": "eu-west-1"}) == [
        "act-ada",
        "act-aws",
    ]


@pytest.mark.parametrize(
    ("content", "reported"),
    [
        (None, "ResourceNotFoundException"),
        ({"SecretBinary": b"{}"}, "holds bytes"),
        ({"SecretString": "hush"}, "is not valid JSON"),
        ({"SecretString": '["hush"]'}, "must be a JSON object"),
    ],
)
def test_secret_of_aws_that_gives_no_tokens_is_refused(secrets, s3, content, reported):
    name = "none" if content is None else f"bad-{hash(str(content))}"
    if content is not None:
        secrets.create_secret(Name=name, **content)
    with pytest.raises(InvalidInput, match=reported) as caught:
        TokenStore.from_environment({AWS_SECRET_VARIABLE: name, **s3.environment})
    assert "hush" not in caught.value.message


def test_secret_of_aws_needs_what_speaks_with_aws(monkeypatch):
    monkeypatch.setitem(sys.modules, "boto3", None)
    with pytest.raises(InvalidInput, match="needs boto3"):
        TokenStore.from_environment({AWS_SECRET_VARIABLE: "tokens"})
