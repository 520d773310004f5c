"""Lines that are parsed together give exactly what the grammar makes of each of them."""

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.support.load_fixtures import taken

NAMES = ["a", "b", "ä", "x y", ""]
TEXTS = st.one_of(
    st.sampled_from(["", "null", '"id"', "a\\b", "é\u2028", "2020-02-29", "1999-13-01", "}", "{"]),
    st.text(max_size=6),
)
NUMBERS = st.one_of(
    st.integers(-3, 3),
    st.sampled_from(
        [2**31 - 1, 2**31, -(2**31), 2**32, 2**53 + 1, 2**63 - 1, 2**63, -(2**63), 2**64, 10**30]
    ),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([1.0, -0.0, 0.1, 3.4028236e38, 1e-46, 1e39, 1e308]),
)
TEMPORAL = st.sampled_from(
    [
        "2020-01-01",
        "0001-01-01",
        "9999-12-31",
        "2020-01-01T00:00:00Z",
        "2020-01-01T23:59:59.123456Z",
        "2020-01-01 10:11:12",
        "1969-12-31T23:59:59.9999Z",
        "2020-01-01T24:00:00Z",
        "2020-01-01T23:59:60Z",
        "0000-01-01",
        "2020-1-1",
        "2020-01-01T00:00+02:00",
        0,
        -1,
        10**9,
        10**17,
    ]
)
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    NUMBERS,
    TEXTS,
    TEMPORAL,
    st.lists(st.one_of(NUMBERS, TEXTS, TEMPORAL, st.none()), max_size=3),
    st.sampled_from(["base64:aGk=", "base64:?", "base64:", "s3://x/y", "nothing"]),
    st.dictionaries(TEXTS, NUMBERS, max_size=1),
)
FITTING = {
    "title": TEXTS,
    "flag": st.booleans(),
    "small": st.integers(-(2**31), 2**31 - 1),
    "large": st.integers(-(2**63), 2**63 - 1),
    "count": st.integers(0, 2**32 - 1),
    "huge": st.integers(0, 2**64 - 1),
    "single": NUMBERS,
    "double": NUMBERS,
    "day": TEMPORAL,
    "moment": TEMPORAL,
    "tags": st.lists(TEXTS, max_size=2),
    "sizes": st.lists(st.integers(-5, 5), max_size=2),
    "days": st.lists(TEMPORAL, max_size=2),
    "spot": st.lists(NUMBERS, min_size=2, max_size=2),
    "file": st.sampled_from(["base64:aGk=", "base64:"]),
}
DATA = st.fixed_dictionaries(
    {"slug": st.sampled_from(NAMES)},
    optional={name: st.one_of(values, VALUES) for name, values in FITTING.items()}
    | {"id": st.one_of(st.sampled_from(NAMES), VALUES), "other": VALUES},
)
GOOD = st.fixed_dictionaries({"slug": st.sampled_from(NAMES)}, optional=FITTING)
NODE = st.one_of(GOOD, GOOD, DATA).map(lambda data: {"type": "Thing", "data": data})
NOTE = st.fixed_dictionaries(
    {"type": st.just("Note")},
    optional={"data": st.fixed_dictionaries({"text": TEXTS}, optional={"id": VALUES})},
)
EDGE = st.fixed_dictionaries(
    {"edge": st.sampled_from(["Near", "near", "About"]), "from": TEXTS, "to": TEXTS},
    optional={
        "data": st.fixed_dictionaries(
            {}, optional={"since": TEMPORAL, "weight": NUMBERS, "id": VALUES, "src": TEXTS}
        )
    },
)
STYLES = st.sampled_from([(",", ":"), (", ", ": ")])
MUTATIONS = st.sampled_from(
    [
        ("", ""),
        ("{", "{ "),
        ("{", ""),
        ("}", ""),
        ("}", "} "),
        ("}", "}}"),
        ("}", "}\r"),
        ('"', ""),
        (":", ""),
        (":", ':NaN,"double":'),
        (":", ": -Infinity ,"),
        (",", ",,"),
        (",", ', "slug": "a",'),
        ('"data"', '"\\u0064ata"'),
        ('"slug"', '"\\u0073lug"'),
        ('"data"', '"data":null,"data"'),
        ('"type"', '"edge"'),
        ("1", "01"),
        ("0", "-0"),
        ("a", "\\ud800"),
        ("a", "\\ud83d\\ude00"),
        ("a", "\n"),
        ("a", "\x01"),
        ("}", "}\n\n"),
        ("}", "}{}"),
        ("null", "nul"),
        ("[", "[[["),
    ]
)


@st.composite
def lines(draw: st.DrawFn) -> bytes:
    """Return text of a few lines, some of them changed a little."""
    separators = draw(STYLES)
    texts = []
    for _ in range(draw(st.integers(1, 5))):
        record = draw(st.one_of(NODE, NODE, NOTE, EDGE))
        text = json.dumps(record, separators=separators, ensure_ascii=draw(st.booleans()))
        old, new = draw(MUTATIONS) if draw(st.booleans()) else ("", "")
        at = text.find(old, draw(st.integers(0, len(text)))) if old else -1
        texts.append(text if at < 0 else text[:at] + new + text[at + len(old) :])
    text = draw(st.sampled_from(["\n", "\n", "\r\n", "\n \n"])).join(texts)
    data = text.encode("utf-8", "surrogatepass")
    if draw(st.integers(0, 20)) == 0:
        at = draw(st.integers(0, len(data)))
        data = data[:at] + b"\xff" + data[at:]
    return data


@given(text=lines())
@example(b'{"type":"Thing","data":{"slug":"a"}\n{"type":"Thing","data":{"slug":"b"}}}')
@example(b'{"type":"Thing","data":\n{"slug":"a"}}\n{"type":"Note"}{"type":"Note"}')
@example(b'{"type":"Note","data":null}\n{"type":"Note"}')
@example(b'{"type":"Thing","data":{"slug":"a","id":null}}')
@example(b'{"type":"Thing","data":{"slug":"a","\\u0069d":null}}')
@example(b'{"edge":"Near","from":"a","to":null}')
def test_lines_parsed_together_mean_what_the_grammar_says(text):
    assert taken(text, fast=True) == taken(text, fast=False)


@pytest.mark.parametrize("bad", [0, 700, 1999])
def test_one_bad_line_among_many_is_the_only_one_reported(bad):
    good = [json.dumps({"type": "Thing", "data": {"slug": str(n)}}) for n in range(2000)]
    text = "\n".join([*good[:bad], '{"type":"Thing","data":{"slug":1}}', *good[bad + 1 :]])
    rows, found = taken(text.encode(), fast=True)
    assert found == [f"line {bad + 1}: Thing.slug: expected string, got integer"]
    assert [row[1] for row in rows["node:Thing"]] == [str(n) for n in range(2000) if n != bad]
