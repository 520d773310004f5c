"""Merging branches whose schemas differ: what goes together does, everything else is a conflict."""

import json

import pytest

import omnigraph.graph as og
from omnigraph.errors import InvalidInput
from omnigraph.merge.conflicts import MergeConflicts
from omnigraph.write import ValidationFailed

SCHEMA = """
node Person { name: String @key  age: I32? }
node Place { name: String @key }
edge Knows: Person -> Person
"""
PERSON, PLACE, KNOWS = SCHEMA.strip().splitlines()


@pytest.fixture
def graph(tmp_path):
    made = og.init(tmp_path / "graph", SCHEMA)
    made.insert("Person", [{"name": "Ada", "age": 36}, {"name": "Bob", "age": 7}])
    made.branches.create("side")
    return made


def apply(graph, branch, *lines):
    return graph.schema.apply("\n".join(lines) + "\n", branch=branch)


def people(graph, at="main"):
    found = {}
    for line in graph.export(at, types=["Person"]):
        data = json.loads(line)["data"]
        found[data["id"]] = {k: v for k, v in data.items() if k not in ("id", "name")}
    return found


def merge_refused(graph):
    before = graph.snapshot().commit_id
    with pytest.raises(MergeConflicts) as caught:
        graph.merge("side")
    assert graph.snapshot().commit_id == before
    assert [c.message for c in graph.merge("side", dry_run=True).conflicts] == [
        c.message for c in caught.value.conflicts
    ]
    return [(str(c.kind), c.message) for c in caught.value.conflicts]


ADVICE = "rename or drop it on one of them first"
ADDED = "node Person { name: String @key  age: I32?  email: String? @unique }"


@pytest.mark.parametrize("moved", [False, True], ids=["alone", "beside others"])
def test_a_property_the_source_added_comes_with_its_values(graph, moved):
    apply(graph, "side", ADDED, PLACE, KNOWS)
    graph.load({"Person": [{"name": "Ada", "age": 36, "email": "a@x"}]}, branch="side")
    graph.load({"Person": [{"name": "Eve", "age": 1, "email": "e@x"}]}, branch="side")
    if moved:
        graph.load({"Person": [{"name": "Bob", "age": 8}, {"name": "Cid", "age": 2}]})
    result = graph.merge("side")
    assert result.outcome == ("merged" if moved else "fast_forward")
    wanted = {
        "Ada": {"age": 36, "email": "a@x"},
        "Bob": {"age": 8 if moved else 7, "email": None},
        "Eve": {"age": 1, "email": "e@x"},
    } | ({"Cid": {"age": 2, "email": None}} if moved else {})
    assert people(graph) == wanted
    assert people(og.open(graph.uri)) == wanted
    assert [p for p in graph.verify().problems if not p.harmless] == []
    assert graph.merge("side").outcome == "already_up_to_date"
    with pytest.raises(ValidationFailed, match="@unique"):
        graph.load({"Person": [{"name": "Zoe", "email": "a@x"}]})


def test_what_the_target_added_stays(graph):
    apply(graph, "main", ADDED, PLACE, KNOWS)
    graph.load({"Person": [{"name": "Bob", "age": 7, "email": "b@x"}]})
    graph.load({"Person": [{"name": "Bob", "age": 9}, {"name": "Eve", "age": 1}]}, branch="side")
    graph.merge("side")
    assert people(graph) == {
        "Ada": {"age": 36, "email": None},
        "Bob": {"age": 9, "email": "b@x"},
        "Eve": {"age": 1, "email": None},
    }


def test_additions_on_both_sides_go_together(graph):
    apply(
        graph,
        "side",
        ADDED,
        PLACE,
        KNOWS,
        "node Team { name: String @key }",
        "edge In: Person -> Team",
    )
    graph.load({"Team": [{"name": "Red"}], "In": [{"from": "Ada", "to": "Red"}]}, branch="side")
    graph.load({"Person": [{"name": "Ada", "age": 36, "email": "a@x"}]}, branch="side")
    taller = "node Person { name: String @key  age: I32?  height: F64? }"
    apply(graph, "main", taller, PLACE, KNOWS, "edge Likes: Person -> Place")
    graph.load({"Place": [{"name": "Rome"}], "Person": [{"name": "Bob", "age": 7, "height": 1.2}]})
    graph.load({"Likes": [{"from": "Bob", "to": "Rome"}]})
    assert graph.merge("side").outcome == "merged"
    assert people(graph) == {
        "Ada": {"age": 36, "email": "a@x", "height": None},
        "Bob": {"age": 7, "email": None, "height": 1.2},
    }
    text = "query q() { match { $p: Person  $p in $t } return { $p.name, $t.name } }"
    assert graph.query(text).rows == [{"p.name": "Ada", "t.name": "Red"}]
    text = "query q() { match { $p: Person  $p likes $x } return { $p.name, $x.name } }"
    assert graph.query(text).rows == [{"p.name": "Bob", "x.name": "Rome"}]
    assert set(graph.schema.catalog.nodes) == {"Person", "Place", "Team"}
    assert set(graph.schema.catalog.edges) == {"Knows", "Likes", "In"}
    assert [p for p in graph.verify().problems if not p.harmless] == []
    graph.merge("main", into="side")
    assert people(graph, "side") == people(graph)


def test_a_rename_a_default_and_a_wider_type_come_along(graph):
    years = 'years: I64? @rename_from("age")'
    changed = f'node Person {{ name: String @key  {years}  kind: String @default("x") }}'
    apply(graph, "side", changed, PLACE, KNOWS)
    graph.load({"Person": [{"name": "Ada", "years": 2**40, "kind": "y"}]}, branch="side")
    graph.load({"Person": [{"name": "Cid", "age": 5}]})
    graph.merge("side")
    assert people(graph) == {
        "Ada": {"years": 2**40, "kind": "y"},
        "Bob": {"years": 7, "kind": "x"},
        "Cid": {"years": 5, "kind": "x"},
    }


def test_a_type_the_source_dropped_is_dropped(graph):
    apply(graph, "side", PERSON, KNOWS)
    graph.merge("side")
    assert set(graph.schema.catalog.nodes) == {"Person"}
    assert people(graph) == {"Ada": {"age": 36}, "Bob": {"age": 7}}


def test_conflicts_of_schemas(graph):
    apply(
        graph,
        "side",
        "node Person { name: String @key  age: I64? }",
        PLACE,
        KNOWS,
        "node New { a: String? }",
    )
    optional = "node Person { name: String @key  age: I32 }"
    apply(graph, "main", optional, PLACE, KNOWS, "node New { b: String? }")
    assert merge_refused(graph) == [
        ("schema_conflict", "Person: both sides changed the type of age differently"),
        ("schema_conflict", f"New: both sides added a node of this name; {ADVICE}"),
    ]


def test_the_same_addition_twice_has_two_identities(graph):
    for branch in ("side", "main"):
        apply(graph, branch, ADDED, PLACE, KNOWS)
    # The texts are equal, the properties are not the same.
    assert [kind for kind, _ in merge_refused(graph)] == ["schema_conflict"]


@pytest.mark.parametrize("dropping", ["side", "main"])
def test_what_one_side_dropped_the_other_may_not_change(graph, dropping):
    apply(graph, dropping, PERSON, KNOWS)
    graph.load({"Place": [{"name": "Rome"}]}, branch="main" if dropping == "side" else "side")
    assert merge_refused(graph) == [
        ("schema_conflict", "Place: one side dropped it, the other changed its entities")
    ]


def test_entities_of_the_target_must_obey_new_rules_of_the_source(graph):
    apply(
        graph,
        "side",
        "node Person { name: String @key  age: I32?  @range(age, 0..50) }",
        PLACE,
        KNOWS,
    )
    graph.load({"Person": [{"name": "Old", "age": 99}]})
    [(kind, message)] = merge_refused(graph)
    assert kind == "value_constraint_violation"
    assert "99" in message


@pytest.mark.parametrize(
    "person",
    [
        "node Person { name: String @key }",
        "node Person { name: String @key  years: I32? @rename_from(age) }",
        "node Person { name: String @key  age: I32?  shoe: F32? }",
    ],
)
def test_a_commit_that_changed_only_the_schema_is_neither_undone_nor_picked(graph, person):
    commit = apply(graph, "side", person, PLACE, KNOWS).commit
    before = graph.snapshot("side").commit_id, graph.snapshot().commit_id
    for dry_run in (True, False):
        with pytest.raises(InvalidInput, match="changed the schema, which `schema apply` changes"):
            graph.revert(commit.id, branch="side", dry_run=dry_run)
        with pytest.raises(InvalidInput, match="changed the schema") as caught:
            graph.cherry_pick(commit.id, dry_run=dry_run)
        assert (caught.value.code, caught.value.details) == ("schema_only", {"commit": commit.id})
    assert before == (graph.snapshot("side").commit_id, graph.snapshot().commit_id)


def test_of_a_merge_that_brought_a_schema_the_entities_are_undone(graph):
    apply(graph, "side", "node Person { name: String @key  age: I32?  shoe: F32? }", PLACE, KNOWS)
    graph.load({"Person": [{"name": "Cy", "shoe": 42.5}]}, branch="side")
    merged = graph.merge("side").commit
    assert str(graph.revert(merged.id).outcome) == "merged"
    assert people(graph) == {"Ada": {"age": 36, "shoe": None}, "Bob": {"age": 7, "shoe": None}}


@pytest.mark.parametrize("dropped", ["p", "q"])
def test_after_crosswise_merges_a_drop_stays_a_drop(graph, dropped):
    """Each best common ancestor has only one of the two properties."""
    base = "node Person { name: String @key  age: I32?"
    apply(graph, "main", f"{base}  p: I32? }}", PLACE, KNOWS)
    apply(graph, "side", f"{base}  q: I32? }}", PLACE, KNOWS)
    graph.branches.create("earlier", from_="side")
    graph.merge("main", into="side")
    graph.merge("earlier", into="main")
    left = "q" if dropped == "p" else "p"
    apply(graph, "main", f"{base}  {left}: I32? }}", PLACE, KNOWS)
    graph.load({"Place": [{"name": "Rome"}]}, branch="side")
    for source, into in (("side", "main"), ("main", "side")):
        graph.merge(source, into=into)
        assert set(people(graph, into)["Ada"]) == {"age", left}
    apply(graph, "side", f"{base}  {left}: I64? }}", PLACE, KNOWS)
    graph.merge("side")
    assert str(graph.schema.catalog.nodes["Person"].properties[left].type) == "I64?"


def test_properties_that_branches_added_in_another_order_keep_their_values(graph):
    apply(graph, "main", PERSON.replace("}", "  city: String? }"), PLACE, KNOWS)
    apply(graph, "side", PERSON.replace("}", "  email: String? }"), PLACE, KNOWS)
    graph.merge("side")
    graph.merge("main", into="side")
    people_of_side = [{"name": f"p{n}", "city": "Oslo", "email": "p@x"} for n in range(2_000)]
    graph.insert("Person", people_of_side, branch="side")
    graph.insert("Person", [{"name": "Eve", "city": "Rome"}])
    graph.merge("side")
    assert people(graph)["p7"] == {"age": None, "city": "Oslo", "email": "p@x"}


def test_a_load_that_a_merge_overtakes_is_written_in_the_new_order_of_columns(graph):
    apply(graph, "main", PERSON.replace("}", "  city: String? }"), PLACE, KNOWS)
    apply(graph, "side", PERSON.replace("}", "  email: String? }"), PLACE, KNOWS)
    graph.merge("side")
    graph.merge("main", into="side")
    graph.insert("Person", [{"name": "Eve", "city": "Rome"}], branch="side")
    datasets, observe = graph._manifest.datasets, graph._manifest.datasets.observe

    def merge_once(step):
        if step == "staged node":
            datasets.observe = observe
            graph.merge("side")

    datasets.observe = merge_once
    graph.insert("Person", [{"name": f"p{n}", "city": "Oslo"} for n in range(20_000)])
    assert people(graph)["p7"] == {"age": None, "city": "Oslo", "email": None}
