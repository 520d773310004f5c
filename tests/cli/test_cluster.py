"""`omnigraph cluster …`, driven from outside."""

import json
import re

import pytest

from tests.support.clusters import edit, without_ports, write_cluster
from tests.support.program import omnigraph


@pytest.fixture
def folder(tmp_path):
    return write_cluster(tmp_path / "cluster")


def run(folder, *arguments):
    return omnigraph("cluster", *arguments, "--config", folder)


def test_cluster_is_created_and_shown(folder):
    assert run(folder, "validate").out == (
        "cluster config valid: 9 resource(s), 8 dependency edge(s)\n"
    )
    assert run(folder, "apply").code == 1
    assert run(folder, "import").out.splitlines()[0] == "cluster import: revision 1, 0 resource(s)"
    assert run(folder, "plan").out.splitlines()[:2] == [
        "cluster plan: 9 change(s), 0 approval gate(s)",
        "  Create graph.people",
    ]
    done = run(folder, "apply", "--as", "act-ada")
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines()[0] == "cluster apply: 9 applied, 0 deferred/blocked"
    assert done.out.splitlines()[1] == "  Create graph.people [Applied]"
    assert done.out.splitlines()[-1] == "  state: revision 2, converged: true, written: true"
    assert run(folder, "status").out.splitlines()[:2] == [
        "cluster state: revision 2, 9 resource(s)",
        "  graph.people [applied]",
    ]

    without_ports(folder)
    done = run(folder, "apply")
    assert (done.code, done.err.splitlines()[0]) == (
        0,
        "WARN  apply_dependency_blocked graph.ports: delete is blocked: approval_required",
    )
    assert "  Delete graph.ports [Blocked: approval_required]" in done.out
    refused = run(folder, "approve", "graph.ports")
    assert (refused.code, "pass --as ACTOR" in refused.err) == (1, True)
    done = run(folder, "approve", "graph.ports", "--as", "act-eve")
    pattern = r"cluster approve: delete graph.ports approved by act-eve \(approval \w{26}\)\n"
    assert re.fullmatch(pattern, done.out)
    assert run(folder, "apply").code == 0
    refreshed = run(folder, "refresh").out.splitlines()[0]
    assert refreshed == "cluster refresh: revision 5, 7 resource(s)"


def test_errors_have_their_position_and_exit_code_1(folder):
    edit(folder, "version: 1", "version: 2")
    done = run(folder, "validate")
    assert (done.code, done.out) == (1, "")
    assert done.err == (
        "ERROR  unsupported_cluster_config_version version: `version` must be 1 (cluster.yaml:1)\n"
    )
    facts = json.loads(run(folder, "validate", "--json").out)
    assert (facts["ok"], facts["diagnostics"]) == (
        False,
        [
            {
                "code": "unsupported_cluster_config_version",
                "severity": "error",
                "path": "version",
                "message": "`version` must be 1",
                "file": "cluster.yaml",
                "line": 1,
            }
        ],
    )


def test_lock_that_is_not_held_cannot_be_removed(folder):
    done = run(folder, "force-unlock", "x", "--json")
    assert done.code == 1
    facts = json.loads(done.out)
    assert (facts["lock_removed"], facts["diagnostics"][0]["code"]) == (False, "state_lock_missing")
    assert facts["state_observations"]["state_found"] is False
    assert run(folder, "import").code == 0
    facts = json.loads(run(folder, "force-unlock", "x", "--json").out)["state_observations"]
    assert (facts["state_found"], facts["state_revision"]) == (True, 1)


def test_who_acts_is_said_anywhere_or_set_up(folder, tmp_path, monkeypatch):
    assert run(folder, "import").code == 0
    done = omnigraph("--as", "act-ada", "cluster", "apply", "--config", folder, "--json")
    assert json.loads(done.out)["actor"] == "act-ada"
    without_ports(folder)
    (tmp_path / "config.yaml").write_text("operator: { actor: act-dana }")
    monkeypatch.setenv("OMNIGRAPH_HOME", str(tmp_path))
    assert "approved by act-dana" in run(folder, "approve", "graph.ports").out
    assert json.loads(run(folder, "apply", "--json").out)["actor"] == "act-dana"


def test_command_on_a_graph_of_a_cluster_is_under_the_policy_of_the_graph(folder):
    run(folder, "import")
    run(folder, "apply")
    edit(folder, "[read]", "[read, admin]", "readers.yaml")
    address = ("--cluster", folder, "--graph", "people")
    for who in ((), ("--as", "act-ada"), ("--as", "act-stranger")):
        refused = omnigraph("optimize", *address, *who)
        assert (refused.code, "error[forbidden]: policy denied" in refused.err) == (1, True), who
    run(folder, "apply")
    done = omnigraph("optimize", *address, "--as", "act-ada")
    assert (done.code, done.out.splitlines()[-1]) == (0, "  nothing to do")
    own = omnigraph("optimize", *address, "--as", "act-eve", "--policy", folder / "readers.yaml")
    assert (own.code, "the cluster has a policy for this graph" in own.err) == (1, True)
    assert omnigraph("verify", "--cluster", folder, "--graph", "ports").code == 0
    for file in (folder / "__cluster/resources/policy/readers").glob("*.yaml"):
        file.write_text("version: 1\n")
    changed = omnigraph("verify", *address, "--as", "act-ada")
    assert (changed.code, "catalog_payload_digest_mismatch" in changed.err) == (1, True)


def test_plan_shows_the_steps_of_a_schema_for_people(folder):
    run(folder, "import")
    run(folder, "apply")
    extra = """node Person @description("people") {
  name: String @key
  age: I32?
  kind: enum(a, b)?
  tags: [String]?
  vec: Vector(3)?
  @range(age, 0..150)
}
edge Knows: Person -> Person
"""
    (folder / "people.pg").write_text(extra)
    done = run(folder, "plan")
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    start = lines.index("  Update schema.people")
    assert lines[start + 1 : start + 7] == [
        "    supported: yes",
        '    - update metadata node Person: @description("people")',
        "    - add property node Person.kind: enum(a, b)?",
        "    - add property node Person.tags: [String]?",
        "    - add property node Person.vec: Vector(3)?",
        "    - add constraint node Person @range(age, 0..150)",
    ]
    assert not re.search("[{}]|None|True|False", done.out)
    changes = json.loads(run(folder, "plan", "--json").out)["changes"]
    [schema] = [change for change in changes if change["resource"] == "schema.people"]
    assert [step["kind"] for step in schema["migration"]["steps"]] == [
        *("update_type_metadata", "add_property", "add_property", "add_property"),
        "add_constraint",
    ]


PIPELINE = """version: 1
sources: {people: {csv: people.csv}}
nodes: {Person: {source: people}}
"""


@pytest.fixture
def declared(folder):
    """A cluster with a pipeline in a folder of its own, applied."""
    (folder / "loads").mkdir()
    (folder / "loads/weekly.yaml").write_text(PIPELINE)
    (folder / "loads/people.csv").write_text("name,age\nada,36\n")
    with (folder / "cluster.yaml").open("a") as file:
        file.write("pipelines:\n  weekly: { file: loads/weekly.yaml, graph: people }\n")
    run(folder, "import")
    assert run(folder, "apply").code == 0
    return folder


def test_pipelines_of_a_cluster_are_applied_listed_and_checked_by_name(declared):
    facts = json.loads(run(declared, "validate", "--json").out)
    [found] = [r for r in facts["resources"] if r["kind"] == "pipeline"]
    assert (found["address"], found["path"]) == ("pipeline.weekly", "loads/weekly.yaml")
    edges = [(d["from"], d["to"]) for d in facts["dependencies"]]
    assert ("pipeline.weekly", "graph.people") in edges
    assert "  pipeline.weekly [applied]" in run(declared, "status").out.splitlines()
    listed = omnigraph("pipeline", "list", "--cluster", declared)
    assert (listed.code, listed.out) == (0, "weekly\tpeople\n")
    facts = json.loads(omnigraph("pipeline", "list", "--cluster", declared, "--json").out)
    assert facts["pipelines"] == [
        {"name": "weekly", "graph_id": "people", "digest": found["digest"]}
    ]
    assert omnigraph("pipeline", "list", "--cluster", declared, "--graph", "ports").out == (
        "(no pipelines declared)\n"
    )
    words = ("pipeline", "validate", "weekly", "--cluster", declared)
    assert omnigraph(*words, "--as", "act-ada").out.startswith("weekly is valid (1 source, 1 type;")
    edit(declared, "nodes:", "mode: append\nnodes:", "loads/weekly.yaml")
    lines = run(declared, "plan").out.splitlines()
    assert lines[1:] == ["  Update pipeline.weekly"]
    assert run(declared, "apply").code == 0
    (payload,) = (declared / "__cluster/resources/pipeline/weekly").glob(f"{found['digest']}*")
    assert payload.read_text() == PIPELINE


def test_pipeline_of_a_cluster_runs_under_the_policy_of_its_graph(declared):
    words = ("pipeline", "run", "weekly", "--cluster", declared)
    for who, why in (
        ((), "no actor is given"),
        (("--as", "act-eve"), "'read'"),
        (("--as", "act-ada"), "'change' on branch 'main'"),
    ):
        refused = omnigraph(*words, *who)
        assert (refused.code, "error[forbidden]" in refused.err) == (9, True), refused.err
        assert why in refused.err
    other = omnigraph(*words, "--graph", "ports", "--as", "act-ada")
    assert "pipeline 'weekly' loads into graph 'people', not 'ports'" in other.err
    missing = omnigraph("pipeline", "run", "monthly", "--cluster", declared)
    assert "error[pipeline_not_applied]: the cluster has no pipeline 'monthly'; it has: weekly" in (
        missing.err
    )


@pytest.mark.parametrize(
    ("old", "new", "file", "expected"),
    [
        ("graph: people }", "graph: cluster }", "cluster.yaml", "wrong_kind_reference"),
        ("graph: people }", "graph: nope }", "cluster.yaml", "dangling_graph_reference"),
        ("loads/weekly", "loads/gone", "cluster.yaml", "pipeline_file_missing pipeline.weekly"),
        ("Person", "Persn", "loads/weekly.yaml", "pipeline_invalid pipeline.weekly: the graph has"),
        ("people.csv", "'${X}'", "loads/weekly.yaml", "pipeline_invalid pipeline.weekly"),
        ("graph: people }", "grph: people }", "cluster.yaml", "invalid_cluster_yaml pipelines"),
    ],
)
def test_mistakes_of_declared_pipelines_are_reported(declared, old, new, file, expected):
    edit(declared, old, new, file)
    done = run(declared, "validate")
    assert done.code == 1
    assert f"ERROR  {expected}" in done.err


def test_variables_of_a_declared_pipeline_get_their_values_when_it_runs(declared):
    edit(declared, "version: 1", "version: 1\nvariables: {FILE: null}", "loads/weekly.yaml")
    edit(declared, "people.csv", "'${FILE}'", "loads/weekly.yaml")
    assert run(declared, "apply").code == 0
    words = ("pipeline", "validate", "weekly", "--cluster", declared, "--as", "act-ada")
    assert "error[Y106]" in omnigraph(*words).err
    assert omnigraph(*words, "--set", "FILE=people.csv").code == 0
