"""A run belongs to one process: others are refused while it lives, and losing it is an error."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from omnigraph.pipeline.errors import RunStopped
from omnigraph.pipeline.runs.run import RunState, RunStore
from omnigraph.pipeline.runs.run_owner import RunOwner
from omnigraph.storage import ObjectStore, locate

NOW = datetime.now(UTC)
LONG_AGO = NOW - timedelta(minutes=11)
DEAD = """
import json
from omnigraph.pipeline.runs.run_owner import RunOwner
print(json.dumps(RunOwner.here().to_json()))
"""


@pytest.fixture
def objects(tmp_path):
    return ObjectStore(locate(tmp_path))


@pytest.fixture
def runs(objects):
    return RunStore(objects)


def put(objects, run, **changes):
    """Write down a run as somebody else would have left it."""
    run = replace(run, **changes)
    objects.put(run.path, json.dumps(run.to_json()).encode())
    return run


def age(objects, run):
    """Make a run look as if its last heartbeat was long ago."""
    path = Path(objects._location.uri, run.path)
    os.utime(path, (LONG_AGO.timestamp(),) * 2)


def code(call, *args):
    with pytest.raises(RunStopped) as refused:
        call(*args)
    return refused.value.code


def test_a_run_is_refused_to_others_while_its_process_lives(runs, objects):
    run = runs.begin("main")
    age(objects, run)  # here, no clock matters
    assert code(runs.claim, run) == "run_alive"
    assert not runs.find(run.id).is_interrupted
    with pytest.raises(RunStopped, match=rf"{run.driver} \(last heartbeat .*pipeline abort"):
        runs.claim(run)
    runs.release(run)
    assert runs.find(run.id).driver is None
    assert runs.claim(run).driver == runs.find(run.id).driver != run.driver


def test_a_run_of_a_process_that_died_is_taken_over_at_once(runs, objects):
    reported = subprocess.run([sys.executable, "-c", DEAD], capture_output=True, check=True)
    dead = RunOwner.from_json(json.loads(reported.stdout))
    run = put(objects, runs.begin("main"), driver=dead)
    assert run.is_interrupted
    mine = runs.claim(run)
    assert mine.driver.pid != dead.pid
    assert code(runs.finish_stage, run, "stage", {}) == "run_taken"
    assert runs.finish_stage(mine, "stage", {"a": 1}).stages == {"stage": {"a": 1}}
    reused = replace(dead, pid=mine.driver.pid)  # another process may get its number
    assert not reused.is_alive(timedelta(0))


def test_elsewhere_only_the_heartbeat_tells(runs, objects):
    there = replace(RunOwner.here(), host="elsewhere")
    run = put(objects, runs.begin("main"), driver=there)
    assert code(runs.claim, run) == "run_alive"  # it was just written
    age(objects, run)
    runs.beat(run)
    assert code(runs.claim, run) == "run_alive"
    put(objects, run, heartbeat=LONG_AGO)  # what its clock says does not matter
    assert code(runs.claim, run) == "run_alive"
    age(objects, run)
    assert runs.find(run.id).is_interrupted
    assert runs.claim(run).driver.host != "elsewhere"


def test_an_aborted_run_is_nobodys_any_more(runs):
    run = runs.begin("main")
    assert runs.settle(run, RunState.ABORTED).driver is None
    for call in (runs.end, runs.finish_stage):
        assert code(call, run, RunState.FAILED, {}) == "run_aborted"
    assert code(runs.claim, run) == "run_aborted"
    assert runs.find(run.id).state is RunState.ABORTED
