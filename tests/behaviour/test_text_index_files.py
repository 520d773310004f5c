"""The words of texts are in files: a process that begins reads them instead of the texts."""

import os
import shutil
from pathlib import Path

import pytest

import omnigraph.graph as og
from omnigraph.catalog import TypeKind
from omnigraph.maintain.maintainer import MaintainerSettings
from omnigraph.query import text_index_files
from omnigraph.query.text_index_files import TEXT_INDEX_FOLDER
from tests.support.reference import text as reference
from tests.unit.query.test_words import FOUND, RANKED, load, some_docs

SCHEMA = "node Doc { k: String @key  text: String? @index }"
RENAMED = 'node Doc { k: String @key  body: String? @index @rename_from("text") }'
QUERIES = ("ship", "ports sail", "日本 cafe", "abc", "unknown", "ship port abc tanker")
FUZZY = "query q($w: String) { match { $d: Doc  fuzzy($d.text, $w) } return { $d.k as k } }"


@pytest.fixture(autouse=True)
def _store_all(monkeypatch):
    monkeypatch.setattr(text_index_files, "MIN_STORED_TEXTS", 1)


@pytest.fixture
def docs():
    return some_docs(1, range(300))


@pytest.fixture
def graph(tmp_path, docs):
    graph = og.init(tmp_path / "g", SCHEMA)
    load(graph, docs)
    return graph


def answers_are_right(graph, docs, name="text"):
    """Compare rankings and predicates with the reference; return the segments that were built."""
    ranked, found = (text.replace("$d.text", f"$d.{name}") for text in (RANKED, FOUND))
    for query in QUERIES:
        expected = reference.bm25(docs, query)
        rows = graph.query(ranked, {"w": query}).rows
        assert {row["k"]: row["score"] for row in rows} == pytest.approx(expected)
        assert {row["k"] for row in graph.query(found, {"w": query}).rows} == expected.keys()
    return graph._engine.words.built


def reopened(graph, mode="rw"):
    return og.open(graph.uri, mode=mode)


def folders(graph):
    return [p for p in Path(graph.uri, TEXT_INDEX_FOLDER).glob("*/*") if p.name[0] != "."]


def test_another_process_finds_the_words_of_the_first(graph, docs):
    assert answers_are_right(graph, docs) == 1
    assert len(folders(graph)) == 1
    fuzzy = graph.query(FUZZY, {"w": "shap"}).rows
    other = reopened(graph)
    assert answers_are_right(other, docs) == 0
    assert other.query(FUZZY, {"w": "shap"}).rows == fuzzy
    [segment] = other._engine.words.texts(table(other), "text").parts
    assert segment.segment.is_mapped
    assert segment.segment.nbytes == 0


def table(graph):
    snapshot = graph.snapshot()
    return graph._engine.store.table(snapshot, TypeKind.NODE, "Doc")


def test_only_new_texts_are_cut(graph, docs):
    answers_are_right(graph, docs)
    more = some_docs(2, range(300, 340))
    load(graph, more)
    other = reopened(graph)
    assert answers_are_right(other, docs | more) == 1
    assert answers_are_right(reopened(graph), docs | more) == 0


def test_changed_and_deleted_texts_are_not_found(graph, docs):
    answers_are_right(graph, docs)
    changed = {"d7": "ship ship port", "d8": None}
    load(graph, changed)
    graph.mutate('delete Doc where k = "d3"')
    left = {k: text for k, text in (docs | changed).items() if k != "d3"}
    assert answers_are_right(reopened(graph), left) == 1


def test_words_stored_after_a_deletion_serve_further_ones(graph, docs):
    graph.mutate('delete Doc where k = "d3"')
    left = {k: text for k, text in docs.items() if k != "d3"}
    assert answers_are_right(graph, left) == 1
    graph.mutate('delete Doc where k = "d4"')
    del left["d4"]
    assert answers_are_right(reopened(graph), left) == 0
    # An older state has a text that the stored words lack.
    first = graph.commits.list()[-2].id
    rows = reopened(graph).query(FOUND, {"w": "ship"}, at=first).rows
    assert {row["k"] for row in rows} == reference.bm25(docs, "ship").keys()


def test_a_renamed_property_keeps_its_words_and_a_new_one_has_none(graph, docs):
    answers_are_right(graph, docs)
    graph.schema.apply(RENAMED)
    assert answers_are_right(reopened(graph), docs, "body") == 0
    graph.schema.apply(SCHEMA.replace("text:", "other: String?  text:"), allow_data_loss=True)
    assert reopened(graph).query(FOUND, {"w": "ship"}).rows == []


def test_the_words_of_ids_are_stored_as_those_of_properties(tmp_path):
    docs = {key: key for key in ("a ship", "ships of a port", "port")}
    graph = og.init(tmp_path / "g", SCHEMA)
    load(graph, docs)
    assert answers_are_right(graph, docs, "id") == 1
    assert answers_are_right(reopened(graph), docs, "id") == 0


@pytest.mark.parametrize("kind", ["*.npy", "*.json"])
@pytest.mark.parametrize("damage", [None, b"", b"\x93NUMPY", b"{}"])
def test_damaged_files_are_made_again(graph, docs, kind, damage):
    answers_are_right(graph, docs)
    for path in Path(graph.uri, TEXT_INDEX_FOLDER).rglob(kind):
        path.unlink() if damage is None else path.write_bytes(damage)
    assert answers_are_right(reopened(graph), docs) == 1
    assert answers_are_right(reopened(graph), docs) == 0


def test_deleting_all_files_between_queries_changes_no_answer(graph, docs):
    answers_are_right(graph, docs)
    shutil.rmtree(Path(graph.uri, TEXT_INDEX_FOLDER))
    assert answers_are_right(graph, docs) == 1
    assert answers_are_right(reopened(graph), docs) == 1


def test_a_reader_writes_nothing(graph, docs):
    assert answers_are_right(reopened(graph, "ro"), docs) == 1
    assert folders(graph) == []


def test_a_folder_that_cannot_be_written_costs_time_only(graph, docs):
    Path(graph.uri, TEXT_INDEX_FOLDER).write_text("not a folder")
    assert answers_are_right(graph, docs) == 1
    assert answers_are_right(reopened(graph), docs) == 1


def test_only_the_newest_files_of_a_property_are_kept(graph, docs, monkeypatch):
    monkeypatch.setattr("omnigraph.query.text_index_cache.SEGMENT_MERGE_FACTOR", 10**9)
    now = dict(docs)
    for number in range(text_index_files.KEPT_SEGMENTS + 3):
        new = some_docs(number, [1000 + number])
        load(graph, new)
        now |= new
        graph.query(FOUND, {"w": "ship"})
    assert len(folders(graph)) == text_index_files.KEPT_SEGMENTS
    assert answers_are_right(reopened(graph), now) == 0


def test_optimize_and_maintenance_store_the_words_of_indexed_texts(graph, docs):
    graph.optimize()
    assert len(folders(graph)) == 1
    assert answers_are_right(reopened(graph, "ro"), docs) == 0
    more = some_docs(2, range(300, 900))
    load(graph, more)
    fast = MaintainerSettings(cpu_share=1.0)
    assert "stored the words of Doc.text" in graph.maintenance.run(fast).actions
    assert answers_are_right(reopened(graph, "ro"), docs | more) == 0
    assert graph.maintenance.run(fast).actions == []


def test_deep_verification_names_a_damaged_file(graph, docs):
    answers_are_right(graph, docs)
    [folder] = folders(graph)
    path = folder / "rows.npy"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    [problem] = graph.verify(deep=True).problems
    assert problem.where == os.path.relpath(folder, graph.uri)
    assert "a file of a text index is damaged" in problem.message
