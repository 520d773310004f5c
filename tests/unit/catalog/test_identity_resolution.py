"""Giving identities to a schema, and keeping them when it changes."""

from datetime import UTC, date, datetime

import pytest

from omnigraph.catalog import (
    IdentityError,
    SequentialAllocator,
    TypeKind,
    accept_schema,
    resolve_schema,
)
from omnigraph.lang import Code, SchemaError, Severity
from omnigraph.types import entity_id
from tests.support.catalogs import (
    DOMAIN,
    HARBOUR,
    after,
    changed,
    first,
    marked,
    places,
    read,
    resolution,
    sound,
)

NODE, EDGE, INTERFACE = TypeKind.NODE, TypeKind.EDGE, TypeKind.INTERFACE


def identities(schema):
    return {thing: identity for identity, thing in schema.identities()}


# --- the first schema --------------------------------------------------------------------------


def test_identities_are_given_to_types_then_properties_then_incarnations():
    text = (
        "edge E: A -> B { w: I32 } node B { y: I32 x: I32 } node A { z: I32 } "
        "interface I { p: I32 }"
    )
    assert identities(first(text)) == {
        "interface:I": 1,
        "node:A": 2,
        "node:B": 3,
        "edge:E": 4,
        "interface:I.p": 5,
        "node:A.z": 6,
        "node:B.x": 7,
        "node:B.y": 8,
        "edge:E.w": 9,
        "incarnation of node:A": 10,
        "incarnation of node:B": 11,
        "incarnation of edge:E": 12,
    }


def test_an_injected_property_has_an_identity_of_its_own():
    found = identities(first("interface I { p: I32 } node A implements I {}"))
    assert found["interface:I.p"] != found["node:A.p"]


def test_types_of_one_name_and_different_kinds_are_three_things():
    found = identities(first("interface T {} node T {} edge T: T -> T"))
    assert [found[f"{kind}:T"] for kind in ("interface", "node", "edge")] == [1, 2, 3]


def test_an_empty_schema_asks_for_no_identities():
    assert identities(first("")) == {}


def test_rename_hints_of_a_first_schema_are_reported_and_not_kept():
    text, marks = marked(
        'interface I { «a: I32 @rename_from("b") }\n'
        'node «N @rename_from("M") implements I { «p: String @rename_from("q") }\n'
        'edge «E: N -> N @rename_from("F") { «w: I32 @rename_from("v") }'
    )
    catalog, report = read(text)
    accepted = accept_schema(catalog, allocator=SequentialAllocator(), domain=DOMAIN, report=report)
    assert places(report.sorted()) == [f"S392 {mark}" for mark in marks]
    assert {d.severity for d in report.diagnostics} == {Severity.INFO}
    assert {d.code.slug for d in report.diagnostics} == {"inert_initialization_rename_hint"}
    for type_ in accepted.types:
        assert getattr(type_.definition, "rename_from", None) is None
        assert {p.rename_from for p in type_.definition.properties.values()} == {None}


def test_a_first_schema_needs_no_report():
    text = 'node A { p: String @rename_from("q") }'
    assert first(text) == first("node A { p: String }")


# --- unchanged things --------------------------------------------------------------------------


def test_the_same_text_resolves_to_the_same_schema():
    accepted = first(HARBOUR)
    assert after(accepted, HARBOUR) == accepted
    assert after(accepted, "// a comment\n" + HARBOUR) == accepted


def test_a_changed_definition_keeps_its_identity():
    accepted = first(HARBOUR)
    resolved = after(
        accepted, changed(HARBOUR, ("city: String", "city: I32?"), ("@card(0..2)", "@card(1..2)"))
    )
    assert identities(resolved) == identities(accepted)
    assert resolved != accepted


def test_new_things_are_numbered_after_the_old_in_the_order_of_kind_owner_and_name():
    accepted = first("node B { y: I32 } edge E: B -> B")
    resolved = after(
        accepted,
        "node B { y: I32 c: I32 } node A { z: I32 a: I32 } edge E: B -> B { w: I32 }\n"
        "edge D: A -> B { v: I32 } interface I { p: I32 }",
        SequentialAllocator(100),
    )
    old = identities(accepted)
    new = {thing: i for thing, i in identities(resolved).items() if thing not in old}
    assert new == {
        "interface:I": 100,
        "node:A": 101,
        "edge:D": 102,
        "node:B.c": 103,
        "edge:E.w": 104,
        "interface:I.p": 105,
        "node:A.a": 106,
        "node:A.z": 107,
        "edge:D.v": 108,
        "incarnation of node:A": 109,
        "incarnation of edge:D": 110,
    }
    assert identities(resolved).items() >= old.items()


def test_a_dropped_and_re_added_type_is_a_new_one():
    accepted = first(HARBOUR)
    without = after(accepted, changed(HARBOUR, ("node Note { text: String  score: I32? }", "")))
    allocator = SequentialAllocator(1000)
    again = after(without, HARBOUR, allocator)
    assert without.find(NODE, "Note") is None
    assert set(identities(again).values()) - set(identities(without).values()) == {
        1000,
        1001,
        1002,
        1003,
    }
    assert again.find(NODE, "Note").incarnation == 1003


def test_a_dropped_and_re_added_property_is_a_new_one():
    accepted = first("node A { x: I32? y: I32? }")
    again = after(after(accepted, "node A { x: I32? }"), "node A { x: I32? y: I32? }")
    assert again.find(NODE, "A").property_ids["x"] == accepted.find(NODE, "A").property_ids["x"]
    assert again.find(NODE, "A").id == accepted.find(NODE, "A").id


def test_a_name_moves_to_another_kind_as_a_new_type():
    accepted = first("node A {} node B {}")
    resolved = after(accepted, "node B {} interface A {}", SequentialAllocator(50))
    assert identities(resolved)["interface:A"] == 50


# --- renames -----------------------------------------------------------------------------------


def test_a_type_its_properties_and_the_edges_at_it_are_renamed_together():
    accepted = first(HARBOUR)
    resolved = after(
        accepted,
        changed(
            HARBOUR,
            ("node Ship @description", 'node Vessel @rename_from("Ship") @description'),
            ("edge CallsAt: Ship", "edge Visits: Vessel"),
            ("@card(0..2)", '@card(0..2) @rename_from("CallsAt")'),
            ("imo: I64 @key", 'number: I64 @key @rename_from("imo")'),
            ("fee: F64?", 'dues: F64? @rename_from("fee")'),
        ),
    )
    old, new = identities(accepted), identities(resolved)
    assert new["node:Vessel"] == old["node:Ship"]
    assert new["incarnation of node:Vessel"] == old["incarnation of node:Ship"]
    assert new["node:Vessel.number"] == old["node:Ship.imo"]
    assert new["edge:Visits"] == old["edge:CallsAt"]
    assert new["edge:Visits.dues"] == old["edge:CallsAt.fee"]
    assert set(new.values()) == set(old.values())
    assert resolved.find(NODE, "Vessel").definition.rename_from is None


def test_the_hint_of_an_interface_renames_the_property_it_injects():
    accepted = first("interface I { a: I32 } node A implements I {} node B implements I { a: I32 }")
    resolved = after(
        accepted,
        'interface I { b: I32 @rename_from("a") } node A implements I {}\n'
        'node B implements I { b: I32 @rename_from("a") } node C implements I {}',
        SequentialAllocator(100),
    )
    old, new = identities(accepted), identities(resolved)
    assert new["interface:I.b"] == old["interface:I.a"]
    assert new["node:A.b"] == old["node:A.a"]
    assert new["node:B.b"] == old["node:B.a"]
    assert new["node:C.b"] == 101


def test_the_hint_of_an_interface_gives_way_to_the_type_itself():
    accepted = first("interface I { a: I32 } node A { a: I32 } node B { a: I32 }")
    text = (
        'interface I { b: I32 @rename_from("a") } node A implements I { a: I32 }\n'
        'node B implements I { c: I32 @rename_from("a") }'
    )
    old, new = identities(accepted), identities(after(accepted, text))
    assert new["node:A.a"] == old["node:A.a"]
    assert new["node:A.b"] not in old.values()
    assert new["node:B.c"] == old["node:B.a"]
    assert new["node:B.b"] not in old.values()
    assert resolution(accepted, text) == ()


def test_names_can_be_taken_over_by_new_things_once_they_are_free():
    accepted = first("node A { x: I32? }")
    renamed = after(accepted, 'node B @rename_from("A") { y: I32? @rename_from("x") }')
    both = after(renamed, "node B { y: I32? x: I32? } node A {}")
    assert identities(both)["node:B"] == identities(accepted)["node:A"]
    assert identities(both)["node:B.y"] == identities(accepted)["node:A.x"]
    assert identities(both)["node:A"] > identities(accepted)["node:A.x"]


REFUSED_HINTS = [
    ("S301", 'node «Z @rename_from("Nope") {}', "no accepted declaration has that name"),
    ("S301", 'edge «Z: A -> A @rename_from("Nope")', "no accepted declaration has that name"),
    ("S301", 'node A { «z: I32 @rename_from("nope") }', "no accepted declaration has that name"),
    ("S301", 'interface I { «z: I32 @rename_from("nope") }', "no accepted declaration has that"),
    ("S302", 'node «Z @rename_from("E") {}', "across declaration kinds: E is an accepted edge"),
    (
        "S302",
        'node «Z @rename_from("I") {}',
        "across declaration kinds: I is an accepted interface",
    ),
    ("S302", 'node A {} edge «Z: A -> A @rename_from("A")', "across declaration kinds: A is an"),
    (
        "S303",
        'node Y @rename_from("A") {} node «Z @rename_from("A") {}',
        "@rename_from(A) on node Z: A is consumed by more than one desired declaration",
    ),
    ("S303", 'node A {} node «Z @rename_from("A") {}', "consumed by more than one desired"),
    (
        "S303",
        'node A { x: I32 «z: I32 @rename_from("x") }',
        "on A.z: x is consumed by more than one",
    ),
    (
        "S303",
        'node A { y: I32 @rename_from("x") «z: I32 @rename_from("x") }',
        "on A.z: x is consumed by more than one desired declaration",
    ),
    (
        "S304",
        'node A { «z: I32 @rename_from("only_b") }',
        "only_b is a property of B; moves across owners are unsupported",
    ),
    ("S304", 'interface I { «z: I32 @rename_from("x") }', "moves across owners are unsupported"),
    ("S305", 'node New { «z: I32 @rename_from("x") }', "New is new and cannot import the identity"),
    ("S305", 'interface New { «z: I32 @rename_from("p") }', "New is new and cannot import"),
]
OLD = "interface I { p: I32 } node A { x: I32 } node B { only_b: I32 } edge E: A -> A { w: I32 }"


@pytest.mark.parametrize(("code", "text", "fragment"), REFUSED_HINTS)
def test_a_hint_that_cannot_be_followed_is_refused(code, text, fragment):
    accepted = first(OLD)
    if "-> A" in text and "node A" not in text:
        text += " node A { x: I32 }"
    plain, marks = marked(text)
    found = resolution(accepted, plain)
    assert places(found) == [f"{code} {mark}" for mark in marks]
    assert fragment in found[0].message


def test_every_code_of_resolution_has_a_case():
    ours = {str(code) for code in Code if "S300" < code < "S390"}
    assert ours == {code for code, _, _ in REFUSED_HINTS}


def test_all_wrong_hints_are_reported_at_once():
    text, marks = marked(
        'node «Y @rename_from("Nope") { q: I32 @rename_from("x") }\n'
        'node A { «z: I32 @rename_from("only_b") «y: I32 @rename_from("nope") }\n'
        'node New { «z: I32 @rename_from("x") }'
    )
    codes = ["S301", "S304", "S301", "S305"]
    found = places(resolution(first(OLD), text))
    assert found == [f"{code} {mark}" for code, mark in zip(codes, marks, strict=True)]


def test_an_unknown_origin_is_answered_with_the_nearest_name():
    accepted = first(HARBOUR)
    (found,) = resolution(
        accepted, 'node Vessel @rename_from("Shp") { imo: I64 @rename_from("x") }'
    )
    assert found.hint == "did you mean `Ship`?"
    (found,) = resolution(accepted, 'node Port { town: String @rename_from("cty") }')
    assert found.hint == "did you mean `city`?"


def test_a_hint_beside_an_accepted_name_is_ignored_and_reported():
    accepted = first(OLD)
    text, marks = marked(
        'interface I { «p: I32 @rename_from("old") }\n'
        'node «A @rename_from("B") implements I { «x: I32 @rename_from("y") }\n'
        'edge «E: A -> A @rename_from("F") { «w: I32 @rename_from("v") }'
    )
    found = resolution(accepted, text)
    assert places(found) == [f"S391 {mark}" for mark in marks]
    assert {d.severity for d in found} == {Severity.INFO}
    assert {d.code.slug for d in found} == {"ignored_exact_match_rename_hint"}
    resolved = after(accepted, text)
    assert identities(resolved)["node:A"] == identities(accepted)["node:A"]


def test_an_ignored_hint_of_an_interface_is_reported_once():
    text = 'interface I { p: I32 @rename_from("old") } node A implements I {}'
    found = resolution(first("interface I { p: I32 } node A implements I {}"), text)
    assert places(found) == ["S391 1:15"]


def test_a_schema_with_errors_is_not_resolved():
    accepted = first(OLD)
    catalog, report = read("node A { x: I32? @key }")
    with pytest.raises(SchemaError) as refusal:
        resolve_schema(catalog, accepted, allocator=SequentialAllocator(100), report=report)
    assert refusal.value.code == "S203"


def test_an_allocator_that_repeats_itself_is_refused():
    accepted = first(OLD)
    with pytest.raises(IdentityError, match="identity 0000000000000001 is in use already"):
        after(accepted, OLD + " node New {}", SequentialAllocator())


# --- keys --------------------------------------------------------------------------------------


def test_composite_keys_are_ordered_by_name_on_a_fresh_graph_and_keep_that_order():
    accepted = first("node K { a: I64  b: Bool  @key(b, a) }")
    assert accepted.key_order(NODE, "K") == ("a", "b")
    renamed = after(accepted, 'node K { z: I64 @rename_from("a")  b: Bool  @key(b, z) }')
    assert renamed.catalog.nodes["K"].key == ("b", "z")
    assert renamed.key_order(NODE, "K") == ("z", "b")


def test_ids_survive_the_rename_of_a_key_property():
    accepted = first("node K { a: I64  b: Bool  @key(b, a) }")
    renamed = after(accepted, 'node K { z: I64 @rename_from("a")  b: Bool  @key(b, z) }')
    row = {"a": 7, "z": 7, "b": True}
    for schema in (accepted, renamed):
        properties = schema.catalog.nodes["K"].properties
        members = [(row[name], properties[name].type) for name in schema.key_order(NODE, "K")]
        assert entity_id(members) == '["7","true"]'


@pytest.mark.parametrize(
    ("type_", "value", "text"),
    [
        ("Date", date(1970, 1, 2), "1"),
        ("DateTime", datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), "1000"),
        ("F64", -0.0, "0"),
        ("F32", 0.1, "0.1"),
    ],
)
def test_ids_are_the_canonical_text_of_the_key(type_, value, text):
    accepted = first(f"node K {{ k: {type_} @key }}")
    (name,) = accepted.key_order(NODE, "K")
    assert entity_id([(value, accepted.catalog.nodes["K"].properties[name].type)]) == text


def test_a_type_without_key_has_no_key_order():
    assert first("node A { x: I32 }").key_order(NODE, "A") == ()


def test_resolution_does_not_touch_the_catalog_it_is_given():
    catalog = sound('node A { b: I32 @rename_from("c") a: I32 }')
    accept_schema(catalog, allocator=SequentialAllocator(), domain=DOMAIN)
    assert list(catalog.nodes["A"].properties) == ["b", "a"]
    assert catalog.nodes["A"].properties["b"].rename_from == "c"
