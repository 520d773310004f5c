"""A cluster: several graphs with schemas, stored queries, policies and providers, as declared.

`cluster.yaml` and the files it names enter; graphs that are what it says, contents by digest and a
ledger leave. A server reads the ledger and nothing else. Every change of the ledger is one
compare-and-swap; an interrupted command is settled by the next one.
"""

from omnigraph.service.cluster.apply import apply
from omnigraph.service.cluster.commands import approve, force_unlock, plan, validate
from omnigraph.service.cluster.drift import import_state, refresh, status
from omnigraph.service.cluster.serving import (
    AppliedRevision,
    ServedGraph,
    ServedPolicy,
    ServingRefused,
    read_applied_revision,
)
from omnigraph.service.cluster.session import ClusterCommandResult

__all__ = [
    "AppliedRevision",
    "ClusterCommandResult",
    "ServedGraph",
    "ServedPolicy",
    "ServingRefused",
    "apply",
    "approve",
    "force_unlock",
    "import_state",
    "plan",
    "read_applied_revision",
    "refresh",
    "status",
    "validate",
]
