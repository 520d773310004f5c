"""This module opens the graph a command addresses.

It imports storage, which takes half a second: a command that may do without a graph imports this
module only when it needs one.
"""

from __future__ import annotations

from omnigraph.cli.addresses import acting, one_address
from omnigraph.graph import Graph
from omnigraph.graph import open as open_graph


def open_addressed(
    uri: str | None, store: str | None, *, mode: str = "ro", actor: str | None = None
) -> Graph:
    """Open the one graph that was addressed."""
    address = one_address(uri, store)
    who = acting(actor)
    return open_graph(address, mode=mode, policy=who.policy, actor=who.actor)
