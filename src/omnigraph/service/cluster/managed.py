"""This module tells whether a graph belongs to a cluster, whose file then says what it is."""

from __future__ import annotations

import os
import re
from pathlib import Path

from omnigraph.errors import InvalidInput
from omnigraph.service.cluster.store import GRAPHS, STATE
from omnigraph.storage import Location, Objects, locate

_PLACE = re.compile(rf"(?P<root>.+)/{GRAPHS}/(?P<id>[^/]+)\.omni")


def refuse_managed(uri: str | os.PathLike[str], what: str) -> None:
    """Raise InvalidInput when an address is that of a graph of a cluster."""
    location = locate(uri)
    place = _PLACE.fullmatch(location.uri)
    if place is None:
        return
    root = Location(place["root"], location.options)
    if (not root.is_local or Path(root.uri).is_dir()) and Objects(root).exists(STATE):
        message = (
            f"graph '{place['id']}' belongs to the cluster at {root}: {what} there, and run"
            " `omnigraph cluster apply`"
        )
        raise InvalidInput(message, code="graph_managed", cluster=root.uri)
