"""Permuted queries, and plans made by any statistics or without a rule, have the same answers.

JOINS says how many random graphs to ask; JOINS_FROM is the seed of the first. Each is asked 40
queries in 3 orders; `make soak` draws more than 10,000 of them.
"""

import os
from collections.abc import Iterator
from dataclasses import replace
from random import Random
from tempfile import TemporaryDirectory

import pytest

import omnigraph.graph as og
from omnigraph.catalog import Catalog, load_catalog
from omnigraph.errors import OmniError
from omnigraph.lang import QueryError, parse_queries, print_queries
from omnigraph.lang import query_tree as qt
from omnigraph.plan import QueryPlan, ReadPlan, compile_query, planner
from omnigraph.plan import operators as op
from omnigraph.plan.statistics import (
    DegreeStatistics,
    GraphStatistics,
    PropertyStatistics,
    TypeStatistics,
)
from omnigraph.query.statistics import StatisticsBasis
from tests.support.agreement import disagreement
from tests.support.catalogs import first
from tests.support.effort import examples
from tests.support.generated_reads import Read, as_case, some_reads
from tests.support.graph_data import load, read_lines
from tests.support.reference import Answer, OutOfRangeError, RefusedError, World, ask

FIRST = int(os.environ.get("JOINS_FROM", "0"))
COUNT = int(os.environ.get("JOINS") or examples(7))
QUERIES, ORDERS = 40, 3
RULES = planner.COST_RULES


@pytest.mark.parametrize("seed", range(FIRST, FIRST + COUNT))
def test_permuted_queries_have_the_answer_of_the_reference(seed, monkeypatch):
    random = Random(seed)
    drawn = some_reads(random, QUERIES, search=False)
    catalog = load_catalog(drawn.sample.schema)
    with TemporaryDirectory() as folder:
        graph = og.init(f"{folder}/g", drawn.sample.schema)
        load(graph, drawn.sample.lines)
        world = World(
            catalog=first(drawn.sample.schema).catalog,
            graph=read_lines(drawn.sample.lines, first(drawn.sample.schema)),
            embed=lambda *_: [],
        )
        for read in drawn.queries:
            expected = answer(world, read)
            if expected is None:
                continue
            for number, text in enumerate(permutations(read.text, catalog, random)):
                believe_anything(graph, random, monkeypatch)
                leave_out_a_rule(random, monkeypatch)
                problem = problem_of(graph, text, read, expected)
                assert problem is None, f"order {number}: {problem}\n{text}\n" + as_case(
                    drawn.sample, read
                )


def answer(world: World, read: Read) -> Answer | None:
    """Return the rows of the reference; None if it refuses the values of a query."""
    try:
        return ask(world, read.text, read.params)
    except (RefusedError, OutOfRangeError):
        return None


def problem_of(graph: og.Graph, text: str, read: Read, expected: Answer) -> str | None:
    """Return how the answer of the engine differs."""
    try:
        result = graph.query(text, read.params)
    except OmniError as error:
        # Conditions hold in no particular order: one that excludes an overflow does not prevent it.
        return None if error.code == "query_number_overflow" else str(error)
    return disagreement(expected, result.columns, result.rows)


def permutations(text: str, catalog: Catalog, random: Random) -> Iterator[str]:
    """Yield a query with its clauses in the written order and in others that mean the same.

    A variable gets its type where it stands first, so that in another order it may have another.
    """
    yield text
    [query] = parse_queries(text).queries
    types = types_of(compile_query(catalog, text))
    for _ in range(ORDERS - 1):
        for _ in range(10):
            other = print_queries(qt.QueryTree((shuffled(query, random),)))
            try:
                plan = compile_query(catalog, other)
            except QueryError:
                continue
            if types_of(plan) == types:
                yield other
                break


def types_of(plan: QueryPlan) -> set[tuple[str, str]]:
    """Return the named variables of a query with their types."""
    assert isinstance(plan, ReadPlan), "only reads are permuted"
    rows = (operator for _, operator in op.walk_operators(plan.root))
    return {
        (binding.name, binding.type_name)
        for operator in rows
        if not isinstance(operator, op.ResultOperator)
        for binding in operator.variables.values()
        if binding.is_named
    }


def shuffled(query: qt.QueryDecl, random: Random) -> qt.QueryDecl:
    """Return a query with its clauses in another order."""
    assert isinstance(query.body, qt.ReadBody)
    return replace(query, body=replace(query.body, clauses=mixed(query.body.clauses, random)))


def mixed(clauses: tuple[qt.MatchClause, ...], random: Random) -> tuple[qt.MatchClause, ...]:
    """Return clauses in another order, and those of blocks, between which none is moved.

    What a block binds itself, and what it knows from outside, depends on what stands before it.
    """
    result: list[qt.MatchClause] = []
    run: list[qt.MatchClause] = []
    for clause in clauses:
        if isinstance(clause, qt.NegationClause | qt.ExistsClause | qt.OptionalClause):
            random.shuffle(run)
            result += [*run, replace(clause, clauses=mixed(clause.clauses, random))]
            run = []
        else:
            run.append(clause)
    random.shuffle(run)
    return (*result, *run)


def believe_anything(graph: og.Graph, random: Random, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the next plan be made from random statistics, which lead to any order."""
    catalog = graph.snapshot().catalog

    def some_type(definition) -> TypeStatistics:
        rows = random.choice((0, 1, 10, 1_000, 1_000_000))
        properties = {
            name: PropertyStatistics(random.randint(0, rows), random.random())
            for name in definition.properties
        }
        ends = [
            DegreeStatistics(random.randint(0, rows), random.randint(0, rows)) for _ in range(2)
        ]
        return TypeStatistics(rows, properties, *random.choice((ends, (None, None))))

    types = {f"node:{name}": some_type(node) for name, node in catalog.nodes.items()}
    types |= {f"edge:{name}": some_type(edge) for name, edge in catalog.edges.items()}
    believed = GraphStatistics(catalog, types)
    graph._engine._plans.clear()
    monkeypatch.setattr(
        graph._engine.statistics,
        "basis",
        lambda _, needs: StatisticsBasis(needs, believed, {}),
    )


def leave_out_a_rule(random: Random, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the next plan be made with all rules, or without one of them."""
    left = random.choice((None, *RULES))
    monkeypatch.setattr(planner, "COST_RULES", tuple(rule for rule in RULES if rule is not left))
