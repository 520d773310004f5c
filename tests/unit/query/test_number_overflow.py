"""Computed numbers are exact or refused, in both engines."""

import pytest

import omnigraph as og
from omnigraph.errors import InvalidInput
from tests.support.generated_reads import Read
from tests.support.spark_reads import ask_in_memory

SCHEMA = "node T { k: String @key  l: I64?  w: U64?  d: F64? }"
ROWS = [
    {"k": "a", "l": 2**63 - 1, "w": 2**64 - 1, "d": 1e308},
    {"k": "b", "l": -(2**63), "w": 2**63, "d": -1e308},
    {"k": "c"},
]


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    graph = og.init(tmp_path_factory.mktemp("graph") / "g", SCHEMA)
    graph.load({"T": ROWS}, mode="merge")
    return graph


def text(key, expression):
    return f'match {{ $t: T {{ k: "{key}" }} }} return {{ {expression} as x, $t.k as k }}'


def asked(graph, read):
    return graph.query(read.text)


@pytest.fixture(params=["local", "spark"])
def ask(request):
    if request.param == "local":
        return asked
    return ask_in_memory(request.getfixturevalue("spark"))


@pytest.mark.parametrize(
    ("key", "expression"),
    [
        ("a", "$t.l + 1"),
        ("b", "$t.l - 1"),
        ("a", "$t.l * 2"),
        ("a", "0 - $t.w"),
        ("a", "$t.w * $t.w"),
        ("a", "($t.w - 1) % 5"),
        ("b", "$t.w % $t.w + $t.w"),
        ("a", "$t.d * 10"),
        ("a", "$t.d + $t.d"),
        ("b", "$t.d / 0.001"),
        ("a", "coalesce($t.w, $t.l)"),
        ("a", "case when $t.l > 0 then $t.w else 0 end"),
        ("c", "9223372036854775807 + 1"),
    ],
)
def test_a_number_beyond_its_type_is_refused(graph, ask, key, expression):
    with pytest.raises(InvalidInput, match="outside the range of its type") as refused:
        ask(graph, Read(text(key, expression), {}))
    assert refused.value.code == "query_number_overflow"


@pytest.mark.parametrize(
    ("key", "expression", "value"),
    [
        ("a", "$t.l - 1", 2**63 - 2),
        ("b", "$t.l + 1", -(2**63) + 1),
        ("a", "$t.w % 1000", (2**64 - 1) % 1000),
        ("a", "$t.w - $t.w", 0),
        ("b", "$t.l % -1", 0),
        ("b", "$t.l % 3", -2),
        ("b", "$t.w - 1", 2**63 - 1),
        ("a", "$t.l * 1.0", float(2**63)),
        ("a", "case when $t.l < 0 then $t.l + 1 else 5 end", 5),
        ("a", "coalesce($t.l, $t.l + 1)", 2**63 - 1),
        ("c", "$t.l + 9223372036854775807", None),
    ],
)
def test_a_number_at_the_edge_of_its_type_is_exact(graph, ask, key, expression, value):
    assert ask(graph, Read(text(key, expression), {})).rows == [{"x": value, "k": key}]
