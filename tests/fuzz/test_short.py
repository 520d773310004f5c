"""A few seconds of `make fuzz`, and proof that the runner would tell."""

import time
from random import Random

import pytest

from tests.fuzz.inputs import INPUTS
from tests.fuzz.run import TooSlow, fuzz, main
from tests.fuzz.targets import Target


def test_short_run_finds_nothing():
    run = fuzz(seconds=5, seed=20260101)
    assert run.finding is None, str(run.finding)
    assert run.inputs > len(INPUTS), "no input kind had a second turn"


def test_a_broken_promise_is_found_and_made_small():
    def refuses_braces(data):
        assert b"{" not in data

    run = fuzz(seconds=5, seed=1, targets=[Target("no braces", refuses_braces)])
    assert run.finding is not None
    assert run.finding.data == b"{"
    assert "no braces broke on 1 bytes" in str(run.finding)


def test_a_target_that_never_ends_is_stopped(monkeypatch):
    def waits(_data):
        while True:
            time.process_time()

    monkeypatch.setattr("tests.fuzz.run.CPU_SECONDS", 0.05)
    run = fuzz(seconds=5, seed=1, targets=[Target("waits", waits)])
    assert run.finding is not None
    assert isinstance(run.finding.error, TooSlow)


@pytest.mark.parametrize("produce", dict.fromkeys(INPUTS), ids=lambda produce: produce.__name__)
def test_a_seed_repeats_its_inputs(produce):
    first, second = Random(3), Random(3)
    assert [produce(first) for _ in range(20)] == [produce(second) for _ in range(20)]


def test_the_command_reports_what_it_did(capsys):
    assert main(["--seconds", "0.2", "--seed", "5"]) == 0
    reported = capsys.readouterr().out
    assert "--seed 5" in reported
    assert "inputs/s" in reported
