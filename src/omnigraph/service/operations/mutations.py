"""Operations that change data: mutations, loads, reverts, cherry-picks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import msgspec

from omnigraph.errors import InvalidInput
from omnigraph.graph.modes import LoadMode
from omnigraph.merge.model import MergeResult
from omnigraph.policy.permissions import PolicyAction
from omnigraph.service import wire
from omnigraph.service.admission import BRANCH_BYTES
from omnigraph.service.operations import tool_arguments
from omnigraph.service.operations.access import branch_name, on_branch, state
from omnigraph.service.operations.answers import merge_output, to_answer
from omnigraph.service.operations.links import commit_links
from omnigraph.service.operations.operation import Access, Tool, operation
from omnigraph.service.operations.paths import GRAPH_PATH, WRITE_ERRORS
from omnigraph.service.session import GraphSession

COMMIT_LINKS = commit_links("commit/graph_commit_id")
_EXAMPLE = {
    "query": "query add($name: String) { insert Person { name: $name } }",
    "params": {"name": "ada"},
    "branch": "main",
    "message": "Add Ada",
}


@operation(
    name="cluster_mutate",
    route="POST /mutate",
    tag="mutations",
    summary="Run a mutation as one commit",
    access=on_branch(PolicyAction.CHANGE),
    example=_EXAMPLE,
    links=COMMIT_LINKS,
    writes=True,
    condition_path="mutate/if-graph-commit",
    tools=(
        Tool(
            name="mutate",
            description="Change data on a branch at once, as one commit. "
            "`propose_change` is safer.",
            arguments=tool_arguments.MutateArguments,
            adapter="mutate",
            destroys=True,
        ),
    ),
)
def mutate(session: GraphSession, request: wire.ChangeRequest) -> wire.ChangeOutput:
    """Insert, update or delete entities of a branch, all or nothing."""
    return _mutate(session, request, None)


change = mutate.variant(
    name="cluster_change",
    path=f"{GRAPH_PATH}/change",
    successor="mutate",
    tools=(
        Tool(
            name="change",
            description="The same as `mutate`.",
            arguments=tool_arguments.MutateArguments,
            adapter="mutate",
            destroys=True,
        ),
    ),
)


def _check_conditional(session: GraphSession, request: wire.ConditionalChangeQuery) -> None:
    mutate.access.check(session, request.body)


@operation(
    name="cluster_mutate_if_graph_commit",
    route="POST /mutate/if-graph-commit",
    tag="mutations",
    summary="Run a mutation if the branch is at a commit",
    errors=(*WRITE_ERRORS, 412),
    access=Access((PolicyAction.CHANGE,), _check_conditional, "on the branch"),
    example=_EXAMPLE,
    links=COMMIT_LINKS,
    writes=True,
)
def mutate_if(session: GraphSession, request: wire.ConditionalChangeQuery) -> wire.ChangeOutput:
    """Run a mutation only if the branch is at the commit in the header; else status 412."""
    return _mutate(session, request.body, request.if_commit)


def _mutate(
    session: GraphSession, request: wire.ChangeRequest, if_commit: str | None
) -> wire.ChangeOutput:
    branch = branch_name(request.branch)
    size = len(request.query) + len(msgspec.json.encode(request.params))
    with session.admit(size):
        result = session.graph.mutate(
            request.query,
            request.params,
            name=request.name,
            branch=branch,
            if_commit=if_commit,
            timeout=session.timeout,
            message=request.message,
        )
    return to_answer(result.to_json(), wire.ChangeOutput)


@dataclass(frozen=True, slots=True)
class LoadRequest:
    """How lines are loaded, with every default filled in."""

    branch: str
    from_: str | None
    mode: wire.LoadMode
    message: str | None = None
    partial: bool = False
    vectors_from: str | None = None

    @classmethod
    def of(cls, request: wire.IngestRequest | wire.LoadLinesQuery) -> LoadRequest:
        """Read a request; an unknown mode is refused."""
        modes = [str(mode) for mode in wire.LoadMode]
        if request.mode is not None and request.mode not in modes:
            message = f"unknown load mode '{request.mode}'; it is one of {', '.join(modes)}"
            raise InvalidInput(message, code="load_mode_invalid")
        fork = None if request.from_ is None else branch_name(request.from_)
        mode = wire.LoadMode(request.mode or wire.LoadMode.MERGE)
        if isinstance(request, wire.IngestRequest):
            return cls(branch_name(request.branch), fork, mode)
        return cls(
            branch_name(request.branch),
            fork,
            mode,
            request.message,
            bool(request.partial),
            request.vectors_from,
        )


def _check_load(session: GraphSession, request: wire.IngestRequest | wire.LoadLinesQuery) -> None:
    load_request = LoadRequest.of(request)
    branch = load_request.branch
    if load_request.from_ is not None and not session.graph.branches.exists(branch):
        session.require(PolicyAction.BRANCH_CREATE, load_request.from_, branch)
    session.require(PolicyAction.CHANGE, branch)


_LOAD_ACCESS = Access(
    (PolicyAction.CHANGE,), _check_load, "on the branch; `branch_create` when it does not exist"
)


@operation(
    name="cluster_load",
    route="POST /load",
    tag="mutations",
    summary="Load records as one commit",
    access=_LOAD_ACCESS,
    example={
        "data": '{"type": "Person", "data": {"name": "ada"}}\n',
        "branch": "main",
        "mode": "merge",
    },
    links=COMMIT_LINKS,
    writes=True,
    large_body=True,
)
def load(session: GraphSession, request: wire.IngestRequest) -> wire.IngestOutput:
    """Load nodes and edges given as lines of JSON in one string, by the lenient grammar."""
    members = _load(session, LoadRequest.of(request), request.data.encode(), strict=False)
    return to_answer({**members, "uri": session.registered.graph.uri}, wire.IngestOutput)


ingest = load.variant(
    name="cluster_ingest",
    path=f"{GRAPH_PATH}/ingest",
    successor="load",
    tools=(
        Tool(
            name="ingest",
            description="Load nodes and edges given as lines of JSON, as one commit.",
            arguments=tool_arguments.IngestArguments,
            destroys=True,
        ),
    ),
)


@operation(
    name="cluster_loadNdjson",
    route="POST /load/ndjson",
    tag="mutations",
    summary="Load lines of JSON as one commit",
    access=_LOAD_ACCESS,
    example={"branch": "main", "mode": "append"},
    links=COMMIT_LINKS,
    writes=True,
    large_body=True,
    handler="load_lines",
)
def load_lines(session: GraphSession, request: wire.LoadLinesQuery) -> wire.GraphBatchLoadOutput:
    """Load nodes and edges given as lines of JSON in the body, by the strict grammar."""
    try:
        request.data.decode()
    except UnicodeDecodeError as error:
        message = f"the body is not UTF-8 text: byte {error.start} is not"
        raise InvalidInput(message, code="body_malformed") from error
    members = _load(session, LoadRequest.of(request), request.data, strict=True)
    return to_answer(members, wire.GraphBatchLoadOutput)


def _load(
    session: GraphSession, request: LoadRequest, data: bytes, *, strict: bool
) -> dict[str, object]:
    with session.admit(len(data)):
        result = session.graph.load(
            data,
            mode=cast(LoadMode, str(request.mode)),
            branch=request.branch,
            from_=request.from_,
            strict=strict,
            message=request.message,
            partial=request.partial,
            vectors_from=request.vectors_from,
            timeout=session.timeout,
        )
    return result.to_json()


@operation(
    name="revert",
    route="POST /revert",
    tag="mutations",
    summary="Revert a commit",
    access=on_branch(PolicyAction.CHANGE),
    extension=True,
    example={"commit_id": "01J0000000000000000000000", "branch": "main"},
    writes=True,
)
def revert(session: GraphSession, request: wire.PickRequest) -> wire.BranchMergeOutput:
    """Undo the changes of a commit on a branch, as a new commit."""
    return _apply_commit(session, request, session.graph.revert)


def _check_cherry_pick(session: GraphSession, request: wire.PickRequest) -> None:
    branch = branch_name(request.branch)
    state(session, None, request.commit_id)
    session.require(PolicyAction.CHANGE, branch)


@operation(
    name="cherryPick",
    route="POST /cherry-pick",
    tag="mutations",
    summary="Apply the changes of a commit to another branch",
    access=Access(
        (PolicyAction.READ, PolicyAction.CHANGE),
        _check_cherry_pick,
        "on the branch of the commit, and on the branch that changes",
    ),
    extension=True,
    example={"commit_id": "01J0000000000000000000000", "branch": "main"},
    writes=True,
)
def cherry_pick(session: GraphSession, request: wire.PickRequest) -> wire.BranchMergeOutput:
    """Apply what a commit changed on its branch to another branch, as a new commit."""
    return _apply_commit(session, request, session.graph.cherry_pick)


def _apply_commit(
    session: GraphSession, request: wire.PickRequest, apply: Callable[..., MergeResult]
) -> wire.BranchMergeOutput:
    with session.admit(BRANCH_BYTES):
        result = apply(
            request.commit_id,
            branch=branch_name(request.branch),
            dry_run=request.dry_run,
            resolve=request.resolve,
            message=request.message,
        )
    return merge_output(result)
