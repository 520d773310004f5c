"""Run queries in a process of their own, and print how far the peak of its memory rose."""

import json
import sys
from pathlib import Path
from typing import Any

import omnigraph.graph as og
from omnigraph.errors import OmniError
from omnigraph.query.engine import QuerySettings
from omnigraph.query.expansion import ExpandMode

WARM = "query w() { match { $a: Person  $a $e:knows $b } return { count($e.since) as n } }"


def resident(name: str) -> int:
    """Return the memory that is (`VmRSS`) or was at most (`VmHWM`) resident, in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    [line] = [line for line in lines if line.startswith(name)]
    return int(line.split()[1]) * 1024


def main(task: dict[str, Any]) -> None:
    """Run every query with the same limit, each on a graph that has read only the edges."""
    settings = QuerySettings(memory=task["memory"], expand=ExpandMode(task["mode"]))
    for query in task["queries"]:
        graph = og.open(task["uri"], mode="ro")
        graph._engine.run(graph.snapshot(), WARM, {}, None, settings)
        Path("/proc/self/clear_refs").write_text("5")  # the peak begins again
        before, code, rows = resident("VmRSS"), None, None
        try:
            rows = graph._engine.run(graph.snapshot(), query, {}, None, settings).rows
        except OmniError as error:
            code = error.code
        facts = {"query": query, "code": code, "rows": rows, "grown": resident("VmHWM") - before}
        print(json.dumps(facts))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
