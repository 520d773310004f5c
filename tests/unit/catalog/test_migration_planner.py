"""Planning migrations: every step, every refusal, and the order they come in."""

from dataclasses import replace

import pytest

from omnigraph.catalog import (
    AcceptedSchema,
    Annotation,
    IdentityError,
    SequentialAllocator,
    accept_schema,
    plan_migration,
)
from omnigraph.catalog.migration_steps import UnsupportedChange
from omnigraph.lang import Code
from tests.support.catalogs import DOMAIN, HARBOUR, after, changed, first, lines, plan, sound

# --- supported steps ---------------------------------------------------------------------------

# Each case: the schema before, after, and the lines of the plan.
SUPPORTED = {
    "add types of each kind": (
        "node A {}",
        "node A {} node B { x: I32 @key @index } edge E: A -> B { w: I32 } interface I { p: I32 }",
        ["add type interface I", "add type node B", "add type edge E"],
    ),
    "add a nullable property": (
        "interface I {} node A {} edge E: A -> A",
        "interface I { p: I32? } node A { x: [String]? } edge E: A -> A { w: enum(b, a)? }",
        [
            "add property interface I.p: I32?",
            "add property node A.x: [String]?",
            "add property edge E.w: enum(a, b)?",
        ],
    ),
    "add a property with everything that may come along": (
        "node A { t: String }",
        'node A { t: String v: Vector(2)? @embed(t, model="m") @description("d") @odd @index }',
        ["add property node A.v: Vector(2)?", "add constraint node A @index(v)"],
    ),
    "rename types": (
        "node A {} edge E: A -> A",
        'node B @rename_from("A") {} edge F: B -> B @rename_from("E")',
        ["rename type node A -> B", "rename type edge E -> F"],
    ),
    "rename properties": (
        "interface I { p: I32 } node A { x: I32 } edge E: A -> A { w: I32 }",
        'interface I { q: I32 @rename_from("p") } node A { y: I32 @rename_from("x") }\n'
        'edge E: A -> A { v: I32 @rename_from("w") }',
        [
            "rename property interface I.p -> q",
            "rename property node A.x -> y",
            "rename property edge E.w -> v",
        ],
    ),
    "rename what constraints and embeds speak of": (
        "node A { x: I32 @key @unique s: String @index v: Vector(2) @embed(s) n: I32\n"
        '@unique(n, s) @range(n, 0..1) @check(s, "a") }',
        'node A { y: I32 @key @unique @rename_from("x") t: String @index @rename_from("s")\n'
        'v: Vector(2) @embed(t) m: I32 @rename_from("n")\n'
        '@unique(m, t) @range(m, 0..1) @check(t, "a") }',
        [
            "rename property node A.n -> m",
            "rename property node A.s -> t",
            "rename property node A.x -> y",
        ],
    ),
    "add an index beside a property": (
        "interface I { p: I32 } node A implements I { x: I32 } edge E: A -> A { w: I32 }",
        "interface I { p: I32 @index } node A implements I { x: I32 @index }\n"
        "edge E: A -> A { w: I32 @index(w) @index(src) }",
        [
            "add constraint interface I @index(p)",
            "add constraint node A @index(p)",
            "add constraint node A @index(x)",
            "add constraint edge E @index(w)",
            "add constraint edge E @index(src)",
        ],
    ),
    "add an index over several properties": (
        "node A { x: I32 y: I32 }",
        "node A { x: I32 y: I32 @index(y, x) @index(id) }",
        ["add constraint node A @index(id)", "add constraint node A @index(x, y)"],
    ),
    "extend enums": (
        "interface I { p: enum(a) } node A implements I { x: enum(b, a)? }\n"
        "edge E: A -> A { w: enum(x) }",
        "interface I { p: enum(a, c) } node A implements I { x: enum(c, b, a, d)? }\n"
        "edge E: A -> A { w: enum(a, x) }",
        [
            "extend enum interface I.p: c",
            "extend enum node A.p: c",
            "extend enum node A.x: c, d",
            "extend enum edge E.w: a",
        ],
    ),
    "extend an enum under its new name": (
        "node A { x: enum(a) }",
        'node A { y: enum(b, a) @rename_from("x") }',
        ["rename property node A.x -> y", "extend enum node A.y: b"],
    ),
    "describe types": (
        'node A @description("a") @tag {} edge E: A -> A',
        'node A @description("b") @tag {} edge E: A -> A @instruction("i")',
        [
            'update metadata node A: @description("b") @tag',
            'update metadata edge E: @instruction("i")',
        ],
    ),
    "describe types no longer": (
        'node A @description("a") @instruction("i") {}',
        'node A @instruction("i") {}',
        ['update metadata node A: @instruction("i")'],
    ),
    "describe properties": (
        'interface I { p: I32 } node A { x: I32 @description("a") } edge E: A -> A { w: I32 }',
        'interface I { p: I32 @description("p") } node A { x: I32 }\n'
        'edge E: A -> A { w: I32 @description("w") }',
        [
            'update metadata interface I.p: @description("p")',
            "update metadata node A.x: none",
            'update metadata edge E.w: @description("w")',
        ],
    ),
    "drop types": (
        "node A {} node B { x: I32 @key @unique } edge E: A -> B",
        "node A {}",
        ["drop type node B (soft)", "drop type edge E (soft)"],
    ),
    "drop properties": (
        "interface I { p: I32 } node A { x: I32 } edge E: A -> A { w: I32 }",
        "interface I {} node A {} edge E: A -> A",
        [
            "drop property interface I.p (soft)",
            "drop property node A.x (soft)",
            "drop property edge E.w (soft)",
        ],
    ),
    "drop an injected property": (
        "interface I { p: I32 q: I32 } node A implements I {}",
        "interface I { p: I32 } node A implements I {}",
        ["drop property interface I.q (soft)", "drop property node A.q (soft)"],
    ),
    "add an injected property": (
        "interface I { p: I32 } node A implements I {}",
        "interface I { p: I32 q: I32? @index } node A implements I {}",
        [
            "add property interface I.q: I32?",
            "add constraint interface I @index(q)",
            "add property node A.q: I32?",
            "add constraint node A @index(q)",
        ],
    ),
    "rename an injected property": (
        "interface I { p: I32 } node A implements I {} node B implements I { p: I32 }",
        'interface I { q: I32 @rename_from("p") } node A implements I {}\n'
        'node B implements I { q: I32 @rename_from("p") }',
        [
            "rename property interface I.p -> q",
            "rename property node A.p -> q",
            "rename property node B.p -> q",
        ],
    ),
    "drop properties with the constraints that speak of nothing else": (
        "node A { x: I32? @unique @index @range(x, 0..1) y: String? z: I32?\n"
        '@check(y, "a") @unique(x, y) @index(z) }',
        "node A { z: I32? @index }",
        ["drop property node A.x (soft)", "drop property node A.y (soft)"],
    ),
    "add a required property with a default": (
        "interface I {} node A implements I {} edge E: A -> A",
        'interface I { p: I32 @default(1) } node A implements I { x: String @default("none") }\n'
        "edge E: A -> A { w: enum(a, b) @default(a) }",
        [
            "add property interface I.p: I32 = 1",
            "add property node A.p: I32 = 1",
            "add property node A.x: String = none",
            "add property edge E.w: enum(a, b) = a",
        ],
    ),
    "give, change and take a default": (
        "node A { x: I32 y: I32 @default(1) z: I32 @default(1) }",
        "node A { x: I32 @default(1) y: I32 @default(2) z: I32 }",
        [
            'update metadata node A.x: @default("1")',
            'update metadata node A.y: @default("2")',
            "update metadata node A.z: none",
        ],
    ),
    "widen types": (
        "interface I { p: I32 } node A implements I { a: U32? b: F32 c: enum(x) d: [I32] }\n"
        "edge E: A -> A { w: I32 }",
        "interface I { p: I64 } node A implements I { a: U64? b: F64 c: String d: [I64] }\n"
        'edge E: A -> A { v: I64 @rename_from("w") }',
        [
            "widen property interface I.p: I32 -> I64",
            "widen property node A.a: U32 -> U64",
            "widen property node A.b: F32 -> F64",
            "widen property node A.c: enum(x) -> String",
            "widen property node A.d: [I32] -> [I64]",
            "widen property node A.p: I32 -> I64",
            "rename property edge E.w -> v",
            "widen property edge E.v: I32 -> I64",
        ],
    ),
    "widen a key whose ids read the same": (
        "node A { x: I32 @key } node B { x: enum(a) y: U32 @key(x, y) }",
        "node A { x: I64 @key } node B { x: String y: U64 @key(x, y) }",
        [
            "widen property node A.x: I32 -> I64",
            "widen property node B.x: enum(a) -> String",
            "widen property node B.y: U32 -> U64",
        ],
    ),
    "change whether a property may be null, with or without its type": (
        "interface I { p: I32 } node A implements I { a: I32? b: I32? c: enum(x) d: enum(x)? }",
        "interface I { p: I32? } node A implements I { a: I32 b: I64 c: enum(x, y)? d: String }",
        [
            "make optional interface I.p",
            "make required node A.a",
            "widen property node A.b: I32 -> I64",
            "make required node A.b",
            "extend enum node A.c: y",
            "make optional node A.c",
            "widen property node A.d: enum(x) -> String",
            "make required node A.d",
            "make optional node A.p",
        ],
    ),
    "add, change and remove the key of an edge type": (
        "node A {} edge E: A -> A { x: I32 } edge F: A -> A @key(src, dst) { x: I32 }"
        " edge G: A -> A @key(src, dst)",
        "node A {} edge E: A -> A @key(src, dst) { x: I32 }"
        " edge F: A -> A @key(src, dst, x) { x: I32 } edge G: A -> A",
        [
            "change key edge E: none -> @key(src, dst) (rewrites all edges, ids change)",
            "change key edge F: @key(src, dst) -> @key(src, dst, x) "
            "(rewrites all edges, ids change)",
            "remove constraint edge G @key(src, dst)",
        ],
    ),
    "loosen and tighten cardinality": (
        "node A {} edge E: A -> A @card(0..2) edge F: A -> A",
        "node A {} edge E: A -> A @card(0..3) edge F: A -> A @card(0..1)",
        ["change cardinality edge E: 0..2 -> 0..3", "change cardinality edge F: 0.. -> 0..1"],
    ),
    "remove constraints": (
        "interface I { p: I32 @index @unique }\n"
        "node A { u: I32 @unique i: I32 @index s: String @unique(i, u) @range(i, 0..1)\n"
        '@check(s, "a") } edge E: A -> A { w: I32 @unique @index @unique(src, dst) }',
        "interface I { p: I32 @index }\n"
        'node A { v: I32 @rename_from("u") i: I32 s: String } edge E: A -> A { w: I32 @unique }',
        [
            "remove constraint interface I @unique(p)",
            "remove constraint node A @index(i)",
            "rename property node A.u -> v",
            "remove constraint node A @unique(v)",
            'remove constraint node A @check(s, "a")',
            "remove constraint node A @range(i, 0..1)",
            "remove constraint node A @unique(i, v)",
            "remove constraint edge E @index(w)",
            "remove constraint edge E @unique(dst, src)",
        ],
    ),
    "add constraints": (
        "interface I { p: I32 } node A { x: I32 y: I32 s: String } edge E: A -> A { w: I32 }",
        "interface I { p: I32 @unique } node A { x: I32 y: I32 @unique s: String n: I32? @unique\n"
        '@unique(x, y) @range(x, 0..1) @check(s, "a") } edge E: A -> A { w: I32 @unique }',
        [
            "add constraint interface I @unique(p)",
            "add property node A.n: I32?",
            "add constraint node A @unique(n)",
            "add constraint node A @unique(y)",
            'add constraint node A @check(s, "a")',
            "add constraint node A @range(x, 0..1)",
            "add constraint node A @unique(x, y)",
            "add constraint edge E @unique(w)",
        ],
    ),
    "change a constraint": (
        'node A { x: I32 s: String @range(x, 0..1) @check(s, "a") }',
        'node A { x: I32 s: String @range(x, 0..2) @check(s, "b") }',
        [
            'remove constraint node A @check(s, "a")',
            "remove constraint node A @range(x, 0..1)",
            'add constraint node A @check(s, "b")',
            "add constraint node A @range(x, 0..2)",
        ],
    ),
    "drop one property of a constraint over two": (
        "node A { x: I32 y: I32 @unique(x, y) @index(x, id) }",
        "node A { y: I32 }",
        [
            "drop property node A.x (soft)",
            "remove constraint node A @index(id, x)",
            "remove constraint node A @unique(x, y)",
        ],
    ),
    "drop a type and its name goes to another kind": (
        "node A {} node B {}",
        "node B {} edge A: B -> B",
        ["drop type node A (soft)", "add type edge A"],
    ),
}


@pytest.mark.parametrize("what", SUPPORTED)
def test_a_plan_can(what):
    old, new, expected = SUPPORTED[what]
    found = plan(old, new)
    assert lines(found) == expected
    assert found.supported


def test_every_supported_step_has_a_case():
    kinds = {step.kind for old, new, _ in SUPPORTED.values() for step in plan(old, new).steps}
    assert kinds == {
        "add_type",
        "rename_type",
        "add_property",
        "rename_property",
        "add_constraint",
        "extend_enum",
        "update_type_metadata",
        "update_property_metadata",
        "drop_type",
        "drop_property",
        "remove_constraint",
        "change_cardinality",
        "change_key",
        "widen_property",
        "make_optional",
        "make_required",
    }


# --- refusals ----------------------------------------------------------------------------------

MF103, MF106 = Code.REQUIRED_PROPERTY_ADDED, Code.PROPERTY_TYPE_CHANGED

# Each case: the schema before, after, and for each refusal its entity, code and part of its reason.
REFUSED = {
    "add a required property": (
        "interface I {} node A {} edge E: A -> A",
        "interface I { p: I32 } node A { x: I32 @index } edge E: A -> A { w: [I32] }",
        [
            ("interface:I.p", MF103, "a required property cannot be added (I32); make it I32?"),
            ("node:A.x", MF103, "make it I32?"),
            ("edge:E.w", MF103, "make it [I32]?"),
        ],
    ),
    "add a required injected property": (
        "interface I {} node A implements I {}",
        "interface I { p: I32 @index } node A implements I {}",
        [("interface:I.p", MF103, "required"), ("node:A.p", MF103, "required")],
    ),
    "remove an interface": (
        "interface I { p: I32 } interface J {}",
        "interface J {}",
        [("interface:I", None, "removing an interface is not supported")],
    ),
    "implement another interface": (
        "interface I {} interface J {} node A implements I {} node B {} node C implements J {}",
        "interface I {} interface J {} node A implements J {} node B implements I, J {} node C {}",
        [
            ("node:A", None, "changing the implemented interfaces is not supported: I -> J"),
            ("node:B", None, "none -> I, J"),
            ("node:C", None, "J -> none"),
        ],
    ),
    "change endpoints": (
        "node A {} node B {} edge E: A -> A edge F: A -> B",
        "node A {} node B {} edge E: B -> A edge F: B -> A",
        [
            ("edge:E", None, "changing edge endpoints is not supported: src A -> B"),
            ("edge:F", None, "src A -> B"),
            ("edge:F", None, "dst B -> A"),
        ],
    ),
    "change an embed": (
        'node A { s: String t: String u: Vector(2) @embed(s) v: Vector(2) @embed(s, model="k")\n'
        "w: Vector(2) x: Vector(2) @embed(s) }",
        'node A { s: String t: String u: Vector(2) @embed(t) v: Vector(2) @embed(s, model="m")\n'
        "w: Vector(2) @embed(s) x: Vector(2) }",
        [
            (f"node:A.{name}", None, "changing the source or model of @embed is not supported")
            for name in "uvwx"
        ],
    ),
    "let an embed follow a name instead of a property": (
        "node A { s: String v: Vector(2) @embed(s) }",
        'node A { t: String @rename_from("s") u: String? v: Vector(2) @embed(u) }',
        [("node:A.v", None, "@embed is not supported")],
    ),
    "widen a number ids are made from": (
        "node A { x: F32 @key y: I32? }",
        "node A { x: F64 @key y: I64? }",
        [("node:A.x", MF106, "the type of a key cannot change (F32 -> F64): ids are made from it")],
    ),
    "add, change or remove a key": (
        "interface I { p: I32 } node A { x: I32 y: I32 } node B { x: I32 @key y: I32 }\n"
        "node C { x: I32 y: I32 @key(x, y) }",
        "interface I { p: I32 @key } node A { x: I32 @key y: I32 } node B { x: I32 y: I32 @key }\n"
        "node C { x: I32 y: I32 }",
        [
            ("interface:I.p", None, "a key cannot be added to an existing type: @key(p)"),
            ("node:A.x", None, "a key cannot be added to an existing type: @key(x)"),
            ("node:B.x", None, "removing property constraints is not supported: @key(x)"),
            ("node:B.y", None, "a key cannot be added to an existing type: @key(y)"),
            ("node:C", None, "removing constraints is not supported: @key(x, y)"),
        ],
    ),
    "drop a key": (
        "node A { k: I32 @key } node B { x: I32 y: I32 @key(x, y) }",
        "node A {} node B {}",
        [
            ("node:A.k", None, "removing property constraints is not supported: @key(k)"),
            ("node:B", None, "removing constraints is not supported: @key(x, y)"),
        ],
    ),
    "declare an injected property": (
        "interface I { p: I32 } node A implements I {}",
        "interface I { p: I32 } node A implements I { p: I32 }",
        [
            (
                "node:A.p",
                None,
                "changing the declaration provenance is not supported: "
                "injected by an interface -> declared directly",
            )
        ],
    ),
    "leave a declared property to the interface": (
        "interface I { p: I32 } node A implements I { p: I32 }",
        "interface I { p: I32 } node A implements I {}",
        [("node:A.p", None, "declared directly -> injected by an interface")],
    ),
    "ask for a property that is declared already": (
        "interface I {} node A implements I { p: I32? }",
        "interface I { p: I32? } node A implements I { p: I32? }",
        [
            (
                "node:A.p",
                None,
                "changing which interfaces a property satisfies is not supported: none -> I",
            )
        ],
    ),
    "ask no longer for a declared property": (
        "interface I { p: I32? } node A implements I { p: I32? }",
        "interface I {} node A implements I { p: I32? }",
        [("node:A.p", None, "I -> none")],
    ),
    "change opaque annotations of types": (
        'node A @tag @description("a") {} edge E: A -> A @tag(1) edge F: A -> A @tag',
        'node A @gat @description("b") {} edge E: A -> A @tag(2) edge F: A -> A',
        [
            ("node:A", None, "@instruction and @default can change, not @gat, @tag"),
            ("edge:E", None, 'not @tag("1"), @tag("2")'),
            ("edge:F", None, "not @tag"),
        ],
    ),
    "change opaque annotations of properties": (
        "interface I { p: I32 @tag } node A { x: I32 @tag }",
        'interface I { p: I32 } node A { x: I32 @tag(1) @description("a") }',
        [("interface:I.p", None, "not @tag"), ("node:A.x", None, 'not @tag, @tag("1")')],
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_plan_refuses_to(what):
    old, new, expected = REFUSED[what]
    found = plan(old, new)
    assert [(r.entity, r.code) for r in found.refusals] == [(e, c) for e, c, _ in expected]
    for refusal, (_, _, reason) in zip(found.refusals, expected, strict=True):
        assert reason in refusal.reason
    assert not found.supported


def test_every_refusal_code_has_a_case():
    codes = {code for _, _, cases in REFUSED.values() for _, code, _ in cases}
    assert codes == {None, *(code for code in Code if code.startswith("OG-"))}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("I64", "I32"),
        ("I32", "U64"),
        ("U32", "I64"),
        ("I32", "F64"),
        ("I32?", "String"),
        ("I32", "[I32]"),
        ("[I32]", "I32"),
        ("Vector(2)", "Vector(3)"),
        ("enum(a, b)", "enum(a)"),
        ("enum(a, b)", "enum(a, c)"),
        ("String", "enum(a)"),
        ("enum(a)", "[String]"),
        ("Date", "DateTime"),
        ("String", "Blob"),
    ],
)
def test_a_type_that_becomes_no_wider_one_is_refused(old, new):
    (refusal,) = plan(f"node A {{ x: {old} }}", f"node A {{ x: {new} }}").steps
    assert refusal.code is MF106
    assert refusal.entity == "node:A.x"
    assert f"({sound_type(old)} -> {sound_type(new)})" in refusal.reason


def sound_type(text):
    return str(sound(f"node A {{ x: {text} }}").nodes["A"].properties["x"].type)


# --- the examples of the language page ---------------------------------------------------------


def harbour(*replacements):
    return plan(HARBOUR, changed(HARBOUR, *replacements))


def test_reordered_enum_values_are_no_change():
    assert plan("node A { s: enum(b, a) }", "node A { s: enum(a, b) }").steps == ()


def test_added_enum_values_extend_and_removed_ones_are_refused():
    old = "node A { s: enum(b, a) }"
    (step,) = plan(old, "node A { s: enum(a, b, c) }").steps
    assert step.to_json()["added_values"] == ["c"]
    (refusal,) = plan(old, "node A { s: enum(a) }").refusals
    assert refusal.message.startswith("[OG-MF-106]")


def test_tonnage_must_be_nullable():
    assert lines(harbour(("imo: I64 @key", "imo: I64 @key tonnage: I32"))) == [
        "refused [OG-MF-103] node:Ship.tonnage: "
        "a required property cannot be added (I32); make it I32? or give it a @default"
    ]
    assert lines(harbour(("imo: I64 @key", "imo: I64 @key tonnage: I32?"))) == [
        "add property node Ship.tonnage: I32?"
    ]


def test_a_renamed_ship_stays_the_same_ship():
    found = harbour(
        ("node Ship", 'node Vessel @rename_from("Ship")'), ("CallsAt: Ship", "CallsAt: Vessel")
    )
    assert lines(found) == ["rename type node Ship -> Vessel"]


def test_a_ship_renamed_without_hint_is_another_type():
    assert lines(harbour(("Ship", "Vessel"))) == [
        "add type node Vessel",
        "drop type node Ship (soft)",
        "refused edge:CallsAt: changing edge endpoints is not supported: src Ship -> Vessel",
    ]


def test_an_index_can_be_added_and_removed():
    assert lines(harbour(("label: String @index", "label: String"))) == [
        "remove constraint interface Labelled @index(label)",
        "remove constraint node Ship @index(label)",
    ]
    (step,) = harbour(("city: String", "city: String @index")).steps
    assert step.to_json() == {
        "kind": "add_constraint",
        "type_kind": "node",
        "type_name": "Port",
        "constraint": {"Index": ["city"]},
    }


def test_cardinality_can_be_loosened():
    assert lines(harbour(("@card(0..2)", "@card(0..3)"))) == [
        "change cardinality edge CallsAt: 0..2 -> 0..3"
    ]


def test_a_dropped_note_can_come_back_as_another_type():
    accepted = first(HARBOUR)
    without = after(accepted, changed(HARBOUR, ("node Note { text: String  score: I32? }", "")))
    assert lines(plan_migration(accepted, without)) == ["drop type node Note (soft)"]
    assert lines(plan_migration(without, after(without, HARBOUR))) == ["add type node Note"]


# --- order -------------------------------------------------------------------------------------


def test_steps_come_by_kind_then_name_with_drops_last():
    old = "interface I {} node A {} node C {} edge X: C -> C edge Z: C -> C"
    new = "interface H {} interface I {} node B {} node C {} edge Y: C -> C edge Z: C -> B"
    assert lines(plan(old, new)) == [
        "add type interface H",
        "add type node B",
        "drop type node A (soft)",
        "add type edge Y",
        "refused edge:Z: changing edge endpoints is not supported: dst C -> B",
        "drop type edge X (soft)",
    ]


def test_steps_within_a_type_come_in_the_order_they_are_taken():
    old = (
        "interface I { p: I32 } interface J {}\n"
        "node A implements J { a: enum(x) b: I32 c: I32 d: I32 e: I32 v: Vector(2)\n"
        "@range(b, 0..1) }"
    )
    new = (
        "interface I { p: I32 } interface J {}\n"
        'node Z @rename_from("A") @description("z") implements I {\n'
        '  z: enum(x, y) @index @description("z") @rename_from("a")\n'
        "  b: String @unique @tag  n: I32?  m: I32  v: Vector(2) @embed(t)  t: String?\n"
        "  @index(b, z) p: I32 }"
    )
    assert [
        line.split(":")[0] if "refused" not in line else line for line in lines(plan(old, new))
    ] == [
        "rename type node A -> Z",
        "refused node:Z: changing the implemented interfaces is not supported: J -> I",
        "update metadata node Z",
        "refused [OG-MF-106] node:Z.b: the type cannot change (I32 -> String); "
        "it may only become wider",
        "add constraint node Z @unique(b)",
        "refused node:Z.b: only @description, @instruction and @default can change, not @tag",
        "refused [OG-MF-103] node:Z.m: a required property cannot be added (I32); make it I32? "
        "or give it a @default",
        "add property node Z.n",
        "refused [OG-MF-103] node:Z.p: a required property cannot be added (I32); make it I32? "
        "or give it a @default",
        "add property node Z.t",
        "refused node:Z.v: changing the source or model of @embed is not supported",
        "rename property node Z.a -> z",
        "extend enum node Z.z",
        "add constraint node Z @index(z)",
        "update metadata node Z.z",
        "drop property node Z.c (soft)",
        "drop property node Z.d (soft)",
        "drop property node Z.e (soft)",
        "remove constraint node Z @range(b, 0..1)",
        "add constraint node Z @index(b, z)",
    ]


def test_a_property_goes_through_all_its_changes_before_the_next():
    old = "interface I { v: Vector(2) } node A implements I { s: String v: Vector(2) @index }"
    new = (
        "interface I { w: Vector(3) @embed(s) @rename_from(v) @tag }\n"
        "node A implements I { s: String }"
    )
    assert [line for line in lines(plan(old, new)) if "node" in line] == [
        "rename property node A.v -> w",
        "refused [OG-MF-106] node:A.w: the type cannot change (Vector(2) -> Vector(3)); "
        "it may only become wider",
        "refused node:A.w: changing the source or model of @embed is not supported",
        "remove constraint node A @index(w)",
        "refused node:A.w: changing the declaration provenance is not supported: "
        "declared directly -> injected by an interface",
        "refused node:A.w: only @description, @instruction and @default can change, not @tag",
    ]


# --- nothing to do, and nonsense ---------------------------------------------------------------


@pytest.mark.parametrize("text", ["", HARBOUR])
def test_a_schema_needs_no_steps_to_become_itself(text):
    accepted = first(text)
    assert plan_migration(accepted, accepted).steps == ()
    assert plan(text, "// only a comment\n" + text).steps == ()


def test_a_difference_no_step_describes_refuses_the_schema():
    accepted = first("node A @x @y {}")
    (type_,) = accepted.types
    shuffled = (Annotation("y"), Annotation("x"))
    odd = replace(type_, definition=replace(type_.definition, annotations=shuffled))
    found = plan_migration(accepted, AcceptedSchema(DOMAIN, (odd,)))
    assert found.steps == (
        UnsupportedChange("schema", "the schemas differ in a way no step covers"),
    )


def test_an_interface_cannot_be_renamed():
    accepted = first("interface I { p: I32 }")
    (type_,) = accepted.types
    renamed = replace(type_, definition=replace(type_.definition, name="J"))
    found = plan_migration(accepted, AcceptedSchema(DOMAIN, (renamed,)))
    assert lines(found) == ["refused interface:J: renaming an interface is not supported: I -> J"]


def test_a_property_cannot_satisfy_another_property_of_the_same_name():
    accepted = first("interface I { p: I32 } node A implements I { p: I32 }")
    interface, node = accepted.types
    other = replace(interface, property_ids={"p": 99})
    assert lines(plan_migration(accepted, AcceptedSchema(DOMAIN, (other, node)))) == [
        "refused [OG-MF-103] interface:I.p: "
        "a required property cannot be added (I32); make it I32? or give it a @default",
        "drop property interface I.p (soft)",
        "refused node:A.p: changing which interfaces a property satisfies is not supported: I -> I",
    ]


def test_schemas_of_different_graphs_cannot_be_compared():
    other = "01BX5ZZKBKACTAV9WEVGEMMVRZ"
    desired = accept_schema(sound("node A {}"), allocator=SequentialAllocator(), domain=other)
    with pytest.raises(IdentityError, match=f"different graphs: {DOMAIN} and {other}") as refusal:
        plan_migration(first("node A {}"), desired)
    assert refusal.value.code == "schema_identity"


def broken(**changes):
    """Return a schema of one node type, and the same with parts of that type replaced."""
    accepted = first("node A { x: I32 }")
    (type_,) = accepted.types
    return accepted, AcceptedSchema(DOMAIN, (replace(type_, **changes),))


def test_a_type_cannot_change_its_incarnation():
    with pytest.raises(IdentityError, match="node:A changed its incarnation but kept its identity"):
        plan_migration(*broken(incarnation=99))


def test_a_type_cannot_change_its_kind():
    accepted = first("node A {}")
    with pytest.raises(IdentityError, match="was the identity of some node type and cannot be"):
        plan_migration(accepted, first("interface A {}"))


def test_a_property_cannot_move_to_another_type():
    accepted = first("node A { x: I32 } node B {}")
    a, b = accepted.types
    moved = replace(
        b,
        definition=replace(a.definition, name="B"),
        property_ids=a.property_ids,
    )
    bare = replace(a, definition=replace(b.definition, name="A"), property_ids={})
    with pytest.raises(IdentityError, match="identity of a property of type 0000000000000001"):
        plan_migration(accepted, AcceptedSchema(DOMAIN, (bare, moved)))


def test_an_identity_cannot_be_used_again_for_something_else():
    accepted, desired = broken(property_ids={"x": 3}, incarnation=2)
    message = (
        "was the identity of a property of type 0000000000000001 and cannot be the incarnation"
    )
    with pytest.raises(IdentityError, match=message):
        plan_migration(accepted, desired)
