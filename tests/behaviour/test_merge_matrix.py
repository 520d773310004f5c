"""Every change of a schema against every other, and against changes of entities.

The first table holds the schemas alone, without storage: each pair either gives the schema with
both changes, in which everything keeps its identity, or a conflict, whichever side is merged. The
second merges branches of a graph. With `MERGE_MATRIX` set, all pairs are merged there, too.
"""

import copy
import functools
import itertools
import json
import os
from dataclasses import replace

import pytest

import omnigraph.graph as og
from omnigraph.catalog import (
    TimeOrderedAllocator,
    TypeKind,
    load_catalog,
    read_catalog,
    resolve_schema,
)
from omnigraph.commit.graph_creation import schema_hash
from omnigraph.errors import InvalidInput
from omnigraph.lang import Code, report_for_text
from omnigraph.merge.schema_merge import SchemaConflicts, merge_schemas


def prop(name, type_, **annotations):
    return {"name": name, "type": type_, "annotations": annotations}


def type_(kind, name, /, **props):
    made = {k: prop(k, t) for k, t in props.items()}
    return {
        "kind": kind,
        "name": name,
        "annotations": {},
        "props": made,
        "rules": {},
        "implements": [],
    }


def base():
    person = type_(
        "node",
        "Person",
        name="String",
        age="I32?",
        nick="String?",
        grade="enum(a, b)?",
        code="String",
    )
    person["props"]["name"]["annotations"]["key"] = ""
    person["props"]["code"]["annotations"]["default"] = '("x")'
    person["implements"] = ["Named"]
    person["rules"] = {
        "range age": ("range", ["age"], ", 0..200"),
        "check nick": ("check", ["nick"], ', "^[a-z]*$"'),
        "index code": ("index", ["code"], ""),
    }
    team = type_("node", "Team", name="String", size="I32?")
    team["props"]["name"]["annotations"]["key"] = ""
    knows = type_("edge", "Knows", since="I32?") | {"src": "Person", "dst": "Person", "card": ""}
    within = type_("edge", "In") | {"src": "Person", "dst": "Team", "card": ""}
    types = {"Named": type_("interface", "Named", label="String?"), "Person": person}
    return types | {"Team": team, "Knows": knows, "In": within}


def text(types):
    """Return a schema; what is not named as its key was renamed."""

    def hint(key, thing):
        return "" if thing["name"] == key or thing.get("new") else f' @rename_from("{key}")'

    def notes(thing):
        return "".join(f" @{word}{value}" for word, value in thing["annotations"].items())

    lines = []
    for key, one in types.items():
        head = f"{one['kind']} {one['name']}"
        if one["kind"] == "edge":
            head += f": {types[one['src']]['name']} -> {types[one['dst']]['name']}{one['card']}"
        head += notes(one) + hint(key, one)
        if one["implements"]:
            head += " implements " + ", ".join(types[i]["name"] for i in one["implements"])
        body = [f"{p['name']}: {p['type']}{notes(p)}{hint(k, p)}" for k, p in one["props"].items()]
        for word, columns, rest in one["rules"].values():
            names = ", ".join(one["props"][c]["name"] for c in columns)
            body.append(f"@{word}({names}{rest})")
        lines.append(head + " {\n  " + "\n  ".join(body) + "\n}")
    return "\n".join(lines) + "\n"


# --- changes -----------------------------------------------------------------------------------


def sets(*path_and_value):
    *path, last, value = path_and_value

    def change(types):
        for step in path:
            types = types[step]
        types[last] = value

    return change


def drops(*path):
    def change(types):
        for step in path[:-1]:
            types = types[step]
        types.pop(path[-1], None)

    return change


def both(*changes):
    def change(types):
        for one in changes:
            one(types)

    return change


def new(thing):
    return thing | {"new": True}


AGE = ("Person", "props", "age")
ADD_EMAIL = sets("Person", "props", "email", new(prop("email", "String?")))
CHANGES = {
    "nothing": both(),
    # a property
    "drop age": both(drops(*AGE), drops("Person", "rules", "range age")),
    "age to years": sets(*AGE, "name", "years"),
    "age to yrs": sets(*AGE, "name", "yrs"),
    "widen age": sets(*AGE, "type", "I64?"),
    "require age": sets(*AGE, "type", "I32"),
    "describe age": sets(*AGE, "annotations", "description", '("in years")'),
    "describe age otherwise": sets(*AGE, "annotations", "description", '("since birth")'),
    "unique age": sets("Person", "rules", "unique", ("unique", ["age"], "")),
    "index age": sets(*AGE, "annotations", "index", ""),
    "range to 100": sets("Person", "rules", "range age", ("range", ["age"], ", 0..100")),
    "range to 150": sets("Person", "rules", "range age", ("range", ["age"], ", 0..150")),
    "drop range": drops("Person", "rules", "range age"),
    "add years": sets("Person", "props", "yearsB", new(prop("years", "I32?"))),
    "add email": ADD_EMAIL,
    "unique nick and code": sets("Person", "rules", "two", ("unique", ["nick", "code"], "")),
    "drop nick": both(drops("Person", "props", "nick"), drops("Person", "rules", "check nick")),
    "drop check": drops("Person", "rules", "check nick"),
    "other check": sets("Person", "rules", "check nick", ("check", ["nick"], ', "^[a-y]*$"')),
    "third check": sets("Person", "rules", "check nick", ("check", ["nick"], ', "^[a-x]*$"')),
    "extend grade by c": sets("Person", "props", "grade", "type", "enum(a, b, c)?"),
    "extend grade by d": sets("Person", "props", "grade", "type", "enum(a, b, d)?"),
    "grade to String": sets("Person", "props", "grade", "type", "String?"),
    "default y": sets("Person", "props", "code", "annotations", "default", '("y")'),
    "default z": sets("Person", "props", "code", "annotations", "default", '("z")'),
    "drop index": drops("Person", "rules", "index code"),
    # types
    "drop Team": both(drops("Team"), drops("In")),
    "Team to Club": sets("Team", "name", "Club"),
    "Team to Crew": sets("Team", "name", "Crew"),
    "describe Team": sets("Team", "annotations", "description", '("of people")'),
    "drop size": drops("Team", "props", "size"),
    "add Club": sets("ClubB", new(type_("node", "Club", title="String?"))),
    "add Leads": sets(
        "Leads", new(type_("edge", "Leads") | {"src": "Person", "dst": "Team", "card": ""})
    ),
    "drop In": drops("In"),
    "In to Within": sets("In", "name", "Within"),
    "In to Inside": sets("In", "name", "Inside"),
    "In at most one": sets("In", "card", " @card(0..1)"),
    "In at most two": sets("In", "card", " @card(0..2)"),
    "add WITHIN": sets(
        "WITHIN", new(type_("edge", "WITHIN") | {"src": "Team", "dst": "Team", "card": ""})
    ),
    "since to start": sets("Knows", "props", "since", "name", "start"),
    "drop since": drops("Knows", "props", "since"),
    "key Knows": sets("Knows", "annotations", "key", "(src, dst)"),
    # interfaces
    "extend Named": sets("Named", "props", "alias", new(prop("alias", "String?"))),
    "add Robot": sets(
        "Robot", new(type_("node", "Robot", model="String?") | {"implements": ["Named"]})
    ),
}
DROP_AGE = "age to years, age to yrs, widen age, require age, describe age, unique age, index age"
CLASHES = {
    "drop age": f"{DROP_AGE}, describe age otherwise, range to 100, range to 150",
    "age to years": "age to yrs, add years",
    "widen age": "require age",
    "describe age": "describe age otherwise",
    "range to 100": "range to 150, drop range",
    "range to 150": "drop range",
    "drop nick": "unique nick and code, other check, third check",
    "drop check": "other check, third check",
    "other check": "third check",
    "extend grade by c": "extend grade by d, grade to String",
    "extend grade by d": "grade to String",
    "default y": "default z",
    "drop Team": "Team to Club, Team to Crew, describe Team, drop size, add Leads, add WITHIN, "
    "In to Within, In to Inside, In at most one, In at most two",
    "Team to Club": "Team to Crew, add Club",
    "drop In": "In to Within, In to Inside, In at most one, In at most two",
    "In to Within": "In to Inside, add WITHIN",
    "In at most one": "In at most two",
    "since to start": "drop since",
    "extend Named": "add Robot",
}
# What is added on both sides has two identities.
TWICE = {
    "add years",
    "add email",
    "add Club",
    "add Leads",
    "add WITHIN",
    "extend Named",
    "add Robot",
}


def clashes(one, other):
    if one == other:
        return one in TWICE
    listed = CLASHES.get(one, "").split(", ") + CLASHES.get(other, "").split(", ")
    return one in listed or other in listed


WHOLE = "MERGE_MATRIX" in os.environ
ABOUT_TYPES = list(CHANGES).index("drop Team")
ABOUT_INTERFACES = list(CHANGES).index("extend Named")


def related(one, other):
    """Return whether two changes may concern the same thing."""
    first, second = (list(CHANGES).index(name) for name in (one, other))
    return not 0 < first < ABOUT_TYPES <= second < ABOUT_INTERFACES


PAIRS = [
    pair for pair in itertools.combinations_with_replacement(CHANGES, 2) if WHOLE or related(*pair)
]


def changed(*names):
    types = base()
    for name in dict.fromkeys(names):
        CHANGES[name](types)
    return text(types)


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    made = og.init(tmp_path_factory.mktemp("matrix") / "graph", text(base()))
    people = [
        {"name": "Ada", "age": 36, "nick": "a", "grade": "a", "code": "k", "label": "L"},
        {"name": "Bob", "age": 7, "nick": "b", "grade": "b", "code": "l"},
    ]
    made.load({"Person": people, "Team": [{"name": "Red", "size": 2}, {"name": "Blue"}]})
    made.load(
        {
            "Knows": [{"id": "k", "from": "Ada", "to": "Bob", "since": 1}],
            "In": [{"id": "i", "from": "Ada", "to": "Red"}],
        }
    )
    return made


@pytest.fixture(scope="module")
def sides(graph):
    start = graph.snapshot()
    made = {}
    for name, _ in itertools.product(CHANGES, range(2)):
        source = changed(name)
        report = report_for_text(source, "<schema>", Code.SCHEMA_UNREADABLE)
        accepted = resolve_schema(
            read_catalog(report), start.schema, allocator=TimeOrderedAllocator(), report=report
        )
        assert not report.errors
        head = replace(start.head, schema_hash=schema_hash(accepted, source))
        side = replace(start, schema=accepted, schema_source=source, head=head)
        made.setdefault(name, []).append(side)
    return start, made


def verdict(start, one, other):
    try:
        return merge_schemas([start], one, other), []
    except SchemaConflicts as error:
        return None, sorted((str(c.kind), c.type) for c in error.conflicts)


def identities(schema):
    """Return every identity with the name it has."""
    types = {t.id: (t.kind, t.name) for t in schema.types}
    return types | {i: (t.id, n) for t in schema.types for n, i in t.property_ids.items()}


def test_every_pair_of_schema_changes(sides):
    start, made = sides
    wrong = []
    for one, other in PAIRS:
        ours, theirs = made[one][0], made[other][1]
        if one == "nothing":
            ours = start
        results = [verdict(start, *pair) for pair in ((ours, theirs), (theirs, ours))]
        merged = [result for result, _ in results]
        kinds = [{kind for kind, _ in conflicts} for _, conflicts in results]
        if clashes(one, other):
            if kinds != [{"schema_conflict"}] * 2 or results[0][1] != results[1][1]:
                wrong.append((one, other, results))
            continue
        if None in merged:
            wrong.append((one, other, results))
            continue
        wanted = _facts(changed(one, other))
        named = [identities(m.accepted) for m in merged]
        kept = identities(ours.schema) | identities(theirs.schema)
        wrong += [
            (one, other, result.text)
            for result in merged
            if _facts(result.text) != wanted or _declared(result.accepted.catalog) != wanted
        ]
        if named[0] != named[1] or not set(named[0]) <= set(kept):
            wrong.append((one, other, named))
    assert wrong == []


@functools.cache
def _facts(source):
    return _declared(load_catalog(source))


def _declared(catalog):
    """Return what a catalog declares, without rename hints."""
    return [
        (
            type(d).__name__,
            d.name,
            {
                n: (p.type, p.annotations, p.shorthands, p.satisfies)
                for n, p in sorted(d.properties.items())
            },
            *(getattr(d, field, None) for field in ("constraints", "src", "dst", "cardinality")),
            getattr(d, "annotations", None),
        )
        for d in catalog.definitions()
    ]


# --- against changes of entities ---------------------------------------------------------------

STATE = {
    "Person": {
        "Ada": {"name": "Ada", "age": 36, "nick": "a", "grade": "a", "code": "k", "label": "L"},
        "Bob": {"name": "Bob", "age": 7, "nick": "b", "grade": "b", "code": "l", "label": None},
    },
    "Team": {"Red": {"name": "Red", "size": 2}, "Blue": {"name": "Blue", "size": None}},
    "Knows": {"k": {"from": "Ada", "to": "Bob", "since": 1}},
    "In": {"i": {"from": "Ada", "to": "Red"}},
}
EVE = {"name": "Eve", "age": 36, "nick": None, "grade": None, "code": "k", "label": None}
DATA = {
    "set age": sets("Person", "Ada", "age", 150),
    "clear age": sets("Person", "Ada", "age", None),
    "set nick": sets("Person", "Ada", "nick", "z"),
    "insert person": sets("Person", "Eve", EVE),
    "insert person without age": sets("Person", "Eve", EVE | {"age": None}),
    "delete person": both(drops("Person", "Bob"), drops("Knows", "k")),
    "insert team": sets("Team", "Green", {"name": "Green", "size": 3}),
    "resize team": sets("Team", "Red", "size", 9),
    "delete team": drops("Team", "Blue"),
    "insert in": sets("In", "j", {"from": "Ada", "to": "Blue"}),
    "delete in": drops("In", "i"),
    "set since": sets("Knows", "k", "since", 5),
}
SCHEMA, VALUE = "schema_conflict", "value_constraint_violation"
CELLS = {
    "drop age": {
        "set age": SCHEMA,
        "clear age": None,
        "set nick": None,
        "insert person": SCHEMA,
        "insert person without age": None,
        "delete person": None,
    },
    "age to years": {"set age": None, "insert person": None, "delete person": None},
    "widen age": {"set age": None, "insert person": None},
    "require age": {"clear age": VALUE, "insert person without age": VALUE, "set age": None},
    "range to 100": {"set age": VALUE, "insert person": None},
    "unique age": {"insert person": "unique_violation", "set age": None},
    "other check": {"set nick": VALUE},
    "drop check": {"set nick": None},
    "default y": {"insert person": None},
    "add email": {"insert person": None, "set age": None},
    "extend Named": {"insert person": None},
    "drop Team": {
        "insert team": SCHEMA,
        "resize team": SCHEMA,
        "delete team": SCHEMA,
        "insert in": SCHEMA,
        "delete in": SCHEMA,
        "set age": None,
    },
    "Team to Club": {"insert team": None, "resize team": None, "insert in": None},
    "drop size": {"insert team": SCHEMA, "resize team": SCHEMA, "delete team": None},
    "drop In": {"insert in": SCHEMA, "delete in": SCHEMA, "insert team": None},
    "In to Within": {"insert in": None, "delete in": None},
    "In at most one": {"insert in": "cardinality_violation", "delete in": None},
    "since to start": {"set since": None},
    "drop since": {"set since": SCHEMA, "delete person": None},
    "key Knows": {"set since": SCHEMA, "delete person": SCHEMA, "insert person": None},
}


def write(graph, branch, name):
    """Make a change of entities, as mutations would."""
    wanted = copy.deepcopy(STATE)
    DATA[name](wanted)
    for key, entities in STATE.items():
        gone = entities.keys() - wanted[key].keys()
        edge = "from" in next(iter(entities.values()))
        for id_ in gone:
            graph.mutate(f'query m() {{ delete {key} where id = "{id_}" }}', branch=branch)
        changed_ = {i: e for i, e in wanted[key].items() if e != entities.get(i)}
        rows = [({"id": i} if edge else {}) | e for i, e in changed_.items()]
        if rows:
            graph.load({key: rows}, branch=branch)


def expected(schema_name, data_name=None):
    """Return the entities that both changes together give."""
    types, state = base(), copy.deepcopy(STATE)
    CHANGES[schema_name](types)
    if data_name is not None:
        DATA[data_name](state)
    found = {}
    for key, one in types.items():
        if one["kind"] == "interface":
            continue
        inherited = [p for i in one["implements"] for p in types[i]["props"].items()]
        props = {k: p["name"] for k, p in [*one["props"].items(), *inherited]}
        props |= {"from": "from", "to": "to"} if one["kind"] == "edge" else {}
        keyed = one["kind"] == "edge" and "key" in one["annotations"]
        found[one["name"]] = {
            edge_id(entity) if keyed else id_: {name: entity.get(k) for k, name in props.items()}
            for id_, entity in state.get(key, {}).items()
        }
    return found


def edge_id(entity):
    """Return the id of an edge whose key is its ends."""
    return json.dumps([entity["from"], entity["to"]], separators=(",", ":"))


def shown(graph, at):
    found = {}
    for line in graph.export(at):
        record = json.loads(line)
        data = dict(record["data"])
        id_ = data.pop("id")
        ends = {k: record[k] for k in ("from", "to") if k in record}
        found.setdefault(record.get("type") or record["edge"], {})[id_] = data | ends
    return found


@pytest.fixture
def branches(graph):
    made = [f"{side}-{next(COUNTER)}" for side in ("one", "other")]
    for name in made:
        graph.branches.create(name)
    yield made
    for name in made:
        graph.branches.delete(name)


COUNTER = itertools.count()


def kinds_of(graph, source, into):
    return {str(c.kind) for c in graph.merge(source, into=into, dry_run=True).conflicts}


@pytest.mark.parametrize(
    ("schema_name", "data_name", "kind"),
    [(s, d, kind) for s, row in CELLS.items() for d, kind in row.items()],
)
def test_a_schema_change_against_a_change_of_entities(
    graph, branches, schema_name, data_name, kind
):
    one, other = branches
    graph.schema.apply(changed(schema_name), branch=one)
    write(graph, other, data_name)
    wanted = set() if kind is None else {kind}
    assert kinds_of(graph, one, other) == kinds_of(graph, other, one) == wanted
    if kind is None:
        graph.merge(other, into=one)
        entities = {k: v for k, v in expected(schema_name, data_name).items() if v}
        assert shown(graph, one) == entities


@pytest.mark.parametrize(("first", "second"), PAIRS if WHOLE else [])
def test_every_pair_in_storage(graph, branches, first, second):
    one, other = branches
    for name, branch in ((first, one), (second, other)):
        if name != "nothing":
            graph.schema.apply(changed(name), branch=branch)
    # Edges with new ids on both sides are edges of two incarnations.
    both_keyed = first == second == "key Knows"
    wanted = {SCHEMA} if clashes(first, second) or both_keyed else set()
    assert kinds_of(graph, one, other) == kinds_of(graph, other, one) == wanted
    if not wanted:
        graph.merge(one, into=other)
        assert shown(graph, other).keys() <= {
            t.name
            for k in (TypeKind.NODE, TypeKind.EDGE)
            for t in graph.snapshot(other).schema.of_kind(k)
        }


def test_a_dropped_property_does_not_come_back_under_a_new_name(graph, branches):
    one, other = branches
    graph.schema.apply(changed("drop age"), branch=one, allow_data_loss=True)
    graph.schema.apply(changed("age to years"), branch=other)
    for source, into in ((one, other), (other, one)):
        [conflict] = graph.merge(source, into=into, dry_run=True).conflicts
        message = "Person: one side dropped age, the other renamed it to years"
        assert (str(conflict.kind), conflict.message) == (SCHEMA, message)


def test_all_conflicts_are_listed(graph, branches):
    one, other = branches
    for branch, name, nick in ((one, "age to years", "p"), (other, "age to yrs", "q")):
        graph.load({"Person": [STATE["Person"]["Ada"] | {"nick": nick}]}, branch=branch)
        graph.load({"Team": [{"name": "Red", "size": ord(nick)}]}, branch=branch)
        graph.schema.apply(changed(name), branch=branch)
    found = graph.merge(one, into=other, dry_run=True).conflicts
    assert [(str(c.kind), c.type, c.id, c.properties) for c in found] == [
        (SCHEMA, "Person", None, ()),
        ("divergent_update", "Person", "Ada", ("nick",)),
        ("divergent_update", "Team", "Red", ("size",)),
    ]


def test_entities_that_conflict_are_listed_beside_those_that_break_new_rules(graph, branches):
    one, other = branches
    graph.schema.apply(changed("range to 100"), branch=one)
    graph.load({"Team": [{"name": "Red", "size": 3}]}, branch=one)
    graph.load({"Team": [{"name": "Red", "size": 4}]}, branch=other)
    graph.load({"Person": [EVE | {"age": 101}]}, branch=other)
    found = graph.merge(one, into=other, dry_run=True).conflicts
    assert [(str(c.kind), c.type, c.id) for c in found] == [
        ("divergent_update", "Team", "Red"),
        (VALUE, "Person", "Eve"),
    ]


def test_entities_the_source_corrected_before_it_added_a_rule_break_no_rule(graph, branches):
    one, other = branches
    graph.load({"Person": [EVE | {"age": 180}]}, branch=one)
    graph.merge(one, into=other)
    graph.load({"Person": [EVE | {"age": 80}]}, branch=one)
    graph.schema.apply(changed("range to 100"), branch=one)
    graph.load({"Team": [{"name": "Green"}]}, branch=other)
    assert graph.merge(one, into=other).conflicts == ()
    assert shown(graph, other)["Person"]["Eve"]["age"] == 80


def test_values_that_do_not_fit_the_type_here_are_refused_by_name(graph, branches):
    one, other = branches
    wide = base()
    CHANGES["widen age"](wide)
    CHANGES["drop range"](wide)
    graph.schema.apply(text(wide), branch=one)
    commit = graph.load({"Person": [STATE["Person"]["Ada"] | {"age": 2**40}]}, branch=one).commit
    with pytest.raises(InvalidInput, match=r"Person\.age: 1 value does not fit I32") as caught:
        graph.cherry_pick(commit.id, branch=other)
    assert caught.value.code == "type_mismatch"
