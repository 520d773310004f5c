"""The retriever for LangChain on an embedded, a served and an asynchronous graph."""

import pytest
from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda

import omnigraph as og
from omnigraph.langchain import OmniGraphRetriever
from tests.support.awaiting import run_async
from tests.support.serving import serving

SCHEMA = """
node Team { name: String @key }
node Note { slug: String @key  text: String? @index  stars: I32? }
edge WrittenBy: Note -> Team
"""
NOTES = [
    {"slug": "1", "text": "Two ships wait outside", "stars": 3},
    {"slug": "2", "text": "The ships left"},
    {"slug": "3", "text": "Cats sleep"},
]
SEARCH = """
query notes($question: String, $team: String) {
  match { $n: Note  search($n.text, $question)  $n writtenBy $t  $t.name = $team }
  return { $n as id, $n.text as text, $n.stars as stars }
  order { id }
}
"""


@pytest.fixture(scope="module")
def embedded(tmp_path_factory):
    graph = og.init(tmp_path_factory.mktemp("langchain") / "graph", SCHEMA)
    graph.insert("Team", [{"name": "harbour"}, {"name": "farm"}])
    graph.insert("Note", NOTES)
    ends = [("1", "harbour"), ("2", "farm"), ("3", "farm")]
    graph.insert("WrittenBy", [{"from": note, "to": team} for note, team in ends])
    with graph.branch("draft", create=True) as draft:
        draft.mutate('delete Note where slug = "1"')
    return graph


@pytest.fixture(scope="module")
def url(embedded):
    with serving("--graph", f"notes={embedded.uri}", "--unauthenticated") as server:
        yield server.url


def retriever(graph, **fields):
    given = {"query": SEARCH, "content": "text", "id": "id", "params": {"team": "harbour"}}
    return OmniGraphRetriever(graph=graph, **{**given, **fields})


def expected(graph):
    metadata = {"stars": 3, "graph_commit_id": graph.snapshot().commit_id}
    return [Document(page_content="Two ships wait outside", id="1", metadata=metadata)]


def test_rows_are_documents(embedded, url):
    assert retriever(embedded).invoke("ships") == expected(embedded)
    assert run_async(retriever(embedded).ainvoke("ships")) == expected(embedded)
    with og.connect(url) as served:
        assert retriever(served).invoke("ships") == expected(embedded)
    farm = retriever(embedded, params={"team": "farm"})
    assert [one.id for one in farm.invoke("ships")] == ["2"]
    assert farm.invoke("dogs") == []


def test_it_is_a_part_of_a_chain(embedded):
    chain = retriever(embedded) | RunnableLambda(lambda found: [one.page_content for one in found])
    assert chain.batch(["ships", "cats"]) == [["Two ships wait outside"], []]


def test_an_asynchronous_graph_is_awaited(embedded, url):
    async def story():
        async with await og.aconnect(url) as graph:
            with pytest.raises(og.InvalidInput, match="ainvoke"):
                retriever(graph).invoke("ships")
            return await retriever(graph).ainvoke("ships")

    assert run_async(story()) == expected(embedded)


def test_states_and_columns_are_chosen(embedded):
    assert retriever(embedded, at="draft").invoke("ships") == []
    everything = "query all($question: String) { match { $n: Note } return { $n.text, $n.slug } }"
    draft = embedded.branch("empty", create=True)
    draft.insert("Note", [{"slug": "4"}])
    found = retriever(draft, query=everything, content=None, id=None).invoke("")
    assert {one.metadata["n.slug"]: one.page_content for one in found} == {
        **{note["slug"]: note["text"] for note in NOTES},
        "4": "",
    }
    assert {one.id for one in found} == {None}


def test_a_query_that_does_not_fit_is_refused(embedded):
    with pytest.raises(og.InvalidInput, match=r"does not use the parameter `\$question`"):
        retriever(embedded, query="match { $n: Note } return { $n.text }")
    with pytest.raises(og.InvalidInput, match="no column `body`; its columns are `id`, `text`"):
        retriever(embedded, content="body").invoke("ships")
    with pytest.raises(og.QueryError, match="Nte"):
        retriever(embedded, query=SEARCH.replace("Note", "Nte")).invoke("ships")
