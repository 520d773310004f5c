"""Tokens: where they come from, what is refused, and that only digests are kept."""

import json
import sys

import boto3
import pytest

from omnigraph.errors import InvalidInput
from omnigraph.service.tokens import FILE, INLINE, SECRET, SINGLE, Tokens, Unauthorized


def actors(environment):
    return sorted(actor for _, actor in Tokens.from_environment(environment).entries)


def test_nothing_set_means_no_tokens():
    assert not Tokens.from_environment({})
    assert not Tokens.from_environment({SINGLE: " ", INLINE: "", FILE: "\n"})


def test_sources_go_before_each_other_and_the_single_token_is_added(tmp_path):
    file = tmp_path / "tokens.json"
    file.write_text(json.dumps({"act-file": "f"}))
    inline = json.dumps({"act-inline": "i"})
    assert actors({FILE: str(file), INLINE: inline}) == ["act-file"]
    assert actors({INLINE: inline}) == ["act-inline"]
    assert actors({INLINE: inline, SINGLE: "s"}) == ["act-inline", "default"]
    assert actors({FILE: str(file), SINGLE: "s"}) == ["act-file", "default"]
    assert actors({SINGLE: "s"}) == ["default"]


@pytest.mark.parametrize(
    "environment",
    [
        {FILE: "/nowhere/tokens.json"},
        {INLINE: "not json"},
        {INLINE: "[]"},
        {INLINE: '{"a": 1}'},
        {INLINE: '{"a": " "}'},
        {INLINE: '{" ": "x"}'},
        {INLINE: '{"a": "x", "a": "y"}'},
        {INLINE: '{"a": "x", " a ": "y"}'},
        {INLINE: '{"a": "x", "b": " x "}'},
        {INLINE: '{"default": "x"}', SINGLE: "y"},
        {INLINE: '{"a": "same"}', SINGLE: "same"},
        {INLINE: '{"a": []}'},
        {INLINE: '{"a": ["x", "same", "z"]}'},
        {INLINE: '{"a": ["same", "same"]}'},
        {INLINE: '{"a": ["x", 1]}'},
        {INLINE: '{"a": {"x": "y"}}'},
        {INLINE: '{"a": ["x", " "]}'},
    ],
)
def test_what_is_wrong_is_refused_without_showing_a_token(environment):
    with pytest.raises(InvalidInput) as caught:
        Tokens.from_environment(environment)
    assert caught.value.code == "tokens_invalid"
    assert "same" not in caught.value.message.replace("the same", "")


def test_only_digests_are_kept():
    tokens = Tokens.of([("ada", "very-secret")])
    assert "very-secret" not in repr(tokens)
    assert tokens.actor_of("Bearer very-secret") == "ada"
    assert tokens.actor_of("Bearer  very-secret ") == "ada"
    assert tokens.actor_of("bearer very-secret") == tokens.actor_of("BEARER very-secret") == "ada"


def test_an_actor_may_hold_two_tokens_while_they_are_rotated():
    tokens = Tokens.from_environment({INLINE: '{"ada": ["new", "old"], "bob": "b"}'})
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
        Tokens.of([("ada", "very-secret")]).actor_of(header)


def test_every_digest_is_compared(monkeypatch):
    seen = []
    monkeypatch.setattr(
        "omnigraph.service.tokens.hmac.compare_digest",
        lambda one, other: seen.append(one) or one == other,
    )
    tokens = Tokens.of([("a", "1"), ("b", "2"), ("c", "3")])
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
    around = {**s3.environment, INLINE: '{"act-inline": "i"}', SINGLE: "s"}
    assert actors({SECRET: "tokens", **around}) == ["act-ada", "act-aws"]
    assert actors({SECRET: made["ARN"], **around, "AWS_REGION": "eu-west-1"}) == [
        "act-ada",
        "act-aws",
    ]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (None, "ResourceNotFoundException"),
        ({"SecretBinary": b"{}"}, "holds bytes"),
        ({"SecretString": "hush"}, "is no JSON"),
        ({"SecretString": '["hush"]'}, "must be a JSON object"),
    ],
)
def test_secret_of_aws_that_gives_no_tokens_is_refused(secrets, s3, content, told):
    name = "none" if content is None else f"bad-{hash(str(content))}"
    if content is not None:
        secrets.create_secret(Name=name, **content)
    with pytest.raises(InvalidInput, match=told) as caught:
        Tokens.from_environment({SECRET: name, **s3.environment})
    assert "hush" not in caught.value.message


def test_secret_of_aws_needs_what_speaks_with_aws(monkeypatch):
    monkeypatch.setitem(sys.modules, "boto3", None)
    with pytest.raises(InvalidInput, match="needs boto3"):
        Tokens.from_environment({SECRET: "tokens"})
