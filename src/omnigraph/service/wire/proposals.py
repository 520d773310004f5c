"""Bodies of proposals: requests to merge, their conversation, checks and the protection."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import UNSET, Struct, UnsetType, field

from omnigraph.service.wire.parameters import FromBody, FromQuery, Marker, ParameterLocation
from omnigraph.service.wire.requests import (
    ChangeOpOutput,
    EntityKindOutput,
    EpochMicros,
    WireCount,
)
from omnigraph.service.wire.responses import BranchMergeOutput

ProposalNumber = Annotated[str, Marker(ParameterLocation.PATH, schema=WireCount)]
_Limit = Annotated[int | None, Marker(ParameterLocation.QUERY, schema=WireCount)]


class ProposalQuery(Struct, kw_only=True):
    """A proposal, by number."""

    number: ProposalNumber


class ProposalListQuery(Struct, kw_only=True):
    """Which proposals to list, and which page."""

    state: FromQuery[str | None] = None
    author: FromQuery[str | None] = None
    reviewer: FromQuery[str | None] = None
    target: FromQuery[str | None] = None
    limit: _Limit = None
    page_token: FromQuery[str | None] = None


class ProposalCreateRequest(Struct, kw_only=True):
    """What is proposed: to merge `source` into `target`, by default main."""

    source: str
    target: str | None = None
    title: str
    description: str = ""
    reviewers: list[str] = []


class ProposalEditRequest(Struct, kw_only=True):
    """What becomes different about a proposal; what is absent stays."""

    title: str | None = None
    description: str | None = None
    reviewers: list[str] | None = None


class ProposalEditQuery(ProposalQuery, kw_only=True):
    """A proposal and its new text."""

    body: FromBody[ProposalEditRequest]


class ProposalCommentText(Struct, kw_only=True):
    """A text that goes with closing or opening a proposal."""

    comment: str | None = None


class ProposalCloseQuery(ProposalQuery, kw_only=True):
    """A proposal to be closed or opened again."""

    body: FromBody[ProposalCommentText] = field(default_factory=ProposalCommentText)


class CommentAnchorOutput(Struct, kw_only=True):
    """What a comment is about; `outdated` if the type or the property is gone."""

    type: str
    id: str | None = None
    property: str | None = None
    kind: str | None = None
    outdated: bool = False


class CommentRequest(Struct, kw_only=True):
    """A comment: on an entity, or as a reply in the thread of another."""

    body: str
    on: CommentAnchorOutput | None = None
    thread: int | None = None


class ProposalCommentQuery(ProposalQuery, kw_only=True):
    """A proposal and a comment on it."""

    body: FromBody[CommentRequest]


class ResolveRequest(Struct, kw_only=True):
    """Whether a thread is resolved."""

    resolved: bool = True


class ResolveCommentQuery(ProposalQuery, kw_only=True):
    """A comment whose thread is resolved, or opened again."""

    comment_id: ProposalNumber
    body: FromBody[ResolveRequest] = field(default_factory=ResolveRequest)


class ReviewRequest(Struct, kw_only=True):
    """A verdict; `commit` is the state of the source that was looked at."""

    verdict: str
    body: str = ""
    commit: str | None = None


class ProposalReviewQuery(ProposalQuery, kw_only=True):
    """A proposal and a review of it."""

    body: FromBody[ReviewRequest]


class ProposalDiffQuery(ProposalQuery, kw_only=True):
    """Which changes of a proposal to list."""

    kind: Annotated[list[str], Marker(ParameterLocation.QUERY, schema=list[EntityKindOutput])] = []
    type: FromQuery[list[str]] = []
    op: Annotated[list[str], Marker(ParameterLocation.QUERY, schema=list[ChangeOpOutput])] = []


class ProposalMergeRequest(Struct, kw_only=True):
    """How to merge a proposal; `resolve` decides conflicts as for branches."""

    resolve: Any = None
    delete_branch: bool = False
    message: str | None = None


class ProposalMergeQuery(ProposalQuery, kw_only=True):
    """A proposal to be merged."""

    body: FromBody[ProposalMergeRequest] = field(default_factory=ProposalMergeRequest)


class ProposalEventsQuery(Struct, kw_only=True):
    """The events after a cursor, of all proposals or of one."""

    after: FromQuery[str | None] = None
    proposal: _Limit = None
    limit: _Limit = None


class ProposalSummaryOutput(Struct, kw_only=True):
    """A proposal as it is listed."""

    number: WireCount
    title: str
    state: str
    author_id: str | None = None
    author_verified: bool = False
    source: str
    target: str
    head_commit_id: str | None = None
    base_commit_id: str | None = None
    source_state: str
    reviewers: list[str]
    approvals: WireCount
    changes_requested: WireCount
    comment_count: WireCount
    unresolved_count: WireCount
    checks_state: str
    created_at: EpochMicros
    updated_at: EpochMicros
    closed_at: EpochMicros | None = None
    closed_by: str | None = None
    merge_commit_id: str | None = None


class ProposalListOutput(Struct, kw_only=True):
    """Proposals, the newest first, and how many there are by state."""

    proposals: list[ProposalSummaryOutput]
    counts: dict[str, WireCount]
    next_page_token: str | UnsetType | None = UNSET


class ReviewOutput(Struct, kw_only=True):
    """A review; `counts` if it is the newest verdict of its actor."""

    id: WireCount
    actor_id: str | None = None
    verified: bool
    verdict: str
    body: str
    commit_id: str
    stale: bool
    stale_reason: str | None = None
    counts: bool
    after_merge: bool
    created_at: EpochMicros


class CommentOutput(Struct, kw_only=True):
    """A comment; `thread` is the ID of the first comment of its thread."""

    id: WireCount
    actor_id: str | None = None
    verified: bool
    body: str
    on: CommentAnchorOutput | None = None
    thread: WireCount
    resolved: bool
    after_merge: bool
    created_at: EpochMicros


class FindingOutput(Struct, kw_only=True):
    """A row that a check returned, and its entities."""

    row: Any
    entities: list[Any]


class CheckRunOutput(Struct, kw_only=True):
    """A check of the state that merging would make; `current` if no branch has moved since."""

    name: str
    status: str
    severity: str
    message: str
    count: WireCount
    findings: list[FindingOutput]
    commit_id: str
    source_commit_id: str
    target_commit_id: str
    types: list[str]
    current: bool
    created_at: EpochMicros | None = None


class CheckRunListOutput(Struct, kw_only=True):
    """The checks of a proposal."""

    checks: list[CheckRunOutput]


class RequirementOutput(Struct, kw_only=True):
    """What the protection of the target requires, and whether it is satisfied."""

    rule: str
    satisfied: bool
    message: str


class ProposalOutput(ProposalSummaryOutput, kw_only=True):
    """A proposal with its conversation; `summary` are the changes of a merged or closed one."""

    description: str
    reviews: list[ReviewOutput]
    comments: list[CommentOutput]
    checks: list[CheckRunOutput]
    summary: dict[str, Any] | None = None
    requirements: list[RequirementOutput]
    mergeable: bool


class ProposalPreviewOutput(Struct, kw_only=True):
    """What merging would do; `schema` has the migration steps, null if there are none."""

    merge: BranchMergeOutput
    summary: dict[str, Any]
    schema: Any = None


class ChecksQuery(Struct, kw_only=True):
    """The state to check."""

    branch: FromQuery[str | None] = None
    snapshot: FromQuery[str | None] = None


class CheckResultOutput(Struct, kw_only=True):
    """What a check found: how many rows, the first of them, and their entities."""

    name: str
    severity: str
    passed: bool
    message: str
    count: WireCount
    rows: list[Any]
    entities: list[Any]


class CheckResultListOutput(Struct, kw_only=True):
    """The results of all checks."""

    checks: list[CheckResultOutput]


class ProposalEventOutput(Struct, kw_only=True):
    """An event; `event` is its number among all, `seq` that within its proposal."""

    event: WireCount
    proposal: WireCount
    seq: WireCount
    kind: str
    actor_id: str | None = None
    verified: bool
    created_at: EpochMicros
    payload: Any


class ProposalEventListOutput(Struct, kw_only=True):
    """Events in order, and the cursor that continues after them."""

    events: list[ProposalEventOutput]
    cursor: str
    caught_up: bool


class ProtectionRequest(Struct, kw_only=True):
    """The rules that replace the stored ones."""

    rules: Any


class ProtectionOutput(Struct, kw_only=True):
    """The rules stored in the graph, and those of the policy, which count as well."""

    rules: list[Any]
    policy_rules: list[Any]
