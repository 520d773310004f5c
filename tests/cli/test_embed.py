"""`omnigraph embed`, of a graph and of files, driven from outside."""

import json
import os
import signal
import subprocess
import sys

import pytest

from tests.support.embedding import mock_vector
from tests.support.embedding_service import Reply, embedding_service, openai_answer
from tests.support.program import omnigraph

SCHEMA = """
node Doc { k: String @key  text: String?  v: Vector(3)? @embed(text)  w: Vector(2)? @embed(k) }
"""
DATA = [{"type": "Doc", "data": {"k": k, "text": text}} for k, text in (("a", "ship"), ("b", " "))]
SPEC = {"dimension": 3, "types": {"Doc": {"target": "v", "fields": ["text"]}}}


@pytest.fixture(autouse=True)
def _mock(monkeypatch):
    monkeypatch.setenv("OMNIGRAPH_EMBED_PROVIDER", "mock")
    monkeypatch.setenv("OMNIGRAPH_EMBED_MODEL", "m1")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "s.pg").write_text(SCHEMA, encoding="utf-8")
    lines = "".join(json.dumps(record) + "\n" for record in DATA)
    (tmp_path / "in.jsonl").write_text(lines, encoding="utf-8")
    (tmp_path / "spec.json").write_text(json.dumps(SPEC), encoding="utf-8")
    return tmp_path


@pytest.fixture
def uri(folder):
    uri = str(folder / "g")
    assert omnigraph("init", uri, "--schema", folder / "s.pg").code == 0
    assert omnigraph("load", uri, "--data", folder / "in.jsonl", "--mode", "merge").code == 0
    return uri


def entities(uri, *more):
    lines = omnigraph("export", uri, *more).out.splitlines()
    return {data["k"]: data for data in (json.loads(line)["data"] for line in lines)}


# --- a graph -----------------------------------------------------------------------------------


def test_type_of_a_graph_is_embedded(uri):
    ran = omnigraph("embed", uri, "Doc", "--as", "ann", "--message", "fill")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == (
        f"embedded {uri} on branch main: 3 vectors of Doc by m1\n  1 empty text left out\n"
    )
    found = entities(uri)
    assert found["a"]["v"] == pytest.approx(mock_vector("ship", 3))
    assert found["b"]["v"] is None
    assert found["b"]["w"] == pytest.approx(mock_vector("b", 2))
    again = omnigraph("embed", uri, "Doc")
    assert again.out.endswith("0 vectors of Doc by m1\n  1 empty text left out\n  nothing to do\n")


def test_graph_form_has_a_json_form(uri):
    facts = json.loads(omnigraph("embed", uri, "Doc", "--property", "v", "--json").out)
    commit = facts.pop("commit")
    assert facts == {
        "uri": uri,
        "branch": "main",
        "type": "Doc",
        "properties": [{"name": "v", "embedded": 1}],
        "skipped": 1,
        "model": "m1",
        "actor_id": None,
    }
    assert commit["operation"] == "embed"
    again = json.loads(omnigraph("embed", uri, "Doc", "--property", "v", "--json").out)
    assert again["commit"] is None


def test_branch_property_and_all_are_taken(uri):
    assert omnigraph("branch", "create", "--uri", uri, "side").code == 0
    assert omnigraph("embed", uri, "Doc", "--branch", "side", "--property", "w").code == 0
    assert entities(uri)["a"]["w"] is None
    found = entities(uri, "--branch", "side")
    assert (found["a"]["w"] is None, found["a"]["v"]) == (False, None)
    ran = omnigraph("embed", "--store", uri, "Doc", "--branch", "side", "--property", "w", "--all")
    assert (
        ran.out == f"embedded {uri} on branch side: 2 vectors of Doc by m1\n  no vector changed\n"
    )


def test_vector_of_a_changed_text_is_not_ranked_until_it_is_made_again(uri):
    omnigraph("embed", uri, "Doc", "--property", "v")
    change = 'query m() { update Doc set { text: "pasta" } where k = "a" }'
    assert omnigraph("mutate", "--store", uri, "-e", change).code == 0
    assert entities(uri)["a"]["v"] is None
    done = json.loads(omnigraph("embed", uri, "Doc", "--property", "v", "--stale", "--json").out)
    assert (entities(uri)["a"]["v"] is None, done["commit"] is None) == (False, False)


def test_query_with_a_text_needs_the_same_model(uri, monkeypatch):
    omnigraph("embed", uri, "Doc")
    query = (
        'query q() { match { $d: Doc } return { $d.k } order { nearest($d.v, "ship") } limit 1 }'
    )
    ran = omnigraph("query", "--store", uri, "-e", query, "--format", "jsonl")
    assert json.loads(ran.out.splitlines()[-1])["d.k"] == "a"
    monkeypatch.setenv("OMNIGRAPH_EMBED_MODEL", "m2")
    ran = omnigraph("query", "--store", uri, "-e", query)
    assert ran.code == 1
    assert ran.err.startswith(
        "error[embedding_model_mismatch]: Doc.v holds vectors of model 'm1', but texts are embedded"
    )


def test_model_of_loaded_vectors_is_unknown_unless_it_is_named(uri, folder):
    record = {"type": "Doc", "data": {"k": "c", "text": "ship", "v": [1, 0, 0]}}
    (folder / "more.jsonl").write_text(json.dumps(record) + "\n", encoding="utf-8")
    load = ("load", uri, "--data", folder / "more.jsonl", "--mode", "merge")
    query = (
        'query q() { match { $d: Doc } return { $d.k } order { nearest($d.v, "ship") } limit 1 }'
    )
    asked = ("query", "--store", uri, "-e", query)
    assert omnigraph(*load).code == 0
    ran = omnigraph(*asked)
    assert ran.code == 1
    assert ran.err.startswith("error[embedding_model_unknown]: Doc.v holds vectors of an unknown")
    assert "--vectors-from provider/model" in ran.err
    assert omnigraph(*load, "--vectors-from", "mock/m1").code == 0
    ran = omnigraph(*asked, "--format", "jsonl")
    assert json.loads(ran.out.splitlines()[-1])["d.k"] == "c"
    ran = omnigraph(*load, "--vectors-from", " ", "--json")
    assert json.loads(ran.out)["error"]["code"] == "embedding_model_invalid"


def test_invalid_provider_is_reported(uri, monkeypatch):
    monkeypatch.setenv("OMNIGRAPH_EMBED_PROVIDER", "openai")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    ran = omnigraph("embed", uri, "Doc", "--json")
    assert ran.code == 1
    assert json.loads(ran.out)["error"]["code"] == "embedding_api_key_missing"
    assert "set OPENAI_API_KEY" in ran.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "nothing to embed: pass a graph and a type"),
        (["--json"], "nothing to embed"),
        (["--clean"], "nothing to embed"),
        (["./g"], "no type given"),
        (["--store", "g"], "no type given"),
        (["--all"], "no type given"),
        (["g", "Doc", "--stale", "--all"], "--stale and --all are mutually exclusive"),
        (["g", "Doc", "More"], "too many arguments"),
        (["g", "Doc", "--input", "x"], "options for a graph and for a file are mutually exclusive"),
        (
            ["--seed", "x", "--branch", "b"],
            "options for a graph and for a file are mutually exclusive",
        ),
        (["g", "Doc", "--clean"], "options for a graph and for a file are mutually exclusive"),
        (["--input", "x"], "--output and --spec missing"),
        (["--input", "x", "--output", "y"], "--spec missing"),
        (
            ["--seed", "x", "--output", "y"],
            "--seed and --input, --output or --spec are mutually exclusive",
        ),
        (["--seed", "x", "--clean", "--reembed-all"], "--clean and --reembed-all"),
    ],
)
def test_invalid_usage_is_reported_before_anything_is_done(arguments, said):
    ran = omnigraph("embed", *arguments)
    assert ran.code == 2
    assert said in ran.err


# --- files -------------------------------------------------------------------------------------


def test_file_is_embedded_and_loads(folder, uri):
    made = folder / "out.jsonl"
    ran = omnigraph(
        "embed", "--input", folder / "in.jsonl", "--output", made, "--spec", folder / "spec.json"
    )
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == (
        f"embedded 2 records (selected 2, cleaned 0) from {folder / 'in.jsonl'} -> {made} "
        "[fill_missing 3d]\n"
    )
    assert omnigraph("load", uri, "--data", made, "--mode", "merge").code == 0
    found = entities(uri)
    assert found["a"]["v"] == pytest.approx(mock_vector("type: Doc\ntext: ship", 3))
    assert found["b"]["v"] == pytest.approx(mock_vector("type: Doc", 3))


def test_manifest_modes_and_json(folder):
    manifest = folder / "seed.yaml"
    facts = {
        "sources": {"raw_seed": "in.jsonl"},
        "artifacts": {"embedded_seed": "b/o.jsonl"},
        "embeddings": SPEC,
    }
    manifest.write_text(json.dumps(facts), encoding="utf-8")

    def run(*more):
        return json.loads(omnigraph("embed", "--seed", manifest, "--json", *more).out)

    assert run() == {
        "input": str(folder / "in.jsonl"),
        "output": str(folder / "b" / "o.jsonl"),
        "records": 2,
        "selected_records": 2,
        "embedded_records": 2,
        "cleaned_records": 0,
        "mode": "fill_missing",
        "dimension": 3,
        "model": "m1",
    }
    assert run("--select", "Doc:k=a")["mode"] == "reembed_selected"
    assert run("--select", "Doc:k=a")["embedded_records"] == 1
    assert run("--type", "Doc")["mode"] == "reembed_selected"
    assert run("--reembed-all")["mode"] == "reembed_all"
    cleaned = run("--clean")
    assert (cleaned["mode"], cleaned["cleaned_records"], cleaned["model"]) == ("clean", 0, None)
    plain = omnigraph("embed", "--seed", manifest, "--clean").out
    assert plain.startswith("embedded 0 records (selected 2, cleaned 0) from ")


@pytest.mark.parametrize(
    ("more", "code"),
    [
        (["--select", "k"], "embed_selector_invalid"),
        (["--type", "No"], "embed_type_unknown"),
        (["--input", "no.jsonl"], "file_not_found"),
        (["--spec", "in.jsonl"], "embed_spec_invalid"),
    ],
)
def test_invalid_input_is_reported(folder, more, code):
    files = ["--input", "in.jsonl", "--output", "out.jsonl", "--spec", "spec.json"]
    ran = omnigraph("embed", *files, *more, cwd=folder)
    assert ran.code == 1
    assert ran.err.startswith(f"error[{code}]: ")
    assert not (folder / "out.jsonl").exists()


def test_interrupt_leaves_no_half_of_a_file(folder, monkeypatch):
    with embedding_service(openai_answer) as service:
        service.queue.append(Reply(body={}, pause=20))
        environ = {
            **os.environ,
            "OMNIGRAPH_EMBED_PROVIDER": "openai-compatible",
            "OMNIGRAPH_EMBED_BASE_URL": service.url,
        }
        files = ["--input", "in.jsonl", "--output", "out.jsonl", "--spec", "spec.json"]
        program = [sys.executable, "-m", "omnigraph.cli", "embed", *files]
        with subprocess.Popen(program, cwd=folder, env=environ, stderr=subprocess.PIPE) as run:
            while not service.asked:
                assert run.poll() is None, run.stderr.read()
            assert (folder / "out.jsonl.tmp").exists()
            run.send_signal(signal.SIGINT)
            run.wait()
    assert run.returncode != 0
    assert sorted(os.listdir(folder)) == ["in.jsonl", "s.pg", "spec.json"]


def test_files_need_no_storage(folder):
    program = """
import sys
from click.testing import CliRunner
from omnigraph.cli.commands.embed import embed
found = CliRunner().invoke(embed, sys.argv[1:])
assert found.exit_code == 0, found.output
assert not {"lance", "pyarrow"} & set(sys.modules)
"""
    files = ["--input", "in.jsonl", "--output", "out.jsonl", "--spec", "spec.json"]
    run = subprocess.run(
        [sys.executable, "-c", program, *files], cwd=folder, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
