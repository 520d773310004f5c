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
WARM_SEARCH = "query w() { match { $a: Person  $a knows{1,2} $b } return { count($b) as n } }"
"""This one compiles a kernel, which takes memory of its own."""


def peak() -> int:
    """Return the most memory that was resident, in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    [line] = [line for line in lines if line.startswith("VmHWM")]
    return int(line.split()[1]) * 1024


def main(task: dict[str, Any]) -> None:
    """Run every query with the same limit."""
    graph = og.open(task["uri"], mode="ro")
    settings = QuerySettings(memory=task["memory"], expand=ExpandMode(task["mode"]))
    for query in (WARM, *([WARM_SEARCH] if settings.expand is ExpandMode.TOPOLOGY else [])):
        graph._engine.run(graph.snapshot(), query, {}, None, settings)
    for query in task["queries"]:
        before, code = peak(), None
        try:
            graph._engine.run(graph.snapshot(), query, {}, None, settings)
        except OmniError as error:
            code = error.code
        print(json.dumps({"query": query, "code": code, "grown": peak() - before}))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
