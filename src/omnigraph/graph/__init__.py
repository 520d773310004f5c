"""The public API of an embedded graph.

`api` has the graph itself, `schema` and `history` its parts, `context` what they share, and
`protocol` the signatures and docstrings of what remote graphs have, too.
"""

from omnigraph.graph.api import Graph, import_archive, init, open, repair_to_last_good
from omnigraph.graph.history import Branches, Changes, Commits, Tags
from omnigraph.graph.maintenance import Maintenance
from omnigraph.graph.schema import Indexes, Schema

__all__ = [
    "Branches",
    "Changes",
    "Commits",
    "Graph",
    "Indexes",
    "Maintenance",
    "Schema",
    "Tags",
    "import_archive",
    "init",
    "open",
    "repair_to_last_good",
]
