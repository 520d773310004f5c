"""State of the type checker: the catalog, declared parameters, bindings in scope, the report."""

from __future__ import annotations

from dataclasses import dataclass, field

from omnigraph.catalog.model import Catalog, EdgeType, NodeType, Property
from omnigraph.lang import Code, DiagnosticReport, TextSpan, did_you_mean
from omnigraph.lang import query_tree as qt
from omnigraph.lang.codes import Severity
from omnigraph.lang.query_tree import ANONYMOUS, Variable
from omnigraph.lang.source import Name
from omnigraph.plan.expressions import Binding, Direction, EntityKind, Hops
from omnigraph.types import PropertyType


@dataclass(slots=True)
class TypeCheckContext:
    """One query being checked: the catalog, its parameters, and where to report."""

    catalog: Catalog
    report: DiagnosticReport
    parameters: dict[str, PropertyType] = field(default_factory=dict)
    is_anonymous: bool = False
    """Whether the query has no header, and so no parameters."""
    _used_names: dict[str, int] = field(default_factory=dict)

    def error(self, code: Code, message: str, span: TextSpan, *, hint: str | None = None) -> None:
        """Refuse the query."""
        self.report.add(code, message, span, hint=hint, severity=Severity.ERROR)

    def declaration_hint(self, name: str) -> str:
        """Return how to declare a parameter."""
        if self.is_anonymous:
            whole = f"query name(${name}: String) {{ … }}"
            return f"to pass a parameter, declare it with its type: `{whole}`"
        return "declare it in the parameter list of the query"

    def warn(self, code: Code, message: str, span: TextSpan, *, hint: str | None = None) -> None:
        """Report a warning: something legal that is probably a mistake."""
        self.report.add(code, message, span, hint=hint)

    def entity_type(self, binding: Binding) -> NodeType | EdgeType:
        """Return the catalog type of a binding."""
        if binding.kind is EntityKind.NODE:
            return self.catalog.nodes[binding.type_name]
        return self.catalog.edges[binding.type_name]

    def property(self, binding: Binding, name: Name, code: Code) -> Property | None:
        """Return a property of a bound entity; None means that the error has been reported."""
        type_ = self.entity_type(binding)
        property_ = type_.lookup(name.text)
        if property_ is None:
            message = f"{binding.kind} type {binding.type_name} has no property `{name}`"
            hint = did_you_mean(name.text, [*type_.properties, "id"])
            self.error(code, message, name.span, hint=hint)
        return property_

    def new_binding(self, name: str, kind: EntityKind, type_name: str) -> Binding:
        """Make a binding whose plan name is unique in the query.

        Two blocks may use one variable name for different things, and `$_` never names
        anything; `#` cannot be written in a query, so the extra names clash with nothing.
        """
        uses = self._used_names.get(name, 0) + 1
        self._used_names[name] = uses
        plain = name != ANONYMOUS and uses == 1
        return Binding(name if plain else f"{name}#{uses}", kind, type_name)


@dataclass(slots=True)
class BindingScope:
    """The bindings visible at a place; a block opens a scope inside another.

    `invalid` variables were introduced by a clause that could not be understood; what is said
    about them later is neither right nor wrong.
    """

    bindings: dict[str, Binding] = field(default_factory=dict)
    outer: frozenset[str] = frozenset()
    invalid: set[str] = field(default_factory=set)
    optional: frozenset[str] = frozenset()
    """Variables of `optional` blocks that have ended: a row may have no entity for them."""
    polymorphic: frozenset[str] = frozenset()
    """Variables of interfaces: rows have entities of several types for them."""

    def child(self) -> BindingScope:
        """Return the scope inside a block."""
        return BindingScope(
            dict(self.bindings), frozenset(self.bindings), set(self.invalid), self.optional
        )

    def adopt(self, inner: BindingScope) -> None:
        """Add what an `optional` block introduced."""
        new = {name: b for name, b in inner.bindings.items() if name not in self.bindings}
        self.bindings.update(new)
        self.invalid |= inner.invalid
        self.optional |= frozenset(new)

    def mark_invalid(self, *variables: Variable | None) -> None:
        """Remember variables whose meaning was lost by an error."""
        self.invalid.update(v.name for v in variables if v and v.name not in self.bindings)

    def get(self, variable: Variable) -> Binding | None:
        """Return the binding of a variable; `$_` has none."""
        return None if variable.name == ANONYMOUS else self.bindings.get(variable.name)

    def bind(self, variable: Variable, binding: Binding) -> Binding:
        """Bind a variable from here on."""
        if variable.name != ANONYMOUS:
            self.bindings[variable.name] = binding
        return binding

    def hint(self, name: str) -> str | None:
        """Return a hint naming the variable probably meant."""
        return did_you_mean(name, self.bindings, prefix="$")


# ----------------------------------------------------------------------
# Edge types, hop bounds and directions of traversals


def resolve_edge_type(path: qt.EdgePathExpression, context: TypeCheckContext) -> EdgeType | None:
    """Return the edge type a word names; None means that the error has been reported."""
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


def resolve_hops(written: qt.HopRange, maximum: int, context: TypeCheckContext) -> Hops | None:
    """Return bounds; None means that the error has been reported."""
    try:
        return Hops(written.minimum, maximum)
    except ValueError:
        problem = "start at 1" if written.minimum < 1 else "be in order"
        message = f"hop bounds {{{written.minimum},{maximum}}} must {problem}"
        context.error(Code.BOUNDS_OR_NEAREST, message, written.span)
        return None


def resolve_direction(
    edge: EdgeType,
    src: tuple[qt.Variable, Binding | None],
    dst: tuple[qt.Variable, Binding | None],
    context: TypeCheckContext,
    *,
    undirected: bool,
) -> Direction | None:
    """Infer the direction from the endpoint with a known type; report endpoints that do not fit."""
    if undirected:
        direction = Direction.BOTH
    elif src[1] is not None:
        direction = Direction.OUT if src[1].type_name == edge.src else Direction.IN
    elif dst[1] is not None:
        direction = Direction.OUT if dst[1].type_name == edge.dst else Direction.IN
    else:
        direction = Direction.OUT
    for (variable, binding), type_name in zip(
        (src, dst), endpoint_types(edge, direction), strict=True
    ):
        if binding is not None and binding.type_name != type_name:
            report_wrong_endpoint(edge, variable, binding, context)
            return None
    return direction


def endpoint_types(edge: EdgeType, direction: Direction) -> tuple[str, str]:
    """Return the node types at the first and the second endpoint."""
    return (edge.dst, edge.src) if direction is Direction.IN else (edge.src, edge.dst)


def report_wrong_endpoint(
    edge: EdgeType, variable: qt.Variable, binding: Binding, context: TypeCheckContext
) -> None:
    """Report an endpoint the edge does not connect."""
    context.error(
        Code.WRONG_ENDPOINT,
        f"`${variable.name}` is a {binding.type_name}, but {edge.name} connects "
        f"{edge.src} -> {edge.dst}",
        variable.span,
    )
