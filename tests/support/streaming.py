"""A process that streams one graph into another and dies right after a batch was published."""

from __future__ import annotations

import os
import signal
import sys

import omnigraph as og
from omnigraph import pipeline

SCHEMA = """
node Person {
  name: String @key
  age: U64?
  at: DateTime?
  far: Vector(2)?
  file: Blob?
}
node Note { text: String }
edge Knows: Person -> Person { since: Date? }
"""


def main(source: str, target: str, checkpoint: str) -> None:
    """Stream until the third commit was published, and be gone."""
    graph, copy = og.open(source), og.open(target)
    swaps = 0

    def observe(step: str) -> None:
        nonlocal swaps
        swaps += step == "swap: done"
        if swaps == 3:
            os.kill(os.getpid(), signal.SIGKILL)

    copy._manifest.datasets.observe = observe
    spark = pipeline.session("local[1]", memory="700m")
    changes = pipeline.read_changes(spark, graph, start="beginning", maxChangesPerBatch="2")
    options = pipeline.StreamOptions(checkpoint=checkpoint, trigger={"availableNow": True})
    pipeline.stream_into(changes, copy, options).awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
