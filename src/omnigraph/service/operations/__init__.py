"""This package does what a front asks for: authorise, call the graph, answer in wire shape.

HTTP, MCP and the remote lane of the command line call the same functions. Each takes a
`GraphSession` (or the `GraphService`, where no graph is meant) and a request of `service.wire`;
each raises OmniError.
"""

from omnigraph.service.operations.blobs import OpenedBlob, open_blob
from omnigraph.service.operations.branching import (
    create_branch,
    delete_branch,
    list_branches,
    merge_branches,
)
from omnigraph.service.operations.changes import baseline, commit_changes, poll_changes
from omnigraph.service.operations.invoking import Invocation, invoke, list_queries, resolve, visible
from omnigraph.service.operations.own import (
    cherry_pick,
    create_tag,
    delete_tag,
    diff,
    entity,
    explain,
    get_branch,
    list_recoveries,
    list_tags,
    merge_base,
    plan_schema,
    revert,
)
from omnigraph.service.operations.proposing import ProposalRequest, ProposalResult, propose
from omnigraph.service.operations.reading import (
    default_graph,
    export,
    get_commit,
    get_schema,
    health,
    list_commits,
    list_graphs,
    query,
    ready,
    snapshot,
    stream,
)
from omnigraph.service.operations.writing import (
    LoadRequest,
    apply_schema,
    authorise_load,
    load,
    load_lines,
    mutate,
)

__all__ = [
    "Invocation",
    "LoadRequest",
    "OpenedBlob",
    "ProposalRequest",
    "ProposalResult",
    "apply_schema",
    "authorise_load",
    "baseline",
    "cherry_pick",
    "commit_changes",
    "create_branch",
    "create_tag",
    "default_graph",
    "delete_branch",
    "delete_tag",
    "diff",
    "entity",
    "explain",
    "export",
    "get_branch",
    "get_commit",
    "get_schema",
    "health",
    "invoke",
    "list_branches",
    "list_commits",
    "list_graphs",
    "list_queries",
    "list_recoveries",
    "list_tags",
    "load",
    "load_lines",
    "merge_base",
    "merge_branches",
    "mutate",
    "open_blob",
    "plan_schema",
    "poll_changes",
    "propose",
    "query",
    "ready",
    "resolve",
    "revert",
    "snapshot",
    "stream",
    "visible",
]
