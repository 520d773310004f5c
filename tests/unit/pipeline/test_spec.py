"""Pipeline files: what they say, where variables come from, and the schema editors hold them to."""

import json
import subprocess
import sys

import pytest
import yaml
from jsonschema import Draft202012Validator

from omnigraph.errors import InvalidInput, NotFound
from omnigraph.pipeline.config.document import RejectLimit
from omnigraph.pipeline.config.fields import SECTIONS, FieldKind
from omnigraph.pipeline.config.json_schema import json_schema
from omnigraph.pipeline.config.spec import PipelineError, read_pipeline
from tests.support.cases import ROOT, parse_cases
from tests.support.program import ROOT as REPOSITORY

CASES = [
    case
    for path in sorted(ROOT.glob("pipeline/*.case"))
    for case in parse_cases(path.read_text(encoding="utf-8")).cases
    if case.one("pipeline").argument != "hex"
]
VALID = Draft202012Validator(json_schema())
TEXT = """version: 1
variables: {DATA: ./data, DAY: null}
sources:
  people: {csv: "${DATA}/${DAY}.csv", options: {sep: ";"}}
  fixed: {parquet: [s3://bucket/people, /abs/people]}
  both: {sql: select * from people union select * from fixed}
nodes:
  Person:
    source: both
    properties: {name: trim(name)}
    dedupe: {keep: max(length(name))}
edges:
  Knows: {source: people, from: name, to: {name: friend}}
"""


class Loader(yaml.SafeLoader):
    """Reads YAML 1.2 as editors do, in which a date is text."""


Loader.yaml_implicit_resolvers = {
    first: [(tag, regexp) for tag, regexp in found if not tag.endswith(":timestamp")]
    for first, found in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def complaints(case):
    document = yaml.load(case.one("pipeline").body, Loader)
    return [error.message for error in VALID.iter_errors(document)]


@pytest.fixture
def write(tmp_path):
    def write(text):
        path = tmp_path / "people.yaml"
        path.write_text(text, encoding="utf-8")
        return path

    return write


def test_a_file_becomes_sources_and_types(write):
    found = read_pipeline(write(TEXT), {"DAY": "monday"}, environment={})
    assert (found.name, found.mode, found.branch, found.base) == ("people", "merge", "main", None)
    assert [str(p) for p in found.sources["people"].paths] == ["./data/monday.csv"]
    assert found.sources["people"].options == {"sep": ";"}
    person, knows = found.types
    assert (person.table_key, str(person.properties["name"][1])) == ("node:Person", "trim(name)")
    assert (person.dedupe.by, person.dedupe.keep.way) == ((), "max")
    assert str(person.dedupe.keep.expression) == "length(name)"
    assert (str(knows.src), {k: str(v) for k, (_, v) in knows.dst.items()}) == (
        "name",
        {"name": "friend"},
    )


def test_addresses_are_meant_from_the_folder_of_the_file(write, tmp_path):
    found = read_pipeline(write(TEXT), {"DAY": "monday"}, environment={})
    assert found.address("data/a.csv") == str(tmp_path / "data" / "a.csv")
    assert [found.address(str(p)) for p in found.sources["fixed"].paths] == [
        "s3://bucket/people",
        "/abs/people",
    ]


@pytest.mark.parametrize(
    ("given", "environment", "wanted"),
    [
        ({"DAY": "set"}, {"DAY": "env", "DATA": "env"}, "env/set.csv"),
        ({}, {"DAY": "env"}, "./data/env.csv"),
        ({"DAY": "a: {b: c}"}, {}, "./data/a: {b: c}.csv"),
    ],
)
def test_variables_come_from_the_command_line_then_the_environment(
    write, given, environment, wanted
):
    found = read_pipeline(write(TEXT), given, environment)
    assert [str(p) for p in found.sources["people"].paths] == [wanted]


def test_limits_are_counts_or_shares(write):
    text = TEXT.replace("version: 1", "version: 1\non_violation: reject\nmax_rejects: {}")
    for word, wanted in (("12", RejectLimit(count=12)), ("2.5%", RejectLimit(share=0.025))):
        found = read_pipeline(write(text.replace("{}", word, 1)), {"DAY": "x"})
        assert found.max_rejects == wanted


def test_a_mistake_is_reported_with_its_place(write):
    path = write("version: 1\nsources:\n  a: {parqet: a}\n")
    with pytest.raises(PipelineError) as refused:
        read_pipeline(path)
    first = refused.value.diagnostics[-1]
    assert refused.value.code == "Y102"
    assert [d.location for d in refused.value.diagnostics] == [
        f"{path}:1:1",
        f"{path}:3:3",
        f"{path}:3:7",
    ]
    assert (first.code, first.hint) == ("Y101", "did you mean `parquet`?")


def test_a_file_that_is_not_there_is_reported(tmp_path):
    with pytest.raises(NotFound) as refused:
        read_pipeline(tmp_path / "none.yaml")
    assert refused.value.code == "pipeline_file_unreadable"


# --- the schema for editors --------------------------------------------------------------------


def test_the_schema_for_editors_is_what_the_registry_says():
    file = REPOSITORY / "docs" / "spec" / "pipeline.schema.json"
    assert json.loads(file.read_text(encoding="utf-8")) == json_schema()


def test_the_schema_for_editors_is_a_schema():
    Draft202012Validator.check_schema(json_schema())


def codes(case):
    lines = case.one("expect").body.splitlines()
    return {line.split()[1] for line in lines if line.startswith("error")}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.title)
def test_editors_agree_about_fields_and_values(case):
    if "Y000" in codes(case):
        return
    if not codes(case):
        assert complaints(case) == []
    if codes(case) & {"Y101", "Y103"}:
        assert complaints(case) != []


def test_every_section_of_the_registry_is_used():
    named = {f.section for fields in SECTIONS.values() for f in fields if f.section}
    assert named | {"pipeline"} == set(SECTIONS)
    kinds = {f.kind for fields in SECTIONS.values() for f in fields}
    assert kinds == set(FieldKind)


def test_spark_is_not_imported_before_it_is_needed():
    modules = "omnigraph.graph, omnigraph.pipeline.api, omnigraph.cli.commands.pipeline"
    program = f"import sys, {modules}; print('pyspark' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (run.stdout, run.stderr) == ("False\n", "")


# --- targets -----------------------------------------------------------------------------------


TARGETS = (
    TEXT
    + """graph: ./here
branch: {name: load, from: dev}
targets:
  dev: {variables: {DAY: tuesday}}
  prod:
    graph: "s3://graphs/${DATA}"
    branch: {name: nightly}
    master: spark://host:7077
    variables: {DATA: crm}
  later: {graph: "${DAY}"}
"""
)


@pytest.mark.parametrize(
    ("target", "given", "environment", "wanted"),
    [
        (None, {"DAY": "x"}, {}, ("./here", "load", "dev", None, "./data/x.csv")),
        ("dev", {}, {}, ("./here", "load", "dev", None, "./data/tuesday.csv")),
        ("dev", {"DAY": "x"}, {"DATA": "env"}, ("./here", "load", "dev", None, "env/x.csv")),
        (
            "prod",
            {"DAY": "x"},
            {},
            ("s3://graphs/crm", "nightly", "main", "spark://host:7077", "crm/x.csv"),
        ),
        (
            "prod",
            {},
            {"DAY": "y", "DATA": "env"},
            ("s3://graphs/env", "nightly", "main", "spark://host:7077", "env/y.csv"),
        ),
    ],
)
def test_a_target_replaces_what_the_file_says(write, target, given, environment, wanted):
    found = read_pipeline(write(TARGETS), given, environment, target=target)
    [path] = found.sources["people"].paths
    assert (found.graph, found.branch, found.base, found.spark.master, str(path)) == wanted
    assert found.target == target


def test_a_chosen_target_needs_values_and_a_name_that_exists(write):
    with pytest.raises(PipelineError) as refused:
        read_pipeline(write(TARGETS), {}, {}, target="later")
    assert {str(d.code) for d in refused.value.diagnostics} == {"Y106"}
    with pytest.raises(InvalidInput, match="did you mean `prod`") as unknown:
        read_pipeline(write(TARGETS), {"DAY": "x"}, {}, target="prdo")
    assert unknown.value.code == "pipeline_target_unknown"
    with pytest.raises(InvalidInput, match="the file has no targets"):
        read_pipeline(write(TEXT), {"DAY": "x"}, {}, target="prod")
