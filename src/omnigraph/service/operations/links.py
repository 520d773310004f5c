"""OpenAPI links: which operation takes a value from the answer of another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

GRAPH = "graph_id"
_GRAPH_OF_REQUEST = f"$request.path.{GRAPH}"


@dataclass(frozen=True, slots=True)
class Link:
    """What `operation` takes from an answer, as runtime expressions of OpenAPI.

    `parameters` are parameters, `body` members of the body. The graph is that of the request
    unless `parameters` names another.
    """

    operation: str
    parameters: Mapping[str, str] = field(default_factory=dict)
    body: Mapping[str, str] = field(default_factory=dict)

    def to_openapi(self) -> dict[str, Any]:
        """Return the link object of OpenAPI."""
        parameters = {GRAPH: _GRAPH_OF_REQUEST, **self.parameters}
        link: dict[str, Any] = {"operationId": self.operation, "parameters": parameters}
        return {**link, "requestBody": dict(self.body)} if self.body else link


def from_answer(path: str) -> str:
    """Return the expression for a member of the answer, by its JSON pointer."""
    return f"$response.body#/{path}"


def branch_links(path: str) -> tuple[Link, ...]:
    """Return the operations on a branch that an answer names."""
    branch = {"branch": from_answer(path)}
    read = ("cluster_getSnapshot", "cluster_listCommits", "cluster_pollChanges", "getBranch")
    written = ("cluster_query", "cluster_mutate", "cluster_load", "createTag")
    return (
        *(Link(operation, branch) for operation in read),
        *(Link(operation, body=branch) for operation in written),
        Link("cluster_mergeBranches", body={"source": from_answer(path)}),
        Link("cluster_deleteBranch", branch),
    )


def commit_links(path: str) -> tuple[Link, ...]:
    """Return the operations on a commit that an answer names."""
    commit, snapshot = {"commit_id": from_answer(path)}, {"snapshot": from_answer(path)}
    return (
        Link("cluster_getCommit", commit),
        Link("cluster_getCommitChanges", commit),
        Link("cluster_query", body=snapshot),
        Link("createTag", body=snapshot),
        Link("cluster_createBranch", body=snapshot),
        Link("revert", body=commit),
        Link("cherryPick", body=commit),
    )


def tag_links(path: str) -> tuple[Link, ...]:
    """Return the operations on a tag that an answer names."""
    tag = from_answer(path)
    return (Link("cluster_query", body={"snapshot": tag}), Link("deleteTag", {"tag": tag}))
