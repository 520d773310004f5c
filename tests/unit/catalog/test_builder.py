"""Reading a schema into a catalog: what is refused and where, and what the rest means."""

import pytest

from omnigraph.catalog import (
    Annotation,
    Cardinality,
    Catalog,
    Check,
    Embed,
    Index,
    Key,
    Range,
    Unique,
    build_catalog,
    load_catalog,
    read_catalog,
)
from omnigraph.lang import Code, DiagnosticReport, SchemaError, SourceText, report_for_text
from omnigraph.lang.schema_tree import (
    AnnotationArgument,
    AnnotationDecl,
    ArgumentKind,
    NodeDecl,
    PropertyDecl,
    SchemaTree,
)
from omnigraph.lang.source import Name, TypeExpr
from omnigraph.types import PropertyType, Scalar
from tests.support.catalogs import HARBOUR, marked, places, read, refused, sound, warned

# Each « marks a place where one diagnostic of the given code is expected, and nowhere else.
REFUSED = [
    # types and names
    ("S101", "node A {}\nnode «A { x: I32 }", "duplicate node type `A`"),
    ("S101", "node A {} edge E: A -> A\n  edge «E: A -> A", "duplicate edge type `E`"),
    ("S101", "interface I {}\ninterface «I {}", "duplicate interface `I`"),
    ("S102", "node A {}\nedge Sees: A -> A\nedge «SEES: A -> A", "edge name collision after case"),
    ("S103", "node Port {}\nedge E: «Prot -> Port", "edge E connects unknown node type `Prot`"),
    ("S103", "node Port {}\nedge E: Port -> «Prot", "edge E connects unknown node type `Prot`"),
    ("S103", "edge E: «A -> «A", "edge E connects unknown node type `A`"),
    ("S103", "interface I {} node A {}\nedge E: A -> «I", "unknown node type `I`"),
    ("S104", "node A implements «I {}", "node A implements unknown interface `I`"),
    ("S104", "interface I {} node A implements I, «J, «K {}", "unknown interface"),
    ("S105", "interface I { a: I32 «a: String }", "duplicate property `a` on interface I"),
    ("S105", "node A {\n a: I32\n «a: I32\n}", "duplicate property `a` on node A"),
    ("S105", "node A {} edge E: A -> A { a: I32 «a: I32 }", "duplicate property `a` on edge E"),
    ("S106", "node A { «id: String }", "every node and edge has a system property `id`"),
    ("S106", "interface I { «id: I64 }", "`id` is reserved"),
    ("S106", "node A {} edge E: A -> A { «id: String «src: I32 «dst: I32 }", "is reserved"),
    # interfaces
    ("S107", "interface I { p: I32 } node A implements I { «p: I64 }", "property A.p is I64, but"),
    ("S107", "interface I { p: I32 } node A implements I { «p: I32? }", "declares it as I32"),
    ("S107", "interface I { p: [I32] } node A implements I { «p: I32 }", "declares it as [I32]"),
    ("S107", "interface I { p: enum(a) } node A implements I { «p: enum(b, a) }", "enum(a, b)"),
    ("S107", "interface I { p: Vector(3) } node A implements I { «p: Vector(4) }", "Vector(3)"),
    (
        "S108",
        "interface I { p: I32 } interface J { p: I64 } node A implements I, «J {}",
        "interfaces I and J give A.p incompatible property semantics",
    ),
    (
        "S108",
        "interface I { p: I32 @index } interface J { p: I32 } node A implements I, «J {}",
        "incompatible property semantics",
    ),
    (
        "S108",
        'interface I { p: I32 @unit("m") } interface J { p: I32 } node A implements I, «J {}',
        "incompatible property semantics",
    ),
    (
        "S108",
        "interface I { t: String v: Vector(2) @embed(t) } interface J { v: Vector(2) }\n"
        "node A implements I, «J {}",
        "incompatible property semantics",
    ),
    # annotations and constraints that stand in the wrong place
    ("S201", "node A {} edge E: A -> A { x: I32 «@key }", "@key is not supported on edge property"),
    (
        "S201",
        "node A {} edge E: A -> A { t: String v: Vector(2) «@embed(t) }",
        "@embed is not supported on edge property E.v",
    ),
    (
        "S201",
        'node A { x: I32 «@instruction("count") }',
        "@instruction is only supported on node and edge types",
    ),
    ("S201", "node A «@key {}", "@key is only supported on node properties or as body constraint"),
    ("S201", "node A «@unique «@index «@embed {}", "only supported on node properties or as body"),
    ("S201", "node A {} edge E: A -> A «@key «@unique «@index «@embed", "not supported on edges"),
    ("S213", "node A {} edge E: A -> A { x: I32 «@key(x) }", "does not start with `src, dst`"),
    ("S201", "node A {} edge E: A -> A { «@range(w, 0..1) w: I32 }", "@range is not supported on"),
    (
        "S201",
        'node A {} edge E: A -> A { s: String «@check(s, "a") }',
        "@check is not supported on",
    ),
    # keys
    ("S202", "node A { x: String @key «y: String @key }", "node A has multiple @key constraints"),
    ("S202", "node A { x: I32 @key y: I32 «@key(y) }", "multiple @key"),
    ("S202", "node A { x: I32 y: I32 @key(y) «@key(x) }", "multiple @key"),
    ("S202", "node A { x: I32 @key «@key(x) }", "multiple @key"),
    (
        "S202",
        "interface I { k: I32 @key } node A implements I { «x: I32 @key }",
        "multiple @key",
    ),
    ("S203", "node A { «x: I32? @key }", "key property A.x cannot be nullable"),
    ("S203", "node A { x: I32 y: I32? @key(x, «y) }", "key property A.y cannot be nullable"),
    ("S203", "interface I { k: I32? @key } node A implements «I {}", "key property A.k cannot be"),
    # kinds of property a constraint does not fit
    ("S204", "node A { p: [I32] «@key }", "@key is not supported on list property A.p"),
    ("S204", "node A { p: [String] «@unique }", "@unique is not supported on list property A.p"),
    ("S204", "node A { p: [I32] «@index }", "@index is not supported on list property A.p"),
    ("S204", "node A { p: Vector(2) «@key }", "@key is not supported on vector property A.p"),
    ("S204", "node A { p: Vector(2) «@unique }", "@unique is not supported on vector property A.p"),
    ("S204", "node A { p: Blob «@key }", "@key is not supported on blob property A.p"),
    ("S204", "node A { p: Blob «@unique }", "@unique is not supported on blob property A.p"),
    ("S204", "node A { p: Blob «@index }", "@index is not supported on blob property A.p"),
    ("S204", "node A {} edge E: A -> A { p: Blob «@index }", "on blob property E.p"),
    ("S204", "interface I { p: [I32] «@index }", "@index is not supported on list property I.p"),
    ("S204", "node A { p: [I32] @key(«p) }", "@key is not supported on list property A.p"),
    ("S204", "node A { p: Vector(2) @key(«p) }", "@key is not supported on vector property A.p"),
    ("S204", "node A { p: Blob @key(«p) }", "@key is not supported on blob property A.p"),
    ("S204", "node A { tags: [String] @unique(«tags) }", "not supported on list property A.tags"),
    ("S204", "node A { p: Vector(2) @unique(«p) }", "not supported on vector property A.p"),
    ("S204", "node A { p: [I32] @index(«p) }", "@index is not supported on list property A.p"),
    ("S204", "node A { p: Blob @unique(«p) @index(«p) }", "not supported on blob property A.p"),
    (
        "S204",
        "node A { p: Vector(2) q: I32 @index(«p, q) }",
        "not supported on vector property A.p",
    ),
    ("S204", "node A { @key(«id) }", "@key cannot name the system property A.id"),
    # unknown properties
    ("S205", "node A { x: I32 @key(«y) }", "constraint names unknown property `y` of node A"),
    ("S205", "node A { x: I32 @unique(x, «y) @index(«z) }", "unknown property"),
    ("S205", "node A { @range(«x, 0..1) }", "unknown property `x`"),
    ("S205", 'node A { @check(«x, "a") }', "unknown property `x`"),
    ("S205", "node A { @unique(«src) }", "unknown property `src` of node A"),
    (
        "S205",
        "node A {} edge E: A -> A { @unique(«from, «to) }",
        "unknown property `from` of edge E",
    ),
    # annotations
    ("S206", "node A { x: I32 @key «@key }", "@key is given more than once"),
    ("S206", "node A { x: I32 @unique «@unique @index «@index }", "is given more than once"),
    ("S206", 'node A @description("a") «@description("b") {}', "@description is given more than"),
    (
        "S206",
        'node A { x: I32 @rename_from("y") «@rename_from("y") }',
        "@rename_from is given more",
    ),
    ("S206", "node A { x: I32 «@key(5) }", "@key takes property names"),
    ("S206", 'node A { x: I32 «@unique("x") }', "@unique takes property names"),
    ("S206", "node A { x: I32 «@index(x, 1..2) }", "@index takes property names"),
    (
        "S206",
        "node A { x: I32 «@range(x) «@range(0..1) «@range(x, x) }",
        "@range takes a property and",
    ),
    (
        "S206",
        "node A { s: String «@check(s) «@check(s, 5) }",
        "@check takes a property and a pattern",
    ),
    ("S206", "node A «@description {}", "@description needs one non-blank string"),
    ("S206", 'node A «@description(" ") {}', "@description needs one non-blank string"),
    ("S206", "node A «@instruction(text) {}", "@instruction needs one non-blank string"),
    ("S206", 'node A { x: I32 «@description("a", by="b") }', "@description needs one non-blank"),
    ("S206", "interface I { x: I32 «@description(5) }", "@description needs one non-blank string"),
    ("S206", "node A «@rename_from {}", "@rename_from needs exactly one non-blank name"),
    ("S206", 'node A { x: I32 «@rename_from("") }', "@rename_from needs exactly one"),
    ("S206", 'interface I { x: I32 «@rename_from("y", as="x") }', "@rename_from needs exactly one"),
    ("S206", 'node A @unit("m", by="a", «by="b") {}', "argument `by=` is given twice in @unit"),
    # @embed
    (
        "S207",
        "node A { t: String v: I32 «@embed(t) }",
        "@embed is not supported on I32 property A.v",
    ),
    (
        "S207",
        "node A { t: String v: [F32] «@embed(t) }",
        "@embed is not supported on list property",
    ),
    ("S207", "node A { t: String v: Blob «@embed(t) }", "@embed is not supported on blob property"),
    (
        "S207",
        "node A { v: Vector(2) «@embed }",
        "@embed on A.v needs the name of a String property",
    ),
    ("S207", 'node A { v: Vector(2) «@embed(" ") }', "needs the name of a String property"),
    (
        "S207",
        "node A { «v: Vector(2) @embed(t) }",
        "@embed on A.v names unknown source property `t`",
    ),
    ("S207", "node A { t: I32 «v: Vector(2) @embed(t) }", "needs a String source, A.t is I32"),
    ("S207", "node A { t: [String] «v: Vector(2) @embed(t) }", "A.t is [String]"),
    (
        "S207",
        'node A { v: Vector(4) @embed(title, model="m1", «dims="4") title: String }',
        "unknown argument `dims=` in @embed",
    ),
    (
        "S207",
        "interface I { v: Vector(2) @embed(t) } node A implements «I {}",
        "@embed on A.v names unknown source property `t`",
    ),
    # values
    ("S208", "node A { s: String «@range(s, 0..1) }", "@range needs a number, A.s is String"),
    ("S208", "node A { d: Date «@range(d, 0..) }", "@range needs a number, A.d is Date"),
    (
        "S208",
        "node A { x: [I32] «@range(x, 0..1) }",
        "@range is not supported on list property A.x",
    ),
    ("S208", "node A { x: F64 «@range(x, 2..1.5) }", "@range on A.x is empty: 2 is above 1.5"),
    ("S209", 'node A { x: I32 «@check(x, "a") }', "@check needs a String, A.x is I32"),
    ("S209", 'node A { x: [String] «@check(x, "a") }', "@check is not supported on list property"),
    ("S209", 'node A { x: String «@check(x, "(") }', "@check on A.x has an invalid pattern"),
    ("S210", "node A {} edge E: A -> A «@card(3..2)", "@card minimum 3 exceeds maximum 2"),
    ("S211", "node A { x: «[Blob] }", "list of Blob is not supported"),
    ("S211", "node A { x: enum(a, b, «a) }", "enum value `a` is given twice"),
    ("S212", "node A { x: I32? «@default(1) }", "a I32? is null unless it is given"),
    ("S212", "node A { x: [I32] «@default(1) }", "a [I32] cannot have one"),
    ("S212", "node A { x: Vector(2) «@default(1) }", "a Vector(2) cannot have one"),
    ("S212", "node A { x: I32 «@default }", "it takes exactly one value"),
    ("S212", "node A { x: I32 «@default(1, of=2) }", "it takes exactly one value"),
    ("S212", "node A { x: I32 «@default(1.5) }", "expected integer number, got '1.5'"),
    ("S212", "node A { x: U32 «@default(-1) }", "U32"),
    ("S212", 'node A { x: F64 «@default("x") }', "expected number, got 'x'"),
    ("S212", "node A { x: Bool «@default(1) }", "expected true or false, got '1'"),
    ("S212", "node A { x: enum(a, b) «@default(c) }", "expected one of a, b, got 'c'"),
    ("S212", 'node A { x: Date «@default("soon") }', "Date"),
    ("S211", "node A {} edge E: A -> A { x: enum(a, «a, «a)? }", "enum value `a` is given twice"),
]


@pytest.mark.parametrize(("code", "text", "fragment"), REFUSED, ids=lambda value: value[:40])
def test_refused_schema_names_code_place_and_reason(code, text, fragment):
    plain, marks = marked(text)
    found = refused(plain)
    assert places(found) == [f"{code} {mark}" for mark in marks]
    assert any(fragment in d.message for d in found), [d.message for d in found]


def test_every_code_of_the_catalog_is_refused_somewhere():
    ours = {str(code) for code in Code if "S100" < code < "S300"}
    assert ours == {code for code, _, _ in REFUSED}


@pytest.mark.parametrize(
    "name",
    ["_rowid", "_rowaddr", "_rowoffset", "_row_created_at_version", "_row_last_updated_at_version"],
)
@pytest.mark.parametrize("owner", ["interface A", "node A", "node B {} edge A: B -> B"])
def test_storage_names_are_reserved_everywhere_for_ever(name, owner):
    plain, marks = marked(f"{owner} {{ «{name}: I32 }}")
    for persisted in (False, True):
        _, report = read(plain, persisted=persisted)
        assert places(report.errors) == [f"S106 {marks[0]}"]
        assert report.errors[0].message == f"property name `{name}` is reserved by the storage"


@pytest.mark.parametrize("name", ["_row_id", "_rowdy", "type", "from", "to", "src", "dst", "ids"])
def test_similar_names_are_free_on_nodes(name):
    assert list(sound(f"node A {{ {name}: I32 }}").nodes["A"].properties) == [name]


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("node Port {} edge E: Prot -> Port", "did you mean `Port`?"),
        (
            "interface I {} node A {} edge E: A -> I",
            "an interface cannot be an endpoint; name a node",
        ),
        ("interface Labelled {} node A implements Labeled {}", "did you mean `Labelled`?"),
        ("node A { city: String @index(cty) }", "did you mean `city`?"),
        ("node A {} edge E: A -> A { @index(from) }", "the endpoint is called `src` here"),
        ("node A {} edge E: A -> A { @index(to) }", "the endpoint is called `dst` here"),
        ("node A { title: String v: Vector(2) @embed(titel) }", "did you mean `title`?"),
        ("node A { x: I32? @key }", "declare it as `x: I32`"),
        ("node A { x: I32 @key y: I32 @key }", "write one `@key(a, b)` over all key properties"),
        ("node A { id: I64 }", "give it another name, e.g. `slug` for a key of your own"),
        ("node A {} edge E: A -> A { src: I64 }", None),
        ("node A { x: I32 @range(x) }", "write `@range(age, 0..120)`"),
        ("node A { t: String v: I32 @embed(t) }", "put it on a `Vector(n)` property"),
        (
            "interface I { p: I32 } interface J { p: I64 } node A implements I, J {}",
            "declare `p` on A itself",
        ),
    ],
)
def test_refusal_shows_the_way_out(text, hint):
    (found,) = refused(text)
    if hint is None:
        assert found.hint is None
    else:
        assert hint in found.hint


def test_every_mistake_is_reported_in_one_run_in_the_order_of_the_text():
    text, marks = marked(
        "node A implements «Nope {\n  «x: I32? @key\n  y: String «@range(y, 0..1)\n}\n"
        "edge E: A -> «B «@card(2..1)\nnode «A {}\n"
    )
    codes = ["S104", "S203", "S208", "S103", "S210", "S101"]
    assert places(refused(text)) == [f"{c} {m}" for c, m in zip(codes, marks, strict=True)]


def test_a_property_without_usable_type_is_reported_once():
    (found,) = refused("node A { x: [Blob] @index }")
    assert found.code is Code.TYPE_INVALID


def test_a_shorthand_with_a_value_is_refused_in_trees_made_by_hand():
    value = AnnotationArgument(ArgumentKind.STRING, "x")
    annotation = AnnotationDecl(Name("unique"), value)
    property_ = PropertyDecl(Name("x"), TypeExpr("I32"), (annotation,))
    report = DiagnosticReport(SourceText(""))
    catalog = build_catalog(SchemaTree((NodeDecl(Name("A"), members=(property_,)),)), report)
    assert [str(d) for d in report.errors] == ["S206: @unique takes no value here"]
    assert catalog.nodes["A"].constraints == ()


# --- what schemas mean -------------------------------------------------------------------------


def test_the_harbour_schema_means_what_it_says():
    catalog = sound(HARBOUR)
    ship = catalog.nodes["Ship"]
    assert list(catalog.nodes) == ["Ship", "Port", "Note"]
    assert {name: str(p.type) for name, p in ship.properties.items()} == {
        "imo": "I64",
        "kind": "enum(ferry, tanker, tug)",
        "flags": "[String]?",
        "draught": "F32?",
        "built": "Date?",
        "label": "String",
    }
    assert ship.key == ("imo",)
    assert set(ship.constraints) == {Key(("imo",)), Index(("label",)), Range("draught", 0, 30.5)}
    assert ship.interfaces == ("Labelled",)
    assert ship.annotations == (Annotation("description", "a vessel"),)
    assert catalog.nodes["Port"].constraints == (Check("code", "^[A-Z]{3}$"), Key(("code",)))
    assert catalog.nodes["Note"].key == ()
    calls = catalog.edges["CallsAt"]
    assert (calls.src, calls.dst, calls.cardinality) == ("Ship", "Port", Cardinality(0, 2))


def test_injected_properties_follow_the_own_ones_and_remember_where_they_come_from():
    node = sound("interface I { b: I32 a: I32 } node A implements I { z: I32 a: I32 }").nodes["A"]
    assert list(node.properties) == ["z", "a", "b"]
    assert [(p.declared_directly, p.satisfies) for p in node.properties.values()] == [
        (True, ()),
        (True, ("I",)),
        (False, ("I",)),
    ]


def test_a_property_two_interfaces_agree_on_is_injected_once():
    text = (
        "interface J { p: I32 @index } interface I { p: I32 @index } node A implements J, I, J {}"
    )
    node = sound(text).nodes["A"]
    assert node.interfaces == ("I", "J")
    assert node.properties["p"].satisfies == ("I", "J")
    assert node.constraints == (Index(("p",)),)


def test_an_own_declaration_settles_what_interfaces_disagree_on():
    text = "interface I { p: I32 @index } interface J { p: I32 } node A implements I, J { p: I32 }"
    node = sound(text).nodes["A"]
    assert node.constraints == ()
    assert node.properties["p"].satisfies == ("I", "J")


@pytest.mark.parametrize(("body", "key"), [("{ k: String }", ()), ("{}", ("k",))])
def test_an_own_declaration_does_not_inherit_the_key(body, key):
    catalog = sound(f"interface I {{ k: String @key }} node A implements I {body}")
    assert catalog.nodes["A"].key == key


def test_injected_annotations_and_embeds_come_along():
    text = (
        'interface I { v: Vector(2) @embed(t, model="m") @description("d") }\n'
        "node A implements I { t: enum(a, b) }"
    )
    injected = sound(text).nodes["A"].properties["v"]
    assert injected.embed == Embed("t", "m")
    assert injected.annotations == (Annotation("description", "d"),)


def test_an_interface_keeps_its_shorthands():
    catalog = sound("interface I { k: I32 @unique @key @index }")
    assert catalog.interfaces["I"].properties["k"].shorthands == ("index", "key", "unique")


@pytest.mark.parametrize("source", ["@embed(title)", '@embed("title")'])
def test_embed_names_its_source_with_or_without_quotes(source):
    node = sound(f"node A {{ v: Vector(4) {source}  title: String }}").nodes["A"]
    assert node.properties["v"].embed == Embed("title")


def test_constraints_may_name_injected_and_system_properties():
    text = (
        "interface I { s: String n: I32 }\n"
        'node A implements I { @unique(s, id) @check(s, "x") @range(n, ..5) @index(id) }\n'
        "edge E: A -> A { @unique(src, dst) @index(id) @index(src) }"
    )
    catalog = sound(text)
    assert set(catalog.nodes["A"].constraints) == {
        Unique(("id", "s")),
        Check("s", "x"),
        Range("n", None, 5),
        Index(("id",)),
    }
    assert set(catalog.edges["E"].constraints) == {
        Unique(("dst", "src")),
        Index(("id",)),
        Index(("src",)),
    }


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("a: I32 @unique b: I32", "a: I32 b: I32 @unique(a)"),
        ("a: I32 b: I32 @unique(a, b)", "a: I32 b: I32 @unique(b, a)"),
        (
            "a: I32 b: I32 @unique(a, b, a) @index(b) @index(b)",
            "a: I32 b: I32 @index @unique(a, b)",
        ),
        ("a: F32 b: I32 @range(a, 0..1)", "a: F32 b: I32 @range(a, 0.0..1.0)"),
        ("a: F32 b: I32 @range(a, -0.0..)", "a: F32 b: I32 @range(a, 0..)"),
    ],
)
def test_spellings_of_one_constraint_are_equal(one, other):
    nodes = [sound(f"node A {{ {body} }}").nodes["A"] for body in (one, other)]
    assert nodes[0] == nodes[1]


def test_text_after_a_type_that_looks_like_a_constraint_is_one():
    node = sound("node A { x: I32 y: I32 @unique(x) }").nodes["A"]
    assert node.constraints == (Unique(("x",)),)


def test_a_vector_can_be_indexed():
    node = sound("node A { v: Vector(2) @index w: Vector(2) @index(w) }").nodes["A"]
    assert node.constraints == (Index(("v",)), Index(("w",)))


def test_large_whole_bounds_stay_what_they_are():
    node = sound(f"node A {{ x: F64 @range(x, {2**53}.0..{2**63}) }}").nodes["A"]
    (range_,) = node.constraints
    assert (repr(range_.minimum), repr(range_.maximum)) == (repr(2.0**53), repr(2.0**63))


def test_unknown_annotations_are_carried_everywhere():
    text = (
        'node A @color("red", b=2, a=true) @plain { x: I32 @unit(m) @plain @plain }\n'
        "edge E: A -> A @plain(1.5)\n"
        "interface I { y: I32 @unit(-3) }"
    )
    catalog = sound(text)
    assert catalog.nodes["A"].annotations == (
        Annotation("color", "red", (("a", "true"), ("b", "2"))),
        Annotation("plain"),
    )
    assert catalog.nodes["A"].properties["x"].annotations == (
        Annotation("plain"),
        Annotation("unit", "m"),
    )
    assert catalog.edges["E"].annotations == (Annotation("plain", "1.5"),)
    assert catalog.interfaces["I"].properties["y"].annotations == (Annotation("unit", "-3"),)


def test_descriptions_and_instructions_are_annotations_of_types():
    text = 'node A @instruction("i") @description("d") { x: I32 @description("p") }'
    node = sound(text).nodes["A"]
    assert node.annotations == (Annotation("description", "d"), Annotation("instruction", "i"))
    assert node.properties["x"].annotations == (Annotation("description", "p"),)


def test_rename_hints_are_kept_apart_from_annotations():
    text = (
        'interface I { a: I32 @rename_from("b") }\n'
        'node N @rename_from("M") implements I { x: I32 @rename_from(y) }\n'
        'edge E: N -> N @rename_from("F")'
    )
    catalog = sound(text)
    node = catalog.nodes["N"]
    assert (node.rename_from, node.annotations) == ("M", ())
    assert {name: p.rename_from for name, p in node.properties.items()} == {"x": "y", "a": "b"}
    assert catalog.edges["E"].rename_from == "F"


@pytest.mark.parametrize("order", ["I, J", "J, I"])
def test_an_injected_property_takes_the_hint_of_whichever_interface_gives_one(order):
    text = (
        f'interface I {{ a: I32 }} interface J {{ a: I32 @rename_from("b") }} '
        f"node A implements {order} {{}} node B implements {order} {{ a: I32 }}"
    )
    catalog = sound(text)
    assert catalog.nodes["A"].properties["a"].rename_from == "b"
    assert catalog.nodes["B"].properties["a"].rename_from is None


@pytest.mark.parametrize(
    ("written", "cardinality", "text"),
    [
        ("", Cardinality(0, None), "0.."),
        ("@card(1..)", Cardinality(1, None), "1.."),
        ("@card(2..2)", Cardinality(2, 2), "2..2"),
    ],
)
def test_cardinality_is_unlimited_unless_said(written, cardinality, text):
    edge = sound(f"node A {{}} edge E: A -> A {written}").edges["E"]
    assert edge.cardinality == cardinality
    assert str(edge.cardinality) == text


def test_the_three_kinds_have_separate_namespaces():
    catalog = sound("interface T {} node T implements T {} edge T: T -> T")
    assert [d.name for d in catalog.definitions()] == ["T", "T", "T"]


def test_enum_values_are_a_set():
    catalog = sound("node A { s: enum(b, a)? }")
    expected = PropertyType(Scalar.STRING, nullable=True, enum_values=("a", "b"))
    assert catalog.nodes["A"].properties["s"].type == expected


def test_edges_are_found_whatever_the_case():
    catalog = sound("node A {} edge WorksAt: A -> A edge B: A -> A")
    assert catalog.edge("worksat") is catalog.edges["WorksAt"]
    assert catalog.edge("WorksAt") is catalog.edges["WorksAt"]
    assert catalog.edge("nope") is None


def test_incident_edges_are_listed_by_name():
    catalog = sound("node A {} node B {} edge Z: A -> B edge C: B -> A edge D: B -> B")
    assert [edge.name for edge in catalog.incident_edges("A")] == ["C", "Z"]


def test_lookup_knows_the_system_property():
    catalog = sound("node A { x: I32 } edge E: A -> A { y: I32 }")
    for type_, own in ((catalog.nodes["A"], "x"), (catalog.edges["E"], "y")):
        assert type_.lookup(own) is type_.properties[own]
        assert str(type_.lookup("id").type) == "String"
        assert type_.lookup("nope") is None


# --- reading -----------------------------------------------------------------------------------


def test_load_raises_with_every_problem():
    with pytest.raises(SchemaError) as refusal:
        load_catalog("node A { x: I32? @key y: [Blob] }", "my.pg")
    assert [d.location for d in refusal.value.diagnostics] == ["my.pg:1:10", "my.pg:1:26"]
    assert refusal.value.code == "S203"


def test_load_returns_the_catalog():
    assert load_catalog("node A { x: I32 @key }").nodes["A"].key == ("x",)


def test_text_that_cannot_be_read_gives_an_empty_catalog():
    report = report_for_text("node {", "x.pg", Code.SCHEMA_UNREADABLE)
    assert read_catalog(report) == Catalog()
    assert [d.code for d in report.errors] == [Code.SCHEMA_SYNTAX]


# --- schemas accepted before -------------------------------------------------------------------

YOUNGER_RULES = [
    ("S106", "node A { «id: String }"),
    ("S106", "node A {} edge E: A -> A { «src: I32 «dst: I32 }"),
    ("S204", "node A { p: Blob @unique(«p) }"),
    ("S204", "node A { p: [String] @unique(«p) @index(«p) }"),
    ("S204", "node A { p: Vector(2) @unique(«p) }"),
    ("S206", 'node A @x("y", a=1, «a=2) {}'),
    ("S208", "node A { p: [I32] «@range(p, 0..1) }"),
    ("S208", "node A { p: I32 «@range(p, 1..0) }"),
    ("S209", 'node A { p: [String] «@check(p, "a") }'),
    ("S209", 'node A { p: String «@check(p, "(") }'),
]


@pytest.mark.parametrize(("code", "text"), YOUNGER_RULES)
def test_a_rule_younger_than_the_format_only_warns_about_accepted_schemas(code, text):
    plain, marks = marked(text)
    expected = [f"{code} {mark}" for mark in marks]
    assert places(refused(plain)) == expected
    assert places(warned(plain)) == expected


def test_a_persisted_schema_keeps_what_new_ones_may_not_have():
    catalog = load_catalog("node A { p: Blob @unique(p) id: String @key }", persisted=True)
    assert set(catalog.nodes["A"].constraints) == {Unique(("p",)), Key(("id",))}
    with pytest.raises(SchemaError):
        load_catalog("node A { p: Blob @unique(p) }")


def test_a_rule_as_old_as_the_format_refuses_persisted_schemas_too():
    with pytest.raises(SchemaError, match="cannot be nullable"):
        load_catalog("node A { x: I32? @key }", persisted=True)
