"""A process that was refused a CSV file ends by itself: no reader is left open behind it.

The abort at exit was seen only while other processes loaded the cores, so long runs do that, too.
`test_readers_closed.py` checks the cause.
"""

import os
import subprocess
import sys

import pytest

import omnigraph.graph as og

SCHEMA = "node Person { name: String @key  age: I32? }"
FEW = 1
RUNS = int(os.environ.get("CSV_EXIT_RUNS", FEW))


@pytest.fixture(scope="module", autouse=True)
def loaded_cores():
    """Keep every core busy with two processes during a long run."""
    count = 2 * (os.cpu_count() or 1) if RUNS > FEW else 0
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    yield
    for process in busy:
        process.kill()
        process.wait()


@pytest.mark.parametrize(
    ("head", "said"),
    [
        ("name,years\n", "unknown property `years`"),
        ("name,age\nx,y,z\nx,y\n", "row 1: expected 2 cells, got 3"),
    ],
)
def test_a_refused_csv_file_does_not_abort_the_process(tmp_path, head, said):
    graph = og.init(tmp_path / "graph", SCHEMA)
    rows = "".join(f"p{number},{number % 90}\n" for number in range(200_000))
    # Arrow must still be reading ahead when the file is refused by its header.
    times = 20 if "years" in head else 1
    (tmp_path / "people.csv").write_text(head + rows * times)
    table = f"Person={tmp_path / 'people.csv'}"
    load = ["load", graph.uri, "--mode", "merge", "--node", table]
    command = [sys.executable, "-c", "from omnigraph.cli.app import main; main()", *load]
    for run in range(RUNS):
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert (done.returncode, said in done.stderr) == (1, True), (run, done)
