"""`omnigraph proposal`, `protection`, `check`, and what `policy` says about protection, as text."""

import json
from xml.etree import ElementTree

import pytest

import omnigraph as og
from tests.support.program import omnigraph

SCHEMA = "node Port { code: String @key  depth: I64? }\n"
CHECKS = """
query too_deep() @check("ports are shallower than 100 m") {
  match { $p: Port  $p.depth >= 100 }
  return { $p.id as id, $p.depth as depth }
  order { id }
}
query nameless() @check("never") { match { $p: Port  $p.code = "" } return { $p } }
"""
POLICY = """version: 1
groups: { team: [act-ada, act-bo], chiefs: [act-cy] }
rules:
  - { id: all, allow: { actors: { group: team }, actions: [change] } }
  - { id: chief, allow: { actors: { group: chiefs }, actions: [change] } }
  - { id: bypass, allow: { actors: { group: chiefs }, actions: [bypass_protection] } }
protect:
  - branches: [main, "release/*"]
    require: { approvals: 2, from: chiefs, checks: [too_deep] }
"""


@pytest.fixture
def folder(tmp_path):
    graph = og.init(tmp_path / "g", SCHEMA, actor="act-ada")
    graph.branches.create("side")
    graph.load({"Port": [{"code": "BGO", "depth": 900}]}, branch="side")
    (tmp_path / "checks.gq").write_text(CHECKS)
    (tmp_path / "policy.yaml").write_text(POLICY)
    return tmp_path


def run(folder, *words, code=0, actor="act-ada"):
    ran = omnigraph(*words, "--store", str(folder / "g"), "--quiet", "--as", actor)
    assert ran.code == code, ran.out + ran.err
    return ran.out if code in (0, 1) and ran.out else ran.err


def test_proposal_as_text(folder):
    made = run(folder, "proposal", "create", "side", "-t", "Bergen", "-b", "One\nport \x1b[31mred")
    assert made == "opened proposal 1: side into main\n"
    run(folder, "proposal", "comment", "1", "--on", "Port", "--on", "BGO", "-b", "deep?\a")
    run(folder, "proposal", "comment", "1", "--reply-to", "2", "-b", "yes")
    run(folder, "proposal", "comment", "1", "--resolve", "2")
    run(folder, "proposal", "review", "1", "approve", "-b", "fine", actor="act-bo")
    assert run(folder, "proposal", "show", "1").splitlines() == [
        "proposal 1: Bergen",
        "open: side into main, by act-ada",
        "",
        "  One",
        "  port \ufffd[31mred",
        "act-bo: approve: fine",
        "  [2] act-ada on Port BGO (resolved):",
        "    deep?\ufffd",
        "    [3] act-ada:",
        "      yes",
    ]
    failed = run(folder, "proposal", "check", "1", "--checks", str(folder / "checks.gq"), code=1)
    assert failed.splitlines() == [
        "check too_deep: failed: ports are shallower than 100 m",
        "  Port BGO: id: 'BGO', depth: 900",
        "check nameless: passed: query 'nameless' returned no rows",
    ]
    assert "checks_failed" in run(
        folder, "proposal", "merge", "1", "--checks", str(folder / "checks.gq"), code=1
    )
    assert "+1" in run(folder, "proposal", "diff", "1", "--stat")
    assert "-0" in run(folder, "proposal", "list") or "failed" in run(folder, "proposal", "list")
    run(folder, "proposal", "close", "1", "--comment", "later")
    assert run(folder, "proposal", "reopen", "1") == "opened proposal 1 again\n"
    run(folder, "proposal", "merge", "1")
    assert run(folder, "proposal", "list") == "0 proposals\n"
    events = run(folder, "proposal", "events").splitlines()
    assert events[0] == "1  proposal 1  created  act-ada"
    assert events[-1] == f"cursor: {len(events) - 1}"


def test_dry_run_shows_what_a_schema_change_does_to_the_data(folder):
    (folder / "new.pg").write_text("node Port { code: String @key  name: String? }\n")
    run(folder, "branch", "create", "schema", "--from", "side")
    run(folder, "schema", "apply", "--schema", str(folder / "new.pg"), "--branch", "schema")
    run(folder, "proposal", "create", "schema", "--into", "side", "-t", "Names")
    shown = run(folder, "proposal", "merge", "1", "--dry-run").splitlines()
    assert shown[-2:] == [
        "schema: add property node Port.name: String?: 1 entity gets null",
        "schema: drop property node Port.depth (soft): 1 value is dropped",
    ]
    facts = json.loads(run(folder, "proposal", "merge", "1", "--dry-run", "--json"))
    assert (facts["dry_run"], facts["outcome"]) == (True, "fast_forward")
    assert [(one["kind"], one["affected"]) for one in facts["schema"]["steps"]] == [
        ("add_property", 1),
        ("drop_property", 1),
    ]


def test_comment_and_thread_are_changed_together_or_not(folder):
    run(folder, "proposal", "create", "side", "-t", "Bergen")
    comment = ("proposal", "comment", "1", "-b", "why?")
    assert "no comment 7" in run(folder, *comment, "--resolve", "7", code=1)
    assert run(folder, *comment) == "added comment 2 to proposal 1\n"
    run(folder, *comment, "--resolve", "2")
    run(folder, *comment, "--unresolve", "2")
    assert "pass one of them" in run(folder, *comment, "--resolve", "2", "--unresolve", "2", code=2)
    kinds = [line.split()[3] for line in run(folder, "proposal", "events").splitlines()[:-1]]
    assert kinds == ["created", "commented", *("resolved", "commented"), "unresolved", "commented"]
    assert "nothing to change" in run(folder, "proposal", "edit", "1", code=1)


def test_list_says_that_there_are_more(folder):
    run(folder, "branch", "create", "other", "--from", "side")
    for source in ("side", "other"):
        run(folder, "proposal", "create", source, "-t", source)
    assert run(folder, "proposal", "list", "--limit", "1").splitlines()[-1] == (
        "there are more; list them with --limit 2"
    )
    assert "there are more" not in run(folder, "proposal", "list", "--limit", "2")
    shown = [
        json.loads(run(folder, "proposal", "list", "--limit", limit, "--json"))
        for limit in ("1", "2")
    ]
    assert [(len(one["proposals"]), one["more"]) for one in shown] == [(1, True), (2, False)]


def test_what_has_no_effect_is_said(folder):
    words = ("create", "side", "-t", "Bergen", "--reviewer", "act-bo")
    run(folder, "proposal", *words)
    assert "reviewers: act-bo" in run(folder, "proposal", "show", "1").splitlines()
    store = ("--store", str(folder / "g"), "--quiet")
    anonymous = omnigraph("proposal", "review", "1", "approve", *store)
    assert anonymous.out == "unknown: approve\n"
    assert anonymous.err == "warning: a review without an actor does not count; pass --as ACTOR\n"
    assert omnigraph("proposal", "review", "1", "comment", "-b", "hm", *store).err == ""
    nothing = omnigraph("check", *store)
    assert nothing.out == "0 checks, 0 failed\n"
    assert nothing.err.startswith("warning: nothing was checked: pass --checks FOLDER")
    assert run(folder, "proposal", "check", "1").startswith("nothing was checked: pass --checks")


def test_junit_report_is_xml_whatever_the_graph_has(folder):
    odd = "a\x01b\ufffe<&>\U0001f6a2"
    graph = og.open(folder / "g", actor="act-ada")
    graph.load({"Port": [{"code": odd, "depth": 200}]})
    report = folder / "report.xml"
    words = ("check", "--checks", str(folder / "checks.gq"), "--junit", str(report))
    run(folder, *words, code=1)
    [failure] = ElementTree.parse(report).getroot().iter("failure")
    assert failure.text is not None
    assert "<&>\U0001f6a2" in failure.text


def test_check_writes_a_junit_report(folder):
    report = folder / "report.xml"
    words = ("check", "--checks", str(folder / "checks.gq"), "--junit", str(report))
    assert run(folder, *words).endswith("2 checks, 0 failed\n")
    [suite] = [ElementTree.parse(report).getroot()]
    assert (suite.get("tests"), suite.get("failures")) == ("2", "0")
    failed = run(folder, *words, "--at", "side", code=1)
    assert "too_deep: failed: ports are shallower than 100 m" in failed
    assert "depth: 900" in failed
    suite = ElementTree.parse(report).getroot()
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    [failure] = suite.iter("failure")
    assert failure.get("message") == "ports are shallower than 100 m"
    [value] = [json.loads(run(folder, *words, "--at", "side", "--json", code=1))]
    assert value["ok"] is False
    assert [(c["name"], c["passed"], c["count"]) for c in value["checks"]] == [
        ("too_deep", False, 1),
        ("nameless", True, 0),
    ]
    assert value["checks"][0]["entities"] == [{"kind": "node", "type": "Port", "id": "BGO"}]


BROKEN = """
query parameter($d: I64) @check("deep") { match { $p: Port  $p.depth > $d } return { $p } }
query unknown() @check("x") { match { $p: Nope } return { $p } }
query write() @check("x") { insert Port { code: "X" } }
query fine() @check("all \x1b[31mis\nwell") { match { $p: Port } return { $p } }
"""


def test_check_that_cannot_run_fails_and_the_others_run(folder):
    (folder / "checks.gq").write_text(BROKEN)
    report = folder / "report.xml"
    words = ("check", "--checks", str(folder / "checks.gq"), "--at", "side")
    shown = run(folder, *words, "--junit", str(report), code=1).splitlines()
    found = [line.partition(":")[::2] for line in shown if not line.startswith(" ")]
    assert [name for name, _ in found] == ["parameter", "unknown", "write", "fine", shown[-1]]
    assert all(text.startswith(" failed: the check could not run: ") for _, text in found[:3])
    assert found[3][1] == " failed: all \ufffd[31mis well"
    assert shown[-1] == "4 checks, 4 failed"
    names = [case.get("name") for case in ElementTree.parse(report).getroot().iter("testcase")]
    assert names == ["parameter", "unknown", "write", "fine"]
    [value] = [json.loads(run(folder, *words, "--json", code=1))]
    assert [check["count"] for check in value["checks"]] == [1, 1, 1, 1]


def test_protection_as_text(folder):
    assert run(folder, "protection", "show") == "no branch is protected\n"
    words = ("--branch", "main", "--tag", "v*", "--approvals", "2", "--from", "chiefs")
    set_ = run(folder, "protection", "set", *words, "--check", "too_deep")
    line = "main, tag v*: a proposal, approvals: 2 from chiefs, check too_deep\n"
    assert set_ == line
    more = run(
        folder, "protection", "set", "--add", "--branch", "release/*", "--approver", "act-bo"
    )
    assert more == line + "release/*: a proposal, approvals: 1 from act-bo\n"
    refused = run(folder, "mutate", "-e", 'query q() { insert Port { code: "X" } }', code=1)
    assert "branch_protected" in refused
    assert "proposal create" in refused
    assert run(folder, "protection", "clear") == "no branch is protected\n"
    assert "no branch given: pass --branch" in run(folder, "protection", "set", code=2)
    both = ("--branch", "main", "--from", "chiefs", "--approver", "act-bo")
    assert "pass one of them" in run(folder, "protection", "set", *both, code=2)
    file = ("--branch", "main", "--rules", str(folder / "rules.json"))
    assert "not both" in run(folder, "protection", "set", *file, code=2)
    many = ("--branch", "main", "--approvals", "2", "--approver", "act-bo")
    assert "`approvals` is 2" in run(folder, "protection", "set", *many, code=1)
    assert run(folder, "protection", "show") == "no branch is protected\n"


def test_policy_is_validated_and_explained_with_its_protection(folder):
    file = str(folder / "policy.yaml")
    assert omnigraph("policy", "validate", "--policy", file).out.splitlines()[1:] == [
        "  protects main, release/*: a proposal, approvals: 2 from chiefs, check too_deep"
    ]
    assert omnigraph("policy", "validate", "--policy", file).err == (
        "warning: no proposal can satisfy 'main, release/*: a proposal, approvals: 2 from chiefs, "
        "check too_deep': chiefs has fewer actors than approvals are required\n"
    )
    explain = ("policy", "explain", "--policy", file, "--action", "change")
    told = omnigraph(*explain, "--actor", "act-ada", "--branch", "release/1").out
    assert told.splitlines()[0] == "decision: allow"
    assert told.splitlines()[-2:] == [
        "protection: main, release/*: a proposal, approvals: 2 from chiefs, check too_deep",
        "may_bypass: no",
    ]
    facts = json.loads(omnigraph(*explain, "--actor", "act-cy", "--branch", "main", "--json").out)
    assert (facts["may_bypass"], len(facts["protection"])) == (True, 1)
    assert facts["protection"][0]["require"]["approvals"] == 2
    free = omnigraph(*explain, "--actor", "act-ada", "--branch", "side", "--json").out
    assert "protection" not in json.loads(free)
    (folder / "bad.yaml").write_text(POLICY.replace("from: chiefs", "from: nobody"))
    bad = omnigraph("policy", "validate", "--policy", str(folder / "bad.yaml"))
    assert bad.code == 1
    assert "unknown group `nobody`" in bad.out + bad.err
