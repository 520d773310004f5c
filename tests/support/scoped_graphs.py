"""Graphs of which an actor may see a part, and the same graphs without the other part."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from random import Random
from typing import Any

import omnigraph as og
from omnigraph.catalog import Catalog, EdgeType, NodeType
from omnigraph.changes.commit_changes import EntityChange
from omnigraph.policy import PolicyAction

Shown = Mapping[str, frozenset[str]]
"""The types somebody may see, by name, and their properties."""
ACTOR, ROOT = "act-ada", "act-root"


def some_shown(random: Random, catalog: Catalog) -> Shown:
    """Choose what may be seen of a schema; keys are shown with their type."""
    shown: dict[str, frozenset[str]] = {}
    for kind in (catalog.nodes, catalog.edges):
        for name, definition in kind.items():
            if random.random() < 0.75:
                key = getattr(definition, "key", ())
                names = [n for n in definition.properties if n in key or random.random() < 0.7]
                shown[name] = frozenset(names)
    return shown


def whole(shown: Shown, catalog: Catalog) -> Shown:
    """Return what is left once edges without one of their ends are gone as well."""
    nodes = {name: names for name, names in shown.items() if name in catalog.nodes}
    edges = {
        name: names
        for name, names in shown.items()
        if name in catalog.edges and {catalog.edges[name].src, catalog.edges[name].dst} <= {*nodes}
    }
    return nodes | edges


def policy_for(shown: Shown, catalog: Catalog, *others: str) -> og.Policy:
    """Return a policy: one actor may read and export only this, and do others; root anything."""
    types: dict[str, NodeType | EdgeType] = {**catalog.nodes, **catalog.edges}
    mask = {
        name: sorted(set(types[name].properties) - names)
        for name, names in shown.items()
        if set(types[name].properties) - names
    }
    allow: dict[str, Any] = {"actors": {"group": "team"}}
    allow |= {"types": sorted(shown) or ["None"]} | ({"mask": mask} if mask else {})
    grants = {action: {**allow, "actions": [action]} for action in ("read", "export")}
    team = {"actors": {"group": "team"}}
    grants |= {action: {**team, "actions": [action]} for action in others}
    rules = [{"id": action, "allow": grant} for action, grant in grants.items()]
    everything = [action for action in PolicyAction if action != "graph_list"]
    rules += [{"id": "root", "allow": {"actors": {"group": "root"}, "actions": everything}}]
    groups = {"team": [ACTOR], "root": [ROOT]}
    # JSON is YAML, too.
    return og.Policy.parse(json.dumps({"version": 1, "groups": groups, "rules": rules}), graph="g")


def reduced_lines(lines: Iterable[str], shown: Shown) -> Iterator[str]:
    """Yield the lines of an export that are left, with the properties that are left."""
    for line in lines:
        record = json.loads(line)
        name = record.get("type") or record.get("edge")
        if name in shown:
            data = record["data"]
            kept = {n: v for n, v in data.items() if n == "id" or n in shown[name]}
            yield json.dumps({**record, "data": kept}, ensure_ascii=False)


def graph_of(folder: Path, schema: str, *parts: Iterable[str], **options: Any) -> og.Graph:
    """Make a graph of some lines, a commit for each part of them."""
    graph = og.init(folder, schema, **options)
    for lines in parts:
        graph.load("\n".join(lines).encode())
    return graph


def reported(graph: og.Graph) -> dict[str, Any]:
    """Return what a graph tells about its last commit, on every surface that tells changes."""
    before, last = (commit.id for commit in reversed(graph.commits.list(limit=2)))
    page = graph.commits.changes(last)
    [*_, block] = graph.changes.poll(start=f"after:{before}").blocks
    return {
        "difference": [change.to_json() for change in graph.diff(before, last)],
        "back": [change.to_json() for change in graph.diff(last, before)],
        "commit": _by_name(page.changes),
        "feed": _by_name(block.changes),
        "baseline": list(graph.changes.baseline().lines),
        "datasets": {key: entry.rows for key, entry in graph.snapshot().entries().items()},
    }


def _by_name(changes: Iterable[EntityChange]) -> list[dict[str, Any]]:
    """Return changes by type and id; identities of types are left out, as no graphs share them."""
    found = [{**change.to_json(), "type": change.type} for change in changes]
    return sorted(found, key=lambda change: (change["kind"], change["type"], change["id"]))


def outcome(graph: og.Graph, text: str, params: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return what a graph answers: rows in order, or what it refuses and why."""
    try:
        found = graph.query(text, params)
    except og.OmniError as error:
        return "refused", error.code, error.message
    return "answered", found.columns, [list(map(repr, row.values())) for row in found.rows]
