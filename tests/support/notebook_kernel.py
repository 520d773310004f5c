"""A kernel of this Python for notebooks that tests execute."""

from __future__ import annotations

import json
import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

SECONDS = 600


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
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


def execute(path: Path, folder: Path) -> Any:
    """Run a notebook from top to bottom in a folder; it is kept without outputs."""
    nbformat, client = import_module("nbformat"), import_module("nbclient").NotebookClient
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert not any(cell.get("outputs") for cell in notebook.cells), "kept without outputs"
    resources = {"metadata": {"path": folder}}
    return client(notebook, timeout=SECONDS, resources=resources).execute()
