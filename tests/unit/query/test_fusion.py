"""Fusion by reciprocal ranks over arrays gives what dictionaries give."""

import random

import numpy as np
import pytest

from omnigraph.query.ranking import distinct_in_order, fuse_rankings, fuse_top_ranks


def naive(first, second, k):
    """Return score and place by node."""
    order = list(dict.fromkeys([*first, *second]))
    arms = [{node: rank for rank, node in enumerate(arm, 1)} for arm in (first, second)]
    return {
        node: (sum(1 / (k + arm[node]) for arm in arms if node in arm), place)
        for place, node in enumerate(order)
    }


@pytest.mark.parametrize("seed", range(8))
def test_scores_and_places_are_those_of_dictionaries(seed):
    draw = random.Random(seed)
    first, second = (draw.sample(range(30), draw.randrange(12)) for _ in range(2))
    found = fuse_rankings(np.array(first, np.int64), np.array(second, np.int64), 7)
    expected = naive(first, second, 7)
    scores, places = found.of(np.arange(35))
    for node in range(35):
        if node in expected:
            assert (scores[node], places[node]) == pytest.approx(expected[node])
        else:
            assert np.isnan(scores[node])


def test_nodes_are_kept_where_they_first_appear():
    assert distinct_in_order(np.array([5, 2, 5, 9, 2, 0])).tolist() == [5, 2, 9, 0]


@pytest.mark.parametrize("seed", range(30))
def test_the_first_of_a_fusion_come_from_a_whole_ranking_and_the_first_of_another(seed):
    draw = random.Random(seed)
    arms = [np.array(draw.sample(range(40), draw.randrange(30)), np.int64) for _ in range(2)]
    count = draw.randrange(1, 12)

    def deeper(number, nodes):
        ranks = {node: rank for rank, node in enumerate(arms[number].tolist(), 1)}
        there = [node for node in nodes.tolist() if node in ranks]
        return np.array(there, np.int64), np.array([ranks[node] for node in there], np.int64)

    def first(fusion):
        scored = fusion.scored
        order = np.lexsort([fusion.places, -scored.scores])[:count]
        return scored.positions[order].tolist(), scored.scores[order].tolist()

    whole = draw.randrange(2)
    arms[whole] = arms[whole][:count]
    heads = fuse_top_ranks(arms[0][:count], arms[1][:count], deeper, 60)
    assert first(heads) == first(fuse_rankings(*arms, 60))
