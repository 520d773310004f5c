import pytest

from omnigraph.query.cost_model import ExpansionCost

LARGE = {"edges": 10_000_000, "nodes": 1_000_000}


@pytest.mark.parametrize(
    ("facts", "arrays"),
    [
        ({**LARGE, "frontier": 1, "covered": 1.0}, False),
        ({**LARGE, "frontier": 100, "covered": 1.0}, False),
        ({**LARGE, "frontier": 100_000, "covered": 1.0}, True),
        ({**LARGE, "frontier": 1, "covered": 1.0, "arrays_at_hand": True}, True),
        ({**LARGE, "frontier": 1, "covered": 0.0}, False),
        ({**LARGE, "frontier": 1, "covered": 0.0, "spent": 4_000_000}, True),
        ({"edges": 2_000, "nodes": 500, "frontier": 1, "covered": 1.0}, True),
        ({"edges": 0, "nodes": 0, "frontier": 0}, True),
        ({"edges": 10_000_000, "nodes": 10, "frontier": 1, "covered": 1.0}, True),
    ],
    ids=[
        "one node of a large graph is probed",
        "a few nodes are probed",
        "many nodes are worth arrays",
        "arrays that are there are used",
        "one scan is cheaper than arrays",
        "the next scan is not, after many",
        "arrays of few edges are made at once",
        "nothing costs nothing",
        "a node with very many edges is worth arrays",
    ],
)
def test_the_cheaper_way_is_taken(facts, arrays):
    assert ExpansionCost(**facts).takes_arrays is arrays


def test_probes_cost_more_the_more_nodes_and_the_less_is_covered():
    costs = [
        ExpansionCost(**LARGE, frontier=frontier, covered=covered).probes_cost
        for frontier, covered in ((1, 1.0), (10, 1.0), (10, 0.5), (10, 0.0))
    ]
    assert costs == sorted(costs)
    assert len(set(costs)) == len(costs)


def test_what_was_spent_on_probes_makes_arrays_pay_in_the_end():
    step, spent, probes = ExpansionCost(**LARGE, frontier=10, covered=1.0), 0.0, 0
    while not ExpansionCost(**LARGE, frontier=10, covered=1.0, spent=spent).takes_arrays:
        spent, probes = spent + step.probes_cost, probes + 1
    assert probes == step.arrays_cost // step.probes_cost
