"""A daemon of Spark that forks Python workers with their imports behind them.

Spark has workers import its own Python code from an archive, which compiles it in each of them, and
a worker whose task fails is replaced: most of the time of a small test. The same code is installed
beside us.
"""

from __future__ import annotations

import gc
import sys
import warnings
from importlib import import_module

MODULE = "tests.support.spark_daemon"
_IMPORTED = (
    "pyspark.worker",
    "pyspark.sql.pandas.serializers",
    "omnigraph.graph",
    "omnigraph.pipeline.load.entry_points",
    "omnigraph.pipeline.connector.data_source",
    "omnigraph.pipeline.connector.streams",
    "omnigraph.pipeline.maintenance.optimize",
)


def _main() -> None:
    sys.path[:] = [path for path in sys.path if not path.endswith(".zip")]
    # A daemon of another kind, such as one that plans reads, forks one worker and ends.
    if sys.argv[1] == "pyspark.worker":
        for name in _IMPORTED:
            import_module(name)
    # Nothing of Lance but its import has happened here.
    warnings.filterwarnings("ignore", message="lance is not fork-safe")
    # Workers collect garbage after every task, which goes through all that was imported.
    gc.collect()
    gc.freeze()
    import_module("pyspark.daemon").manager()


if __name__ == "__main__":
    _main()
