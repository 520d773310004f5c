"""The answers of CONTRIBUTING.md to "Where do I add …": a toy of each kind is one row."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

import omnigraph as og
from omnigraph import error_codes
from omnigraph.catalog import constraints
from omnigraph.catalog.constraints import ConstraintSpec
from omnigraph.errors import Category, OmniError
from omnigraph.lang import Code, schema_parser
from omnigraph.pipeline.connector.columns import spark_type
from omnigraph.plan import FUNCTIONS, functions
from omnigraph.plan.functions import Implementation, Unsupported
from omnigraph.service.errors import describe_error
from omnigraph.types import SCALARS, PropertyType, Scalar
from omnigraph.types.arrow import arrow_type, to_column, to_json
from tests.support import toy_functions
from tests.support.generated_reads import Read
from tests.support.spark_reads import ask_in_memory

SCHEMA = """
node Person { name: String @key  about: String?  age: I32? }
edge Knows: Person -> Person
"""
PEOPLE = [
    {"name": "Ann", "about": "sails", "age": 30},
    {"name": "Bob", "about": "reads a lot", "age": 41},
    {"name": "Cid", "about": None, "age": None},
]


@pytest.fixture
def graph(tmp_path):
    graph = og.init(tmp_path / "g", SCHEMA)
    graph.load({"Person": PEOPLE, "Knows": [{"from": "Ann", "to": "Bob"}]}, mode="merge")
    return graph


def implementation(name):
    return Implementation(f"tests.support.toy_functions:{name}")


@pytest.fixture
def add_function(monkeypatch):
    """Return what adds one row to the table of functions."""

    def add(like, name, **facts):
        row = replace(FUNCTIONS[like], name=name, about="a toy", **facts)
        monkeypatch.setitem(functions._BY_NAME, name, row)

    return add


def ask_both(graph, spark, text):
    """Return the rows that both engines answer."""
    local = graph.query(text).rows
    assert ask_in_memory(spark)(graph, Read(text, {})).rows == local
    return local


def test_a_scalar_function_is_one_row(graph, spark, add_function):
    add_function(
        "now",
        "today",
        result=PropertyType(Scalar.DATE),
        local=implementation("today"),
    )
    text = "query q() { match { $p: Person } return { $p.name as name, today() as day } }"
    [first, *_] = ask_both(graph, spark, text)
    assert first["day"] == datetime.now(UTC).date().isoformat()


def test_an_aggregate_is_one_row(graph, spark, add_function):
    add_function(
        "sum",
        "spread",
        local=implementation("spread"),
        spark=implementation("spark_spread"),
    )
    text = "query q() { match { $p: Person } return { spread($p.age) as s, count($p) as n } }"
    assert ask_both(graph, spark, text) == [{"s": 11.0, "n": 3}]


def test_a_text_predicate_is_one_row(graph, spark, add_function):
    add_function(
        "search",
        "anything",
        local=implementation("match_all_texts"),
        spark=implementation("spark_match_all"),
    )
    text = """query q() {
      match { $p: Person  anything($p.about, "x") } return { $p.name as name } order { name asc }
    }"""
    assert [row["name"] for row in ask_both(graph, spark, text)] == ["Ann", "Bob", "Cid"]


def test_a_ranking_without_a_spark_implementation_is_one_row_that_states_why(
    graph, spark, add_function
):
    add_function(
        "bm25",
        "wordiness",
        local=implementation("TextLength"),
        spark=Unsupported("toys stay at home"),
    )
    text = """query q() {
      match { $p: Person } return { $p.name as name } order { wordiness($p.about, "x") }
    }"""
    assert [row["name"] for row in graph.query(text).rows] == ["Bob", "Ann"]
    with pytest.raises(OmniError, match=r"wordiness\(\): toys stay at home"):
        ask_in_memory(spark)(graph, Read(text, {}))


def test_a_path_function_is_one_row(graph, add_function):
    add_function("path_length", "connected", local=implementation("pair_exists"))
    text = """query q() {
      match { $a: Person { name: "Ann" }  $b: Person { name: "Bob" } }
      return { connected($a, knows, $b) as there, connected($b, knows, $a) as back }
    }"""
    assert graph.query(text).rows == [{"there": 1, "back": 0}]


def test_a_function_that_has_no_row_is_unknown(graph):
    with pytest.raises(OmniError, match="unknown function `spread`"):
        graph.query("query q() { match { $p: Person } return { spread($p.age) as s } }")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_implementations_that_a_row_names_exist(name):
    row = FUNCTIONS[name]
    assert row.local.path.startswith("omnigraph.query.")
    assert callable(row.local.load())
    if isinstance(row.spark, Implementation):
        assert row.spark.path.startswith("omnigraph.pipeline.query.")
        assert callable(row.spark.load())
    else:
        assert row.spark.reason


@pytest.mark.parametrize("scalar", Scalar)
def test_a_scalar_type_is_a_row_that_every_engine_reads(scalar):
    type_ = PropertyType(scalar, dimension=2 if scalar is Scalar.VECTOR else None)
    assert SCALARS[scalar] is type_.spec
    column = to_column([None], type_)
    assert column.type == arrow_type(type_)
    assert to_json(column, type_) == [None]
    assert spark_type(type_).simpleString() == type_.spec.spark


@pytest.fixture
def length_constraint(monkeypatch):
    """Add the word and the row of a constraint."""
    row = ConstraintSpec(
        type=toy_functions.Length,
        usage="a property and a number",
        example="@length(name, 3)",
        resolve=toy_functions.resolve_length,
        check=toy_functions.check_length_declaration,
        values=implementation("check_length"),
    )
    monkeypatch.setitem(constraints._BY_WORD, "length", row)
    words = (*schema_parser.CONSTRAINT_WORDS, "length")
    monkeypatch.setattr(schema_parser, "CONSTRAINT_WORDS", words)


@pytest.mark.usefixtures("length_constraint")
def test_a_value_constraint_is_a_class_and_one_row(tmp_path):
    graph = og.init(tmp_path / "g", "node Port { code: String @key  @length(code, 3) }")
    graph.load({"Port": [{"code": "ABC"}]}, mode="merge")
    with pytest.raises(OmniError, match="'ABCD' is too long"):
        graph.load({"Port": [{"code": "ABCD"}]}, mode="merge")
    reopened = og.open(tmp_path / "g")
    assert reopened.snapshot().schema.catalog.nodes["Port"].constraints[1] == (
        toy_functions.Length("code", 3)
    )


@pytest.mark.usefixtures("length_constraint")
def test_the_row_of_a_constraint_checks_its_declarations():
    with pytest.raises(og.SchemaError, match=r"@length needs a String, Port\.size is I32"):
        og.check("node Port { size: I32  @length(size, 3) }")
    with pytest.raises(og.SchemaError, match="@length takes a property and a number"):
        og.check("node Port { code: String  @length(code) }")


def test_an_error_code_is_one_row(monkeypatch):
    row = error_codes.ErrorCodeRow(
        "toy_lost", "The toy is lost.", "Toys", (Category.NOT_FOUND,), 410
    )
    monkeypatch.setitem(error_codes._BY_CODE, "toy_lost", row)
    error = OmniError("where is it?", code="toy_lost", category=Category.NOT_FOUND)
    answer = describe_error(error)
    assert (answer.status, answer.body.problem.code) == (410, "toy_lost")


def test_a_diagnostic_code_is_one_member_with_its_meaning():
    for code in Code:
        assert code.about
        assert code.slug
        assert code.severity
