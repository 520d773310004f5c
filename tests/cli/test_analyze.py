"""The command that runs algorithms: what it prints, and what it stores."""

import json

import pytest

import omnigraph.graph as og
from tests.support.program import omnigraph

SCHEMA = """
node Town { name: String @key  far: F64?  core: I64? }
edge Road: Town -> Town { km: F64 }
"""


@pytest.fixture(scope="module")
def uri(tmp_path_factory):
    graph = og.init(tmp_path_factory.mktemp("analyze") / "g", SCHEMA)
    roads = [("Ad", "Be", 2.5), ("Be", "Ce", 1.0), ("Ad", "Ce", 4.0)]
    graph.load(
        {
            "Town": [{"name": name} for name in ("Ad", "Be", "Ce", "De")],
            "Road": [{"from": a, "to": b, "km": km} for a, b, km in roads],
        }
    )
    graph.tags.create("v1")
    return graph.uri


def test_values_are_printed_in_any_format(uri, tmp_path):
    words = ("analyze", "shortest-paths", uri, "--edges", "Road", "--source", "Ad")
    ran = omnigraph(*words, "--weight", "km", "--format", "csv")
    assert ran.out == "type,id,value\nTown,Ad,0.0\nTown,Be,2.5\nTown,Ce,3.5\nTown,De,null\n"
    facts = json.loads(omnigraph(*words, "--snapshot", "v1", "--json").out)
    assert facts["target"] == {"branch": None, "snapshot": "v1"}
    assert [row["value"] for row in facts["rows"]] == [0.0, 1.0, 1.0, None]
    assert omnigraph(*words, "--out", tmp_path / "far.csv", "--format", "csv").out == ""
    assert (tmp_path / "far.csv").read_text().splitlines()[3] == "Town,Ce,1.0"
    ran = omnigraph("analyze", "triangles", uri, "--edges", "Road")
    assert ran.out.splitlines()[0] == "4 rows from branch main via triangles"


def test_values_are_stored_without_spark(uri):
    words = ("analyze", "kcore", uri, "--edges", "Road", "--into", "Town.core", "--as", "ann")
    branch = ("--branch", "cores", "--from", "main", "-m", "which towns")
    facts = json.loads(omnigraph(*words, *branch, "--json").out)
    commit = facts.pop("commit")
    assert (commit["actor_id"], commit["message"]) == ("ann", "which towns")
    assert facts == {
        "uri": uri,
        "algorithm": "kcore",
        "engine": "local",
        "into": "Town.core",
        "nodes": 4,
        "rounds": 1,
        "branch": "cores",
    }
    graph = og.open(uri)
    towns = [graph.entity_at("Town", town, at="cores")["core"] for town in ("Ad", "Ce", "De")]
    assert towns == [2, 2, 0]
    ran = omnigraph(*words, *branch, "--timeout", "60")
    line = "kcore: 4 nodes after 1 round, in Town.core on branch cores: no value changed\n"
    assert (ran.code, ran.out) == (0, line)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("kcore", "--from", "main"), "--from needs --into"),
        (("kcore", "--into", "Town.core", "--out", "x"), "--out does not apply with --into"),
        (("degrees", "--engine", "spark"), "--engine spark needs --into"),
        (("kcore", "--into", "Town.core", "--engine", "spark"), "on the local engine only"),
        (("kcore", "--branch", "main", "--snapshot", "v1"), "mutually exclusive"),
        (("kcore", "--memory", "10"), "needs about 1,376 bytes of memory"),
        (("kcore", "--timeout", "0"), "longer than 0 s; it was at Analyze"),
        (("shortest-paths", "--source", "Xx"), "there is no node 'Xx'"),
    ],
)
def test_what_does_not_fit_together_is_refused(uri, words, message):
    ran = omnigraph("analyze", words[0], uri, "--edges", "Road", *words[1:])
    assert ran.code != 0
    assert message in ran.err
