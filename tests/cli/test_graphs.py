"""The commands that make, read and keep graphs, driven from outside."""

import json
import random
import re
from datetime import datetime, timedelta

import pytest

import omnigraph as og
from omnigraph.cli.options import read_duration
from omnigraph.commit.intent_log import IntentLog
from omnigraph.commit.staged_commit import StagedCommit, new_commit_id
from omnigraph.errors import InvalidInput
from tests.support.program import HARBOUR, omnigraph
from tests.support.serving import serving

SCHEMA = HARBOUR / "schema.pg"
COMMIT = r"[0-9A-HJKMNP-TV-Z]{26}"


@pytest.fixture
def uri(tmp_path):
    address = str(tmp_path / "graph")
    assert omnigraph("init", address, "--schema", SCHEMA).code == 0
    return address


def test_init_makes_a_folder_a_graph(tmp_path):
    address = tmp_path / "graph"
    ran = omnigraph("init", address, "--schema", SCHEMA)
    assert (ran.code, ran.out, ran.err) == (0, f"initialized {address}\n", "")
    assert sorted(path.name for path in address.iterdir()) == [
        "__manifest",
        "__reserve",
        "edges",
        "nodes",
    ]


def test_init_refuses_an_address_that_has_a_graph(uri):
    ran = omnigraph("init", uri, "--schema", SCHEMA)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err == f"error[already_initialized]: a graph already exists at {uri}\n"


def test_init_with_a_broken_schema_makes_nothing(tmp_path):
    (tmp_path / "bad.pg").write_text("node A { x: I32? @key }")
    ran = omnigraph("init", tmp_path / "graph", "--schema", tmp_path / "bad.pg")
    assert ran.code == 1
    assert ran.err.startswith("error[S203]")
    assert not (tmp_path / "graph").exists()


def test_snapshot_lists_every_dataset(uri):
    ran = omnigraph("snapshot", uri)
    assert ran.out.splitlines()[:5] == [
        "graph_branch: main",
        "graph_manifest_version: 1",
        "internal_schema_version: 2",
        "edge type 'About' published_dataset_version=1 native_dataset_branch=main entities=0",
        "edge type 'CallsAt' published_dataset_version=1 native_dataset_branch=main entities=0",
    ]


def test_snapshot_json_has_the_wire_shape(uri):
    facts = json.loads(omnigraph("snapshot", "--store", uri, "--json").out)
    assert (facts["graph_branch"], facts["graph_manifest_version"]) == ("main", 1)
    first = facts["datasets"][0]
    path = first.pop("dataset_path")
    assert re.fullmatch(r"edges/[0-9a-f]{16}-[0-9a-f]{16}", path)
    assert first == {
        "entity_kind": "edge",
        "type_name": "About",
        "published_dataset_version": 1,
        "native_dataset_branch": None,
        "entity_count": 0,
    }


def test_branches_are_created_listed_and_deleted(uri):
    made = omnigraph("branch", "create", "--uri", uri, "agent/42")
    assert (made.code, made.out) == (0, "created branch agent/42 from main\n")
    made = omnigraph("branch", "create", "--uri", uri, "--from", "agent/42", "b", "--json")
    assert json.loads(made.out) == {
        "uri": uri,
        "from": "agent/42",
        "name": "b",
        "actor_id": None,
    }
    assert omnigraph("branch", "list", "--uri", uri).out == "agent/42\nb\nmain\n"
    refused = omnigraph("branch", "delete", "--uri", uri, "agent/42", "--quiet")
    assert refused.code == 1
    assert refused.err.startswith("error[branch_has_descendants]: branch 'agent/42'")
    forced = omnigraph("branch", "delete", "--uri", uri, "agent/42", "--force")
    assert (forced.code, forced.out) == (0, "deleted branch agent/42\n")
    listed = json.loads(omnigraph("branch", "list", "--uri", uri, "--json").out)
    assert listed == {"branches": ["b", "main"]}


@pytest.mark.parametrize(
    ("arguments", "code", "fragment"),
    [
        (("branch", "create", "main"), 1, "error[branch_name_invalid]: 'main'"),
        (("branch", "create", "a b"), 1, "error[branch_name_invalid]: 'a b'"),
        (("branch", "create", "x", "--from", "nope"), 1, "error[target_not_found]: 'nope'"),
        (("branch", "delete", "nope"), 1, "error[branch_not_found]: branch 'nope'"),
        (("tag", "delete", "nope"), 1, "error[tag_not_found]: tag 'nope'"),
        (("commit", "show", "nope"), 1, "error[commit_not_found]: commit nope"),
    ],
)
def test_wrong_names_are_refused_by_name(uri, arguments, code, fragment):
    noun, verb, *rest = arguments
    ran = omnigraph(noun, verb, "--uri", uri, *rest, "--quiet")
    assert ran.code == code
    assert ran.err.startswith(fragment)
    assert "Traceback" not in ran.err


def test_tags_name_commits(uri):
    commit = json.loads(omnigraph("commit", "list", uri, "--json").out)["commits"][0]
    made = omnigraph("tag", "create", "--uri", uri, "v1", "--as", "act-ada")
    assert made.out == f"created tag v1 at {commit['graph_commit_id']}\n"
    listed = json.loads(omnigraph("tag", "list", "--uri", uri, "--json").out)
    assert listed["tags"] == [
        {"name": "v1", "graph_commit_id": commit["graph_commit_id"], "actor_id": "act-ada"}
    ]
    assert omnigraph("snapshot", uri, "--branch", "v1").code == 0
    assert omnigraph("tag", "delete", "--uri", uri, "v1").out == "deleted tag v1\n"


def test_commits_are_listed_and_shown(uri):
    listed = omnigraph("commit", "list", uri)
    assert re.fullmatch(rf"{COMMIT} graph_branch=main graph_manifest_version=1\n", listed.out)
    commit_id = listed.out.split()[0]
    shown = omnigraph("commit", "show", "--uri", uri, commit_id)
    assert shown.out.splitlines()[:3] == [
        f"graph_commit_id: {commit_id}",
        "graph_branch:",
        "graph_manifest_version: 1",
    ]
    assert "operation: init" in shown.out.splitlines()


def test_verify_of_a_whole_graph_says_ok(uri):
    ran = omnigraph("verify", uri)
    assert (ran.code, ran.out) == (
        0,
        "ok: 1 branch, 1 commit, 6 dataset versions checked\n",
    )


def test_verify_of_a_damaged_graph_exits_with_one(uri, tmp_path):
    nodes = tmp_path / "graph" / "nodes"
    min(nodes.glob("*/_versions/*.manifest")).unlink()
    ran = omnigraph("verify", uri, "--json")
    assert ran.code == 1
    assert json.loads(ran.out)["ok"] is False


def test_audit_of_recovery_is_printed_and_served(uri):
    assert omnigraph("recover", uri, "--audit").out == "no recoveries\n"
    graph = og.open(uri)
    intents = IntentLog(graph._manifest.objects)
    staged = StagedCommit(id=new_commit_id(), operation="load", actor="act-ada")
    intent = intents.begin("main", None, staged)
    [done] = graph.recover(stale_after=timedelta(0))
    assert str(done.kind) == "RolledBack"
    lines = omnigraph("recover", uri, "--audit").out.splitlines()
    assert [line.split(" ", 1)[1] for line in lines] == [
        f"RolledBack load on main commit={staged.id} actor=act-ada"
    ]
    [row] = json.loads(omnigraph("recover", uri, "--audit", "--json").out)["recoveries"]
    assert (row["operation_id"], row["per_table_outcomes"]) == (intent.id, [])
    with (
        serving(f"--graph=g={uri}", "--unauthenticated") as server,
        og.connect(server.url, graph="g") as served,
    ):
        assert served.recoveries() == graph.recoveries()
    ran = omnigraph("recover", uri, "--audit", "--stale-after", "1s")
    assert (ran.code, "--stale-after does not apply to --audit" in ran.err) == (2, True)


def test_recover_with_nothing_in_flight_says_so(uri):
    assert omnigraph("recover", uri).out == "nothing to recover\n"


def test_cleanup_reports_first_and_needs_a_policy(uri):
    refused = omnigraph("cleanup", uri, "--quiet")
    assert refused.code == 1
    assert refused.err.startswith("error[cleanup_policy_missing]")
    reported = omnigraph("cleanup", uri, "--keep", "1", "--quiet")
    assert reported.code == 0
    assert re.search(r"^would remove 0 bytes, [0-9,]+ are needed$", reported.out, re.M)
    assert reported.err == "dry run: nothing was removed; add --confirm to remove it\n"
    done = omnigraph("cleanup", uri, "--older-than", "1d", "--confirm", "--json")
    facts = json.loads(done.out)
    assert (facts["uri"], facts["older_than_secs"], facts["dry_run"]) == (uri, 86400, False)


def test_cleanup_reports_what_is_too_recent_to_be_removed(uri):
    load = ("load", uri, "--data", HARBOUR / "data.ndjson", "--mode", "overwrite", "--yes")
    for _ in range(2):
        assert omnigraph(*load).code == 0
    done = omnigraph("cleanup", uri, "--keep", "1", "--confirm", "--yes", "--quiet")
    assert re.search(
        r"^[0-9,]+ files \([0-9,]+ bytes\) are younger than 60 minutes", done.out, re.M
    )
    facts = json.loads(omnigraph("cleanup", uri, "--keep", "1", "--json", "--quiet").out)
    assert facts["recent_files"] > 0
    line = f"{facts['recent_files']:,} files ({facts['recent_bytes']:,} bytes) are younger than 60"
    assert f"{line} minutes and stay; they can be removed from " in done.out
    at = datetime.fromisoformat(facts["recent_removable_at"])
    assert f"removed from {at:%Y-%m-%d %H:%M:%S} UTC on" in done.out


def test_damage_of_a_data_file_is_an_error_of_queries_and_reported_by_verify_deep(tmp_path):
    uri, schema, lines = tmp_path / "graph", tmp_path / "schema.pg", tmp_path / "lines.ndjson"
    schema.write_text("node Note { slug: String @key  text: String? }")
    rows = [{"slug": f"n{n}", "text": f"zzzz{random.random()}" * 20} for n in range(6_000)]
    lines.write_text("\n".join(json.dumps({"type": "Note", "data": row}) for row in rows))
    assert omnigraph("init", uri, "--schema", schema).code == 0
    assert omnigraph("load", uri, "--data", lines, "--mode", "merge").code == 0
    [file] = [f for f in uri.glob("nodes/*/data/*") if b"zzzz" in f.read_bytes()]
    assert file.stat().st_size > 1024 * 1024, "smaller ones are compared by the plain one, too"
    file.write_bytes(file.read_bytes().replace(b"zzzz", b"zzaz", 1))
    text = "query q() { match { $n: Note } return { $n.text as t } }"
    served = omnigraph("query", "--store", uri, "-e", text, "--json", "--quiet")
    assert "zzaz" not in served.out, "the damage is not served"
    assert (served.code, json.loads(served.out)["error"]["code"]) == (1, "graph_corrupt")
    # Releases before 0.2 have no --deep: their verify is all there is.
    is_there = "--deep" in omnigraph("verify", "--help").out
    found = omnigraph("verify", uri, *(["--deep"] if is_there else []), "--quiet")
    assert (found.code, f"data/{file.name} does not match its checksum" in found.out) == (1, True)


def test_optimize_json_has_the_wire_shape(uri):
    load = ("load", uri, "--data", HARBOUR / "data.ndjson", "--mode", "merge")
    assert omnigraph(*load).code == 0
    facts = json.loads(omnigraph("optimize", uri, "--json").out)
    assert facts["uri"] == uri
    found = {dataset["type_key"]: dataset for dataset in facts["datasets"]}
    ports = found["node:Port"]
    assert ports.pop("indexes_built")[0] == "id:btree"
    assert ports == {
        "type_key": "node:Port",
        "fragments_removed": 0,
        "fragments_added": 0,
        "committed": True,
        "skipped": None,
        "published_dataset_version": 3,
        "lance_head_version": 2,
        "pending_indexes": [],
    }
    repaired = json.loads(omnigraph("repair", uri, "--json").out)
    for dataset in repaired["datasets"]:
        same = found[dataset["type_key"]]["lance_head_version"]
        assert (dataset["lance_head_version"], dataset["action"]) == (same, "no_op")


def test_an_address_without_a_graph_is_named(tmp_path):
    ran = omnigraph("snapshot", tmp_path / "nothing")
    assert (ran.code, ran.err) == (
        1,
        f"error[graph_not_found]: no graph at {tmp_path / 'nothing'}\n",
    )
    assert not (tmp_path / "nothing").exists()


@pytest.mark.parametrize("command", [("snapshot",), ("commit", "list"), ("verify",)])
def test_a_command_without_an_address_is_refused(command):
    ran = omnigraph(*command)
    assert ran.code == 1
    assert "no graph given" in ran.err


def test_two_addresses_are_refused(uri):
    ran = omnigraph("snapshot", uri, "--store", uri)
    assert ran.code == 1
    assert "mutually exclusive" in ran.err


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("15m", 900), ("12h", 43200), ("2d", 172800), ("1w", 604800), ("5", 5)],
)
def test_durations_are_read(text, seconds):
    duration = read_duration(text)
    assert duration is not None
    assert duration.total_seconds() == seconds


@pytest.mark.parametrize("text", ["", "h", "-1d", "1.5h", "9" * 20 + "d"])
def test_other_durations_are_refused(text):
    with pytest.raises(InvalidInput) as caught:
        read_duration(text)
    assert caught.value.code == "duration_invalid"
