"""The page of a report: complete, safe, and in need of nothing from elsewhere."""

import re
import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from omnigraph.pipeline.runs.html_report import report_page, state_text
from omnigraph.pipeline.runs.next_steps import next_steps
from omnigraph.pipeline.runs.report import RunReport
from tests.support.program import omnigraph

REPORT = RunReport(
    run="01RUN",
    pipeline="weekly <articles>",
    file="p.yaml",
    graph="./g",
    state="finished",
    branch="incoming/31",
    mode="merge",
    started_at="2024-05-01T10:00:00+00:00",
    seconds=75.0,
    stages=[{"name": "extract", "seconds": 25.0}, {"name": "stage", "seconds": 50.0}],
    sources=[{"name": "s", "kind": "csv", "files": 2, "rows": 1200, "broken": 3}],
    types={
        "node:Article": {
            "given": 1197,
            "accepted": 1000,
            "rejected": {"required": 150, "range": 47},
            "inserted": 900,
            "updated": 100,
            "deleted": 0,
            "bytes": 2048,
        }
    },
    commit={"graph_commit_id": "01COMMIT", "message": "m"},
    rejects="./rejects",
    examples=[
        {
            "type": "Article",
            "rule": "required",
            "message": "<script>alert(1)</script>",
            "source": {"file": "/x/a.csv", "row": 6},
        }
    ],
)

CONFLICT = {
    "conflicts": [
        {"type_name": "Article", "entity_id": "a", "kind": "divergent_update", "message": "both"}
    ]
}


def texts(page):
    return re.sub(r"<[^>]*>", " ", page.partition("</head>")[2])


def test_the_page_has_every_number_of_the_report():
    shown = texts(report_page(REPORT))
    for text in ("1,200", "1,000", "200", "2.0 KiB", "1 min 15 s", "01COMMIT", "Article: required"):
        assert text in shown


def test_the_page_loads_nothing_and_runs_nothing():
    page = report_page(REPORT)
    assert re.findall(r"(?:src|url|@import)\s*[=(]", page) == []
    links = re.findall(r'href="([^"]*)"', page)
    assert links == ["#rejects", (Path.cwd() / "rejects").as_uri()]
    assert "<script" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert "weekly &lt;articles&gt;" in page


def test_bars_are_as_wide_as_their_numbers():
    page = report_page(REPORT)
    widths = re.findall(r'<rect class="info" x="0.000" y="0" width="([\d.]+)"', page)
    assert widths == ["50.000", "100.000"]
    accepted = re.findall(r'<rect class="ok" x="0.000" y="0" width="([\d.]+)"', page)
    assert f"{100 * 1000 / 1197:.3f}" in accepted


def test_light_and_dark_and_small_screens_are_thought_of():
    page = report_page(REPORT)
    assert "prefers-color-scheme: dark" in page
    assert 'name="viewport"' in page
    assert "max-width: 34rem" in page


@pytest.mark.parametrize(
    ("facts", "state"),
    [
        ({}, "published"),
        ({"repeated": True}, "already loaded"),
        ({"merge": {"target": "main", "outcome": "merged", "conflicts": []}}, "merged"),
        ({"merge": {**CONFLICT, "target": "main", "outcome": "conflicts"}}, "conflicts"),
        ({"state": "failed", "commit": None, "error": {"code": "c", "message": "m"}}, "failed"),
    ],
)
def test_the_end_of_a_run_has_a_word(facts, state):
    report = replace(REPORT, **facts)
    assert state_text(report) == state
    assert state in texts(report_page(report))


def test_a_run_that_did_nothing_has_a_page():
    empty = replace(REPORT, types={}, stages=[], sources=[], examples=[], commit=None)
    assert "01RUN" in texts(report_page(empty))


PREVIOUS = {
    "run": "01OLD",
    "started_at": "2024-04-24T10:00:00+00:00",
    "given": 1000,
    "rejected": 200,
    "seconds": 100.0,
    "stages": [{"name": "stage", "seconds": 80.0}],
}


def test_the_page_compares_with_the_previous_run_and_says_what_took_the_time():
    shown = texts(report_page(replace(REPORT, previous=PREVIOUS)))
    for text in (
        "200 more (20%)",
        "as before",
        "25.0 s shorter (25%)",
        "01OLD",
        "(before: 1 min 20 s)",
    ):
        assert text in shown
    assert "previous run" not in texts(report_page(REPORT))
    assert "took the longest: 50.0 s of 1 min 15 s, to read, map and write the rows" in shown


ERROR = {"code": "c", "message": "m", "category": "invalid"}
STEPS = [
    ({}, ["diff", "", "proposal create", "merge"]),
    ({"branch": "main", "rejects": None}, ["changes commit"]),
    ({"repeated": True}, ["pipeline run --force"]),
    ({"merge": {"target": "main", "outcome": "merged"}, "rejects": None}, ["changes commit"]),
    (
        {"merge": {**CONFLICT, "target": "main"}, "rejects": None},
        ["merge --dry-run", "merge --resolve"],
    ),
    ({"error": ERROR, "commit": None}, ["pipeline run"]),
    ({"error": {**ERROR, "category": "contention"}, "commit": None}, ["pipeline resume"]),
    ({"error": ERROR}, ["pipeline resume"]),
]


@pytest.mark.parametrize(("facts", "commands"), STEPS)
def test_the_next_step_is_a_command(facts, commands):
    steps = next_steps(replace(REPORT, **facts))
    assert len(steps) == len(commands)
    for step, wanted in zip(steps, commands, strict=True):
        assert set(wanted.split()) <= set((step.command or "").split())
        assert (step.command is None) is step.rejects


def test_the_commands_of_next_steps_can_be_run(tmp_path):
    graph = str(tmp_path / "my graph")
    schema = tmp_path / "s.pg"
    schema.write_text("node Article { slug: String @key }")
    data = tmp_path / "d.ndjson"
    data.write_text('{"type": "Article", "data": {"slug": "a"}}')
    assert omnigraph("init", graph, "--schema", schema).code == 0
    words = ("load", graph, "--data", data, "--branch", "incoming/31", "--from", "main")
    loaded = omnigraph(*words, "--mode", "merge", "--json")
    assert loaded.code == 0, loaded.err
    steps = next_steps(replace(REPORT, graph=graph, base="main"))
    commands = [step.command for step in steps if step.command is not None]
    assert len(commands) == 3
    for command in commands:
        ran = omnigraph(*shlex.split(command)[1:], "--quiet")
        assert ran.code == 0, f"{command}\n{ran.err}"
    assert "Article" in omnigraph("export", graph).out


def test_the_page_says_how_far_an_incremental_source_was_read():
    increment = {"cursor": "updated", "after": "2026-01-01", "to": "2026-01-02"}
    [source] = REPORT.sources
    report = replace(REPORT, sources=[{**source, "incremental": increment}])
    assert "updated: after 2026-01-01 up to 2026-01-02" in texts(report_page(report))
