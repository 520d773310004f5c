import json

import pytest

import omnigraph.graph as og
from omnigraph.write import ValidationFailed
from omnigraph.write.inputs.byte_streams import UnreadableInput
from omnigraph.write.inputs.permissive_json import json_values
from tests.support.load_fixtures import SCHEMA, all_rows, ndjson, thing

KEYED = """
node Day { on: Date @key  text: String? }
node Pair { one: I32  two: String  @key(one, two) }
edge Next: Day -> Day
"""


@pytest.fixture
def graph(tmp_path):
    return og.init(tmp_path / "graph", SCHEMA)


def problems(graph, text):
    with pytest.raises(ValidationFailed) as caught:
        graph.load(text, strict=False)
    return [str(violation) for violation in caught.value.violations]


def test_values_may_be_spread_over_lines_or_share_one(graph):
    text = (
        json.dumps(thing("a"), indent=2) + json.dumps(thing("b")) + "\n\n" + json.dumps(thing("c"))
    )
    assert graph.load(text.encode(), strict=False).nodes == {"Thing": 3}
    assert [row["slug"] for row in all_rows(graph, "node:Thing")] == ["a", "b", "c"]


def test_what_is_not_known_is_ignored(graph):
    line = '{"type":"Thing","edge":"Near","x":1,"data":{"slug":"a","slug":"b","nope":1,"_rowid":2}}'
    graph.load(line.encode(), strict=False)
    assert [row["slug"] for row in all_rows(graph, "node:Thing")] == ["b"]


def test_wrong_types_are_null_where_null_is_allowed(graph):
    graph.load(ndjson(thing("a", small="x", flag=1, title=3)), strict=False)
    [row] = all_rows(graph, "node:Thing")
    assert (row["small"], row["flag"], row["title"]) == (None, None, None)


def test_malformed_values_are_refused_here_too(graph):
    assert problems(graph, ndjson(thing("a", day="never"), thing("b", spot=[1]), thing(7), 7)) == [
        "record 1: Thing.day: invalid Date literal 'never': expected YYYY-MM-DD",
        "record 2: Thing.spot: expected 2 values, got 1",
        "record 3: Thing.slug: expected string, got integer",
        "record 4: expected an object, got integer",
    ]


def test_envelopes_that_say_too_little_are_refused(graph):
    lines = [{}, {"type": "Nope"}, {"edge": "Near", "from": "a"}, {"type": "Note", "data": 1}]
    assert problems(graph, ndjson(*lines)) == [
        "record 1: expected 'type' or 'edge' field",
        "record 2: unknown node type `Nope`; did you mean `Note`?",
        "record 3: `to` is missing",
        "record 4: `data` is an object, not integer",
    ]


def test_text_that_is_no_json_ends_the_reading_with_its_record(graph):
    assert problems(graph, ndjson(thing("a"), "{nope}", thing("b"))) == [
        "record 2: invalid JSON: Expecting property name enclosed in double quotes"
    ]


def test_id_in_another_spelling_is_taken_and_edges_follow(tmp_path):
    graph = og.init(tmp_path / "graph", KEYED)
    graph.load(
        ndjson(
            {"edge": "Next", "from": "2020-01-01", "to": "18263"},
            {"type": "Day", "data": {"on": "2020-01-01", "id": "2020-01-01"}},
            {"type": "Day", "data": {"on": "2020-01-02", "id": "18263"}},
            {"type": "Pair", "data": {"one": 7, "two": "x", "id": "07"}},
        ),
        strict=False,
    )
    assert [row["id"] for row in all_rows(graph, "node:Day")] == ["18262", "18263"]
    assert [row["id"] for row in all_rows(graph, "node:Pair")] == ['["7","x"]']
    assert [(r["src"], r["dst"]) for r in all_rows(graph, "edge:Next")] == [("18262", "18263")]


def test_spelling_that_means_two_nodes_is_refused(tmp_path):
    graph = og.init(tmp_path / "graph", KEYED)
    pairs = [{"type": "Pair", "data": {"one": 7, "two": t, "id": "07"}} for t in "xy"]
    [reported] = problems(graph, ndjson(*pairs))
    assert reported.startswith("record 2: ambiguous edge endpoint remap: '07' is")


def test_id_that_is_no_spelling_of_the_key_is_refused(tmp_path):
    graph = og.init(tmp_path / "graph", KEYED)
    lines = [
        {"type": "Day", "data": {"on": "2020-01-01", "id": "monday"}},
        {"type": "Day", "data": {"on": "2020-01-02", "id": 18263}},
    ]
    assert problems(graph, ndjson(*lines)) == [
        "record 1: id 'monday' of Day is not its key '18262'",
        "record 2: id of Day: expected string, got integer",
    ]


def test_edge_id_that_is_no_text_is_made_anew(graph):
    lines = [thing("a"), {"edge": "Near", "from": "a", "to": "a", "data": {"id": 7}}]
    graph.load(ndjson(*lines), strict=False)
    [edge] = all_rows(graph, "edge:Near")
    assert len(edge["id"]) == 26


def test_values_are_found_wherever_the_stream_is_cut():
    text = b'{"a": "\xc3\xa4"} [1,\n2]\t{"b": {"c": null}}\n'
    for at in range(len(text)):
        assert list(json_values([text[:at], text[at:]])) == [{"a": "ä"}, [1, 2], {"b": {"c": None}}]


@pytest.mark.parametrize("text", [b"{", b'{"a":NaN}', b"\xff", b"[" * 100_000, b"{} }"])
def test_stream_without_values_is_broken(text):
    with pytest.raises(UnreadableInput):
        list(json_values([text]))


def test_value_that_never_ends_is_given_up():
    pieces = (b'{"a":"' if n == 0 else b"x" * 10 for n in range(10**9))
    with pytest.raises(UnreadableInput, match="record 1"):
        list(json_values(pieces, limit=100))
