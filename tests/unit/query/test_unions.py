"""Variables of interfaces: positions that go on from one table to the next."""

import re
from random import Random

import pytest

import omnigraph as og
from omnigraph.lang import QueryError
from omnigraph.plan import compile_query
from tests.support.catalogs import first
from tests.support.effort import examples
from tests.support.embedding import mock_vector
from tests.support.generated_graphs import Sample, pools_of
from tests.support.generated_reads import Read, random_read
from tests.support.graph_data import put, read_lines
from tests.support.read_checks import WAYS, disagreements
from tests.support.reference import World

SCHEMA = """
interface Named { name: String?  age: I32?  on: DateTime?  tags: [String]? }
node A implements Named { k: String @key  text: String? }
node B implements Named { k: String @key }
node C implements Named { k: String @key }
node P { k: String @key  n: I32? }
edge In: A -> P { w: I32? }
edge At: B -> P
edge Next: P -> P
"""
"""`C` has no node and no edge."""
ONE_TYPE = "interface I { n: I32? } node A implements I { k: String @key }"


def lines(size):
    yield from (
        f'{{"type": "A", "data": {{"k": "a{i}", "name": "n{i % 5}", "age": {i}, '
        f'"on": "2024-01-{i % 28 + 1:02d}T00:00:00Z", "text": "a ship {i % 3}"}}}}'
        for i in range(size)
    )
    yield from (
        f'{{"type": "B", "data": {{"k": "b{i}", "age": {i % 4}, "tags": ["t{i % 2}"]}}}}'
        for i in range(size)
    )
    yield from (f'{{"type": "P", "data": {{"k": "p{i}", "n": {i}}}}}' for i in range(4))
    yield from (
        f'{{"edge": "In", "from": "a{i}", "to": "p{i % 4}", "data": {{"id": "i{i}"}}}}'
        for i in range(0, size, 2)
    )
    yield from (
        f'{{"edge": "At", "from": "b{i}", "to": "p{i % 3}", "data": {{"id": "t{i}"}}}}'
        for i in range(0, size, 3)
    )
    yield '{"edge": "Next", "from": "p0", "to": "p1", "data": {"id": "x"}}'


QUERIES = [
    "match { $x: Named } return { $x.name, count($x) as n, max($x.on) as on } order { $x.name }",
    "match { $x: Named } return { $x.tags, collect($x.age) as ages }",
    "match { $x: Named  $x.age > 3 } return { $x.id, $x.on } order { $x.age desc, $x.id } limit 7",
    "match { $x: Named  $y: Named  $x.age = $y.age  $x.id < $y.id } return { $x.id, $y.id }",
    "match { $x: Named  $p: P  $x.age = $p.n  optional { $p next $q } } return { $x.id, $q.k }",
    "match { $x: Named  optional { $p: P  $p.n = $x.age } } return { $p.k, count($x) as n }",
    "match { $x: Named  optional { $p: P  $p.n = $x.age } } return { $p.k, $x.id } order { $p.n }",
    "match { $x: Named  exists { $p: P  $p.n = $x.age  $p next $q } } return { $x.id }",
    "match { $x: Named  $x in $p  $p next $q } return { $x.id, $q.k }",
    "match { $x: Named  $x at $p } return { $p.k, count(distinct $x) as n }",
    "match { $x: Named  $p: P } return distinct { $x.name, $p.k } order { $x.name, $p.k } limit 9",
    "match { $x: Named  $a: A  $a.age = $x.age } return { $a.k } "
    'order { bm25($a.text, "ship") } limit 3',
    'match { $x: Named  lower($x.name) = "n1" } return { count(1) as n }',
    "match { $x: Named } return { count(1) as n, sum($x.age + 1) as s } offset 0",
]


@pytest.fixture(scope="module", params=[30])
def sample(tmp_path_factory, request):
    text = list(lines(request.param))
    graph = put(tmp_path_factory.mktemp("graph") / "g", SCHEMA, text)
    schema = first(SCHEMA)
    return World(catalog=schema.catalog, graph=read_lines(text, schema), embed=mock_vector), graph


@pytest.mark.parametrize("text", QUERIES)
def test_engine_and_reference_agree_about_interfaces(sample, text):
    world, graph = sample
    assert list(disagreements(world, Read(text, {}), graph, WAYS)) == []


@pytest.mark.parametrize("sample", [5], indirect=True)
@pytest.mark.parametrize("seed", range(examples(3)))
def test_engine_and_reference_agree_about_random_queries_of_interfaces(sample, seed):
    world, graph = sample
    pools = pools_of(Sample(SCHEMA, tuple(lines(5))), world.catalog)
    random, compared = Random(seed), 0
    for _ in range(150):
        read = random_read(random, world.catalog, pools, search=bool(seed % 2))
        # Types bound by clauses of the match itself become the interface.
        text = re.sub(r"(?m)^(    \$\w+: )[AB]\b", r"\1Named", read.text)
        if text == read.text or not is_accepted(text, world):
            continue
        compared += 1
        ways = {way: WAYS[way] for way in ("warm", "large")}
        assert list(disagreements(world, Read(text, read.params), graph, ways)) == [], text
    assert compared > 5


def is_accepted(text, world):
    """Return whether a query still type-checks with an interface in place of a type."""
    try:
        compile_query(world.catalog, text)
    except QueryError:
        return False
    return True


def test_a_stream_reads_every_type(sample):
    _, graph = sample
    rows = list(graph.stream("match { $x: Named } return { $x.id, $x.age }"))
    assert sorted(row["x.id"] for row in rows) == sorted(f"{t}{i}" for t in "ab" for i in range(30))


def test_a_type_that_is_added_is_found(tmp_path):
    graph = og.init(
        tmp_path / "g", "interface I { n: I32? } node A implements I { k: String @key }"
    )
    graph.load({"A": [{"k": "a", "n": 1}]}, mode="merge")
    text = "match { $x: I } return { $x.id, $x.n } order { $x.id }"
    assert graph.query(text).rows == [{"x.id": "a", "x.n": 1}]
    graph.schema.apply(f"{ONE_TYPE} node B implements I {{ k: String @key }}")
    graph.load({"B": [{"k": "b"}]}, mode="merge")
    assert graph.query(text).rows == [{"x.id": "a", "x.n": 1}, {"x.id": "b", "x.n": None}]
