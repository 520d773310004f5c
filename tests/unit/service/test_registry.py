"""Graphs by id: what may be an id, what is served, what is in quarantine."""

import pytest

from omnigraph.errors import InvalidInput, NotFound
from omnigraph.policy import Policy
from omnigraph.service.graph_registry import GraphSource, check_graph_id, open_registry
from omnigraph.service.stored_queries import (
    StoredQueryFile,
    compile_stored_queries,
    read_query_files,
)
from tests.support.serving import STORED, make_graph

POLICY = "version: 1\ngroups: {all: [act-ada]}\n"


@pytest.mark.parametrize("graph_id", ["a", "A-1", "x" * 64, "0"])
def test_an_id_can_stand_in_an_address(graph_id):
    assert check_graph_id(graph_id) == graph_id


@pytest.mark.parametrize(
    "graph_id", ["", "a_b", "a/b", "..", "x" * 65, "é", "a b", "policies", "graphs", "openapi"]
)
def test_other_ids_are_refused(graph_id):
    with pytest.raises(InvalidInput) as caught:
        check_graph_id(graph_id)
    assert caught.value.code == "graph_id_invalid"


def test_what_is_broken_in_one_graph_is_its_own_trouble(tmp_path):
    good, other = make_graph(tmp_path / "good"), make_graph(tmp_path / "other")
    sources = [
        GraphSource(id="good", uri=good, queries=lambda: [StoredQueryFile("s.gq", STORED)]),
        GraphSource(id="gone", uri=str(tmp_path / "gone")),
        GraphSource(id="queries", uri=other, queries=lambda: [StoredQueryFile("s.gq", "nonsense")]),
        GraphSource(id="policy", uri=other, policy=lambda: Policy.parse("version: 7")),
        GraphSource(id="guarded", uri=other, policy=lambda: Policy.parse(POLICY)),
    ]
    found = open_registry(sources)
    assert sorted(found.graphs) == ["good", "guarded"]
    assert sorted(found.quarantined) == ["gone", "policy", "queries"]
    assert sorted(found.get("good").stored.queries) == ["add_person", "adults"]
    for name in ("gone", "never"):
        with pytest.raises(NotFound, match=f"graph '{name}' not found"):
            found.get(name)
    with pytest.raises(InvalidInput) as caught:
        open_registry(sources, require_all=True)
    assert caught.value.code == "graphs_not_served"
    assert "[graph_not_found] gone" in caught.value.message


@pytest.mark.parametrize(("ids", "code"), [([], "no_graphs"), (["a", "a"], "graph_id_duplicate")])
def test_there_is_something_to_serve_and_ids_are_different(tmp_path, ids, code):
    sources = [GraphSource(id=graph_id, uri=str(tmp_path)) for graph_id in ids]
    with pytest.raises(InvalidInput) as caught:
        open_registry(sources)
    assert caught.value.code == code


def test_stored_queries_tell_everything_that_is_wrong(tmp_path):
    registry = open_registry([GraphSource(id="g", uri=make_graph(tmp_path / "g"))])
    catalog = registry.get("g").graph.schema.catalog
    texts = [
        StoredQueryFile("a.gq", STORED),
        StoredQueryFile("b.gq", "query adults() { match { $p: Person } return { $p } }"),
        StoredQueryFile("c.gq", "query broken("),
        StoredQueryFile("d.gq", "query typo() { match { $p: Persn } return { $p } }"),
        StoredQueryFile("e.gq", STORED, name="missing"),
    ]
    with pytest.raises(InvalidInput) as caught:
        compile_stored_queries(texts, catalog)
    labels = [problem.partition(":")[0] for problem in caught.value.details["problems"]]
    assert labels == ["b.gq", "c.gq", "d.gq", "e.gq"]
    assert "another stored query is called 'adults'" in caught.value.message


def test_a_folder_of_stored_queries_is_there(tmp_path):
    (tmp_path / "b.gq").write_text("b")
    (tmp_path / "a.gq").write_text("a")
    (tmp_path / "notes.txt").write_text("c")
    assert [text.label for text in read_query_files(tmp_path)] == ["a.gq", "b.gq"]
    with pytest.raises(InvalidInput, match="there is no folder"):
        read_query_files(tmp_path / "nowhere")
    (tmp_path / "c.gq").write_bytes(b"\xff")
    with pytest.raises(InvalidInput, match="cannot read"):
        read_query_files(tmp_path)
