"""Tokens: what was written is read, and nothing else is taken for it."""

import base64
import hashlib
import json
import random
from itertools import combinations, permutations

import pytest

from omnigraph.changes.cursors import (
    MAX_EXACT_ID,
    MAX_TOKEN_LENGTH,
    TOKEN_MISMATCH_MESSAGES,
    PagePosition,
    TokenKind,
    decode_token,
    encode_token,
    filter_digest,
)
from omnigraph.changes.errors import CursorRejected
from omnigraph.changes.model import parse_change_filter

BINDING = {name: f"this {name}" for name in TOKEN_MISMATCH_MESSAGES}
POSITION = {"done": "01M7H26EYJTYZ18MHHDC64QB0R", "cut": 7}


def token(kind=TokenKind.FEED_CURSOR):
    return encode_token(kind, BINDING, POSITION)


def forged(facts):
    """Return a token with a right digest, as somebody who knows the form could make it."""
    text = json.dumps(facts).encode() if not isinstance(facts, bytes) else facts
    return base64.urlsafe_b64encode(text + hashlib.sha256(text).digest()).rstrip(b"=").decode()


def refusal(text, kind=TokenKind.FEED_CURSOR, bound=BINDING):
    with pytest.raises(CursorRejected) as caught:
        decode_token(text, kind, bound)
    assert caught.value.code == "change_cursor_rejected"
    assert caught.value.category == "invalid"
    prefix, _, reason = caught.value.message.partition("change cursor rejected: ")
    assert prefix == ""
    return reason


@pytest.mark.parametrize("kind", TokenKind)
def test_token_gives_back_its_position(kind):
    assert decode_token(token(kind), kind, BINDING) == POSITION


def test_token_is_url_safe_text_without_padding():
    assert set(token()) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_")


def test_every_change_of_one_character_is_refused():
    good, letters = token(), "AQgw-_9"
    for place, letter in enumerate(good):
        for other in letters.replace(letter, ""):
            refusal(good[:place] + other + good[place + 1 :])


def test_every_shorter_token_is_refused():
    good = token()
    for length in range(len(good)):
        refusal(good[:length])


def test_every_longer_token_is_refused():
    for end in ("A", "=", "==", "AAAA", " ", "\n", "\0"):
        refusal(token() + end)
        refusal(end + token())


def test_random_text_is_refused():
    luck = random.Random(6)
    for _ in range(500):
        refusal("".join(chr(luck.randrange(1, 300)) for _ in range(luck.randrange(80))))


def test_token_that_is_too_long_is_refused():
    assert (
        refusal("A" * (MAX_TOKEN_LENGTH + 1))
        == f"it is longer than {MAX_TOKEN_LENGTH:,} characters"
    )


@pytest.mark.parametrize(("one", "other"), list(permutations(TokenKind, 2)))
def test_token_for_another_use_is_refused(one, other):
    assert refusal(token(one), other) == f"it is a {one} token, not a {other} token"


@pytest.mark.parametrize("name", TOKEN_MISMATCH_MESSAGES)
def test_token_for_something_else_is_refused(name):
    assert refusal(token(), bound={**BINDING, name: "another"}) == TOKEN_MISMATCH_MESSAGES[name]
    without = {other: value for other, value in BINDING.items() if other != name}
    assert refusal(token(), bound=without) == TOKEN_MISMATCH_MESSAGES[name]


@pytest.mark.parametrize(
    "facts",
    [
        b"",
        b"{",
        b"\xff",
        [],
        None,
        1,
        "text",
        {},
        {"v": 1},
        {"v": 1, "kind": "feed-cursor"},
        {"v": 1, "kind": "feed-cursor", "for": None, "at": {}},
        {"v": 1, "kind": "feed-cursor", "for": BINDING},
        {"v": 1, "kind": ["feed-cursor"], "for": BINDING, "at": {}},
    ],
)
def test_forged_facts_are_refused(facts):
    refusal(forged(facts))


def test_token_of_another_version_is_refused():
    facts = {"v": 2, "kind": "feed-cursor", "for": BINDING, "at": {}}
    assert refusal(forged(facts)) == "it was made by another version of omnigraph"


@pytest.mark.parametrize(
    "facts", [{}, {"type": "t"}, {"type": 1, "id": "i"}, {"type": "t", "id": None}, None, [], "x"]
)
def test_forged_places_are_refused(facts):
    with pytest.raises(CursorRejected):
        PagePosition.from_json(facts)


@pytest.mark.parametrize(
    "id_", ["", "x", "x" * MAX_EXACT_ID, "x" * (MAX_EXACT_ID + 1), "€" * 400, "\0" * 1000]
)
def test_place_is_small_and_survives_a_token(id_):
    place = PagePosition.behind("t" * 43, id_)
    text = encode_token(TokenKind.COMMIT_PAGE, BINDING, place.to_json())
    assert len(text) <= MAX_TOKEN_LENGTH
    assert PagePosition.from_json(decode_token(text, TokenKind.COMMIT_PAGE, BINDING)) == place
    assert id_.startswith(place.id)
    assert (place.exact is None) == (len(id_.encode()) <= MAX_EXACT_ID)


def test_long_ids_that_begin_alike_are_different_places():
    one, other = (PagePosition.behind("t", "x" * 1000 + end) for end in "ab")
    assert one.id == other.id
    assert one != other


# --- filters -----------------------------------------------------------------------------------


def test_filters_that_ask_for_the_same_have_one_digest():
    scopes = [
        parse_change_filter(["node"], ["A", "B"], ["insert", "delete"]),
        parse_change_filter(["node", "node"], ["B", "A", "B"], ["delete", "insert"]),
    ]
    assert len(set(map(filter_digest, scopes))) == 1


def test_asking_for_every_kind_and_op_is_asking_for_all():
    everything = parse_change_filter(["edge", "node"], [], ["update", "insert", "delete"])
    assert filter_digest(everything) == filter_digest(parse_change_filter())


def test_filters_that_ask_for_something_else_have_other_digests():
    scopes = [
        parse_change_filter(),
        parse_change_filter(kinds=["node"]),
        parse_change_filter(kinds=["edge"]),
        parse_change_filter(types=["node"]),
        parse_change_filter(types=["A", "B"]),
        parse_change_filter(types=['A", "B']),
        parse_change_filter(types=["A,B"]),
        parse_change_filter(ops=["insert"]),
        parse_change_filter(ops=["insert", "update"]),
    ]
    for one, other in combinations(map(filter_digest, scopes), 2):
        assert one != other
