"""What a caller may see of proposals: one in full, pages of a list, and pages of events."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from omnigraph.commit.model import CommitId, Counts, Snapshot
from omnigraph.commit.proposal_log import (
    MAX_NUMBER,
    EventKind,
    ProposalEvent,
    ProposalHead,
    ProposalRecord,
    ProposalState,
)
from omnigraph.commit.snapshot import head_snapshot
from omnigraph.errors import InvalidInput, NotFound
from omnigraph.lang import did_you_mean
from omnigraph.notebook.display import ReportDisplay
from omnigraph.review.anchors import AnchorView
from omnigraph.review.model import (
    CheckRun,
    Comment,
    FoldedProposal,
    ProposalDetails,
    ProposalSummary,
    Requirement,
    Review,
    SourceState,
    Verdict,
    fold_events,
    from_micros,
)
from omnigraph.review.proposals import (
    ReviewContext,
    anchor_view,
    divergence,
    find_commit_or_none,
    source_state,
    summarize_shown,
    target_rules,
    with_merge,
)
from omnigraph.review.requirements import evaluate_rules

MAX_LISTED = 200
"""Proposals of one page."""
MAX_EVENTS = 1_000
"""Events of one page."""


def read_proposal(context: ReviewContext, number: int, *, counted: bool = True) -> ProposalDetails:
    """Return a proposal with its conversation, without what may not be seen.

    Its changes are `counted` by type if it was merged or closed.
    """
    record = context.record(number)
    events = context.log.events_of(number)
    folded = fold_events(events)
    view = anchor_view(context, record)
    live = _Live.of(context, record)
    restricted = context.is_restricted(record)
    comments = _comments(folded, view, live.merge_version)
    checks = () if restricted else _check_runs(folded, live)
    counts = None
    if counted and folded.counts is not None:
        counts = _shown_counts(context, record, folded.counts, view)
    summary = replace(
        live.summary(record),
        comment_count=len(comments),
        unresolved_count=sum(c.id == c.thread and not c.resolved for c in comments),
        checks_state="none" if restricted else live.checks_state(record),
    )
    return ProposalDetails(
        summary=summary,
        description=folded.description,
        reviews=tuple(_reviews(folded, record, live)),
        comments=tuple(comments),
        checks=tuple(checks),
        counts=counts,
        requirements=tuple(_requirements(context, record, live)),
    )


def _requirements(
    context: ReviewContext, record: ProposalRecord, live: _Live
) -> Iterator[Requirement]:
    """Yield what an open proposal needs: its target, and what the protection of that requires."""
    if not record.is_open:
        return
    if live.target is None:
        message = f"branch '{record.target}' was deleted; create it again, or close the proposal"
        yield Requirement(rule="target", satisfied=False, message=message)
    rules = target_rules(context, record)
    lineage = None if live.head is None else live.head.lineage_id
    commit = record.head if live.head is None else live.head.commit_id
    found = evaluate_rules(rules, record, (commit, lineage or ""), live.authors, context.groups)
    yield from (requirement for listed in found.values() for requirement in listed)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Live:
    """What is known of the branches of a proposal now."""

    state: SourceState
    head: Snapshot | None
    target: Snapshot | None
    base: CommitId
    authors: frozenset[str] = frozenset()
    merge_version: int | None = None

    @classmethod
    def of(cls, context: ReviewContext, record: ProposalRecord, *, deep: bool = True) -> _Live:
        manifest = context.manifest
        state, head = source_state(manifest, record)
        if not record.is_open:
            mark = None
            if record.merge_commit is not None and deep:
                commit = find_commit_or_none(manifest, record.merge_commit)
                mark = None if commit is None else commit.proposal
            version = None if mark is None else mark.version
            return cls(state=state, head=None, target=None, base=record.base, merge_version=version)
        target, base, authors = None, record.base, frozenset[str]()
        with suppress(NotFound):
            target = head_snapshot(manifest, record.target)
        if deep and head is not None and target is not None:
            base, authors = divergence(manifest, head, target)
        return cls(state=state, head=head, target=target, base=base, authors=authors)

    def is_fresh(self, verdict: Sequence[str]) -> bool:
        """Return whether a stored verdict is about the newest state of the source."""
        if self.head is None:
            return False
        return (verdict[1], verdict[2]) == (self.head.commit_id, self.head.lineage_id or "")

    def checks_state(self, record: ProposalRecord) -> str:
        """Return the worst status of the last checks, `stale` if a branch has moved since."""
        if not record.checks:
            return "none"
        status, source, target = record.checks
        heads = [None if s is None else s.commit_id for s in (self.head, self.target)]
        return status if not record.is_open or [source, target] == heads else "stale"

    def summary(self, record: ProposalRecord) -> ProposalSummary:
        """Return a proposal as it is listed."""
        verdicts = record.verdicts.values()
        created, updated = from_micros(record.created_at), from_micros(record.updated_at)
        assert created is not None, "events have times"
        assert updated is not None, "events have times"
        current = [v for v in verdicts if not record.is_open or self.is_fresh(v)]
        return ProposalSummary(
            number=record.number,
            title=record.title,
            state=record.state,
            author=record.author,
            author_verified=record.verified,
            source=record.source,
            target=record.target,
            head=record.head if self.head is None else self.head.commit_id,
            base=self.base,
            source_state=self.state,
            reviewers=record.reviewers,
            approvals=sum(v[0] == Verdict.APPROVE for v in current),
            changes_requested=sum(v[0] == Verdict.REQUEST_CHANGES for v in verdicts),
            comment_count=record.comments,
            unresolved_count=record.unresolved,
            checks_state=self.checks_state(record),
            created_at=created,
            updated_at=updated,
            closed_at=from_micros(record.closed_at),
            closed_by=record.closed_by,
            merge_commit=None if record.merge_commit is None else CommitId(record.merge_commit),
        )


def _comments(folded: FoldedProposal, view: AnchorView, merged_at: int | None) -> list[Comment]:
    comments = []
    for event in folded.comments:
        if not view.shows(event.payload):
            continue
        thread = event.payload.get("thread", event.seq)
        comments.append(
            Comment(
                id=event.seq,
                actor=event.actor,
                verified=event.verified,
                body=event.payload.get("body", event.payload.get("comment", "")),
                on=view.decode(event.payload.get("on")),
                thread=thread,
                resolved=thread in folded.resolved,
                after_merge=_is_after_merge(event, folded, merged_at),
                created_at=event.created_at,
            )
        )
    return comments


def _is_after_merge(event: ProposalEvent, folded: FoldedProposal, merged_at: int | None) -> bool:
    """Return whether the merge did not know of an event: it was decided on older ones."""
    closing = folded.closing
    if merged_at is not None:
        return event.event > merged_at
    if closing is None or closing.kind is not EventKind.MERGED:
        return False
    version = closing.payload.get("version")
    return event.event > (closing.event if version is None else version)


def _reviews(folded: FoldedProposal, record: ProposalRecord, live: _Live) -> Iterable[Review]:
    newest: dict[str | None, int] = {}
    for event in folded.reviews:
        if event.payload["verdict"] != Verdict.COMMENT:
            newest[event.actor] = event.seq
    for event in folded.reviews:
        facts = event.payload
        verdict = (facts["verdict"], facts["commit_id"], facts.get("lineage") or "")
        stale = record.is_open and not live.is_fresh(verdict)
        recreated = live.head is not None and verdict[2] != (live.head.lineage_id or "")
        reason = ("source_recreated" if recreated else "source_moved") if stale else None
        yield Review(
            id=event.seq,
            actor=event.actor,
            verified=event.verified,
            verdict=Verdict(facts["verdict"]),
            body=facts["body"],
            commit=CommitId(facts["commit_id"]),
            stale=stale,
            stale_reason=reason,
            counts=newest.get(event.actor) == event.seq,
            after_merge=_is_after_merge(event, folded, live.merge_version),
            created_at=event.created_at,
        )


def _check_runs(folded: FoldedProposal, live: _Live) -> Iterable[CheckRun]:
    if folded.checks is None:
        return
    for facts in folded.checks.payload["checks"]:
        run = CheckRun.from_json({**facts, "created_at": None})
        heads = [None if s is None else s.commit_id for s in (live.head, live.target)]
        current = live.target is None or [run.source_commit, run.target_commit] == heads
        yield replace(run, current=current, created_at=folded.checks.created_at)


def _shown_counts(
    context: ReviewContext, record: ProposalRecord, counts: Mapping[str, Any], view: AnchorView
) -> dict[str, Counts]:
    """Return counts of what may be seen: a change of hidden properties only is none."""
    shown = {key: Counts(**c) for key, c in counts.items() if view.shows_type(key)}
    masked = {key for key in shown if not view.shows_whole_type(key)}
    seen = summarize_shown(context, record) if masked else {}
    found = {key: seen.get(key) if key in masked else counts for key, counts in shown.items()}
    return {key: counts for key, counts in found.items() if counts is not None}


@dataclass(frozen=True, slots=True)
class ProposalPage(ReportDisplay):
    """Some proposals, the greatest number first, and how to continue."""

    proposals: tuple[ProposalSummary, ...]
    counts: Mapping[str, int]
    next_page_token: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the wire form."""
        facts = {
            "proposals": [proposal.to_json() for proposal in self.proposals],
            "counts": dict(self.counts),
        }
        token = self.next_page_token
        return facts if token is None else {**facts, "next_page_token": token}


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposalFilter:
    """Which proposals to list."""

    state: str = "open"
    author: str | None = None
    reviewer: str | None = None
    target: str | None = None

    def check(self) -> frozenset[str]:
        """Return the states; raise InvalidInput for an unknown one."""
        words = [*ProposalState, "all"]
        if self.state not in words:
            message = f"unknown state '{self.state!s:.40}': {did_you_mean(str(self.state), words)}"
            raise InvalidInput(message, code="proposal_invalid", problems=[message])
        return frozenset(ProposalState) if self.state == "all" else frozenset({self.state})

    def covers(self, record: ProposalRecord) -> bool:
        """Return whether a proposal is requested."""
        return (
            self.author in (None, record.author)
            and self.target in (None, record.target)
            and (self.reviewer is None or self.reviewer in record.reviewers)
        )


def list_proposals(
    context: ReviewContext, scope: ProposalFilter, limit: int = 50, page_token: str | None = None
) -> ProposalPage:
    """Return a page of proposals; the cost does not depend on how many others there are."""
    states = scope.check()
    _check_limit(limit, MAX_LISTED, "proposals")
    below = MAX_NUMBER
    if page_token is not None:
        below = _whole_number(page_token, "a page token of proposals", "page_token_invalid")
    head = context.log.head()
    chosen, more = _choose(context, scope, states, head, below, limit)
    summaries = []
    for record in chosen:
        live = _Live.of(context, record, deep=False)
        summary = live.summary(record)
        if context.is_restricted(record):
            details = read_proposal(context, record.number, counted=False).summary
            summary = replace(details, base=summary.base)
        summaries.append(summary)
    counts = {str(state): head.counts.get(state, 0) for state in ProposalState}
    token = str(chosen[-1].number) if more and chosen else None
    return ProposalPage(tuple(summaries), counts, token)


def _choose(
    context: ReviewContext,
    scope: ProposalFilter,
    states: frozenset[str],
    head: ProposalHead,
    below: int,
    limit: int,
) -> tuple[list[ProposalRecord], bool]:
    """Return the first proposals below a number that are requested, and whether there are more."""

    def is_shown(record: ProposalRecord) -> bool:
        return scope.covers(record) and context.can_read(record)

    open_ = (with_merge(context.manifest, r) for n, r in head.open.items() if n < below)
    shown = [record for record in open_ if record.state in states and is_shown(record)]
    if states != {ProposalState.OPEN}:
        settled = context.log.records_not_open(below, limit + 1)
        shown += islice((r for r in settled if r.state in states and is_shown(r)), limit + 1)
    shown.sort(key=lambda record: -record.number)
    return shown[:limit], len(shown) > limit


def _check_limit(limit: object, most: int, what: str) -> None:
    if not isinstance(limit, int) or not 1 <= limit <= most:
        message = f"a page has 1 to {most} {what}, not {limit!r:.40}"
        raise InvalidInput(message, code="limit_invalid")


def _whole_number(text: object, what: str, code: str) -> int:
    """Return the number that a page token or a cursor is."""
    if re.fullmatch("[0-9]{1,18}", str(text)) is None:
        raise InvalidInput(f"'{text!s:.40}' is not {what}", code=code)
    return int(str(text))


@dataclass(frozen=True, slots=True)
class EventPage(ReportDisplay):
    """Some events in order, the cursor that continues after them, and whether there are more."""

    events: tuple[ProposalEvent, ...]
    cursor: str
    caught_up: bool

    def to_json(self) -> dict[str, Any]:
        """Return the wire form."""
        return {
            "events": [event.to_json() for event in self.events],
            "cursor": self.cursor,
            "caught_up": self.caught_up,
        }


def read_events(
    context: ReviewContext,
    after: str | None = None,
    *,
    proposal: int | None = None,
    limit: int = 100,
) -> EventPage:
    """Return the events after a cursor, in the order they happened."""
    _check_limit(limit, MAX_EVENTS, "events")
    start = "0" if after is None else after
    position = _whole_number(start, "a cursor of events", "cursor_invalid")
    if proposal is None:
        found = context.log.events_after(position, limit + 1)
        end = found[-1].event if found else position
    else:
        context.record(proposal)
        # Events that are appended while these are read are left to the next page.
        end = max(context.log.head().events, position)
        found = [e for e in context.log.events_of(proposal) if position < e.event <= end]
    events, rest = found[:limit], found[limit:]
    last = events[-1].event if rest else end
    shown = _ShownEvents.of(context, events)
    return EventPage(tuple(filter(None, map(shown.shown, events))), str(last), not rest)


@dataclass(slots=True)
class _ShownEvents:
    """Events without what may not be seen; proposals and schemas are read once."""

    context: ReviewContext
    records: Mapping[int, ProposalRecord]
    views: dict[int, AnchorView] = field(default_factory=dict)

    @classmethod
    def of(cls, context: ReviewContext, events: Sequence[ProposalEvent]) -> _ShownEvents:
        return cls(context, context.log.records_of(event.proposal for event in events))

    def shown(self, event: ProposalEvent) -> ProposalEvent | None:
        """Return what may be seen of an event, None if nothing."""
        record = self.records.get(event.proposal)
        if record is None or not self.context.can_read(record):
            return None
        if not self.context.is_restricted(record):
            return event
        if record.number not in self.views:
            self.views[record.number] = anchor_view(self.context, record)
        if not self.views[record.number].shows(event.payload):
            return None
        payload = {k: v for k, v in event.payload.items() if k not in ("checks", "summary")}
        return replace(event, payload=payload)
