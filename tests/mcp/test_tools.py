"""Every tool, over a pipe and over HTTP, with what it does to the graph."""

import json

import pytest

import omnigraph.graph as og
from tests.support.serving import ALL_PEOPLE, INSERT

TOOLS = {
    "health",
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
    "propose_change",
    "mutate",
    "change",
    "ingest",
    "branches_create",
    "branches_delete",
    "branches_merge",
    "merge",
    "schema_apply",
    "checks_run",
    "proposals_list",
    "proposal_get",
    "proposal_diff",
    "proposal_events",
    "proposal_create",
    "proposal_comment",
    "proposal_review",
    "proposal_check",
    "proposal_close",
    "proposal_merge",
}
REVIEWING = {
    "proposal_create",
    "proposal_comment",
    "proposal_review",
    "proposal_check",
    "proposal_close",
}
READING = (
    TOOLS
    - REVIEWING
    - {
        "proposal_merge",
        "propose_change",
        "mutate",
        "change",
        "ingest",
        "branches_create",
        "branches_delete",
        "branches_merge",
        "merge",
        "schema_apply",
    }
)
NAMED = (
    "query named($name: String) { match { $p: Person  $p.name = $name } return { $p.age as age } }"
)


@pytest.fixture
def agent(connected):
    return connected.agent


@pytest.fixture
def graph(connected):
    return og.open(connected.uri)


def add(agent, name, age, branch="main", tool="mutate"):
    return agent.call(tool, query=INSERT, params={"name": name, "age": age}, branch=branch)


def ages(agent, name, **where):
    return [
        row["age"]
        for row in agent.call("query", query=NAMED, params={"name": name}, **where)["rows"]
    ]


def test_tools_of_a_graph_are_listed_with_stored_queries(agent):
    tools = agent.tools()
    assert set(tools) == TOOLS | {"adults", "add_person", "kinds", "stored_health"}


def test_tools_say_whether_they_change_something(agent):
    tools = agent.tools()
    assert {n for n, t in tools.items() if t.annotations.read_only_hint} == READING | {
        "adults",
        "kinds",
        "stored_health",
    }
    destructive = {name for name, tool in tools.items() if tool.annotations.destructive_hint}
    assert destructive == set(tools) - READING - REVIEWING - {
        "adults",
        "kinds",
        "stored_health",
        "propose_change",
        "branches_create",
    }


def test_every_argument_of_a_tool_is_described(agent):
    tools = agent.tools()
    for name in TOOLS:
        schema = tools[name].input_schema
        assert schema["type"] == "object", name
        assert schema["additionalProperties"] is False, name
        assert all("description" in part for part in schema["properties"].values()), name


def test_parameters_of_a_stored_query_become_a_schema(agent):
    schema = agent.tools()["kinds"].input_schema
    properties = {n: s for n, s in schema["properties"].items() if not n.startswith("_")}
    assert properties == {
        "i": {"type": "integer"},
        "b": {"type": "string", "pattern": r"^-?\d+$"},
        "f": {"type": "number"},
        "d": {"type": "string", "format": "date"},
        "t": {"type": "string", "format": "date-time"},
        "ok": {"type": "boolean"},
        "names": {"type": "array", "items": {"type": "string"}},
    }
    assert schema["required"] == ["i", "b", "f", "d", "t", "ok"]
    assert {n for n in schema["properties"] if n.startswith("_")} == {
        "_branch",
        "_snapshot",
        "_skip",
        "_limit",
    }


def test_a_stored_query_is_described_by_its_annotations(agent):
    tools = agent.tools()
    assert tools["adults"].description == "People of an age\nAsk for an age"
    assert tools["add_person"].description == "Stored query that changes data."


def test_health_tells_the_version(agent):
    assert agent.call("health")["status"] == "ok"


def test_schema_is_shown_whole_or_by_lines(agent, graph):
    source = graph.schema.source
    assert agent.call("schema_get") == {"schema_source": source}
    lines = source.splitlines(keepends=True)
    cut = agent.call("schema_get", skip=1, limit=1)
    assert cut["schema_source"] == lines[1]
    assert cut["more"]["next_skip"] == 2


@pytest.mark.parametrize("tool", ["mutate", "change"])
def test_a_mutation_is_a_commit_that_can_be_looked_up(agent, tool):
    done = add(agent, f"Mia-{tool}", 41, tool=tool)
    assert (done["affected_nodes"], done["affected_edges"]) == (1, 0)
    commit = done["commit"]
    assert agent.call("commits_get", commit_id=commit["graph_commit_id"]) == commit
    assert commit in agent.call("commits_list")["commits"]
    assert ages(agent, f"Mia-{tool}") == [41]


def test_commits_are_listed_by_pages(agent):
    commits = [add(agent, f"Ivo-{age}", age)["commit"] for age in range(5)][::-1]
    first = agent.call("commits_list", limit=2)
    assert (first["commits"], first["more"]["next_skip"]) == (commits[:2], 2)
    assert agent.call("commits_list", limit=2, skip=2)["commits"] == commits[2:4]
    assert "more" not in agent.call("commits_list", limit=1000)


def test_a_mutation_is_refused_when_the_branch_has_moved(agent):
    old = add(agent, "Nils", 1)["commit"]["graph_commit_id"]
    add(agent, "Nils", 2)
    arguments = {"query": INSERT, "params": {"name": "Nils", "age": 3}}
    assert agent.fails("mutate", if_commit=old, **arguments)["code"] == "precondition_failed"
    assert ages(agent, "Nils") == [2]


@pytest.mark.parametrize("tool", ["query", "read"])
def test_a_query_reads_a_branch_or_an_older_state(agent, tool):
    old = add(agent, f"Olga-{tool}", 1)["commit"]["graph_commit_id"]
    add(agent, f"Olga-{tool}", 2)
    params = {"name": f"Olga-{tool}"}
    now = agent.call(tool, query=NAMED, params=params)
    then = agent.call(tool, query=NAMED, params=params, snapshot=old)
    assert (now["rows"], now["row_count"], now["columns"]) == ([{"age": 2}], 1, ["age"])
    assert then["rows"] == [{"age": 1}]
    assert then["target"] == {"branch": None, "snapshot": old}


def test_rows_beyond_the_limit_are_read_from_the_same_commit(agent):
    agent.call("branches_create", name="pages")
    for age in range(3):
        add(agent, f"Page-{age}", age, "pages")
    pages = ALL_PEOPLE.replace("$p: Person", '$p: Person  $p.name contains "Page-"')
    everything = agent.call("query", query=pages, branch="pages")
    assert "more" not in everything
    first = agent.call("query", query=pages, branch="pages", limit=2)
    assert first["rows"] == everything["rows"][:2]
    assert first["row_count"] == everything["row_count"]
    assert first["more"]["next_skip"] == 2
    assert f"skip=2 and snapshot='{first['graph_commit_id']}'" in first["more"]["hint"]
    add(agent, "Page-0a", 9, "pages")
    rest = agent.call("query", query=pages, skip=2, snapshot=first["graph_commit_id"])
    assert first["rows"] + rest["rows"] == everything["rows"]


def test_an_answer_of_many_bytes_is_cut(agent):
    agent.call("branches_create", name="bytes")
    lines = [
        json.dumps({"type": "Doc", "data": {"slug": f"d{n}", "title": "x" * 30_000}})
        for n in range(5)
    ]
    agent.call("ingest", data="\n".join(lines), branch="bytes")
    docs = "query q() { match { $d: Doc } return { $d.slug as slug, $d.title } order { slug } }"
    first = agent.call("query", query=docs, branch="bytes")
    assert [row["slug"] for row in first["rows"]] == ["d0", "d1", "d2"]
    assert (first["row_count"], first["more"]["next_skip"]) == (5, 3)


def test_one_row_that_is_too_large_is_a_failure_with_advice(agent):
    agent.call("branches_create", name="huge")
    line = json.dumps({"type": "Doc", "data": {"slug": "huge", "title": "x" * 250_000}})
    agent.call("ingest", data=line, branch="huge")
    docs = 'query q() { match { $d: Doc  $d.slug = "huge" } return { $d.title as title } }'
    failure = agent.fails("query", query=docs, branch="huge")
    assert failure["code"] == "answer_too_large"
    assert failure["next"] == "Ask for less: fewer columns, a `limit`, a filter."


def test_explain_shows_steps_and_with_analyze_what_happened(agent):
    add(agent, "Pia", 5)
    plain = agent.call("explain", query=NAMED, params={"name": "Pia"})
    assert plain["query_name"] == "named"
    assert all("rows" not in step for step in plain["steps"])
    reported = agent.call("explain", query=NAMED, params={"name": "Pia"}, analyze=True)
    assert reported["steps"][0]["rows"] == 1


def test_snapshot_counts_entities_of_a_branch(agent, graph):
    agent.call("branches_create", name="counted")
    add(agent, "Quinn", 1, "counted")
    found = agent.call("snapshot", branch="counted")
    counts = {entry["type_name"]: entry["entity_count"] for entry in found["datasets"]}
    wanted = graph.query(
        "query n() { match { $p: Person } return { count($p) as n } }", at="counted"
    )
    assert counts["Person"] == wanted.rows[0]["n"]
    assert found["graph_branch"] == "counted"


def test_ingest_loads_nodes_and_edges_into_a_new_branch(agent):
    lines = [
        {"type": "Person", "data": {"name": "Rosa", "age": 7}},
        {"type": "Person", "data": {"name": "Rudi", "age": 8}},
        {"edge": "Knows", "from": "Rosa", "to": "Rudi", "data": {}},
    ]
    data = "\n".join(map(json.dumps, lines))
    done = agent.call("ingest", data=data, branch="loaded", from__="main", mode="append")
    assert (done["branch_created"], done["total_entities"], done["mode"]) == (True, 3, "append")
    assert ages(agent, "Rudi", branch="loaded") == [8]
    assert ages(agent, "Rudi") == []


def test_branches_are_made_listed_merged_and_deleted(agent):
    made = agent.call("branches_create", name="life", from__="main")
    assert (made["name"], made["from"]) == ("life", "main")
    assert "life" in agent.call("branches_list")["branches"]
    add(agent, "Sven", 3, "life")
    merged = agent.call("branches_merge", source="life")
    assert (merged["source"], merged["target"], merged["outcome"]) == (
        "life",
        "main",
        "fast_forward",
    )
    assert ages(agent, "Sven") == [3]
    assert agent.call("branches_delete", name="life")["name"] == "life"
    assert "life" not in agent.call("branches_list")["branches"]


def test_history_and_blame_name_the_commits_of_an_entity(agent):
    commits = [add(agent, "Hedda", age)["commit"] for age in (1, 2, 3)]
    entity = {"type": "Person", "id": "Hedda"}
    whole = agent.call("history", **entity)
    assert [entry["commit"] for entry in whole["changes"]] == commits[::-1]
    assert whole["changes"][0]["after"]["properties"]["age"] == 3
    assert (whole["unknown_before"], "more" in whole) == ([], False)
    first = agent.call("history", **entity, limit=1)
    assert (first["changes"], first["more"]["next_skip"]) == (whole["changes"][:1], 1)
    rest = agent.call("history", **entity, limit=2, skip=1)
    assert (rest["changes"], "more" in rest) == (whole["changes"][1:], False)
    then = agent.call("blame", **entity, snapshot=commits[1]["graph_commit_id"])["values"]
    assert then["age"]["graph_commit_id"] == commits[1]["graph_commit_id"]
    assert then["name"]["graph_commit_id"] == commits[0]["graph_commit_id"]


def test_diff_tells_before_and_after_by_pages(agent):
    old = add(agent, "Tess", 1)["commit"]["graph_commit_id"]
    add(agent, "Tess", 2)
    add(agent, "Tilo", 3)
    found = agent.call("diff", from__=old, to="main", types=["Person"], limit=1)
    [change] = found["changes"]
    assert (change["id"], change["op"]) == ("Tess", "update")
    assert change["before"]["properties"]["age"] == 1
    assert change["after"]["properties"]["age"] == 2
    assert found["more"]["next_skip"] == 1
    [other] = agent.call("diff", from__=old, to="main", skip=1)["changes"]
    assert (other["id"], other["op"]) == ("Tilo", "insert")
    assert agent.call("diff", from__=old, to="main", ops=["delete"])["changes"] == []


def test_a_proposal_shows_its_change_and_merges_once_approved(agent):
    add(agent, "Uma", 1)
    found = agent.call(
        "propose_change",
        query='query older() { update Person set { age: 2 } where name = "Uma" }',
        message="a birthday",
    )
    assert found["branch"].startswith("proposal/")
    assert (found["base"], found["target"], found["affected_nodes"]) == ("main", "main", 1)
    assert found["commit"]["graph_branch"] == found["branch"]
    assert found["commit"]["message"] == "a birthday"
    [change] = found["changes"]
    images = [change[side]["properties"]["age"] for side in ("before", "after")]
    assert (change["id"], images) == ("Uma", [1, 2])
    assert found["merge_preview"]["outcome"] == "fast_forward"
    assert found["merge_preview"]["conflicts"] == []
    assert ages(agent, "Uma") == [1], "the target stays as it is"
    shown = agent.call("proposal_get", number=found["number"])
    assert (shown["title"], shown["source"], shown["target"]) == (
        "a birthday",
        found["branch"],
        "main",
    )
    merged = agent.call("proposal_merge", number=found["number"], delete_branch=True)
    assert (merged["outcome"], merged["branch_deleted"]) == ("fast_forward", True)
    assert ages(agent, "Uma") == [2]
    assert agent.call("proposal_get", number=found["number"])["state"] == "merged"


def test_a_proposal_for_a_target_that_moved_tells_its_conflicts(agent):
    add(agent, "Vera", 1)
    agent.call("branches_create", name="older")
    add(agent, "Vera", 2)
    found = agent.call(
        "propose_change",
        query=INSERT,
        params={"name": "Vera", "age": 3},
        branch="vera",
        from__="older",
        target="main",
    )
    assert (found["branch"], found["base"]) == ("vera", "older")
    preview = found["merge_preview"]
    assert preview["conflict_count"] == 1
    assert preview["conflicts"][0]["kind"] == "divergent_update"
    tried = agent.call("merge", source="vera", dry_run=True)
    assert tried["conflicts"] == preview["conflicts"]
    failure = agent.fails("merge", source="vera")
    assert (failure["code"], failure["merge_conflicts"][0]["entity_id"]) == (
        "merge_conflict",
        "Vera",
    )
    assert "resolve" in failure["next"]
    assert ages(agent, "Vera") == [2]
    agent.call("merge", source="vera", resolve="source", message="as proposed")
    assert ages(agent, "Vera") == [3]


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ('query x() { update Person set { age: 1 } where name = "Nobody" }', "proposal_empty"),
        ("query x() { insert Nothing { a: 1 } }", "T10"),
        ('query x() { insert Knows { from: "Nobody", to: "Nemo" } }', "validation_failed"),
    ],
)
def test_a_proposal_that_fails_leaves_no_branch(agent, query, code):
    before = agent.call("branches_list")
    failure = agent.fails("propose_change", query=query)
    assert failure["code"] == code
    assert failure["next"]
    assert agent.call("branches_list") == before


def test_a_schema_is_applied(agent, graph):
    source = graph.schema.source + "\nnode Extra { slug: String @key }\n"
    done = agent.call("schema_apply", schema_source=source)
    assert (done["applied"], done["step_count"]) == (True, 1)
    assert "node Extra" in agent.call("schema_get")["schema_source"]


def test_stored_queries_are_called_with_their_parameters(agent):
    agent.call("branches_create", name="stored")
    done = agent.call("add_person", name="Wim", age=99, _branch="stored")
    assert (done["branch"], done["affected_nodes"]) == ("stored", 1)
    found = agent.call("adults", min=99, _branch="stored")
    assert found["rows"] == [{"name": "Wim", "age": 99}]
    assert agent.call("adults", min=99)["rows"] == []
    cut = agent.call("adults", min=0, _branch="stored", _limit=1)
    assert f"_skip=1 and _snapshot='{cut['graph_commit_id']}'" in cut["more"]["hint"]
    rest = agent.call("adults", min=0, _skip=1, _snapshot=cut["graph_commit_id"])
    assert len(cut["rows"] + rest["rows"]) == cut["row_count"]


def test_a_stored_query_called_like_a_tool_has_another_name(agent, graph):
    [row] = agent.call("stored_health")["rows"]
    assert row == {"people": len(graph.query(ALL_PEOPLE))}


@pytest.mark.parametrize(
    ("tool", "arguments", "reported"),
    [
        ("query", {}, ["`query` is missing"]),
        (
            "query",
            {"query": "q", "nope": 1, "no": 2},
            ["`nope` is unknown", "`no` is unknown", "it takes"],
        ),
        ("query", {"query": 5}, ["Expected `str`, got `int`"]),
        ("query", {"query": "q", "limit": 0}, ["Expected `int` >= 1"]),
        ("query", {"query": "q", "limit": 5_000}, ["Expected `int` <= 1000"]),
        ("ingest", {"data": "", "mode": "replace"}, ["Invalid enum value 'replace'"]),
        ("adults", {}, ["`min` is missing"]),
        ("adults", {"min": 1, "max": 2}, ["`max` is unknown"]),
        ("adults", {"min": 1, "_limit": 0}, ["Expected `int` >= 1"]),
    ],
)
def test_bad_arguments_are_reported_all_at_once(agent, tool, arguments, reported):
    failure = agent.fails(tool, **arguments)
    assert (failure["code"], failure["category"]) == ("arguments_invalid", "invalid")
    assert all(text in failure["message"] for text in reported), failure["message"]
    assert "call again" in failure["next"]


@pytest.mark.parametrize(
    ("tool", "arguments", "code"),
    [
        ("adults", {"min": "many"}, "P002"),
        ("query", {"query": "match nothing"}, "Q000"),
        ("query", {"query": INSERT}, "query_not_a_read"),
        ("query", {"query": ALL_PEOPLE, "branch": "nowhere"}, "branch_not_found"),
        ("commits_get", {"commit_id": "nothing"}, "commit_not_found"),
        ("branches_create", {"name": "main"}, "branch_name_invalid"),
        ("branches_delete", {"name": "nowhere"}, "branch_not_found"),
        ("merge", {"source": "nowhere"}, "branch_not_found"),
        ("diff", {"from__": "main", "to": "nowhere"}, "target_not_found"),
        ("ingest", {"data": "{"}, "validation_failed"),
        ("schema_apply", {"schema_source": "node {"}, "S000"),
    ],
)
def test_a_tool_that_fails_says_why_and_what_next(agent, graph, tool, arguments, code):
    before = graph.commits.list("main")[0]
    failure = agent.fails(tool, **arguments)
    assert failure["code"] == code
    assert {"code", "category", "message", "next"} <= set(failure)
    assert graph.commits.list("main")[0] == before, "nothing happened"


LONG = "x" * 300_000


@pytest.mark.parametrize(
    ("tool", "arguments", "code"),
    [
        ("query", {"query": ALL_PEOPLE, "branch": LONG}, None),
        ("query", {"query": f"query q() {{ match {{ $p: {LONG} }} return {{ $p.x }} }}"}, None),
        ("commits_get", {"commit_id": LONG}, "commit_not_found"),
        ("branches_delete", {"name": LONG}, None),
        ("ingest", {"data": json.dumps({"type": LONG, "data": {}})}, "validation_failed"),
        (
            "ingest",
            {"data": "\n".join(f'{{"type": "N{n}{LONG[:9000]}"}}' for n in range(60))},
            None,
        ),
        ("schema_apply", {"schema_source": f"node {LONG} {{ a: Nothing }}"}, None),
        ("adults", {"min": LONG}, None),
        ("query", {LONG: 1}, None),
    ],
)
def test_an_error_that_echoes_a_long_argument_is_cut(agent, tool, arguments, code):
    failure = agent.fails(tool, **arguments)
    assert code is None or failure["code"] == code
    assert failure["code"] not in ("internal", "answer_too_large")
    assert len(json.dumps(failure)) < 100_000
    assert failure["next"]


def test_a_tool_that_is_not_there_is_unknown(agent):
    assert agent.unknown("nothing") == "unknown tool 'nothing'"


def test_resources_hold_schema_and_branches(agent, graph):
    assert agent.resources() == {
        "omnigraph://schema": "text/plain",
        "omnigraph://branches": "application/json",
    }
    assert agent.read("omnigraph://schema") == graph.schema.source
    assert json.loads(agent.read("omnigraph://branches")) == {"branches": graph.branches.list()}


def test_there_are_no_prompts(agent):
    assert agent.portal.call(agent.client.list_prompts).prompts == []


def test_the_server_says_how_to_work_with_it(agent):
    assert "schema_get" in agent.client.instructions
    assert agent.client.server_info.name == "omnigraph"
