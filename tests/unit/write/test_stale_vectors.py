"""A vector belongs to the present text of its entity, whichever write changed the text."""

import csv
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import omnigraph as og
from tests.support.embedding import MOCK, mock_vector

SCHEMA = """
node Doc {
  k: String @key  text: String?  size: I32?
  v: Vector(3)? @embed(text)  must: Vector(2) @embed(k)
}
node Must { k: String @key  text: String  size: I32?  v: Vector(3) @embed(text) }
"""
MINE = [1.0, 0.0, 0.0]


@pytest.fixture
def graph(tmp_path):
    graph = og.init(tmp_path / "g", SCHEMA, embedding=MOCK)
    graph.insert("Doc", [{"k": "a", "text": "ship"}, {"k": "b", "text": "port"}])
    graph.insert("Must", [{"k": "a", "text": "ship"}, {"k": "b", "text": "port"}])
    graph.embed("Doc")
    return graph


def pair(graph, type_name="Doc", id_="a", at=None):
    found = graph.entity_at(type_name, id_, at)
    return found["text"], None if found["v"] is None else [float(x) for x in found["v"]]


def made(text):
    return text, pytest.approx(mock_vector(text, 3), abs=1e-6)


# --- mutations ---------------------------------------------------------------------------------


def test_update_of_a_text_clears_or_replaces_its_vector(graph):
    for name in ("Doc", "Must"):
        graph.mutate(f'query m() {{ update {name} set {{ text: "tug" }} where k = "a" }}')
    assert pair(graph) == ("tug", None)
    assert pair(graph, "Must") == made("tug")
    assert pair(graph, id_="b") == made("port")
    assert graph.embed("Doc").embedded == {"v": 1, "must": 0}
    assert pair(graph) == made("tug")


def test_update_that_leaves_the_text_as_it_is_keeps_the_vector(graph):
    graph.mutate('query m() { update Doc set { text: "ship", size: 3 } where k = "a" }')
    assert pair(graph) == made("ship")


def test_update_to_no_text_clears_the_vector(graph):
    graph.mutate('query m($t: String?) { update Doc set { text: $t } where k != "" }', {"t": None})
    assert (pair(graph), pair(graph, id_="b")) == ((None, None), (None, None))


def test_update_with_a_vector_keeps_what_is_given(graph):
    graph.mutate('query m() { update Doc set { text: "tug", v: [1, 0, 0] } where k = "a" }')
    assert pair(graph) == ("tug", MINE)


def test_statements_of_one_mutation_see_each_other(graph):
    graph.mutate(
        'query m() { insert Doc { k: "n", text: "ship", v: [1, 0, 0] }'
        ' update Doc set { text: "tug" } where k = "n" }'
    )
    assert pair(graph, id_="n") == ("tug", None)
    graph.mutate(
        'query m() { update Doc set { text: "tug" } where k = "b"'
        ' update Doc set { text: "port" } where k = "b" }'
    )
    assert pair(graph, id_="b") in (("port", None), made("port"))


def test_cleared_vector_is_not_ranked(graph):
    graph.mutate('query m() { update Doc set { text: "tug" } where k = "a" }')
    query = (
        'query q() { match { $d: Doc } return { $d.k } order { nearest($d.v, "ship") } limit 9 }'
    )
    assert graph.query(query).rows == [{"d.k": "b"}]


# --- loads -------------------------------------------------------------------------------------


def files(folder, rows, kind, type_name):
    path = folder / f"rows.{kind}"
    match kind:
        case "ndjson":
            lines = [json.dumps({"type": type_name, "data": row}) for row in rows]
            path.write_text("\n".join(lines) + "\n")
            return path
        case "csv":
            with path.open("w", newline="") as file:
                writer = csv.DictWriter(file, list(rows[0]))
                writer.writeheader()
                writer.writerows(rows)
        case "parquet":
            pq.write_table(pa.Table.from_pylist(rows), path)
        case "arrow":
            table = pa.Table.from_pylist(rows)
            with pa.ipc.new_file(path, table.schema) as writer:
                writer.write_table(table)
    return {type_name: path}


@pytest.mark.parametrize("partial", [False, True], ids=["whole", "partial"])
@pytest.mark.parametrize("kind", ["ndjson", "csv", "parquet", "arrow"])
def test_load_that_changes_a_text_clears_or_replaces_its_vector(graph, tmp_path, kind, partial):
    rows = [{"k": "a", "text": "tug"}, {"k": "b", "text": "port"}]
    for name in ("Doc", "Must"):
        graph.load(files(tmp_path, rows, kind, name), mode="merge", partial=partial)
    assert pair(graph) == ("tug", None)
    assert pair(graph, id_="b") == (made("port") if partial else ("port", None))
    assert (pair(graph, "Must"), pair(graph, "Must", "b")) == (made("tug"), made("port"))


def test_partial_load_keeps_the_vector_it_gives(graph):
    graph.load({"Doc": [{"k": "a", "text": "tug", "v": MINE}]}, partial=True)
    assert pair(graph) == ("tug", MINE)


# --- branches ----------------------------------------------------------------------------------


def test_merge_does_not_pair_a_text_with_the_vector_of_another(graph):
    graph.load({"Doc": [{"k": "n", "text": "quay"}]})
    graph.branches.create("side")
    graph.embed("Doc", branch="side")
    graph.mutate('query m() { update Doc set { text: "tug" } where k = "n" }')
    assert pair(graph, id_="n", at="side") == made("quay")
    graph.merge("side")
    assert pair(graph, id_="n") == ("tug", None)


def test_merge_the_other_way_does_not_either(graph):
    graph.load({"Doc": [{"k": "n", "text": "quay"}]})
    graph.branches.create("side")
    graph.mutate('query m() { update Doc set { text: "tug" } where k = "n" }', branch="side")
    graph.embed("Doc")
    graph.merge("side")
    assert pair(graph, id_="n") == ("tug", None)


@pytest.fixture
def torn(graph):
    """Both branches changed the vector of an entity, and main its text."""
    graph.branches.create("side")
    for name in ("Doc", "Must"):
        update = f'query m($v: Vector(3)) {{ update {name} set {{ v: $v }} where k = "a" }}'
        graph.mutate(update, {"v": MINE}, branch="side")
        graph.mutate(f'query m() {{ update {name} set {{ text: "tug" }} where k = "a" }}')
    return graph


def test_reviewer_does_not_pair_a_text_with_the_vector_of_another(torn):
    torn.merge("side", resolve="source")
    assert pair(torn) == ("tug", None)
    assert pair(torn, "Must") == made("tug")


def test_vector_a_reviewer_gives_is_kept(torn):
    given = {"set": {"v": [0.0, 0.0, 1.0]}}
    entities = [{"type": name, "id": "a", **given} for name in ("Doc", "Must")]
    torn.merge("side", resolve={"entities": entities})
    assert pair(torn) == pair(torn, "Must") == ("tug", [0.0, 0.0, 1.0])


def test_text_a_reviewer_gives_has_no_vector_of_another(torn):
    given = {"take": "source", "set": {"text": "quay"}}
    entities = [{"type": name, "id": "a", **given} for name in ("Doc", "Must")]
    torn.merge("side", resolve={"entities": entities})
    assert pair(torn) == ("quay", None)
    assert pair(torn, "Must") == made("quay")


def test_pair_a_reviewer_takes_from_one_side_is_kept(graph):
    graph.branches.create("side")
    graph.mutate('query m() { update Doc set { text: "tug" } where k = "a" }', branch="side")
    graph.embed("Doc", branch="side")
    graph.mutate('query m() { update Doc set { text: "quay" } where k = "a" }')
    graph.merge("side", resolve="source")
    assert pair(graph) == made("tug")


def test_merge_of_other_properties_keeps_the_vector(graph):
    graph.branches.create("side")
    graph.mutate('query m() { update Doc set { size: 1 } where k = "a" }', branch="side")
    graph.mutate('query m() { update Doc set { text: "tug" } where k = "a" }')
    graph.embed("Doc")
    graph.merge("side")
    assert pair(graph) == made("tug")
    assert graph.entity_at("Doc", "a")["size"] == 1


def test_cherry_pick_does_not_pair_a_text_with_the_vector_of_another(graph):
    graph.load({"Doc": [{"k": "n", "text": "quay"}]})
    graph.branches.create("side")
    embedded = graph.embed("Doc", branch="side").commit
    graph.mutate('query m() { update Doc set { text: "tug" } where k = "n" }')
    graph.cherry_pick(embedded.id)
    assert pair(graph, id_="n") == ("tug", None)


def test_revert_does_not_pair_a_text_with_the_vector_of_another(graph):
    changed = graph.mutate('query m() { update Doc set { text: "tug" } where k = "a" }').commit
    graph.embed("Doc")
    graph.revert(changed.id, resolve="target")
    assert pair(graph) == ("ship", None)
