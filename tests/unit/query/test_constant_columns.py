"""Constants are columns of every type, with any number of rows."""

import pyarrow as pa
import pytest

import omnigraph.graph as og
from omnigraph.types.arrow import arrow_type

SCHEMA = "node P { name: String @key  kind: enum(a, b)  n: I32 }"
SCALARS = {
    "String": "x",
    "Bool": True,
    "I32": -1,
    "I64": 2**53 + 1,
    "U32": 1,
    "U64": 2**64 - 1,
    "F32": 0.5,
    "F64": 0.1,
    "Date": "2024-02-29",
    "DateTime": "2024-02-29T01:02:03.004Z",
}
DECLARED = {
    **SCALARS,
    **{f"[{name}]": [value, value] for name, value in SCALARS.items()},
    **{f"[{name}]?": None for name in SCALARS},
    **{f"{name}?": None for name in SCALARS},
    "[I64]": [],
    "Vector(3)": [0.5, 1.0, -2.0],
    "Vector(3)?": None,
}
LITERALS = ['"x"', "1", "2.5", "true", "[1, 2]", '["a"]', "[1, 2.5]", "[true]", "[]"]
LITERALS += ['date("2024-02-29")', '[date("2024-02-29")]', '[datetime("2024-02-29T01:02:03Z")]']
MATCHES = {"no rows": 'match { $p: P { name: "none" } }', "rows": "match { $p: P }"}
RETURNS = {
    "columns": "return { %s as v, $p.n as n }",
    "ordered": "return { %s as v, $p.n as n } order { $p.n }",
    "limited": "return { %s as v, $p.n as n } limit 0",
    "ordered and limited": "return { %s as v, $p.n as n } order { $p.n } limit 0",
    "skipped": "return { %s as v, $p.n as n } offset 10",
    "distinct": "return distinct { %s as v, $p.n as n }",
    "distinct, ordered": "return distinct { %s as v, $p.n as n } order { n }",
    "distinct, limited": "return distinct { %s as v } limit 0",
}
GROUPED = {
    "a group key": "return { %s as v, count($p) as n }",
    "a group key, ordered": "return { %s as v, count($p) as n } order { n }",
    "a group key, limited": "return { %s as v, count($p) as n } limit 0",
    "counted": "return { count(%s) as v }",
    "counted by value": "return { count(distinct %s) as v }",
}


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    made = og.init(tmp_path_factory.mktemp("constants") / "g", SCHEMA)
    made.load(
        {"P": pa.table({"name": ["x", "y"], "kind": ["a", "b"], "n": pa.array([1, 2], "i4")})}
    )
    return made


def ask(graph, text, params=None):
    """Ask in both ways, and return the rows with the types of the columns."""
    result = graph.query(text, params)
    for name, type_ in result.types.items():
        assert result.table[name].type == arrow_type(type_)
    stream = graph.stream(text, params)
    assert list(stream) == result.rows
    for name in result.columns:
        assert graph.stream(text, params).to_reader().read_all()[name].type == (
            result.to_arrow()[name].type
        )
    return result.rows


@pytest.mark.parametrize("declared", DECLARED)
def test_a_parameter_is_a_column_whatever_the_number_of_rows(graph, declared):
    value = DECLARED[declared]
    for matched, match in MATCHES.items():
        for returned, text in {**RETURNS, **GROUPED}.items():
            body = f"query q($v: {declared}) {{ {match} {text % '$v'} }}"
            rows = ask(graph, body, {"v": value})
            if returned.startswith("counted"):
                known = 0 if value is None or matched == "no rows" else 2
                assert rows == [{"v": min(known, 1) if "value" in returned else known}]
            elif matched == "no rows" or "limited" in returned or returned == "skipped":
                assert rows == []
            else:
                assert [row["v"] for row in rows] == [value] * (1 if "key" in returned else 2)


@pytest.mark.parametrize("literal", LITERALS)
def test_a_literal_is_a_column_whatever_the_number_of_rows(graph, literal):
    for matched, match in MATCHES.items():
        for returned, text in RETURNS.items():
            rows = ask(graph, f"query q() {{ {match} {text % literal} }}")
            empty = matched == "no rows" or "limited" in returned or returned == "skipped"
            assert len(rows) == (0 if empty else 2)


CONDITIONS = ["$p.n in $v", "$v contains $p.n", "$v is null", "$v is not null"]


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_list_is_compared_with_no_rows(graph, condition):
    match = f'match {{ $p: P {{ name: "none" }}  {condition} }}'
    text = f"query q($v: [I32]?) {{ {match} return {{ $p }} }}"
    for value in ([1], [], None):
        assert ask(graph, text, {"v": value}) == []
