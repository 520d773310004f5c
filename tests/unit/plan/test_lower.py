"""How a checked pattern becomes operators."""

import pytest

from omnigraph.plan.expressions import (
    Binding,
    Direction,
    EntityKind,
    Hops,
    MatchPattern,
    PatternStep,
)
from omnigraph.plan.lower import lower_pattern
from omnigraph.plan.operators import (
    AntiJoin,
    Cross,
    ExistsJoin,
    Expand,
    Filter,
    OptionalJoin,
    OuterRow,
    Scan,
    SemiJoin,
)
from tests.support.plans import CALL, SHIP, equals, read_plan, text


def port(name):
    return Binding(name, EntityKind.NODE, "Port")


A, B, C, D = (port(name) for name in "abcd")


def step(src, dst, **changes):
    return PatternStep(src=src, edge="Route", dst=dst, **({"direction": Direction.OUT} | changes))


def expand(rows, src, dst, direction=Direction.OUT, **changes):
    return Expand(input=rows, src=src.name, edge="Route", direction=direction, dst=dst, **changes)


def turned(rows, src, dst, direction=Direction.IN, **changes):
    return expand(rows, src, dst, direction, is_reversed=True, **changes)


def close(rows, src, dst, direction=Direction.OUT, **changes):
    return SemiJoin(
        input=rows, src=src.name, edge="Route", direction=direction, dst=dst.name, **changes
    )


PATTERNS = {
    "a declared binding is scanned": (MatchPattern([A]), Scan(A)),
    "a component starts at its first declared binding": (
        MatchPattern([B, A], [step(A, B)]),
        turned(Scan(B), B, A),
    ),
    "a component without declared binding starts at the first endpoint written": (
        MatchPattern([], [step(A, B), step(C, D)]),
        Cross(expand(Scan(A), A, B), expand(Scan(C), C, D)),
    ),
    "a declared binding comes before the first endpoint of its component": (
        MatchPattern([C], [step(A, B), step(B, C)]),
        turned(turned(Scan(C), C, B), B, A),
    ),
    "steps are followed in the order of the text as far as they can be": (
        MatchPattern([A], [step(C, D), step(A, B), step(B, C)]),
        expand(expand(expand(Scan(A), A, B), B, C), C, D),
    ),
    "a step between bound nodes closes": (
        MatchPattern([A], [step(A, B), step(B, C), step(C, A)]),
        close(expand(expand(Scan(A), A, B), B, C), C, A),
    ),
    "two steps between the same nodes: one expands, one closes": (
        MatchPattern([A], [step(A, B), step(A, B, hops=Hops(2, 3))]),
        close(expand(Scan(A), A, B), A, B, hops=Hops(2, 3)),
    ),
    "a self-loop closes": (MatchPattern([A], [step(A, A)]), close(Scan(A), A, A)),
    "both declared endpoints make one component": (
        MatchPattern([A, B], [step(A, B)]),
        expand(Scan(A), A, B),
    ),
    "components are planned on their own and crossed in the order of their roots": (
        MatchPattern([A, C], [step(C, D), step(A, B)]),
        Cross(expand(Scan(A), A, B), expand(Scan(C), C, D)),
    ),
    "three components lean to the left": (
        MatchPattern([A, B, C]),
        Cross(Cross(Scan(A), Scan(B)), Scan(C)),
    ),
    "bounds, edge variable and both directions survive being turned around": (
        MatchPattern([B], [step(A, B, edge_binding=CALL, direction=Direction.BOTH)]),
        turned(Scan(B), B, A, Direction.BOTH, edge_binding=CALL),
    ),
    "an edge variable may close": (
        MatchPattern([A], [step(A, B), step(B, A, edge_binding=CALL)]),
        close(expand(Scan(A), A, B), B, A, edge_binding=CALL),
    ),
    "filters stand above the steps, negations above the filters": (
        MatchPattern(
            [A],
            [step(A, B)],
            [equals(text(A), "x"), equals(text(B), "y")],
            [MatchPattern([], [step(B, C)])],
        ),
        AntiJoin(
            Filter(Filter(expand(Scan(A), A, B), equals(text(A), "x")), equals(text(B), "y")),
            expand(OuterRow((A, B)), B, C),
        ),
    ),
    "optionals stand below the filters, existences above": (
        MatchPattern(
            [A],
            filters=[equals(text(B), "y")],
            existences=[MatchPattern([], [step(A, C)])],
            optionals=[MatchPattern([], [step(A, B)]), MatchPattern([], [step(B, D)])],
        ),
        ExistsJoin(
            Filter(
                OptionalJoin(
                    OptionalJoin(Scan(A), expand(OuterRow((A,)), A, B)),
                    expand(OuterRow((A, B)), B, D),
                ),
                equals(text(B), "y"),
            ),
            expand(OuterRow((A, B, D)), A, C),
        ),
    ),
    "a negation that introduces a node of its own crosses it with the outer row": (
        MatchPattern([A], negations=[MatchPattern([B], filters=[equals(text(A), text(B))])]),
        AntiJoin(Scan(A), Filter(Cross(OuterRow((A,)), Scan(B)), equals(text(A), text(B)))),
    ),
    "a negation about outer nodes only closes": (
        MatchPattern([A, B], negations=[MatchPattern([], [step(A, B)])]),
        AntiJoin(Cross(Scan(A), Scan(B)), close(OuterRow((A, B)), A, B)),
    ),
    "a nested negation starts at the rows of the one around it": (
        MatchPattern(
            [A], negations=[MatchPattern([], [step(A, B)], [], [MatchPattern([], [step(B, C)])])]
        ),
        AntiJoin(
            Scan(A),
            AntiJoin(expand(OuterRow((A,)), A, B), expand(OuterRow((A, B)), B, C)),
        ),
    ),
    "several negations are checked one after the other": (
        MatchPattern(
            [A], negations=[MatchPattern([], [step(A, B)]), MatchPattern([], [step(A, C)])]
        ),
        AntiJoin(AntiJoin(Scan(A), expand(OuterRow((A,)), A, B)), expand(OuterRow((A,)), A, C)),
    ),
}


@pytest.mark.parametrize(("pattern", "rows"), PATTERNS.values(), ids=PATTERNS)
def test_a_pattern_becomes_operators(pattern, rows):
    assert lower_pattern(pattern) == rows


def test_a_pattern_inside_a_negation_keeps_the_outer_bindings():
    assert lower_pattern(MatchPattern([B], [step(A, B)]), [A, SHIP]) == expand(
        OuterRow((A, SHIP)), A, B
    )


def bindings(operator, found=None):
    """Return the names every operator of a plan introduces, repeated where repeated."""
    found = [] if found is None else found
    match operator:
        case Scan(binding=binding):
            found.append(binding.name)
        case Expand(dst=dst, edge_binding=edge):
            found += [dst.name, *([edge.name] if edge else [])]
    for source in ("input", "left", "right", "inner"):
        if hasattr(operator, source):
            bindings(getattr(operator, source), found)
    return found


@pytest.mark.parametrize(
    ("match", "names"),
    [
        ("$_: Port $_: Ship $s: Ship $s callsAt $_", {"_#1", "_#2", "s", "_#3"}),
        ("$p: Port not { $p route $x } not { $x callsAt $p }", {"p", "x", "x#2"}),
        ("$p: Port not { $x callsAt $p } $x: Note", {"p", "x", "x#2"}),
        ("$p: Port not { $p $r:route $q not { $q $t:route $q } }", {"p", "q", "r"}),
        ("$p: Port not { $p $r:route $q } not { $p $r:route $q }", {"p", "q", "r", "q#2", "r#2"}),
    ],
)
def test_no_two_bindings_of_a_plan_share_a_name(match, names):
    found = bindings(read_plan(match).root)
    assert sorted(found) == sorted(names)


@pytest.mark.parametrize(
    ("match", "order", "ties"),
    [
        ("$s: Ship $p: Port", "$s.imo", ("p", "s")),
        ("$s: Ship $s $c:callsAt $p", "$p", ("c", "p", "s")),
        ("$s: Ship $s callsAt $_ $_: Note", "$s", ("s",)),
        ("$p: Port not { $s callsAt $p } $s: Ship", "$p", ("p", "s#2")),
    ],
)
def test_ties_break_by_every_binding_the_author_named(match, order, ties):
    plan = read_plan(match, f"return {{ 1 as one }} order {{ {order} }}")
    assert plan.root.input.tie_break == ties


def test_rows_of_a_ranked_node_stay_together():
    plan = read_plan(
        "$d: Doc $d writtenBy $a",
        "return { 1 as one } order { bm25($d.title, $t) }",
        schema="archive",
    )
    assert plan.root.input.tie_break == ("d", "a")
