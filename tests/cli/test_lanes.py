"""The same commands on a graph in a folder and on one behind a server: the same output.

Commands run in this process, for there are many; the server is a process of its own.
"""

import io
import json
import re
import socket
import sys

import pytest

import omnigraph as og
from omnigraph.cli.app import main
from omnigraph.service import cluster
from tests.support.clusters import write_cluster
from tests.support.deployments import ACTOR, SCHEMA, TOKEN
from tests.support.program import Ran
from tests.support.serving import serving

LINES = """{"type":"Person","data":{"name":"Ada","age":36}}
{"type":"Person","data":{"name":"Bob"}}
{"edge":"Knows","from":"Ada","to":"Bob"}
"""
STORED = """query people() @description("Everybody") {
  match { $p: Person } return { $p.name as name, $p.age as age } order { name }
}
query add($name: String) { insert Person { name: $name } }
"""
POLICY = f"""version: 1
groups: {{ all: [{ACTOR}] }}
rules:
  - id: data
    allow: {{ actors: {{ group: all }}, actions: [read, change, export] }}
  - id: branches
    allow:
      actors: {{ group: all }}
      actions: [branch_create, branch_delete, branch_merge, schema_apply]
  - id: rest
    allow: {{ actors: {{ group: all }}, actions: [invoke_query, admin] }}
"""
LISTERS = f"""version: 1
groups: {{ all: [{ACTOR}] }}
rules:
  - id: list
    allow: {{ actors: {{ group: all }}, actions: [graph_list] }}
"""
ULID = re.compile(r"\b[0-9A-HJKMNP-TV-Z]{26}\b")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    found = tmp_path_factory.mktemp("lanes")
    for name in ("direct", "served"):
        og.init(found / name, SCHEMA)
    (found / "data.ndjson").write_text(LINES)
    (found / "next.pg").write_text(SCHEMA.replace("age: I32?", "age: I32?\n  town: String?"))
    (found / "policy.yaml").write_text(POLICY)
    (found / "listers.yaml").write_text(LISTERS)
    (found / "photo").write_bytes(b"0123456789")
    (found / "queries").mkdir()
    (found / "queries" / "all.gq").write_text(STORED)
    return found


@pytest.fixture(scope="module")
def url(folder):
    with serving(
        f"--graph=g={folder / 'served'}",
        f"--queries={folder / 'queries'}",
        f"--policy={folder / 'policy.yaml'}",
        f"--server-policy={folder / 'listers.yaml'}",
        environment={"OMNIGRAPH_SERVER_BEARER_TOKENS_JSON": json.dumps({ACTOR: TOKEN})},
    ) as server:
        yield server.url


@pytest.fixture
def run(folder, url, monkeypatch, capfd, tmp_path_factory):
    """Return a function that runs the program as if it were started with some arguments."""
    home = folder / "home"
    if not home.exists():
        home.mkdir()
        facts = {
            "servers": {"lab": {"url": url}},
            "profiles": {
                "lab": {"server": "lab", "default_graph": "g"},
                "folder": {"store": str(folder / "direct")},
            },
            "aliases": {"all": {"server": "lab", "graph": "g", "query": "people"}},
        }
        (home / "config.yaml").write_text(json.dumps(facts))
    monkeypatch.setenv("OMNIGRAPH_HOME", str(home))
    monkeypatch.setenv("NO_COLOR", "1")

    def run(*arguments, token=TOKEN, stdin=""):
        if token is None:
            monkeypatch.delenv("OMNIGRAPH_BEARER_TOKEN", raising=False)
        else:
            monkeypatch.setenv("OMNIGRAPH_BEARER_TOKEN", token)
        monkeypatch.setattr(sys, "argv", ["omnigraph", *map(str, arguments)])
        monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
        capfd.readouterr()
        code = 0
        try:
            main()
        except SystemExit as end:
            code = end.code or 0
        out, err = capfd.readouterr()
        return Ran(code, out, err)

    return run


@pytest.fixture
def both(run, folder, url):
    """Return a function that runs a command on both lanes and gives what each printed, alike."""
    commits = [{}, {}]

    def alike(text, lane, address):
        text = text.replace(address, "GRAPH")
        for id_ in ULID.findall(text):
            commits[lane].setdefault(id_, f"COMMIT{len(commits[lane])}")
            text = text.replace(id_, commits[lane][id_])
        text = re.sub(r'"(created_at|authored_at)": \d+', r'"\1": TIME', text)
        text = re.sub(r"(created_at|authored_at): \d+", r"\1: TIME", text)
        text = re.sub(r"[0-9a-f]{16}-[0-9a-f]{16}", "DATASET", text)
        text = re.sub(r'"[0-9a-f]{32}"', "ETAG", text)
        text = re.sub(r'"cursor": "[^"]+"', '"cursor": PLACE', text)
        return re.sub(r'"id": "[\w-]{43}"', '"id": TYPE', text)

    def both(*arguments):
        address = str(folder / "direct")
        one = run(*arguments, "--store", address, "--as", ACTOR, "--quiet")
        other = run(*arguments, "--server", "lab", "--graph", "g", "--quiet", "--yes")
        reported = [
            (one.code, alike(one.out, 0, address), alike(one.err, 0, address)),
            (
                other.code,
                alike(other.out, 1, f"{url}/graphs/g"),
                alike(other.err, 1, f"{url}/graphs/g"),
            ),
        ]
        assert reported[0] == reported[1], arguments
        return reported[0]

    return both


def test_commands_print_the_same_on_both_lanes(both, folder, run, url):
    data, photo = folder / "data.ndjson", folder / "photo"
    code, out, _ = both("load", "--data", data, "--mode", "merge", "--message", "first")
    assert (code, out) == (
        0,
        "loaded GRAPH on branch main with merge: 3 entities across 1 node types and 1 edge types\n",
    )
    both("load", "--data", data, "--mode", "overwrite", "--json")
    both("snapshot")
    both("snapshot", "--json")
    query = "query q() { match { $p: Person } return { $p.name as name } order { name } }"
    for format_ in ("table", "json", "jsonl", "csv", "kv"):
        code, out, _ = both("query", "-e", query, "--format", format_)
        assert code == 0
        assert "Ada" in out
    both("query", "-e", query, "--branch", "nope")
    both("query", "-e", "query q() { match { $p: Persn } return { $p } }")
    both("query", "-e", "query q() { match { $p: Persn } return { $p } }", "--json")
    add = 'query add() { insert Person { name: "Cid" } }'
    code, out, _ = both("mutate", "-e", add, "--message", "one more")
    assert out == f"changed main via add: 1 nodes, 0 edges\nactor_id: {ACTOR}\n"
    both("mutate", "-e", add, "--json")
    code, _, _ = both("mutate", "-e", add, "--if-commit", "01ARZ3NDEKTSV4RRFFQ69G5FAV")
    assert code == 4
    both("mutate", "-e", 'query q() { insert Knows { from: "Ada", to: "Nobody" } }')
    both("branch", "create", "review/x", "--json")
    both("branch", "create", "review/x")
    both("branch", "list", "--json")
    both("mutate", "-e", 'query q() { delete Person where name = "Cid" }', "--branch", "review/x")
    both("diff", "main", "review/x")
    both("diff", "main", "review/x", "--json")
    both("merge", "review/x", "--dry-run", "--json")
    both("branch", "merge", "review/x", "--delete-branch", "--json")
    both("branch", "delete", "review/x")
    both("tag", "create", "v1")
    both("tag", "list", "--json")
    both("tag", "delete", "v1")
    both("commit", "list")
    both("commit", "list", "--json", "--limit", "2")
    both("commit", "list", "--actor", ACTOR)
    code, out, _ = both("commit", "log", "--json", "--actor", ACTOR)
    assert (code, json.loads(out.replace("TIME", "0"))["commits"][0]["names"]) == (0, ["main"])
    code, out, _ = both("history", "Person", "Cid", "--json")
    shown = json.loads(out.replace("TIME", "0"))["changes"]
    assert (code, [entry["op"] for entry in shown]) == (0, ["delete", "insert"])
    both("history", "Person", "Ada", "--limit", "1", "--json")
    both("history", "Persn", "Ada")
    code, out, _ = both("blame", "Person", "Ada", "--json")
    assert (code, json.loads(out.replace("TIME", "0"))["values"]["age"]["actor_id"]) == (0, ACTOR)
    both("blame", "Person", "Nobody", "--json")
    both("export")
    both("export", "--type", "Person")
    both("changes", "poll", "--start", "beginning", "--json")
    both("schema", "show")
    both("schema", "plan", "--schema", folder / "next.pg")
    both("schema", "plan", "--schema", folder / "next.pg", "--json")
    both("schema", "apply", "--schema", folder / "next.pg", "--json")
    both("schema", "apply", "--schema", folder / "next.pg")
    both("explain", "-e", query)
    both("blob", "put", "node", "Person", "Ada", "photo", photo)
    both("blob", "get", "node", "Person", "Ada", "photo", "--offset", "2", "--length", "3")
    both("blob", "stat", "node", "Person", "Ada", "photo")
    both("blob", "get", "node", "Person", "Bob", "photo")
    both("blob", "clear", "node", "Person", "Ada", "photo")
    head = json.loads(run("commit", "list", "--json", "--profile", "lab").out)["commits"][0]
    shown = run("commit", "show", head["graph_commit_id"], "--profile", "lab")
    assert shown.out.startswith(f"graph_commit_id: {head['graph_commit_id']}\n")


def test_destructive_commands_elsewhere_want_a_word(run, folder):
    served = ("--server", "lab", "--graph", "g")
    assert run("branch", "create", "b1", *served).code == 0
    refused = run("branch", "delete", "b1", *served)
    assert refused.code == 1
    assert "error[confirmation_required]: `branch delete` deletes data at" in refused.err
    refused = run("branch", "delete", "b1", *served, "--json")
    assert json.loads(refused.out)["error"]["code"] == "confirmation_required"
    data = folder / "data.ndjson"
    refused = run("load", "--data", data, "--mode", "overwrite", *served)
    assert "error[confirmation_required]" in refused.err
    done = run("--yes", "branch", "delete", "b1", *served)
    assert (done.code, done.out) == (0, "deleted branch b1\n")


def test_target_is_printed_unless_quiet(run, url, folder):
    direct = folder / "direct"
    done = run("branch", "create", "b3", "--store", direct)
    assert done.err == f"omnigraph branch create → {direct} (direct, local)\n"
    assert run("branch", "delete", "b3", "--store", direct, "--quiet").err == ""
    served = ("--server", url, "--graph", "g")
    done = run("branch", "create", "b2", *served)
    assert done.err == f"omnigraph branch create → {url}/graphs/g (served)\n"
    assert run("branch", "delete", "b2", *served, "--yes", "--quiet").err == ""


def test_stored_queries_are_run_by_name(run, folder):
    lab = ("--profile", "lab")
    assert run("mutate", "add", "--params", '{"name": "Stored"}', *lab).code == 0
    done = run("query", "people", *lab, "--format", "csv")
    assert "Stored,null" in done.out
    facts = json.loads(run("query", "people", *lab, "--json").out)
    assert (facts["query_name"], facts["columns"]) == ("people", ["name", "age"])
    assert facts["target"] == {"branch": "main", "snapshot": None}
    refused = run("query", "add", *lab)
    assert "error[stored_query_unexpected]" in refused.err
    refused = run("query", "people", "--store", folder / "direct")
    assert (refused.code, "a stored query needs --server" in refused.err) == (1, True)
    done = run("alias", "all", "--format", "jsonl")
    assert json.loads(done.out.splitlines()[0])["query_name"] == "people"
    assert run("--graph", "x", "alias", "all").code == 1


def test_graphs_of_a_server_are_listed(run, url, folder):
    done = run("graphs", "list", "--server", "lab")
    assert done.out == f"g\t{folder / 'served'}\n"
    assert json.loads(run("graphs", "list", "--server", url, "--json").out)["graphs"] == [
        {"graph_id": "g", "uri": str(folder / "served")}
    ]
    refused = run("graphs", "list", "--profile", "folder")
    assert (refused.code, "needs a server: pass --server" in refused.err) == (1, True)


def test_graph_of_a_server_has_to_be_named(run, url):
    refused = run("snapshot", "--server", url)
    assert refused.code == 1
    assert f"pass --graph ID; {url} has: g" in refused.err


def test_server_that_does_not_list_its_graphs_is_reported_with_the_reason(run):
    with socket.create_server(("127.0.0.1", 0)) as free:
        gone = f"http://127.0.0.1:{free.getsockname()[1]}"
    refused = run("snapshot", "--server", gone)
    assert refused.code == 1
    assert f"{gone} does not list its graphs: cannot reach {gone}" in refused.err


def test_login_keeps_a_token_and_logout_forgets_it(run, folder):
    read = ("snapshot", "--profile", "lab")
    refused = run(*read, token=None)
    assert (refused.code, "error[unauthorized]" in refused.err) == (1, True)
    done = run("login", "lab", token=None, stdin=f"{TOKEN}\n")
    path = folder / "home" / "credentials"
    assert done.out == f"stored credential for 'lab' in {path}\n"
    assert run(*read, token=None).code == 0
    assert TOKEN not in done.out + done.err
    done = run("logout", "lab", "--json", token=None)
    assert json.loads(done.out) == {"server": "lab", "credentials_path": str(path)}
    assert run(*read, token=None).code == 1
    reported = run("login", "other", "--token", "t", "--json", token=None)
    assert json.loads(reported.out)["declared"] is False
    assert "has no server 'other'" in reported.err
    run("logout", "other")


def test_profiles_are_shown(run, url, folder, monkeypatch):
    monkeypatch.setenv("OMNIGRAPH_PROFILE", "lab")
    assert run("profile", "list").out == (
        f"folder  store: {folder / 'direct'}\nlab (active)  server: lab · graph: g\n"
    )
    facts = json.loads(run("profile", "show", "--json").out)
    assert (facts["name"], facts["endpoint"], facts["default_graph"]) == ("lab", url, "g")
    assert json.loads(run("snapshot", "--json").out)["graph_branch"] == "main"


def test_commands_that_need_the_graph_itself_refuse_a_server(run):
    for command in (("optimize",), ("verify",), ("cleanup", "--keep", "1"), ("index", "status")):
        refused = run(*command, "--server", "lab", "--graph", "g")
        assert (refused.code, "is a direct command" in refused.err) == (1, True), command


def test_who_acts_on_a_served_graph_is_for_the_token_to_say(run):
    refused = run("branch", "create", "x", "--profile", "lab", "--as", "act-eve")
    assert (refused.code, "--as does not apply to a remote graph" in refused.err) == (1, True)


def test_shells_complete_commands(run):
    for shell in ("bash", "zsh", "fish"):
        assert "_OMNIGRAPH_COMPLETE" in run("completion", shell).out


def test_stored_queries_of_a_cluster_are_listed_and_checked(run, tmp_path):
    found = write_cluster(tmp_path / "config")
    cluster.import_state(found)
    cluster.apply(found)
    done = run("queries", "list", "--cluster", found)
    assert done.out == "mutation  add($name: String)\nread  names()\n"
    facts = json.loads(run("queries", "list", "--cluster", found, "--json").out)
    assert facts["queries"][0]["params"] == [{"name": "name", "type": "String", "nullable": False}]
    assert run("queries", "validate", "--cluster", found).out == "OK  2 stored queries type-check\n"
    assert run("queries", "list").code == 1
    done = run("optimize", "--cluster", found, "--graph", "ports")
    local = found / "graphs" / "ports.omni"
    assert (done.code, done.err) == (0, f"omnigraph optimize → {local} (direct, local)\n")
    cleaned = run("cleanup", "--cluster", found, "--graph", "ports", "--keep", "1", "--confirm")
    assert cleaned.code == 0
    explain = ("policy", "explain", "--cluster", found, "--actor", "act-ada", "--action", "read")
    assert run(*explain, "--graph", "people").out.startswith("decision: allow\n")
    assert run(*explain).code == 1
    managed = found / "graphs" / "people.omni"
    for command in (("init", managed), ("schema", "apply", managed)):
        refused = run(*command, "--schema", found / "people.pg")
        assert (refused.code, "error[graph_managed]" in refused.err) == (1, True), command
    og.open(found / "graphs" / "people.omni").schema.apply("node Other { a: String @key }")
    refused = run("queries", "validate", "--cluster", found, "--json")
    facts = json.loads(refused.out)
    assert (refused.code, facts["ok"], [b["query"] for b in facts["breakages"]]) == (
        1,
        False,
        ["add", "names"],
    )
