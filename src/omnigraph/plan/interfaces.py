"""Check a match that binds interfaces: once for each choice of node types that implement them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod

from omnigraph.lang import Code, DiagnosticReport, did_you_mean
from omnigraph.lang import query_tree as qt
from omnigraph.lang.source import Name
from omnigraph.plan.check_read import check_match, property_accesses
from omnigraph.plan.expressions import MatchPattern
from omnigraph.plan.type_check_context import BindingScope, TypeCheckContext

MAX_INTERFACE_CHOICES = 64
"""Choices of node types for the interfaces of one match; each is a pattern of its own."""


@dataclass(frozen=True, slots=True)
class CheckedMatch:
    """Patterns that bind the same variables; their rows together are those of the match.

    The scope is None if interfaces are used in such a way that nothing is known of the variables.
    """

    patterns: tuple[MatchPattern, ...]
    scope: BindingScope | None


def check_whole_match(body: qt.ReadBody, context: TypeCheckContext) -> CheckedMatch:
    """Check the match of a query; errors are in the context's report."""
    bound = _bound_interfaces(body.clauses, context)
    if not bound:
        scope = BindingScope()
        return CheckedMatch((check_match(body.clauses, scope, context),), scope)
    choices = {place: _implementing_types(names, context) for place, names in bound.items()}
    before = len(context.report.errors)
    _check_interface_properties(body, bound, context)
    if len(context.report.errors) > before:
        return CheckedMatch((), None)
    if prod(map(len, choices.values())) > MAX_INTERFACE_CHOICES:
        message = f"the interfaces allow more than {MAX_INTERFACE_CHOICES} choices of types"
        context.error(Code.QUERY_TOO_DEEP, message, body.block_spans[0])
        return CheckedMatch((), None)
    return _checked_variants(body, choices, context)


@dataclass(frozen=True, slots=True)
class _Variant:
    """The match with one choice of node types."""

    pattern: MatchPattern
    scope: BindingScope
    report: DiagnosticReport

    @property
    def fits(self) -> bool:
        """Whether its types have the edges that the match follows."""
        return not self.report.errors

    def is_misfit(self, body: qt.ReadBody) -> bool:
        """Return whether nothing is wrong but that an edge of the match connects other types.

        Inside a block that would decide about the rows of the type, so that it is an error there.
        """
        blocks = [c.span for c in body.clauses if isinstance(c, qt.BlockClause)]
        return all(
            error.code is Code.WRONG_ENDPOINT
            and error.span is not None
            and not any(span.start <= error.span.start < span.end for span in blocks)
            for error in self.report.errors
        )


def _checked_variants(
    body: qt.ReadBody, choices: Mapping[str, Sequence[str]], context: TypeCheckContext
) -> CheckedMatch:
    variants = [
        _check_variant(body, dict(zip(choices, types, strict=True)), context)
        for types in product(*choices.values())
    ]
    fitting = [variant for variant in variants if variant.fits]
    wrong = [v for v in variants if not v.fits and not v.is_misfit(body)] or variants
    shown = fitting[0] if fitting and wrong is variants else wrong[0] if wrong else None
    if shown is None:
        return CheckedMatch((), None)
    context.report.diagnostics.extend(shown.report.diagnostics)
    scope = replace(shown.scope, polymorphic=frozenset(choices))
    _check_other_variables(body, fitting, choices, context)
    return CheckedMatch(tuple(variant.pattern for variant in fitting), scope)


def _check_variant(
    body: qt.ReadBody, types: Mapping[str, str], context: TypeCheckContext
) -> _Variant:
    """Check the match with node types in place of interfaces."""
    report = DiagnosticReport(context.report.source)
    own = TypeCheckContext(
        context.catalog, report, context.parameters, is_anonymous=context.is_anonymous
    )
    scope = BindingScope()
    clauses = (_with_type(clause, place, types) for place, clause in enumerate(body.clauses))
    return _Variant(check_match(clauses, scope, own), scope, report)


def _check_other_variables(
    body: qt.ReadBody,
    variants: Sequence[_Variant],
    choices: Mapping[str, Sequence[str]],
    context: TypeCheckContext,
) -> None:
    """Refuse a variable whose type would follow from that of an interface variable."""
    for name in variants[0].scope.bindings if variants else ():
        types = sorted({variant.scope.bindings[name].type_name for variant in variants})
        if name not in choices and len(types) > 1:
            context.error(
                Code.VARIABLE_REBOUND,
                f"`${name}` would be a {' or a '.join(types)}",
                body.block_spans[0],
                hint=f"bind it to one of these: `${name}: {types[0]}`",
            )


# --- interfaces --------------------------------------------------------------------------------


def _key(clause: qt.BindingClause, place: int) -> str:
    """Return what names the choice of a clause; each `$_` is chosen for itself."""
    name = clause.variable.name
    return f"{name}#{place}" if name == qt.ANONYMOUS else name


def _bound_interfaces(
    clauses: Sequence[qt.MatchClause], context: TypeCheckContext
) -> dict[str, list[Name]]:
    """Return the types of variables that clauses outside of blocks bind to an interface."""
    bound: dict[str, list[Name]] = {}
    for place, clause in enumerate(clauses):
        if isinstance(clause, qt.BindingClause):
            bound.setdefault(_key(clause, place), []).append(clause.type_name)
    return {
        variable: names
        for variable, names in bound.items()
        if any(_is_interface(name, context) for name in names)
    }


def _is_interface(name: Name, context: TypeCheckContext) -> bool:
    return name.text in context.catalog.interfaces and name.text not in context.catalog.nodes


def _implementing_types(names: Sequence[Name], context: TypeCheckContext) -> list[str]:
    """Return the node types that are all that is written of a variable; report if none is."""
    wanted = {name.text for name in names}
    nodes = context.catalog.nodes.values()
    types = sorted(node.name for node in nodes if wanted <= {node.name, *node.interfaces})
    if not types:
        what = " and ".join(sorted(wanted))
        message = f"no node type implements {what}"
        context.error(Code.UNKNOWN_NODE_TYPE, message, names[-1].span)
    return types


def _with_type(clause: qt.MatchClause, place: int, types: Mapping[str, str]) -> qt.MatchClause:
    if not isinstance(clause, qt.BindingClause) or _key(clause, place) not in types:
        return clause
    name = Name(types[_key(clause, place)], span=clause.type_name.span)
    return replace(clause, type_name=name)


def _check_interface_properties(
    body: qt.ReadBody, bound: Mapping[str, Sequence[Name]], context: TypeCheckContext
) -> None:
    """Report properties that an interface does not have, even if all its types have them."""
    catalog = context.catalog
    known = {
        variable: {
            property_
            for name in names
            for property_ in (
                catalog.nodes.get(name.text) or catalog.interfaces[name.text]
            ).properties
        }
        for variable, names in bound.items()
        if all(name.text in (*catalog.nodes, *catalog.interfaces) for name in names)
    }
    for variable, name, code in _named_properties(body):
        if variable not in known or name.text in (*known[variable], "id"):
            continue
        interfaces = " and ".join(sorted({name.text for name in bound[variable]}))
        message = f"interface {interfaces} has no property `{name}`"
        hint = did_you_mean(name.text, [*known[variable], "id"])
        context.error(code, message, name.span, hint=hint)


def _named_properties(body: qt.ReadBody) -> Iterator[tuple[str, Name, Code]]:
    for place, clause in enumerate(body.clauses):
        if isinstance(clause, qt.BindingClause):
            for match in clause.matches:
                yield _key(clause, place), match.property, Code.UNKNOWN_MATCH_PROPERTY
    for access in property_accesses((body.clauses, body.projections, body.orderings)):
        yield access.variable.name, access.property, Code.UNKNOWN_PROPERTY
