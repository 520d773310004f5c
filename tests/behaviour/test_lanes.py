"""Embedded or served, by one process or several: the same calls, the same answers and errors."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime

import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph.catalog.migration_steps import AddProperty, ChangeKey, DropProperty
from omnigraph.errors import AlreadyExists, InvalidInput
from omnigraph.merge.conflicts import ConflictKind
from omnigraph.merge.key_changes import KeyChangeBlocked
from omnigraph.types import PropertyType, Scalar
from omnigraph.write.violations import ValidationFailed, ViolationRule
from tests.support.deployments import ACTOR, SCHEMA, Embedded, served_lane

ADD = "query add($name: String, $age: I32?) { insert Person { name: $name, age: $age } }"
AGE = "query age($name: String, $age: I32?) { update Person set { age: $age } where name = $name }"
PEOPLE = """query people() {
  match { $p: Person }
  return { $p.name as name, $p.age as age }
  order { name }
}"""
LINES = b"".join(
    [
        b'{"type":"Person","data":{"name":"Ada","age":36,"score":1.5,"born":"1815-12-10",',
        b'"seen":"2024-01-02T03:04:05.678Z","tags":["a","b"]}}\n',
        b'{"type":"Person","data":{"name":"Bob"}}\n',
        b'{"edge":"Knows","from":"Ada","to":"Bob","data":{"since":"1833-06-05"}}\n',
    ]
)


@pytest.fixture(scope="module", params=["embedded", "http-1", "http-3"])
def lane(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("lanes")
    if request.param == "embedded":
        yield Embedded(folder)
        return
    with served_lane(folder, int(request.param[-1])) as found:
        yield found


@pytest.fixture
def graph(lane):
    return lane.graph()


@pytest.fixture
def loaded(graph):
    graph.load(LINES)
    return graph


def test_types_have_properties_and_counts(loaded):
    by_name = {one.name: one for one in loaded.types}
    person, knows = by_name["Person"], by_name["Knows"]
    assert (person.kind, person.name, person.count) == ("node", "Person", 2)
    assert next(iter(person.properties.items())) == ("name", "String")
    assert person.properties["age"] == "I32?"
    assert (knows.kind, knows.count, knows.source, knows.target) == ("edge", 1, "Person", "Person")
    assert (repr(person), repr(knows)) == ("<node Person, 2>", "<edge Knows: Person -> Person, 1>")
    branch = loaded.branch("more", create=True)
    branch.mutate(ADD, {"name": "Cy", "age": None})
    assert {one.name: one.count for one in branch.types}["Person"] == 3
    assert {one.name: one.count for one in loaded.types}["Person"] == 2
    assert "2 nodes" in loaded.types._repr_html_()


def ages(graph, at=None):
    return {row["name"]: row["age"] for row in graph.query(PEOPLE, at=at)}


def test_mutation_is_one_commit_with_its_actor_and_message(graph):
    made = graph.mutate(ADD, {"name": "Ada", "age": 36}, message="first of all")
    assert (made.name, made.branch, made.affected_nodes, made.affected_edges, made.actor) == (
        "add",
        "main",
        1,
        0,
        ACTOR,
    )
    assert graph.commits.get(made.commit.id) == made.commit
    assert graph.commits.list()[0] == made.commit
    assert (made.commit.actor, made.commit.message, made.commit.operation) == (
        ACTOR,
        "first of all",
        "mutation",
    )
    assert made.commit.counts["node:Person"].inserted == 1
    assert graph.snapshot().commit_id == made.commit.id
    nothing = graph.mutate(AGE, {"name": "Nobody", "age": 1})
    assert (nothing.commit, nothing.affected_nodes) == (None, 0)


def test_load_tells_what_it_read(graph):
    done = graph.load(LINES, message="all of it")
    assert (done.mode, done.branch, done.total) == ("merge", "main", 3)
    assert (done.nodes, done.edges) == ({"Person": 2}, {"Knows": 1})
    assert (done.commit.message, done.actor, done.branch_created) == ("all of it", ACTOR, False)


def test_keyed_edges_are_written_once_and_unkeyed_ones_are_noted(graph):
    assert graph.load(LINES).notes == ()
    again = graph.load(LINES)
    assert [note.split()[:2] for note in again.notes] == [["edge", "Knows"]]
    assert again.commit.counts["edge:Knows"].inserted == 1
    source = graph.schema.source
    keyed = source.replace("-> Person {", "-> Person @key(src, dst) {")
    with pytest.raises(ValidationFailed) as refused:
        graph.schema.apply(keyed)
    assert (refused.value.total, refused.value.totals) == (1, {"unique": 1})
    graph.mutate('query q() { delete Knows where from = "Ada" }')
    [step] = graph.schema.apply(keyed).steps
    assert (type(step), step.new.columns) == (ChangeKey, ("src", "dst"))
    assert graph.load(LINES).commit is not None
    done = graph.load(LINES)
    assert (done.commit, done.notes) == (None, ())
    made = graph.mutate('query q() { insert Knows { from: "Ada", to: "Bob" } }')
    assert made.commit.counts["edge:Knows"].updated == 1


def test_key_of_edges_that_changed_on_a_branch_is_refused_with_its_name(loaded):
    loaded.branches.create("side")
    loaded.mutate('query q() { insert Knows { from: "Bob", to: "Ada" } }', branch="side")
    keyed = loaded.schema.source.replace("-> Person {", "-> Person @key(src, dst) {")
    with pytest.raises(KeyChangeBlocked) as refused:
        loaded.schema.apply(keyed)
    assert refused.value.branches == ("side",)
    assert "merge or delete these branches first" in str(refused.value)


def test_values_of_every_type_come_back(loaded):
    found = loaded.query(
        'query all() { match { $p: Person { name: "Ada" } } return { $p.name as name,'
        " $p.age as age, $p.score as score, $p.born as born, $p.seen as seen, $p.tags as tags } }"
    )
    assert found.columns == ["name", "age", "score", "born", "seen", "tags"]
    assert found.rows == [
        {
            "name": "Ada",
            "age": 36,
            "score": 1.5,
            "born": "1815-12-10",
            "seen": "2024-01-02T03:04:05.678Z",
            "tags": ["a", "b"],
        }
    ]
    table = found.to_arrow()
    assert table.to_pylist() == [
        {
            "name": "Ada",
            "age": 36,
            "score": 1.5,
            "born": date(1815, 12, 10),
            "seen": datetime(2024, 1, 2, 3, 4, 5, 678_000, UTC),
            "tags": ["a", "b"],
        }
    ]
    assert table.schema.field("age").type == pa.int32()
    assert list(found.to_pandas()["name"]) == ["Ada"]
    assert list(found.to_polars()["age"]) == [36]
    assert found.types["age"] == PropertyType(Scalar.I32, nullable=True)
    assert (found.name, found.graph_commit_id) == ("all", loaded.snapshot().commit_id)


def test_rows_are_streamed(loaded):
    stream = loaded.stream(PEOPLE)
    assert (stream.name, stream.columns, len(stream)) == ("people", ["name", "age"], 2)
    assert list(stream) == [{"name": "Ada", "age": 36}, {"name": "Bob", "age": None}]
    again = loaded.stream(PEOPLE)
    assert again.to_reader().read_all().to_pylist() == [
        {"name": "Ada", "age": 36},
        {"name": "Bob", "age": None},
    ]


def test_query_without_rows_has_its_columns(graph):
    found = graph.query(PEOPLE)
    assert (found.columns, found.rows, found.to_arrow().num_rows) == (["name", "age"], [], 0)
    assert list(graph.stream(PEOPLE)) == []


def test_parameters_are_python_values(loaded):
    found = loaded.query(
        "query q($day: Date, $at: DateTime, $tags: [String]) {"
        " match { $p: Person  $p.born <= $day  $p.seen <= $at } return { $p.name as name } }",
        {"day": date(1900, 1, 1), "at": datetime(2025, 1, 1, tzinfo=UTC), "tags": ["x"]},
    )
    assert found.rows == [{"name": "Ada"}]


def test_bad_query_is_reported_with_every_place(graph):
    source = "query q() {\n  match { $p: Persn }\n  return { $p.name, $q.age }\n}"
    with pytest.raises(og.QueryError) as caught:
        graph.query(source)
    places = [d.span.start for d in caught.value.diagnostics]
    assert places == [source.index("Persn"), source.index("$q")]
    assert caught.value.diagnostics[0].location.endswith(":2:15")
    assert "Persn" in caught.value.diagnostics[0].render()
    assert caught.value.code == str(caught.value.diagnostics[0].code)
    assert caught.value.message == "\n\n".join(d.render() for d in caught.value.diagnostics)


def test_violations_are_reported_all_at_once(graph):
    with pytest.raises(og.ValidationFailed) as caught:
        graph.load(
            b'{"type":"Person","data":{"name":"Ada","age":"old"}}\n'
            b'{"edge":"Knows","from":"Ada","to":"Nobody"}\n{"type":"Ship","data":{}}\n'
        )
    found = caught.value.violations
    assert [(v.rule, v.source.number) for v in found] == [
        (ViolationRule.VALUE, 1),
        (ViolationRule.ENDPOINT, 2),
        (ViolationRule.UNKNOWN_TYPE, 3),
    ]
    assert (found[0].type, found[0].property, found[0].value) == ("Person", "age", "old")
    assert (caught.value.code, caught.value.category) == ("validation_failed", "invalid")
    assert caught.value.total == len(found)
    assert ages(graph) == {}


def test_append_refuses_what_exists(loaded):
    with pytest.raises(og.KeyConflict) as caught:
        loaded.load({"Person": [{"name": "Ada"}]}, mode="append")
    assert [v.id for v in caught.value.violations] == ["Ada"]
    assert caught.value.details["type_name"] == "Person"


def test_condition_on_the_head_is_kept(loaded):
    head = loaded.snapshot().commit_id
    made = loaded.mutate(AGE, {"name": "Ada", "age": 37}, if_commit=head)
    with pytest.raises(og.PreconditionFailed) as caught:
        loaded.mutate(AGE, {"name": "Ada", "age": 38}, if_commit=head)
    assert (caught.value.expected, caught.value.actual) == (head, made.commit.id)
    assert ages(loaded) == {"Ada": 37, "Bob": None}


def test_tables_and_rows_are_loaded_by_type(graph):
    people = pa.table({"name": ["Cid", "Dot"], "seen": [datetime(2024, 1, 1, tzinfo=UTC)] * 2})
    done = graph.load({"Person": people, "Knows": [{"from": "Cid", "to": "Dot"}]})
    assert (done.nodes, done.edges) == ({"Person": 2}, {"Knows": 1})
    graph.insert("Town", [{"name": "Rome"}])
    graph.load({"Person": [{"name": "Cid", "age": 4}]}, partial=True)
    found = graph.entity_at("Person", "Cid")
    assert (found["name"], found["age"]) == ("Cid", 4)
    assert found["seen"] is not None
    with pytest.raises(og.NotFound) as caught:
        graph.load({"Persn": []})
    assert caught.value.code == "unknown_type"


def test_forgiving_lines_are_loaded(graph):
    done = graph.load(
        b'{"type":"Person","data":{"name":"E"},"extra":1} {"type":"Town","data":{"name":"X"}}',
        strict=False,
    )
    assert done.nodes == {"Person": 1, "Town": 1}


def test_branches_are_made_written_and_merged(loaded):
    branch = loaded.branches.create("review/one")
    assert (branch.name, branch.parent, branch.actor) == ("review/one", "main", ACTOR)
    assert branch.fork_commit == loaded.snapshot().commit_id
    assert loaded.branches.list() == ["main", "review/one"]
    assert loaded.branches.get("review/one").name == "review/one"
    bound = loaded.branch("review/one")
    bound.mutate(AGE, {"name": "Ada", "age": 40})
    assert (ages(bound), ages(loaded)) == ({"Ada": 40, "Bob": None}, {"Ada": 36, "Bob": None})
    tried = loaded.merge("review/one", dry_run=True)
    assert (tried.commit, tried.counts["node:Person"].updated, tried.conflicts) == (None, 1, ())
    done = loaded.merge("review/one", delete_branch=True, message="looks right")
    assert (str(done.outcome), done.branch_deleted, done.actor) == ("fast_forward", True, ACTOR)
    assert ages(loaded) == {"Ada": 40, "Bob": None}
    assert loaded.branches.list() == ["main"]
    again = loaded.branch("agent", create=True)
    again.mutate(ADD, {"name": "Cid", "age": 1})
    with loaded.branch("agent", merge_into="main"):
        pass
    assert ages(loaded) == {"Ada": 40, "Bob": None, "Cid": 1}


def test_opening_a_branch_that_does_not_exist_creates_nothing(loaded):
    loaded.branches.create("review/one")
    with pytest.raises(og.NotFound) as caught:
        loaded.branch("review/one1")
    facts = caught.value.details
    assert (caught.value.code, facts["branch"]) == ("branch_not_found", "review/one1")
    assert caught.value.message == (
        "branch 'review/one1' does not exist (did you mean 'review/one'?); "
        "pass create=True or from_=… to create it"
    )
    assert loaded.branches.list() == ["main", "review/one"]
    first = loaded.snapshot().commit_id
    loaded.mutate(AGE, {"name": "Ada", "age": 1})
    assert ages(loaded.branch("old", from_=first)) == {"Ada": 36, "Bob": None}
    assert ages(loaded.branch(" new ", create=True)) == {"Ada": 1, "Bob": None}
    assert loaded.branches.list() == ["main", "new", "old", "review/one"]


def test_branch_can_begin_anywhere(loaded):
    first = loaded.snapshot().commit_id
    loaded.mutate(AGE, {"name": "Ada", "age": 1})
    loaded.tags.create("then", first)
    loaded.branches.create("old", from_=first)
    loaded.branches.create("older", from_="then")
    assert ages(loaded, "old") == ages(loaded, "older") == {"Ada": 36, "Bob": None}
    assert ages(loaded, first) == ages(loaded, "then") == {"Ada": 36, "Bob": None}
    [tag] = loaded.tags.list()
    assert (tag.name, tag.commit_id, tag.actor) == ("then", first, ACTOR)
    loaded.tags.delete("then")
    assert loaded.tags.list() == []
    assert loaded.commits.merge_base("main", "old") == (first,)


def test_conflicts_are_data(loaded):
    side = loaded.branch("side", create=True)
    side.mutate(AGE, {"name": "Ada", "age": 50})
    loaded.mutate(AGE, {"name": "Ada", "age": 60})
    with pytest.raises(og.MergeConflicts) as caught:
        loaded.merge("side")
    [conflict] = caught.value.conflicts
    assert (conflict.kind, conflict.type, conflict.id, conflict.properties) == (
        ConflictKind.DIVERGENT_UPDATE,
        "Person",
        "Ada",
        ("age",),
    )
    images = (conflict.base, conflict.source, conflict.target)
    assert [image.properties["age"] for image in images] == [36, 50, 60]
    assert caught.value.code == "merge_conflict"
    assert loaded.merge("side", dry_run=True).conflicts == (conflict,)
    loaded.merge("side", resolve="source")
    assert ages(loaded)["Ada"] == 50


def test_commits_are_undone_and_picked(loaded):
    made = loaded.mutate(AGE, {"name": "Ada", "age": 99}).commit
    loaded.branches.create("other", from_=made.parents[0])
    picked = loaded.cherry_pick(made.id, branch="other", message="this one")
    assert (picked.commit.operation, picked.commit.message) == ("cherry_pick", "this one")
    assert ages(loaded, "other")["Ada"] == 99
    undone = loaded.revert(made.id)
    assert undone.counts["node:Person"].updated == 1
    assert ages(loaded)["Ada"] == 36


def test_history_of_a_branch_is_listed(loaded):
    loaded.mutate(AGE, {"name": "Ada", "age": 1})
    loaded.mutate(AGE, {"name": "Ada", "age": 2})
    listed = loaded.commits.list()
    assert [c.operation for c in listed] == ["mutation", "mutation", "load", "init"]
    assert loaded.commits.list(limit=2) == listed[:2]
    assert [c.parents for c in listed[:3]] == [(c.id,) for c in listed[1:]]
    assert loaded.commits.get(listed[1].id) == listed[1]
    assert loaded.commits.list(actor=ACTOR) == [c for c in listed if c.actor == ACTOR] != []
    assert loaded.commits.list(actor=ACTOR, limit=1) == listed[:1]
    assert loaded.commits.list(actor="act-other") == []


def test_snapshot_shows_versions_and_schema(loaded):
    found = loaded.snapshot()
    assert (found.branch, found.schema_source) == ("main", SCHEMA)
    assert {key: (entry.version, entry.rows) for key, entry in found.entries().items()} == {
        "edge:Knows": (2, 1),
        "edge:LivesIn": (1, 0),
        "node:Person": (2, 2),
        "node:Town": (1, 0),
    }
    assert set(found.catalog.nodes) == {"Person", "Town"}
    assert ages(loaded, found) == {"Ada": 36, "Bob": None}
    assert loaded.schema.source == SCHEMA


def test_differences_are_reported(loaded):
    before = loaded.snapshot()
    loaded.mutate(AGE, {"name": "Ada", "age": 37})
    loaded.mutate(ADD, {"name": "Cid", "age": None})
    changes = list(loaded.diff(before, "main"))
    assert [(c.op, c.type, c.id, c.changed) for c in changes] == [
        ("update", "Person", "Ada", ["age"]),
        ("insert", "Person", "Cid", []),
    ]
    assert changes[0].before.properties["age"] == 36
    assert [c.id for c in loaded.diff(before, "main", ops=["insert"])] == ["Cid"]
    with pytest.raises(og.NotFound):
        list(loaded.diff("main", "nowhere"))


def test_changes_are_followed(loaded):
    first = loaded.changes.poll()
    assert (first.blocks, first.caught_up) == ((), True)
    made = loaded.mutate(AGE, {"name": "Ada", "age": 37}).commit
    page = loaded.changes.poll(cursor=first.cursor)
    [block] = page.blocks
    assert (block.commit.id, block.commit.actor, page.caught_up) == (made.id, ACTOR, True)
    [change] = block.changes
    assert (change.op, change.id, change.before.properties["age"]) == ("update", "Ada", 36)
    assert loaded.changes.poll(cursor=page.cursor).blocks == ()
    of_commit = loaded.commits.changes(made.id)
    assert of_commit.changes == block.changes
    with pytest.raises(og.CursorRejected):
        loaded.changes.poll(cursor="nonsense")
    with pytest.raises(og.CommitHasNoParent):
        loaded.commits.changes(loaded.commits.list()[-1].id)
    with pytest.raises(InvalidInput) as caught:
        loaded.changes.poll(start="now", cursor=page.cursor)
    assert caught.value.code == "feed_position_ambiguous"


def test_baseline_goes_on_from_its_state(loaded):
    baseline = loaded.changes.baseline(types=["Person"])
    lines = list(baseline.lines)
    assert len(lines) == 2
    assert baseline.snapshot_commit_id == loaded.snapshot().commit_id
    loaded.mutate(ADD, {"name": "Cid", "age": 3})
    page = loaded.changes.poll(cursor=baseline.resume_cursor, types=["Person"])
    assert [c.id for block in page.blocks for c in block.changes] == ["Cid"]


def test_export_is_loaded_again(loaded, lane):
    lines = list(loaded.export())
    other = lane.graph()
    other.load("\n".join(lines).encode())
    assert list(other.export()) == lines
    assert len(list(loaded.export(types=["Person"]))) == 2
    with pytest.raises(og.OmniError) as caught:
        list(loaded.export(types=["Persn"]))
    assert caught.value.category in ("invalid", "not_found")


def test_schema_is_planned_and_applied(loaded):
    wanted = SCHEMA.replace("age: I32?", "height: F64?")
    planned = loaded.schema.plan(wanted)
    assert [type(step) for step in planned.steps] == [AddProperty, DropProperty]
    assert planned.steps[0].property_type == PropertyType(Scalar.F64, nullable=True)
    tried = loaded.schema.apply(wanted, dry_run=True)
    assert (tried.applied, tried.plan) == (False, planned)
    done = loaded.schema.apply(wanted, message="taller")
    assert (done.applied, done.plan, done.commit.message) == (True, planned, "taller")
    assert loaded.schema.source == wanted
    assert loaded.schema.diff(done.commit.parents[0], "main") == planned
    assert "height" in loaded.schema.catalog.nodes["Person"].properties


def test_schema_that_is_wrong_or_cannot_be_reached_is_refused(loaded):
    with pytest.raises(og.SchemaError) as caught:
        loaded.schema.plan("node Person { name: Wort @key }")
    assert "Wort" in caught.value.diagnostics[0].render()
    with pytest.raises(og.SchemaChangeRefused) as caught:
        loaded.schema.apply(SCHEMA.replace("score: F64?", "score: String?"))
    assert [refusal.entity for refusal in caught.value.refusals]


def test_query_is_explained(loaded):
    plain = loaded.explain(PEOPLE)
    assert plain.name == "people"
    assert [step.operator.split()[0] for step in plain.steps][-1] == "Scan"
    ran = loaded.explain(PEOPLE, analyze=True)
    assert ran.steps[0].actual.rows == 2


def test_one_entity_is_read(loaded):
    assert loaded.entity_at("Person", "Bob")["age"] is None
    assert loaded.entity_at("Person", "Nobody") is None
    assert loaded.entity_at("Person", "Ada", loaded.commits.list()[-1].id) is None


def test_blob_is_cleared_as_one_commit(loaded):
    loaded.put_blob("Person", "Ada", "photo", b"0123")
    made = loaded.clear_blob("Person", "Ada", "photo", message="gone")
    assert (made.actor, made.message, made.counts["node:Person"].updated) == (ACTOR, "gone", 1)
    assert loaded.entity_at("Person", "Ada")["photo"] is None
    assert loaded.blob("Person", "Ada", "photo", made.parents[0]).read() == b"0123"
    with pytest.raises(og.NotFound) as caught:
        loaded.clear_blob("Person", "Zoe", "photo")
    assert caught.value.code == "entity_not_found"
    with pytest.raises(og.OmniError):
        loaded.clear_blob("Person", "Ada", "name")


def test_audit_of_recovery_is_read(loaded):
    assert loaded.recoveries() == []


def test_blobs_are_read_in_ranges(loaded):
    loaded.put_blob("Person", "Ada", "photo", b"0123456789")
    blob = loaded.blob("Person", "Ada", "photo")
    assert (blob.size, blob.uri, blob.read()) == (10, None, b"0123456789")
    assert (blob.read(3, 5), blob.read(10)) == (b"34", b"")
    with pytest.raises(InvalidInput) as caught:
        blob.read(5, 11)
    assert caught.value.code == "blob_range_not_satisfiable"
    facts = blob.to_json()
    assert facts["selector"] == {
        "entity": "node",
        "type": "Person",
        "id": "Ada",
        "property": "photo",
    }
    with pytest.raises(og.NotFound) as caught:
        loaded.blob("Person", "Bob", "photo")
    assert caught.value.code == "blob_not_found"


@pytest.mark.parametrize(
    ("call", "kind", "code"),
    [
        (lambda g: g.query(PEOPLE, at="nowhere"), og.NotFound, "target_not_found"),
        (lambda g: g.mutate(ADD, {"name": "X"}, branch="nope"), og.NotFound, "branch_not_found"),
        (lambda g: [g.branches.create("twice") for _ in "ab"], AlreadyExists, None),
        (lambda g: g.branches.delete("nope"), og.NotFound, "branch_not_found"),
        (lambda g: g.branches.create("a b"), InvalidInput, None),
        (lambda g: g.commits.get("01ARZ3NDEKTSV4RRFFQ69G5FAV"), og.NotFound, None),
        (lambda g: g.merge("main"), InvalidInput, "merge_into_itself"),
        (lambda g: g.query(ADD, {"name": "X"}), og.OmniError, None),
        (lambda g: g.load(b"", mode="replace"), InvalidInput, None),
        (lambda g: g.query(PEOPLE, name="other"), og.QueryError, None),
        (lambda g: g.mutate(ADD, {"name": 7}), og.QueryError, None),
    ],
    ids=[
        "state", "branch", "branch-exists", "branch-delete", "branch-name", "commit", "merge",
        "mutation-as-query", "mode", "query-name", "parameter",
    ],
)  # fmt: skip
def test_mistakes_are_the_same_errors(lane, shared, expected_errors, request, call, kind, code):
    with pytest.raises(kind) as caught:
        call(shared)
    assert code is None or caught.value.code == code
    name = request.node.callspec.id.removeprefix(f"{lane.name}-")
    found = (type(caught.value).__name__, caught.value.code, str(caught.value.category))
    assert expected_errors.setdefault(name, found) == found


@pytest.fixture(scope="module")
def shared(lane):
    return lane.graph()


@pytest.fixture(scope="session")
def expected_errors():
    """What the first lane raised, by case: the others raise the same."""
    return {}


def test_writers_at_the_same_time_lose_nothing(graph):
    def add(number):
        return graph.mutate(ADD, {"name": f"p{number:02}", "age": number}).commit.id

    with ThreadPoolExecutor(4) as pool:
        commits = list(pool.map(add, range(16)))
    assert len(set(commits)) == 16
    assert ages(graph) == {f"p{n:02}": n for n in range(16)}
    assert {commit.id for commit in graph.commits.list(limit=16)} == set(commits)
