"""This module lists, makes, deletes and merges branches."""

from __future__ import annotations

from omnigraph.merge.model import MergeResult
from omnigraph.policy.permissions import PolicyAction
from omnigraph.service import wire
from omnigraph.service.admission import BRANCH_BYTES
from omnigraph.service.operations.reading import shaped
from omnigraph.service.operations.targets import branch_name, known_branch, state
from omnigraph.service.session import GraphSession


def list_branches(visit: GraphSession) -> wire.BranchListOutput:
    """List the names of all branches."""
    visit.require(PolicyAction.READ)
    return wire.BranchListOutput(branches=visit.graph.branches.list())


def create_branch(
    visit: GraphSession, request: wire.BranchCreateRequest
) -> wire.BranchCreateOutput:
    """Make a branch at the newest state of another."""
    name = branch_name(request.name)
    if request.snapshot is None:
        source = at = branch_name(request.from_)
    else:
        found = state(visit, request.from_, request.snapshot)
        source, at = found.branch, found.commit_id
    visit.require(PolicyAction.BRANCH_CREATE, source, name)
    with visit.admit(BRANCH_BYTES):
        if request.snapshot is None:
            known_branch(visit, source)
        visit.graph.branches.create(name, from_=at)
    return wire.BranchCreateOutput(
        uri=visit.served.graph.uri, from_=source, name=name, actor_id=visit.actor
    )


def delete_branch(visit: GraphSession, branch: str) -> wire.BranchDeleteOutput:
    """Delete a branch."""
    name = branch_name(branch)
    visit.require(PolicyAction.BRANCH_DELETE, None, name)
    with visit.admit(BRANCH_BYTES):
        visit.graph.branches.delete(name)
    uri = visit.served.graph.uri
    return wire.BranchDeleteOutput(uri=uri, name=name, actor_id=visit.actor)


def merge_branches(visit: GraphSession, request: wire.BranchMergeRequest) -> wire.BranchMergeOutput:
    """Merge a branch into another, and delete it if that was asked for."""
    source, target = branch_name(request.source), branch_name(request.target)
    if request.dry_run:
        visit.require(PolicyAction.READ, source)
        visit.require(PolicyAction.READ, target)
    else:
        visit.require(PolicyAction.BRANCH_MERGE, source, target)
    if request.delete_branch and not request.dry_run:
        visit.require(PolicyAction.BRANCH_DELETE, None, source)
    with visit.admit(BRANCH_BYTES):
        done = visit.graph.merge(
            source,
            target,
            dry_run=request.dry_run,
            strict=request.strict,
            resolve=request.resolve,
            delete_branch=request.delete_branch,
            message=request.message,
        )
    return merge_output(done)


def merge_output(done: MergeResult) -> wire.BranchMergeOutput:
    """Return the wire form of a merge; one that was only tried tells what would happen."""
    return shaped(done.to_json(), wire.BranchMergeOutput)
