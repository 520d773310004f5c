"""The identity-free shape of a schema and its fingerprint."""

import hashlib
import json

import pytest

from omnigraph.catalog import schema_shape, shape_hash
from tests.support.catalogs import HARBOUR, sound

SAME = {
    "comments": ("node A { x: I32 }", "// one\nnode A { /* two */ x: I32 } // three"),
    "order of types": ("node A {} node B {} edge E: A -> B", "edge E: A -> B node B {} node A {}"),
    "order of interfaces": ("interface I {} interface J {}", "interface J {} interface I {}"),
    "order of properties": ("node A { x: I32 y: I64 }", "node A { y: I64 x: I32 }"),
    "order of enum values": ("node A { x: enum(b, a) }", "node A { x: enum(a, b) }"),
    "order of annotations": (
        "node A @p @o(1) { x: I32 @s @r }",
        "node A @o(1) @p { x: I32 @r @s }",
    ),
    "repeated annotations": ("node A @o @o { x: I32 @r @r }", "node A @o { x: I32 @r }"),
    "order of named arguments": ('node A @o(1, a="x", b="y") {}', 'node A @o(1, b="y", a="x") {}'),
    "order of implements": (
        "interface I { a: I32 } interface J { a: I32 } node A implements I, J {}",
        "interface I { a: I32 } interface J { a: I32 } node A implements J, I, J {}",
    ),
    "order of constraints": (
        "node A { x: I32 y: I32 @unique(x, y) @index(x) }",
        "node A { x: I32 y: I32 @index(x) @unique(y, x) }",
    ),
    "shorthand or body on a node": (
        "node A { c: String @index }",
        "node A { c: String @index(c) }",
    ),
    "shorthand or body on an edge": (
        "node A {} edge E: A -> A { c: String @unique }",
        "node A {} edge E: A -> A { @unique(c) c: String }",
    ),
    "key shorthand or body": ("node A { k: I32 @key }", "node A { k: I32 @key(k) }"),
    "order of shorthands": (
        "interface I { k: I32 @key @index }",
        "interface I { k: I32 @index @key }",
    ),
    "rename hints": (
        'interface I { p: I32 @rename_from("r") }\n'
        'node A @rename_from("B") { x: I32 @rename_from(y) }',
        "interface I { p: I32 } node A { x: I32 }",
    ),
    "spelling of bounds": (
        "node A { x: F32 @range(x, 1..) }",
        "node A { x: F32 @range(x, 1.0..) }",
    ),
    "the default cardinality": (
        "node A {} edge E: A -> A",
        "node A {} edge E: A -> A @card(0..) {}",
    ),
    "spelling of arguments": ("node A @o(m) {}", 'node A @o("m") {}'),
}

DIFFERENT = {
    "type name": ("node A {}", "node B {}"),
    "kind": ("node A {}", "interface A {}"),
    "property name": ("node A { x: I32 }", "node A { y: I32 }"),
    "scalar": ("node A { x: I32 }", "node A { x: I64 }"),
    "nullability": ("node A { x: I32 }", "node A { x: I32? }"),
    "list": ("node A { x: I32 }", "node A { x: [I32] }"),
    "vector dimension": ("node A { x: Vector(2) }", "node A { x: Vector(3) }"),
    "enum values": ("node A { x: enum(a) }", "node A { x: enum(a, b) }"),
    "enum or String": ("node A { x: enum(a) }", "node A { x: String }"),
    "annotation": ("node A @o {}", "node A @p {}"),
    "annotation value": ("node A @o {}", "node A @o(1) {}"),
    "annotation argument": ("node A @o(1, a=1) {}", "node A @o(1, a=2) {}"),
    "description": ('node A @description("a") {}', 'node A @description("b") {}'),
    "property annotation": ("node A { x: I32 @o }", "node A { x: I32 }"),
    "constraint": ("node A { x: I32 @index }", "node A { x: I32 @unique }"),
    "columns": ("node A { x: I32 y: I32 @unique(x) }", "node A { x: I32 y: I32 @unique(x, y) }"),
    "bounds": ("node A { x: I32 @range(x, 0..) }", "node A { x: I32 @range(x, 1..) }"),
    "pattern": ('node A { x: String @check(x, "a") }', 'node A { x: String @check(x, "b") }'),
    "interface shorthand": ("interface I { x: I32 @index }", "interface I { x: I32 }"),
    "embed source": (
        "node A { s: String t: String v: Vector(2) @embed(s) }",
        "node A { s: String t: String v: Vector(2) @embed(t) }",
    ),
    "embed model": (
        "node A { s: String v: Vector(2) @embed(s) }",
        'node A { s: String v: Vector(2) @embed(s, model="m") }',
    ),
    "implements": ("interface I {} node A {}", "interface I {} node A implements I {}"),
    "provenance": (
        "interface I { x: I32 } node A implements I {}",
        "interface I { x: I32 } node A implements I { x: I32 }",
    ),
    "src": ("node A {} node B {} edge E: A -> A", "node A {} node B {} edge E: B -> A"),
    "dst": ("node A {} node B {} edge E: A -> A", "node A {} node B {} edge E: A -> B"),
    "cardinality": ("node A {} edge E: A -> A", "node A {} edge E: A -> A @card(0..1)"),
}


@pytest.mark.parametrize("what", SAME)
def test_shape_does_not_depend_on(what):
    one, other = (sound(text) for text in SAME[what])
    assert schema_shape(one) == schema_shape(other)
    assert shape_hash(one) == shape_hash(other)


@pytest.mark.parametrize("what", DIFFERENT)
def test_shape_depends_on(what):
    one, other = (sound(text) for text in DIFFERENT[what])
    assert schema_shape(one) != schema_shape(other)
    assert shape_hash(one) != shape_hash(other)


def test_shape_is_a_plain_document():
    text = (
        "interface I { p: I32 @index }\n"
        'node B implements I { v: Vector(2)? @embed(t, model="m") @description("d")\n'
        "  t: String @o }\n"
        "node A {} edge E: B -> A @card(1..2) @o(x, a=1) { w: enum(b, a) @unique }"
    )

    def shape(name, type_, **rest):
        plain = {
            "name": name,
            "type": type_,
            "annotations": [],
            "constraints": [],
            "embed": None,
            "declared_directly": True,
            "satisfies": [],
        }
        return plain | rest

    integer = {"scalar": "I32", "nullable": False, "list": False, "enum_values": None}
    string = {"scalar": "String", "nullable": False, "list": False, "enum_values": None}
    vector = {"scalar": {"Vector": 2}, "nullable": True, "list": False, "enum_values": None}
    assert schema_shape(sound(text)) == {
        "interfaces": [{"name": "I", "properties": [shape("p", integer, constraints=["index"])]}],
        "nodes": [
            {
                "name": "A",
                "implements": [],
                "annotations": [],
                "properties": [],
                "constraints": [],
            },
            {
                "name": "B",
                "implements": ["I"],
                "annotations": [],
                "properties": [
                    shape("p", integer, declared_directly=False, satisfies=["I"]),
                    shape("t", string, annotations=[{"name": "o", "value": None}]),
                    shape(
                        "v",
                        vector,
                        annotations=[{"name": "description", "value": "d"}],
                        embed={"source": "t", "model": "m"},
                    ),
                ],
                "constraints": [{"Index": ["p"]}],
            },
        ],
        "edges": [
            {
                "name": "E",
                "src": "B",
                "dst": "A",
                "cardinality": {"min": 1, "max": 2},
                "annotations": [{"name": "o", "value": "x", "kwargs": {"a": "1"}}],
                "properties": [shape("w", string | {"enum_values": ["a", "b"]})],
                "constraints": [{"Unique": ["w"]}],
            }
        ],
    }


def test_hash_is_sha256_of_the_compact_document():
    catalog = sound(HARBOUR)
    document = schema_shape(catalog)
    text = json.dumps(document, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    assert shape_hash(catalog) == "sha256:" + hashlib.sha256(text.encode()).hexdigest()
