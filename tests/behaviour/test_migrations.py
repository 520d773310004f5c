"""A schema applied to a graph with data, the same in a folder and in a bucket."""

import pytest

import omnigraph.graph as og
from omnigraph.catalog import SchemaChangeRefused
from omnigraph.changes.diff import change_json
from omnigraph.errors import InvalidInput, NotFound, OmniError, VersionReclaimed
from omnigraph.lang import SchemaError
from omnigraph.write import ValidationFailed
from tests.support.changes import read_state, reported

SCHEMA = """
node Person {
  name: String @key
  age: I32?
  size: F32?
  code: U32?
  mood: enum(good, bad)?
  nick: String?
  marks: [I32]?
  born: DateTime?
  face: Blob?
}
node Note { text: String  rank: I32? }
edge Knows: Person -> Person { since: I32?  how: String? }
"""
PEOPLE = [
    {
        "name": "ada",
        "age": 36,
        "size": 1.5,
        "code": 4_000_000_000,
        "mood": "good",
        "nick": "a",
        "marks": [1, -2],
        "born": "2020-01-01T01:02:03.004Z",
        "face": "base64:AAEC",
    },
    {"name": "bob", "age": -5, "mood": "bad", "nick": "b"},
    {"name": "cyd"},
]
NOTES = [{"id": "n1", "text": "one", "rank": 1}, {"id": "n2", "text": "two", "rank": 1}]
KNOWS = [
    {"id": "k1", "from": "ada", "to": "bob", "since": 1, "how": "x"},
    {"id": "k2", "from": "ada", "to": "cyd", "since": 1},
    {"id": "k3", "from": "bob", "to": "ada"},
]


def build(uri, options):
    graph = og.init(uri, SCHEMA, storage_options=options)
    graph.load({"Person": PEOPLE[:2], "Note": NOTES, "Knows": KNOWS[:1]})
    graph.load({"Person": PEOPLE[2:], "Knows": KNOWS[1:]})


@pytest.fixture
def graph(graph_root, templates, again):
    templates.copy("people", build, *graph_root)
    return again()


@pytest.fixture
def again(graph_root):
    """Open the graph as another process would: with nothing known."""
    return lambda: og.open(graph_root.uri, storage_options=graph_root.options)


def changed(*pairs, schema=SCHEMA):
    for old, new in pairs:
        assert old in schema, old
        schema = schema.replace(old, new)
    return schema


def column(state, type_name, name):
    return {id_: row[name] for id_, row in state[type_name].items()}


def data_files(graph):
    found = graph._manifest.objects.list("")
    return {info.path for info in found if "/data/" in info.path and not info.path.startswith("__")}


def applied(graph, text, **options):
    """Apply a schema; check what holds of every apply and return what it did."""
    commits = len(graph.commits.list())
    before = graph.snapshot()
    state = read_state(graph, before)
    done = graph.schema.apply(text, **options)
    assert done.supported
    assert done.applied
    assert len(graph.commits.list()) == commits + 1
    assert done.commit.parents == (before.commit_id,)
    assert done.commit.operation == "schema_apply"
    assert done.manifest_version == done.commit.manifest_version
    assert graph.schema.source == text
    if not options.get("allow_data_loss"):
        assert read_state(graph, before.commit_id) == state, "history must stay as it was"
    assert graph.verify().ok, graph.verify().problems
    return done


# --- steps that write no data ------------------------------------------------------------------


def with_columns(state, type_name, **columns):
    rows = {id_: {**row, **columns} for id_, row in state[type_name].items()}
    return {**state, type_name: rows}


def renamed(state, type_name, old, new):
    rows = {
        id_: {new if name == old else name: value for name, value in row.items()}
        for id_, row in state[type_name].items()
    }
    return {**state, type_name: rows}


def without(state, type_name, name):
    rows = {
        id_: {key: value for key, value in row.items() if key != name}
        for id_, row in state[type_name].items()
    }
    return {**state, type_name: rows}


FREE = {
    "add properties of every kind": (
        [
            (
                "nick: String?",
                "nick: String?  a: I64?  b: [String]?  c: Vector(3)?  d: Blob?  e: enum(x)?",
            ),
            ("how: String?", "how: String?  w: F64?"),
        ],
        lambda s: with_columns(
            with_columns(s, "Person", a=None, b=None, c=None, d=None, e=None), "Knows", w=None
        ),
    ),
    "rename a property of a node": (
        [("age: I32?", 'years: I32? @rename_from("age")')],
        lambda s: renamed(s, "Person", "age", "years"),
    ),
    "rename the key": (
        [("name: String @key", 'title: String @key @rename_from("name")')],
        lambda s: renamed(s, "Person", "name", "title"),
    ),
    "rename a blob": (
        [("face: Blob?", 'photo: Blob? @rename_from("face")')],
        lambda s: renamed(s, "Person", "face", "photo"),
    ),
    "rename a property of an edge": (
        [("since: I32?", 'from_year: I32? @rename_from("since")')],
        lambda s: renamed(s, "Knows", "since", "from_year"),
    ),
    "drop properties": (
        [("age: I32?", ""), ("how: String?", "")],
        lambda s: without(without(s, "Person", "age"), "Knows", "how"),
    ),
    "rename types": (
        [
            ("node Person", 'node Human @rename_from("Person")'),
            ("edge Knows: Person -> Person", 'edge Sees: Human -> Human @rename_from("Knows")'),
        ],
        lambda s: {"Human": s["Person"], "Note": s["Note"], "Sees": s["Knows"]},
    ),
    "drop a type": (
        [("node Note { text: String  rank: I32? }", "")],
        lambda s: {name: rows for name, rows in s.items() if name != "Note"},
    ),
    "extend an enum": ([("enum(good, bad)", "enum(good, bad, odd)")], lambda s: s),
    "open an enum": ([("enum(good, bad)?", "String?")], lambda s: s),
    "describe": ([("node Note", 'node Note @description("a note")')], lambda s: s),
    "add an index and a range": (
        [("@key", "@key @range(age, -10..)"), ("nick: String?", "nick: String? @index")],
        lambda s: s,
    ),
    "make a property optional": ([("text: String", "text: String?")], lambda s: s),
    "make a property required": ([("rank: I32?", "rank: I32")], lambda s: s),
    "add a default": ([("text: String", 'text: String @default("none")')], lambda s: s),
    "loosen and tighten": ([("-> Person", "-> Person @card(1..2)")], lambda s: s),
}


@pytest.mark.parametrize("what", FREE)
def test_a_step_that_needs_no_data_writes_none(graph, again, what):
    pairs, expected = FREE[what]
    text = changed(*pairs)
    before, files = read_state(graph), data_files(graph)
    applied(graph, text)
    assert data_files(graph) == files
    assert read_state(graph) == expected(before)
    assert read_state(again()) == expected(before)
    assert not graph.schema.apply(text).applied, "a second time there is nothing to do"


def test_a_new_type_is_empty_and_can_be_filled(graph, again):
    applied(graph, SCHEMA + "node City { name: String @key }\nedge In: Person -> City")
    assert read_state(graph)["City"] == {}
    graph.load({"City": [{"name": "rome"}], "In": [{"id": "i", "from": "ada", "to": "rome"}]})
    state = read_state(again())
    assert state["City"] == {"rome": {"name": "rome"}}
    assert state["In"] == {"i": {"src": "ada", "dst": "rome"}}


# --- steps that write a column -----------------------------------------------------------------


def test_wider_types_hold_the_same_values_and_larger_ones(graph, again):
    text = changed(
        ("age: I32?", "age: I64?"),
        ("size: F32?", "size: F64?"),
        ("code: U32?", "code: U64?"),
        ("marks: [I32]?", "marks: [I64]?"),
    )
    before, files = read_state(graph), data_files(graph)
    done = applied(graph, text)
    assert [step.kind for step in done.steps] == ["widen_property"] * 4
    assert read_state(graph) == before
    assert len(data_files(graph) - files) == 4 * 2, "one column file a fragment"
    large = {"name": "dan", "age": 2**40, "size": 1e300, "code": 2**63, "marks": [2**40]}
    graph.load({"Person": [large]})
    found = read_state(again())["Person"]
    assert {name: found["dan"][name] for name in large} == large
    assert found["ada"] == before["Person"]["ada"]
    graph.optimize()
    assert read_state(again())["Person"] == found


def test_a_required_property_with_a_default_is_filled_in(graph, again):
    text = changed(
        (
            "age: I32?",
            'age: I32?  level: I32 @default(-7)  on: Date @default("2020-02-29")\n'
            '  word: String @default("a \\"b\\"")  ok: Bool @default(true)\n'
            "  e: enum(x, y) @default(y)",
        ),
        ("since: I32?", "since: I32?  w: F32 @default(0.5)"),
    )
    expected = with_columns(
        with_columns(
            read_state(graph), "Person", level=-7, on="2020-02-29", word='a "b"', ok=True, e="y"
        ),
        "Knows",
        w=0.5,
    )
    applied(graph, text)
    assert read_state(graph) == expected
    assert read_state(again()) == expected


def test_a_default_is_what_inserts_and_loads_leave_out(graph):
    graph.schema.apply(
        changed(
            ("age: I32?", "age: I32?  level: I32 @default(3)"),
            ("since: I32?", "since: I32?  w: F32 @default(0.5)"),
        )
    )
    graph.mutate(
        'query q() { insert Person { name: "m1" } insert Person { name: "m2", level: 9 } }'
    )
    graph.mutate('query q() { insert Knows { from: "m1", to: "m2" } }')
    graph.load(
        b'{"type":"Person","data":{"name":"l1"}}\n{"type":"Person","data":{"name":"l2","level":8}}'
    )
    graph.load({"Person": [{"name": "t1", "level": None}, {"name": "t2", "level": 7}]})
    graph.load({"Person": [{"name": "t2", "nick": "t"}, {"name": "p1"}]}, partial=True)
    levels = column(read_state(graph), "Person", "level")
    assert levels == {
        **dict.fromkeys(("ada", "bob", "cyd"), 3),
        "m1": 3,
        "m2": 9,
        "l1": 3,
        "l2": 8,
        "t1": 3,
        "t2": 7,
        "p1": 3,
    }
    [weight] = [e["w"] for e in read_state(graph)["Knows"].values() if e["src"] == "m1"]
    assert weight == 0.5


def test_a_value_that_cannot_be_read_is_no_reason_for_the_default(graph):
    graph.schema.apply(changed(("age: I32?", "age: I32?  level: I32 @default(3)")))
    with pytest.raises(ValidationFailed) as refused:
        graph.load({"Person": [{"name": "x", "level": "high"}]})
    assert reported(refused.value.violations) == {("value", "Person", None, "level"): 1}


# --- names and lifetimes -----------------------------------------------------------------------


def test_names_that_change_places_keep_their_data(graph):
    """The same version of a dataset is read under names that meant something else before."""
    ages, codes = (column(read_state(graph), "Person", n) for n in ("age", "code"))
    query = "query q() { match { $p: Person } return { $p.name, $p.age } order { $p.name } }"
    assert [row["p.age"] for row in graph.query(query).rows] == [36, -5, None]
    first = changed(("age: I32?", 'old: I32? @rename_from("age")'))
    second = changed(("age: I32?", "old: I32?"), ("code: U32?", 'age: U32? @rename_from("code")'))
    graph.schema.apply(first)
    graph.schema.apply(second)
    assert [row["p.age"] for row in graph.query(query).rows] == [4_000_000_000, None, None]
    state = read_state(graph)
    assert (column(state, "Person", "old"), column(state, "Person", "age")) == (ages, codes)


def test_a_name_that_comes_back_starts_empty(graph, again):
    tagged = graph.tags.create("before")
    graph.schema.apply(changed(("age: I32?", ""), ("node Note { text: String  rank: I32? }", "")))
    graph.schema.apply(SCHEMA)
    state = read_state(again())
    assert set(column(state, "Person", "age").values()) == {None}
    assert state["Note"] == {}
    graph.load({"Person": [{"name": "ada", "age": 1}]}, partial=True)
    assert column(read_state(again()), "Person", "age") == {"ada": 1, "bob": None, "cyd": None}
    assert column(read_state(again(), tagged.name), "Person", "age")["ada"] == 36


def test_an_index_of_a_renamed_property_keeps_working(graph):
    graph.schema.apply(changed(("nick: String?", "nick: String? @index")))
    graph.indexes.ensure()
    text = changed(("nick: String?", 'alias: String? @index @rename_from("nick")'))
    graph.schema.apply(text)
    status = {(s.type_key, s.column, str(s.kind)): s for s in graph.indexes.status()}
    assert status["node:Person", "alias", "btree"].is_complete
    found = graph.query('query q() { match { $p: Person { alias: "b" } } return { $p.name } }')
    assert found.rows == [{"p.name": "bob"}]


# --- drops -------------------------------------------------------------------------------------


def test_a_hard_drop_takes_the_data_out_of_history(graph, again):
    old = graph.snapshot().commit_id
    text = changed(
        ("  face: Blob?\n", ""),
        ("since: I32?", ""),
        ("node Note { text: String  rank: I32? }", ""),
    )
    graph.schema.apply(changed(("  face: Blob?\n", "")))
    expected = without(read_state(graph), "Knows", "since")
    del expected["Note"]
    before = data_files(graph)
    done = applied(graph, text, allow_data_loss=True)
    assert {step.mode for step in done.steps} == {"hard"}
    assert read_state(graph) == read_state(again()) == expected
    for read in (
        lambda g: g.query("query q() { match { $n: Note } return { $n.text } }", at=old).rows,
        lambda g: g.entity_at("Note", "n1", at=old),
        lambda g: g.entity_at("Knows", "k1", at=old),
    ):
        with pytest.raises(VersionReclaimed):
            read(again())
    assert again().entity_at("Person", "ada", at=old)["age"] == 36, "what was not dropped stays"
    left = {path for path in before & data_files(graph) if path.startswith("edges/")}
    assert left == set()


def test_a_hard_drop_reaches_what_other_readers_of_lance_see(graph, again):
    """Upkeep shows main as the HEAD of its datasets; nothing of the old one is left."""
    graph.optimize()
    before = data_files(graph)
    applied(graph, changed(("rank: I32?", ""), ("how: String?", "")), allow_data_loss=True)
    for table_key, entry in graph.snapshot().entries().items():
        kind = table_key.partition(":")[0]
        path = f"{kind}s/{entry.type_id:016x}-{entry.incarnation:016x}"
        names = graph._manifest.datasets.open(path).schema.names
        assert not {"rank", "how"} & set(names)
    left = before & data_files(graph)
    people = graph.snapshot().entry("node:Person")
    assert {path.split("/")[1] for path in left} == {
        f"{people.type_id:016x}-{people.incarnation:016x}"
    }
    graph.optimize()
    graph.load({"Note": [{"id": "n3", "text": "three"}]})
    assert set(read_state(again())["Note"]) == {"n1", "n2", "n3"}


def test_a_hard_drop_of_a_property_of_an_empty_type_is_fine(graph_root):
    graph = og.init(
        graph_root.uri, "node A { x: I32?  y: I32? }", storage_options=graph_root.options
    )
    applied(graph, "node A { y: I32? }", allow_data_loss=True)
    graph.load({"A": [{"id": "a", "y": 1}]})
    assert read_state(graph) == {"A": {"a": {"y": 1}}}


def test_a_hard_drop_leaves_other_branches_and_tags_alone(graph):
    first, before = graph.snapshot().commit_id, read_state(graph)
    graph.tags.create("kept")
    graph.load({"Note": [{"id": "n3", "text": "three"}]})
    graph.load({"Note": [{"id": "n3", "text": "four"}]})
    graph.branches.create("side")
    applied(
        graph.branch("side", create=True),
        changed(("node Note { text: String  rank: I32? }", "")),
        allow_data_loss=True,
    )
    assert read_state(graph, first) == before, "main can still look back"


def test_a_hard_drop_on_main_leaves_what_others_show(graph):
    graph.branches.create("side")
    graph.tags.create("kept")
    before = read_state(graph)
    graph.load({"Note": [{"id": "n3", "text": "three"}]})
    applied(graph, changed(("node Note { text: String  rank: I32? }", "")), allow_data_loss=True)
    assert read_state(graph, "side") == before
    assert read_state(graph, "kept") == before


def test_a_hard_drop_leaves_what_open_proposals_show(graph, again):
    graph.branches.create("side")
    graph.load({"Note": [{"id": "n3", "text": "three"}]}, branch="side")
    graph.proposals.create("side", "main", title="A note")
    graph.load({"Note": [{"id": "n4", "text": "four"}]})
    graph.branches.delete("side")
    applied(graph, changed(("rank: I32?", "")), allow_data_loss=True)
    assert [change.id for change in again().proposals.get(1).diff()] == ["n3"]


def test_a_hard_drop_beside_blobs_is_refused_and_changes_nothing(graph):
    before, head = read_state(graph), graph.snapshot().commit_id
    with pytest.raises(InvalidInput) as refused:
        graph.schema.apply(changed(("age: I32?", "")), allow_data_loss=True)
    assert refused.value.code == "hard_drop_unsupported"
    assert read_state(graph) == before
    assert graph.snapshot().commit_id == head


# --- refusals ----------------------------------------------------------------------------------


def test_all_changes_that_cannot_be_made_are_reported_and_nothing_changes(graph):
    before, head = read_state(graph), graph.snapshot()
    text = changed(
        ("age: I32?", "age: String?  must: I32"),
        ("text: String", "text: String @key"),
        ("how: ", "how_: "),
    )
    with pytest.raises(SchemaChangeRefused) as refused:
        graph.schema.apply(text)
    assert [(r.entity, r.code) for r in refused.value.refusals] == [
        ("node:Note.text", None),
        ("node:Person.age", "OG-MF-106"),
        ("node:Person.must", "OG-MF-103"),
    ]
    assert refused.value.code == "schema_change_unsupported"
    assert [s["kind"] for s in refused.value.details["steps"]] == ["unsupported_change"] * 3
    assert graph.snapshot() == head
    assert read_state(graph) == before


def test_a_broken_text_is_refused(graph):
    with pytest.raises(SchemaError):
        graph.schema.apply("node A { x: I32? @key }")


VIOLATED = {
    "null in what becomes required": (
        [("age: I32?", "age: I32"), ("nick: String?", "nick: String")],
        {
            ("required", "Person", "cyd", "age"): 1,
            ("required", "Person", "cyd", "nick"): 1,
        },
    ),
    "a value twice in what becomes unique": (
        [("rank: I32?", "rank: I32? @unique")],
        {("unique", "Note", "n2", "rank"): 1},
    ),
    "a tuple twice": (
        [("how: String?", "how: String? @unique(src, since)")],
        {("unique", "Knows", "k2", "since"): 1},
    ),
    "a new property that is the same everywhere": (
        [("rank: I32?", "rank: I32?  n: I32 @default(1) @unique")],
        {("unique", "Note", "n2", "n"): 1},
    ),
    "values outside of a range": (
        [("@key", "@key @range(age, 0..30)")],
        {("range", "Person", "ada", "age"): 1, ("range", "Person", "bob", "age"): 1},
    ),
    "text that does not match": (
        [("@key", '@key @check(nick, "^a$")')],
        {("check", "Person", "bob", "nick"): 1},
    ),
    "under the name it has afterwards": (
        [("age: I32?", 'years: I64? @rename_from("age") @range(years, 0..)')],
        {("range", "Person", "bob", "years"): 1},
    ),
    "too many edges": (
        [("-> Person", "-> Person @card(0..1)")],
        {("cardinality", "Knows", "ada", None): 1},
    ),
    "too few edges": (
        [("-> Person", "-> Person @card(2..)")],
        {("cardinality", "Knows", "bob", None): 1},
    ),
}


@pytest.mark.parametrize("what", VIOLATED)
def test_entities_that_break_a_new_rule_are_reported_and_nothing_changes(graph, what):
    pairs, expected = VIOLATED[what]
    before, head = read_state(graph), graph.snapshot()
    files = data_files(graph)
    for dry_run in (True, False):
        with pytest.raises(ValidationFailed) as refused:
            graph.schema.apply(changed(*pairs), dry_run=dry_run)
        assert reported(refused.value.violations) == expected
    assert graph.snapshot() == head
    assert read_state(graph) == before
    assert data_files(graph) == files


def test_a_dry_run_checks_and_changes_nothing(graph):
    head, objects = graph.snapshot(), list(graph._manifest.objects.list(""))
    tried = graph.schema.apply(
        changed(("age: I32?", "age: I64?  n: I32 @default(1)")), dry_run=True
    )
    assert (tried.supported, tried.applied, tried.commit) == (True, False, None)
    assert [step.kind for step in tried.steps] == ["widen_property", "add_property"]
    assert graph.snapshot() == head
    assert list(graph._manifest.objects.list("")) == objects


def test_a_graph_opened_for_reading_refuses(graph, graph_root):
    reader = og.open(graph_root.uri, "ro", storage_options=graph_root.options)
    with pytest.raises(InvalidInput):
        reader.schema.apply(SCHEMA + "node X { }")


# --- branches ----------------------------------------------------------------------------------


def test_branches_with_different_schemas_are_each_read_right(graph, again):
    graph.branches.create("side")
    before = read_state(graph)
    done = graph.schema.apply(
        changed(("age: I32?", 'years: I64? @rename_from("age")')), branch="side"
    )
    assert (done.branch, done.commit.branch) == ("side", "side")
    graph.schema.apply(changed(("age: I32?", "age: I32?  extra: String?")))
    graph.mutate('query q() { insert Person { name: "s", years: 5000000000 } }', branch="side")
    graph.mutate('query q() { insert Person { name: "m", extra: "e" } }')
    other = again()
    side, main = read_state(other, "side")["Person"], read_state(other)["Person"]
    assert (side["s"]["years"], side["ada"]["years"]) == (5_000_000_000, 36)
    assert (main["m"]["extra"], main["ada"]["age"], main["ada"]["extra"]) == ("e", 36, None)
    assert set(side) == {*before["Person"], "s"}
    assert set(main) == {*before["Person"], "m"}
    assert graph.verify().ok
    with pytest.raises(OmniError):
        graph.mutate('query q() { insert Person { name: "x", years: 1 } }')


def test_the_schema_of_a_branch_that_does_not_exist_cannot_change(graph):
    with pytest.raises(NotFound):
        graph.schema.apply(SCHEMA + "node X { }", branch="nowhere")


def test_steps_between_two_states_can_be_listed(graph):
    old = graph.snapshot().commit_id
    graph.schema.apply(changed(("age: I32?", 'years: I32? @rename_from("age")')))
    assert [s.describe() for s in graph.schema.diff(old, "main").steps] == [
        "rename property node Person.age -> years"
    ]
    assert graph.schema.diff("main", "main").steps == ()


def test_a_difference_back_to_before_a_wider_type_is_exact(graph_root):
    schema = "node T { k: String @key  n: I32?  f: F32?  l: [I32]? }"
    graph = og.init(graph_root.uri, schema, storage_options=graph_root.options)
    ids = ["big", "close", "far", "list"]
    graph.load({"T": [{"k": id_, "n": 1, "f": 0.5, "l": [1]} for id_ in [*ids, "same"]]})
    old = graph.snapshot().commit_id
    graph.schema.apply(schema.replace("32", "64"))
    changes = [("n", 2**40), ("f", 0.5000000001), ("f", 1e300), ("l", [2**40])]
    for id_, (name, value) in zip(ids, changes, strict=True):
        graph.load({"T": [{"k": id_, "n": 1, "f": 0.5, "l": [1], name: value}]}, mode="merge")
    there = [(c.id, c.before, c.after) for c in graph.diff(old, "main")]
    back = [(c.id, c.after, c.before) for c in graph.diff("main", old)]
    assert [id_ for id_, _, _ in there] == ids
    assert back == there


def test_a_new_property_with_a_default_changes_no_entity(graph_root):
    schema = "node T { k: String @key  n: I32? }"
    graph = og.init(graph_root.uri, schema, storage_options=graph_root.options)
    graph.load({"T": [{"k": "a", "n": 1}, {"k": "b", "n": 2}, {"k": "c"}]})
    old = graph.snapshot().commit_id
    graph.schema.apply(schema.replace("n: I32?", 'n: I32?  d: String @default("x")'))
    assert list(graph.diff(old, "main")) == []
    graph.mutate('query q() { update T set { n: 3 } where k = "a" }')
    graph.mutate('query q() { update T set { d: "y" } where k = "b" }')
    changes = {c.id: (c.before.properties, c.after.properties) for c in graph.diff(old, "main")}
    assert changes == {
        "a": ({"k": "a", "n": 1}, {"k": "a", "n": 3, "d": "x"}),
        "b": ({"k": "b", "n": 2}, {"k": "b", "n": 2, "d": "y"}),
    }


def test_a_deleted_entity_has_the_version_of_its_own_type(graph_root):
    schema = "node T { k: String @key }"
    graph = og.init(graph_root.uri, schema, storage_options=graph_root.options)
    for k in "abc":
        graph.load({"T": [{"k": k}]})
    old = graph.snapshot()
    graph.schema.apply("node U { k: String @key }")
    graph.schema.apply(schema)
    graph.load({"T": [{"k": "a"}]})
    new = graph.snapshot()
    versions = {old.entry("node:T").version, new.entry("node:T").version}
    assert len(versions) == 2
    listed = [change_json(change, old, new) for change in graph.diff(old, new)]
    assert {(c["op"], c["published_dataset_version"]) for c in listed} == {
        ("delete", old.entry("node:T").version),
        ("insert", new.entry("node:T").version),
    }
