"""Random lives of graphs whose schema keeps changing agree with a model, now and looking back.

`MIGRATIONS` says how many lives, `MIGRATIONS_FROM` with which seed to begin.
"""

import os

import pytest

from tests.support.effort import examples
from tests.support.evolution import Life

FROM = int(os.environ.get("MIGRATIONS_FROM", "0"))
LIVES = int(os.environ.get("MIGRATIONS") or examples(8))
STEPS = 25


@pytest.mark.parametrize("seed", range(FROM, FROM + LIVES))
def test_a_graph_and_a_model_live_through_the_same_migrations(seed, tmp_path):
    life = Life.begin(str(tmp_path / "graph"), seed)
    for _ in range(STEPS):
        life.step()
    life.look_back()
