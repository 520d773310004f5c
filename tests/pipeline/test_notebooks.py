"""The notebooks of examples/ run from top to bottom."""

import json
import os
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted(ROOT.glob("examples/*.ipynb"))
SECONDS = 600


@pytest.fixture
def kernel(tmp_path, monkeypatch):
    """Make this Python the kernel `python3`, whatever is installed."""
    folder = tmp_path / "kernels" / "python3"
    folder.mkdir(parents=True)
    command = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    spec = {"argv": command, "display_name": "Python 3", "language": "python"}
    (folder / "kernel.json").write_text(json.dumps(spec))
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    # The kernel starts a Spark of its own; the gateway of this process is not for it.
    for name in [name for name in os.environ if name.startswith("PYSPARK_GATEWAY")]:
        monkeypatch.delenv(name)
    # The session and its workers are those of a user.
    monkeypatch.delenv("SPARK_CONF_DIR", raising=False)
    return tmp_path


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_a_notebook_runs(kernel, path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert not any(cell.get("outputs") for cell in notebook.cells), "kept without outputs"
    done = NotebookClient(notebook, timeout=SECONDS, resources={"metadata": {"path": kernel}})
    shown = [
        output["data"]["text/plain"]
        for cell in done.execute().cells
        for output in cell.get("outputs", ())
        if output.output_type == "execute_result"
    ]
    assert "Cy" in shown[-1]


def test_there_are_notebooks():
    assert [path.name for path in NOTEBOOKS] == ["spark.ipynb"]
