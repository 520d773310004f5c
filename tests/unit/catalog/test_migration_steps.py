"""Migration steps on the wire and for people."""

import pytest

from omnigraph.catalog import (
    Annotation,
    Cardinality,
    Check,
    DeclareEmbeddingModel,
    DropMode,
    Index,
    Key,
    MigrationPlan,
    Range,
    TypeKind,
)
from omnigraph.catalog.migration_steps import (
    AddConstraint,
    AddProperty,
    AddType,
    ChangeCardinality,
    ChangeKey,
    DropProperty,
    DropType,
    ExtendEnum,
    MakeOptional,
    MakeRequired,
    MigrationStep,
    RemoveConstraint,
    RenameProperty,
    RenameType,
    UnsupportedChange,
    UpdatePropertyMetadata,
    UpdateTypeMetadata,
    WidenProperty,
)
from omnigraph.catalog.model import Unique
from omnigraph.lang import Code
from omnigraph.types import PropertyType, Scalar

NODE, EDGE, INTERFACE = TypeKind.NODE, TypeKind.EDGE, TypeKind.INTERFACE
TAGS = (Annotation("description", 'a "b"'), Annotation("tag"), Annotation("x", "1", (("a", "2"),)))
TAGS_WIRE = [
    {"name": "description", "value": 'a "b"'},
    {"name": "tag", "value": None},
    {"name": "x", "value": "1", "kwargs": {"a": "2"}},
]
TAGS_TEXT = '@description("a \\"b\\"") @tag @x("1", a="2")'

STEPS = [
    (
        AddType(INTERFACE, "I"),
        {"kind": "add_type", "type_kind": "interface", "name": "I"},
        "add type interface I",
    ),
    (
        RenameType(NODE, "Ship", "Vessel"),
        {"kind": "rename_type", "type_kind": "node", "from": "Ship", "to": "Vessel"},
        "rename type node Ship -> Vessel",
    ),
    (
        AddProperty(NODE, "Ship", "tonnage", PropertyType(Scalar.I32, nullable=True)),
        {
            "kind": "add_property",
            "type_kind": "node",
            "type_name": "Ship",
            "property_name": "tonnage",
            "property_type": {
                "scalar": "I32",
                "nullable": True,
                "list": False,
                "enum_values": None,
            },
        },
        "add property node Ship.tonnage: I32?",
    ),
    (
        AddProperty(EDGE, "E", "v", PropertyType(Scalar.VECTOR, nullable=True, dimension=3)),
        {
            "kind": "add_property",
            "type_kind": "edge",
            "type_name": "E",
            "property_name": "v",
            "property_type": {
                "scalar": {"Vector": 3},
                "nullable": True,
                "list": False,
                "enum_values": None,
            },
        },
        "add property edge E.v: Vector(3)?",
    ),
    (
        AddProperty(NODE, "Ship", "flag", PropertyType(Scalar.STRING), "none"),
        {
            "kind": "add_property",
            "type_kind": "node",
            "type_name": "Ship",
            "property_name": "flag",
            "property_type": {
                "scalar": "String",
                "nullable": False,
                "list": False,
                "enum_values": None,
            },
            "default": "none",
        },
        "add property node Ship.flag: String = none",
    ),
    (
        RenameProperty(EDGE, "E", "a", "b"),
        {"kind": "rename_property", "type_kind": "edge", "type_name": "E", "from": "a", "to": "b"},
        "rename property edge E.a -> b",
    ),
    (
        AddConstraint(NODE, "Port", Index(("city",))),
        {
            "kind": "add_constraint",
            "type_kind": "node",
            "type_name": "Port",
            "constraint": {"Index": ["city"]},
        },
        "add constraint node Port @index(city)",
    ),
    (
        ExtendEnum(NODE, "Ship", "kind", ("barge", "yacht")),
        {
            "kind": "extend_enum",
            "type_kind": "node",
            "type_name": "Ship",
            "property_name": "kind",
            "added_values": ["barge", "yacht"],
        },
        "extend enum node Ship.kind: barge, yacht",
    ),
    (
        RemoveConstraint(NODE, "Port", Unique(("city",))),
        {
            "kind": "remove_constraint",
            "type_kind": "node",
            "type_name": "Port",
            "constraint": {"Unique": ["city"]},
        },
        "remove constraint node Port @unique(city)",
    ),
    (
        ChangeCardinality(EDGE, "E", Cardinality(0, 2), Cardinality(0, None)),
        {
            "kind": "change_cardinality",
            "type_kind": "edge",
            "type_name": "E",
            "from": "0..2",
            "to": "0..",
        },
        "change cardinality edge E: 0..2 -> 0..",
    ),
    (
        ChangeKey(EDGE, "E", Key(("src", "dst")), Key(("src", "dst", "on")), 1_200),
        {
            "kind": "change_key",
            "type_kind": "edge",
            "type_name": "E",
            "from": {"Key": ["src", "dst"]},
            "to": {"Key": ["src", "dst", "on"]},
            "edges": 1200,
        },
        "change key edge E: @key(src, dst) -> @key(src, dst, on) "
        "(rewrites 1,200 edges, ids change)",
    ),
    (
        ChangeKey(EDGE, "E", None, Key(("src", "dst"))),
        {
            "kind": "change_key",
            "type_kind": "edge",
            "type_name": "E",
            "to": {"Key": ["src", "dst"]},
        },
        "change key edge E: none -> @key(src, dst) (rewrites all edges, ids change)",
    ),
    (
        ChangeKey(EDGE, "E", None, Key(("src", "dst")), 0),
        {
            "kind": "change_key",
            "type_kind": "edge",
            "type_name": "E",
            "to": {"Key": ["src", "dst"]},
            "edges": 0,
        },
        "change key edge E: none -> @key(src, dst)",
    ),
    (
        WidenProperty(NODE, "Ship", "x", PropertyType(Scalar.I32), PropertyType(Scalar.I64)),
        {
            "kind": "widen_property",
            "type_kind": "node",
            "type_name": "Ship",
            "property_name": "x",
            "from": {"scalar": "I32", "nullable": False, "list": False, "enum_values": None},
            "to": {"scalar": "I64", "nullable": False, "list": False, "enum_values": None},
        },
        "widen property node Ship.x: I32 -> I64",
    ),
    (
        MakeOptional(NODE, "Ship", "x"),
        {
            "kind": "make_optional",
            "type_kind": "node",
            "type_name": "Ship",
            "property_name": "x",
        },
        "make optional node Ship.x",
    ),
    (
        MakeRequired(EDGE, "E", "x"),
        {
            "kind": "make_required",
            "type_kind": "edge",
            "type_name": "E",
            "property_name": "x",
        },
        "make required edge E.x",
    ),
    (
        UpdateTypeMetadata(EDGE, "E", TAGS),
        {
            "kind": "update_type_metadata",
            "type_kind": "edge",
            "name": "E",
            "annotations": TAGS_WIRE,
        },
        f"update metadata edge E: {TAGS_TEXT}",
    ),
    (
        DeclareEmbeddingModel(NODE, "A", "v", "m"),
        {
            "kind": "declare_embedding_model",
            "type_kind": "node",
            "type_name": "A",
            "property_name": "v",
            "model": "m",
        },
        "declare embedding model node A.v: m",
    ),
    (
        UpdatePropertyMetadata(NODE, "A", "x", ()),
        {
            "kind": "update_property_metadata",
            "type_kind": "node",
            "type_name": "A",
            "property_name": "x",
            "annotations": [],
        },
        "update metadata node A.x: none",
    ),
    (
        DropType(NODE, "Note"),
        {"kind": "drop_type", "type_kind": "node", "name": "Note", "mode": "soft"},
        "drop type node Note (soft)",
    ),
    (
        DropProperty(INTERFACE, "I", "p", DropMode.HARD),
        {
            "kind": "drop_property",
            "type_kind": "interface",
            "type_name": "I",
            "property_name": "p",
            "mode": "hard",
        },
        "drop property interface I.p (hard)",
    ),
    (
        UnsupportedChange("node:Ship.tonnage", "why not", Code.REQUIRED_PROPERTY_ADDED),
        {
            "kind": "unsupported_change",
            "entity": "node:Ship.tonnage",
            "reason": "why not",
            "code": "OG-MF-103",
        },
        "refused [OG-MF-103] node:Ship.tonnage: why not",
    ),
    (
        UnsupportedChange("interface:I", "why not"),
        {"kind": "unsupported_change", "entity": "interface:I", "reason": "why not"},
        "refused interface:I: why not",
    ),
]


@pytest.mark.parametrize(("step", "wire", "text"), STEPS, ids=lambda value: type(value).__name__)
def test_a_step_has_one_wire_form_and_one_line(step, wire, text):
    assert step.to_json() == wire
    assert next(iter(step.to_json())) == "kind"
    assert step.describe() == text


def test_every_step_has_a_case():
    assert {type(step) for step, _, _ in STEPS} == set(MigrationStep.__args__)


@pytest.mark.parametrize(
    ("constraint", "wire", "text"),
    [
        (Key(("a", "b")), {"Key": ["a", "b"]}, "@key(a, b)"),
        (Unique(("src",)), {"Unique": ["src"]}, "@unique(src)"),
        (Index(("a",)), {"Index": ["a"]}, "@index(a)"),
        (
            Range("a", 0, 30.5),
            {"Range": {"property": "a", "min": 0, "max": 30.5}},
            "@range(a, 0..30.5)",
        ),
        (
            Range("a", None, -1),
            {"Range": {"property": "a", "min": None, "max": -1}},
            "@range(a, ..-1)",
        ),
        (
            Check("a", 'x"\n'),
            {"Check": {"property": "a", "pattern": 'x"\n'}},
            '@check(a, "x\\"\\n")',
        ),
    ],
)
def test_every_constraint_has_one_wire_form_and_one_text(constraint, wire, text):
    step = AddConstraint(NODE, "A", constraint)
    assert step.to_json()["constraint"] == wire
    assert step.describe() == f"add constraint node A {text}"


def test_a_refusal_gives_its_code_in_the_message():
    coded = UnsupportedChange("node:A.x", "why not", Code.PROPERTY_TYPE_CHANGED)
    assert coded.message == "[OG-MF-106] why not"
    assert UnsupportedChange("node:A", "why not").message == "why not"


def test_a_plan_is_supported_until_a_step_is_refused():
    plan = MigrationPlan((AddType(NODE, "A"),))
    assert plan.supported
    assert plan.refusals == ()
    refusal = UnsupportedChange("node:B", "why not")
    refused = MigrationPlan((*plan.steps, refusal))
    assert not refused.supported
    assert refused.refusals == (refusal,)


def test_a_plan_on_the_wire_counts_its_steps():
    assert MigrationPlan().to_json() == {"supported": True, "step_count": 0, "steps": []}
    assert MigrationPlan((UnsupportedChange("node:B", "why"), AddType(NODE, "A"))).to_json() == {
        "supported": False,
        "step_count": 2,
        "steps": [
            {"kind": "unsupported_change", "entity": "node:B", "reason": "why"},
            {"kind": "add_type", "type_kind": "node", "name": "A"},
        ],
    }


def test_data_loss_makes_every_drop_hard_and_changes_nothing_else():
    drops = (DropType(NODE, "A"), DropProperty(NODE, "B", "x"))
    others = tuple(step for step, _, _ in STEPS if not isinstance(step, DropType | DropProperty))
    hard = (DropType(NODE, "A", DropMode.HARD), DropProperty(NODE, "B", "x", DropMode.HARD))
    assert MigrationPlan((*drops, *others)).with_data_loss() == MigrationPlan((*hard, *others))
