"""Writers are killed at random moments; what they acknowledged stays, and nothing is half done.

`SEED` repeats a failure, as far as timing can be repeated.
"""

import os
import random
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.commit.conftest import SOAK_SECONDS
from tests.support.commit_watcher import KILLS_PER_GRAPH, kill_writers

LANES = 2 if SOAK_SECONDS else 1
TIMEOUT = 1_800 + 10 * SOAK_SECONDS


@pytest.mark.parametrize(
    ("fresh_place", "kills", "longest_life"),
    [("local", max(75, 5 * SOAK_SECONDS), 0.1), ("s3", max(10, SOAK_SECONDS), 1.0)],
    indirect=["fresh_place"],
)
def test_killed_at_random_moments_loses_nothing_and_leaves_nothing_half(
    fresh_place, kills, longest_life
):
    seed = int(os.environ.get("SEED", random.randrange(1 << 32)))
    print(f"SEED={seed}")
    per_lane = kills // LANES
    graphs = -(-per_lane // KILLS_PER_GRAPH)
    with ThreadPoolExecutor(LANES) as lanes:
        running = []
        for lane in range(LANES):
            places = [fresh_place() for _ in range(graphs)]
            running.append(lanes.submit(kill_writers, places, seed + lane, per_lane, longest_life))
        survived = sum(lane.result(TIMEOUT) for lane in running)
    print(f"{per_lane * LANES} writers were killed; {survived} commits survived them")
    assert survived > per_lane
