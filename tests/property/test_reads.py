"""The engine answers every query as the reference does, in every execution mode.

READS says how many random graphs to ask; READS_FROM is the seed of the first.
A failure prints a case that can be pasted into `tests/cases/read`.
"""

import os
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings

from tests.support.effort import examples
from tests.support.generated_reads import reads, some_reads
from tests.support.read_checks import HISTORIES, differences

FIRST, COUNT = int(os.environ.get("READS_FROM", "0")), int(os.environ.get("READS") or examples(8))


@settings(max_examples=examples(14), suppress_health_check=list(HealthCheck))
@given(reads(count=3))
def test_engine_and_reference_agree_on_what_hypothesis_finds(drawn):
    reported = list(differences(drawn))
    assert not reported, reported[0]


@pytest.mark.parametrize("seed", range(FIRST, FIRST + COUNT))
@pytest.mark.parametrize("history", HISTORIES)
def test_engine_and_reference_agree_on_a_random_graph(history, seed):
    count = 10 if history == "at once" else 4
    reported = list(differences(some_reads(Random(seed), count), history))
    assert not reported, f"{len(reported)} differences, the first: {reported[0]}"
