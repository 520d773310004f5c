"""Every load on Spark has the verdict, the words and the state of the same load in one process."""

import os
import shutil

import pytest

import omnigraph.graph as og
from omnigraph.pipeline.sources import splits
from omnigraph.write.violations import ValidationFailed
from tests.behaviour.change_cases import CASES
from tests.behaviour.test_changes import Hashed, without_new_ids
from tests.pipeline.ways import WAYS, compare_way, make_templates
from tests.support.changes import read_state, said
from tests.support.embedding import MOCK
from tests.support.surfaces import record

pytestmark = pytest.mark.usefixtures("default_settings")
EVERY = [case.name for case in CASES if "ndjson" in case.on]
CHOSEN = EVERY if os.environ.get("PIPELINE_CASES") == "all" else EVERY[4::34]
"""Each takes a second or more, so the default suite runs some; `make soak` runs all."""

FRAMES = [c.name for c in CASES if "columns" in c.on and len({step.type for step in c.steps}) == 1]
CHOSEN_FRAMES = [
    "a unique value stays with its entity",
    "an edge needs both its nodes",
    "a moved edge may make its new source full",
]
"""`make soak` runs all; see above."""

BY_NAME = {case.name: case for case in CASES}


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    return make_templates(tmp_path_factory.mktemp("templates"))


@pytest.mark.parametrize("name", CHOSEN)
def test_load_on_spark_has_the_verdict_of_one_process(spark, template, tmp_path, monkeypatch, name):
    monkeypatch.setattr(splits, "SPLIT_BYTES", 120)
    case = BY_NAME[name]
    graphs = {}
    for engine in ("local", "spark"):
        shutil.copytree(template(case.schema, Hashed(case.before)), tmp_path / engine)
        graphs[engine] = og.open(tmp_path / engine, embedding=MOCK)
    catalog = graphs["local"].snapshot().catalog
    file = tmp_path / "rows.ndjson"
    file.write_text("".join(record(catalog, put) + "\n" for put in case.steps))
    verdicts = {engine: verdict(graph, file, case, engine) for engine, graph in graphs.items()}
    assert verdicts["spark"] == verdicts["local"]
    states = {engine: without_new_ids(read_state(graph)) for engine, graph in graphs.items()}
    assert states["spark"] == states["local"]
    assert graphs["spark"].verify().ok


def verdict(graph, file, case, engine):
    """Return what a load counted, or every violation, in order."""
    try:
        done = graph.load(file, mode=case.mode, partial=case.partial, engine=engine)
    except ValidationFailed as error:
        return said(error)
    counts = {} if done.commit is None else dict(done.commit.counts)
    return done.nodes, done.edges, counts


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", FRAMES if CHOSEN == EVERY else CHOSEN_FRAMES)
def test_frames_have_the_verdict_of_one_process_on_every_way(spark, template, tmp_path, name, way):
    case = BY_NAME[name]
    if way == "df.write" and "@embed" in case.schema:
        return  # the provider of a graph is that of its process, and Spark commits in another one
    compare_way(spark, case, way, tmp_path, template)
