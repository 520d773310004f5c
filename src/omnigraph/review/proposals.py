"""Create, list, read and change proposals; every change is one event."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from typing import Any, TypeAlias

from omnigraph.changes.diff import diff
from omnigraph.changes.model import ChangeFilter, ChangeOp
from omnigraph.commit.history import find_commit
from omnigraph.commit.lineage import LineageState
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.model import MAIN, Commit, CommitId, Counts, Head, Snapshot
from omnigraph.commit.proposal_log import (
    EventDraft,
    EventKind,
    ProposalEvent,
    ProposalHead,
    ProposalLog,
    ProposalRecord,
    ProposalState,
)
from omnigraph.commit.protection import WritePermit, rules_for
from omnigraph.commit.snapshot import head_snapshot, snapshot_of_commit
from omnigraph.errors import Category, InvalidInput, NotFound, OmniError, VersionReclaimed
from omnigraph.lang import did_you_mean
from omnigraph.merge.merge_base import CommitGraph
from omnigraph.notebook.display import ReportDisplay
from omnigraph.policy import ALL_TYPES, PolicyDenied, TypeScope
from omnigraph.policy.protection_rules import ProtectionRule
from omnigraph.review.anchors import AnchorView, encode_anchor
from omnigraph.review.model import (
    CheckRun,
    CheckStatus,
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
from omnigraph.review.requirements import evaluate_rules

MAX_TITLE = 200
"""Characters of a title."""
MAX_BODY = 65_536
"""Characters of a description, a comment or the text of a review."""
MAX_REVIEWERS = 50
MAX_OPEN = 1_000
"""Open proposals of a graph, which the head of their lineage holds."""
MAX_LISTED = 200
"""Proposals of one page."""

_Made: TypeAlias = tuple[ProposalRecord | None, EventDraft | None]


def _all_types(_: str) -> TypeScope:
    return ALL_TYPES


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewContext:
    """Who works on proposals, and what they may see.

    `scope_of` returns the types that may be read on a branch, and raises PolicyDenied where nothing
    may be. `may_manage` decides whether the actor may edit, close and reopen what others proposed.
    `rules` and `groups` are those of the policy in use.
    """

    manifest: Manifest
    actor: str | None = None
    verified: bool = False
    rules: tuple[ProtectionRule, ...] = ()
    groups: Mapping[str, Sequence[str]] | None = None
    scope_of: Callable[[str], TypeScope] = field(default=_all_types)
    may_manage: Callable[[ProposalRecord], None] = field(default=lambda _: None)

    @property
    def log(self) -> ProposalLog:
        """The events."""
        return ProposalLog(self.manifest)

    def can_read(self, record: ProposalRecord) -> bool:
        """Return whether both branches of a proposal may be read."""
        try:
            self.scope_of(record.source)
            self.scope_of(record.target)
        except PolicyDenied:
            return False
        return True

    def is_restricted(self, record: ProposalRecord) -> bool:
        """Return whether some types of a proposal may not be seen."""
        scopes = (self.scope_of(record.source), self.scope_of(record.target))
        return not all(scope.is_everything for scope in scopes)

    def record(self, number: int) -> ProposalRecord:
        """Return a proposal that exists and may be read, merged ones as merged."""
        record = self.log.record_of(number) if number > 0 else None
        if record is None or not self.can_read(record):
            raise not_found(number)
        return with_merge(self.manifest, record)

    def draft(
        self, kind: EventKind, record: ProposalRecord, payload: Mapping[str, Any] | None = None
    ) -> EventDraft:
        """Return an event of this actor."""
        return EventDraft(
            kind=kind,
            actor=self.actor,
            verified=self.verified and self.actor is not None,
            payload=payload or {},
            record=record,
        )


# --- states -------------------------------------------------------------------------------------


def not_found(number: int) -> NotFound:
    """Return the error for a proposal that does not exist, or that may not be read."""
    message = f"proposal {number} does not exist"
    return NotFound(message, code="proposal_not_found", proposal=number)


def require_open(record: ProposalRecord, what: str) -> None:
    """Raise unless a proposal is open."""
    if not record.is_open:
        raise OmniError(
            f"proposal {record.number} is {record.state}: it cannot be {what}"
            + ("; reopen it first" if record.state is ProposalState.CLOSED else ""),
            code="proposal_not_open",
            category=Category.CONFLICT,
            details={"proposal": record.number, "state": str(record.state)},
        )


def with_merge(manifest: Manifest, record: ProposalRecord) -> ProposalRecord:
    """Return a proposal as merged if a merge commit says so and its event is still missing."""
    commit_id = merge_commit_of(manifest, record) if record.is_open else None
    if commit_id is None:
        return record
    return replace(record, state=ProposalState.MERGED, merge_commit=commit_id)


def merge_commit_of(manifest: Manifest, record: ProposalRecord) -> str | None:
    """Return the merge commit of a proposal that the heads of its target know."""
    for head in _target_heads(manifest, record):
        found = head.merged.get(str(record.number))
        if found is not None:
            return found
    return None


def _target_heads(manifest: Manifest, record: ProposalRecord) -> Iterable[Head]:
    lineages = {record.target_lineage}
    with suppress(NotFound):
        lineages.add(manifest.branch(record.target).lineage_id)
    for lineage_id in lineages:
        with suppress(NotFound):
            yield manifest.lineage(lineage_id).state().head


def source_state(manifest: Manifest, record: ProposalRecord) -> tuple[SourceState, Snapshot | None]:
    """Return what became of the source of a proposal, and its newest state."""
    try:
        snapshot = head_snapshot(manifest, record.source)
    except NotFound:
        return SourceState.DELETED, None
    if snapshot.lineage_id != record.source_lineage:
        return SourceState.RECREATED, snapshot
    return SourceState.PRESENT, snapshot


def source_head(context: ReviewContext, record: ProposalRecord) -> Snapshot:
    """Return the newest state of the source; raise if the branch was deleted."""
    _, snapshot = source_state(context.manifest, record)
    if snapshot is None:
        raise OmniError(
            f"branch '{record.source}' of proposal {record.number} was deleted; create it again, "
            "or close the proposal",
            code="proposal_source_gone",
            category=Category.CONFLICT,
            details={"proposal": record.number, "branch": record.source},
        )
    return snapshot


# --- create and change --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposalText:
    """What an author writes about a proposal; None leaves it as it is."""

    title: str | None = None
    description: str | None = None
    reviewers: Sequence[str] | None = None

    def check(self) -> dict[str, Any]:
        """Return what is given; raise InvalidInput with every problem."""
        problems: list[str] = []
        facts: dict[str, Any] = {}
        if self.title is not None:
            facts["title"] = self._title(problems)
        if self.description is not None:
            facts["description"] = checked_text(self.description, "the description", problems)
        if self.reviewers is not None:
            facts["reviewers"] = self._reviewers(problems)
        raise_problems(problems)
        return facts

    def _title(self, problems: list[str]) -> str:
        text = checked_text(self.title, "the title", problems, most=MAX_TITLE).strip()
        if not text:
            problems.append("the title is blank")
        if any(not character.isprintable() for character in text):
            problems.append("the title has control characters or line breaks")
        return text

    def _reviewers(self, problems: list[str]) -> tuple[str, ...]:
        given = [self.reviewers] if isinstance(self.reviewers, str) else list(self.reviewers or ())
        if len(given) > MAX_REVIEWERS:
            problems.append(
                f"there are {len(given)} reviewers; at most {MAX_REVIEWERS} are allowed"
            )
            return ()
        names = [checked_text(name, "a reviewer", problems, most=MAX_TITLE) for name in given]
        if any(not name.strip() or not name.isprintable() for name in names):
            problems.append("the name of a reviewer is blank or has control characters")
        return tuple(dict.fromkeys(name.strip() for name in names))


def checked_text(value: object, what: str, problems: list[str], *, most: int = MAX_BODY) -> str:
    """Return a text; note what is wrong with it."""
    if not isinstance(value, str):
        problems.append(f"{what} must be a text")
        return ""
    if len(value) > most:
        problems.append(f"{what} has {len(value):,} characters; at most {most:,} are allowed")
        return ""
    if "\x00" in value or any(0xD800 <= ord(character) < 0xE000 for character in value):
        problems.append(f"{what} has characters that cannot be stored (NUL or half a surrogate)")
        return ""
    return value


def raise_problems(problems: Sequence[str]) -> None:
    """Raise InvalidInput if there are problems."""
    if problems:
        message = f"the proposal is not valid: {'; '.join(problems)}"
        raise InvalidInput(message, code="proposal_invalid", problems=list(problems))


def create_proposal(
    context: ReviewContext, source_name: str, target_name: str, text: ProposalText
) -> int:
    """Propose to merge a branch into another; return the number of the proposal."""
    facts = text.check()
    manifest = context.manifest
    source, target = (head_snapshot(manifest, name) for name in (source_name, target_name))
    for snapshot in (source, target):
        context.scope_of(snapshot.branch)
    if source.branch == target.branch:
        message = f"branch '{source.branch}' cannot be merged into itself"
        raise InvalidInput(message, code="proposal_same_branch", branch=source.branch)
    base, _ = divergence(manifest, source, target)
    if base == source.commit_id:
        message = f"branch '{target.branch}' has everything that branch '{source.branch}' has"
        raise InvalidInput(message, code="proposal_empty", source=source.branch)
    record = ProposalRecord(
        number=0,
        title=facts["title"],
        source=source.branch,
        source_lineage=source.lineage_id,
        source_ancestors=source.head.ancestor_lineages,
        target=target.branch,
        target_lineage=target.lineage_id,
        head=source.commit_id,
        base=base,
        reviewers=facts.get("reviewers", ()),
    )
    payload = {
        **facts,
        "source": record.source,
        "target": record.target,
        "head_commit_id": record.head,
        "base_commit_id": base,
    }

    def make(head: ProposalHead, _: object) -> _Made:
        _check_new(manifest, head, record)
        return None, context.draft(EventKind.CREATED, record, payload)

    event = context.log.append(make)
    assert event is not None, "a proposal that can be created is"
    return event.proposal


def _check_new(manifest: Manifest, head: ProposalHead, record: ProposalRecord) -> None:
    for other in head.open.values():
        same = (other.source, other.target) == (record.source, record.target)
        if same and with_merge(manifest, other).is_open:
            raise OmniError(
                f"proposal {other.number} asks to merge '{record.source}' into "
                f"'{record.target}' already",
                code="proposal_exists",
                category=Category.CONFLICT,
                details={"proposal": other.number},
            )
    if len(head.open) >= MAX_OPEN:
        message = f"there are {MAX_OPEN:,} open proposals already; merge or close some first"
        raise OmniError(message, code="proposal_limit", category=Category.LIMIT)


def divergence(
    manifest: Manifest, source: Snapshot, target: Snapshot
) -> tuple[CommitId, frozenset[str]]:
    """Return the merge base of two heads, and the actors of the commits that only one has."""
    graph = CommitGraph.of(manifest, source, target)
    found = graph.divergence(source.commit_id, target.commit_id)
    if not found.bases:
        message = f"{source.branch} and {target.branch} have no history in common"
        raise InvalidInput(message, code="no_merge_base")
    actors = (graph.commits[commit_id].commit.actor for commit_id in found.only_one)
    return found.bases[0], frozenset(actor for actor in actors if actor is not None)


def append_to(
    context: ReviewContext,
    number: int,
    make: Callable[[ProposalRecord], EventDraft | None],
) -> ProposalEvent | None:
    """Append an event to the newest state of a proposal.

    A proposal that a merge commit has merged gets the event that says so first.
    """
    record = context.record(number)
    if record.state is ProposalState.MERGED and context.log.head().open.get(number) is not None:
        record_merge(context, number)
    log = context.log

    def append(_: ProposalHead, state: LineageState | None) -> _Made:
        newest = log.record_of(number, state)
        assert newest is not None, "proposals are never removed"
        return newest, make(newest)

    return log.append(append)


def record_merge(
    context: ReviewContext, number: int, counts: Mapping[str, Counts] | None = None
) -> None:
    """Append the event of a merge that a commit carries out, unless it is there."""
    manifest, log = context.manifest, context.log

    def append(_: ProposalHead, state: LineageState | None) -> _Made:
        newest = log.record_of(number, state)
        assert newest is not None, "proposals are never removed"
        commit_id = merge_commit_of(manifest, newest)
        if not newest.is_open or commit_id is None:
            return newest, None
        commit = find_commit_or_none(manifest, commit_id)
        found = counts if counts is not None or commit is None else commit.counts
        mark = None if commit is None else commit.proposal
        payload = {
            "commit_id": commit_id,
            "source_commit_id": None if mark is None else mark.source_commit_id,
            "version": None if mark is None else mark.version,
            "summary": None if found is None else {k: asdict(c) for k, c in found.items()},
        }
        record = replace(
            newest,
            state=ProposalState.MERGED,
            merge_commit=commit_id,
            head=newest.head if mark is None else mark.source_commit_id,
            base=newest.base if commit is None else _base_of_merge(manifest, commit, newest.base),
        )
        draft = context.draft(EventKind.MERGED, record, payload)
        if commit is not None:
            draft = replace(draft, actor=commit.actor)
        return newest, draft

    log.append(append)


def _base_of_merge(manifest: Manifest, commit: Commit, known: CommitId) -> CommitId:
    """Return the merge base that a merge commit had; `known` is an older one."""
    with suppress(OmniError):
        target, source = (snapshot_of_commit(manifest, parent) for parent in commit.parents[:2])
        return divergence(manifest, source, target)[0]
    return known


def find_commit_or_none(manifest: Manifest, commit_id: str) -> Commit | None:
    """Return a commit, or None if no branch has it any more."""
    with suppress(NotFound):
        return find_commit(manifest, commit_id)[0].commit
    return None


def edit_proposal(context: ReviewContext, number: int, text: ProposalText) -> None:
    """Change the title, the description or the reviewers."""
    facts = text.check()
    context.may_manage(context.record(number))

    def make(record: ProposalRecord) -> EventDraft | None:
        require_open(record, "edited")
        shown = {name: getattr(record, name) for name in facts if name != "description"}
        if not facts or ("description" not in facts and shown == facts):
            return None
        members = {name: value for name, value in facts.items() if name != "description"}
        return context.draft(EventKind.EDITED, replace(record, **members), facts)

    append_to(context, number, make)


def close_proposal(context: ReviewContext, number: int, comment: str | None = None) -> None:
    """Close a proposal without merging it; its summary by type is kept."""
    note = _checked_note(comment)
    context.may_manage(context.record(number))
    summary = summarize(context.manifest, context.record(number))

    def make(record: ProposalRecord) -> EventDraft:
        require_open(record, "closed")
        _, newest = source_state(context.manifest, record)
        head = record.head if newest is None else newest.commit_id
        closed = replace(record, state=ProposalState.CLOSED, head=head)
        counts = None if summary is None else {k: asdict(c) for k, c in summary.items()}
        payload = {**note, "head_commit_id": head, "summary": counts}
        return context.draft(EventKind.CLOSED, closed, payload)

    append_to(context, number, make)


def reopen_proposal(context: ReviewContext, number: int, comment: str | None = None) -> None:
    """Open a closed proposal again."""
    note = _checked_note(comment)
    context.may_manage(context.record(number))
    log = context.log

    def make(record: ProposalRecord) -> EventDraft:
        if record.state is not ProposalState.CLOSED:
            raise OmniError(
                f"proposal {number} is {record.state}: only a closed one can be opened again",
                code="proposal_not_closed",
                category=Category.CONFLICT,
                details={"proposal": number, "state": str(record.state)},
            )
        source_head(context, record)
        _check_new(context.manifest, log.head(), record)
        opened = replace(record, state=ProposalState.OPEN)
        return context.draft(EventKind.REOPENED, opened, note)

    append_to(context, number, make)


def _checked_note(comment: str | None) -> dict[str, str]:
    if comment is None:
        return {}
    problems: list[str] = []
    text = checked_text(comment, "the comment", problems)
    raise_problems(problems)
    return {"comment": text} if text.strip() else {}


def summarize(manifest: Manifest, record: ProposalRecord) -> dict[str, Counts] | None:
    """Return the changes of a proposal by type; None if their versions were cleaned up."""
    try:
        base, head = proposal_states(manifest, record)
        return count_differences(manifest, base, head)
    except (NotFound, VersionReclaimed):
        return None


def proposal_states(manifest: Manifest, record: ProposalRecord) -> tuple[Snapshot, Snapshot]:
    """Return the base and the newest state of the source; of a merged one what was merged."""
    if record.is_open:
        _, newest = source_state(manifest, record)
        if newest is not None:
            with suppress(NotFound):
                base, _ = divergence(manifest, newest, head_snapshot(manifest, record.target))
                return snapshot_of_commit(manifest, base), newest
    return (
        snapshot_of_commit(manifest, record.base),
        snapshot_of_commit(manifest, record.head),
    )


def count_differences(manifest: Manifest, base: Snapshot, head: Snapshot) -> dict[str, Counts]:
    """Return how many entities differ between two states, by type."""
    numbers: dict[str, dict[ChangeOp, int]] = {}
    for change in diff(manifest, base, head, ChangeFilter()):
        ops = numbers.setdefault(f"{change.kind}:{change.type}", {})
        ops[change.op] = ops.get(change.op, 0) + 1
    return {
        key: Counts(
            inserted=ops.get(ChangeOp.INSERT, 0),
            updated=ops.get(ChangeOp.UPDATE, 0),
            deleted=ops.get(ChangeOp.DELETE, 0),
        )
        for key, ops in numbers.items()
    }


# --- conversation -------------------------------------------------------------------------------


def add_comment(
    context: ReviewContext,
    number: int,
    body: str,
    *,
    on: object = None,
    thread: int | None = None,
) -> int:
    """Comment on a proposal, or reply in a thread; return the ID of the comment."""
    problems: list[str] = []
    text = checked_text(body, "the comment", problems)
    if not problems and not text.strip():
        problems.append("the comment is blank")
    if on is not None and thread is not None:
        problems.append("a reply is about what its thread is about: give `on` or `thread`")
    raise_problems(problems)
    record = context.record(number)
    payload: dict[str, Any] = {"body": text}
    if on is not None:
        payload["on"] = encode_anchor(_anchor_view(context, record), on)
    if thread is not None:
        first = _thread(context, record, thread)
        payload |= {"thread": first.seq} | (
            {"on": first.payload["on"]} if "on" in first.payload else {}
        )

    def make(newest: ProposalRecord) -> EventDraft:
        unresolved = newest.unresolved + (thread is None)
        changed = replace(newest, comments=newest.comments + 1, unresolved=unresolved)
        return context.draft(EventKind.COMMENTED, changed, payload)

    event = append_to(context, number, make)
    assert event is not None, "a comment is an event"
    return event.seq


def _thread(context: ReviewContext, record: ProposalRecord, id_: int) -> ProposalEvent:
    """Return the first comment of the thread that a comment belongs to."""
    view = _anchor_view(context, record)
    events = {event.seq: event for event in context.log.events_of(record.number)}
    found = events.get(id_)
    first = None if found is None else events.get(found.payload.get("thread", id_))
    is_comment = first is not None and first.kind is EventKind.COMMENTED
    if first is None or not is_comment or not view.shows(first.payload):
        message = f"proposal {record.number} has no comment {id_}"
        raise NotFound(message, code="comment_not_found", proposal=record.number, comment=id_)
    return first


def resolve_comment(
    context: ReviewContext, number: int, comment: int, *, resolved: bool = True
) -> int:
    """Resolve the thread of a comment, or open it again; return the thread."""
    record = context.record(number)
    first = _thread(context, record, comment)
    payload = {"thread": first.seq} | ({"on": first.payload["on"]} if "on" in first.payload else {})
    log = context.log

    def make(newest: ProposalRecord) -> EventDraft | None:
        folded = fold_events(log.events_of(number))
        if (first.seq in folded.resolved) == resolved:
            return None
        kind = EventKind.RESOLVED if resolved else EventKind.UNRESOLVED
        left = newest.unresolved + (-1 if resolved else 1)
        return context.draft(kind, replace(newest, unresolved=left), payload)

    append_to(context, number, make)
    return first.seq


def add_review(
    context: ReviewContext,
    number: int,
    verdict: str,
    body: str = "",
    *,
    commit: str | None = None,
) -> int:
    """Approve, request changes or comment, about the newest state of the source.

    `commit` is the state that the reviewer has seen: if the source has moved on, nothing is added.
    """
    problems: list[str] = []
    if verdict not in list(Verdict):
        problems.append(
            f"unknown verdict '{verdict!s:.40}': {did_you_mean(str(verdict), list(Verdict))}"
        )
    text = checked_text(body, "the text of the review", problems)
    raise_problems(problems)
    record = context.record(number)
    _, newest = source_state(context.manifest, record)
    if record.is_open and newest is None:
        source_head(context, record)
    head = record.head if newest is None or not record.is_open else newest.commit_id
    if commit is not None and commit != head:
        raise OmniError(
            f"branch '{record.source}' has moved from {commit} to {head}; look at it again",
            code="proposal_moved",
            category=Category.CONFLICT,
            details={"expected": commit, "actual": head},
        )
    lineage = record.source_lineage if newest is None else newest.lineage_id
    payload = {"verdict": verdict, "body": text, "commit_id": head, "lineage": lineage}

    def make(latest: ProposalRecord) -> EventDraft:
        verdicts = dict(latest.verdicts)
        if verdict != Verdict.COMMENT and context.actor is not None and latest.is_open:
            verdicts[context.actor] = (verdict, head, lineage or "")
        return context.draft(EventKind.REVIEWED, replace(latest, verdicts=verdicts), payload)

    event = append_to(context, number, make)
    assert event is not None, "a review is an event"
    return event.seq


def _anchor_view(context: ReviewContext, record: ProposalRecord) -> AnchorView:
    """Return what may be named in comments of a proposal."""
    snapshots = []
    for name in (record.source, record.target, MAIN):
        with suppress(NotFound, PolicyDenied):
            snapshots.append((head_snapshot(context.manifest, name), context.scope_of(name)))
    return AnchorView.of(context.manifest, snapshots)


# --- reading ------------------------------------------------------------------------------------


def read_proposal(context: ReviewContext, number: int) -> ProposalDetails:
    """Return a proposal with its conversation, without what may not be seen."""
    record = context.record(number)
    events = context.log.events_of(number)
    folded = fold_events(events)
    view = _anchor_view(context, record)
    live = _Live.of(context, record)
    restricted = context.is_restricted(record)
    comments = _comments(folded, view, live.merge_version)
    checks = () if restricted else _check_runs(folded, live)
    counts = None if folded.counts is None else _shown_counts(folded.counts, view)
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
        requirements=tuple(requirements_of(context, record, live.head, live.authors)),
    )


def requirements_of(
    context: ReviewContext,
    record: ProposalRecord,
    head: Snapshot | None,
    authors: frozenset[str],
) -> list[Requirement]:
    """Return what the protection of the target requires of an open proposal."""
    if not record.is_open:
        return []
    rules = target_rules(context, record)
    lineage = None if head is None else head.lineage_id
    commit = record.head if head is None else head.commit_id
    found = evaluate_rules(rules, record, (commit, lineage or ""), authors, context.groups)
    return [requirement for rule in found.values() for requirement in rule]


def target_rules(context: ReviewContext, record: ProposalRecord) -> tuple[ProtectionRule, ...]:
    """Return the rules about the target of a proposal."""
    permit = WritePermit(rules=context.rules)
    return rules_for(record.target, context.manifest.main.state().head, permit)


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


def _shown_counts(counts: Mapping[str, Any], view: AnchorView) -> dict[str, Counts]:
    return {key: Counts(**c) for key, c in counts.items() if view.shows_type(key)}


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
    if not 1 <= limit <= MAX_LISTED:
        message = f"a page has 1 to {MAX_LISTED} proposals, not {limit}"
        raise InvalidInput(message, code="limit_invalid")
    below = _read_token(page_token)
    head = context.log.head()
    chosen, more = _choose(context, scope, states, head, below, limit)
    summaries = []
    for record in chosen:
        live = _Live.of(context, record, deep=False)
        summary = live.summary(record)
        if context.is_restricted(record):
            details = read_proposal(context, record.number).summary
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
    found: list[ProposalRecord] = []
    open_ = [with_merge(context.manifest, r) for n, r in head.open.items() if n < below]
    found += [record for record in open_ if record.state in states]
    if states != {ProposalState.OPEN}:
        at, wanted = below, limit + 1
        kept = 0
        while kept < wanted:
            block = context.log.records_not_open(at, wanted, sorted(states))
            matching = [r for r in block if scope.covers(r) and context.can_read(r)]
            found += matching
            kept += len(matching)
            if len(block) < wanted:
                break
            at = block[-1].number
    shown = [r for r in found if scope.covers(r) and context.can_read(r)]
    shown.sort(key=lambda record: -record.number)
    return shown[:limit], len(shown) > limit


def _read_token(token: str | None) -> int:
    if token is None:
        return 1 << 62
    if not token.isdigit():
        message = f"'{token[:40]}' is not a page token of a list of proposals"
        raise InvalidInput(message, code="page_token_invalid")
    return int(token)


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
    if not 1 <= limit <= 1000:
        raise InvalidInput(f"a page has 1 to 1000 events, not {limit}", code="limit_invalid")
    if after is not None and not (after.isdigit() and len(after) < 20):
        message = f"'{after[:40]}' is not a cursor of events"
        raise InvalidInput(message, code="cursor_invalid")
    position, total = int(after or 0), context.log.head().events
    if proposal is not None:
        context.record(proposal)
        events = [e for e in context.log.events_of(proposal) if e.event > position]
        events, rest = events[:limit], events[limit:]
        last = events[-1].event if rest else max(total, position)
    else:
        events = context.log.events_after(position, limit)
        rest = bool(events) and events[-1].event < total  # type: ignore[assignment]
        last = events[-1].event if events else position
    shown = _ShownEvents(context)
    return EventPage(tuple(filter(None, map(shown.of, events))), str(last), not rest)


class _ShownEvents:
    """Events without what may not be seen; proposals and schemas are read once."""

    def __init__(self, context: ReviewContext) -> None:
        self._context = context
        self._views: dict[int, AnchorView | None] = {}

    def of(self, event: ProposalEvent) -> ProposalEvent | None:
        """Return what may be seen of an event, None if nothing."""
        number = event.proposal
        if number not in self._views:
            self._views[number] = self._view(number)
        view = self._views[number]
        if view is None or not view.shows(event.payload):
            return None
        if view.is_everything:
            return event
        payload = {k: v for k, v in event.payload.items() if k not in ("checks", "summary")}
        return replace(event, payload=payload)

    def _view(self, number: int) -> AnchorView | None:
        record = self._context.log.record_of(number)
        if record is None or not self._context.can_read(record):
            return None
        return _anchor_view(self._context, record)


def worst_status(runs: Sequence[CheckRun]) -> CheckStatus:
    """Return the worst status of some checks."""
    order = list(CheckStatus)
    return max((run.status for run in runs), key=order.index, default=CheckStatus.PASSED)
