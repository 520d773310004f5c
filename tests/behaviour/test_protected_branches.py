"""No method changes a protected branch without a satisfied proposal, however it is protected."""

import inspect
import json
import logging
import shutil
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.errors import OmniError
from omnigraph.graph.proposal_protocol import Proposal
from omnigraph.graph.proposals import Proposals, Protection
from omnigraph.service import cluster
from tests.behaviour.test_policy_gate import CALLS
from tests.support.clusters import PEOPLE_NEXT, write_cluster
from tests.support.serving import serving

SCHEMA = """
node Person {
  name: String @key  rank: I64?  bio: String?  vec: Vector(2)? @embed(bio)  photo: Blob?
}
edge Knows: Person -> Person
"""
LINES = b'{"type":"Person","data":{"name":"ada","bio":"x","photo":"base64:aGk="}}\n'
MORE = b'{"type":"Person","data":{"name":"dee"}}\n'
WRITE = 'query m() { insert Person { name: "bo" } }'
READ = (
    "query q() { match { $p: Person } return { $p.name as name, $p.rank as rank } order { name } }"
)
MOCK = {"kind": "mock"}
RULES = [{"branches": ["main", "release/*"], "tags": ["v*"], "require": {"approvals": 1}}]
POLICY = """version: 1
groups: { team: [act-ada, act-bo], chiefs: [act-cy] }
rules:
  - id: all
    allow: { actors: { group: team }, actions: [read, export, change] }
  - id: branches
    allow:
      actors: { group: team }
      actions: [branch_create, branch_delete, branch_merge, schema_apply]
  - id: rest
    allow: { actors: { group: team }, actions: [invoke_query, admin] }
  - id: chief
    allow: { actors: { group: chiefs }, actions: [read, export, change] }
  - id: chief-branches
    allow:
      actors: { group: chiefs }
      actions: [branch_create, branch_delete, branch_merge, schema_apply]
  - id: chief-rest
    allow: { actors: { group: chiefs }, actions: [bypass_protection, invoke_query, admin] }
"""
PROTECT = f"protect: {json.dumps(RULES)}\n"


def newest(graph, branch):
    return graph.commits.list(branch)[0].id


WRITES = {
    "Graph.mutate": lambda g, b: g.mutate(WRITE, branch=b),
    "Graph.put_blob": lambda g, b: g.put_blob("Person", "ada", "photo", b"new", branch=b),
    "Graph.clear_blob": lambda g, b: g.clear_blob("Person", "ada", "photo", branch=b),
    "Graph.load": lambda g, b: g.load(MORE, branch=b),
    "Graph.load, append": lambda g, b: g.load(MORE, mode="append", branch=b),
    "Graph.load, overwrite": lambda g, b: g.load(MORE, mode="overwrite", branch=b),
    "Graph.load, partial": lambda g, b: g.load(
        b'{"type":"Person","data":{"name":"ada","rank":9}}\n', partial=True, branch=b
    ),
    "Graph.insert": lambda g, b: g.insert("Person", [{"name": "cy"}], branch=b),
    "Graph.embed": lambda g, b: g.embed("Person", all=True, branch=b),
    "Graph.merge": lambda g, b: g.merge("side", b),
    "Graph.revert": lambda g, b: g.revert(newest(g, b), branch=b),
    "Graph.cherry_pick": lambda g, b: g.cherry_pick(newest(g, "side"), branch=b),
    "Schema.apply": lambda g, b: g.schema.apply(
        SCHEMA.replace("rank: I64?", "rank: I64?  age: I64?"), branch=b
    ),
    "Branches.delete": lambda g, b: g.branches.delete(b),
    "Branches.create": lambda g, b: g.branches.create("release/new", from_=b),
    "Graph.branch": lambda g, b: g.branch("release/new", from_=b, create=True),
    "Graph.load, new branch": lambda g, b: g.load(MORE, branch="release/new", from_=b),
    "Tags.create": lambda g, b: g.tags.create("v2", at=b),
    "Tags.delete": lambda g, _: g.tags.delete("v1"),
}
"""Writes to a branch, or to a branch or tag that begins there."""
WRITING = ("change", "schema_apply", "branch_create", "branch_delete", "branch_merge")
EMBEDDED_ONLY = ("Graph.embed",)


def state_of(path):
    """Return everything that a write could change: commits, tags, and what branches hold."""
    graph = og.open(path, mode="ro")
    branches = sorted(graph.branches.list())
    return {
        "branches": {b: [c.id for c in graph.commits.list(b)] for b in branches},
        "tags": {tag.name: tag.commit_id for tag in graph.tags.list()},
        "rows": {b: graph.query(READ, at=b).rows for b in branches},
    }


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    """A graph whose `main` and `release/*` are to be protected."""
    path = tmp_path_factory.mktemp("protected") / "g"
    graph = og.init(path, SCHEMA, embedding=MOCK, actor="act-ada")
    graph.load(LINES)
    graph.load(b'{"type":"Person","data":{"name":"eve"}}\n')
    graph.branches.create("release/1")
    graph.mutate('query m() { insert Person { name: "one" } }', branch="release/1")
    graph.branches.create("release/2", from_="release/1")
    graph.mutate('query m() { insert Person { name: "two" } }', branch="release/2")
    graph.branches.create("release/3")
    graph.branches.delete("release/3")
    graph.branches.create("release/3")
    graph.mutate('query m() { insert Person { name: "three" } }', branch="release/3")
    graph.tags.create("v1")
    graph.branches.create("side")
    graph.mutate('query m() { insert Person { name: "new" } }', branch="side")
    graph.proposals.create("side", into="main", title="To main")
    graph.proposals.create("side", into="release/1", title="To a release")
    return path


def copy_of(template, tmp_path, *, stored):
    """Return a copy in another place, which the protection comes along to."""
    first, path = tmp_path / "first", tmp_path / "g"
    shutil.copytree(template, first)
    if stored:
        og.open(first).protection.set(RULES)
    first.rename(path)
    return path


def policy_file(tmp_path, *, protects):
    file = tmp_path / "policy.yaml"
    file.write_text(POLICY + (PROTECT if protects else ""))
    return file


def refused(call):
    with pytest.raises(OmniError) as caught:
        call()
    return caught.value.code


def test_every_method_that_writes_is_in_the_table():
    writing = {
        name.partition(",")[0]
        for name, (_, needed) in CALLS.items()
        if any(action in WRITING for action, _, _ in needed)
    }
    assert {name.partition(",")[0] for name in WRITES} == writing


def test_proposals_reach_a_branch_by_their_merge_only():
    """A new method must be tried on protected branches, as those of the table, or be known here."""
    reading = {"diff", "preview", "refresh", "to_json", "run_checks"}
    conversation = {"comment", "resolve", "review", "edit", "close", "reopen"}
    methods = {
        name
        for name, member in inspect.getmembers(Proposal)
        if not name.startswith("_") and callable(member)
    }
    assert methods == reading | conversation | {"merge"}
    listing = {"create", "get", "list", "page", "events", "branches"}
    assert {n for n, _ in inspect.getmembers(Proposals) if not n.startswith("_")} == listing
    rules = {"rules", "policy_rules", "set", "clear", "to_json"}
    assert {n for n, _ in inspect.getmembers(Protection) if not n.startswith("_")} == rules


def test_conversation_does_not_change_a_protected_branch(template, tmp_path):
    path = copy_of(template, tmp_path, stored=True)
    before = state_of(path)
    found = og.open(path, actor="act-bo").proposals.get(1)
    thread = found.comment("one", on=("Person", "new"))
    found.resolve(thread)
    found.review("approve")
    found.run_checks()
    found.preview()
    found.edit(title="Other")
    found.close()
    found.reopen()
    assert len(list(found.diff())) == 1
    assert state_of(path) == before


ORIGINS = {  # the policy file, whether that protects, whether the graph does
    "stored": (False, False, True),
    "stored, with a policy": (True, False, True),
    "by the policy": (True, True, False),
    "by both": (True, True, True),
}
BRANCHES = ("main", "release/1", "release/2", "release/3")


@pytest.mark.parametrize("branch", BRANCHES)
@pytest.mark.parametrize("origin", ORIGINS)
def test_no_method_changes_a_protected_branch(template, tmp_path, origin, branch):
    has_policy, protects, stored = ORIGINS[origin]
    path = copy_of(template, tmp_path, stored=stored)
    policy = policy_file(tmp_path, protects=protects) if has_policy else None
    graph = og.open(path, policy=policy, actor="act-ada", embedding=MOCK)
    before = state_of(path)
    for name, write in WRITES.items():
        if (name, branch) != ("Branches.delete", "main"):  # main is never deleted
            assert refused(lambda: write(graph, branch)) == "branch_protected", name  # noqa: B023
    assert state_of(path) == before
    for proposal in graph.proposals.list():
        graph.proposals.get(proposal.number).review("approve")  # of its author
        number = proposal.number
        assert refused(lambda: graph.proposals.get(number).merge()) == "review_required"  # noqa: B023
    assert state_of(path) == before
    graph.optimize()  # maintenance changes no entity
    assert state_of(path)["rows"] == before["rows"]


@pytest.mark.parametrize("origin", ["stored, with a policy", "by the policy"])
def test_no_request_changes_a_protected_branch(template, tmp_path, origin):
    _, protects, stored = ORIGINS[origin]
    path = copy_of(template, tmp_path, stored=stored)
    policy = policy_file(tmp_path, protects=protects)
    tokens = tmp_path / "tokens.json"
    tokens.write_text(json.dumps({"act-ada": "secret"}))
    before = state_of(path)
    environment = {"OMNIGRAPH_SERVER_BEARER_TOKENS_FILE": str(tokens)}
    with serving(f"--graph=g={path}", f"--policy={policy}", environment=environment) as server:
        graph = og.connect(server.url, token="secret", graph="g")
        for branch in BRANCHES:
            for name, write in WRITES.items():
                if name in EMBEDDED_ONLY or (name, branch) == ("Branches.delete", "main"):
                    continue
                assert refused(lambda: write(graph, branch)) == "branch_protected", name  # noqa: B023
        assert refused(lambda: graph.proposals.get(1).merge()) == "review_required"
    assert state_of(path) == before


@pytest.mark.parametrize("name", WRITES)
def test_bypass_is_permitted_logged_and_recorded(template, tmp_path, caplog, name):
    path = copy_of(template, tmp_path, stored=True)
    policy, branch = policy_file(tmp_path, protects=True), "release/2"
    graph = og.open(path, policy=policy, actor="act-cy", embedding=MOCK)
    before = {id_ for ids in state_of(path)["branches"].values() for id_ in ids}
    with caplog.at_level(logging.INFO, logger="omnigraph.policy"):
        WRITES[name](graph, branch)
    logged = [
        (record.actor, record.allowed)
        for record in caplog.records
        if getattr(record, "action", None) == "bypass_protection"
    ]
    assert logged
    assert set(logged) == {("act-cy", True)}
    shown = og.open(path)
    made = [
        commit
        for b in shown.branches.list()
        for commit in shown.commits.list(b)
        if commit.id not in before
    ]
    is_commit = not name.startswith(("Branches", "Tags", "Graph.branch"))
    assert bool(made) == is_commit
    assert all(commit.bypass and commit.actor == "act-cy" for commit in made)


@pytest.mark.parametrize("origin", ORIGINS)
@pytest.mark.parametrize("number", [1, 2])
def test_satisfied_proposal_is_merged(template, tmp_path, origin, number):
    has_policy, protects, stored = ORIGINS[origin]
    path = copy_of(template, tmp_path, stored=stored)
    policy = policy_file(tmp_path, protects=protects) if has_policy else None
    graph = og.open(path, policy=policy, actor="act-ada", embedding=MOCK)
    graph.as_actor("act-bo").proposals.get(number).review("approve")
    commit = graph.proposals.get(number).merge().commit
    assert (commit.proposal.number, commit.bypass) == (number, False)
    target = "main" if number == 1 else "release/1"
    assert "new" in [row["name"] for row in graph.query(READ, at=target).rows]
    assert refused(lambda: graph.mutate(WRITE, branch=target)) == "branch_protected"


def test_the_stricter_of_both_holds(template, tmp_path):
    """The graph wants an approval of anybody, the policy one of act-cy."""
    path = copy_of(template, tmp_path, stored=True)
    rule = {"branches": ["main"], "require": {"approvals": 1, "from": "chiefs"}}
    graph = og.open(path, policy=POLICY + f"protect: {json.dumps(rule)}\n", actor="act-ada")
    graph.as_actor("act-bo").proposals.get(1).review("approve")
    with pytest.raises(OmniError) as caught:
        graph.proposals.get(1).merge()
    assert [(r["rule"], r["satisfied"]) for r in caught.value.details["requirements"]] == [
        ("approvals", True),
        ("approvals", False),
    ]
    graph.as_actor("act-cy").proposals.get(1).review("approve")
    assert graph.proposals.get(1).merge().commit.proposal.number == 1


def test_source_that_is_protected_is_not_deleted_by_its_merge(template, tmp_path):
    path = copy_of(template, tmp_path, stored=True)
    graph = og.open(path, actor="act-ada")
    result = graph.merge("release/1", "side", delete_branch=True)
    assert (result.branch_deleted, result.commit.bypass) == (False, False)
    assert "protected" in result.branch_delete_error
    assert graph.branches.exists("release/1")


def test_branch_that_is_created_again_is_still_protected(template, tmp_path):
    path = copy_of(template, tmp_path, stored=True)
    chief = og.open(path, policy=POLICY, actor="act-cy")
    chief.branches.delete("release/3")
    chief.branches.create("release/3", from_="side")
    graph = og.open(path, actor="act-ada")
    assert refused(lambda: graph.mutate(WRITE, branch="release/3")) == "branch_protected"
    graph.branches.create("other", from_="release/3")
    graph.mutate(WRITE, branch="other")  # a copy under another name is free


def test_writer_that_opened_the_graph_before_is_held_to_new_rules(template, tmp_path):
    path = copy_of(template, tmp_path, stored=False)
    early = og.open(path, actor="act-ada")
    early.mutate(WRITE)
    og.open(path).protection.set(RULES)
    for branch in BRANCHES:
        assert refused(lambda: early.load(MORE, branch=branch)) == "branch_protected"  # noqa: B023
    og.open(path).protection.clear()
    early.load(MORE)


def test_imported_history_is_protected_like_the_exported(template, tmp_path):
    path = copy_of(template, tmp_path, stored=True)
    og.open(path).export_archive(tmp_path / "archive", history=True)
    og.import_archive(tmp_path / "archive", tmp_path / "h")
    graph = og.open(tmp_path / "h", actor="act-ada")
    assert graph.query(READ).rows == og.open(path).query(READ).rows
    assert [rule.to_json() for rule in graph.protection.rules] == [
        rule.to_json() for rule in og.open(path).protection.rules
    ]
    assert refused(lambda: graph.mutate(WRITE)) == "branch_protected"


def test_tried_writes_are_not_refused(template, tmp_path):
    graph = og.open(copy_of(template, tmp_path, stored=True), actor="act-ada")
    assert graph.merge("side", dry_run=True).outcome in ("merged", "fast_forward")
    assert graph.proposals.get(1).preview().merge.counts["node:Person"].inserted == 1


def test_policy_of_a_file_that_vanishes_does_not_open(tmp_path, template):
    path = copy_of(template, tmp_path, stored=False)
    with pytest.raises(OmniError):
        og.open(path, policy=Path(tmp_path / "none.yaml"))


CLUSTER_POLICY = """version: 1
groups: {{ staff: [act-ada], chiefs: [act-cy] }}
rules:
  - {{ id: staff, allow: {{ actors: {{ group: staff }}, actions: [schema_apply] }} }}
  - id: chiefs
    allow: {{ actors: {{ group: chiefs }}, actions: [schema_apply, bypass_protection] }}
{protect}
"""


@pytest.mark.parametrize("stored", [False, True])
def test_cluster_does_not_migrate_a_protected_branch(tmp_path, stored):
    folder = write_cluster(tmp_path / "config", str(tmp_path / "root"))
    protect = "" if stored else f"protect: {json.dumps(RULES)}"
    (folder / "readers.yaml").write_text(CLUSTER_POLICY.format(protect=protect))
    assert cluster.import_state(folder).ok
    assert cluster.apply(folder, actor="act-ada").ok
    [uri] = [g.uri for g in cluster.read_applied_revision(folder).graphs if g.id == "people"]
    if stored:
        og.open(uri).protection.set(RULES)
    (folder / "people.pg").write_text(PEOPLE_NEXT)
    done = cluster.apply(folder, actor="act-ada")
    [found] = [finding for finding in done.findings if finding.severity == "error"]
    assert found.code == "schema_apply_failed"
    assert "branch 'main' is protected" in found.message
    assert [c.operation for c in og.open(uri).commits.list()] == ["init"]
    done = cluster.apply(folder, actor="act-cy")
    assert (done.ok, done.facts["converged"]) == (True, True)
    commit = og.open(uri).commits.list()[0]
    assert (commit.operation, commit.actor, commit.bypass) == ("schema_apply", "act-cy", True)
