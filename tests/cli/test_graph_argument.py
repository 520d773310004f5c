"""One way to name a graph: every command takes it as an argument, an option or from outside."""

import os

import click
import pytest

import omnigraph as og
from scripts.docs_gen import command_tree
from tests.support.program import HARBOUR, omnigraph, omnigraph_said

SCHEMA = HARBOUR / "schema.pg"
QUERIES = HARBOUR / "queries.gq"
TEXT = ("-e", "match { $p: Port } return { $p.code }")
BLOB = ("node", "Ship", "1", "plan")
PIPELINE = """\
version: 1
name: ports
sources: { ports: { csv: ports.csv } }
nodes: { Port: { source: ports, properties: { code: code, city: city } } }
"""
ALGORITHM = ("--edges", "Route")

# Each command on a graph, with the arguments it needs besides the graph.
OWN = {
    "load": ("--data", HARBOUR / "data.ndjson", "--mode", "merge"),
    "ingest": ("--data", HARBOUR / "data.ndjson"),
    "query": TEXT,
    "mutate": ("-e", 'insert Port { code: "X", city: "Y" }'),
    "explain": TEXT,
    "shell": (),
    "export": (),
    "blob get": BLOB,
    "blob stat": BLOB,
    "blob put": (*BLOB, SCHEMA),
    "blob clear": BLOB,
    "branch merge": ("side",),
    "branch create": ("side",),
    "branch list": (),
    "branch delete": ("side",),
    "merge": ("side",),
    "revert": ("01KX",),
    "cherry-pick": ("01KX",),
    "tag create": ("v1",),
    "tag list": (),
    "tag delete": ("v1",),
    "commit changes": ("01KX",),
    "commit list": (),
    "commit log": (),
    "commit show": ("01KX",),
    "diff": ("main", "side"),
    "history": ("Ship", "1"),
    "blame": ("Ship", "1"),
    "changes poll": (),
    "changes commit": ("01KX",),
    "changes baseline": ("--out", "baseline.ndjson"),
    "snapshot": (),
    "proposal create": ("side", "--title", "x"),
    "proposal list": (),
    "proposal show": ("1",),
    "proposal diff": ("1",),
    "proposal comment": ("1", "--body", "x"),
    "proposal review": ("1", "approve"),
    "proposal check": ("1",),
    "proposal merge": ("1",),
    "proposal close": ("1",),
    "proposal reopen": ("1",),
    "proposal edit": ("1", "--title", "x"),
    "proposal events": (),
    "check": (),
    "protection set": ("--branch", "main", "--approvals", "1"),
    "protection show": (),
    "protection clear": (),
    "schema plan": ("--schema", SCHEMA),
    "schema apply": ("--schema", SCHEMA),
    "schema diff": ("main", "side"),
    "schema show": (),
    "schema get": (),
    "lint": ("--query", QUERIES),
    "index status": (),
    "index build": (),
    "embed": ("Ship",),
    "pipeline validate": ("pipe.yaml",),
    "pipeline ls": ("pipe.yaml",),
    "pipeline plan": ("pipe.yaml",),
    "pipeline run": ("pipe.yaml",),
    "pipeline resume": ("01KX",),
    "pipeline status": (),
    "pipeline abort": ("01KX",),
    "pipeline report": (),
    "analyze pagerank": ALGORITHM,
    "analyze components": ALGORITHM,
    "analyze labels": ALGORITHM,
    "analyze degrees": ALGORITHM,
    "analyze shortest-paths": (*ALGORITHM, "--source", "AAR"),
    "analyze kcore": ALGORITHM,
    "analyze triangles": ALGORITHM,
    "status": (),
    "maintain": (),
    "retention show": (),
    "retention set": ("--keep", "5"),
    "retention unset": (),
    "optimize": (),
    "cleanup": ("--keep", "5"),
    "verify": (),
    "repair": (),
    "recover": (),
}
# Commands that need a server; they have the same arguments, with another error for a folder.
SERVED = {"running list", "running cancel"}
CREATE_OR_SERVE = {"init", "import", "studio", "mcp", "serve"}
WITHOUT_A_GRAPH = {
    *(
        "fmt",
        "quickstart",
        "graphs list",
        "alias",
        "login",
        "logout",
        "profile list",
        "profile show",
    ),
    *("completion", "version", "pipeline init", "pipeline warmup", "pipeline list"),
    *("queries list", "queries validate", "policy validate", "policy test", "policy explain"),
    *(f"cluster {name}" for name in ("validate", "plan", "apply", "approve", "status")),
    *(f"cluster {name}" for name in ("refresh", "import", "force-unlock")),
}


def test_every_command_is_in_the_table():
    leaves = {words for words, one in command_tree().items() if not isinstance(one, click.Group)}
    assert leaves == {*OWN, *SERVED, *CREATE_OR_SERVE, *WITHOUT_A_GRAPH}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("named")
    (folder / "pipe.yaml").write_text(PIPELINE)
    home = folder / "home"
    home.mkdir()
    (home / "config.yaml").write_text("profiles: { here: { store: ./absent } }\n")
    return folder


@pytest.mark.parametrize("command", OWN)
def test_a_graph_is_named_in_the_same_ways(command, folder):
    """A graph that does not exist shows which address a command resolved."""
    words = [*command.split(" ")]
    own = [str(word) for word in OWN[command]]
    home = {**os.environ, "OMNIGRAPH_HOME": str(folder / "home")}
    forms = {
        "argument": ([*words, "./absent", *own], home),
        "--uri": ([*words, "--uri", "./absent", *own], home),
        "variable": ([*words, *own], {**home, "OMNIGRAPH_STORE": "./absent"}),
    }
    if command in ("tag create", "diff", "lint", "query", "pipeline status"):
        forms |= {
            "--store": ([*words, *own, "--store", "./absent"], home),
            "global": (["--store", "./absent", *words, *own], home),
            "profile": ([*words, *own, "--profile", "here"], home),
            "profile variable": ([*words, *own], {**home, "OMNIGRAPH_PROFILE": "here"}),
        }
    reported = {form: omnigraph_said(line, env, cwd=folder) for form, (line, env) in forms.items()}
    assert "error[graph_not_found]: no graph at" in reported["argument"]
    assert str(folder / "absent") in reported["argument"]
    assert set(reported.values()) == {reported["argument"]}, reported


@pytest.mark.parametrize("form", ["argument", "--store", "--uri", "variable"])
def test_a_graph_is_created_and_imported_where_any_form_says(form, tmp_path):
    env = {**os.environ, "OMNIGRAPH_HOME": str(tmp_path)}

    def run(words, address):
        if form == "variable":
            return omnigraph_said(words, {**env, "OMNIGRAPH_STORE": address}, cwd=tmp_path)
        return omnigraph_said(
            [*words, address] if form == "argument" else [*words, form, address], env, cwd=tmp_path
        )

    assert run(["init", "--schema", str(SCHEMA)], "./made") == f"initialized {tmp_path}/made\n"
    archive = str(tmp_path / "a.gz")
    assert omnigraph("export", tmp_path / "made", "--archive", archive).code == 0
    assert "imported" in run(["import", archive], "./copy")
    assert og.open(tmp_path / "copy").branches.list() == ["main"]


@pytest.mark.parametrize("command", ["studio", "mcp", "serve", "init --schema x"])
def test_a_server_is_no_address_in_storage(command):
    ran = omnigraph(*command.split(), "--store", "http://127.0.0.1:1/graphs/g")
    assert ran.code != 0
    assert "http://127.0.0.1:1/graphs/g" in ran.err


@pytest.mark.parametrize(
    ("words", "reported"),
    [
        (["branch", "create", "x"], "e.g. `omnigraph branch create ./my-graph x`"),
        (["--quiet", "branch", "list"], "e.g. `omnigraph --quiet branch list ./my-graph`"),
        (["snapshot", "http://x"], "use `omnigraph snapshot --server http://x`"),
        (
            ["branch", "list", "--uri", "http://x/graphs/g"],
            "use `omnigraph branch list --server http://x/graphs/g`",
        ),
        (["branch", "list", "--store=http://x"], "use `omnigraph branch list --server=http://x`"),
        (["export", "./g", "--store", "./h"], "use one, e.g. `omnigraph export ./g`"),
        (["export", "./g", "--uri=./h"], "use one, e.g. `omnigraph export ./g`"),
        (
            ["export", "--store", "./h", "--server", "x"],
            "use one, e.g. `omnigraph export --store ./h`",
        ),
        (
            ["optimize", "--server", "http://x", "--graph", "g"],
            "e.g. `omnigraph optimize ./my-graph`",
        ),
        (["snapshot", "./g", "--graph", "g"], "use `omnigraph snapshot ./g`"),
        (
            ["snapshot", "--cluster", "c", "--graph", "g"],
            "pass the address of the graph, e.g. `omnigraph snapshot ./my-graph`",
        ),
        (["embed", "Ship"], "e.g. `omnigraph embed ./my-graph Ship`"),
    ],
)
def test_an_error_shows_the_corrected_line(words, reported):
    ran = omnigraph(*words)
    assert ran.code == 1
    assert reported in " ".join(ran.err.split())


def test_a_word_too_many_is_reported_with_the_graph():
    ran = omnigraph("branch", "create", "./g", "a", "b")
    assert (ran.code, ran.out) == (2, "")
    assert "too many arguments: './g' is the graph" in ran.err


def test_options_precede_variables_and_a_store_precedes_a_profile(tmp_path):
    (tmp_path / "config.yaml").write_text(
        "profiles: { here: { store: ./of-profile } }\ndefaults: { store: ./of-defaults }\n"
    )
    env = {**os.environ, "OMNIGRAPH_HOME": str(tmp_path)}
    both = {**env, "OMNIGRAPH_STORE": "./of-variable", "OMNIGRAPH_PROFILE": "here"}
    for words, variables, expected in (
        (["snapshot", "./given"], both, "given"),
        (["snapshot", "--profile", "here"], both, "of-profile"),
        (["snapshot"], both, "of-variable"),
        (["snapshot"], {**env, "OMNIGRAPH_PROFILE": "here"}, "of-profile"),
        (["snapshot"], env, "of-defaults"),
    ):
        reported = omnigraph_said(words, variables, cwd=tmp_path)
        assert reported == f"error[graph_not_found]: no graph at {tmp_path / expected}\n"
    address = {**env, "OMNIGRAPH_STORE": "https://graphs.example.com"}
    assert "OMNIGRAPH_STORE is a server address" in omnigraph_said(["snapshot"], address)
