"""The project that `quickstart` writes: exactly the commands it prints are run."""

import json
import os
import shlex
import subprocess
import sys

import omnigraph as og
from tests.support.docs import console_commands, page_blocks, shows
from tests.support.program import omnigraph, omnigraph_said


def test_the_commands_it_prints_print_what_its_page_shows(tmp_path):
    ran = omnigraph("quickstart", cwd=tmp_path)
    assert (ran.code, ran.err) == (0, "")
    _, _, following = ran.out.partition("next:\n")
    enter, *commands = (line.strip() for line in following.splitlines())
    assert enter == "cd omnigraph-demo"
    folder = tmp_path / "omnigraph-demo"
    blocks = [b for b in page_blocks(folder / "README.md") if b.language == "console"]
    shown = dict(pair for block in blocks for pair in console_commands(block))
    assert commands == list(shown)
    for command in commands:
        program, *words = shlex.split(command)
        if program == "python":
            done = subprocess.run(
                [sys.executable, *words], cwd=folder, capture_output=True, text=True, check=True
            )
            assert done.stdout.splitlines() == [
                "insert Person Fay",
                f"insert WorksAt {_edge_of_fay(folder)}",
                "[{'people': 6}]",
            ]
        elif words[0] == "shell":
            ran = omnigraph(*words, cwd=folder, typed="match { $p: Person } return { $p.city }")
            assert ran.out.startswith("6 rows from branch main via query\n")
        else:
            output = omnigraph_said(words, {**os.environ, "NO_COLOR": "1"}, folder)
            assert shows(shown[command], output), f"{command}\n{output}"
    assert og.open(folder / "graph").branches.list() == ["main"]


def _edge_of_fay(folder):
    graph = og.open(folder / "graph")
    text = 'match { $p: Person { name: "Fay" }  $p $e: worksAt $c } return { $e.id as id }'
    [row] = graph.query(text).rows
    return row["id"]


def test_the_other_queries_of_the_project_are_valid(tmp_path):
    assert omnigraph("quickstart", "mine", cwd=tmp_path).code == 0
    folder = tmp_path / "mine"
    graph = og.init(tmp_path / "graph", schema=folder / "schema.pg")
    data = folder / "data"
    graph.load(
        {
            "Person": data / "people.csv",
            "Company": data / "companies.csv",
            "WorksAt": data / "works_at.csv",
            "Knows": data / "knows.csv",
        }
    )
    queries = (folder / "queries" / "people.gq").read_text()
    rows = graph.query(queries, {"name": "Ada"}, name="reachable").rows
    assert [row["name"] for row in rows] == ["Bo", "Cy", "Dee", "Eli"]
    graph.mutate('query add() { insert Person { name: "Fay" } }')
    values = {"name": "Fay", "company": "Zeta", "since": "2024-01-01"}
    assert graph.mutate(queries, values, name="hire").affected_edges == 1


def test_the_folder_has_to_be_empty(tmp_path):
    (tmp_path / "mine").mkdir()
    assert omnigraph("quickstart", "mine", "--json", cwd=tmp_path).code == 0
    ran = omnigraph("quickstart", "mine", cwd=tmp_path)
    assert (ran.code, ran.out) == (1, "")
    assert "mine is not empty: pass another folder" in ran.err


def test_json_lists_the_files_and_commands(tmp_path):
    ran = omnigraph("quickstart", "mine", "--json", cwd=tmp_path)
    facts = json.loads(ran.out)
    found = {p.relative_to(tmp_path / "mine").as_posix() for p in (tmp_path / "mine").rglob("*.*")}
    assert set(facts["files"]) == found
    assert facts["next"][0] == "cd mine"
