"""The graph of sources and types, and the part of a pipeline that is selected."""

import pytest

from omnigraph.catalog import load_catalog
from omnigraph.errors import InvalidInput
from omnigraph.pipeline.config.selection import pipeline_lineage, select_part
from omnigraph.pipeline.config.spec import read_pipeline

CATALOG = load_catalog(
    "node Person { name: String @key } node City { name: String @key } node Old { name: String }\n"
    "edge Knows: Person -> Person edge LivesIn: Person -> City edge City: City -> Old"
)
TEXT = """version: 1
sources:
  raw: {csv: raw.csv}
  people: {sql: select * from raw}
  cities: {csv: cities.csv}
  knows: {csv: knows.csv}
  batch: {ndjson: batch.ndjson}
nodes:
  Person: {source: people}
  City: {source: cities}
edges:
  Knows: {source: knows}
  LivesIn: {source: people, from: name, to: city}
  City: {source: cities, from: name, to: name}
"""


@pytest.fixture
def pipeline(tmp_path):
    (tmp_path / "p.yaml").write_text(TEXT)
    return read_pipeline(tmp_path / "p.yaml", environment={})


def test_lineage_names_what_each_source_and_type_is_made_from(pipeline):
    found = pipeline_lineage(pipeline, CATALOG).to_json()
    assert found == {
        "pipeline": "p",
        "sources": [
            {"name": "raw", "kind": "csv", "reads": []},
            {"name": "people", "kind": "sql", "reads": ["raw"]},
            {"name": "cities", "kind": "csv", "reads": []},
            {"name": "knows", "kind": "csv", "reads": []},
            {"name": "batch", "kind": "ndjson", "reads": []},
        ],
        "types": [
            {"type": "node:Person", "reads": ["people"], "needs": []},
            {"type": "node:City", "reads": ["cities"], "needs": []},
            {"type": "edge:Knows", "reads": ["knows"], "needs": ["node:Person"]},
            {"type": "edge:LivesIn", "reads": ["people"], "needs": ["node:Person", "node:City"]},
            {"type": "edge:City", "reads": ["cities"], "needs": ["node:City"]},
        ],
    }


@pytest.mark.parametrize(
    ("select", "exclude", "types", "sources"),
    [
        (["Person"], [], "node:Person", "raw people"),
        (["Person+"], [], "node:Person edge:Knows edge:LivesIn", "raw people knows"),
        (["+LivesIn"], [], "node:Person node:City edge:LivesIn", "raw people cities"),
        (["City"], [], "node:City edge:City", "cities"),
        (["node:City"], [], "node:City", "cities"),
        (["source:raw"], [], "node:Person edge:LivesIn", "raw people"),
        (["source:raw+"], [], "node:Person edge:Knows edge:LivesIn", "raw people knows"),
        (["source:batch"], [], "", "batch"),
        (["Knows, node:City"], [], "node:City edge:Knows", "cities knows"),
        ([], ["source:people"], "node:City edge:Knows edge:City", "cities knows batch"),
        ([], ["node:City+", "source:batch"], "node:Person edge:Knows", "raw people knows"),
        (["Person+"], ["Knows"], "node:Person edge:LivesIn", "raw people"),
    ],
)
def test_a_selection_keeps_types_and_the_sources_they_need(
    pipeline, select, exclude, types, sources
):
    part = select_part(pipeline, CATALOG, select, exclude)
    assert [spec.table_key for spec in part.types] == types.split()
    assert list(part.sources) == sources.split()
    assert (part.select, part.exclude) == (tuple(select), tuple(exclude))


def test_names_the_pipeline_does_not_have_are_all_reported(pipeline):
    with pytest.raises(InvalidInput) as refused:
        select_part(pipeline, CATALOG, ["Persn+", "Old"], ["source:peple"])
    assert refused.value.code == "selection_invalid"
    assert refused.value.message.split("; ") == [
        "the pipeline has no source or type 'Persn': did you mean `Person`?",
        "the pipeline has no source or type 'Old': known names: `City`, `Knows`, `LivesIn`, "
        "`Person`, `source:batch`, `source:cities` and 3 more",
        "the pipeline has no source or type 'source:peple': did you mean `source:people`?",
    ]
    with pytest.raises(InvalidInput, match="leaves no type"):
        select_part(pipeline, CATALOG, ["Person"], ["node:Person"])


def test_without_a_selection_the_pipeline_is_the_same(pipeline):
    assert select_part(pipeline, CATALOG, [], []) is pipeline
