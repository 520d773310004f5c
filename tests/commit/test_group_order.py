"""Changes of one group that look entities up without changing them."""

import pytest

import omnigraph.graph as og
from tests.support.groups import make_together

SCHEMA = "node Port { code: String @key  depth: I32? }\nnode Note { text: String @key }"
INSERT = 'query i() { insert Port { code: "z", depth: 1 } }'
UPDATE = 'query u() { insert Note { text: "n" }  update Port set { depth: 9 } where code = "z" }'
DELETE = 'query d() { delete Note where text = "x"  delete Port where code = "z" }'
EMPTY = 'query e() { insert Note { text: "m" }  update Port set { depth: 9 } where code = "no" }'


@pytest.fixture
def graph(tmp_path):
    graph = og.init(tmp_path / "g", SCHEMA)
    graph.insert("Note", [{"text": "x"}])
    return graph


def ports(graph, at=None):
    text = "query q() { match { $p: Port } return { $p.code, $p.depth } order { $p.code } }"
    return graph.query(text, at=at).rows


@pytest.mark.parametrize(("text", "after"), [(UPDATE, [9]), (DELETE, [])])
def test_change_after_an_insert_finds_what_was_inserted(graph, text, after):
    changes = [lambda: graph.mutate(INSERT), lambda: graph.mutate(text)]
    assert [caller.error for caller in make_together(graph, *changes)] == [None, None]
    first, second = reversed(graph.commits.list(limit=2))
    assert ports(graph, first.id) == [{"p.code": "z", "p.depth": 1}]
    assert set(second.counts) == {"node:Note", "node:Port"}
    assert [row["p.depth"] for row in ports(graph)] == after


def test_update_that_finds_nothing_joins_a_group(graph):
    texts = [f'query i() {{ insert Port {{ code: "{code}" }} }}' for code in "abc"]
    changes = [lambda text=text: graph.mutate(text) for text in (*texts, EMPTY)]
    assert [caller.error for caller in make_together(graph, *changes)] == [None] * 4
    assert [row["p.code"] for row in ports(graph)] == ["a", "b", "c"]
