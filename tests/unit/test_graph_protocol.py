"""Embedded and remote graphs have the signatures and docstrings of one protocol."""

import inspect

import pytest

from omnigraph.graph import Branches, Changes, Commits, Graph, Schema, Tags, protocol
from omnigraph.service.client import RemoteGraph, resources
from tests.support.protocols import embedded, remote

PAIRS = [
    (protocol.GraphApi, Graph),
    (protocol.GraphApi, RemoteGraph),
    (protocol.BranchesApi, Branches),
    (protocol.BranchesApi, resources.RemoteBranches),
    (protocol.TagsApi, Tags),
    (protocol.TagsApi, resources.RemoteTags),
    (protocol.CommitsApi, Commits),
    (protocol.CommitsApi, resources.RemoteCommits),
    (protocol.ChangesApi, Changes),
    (protocol.ChangesApi, resources.RemoteChanges),
    (protocol.SchemaApi, Schema),
    (protocol.SchemaApi, resources.RemoteSchema),
]


def shape(function):
    parameters = inspect.signature(function).parameters.values()
    return [(parameter.name, parameter.kind, parameter.default) for parameter in parameters]


@pytest.mark.parametrize(
    ("declared", "implementation"), PAIRS, ids=lambda one: one.__name__.removesuffix("Api")
)
def test_signatures_are_those_of_the_protocol(declared, implementation):
    for name, method in inspect.getmembers(declared, inspect.isfunction):
        if not name.startswith("_"):
            assert shape(getattr(implementation, name)) == shape(method), name


@pytest.mark.parametrize("implementation", sorted({b for _, b in PAIRS}, key=lambda c: c.__name__))
def test_every_public_method_is_documented(implementation):
    members = {n: getattr(implementation, n) for n in dir(implementation) if not n.startswith("_")}
    functions = {n for n, m in members.items() if inspect.isfunction(m) or isinstance(m, property)}
    undocumented = {name for name in functions if not inspect.getdoc(members[name])}
    assert undocumented <= {"indexes", "maintenance", "pipeline"} | REFUSED


@pytest.mark.parametrize(("declared", "implementation"), PAIRS)
def test_a_signature_with_many_arguments_is_written_once(declared, implementation):
    assert issubclass(implementation, declared)
    repeated = {n for n in vars(implementation) if not n.startswith("_") and n in vars(declared)}
    methods = [getattr(declared, n) for n in repeated if inspect.isfunction(getattr(declared, n))]
    assert all(len(inspect.signature(method).parameters) <= 5 for method in methods)


REFUSED = {"cleanup", "embed", "export_archive", "export_parquet", "export_parts"} | {
    *("analyze", "optimize", "recover", "repair", "verify")
}
"""Methods of an embedded graph that a remote one refuses."""


def test_either_graph_is_one_by_the_protocol():
    graph = Graph.__new__(Graph)
    assert embedded(graph) is graph
    address = resources.RemoteAddress(None, "g", "draft")
    with pytest.warns(DeprecationWarning, match="use `branch_name`"):
        assert remote(RemoteGraph(address)).on == "draft"
