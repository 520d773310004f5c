"""Queries that run in small batches with a temporary file have the answers of the reference.

SPILLS says how many random graphs to ask; SPILLS_FROM is the seed of the first.
"""

import os
from random import Random
from tempfile import TemporaryDirectory

import pytest

import omnigraph.graph as og
from omnigraph.errors import OmniError
from omnigraph.query import engine, external_sort, limits, row_batches
from omnigraph.query.engine import QuerySettings
from omnigraph.query.limits import MEMORY_CODE, PROCESS_DISK, QueryLimit
from tests.property.test_counted_paths import CYCLES, OTHERS, SCHEMA, some_lines
from tests.property.test_join_order import answer
from tests.support.agreement import disagreement
from tests.support.catalogs import first
from tests.support.effort import examples
from tests.support.generated_reads import Read, as_case, some_reads
from tests.support.graph_data import load, read_lines
from tests.support.reference import World

FIRST = int(os.environ.get("SPILLS_FROM", "0"))
COUNT = int(os.environ.get("SPILLS") or examples(6))
QUERIES, MEMORY = 40, 200_000


@pytest.fixture
def small_batches(monkeypatch):
    """Let nothing fit memory at first, and batches have a few rows."""

    def refuse(*_, **__):
        raise QueryLimit("too much", code=MEMORY_CODE, operator="Query", limit=0)

    monkeypatch.setattr(engine._ResultColumns, "of", refuse)
    monkeypatch.setattr(engine._ResultColumns, "parts", refuse)
    monkeypatch.setattr(row_batches, "FIRST_BATCH_ROWS", 2)
    monkeypatch.setattr(row_batches, "MAX_BATCH_ROWS", 5)
    monkeypatch.setattr(row_batches, "VALUE_ROWS", 2)
    monkeypatch.setattr(external_sort, "MERGED_RUNS", 3)
    monkeypatch.setattr(external_sort, "MIN_BLOCK_ROWS", 2)


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize("seed", range(FIRST, FIRST + COUNT))
def test_queries_with_a_temporary_file_have_the_answer_of_the_reference(seed, monkeypatch):
    random = Random(seed)
    drawn = some_reads(random, QUERIES, search=False)
    asked = answered = 0
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
            asked += 1
            monkeypatch.setattr(limits, "BATCH_SHARE", random.choice((8, 100, 400)))
            settings = QuerySettings(memory=MEMORY)
            run = random.choice((graph._engine.run, graph._engine.stream))
            try:
                found = run(graph.snapshot(), read.text, read.params, None, settings)
                rows = list(found)
            except OmniError as error:
                # One row may reach more others than fit a batch; conditions have no order.
                if error.code not in {MEMORY_CODE, "query_number_overflow"}:
                    raise
                continue
            answered += 1
            problem = disagreement(expected, found.columns, rows)
            assert problem is None, f"{problem}\n" + as_case(drawn.sample, read)
    assert answered > asked // 2
    assert PROCESS_DISK.used == 0


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize("seed", range(examples(2)))
def test_rows_that_are_counted_instead_of_made_count_as_often_in_batches(tmp_path, seed):
    lines, schema = some_lines(Random(seed)), first(SCHEMA)
    graph = og.init(tmp_path / "g", SCHEMA)
    load(graph, lines)
    world = World(catalog=schema.catalog, graph=read_lines(lines, schema), embed=lambda *_: [])
    for body in (*CYCLES, *OTHERS):
        read = Read(f"query q() {{ match {{ {body} }}", {})
        found = graph._engine.run(graph.snapshot(), read.text, {}, None, QuerySettings())
        problem = disagreement(answer(world, read), found.columns, list(found))
        assert problem is None, "\n".join([body, problem, *lines])
