"""Find the last good versions in a child process with limited memory.

A version whose examination ends the child is damaged; the search is repeated without opening it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

from omnigraph.commit.manifest import Manifest
from omnigraph.errors import Category, GraphCorrupt, NotFound, OmniError
from omnigraph.maintain.child_process import child_program, limit_memory, run_child, write_line
from omnigraph.maintain.last_good import LastGoodSearch
from omnigraph.maintain.last_good_model import LastGoodReport, LineagePlan
from omnigraph.maintain.lineage_files import LineageFiles
from omnigraph.storage import Location

MAX_CHILDREN = 64
"""Versions that may end a child before the search is given up."""

_PROGRAM = child_program(__name__)


def find_last_good(location: Location) -> LastGoodReport:
    """Plan the return of a graph to its last good versions; nothing is changed.

    Raises:
        NotFound: there is no graph.
    """
    manifest = Manifest(location)
    manifest.objects.reach()
    if not LineageFiles(manifest, None).newest:
        message = f"no graph at {location}"
        raise NotFound(message, code="graph_not_found", uri=location.uri)
    fatal: list[tuple[str, int]] = []
    for _ in range(MAX_CHILDREN):
        request = {"uri": location.uri, "options": dict(location.options), "fatal": fatal}
        received: dict[str, Any] = {}
        how = run_child(_PROGRAM, request, received.update)
        if "error" in received:
            raise _parse_error(received["error"])
        if "plans" in received:
            plans = tuple(LineagePlan.from_json(plan) for plan in received["plans"])
            return LastGoodReport(lineages=plans)
        if "version" not in received or tuple(received["version"]) in fatal:
            break
        path, version = received["version"]
        fatal.append((path, version))
    raise GraphCorrupt(f"searching the last good version {how}: restore the graph from a backup")


def _parse_error(document: Mapping[str, Any]) -> OmniError:
    return OmniError(
        document["message"],
        code=document["code"],
        category=Category(document["category"]),
        details=document["details"],
    )


# --- the child -----------------------------------------------------------------------------------


def main() -> None:
    """Search the graph of the request on standard input."""
    run_child_search(json.load(sys.stdin))


def run_child_search(request: Mapping[str, Any]) -> None:
    """Limit the memory of this process, search a graph and write the plans."""
    manifest = Manifest(Location(request["uri"], request["options"]))
    fatal = [(path, version) for path, version in request["fatal"]]
    examine = LastGoodSearch(
        manifest,
        lambda place: write_line({"place": place}),
        lambda path, version: write_line({"version": [path, version]}),
        fatal,
    )
    try:
        limit_memory(manifest)
        write_line({"plans": [plan.to_json() for plan in examine.run()]})
    except OmniError as error:
        write_line({"error": error.to_json()})
