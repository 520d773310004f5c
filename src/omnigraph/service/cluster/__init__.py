"""A cluster: several graphs with schemas, stored queries, policies and providers, as declared.

`cluster.yaml` and the files it names enter; graphs that are what it says, contents by digest and a
ledger leave. A server reads the ledger and nothing else. Every change of the ledger is one
compare-and-swap; an interrupted command is settled by the next one.
"""

from omnigraph.service.cluster.apply import apply
from omnigraph.service.cluster.commands import approve, force_unlock, validate
from omnigraph.service.cluster.observe import import_state, refresh, status
from omnigraph.service.cluster.plan import plan
from omnigraph.service.cluster.serving import (
    ServedGraph,
    ServedPolicy,
    Serving,
    ServingRefused,
    read_serving,
)
from omnigraph.service.cluster.session import Outcome

__all__ = [
    "Outcome",
    "ServedGraph",
    "ServedPolicy",
    "Serving",
    "ServingRefused",
    "apply",
    "approve",
    "force_unlock",
    "import_state",
    "plan",
    "read_serving",
    "refresh",
    "status",
    "validate",
]
