"""Mutations of the harbour: what the language promises of each statement, through the face."""

from datetime import UTC, datetime

import pytest

import omnigraph.graph as og
from omnigraph.commit.commit_queue import CommitQueue
from omnigraph.errors import ExpectedVersionMismatch, InvalidInput, PreconditionFailed
from omnigraph.lang import QueryError
from omnigraph.write import group_commit, transaction
from omnigraph.write import mutation as write_run
from omnigraph.write.violations import ValidationFailed
from tests.support.changes import is_generated, read_state

HARBOUR = """
interface Labelled { label: String @index }
node Ship implements Labelled {
  imo: I64 @key
  kind: enum(tanker, ferry, tug)
  flags: [String]?
  draught: F32?
  built: Date?
  @range(draught, 0..30.5)
}
node Port {
  code: String @key
  city: String
  depth: F64?
  opened: DateTime?
  @check(code, "^[A-Z]{3}$")
}
node Note { text: String  score: I32? }
edge CallsAt: Ship -> Port @card(0..2) { on: Date?  fee: F64? }
edge Route: Port -> Port { nm: I32? }
"""
SHIPS = [
    {"imo": 1, "label": "Aurora", "kind": "ferry", "flags": ["EU"], "draught": 5.5},
    {"imo": 2, "label": "Brisa", "kind": "tug", "draught": 4.0, "built": "2001-02-03"},
    {"imo": 3, "label": "Cormorant", "kind": "tanker"},
]
PORTS = [{"code": code, "city": f"City {code}"} for code in ("AAA", "BBB", "CCC", "DDD")]
ROUTES = [
    {"id": "r1", "from": "AAA", "to": "BBB", "nm": 10},
    {"id": "r2", "from": "AAA", "to": "CCC"},
    {"id": "r3", "from": "CCC", "to": "BBB", "nm": 20},
    {"id": "r4", "from": "BBB", "to": "DDD"},
    {"id": "r5", "from": "DDD", "to": "DDD", "nm": 0},
]
CALLS = [
    {"id": "c1", "from": "1", "to": "AAA", "on": "2024-01-02"},
    {"id": "c2", "from": "1", "to": "AAA", "on": "2024-03-04"},
    {"id": "c3", "from": "2", "to": "BBB"},
]


@pytest.fixture
def harbour(tmp_path):
    graph = og.init(tmp_path / "harbour", HARBOUR)
    graph.load({"Ship": SHIPS, "Port": PORTS, "Route": ROUTES, "CallsAt": CALLS})
    return graph


def mutate(graph, *statements, **options):
    return graph.mutate("query change() { " + "\n".join(statements) + " }", **options)


def affected(result):
    return result.affected_nodes, result.affected_edges


def refusal(graph, *statements):
    head = graph.snapshot().commit_id
    with pytest.raises(ValidationFailed) as caught:
        mutate(graph, *statements)
    assert graph.snapshot().commit_id == head
    return [violation.message for violation in caught.value.violations]


# --- inserts -----------------------------------------------------------------------------------


def test_insert_of_a_known_key_replaces_the_whole_node(harbour):
    made = mutate(harbour, 'insert Ship { imo: 1, label: "Aurora II", kind: "ferry" }')
    assert affected(made) == (1, 0)
    assert read_state(harbour)["Ship"]["1"] == {
        "imo": 1,
        "label": "Aurora II",
        "kind": "ferry",
        "flags": None,
        "draught": None,
        "built": None,
    }


@pytest.mark.parametrize("order", [1, -1])
def test_an_edge_may_be_inserted_before_or_after_its_node(harbour, order):
    statements = [
        'insert Ship { imo: 9, label: "Z", kind: "ferry" }',
        'insert CallsAt { from: "9", to: "AAA" }',
    ]
    made = mutate(harbour, *statements[::order])
    assert affected(made) == (1, 1)
    assert made.commit is not None
    assert {row["src"] for row in read_state(harbour)["CallsAt"].values()} == {"1", "2", "9"}


def test_three_calls_of_one_ship_are_too_many(harbour):
    calls = ['insert CallsAt { from: "3", to: "AAA" }'] * 3
    assert refusal(harbour, *calls) == [
        "@card violation on edge CallsAt: source '3' has 3 edges (max 2)"
    ]


def test_a_port_code_must_match(harbour):
    [message] = refusal(harbour, 'insert Port { code: "ab", city: "X" }')
    assert message == (
        "@check violation on Port.code: value 'ab' does not match pattern '^[A-Z]{3}$'"
    )


def test_an_integer_is_a_good_depth(harbour):
    mutate(harbour, 'insert Port { code: "EEE", city: "E", depth: 12 }')
    assert read_state(harbour)["Port"]["EEE"]["depth"] == 12.0


def test_nodes_without_a_key_get_new_ids_each_time(harbour):
    for _ in range(2):
        assert affected(mutate(harbour, 'insert Note { text: "t" }')) == (1, 0)
    ids = list(read_state(harbour)["Note"])
    assert len(ids) == 2
    assert all(is_generated(id_) for id_ in ids)


def test_an_id_cannot_be_assigned(harbour):
    with pytest.raises(QueryError, match="`id` of Note cannot be assigned"):
        mutate(harbour, 'insert Note { text: "t", id: "n1" }')


def test_now_is_one_instant_for_the_whole_query(harbour):
    before = datetime.now(UTC)
    mutate(
        harbour,
        'insert Port { code: "EEE", city: "E", opened: now() }',
        'insert Port { code: "FFF", city: "F", opened: now() }',
    )
    ports = read_state(harbour)["Port"]
    assert ports["EEE"]["opened"] == ports["FFF"]["opened"]
    opened = datetime.fromisoformat(ports["EEE"]["opened"])
    assert abs((opened - before).total_seconds()) < 60


def test_a_null_end_of_an_edge_is_refused(harbour):
    query = "query m($p: String?) { insert CallsAt { from: $p, to: $p } }"
    with pytest.raises(ValidationFailed) as caught:
        harbour.mutate(query, {"p": None})
    assert [v.message for v in caught.value.violations] == [
        "`from` of CallsAt is null",
        "`to` of CallsAt is null",
    ]


# --- updates -----------------------------------------------------------------------------------


def test_a_key_cannot_be_updated(harbour):
    with pytest.raises(QueryError, match="cannot update @key property"):
        mutate(harbour, "update Ship set { imo: 2 } where imo = 1")


def test_a_later_update_sees_the_earlier_one(harbour):
    made = mutate(
        harbour,
        'update Ship set { kind: "tug" } where kind = "ferry"',
        'update Ship set { draught: 3.0 } where kind = "tug"',
    )
    assert affected(made) == (3, 0)
    ships = read_state(harbour)["Ship"]
    assert [(ships[i]["kind"], ships[i]["draught"]) for i in "123"] == [
        ("tug", 3.0),
        ("tug", 3.0),
        ("tanker", None),
    ]
    assert ships["1"]["flags"] == ["EU"]


def test_an_update_that_finds_nothing_makes_no_commit(harbour):
    head = harbour.snapshot().commit_id
    made = mutate(harbour, "update Ship set { draught: 1.0 } where imo = 99")
    assert affected(made) == (0, 0)
    assert made.commit is None
    assert made.to_json()["commit"] is None
    assert harbour.snapshot().commit_id == head


def test_an_update_to_the_same_values_makes_no_commit(harbour):
    made = mutate(harbour, 'update Ship set { kind: "tug" } where kind = "tug"')
    assert affected(made) == (1, 0)
    assert made.commit is None


def test_an_update_by_key_finds_its_node_by_whatever_is_equal(harbour):
    query = "query m($imo: F64) { update Ship set { draught: 1.0 } where imo = $imo }"
    assert affected(harbour.mutate(query, {"imo": 2.0})) == (1, 0)
    assert affected(harbour.mutate(query, {"imo": 2.5})) == (0, 0)
    assert affected(harbour.mutate(query, {"imo": 1e300})) == (0, 0)


def test_an_update_by_key_respects_its_other_tests(harbour):
    assert affected(
        mutate(harbour, 'update Ship set { draught: 1.0 } where imo = 1 and kind = "tug"')
    ) == (0, 0)
    assert affected(
        mutate(harbour, "update Ship set { draught: 1.0 } where imo = 1 and imo = 2")
    ) == (0, 0)
    assert affected(
        mutate(harbour, "update Ship set { draught: 1.0 } where imo = 1 and imo != 1")
    ) == (0, 0)


# --- deletes -----------------------------------------------------------------------------------


def test_a_deleted_port_takes_its_edges_along(harbour):
    made = mutate(harbour, 'delete Port where code = "AAA"')
    assert affected(made) == (1, 4)
    state = read_state(harbour)
    assert sorted(state["Route"]) == ["r3", "r4", "r5"]
    assert sorted(state["CallsAt"]) == ["c3"]


def test_an_edge_is_counted_once_and_null_survives(harbour):
    made = mutate(harbour, 'delete Route where from = "AAA"', "delete Route where nm > 0")
    assert affected(made) == (0, 3)
    assert sorted(read_state(harbour)["Route"]) == ["r4", "r5"]


def test_inserts_and_deletes_do_not_mix(harbour):
    with pytest.raises(QueryError, match="mixes inserts/updates and deletes"):
        mutate(harbour, 'insert Note { text: "a" }', 'delete Note where text = "b"')


def test_everything_can_be_deleted(harbour):
    made = mutate(harbour, "delete Ship where imo >= 0", 'delete Port where code >= ""')
    assert affected(made) == (7, 8)
    assert all(not rows for rows in read_state(harbour).values())
    assert harbour.verify().ok
    mutate(harbour, 'insert Port { code: "AAA", city: "A" }')
    assert list(read_state(harbour)["Port"]) == ["AAA"]


# --- requests ----------------------------------------------------------------------------------


def test_a_commit_tells_what_changed_and_who_did_it(harbour):
    made = mutate(
        harbour.as_actor("ann"),
        "update Ship set { draught: 2.0 } where imo <= 2",
        'insert Ship { imo: 9, label: "N", kind: "tug" }',
        message="deeper",
    )
    commit = harbour.commits.get(made.commit.id)
    assert (commit.operation, commit.actor, commit.message) == ("mutation", "ann", "deeper")
    counts = commit.counts["node:Ship"]
    assert (counts.inserted, counts.updated, counts.deleted) == (1, 2, 0)
    assert made.actor == "ann"


def test_a_change_of_another_branch_is_not_seen(harbour):
    harbour.branches.create("side")
    mutate(harbour, "delete Ship where imo = 1", branch="side")
    assert sorted(read_state(harbour, "side")["Ship"]) == ["2", "3"]
    assert sorted(read_state(harbour)["Ship"]) == ["1", "2", "3"]


def test_a_condition_on_the_head_is_kept(harbour):
    head = harbour.snapshot().commit_id
    made = mutate(harbour, 'insert Note { text: "a" }', if_commit=head)
    with pytest.raises(PreconditionFailed):
        mutate(harbour, 'insert Note { text: "b" }', if_commit=head)
    with pytest.raises(PreconditionFailed):
        mutate(harbour, 'delete Note where text = "nothing"', if_commit=head)
    assert [row["text"] for row in read_state(harbour)["Note"].values()] == ["a"]
    assert harbour.snapshot().commit_id == made.commit.id


def test_a_read_is_no_mutation(harbour):
    with pytest.raises(InvalidInput, match="reads"):
        harbour.mutate("query q() { match { $s: Ship } return { $s.imo } }")


def test_a_read_only_graph_is_not_changed(harbour):
    with pytest.raises(InvalidInput, match="read-only"):
        mutate(og.open(harbour.uri, "ro"), 'insert Note { text: "a" }')


# --- others at work ----------------------------------------------------------------------------


def interrupted(monkeypatch, graph, statement):
    """Let a writer on another machine change the graph between a preparation and its publish."""
    for module in (group_commit, transaction):
        monkeypatch.setattr(module, "commit_queue", lambda *_: CommitQueue())
    other = og.open(graph.uri)
    real, times = write_run.MutationExecutor.run, []

    def run(self):
        changes = real(self)
        if not times:
            times.append(1)
            monkeypatch.setattr(write_run.MutationExecutor, "run", real)
            mutate(other, statement)
        return changes

    monkeypatch.setattr(write_run.MutationExecutor, "run", run)


def test_an_insert_that_lost_a_race_is_prepared_again(harbour, monkeypatch):
    interrupted(monkeypatch, harbour, 'insert Note { text: "other" }')
    mutate(harbour, 'insert Note { text: "mine" }')
    assert sorted(r["text"] for r in read_state(harbour)["Note"].values()) == ["mine", "other"]


def test_an_insert_that_lost_its_node_is_refused(harbour, monkeypatch):
    interrupted(monkeypatch, harbour, 'delete Port where code = "CCC"')
    with pytest.raises(ValidationFailed, match="dst 'CCC' not found in Port"):
        mutate(harbour, 'insert CallsAt { from: "3", to: "CCC" }')


def test_an_update_of_an_entity_that_another_commit_changed_is_refused(harbour, monkeypatch):
    interrupted(monkeypatch, harbour, "update Ship set { draught: 9.0 } where imo = 2")
    with pytest.raises(ExpectedVersionMismatch):
        mutate(harbour, "update Ship set { draught: 1.0 } where imo = 2")
    ships = read_state(harbour)["Ship"]
    assert ships["2"]["draught"] == 9.0


def test_an_update_of_another_entity_of_the_type_is_published(harbour, monkeypatch):
    interrupted(monkeypatch, harbour, "update Ship set { draught: 9.0 } where imo = 1")
    mutate(harbour, "update Ship set { draught: 1.0 } where imo = 2")
    ships = read_state(harbour)["Ship"]
    assert (ships["1"]["draught"], ships["2"]["draught"]) == (9.0, 1.0)


def test_an_update_by_a_condition_is_refused_after_a_commit_to_its_type(harbour, monkeypatch):
    interrupted(monkeypatch, harbour, "update Ship set { draught: 9.0 } where imo = 1")
    with pytest.raises(ExpectedVersionMismatch):
        mutate(harbour, "update Ship set { draught: 1.0 } where draught < 5.0")
    assert read_state(harbour)["Ship"]["1"]["draught"] == 9.0


def test_a_delete_of_a_node_that_got_edges_meanwhile_is_refused(harbour, monkeypatch):
    interrupted(monkeypatch, harbour, 'insert CallsAt { from: "3", to: "CCC" }')
    with pytest.raises(ExpectedVersionMismatch):
        mutate(harbour, 'delete Port where code = "CCC"')
    assert "CCC" in read_state(harbour)["Port"]


def test_commits_to_other_types_do_not_matter(harbour, monkeypatch):
    interrupted(monkeypatch, harbour, 'insert Note { text: "other" }')
    made = mutate(harbour, "update Ship set { draught: 1.0 } where imo = 2")
    assert made.commit.parents == (harbour.commits.list(limit=2)[1].id,)
    assert len(read_state(harbour)["Note"]) == 1


def interrupted_after_staging(monkeypatch, graph, statement):
    """Let a writer on another machine change the graph after a large change was staged."""
    monkeypatch.setattr(transaction, "commit_queue", lambda *_: CommitQueue())
    other, real = og.open(graph.uri), transaction.stage_changes

    def stage(*arguments):
        staged = real(*arguments)
        monkeypatch.setattr(transaction, "stage_changes", real)
        mutate(other, statement)
        return staged

    monkeypatch.setattr(transaction, "stage_changes", stage)


def test_an_overwrite_of_edges_is_refused_after_a_commit_deleted_a_node(harbour, monkeypatch):
    interrupted_after_staging(monkeypatch, harbour, 'delete Port where code = "CCC"')
    with pytest.raises(ExpectedVersionMismatch):
        harbour.load({"CallsAt": [{"from": "3", "to": "CCC"}]}, mode="overwrite")
    state = read_state(harbour)
    assert "CCC" not in state["Port"]
    assert all(edge["dst"] in state["Port"] for edge in state["CallsAt"].values())


def test_an_overwrite_of_nodes_is_refused_after_a_commit_added_an_edge(harbour, monkeypatch):
    mutate(harbour, 'insert Port { code: "EEE", city: "E" }')
    interrupted_after_staging(monkeypatch, harbour, 'insert CallsAt { from: "3", to: "EEE" }')
    with pytest.raises(ExpectedVersionMismatch):
        harbour.load({"Port": PORTS}, mode="overwrite")
    state = read_state(harbour)
    assert all(edge["dst"] in state["Port"] for edge in state["CallsAt"].values())
