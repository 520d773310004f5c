"""What operators yield, and what plans of expressions speak of."""

from dataclasses import replace

import pytest

from omnigraph.lang.query_tree import ComparisonOperator
from omnigraph.plan.expressions import (
    And,
    Binding,
    Compare,
    Constant,
    Direction,
    EntityKind,
    FunctionCall,
    Hops,
    IsIn,
    IsNull,
    Or,
    ParameterRef,
    PatternStep,
    PredicateCall,
    is_call,
    predicate_variables,
)
from omnigraph.plan.functions import FUNCTIONS, FunctionKind
from omnigraph.plan.operators import (
    Aggregate,
    AntiJoin,
    ColumnSortKey,
    Cross,
    Distinct,
    ExistsJoin,
    Expand,
    Filter,
    OptionalJoin,
    OuterRow,
    OutputColumn,
    Project,
    Scan,
    SemiJoin,
    SliceColumns,
    SliceRows,
    SortColumns,
    SortRows,
    operator_inputs,
)
from omnigraph.types import PropertyType, Scalar
from tests.support.plans import CALL, NUMBER, PORT, SHIP, TEXT, equals, text

SHIPS = Scan(SHIP)
PORTS = Scan(PORT)
BOTH = Cross(SHIPS, PORTS)
EXPAND = Expand(input=SHIPS, src="s", edge="CallsAt", direction=Direction.OUT, dst=PORT)
EXPAND_EDGE = Expand(
    input=SHIPS, src="s", edge="CallsAt", direction=Direction.OUT, dst=PORT, edge_binding=CALL
)
CLOSE = SemiJoin(input=BOTH, src="s", edge="CallsAt", direction=Direction.OUT, dst="p")
CLOSE_EDGE = SemiJoin(
    input=BOTH, src="s", edge="CallsAt", direction=Direction.OUT, dst="p", edge_binding=CALL
)
COUNT = FunctionCall(FUNCTIONS["count"], (text(SHIP),), NUMBER)
LABEL = OutputColumn("label", text(SHIP))
LABELS = Project(SHIPS, (LABEL,))
GROUPS = Aggregate(SHIPS, (LABEL,), (OutputColumn("n", COUNT),), ("n", "label"))


@pytest.mark.parametrize(
    ("operator", "bindings"),
    [
        (SHIPS, [SHIP]),
        (OuterRow((SHIP, CALL)), [SHIP, CALL]),
        (EXPAND, [SHIP, PORT]),
        (EXPAND_EDGE, [SHIP, PORT, CALL]),
        (BOTH, [SHIP, PORT]),
        (CLOSE, [SHIP, PORT]),
        (CLOSE_EDGE, [SHIP, PORT, CALL]),
        (Filter(BOTH, equals(text(SHIP), text(PORT))), [SHIP, PORT]),
        (AntiJoin(SHIPS, OuterRow((SHIP,))), [SHIP]),
        (ExistsJoin(SHIPS, Cross(OuterRow((SHIP,)), PORTS)), [SHIP]),
        (OptionalJoin(SHIPS, Cross(OuterRow((SHIP,)), PORTS)), [SHIP, PORT]),
        (SortRows(EXPAND, (), ("s",)), [SHIP, PORT]),
        (SliceRows(EXPAND, 1, None), [SHIP, PORT]),
    ],
)
def test_rows_know_their_bindings_by_name(operator, bindings):
    assert operator.variables == {binding.name: binding for binding in bindings}


@pytest.mark.parametrize(
    ("operator", "names"),
    [
        (LABELS, ("label",)),
        (GROUPS, ("n", "label")),
        (Distinct(LABELS), ("label",)),
        (SortColumns(GROUPS, (ColumnSortKey("n"),), ("label",)), ("n", "label")),
        (SliceColumns(Distinct(LABELS), None, 5), ("label",)),
    ],
)
def test_results_know_their_columns_in_order(operator, names):
    assert operator.names == names


@pytest.mark.parametrize(
    ("operator", "sources"),
    [
        (SHIPS, ()),
        (OuterRow((SHIP,)), ()),
        (BOTH, (SHIPS, PORTS)),
        (EXPAND, (SHIPS,)),
        (AntiJoin(SHIPS, OuterRow((SHIP,))), (SHIPS, OuterRow((SHIP,)))),
        (OptionalJoin(SHIPS, OuterRow((SHIP,))), (SHIPS, OuterRow((SHIP,)))),
        (GROUPS, (SHIPS,)),
        (Distinct(LABELS), (LABELS,)),
    ],
)
def test_inputs_are_what_an_operator_reads_from(operator, sources):
    assert operator_inputs(operator) == sources


SEARCH = FunctionCall(FUNCTIONS["search"], (text(SHIP), text(PORT)), PropertyType(Scalar.BOOL))
LIST = PropertyType(Scalar.STRING, is_list=True)


@pytest.mark.parametrize(
    ("predicate", "variables"),
    [
        (Compare(ParameterRef("x", TEXT), ComparisonOperator.EQ, Constant("y", TEXT)), set()),
        (equals(text(SHIP), "x"), {"s"}),
        (equals(text(SHIP), text(PORT)), {"s", "p"}),
        (IsNull(text(PORT)), {"p"}),
        (IsIn(text(SHIP), Constant(["x"], LIST)), {"s"}),
        (PredicateCall(SEARCH), {"s", "p"}),
        (And((IsNull(text(SHIP)), Or((IsNull(text(PORT)), IsNull(text(CALL)))))), {"s", "p", "c"}),
    ],
)
def test_a_predicate_speaks_of_the_bindings_it_reads(predicate, variables):
    assert predicate_variables(predicate) == variables


def test_a_call_is_reported_by_its_kind():
    assert is_call(COUNT, FunctionKind.AGGREGATE)
    assert not is_call(COUNT, FunctionKind.RANK)
    assert not is_call(text(SHIP), FunctionKind.AGGREGATE)


@pytest.mark.parametrize(
    ("name", "named"),
    [("s", True), ("s#2", True), ("_x", True), ("__nanograph", True), ("_#1", False)],
)
def test_only_the_anonymous_variable_is_not_named(name, named):
    assert Binding(name, EntityKind.NODE, "Ship").is_named is named


@pytest.mark.parametrize(
    ("direction", "backwards"),
    [
        (Direction.OUT, Direction.IN),
        (Direction.IN, Direction.OUT),
        (Direction.BOTH, Direction.BOTH),
    ],
)
def test_a_step_walked_backwards_follows_the_same_edges(direction, backwards):
    step = PatternStep(src=SHIP, edge="CallsAt", dst=PORT, direction=direction, hops=Hops(1, 3))
    turned = PatternStep(src=PORT, edge="CallsAt", dst=SHIP, direction=backwards, hops=Hops(1, 3))
    assert step.reversed == replace(turned, is_reversed=True)
    assert step.reversed.reversed == step
