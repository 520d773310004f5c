"""Operations on proposals to merge a branch, and on the protection of branches."""

from __future__ import annotations

import json
from collections.abc import Iterator

from omnigraph.graph.proposal_protocol import Proposal
from omnigraph.policy.permissions import PolicyAction
from omnigraph.policy.protection_rules import parse_rules
from omnigraph.service import wire
from omnigraph.service.admission import BRANCH_BYTES
from omnigraph.service.operations import tool_arguments
from omnigraph.service.operations.access import READ_STATE, branch_name, on_graph, state
from omnigraph.service.operations.answers import merge_output, to_answer
from omnigraph.service.operations.links import Link, from_answer
from omnigraph.service.operations.operation import Access, Tool, operation
from omnigraph.service.operations.paths import WRITE_ERRORS
from omnigraph.service.operations.stored import visible
from omnigraph.service.session import GraphSession

DEFAULT_PROPOSALS, DEFAULT_EVENTS = 50, 100
"""Items of a page unless the caller says otherwise."""


def _number(text: str) -> int:
    """Return the number of a proposal or a comment; 0, which is none, for anything else."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else 0


def _check_read(session: GraphSession, _: object) -> None:
    """Let in actors that may read some branch; the others do not exist."""
    if not session.may_somewhere(PolicyAction.READ):
        session.require(PolicyAction.READ)


_READ = Access((PolicyAction.READ,), _check_read, "on both branches")


def _check_manage(
    session: GraphSession, request: wire.ProposalEditQuery | wire.ProposalCloseQuery
) -> None:
    """Let in the author, and actors that may merge into the target, also without a policy."""
    _check_read(session, request)
    proposal = _proposal(session, request.number)
    if session.actor is None or session.actor != proposal.author:
        session.require(PolicyAction.BRANCH_MERGE, proposal.source, proposal.target)


_MANAGE = Access(
    (PolicyAction.READ,),
    _check_manage,
    "on both branches; `branch_merge` from the source to the target for those of others",
)


def _check_create(session: GraphSession, request: wire.ProposalCreateRequest) -> None:
    for name in (branch_name(request.source), branch_name(request.target)):
        session.require(PolicyAction.READ, name)


def _check_merge(session: GraphSession, request: wire.ProposalMergeQuery) -> None:
    if not session.may_somewhere(PolicyAction.BRANCH_MERGE):
        session.require(PolicyAction.BRANCH_MERGE)
    source, target = session.graph.proposals.branches(_number(request.number))
    session.require(PolicyAction.BRANCH_MERGE, source, target)
    if request.body.delete_branch:
        session.require(PolicyAction.BRANCH_DELETE, None, source)


def _proposal(session: GraphSession, number: str) -> Proposal:
    return session.graph.proposals.get(_number(number))


def _output(proposal: Proposal) -> wire.ProposalOutput:
    return to_answer(proposal.to_json(), wire.ProposalOutput)


def _links(path: str) -> tuple[Link, ...]:
    """Return the operations on a proposal that an answer names."""
    number = {"number": from_answer(path)}
    names = ("getProposal", "previewProposal", "diffProposal", "mergeProposal", "closeProposal")
    return tuple(Link(name, number) for name in names)


@operation(
    name="listProposals",
    route="GET /proposals",
    tag="proposals",
    summary="List the proposals, newest first",
    access=_READ,
    extension=True,
    example={"state": "open", "limit": 50},
    links=_links("proposals/0/number"),
    tools=(
        Tool(
            name="proposals_list",
            description="List proposals to merge a branch: open ones, or by state and reviewer.",
            arguments=tool_arguments.ProposalListArguments,
            pages="proposals",
            adapter="proposals_list",
        ),
    ),
)
def list_proposals(
    session: GraphSession, request: wire.ProposalListQuery
) -> wire.ProposalListOutput:
    """Return a page of proposals: those that are open, or by state, author, reviewer and target."""
    page = session.graph.proposals.page(
        request.state or "open",
        author=request.author,
        reviewer=request.reviewer,
        target=request.target,
        limit=DEFAULT_PROPOSALS if request.limit is None else request.limit,
        page_token=request.page_token,
    )
    return to_answer(page.to_json(), wire.ProposalListOutput)


@operation(
    name="getProposal",
    route="GET /proposals/{number}",
    tag="proposals",
    summary="Return a proposal with its conversation",
    access=_READ,
    extension=True,
    example={"number": "1"},
    tools=(
        Tool(
            name="proposal_get",
            description="Show a proposal: description, comments, reviews, checks, requirements.",
            arguments=tool_arguments.ProposalArguments,
            adapter="proposal",
        ),
    ),
)
def get_proposal(session: GraphSession, request: wire.ProposalQuery) -> wire.ProposalOutput:
    """Return a proposal with its comments, reviews, checks, and what its target requires."""
    return _output(_proposal(session, request.number))


@operation(
    name="createProposal",
    route="POST /proposals",
    tag="proposals",
    summary="Propose to merge a branch",
    access=Access((PolicyAction.READ,), _check_create, "on both branches"),
    extension=True,
    example={"source": "review/ada", "target": "main", "title": "Harbours of Norway"},
    links=_links("number"),
    writes=True,
    tools=(
        Tool(
            name="proposal_create",
            description="Propose to merge a branch into another, for review by others.",
            arguments=tool_arguments.ProposalCreateArguments,
        ),
    ),
)
def create_proposal(
    session: GraphSession, request: wire.ProposalCreateRequest
) -> wire.ProposalOutput:
    """Open a proposal; there is one open proposal for a source and a target."""
    with session.admit(BRANCH_BYTES):
        proposal = session.graph.proposals.create(
            branch_name(request.source),
            into=branch_name(request.target),
            title=request.title,
            description=request.description,
            reviewers=request.reviewers,
        )
    return _output(proposal)


@operation(
    name="editProposal",
    route="POST /proposals/{number}/edit",
    tag="proposals",
    summary="Change the title, the description or the reviewers of a proposal",
    access=_MANAGE,
    extension=True,
    example={"title": "Harbours of Norway and Sweden"},
    writes=True,
)
def edit_proposal(session: GraphSession, request: wire.ProposalEditQuery) -> wire.ProposalOutput:
    """Change the text of a proposal: for its author, or who may merge into its target."""
    body = request.body
    with session.admit(BRANCH_BYTES):
        proposal = _proposal(session, request.number).edit(
            title=body.title, description=body.description, reviewers=body.reviewers
        )
    return _output(proposal)


@operation(
    name="closeProposal",
    route="POST /proposals/{number}/close",
    tag="proposals",
    summary="Close a proposal without merging it",
    access=_MANAGE,
    extension=True,
    example={"comment": "Done otherwise."},
    writes=True,
    tools=(
        Tool(
            name="proposal_close",
            description="Close a proposal without merging it; it can be opened again.",
            arguments=tool_arguments.ProposalCloseArguments,
            adapter="proposal",
        ),
    ),
)
def close_proposal(session: GraphSession, request: wire.ProposalCloseQuery) -> wire.ProposalOutput:
    """Close a proposal: for its author, or who may merge into its target."""
    with session.admit(BRANCH_BYTES):
        return _output(_proposal(session, request.number).close(request.body.comment))


@operation(
    name="reopenProposal",
    route="POST /proposals/{number}/reopen",
    tag="proposals",
    summary="Open a closed proposal again",
    access=_MANAGE,
    extension=True,
    example={"comment": "It is needed after all."},
    writes=True,
)
def reopen_proposal(session: GraphSession, request: wire.ProposalCloseQuery) -> wire.ProposalOutput:
    """Open a closed proposal again: for its author, or who may merge into its target."""
    with session.admit(BRANCH_BYTES):
        return _output(_proposal(session, request.number).reopen(request.body.comment))


@operation(
    name="commentProposal",
    route="POST /proposals/{number}/comments",
    tag="proposals",
    summary="Comment on a proposal",
    access=_READ,
    extension=True,
    example={"body": "The depth looks wrong.", "on": {"type": "Person", "id": "ada"}},
    writes=True,
    tools=(
        Tool(
            name="proposal_comment",
            description="Comment on a proposal, on one of its entities, or reply in a thread.",
            arguments=tool_arguments.ProposalCommentArguments,
            adapter="proposal",
        ),
    ),
)
def comment_proposal(
    session: GraphSession, request: wire.ProposalCommentQuery
) -> wire.CommentOutput:
    """Add a comment on the whole, a type, an entity or a property; or a reply in a thread."""
    body = request.body
    on = None
    if body.on is not None:
        members = {"type": body.on.type, "id": body.on.id, "property": body.on.property}
        on = {name: value for name, value in members.items() if value is not None}
        on |= {} if body.on.kind is None else {"kind": body.on.kind}
    with session.admit(BRANCH_BYTES):
        made = _proposal(session, request.number).comment(body.body, on=on, thread=body.thread)
    return to_answer(made.to_json(), wire.CommentOutput)


@operation(
    name="resolveProposalComment",
    route="POST /proposals/{number}/comments/{comment_id}/resolve",
    tag="proposals",
    summary="Resolve the thread of a comment",
    access=_READ,
    extension=True,
    example={"resolved": True},
    writes=True,
)
def resolve_comment(session: GraphSession, request: wire.ResolveCommentQuery) -> wire.CommentOutput:
    """Resolve the thread of a comment, or open it again; return its first comment."""
    with session.admit(BRANCH_BYTES):
        comment = _proposal(session, request.number).resolve(
            _number(request.comment_id), resolved=request.body.resolved
        )
    return to_answer(comment.to_json(), wire.CommentOutput)


@operation(
    name="reviewProposal",
    route="POST /proposals/{number}/reviews",
    tag="proposals",
    summary="Review a proposal",
    access=_READ,
    extension=True,
    example={"verdict": "approve", "body": "Looks right."},
    writes=True,
    tools=(
        Tool(
            name="proposal_review",
            description="Review a proposal: approve it, request changes, or only comment.",
            arguments=tool_arguments.ProposalReviewArguments,
            adapter="proposal",
        ),
    ),
)
def review_proposal(session: GraphSession, request: wire.ProposalReviewQuery) -> wire.ReviewOutput:
    """Approve, request changes or comment, about the newest commit of the source."""
    body = request.body
    with session.admit(BRANCH_BYTES):
        made = _proposal(session, request.number).review(
            body.verdict, body.body, commit=body.commit
        )
    return to_answer(made.to_json(), wire.ReviewOutput)


@operation(
    name="runProposalChecks",
    route="POST /proposals/{number}/checks",
    tag="proposals",
    summary="Run the checks of a proposal",
    access=_READ,
    extension=True,
    writes=True,
    tools=(
        Tool(
            name="proposal_check",
            description="Run the checks on the state that merging a proposal now would make.",
            arguments=tool_arguments.ProposalArguments,
            adapter="proposal",
        ),
    ),
)
def run_checks(session: GraphSession, request: wire.ProposalQuery) -> wire.CheckRunListOutput:
    """Run the stored checks on the state that merging the proposal now would make."""
    with session.admit(BRANCH_BYTES):
        runs = _proposal(session, request.number).run_checks()
    return to_answer({"checks": [run.to_json() for run in runs]}, wire.CheckRunListOutput)


@operation(
    name="previewProposal",
    route="GET /proposals/{number}/preview",
    tag="proposals",
    summary="Show what merging a proposal would do",
    access=_READ,
    extension=True,
    errors=(400, 404, 409, 503),
)
def preview_proposal(
    session: GraphSession, request: wire.ProposalQuery
) -> wire.ProposalPreviewOutput:
    """Return counts by type, conflicts and schema steps of merging the proposal now."""
    preview = _proposal(session, request.number).preview()
    merge = merge_output(preview.merge)
    counts = preview.to_json()["summary"]
    return wire.ProposalPreviewOutput(merge=merge, summary=counts, schema=preview.schema)


@operation(
    name="diffProposal",
    route="GET /proposals/{number}/diff",
    tag="proposals",
    summary="List the entities that a proposal changes",
    access=_READ,
    extension=True,
    errors=(400, 404, 409, 503),
    tools=(
        Tool(
            name="proposal_diff",
            description="List the entities that a proposal changes, before and after.",
            arguments=tool_arguments.ProposalDiffArguments,
            adapter="proposal_diff",
        ),
    ),
)
def diff_proposal(session: GraphSession, request: wire.ProposalDiffQuery) -> Iterator[str]:
    """Return each entity that the proposal changes, compared with the merge base, as lines."""
    changes = _proposal(session, request.number).diff(
        kinds=request.kind, types=request.type, ops=request.op
    )
    return (json.dumps(change.to_json(), ensure_ascii=False) for change in changes)


@operation(
    name="mergeProposal",
    route="POST /proposals/{number}/merge",
    tag="proposals",
    summary="Merge a proposal",
    access=Access(
        (PolicyAction.BRANCH_MERGE,),
        _check_merge,
        "from the source to the target; `read` on both; `branch_delete` to delete",
    ),
    extension=True,
    example={"delete_branch": False},
    writes=True,
    tools=(
        Tool(
            name="proposal_merge",
            description="Merge a proposal if its checks pass and its target's rules are satisfied.",
            arguments=tool_arguments.ProposalMergeArguments,
            adapter="proposal",
            destroys=True,
        ),
    ),
)
def merge_proposal(
    session: GraphSession, request: wire.ProposalMergeQuery
) -> wire.BranchMergeOutput:
    """Run the checks on the staged merge and publish it if the target's rules are satisfied."""
    body = request.body
    with session.admit(BRANCH_BYTES):
        result = _proposal(session, request.number).merge(
            resolve=body.resolve,
            delete_branch=body.delete_branch,
            message=body.message,
            timeout=session.timeout,
        )
    return merge_output(result)


@operation(
    name="listProposalEvents",
    route="GET /proposal-events",
    tag="proposals",
    summary="List the events of proposals in order",
    access=_READ,
    extension=True,
    example={"limit": 100},
    tools=(
        Tool(
            name="proposal_events",
            description="List what happened to proposals after a cursor, in order.",
            arguments=tool_arguments.ProposalEventsArguments,
        ),
    ),
)
def list_events(
    session: GraphSession, request: wire.ProposalEventsQuery
) -> wire.ProposalEventListOutput:
    """Return the events after a cursor, of all proposals or of one, and the next cursor."""
    limit = DEFAULT_EVENTS if request.limit is None else request.limit
    proposals = session.graph.proposals
    page = proposals.events(request.after, proposal=request.proposal, limit=limit)
    return to_answer(page.to_json(), wire.ProposalEventListOutput)


@operation(
    name="runChecks",
    route="GET /checks",
    tag="proposals",
    summary="Run the checks on a state",
    access=READ_STATE,
    extension=True,
    example={"branch": "main"},
    tools=(
        Tool(
            name="checks_run",
            description="Run the stored checks on a branch, or on a commit ID, tag or time.",
            arguments=tool_arguments.ChecksArguments,
        ),
    ),
)
def run_stored_checks(
    session: GraphSession, request: wire.ChecksQuery
) -> wire.CheckResultListOutput:
    """Run the stored queries with `@check` that the caller may see; each row is a finding."""
    at = state(session, request.branch, request.snapshot)
    graph = session.graph
    seen = {stored.name for stored in visible(session)}
    shown = graph.with_checks([check for check in graph.checks if check.name in seen])
    results = [result.to_json() for result in shown.run_checks(at=at)]
    return to_answer({"checks": results}, wire.CheckResultListOutput)


@operation(
    name="getProtection",
    route="GET /protection",
    tag="proposals",
    summary="Return the protection of branches",
    access=on_graph(PolicyAction.READ),
    extension=True,
    links=(Link("listProposals"),),
)
def get_protection(session: GraphSession, _: wire.NoRequest) -> wire.ProtectionOutput:
    """Return the rules stored in the graph, and those of its policy, which count as well."""
    return to_answer(session.graph.protection.to_json(), wire.ProtectionOutput)


@operation(
    name="setProtection",
    route="PUT /protection",
    tag="proposals",
    summary="Replace the protection of branches",
    access=on_graph(PolicyAction.ADMIN),
    extension=True,
    example={"rules": [{"branches": ["release/*"], "require": {"approvals": 1}}]},
    writes=True,
)
def set_protection(session: GraphSession, request: wire.ProtectionRequest) -> wire.ProtectionOutput:
    """Store rules that every writer is held to, in place of those that are stored."""
    with session.admit(BRANCH_BYTES):
        session.graph.protection.set(parse_rules(request.rules))
    return to_answer(session.graph.protection.to_json(), wire.ProtectionOutput)


@operation(
    name="clearProtection",
    route="DELETE /protection",
    tag="proposals",
    summary="Remove the protection of branches",
    errors=WRITE_ERRORS,
    access=on_graph(PolicyAction.ADMIN),
    extension=True,
    writes=True,
)
def clear_protection(session: GraphSession, _: wire.NoRequest) -> wire.ProtectionOutput:
    """Remove all rules stored in the graph; those of its policy stay."""
    with session.admit(BRANCH_BYTES):
        session.graph.protection.clear()
    return to_answer(session.graph.protection.to_json(), wire.ProtectionOutput)
