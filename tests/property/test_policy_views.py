"""What an actor may not see does not exist: answers are those of a graph that never had it.

VIEWS says how many random graphs to ask; VIEWS_FROM is the seed of the first.
"""

import os
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest

import omnigraph as og
from omnigraph.catalog import load_catalog
from omnigraph.catalog.fingerprint import schema_shape
from tests.support.effort import examples
from tests.support.generated_reads import as_case, some_reads
from tests.support.read_checks import MOCK
from tests.support.scoped_graphs import (
    ACTOR,
    ROOT,
    graph_of,
    outcome,
    policy_for,
    reduced_lines,
    reported,
    some_shown,
    whole,
)

FIRST, COUNT = int(os.environ.get("VIEWS_FROM", "0")), int(os.environ.get("VIEWS") or examples(10))


@pytest.mark.parametrize("seed", range(FIRST, FIRST + COUNT))
def test_restricted_actor_is_answered_as_on_a_graph_without_the_rest(seed):
    random = Random(seed)
    drawn = some_reads(random, 12)
    catalog = load_catalog(drawn.sample.schema)
    shown = some_shown(random, catalog)
    with TemporaryDirectory() as folder:
        # Entities without a key get their ids here, and all graphs get them in one order.
        first = graph_of(Path(folder) / "first", drawn.sample.schema, drawn.sample.lines)
        everything = sorted(first.export(), key=lambda line: line.startswith('{"edge"'))
        parts = [everything[: len(everything) // 2], everything[len(everything) // 2 :]]
        alone = graph_of(Path(folder) / "full", drawn.sample.schema, *parts, embedding=MOCK)
        shared = og.open(alone.uri, policy=policy_for(shown, catalog), embedding=MOCK)
        actor, full = shared.as_actor(ACTOR), shared.as_actor(ROOT)
        left = whole(shown, catalog)
        remaining = [list(reduced_lines(part, left)) for part in parts]
        source = actor.schema.source
        assert schema_shape(load_catalog(source)) == schema_shape(actor.schema.catalog)
        types = {**actor.schema.catalog.nodes, **actor.schema.catalog.edges}
        assert {name: frozenset(t.properties) for name, t in types.items()} == left
        reduced = graph_of(Path(folder) / "reduced", source, *remaining, embedding=MOCK)
        assert list(actor.export()) == list(reduced.export())
        assert reported(actor) == reported(reduced)
        for read in drawn.queries:
            expected = outcome(reduced, read.text, read.params)
            # Whoever asks first fills what is kept for all.
            asked = [full, actor] if random.random() < 0.5 else [actor, full]
            answers = {graph: outcome(graph, read.text, read.params) for graph in asked}
            shows = f"{shown}\n{as_case(drawn.sample, read)}"
            assert answers[actor] == expected, shows
            assert answers[full] == outcome(alone, read.text, read.params), shows
