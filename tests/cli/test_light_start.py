"""Short commands import what they need: a query neither pandas nor Spark."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.program import omnigraph

PROGRAM = (
    "import atexit, os, sys\n"
    "threads = lambda: os.environ.get('OPENBLAS_NUM_THREADS')\n"
    "atexit.register(lambda: print(threads(), *sys.modules, file=sys.stderr))\n"
    "from omnigraph.cli.app import main; main()"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder: Path = tmp_path_factory.mktemp("light")
    (folder / "schema.pg").write_text("node Port { code: String @key }\n")
    (folder / "data.ndjson").write_text('{"type":"Port","data":{"code":"a"}}\n')
    assert omnigraph("init", "g", "--schema", "schema.pg", cwd=folder).code == 0
    assert omnigraph("load", "g", "--data", "data.ndjson", "--mode", "merge", cwd=folder).code == 0
    return folder


def run(folder, *words):
    env = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    command = [sys.executable, "-c", PROGRAM, *words]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)
    threads, *modules = done.stderr.splitlines()[-1].split()
    return done.stdout, threads, set(modules)


def test_a_query_imports_neither_pandas_nor_spark(folder):
    text = "match { $p: Port } return { $p.code }"
    out, threads, modules = run(folder, "query", "./g", "-e", text, "--format", "jsonl")
    assert json.loads(out.splitlines()[1]) == {"p.code": "a"}
    assert not modules & {"pandas", "pyspark", "numba", "rich", "starlette", "torch"}
    assert threads == "1"


def test_spark_finds_pandas(folder):
    """The graph is missing, so nothing starts; what the process may import is decided before."""
    words = ("query", "./missing", "--engine", "spark", "-e", "match { $p: Port } return { $p }")
    _, threads, modules = run(folder, *words)
    assert threads == "None"
    assert "pandas" in modules
