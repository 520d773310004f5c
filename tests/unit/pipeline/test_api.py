"""The options of `graph.pipeline.run` and `omnigraph pipeline run`, without a Spark session."""

import pytest
from click.testing import CliRunner

import omnigraph as og
from omnigraph.cli.app import cli
from omnigraph.pipeline.api import Pipelines
from omnigraph.pipeline.runs.requests import PipelineInterrupted

FILE = "version: 1\nsources: {people: {csv: people.csv}}\nnodes: {Person: {source: people}}\n"


@pytest.fixture
def graph(tmp_path):
    (tmp_path / "p.yaml").write_text(FILE)
    return og.init(tmp_path / "g", "node Person { name: String @key }")


@pytest.mark.parametrize(("options", "forced"), [({}, False), ({"force": True}, True)])
def test_force_is_passed_to_the_run(graph, tmp_path, monkeypatch, options, forced):
    runs = []
    monkeypatch.setattr("omnigraph.pipeline.run_pipeline", lambda _, force: runs.append(force))
    graph.pipeline.run(tmp_path / "p.yaml", **options)
    assert runs == [forced]


def test_again_is_a_deprecated_alias_of_force(graph, tmp_path, monkeypatch):
    runs = []
    monkeypatch.setattr("omnigraph.pipeline.run_pipeline", lambda _, force: runs.append(force))
    with pytest.deprecated_call(match="use `force`"):
        graph.pipeline.run(tmp_path / "p.yaml", again=True)
    assert runs == [True]


@pytest.mark.parametrize(("option", "is_deprecated"), [("--force", False), ("--again", True)])
def test_the_option_again_is_hidden_and_deprecated(
    graph, tmp_path, monkeypatch, option, is_deprecated
):
    def interrupted(self, path, variables, *, force, **options):
        assert force
        raise PipelineInterrupted("r", is_published=False)

    monkeypatch.setattr(Pipelines, "run", interrupted)
    words = ["pipeline", "run", str(tmp_path / "p.yaml"), "--uri", graph.uri, option]
    ran = CliRunner().invoke(cli, words)
    assert ran.exit_code == 130, ran.output
    assert ("--again is deprecated, use --force" in ran.output) is is_deprecated
    assert "--again" not in CliRunner().invoke(cli, ["pipeline", "run", "--help"]).output
