"""This module type-checks a match block into a `Pattern`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import assert_never

from omnigraph.catalog.model import EdgeType
from omnigraph.lang import Code, did_you_mean
from omnigraph.lang import query_tree as qt
from omnigraph.plan.check_edges import edge_type, ends, follow, hop_bounds, wrong_endpoint
from omnigraph.plan.check_expressions import ExpressionChecker
from omnigraph.plan.check_values import matched_value
from omnigraph.plan.expressions import Binding, Compare, EntityKind, PropertyRef
from omnigraph.plan.hops import Hops
from omnigraph.plan.pattern import Pattern, Step
from omnigraph.plan.scope import Context, Scope


def check_match(clauses: Iterable[qt.Clause], scope: Scope, context: Context) -> Pattern:
    """Check clauses in the order of the text; bindings they introduce are added to the scope."""
    checker = _MatchChecker(context, scope)
    for clause in clauses:
        checker.clause(clause)
    return checker.pattern


class _MatchChecker:
    def __init__(self, context: Context, scope: Scope) -> None:
        self.context = context
        self.scope = scope
        self.expressions = ExpressionChecker(context, scope)
        self.pattern = Pattern()

    def clause(self, clause: qt.Clause) -> None:
        match clause:
            case qt.Binding():
                self._binding(clause)
            case qt.Traversal():
                self._traversal(clause)
            case qt.Filter(condition=condition):
                predicate = self.expressions.condition(condition)
                if predicate is not None:
                    self.pattern.filters.append(predicate)
            case qt.Negation():
                self._negation(clause)
            case _ as unreachable:
                assert_never(unreachable)

    # --- bindings ------------------------------------------------------------------------------

    def _binding(self, clause: qt.Binding) -> None:
        type_name = clause.type_name.text
        if type_name not in self.context.catalog.nodes:
            self._unknown_type(clause)
            self.scope.poison(clause.variable)
            return
        binding = self.scope.get(clause.variable)
        if binding is None:
            made = self.context.new_binding(clause.variable.name, EntityKind.NODE, type_name)
            binding = self.scope.bind(clause.variable, made)
            self.pattern.declared.append(binding)
        elif binding.kind is EntityKind.EDGE:
            message = f"edge variable `${clause.variable.name}` cannot be bound to a node type"
            self.context.error(Code.EDGE_VARIABLE_MISUSE, message, clause.variable.span)
            return
        elif binding.type_name != type_name:
            self.context.error(
                Code.VARIABLE_REBOUND,
                f"`${clause.variable.name}` is a {binding.type_name} already, "
                f"it cannot also be a {type_name}",
                clause.type_name.span,
            )
            return
        elif binding not in self.pattern.declared and binding.name not in self._outer_names():
            self.pattern.declared.append(binding)
        for match in clause.matches:
            self._property_match(binding, match)

    def _outer_names(self) -> frozenset[str]:
        return frozenset(self.scope.bindings[name].name for name in self.scope.outer)

    def _unknown_type(self, clause: qt.Binding) -> None:
        catalog, name = self.context.catalog, clause.type_name.text
        hint = did_you_mean(name, catalog.nodes)
        if name in catalog.edges:
            word = name[0].lower() + name[1:]
            hint = f"{name} is an edge type; follow it with `$a {word} $b`"
        elif name in catalog.interfaces:
            hint = f"{name} is an interface; bind one of the node types that implement it"
        message = f"unknown node type `{name}`"
        self.context.error(Code.UNKNOWN_NODE_TYPE, message, clause.type_name.span, hint=hint)

    def _property_match(self, binding: Binding, match: qt.PropertyMatch) -> None:
        property_ = self.context.property(binding, match.property.text)
        if property_ is None:
            known = [*self.context.entity_type(binding).properties, "id"]
            self.context.error(
                Code.UNKNOWN_MATCH_PROPERTY,
                f"node type {binding.type_name} has no property `{match.property}`",
                match.property.span,
                hint=did_you_mean(match.property.text, known),
            )
            return
        place = f"{binding.type_name}.{property_.name}"
        value = matched_value(match.value, property_, place, self.context)
        if value is not None:
            left = PropertyRef(binding.name, property_.name, property_.type)
            operator = qt.Operator.CONTAINS if property_.type.is_list else qt.Operator.EQ
            self.pattern.filters.append(Compare(left, operator, value))

    # --- traversals ----------------------------------------------------------------------------

    def _traversal(self, clause: qt.Traversal) -> None:
        path = qt.EdgePath(clause.edge, clause.undirected, clause.hops)
        edge = edge_type(path, self.context)
        hops = self._hops(clause)
        src, dst = self._endpoint(clause.src), self._endpoint(clause.dst)
        if edge is None or src is _WRONG or dst is _WRONG:
            self.scope.poison(clause.src, clause.dst, clause.edge_variable)
            return
        written = ((clause.src, src), (clause.dst, dst))
        direction = follow(edge, *written, self.context, undirected=clause.undirected)
        if direction is None:
            self.scope.poison(clause.src, clause.dst, clause.edge_variable)
            return
        first, second = ends(edge, direction)
        src = src or self._introduce(clause.src, first)
        # `$a edge $a` asks for a self-loop: the first endpoint just introduced is the second.
        dst = dst or self.scope.get(clause.dst) or self._introduce(clause.dst, second)
        if dst.type_name != second:
            wrong_endpoint(edge, clause.dst, dst, self.context)
            return
        edge_binding = self._edge_binding(clause, edge)
        if hops is not None:
            step = Step(
                src=src,
                edge=edge.name,
                dst=dst,
                direction=direction,
                hops=hops,
                edge_binding=edge_binding,
            )
            self.pattern.steps.append(step)

    def _hops(self, clause: qt.Traversal) -> Hops | None:
        written = clause.hops
        if written is None:
            return Hops()
        if clause.edge_variable is not None and (written.minimum, written.maximum) != (1, 1):
            self.context.error(
                Code.EDGE_VARIABLE_MISUSE,
                "an edge variable cannot be combined with hop bounds",
                written.span,
                hint="drop the edge variable or the bounds",
            )
            return None
        if written.maximum is None:
            self.context.error(
                Code.BOUNDS_OR_NEAREST,
                "unbounded traversal is disabled",
                written.span,
                hint=f"give a maximum: `{{{written.minimum},{max(written.minimum, 3)}}}`",
            )
            return None
        return hop_bounds(written, written.maximum, self.context)

    def _endpoint(self, variable: qt.Variable) -> Binding | None:
        """Return the binding of an endpoint, None when it is new."""
        binding = self.scope.get(variable)
        if binding is not None and binding.kind is EntityKind.EDGE:
            message = f"edge variable `${variable.name}` cannot be an endpoint"
            self.context.error(Code.EDGE_VARIABLE_MISUSE, message, variable.span)
            return _WRONG
        return _WRONG if binding is None and variable.name in self.scope.poisoned else binding

    def _introduce(self, variable: qt.Variable, type_name: str) -> Binding:
        made = self.context.new_binding(variable.name, EntityKind.NODE, type_name)
        return self.scope.bind(variable, made)

    def _edge_binding(self, clause: qt.Traversal, edge: EdgeType) -> Binding | None:
        variable = clause.edge_variable
        if variable is None or variable.name == qt.ANONYMOUS:
            return None
        if self.scope.get(variable) is not None:
            taken = variable.name in (clause.src.name, clause.dst.name)
            what = "is an endpoint of the same traversal" if taken else "is bound already"
            message = f"edge variable `${variable.name}` {what}"
            self.context.error(Code.EDGE_VARIABLE_MISUSE, message, variable.span)
            return None
        made = self.context.new_binding(variable.name, EntityKind.EDGE, edge.name)
        return self.scope.bind(variable, made)

    # --- negation ------------------------------------------------------------------------------

    def _negation(self, clause: qt.Negation) -> None:
        mentioned = {name for inner in clause.clauses for name in _mentioned(inner)}
        if not mentioned & {*self.scope.bindings, *self.scope.poisoned}:
            self.context.error(
                Code.UNGROUPED_OR_UNCORRELATED,
                "this `not` block mentions no variable bound outside of it",
                clause.span,
                hint="use a variable of the enclosing pattern that stands before the block",
            )
            return
        self.pattern.negations.append(check_match(clause.clauses, self.scope.child(), self.context))


_WRONG = Binding("#wrong", EntityKind.EDGE, "")


def _mentioned(clause: qt.Clause) -> Iterator[str]:
    """Yield the variables a clause of a negation mentions itself, not in a nested negation."""
    match clause:
        case qt.Binding(variable=variable):
            yield variable.name
        case qt.Traversal(src=src, dst=dst):
            yield src.name
            yield dst.name
        case qt.Filter(condition=condition):
            yield from _condition_variables(condition)
        case qt.Negation():
            return
        case _ as unreachable:
            assert_never(unreachable)


def _condition_variables(condition: qt.Condition) -> Iterator[str]:
    match condition:
        case qt.Comparison(left=left, right=right) | qt.Membership(operand=left, choices=right):
            yield from _expression_variables(left)
            yield from _expression_variables(right)
        case qt.NullTest(operand=operand):
            yield from _expression_variables(operand)
        case qt.CallCondition(call=call):
            yield from _expression_variables(call)
        case qt.AllOf(conditions=conditions) | qt.AnyOf(conditions=conditions):
            for part in conditions:
                yield from _condition_variables(part)
        case _ as unreachable:
            assert_never(unreachable)


def _expression_variables(expr: qt.Expr) -> Iterator[str]:
    match expr:
        case qt.Access(variable=variable):
            yield variable.name
        case qt.Call(arguments=arguments):
            for argument in arguments:
                yield from _expression_variables(argument)
        case _:
            return
