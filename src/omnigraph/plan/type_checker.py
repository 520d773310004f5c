"""Check a parsed query against a catalog and return its typed plan."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from typing import Any, assert_never

from omnigraph.catalog.model import Catalog
from omnigraph.lang import Code, DiagnosticReport, QueryError
from omnigraph.lang import query_tree as qt
from omnigraph.plan.check_mutation import check_mutation
from omnigraph.plan.check_read import check_result
from omnigraph.plan.interfaces import check_whole_match
from omnigraph.plan.lower import lower_read
from omnigraph.plan.query_plan import MutationPlan, Parameter, QueryPlan, ReadPlan
from omnigraph.plan.rewrite_rules import rewrite
from omnigraph.plan.type_check_context import TypeCheckContext
from omnigraph.types import PropertyType, Scalar

RESERVED_PARAMETER = "__nanograph_now"

MAX_MATCH_SIZE = 250
"""Bindings, inline matches, traversals and conditions of one query; each makes its plan deeper."""

MAX_RESULT_SIZE = 1000
"""Columns and sort keys of one query."""

MAX_COMPUTED_SIZE = 1000
"""Operators, arguments and branches of the computed values of one query."""


def typecheck(query: qt.QueryDecl, catalog: Catalog, report: DiagnosticReport) -> QueryPlan | None:
    """Return the plan of a query, or None when the report has errors."""
    before = len(report.errors)
    context = TypeCheckContext(
        catalog, report, _check_parameters(query, report), is_anonymous=query.is_anonymous
    )
    facts: dict[str, Any] = {
        "name": query.name.text,
        "parameters": tuple(Parameter(name, type_) for name, type_ in context.parameters.items()),
        **{annotation.name.text: annotation.text for annotation in query.annotations},
    }
    if isinstance(query.body, qt.MutationBody):
        statements = check_mutation(query.body, context)
        if len(report.errors) > before or report.full:
            return None
        return MutationPlan(**facts, statements=statements)
    if _is_too_large(query.body, report):
        return None
    match = check_whole_match(query.body, context)
    if match.scope is None:
        return None
    result = check_result(query.body, match.scope, context)
    if len(report.errors) > before or report.full:
        return None
    if not any(pattern.declared or pattern.steps for pattern in match.patterns):
        report.add(
            Code.UNBOUND_VARIABLE,
            "the match binds nothing",
            query.body.block_spans[0],
            hint="bind a node: `$x: Type`",
        )
        return None
    return ReadPlan(
        **facts, root=rewrite(lower_read(match.patterns, result)), columns=result.columns
    )


def plan_query(query: qt.QueryDecl, catalog: Catalog, report: DiagnosticReport) -> QueryPlan:
    """Return the plan of a query; raise QueryError with all errors."""
    plan = typecheck(query, catalog, report)
    if plan is None or report.errors:
        raise QueryError(report.sorted())
    return plan


def _is_too_large(body: qt.ReadBody, report: DiagnosticReport) -> bool:
    """Refuse a query above the size limits, before its size costs time."""
    match_span, return_span, _ = body.block_spans
    if _match_size(body.clauses) > MAX_MATCH_SIZE:
        message = f"the match has more than {MAX_MATCH_SIZE} parts"
        hint = "ask for one of many values with `in [ … ]`"
        report.add(Code.QUERY_TOO_DEEP, message, match_span, hint=hint)
        return True
    if len(body.projections) + len(body.orderings) > MAX_RESULT_SIZE:
        message = f"the result has more than {MAX_RESULT_SIZE} columns and sort keys"
        report.add(Code.QUERY_TOO_DEEP, message, return_span)
        return True
    if _computed_size((body.clauses, body.projections, body.orderings)) > MAX_COMPUTED_SIZE:
        message = f"the values computed have more than {MAX_COMPUTED_SIZE} parts"
        report.add(Code.QUERY_TOO_DEEP, message, match_span.to(return_span))
        return True
    return False


def _computed_size(node: object) -> int:
    """Count the operators, arguments and branches below a node of a syntax tree."""
    if isinstance(node, tuple):
        return sum(map(_computed_size, node))
    if isinstance(node, qt.ListLiteral) or not is_dataclass(node):
        return 0
    own = len(node.arguments) if isinstance(node, qt.CallExpression) else 0
    own += isinstance(node, qt.ArithmeticExpression | qt.CaseBranch)
    return own + sum(_computed_size(getattr(node, field.name)) for field in fields(node))


def _match_size(clauses: Iterable[qt.MatchClause]) -> int:
    """Count the parts of a match that become operators or filters, those of blocks included."""
    total = 0
    for clause in clauses:
        match clause:
            case qt.BindingClause(matches=matches):
                total += 1 + len(matches)
            case qt.NegationClause() | qt.ExistsClause() | qt.OptionalClause():
                total += 1 + _match_size(clause.clauses)
            case qt.FilterClause(condition=condition):
                total += _count_conditions(condition)
            case qt.TraversalClause():
                total += 1
            case _ as unreachable:
                assert_never(unreachable)
    return total


def _count_conditions(condition: qt.Condition) -> int:
    """Count conditions that must all hold; a choice between some is one."""
    if isinstance(condition, qt.AndCondition):
        return sum(_count_conditions(part) for part in condition.conditions)
    return 1


def _check_parameters(query: qt.QueryDecl, report: DiagnosticReport) -> dict[str, PropertyType]:
    parameters: dict[str, PropertyType] = {}
    for parameter in query.parameters:
        name, written = parameter.variable.name, parameter.type
        problem = None
        if name in parameters:
            problem = f"parameter `${name}` is declared twice"
        elif name in (RESERVED_PARAMETER, qt.ANONYMOUS):
            problem = f"parameter name `${name}` is reserved"
        if problem is not None:
            report.add(Code.PARAMETER_INVALID, problem, parameter.variable.span)
            continue
        try:
            parameters[name] = PropertyType(
                Scalar(written.base),
                nullable=written.nullable,
                is_list=written.is_list,
                dimension=written.dimension,
            )
        except ValueError as error:
            report.add(Code.PARAMETER_INVALID, str(error), written.span)
    return parameters
