"""The notebook about Spark runs from top to bottom."""

import pytest

from tests.support.notebook_kernel import execute
from tests.support.program import ROOT


@pytest.mark.filterwarnings("ignore")
def test_the_notebook_runs(kernel):
    done = execute(ROOT / "examples/spark.ipynb", kernel)
    shown = [
        output["data"]["text/plain"]
        for cell in done.cells
        for output in cell.get("outputs", ())
        if output.output_type == "execute_result"
    ]
    assert "Cy" in shown[-1]
