"""Errors reach the process that waits for a worker, with their class and their members."""

import pickle

import pytest

import omnigraph.graph as og
from omnigraph.catalog import TypeKind
from omnigraph.errors import (
    CleanupBegan,
    ExpectedVersionMismatch,
    InvalidInput,
    OmniError,
    OutcomeUnknown,
    PreconditionFailed,
    SchemaMoved,
)
from tests.support.fork_server import process_pool


@pytest.mark.parametrize(
    "error",
    [
        ExpectedVersionMismatch("node:Note", 1, 2),
        PreconditionFailed("01J", "01K"),
        SchemaMoved("old", "new"),
        OutcomeUnknown("01J"),
        CleanupBegan("01J"),
        InvalidInput("a message", code="some_code", type=str(TypeKind.NODE)),
    ],
    ids=lambda error: type(error).__name__,
)
def test_pickled_error_is_the_same(error):
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert (copy.to_json(), copy.args, vars(copy)) == (error.to_json(), error.args, vars(error))


def refused(uri, kind):
    """Do something that is refused, in another process."""
    graph = og.open(uri)
    if kind == "precondition":
        graph.mutate(
            'query q() { insert Note { slug: "b" } }', if_commit="01J0000000000000000000000"
        )
    elif kind == "violations":
        graph.load({"Note": [{"slug": None}]})
    elif kind == "diagnostics":
        graph.query("query q() { match { $n: Nope } return { $n.slug } }")
    else:
        graph.merge("side")


@pytest.mark.parametrize("kind", ["precondition", "violations", "diagnostics", "conflicts"])
def test_error_of_a_worker_is_the_one_of_the_same_call_here(tmp_path, kind):
    graph = og.init(tmp_path / "graph", "node Note { slug: String @key  text: String? }\n")
    graph.load({"Note": [{"slug": "a", "text": "1"}]})
    graph.branches.create("side")
    graph.load({"Note": [{"slug": "a", "text": "2"}]}, branch="side")
    graph.load({"Note": [{"slug": "a", "text": "3"}]})
    with pytest.raises(OmniError) as here:
        refused(graph.uri, kind)
    with process_pool(1) as pool, pytest.raises(OmniError) as there:
        pool.submit(refused, graph.uri, kind).result(60)
    assert type(there.value) is type(here.value)
    assert there.value.to_json() == here.value.to_json()
