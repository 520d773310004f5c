"""Typed queries.

A parsed query and a catalog enter; a plan whose every expression knows its type leaves, or
diagnostics do. Plans are frozen values whose constructors refuse what could not be executed;
rewrite rules turn plans into plans. Nothing here reads data.
"""

from omnigraph.plan.compile import check, compile_query
from omnigraph.plan.describe import describe_operation
from omnigraph.plan.explain import explain
from omnigraph.plan.functions import FUNCTIONS, FunctionKind
from omnigraph.plan.lint import FileLint, QueryLint, lint_queries
from omnigraph.plan.parameters import bind_parameters
from omnigraph.plan.query_plan import MutationPlan, Parameter, QueryPlan, ReadPlan
from omnigraph.plan.type_checker import typecheck

__all__ = [
    "FUNCTIONS",
    "FileLint",
    "FunctionKind",
    "MutationPlan",
    "Parameter",
    "QueryLint",
    "QueryPlan",
    "ReadPlan",
    "bind_parameters",
    "check",
    "compile_query",
    "describe_operation",
    "explain",
    "lint_queries",
    "typecheck",
]
