"""Find the pipelines that a cluster declares, for commands that name one."""

from __future__ import annotations

from dataclasses import dataclass

from omnigraph.cli.addresses import WrongUse
from omnigraph.cli.graphs import given, set_up
from omnigraph.cli.scope import Scope, cluster_scope
from omnigraph.graph import Graph
from omnigraph.pipeline.spec import StoredPipeline
from omnigraph.service.cluster.pipelines import (
    DeclaredPipeline,
    applied_pipelines,
    find_pipeline,
    read_applied,
)
from omnigraph.service.cluster.serving import open_store


@dataclass(frozen=True, slots=True)
class Declared:
    """A pipeline of the cluster that was addressed: its graph, and its text as it was applied."""

    graph: str
    source: StoredPipeline


def list_declared() -> list[DeclaredPipeline]:
    """Return the pipelines of the cluster that was addressed, of one graph if that is named."""
    scope = _scope()
    if scope is None:
        raise WrongUse("name the cluster: --cluster DIR|URI, or a profile of one")
    found = applied_pipelines(open_store(scope.address, None))
    return [one for one in found if scope.graph in (None, one.graph)]


def find_declared(name: str) -> Declared | None:
    """Return a pipeline by name; None when no cluster was addressed."""
    scope = _scope()
    if scope is None:
        return None
    store = open_store(scope.address, None)
    found = find_pipeline(store, name)
    if scope.graph not in (None, found.graph):
        raise WrongUse(f"pipeline '{name}' loads into graph '{found.graph}', not '{scope.graph}'")
    return Declared(found.graph, read_applied(store, found, scope.address))


def declared_by(graph: Graph, run: str) -> StoredPipeline | None:
    """Return the pipeline a run began with, if a cluster was addressed that declares it."""
    begun = next((one for one in graph.pipeline.status() if one.id == run), None)
    name = None if begun is None else begun.about.get("declared")
    found = None if name is None else find_declared(name)
    return None if found is None else found.source


def _scope() -> Scope | None:
    return cluster_scope(given(None, None), set_up())
