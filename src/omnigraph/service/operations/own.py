"""This module does what goes beyond the common contract: explain, compare, tag, undo, plan."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from omnigraph.commit.model import Branch, Tag
from omnigraph.policy.permissions import PolicyAction
from omnigraph.service import wire
from omnigraph.service.admission import BRANCH_BYTES
from omnigraph.service.operations.branching import merge_output
from omnigraph.service.operations.reading import least, shaped
from omnigraph.service.operations.targets import branch_name, state
from omnigraph.service.session import GraphSession

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def explain(visit: GraphSession, request: wire.ExplainRequest) -> wire.ExplainOutput:
    """Show how a query is answered."""
    at = state(visit, request.branch, request.snapshot)
    found = visit.graph.explain(
        request.query,
        request.params,
        name=request.name,
        at=at,
        analyze=request.analyze,
        timeout=least(request.timeout_seconds, visit.service.seconds),
        memory=least(request.memory_bytes, visit.service.memory),
    )
    return shaped(found.to_json(), wire.ExplainOutput)


def diff(visit: GraphSession, request: wire.DiffRequest) -> Iterator[str]:
    """Return what became of each entity between two states, one line of JSON each."""
    old, new = (state(visit, None, name) for name in (request.from_, request.to))
    changes = visit.graph.diff(old, new, kinds=request.kind, types=request.type, ops=request.op)
    return (json.dumps(change.to_json(), ensure_ascii=False) for change in changes)


def entity(
    visit: GraphSession, type_name: str, id_: str, branch: str | None, snapshot: str | None
) -> wire.EntityOutput:
    """Return one entity as a state shows it."""
    at = state(visit, branch, snapshot)
    return wire.EntityOutput(entity=visit.graph.entity_at(type_name, id_, at))


def get_branch(visit: GraphSession, name: str) -> wire.BranchOutput:
    """Return a branch and where it comes from."""
    visit.require(PolicyAction.READ, branch_name(name))
    return branch_output(visit.graph.branches.get(branch_name(name)))


def branch_output(branch: Branch) -> wire.BranchOutput:
    """Return the wire form of a branch."""
    return wire.BranchOutput(
        name=branch.name,
        parent=branch.parent,
        fork_commit_id=branch.fork_commit,
        actor_id=branch.actor,
        created_at=None if branch.created_at is None else _micros(branch.created_at),
    )


def list_tags(visit: GraphSession) -> wire.TagListOutput:
    """List the tags by name."""
    visit.require(PolicyAction.READ)
    return wire.TagListOutput(tags=[_tag(tag) for tag in visit.graph.tags.list()])


def create_tag(visit: GraphSession, request: wire.TagCreateRequest) -> wire.TagOutput:
    """Give a state a name that never moves."""
    at = state(visit, request.branch, request.snapshot)
    visit.require(PolicyAction.BRANCH_CREATE, at.branch, request.name)
    with visit.admit(BRANCH_BYTES):
        return _tag(visit.graph.tags.create(request.name, at))


def delete_tag(visit: GraphSession, name: str) -> wire.TagOutput:
    """Forget a tag; return what it was."""
    visit.require(PolicyAction.BRANCH_DELETE, None, name)
    with visit.admit(BRANCH_BYTES):
        known = {tag.name: tag for tag in visit.graph.tags.list()}
        visit.graph.tags.delete(name)
        return _tag(known[name])


def revert(visit: GraphSession, request: wire.PickRequest) -> wire.BranchMergeOutput:
    """Undo what a commit did, as a commit."""
    branch = branch_name(request.branch)
    visit.require(PolicyAction.CHANGE, branch)
    with visit.admit(BRANCH_BYTES):
        done = visit.graph.revert(
            request.commit_id,
            branch=branch,
            dry_run=request.dry_run,
            resolve=request.resolve,
            message=request.message,
        )
    return merge_output(done)


def cherry_pick(visit: GraphSession, request: wire.PickRequest) -> wire.BranchMergeOutput:
    """Do on a branch what a commit did elsewhere, as a commit."""
    branch = branch_name(request.branch)
    state(visit, None, request.commit_id)
    visit.require(PolicyAction.CHANGE, branch)
    with visit.admit(BRANCH_BYTES):
        done = visit.graph.cherry_pick(
            request.commit_id,
            branch=branch,
            dry_run=request.dry_run,
            resolve=request.resolve,
            message=request.message,
        )
    return merge_output(done)


def plan_schema(visit: GraphSession, request: wire.SchemaPlanRequest) -> wire.SchemaPlanOutput:
    """List the steps from an accepted schema to another."""
    at = state(visit, request.branch, request.snapshot)
    found = visit.graph.schema.plan(
        request.schema_source, allow_data_loss=request.allow_data_loss, at=at
    )
    return shaped(found.to_json(), wire.SchemaPlanOutput)


def merge_base(visit: GraphSession, one: str, other: str) -> wire.MergeBaseOutput:
    """Return the best common ancestors of two states."""
    states = [state(visit, None, name) for name in (one, other)]
    return wire.MergeBaseOutput(commit_ids=list(visit.graph.commits.merge_base(*states)))


def list_recoveries(visit: GraphSession) -> wire.RecoveryListOutput:
    """Return the audit of recovery."""
    visit.require(PolicyAction.ADMIN)
    rows = [{**row, "created_at": _micros(row["created_at"])} for row in visit.graph.recoveries()]
    return shaped({"recoveries": rows}, wire.RecoveryListOutput)


def _tag(tag: Tag) -> wire.TagOutput:
    return wire.TagOutput(
        name=tag.name,
        graph_commit_id=tag.commit_id,
        actor_id=tag.actor,
        created_at=_micros(tag.created_at),
    )


def _micros(instant: datetime) -> int:
    return (instant - _EPOCH) // timedelta(microseconds=1)
