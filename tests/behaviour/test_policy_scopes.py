"""Rules about types and properties: nothing leaks on any surface, nothing else is changed."""

import json
import re
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import omnigraph as og
from omnigraph.errors import InvalidInput, NotFound

SCHEMA = """
interface Paid { wage987: I64? }
node Person implements Paid {
  name: String @key
  city: String? @index
  memo987: String? @index
  vec987: Vector(2)? @embed(memo987)
  scan987: Blob?
  @range(wage987, 0..)
}
node Vault987 { code: String @key  gold: I64? }
node Event { text: String?  file: Blob? }
edge Knows: Person -> Person { since: I64?  hint987: String? }
edge Holds987: Person -> Vault987
edge Owes987: Person -> Person
edge Saw: Person -> Event
"""
MARK = "987"
"""Stands in every name and value that must not be seen."""
LINES = [
    {"type": "Person", "data": {"name": "ada", "city": "Cork", "wage987": 19870, "memo987": "m987",
                                "vec987": [9.87, 0], "scan987": "base64:OTg3"}},
    {"type": "Person", "data": {"name": "bo", "city": "Rome"}},
    {"type": "Vault987", "data": {"code": "v987", "gold": 3}},
    {"edge": "Knows", "from": "ada", "to": "bo",
     "data": {"id": "k", "since": 1, "hint987": "h987"}},
    {"edge": "Holds987", "from": "ada", "to": "v987", "data": {"id": "h987"}},
]  # fmt: skip
POLICY = """
version: 1
groups: { seers: [act-ada], keepers: [act-bo], mergers: [act-cy], root: [act-root] }
protected_branches: [main]
rules:
  - id: seers-see-some
    allow:
      actors: { group: seers }
      actions: [read, export]
      types: [Person, Knows, Holds987]
      mask: { Person: [wage987, memo987, scan987], Knows: [hint987] }
  - id: seers-act
    allow: { actors: { group: seers }, actions: [admin, schema_apply, branch_create] }
  - id: keepers-read
    allow:
      actors: { group: keepers }
      actions: [read]
      types: [Person, Knows]
      mask: { Person: [wage987] }
  - id: keepers-keep
    allow: { actors: { group: keepers }, actions: [change], types: [Person, Event] }
  - id: mergers
    allow: { actors: { group: mergers }, actions: [read, change], types: [Person, Knows] }
  - id: mergers-merge
    allow: { actors: { group: mergers }, actions: [branch_merge, schema_apply] }
  - id: root
    allow:
      actors: { group: root }
      actions: [read, export, change, branch_merge, branch_create, schema_apply]
"""
MOCK = {"kind": "mock"}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A graph with hidden things in every place, to be read only; branches wait to be merged."""
    place = tmp_path_factory.mktemp("scopes") / "g"
    made = og.init(place, SCHEMA, embedding=MOCK)
    made.load("\n".join(map(json.dumps, LINES)).encode())
    made.branches.create("draft")
    made.mutate('query m() { update Person set { wage987: 29870 } where name = "ada" }')
    made.mutate('query m() { insert Vault987 { code: "w987" } }')
    made.mutate('query m() { insert Person { name: "cy", city: "Oslo", wage987: 39870 } }')
    for name, text in {
        "people": 'insert Person { name: "dy" }',
        "vaults": 'insert Vault987 { code: "x987" }',
        "leavers": 'delete Person where name = "bo"',
    }.items():
        made.branch(name, create=True).mutate(f"query m() {{ {text} }}")
    made.branch("wider", create=True).schema.apply(SCHEMA + "node Extra987 { x: I64? }")
    return og.open(place, policy=POLICY, embedding=MOCK)


@pytest.fixture
def graph(made, tmp_path):
    """The same, to be changed."""
    shutil.copytree(made.uri, tmp_path / "g")
    return og.open(tmp_path / "g", policy=POLICY, embedding=MOCK)


def ask(text):
    return f"query q() {{ match {{ {text} }}"


# --- reading -----------------------------------------------------------------------------------

PERSON = "$p: Person"
REFUSED = {
    "type": ask("$v: Vault987") + "return { $v.code } }",
    "traversal": ask(f"{PERSON} $p holds987 $v") + "return { $v.code } }",
    "edge that is granted without its end": ask("$p holds987 $_") + "return { $p.name } }",
    "traversal backwards": ask(f"{PERSON} $_ holds987 $p") + "return { $p.name } }",
    "bound edge": ask(f"{PERSON} $p $h:holds987 $_") + "return { $h.id } }",
    "negation": ask(f"{PERSON} not {{ $p holds987 $_ }}") + "return { $p.name } }",
    "return": ask(PERSON) + "return { $p.wage987 } }",
    "filter": ask(f"{PERSON} $p.wage987 > 0") + "return { $p.name } }",
    "null test": ask(f"{PERSON} $p.wage987 is null") + "return { $p.name } }",
    "inline filter": ask("$p: Person { wage987: 19870 }") + "return { $p.name } }",
    "aggregate": ask(PERSON) + "return { sum($p.wage987) as s } }",
    "count": ask(PERSON) + "return { count($p.wage987) as s } }",
    "count of a type": ask("$v: Vault987") + "return { count($v) as s } }",
    "order": ask(PERSON) + "return { $p.name } order { $p.wage987 } }",
    "search": ask(f'{PERSON} search($p.memo987, "m987")') + "return { $p.name } }",
    "score": ask(PERSON) + 'return { bm25($p.memo987, "m987") as s } }',
    "order by score": ask(PERSON)
    + 'return { $p.name } order { bm25($p.memo987, "m987") } limit 1 }',
    "vector": ask(PERSON) + "return { $p.vec987 } }",
    "nearest": ask(PERSON) + "return { $p.name } order { nearest($p.vec987, [1, 0]) } limit 1 }",
    "path": ask(f"{PERSON} $q: Person") + "return { path_length($p, owes987, $q) as n } }",
    "undirected": ask(f"{PERSON} $p <owes987> $q") + "return { $q.name } }",
    "hops": ask(f"{PERSON} $p owes987{{1,3}} $q") + "return { $q.name } }",
    "property of an edge": ask("$p $k:knows $q") + "return { $k.hint987 } }",
    "filter on an edge": ask('$p $k:knows $q $k.hint987 = "h987"') + "return { $p.name } }",
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("how", ["query", "stream", "explain"])
def test_query_that_touches_what_is_hidden_is_refused_as_if_there_were_no_such_thing(
    made, name, how
):
    getattr(made.as_actor("act-root"), how)(REFUSED[name])
    with pytest.raises(og.QueryError) as caught:
        getattr(made.as_actor("act-ada"), how)(REFUSED[name])
    for diagnostic in caught.value.diagnostics:
        assert MARK not in (diagnostic.hint or "")


def test_query_that_touches_nothing_hidden_is_answered(made):
    ada = made.as_actor("act-ada")
    text = ask("$p: Person $p $k:knows $q") + "return { $p.name, $k.since, $q.city } }"
    assert ada.query(text).rows == [{"p.name": "ada", "k.since": 1, "q.city": "Rome"}]
    explained = ada.explain(text, analyze=True)
    assert MARK not in str(explained)


def surfaces(graph, folder):
    """Yield everything that shows data, with what it shows as text."""
    first, *_, last = reversed([commit.id for commit in graph.commits.list()])
    yield "schema", graph.schema.source
    yield "catalog", repr(graph.schema.catalog)
    snapshot = graph.snapshot()
    yield "snapshot", repr(snapshot) + repr(list(snapshot.entries()))
    yield "entity", repr(graph.entity_at("Person", "ada"))
    for type_name, id_ in (("Person", "ada"), ("Knows", "k")):
        yield "history", repr(graph.history(type_name, id_))
        yield "types", repr([(one, one.properties) for one in graph.types])
        yield "blame", repr(graph.blame(type_name, id_))
    yield "diff", [change.to_json() for change in graph.diff(first, "main")]
    yield "schema diff", repr(graph.schema.diff(first, "main"))
    yield "indexes", [status.to_json() for status in graph.indexes.status()]
    yield "export", list(graph.export())
    graph.export_parquet(folder)
    yield "parquet files", [path.name for path in folder.iterdir()]
    yield "parquet", [pq.read_table(path).to_pylist() for path in folder.iterdir()]
    for commit in graph.commits.list():
        yield "commit", repr(commit) + repr(graph.commits.get(commit.id))
        if commit.parents:
            yield "changes", repr(graph.commits.changes(commit.id))
    yield "changes of the last", repr(graph.commits.changes(last))
    page = graph.changes.poll(start="beginning")
    yield "feed", repr(page) + json.dumps(page.to_json())
    baseline = graph.changes.baseline()
    yield "baseline", list(baseline.lines)
    yield "handshake", repr(baseline.to_json())


def steady(text):
    """Leave out what chance draws and may have the mark by luck: ids, times, digests."""
    return re.sub(r"datetime\([^)]*\)|[\w-]{26,}|\d{9,}", "", str(text))


def test_no_surface_shows_what_is_hidden(made, tmp_path):
    everything = dict(surfaces(made.as_actor("act-root"), tmp_path / "all"))
    shown = list(surfaces(made.as_actor("act-ada"), tmp_path / "some"))
    leaks = [name for name, text in shown if MARK in steady(text)]
    assert not leaks
    # The mark is there for those who may see it.
    silent = {name for name, text in everything.items() if MARK not in steady(text)}
    assert silent <= {"schema diff", "changes of the last", "commit", "changes", "handshake"}


def test_changes_of_hidden_properties_and_types_are_no_changes(made):
    ada = made.as_actor("act-ada")
    blocks = ada.changes.poll(start="beginning").blocks
    reported = [[(c.op, c.type, c.id, c.after.properties) for c in b.changes] for b in blocks]
    assert reported == [
        [
            ("insert", "Person", "ada", {"city": "Cork", "name": "ada"}),
            ("insert", "Person", "bo", {"city": "Rome", "name": "bo"}),
            ("insert", "Knows", "k", {"since": 1}),
        ],
        [],
        [],
        [("insert", "Person", "cy", {"city": "Oslo", "name": "cy"})],
    ]
    assert [change.id for change in ada.diff("draft", "main")] == ["cy"]
    assert all(commit.counts == {} for commit in ada.commits.list())
    assert [len(page.changes) for page in map(ada.commits.changes, ids(ada))] == [3, 0, 0, 1]


def test_history_has_no_changes_of_hidden_properties(made):
    ada, root = made.as_actor("act-ada"), made.as_actor("act-root")
    assert [entry.op for entry in root.history("Person", "ada")] == ["update", "insert"]
    [entry] = ada.history("Person", "ada")
    assert entry.after.properties == {"city": "Cork", "name": "ada"}
    assert entry.commit == ada.commits.get(entry.commit.id)
    assert entry.commit.counts == {}
    origins = ada.blame("Person", "ada")
    assert {name: origin.commit_id for name, origin in origins.items()} == {
        "city": entry.commit.id,
        "name": entry.commit.id,
    }


def test_history_ends_where_the_type_was_not_visible(tmp_path):
    schema = "node Person { name: String @key  city: String? }"
    place = tmp_path / "g"
    graph = og.init(place, schema)
    graph.load({"Person": [{"name": "ada", "city": "Cork"}]})
    wider = "node Person { name: String @key  city: String?  wage987: I64? }"
    applied = graph.schema.apply(wider).commit
    moved = graph.mutate('query m() { update Person set { city: "Rome" } where name = "ada" }')
    policy = POLICY.replace("[wage987, memo987, scan987]", "[wage987]")
    ada = og.open(place, policy=policy, actor="act-ada")
    history = ada.history("Person", "ada")
    assert [entry.commit.id for entry in history] == [moved.commit.id]
    assert history[0].before.properties == {"city": "Cork", "name": "ada"}
    assert history.unknown_before == (applied.id,)
    origins = ada.blame("Person", "ada")
    assert origins["city"].commit_id == moved.commit.id
    assert origins["name"] == og.ValueOrigin(unknown_before=applied.id)


def ids(graph):
    return [commit.id for commit in reversed(graph.commits.list()) if commit.parents]


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (lambda g: g.entity_at("Vault987", "v987"), "unknown_type"),
        (lambda g: g.entity_at("Holds987", "h987"), "unknown_type"),
        (lambda g: g.history("Vault987", "v987"), "unknown_type"),
        (lambda g: g.blame("Holds987", "h987"), "unknown_type"),
        (lambda g: g.blob("Person", "ada", "scan987"), "unknown_property"),
        (lambda g: g.blob("Vault987", "v987", "scan987"), "unknown_type"),
        (lambda g: g.diff("draft", "main", types=["Vault987"]), "unknown_type"),
        (lambda g: g.commits.changes(ids(g)[0], types=["Vault987"]), "unknown_type"),
        (lambda g: g.changes.poll(types=["Vault987"]), "unknown_type"),
        (lambda g: g.changes.baseline(types=["Vault987"]), "unknown_type"),
        (lambda g: list(g.export(types=["Vault987"])), "unknown_type"),
    ],
)
def test_asking_for_something_hidden_is_asking_for_something_unknown(made, call, code):
    with pytest.raises((NotFound, InvalidInput)) as caught:
        call(made.as_actor("act-ada"))
    assert caught.value.code == code
    assert (
        "known names" not in caught.value.message
        or MARK not in caught.value.message.split("known names")[1]
    )


@pytest.mark.parametrize(
    "call",
    [
        lambda g: g.export_archive(Path(g.uri).parent / "a"),
        lambda g: g.export_archive(Path(g.uri).parent / "a", history=True),
        lambda g: g.verify(),
        lambda g: g.optimize(),
        lambda g: g.indexes.ensure(),
        lambda g: g.cleanup(keep=1),
        lambda g: g.schema.plan(SCHEMA),
        lambda g: g.schema.apply(SCHEMA, branch="draft"),
    ],
)
def test_what_is_about_all_types_is_refused_to_who_may_see_some(made, call):
    before = made.as_actor("act-root").snapshot().commit_id
    with pytest.raises(og.PolicyDenied, match="it is about all types"):
        call(made.as_actor("act-ada"))
    assert made.as_actor("act-root").snapshot().commit_id == before


def test_snapshot_in_hand_shows_no_more_to_somebody_else(made):
    whole = made.as_actor("act-root").snapshot()
    ada = made.as_actor("act-ada")
    part = ada.snapshot(whole)
    assert [sorted(s.entries()) for s in (part, ada.snapshot(part))] == [
        ["edge:Knows", "node:Person"]
    ] * 2
    assert made.as_actor("act-root").snapshot(part).entries() == whole.entries()


@pytest.mark.parametrize(
    ("mask", "shown"),
    [
        ("{ Person: [wage987] }", ["city", "memo987", "name", "scan987", "vec987"]),
        ("{ Person: [memo987] }", ["city", "name", "scan987", "wage987"]),
        ("{ Person: [wage_987] }", None),
        ("{ Person: [wage987, name] }", None),
    ],
    ids=["a property", "a text and its vector", "one that is not there", "a key"],
)
def test_mask_that_cannot_hide_what_it_names_hides_the_type(made, mask, shown):
    text = f"""
version: 1
groups: {{ team: [act-ada] }}
rules:
  - id: r
    allow: {{ actors: {{ group: team }}, actions: [read], types: [Person], mask: {mask} }}
"""
    ada = og.open(made.uri, policy=text, actor="act-ada")
    person = ada.schema.catalog.nodes.get("Person")
    assert (None if person is None else sorted(person.properties)) == shown


# --- changing ----------------------------------------------------------------------------------


def mutation(text):
    return lambda g: g.mutate(f"query m() {{ {text} }}", branch="draft")


def load(lines, mode="merge"):
    return lambda g: g.load(json.dumps(lines).encode(), branch="draft", mode=mode)


KEPT_OUT = {
    "insert into another type": (
        mutation('insert Vault987 { code: "x" }'),
        og.QueryError,
    ),
    "insert of an edge that may only be read": (
        mutation('insert Knows { from: "ada", to: "bo" }'),
        og.PolicyDenied,
    ),
    "update of an edge that may only be read": (
        mutation("update Knows set { since: 2 } where since = 1"),
        og.PolicyDenied,
    ),
    "update that looks for what is masked": (
        mutation('update Person set { city: "X" } where wage987 = 19870'),
        og.PolicyDenied,
    ),
    "delete that looks for what is masked": (
        mutation("delete Person where wage987 > 0"),
        og.PolicyDenied,
    ),
    "update of what may not be read": (
        mutation('update Event set { text: "x" } where text = "y"'),
        og.PolicyDenied,
    ),
    "delete of a node that may take edges with it": (
        mutation('delete Person where name = "bo"'),
        og.PolicyDenied,
    ),
    "load of another type": (
        load({"type": "Vault987", "data": {"code": "x"}}),
        og.OmniError,
    ),
    "load of an edge that may only be read": (
        load({"edge": "Knows", "from": "ada", "to": "bo"}),
        og.PolicyDenied,
    ),
    "overwrite of nodes that have edges": (
        load({"type": "Person", "data": {"name": "x"}}, "overwrite"),
        og.PolicyDenied,
    ),
    "table of another type": (
        lambda g: g.insert("Vault987", [{"code": "x"}], branch="draft"),
        og.OmniError,
    ),
    "blob of another type": (
        lambda g: g.put_blob("Vault987", "v987", "scan987", b"x", branch="draft"),
        NotFound,
    ),
    "embedding of a type of which something is masked": (
        lambda g: g.embed("Person", branch="draft", all=True),
        og.PolicyDenied,
    ),
    "blob of what may not be read": (
        lambda g: g.put_blob("Event", "e", "file", b"x", branch="draft"),
        og.PolicyDenied,
    ),
    "embedding of another type": (lambda g: g.embed("Vault987", branch="draft"), NotFound),
}


@pytest.mark.parametrize("name", KEPT_OUT)
def test_change_beyond_the_types_of_the_rules_is_refused_and_changes_nothing(graph, name):
    call, refusal = KEPT_OUT[name]
    before = list(graph.as_actor("act-root").export("draft"))
    with pytest.raises(refusal) as caught:
        call(graph.as_actor("act-bo"))
    hint = caught.value.message.partition("known names")[2]
    assert MARK not in hint
    assert list(graph.as_actor("act-root").export("draft")) == before


@pytest.mark.parametrize(
    "call",
    [
        mutation('insert Person { name: "dy", wage987: 7 }'),
        mutation('update Person set { wage987: 7 } where name = "ada"'),
        mutation('insert Event { text: "x" }'),
        load({"type": "Event", "data": {"text": "x"}}),
        load({"type": "Person", "data": {"name": "dy"}}),
        lambda g: g.put_blob("Person", "ada", "scan987", b"x", branch="draft"),
    ],
)
def test_change_within_the_types_of_the_rules_is_made(graph, call):
    made = call(graph.as_actor("act-bo"))
    assert (getattr(made, "commit", None) or made).actor == "act-bo"


@pytest.mark.parametrize("test", ['from = "ada"', 'to = "bo"', 'hint987 = "h987"'])
def test_edges_are_found_by_their_ends_and_properties(graph, test):
    change = mutation(f"update Knows set {{ since: 5 }} where {test}")
    assert change(graph.as_actor("act-cy")).affected_edges == 1


def newest(graph, branch):
    return graph.as_actor("act-root").commits.list(branch)[0].id


BRINGING = {
    "merge": lambda g, branch: g.as_actor("act-cy").merge(branch),
    "merge that is only tried": lambda g, branch: g.as_actor("act-cy").merge(branch, dry_run=True),
    "cherry-pick": lambda g, branch: g.as_actor("act-cy").cherry_pick(newest(g, branch)),
    "revert": lambda g, branch: g.as_actor("act-cy").revert(newest(g, branch), branch=branch),
}


@pytest.mark.parametrize("name", BRINGING)
@pytest.mark.parametrize("branch", ["people", "vaults", "leavers"])
def test_changes_of_other_types_are_not_brought(graph, name, branch):
    root = graph.as_actor("act-root")
    before = [list(root.export(b)) for b in ("main", branch)]
    # Who inserts nodes leaves other types alone; who deletes them may take their edges with them.
    if branch == ("leavers" if name == "revert" else "people"):
        made = BRINGING[name](graph, branch)
        assert set(made.counts) <= {"node:Person", "edge:Knows"}
        return
    with pytest.raises(og.PolicyDenied) as caught:
        BRINGING[name](graph, branch)
    assert MARK not in caught.value.message.removesuffix(f"on branch '{branch}'")
    assert [list(root.export(b)) for b in ("main", branch)] == before


@pytest.mark.parametrize("actor", ["act-ada", "act-bo"])
@pytest.mark.parametrize("branch", ["vaults", "leavers", "people", "wider"])
def test_preview_of_a_merge_does_not_name_hidden_types_to_a_reader(graph, actor, branch):
    with pytest.raises(og.PolicyDenied) as caught:
        graph.as_actor(actor).merge(branch, dry_run=True)
    assert MARK not in str(caught.value) + json.dumps(caught.value.details)


def test_schema_of_others_is_not_merged(graph):
    with pytest.raises(og.PolicyDenied, match="bring changes of the schema on branch 'main'"):
        graph.as_actor("act-cy").merge("wider")


def test_conflict_about_hidden_types_is_not_reported(graph):
    root = graph.as_actor("act-root")
    text = 'query m() {{ update Vault987 set {{ gold: {} }} where code = "v987" }}'
    root.mutate(text.format(1), branch="vaults")
    root.mutate(text.format(2))
    with pytest.raises(og.MergeConflicts):
        root.merge("vaults")
    with pytest.raises(og.PolicyDenied) as caught:
        graph.as_actor("act-cy").merge("vaults")
    assert MARK not in caught.value.message.removesuffix("on branch 'main'")


def test_schema_is_not_changed_by_who_may_see_some_types(graph):
    with pytest.raises(og.PolicyDenied, match="it is about all types"):
        graph.as_actor("act-cy").schema.apply(graph.as_actor("act-cy").schema.source)


NARROW = """
version: 1
groups: {{ team: [act-ada] }}
rules:
  - id: r
    allow: {{ actors: {{ group: team }}, actions: [read], types: [{read}] }}
  - id: c
    allow: {{ actors: {{ group: team }}, actions: [change]{change} }}
  - id: m
    allow: {{ actors: {{ group: team }}, actions: [branch_merge] }}
"""


def test_number_of_hidden_edges_is_not_reported_by_a_delete(graph):
    policy = NARROW.format(read="Person, Knows", change="")
    ada = og.open(graph.uri, policy=policy, actor="act-ada")
    with pytest.raises(og.PolicyDenied, match="change Holds987, Owes987, Saw on branch 'main'"):
        ada.mutate('query m() { delete Person where name = "ada" }')
    assert ada.mutate('query m() { delete Knows where from = "ada" }').affected_edges == 1
    assert ada.embed("Person").commit is None


@pytest.mark.parametrize(
    "call",
    [
        lambda g: g.merge("vaults"),
        lambda g: g.mutate('query m() { delete Person where name = "cy" }'),
    ],
    ids=["merge", "delete"],
)
def test_edge_type_without_its_end_is_not_seen_for_a_change_either(graph, call):
    graph.as_actor("act-root").mutate(
        'query m() { insert Holds987 { from: "bo", to: "v987" } }', branch="vaults"
    )
    names = "Person, Knows, Holds987, Owes987"
    policy = NARROW.format(read=names, change=f", types: [{names}]")
    ada = og.open(graph.uri, policy=policy, actor="act-ada")
    with pytest.raises(og.PolicyDenied, match="change types that it may not see"):
        call(ada)


def test_who_may_change_everything_and_reads_nothing_is_not_limited(graph):
    text = """
version: 1
groups: { team: [act-ada] }
rules: [{ id: r, allow: { actors: { group: team }, actions: [change] } }]
"""
    ada = og.open(graph.uri, policy=text, actor="act-ada")
    made = ada.mutate("query m() { delete Person where wage987 > 0 }")
    assert made.affected_nodes == 2
