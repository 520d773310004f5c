"""Constructors refuse what could not be executed."""

import pytest

from omnigraph.lang.query_tree import ComparisonOperator
from omnigraph.plan.expressions import (
    Compare,
    Constant,
    Direction,
    EntityKind,
    FunctionCall,
    Hops,
    IsIn,
    ParameterRef,
    PatternStep,
    PredicateCall,
    PropertyRef,
)
from omnigraph.plan.functions import FUNCTIONS
from omnigraph.plan.operators import (
    Aggregate,
    AntiJoin,
    ColumnSortKey,
    Cross,
    Distinct,
    Expand,
    Filter,
    OuterRow,
    OutputColumn,
    Project,
    Scan,
    SemiJoin,
    SortColumns,
    SortKey,
    SortRows,
)
from omnigraph.plan.query_plan import Delete, InsertNode, MutationPlan, Update
from omnigraph.types import PropertyType, Scalar
from tests.support.plans import CALL, NUMBER, OTHER_PORT, PORT, SHIP, TEXT, equals, text

LIST = PropertyType(Scalar.STRING, is_list=True)
VECTOR = PropertyType(Scalar.VECTOR, dimension=3)
BLOB = PropertyType(Scalar.BLOB)
DAY = PropertyType(Scalar.DATE)

SHIPS = Scan(SHIP)
ABOUT_PORT = equals(text(PORT), "x")
COUNT = FunctionCall(FUNCTIONS["count"], (text(SHIP),), NUMBER)
LABEL = OutputColumn("label", text(SHIP))
LABELS = Project(SHIPS, (LABEL,))
ASSIGNED = {"label": Constant("x", TEXT)}
TESTED = (equals(text(SHIP), "x"),)
UPDATE = Update(EntityKind.NODE, "Ship", ASSIGNED, TESTED)
DELETE = Delete(EntityKind.NODE, "Ship", TESTED)


def parameter(type_):
    return ParameterRef("x", type_)


def compare(left, operator, right):
    return lambda: Compare(parameter(left), operator, parameter(right))


def expand(**changes):
    given = {"input": SHIPS, "src": "s", "edge": "CallsAt", "direction": Direction.OUT, "dst": PORT}
    return lambda: Expand(**(given | changes))


def close(**changes):
    both = Cross(SHIPS, Scan(PORT))
    given = {"input": both, "src": "s", "edge": "CallsAt", "direction": Direction.OUT, "dst": "p"}
    return lambda: SemiJoin(**(given | changes))


def step(**changes):
    given = {"src": SHIP, "edge": "CallsAt", "dst": PORT, "direction": Direction.OUT}
    return lambda: PatternStep(**(given | changes))


def mutation(*statements):
    return lambda: MutationPlan(name="m", parameters=(), statements=statements)


SENSE = {
    "expand": expand(),
    "expand with an edge variable": expand(edge_binding=CALL, predicates=(ABOUT_PORT,)),
    "close": close(),
    "close with an edge variable": close(edge_binding=CALL),
    "step with bounds": step(hops=Hops(1, 3)),
    "compare numbers": compare(NUMBER, ComparisonOperator.LT, PropertyType(Scalar.F32)),
    "contains in a list": compare(LIST, ComparisonOperator.CONTAINS, TEXT),
    "contains in text": compare(TEXT, ComparisonOperator.CONTAINS, TEXT),
    "mutation that inserts and updates": mutation(InsertNode("Ship", ASSIGNED, True), UPDATE),
    "mutation that deletes": mutation(DELETE, DELETE),
}


@pytest.mark.parametrize("make", SENSE.values(), ids=SENSE)
def test_sense_is_accepted(make):
    assert make() == make()


NONSENSE = {
    # expressions
    "too few arguments": (
        lambda: FunctionCall(FUNCTIONS["search"], (text(SHIP),), TEXT),
        "search cannot take 1 arguments",
    ),
    "too many arguments": (
        lambda: FunctionCall(FUNCTIONS["fuzzy"], (text(SHIP),) * 4, TEXT),
        "fuzzy cannot take 4 arguments",
    ),
    "distinct sum": (
        lambda: FunctionCall(FUNCTIONS["sum"], (text(SHIP),), NUMBER, True),
        "sum cannot be distinct",
    ),
    "compare text with a number": (
        compare(TEXT, ComparisonOperator.EQ, NUMBER),
        "cannot compare String = I64",
    ),
    "compare lists": (
        compare(LIST, ComparisonOperator.EQ, LIST),
        r"cannot compare \[String\] = \[String\]",
    ),
    "compare vectors": (compare(VECTOR, ComparisonOperator.NE, VECTOR), "cannot compare Vector"),
    "compare blobs": (compare(BLOB, ComparisonOperator.EQ, BLOB), "cannot compare Blob = Blob"),
    "contains in a number": (
        compare(NUMBER, ComparisonOperator.CONTAINS, NUMBER),
        "cannot compare I64 contains I64",
    ),
    "contains of another type": (
        compare(LIST, ComparisonOperator.CONTAINS, NUMBER),
        r"cannot compare \[String\] contains I64",
    ),
    "starts_with of a list": (
        compare(LIST, ComparisonOperator.STARTS_WITH, TEXT),
        r"cannot compare \[String\] starts_with String",
    ),
    "membership in no list": (
        lambda: IsIn(text(SHIP), parameter(TEXT)),
        "String is not a list of choices",
    ),
    "membership among another type": (
        lambda: IsIn(parameter(DAY), parameter(LIST)),
        r"cannot look for Date in \[String\]",
    ),
    "a count that holds": (lambda: PredicateCall(COUNT), "count is not a predicate"),
    # patterns
    "no hops": (lambda: Hops(0, 1), r"hops 0\.\.1 are out of order"),
    "hops backwards": (lambda: Hops(3, 2), r"hops 3\.\.2 are out of order"),
    "step with an edge variable and bounds": (
        step(edge_binding=CALL, hops=Hops(1, 2)),
        "an edge binding needs a single hop",
    ),
    # rows
    "scan of edges": (lambda: Scan(CALL), "only nodes are scanned"),
    "scan for another binding": (
        lambda: Scan(SHIP, (ABOUT_PORT,)),
        r"scan refers to unbound \['p'\]",
    ),
    "expand from nowhere": (expand(src="x"), r"expand starts at unbound \$x"),
    "expand to what is bound": (
        expand(dst=SHIP),
        "expand binds a variable that is bound already",
    ),
    "expand over what is bound": (
        expand(input=Cross(SHIPS, Scan(OTHER_PORT)), edge_binding=OTHER_PORT),
        "expand binds a variable that is bound already",
    ),
    "expand with an edge variable and bounds": (
        expand(edge_binding=CALL, hops=Hops(1, 2)),
        "an edge binding needs a single hop",
    ),
    "expand for another binding": (
        expand(predicates=(equals(text(OTHER_PORT), "x"),)),
        r"expand refers to unbound \['q'\]",
    ),
    "close from nowhere": (close(src="x"), "close needs two bound endpoints"),
    "close to nowhere": (close(dst="x"), "close needs two bound endpoints"),
    "close over what is bound": (
        close(edge_binding=PORT),
        "close binds a variable that is bound already",
    ),
    "cross with itself": (lambda: Cross(SHIPS, SHIPS), "share a variable"),
    "filter for another binding": (
        lambda: Filter(SHIPS, ABOUT_PORT),
        r"filter refers to unbound \['p'\]",
    ),
    "negation about another row": (
        lambda: AntiJoin(SHIPS, Filter(OuterRow((PORT,)), ABOUT_PORT)),
        r"a block refers to unbound \['p'\]",
    ),
    "sort by another binding": (
        lambda: SortRows(SHIPS, (SortKey(text(PORT)),), ("s",)),
        r"order refers to unbound \['p'\]",
    ),
    "sort by a list": (
        lambda: SortRows(SHIPS, (SortKey(PropertyRef("s", "flags", LIST)),), ()),
        r"\[String\] has no order",
    ),
    "ties broken by another binding": (
        lambda: SortRows(SHIPS, (), ("p",)),
        "ties break by bound variables",
    ),
    # results
    "two columns of one name": (
        lambda: Project(SHIPS, (LABEL, LABEL)),
        "result columns have different names",
    ),
    "column of another binding": (
        lambda: Project(SHIPS, (OutputColumn("code", text(PORT)),)),
        r"column code refers to unbound \['p'\]",
    ),
    "measure of another binding": (
        lambda: Aggregate(Scan(PORT), (), (OutputColumn("n", COUNT),), ("n",)),
        r"column n refers to unbound \['s'\]",
    ),
    "key and measure of one name": (
        lambda: Aggregate(
            SHIPS, (OutputColumn("n", text(SHIP)),), (OutputColumn("n", COUNT),), ("n",)
        ),
        "result columns have different names",
    ),
    "measure without aggregate": (
        lambda: Aggregate(SHIPS, (), (LABEL,), ("label",)),
        "a measure is an aggregate",
    ),
    "group by an aggregate": (
        lambda: Aggregate(SHIPS, (OutputColumn("n", COUNT),), (), ("n",)),
        "a group key cannot be an aggregate",
    ),
    "group without a name": (
        lambda: Aggregate(SHIPS, (LABEL,), (OutputColumn("n", COUNT),), ("n",)),
        "names list every key and measure once",
    ),
    "distinct twice": (lambda: Distinct(Distinct(LABELS)), "only projected rows are made distinct"),
    "sort by an unknown column": (
        lambda: SortColumns(LABELS, (ColumnSortKey("x"),), ("y",)),
        r"order refers to unknown columns \['x', 'y'\]",
    ),
    # mutations
    "update of everything": (
        lambda: Update(EntityKind.NODE, "Ship", ASSIGNED, ()),
        "entities it tests",
    ),
    "update of nothing": (lambda: Update(EntityKind.NODE, "Ship", {}, TESTED), "assigns something"),
    "delete of everything": (lambda: Delete(EntityKind.NODE, "Ship", ()), "tests its entities"),
    "mutation without statements": (mutation(), "a mutation has statements"),
    "mutation of both kinds": (mutation(UPDATE, DELETE), "never mixes"),
}


@pytest.mark.parametrize(("make", "complaint"), NONSENSE.values(), ids=NONSENSE)
def test_nonsense_is_refused(make, complaint):
    with pytest.raises(ValueError, match=complaint):
        make()
