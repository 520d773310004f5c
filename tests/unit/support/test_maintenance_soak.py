"""The verdict of the maintenance soak: growth is a fault, a machine that is busy is not."""

import pytest

from tests.support.maintenance_soak import (
    COMMITS_PER_TURN,
    GROWTH,
    SAMPLES,
    TURNS_PER_SECOND,
    WRITERS,
    SoakResult,
)

SECONDS = 1_800
COMMITS = int(SECONDS * WRITERS * TURNS_PER_SECOND * COMMITS_PER_TURN)


def result(values, **changes):
    samples = [dict.fromkeys(GROWTH, value) for value in values]
    facts = {"done": {"compaction": 9, "cleanup": 9}, "errors": [], "lost_races": 0}
    return SoakResult(SECONDS, samples=samples, **{"commits": COMMITS, **facts, **changes})


def test_measurements_that_fill_up_in_the_first_half_and_swing_are_flat():
    values = [min(number, 40) + 1 + number % 3 for number in range(SAMPLES)]
    assert result(values).faults() == []


@pytest.mark.parametrize("start", range(0, SAMPLES - 6, 3))
def test_a_burst_is_no_growth(start):
    values = [10.0] * SAMPLES
    values[start : start + 6] = [70.0, 60.0, 50.0, 40.0, 30.0, 20.0]
    assert result(values).faults() == []


def test_growth_of_every_measurement_is_a_fault():
    values = [100.0 + number for number in range(SAMPLES)]
    fault = "memory grew in the second half: medians [152.0, 167.0, 182.0]"
    assert result(values).faults() == [fault]
    values[-4:] = [1.0] * 4
    faults = result([value**3 for value in values]).faults()
    assert [fault.partition(" ")[0] for fault in faults] == list(GROWTH)


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"commits": COMMITS // 4}, "the machine was busy: 25% of the commits were made"),
        ({"done": {"compaction": 9}}, "no cleanup was done"),
        ({"errors": ["boom"]}, "maintenance failed: boom"),
    ],
)
def test_run_that_proves_nothing_is_a_fault(changes, fault):
    assert result([10.0] * SAMPLES, **changes).faults() == [fault]
