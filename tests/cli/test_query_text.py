"""Queries as text on the command line, over HTTP and embedded: one alone needs no name."""

import json
import shlex

import pytest

import omnigraph as og
from omnigraph.errors import InvalidInput
from omnigraph.lang import QueryError
from omnigraph.service.stored_queries import (
    StoredQueriesInvalid,
    StoredQueryFile,
    compile_stored_queries,
)
from tests.support.program import omnigraph

SCHEMA = "node Port { code: String @key  city: String? }"
TEXT = "match { $p: Port } return { $p.code, length($p.city) as n } order { $p.code }"
ROWS = [{"p.code": "AAA", "n": 3}, {"p.code": "BBB", "n": None}]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("ports")
    graph = og.init(path / "graph", SCHEMA)
    graph.load({"Port": [{"code": "AAA", "city": "Åbo"}, {"code": "BBB"}]}, mode="merge")
    return path


def test_a_read_without_a_name_is_answered(folder):
    result = og.open(folder / "graph").query(TEXT)
    assert (result.name, result.rows) == ("query", ROWS)


def test_the_graph_of_a_query_is_an_argument(folder):
    ran = omnigraph("query", "./graph", "-e", TEXT, "--json", cwd=folder)
    assert (ran.code, json.loads(ran.out)["rows"]) == (0, ROWS)


def test_two_arguments_are_the_graph_and_the_name(folder):
    text = f"query first() {{ {TEXT} }} query second() {{ {TEXT} limit 1 }}"
    ran = omnigraph("query", "graph", "second", "-e", text, "--json", cwd=folder)
    assert (ran.code, json.loads(ran.out)["rows"]) == (0, ROWS[:1])


def test_one_argument_written_like_a_name_is_the_name(folder):
    text = f"query first() {{ {TEXT} limit 1 }}"
    ran = omnigraph("query", "first", "--uri", "graph", "-e", text, "--json", cwd=folder)
    assert (ran.code, json.loads(ran.out)["rows"]) == (0, ROWS[:1])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("./graph", "a", "b"), "unexpected argument 'b'"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(folder, arguments, message):
    ran = omnigraph("query", *arguments, "-e", TEXT, cwd=folder)
    assert ran.code == 2
    assert message in ran.err


def test_a_text_without_its_option_is_answered_with_the_line_that_works(folder):
    ran = omnigraph("query", "./graph", TEXT, cwd=folder)
    corrected = f"omnigraph query ./graph -e {shlex.quote(TEXT)}"
    assert (ran.code, f"the text of a query is given with -e: `{corrected}`" in ran.err) == (
        1,
        True,
    )
    assert omnigraph(*shlex.split(corrected)[1:], cwd=folder).code == 0


def test_the_place_of_an_error_is_that_of_the_text(folder):
    ran = omnigraph("query", "./graph", "-e", "match { $p: Port } return { $p.cod }", cwd=folder)
    assert ran.code == 1
    assert "<query>:1:32" in ran.err


def test_an_undeclared_parameter_says_how_to_declare_it(folder):
    with pytest.raises(QueryError, match=r"declare it with its type: `query name\(\$code"):
        og.open(folder / "graph").query("match { $p: Port { code: $code } } return { $p }")


def test_a_read_without_a_name_is_no_mutation(folder):
    with pytest.raises(InvalidInput, match="run it as a query"):
        og.open(folder / "graph", mode="rw").mutate(TEXT)


def test_a_mutation_without_a_name_is_one_commit(tmp_path):
    graph = og.init(tmp_path / "graph", SCHEMA)
    graph.load({"Port": [{"code": "AAA"}]}, mode="merge")
    text = 'insert Port { code: "BBB" } update Port set { city: "X" } where code = "AAA"'
    ran = omnigraph("mutate", "./graph", "-e", text, "--json", cwd=tmp_path)
    result = json.loads(ran.out)
    assert (ran.code, result["query_name"], result["affected_nodes"]) == (0, "query", 2)
    rows = graph.query(TEXT.replace("length($p.city)", "$p.city")).rows
    assert rows == [{"p.code": "AAA", "n": "X"}, {"p.code": "BBB", "n": None}]
    assert len(graph.commits.list()) == 3


def test_a_mutation_without_a_name_is_no_read(folder):
    with pytest.raises(InvalidInput, match="run it as a mutation"):
        og.open(folder / "graph").query('delete Port where code = "AAA"')


def test_formatting_keeps_a_mutation_without_a_name(folder):
    path = folder / "change.gq"
    path.write_text('insert Port { code: "AAA" } delete Port where code = "BBB"')
    assert omnigraph("fmt", path).code == 0
    assert path.read_text() == ('insert Port { code: "AAA" }\ndelete Port where code = "BBB"\n')


def test_a_stored_query_needs_a_name(folder):
    catalog = og.open(folder / "graph").snapshot().catalog
    with pytest.raises(StoredQueriesInvalid, match="a stored query needs a name"):
        compile_stored_queries([StoredQueryFile("ports.gq", TEXT)], catalog)


def test_formatting_keeps_a_read_without_a_name(folder):
    path = folder / "ports.gq"
    path.write_text("// ports\n" + TEXT)
    assert omnigraph("fmt", path).code == 0
    assert path.read_text() == (
        "// ports\nmatch {\n  $p: Port\n}\nreturn { $p.code, length($p.city) as n }\n"
        "order { $p.code }\n"
    )
