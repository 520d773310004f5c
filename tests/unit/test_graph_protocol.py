"""Embedded and remote graphs have the signatures and docstrings of one protocol."""

import inspect

import pytest

from omnigraph.graph import Branches, Changes, Commits, Graph, Schema, Tags, protocol
from omnigraph.service.client import RemoteGraph, resources
from tests.support.protocols import embedded, remote

PAIRS = [
    (protocol.GraphProtocol, Graph),
    (protocol.GraphProtocol, RemoteGraph),
    (protocol.BranchesProtocol, Branches),
    (protocol.BranchesProtocol, resources.RemoteBranches),
    (protocol.TagsProtocol, Tags),
    (protocol.TagsProtocol, resources.RemoteTags),
    (protocol.CommitsProtocol, Commits),
    (protocol.CommitsProtocol, resources.RemoteCommits),
    (protocol.ChangesProtocol, Changes),
    (protocol.ChangesProtocol, resources.RemoteChanges),
    (protocol.SchemaProtocol, Schema),
    (protocol.SchemaProtocol, resources.RemoteSchema),
]


def shape(function):
    parameters = inspect.signature(function).parameters.values()
    return [(parameter.name, parameter.kind, parameter.default) for parameter in parameters]


@pytest.mark.parametrize(
    ("declared", "implementation"), PAIRS, ids=lambda one: one.__name__.removesuffix("Protocol")
)
def test_signatures_are_those_of_the_protocol(declared, implementation):
    for name, method in inspect.getmembers(declared, inspect.isfunction):
        if not name.startswith("_"):
            assert shape(getattr(implementation, name)) == shape(method), name


@pytest.mark.parametrize("implementation", sorted({b for _, b in PAIRS}, key=lambda c: c.__name__))
def test_every_public_method_is_documented(implementation):
    members = {n: m for n, m in vars(implementation).items() if not n.startswith("_")}
    functions = {n for n, m in members.items() if inspect.isfunction(m) or isinstance(m, property)}
    undocumented = {name for name in functions if not inspect.getdoc(members[name])}
    assert undocumented <= {"indexes", "pipeline"} | REFUSED


REFUSED = {"cleanup", "embed", "export_archive", "export_parquet", "export_parts"} | {
    *("optimize", "recover", "repair", "verify")
}
"""Methods of an embedded graph that a remote one refuses."""


def test_either_graph_is_one_by_the_protocol():
    graph = Graph.__new__(Graph)
    assert embedded(graph) is graph
    address = resources.RemoteAddress(None, "g", "draft")
    with pytest.warns(DeprecationWarning, match="use `branch_name`"):
        assert remote(RemoteGraph(address)).on == "draft"
