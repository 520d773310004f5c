"""When the staged rows of a load have to be written again."""

import pytest

import omnigraph.graph as og

pytest.importorskip("pyspark")

from omnigraph.pipeline.load.spark_load import (
    changed_types,
    has_other_layout,
    stored_columns,
)

TYPE = "node:Person"


def test_rows_are_staged_again_when_a_merge_has_reordered_the_columns(tmp_path):
    graph = og.init(tmp_path / "graph", "node Person { name: String @key }")
    graph.branches.create("side")
    graph.schema.apply("node Person { name: String @key  city: String? }")
    graph.schema.apply("node Person { name: String @key  email: String? }", branch="side")
    graph.merge("side")
    graph.merge("main", into="side")
    staged, manifest = graph.snapshot(), graph._manifest
    known = {
        "base": {TYPE: staged.entry(TYPE).physical},
        "layouts": {TYPE: stored_columns(manifest, staged, TYPE)},
    }

    graph.insert("Person", [{"name": "Ada"}])
    moved = changed_types(known["base"], graph.snapshot())
    assert moved == [TYPE]
    assert not has_other_layout(manifest, known, graph.snapshot(), moved)
    assert has_other_layout(manifest, known, graph.snapshot("side"), moved)
