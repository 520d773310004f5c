"""What a proposal consists of: its reviews, comments and check runs, folded from its events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any

from omnigraph.commit.model import CommitId, Counts
from omnigraph.commit.proposal_log import EventKind, ProposalEvent, ProposalState
from omnigraph.notebook.reviews import checks_html, proposal_html, proposals_html

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class Verdict(StrEnum):
    """What a reviewer decided."""

    APPROVE = "approve"
    REQUEST_CHANGES = "request_changes"
    COMMENT = "comment"


class CheckStatus(StrEnum):
    """How a check ended, from good to bad."""

    PASSED = "passed"
    WARNED = "warned"
    FAILED = "failed"
    ERROR = "error"


class SourceState(StrEnum):
    """What became of the source branch."""

    PRESENT = "present"
    DELETED = "deleted"
    RECREATED = "recreated"


def to_micros(instant: datetime | None) -> int | None:
    """Return the microseconds from 1970 to an instant."""
    return None if instant is None else (instant - _EPOCH) // _MICROSECOND


def from_micros(micros: int | None) -> datetime | None:
    """Return the instant of microseconds since 1970; 0 and None are none."""
    return None if not micros else _EPOCH + micros * _MICROSECOND


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """A verdict of an actor about a commit of the source.

    A `stale` one is about an older commit, or about a branch that was deleted and created again.
    `counts` says that it is the newest verdict of its actor.
    """

    id: int
    actor: str | None
    verified: bool
    verdict: Verdict
    body: str
    commit: CommitId
    stale: bool = False
    stale_reason: str | None = None
    counts: bool = False
    after_merge: bool = False
    created_at: datetime

    def to_json(self) -> dict[str, Any]:
        """Return the wire form."""
        facts = asdict(self)
        facts["actor_id"], facts["commit_id"] = facts.pop("actor"), facts.pop("commit")
        return {**facts, "verdict": str(self.verdict), "created_at": to_micros(self.created_at)}

    @classmethod
    def from_json(cls, facts: Mapping[str, Any]) -> Review:
        """Read the wire form."""
        members = {**facts, "actor": facts["actor_id"], "commit": CommitId(facts["commit_id"])}
        members = {k: v for k, v in members.items() if k not in ("actor_id", "commit_id")}
        created = from_micros(facts["created_at"])
        return cls(**{**members, "verdict": Verdict(facts["verdict"]), "created_at": created})


@dataclass(frozen=True, slots=True, kw_only=True)
class CommentAnchor:
    """What a comment is about: a type, an entity of it, or a property of that.

    Names are those of the newest schema; `outdated` means that the type or property is gone.
    """

    kind: str
    type: str
    id: str | None = None
    property: str | None = None
    outdated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Comment:
    """A comment; `thread` is the ID of the first one of its thread, which can be resolved."""

    id: int
    actor: str | None
    verified: bool
    body: str
    on: CommentAnchor | None = None
    thread: int
    resolved: bool = False
    after_merge: bool = False
    created_at: datetime

    def to_json(self) -> dict[str, Any]:
        """Return the wire form."""
        facts = asdict(self)
        facts["actor_id"] = facts.pop("actor")
        return {**facts, "created_at": to_micros(self.created_at)}

    @classmethod
    def from_json(cls, facts: Mapping[str, Any]) -> Comment:
        """Read the wire form."""
        members = {k: v for k, v in facts.items() if k != "actor_id"}
        on = facts.get("on")
        return cls(
            **{
                **members,
                "actor": facts["actor_id"],
                "on": None if on is None else CommentAnchor(**on),
                "created_at": from_micros(facts["created_at"]),
            }
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckRun:
    """One check of the state that merging would make.

    `commit` is the ID that the merge commit had, or would have had. `findings` are the first rows
    with their entities, `count` is the number of all. `current` means that neither branch has
    moved since.
    """

    name: str
    status: CheckStatus
    severity: str
    message: str = ""
    count: int = 0
    findings: Sequence[Mapping[str, Any]] = ()
    commit: CommitId
    source_commit: CommitId
    target_commit: CommitId
    types: Sequence[str] = ()
    """The types that the check reads, as `node:T` or `edge:E`."""
    current: bool = True
    created_at: datetime | None = None

    @property
    def is_blocking(self) -> bool:
        """Whether it prevents the merge."""
        return self.status in (CheckStatus.FAILED, CheckStatus.ERROR)

    def to_json(self) -> dict[str, Any]:
        """Return the wire form."""
        facts = {k: v for k, v in asdict(self).items() if k not in _COMMITS}
        facts |= {f"{name}_id": getattr(self, name) for name in _COMMITS}
        return {
            **facts,
            "status": str(self.status),
            "types": list(self.types),
            "findings": [dict(finding) for finding in self.findings],
            "created_at": to_micros(self.created_at),
        }

    @classmethod
    def from_json(cls, facts: Mapping[str, Any]) -> CheckRun:
        """Read the wire form."""
        members: dict[str, Any] = {k: v for k, v in facts.items() if not k.endswith("_id")}
        members |= {
            "status": CheckStatus(facts["status"]),
            "types": tuple(facts.get("types", ())),
            "created_at": from_micros(facts.get("created_at")),
        }
        members |= {name: CommitId(facts[f"{name}_id"]) for name in _COMMITS}
        return cls(**members)

    def _repr_html_(self) -> str:
        return checks_html([self.to_json()])


_COMMITS = ("commit", "source_commit", "target_commit")


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """One requirement of the target's protection, and whether the proposal satisfies it."""

    rule: str
    satisfied: bool
    message: str

    def to_json(self) -> dict[str, Any]:
        """Return the wire form."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposalSummary:
    """A proposal as it is listed; `head` and `base` are commits of the source and the base."""

    number: int
    title: str
    state: ProposalState
    author: str | None
    author_verified: bool
    source: str
    target: str
    head: CommitId | None
    base: CommitId | None
    source_state: SourceState = SourceState.PRESENT
    reviewers: tuple[str, ...] = ()
    approvals: int = 0
    changes_requested: int = 0
    comment_count: int = 0
    unresolved_count: int = 0
    checks_state: str = "none"
    created_at: datetime
    updated_at: datetime
    closed_at: datetime | None = None
    closed_by: str | None = None
    merge_commit: CommitId | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the wire form."""
        return {
            "number": self.number,
            "title": self.title,
            "state": str(self.state),
            "author_id": self.author,
            "author_verified": self.author_verified,
            "source": self.source,
            "target": self.target,
            "head_commit_id": self.head,
            "base_commit_id": self.base,
            "source_state": str(self.source_state),
            "reviewers": list(self.reviewers),
            "approvals": self.approvals,
            "changes_requested": self.changes_requested,
            "comment_count": self.comment_count,
            "unresolved_count": self.unresolved_count,
            "checks_state": self.checks_state,
            "created_at": to_micros(self.created_at),
            "updated_at": to_micros(self.updated_at),
            "closed_at": to_micros(self.closed_at),
            "closed_by": self.closed_by,
            "merge_commit_id": self.merge_commit,
        }

    def _repr_html_(self) -> str:
        return proposals_html([self.to_json()])


def summary_members(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Read the wire form of a summary, as the fields of one."""
    names = {
        "author": "author_id",
        "head": "head_commit_id",
        "base": "base_commit_id",
        "merge_commit": "merge_commit_id",
    }
    fields = list(ProposalSummary.__dataclass_fields__)
    members = {name: facts[names.get(name, name)] for name in fields}
    times = {name: from_micros(facts[name]) for name in ("created_at", "updated_at", "closed_at")}
    return {
        **members,
        **times,
        "state": ProposalState(facts["state"]),
        "source_state": SourceState(facts["source_state"]),
        "reviewers": tuple(facts["reviewers"]),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposalDetails:
    """A proposal with everything that belongs to it.

    `counts` are the changes by type of a merged or closed one. `requirements` are those of the
    target's protection.
    """

    summary: ProposalSummary
    description: str = ""
    reviews: tuple[Review, ...] = ()
    comments: tuple[Comment, ...] = ()
    checks: tuple[CheckRun, ...] = ()
    counts: Mapping[str, Counts] | None = None
    requirements: tuple[Requirement, ...] = ()

    @property
    def is_mergeable(self) -> bool:
        """Whether it is open and satisfies the protection of its target."""
        satisfied = all(requirement.satisfied for requirement in self.requirements)
        present = self.summary.source_state is not SourceState.DELETED
        return self.summary.state is ProposalState.OPEN and satisfied and present

    def to_json(self) -> dict[str, Any]:
        """Return the wire form."""
        counts = self.counts
        return {
            **self.summary.to_json(),
            "description": self.description,
            "reviews": [review.to_json() for review in self.reviews],
            "comments": [comment.to_json() for comment in self.comments],
            "checks": [check.to_json() for check in self.checks],
            "summary": None if counts is None else {k: asdict(c) for k, c in counts.items()},
            "requirements": [requirement.to_json() for requirement in self.requirements],
            "mergeable": self.is_mergeable,
        }

    @classmethod
    def from_json(cls, facts: Mapping[str, Any]) -> ProposalDetails:
        """Read the wire form."""
        counts = facts.get("summary")
        return cls(
            summary=ProposalSummary(**summary_members(facts)),
            description=facts["description"],
            reviews=tuple(Review.from_json(one) for one in facts["reviews"]),
            comments=tuple(Comment.from_json(one) for one in facts["comments"]),
            checks=tuple(CheckRun.from_json(one) for one in facts["checks"]),
            counts=None if counts is None else {k: Counts(**c) for k, c in counts.items()},
            requirements=tuple(Requirement(**one) for one in facts["requirements"]),
        )

    def _repr_html_(self) -> str:
        return proposal_html(self.to_json())


@dataclass(frozen=True, slots=True)
class FoldedProposal:
    """The conversation of a proposal: what its events fold to, before types are hidden."""

    description: str = ""
    reviews: Sequence[ProposalEvent] = ()
    comments: Sequence[ProposalEvent] = ()
    resolved: frozenset[int] = frozenset()
    checks: ProposalEvent | None = None
    closing: ProposalEvent | None = None
    counts: Mapping[str, Any] | None = field(default=None)


def is_comment_event(event: ProposalEvent) -> bool:
    """Return whether an event is a comment, or closes or opens a proposal with one."""
    if event.kind in (EventKind.CLOSED, EventKind.REOPENED):
        return bool(event.payload.get("comment"))
    return event.kind is EventKind.COMMENTED


def fold_events(events: Sequence[ProposalEvent]) -> FoldedProposal:
    """Return what the events of a proposal say, the oldest first."""
    description, counts = "", None
    reviews, comments = list[ProposalEvent](), list[ProposalEvent]()
    resolved, checks, closing = set[int](), None, None
    for event in events:
        match event.kind:
            case EventKind.CREATED | EventKind.EDITED:
                description = event.payload.get("description", description)
            case EventKind.REVIEWED:
                reviews.append(event)
            case EventKind.RESOLVED:
                resolved.add(event.payload["thread"])
            case EventKind.UNRESOLVED:
                resolved.discard(event.payload["thread"])
            case EventKind.CHECKED:
                checks = event
            case EventKind.CLOSED | EventKind.MERGED:
                closing, counts = event, event.payload.get("summary")
            case EventKind.REOPENED:
                closing, counts = None, None
        if is_comment_event(event):
            comments.append(event)
    return FoldedProposal(
        description, reviews, comments, frozenset(resolved), checks, closing, counts
    )
