"""Reading `.pg` text: every production, and where its nodes stand."""

import pytest

from omnigraph.lang import SchemaError, parse_schema
from omnigraph.lang.schema_tree import (
    AnnotationArgument,
    AnnotationDecl,
    ArgumentKind,
    CardinalityDecl,
    ConstraintDecl,
    EdgeDecl,
    InterfaceDecl,
    NamedArgument,
    NodeDecl,
    PropertyDecl,
    RangeBounds,
    SchemaTree,
)
from omnigraph.lang.source import Name, TypeExpr
from omnigraph.types import BASE_NAMES
from tests.support.diagnostic_lines import reported_schema

STRING, INT, FLOAT, BOOL, NAME = ArgumentKind


def member(text):
    """Read one member of a node body."""
    [node] = parse_schema(f"node A {{ {text} }}").declarations
    [only] = node.members
    return only


def names(*texts):
    return tuple(Name(text) for text in texts)


X = PropertyDecl(Name("x"), TypeExpr("I32"))


@pytest.mark.parametrize(
    ("text", "declarations"),
    [
        ("", []),
        ("// nothing\n", []),
        ("interface I {}", [InterfaceDecl(Name("I"))]),
        ("interface I { x: I32 }", [InterfaceDecl(Name("I"), (X,))]),
        ("node A {}", [NodeDecl(Name("A"))]),
        (
            "node A @a @b implements I, J { x: I32 }",
            [
                NodeDecl(
                    Name("A"),
                    (AnnotationDecl(Name("a")), AnnotationDecl(Name("b"))),
                    names("I", "J"),
                    (X,),
                )
            ],
        ),
        (
            "node A @a implements I @b {}",
            [
                NodeDecl(
                    Name("A"), (AnnotationDecl(Name("a")), AnnotationDecl(Name("b"))), names("I")
                )
            ],
        ),
        ("edge E: A -> B", [EdgeDecl(*names("E", "A", "B"))]),
        ("edge E: A -> B {}", [EdgeDecl(*names("E", "A", "B"))]),
        (
            "edge E: A -> A @card(1..) @a { x: I32 }",
            [
                EdgeDecl(
                    *names("E", "A", "A"),
                    CardinalityDecl(1, None),
                    (AnnotationDecl(Name("a")),),
                    (X,),
                )
            ],
        ),
        (
            "edge E: A -> A @card(0..4294967295)",
            [EdgeDecl(*names("E", "A", "A"), CardinalityDecl(0, 4294967295))],
        ),
        (
            "edge E: A -> A @a @key(src, dst) @b { x: I32 @key(x) }",
            [
                EdgeDecl(
                    *names("E", "A", "A"),
                    None,
                    (AnnotationDecl(Name("a")), AnnotationDecl(Name("b"))),
                    (X, ConstraintDecl(Name("key"), names("x"))),
                    (ConstraintDecl(Name("key"), names("src", "dst")),),
                )
            ],
        ),
        (
            "edge E: A -> A node Node {}",
            [EdgeDecl(*names("E", "A", "A")), NodeDecl(Name("Node"))],
        ),
    ],
)
def test_declarations(text, declarations):
    assert parse_schema(text) == SchemaTree(tuple(declarations))


@pytest.mark.parametrize("base", BASE_NAMES)
@pytest.mark.parametrize("shape", ["{}", "{}?", "[{}]", "[{}]?"])
def test_every_base_type_may_be_listed_and_nullable(base, shape):
    expected = TypeExpr(base, is_list="[" in shape, nullable="?" in shape)
    assert member("x: " + shape.format(base)).type == expected


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        ("Vector(1)", TypeExpr("Vector", dimension=1)),
        ("Vector ( 2147483647 ) ?", TypeExpr("Vector", nullable=True, dimension=2147483647)),
        ("enum(a)", TypeExpr("enum", enum_values=names("a"))),
        (
            "enum(b, a, b)?",
            TypeExpr("enum", nullable=True, enum_values=names("b", "a", "b")),
        ),
        (
            "enum(phase-1, 3rd-party, 0, -, --, -1, _x, A9, true)",
            TypeExpr(
                "enum",
                enum_values=names("phase-1", "3rd-party", "0", "-", "--", "-1", "_x", "A9", "true"),
            ),
        ),
        ("enum(a,\n  // gone\n  b)", TypeExpr("enum", enum_values=names("a", "b"))),
    ],
)
def test_types_with_arguments(text, type_):
    assert member(f"x: {text}").type == type_


@pytest.mark.parametrize(
    ("text", "annotation"),
    [
        ("@key", AnnotationDecl(Name("key"))),
        ('@d("a\\n")', AnnotationDecl(Name("d"), AnnotationArgument(STRING, "a\n"))),
        ("@d(007)", AnnotationDecl(Name("d"), AnnotationArgument(INT, "007"))),
        ("@d(- 1)", AnnotationDecl(Name("d"), AnnotationArgument(INT, "-1"))),
        ("@d(-/* 1.5 */2)", AnnotationDecl(Name("d"), AnnotationArgument(INT, "-2"))),
        ("@d(-2.50)", AnnotationDecl(Name("d"), AnnotationArgument(FLOAT, "-2.50"))),
        ("@d(true)", AnnotationDecl(Name("d"), AnnotationArgument(BOOL, "true"))),
        ("@d(title)", AnnotationDecl(Name("d"), AnnotationArgument(NAME, "title"))),
        (
            '@embed(t, model="m", n=1)',
            AnnotationDecl(
                Name("embed"),
                AnnotationArgument(NAME, "t"),
                (
                    NamedArgument(Name("model"), AnnotationArgument(STRING, "m")),
                    NamedArgument(Name("n"), AnnotationArgument(INT, "1")),
                ),
            ),
        ),
    ],
)
def test_annotations(text, annotation):
    assert member(f"x: I32 {text}") == PropertyDecl(Name("x"), TypeExpr("I32"), (annotation,))


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ("@key(a, b)", names("a", "b")),
        ("@unique(src, dst)", names("src", "dst")),
        ("@index(a)", names("a")),
        ('@check(a, "^x$")', (Name("a"), AnnotationArgument(STRING, "^x$"))),
        (
            "@check(true, -2.5)",
            (AnnotationArgument(BOOL, "true"), AnnotationArgument(FLOAT, "-2.5")),
        ),
        ("@check(1)", (AnnotationArgument(INT, "1"),)),
        ("@range(a, 0..9)", (Name("a"), RangeBounds(0, 9))),
        ("@range(a, -1..-0.5)", (Name("a"), RangeBounds(-1, -0.5))),
        ("@range(a, 1..)", (Name("a"), RangeBounds(1, None))),
        ("@range(a, ..1.5)", (Name("a"), RangeBounds(None, 1.5))),
        ("@range(a, ..-1)", (Name("a"), RangeBounds(None, -1))),
    ],
)
def test_constraints(text, arguments):
    word = text[1 : text.index("(")]
    assert member(text) == ConstraintDecl(Name(word), arguments)


@pytest.mark.parametrize(
    ("bound", "value"),
    [
        ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775808", -(2**63)),
        ("9223372036854775808", 2.0**63),
        ("-9223372036854775809", -(2.0**63)),
        ("0" * 5000 + "7", 7),
        ("1" * 300, float("1" * 300)),
    ],
)
def test_a_range_bound_is_whole_while_it_fits_64_bits(bound, value):
    low = member(f"@range(a, {bound}..)").arguments[1].low
    assert low == value
    assert type(low) is type(value)


def test_a_constraint_may_follow_a_property_on_its_line():
    [node] = parse_schema("node A { x: I32 @unique(x) y: I32 @unique }").declarations
    assert [type(m).__name__ for m in node.members] == [
        "PropertyDecl",
        "ConstraintDecl",
        "PropertyDecl",
    ]


def test_no_word_is_reserved_for_properties():
    words = ("node", "edge", "interface", "implements", "enum", "true", "key", "card", "query")
    text = " ".join(f"{word}: I32" for word in words)
    [node] = parse_schema(f"node A {{ {text} }}").declarations
    assert [property_.name.text for property_ in node.members] == list(words)


def test_spans_cover_what_was_written():
    text = (
        'node A @d("x") { x: enum(a, b)? @e(1)\n @range(x, -1 .. 2) }\nedge E: A -> B @card(0 .. 1)'
    )
    node, edge = parse_schema(text).declarations
    property_, constraint = node.members
    places = [
        (node, 'node A @d("x") { x: enum(a, b)? @e(1)\n @range(x, -1 .. 2) }'),
        (node.annotations[0], '@d("x")'),
        (node.annotations[0].value, '"x"'),
        (property_, "x: enum(a, b)? @e(1)"),
        (property_.type, "enum(a, b)?"),
        (property_.type.enum_values[1], "b"),
        (constraint, "@range(x, -1 .. 2)"),
        (constraint.arguments[1], "-1 .. 2"),
        (edge, "edge E: A -> B @card(0 .. 1)"),
        (edge.cardinality, "@card(0 .. 1)"),
        (edge.dst, "B"),
    ]
    assert [text[slice(*place.span)] for place, _ in places] == [written for _, written in places]


def test_parse_raises_with_everything_that_is_wrong():
    with pytest.raises(SchemaError) as refusal:
        parse_schema("node a {}\nnode B { x I32 }", "my.pg")
    locations = [diagnostic.location for diagnostic in refusal.value.diagnostics]
    assert locations == ["my.pg:1:6", "my.pg:2:12"]
    assert refusal.value.code == "S000"
    assert reported_schema("node A {}") == []
