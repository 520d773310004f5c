"""Merging real branches: every combination of changes, every kind of conflict, decisions."""

import json
from datetime import timedelta
from itertools import product
from pathlib import Path

import pytest

import omnigraph.graph as og
from omnigraph.commit.model import Counts
from omnigraph.errors import InvalidInput, NotFound, OmniError
from omnigraph.merge.conflicts import MergeConflicts

SCHEMA = """
node Person { name: String @key  age: I64?  city: String?  email: String? @unique }
edge Knows: Person -> Person { since: I64?  how: String? }
edge Boss: Person -> Person @card(0..1)
"""
STATES = (None, 0, 1, 2)
"""An entity is absent, as it was, or changed in one of two ways."""


@pytest.fixture
def graph(tmp_path):
    made = og.init(tmp_path / "graph", SCHEMA)
    load(
        made,
        *(person(name) for name in ("Alice", "Bob", "Carol", "Dan")),
        edge("bc", "Bob", "Carol"),
    )
    return made


def person(name, **properties):
    return {"type": "Person", "data": {"name": name, **properties}}


def edge(id_, src, dst, type_="Knows", **properties):
    return {"edge": type_, "from": src, "to": dst, "data": {"id": id_, **properties}}


def load(graph, *records, **options):
    return graph.load("\n".join(json.dumps(record) for record in records).encode(), **options)


def delete(graph, *names, type_="Person", key="name"):
    for name in names:
        graph.mutate(f'query q() {{ delete {type_} where {key} = "{name}" }}')


def ages(graph, at=None):
    rows = graph.query("query q() { match { $p: Person } return { $p.name, $p.age } }", at=at).rows
    return {row["p.name"]: row["p.age"] for row in rows}


def everything(graph, at=None):
    return [json.loads(line) for line in graph.export(at)]


def edges(graph):
    return {row["data"]["id"]: row for row in everything(graph) if row.get("edge") == "Knows"}


# --- every combination ---------------------------------------------------------------------------


def name_of(case):
    return "p" + "".join("-" if state is None else str(state) for state in case)


COMBINATIONS = [(base, *rest) for base in (None, 0) for rest in product(STATES, repeat=2)]


def merged(base, source, target):
    """Return what stands there after a merge; a kind of conflict is text."""
    if source in (target, base):
        return target
    if target == base:
        return source
    if base is None:
        return "divergent_insert"
    return "delete_vs_update" if None in (source, target) else "divergent_update"


def put_all(graph, side, *, nodes):
    """Bring a branch to one side of all combinations."""
    there = {case: case[side] for case in COMBINATIONS if case[side] is not None}
    gone = [case for case in COMBINATIONS if case[side] is None and case[0] is not None]
    if nodes:
        load(graph, *(person(name_of(case), age=state) for case, state in there.items()))
        delete(graph, *(name_of(case) for case in gone))
    else:
        rows = (edge(name_of(c), "Alice", "Bob", since=s) for c, s in there.items())
        load(graph, *rows)
        delete(graph, *(name_of(case) for case in gone), type_="Knows", key="id")


@pytest.mark.parametrize("nodes", [True, False], ids=["nodes", "edges"])
def test_every_combination_of_states(graph, nodes):
    put_all(graph, 0, nodes=nodes)
    branch = graph.branch("side", create=True)
    put_all(branch, 1, nodes=nodes)
    put_all(graph, 2, nodes=nodes)
    before = everything(graph)
    with pytest.raises(MergeConflicts) as caught:
        graph.merge("side", strict=True)
    wanted = {name_of(case): merged(*case) for case in COMBINATIONS}
    conflicts = {name: kind for name, kind in wanted.items() if isinstance(kind, str)}
    assert {c.id: str(c.kind) for c in caught.value.conflicts} == conflicts
    assert everything(graph) == before

    def found():
        if nodes:
            return {n: age for n, age in ages(graph).items() if n.startswith("p")}
        return {i: e["data"]["since"] for i, e in edges(graph).items() if i != "bc"}

    result = graph.merge("side", strict=True, resolve="source")
    ours = {name_of(c): c[1] if isinstance(merged(*c), str) else merged(*c) for c in COMBINATIONS}
    assert found() == {name: state for name, state in ours.items() if state is not None}
    assert result.outcome == "merged"
    assert graph.verify().problems == []


@pytest.mark.parametrize("winner", ["source", "target"])
def test_a_conflict_shows_all_sides_and_either_may_win(graph, winner):
    branch = graph.branch("side", create=True)
    load(branch, person("Alice", age=5, city="Oslo"))
    load(graph, person("Alice", age=6))
    preview = graph.merge("side", dry_run=True)
    [conflict] = preview.conflicts
    assert conflict.properties == ("age",)
    assert [i.properties["age"] for i in (conflict.base, conflict.source, conflict.target)] == [
        None,
        5,
        6,
    ]
    graph.merge("side", resolve=winner)
    found = graph.entity_at("Person", "Alice")
    assert (found["age"], found["city"]) == ({"source": 5, "target": 6}[winner], "Oslo")


# --- the table of the specification --------------------------------------------------------------

OPERATIONS = {
    "nothing": lambda g, side: None,
    "add node": lambda g, side: load(g, person("Eve", age=len(side))),
    "remove node": lambda g, side: delete(g, "Alice"),
    "add edge": lambda g, side: load(g, edge(f"ac-{side}", "Alice", "Carol")),
    "remove edge": lambda g, side: delete(g, "Bob", type_="Knows", key="from"),
    "set": lambda g, side: load(g, person("Alice", age=len(side))),
    "nothing in the end": lambda g, side: (
        load(g, edge("x", "Bob", "Dan")),
        delete(g, "x", type_="Knows", key="id"),
    ),
}
CONFLICTS = {
    ("add node", "add node"): "divergent_insert",
    ("remove node", "add edge"): "orphan_edge",
    ("add edge", "remove node"): "orphan_edge",
    ("remove node", "set"): "delete_vs_update",
    ("set", "remove node"): "delete_vs_update",
    ("set", "set"): "divergent_update",
}


@pytest.mark.parametrize(("source", "target"), list(product(OPERATIONS, repeat=2)))
def test_what_two_operations_come_to(graph, source, target):
    branch = graph.branch("side", create=True)
    OPERATIONS[source](branch, "source")
    OPERATIONS[target](graph, "target-")
    before = everything(graph)
    kind = CONFLICTS.get((source, target))
    if kind is not None:
        with pytest.raises(MergeConflicts) as caught:
            graph.merge("side")
        assert {str(conflict.kind) for conflict in caught.value.conflicts} == {kind}
        assert everything(graph) == before
        return
    result = graph.merge("side")
    outcome = (
        "already_up_to_date"
        if source == "nothing"
        else "fast_forward"
        if target == "nothing"
        else "merged"
    )
    assert result.outcome == outcome
    if (source, target) == ("add edge", "add edge"):
        assert len(edges(graph)) == 3
    if source == "remove node":
        assert "Alice" not in ages(graph)
    assert graph.merge("side").outcome == "already_up_to_date"


# --- rules of the schema -------------------------------------------------------------------------


def test_a_value_taken_on_both_sides_is_a_unique_violation(graph):
    branch = graph.branch("side", create=True)
    load(branch, person("Ulf", email="u@x"))
    load(graph, person("Una", email="u@x"))
    [conflict] = graph.merge("side", dry_run=True).conflicts
    assert (conflict.kind, conflict.id, conflict.properties) == (
        "unique_violation",
        "Ulf",
        ("email",),
    )


def test_too_many_edges_together_are_a_cardinality_violation(graph):
    branch = graph.branch("side", create=True)
    load(branch, edge("b1", "Alice", "Bob", "Boss"))
    load(graph, edge("b2", "Alice", "Carol", "Boss"))
    [conflict] = graph.merge("side", dry_run=True).conflicts
    assert (conflict.kind, conflict.id) == ("cardinality_violation", "Alice")


def test_a_fast_forward_is_validated_too(graph):
    graph.branches.create("side")
    load(graph.branch("side", create=True), person("Eve"))
    assert graph.merge("side").outcome == "fast_forward"
    assert "Eve" in ages(graph)


# --- properties ----------------------------------------------------------------------------------


def test_different_properties_of_one_entity_go_together(graph):
    branch = graph.branch("side", create=True)
    branch.mutate('query q() { update Person set { age: 30 } where name = "Bob" }')
    graph.mutate('query q() { update Person set { city: "Rome" } where name = "Bob" }')
    assert graph.merge("side").outcome == "merged"
    found = graph.entity_at("Person", "Bob")
    assert (found["age"], found["city"]) == (30, "Rome")


def test_strict_keeps_entities_whole(graph):
    branch = graph.branch("side", create=True)
    branch.mutate('query q() { update Person set { age: 30 } where name = "Bob" }')
    graph.mutate('query q() { update Person set { city: "Rome" } where name = "Bob" }')
    with pytest.raises(MergeConflicts, match="divergent update for id 'Bob'"):
        graph.merge("side", strict=True)
    graph.merge("side", strict=True, resolve="source")
    found = graph.entity_at("Person", "Bob")
    assert (found["age"], found["city"]) == (30, None)


def test_ends_of_an_edge_merge_like_properties(graph):
    branch = graph.branch("side", create=True)
    load(branch, edge("bc", "Bob", "Dan"))
    load(graph, edge("bc", "Bob", "Carol", how="kin"))
    graph.merge("side")
    assert edges(graph)["bc"]["to"] == "Dan"
    assert edges(graph)["bc"]["data"]["how"] == "kin"


# --- decisions -----------------------------------------------------------------------------------


@pytest.fixture
def torn(graph):
    branch = graph.branch("side", create=True)
    load(branch, person("Alice", age=1, city="Oslo"), person("Bob", age=1), person("Eve", age=1))
    delete(branch, "Dan")
    load(graph, person("Alice", age=2, city="Rome"), person("Bob", age=2), person("Eve", age=2))
    load(graph, person("Dan", age=2))
    return graph


def decided(**entities):
    return {"entities": [{"type": "Person", "id": id_, **what} for id_, what in entities.items()]}


def test_decisions_by_entity_property_and_value(torn):
    decisions = decided(
        Alice={"take": {"age": "source"}, "set": {"city": "Bern"}},
        Bob={"take": "target"},
        Eve={"set": {"age": 9, "name": "Eve"}},
        Dan={"take": "source"},
    )
    torn.merge("side", resolve=json.dumps(decisions))
    assert ages(torn) == {"Alice": 1, "Bob": 2, "Carol": None, "Eve": 9}
    assert torn.entity_at("Person", "Alice")["city"] == "Bern"


def test_what_is_not_decided_stays_a_conflict(torn):
    decisions = decided(Alice={"take": {"age": "source"}}, Bob={"take": "target"})
    [*conflicts] = torn.merge("side", resolve=decisions, dry_run=True).conflicts
    assert {c.id for c in conflicts} == {"Alice", "Dan", "Eve"}


def test_decisions_by_type_and_default(torn):
    torn.merge("side", resolve={"default": "target", "types": {"Person": "source"}})
    assert ages(torn) == {"Alice": 1, "Bob": 1, "Carol": None, "Eve": 1}


@pytest.mark.parametrize(
    ("decisions", "code"),
    [
        ("neither", "decisions_invalid"),
        ("[]", "decisions_invalid"),
        ({"default": "both"}, "decisions_invalid"),
        ({"who": 1, "types": 3, "entities": {}}, "decisions_invalid"),
        ({"entities": [{"type": "Person"}, 3, {"type": "Person", "id": "x"}]}, "decisions_invalid"),
        (decided(Alice={"take": {"agee": "source"}}), "decision_invalid"),
        (decided(Alice={"take": "source", "set": {"age": "old"}}), "decision_invalid"),
        (decided(Alice={"set": {"age": 3, "city": "Bern", "name": "Zoe"}}), "decision_invalid"),
        (decided(Eve={"set": {"age": 3, "name": None}}), "decision_invalid"),
        (decided(Nobody={"take": "source"}) | {"default": "source"}, "decision_unused"),
    ],
)
def test_decisions_that_make_no_sense_are_refused(torn, decisions, code):
    before = everything(torn)
    with pytest.raises(InvalidInput) as caught:
        torn.merge("side", resolve=decisions)
    assert caught.value.code == code
    assert everything(torn) == before


def test_a_decided_value_is_validated(torn):
    load(torn, person("Zoe", email="taken"))
    decisions = decided(Eve={"set": {"age": 1, "email": "taken"}}) | {"default": "source"}
    [conflict] = torn.merge("side", resolve=decisions, dry_run=True).conflicts
    assert (conflict.kind, conflict.id) == ("unique_violation", "Eve")


def test_a_decided_blob_is_no_file_of_this_machine(tmp_path):
    schema = "node Person { name: String @key  age: I64?  photo: Blob? }"
    graph = og.init(tmp_path / "graph", schema)
    allowed, secret = tmp_path / "allowed" / "photo", tmp_path / "secret"
    allowed.parent.mkdir()
    for file in (allowed, secret):
        file.write_bytes(file.name.encode())
    graph.load({"Person": [{"name": "Eve"}]})
    for age, branch in ((1, graph.branch("side", create=True)), (2, graph)):
        branch.load({"Person": [{"name": "Eve", "age": age}]})
    picked = graph.commits.list("side")[0].id
    refused = "external blob .* is (refused|below no allowed base)"
    allowing = og.open(graph.uri, external_blobs=[allowed.parent.as_uri()])
    for given, file in ((graph, allowed), (graph, secret), (allowing, secret)):
        decisions = decided(Eve={"set": {"age": 3, "photo": file.as_uri()}})
        for dry_run in (True, False):
            with pytest.raises(InvalidInput, match=refused):
                given.merge("side", resolve=decisions, dry_run=dry_run)
            with pytest.raises(InvalidInput, match=refused):
                given.cherry_pick(picked, resolve=decisions, dry_run=dry_run)
    allowing.merge("side", resolve=decided(Eve={"set": {"age": 3, "photo": allowed.as_uri()}}))
    assert b"".join(graph.blob("Person", "Eve", "photo").chunks()) == b"photo"


# --- history -------------------------------------------------------------------------------------


def test_the_source_is_part_of_the_history(graph):
    branch = graph.branch("side", create=True)
    made = load(branch, person("Eve", age=1)).commit
    head = graph.snapshot().commit_id
    result = graph.merge("side", delete_branch=True, message="bring Eve")
    assert result.branch_deleted is True
    assert result.commit.parents == (head, made.id)
    assert (result.commit.operation, result.commit.message) == ("merge", "bring Eve")
    assert [c.id for c in graph.commits.list()][:3] == [result.commit.id, made.id, head]
    assert ages(graph, at=made.id)["Eve"] == 1
    assert "Eve" not in ages(graph, at=head)
    assert "side" not in graph.branches.list()
    assert og.open(graph.uri).verify().problems in ([], graph.verify().problems)


def test_histories_merged_crosswise(graph):
    branch = graph.branch("side", create=True)
    load(branch, person("Alice", age=1))
    load(graph, person("Bob", age=2))
    graph.branches.create("copy")
    graph.merge("side")
    branch.merge("copy", into="side")
    assert len(graph.commits.merge_base("main", "side")) == 2
    load(branch, person("Alice", age=3))
    load(graph, person("Bob", age=4))
    assert graph.merge("side").outcome == "merged"
    assert (ages(graph)["Alice"], ages(graph)["Bob"]) == (3, 4)


def test_crosswise_changes_of_one_entity_are_conflicts(graph):
    branch = graph.branch("side", create=True)
    load(branch, person("Alice", age=1))
    load(graph, person("Alice", age=2))
    graph.branches.create("copy")
    graph.merge("side", resolve="source")
    branch.merge("copy", into="side", resolve="source")
    assert (ages(graph)["Alice"], ages(graph, at="side")["Alice"]) == (1, 2)
    [conflict] = graph.merge("side", dry_run=True).conflicts
    assert (conflict.kind, conflict.id) == ("divergent_update", "Alice")


def test_merges_that_make_no_sense(graph):
    with pytest.raises(InvalidInput) as caught:
        graph.merge("main")
    assert caught.value.code == "merge_into_itself"
    with pytest.raises(NotFound):
        graph.merge("nowhere")
    graph.branches.create("side")
    with pytest.raises(OmniError, match="read-only"):
        og.open(graph.uri, mode="ro").merge("side")


def test_a_branch_that_cannot_be_deleted_is_reported(graph):
    graph.branches.create("side")
    load(graph.branch("side", create=True), person("Eve"))
    graph.branches.create("child", from_="side")
    result = graph.merge("side", delete_branch=True)
    assert result.branch_deleted is False
    assert "child" in result.branch_delete_error


def insert_and_fail(branch):
    with branch:
        load(branch, person("Zoe"))
        raise ZeroDivisionError


def test_a_branch_merges_itself_when_all_went_well(graph):
    with graph.branch("agent/1", create=True, merge_into="main") as branch:
        load(branch, person("Eve", age=1))
        assert "Eve" not in ages(graph)
    assert ages(graph)["Eve"] == 1
    with pytest.raises(ZeroDivisionError):
        insert_and_fail(graph.branch("agent/2", create=True, merge_into="main"))
    assert "Zoe" not in ages(graph)
    assert "Zoe" in ages(graph, at="agent/2")


# --- revert and cherry-pick ----------------------------------------------------------------------


def test_a_reverted_commit_is_undone(graph):
    before = everything(graph)
    made = load(graph, person("Alice", age=7), person("Eve"), edge("ae", "Alice", "Eve")).commit
    load(graph, person("Zoe"))
    result = graph.revert(made.id)
    assert result.commit.operation == "revert"
    assert [row for row in everything(graph) if row["data"].get("name") != "Zoe"] == before
    assert graph.revert(result.commit.id).commit is not None
    assert ages(graph)["Alice"] == 7


def test_what_was_changed_since_cannot_be_reverted(graph):
    made = load(graph, person("Alice", age=7)).commit
    load(graph, person("Alice", age=8))
    with pytest.raises(MergeConflicts):
        graph.revert(made.id)
    assert ages(graph)["Alice"] == 8


def test_a_commit_of_another_branch_is_picked(graph):
    branch = graph.branch("side", create=True)
    load(branch, person("Eve", age=1))
    made = load(branch, person("Alice", age=7), message="seven").commit
    result = graph.cherry_pick(made.id)
    assert (result.commit.operation, result.commit.message) == ("cherry_pick", "seven")
    assert result.commit.parents == (graph.commits.list()[1].id,)
    assert ages(graph) == {"Alice": 7, "Bob": None, "Carol": None, "Dan": None}
    assert graph.cherry_pick(made.id).commit is None


def test_the_first_commit_can_neither_be_reverted_nor_picked(graph):
    first = graph.commits.list()[-1]
    for attempt in (graph.revert, graph.cherry_pick):
        with pytest.raises(InvalidInput) as caught:
            attempt(first.id)
        assert caught.value.code == "parentless_commit"


# --- storage -------------------------------------------------------------------------------------


def data_files(graph):
    return {path for path in Path(graph.uri).rglob("data/*.lance") if "nodes" in path.parts}


def crowd(count):
    return {"Person": [{"name": f"x{n:05d}", "age": n} for n in range(count)]}


def test_a_fast_forward_writes_no_data(graph):
    branch = graph.branch("side", create=True)
    branch.load(crowd(10))
    delete(branch, "Dan")
    before = data_files(graph)
    graph.merge("side")
    assert data_files(graph) == before
    assert ages(graph) == ages(graph, at="side")


def test_what_a_branch_only_inserted_is_not_written_again(graph):
    branch = graph.branch("side", create=True)
    branch.load(crowd(1_500))
    load(branch, person("Alice", age=1))
    load(graph, person("Bob", age=2))
    before = data_files(graph)
    result = graph.merge("side")
    assert result.counts["node:Person"] == Counts(inserted=1_500, updated=1)
    assert len(data_files(graph) - before) == 1  # Alice
    assert ages(graph) == {
        **{f"x{n:05d}": n for n in range(1_500)},
        "Alice": 1,
        "Bob": 2,
        "Carol": None,
        "Dan": None,
    }
    graph.optimize()
    graph.branches.delete("side")
    graph.cleanup(keep=1, older_than=timedelta(0), confirm=True)
    assert len(ages(graph)) == 1_504
    assert [p for p in graph.verify().problems if not p.harmless] == []


def test_the_model_of_vectors_is_still_known(tmp_path):
    schema = 'node Doc { k: String @key  text: String?  v: Vector(4)? @embed("text") }'
    graph = og.init(tmp_path / "graph", schema, embedding={"kind": "mock", "model": "m"})
    graph.insert("Doc", [{"k": "a", "text": "one"}, {"k": "b", "text": "two"}])
    graph.embed("Doc")
    branch = graph.branch("side", create=True)
    branch.insert("Doc", [{"k": "c", "text": "three"}])
    branch.embed("Doc")
    graph.insert("Doc", [{"k": "d", "text": "four"}])
    graph.merge("side")
    found = (
        'query q() { match { $d: Doc } return { $d.k } order { nearest($d.v, "three") } limit 1 }'
    )
    assert graph.query(found).rows == [{"d.k": "c"}]
    other = og.open(graph.uri, embedding={"kind": "mock", "model": "other"})
    with pytest.raises(OmniError, match="other"):
        other.query(found)


def test_a_decision_tells_a_node_from_an_edge_of_the_same_name(tmp_path):
    schema = "node Order { code: String @key  note: String? }"
    schema += "edge Order: Order -> Order { note: String? }"
    graph = og.init(tmp_path / "shared", schema)
    rows = {"node:Order": [{"code": "a"}], "edge:Order": [{"id": "a", "from": "a", "to": "a"}]}
    graph.load(rows)
    graph.branches.create("side")
    for branch in ("side", "main"):
        graph.load(
            {key: [{**row, "note": branch} for row in rows[key]] for key in rows}, branch=branch
        )
    decided = {
        "types": {"node:Order": "source"},
        "entities": [{"type": "edge:Order", "id": "a", "take": "target"}],
    }
    assert graph.merge("side", resolve=decided).outcome == "merged"
    found = [graph.entity_at(key, "a")["note"] for key in rows]
    assert found == ["side", "main"]
