"""The commands about policies, and policies that decide about other commands."""

import json

import pytest

import omnigraph.graph as og
from tests.support.program import omnigraph

SCHEMA = "node Person { name: String @key  salary: I64? }\nnode Secret { text: String? }\n"
POLICY = """\
version: 1
groups: { readers: [act-ada], writers: [act-bo] }
protected_branches: [main]
rules:
  - id: readers
    allow:
      actors: { group: readers }
      actions: [read]
      types: [Person]
      mask: { Person: [salary] }
  - id: writers
    allow: { actors: { group: writers }, actions: [change], branch_scope: unprotected }
"""
TESTS = """\
version: 1
cases:
  - { id: ada-reads, actor: act-ada, action: read, branch: main, expect: allow }
  - { id: bo-writes, actor: act-bo, action: change, branch: main, expect: EXPECT }
"""
READ = "query q() { match { $p: Person } return { $p.name } }"
WRITE = 'query q() { insert Person { name: "bo" } }'


@pytest.fixture
def place(tmp_path):
    graph = og.init(tmp_path / "g", SCHEMA)
    graph.insert("Person", [{"name": "ada", "salary": 7}])
    graph.branches.create("draft")
    (tmp_path / "team.yaml").write_text(POLICY)
    return tmp_path


def run(place, *arguments):
    return omnigraph(*arguments, cwd=place)


def test_validate_counts_actors_or_lists_all_errors(place):
    good = run(place, "policy", "validate", "--policy", "team.yaml")
    assert (good.code, good.out) == (0, "policy valid: bundle 'team' [2 actors]\n")
    facts = json.loads(run(place, "--policy", "team.yaml", "policy", "validate", "--json").out)
    assert facts == {"valid": True, "bundle": "team", "actors": 2, "rules": 2}
    (place / "bad.yaml").write_text("version: 2\ngroups: { a: [] }\n")
    bad = run(place, "policy", "validate", "--policy", "bad.yaml")
    assert (bad.code, bad.out) == (1, "")
    assert bad.err == (
        "error[policy_invalid]: the policy is invalid:\n"
        "  line 1: `version` of the policy must be 1\n"
        "  line 2: group `a` must name at least one\n"
    )


def test_validate_knows_the_policy_of_a_server(place):
    ran = run(place, "policy", "validate", "--policy", "team.yaml", "--kind", "server", "--json")
    assert ran.code == 1
    error = json.loads(ran.out)["error"]
    assert [p["line"] for p in error["details"]["problems"]] == [8, 12]


@pytest.mark.parametrize(
    ("expect", "code", "out"),
    [
        ("deny", 0, "policy tests passed: 2 cases\n"),
        (
            "allow",
            1,
            "policy tests failed: 1 of 2 cases\n  bo-writes: expected allow, but policy denied "
            "action 'change' on branch 'main' for actor 'act-bo'\n",
        ),
    ],
)
def test_cases_pass_or_are_listed(place, expect, code, out):
    (place / "tests.yaml").write_text(TESTS.replace("EXPECT", expect))
    ran = run(place, "policy", "test", "--policy", "team.yaml", "--tests", "tests.yaml")
    assert (ran.code, ran.out, ran.err) == (code, out, "")


def test_explain_prints_decision_rule_and_types(place):
    asked = ["--policy", "team.yaml", "--actor", "act-ada", "--action", "read", "--branch", "main"]
    assert run(place, "policy", "explain", *asked).out == (
        "decision: allow\nactor: act-ada\naction: read\nbranch: main\n"
        "matched_rule: readers\n"
        "message: policy allowed action 'read' on branch 'main' for actor 'act-ada'\n"
        "types: Person without salary\n"
    )
    denied = ["--policy", "team.yaml", "--actor", "act-cy", "--action", "admin", "--json"]
    assert json.loads(run(place, "policy", "explain", *denied).out) == {
        "decision": "deny",
        "actor": "act-cy",
        "action": "admin",
        "branch": None,
        "target_branch": None,
        "matched_rule": None,
        "message": "policy denied action 'admin' for unknown actor 'act-cy'",
    }


@pytest.mark.parametrize("before", [True, False])
def test_policy_decides_about_a_command_wherever_it_is_given(place, before):
    who = ["--policy", "team.yaml", "--as", "act-ada"]
    command = ["query", "--uri", "g", "-e", READ, "--format", "csv"]
    ran = run(place, *who, *command) if before else run(place, *command, *who)
    assert (ran.code, ran.out.split()) == (0, ["p.name", "ada"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["query", "--uri", "g", "-e", READ], "no actor is given"),
        (["mutate", "--uri", "g", "-e", WRITE, "--as", "act-bo"], "denied action 'change'"),
        (["init", "h", "--schema", "s.pg"], "no actor is given"),
        (["import", "a", "h", "--as", "act-ada"], "denied action 'admin'"),
    ],
)
def test_command_is_refused_as_the_policy_says(place, arguments, message):
    (place / "s.pg").write_text(SCHEMA)
    ran = run(place, "--policy", "team.yaml", *arguments)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("error[forbidden]: policy denied")
    assert message in ran.err
    assert not (place / "h").exists()


def test_allowed_change_is_made_and_carries_its_actor(place):
    who = ["--policy", "team.yaml", "--as", "act-bo"]
    ran = run(place, "mutate", "--uri", "g", "-e", WRITE, "--branch", "draft", *who)
    assert ran.code == 0
    assert og.open(place / "g").commits.list("draft")[0].actor == "act-bo"


def test_policy_commands_need_a_policy(place):
    ran = run(place, "policy", "validate")
    assert (ran.code, "no policy given: pass --policy FILE" in ran.err) == (1, True)
