"""Filters move to where they cost least, and mean the same there."""

import pytest

from omnigraph.plan.expressions import And, Constant, Direction, IsNull, Or
from omnigraph.plan.operators import (
    AntiJoin,
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
    SortRows,
)
from omnigraph.plan.rewrite_rules import push_filters_down, rewrite
from omnigraph.types import PropertyType, Scalar
from tests.support.plans import CALL, OTHER_PORT, PORT, SHIP, equals, text

ABOUT_SHIP = equals(text(SHIP), "a")
ALSO_SHIP = IsNull(text(SHIP, "flags"))
ABOUT_PORT = equals(text(PORT), "b")
ABOUT_CALL = equals(text(CALL), "c")
ABOUT_BOTH = equals(text(SHIP), text(PORT))
ALSO_BOTH = equals(text(PORT), text(SHIP, "kind"))
ABOUT_NOTHING = IsNull(Constant(1, PropertyType(Scalar.I64)))

SHIPS, PORTS = Scan(SHIP), Scan(PORT)
BOTH = Cross(SHIPS, PORTS)
OUTER = OuterRow((SHIP,))


def expand(rows=SHIPS, dst=PORT, predicates=(), **changes):
    given = {"src": "s", "edge": "CallsAt", "direction": Direction.OUT}
    return Expand(input=rows, dst=dst, predicates=predicates, **(given | changes))


def close(rows):
    return SemiJoin(input=rows, src="s", edge="CallsAt", direction=Direction.OUT, dst="p")


def filters(rows, *predicates):
    for predicate in predicates:
        rows = Filter(rows, predicate)
    return rows


MOVES = {
    "into a scan": (filters(SHIPS, ABOUT_SHIP), Scan(SHIP, (ABOUT_SHIP,))),
    "into a scan in the order of the text": (
        filters(SHIPS, ABOUT_SHIP, ALSO_SHIP),
        Scan(SHIP, (ABOUT_SHIP, ALSO_SHIP)),
    ),
    "behind what the scan has": (
        filters(Scan(SHIP, (ALSO_SHIP,)), ABOUT_SHIP),
        Scan(SHIP, (ALSO_SHIP, ABOUT_SHIP)),
    ),
    "into the expansion that introduces the node": (
        filters(expand(), ABOUT_PORT),
        expand(predicates=(ABOUT_PORT,)),
    ),
    "through an expansion that does not": (
        filters(expand(), ABOUT_SHIP),
        expand(Scan(SHIP, (ABOUT_SHIP,))),
    ),
    "not into an expansion when it is about the edge": (
        filters(expand(edge_binding=CALL), ABOUT_CALL),
        filters(expand(edge_binding=CALL), ABOUT_CALL),
    ),
    "not into an expansion when it is about both ends": (
        filters(expand(), ABOUT_BOTH),
        filters(expand(), ABOUT_BOTH),
    ),
    "through a closing step": (
        filters(close(BOTH), ABOUT_PORT),
        close(Cross(SHIPS, Scan(PORT, (ABOUT_PORT,)))),
    ),
    "to each side of a cross": (
        filters(BOTH, ABOUT_SHIP, ABOUT_PORT),
        Cross(Scan(SHIP, (ABOUT_SHIP,)), Scan(PORT, (ABOUT_PORT,))),
    ),
    "just above the cross that first has both": (
        filters(Cross(BOTH, Scan(OTHER_PORT)), ABOUT_BOTH),
        Cross(filters(BOTH, ABOUT_BOTH), Scan(OTHER_PORT)),
    ),
    "beneath a filter that cannot move": (
        filters(BOTH, ABOUT_BOTH, ABOUT_SHIP),
        filters(Cross(Scan(SHIP, (ABOUT_SHIP,)), PORTS), ABOUT_BOTH),
    ),
    "not past another filter that cannot move either": (
        filters(BOTH, ABOUT_BOTH, ALSO_BOTH),
        filters(BOTH, ABOUT_BOTH, ALSO_BOTH),
    ),
    "through a negation": (
        filters(AntiJoin(SHIPS, OUTER), ABOUT_SHIP),
        AntiJoin(Scan(SHIP, (ABOUT_SHIP,)), OUTER),
    ),
    "through an existence and an optional block": (
        filters(ExistsJoin(OptionalJoin(SHIPS, OUTER), OUTER), ABOUT_SHIP),
        ExistsJoin(OptionalJoin(Scan(SHIP, (ABOUT_SHIP,)), OUTER), OUTER),
    ),
    "never into an optional block": (
        filters(OptionalJoin(SHIPS, Cross(OUTER, PORTS)), ABOUT_PORT, ABOUT_BOTH),
        filters(OptionalJoin(SHIPS, Cross(OUTER, PORTS)), ABOUT_PORT, ABOUT_BOTH),
    ),
    "inside an optional block": (
        OptionalJoin(SHIPS, filters(Cross(OUTER, PORTS), ABOUT_PORT)),
        OptionalJoin(SHIPS, Cross(OUTER, Scan(PORT, (ABOUT_PORT,)))),
    ),
    "inside a negation": (
        AntiJoin(SHIPS, filters(Cross(OUTER, PORTS), ABOUT_PORT, ABOUT_SHIP)),
        AntiJoin(SHIPS, Cross(filters(OUTER, ABOUT_SHIP), Scan(PORT, (ABOUT_PORT,)))),
    ),
    "in pieces, when all of them must hold": (
        filters(BOTH, And((ABOUT_SHIP, And((ABOUT_PORT, ABOUT_BOTH))))),
        filters(Cross(Scan(SHIP, (ABOUT_SHIP,)), Scan(PORT, (ABOUT_PORT,))), ABOUT_BOTH),
    ),
    "in one piece, when one of them must hold": (
        filters(BOTH, Or((ABOUT_SHIP, ABOUT_PORT))),
        filters(BOTH, Or((ABOUT_SHIP, ABOUT_PORT))),
    ),
    "anywhere, when it is about nothing": (
        filters(BOTH, ABOUT_NOTHING),
        Cross(Scan(SHIP, (ABOUT_NOTHING,)), PORTS),
    ),
    "under order and limit": (
        SliceRows(SortRows(filters(SHIPS, ABOUT_SHIP), (), ("s",)), 5, None),
        SliceRows(SortRows(Scan(SHIP, (ABOUT_SHIP,)), (), ("s",)), 5, None),
    ),
    "never past a limit": (
        filters(SliceRows(SHIPS, 5, None), ABOUT_SHIP),
        filters(SliceRows(SHIPS, 5, None), ABOUT_SHIP),
    ),
}


@pytest.mark.parametrize(("before", "after"), MOVES.values(), ids=MOVES)
def test_a_filter_moves(before, after):
    assert push_filters_down(before) == after


@pytest.mark.parametrize("rows", [after for _, after in MOVES.values()], ids=MOVES)
def test_moving_filters_again_changes_nothing(rows):
    assert push_filters_down(rows) == rows


def test_rules_reach_the_rows_under_any_result():
    column = OutputColumn("label", text(SHIP))
    before = SliceColumns(Distinct(Project(filters(SHIPS, ABOUT_SHIP), (column,))), 1, None)
    after = SliceColumns(Distinct(Project(Scan(SHIP, (ABOUT_SHIP,)), (column,))), 1, None)
    assert rewrite(before) == after
