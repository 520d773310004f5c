"""Analyses in this process: which state and which types they see, their limits, what is stored."""

import subprocess
import sys

import pytest

import omnigraph as og
from omnigraph.errors import InvalidInput, NotFound
from omnigraph.query.analytics.algorithms import ALGORITHMS
from omnigraph.query.limits import PROCESS_MEMORY, Cancellation, QueryCancelled, QueryLimit

SCHEMA = """
node Town { name: String @key  rank: F64?  part: String?  far: F32?  core: U32?  pop: I32 }
node Ship { hull: Date  built: DateTime  core: I64?  far: F64?  @key(hull, built) }
edge Road: Town -> Town { km: F64?  toll: I32  name: String? }
edge CallsAt: Ship -> Town
"""
SHIP = {"hull": "2024-02-29", "built": "2024-03-01T12:30:00.250Z"}
TOWNS = ["Ad", "Be", "Ce", "De", "Ez"]
ROADS = [
    ("Ad", "Be", 2.5),
    ("Be", "Ce", 1.0),
    ("Ad", "Ce", 4.0),
    ("Ce", "Ce", 1.0),
    ("De", "Ad", 7),
]


@pytest.fixture
def graph(tmp_path):
    """A triangle with a loop, a town before it, and one by itself."""
    graph = og.init(tmp_path / "g", SCHEMA)
    graph.load(
        {
            "Town": [{"name": name, "pop": 1} for name in TOWNS],
            "Road": [{"from": a, "to": b, "km": km, "toll": 3} for a, b, km in ROADS],
            "Ship": [SHIP],
        }
    )
    return graph


def values(graph, algorithm, edges="Road", **options):
    rows = graph.analyze(algorithm, [edges], **options).rows
    assert [list(row) for row in rows] == [["type", "id", "value"]] * len(rows)
    return {row["id"]: row["value"] for row in rows}


def test_every_town_has_a_value(graph):
    assert values(graph, "degrees") == {"Ad": 3, "Be": 2, "Ce": 4, "De": 1, "Ez": 0}
    assert values(graph, "components") == {**dict.fromkeys(TOWNS, "Ad"), "Ez": "Ez"}
    assert values(graph, "labels") == {"Ad": "Ad", "Be": "Ad", "Ce": "Ad", "De": "Ad", "Ez": "Ez"}
    assert values(graph, "kcore") == {"Ad": 2, "Be": 2, "Ce": 2, "De": 1, "Ez": 0}
    assert values(graph, "triangles") == {"Ad": 1, "Be": 1, "Ce": 1, "De": 0, "Ez": 0}
    hops = {"Ad": 0, "Be": 1, "Ce": 1, "De": None, "Ez": None}
    assert values(graph, "shortest_paths", source="Ad") == hops
    far = {"Ad": 0, "Be": 2.5, "Ce": 3.5, "De": None, "Ez": None}
    assert values(graph, "shortest_paths", source="Ad", weight="km") == far
    both = {"Ad": 3, "Be": 6, "Ce": 6, "De": 0, "Ez": None}
    options = {"source": "De", "weight": "toll", "direction": "both"}
    assert values(graph, "shortest_paths", **options) == both
    ranks = values(graph, "pagerank", iterations=1)
    assert ranks["Be"] == pytest.approx(0.03 + 0.85 * (0.2 / 2 + 0.2 / 5), abs=1e-12)


def test_values_of_an_empty_graph_are_no_rows(tmp_path):
    graph = og.init(tmp_path / "g", SCHEMA)
    for name in ALGORITHMS.keys() - {"shortest_paths"}:
        assert graph.analyze(name, ["Road", "CallsAt"]).rows == []
    with pytest.raises(NotFound, match="there is no node 'Town/Ad'") as error:
        graph.analyze("shortest_paths", ["Road"], source="Town/Ad")
    assert error.value.code == "entity_not_found"


def test_nodes_without_edges_have_values(graph):
    graph.load({"Road": []}, mode="overwrite")
    assert values(graph, "kcore") == dict.fromkeys(TOWNS, 0)
    assert values(graph, "components") == {town: town for town in TOWNS}
    assert values(graph, "pagerank") == pytest.approx(dict.fromkeys(TOWNS, 0.2))


def test_a_state_is_analyzed_as_it_was(graph):
    before = graph.snapshot().commit_id
    graph.load({"Road": [{"from": "Ez", "to": "De", "km": 1, "toll": 1}]})
    assert values(graph, "degrees")["Ez"] == 1
    assert values(graph, "degrees", at=before)["Ez"] == 0
    graph.branches.create("old", from_=before)
    result = graph.branch("old").analyze("degrees", ["Road"])
    assert (result.rows[4]["value"], result.graph_commit_id) == (0, before)


def test_nodes_of_several_types_are_named_with_their_type(graph):
    [ship] = graph.query("query q() { match { $s: Ship } return { $s } }").rows
    graph.load({"CallsAt": [{"from": ship["s"], "to": "Ez"}]})
    rows = graph.analyze("components", ["Road", "CallsAt"]).rows
    assert (rows[0]["type"], rows[0]["id"], rows[0]["value"]) == ("Ship", ship["s"], ship["s"])
    assert rows[5] == {"type": "Town", "id": "Ez", "value": f"Ship/{ship['s']}"}
    found = values(graph, "shortest_paths", "CallsAt", source=f"Ship/{ship['s']}")
    assert found == {ship["s"]: 0, "Ez": 1, **dict.fromkeys(TOWNS[:4])}
    with pytest.raises(InvalidInput, match="source must be Type/id, as nodes of Ship, Town take"):
        graph.analyze("shortest_paths", ["CallsAt"], source="Ad")


@pytest.mark.parametrize(
    ("algorithm", "options", "code", "message"),
    [
        ("pagerang", {}, "analysis_unknown", r"use one of pagerank, .*\(did you mean"),
        ("pagerank", {"dampng": 0.5}, "analysis_option_invalid", "no option 'dampng'; its options"),
        ("kcore", {"k": 3}, "analysis_option_invalid", "no option 'k'; its options: none"),
        ("pagerank", {"damping": "x"}, "analysis_option_invalid", "a number from 0 up, got 'x'"),
        ("pagerank", {"tolerance": float("nan")}, "analysis_option_invalid", "tolerance must be"),
        ("labels", {"iterations": 0}, "analysis_option_invalid", "iterations must be 1 or more"),
        ("labels", {"iterations": True}, "analysis_option_invalid", "iterations must be 1 or more"),
        ("degrees", {"direction": "up"}, "analysis_option_invalid", "out, in, both, got 'up'"),
        ("shortest_paths", {}, "analysis_option_invalid", "needs the option source"),
        ("shortest_paths", {"source": 7}, "analysis_option_invalid", "the ID of a node, got 7"),
        ("shortest_paths", {"source": "Xx"}, "entity_not_found", "there is no node 'Xx'"),
        (
            "shortest_paths",
            {"source": "Ad", "weight": "name"},
            "analysis_option_invalid",
            "Road.name is String\\?, not a number",
        ),
        (
            "shortest_paths",
            {"source": "Ad", "weight": "miles"},
            "analysis_option_invalid",
            "Road.miles is no property",
        ),
        ("kcore", {"engine": "spark"}, "engine_unsupported", "on the local engine only"),
        ("kcore", {"engine": "disk"}, "engine_unknown", "unknown engine 'disk'"),
        ("degrees", {"engine": "spark", "timeout": 1}, "engine_unsupported", "timeout: the local"),
        ("degrees", {"timeout": float("nan")}, "query_limit_invalid", "the timeout of a query"),
        ("degrees", {"memory": -1}, "query_limit_invalid", "the memory of a query"),
    ],
)
def test_invalid_analysis_is_refused(graph, algorithm, options, code, message):
    with pytest.raises((InvalidInput, NotFound), match=message) as error:
        graph.analyze(algorithm, ["Road"], **options)
    assert error.value.code == code


@pytest.mark.parametrize(
    ("km", "message"),
    [(None, "Road.km is null for 1 edges"), (-0.5, "from 0 up; its least value is -0.5")],
)
def test_weights_that_are_no_lengths_are_refused(graph, km, message):
    graph.load({"Road": [{"from": "Ez", "to": "De", "km": km, "toll": 1}]})
    with pytest.raises(InvalidInput, match=message):
        graph.analyze("shortest_paths", ["Road"], source="Ad", weight="km")


# --- limits ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ALGORITHMS)
def test_too_large_an_analysis_is_refused_before_anything_is_read(graph, name):
    graph = og.open(graph.uri)
    options = {"source": "Ad"} if name == "shortest_paths" else {}
    snapshot, reads = graph.snapshot(), graph._engine.store.reads
    with pytest.raises(QueryLimit, match="allow more `memory`") as error:
        graph.analyze(name, ["Road"], at=snapshot, memory=1000, **options)
    spark = "or choose the engine `spark`" in error.value.message
    assert (error.value.code, spark) == ("query_memory", ALGORITHMS[name].on_spark)
    assert error.value.details["limit"] == 1000
    assert graph._engine.store.reads == reads


@pytest.mark.parametrize("name", ALGORITHMS)
def test_an_analysis_stops_when_time_is_up_or_it_is_cancelled(graph, name):
    options = {"source": "Ad"} if name == "shortest_paths" else {}
    used = PROCESS_MEMORY.used
    with pytest.raises(QueryLimit, match="longer than 0 s; it was at Analyze"):
        graph.analyze(name, ["Road"], timeout=0, **options)
    cancellation = Cancellation()
    cancellation.set()
    with pytest.raises(QueryCancelled):
        cancellation.run(lambda: graph.analyze(name, ["Road"], **options))
    assert PROCESS_MEMORY.used == used, "memory is given back"


# --- who may -----------------------------------------------------------------------------------

POLICY = """
version: 1
groups: { all: [act-ada], some: [act-bo], none: [act-cy] }
rules:
  - { id: all, allow: { actors: { group: all }, actions: [read] } }
  - id: towns
    allow:
      actors: { group: some }
      actions: [read]
      types: [Town, Road]
      mask: { Road: [km] }
"""


def test_an_actor_analyzes_only_what_it_may_read(graph):
    guarded = og.open(graph.uri, policy=POLICY, actor="act-bo")
    assert values(guarded, "kcore") == values(graph, "kcore")
    with pytest.raises(NotFound, match="unknown type 'edge:CallsAt'") as error:
        guarded.analyze("kcore", ["CallsAt"])
    assert error.value.code == "unknown_type"
    with pytest.raises(InvalidInput, match=r"Road\.km is no property"):
        guarded.analyze("shortest_paths", ["Road"], source="Ad", weight="km")
    with pytest.raises(og.PolicyDenied, match="a job on Spark"):
        guarded.analyze("degrees", ["Road"], engine="spark")
    with pytest.raises(og.PolicyDenied, match="'read'"):
        guarded.as_actor("act-cy").analyze("kcore", ["Road"])
    assert values(guarded.as_actor("act-ada"), "degrees", "CallsAt")["Ez"] == 0


# --- what is stored ----------------------------------------------------------------------------


def stored(graph, text):
    return graph.query(f"query q() {{ match {{ {text} }}").rows


def test_values_are_stored_as_one_commit_without_java(graph):
    done = graph.pipeline.analyze(
        "shortest_paths", ["Road"], "Town.far", source="Ad", weight="km", message="roads"
    )
    assert (done.engine, done.nodes, done.rounds) == ("local", 5, 1)
    assert (done.loaded.commit.message, done.loaded.branch) == ("roads", "main")
    read = "$t: Town } return { $t.far as far, $t.pop as pop } order { $t.name }"
    assert [row["far"] for row in stored(graph, read)] == [0.0, 2.5, 3.5, None, None]
    assert {row["pop"] for row in stored(graph, read)} == {1}, "other properties stay"
    again = graph.pipeline.analyze("shortest_paths", ["Road"], "Town.far", source="De", timeout=60)
    assert [row["far"] for row in stored(graph, read)] == [1, 2, 2, 0, None]
    assert again.to_json()["engine"] == "local"
    assert graph.pipeline.analyze("kcore", ["Road"], "Town.core").loaded.commit is not None
    assert graph.pipeline.analyze("kcore", ["Road"], "Town.core").loaded.commit is None


def test_values_are_stored_for_nodes_with_composite_keys_of_dates(graph):
    [ship] = graph.query("query q() { match { $s: Ship } return { $s } }").rows
    graph.load({"CallsAt": [{"from": ship["s"], "to": "Ez"}]})
    done = graph.pipeline.analyze("kcore", ["CallsAt"], "Ship.core", branch="new", from_="main")
    assert (done.nodes, done.loaded.branch_created) == (1, True)
    assert graph.entity_at("Ship", ship["s"], at="new")["core"] == 1
    assert graph.entity_at("Ship", ship["s"])["core"] is None
    with pytest.raises(InvalidInput, match=r"Town\.pop is I32; shortest_paths needs F64\? or F32"):
        graph.pipeline.analyze("shortest_paths", ["Road"], "Town.pop", source="Ad")


def test_nodes_without_edges_of_these_types_are_stored_too(graph):
    done = graph.pipeline.analyze("kcore", ["Road"], "Ship.core")
    assert (done.nodes, done.loaded.commit is None) == (1, False)


def test_the_local_engine_does_not_load_spark(graph):
    code = (
        "import sys, omnigraph as og\n"
        f"graph = og.open({graph.uri!r})\n"
        "graph.analyze('kcore', ['Road'])\n"
        "graph.pipeline.analyze('degrees', ['Road'], 'Ship.core')\n"
        "assert not [name for name in sys.modules if name.startswith(('pyspark', 'py4j'))]\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
