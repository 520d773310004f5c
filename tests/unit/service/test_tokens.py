"""Tokens: where they come from, what is refused, and that only digests are kept."""

import json

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
        {SECRET: "arn:whatever"},
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


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (None, "missing bearer token"),
        ("", "missing bearer token"),
        ("Bearer", "missing bearer token"),
        ("Bearer ", "missing bearer token"),
        ("bearer very-secret", "missing bearer token"),
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
