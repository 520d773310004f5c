"""This module checks how edges are followed: which ones, how far, which way."""

from __future__ import annotations

from omnigraph.catalog.model import EdgeType
from omnigraph.lang import Code, did_you_mean
from omnigraph.lang import query_tree as qt
from omnigraph.plan.expressions import Binding
from omnigraph.plan.hops import Direction, Hops
from omnigraph.plan.scope import Context


def edge_type(path: qt.EdgePath, context: Context) -> EdgeType | None:
    """Return the edge type a word names; None means the mistake has been reported."""
    edge = context.catalog.edge(path.edge.text)
    if edge is None:
        words = [name[0].lower() + name[1:] for name in context.catalog.edges]
        hint = did_you_mean(path.edge.text, words)
        if path.edge.text in ("contains", "starts_with", "in", "is"):
            hint = f"to compare with `{path.edge}`, put a property on its left side"
        message = f"unknown edge `{path.edge}`"
        context.error(Code.UNKNOWN_EDGE, message, path.edge.span, hint=hint)
    elif path.undirected and edge.src != edge.dst:
        context.error(
            Code.UNDIRECTED_ENDPOINTS,
            f"`<{path.edge}>` needs equal endpoint types, but {edge.name} connects "
            f"{edge.src} -> {edge.dst}",
            path.edge.span,
            hint=f"write `{path.edge}` without `<>`",
        )
        return None
    return edge


def hop_bounds(written: qt.Hops, maximum: int, context: Context) -> Hops | None:
    """Return bounds; None means the mistake has been reported."""
    try:
        return Hops(written.minimum, maximum)
    except ValueError:
        problem = "start at 1" if written.minimum < 1 else "be in order"
        message = f"hop bounds {{{written.minimum},{maximum}}} must {problem}"
        context.error(Code.BOUNDS_OR_NEAREST, message, written.span)
        return None


def follow(
    edge: EdgeType,
    src: tuple[qt.Variable, Binding | None],
    dst: tuple[qt.Variable, Binding | None],
    context: Context,
    *,
    undirected: bool,
) -> Direction | None:
    """Infer the direction from whichever endpoint is known; report endpoints that misfit."""
    if undirected:
        direction = Direction.BOTH
    elif src[1] is not None:
        direction = Direction.OUT if src[1].type_name == edge.src else Direction.IN
    elif dst[1] is not None:
        direction = Direction.OUT if dst[1].type_name == edge.dst else Direction.IN
    else:
        direction = Direction.OUT
    for (variable, binding), wanted in zip((src, dst), ends(edge, direction), strict=True):
        if binding is not None and binding.type_name != wanted:
            wrong_endpoint(edge, variable, binding, context)
            return None
    return direction


def ends(edge: EdgeType, direction: Direction) -> tuple[str, str]:
    """Return the node types at the first and the second endpoint."""
    return (edge.dst, edge.src) if direction is Direction.IN else (edge.src, edge.dst)


def wrong_endpoint(
    edge: EdgeType, variable: qt.Variable, binding: Binding, context: Context
) -> None:
    """Report an endpoint the edge does not connect."""
    context.error(
        Code.WRONG_ENDPOINT,
        f"`${variable.name}` is a {binding.type_name}, but {edge.name} connects "
        f"{edge.src} -> {edge.dst}",
        variable.span,
    )
