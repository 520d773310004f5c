"""Single entities, as any state of a graph shows them."""

from datetime import UTC, date, datetime

import pytest

import omnigraph as og
from omnigraph.errors import InvalidInput, NotFound

SCHEMA = """
node Thing {
  name: String @key
  seen: DateTime?
  day: Date?
  days: [Date]?
  times: [DateTime]?
  weight: F32?
  far: Vector(2)?
  file: Blob?
}
node Both { name: String @key }
edge Both: Thing -> Thing { note: String? }
edge Likes: Thing -> Both { since: DateTime? }
"""
WHEN = datetime(2024, 5, 1, 12, 30, 0, 123000, tzinfo=UTC)


@pytest.fixture
def graph(tmp_path):
    graph = og.init(tmp_path / "g", SCHEMA)
    graph.mutate(
        """query put($when: DateTime, $file: Blob, $far: Vector(2)) {
             insert Thing { name: "a", seen: $when, day: date("2024-05-01"), weight: 0.5,
                            times: [], far: $far, file: $file }
             insert Thing { name: "o'brien" }
             insert Both { name: "b" }
             insert Likes { from: "a", to: "b", since: $when }
           }""",
        {"when": "2024-05-01T14:30:00.123+02:00", "file": "base64:aGVsbG8=", "far": [1, 2.5]},
    )
    return graph


def test_entity_has_every_property_in_its_python_form(graph):
    assert graph.entity_at("Thing", "a") == {
        "id": "a",
        "name": "a",
        "seen": WHEN,
        "day": date(2024, 5, 1),
        "days": None,
        "times": [],
        "weight": 0.5,
        "far": [1.0, 2.5],
        "file": {"kind": "managed", "size": 5},
    }


def test_what_was_not_given_is_null(graph):
    entity = graph.entity_at("Thing", "o'brien")
    assert entity.pop("id") == entity.pop("name") == "o'brien"
    assert set(entity.values()) == {None}


def test_edge_has_its_ends(graph):
    [line] = graph.export(types=["Likes"])
    id_ = line.partition('"id":"')[2][:26]
    found = graph.entity_at("Likes", id_)
    assert found == {"id": id_, "src": "a", "dst": "b", "since": WHEN}


def test_nobody_is_none(graph):
    assert graph.entity_at("Thing", "nobody") is None
    assert graph.entity_at("Thing", "' or true --") is None


def test_entity_is_as_it_was(graph):
    before = graph.snapshot()
    graph.mutate('query m() { update Thing set { weight: 9.0 } where name = "a" }')
    assert graph.entity_at("Thing", "a")["weight"] == 9.0
    assert graph.entity_at("Thing", "a", before)["weight"] == 0.5
    assert graph.entity_at("Thing", "a", before.commit_id)["weight"] == 0.5


def test_name_of_two_types_must_say_which(graph):
    with pytest.raises(InvalidInput, match="write `node:Both` or `edge:Both`"):
        graph.entity_at("Both", "b")
    assert graph.entity_at("node:Both", "b") == {"id": "b", "name": "b"}
    assert graph.entity_at("edge:Both", "b") is None


def test_unknown_type_is_reported_with_the_nearest(graph):
    with pytest.raises(NotFound, match="unknown type 'Thin': did you mean `Thing`"):
        graph.entity_at("Thin", "a")
