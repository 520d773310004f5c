"""Notebooks show tables, diagrams, differences and graphs when they are executed.

`executed/` has the outputs as they were looked at, without their style. After a wanted change,
`OMNIGRAPH_WRITE_REFERENCE=1` writes them again.
"""

import os
from pathlib import Path

import pytest

from tests.support.notebook_kernel import execute
from tests.support.notebook_objects import HARBOUR, ROOT, Outline, structure

REFERENCE = Path(__file__).parent / "executed/review.html"
WIDGET = "application/vnd.jupyter.widget-view+json"


def test_there_are_notebooks():
    names = sorted(path.name for path in (ROOT / "examples").glob("*.ipynb"))
    assert names == ["review.ipynb", "spark.ipynb"]


@pytest.mark.filterwarnings("ignore")
def test_the_outputs_of_a_notebook_are_those_that_were_looked_at(kernel, monkeypatch):
    monkeypatch.setenv("HARBOUR", str(HARBOUR))
    notebook = execute(ROOT / "examples/review.ipynb", kernel)
    outputs = [
        (cell.source, output) for cell in notebook.cells for output in cell.get("outputs", ())
    ]
    assert {output.output_type for _, output in outputs} == {"execute_result"}
    assert [source for source, output in outputs if WIDGET in output.data] == ["calls.graph()"]
    shown = [(source.splitlines()[-1], output.data["text/html"]) for source, output in outputs]
    assert {source: Outline(html).foreign for source, html in shown if Outline(html).foreign} == {}
    page = "".join(f"<!-- {source} -->\n{structure(html)}" for source, html in shown)
    if os.environ.get("OMNIGRAPH_WRITE_REFERENCE") == "1":
        REFERENCE.write_text(page, encoding="utf-8")
        styled = "".join(f"<pre>{source}</pre>{html}" for source, html in shown)
        (kernel / "review.html").write_text(f"<!doctype html>{styled}", encoding="utf-8")
    assert page == REFERENCE.read_text(encoding="utf-8")
