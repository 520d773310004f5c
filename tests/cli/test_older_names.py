"""Commands under names they once had still work, with a warning; options nobody reads do not."""

import json

import pytest

import omnigraph as og
from tests.support.program import HARBOUR, omnigraph
from tests.support.serving import ALL_PEOPLE, INSERT, SCHEMA

GIVEN = '{"type":"Person","data":{"name":"Ada"},"extra":1} {"type":"Person","data":{"name":"Bo"}}'


@pytest.fixture(scope="module")
def uri(tmp_path_factory):
    return og.init(tmp_path_factory.mktemp("older") / "g", SCHEMA).uri


@pytest.mark.parametrize(
    ("older", "newer", "arguments"),
    [
        (["read"], ["query"], ["-e", ALL_PEOPLE, "--json"]),
        (["change"], ["mutate"], ["-e", INSERT, "--params", '{"name": "Zoe"}']),
        (["export", "--jsonl"], ["export"], []),
    ],
)
def test_older_name_does_the_same_and_warns(uri, older, newer, arguments):
    now, then = (omnigraph(*words, "--store", uri, *arguments) for words in (newer, older))
    assert (then.code, then.out) == (now.code, now.out) == (0, now.out)
    reported = f"warning: `{' '.join(older)}` is deprecated; use `{' '.join(newer)}`\n"
    assert (now.err, then.err) == ("", reported)


@pytest.mark.parametrize("older", ["check", "query lint", "query check"])
def test_queries_were_checked_under_other_names(older):
    arguments = ["--schema", HARBOUR / "schema.pg", "--query", HARBOUR / "queries.gq", "--json"]
    now, then = omnigraph("lint", *arguments), omnigraph(*older.split(), *arguments)
    assert (then.code, then.out) == (now.code, now.out)
    assert then.err == f"warning: `{older}` is deprecated; use `lint`\n"


def test_schema_is_got_as_it_is_shown(uri):
    assert omnigraph("schema", "get", uri).out == omnigraph("schema", "show", uri).out == SCHEMA


def test_ingest_takes_forgiving_records_and_makes_the_branch(uri, tmp_path):
    file = tmp_path / "records.json"
    file.write_text(GIVEN)
    ran = omnigraph("ingest", uri, "--data", file, "--branch", "side", "--quiet")
    assert (ran.code, ran.out) == (
        0,
        f"ingested 2 entities from {file} into branch side from main with merge "
        "(branch created)\n  Person: 2\n",
    )
    assert ran.err == "warning: `ingest` is deprecated; use `load`\n"
    again = omnigraph("ingest", uri, "--data", file, "--branch", "side", "--json")
    reported = json.loads(again.out)
    assert {
        name: reported[name] for name in ("uri", "branch", "base_branch", "branch_created")
    } == {
        "uri": uri,
        "branch": "side",
        "base_branch": "main",
        "branch_created": False,
    }
    assert (reported["nodes"], reported["mode"]) == (
        [{"name": "Person", "entities_loaded": 2}],
        "merge",
    )


def test_help_does_not_speak_of_older_options():
    assert "--jsonl" not in omnigraph("export", "--help").out


@pytest.mark.parametrize(
    ("words", "reported"),
    [
        (["--server", "x", "init", "g"], "`init` is a direct command: --server does not apply"),
        (
            ["--store", "g", "--as", "me", "login", "lab"],
            "`login` is a local command: --store, --as do not apply",
        ),
        (["--graph", "g", "version"], "`version` is a local command: --graph does not apply"),
        (
            ["--profile", "p", "cluster", "plan"],
            "`cluster` is a control command: --profile does not apply",
        ),
        (
            ["queries", "list", "--server", "x"],
            "`queries list` is a control command: --server does not apply",
        ),
        (
            ["policy", "validate", "--server", "x"],
            "`policy validate` is a control command: --server does not apply",
        ),
        (
            ["version", "--graph", "g", "--as", "me"],
            "`version` is a local command: --graph, --as do not apply",
        ),
        (
            ["cluster", "plan", "--as", "me", "--profile", "p"],
            "`cluster plan` is a control command: --profile, --as do not apply",
        ),
        (
            ["optimize", "--server", "http://x", "--graph", "g"],
            "`optimize` is a direct command: --server does not apply",
        ),
        (
            ["graphs", "list", "--server", "http://x", "--graph", "g"],
            "`graphs list` is a served command: --graph does not apply",
        ),
    ],
)
def test_options_that_mean_nothing_to_a_command_are_refused(words, reported):
    ran = omnigraph(*words)
    assert ran.code == 1
    assert reported in " ".join(ran.err.split())


def test_every_command_takes_flags_that_all_take_before_it_or_behind_it(tmp_path):
    for words in (["version", "--quiet", "--yes"], ["--yes", "--quiet", "version"]):
        assert omnigraph(*words).code == 0
    schema = HARBOUR / "schema.pg"
    made = omnigraph("init", tmp_path / "g", "--schema", schema, "--as", "me", "--quiet")
    assert (made.code, made.err) == (0, "")
    assert "--yes" not in omnigraph("version", "--help").out


def test_repair_is_forced_only_when_it_is_done(uri):
    assert omnigraph("repair", uri, "--force").code == 2
    reported = json.loads(omnigraph("repair", uri, "--confirm", "--force", "--json").out)
    assert (reported["confirm"], reported["force"]) == (True, True)
    assert reported["graph_manifest_version"] == og.open(uri).snapshot().manifest_version


def test_init_never_replaces_a_graph(uri):
    before = og.open(uri).snapshot().commit_id
    ran = omnigraph("init", uri, "--schema", HARBOUR / "schema.pg", "--force")
    assert ran.code == 1
    assert og.open(uri).snapshot().commit_id == before
