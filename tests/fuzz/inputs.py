"""What the fuzzer feeds: noise, token soup, damaged files, sentences of the grammar.

Everything depends on the given random numbers alone, so a seed repeats a run.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import TypeAlias

from tests.support.docs import ROOT, page_blocks
from tests.support.grammar import Grammar, read_grammar

Input: TypeAlias = Callable[[Random], bytes]

CORPUS = tuple(p.read_bytes() for p in sorted((Path(__file__).parent / "corpus").iterdir()))

_PIECE = re.compile(rb'"[^"]*"|\w+|\s+|[^\w\s]')
_WORDS = (
    *("node", "edge", "interface", "implements", "enum", "query", "match", "return", "order"),
    *("limit", "offset", "not", "and", "or", "is", "null", "in", "as", "distinct", "asc", "desc"),
    *("insert", "update", "set", "where", "delete", "contains", "starts_with", "now", "true"),
    *("date", "datetime", "search", "count", "nearest", "rrf", "x", "_", "Ship", "Port", "label"),
    *("String", "I32", "U64", "F32", "Vector", "DateTime", "$x", "$s", "$_", "$X", "$", "@key"),
    *("@card", "@range", "@", "->", "..", ">=", "<=", "!=", "=", "<", ">", "-", ".", "?", ":", ","),
    *("{", "}", "(", ")", "[", "]", "0", "1", "-5", "9223372036854775808", "1.5", "0..1", "1e9"),
    *('"s"', '"', '"\\q"', '"\\', "//c\n", "/*c*/", "/*", "*/", "/", "\n", "\r\n", "\t", "\0"),
    *(
        "é",
        "\u2028",
        "\ufeff",
        "\U0001f600",
        "#",
        "'a'",
        ";",
        "99999999999999999999999",
        "0" * 5000,
    ),
)
_NESTINGS = (
    ("not { ", "$x: Port", " }"),
    ("(", "$x.a = 1", ")"),
    ("($x.a = 1 or ", "$x.b = 2", ")"),
    ("($x.a = 1 and ", "$x.b = 2", " or $x.c = 3)"),
    ("$x.a = [", "1", "]"),
    ("[", "1", "]"),
    ("f(", "$x", ")"),
    ("{ ", "a: 1", " }"),
    ("enum(", "a", ")"),
    ("match { ", "$x: Port", " }"),
)
_PLACES = (
    ("", ""),
    ("query q() { match { ", " } return { $x } }"),
    ("query q() { match { $x: Port } return { ", " } }"),
    ("query q() { insert Port { a: ", " } }"),
    ("node A { x: ", " }"),
)


def _page_grammar(name: str) -> Grammar:
    blocks = page_blocks(ROOT / "docs" / "language" / name)
    return read_grammar(next(block.text for block in blocks if block.language == "ebnf"))


_GRAMMARS = (_page_grammar("schema.md"), _page_grammar("queries.md"))


def noise(random: Random) -> bytes:
    """Return bytes that mean nothing."""
    return random.randbytes(random.randint(0, 200))


def soup(random: Random) -> bytes:
    """Return tokens in any order."""
    glue = random.choice(("", " ", "\n"))
    return glue.join(random.choices(_WORDS, k=random.randint(1, 60))).encode()


def nested(random: Random) -> bytes:
    """Return one bracket or block inside the other, often closed."""
    depth = random.choice((3, 50, 99, 100, 101, 400, 10_000))
    before, after = random.choice(_PLACES)
    opening, inside, closing = random.choice(_NESTINGS)
    text = before + opening * depth + inside
    return (text + closing * depth + after if random.random() < 0.7 else text).encode()


def sentence(random: Random) -> bytes:
    """Return a text the grammar of the language pages derives."""
    text = random.choice(_GRAMMARS).sentence(random, random.randint(4, 14))
    return text.replace(" ", "\n", random.randint(0, 40)).encode()


def damaged_tokens(random: Random) -> bytes:
    """Return a corpus file or a sentence with tokens deleted, doubled, swapped or inserted."""
    pieces = _PIECE.findall(_readable(random))
    for _ in range(random.randint(1, 6)):
        place = random.randrange(len(pieces) + 1)
        end = place + random.randint(1, 4)
        change = random.randrange(5)
        if change == 0:
            del pieces[place:end]
        elif change == 1:
            pieces[place:place] = pieces[place:end] * random.choice((1, 1, 1, 50))
        elif change == 2 and len(pieces) > 1:
            other = random.randrange(len(pieces))
            place = min(place, len(pieces) - 1)
            pieces[place], pieces[other] = pieces[other], pieces[place]
        elif change == 3:
            pieces.insert(place, random.choice(_WORDS).encode())
        else:
            pieces[place:end] = [random.choice(_WORDS).encode()]
    return b"".join(pieces)


def damaged_bytes(random: Random) -> bytes:
    """Return a corpus file or a sentence with slices of bytes deleted, doubled or replaced."""
    data = bytearray(_readable(random))
    for _ in range(random.randint(1, 4)):
        place = random.randrange(len(data) + 1)
        end = place + random.choice((1, 1, 2, 8, 100))
        change = random.randrange(3)
        if change == 0:
            del data[place:end]
        elif change == 1:
            data[place:place] = data[place:end]
        else:
            data[place : place + 1] = random.randbytes(random.randint(1, 3))
    return bytes(data)


def spliced(random: Random) -> bytes:
    """Return the beginning of one file and the end of another."""
    one, other = _readable(random), _readable(random)
    return one[: random.randrange(len(one) + 1)] + other[random.randrange(len(other) + 1) :]


def _readable(random: Random) -> bytes:
    return random.choice(CORPUS) if random.random() < 0.6 else sentence(random)


INPUTS: tuple[Input, ...] = (
    noise,
    soup,
    soup,
    nested,
    sentence,
    sentence,
    damaged_tokens,
    damaged_tokens,
    damaged_tokens,
    damaged_bytes,
    damaged_bytes,
    spliced,
)
"""Each gets its turn as often as it stands here."""
