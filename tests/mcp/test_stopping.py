"""An agent's process stops at a signal while its input stays open, and at the end of its input."""

import json
import signal
import subprocess
import sys

import pytest

from tests.support.serving import PATIENCE, make_graph

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, None])
def test_a_process_of_an_agent_stops_with_zero(tmp_path, number):
    process = subprocess.Popen(
        [sys.executable, "-m", "omnigraph.cli", "mcp", f"--store={make_graph(tmp_path / 'g')}"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        process.stdin.write(json.dumps(INITIALIZE) + "\n")
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["id"] == 1
        if number is None:
            process.stdin.close()
        else:
            process.send_signal(number)
        assert process.wait(PATIENCE) == 0
        assert process.stderr.read() == ""
