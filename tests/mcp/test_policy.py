"""What an agent may not do is not there: neither in the list of tools nor when it is called."""

import json

import pytest

from tests.support.agents import agent, on_pipe
from tests.support.program import omnigraph
from tests.support.serving import ALL_PEOPLE, INSERT, make_graph, stored_folder

POLICY = """
version: 1
groups: {drafters: [act-dora]}
protected_branches: [main]
rules:
  - id: drafters-read
    allow: {actors: {group: drafters}, actions: [read]}
  - id: drafters-draft
    allow: {actors: {group: drafters}, actions: [change], branch_scope: unprotected}
  - id: drafters-branch
    allow: {actors: {group: drafters}, actions: [branch_create], target_branch_scope: unprotected}
  - id: drafters-invoke
    allow: {actors: {group: drafters}, actions: [invoke_query]}
"""
SERVER_POLICY = """
version: 1
groups: {ops: [act-dora]}
rules:
  - id: ops-list
    allow: {actors: {group: ops}, actions: [graph_list]}
"""
READING = {
    "schema_get",
    "query",
    "read",
    "explain",
    "snapshot",
    "branches_list",
    "commits_list",
    "commits_get",
    "diff",
    "history",
    "blame",
    "checks_run",
    "proposals_list",
    "proposal_get",
    "proposal_diff",
    "proposal_events",
}
REVIEWING = {
    "proposal_create",
    "proposal_comment",
    "proposal_review",
    "proposal_check",
    "proposal_close",
}


@pytest.fixture(scope="module")
def reported(tmp_path_factory):
    """Two graphs: `drafts` has a policy, `plain` has none and so is only read."""
    folder = tmp_path_factory.mktemp("ruled")
    (folder / "policy.yaml").write_text(POLICY)
    (folder / "server.yaml").write_text(SERVER_POLICY)
    return [
        f"--graph=drafts={make_graph(folder / 'drafts')}",
        f"--graph=plain={make_graph(folder / 'plain')}",
        f"--policy=drafts={folder / 'policy.yaml'}",
        f"--server-policy={folder / 'server.yaml'}",
        f"--queries={stored_folder(folder / 'queries')}",
    ]


@pytest.fixture(scope="module")
def dora(reported):
    with agent(on_pipe(*reported, "--as=act-dora")) as found:
        yield found


def test_tools_are_those_that_may_be_used_somewhere(dora):
    assert set(dora.tools()) == {
        "health",
        "graphs_list",
        *READING,
        *REVIEWING,
        "mutate",
        "change",
        "ingest",
        "branches_create",
        "propose_change",
        "drafts_adults",
        "drafts_add_person",
    }


def test_a_tool_takes_the_graphs_on_which_it_may_be_used(dora):
    tools = dora.tools()
    graphs = {
        n: t.input_schema["properties"]["graph"]["enum"] for n, t in tools.items() if n in READING
    }
    assert graphs == {name: ["drafts", "plain"] for name in READING}
    assert tools["mutate"].input_schema["properties"]["graph"]["enum"] == ["drafts"]
    assert tools["mutate"].input_schema["required"] == ["graph", "query"]


@pytest.mark.parametrize("tool", ["merge", "branches_merge", "branches_delete", "schema_apply"])
def test_a_denied_tool_is_unknown(dora, tool):
    assert dora.unknown(tool, graph="drafts", source="main") == f"unknown tool '{tool}'"
    assert dora.unknown("plain_adults", min=1) == "unknown tool 'plain_adults'"


def test_a_graph_on_which_a_tool_is_denied_is_refused_like_one_that_is_not_there(dora):
    wanted = {"query": INSERT, "params": {"name": "Eve"}, "branch": "x"}
    denied, absent = (dora.fails("mutate", graph=name, **wanted) for name in ("plain", "nowhere"))
    assert denied == absent
    assert denied["code"] == "arguments_invalid"


def test_a_graph_must_be_named_where_there_are_several(dora):
    failure = dora.fails("query", query=ALL_PEOPLE)
    assert "`graph` is missing" in failure["message"]


def test_a_branch_that_is_denied_is_reported_as_a_failure(dora):
    failure = dora.fails("mutate", graph="drafts", query=INSERT, params={"name": "Ada"})
    assert (failure["code"], failure["category"]) == ("forbidden", "denied")
    assert "propose_change" in failure["next"]
    assert dora.call("query", graph="drafts", query=ALL_PEOPLE)["rows"] == []


def test_a_proposal_needs_no_right_to_merge(dora):
    wanted = {"query": INSERT, "params": {"name": "Ada", "age": 1}, "branch": "ada"}
    found = dora.call("propose_change", graph="drafts", **wanted)
    assert [change["id"] for change in found["changes"]] == ["Ada"]
    assert found["commit"]["actor_id"] == "act-dora"
    assert found["merge_preview"]["outcome"] == "fast_forward"
    assert dora.unknown("merge") == "unknown tool 'merge'"
    rows = dora.call("query", graph="drafts", query=ALL_PEOPLE, branch="ada")["rows"]
    assert rows == [{"name": "Ada", "age": 1}]


def test_a_proposal_that_fails_names_the_branch_that_nobody_may_delete(dora):
    empty = 'query none() { delete Person where name = "Nobody" }'
    failure = dora.fails("propose_change", graph="drafts", query=empty, branch="left")
    assert failure["code"] == "proposal_empty"
    assert failure["details"] == {"branch_left": "left"}


def test_stored_queries_are_called_on_branches_that_are_allowed(dora):
    dora.call("branches_create", graph="drafts", name="stored")
    done = dora.call("drafts_add_person", name="Bob", age=2, _branch="stored")
    assert (done["actor_id"], done["affected_nodes"]) == ("act-dora", 1)
    assert dora.call("drafts_adults", min=2, _branch="stored")["rows"] == [
        {"name": "Bob", "age": 2}
    ]
    assert dora.fails("drafts_add_person", name="Bob")["code"] == "forbidden"


def test_graphs_and_their_resources_are_listed(dora):
    assert [g["graph_id"] for g in dora.call("graphs_list")["graphs"]] == ["drafts", "plain"]
    assert set(dora.resources()) == {
        "omnigraph://schema/drafts",
        "omnigraph://branches/drafts",
        "omnigraph://schema/plain",
        "omnigraph://branches/plain",
        "omnigraph://graphs",
    }
    assert json.loads(dora.read("omnigraph://branches/plain")) == {"branches": ["main"]}
    assert len(json.loads(dora.read("omnigraph://graphs"))["graphs"]) == 2


@pytest.mark.parametrize(
    ("arguments", "reported_"),
    [
        ([], "no graph given"),
        (["--store=x", "--graph=a=b"], "mutually exclusive"),
        (["--store=x", "--bind=127.0.0.1:1"], "need --http"),
        (["--store=x", "--http", "--as=me"], "--as and --http are mutually exclusive"),
        (["--store=x", "--policy=p.yaml"], "error[actor_missing]"),
        (["--store=./nothing-here"], "graphs cannot be served"),
        (["--store=x", "--http"], "error[server_unprotected]"),
    ],
)
def test_what_cannot_be_started_says_why(arguments, reported_):
    done = omnigraph("mcp", *arguments)
    assert (done.code != 0, done.out) == (True, "")
    assert reported_ in done.err
