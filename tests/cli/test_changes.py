"""The commands that tell changes, driven from outside."""

import fcntl
import json
import re

import pytest

import omnigraph.graph as og
from tests.support.graphs import clean_at_once
from tests.support.program import HARBOUR, omnigraph, omnigraph_on_terminal

REFIT = "query refit($to: F32) { update Ship set { draught: $to } where imo = 9074729 }"
CLOSE = 'query close() { delete Port where code = "DOV" }'


@pytest.fixture(scope="module")
def uri(tmp_path_factory):
    """Return a graph with a tag `start`, and two commits after it; tests only read it."""
    graph = og.init(tmp_path_factory.mktemp("changes") / "graph", HARBOUR / "schema.pg")
    graph.load(HARBOUR / "data.ndjson")
    graph.tags.create("start")
    graph.as_actor("act-ada").mutate(REFIT, {"to": 7.5})
    graph.mutate(CLOSE)
    return graph.uri


def ran_json(*arguments):
    ran = omnigraph(*arguments, "--json")
    assert (ran.code, ran.err) == (0, "")
    return json.loads(ran.out)


def head(uri):
    return ran_json("commit", "list", uri, "--limit", "1")["commits"][0]


DIFF = """\
delete node Port DOV
  - city: "Dover"
  - code: "DOV"
update node Ship 9074729
  - draught: 6.25
  + draught: 7.5
delete edge Route ID: BGO -> DOV
  - nm: 610
delete edge Route ID: CUX -> DOV
  - nm: 330
0 inserts, 1 update, 3 deletes in 3 types
"""


def test_difference_is_shown_entity_by_entity(uri):
    ran = omnigraph("diff", uri, "start", "main")
    assert (ran.code, ran.err) == (0, "")
    assert re.sub("[0-9A-Z]{26}", "ID", ran.out) == DIFF
    assert omnigraph("diff", "--store", uri, "start", "main").out == ran.out


HISTORY = (
    "2 changes of Ship 9074729\n"
    "  ID  TIME  act-ada  mutation    update draught: 6.25 -> 7.5\n"
    '  ID  TIME           load        insert built: "1994-03-12", draught: 6.25, flags: ["NO"], '
    'imo: 9074729, kind: "ferry", label: "Aurora"\n'
)
BLAME = """\
Ship 9074729
  built    ID  TIME
  draught  ID  TIME  act-ada
  flags    ID  TIME
  imo      ID  TIME
  kind     ID  TIME
  label    ID  TIME
"""


def plain(text):
    return re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "TIME", re.sub("[0-9A-Z]{26}", "ID", text))


def test_history_of_an_entity_is_a_table(uri):
    ran = omnigraph("history", uri, "Ship", "9074729")
    assert (ran.code, ran.err, plain(ran.out)) == (0, "", HISTORY)
    assert omnigraph("history", "--store", uri, "Ship", "9074729").out == ran.out
    start = omnigraph("history", uri, "Ship", "9074729", "--at", "start")
    assert plain(start.out).splitlines()[0] == "1 change of Ship 9074729"
    assert (
        ran_json("history", uri, "Ship", "9074729", "--limit", "1")["changes"][0]["op"] == "update"
    )


def test_blame_of_an_entity_is_a_table(uri):
    ran = omnigraph("blame", uri, "Ship", "9074729")
    assert (ran.code, ran.err, plain(ran.out)) == (0, "", BLAME)
    values = ran_json("blame", uri, "node:Ship", "9074729")["values"]
    assert [values[name]["actor_id"] for name in ("imo", "draught")] == [None, "act-ada"]
    gone = omnigraph("blame", uri, "Port", "DOV")
    assert (gone.code, gone.err) == (1, "error[entity_not_found]: node Port 'DOV' does not exist\n")


def test_versions_that_were_cleaned_up_are_shown_as_unknown(tmp_path):
    graph = og.init(tmp_path / "g", "node Ship { name: String @key  tons: I64? }")
    for tons in (1, 2, 3):
        graph.load({"Ship": [{"name": "Aurora", "tons": tons}]})
    clean_at_once(graph, keep=2)
    oldest = graph.commits.list(limit=2)[1].id
    history = omnigraph("history", graph.uri, "Ship", "Aurora").out.splitlines()
    assert [line.strip() for line in history[2:]] == [f"unknown before {oldest}"]
    [name, _] = omnigraph("blame", graph.uri, "Ship", "Aurora").out.splitlines()[1:]
    assert name.split("  ")[1:] == ["name", f"unknown before {oldest}"]


def test_history_needs_a_graph_and_an_entity(uri):
    for words in (("history", uri, "Ship"), ("blame", "Ship", "9074729")):
        ran = omnigraph(*words)
        assert ran.code == 1
        line = f"omnigraph {words[0]} ./my-graph {words[1]} {words[2]}"
        assert f"no graph given: pass its address, e.g. `{line}`" in ran.err


def test_difference_has_colours_on_a_terminal_only(uri):
    shown = omnigraph_on_terminal("diff", uri, "start", "main")
    assert "\x1b[31m\x1b[1mdelete node Port DOV\x1b[0m" in shown
    assert "\x1b[32m  + draught: 7.5\x1b[0m" in shown
    assert "\x1b" not in omnigraph("diff", uri, "start", "main").out


def test_difference_of_equal_states_says_so(uri):
    assert omnigraph("diff", uri, "start", "start").out == "no changes\n"
    assert omnigraph("diff", uri, "start", "start", "--stat").out == "no changes\n"


def test_difference_is_counted(uri):
    assert omnigraph("diff", uri, "start", "main", "--stat").out == (
        "node Port: +0 ~0 -1\nnode Ship: +0 ~1 -0\nedge Route: +0 ~0 -2\n"
        "0 inserts, 1 update, 3 deletes in 3 types\n"
    )
    facts = ran_json("diff", uri, "start", "main", "--stat")
    assert facts["stats"]["types_affected"] == ["Port", "Route", "Ship"]
    assert "changes" not in facts


def test_difference_as_json_has_the_wire_shape(uri):
    facts = ran_json("diff", uri, "start", "main")
    assert set(facts) == {
        "from_graph_commit_id",
        "to_graph_commit_id",
        "from_graph_manifest_version",
        "to_graph_manifest_version",
        "graph_branch",
        "changes",
        "stats",
    }
    assert facts["to_graph_commit_id"] == head(uri)["graph_commit_id"]
    assert facts["stats"] == {
        "inserts": 0,
        "updates": 1,
        "deletes": 3,
        "types_affected": ["Port", "Route", "Ship"],
    }
    assert [(c["op"], c["type_name"]) for c in facts["changes"]] == [
        ("delete", "Port"),
        ("update", "Ship"),
        ("delete", "Route"),
        ("delete", "Route"),
    ]
    lines = omnigraph("diff", uri, "start", "main", "--jsonl").out.splitlines()
    assert [json.loads(line) for line in lines] == facts["changes"]
    assert ran_json("diff", uri, "start", "start")["changes"] == []


def test_difference_is_filtered(uri):
    ran = omnigraph("diff", uri, "start", "main", "--kind", "node", "--op", "delete")
    assert ran.out.splitlines()[0] == "delete node Port DOV"
    assert ran.out.splitlines()[-1] == "0 inserts, 0 updates, 1 delete in 1 type"
    assert ran_json("diff", uri, "start", "main", "--type", "Ship")["stats"]["updates"] == 1


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (("--type", "Shp"), "error[unknown_type]: unknown type 'Shp': did you mean `Ship`?\n"),
        (("--kind", "nod"), "error[unknown_kind]: unknown kind 'nod': did you mean `node`?\n"),
        (("--op", "add"), "error[unknown_op]: unknown op 'add': known names: "),
    ],
)
def test_unknown_words_are_refused(uri, option, message):
    for command in (("diff", uri, "start", "main"), ("changes", "poll", "--uri", uri)):
        ran = omnigraph(*command, *option)
        assert (ran.code, ran.out) == (1, "")
        assert ran.err.startswith(message)


def test_difference_wants_a_graph_and_two_states(uri):
    for places in ((uri,), ("--store", uri, "start")):
        ran = omnigraph("diff", *places)
        assert ran.code == 2
        assert "Usage: omnigraph diff [OPTIONS] [GRAPH] A B\n" in ran.err
        assert "Missing argument" in ran.err
    ran = omnigraph("diff", uri, "start")
    assert (ran.code, "no graph given" in ran.err) == (1, True)
    ran = omnigraph("diff", uri, "a", "b", "c")
    assert (ran.code, f"too many arguments: '{uri}' is the graph" in ran.err) == (2, True)


def test_poll_prints_blocks_and_the_next_cursor(uri):
    ran = omnigraph("changes", "poll", "--uri", uri, "--start", "beginning")
    assert ran.code == 0
    lines = ran.out.splitlines()
    assert sum(line.startswith("commit ") for line in lines) == 3
    assert "actor_id: act-ada" in lines
    assert "  + draught: 7.5" in lines
    assert lines[-1] == "caught_up: yes"
    cursor = lines[-2].removeprefix("cursor: ")
    again = omnigraph("changes", "poll", "--uri", uri, "--cursor", cursor)
    assert again.out == f"cursor: {cursor}\ncaught_up: yes\n"


def test_poll_reads_all_pages_and_prints_whole_blocks(uri):
    facts = ran_json("changes", "poll", "--uri", uri, "--start", "beginning")
    assert [len(block["changes"]) for block in facts["blocks"]] == [15, 1, 3]
    assert facts["caught_up"] is True
    found, cursor = [], None
    while True:
        where = ("--cursor", cursor) if cursor else ("--start", "beginning")
        part = ran_json("changes", "poll", "--uri", uri, "--limit", "2", *where)
        found += part["blocks"]
        cursor = part["cursor"]
        if part["caught_up"]:
            break
    assert found == facts["blocks"]


def test_bad_cursor_is_refused(uri):
    ran = omnigraph("changes", "poll", "--uri", uri, "--cursor", "nonsense")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("error[change_cursor_rejected]: change cursor rejected: ")


def test_changes_of_a_commit_have_two_commands(uri):
    commit_id = head(uri)["graph_commit_id"]
    ran = omnigraph("changes", "commit", "--uri", uri, commit_id)
    assert ran.out.startswith(f"commit {commit_id}\nparent_commit_id: ")
    assert ran.out.count("\ndelete edge Route ") == 2
    assert omnigraph("commit", "changes", "--uri", uri, commit_id, "--limit", "1").out == ran.out


def test_changes_of_a_commit_as_json_are_one_object_or_one_page(uri):
    command = ("changes", "commit", "--uri", uri, head(uri)["graph_commit_id"])
    whole = ran_json(*command, "--limit", "1")
    assert list(whole) == ["cause", "changes"]
    assert [c["type"]["name"] for c in whole["changes"]] == ["Port", "Route", "Route"]
    blocks = ran_json("changes", "poll", "--uri", uri, "--start", "beginning")["blocks"]
    assert blocks[-1] == whole


def test_baseline_is_a_file_that_load_reads_and_a_cursor(uri, tmp_path):
    out = tmp_path / "all.ndjson"
    facts = ran_json("changes", "baseline", "--uri", uri, "--out", out)
    assert set(facts) == {"snapshot_commit_id", "resume_cursor"}
    assert facts["snapshot_commit_id"] == head(uri)["graph_commit_id"]
    assert out.read_text() == omnigraph("export", uri).out
    assert sorted(p.name for p in tmp_path.iterdir()) == ["all.ndjson"]
    copy = tmp_path / "copy"
    assert omnigraph("init", copy, "--schema", HARBOUR / "schema.pg").code == 0
    assert omnigraph("load", copy, "--data", out, "--mode", "append").code == 0
    assert omnigraph("export", copy).out == out.read_text()
    cursor = facts["resume_cursor"]
    assert ran_json("changes", "poll", "--uri", uri, "--cursor", cursor)["blocks"] == []


def test_baseline_for_people_says_what_was_written(uri, tmp_path):
    out = tmp_path / "ships.ndjson"
    ran = omnigraph("changes", "baseline", "--uri", uri, "--out", out, "--type", "Ship")
    first, second, third = ran.out.splitlines()
    assert first == f"wrote 3 entities to {out}"
    assert second.startswith("snapshot_commit_id: ")
    assert third.startswith("resume_cursor: ")


def test_baseline_that_fails_leaves_the_file_as_it_was(uri, tmp_path):
    out = tmp_path / "all.ndjson"
    out.write_text("before")
    ran = omnigraph("changes", "baseline", "--uri", uri, "--out", out, "--type", "Shp")
    assert ran.code == 1
    ran = omnigraph("changes", "baseline", "--uri", uri, "--out", tmp_path / "no" / "where")
    assert ran.err.startswith("error[file_unwritable]: cannot write ")
    with (tmp_path / "all.ndjson.lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        ran = omnigraph("changes", "baseline", "--uri", uri, "--out", out)
        assert ran.err == f"error[file_in_use]: another process is writing {out}\n"
    assert out.read_text() == "before"
