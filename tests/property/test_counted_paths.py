"""Counts, distinct ends and negations answer like the reference, though little is made for them."""

from itertools import product
from pathlib import Path
from random import Random

import pytest

import omnigraph.graph as og
from tests.support.catalogs import first
from tests.support.effort import examples
from tests.support.generated_reads import Read
from tests.support.graph_data import load, read_lines
from tests.support.read_checks import disagreements
from tests.support.reference import World

SCHEMA = """
node Person { name: String @key  age: I32 }
node Club { name: String @key }
edge Knows: Person -> Person { since: I32? }
edge Member: Person -> Club
"""
STEPS = ("$a knows $b", "$b knows $a", "$a <knows> $b")
LAST = ("$b knows $c", "$c knows $b", "$b <knows> $c")
CLOSING = ("$a knows $c", "$c knows $a", "$a <knows> $c", "$b knows $c", "not { $a knows $c }")
CYCLES = [
    f"$a: Person  {one}  {two}  {three} }} return {{ count($a) as n }}"
    for one, two, three in product(STEPS, LAST, CLOSING)
]
OTHERS = [
    "$a: Person  $a knows $b  $b knows $c } return { $a.name as a, count($c) as n }",
    "$a: Person  $a knows $b  $b knows $c } return { $b.name as b, count($c) as n }",
    "$a: Person  $a knows $b  $b knows $c } return { $c.age as age, count($a) as n }",
    "$a: Person  $a knows $b  $b knows $c } return { count(distinct $c) as n, min($c.age) as m }",
    "$a: Person  $a knows $b  $b knows $c } return { count($c.age) as n, avg($c.age) as m }",
    "$a: Person  $a knows $b  $b.age > 3  $b knows $c } return { count($a) as n }",
    "$a: Person  $a knows $b  $b member $c } return distinct { $c.name as c } order { $c.name }",
    "$a: Person  $a knows $b  $b knows $c } return distinct { $c.age as c } order { $c.age }",
    "$a: Person  $a knows{1,3} $b } return { count($b) as n }",
    "$a: Person  $a knows{2,3} $b } return { count($b) as n }",
    "$a: Person  $b knows{2,3} $a } return { $a.name as a, count($b) as n }",
    "$a: Person  not { $a knows $b  $b member $c } } return { $a.name as a }",
    "$a: Person  not { $a knows{1,2} $b  $b knows $a } } return { count($a) as n }",
    "$a: Person  $a member $c  $b member $c  $a knows $b } return { count($c) as n }",
    "$a: Person  $a member $c  $b: Person  $b member $c } return { $a.name as a, count($b) as n }",
    "$a: Person  $a $w: knows $b  $b knows $a } return { count($w.since) as n, count($b) as m }",
    "$a: Person } return { $a.name as a, $a.age as age } order { $a.age desc } limit 3",
    "$a: Person } return { $a.name as a } order { $a.age, $a.name desc } limit 4 offset 2",
    "$a: Person  $a knows $b  $c: Club } return { count($a) as n }",
    "$c: Club  $a: Person  $a knows $b  $d: Club } return { $d.name as d, count($b) as n }",
    "$a: Person  $a knows $b  $c: Person  $c knows $d } return { $c.age as c, count($a) as n }",
    "$a: Person  $a knows $b  $c: Person  $c.age > $a.age } return { count($b) as n }",
    "$a: Person  $a knows $b  $c: Person  $c knows $d  $c.age > $a.age } return { count($a) as n }",
    "$a: Person  $b: Person  $c: Club } return { $a.age as a, count($c) as n, max($b.age) as m }",
    "$a: Person  $a knows $b  $c: Club } return distinct { $c.name as c } order { $c.name }",
    '$a: Person { name: "p3" }  $a knows $b } return { $b.name as b, $b.age as age }',
    '$a: Person { name: "p3" }  $a.name = "p4" } return { $a.name as b }',
]


def some_lines(chance):
    people = [f"p{number}" for number in range(chance.randint(1, 9))]
    lines = [
        f'{{"type":"Person","data":{{"name":"{p}","age":{chance.randint(0, 6)}}}}}' for p in people
    ]
    lines += [f'{{"type":"Club","data":{{"name":"c{number}"}}}}' for number in range(3)]
    for number in range(chance.randint(0, 24)):
        one, other = chance.choice(people), chance.choice(people)
        data = f'"data":{{"id":"k{number}","since":{chance.randint(1, 3)}}}'
        lines.append(f'{{"edge":"Knows","from":"{one}","to":"{other}",{data}}}')
    for number in range(chance.randint(0, 9)):
        ends = f'"from":"{chance.choice(people)}","to":"c{chance.randint(0, 2)}"'
        lines.append(f'{{"edge":"Member",{ends},"data":{{"id":"m{number}"}}}}')
    return lines


@pytest.mark.parametrize("seed", range(examples(3)))
def test_engine_and_reference_agree_on_counted_paths(tmp_path, seed):
    schema = first(SCHEMA)
    lines = some_lines(Random(seed))
    graph = og.init(Path(tmp_path) / "g", SCHEMA)
    load(graph, lines)
    world = World(catalog=schema.catalog, graph=read_lines(lines, schema))
    for body in (*CYCLES, *OTHERS):
        read = Read(f"query q() {{ match {{ {body} }}", {})
        problems = [": ".join(found) for found in disagreements(world, read, graph)]
        assert not problems, "\n".join([body, *problems, *lines])
