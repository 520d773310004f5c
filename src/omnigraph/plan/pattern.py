"""This module defines a type-checked match block: what must be found, before how."""

from __future__ import annotations

from dataclasses import dataclass, field

from omnigraph.plan.expressions import Binding, Predicate
from omnigraph.plan.hops import ONE_HOP, Direction, Hops


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A traversal between two bindings.

    `from_end` tells that it is walked from the endpoint written second. Of bounds that begin above
    one hop, a self-loop makes that a difference.
    """

    src: Binding
    edge: str
    dst: Binding
    direction: Direction
    hops: Hops = ONE_HOP
    edge_binding: Binding | None = None
    from_end: bool = False

    def __post_init__(self) -> None:
        if self.edge_binding is not None and not self.hops.is_single:
            raise ValueError("an edge binding needs a single hop")

    @property
    def backwards(self) -> Step:
        """The same step walked from its second endpoint."""
        return Step(
            src=self.dst,
            edge=self.edge,
            dst=self.src,
            direction=self.direction.reversed,
            hops=self.hops,
            edge_binding=self.edge_binding,
            from_end=not self.from_end,
        )


@dataclass(slots=True)
class Pattern:
    """Bindings declared, steps between them, filters, and patterns that must not match.

    `declared` lists the bindings of `$x: T` clauses in the order of the text; other bindings are
    introduced by steps. Inside a negation, bindings of the enclosing rows are not listed.
    """

    declared: list[Binding] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    filters: list[Predicate] = field(default_factory=list)
    negations: list[Pattern] = field(default_factory=list)
