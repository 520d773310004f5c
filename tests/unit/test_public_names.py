"""Names of the package for type checkers: results of methods, and words of arguments."""

import inspect
from typing import Literal, get_args, get_origin, get_type_hints

import omnigraph as package
from omnigraph.graph.maintenance import Maintenance
from omnigraph.graph.schema import Indexes, Schema
from omnigraph.pipeline.api import Pipelines
from omnigraph.query.engine_names import ENGINES
from omnigraph.service.client import resources
from omnigraph.service.client.proposals import RemoteProposals, RemoteProtection
from omnigraph.storage.durability import Durability
from omnigraph.write.load import WriteMode

PARTS = (
    *(Schema, Indexes, Maintenance, Pipelines, RemoteProposals, RemoteProtection),
    *(getattr(resources, f"Remote{name}") for name in ("Branches", "Tags", "Commits", "Changes")),
    resources.RemoteSchema,
)


def _classes(annotation):
    parts = get_args(annotation)
    if parts and get_origin(annotation) is not Literal:
        return {one for part in parts for one in _classes(part)}
    return {annotation} if isinstance(annotation, type) else set()


def test_package_names_what_the_methods_of_a_graph_return():
    graph_classes = (package.Graph, package.RemoteGraph, package.Proposal, *PARTS)
    returned = set()
    for class_ in graph_classes:
        for name, member in inspect.getmembers(class_):
            method = member.fget if isinstance(member, property) else member
            if not name.startswith("_") and inspect.isfunction(method):
                returned |= _classes(get_type_hints(method).get("return"))
    ours = {one for one in returned if one.__module__.startswith("omnigraph.")}
    assert len(ours) > 50
    parts = {class_ for one in graph_classes for class_ in one.__mro__}
    missing = {one.__name__ for one in ours - parts} - set(package.__all__)
    assert missing == set()


def test_the_words_of_arguments_are_those_that_are_accepted():
    assert get_args(package.LoadMode) == tuple(WriteMode)
    assert set(get_args(package.EngineName)) == set(ENGINES)
    assert set(get_args(package.Durability)) == set(Durability)
    hints = get_type_hints(package.Graph.load)
    assert (hints["mode"], hints["engine"]) == (package.LoadMode, package.EngineName)
    assert get_type_hints(package.open)["mode"] == package.OpenMode
