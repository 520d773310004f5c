"""The public face of a graph.

What people call enters, what they get leaves: this room delegates and decides nothing. `face` has
the graph itself, `schema`, `history` and `changes` its parts, `context` what they share.
"""

from omnigraph.graph.api import Graph, import_archive, init, open
from omnigraph.graph.history import Branches, Changes, Commits, Tags
from omnigraph.graph.schema import Indexes, Schema

__all__ = [
    "Branches",
    "Changes",
    "Commits",
    "Graph",
    "Indexes",
    "Schema",
    "Tags",
    "import_archive",
    "init",
    "open",
]
