"""Every step of a migration comes back from the wire as it was."""

from typing import get_args

import pytest

from omnigraph.catalog import TypeKind
from omnigraph.catalog import migration_steps as s
from omnigraph.catalog.model import (
    Annotation,
    Cardinality,
    Check,
    Index,
    Key,
    Metric,
    Range,
    Unique,
)
from omnigraph.lang import Code
from omnigraph.service.client.migration_steps import read_steps
from omnigraph.types import PropertyType, Scalar

NODE = TypeKind.NODE
STEPS = [
    s.AddType(NODE, "A"),
    s.RenameType(NODE, "A", "B"),
    s.AddProperty(NODE, "A", "p", PropertyType(Scalar.VECTOR, dimension=3), "x"),
    s.AddProperty(NODE, "A", "p", PropertyType(Scalar.STRING, True, enum_values=("a", "b"))),
    s.RenameProperty(NODE, "A", "p", "q"),
    s.AddConstraint(NODE, "A", Key(("a", "b"))),
    s.AddConstraint(NODE, "A", Unique(("a",))),
    s.AddConstraint(NODE, "A", Index(("a",))),
    s.AddConstraint(NODE, "A", Index(("a",), Metric.L2)),
    s.AddConstraint(NODE, "A", Range("a", 1, None)),
    s.RemoveConstraint(NODE, "A", Check("a", "^x$")),
    s.ChangeCardinality(TypeKind.EDGE, "E", Cardinality(0, 1), Cardinality(1, None)),
    s.ChangeKey(TypeKind.EDGE, "E", Key(("src", "dst")), Key(("src", "dst", "on")), 3),
    s.ChangeKey(TypeKind.EDGE, "E", None, Key(("src", "dst"))),
    s.ExtendEnum(NODE, "A", "p", ("c", "d")),
    s.WidenProperty(NODE, "A", "p", PropertyType(Scalar.I32), PropertyType(Scalar.I64)),
    s.MakeOptional(NODE, "A", "p"),
    s.MakeRequired(NODE, "A", "p"),
    s.UpdateTypeMetadata(NODE, "A", (Annotation("description", "x", (("k", "v"),)),)),
    s.UpdatePropertyMetadata(NODE, "A", "p", (Annotation("flag"),)),
    s.DeclareEmbeddingModel(NODE, "A", "p", "m"),
    s.DropType(NODE, "A"),
    s.DropProperty(NODE, "A", "p", s.DropMode.HARD),
    s.UnsupportedChange("node A", "because", next(iter(Code))),
    s.UnsupportedChange("node A", "because"),
]


@pytest.mark.parametrize("step", STEPS, ids=lambda step: type(step).__name__)
def test_step_comes_back(step):
    assert read_steps([step.to_json()]) == (step,)


def test_every_kind_of_step_is_among_them():
    assert {type(step) for step in STEPS} == set(get_args(s.MigrationStep))
