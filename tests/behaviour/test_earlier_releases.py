"""What an earlier release left on disk opens, verifies and continues with the code of today.

The archives of `tests/fixtures/<release>` were written by that release (`tests/fixtures/build.py`).
"""

import base64
import json
import tarfile
from datetime import timedelta
from pathlib import Path

import pytest

import omnigraph.graph as og
from omnigraph.errors import OmniError
from omnigraph.service import cluster
from tests.fixtures.build import PHOTO
from tests.support.embedding import MOCK
from tests.support.spark_kills import ENDS, GOOD, OLD

FIXTURES = Path(__file__).parent.parent / "fixtures"
RELEASES = ["0.1"]
BOB = {"name": "Bob", "age": 42, "tags": ["x", "y"], "kind": "staff"}
CY = {"name": "Cy", "kind": "guest"}
PLACES = {"AAR": "Aarhus", "BGO": "Bergen", "OSL": "Oslo"}


@pytest.fixture(params=RELEASES)
def release(request):
    return FIXTURES / request.param


def unpack(release, name, folder):
    with tarfile.open(release / f"{name}.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    return folder / name


def rows(graph, at="main"):
    """Return every entity by type and id, without the nulls; ids are text, values JSON."""
    found = {}
    for line in graph.export(at):
        entity = json.loads(line)
        data = {k: v for k, v in entity["data"].items() if v is not None and k != "v"}
        name = entity.get("type") or entity["edge"]
        key = data.get("name") or data.get("code") or data["id"]
        found.setdefault(name, {})[key] = data
        if "edge" in entity:
            data.update({"from": entity["from"], "to": entity["to"]})
    return found


def check_graph(graph):
    """Check the values, the history and the search of the graph that the fixture holds."""
    assert graph.verify().ok
    assert graph.branches.list() == ["main", "open/work", "side"]
    now, before, work = rows(graph), rows(graph, "v1"), rows(graph, "open/work")
    assert set(now["Person"]) == {"Ada", "Bob", "Cy"}
    assert {k: now["Person"]["Bob"][k] for k in BOB} == BOB
    assert {k: now["Person"]["Cy"][k] for k in CY} == CY
    assert base64.b64decode(now["Person"]["Ada"]["photo"].removeprefix("base64:")) == PHOTO
    assert {code: place["town"] for code, place in now["Place"].items()} == PLACES
    assert "nick" not in now["Person"]["Ada"]
    assert {k: (e["from"], e["to"]) for k, e in now["Knows"].items()} == {
        "k1": ("Ada", "Bob"),
        "k2": ("Bob", "Cy"),
    }
    assert now["Knows"]["k1"]["since"] == "2024-05-01"
    assert set(before["Person"]) == {"Ada", "Bob", "Cy", "Dee"}
    assert (before["Person"]["Bob"]["age"], before["Person"]["Ada"]["nick"]) == (41, "A")
    assert {code: place["city"] for code, place in work["Place"].items()} == {
        "AAR": "Aarhus",
        "BGO": "Bergen",
        "CUX": "Cuxhaven",
    }
    nearest = 'return { $p.name } order { nearest($p.v, "Cy") } limit 1'
    by_text = graph.query(f"query q() {{ match {{ $p: Person }} {nearest} }}")
    assert by_text.rows == [{"p.name": "Cy"}]
    operations = [(c.operation, c.actor) for c in graph.commits.list()]
    assert operations[0] == ("mutation", "act-ada")
    assert [name for name, _ in operations][:4] == ["mutation", "optimize", "schema_apply", "merge"]
    assert operations[-1][0] == "init"


def test_a_graph_opens_verifies_and_continues(release, tmp_path):
    path = unpack(release, "graph", tmp_path)
    check_graph(og.open(path, mode="ro", embedding=MOCK))
    graph = og.open(path, embedding=MOCK)
    check_graph(graph)
    graph.mutate('query q() { update Person set { age: 43 } where name = "Bob" }')
    [changed] = graph.diff(graph.commits.list(limit=2)[1].id, "main")
    assert (changed.before.properties["age"], changed.after.properties["age"]) == (42, 43)
    assert graph.merge("open/work").outcome == "merged"
    assert rows(graph)["Place"]["CUX"]["town"] == "Cuxhaven"
    graph.branches.delete("side")
    graph.optimize()
    graph.cleanup(keep=1, older_than=timedelta(), confirm=True)
    graph.tags.create("v2")
    assert og.open(path, mode="ro").verify().ok
    assert rows(graph, "v1")["Person"]["Bob"]["age"] == 41


def test_an_archive_is_imported_with_its_history(release, tmp_path):
    og.import_archive(release / "archive.tar.gz", tmp_path / "graph")
    check_graph(og.open(tmp_path / "graph", embedding=MOCK))


@pytest.mark.parametrize(("name", "ships"), [("complete", 2), ("partial", 1)])
def test_an_intent_is_finished_or_undone(release, tmp_path, name, ships):
    path = unpack(release, "intents", tmp_path) / name
    graph = og.open(path)
    graph.recover(stale_after=timedelta())
    names = graph.query(
        "query q() { match { $s: Ship } return { $s.name } order { $s.name } }"
    ).rows
    assert [row["s.name"] for row in names] == ["Aurora", "Emma"][:ships]
    assert list(path.glob("__recovery/*.json")) == []
    assert graph.verify().ok


def test_an_interrupted_pipeline_run_is_resumed(spark, release, tmp_path):
    path = unpack(release, "runs", tmp_path) / "pipeline prepared"
    graph = og.open(path / "graph", embedding=MOCK)
    [run] = graph.pipeline.status()
    with pytest.raises(OmniError) as caught:
        graph.pipeline.resume(run.id, path / "p.yaml")
    assert caught.value.code == "embedding_model_unknown", "0.1 did not record it at a load"
    assert graph.load({"Person": [OLD]}, vectors_from="mock", branch="load").commit is not None
    report = graph.pipeline.resume(run.id, path / "p.yaml")
    assert (report.run, report.state) == (run.id, "finished")
    loaded = rows(graph)
    assert set(loaded["Person"]) == GOOD
    assert {(e["from"], e["to"]) for e in loaded["Knows"].values()} == ENDS
    assert graph.branches.list() == ["main"]
    assert graph.verify().ok


def test_an_interrupted_load_is_aborted_and_repeated(spark, release, tmp_path):
    path = unpack(release, "runs", tmp_path) / "load staged"
    graph = og.open(path / "graph", embedding=MOCK)
    [run] = graph.pipeline.status()
    assert graph.pipeline.abort(run.id).state == "aborted"
    graph.load({"Person": path / "more.csv"}, engine="spark")
    assert set(rows(graph)["Person"]) == GOOD
    assert graph.verify().ok


def test_a_cluster_is_served_and_applied_again(release, tmp_path):
    folder = unpack(release, "cluster", tmp_path)
    assert cluster.status(folder).ok
    serving = cluster.read_applied_revision(folder)
    assert sorted(graph.id for graph in serving.graphs) == ["people", "ports"]
    again = cluster.apply(folder)
    assert again.ok
    assert again.facts["changes"] == []
    graph = og.open(folder / "graphs" / "people.omni")
    graph.insert("Person", [{"name": "Ada"}])
    assert graph.verify().ok
