"""`omnigraph init --from`: infer a schema, show it, ask, load."""

import json

from click.testing import CliRunner

from omnigraph.cli.app import cli
from tests.support.program import omnigraph

FILES = ("--from", "people.csv", "--from", "knows.csv")


def write_files(folder):
    (folder / "people.csv").write_text("name,age\nada,36\nbo,\n")
    (folder / "knows.csv").write_text("from,to\nada,bo\n")


def test_files_become_a_graph(tmp_path):
    write_files(tmp_path)
    ran = omnigraph("init", "g", *FILES, "--yes", cwd=tmp_path)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == (
        f"initialized {tmp_path / 'g'}\nloaded 3 entities (1 node type, 1 edge type)\n"
    )
    exported = [
        json.loads(line) for line in omnigraph("export", "g", cwd=tmp_path).out.split("\n")[:-1]
    ]
    assert exported == [
        {"edge": "Knows", "from": "ada", "to": "bo", "data": {"id": '["ada","bo"]'}},
        {"type": "Person", "data": {"id": "ada", "name": "ada", "age": 36}},
        {"type": "Person", "data": {"id": "bo", "name": "bo", "age": None}},
    ]
    made = json.loads(omnigraph("--yes", "init", "h", *FILES, "--json", cwd=tmp_path).out)
    assert (made["load"]["total_entities"], made["types"][0]["name"]) == (3, "Person")


def test_nothing_is_created_before_the_schema_is_accepted(tmp_path):
    write_files(tmp_path)
    for options in ((), ("--json",)):
        ran = omnigraph("init", "g", *FILES, *options, cwd=tmp_path)
        assert (ran.code, "pass --yes to accept it" in ran.err) == (1, True)
        assert ("node Person {" in ran.out) == (options == ())
    both = omnigraph("init", "g", *FILES, "--schema", "s.pg", cwd=tmp_path)
    assert (both.code, omnigraph("init", "g", cwd=tmp_path).code) == (2, 2)
    assert not (tmp_path / "g").exists()


def test_the_schema_is_shown_and_the_answer_decides(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("omnigraph.cli.commands.init._is_interactive", lambda: True)
    write_files(tmp_path)
    refused = CliRunner().invoke(cli, ["init", "g", *FILES], input="n\n")
    assert (refused.exit_code, (tmp_path / "g").exists()) == (1, False)
    assert "node Person {\n  name: String @key\n" in refused.output
    accepted = CliRunner().invoke(cli, ["init", "g", *FILES], input="y\n")
    assert accepted.exit_code == 0, accepted.output
    assert accepted.output.endswith("loaded 3 entities (1 node type, 1 edge type)\n")
