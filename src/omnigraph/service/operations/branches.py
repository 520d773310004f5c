"""Operations on branches and tags: list, create, delete, merge."""

from __future__ import annotations

from omnigraph.commit.model import Branch, Tag
from omnigraph.policy.permissions import PolicyAction
from omnigraph.service import wire
from omnigraph.service.admission import BRANCH_BYTES
from omnigraph.service.operations import tool_arguments
from omnigraph.service.operations.access import (
    branch_name,
    known_branch,
    on_branch,
    on_graph,
    on_target,
    state,
)
from omnigraph.service.operations.answers import epoch_micros, merge_output
from omnigraph.service.operations.links import Link, branch_links, from_answer, tag_links
from omnigraph.service.operations.operation import Access, Tool, operation
from omnigraph.service.session import GraphSession


@operation(
    name="cluster_listBranches",
    route="GET /branches",
    tag="branches",
    summary="List the branches",
    access=on_graph(PolicyAction.READ),
    links=branch_links("branches/0"),
    tools=(Tool(name="branches_list", description="List the branches.", pages="branches"),),
)
def list_branches(session: GraphSession, _: wire.NoRequest) -> wire.BranchListOutput:
    """Return the names of all branches, main among them, sorted."""
    return wire.BranchListOutput(branches=session.graph.branches.list())


@operation(
    name="getBranch",
    route="GET /branches/{branch}",
    tag="branches",
    summary="Return a branch",
    access=on_branch(PolicyAction.READ),
    extension=True,
)
def get_branch(session: GraphSession, request: wire.BranchQuery) -> wire.BranchOutput:
    """Return a branch with its parent, and the commit it was created at."""
    return branch_output(session.graph.branches.get(branch_name(request.branch)))


def branch_output(branch: Branch) -> wire.BranchOutput:
    """Return the wire form of a branch."""
    return wire.BranchOutput(
        name=branch.name,
        parent=branch.parent,
        fork_commit_id=branch.fork_commit,
        actor_id=branch.actor,
        created_at=None if branch.created_at is None else epoch_micros(branch.created_at),
    )


def _branch_source(session: GraphSession, request: wire.BranchCreateRequest) -> tuple[str, str]:
    """Return the branch that a new one descends from, and the state to create it at."""
    if request.snapshot is None:
        source = branch_name(request.from_)
        return source, source
    resolved = state(session, request.from_, request.snapshot)
    return resolved.branch, resolved.commit_id


def _check_create_branch(session: GraphSession, request: wire.BranchCreateRequest) -> None:
    name = branch_name(request.name)
    source, _ = _branch_source(session, request)
    session.require(PolicyAction.BRANCH_CREATE, source, name)


@operation(
    name="cluster_createBranch",
    route="POST /branches",
    tag="branches",
    summary="Create a branch",
    access=Access(
        (PolicyAction.BRANCH_CREATE,), _check_create_branch, "from the source to the new branch"
    ),
    example={"name": "review/ada", "from": "main"},
    links=branch_links("name"),
    writes=True,
    tools=(
        Tool(
            name="branches_create",
            description="Create a branch.",
            arguments=tool_arguments.BranchCreateArguments,
        ),
    ),
)
def create_branch(
    session: GraphSession, request: wire.BranchCreateRequest
) -> wire.BranchCreateOutput:
    """Create a branch at the newest state of another, or at a commit ID, tag or time."""
    name = branch_name(request.name)
    source, at = _branch_source(session, request)
    with session.admit(BRANCH_BYTES):
        if request.snapshot is None:
            known_branch(session, source)
        session.graph.branches.create(name, from_=at)
    return wire.BranchCreateOutput(
        uri=session.registered.graph.uri, from_=source, name=name, actor_id=session.actor
    )


@operation(
    name="cluster_deleteBranch",
    route="DELETE /branches/{branch}",
    tag="branches",
    summary="Delete a branch",
    errors=(400, 404, 409, 429, 503),
    access=on_target(PolicyAction.BRANCH_DELETE),
    links=(Link("getBranch", {"branch": from_answer("name")}),),
    writes=True,
    tools=(
        Tool(
            name="branches_delete",
            description="Delete a branch.",
            arguments=tool_arguments.BranchDeleteArguments,
            adapter="branches_delete",
            destroys=True,
        ),
    ),
)
def delete_branch(session: GraphSession, request: wire.BranchQuery) -> wire.BranchDeleteOutput:
    """Delete a branch that no other branch descends from."""
    name = branch_name(request.branch)
    with session.admit(BRANCH_BYTES):
        session.graph.branches.delete(name)
    uri = session.registered.graph.uri
    return wire.BranchDeleteOutput(uri=uri, name=name, actor_id=session.actor)


def _check_merge(session: GraphSession, request: wire.BranchMergeRequest) -> None:
    source, target = branch_name(request.source), branch_name(request.target)
    if request.dry_run:
        session.require(PolicyAction.READ, source)
        session.require(PolicyAction.READ, target)
    else:
        session.require(PolicyAction.BRANCH_MERGE, source, target)
    if request.delete_branch and not request.dry_run:
        session.require(PolicyAction.BRANCH_DELETE, None, source)


@operation(
    name="cluster_mergeBranches",
    route="POST /branches/merge",
    tag="branches",
    summary="Merge a branch into another",
    access=Access(
        (PolicyAction.BRANCH_MERGE,),
        _check_merge,
        "from the source to the target; `read` on both for a dry run; `branch_delete` to delete",
    ),
    example={"source": "review/ada", "target": "main"},
    writes=True,
    tools=(
        Tool(
            name="branches_merge",
            description="Merge a branch into another; conflicts change nothing.",
            arguments=tool_arguments.BranchMergeArguments,
            destroys=True,
        ),
        Tool(
            name="merge",
            description="Merge a branch into another, decide conflicts, or with dry_run only "
            "report what would happen.",
            arguments=tool_arguments.MergeArguments,
            adapter="merge",
            destroys=True,
        ),
    ),
)
def merge_branches(
    session: GraphSession, request: wire.BranchMergeRequest
) -> wire.BranchMergeOutput:
    """Merge a branch into another, and delete it afterwards if `delete_branch` is set.

    With `dry_run` nothing changes, and the answer has the conflicts.
    """
    source, target = branch_name(request.source), branch_name(request.target)
    with session.admit(BRANCH_BYTES):
        result = session.graph.merge(
            source,
            target,
            dry_run=request.dry_run,
            strict=request.strict,
            resolve=request.resolve,
            delete_branch=request.delete_branch,
            timeout=session.timeout,
            message=request.message,
        )
    return merge_output(result)


def _check_merge_base(session: GraphSession, request: wire.MergeBaseQuery) -> None:
    for name in (request.one, request.other):
        state(session, None, name)


@operation(
    name="getMergeBase",
    route="GET /merge-base",
    tag="branches",
    summary="Find the best common ancestors of two states",
    access=Access((PolicyAction.READ,), _check_merge_base, "on the branches of both states"),
    extension=True,
    example={"one": "main", "other": "review/ada"},
    links=(Link("cluster_getCommit", {"commit_id": from_answer("commit_ids/0")}),),
)
def merge_base(session: GraphSession, request: wire.MergeBaseQuery) -> wire.MergeBaseOutput:
    """Return the IDs of the best common ancestors of two branches, tags, commits or times.

    `ahead` is how many commits `one` has that `other` lacks, `behind` how many it lacks.
    """
    states = [state(session, None, name) for name in (request.one, request.other)]
    diverged = session.graph.commits.divergence(*states)
    return wire.MergeBaseOutput(
        commit_ids=list(diverged.bases), ahead=diverged.ahead, behind=diverged.behind
    )


@operation(
    name="listTags",
    route="GET /tags",
    tag="tags",
    summary="List the tags",
    access=on_graph(PolicyAction.READ),
    extension=True,
    links=tag_links("tags/0/name"),
)
def list_tags(session: GraphSession, _: wire.NoRequest) -> wire.TagListOutput:
    """Return all tags with the commits they name, sorted by name."""
    return wire.TagListOutput(tags=[tag_output(tag) for tag in session.graph.tags.list()])


def _check_create_tag(session: GraphSession, request: wire.TagCreateRequest) -> None:
    at = state(session, request.branch, request.snapshot)
    session.require(PolicyAction.BRANCH_CREATE, at.branch, request.name.strip())


@operation(
    name="createTag",
    route="POST /tags",
    tag="tags",
    summary="Create a tag",
    access=Access(
        (PolicyAction.BRANCH_CREATE,), _check_create_tag, "from the branch of the state to the tag"
    ),
    extension=True,
    example={"name": "v1", "branch": "main"},
    links=tag_links("name"),
    writes=True,
)
def create_tag(session: GraphSession, request: wire.TagCreateRequest) -> wire.TagOutput:
    """Create a name for a commit that never moves."""
    at = state(session, request.branch, request.snapshot)
    with session.admit(BRANCH_BYTES):
        return tag_output(session.graph.tags.create(request.name, at))


def _check_delete_tag(session: GraphSession, request: wire.TagQuery) -> None:
    session.require(PolicyAction.BRANCH_DELETE, None, request.tag.strip())


@operation(
    name="deleteTag",
    route="DELETE /tags/{tag}",
    tag="tags",
    summary="Delete a tag",
    errors=(400, 404, 409, 429, 503),
    access=Access((PolicyAction.BRANCH_DELETE,), _check_delete_tag, "with the tag as the target"),
    extension=True,
    writes=True,
)
def delete_tag(session: GraphSession, request: wire.TagQuery) -> wire.TagOutput:
    """Delete a tag, and return it; the commit it named stays."""
    name = request.tag.strip()
    with session.admit(BRANCH_BYTES):
        tags = {tag.name: tag for tag in session.graph.tags.list()}
        session.graph.tags.delete(name)
        return tag_output(tags[name])


def tag_output(tag: Tag) -> wire.TagOutput:
    """Return the wire form of a tag."""
    return wire.TagOutput(
        name=tag.name,
        graph_commit_id=tag.commit_id,
        actor_id=tag.actor,
        created_at=epoch_micros(tag.created_at),
    )
