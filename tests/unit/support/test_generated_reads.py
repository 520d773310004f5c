"""Generated reads are always well-typed, print as cases, and use the whole language."""

import json
from random import Random

import pytest

from omnigraph.catalog import load_catalog
from omnigraph.lang import parse_queries
from omnigraph.lang.query_tree import ArithmeticOperator, ComparisonOperator
from omnigraph.plan import FUNCTIONS, bind_parameters, compile_query
from omnigraph.types import Scalar
from tests.support.cases import parse_cases
from tests.support.catalogs import first
from tests.support.generated_reads import as_case, some_reads
from tests.support.graph_data import read_lines

SEEDS = range(200)


@pytest.fixture(scope="module")
def drawn():
    return [some_reads(Random(seed), 8) for seed in SEEDS]


def test_every_query_type_checks_and_its_parameters_fit(drawn):
    for reads in drawn:
        catalog = load_catalog(reads.sample.schema)
        for read in reads.queries:
            bind_parameters(compile_query(catalog, read.text).parameters, read.params)


def test_data_hangs_together(drawn):
    for reads in drawn:
        graph = read_lines(reads.sample.lines, first(reads.sample.schema))
        catalog = load_catalog(reads.sample.schema)
        for name, edges in graph.edges.items():
            for edge in edges:
                assert edge.src in graph.nodes[catalog.edges[name].src]
                assert edge.dst in graph.nodes[catalog.edges[name].dst]
            assert len({edge.id for edge in edges}) == len(edges)


def test_a_seed_gives_the_same_again(drawn):
    assert repr(some_reads(Random(7), 8)) == repr(drawn[7])


def test_what_is_printed_is_a_case(drawn):
    for reads in drawn[:20]:
        text = f"=== title\n{as_case(reads.sample, reads.queries[0])}\n--- rows\nnone\n"
        [case] = parse_cases(text).cases
        assert len(parse_queries(case.one("query").body).queries) == 1


@pytest.mark.parametrize(
    "written",
    [
        *(f"{name}(" for name in FUNCTIONS),
        *(f" {sign} " for sign in ComparisonOperator),
        *(f" {sign} " for sign in ArithmeticOperator),
        *(" in ", " in [", "is null", "is not null", " or ", " and ", "not {", "$_"),
        *("exists {", "optional {", "case when", " else ", "collect(distinct"),
        *(
            "distinct {",
            "(distinct ",
            "order {",
            " desc",
            "limit ",
            "offset ",
            "limit $",
            "offset $",
        ),
        *("{1,1}", "{1,2}", "{2,2}", ":knows", ":<", "> $", "date(", "datetime(", "true", "-1"),
    ],
)
def test_the_whole_language_is_drawn(drawn, written):
    assert any(written in read.text for reads in drawn for read in reads.queries)


def test_every_type_is_drawn_as_property_and_parameter(drawn):
    schemas = "\n".join(reads.sample.schema for reads in drawn)
    queries = "\n".join(read.text for reads in drawn for read in reads.queries)
    for scalar in Scalar:
        assert f": {scalar}" in schemas
        if scalar is not Scalar.BLOB:
            assert f": {scalar}" in queries
    assert "enum(" in schemas
    assert "]?" in schemas


def test_graphs_have_loops_parallel_edges_nulls_and_no_nodes_at_all(drawn):
    ends = [
        [
            (r["edge"], r["from"], r["to"])
            for r in map(json.loads, reads.sample.lines)
            if "edge" in r
        ]
        for reads in drawn
    ]
    assert any(src == dst for edges in ends for _, src, dst in edges)
    assert any(len(set(edges)) < len(edges) for edges in ends)
    assert any(not reads.sample.lines for reads in drawn)
    assert max(len(edges) for edges in ends) > 40
