"""The accepted schema: its document, its lookups, and what it refuses to be."""

import json
from dataclasses import replace

import pytest

from omnigraph.catalog import AcceptedSchema, NodeType, SchemaCorrupt, TypeKind, load_catalog
from omnigraph.catalog.identity import MAX_IDENTITY
from omnigraph.errors import Category
from tests.support.catalogs import DOMAIN, HARBOUR, after, first, sound

NODE, EDGE, INTERFACE = TypeKind.NODE, TypeKind.EDGE, TypeKind.INTERFACE

FULL = """\
interface I { p: I32 @index @unique  v: Vector(2)? @embed(t, model="m") }
interface J { p: I32 @index @unique }
node B @description("d") @tag(x, b=1, a=2) implements J, I {
  t: String @tag
  n: F64?
  k: enum(b, a)
  @key(k, t)
  @range(n, -1..2.5)
  @check(t, "^x")
  @unique(p, id)
}
node A { tags: [String]? }
edge E: B -> A @card(1..3) @instruction("i") { w: DateTime?  @unique(src, dst) }
"""


def document(text=FULL):
    return json.loads(json.dumps(first(text).to_json()))


# --- round trip --------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["", HARBOUR, FULL])
def test_a_schema_reads_back_from_its_document(text):
    accepted = first(text)
    assert AcceptedSchema.from_json(json.loads(json.dumps(accepted.to_json()))) == accepted


def test_the_document_of_an_empty_schema():
    assert document("") == {
        "ir_version": 2,
        "schema_identity_domain": DOMAIN,
        "interfaces": [],
        "nodes": [],
        "edges": [],
    }


def test_the_document_gives_everything_by_identity_and_name():
    text = (
        "interface I { p: I32 @index } node B implements I { t: String v: Vector(2) @embed(t) }\n"
        "node A { x: I32 @range(x, 0..1) } edge E: B -> A { @unique(src, dst) }"
    )
    integer = {"scalar": "I32", "nullable": False, "list": False, "enum_values": None}
    plain = {
        "annotations": [],
        "constraints": [],
        "embed": None,
        "declared_directly": True,
        "satisfies": [],
    }

    def identity(number):
        return f"{number:016x}"

    def reference(number, name):
        return {"id": identity(number), "name": name}

    assert document(text) == {
        "ir_version": 2,
        "schema_identity_domain": DOMAIN,
        "interfaces": [
            {
                **reference(1, "I"),
                "properties": [
                    {**reference(5, "p"), **plain, "type": integer, "constraints": ["index"]}
                ],
            }
        ],
        "nodes": [
            {
                **reference(2, "A"),
                "incarnation": identity(10),
                "implements": [],
                "annotations": [],
                "constraints": [
                    {"kind": "range", "properties": [reference(6, "x")], "min": 0, "max": 1}
                ],
                "properties": [{**reference(6, "x"), **plain, "type": integer}],
            },
            {
                **reference(3, "B"),
                "incarnation": identity(11),
                "implements": [reference(1, "I")],
                "annotations": [],
                "constraints": [{"kind": "index", "properties": [reference(7, "p")]}],
                "properties": [
                    {
                        **reference(7, "p"),
                        **plain,
                        "type": integer,
                        "declared_directly": False,
                        "satisfies": [
                            {"interface": reference(1, "I"), "property": reference(5, "p")}
                        ],
                    },
                    {**reference(8, "t"), **plain, "type": integer | {"scalar": "String"}},
                    {
                        **reference(9, "v"),
                        **plain,
                        "type": integer | {"scalar": {"Vector": 2}},
                        "embed": {"source": reference(8, "t"), "model": None},
                    },
                ],
            },
        ],
        "edges": [
            {
                **reference(4, "E"),
                "incarnation": identity(12),
                "src": reference(3, "B"),
                "dst": reference(2, "A"),
                "cardinality": {"min": 0, "max": None},
                "annotations": [],
                "constraints": [
                    {
                        "kind": "unique",
                        "properties": [{"id": None, "name": "dst"}, {"id": None, "name": "src"}],
                    }
                ],
                "properties": [],
            }
        ],
    }


def test_a_source_an_interface_leaves_to_its_nodes_has_no_identity():
    text = "interface I { v: Vector(2) @embed(t) } node A implements I { t: String }"
    found = document(text)
    assert found["interfaces"][0]["properties"][0]["embed"]["source"] == {"id": None, "name": "t"}
    assert found["nodes"][0]["properties"][1]["embed"]["source"]["id"] is not None


def test_a_schema_with_rules_broken_before_they_existed_reads_back():
    text = "node A { id: String @key p: Blob @unique(p, id) } edge E: A -> A { src: I32 }"
    catalog = load_catalog(text, persisted=True)
    accepted = first("")
    types = first("node A { x: String @key p: Blob } edge E: A -> A { s: I32 }").types
    renamed = [
        replace(t, definition=d, property_ids=dict(zip(sorted(d.properties), ids, strict=True)))
        for t, d, ids in (
            (types[0], catalog.nodes["A"], (3, 4)),
            (types[1], catalog.edges["E"], (5,)),
        )
    ]
    accepted = AcceptedSchema(DOMAIN, tuple(renamed))
    assert AcceptedSchema.from_json(accepted.to_json()) == accepted


# --- lookups -----------------------------------------------------------------------------------


def test_types_are_found_by_kind_and_name_and_by_identity():
    accepted = first("interface T {} node T {} edge T: T -> T node A {}")
    assert [(t.kind, t.name) for t in accepted.types] == [
        (INTERFACE, "T"),
        (NODE, "A"),
        (NODE, "T"),
        (EDGE, "T"),
    ]
    for type_ in accepted.types:
        assert accepted.find(type_.kind, type_.name) is type_
        assert accepted.by_id(type_.id) is type_
    assert accepted.find(EDGE, "A") is None
    assert accepted.by_id(999) is None
    assert [t.name for t in accepted.of_kind(NODE)] == ["A", "T"]


def test_the_catalog_of_an_accepted_schema_lists_properties_by_name():
    text = "interface I { d: I32 b: I32 } node A implements I { c: I32 a: I32 }"
    accepted = first(text)
    assert list(accepted.catalog.nodes["A"].properties) == ["a", "b", "c", "d"]
    assert accepted.catalog == sound(text)


def test_accepted_schemas_with_equal_types_are_equal_whatever_the_source_order():
    one = first("node A { x: I32 y: I32 } node B {}")
    other = first("/* longer */ node B {} node A { y: I32 x: I32 }")
    assert one == other
    assert AcceptedSchema(one.domain, one.types[::-1]) == one


def test_corruption_is_an_internal_error_with_a_code():
    with pytest.raises(SchemaCorrupt) as refusal:
        AcceptedSchema.from_json(None)
    assert refusal.value.code == "schema_corrupt"
    assert refusal.value.category is Category.INTERNAL


# --- damaged documents -------------------------------------------------------------------------


def at(found, *path):
    for step in path:
        found = found[step]
    return found


def put(*path_and_value):
    *path, key, value = path_and_value

    def damage(found):
        at(found, *path)[key] = value

    return damage


def remove(*path):
    def damage(found):
        del at(found, *path[:-1])[path[-1]]

    return damage


def swap(*path):
    def damage(found):
        at(found, *path).reverse()

    return damage


def repeat(*path):
    def damage(found):
        items = at(found, *path)
        items.append(items[-1])

    return damage


def copy_id(source, target):
    def damage(found):
        at(found, *target)["id"] = at(found, *source)["id"]

    return damage


# In FULL, nodes are A and B; the properties of B are k, n, p, t, v.
K, N, P, T, V = (("nodes", 1, "properties", i) for i in range(5))
DAMAGES = {
    "another version": (put("ir_version", 3), "ir_version is 3, this omnigraph reads 2"),
    "a version that is no number": (put("ir_version", "2"), "document.ir_version: expected int"),
    "no domain": (
        remove("schema_identity_domain"),
        "document has no field `schema_identity_domain`",
    ),
    "a domain in lower case": (
        put("schema_identity_domain", DOMAIN.lower()),
        "not an upper-case ULID",
    ),
    "a domain that is too short": (
        put("schema_identity_domain", DOMAIN[1:]),
        "not an upper-case ULID",
    ),
    "a domain out of range": (put("schema_identity_domain", "8" + DOMAIN[1:]), "not an upper-case"),
    "an unknown field": (
        put("next_identity_id", 7),
        "document has an unknown field `next_identity_id`",
    ),
    "an unknown field inside": (
        put(*K, "extra", 1),
        "document.nodes[1].properties[0] has an unknown",
    ),
    "no nodes": (remove("nodes"), "document has no field `nodes`"),
    "nodes that are no list": (put("nodes", {}), "document.nodes: expected list"),
    "a node that is no object": (
        put("nodes", 0, "A"),
        "document.nodes[0] is 'A', expected an object",
    ),
    "types out of order": (swap("nodes"), "document.nodes is not sorted"),
    "properties out of order": (
        swap("nodes", 1, "properties"),
        "document.nodes[1].properties is not",
    ),
    "constraints out of order": (swap("nodes", 1, "constraints"), "[1].constraints is not sorted"),
    "columns out of order": (
        swap("edges", 0, "constraints", 0, "properties"),
        "document.edges[0].constraints[0].properties is not sorted",
    ),
    "enum values out of order": (swap(*K, "type", "enum_values"), "type.enum_values is not sorted"),
    "interfaces out of order": (
        swap("nodes", 1, "implements"),
        "nodes[1].implements is not sorted",
    ),
    "links out of order": (swap(*P, "satisfies"), "properties[2].satisfies is not sorted"),
    "annotations out of order": (swap("nodes", 1, "annotations"), "[1].annotations is not sorted"),
    "shorthands out of order": (
        swap("interfaces", 0, "properties", 0, "constraints"),
        "constraints is not sorted",
    ),
    "a repeated type": (repeat("nodes"), "identity"),
    "a repeated property": (
        repeat("nodes", 0, "properties"),
        "duplicate property `tags` on node:A",
    ),
    "a repeated constraint": (
        repeat("nodes", 1, "constraints"),
        "[1].constraints repeats an entry",
    ),
    "a repeated annotation": (repeat("nodes", 1, "annotations"), "annotations repeats an entry"),
    "an identity that is no text": (put("nodes", 0, "id", 5), "document.nodes[0].id: "),
    "an identity in upper case": (
        put("nodes", 0, "id", "0" * 15 + "A"),
        "16 lower-case hexadecimal",
    ),
    "an identity of zero": (
        put("nodes", 0, "id", "0" * 16),
        "identity 0 of node:A is out of range",
    ),
    "an identity used by two types": (
        copy_id(("nodes", 0), ("interfaces", 0)),
        "belongs to both interface:I and node:A",
    ),
    "an identity used by two properties": (
        copy_id(K, N),
        "belongs to both node:B.k and node:B.n",
    ),
    "an identity used by a type and a property": (
        copy_id(("edges", 0), K),
        "belongs to both node:B.k and edge:E",
    ),
    "no incarnation": (remove("edges", 0, "incarnation"), "edges[0] has no field `incarnation`"),
    "an interface with incarnation": (
        put("interfaces", 0, "incarnation", "0" * 15 + "f"),
        "interfaces[0] has an unknown field `incarnation`",
    ),
    "an endpoint that is no node type": (
        put("edges", 0, "src", "name", "I"),
        "src of edge:E is `I`, which is not a node type",
    ),
    "an endpoint with the identity of another": (
        put("edges", 0, "dst", "id", "00000000000000ff"),
        "document.edges[0].dst.id is '00000000000000ff', expected",
    ),
    "an unknown interface": (
        put("nodes", 1, "implements", 0, "name", "Nope"),
        "node:B implements unknown interface:Nope",
    ),
    "an interface that is not implemented": (
        remove("nodes", 1, "implements", 1),
        "is linked to other interfaces than those that require it",
    ),
    "a missing interface property": (
        put(*V, "name", "u"),
        "node:B lacks interface:I.v",
    ),
    "an interface property of another type": (
        put(*P, "type", "scalar", "I64"),
        "node:B.p is I64, interface:I declares it as I32",
    ),
    "an injected property without link": (put(*P, "satisfies", []), "comes from no interface"),
    "a declared property without link": (
        lambda found: at(found, *P).update(satisfies=[], declared_directly=True),
        "node:B.p is linked to other interfaces",
    ),
    "an undeclared property": (put(*T, "declared_directly", False), "comes from no interface"),
    "an injected edge property": (
        put("edges", 0, "properties", 0, "declared_directly", False),
        "edge:E.w cannot come from an interface",
    ),
    "a link to another property": (
        put(*P, "satisfies", 0, "property", "name", "q"),
        "satisfies[0].property.name is 'q', expected 'p'",
    ),
    "a reserved name": (put(*N, "name", "_rowid"), "node:B._rowid is reserved by the storage"),
    "a constraint over nothing known": (
        put("edges", 0, "constraints", 0, "properties", 0, "name", "nope"),
        "a constraint of edge:E names unknown `nope`",
    ),
    "a constraint of a wrong identity": (
        put("edges", 0, "constraints", 0, "properties", 0, "id", "00000000000000ff"),
        "constraints[0].properties[0].id is '00000000000000ff', expected None",
    ),
    "an unknown constraint": (
        put("edges", 0, "constraints", 0, {"kind": "odd", "properties": [{"name": "w"}]}),
        "document.edges[0].constraints[0].kind: unknown constraint `odd`",
    ),
    "a range over two properties": (
        put("edges", 0, "constraints", 0, "kind", "range"),
        "@range speaks of exactly one property",
    ),
    "a bound that is no number": (
        put(
            "nodes",
            0,
            "constraints",
            [{"kind": "range", "properties": [{"name": "tags"}], "min": "0", "max": None}],
        ),
        "document.nodes[0].constraints[0].min: expected a number or null",
    ),
    "a bound in another spelling": (
        lambda found: next(
            c for c in at(found, "nodes", 1, "constraints") if c["kind"] == "range"
        ).update(min=-1.0),
        "min is -1.0, expected -1",
    ),
    "constraints on a node property": (
        put(*T, "constraints", ["index"]),
        "constraints of node:B.t must be declared on node:B",
    ),
    "an unknown shorthand": (
        put("interfaces", 1, "properties", 0, "constraints", ["odd"]),
        "interface:J.p has unknown constraint `odd`",
    ),
    "a shorthand that is no text": (
        put("interfaces", 1, "properties", 0, "constraints", [1]),
        "document.interfaces[1].properties[0].constraints: expected str, found 1",
    ),
    "an unknown embed source": (
        put(*V, "embed", "source", "name", "nope"),
        "node:B.v embeds unknown `nope`",
    ),
    "no embed": (remove(*T, "embed"), "document.nodes[1].properties[3] has no field `embed`"),
    "an embed without model": (remove(*V, "embed", "model"), "embed has no field `model`"),
    "a model that is no text": (put(*V, "embed", "model", 1), "embed.model: expected str, found 1"),
    "an unknown scalar": (put(*T, "type", "scalar", "Text"), "properties[3].type: 'Text' is not a"),
    "a scalar that is no text": (
        put(*T, "type", "scalar", 5),
        "type.scalar: expected str, found 5",
    ),
    "a vector without dimension": (put(*V, "type", "scalar", {}), "properties[4].type: 'Vector'"),
    "a vector of no size": (put(*V, "type", "scalar", "Vector", 0), "properties[4].type"),
    "a nullability that is no boolean": (
        put(*T, "type", "nullable", 0),
        "type.nullable: expected bool",
    ),
    "a list flag that is no boolean": (put(*T, "type", "list", None), "type.list: expected bool"),
    "enum values that are no list": (
        put(*K, "type", "enum_values", "ab"),
        "enum_values: expected list",
    ),
    "enum values that are no texts": (
        put(*K, "type", "enum_values", [1]),
        "enum_values: expected str",
    ),
    "a type that is no object": (put(*K, "type", "I32"), "properties[0].type: expected dict"),
    "an annotation argument that is no text": (
        put("nodes", 1, "annotations", 0, "kwargs", "a", 2),
        "document.nodes[1].annotations[0].kwargs.a: expected str",
    ),
    "annotation arguments that are no object": (
        put("nodes", 1, "annotations", 1, "kwargs", []),
        "document.nodes[1].annotations[1].kwargs is [], expected an object",
    ),
    "a maximum that is no number": (
        put("edges", 0, "cardinality", "max", True),
        "document.edges[0].cardinality.max: expected int, found True",
    ),
    "a node without properties": (
        remove("nodes", 0, "properties"),
        "nodes[0] has no field `properties`",
    ),
}


@pytest.mark.parametrize("what", DAMAGES)
def test_a_damaged_document_is_refused_with_the_place(what):
    damage, fragment = DAMAGES[what]
    damaged = document()
    damage(damaged)
    with pytest.raises(SchemaCorrupt) as refusal:
        AcceptedSchema.from_json(damaged)
    assert fragment in refusal.value.message
    assert refusal.value.message.startswith("the accepted schema is corrupt: ")


def test_the_undamaged_document_is_accepted():
    assert AcceptedSchema.from_json(document()) == first(FULL)


@pytest.mark.parametrize("value", [None, 5, "text", [], True])
def test_a_document_that_is_no_object_is_refused(value):
    with pytest.raises(SchemaCorrupt, match="expected an object"):
        AcceptedSchema.from_json(value)


# --- schemas made by hand ----------------------------------------------------------------------


def test_two_types_of_one_name_cannot_be_accepted():
    (type_,) = first("node A {}").types
    twin = replace(type_, id=50, incarnation=51)
    with pytest.raises(SchemaCorrupt, match="duplicate type node:A"):
        AcceptedSchema(DOMAIN, (type_, twin))


def test_every_property_needs_an_identity():
    (type_,) = first("node A { x: I32 }").types
    with pytest.raises(SchemaCorrupt, match="node:A does not give each property one identity"):
        replace(type_, property_ids={})


def test_a_node_needs_an_incarnation():
    (type_,) = first("node A { x: I32 }").types
    with pytest.raises(SchemaCorrupt, match="node:A has the wrong kind of incarnation"):
        replace(type_, incarnation=None)


def test_an_identity_beyond_64_bits_cannot_be_accepted():
    (type_,) = first("node A {}").types
    with pytest.raises(SchemaCorrupt, match="out of range"):
        AcceptedSchema(DOMAIN, (replace(type_, id=MAX_IDENTITY + 1),))


def test_a_definition_is_kept_without_hints_and_places():
    (type_,) = first("node A {}").types
    kept = replace(type_, definition=replace(type_.definition, rename_from="B", span=(3, 4)))
    assert kept == type_
    assert isinstance(kept.definition, NodeType)
    assert kept.definition.span == (0, 0)


def test_documents_survive_a_migration():
    accepted = first(HARBOUR)
    resolved = after(accepted, HARBOUR.replace("city: String", 'town: String @rename_from("city")'))
    again = AcceptedSchema.from_json(json.loads(json.dumps(resolved.to_json())))
    assert again == resolved
    assert "rename_from" not in json.dumps(resolved.to_json())
