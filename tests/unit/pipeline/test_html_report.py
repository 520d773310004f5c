"""The page of a report: complete, safe, and in need of nothing from elsewhere."""

import re
from dataclasses import replace

import pytest

from omnigraph.pipeline.runs.html_report import report_page, state_text
from omnigraph.pipeline.runs.report import RunReport

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
    assert re.findall(r"(?:src|href|url|@import)\s*[=(]", page) == []
    assert "<script" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert "weekly &lt;articles&gt;" in page


def test_bars_are_as_wide_as_their_numbers():
    page = report_page(REPORT)
    widths = re.findall(r'<rect class="s\d" x="([\d.]+)" y="0" width="([\d.]+)"', page)
    assert ("0.000", "33.333") in widths
    assert ("33.333", "66.667") in widths
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
