"""Graphs of which an actor may see a part, and the same graphs without the other part."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from random import Random
from typing import Any

import omnigraph as og
from omnigraph.catalog import Catalog, EdgeType, NodeType
from omnigraph.policy import Action

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
    everything = [action for action in Action if action != "graph_list"]
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


def graph_of(folder: Path, schema: str, lines: Iterable[str], **options: Any) -> og.Graph:
    """Make a graph of some lines."""
    graph = og.init(folder, schema, **options)
    graph.load("\n".join(lines).encode())
    return graph


def outcome(graph: og.Graph, text: str, params: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return what a graph answers: rows in order, or what it refuses and why."""
    try:
        found = graph.query(text, params)
    except og.OmniError as error:
        return "refused", error.code, error.message
    return "answered", found.columns, [list(map(repr, row.values())) for row in found.rows]
