"""Run queries that need kernels where none is compiled yet, and print what they give."""

import json
import os
import sys
import time

import omnigraph.graph as og
from omnigraph.errors import OmniError
from omnigraph.query.engine import QuerySettings
from omnigraph.query.expansion import ExpandMode

SEARCH = "query q() { match { $a: P  $a knows{1,3} $b } return { count($b) as n } }"
TRIANGLES = (
    "query q() { match { $a knows $b  $b knows $c  $c knows $a } return { count($a) as n } }"
)


def main(uri: str, timeout: float) -> None:
    """Ask each query, and end without waiting for the compiler."""
    graph = og.open(uri, mode="ro")
    snapshot = graph.snapshot()
    settings = QuerySettings(timeout=timeout, expand=ExpandMode.TOPOLOGY)
    for text in (SEARCH, TRIANGLES):
        begun = time.monotonic()
        try:
            answer = graph._engine.run(snapshot, text, {}, None, settings).rows[0]["n"]
        except OmniError as error:
            answer = error.code
        print(json.dumps([answer, time.monotonic() - begun]), flush=True)
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
