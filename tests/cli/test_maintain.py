"""`maintain`, `retention` and `status`, driven from outside."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

import omnigraph.graph as og
from tests.support.program import omnigraph

SCHEMA = "node Person { name: String @key }"


@pytest.fixture
def graph(tmp_path):
    graph = og.init(tmp_path / "g", SCHEMA)
    for number in range(16):
        graph.load({"Person": [{"name": f"p{number}"}]})
    return graph


def test_one_pass_prints_what_it_did_and_the_next_that_nothing_is_due(graph):
    ran = omnigraph("maintain", graph.uri, "--as", "act-ada")
    assert (ran.code, ran.out) == (0, "compacted node:Person: fragments 16 -> 1\n")
    assert graph.commits.list()[0].actor == "act-ada"
    assert omnigraph("maintain", graph.uri).out == "nothing to do\n"
    facts = json.loads(omnigraph("maintain", graph.uri, "--json").out)
    assert facts == {
        "uri": graph.uri,
        "skipped": False,
        "actions": [],
        "lost_races": 0,
        "errors": [],
    }


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_watching_maintainer_stops_quickly_and_without_error(graph, stop):
    command = [sys.executable, "-m", "omnigraph.cli", "maintain", graph.uri, "--watch"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "compacted node:Person: fragments 16 -> 1\n"
    assert omnigraph("maintain", graph.uri).out == "another process maintains this graph\n"
    shown = omnigraph("status", graph.uri).out.splitlines()
    assert f"maintainer: running process {process.pid} on {os.uname().nodename}" in shown[-2]
    assert shown[-1] == "  compacted node:Person: fragments 16 -> 1"
    began = time.monotonic()
    process.send_signal(stop)
    _, err = process.communicate(timeout=30)
    assert time.monotonic() - began < 5
    assert (process.returncode, err) == (0, f"maintaining {graph.uri} every 60 s\n")
    assert "maintainer: not running" in omnigraph("status", graph.uri).out


def test_retention_is_set_shown_and_unset(graph):
    nothing = "no retention: nothing is removed automatically\n"
    assert omnigraph("retention", "show", graph.uri).out == nothing
    ran = omnigraph("retention", "set", graph.uri, "--keep", "1000", "--older-than", "30d")
    text = "keep 1,000 commits of each branch, keep commits younger than 30d\n"
    assert (ran.code, ran.out) == (0, text)
    facts = json.loads(omnigraph("retention", "show", graph.uri, "--json").out)
    assert facts["retention"] == {"keep": 1000, "older_than": "30d"}
    assert (
        json.loads(omnigraph("status", graph.uri, "--json").out)["retention"] == facts["retention"]
    )
    assert omnigraph("retention", "unset", graph.uri).out == nothing
    assert graph.maintenance.retention() is None


@pytest.mark.parametrize(
    ("arguments", "code"),
    [([], "retention_invalid"), (["--older-than", "soon"], "duration_invalid")],
)
def test_invalid_retention_is_refused(graph, arguments, code):
    ran = omnigraph("retention", "set", graph.uri, *arguments)
    assert ran.code == 1
    assert f"error[{code}]" in ran.err


def test_status_lists_types_with_what_is_due(graph):
    lines = omnigraph("status", graph.uri).out.splitlines()
    assert lines[1].startswith("  node:Person: 16 rows, 16 fragments, 0 rows indexed, ")
    assert lines[1].endswith("; due: compaction")
    assert lines[2:] == [
        "retention: none, nothing is removed automatically",
        "maintainer: none",
    ]
