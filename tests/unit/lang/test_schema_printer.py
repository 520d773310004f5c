"""Canonical `.pg` text, to the letter."""

import pytest

from omnigraph.lang import parse_schema, print_schema, print_type
from omnigraph.lang.schema_tree import (
    AnnotationArgument,
    AnnotationDecl,
    ArgumentKind,
    ConstraintDecl,
    NodeDecl,
    RangeBounds,
    SchemaTree,
)
from omnigraph.lang.source import Name, TypeExpr

LONG_ENUM = ", ".join(f"value-number-{n}" for n in range(8))


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("", ""),
        ("node A{}", "node A {}\n"),
        ("edge E:A->B{}", "edge E: A -> B\n"),
        (
            "edge E:A->B@card( 0 .. 1 )@x edge F:A->B@card(2..)",
            "edge E: A -> B @card(0..1) @x\nedge F: A -> B @card(2..)\n",
        ),
        (
            "edge E:A->B@card(0..1)@x@key(src,dst)",
            "edge E: A -> B @card(0..1) @key(src, dst) @x\n",
        ),
        (
            "edge E:A->B{w:I32}edge F:A->B",
            "edge E: A -> B {\n  w: I32\n}\n\nedge F: A -> B\n",
        ),
        (
            "interface I{x:I32}node A@a implements I,J@b{@key(x,y)}",
            "interface I {\n  x: I32\n}\n\nnode A @a @b implements I, J {\n  @key(x, y)\n}\n",
        ),
        (
            "node A{a:[String]?b:Vector(3)c:enum(z,a-b)?@k@l(1,m=-2.50,n=true)}",
            "node A {\n  a: [String]?\n  b: Vector(3)\n"
            "  c: enum(z, a-b)? @k @l(1, m=-2.50, n=true)\n}\n",
        ),
        (
            "node A{@range(a,- 1..)@range(a,..2.50)@range(a,0..0000018446744073709551616)}",
            "node A {\n  @range(a, -1..)\n  @range(a, ..2.5)\n"
            "  @range(a, 0..18446744073709552000.0)\n}\n",
        ),
        (
            'node A{a:String@d("x\ty\\\\\\"\nz")}',
            'node A {\n  a: String @d("x\\ty\\\\\\"\\nz")\n}\n',
        ),
        (
            f"node A {{ a: enum({LONG_ENUM})? @x }}",
            "node A {\n  a: enum(\n    " + LONG_ENUM.replace(", ", ",\n    ") + "\n  )? @x\n}\n",
        ),
    ],
)
def test_tree_is_printed(text, printed):
    assert print_schema(parse_schema(text)) == printed


def test_a_tree_that_was_built_prints_like_one_that_was_read():
    argument = AnnotationArgument(ArgumentKind.STRING, 'a"b')
    constraint = ConstraintDecl(Name("range"), (Name("p"), RangeBounds(1e-7, 1e21)))
    node = NodeDecl(Name("A"), (AnnotationDecl(Name("d"), argument),), members=(constraint,))
    assert print_schema(SchemaTree((node,))) == (
        'node A @d("a\\"b") {\n  @range(p, 0.0000001..1000000000000000000000.0)\n}\n'
    )


@pytest.mark.parametrize(
    ("type_", "text"),
    [
        (TypeExpr("I32"), "I32"),
        (TypeExpr("I32", is_list=True, nullable=True), "[I32]?"),
        (TypeExpr("Vector", nullable=True, dimension=3), "Vector(3)?"),
        (TypeExpr("enum", enum_values=(Name("b"), Name("a"))), "enum(b, a)"),
    ],
)
def test_type_is_printed(type_, text):
    assert print_type(type_) == text
