"""A served graph has what an embedded one has, or says that it has not."""

import pytest

from omnigraph.errors import InvalidInput
from omnigraph.graph import Graph
from omnigraph.service.client.graph import RemoteGraph

BY_TOKEN = {"as_actor", "as_verified_actor", "under", "with_policy", "can_name"}
"""Who acts is known from the token, and what that actor may name is for the server to decide."""
DECLARED = {"checks", "with_checks"}
"""The checks before a merge are those that the server declares for its graph."""
MAINTENANCE = ["cleanup", "optimize", "recover", "repair", "verify"]
FILES = ["embed", "export_archive", "export_parquet", "export_parts"]


def public(face):
    return {name for name in dir(face) if not name.startswith("_")}


def test_what_an_embedded_graph_has_is_there():
    assert public(Graph) - public(RemoteGraph) == BY_TOKEN | DECLARED


@pytest.mark.parametrize("name", [*MAINTENANCE, *FILES, "analyze"])
def test_what_needs_the_graph_itself_says_so(name):
    with pytest.raises(InvalidInput, match=f"`{name}` needs the graph itself") as caught:
        getattr(RemoteGraph, name)(None, keep=1, confirm=True)
    assert caught.value.code == "remote_unsupported"


@pytest.mark.parametrize("name", ["indexes", "pipeline"])
def test_so_do_its_parts(name):
    with pytest.raises(InvalidInput, match=f"`{name}` needs the graph itself"):
        getattr(RemoteGraph.__new__(RemoteGraph), name)
