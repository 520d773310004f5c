"""What long commands show while they work."""

import json
import re
import sys

import pytest

from tests.support.program import omnigraph, on_terminal

SCHEMA = "node Person { name: String @key @index }\n"
ROWS = "".join(
    json.dumps({"type": "Person", "data": {"name": f"p{n}"}}) + "\n" for n in range(20_000)
)
SHOWN = """
import time, click
from omnigraph.cli.progress import show_progress
from omnigraph.write.progress import Progress

@click.command()
def work():
    with show_progress("loading", lambda: "3 of 8 tasks") as progress:
        progress(Progress("write", 1_234_567, 2048, 4096))
        time.sleep(2.5)
    click.echo("done")

work()
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("progress")
    (folder / "s.pg").write_text(SCHEMA)
    (folder / "rows.ndjson").write_text(ROWS)
    omnigraph("init", folder / "g", "--schema", folder / "s.pg")
    return folder


def load(folder, *options):
    return omnigraph(
        *("load", folder / "g", "--data", folder / "rows.ndjson", "--mode", "merge"), *options
    )


def progress_lines(text):
    return [line for line in text.splitlines() if re.search(r", (\d+ min )?\d+ s$", line)]


def test_load_reports_phase_rows_and_seconds_where_nothing_is_a_terminal(folder, monkeypatch):
    monkeypatch.setenv("OMNIGRAPH_PROGRESS_SECONDS", "0.02")
    done = load(folder)
    pattern = r"loading: \w+(, [\d.]+ (K|M)iB of [\d.]+ (K|M)iB)?(, [\d,]+ rows)?, (\d+ min )?\d+ s"
    lines = progress_lines(done.err)
    assert any(re.fullmatch(pattern, line) for line in lines), done.err
    assert any("rows" in line for line in lines), done.err
    assert done.out.startswith("loaded ")
    for option in ("--quiet", "--json"):
        assert progress_lines(load(folder, option).err) == []
    monkeypatch.setenv("OMNIGRAPH_PROGRESS_SECONDS", "0")
    assert progress_lines(load(folder).err) == []


def test_every_long_command_reports_that_it_works(folder, monkeypatch):
    graph = folder / "g"
    load(folder)
    omnigraph("branch", "create", "--uri", graph, "side")
    load(folder, "--branch", "side")
    monkeypatch.setenv("OMNIGRAPH_PROGRESS_SECONDS", "0.001")
    commands = {
        "merging": ("merge", "--uri", graph, "side"),
        "building indexes": ("index", "build", graph),
        "optimizing": ("optimize", graph),
        "verifying": ("verify", graph),
        "repairing": ("repair", graph),
        "cleaning up": ("cleanup", graph, "--keep", "1"),
        "exporting: write": ("export", graph),
        "exporting": ("export", graph, "--parquet", folder / "parquet"),
        "exporting, ": ("export", graph, "--parts", folder / "parts"),
        "exporting,": ("export", graph, "--archive", folder / "archive"),
        "importing": ("import", folder / "archive", folder / "copy"),
        "writing the baseline": ("changes", "baseline", "--uri", graph, "--out", folder / "base"),
    }
    for what, command in commands.items():
        done = omnigraph(*command)
        assert done.code == 0, done.err
        assert any(line.startswith(what) for line in progress_lines(done.err)), command


def test_line_on_a_terminal_is_updated_and_removed():
    screen = on_terminal([sys.executable, "-c", SHOWN])
    line = r"loading: write, 2\.0 KiB of 4\.0 KiB, 1,234,567 rows, 3 of 8 tasks, \d s"
    clear = re.escape("\r\x1b[2K")
    assert re.fullmatch(f"({clear}{line}){{2,}}{clear}done\r\n", screen), screen


def test_the_link_to_a_page_is_printed_once_above_the_line():
    linked = SHOWN.replace('"3 of 8 tasks")', '"3 of 8 tasks", link=lambda: "http://localhost:1")')
    screen = on_terminal([sys.executable, "-c", linked])
    assert screen.count("loading: http://localhost:1 shows the jobs\r\n") == 1
    assert screen.endswith("done\r\n")


def test_progress_as_lines_of_json_has_stages_rows_tasks_and_the_end(tmp_path):
    program = SHOWN.replace('"3 of 8 tasks")', '"3 of 8 tasks", "json")').replace("2.5", "0.1")
    program = program.replace("time.sleep", 'progress(Progress("publish", 5, 0)); time.sleep')
    done = on_terminal([sys.executable, "-c", program])
    lines = [json.loads(line) for line in done.splitlines() if line.startswith("{")]
    assert [(e["event"], e["stage"], e["rows"], e["tasks"]) for e in lines] == [
        ("stage", "write", 1_234_567, "3 of 8 tasks"),
        ("stage", "publish", 5, "3 of 8 tasks"),
        ("finished", "publish", 5, "3 of 8 tasks"),
    ]
    assert all(set(e) == {"time", "command", *e} and e["command"] == "loading" for e in lines)
    assert {e["link"] for e in lines} == {None}
    linked = program.replace('"json")', '"json", lambda: "http://localhost:1")')
    lines = [
        json.loads(line) for line in on_terminal([sys.executable, "-c", linked]).splitlines()[:-1]
    ]
    assert {e["link"] for e in lines} == {"http://localhost:1"}
    failing = program.replace("time.sleep(0.1)", "raise ValueError")
    assert '"event": "failed"' in on_terminal([sys.executable, "-c", failing])
