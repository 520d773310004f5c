"""Create, list, read and change proposals; every change is one event."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from typing import Any, TypeAlias

from omnigraph.changes.diff import pair_types
from omnigraph.changes.type_delta import count_changes
from omnigraph.changes.version_history import VersionHistory
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
from omnigraph.commit.snapshot import apply_scope, head_snapshot, snapshot_of_commit
from omnigraph.errors import Category, InvalidInput, NotFound, OmniError, VersionReclaimed
from omnigraph.lang import did_you_mean
from omnigraph.merge.merge_base import CommitGraph
from omnigraph.policy import ALL_TYPES, PolicyDenied, TypeScope
from omnigraph.policy.protection_rules import ProtectionRule
from omnigraph.review.anchors import AnchorView, encode_anchor
from omnigraph.review.model import (
    CheckRun,
    CheckStatus,
    SourceState,
    Verdict,
    fold_events,
    is_comment_event,
)

MAX_TITLE = 200
"""Characters of a title."""
MAX_BODY = 65_536
"""Characters of a description, a comment or the text of a review."""
MAX_REVIEWERS = 50
MAX_OPEN = 1_000
"""Open proposals of a graph, which the head of their lineage holds."""

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
        return with_merge(self.manifest, self.stored_record(number))

    def stored_record(self, number: int) -> ProposalRecord:
        """Return what the events say of a proposal that may be read."""
        record = self.log.record_of(number)
        if record is None or not self.can_read(record):
            raise not_found(number)
        return record

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
    """Return a proposal as merged if a merge commit says so and its event is still missing.

    One that was closed while its merge was published is merged: the merge did not know of it.
    """
    if record.state is ProposalState.MERGED:
        return record
    commit_id = merge_commit_of(manifest, record)
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
        listed: object = self.reviewers
        if not isinstance(listed, str | Iterable):
            problems.append("the reviewers must be a list of names")
            return ()
        given = [listed] if isinstance(listed, str) else list(listed)
        if len(given) > MAX_REVIEWERS:
            problems.append(
                f"there are {len(given)} reviewers; at most {MAX_REVIEWERS} are allowed"
            )
            return ()
        names = [checked_text(name, "a reviewer", problems, most=MAX_TITLE) for name in given]
        if not problems and not all(map(is_actor_name, names)):
            problems.append("the name of a reviewer is blank or has control characters")
        return tuple(dict.fromkeys(name.strip() for name in names))


def is_actor_name(name: str) -> bool:
    """Return whether a text can be shown and stored as the name of an actor."""
    return 0 < len(name.strip()) <= len(name) <= MAX_TITLE and name.isprintable()


def check_actor_name(name: str | None) -> None:
    """Raise InvalidInput for an actor whose reviews could not be shown and stored."""
    if name is not None and not is_actor_name(name):
        message = (
            f"the name of an actor has 1 to {MAX_TITLE} characters, not all of them blank, "
            "and no control characters or line breaks"
        )
        raise InvalidInput(message, code="actor_invalid")


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
    if text.title is None:
        raise_problems(["the title must be a text"])
    manifest = context.manifest
    source, target = (head_snapshot(manifest, name) for name in (source_name, target_name))
    for snapshot in (source, target):
        context.scope_of(snapshot.branch)
    if source.branch == target.branch:
        message = f"branch '{source.branch}' cannot be merged into itself"
        raise InvalidInput(message, code="proposal_same_branch", branch=source.branch)
    base, _ = divergence(manifest, source, target)
    if base == source.commit_id:
        message = f"nothing to merge: '{target.branch}' contains all commits of '{source.branch}'"
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
                f"proposal {other.number} to merge '{record.source}' into '{record.target}' "
                "is open already",
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
    stored = context.stored_record(number)
    if with_merge(context.manifest, stored).state is not stored.state:
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
        if newest.state is ProposalState.MERGED or commit_id is None:
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
        closed = replace(_with_note(record, note), state=ProposalState.CLOSED, head=head)
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
        opened = replace(_with_note(record, note), state=ProposalState.OPEN)
        return context.draft(EventKind.REOPENED, opened, note)

    append_to(context, number, make)


def _with_note(record: ProposalRecord, note: Mapping[str, str]) -> ProposalRecord:
    """Count the comment that goes with closing or opening a proposal, which begins a thread."""
    more = len(note)
    return replace(record, comments=record.comments + more, unresolved=record.unresolved + more)


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
        newest = newest or _deleted_source(manifest, record)
        if newest is not None:
            base = record.base
            with suppress(NotFound):  # without a target it is compared with the base it had
                base, _ = divergence(manifest, newest, head_snapshot(manifest, record.target))
            with suppress(NotFound):
                return snapshot_of_commit(manifest, base), newest
    try:
        base_id, head_id = record.base, record.head
        return snapshot_of_commit(manifest, base_id), snapshot_of_commit(manifest, head_id)
    except NotFound as error:
        message = (
            f"the commits of proposal {record.number} were deleted with branch '{record.source}'; "
            "its conversation and its summary are kept"
        )
        raise NotFound(message, code="commit_not_found", commit=record.head) from error


def _deleted_source(manifest: Manifest, record: ProposalRecord) -> Snapshot | None:
    """Return the last state of a source that was deleted, which is kept for open proposals."""
    with suppress(NotFound):
        state = manifest.lineage(record.source_lineage).state()
        schema, source = manifest.schema(state.head.schema_hash, state)
        return Snapshot(
            branch=record.source,
            lineage_id=record.source_lineage,
            manifest_version=state.version,
            head=state.head,
            schema=schema,
            schema_source=source,
        )
    return None


def summarize_shown(context: ReviewContext, record: ProposalRecord) -> dict[str, Counts]:
    """Return the changes of a proposal that may be seen, by type; none if they were cleaned up."""
    manifest = context.manifest
    try:
        base, head = proposal_states(manifest, record)
        base = apply_scope(manifest, base, context.scope_of(record.target))
        head = apply_scope(manifest, head, context.scope_of(record.source))
        return count_differences(manifest, base, head)
    except (NotFound, VersionReclaimed):
        return {}


def count_differences(manifest: Manifest, base: Snapshot, head: Snapshot) -> dict[str, Counts]:
    """Return how many entities differ between two states, by type."""
    steps, found = VersionHistory(manifest, (base, head)), dict[str, Counts]()
    for before, after in pair_types(manifest, base, head):
        side = after or before
        assert side is not None, "a pair has at least one side"
        inserted, updated, deleted = count_changes(before, after, steps)
        known = found.get(side.type.entity, Counts())
        found[side.type.entity] = Counts(
            inserted=known.inserted + inserted,
            updated=known.updated + updated,
            deleted=known.deleted + deleted,
        )
    return {key: counts for key, counts in found.items() if counts != Counts()}


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
        payload["on"] = encode_anchor(anchor_view(context, record), on)
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
    view = anchor_view(context, record)
    events = {event.seq: event for event in context.log.events_of(record.number)}
    found = events.get(id_)
    first = None if found is None else events.get(found.payload.get("thread", id_))
    is_comment = first is not None and is_comment_event(first)
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
            f"branch '{record.source}' has moved from {commit!s:.40} to {head}; "
            "review the new state",
            code="proposal_moved",
            category=Category.CONFLICT,
            details={"expected": f"{commit!s:.40}", "actual": head},
        )
    lineage = record.source_lineage if newest is None else newest.lineage_id
    payload = {"verdict": verdict, "body": text, "commit_id": head, "lineage": lineage}

    def make(latest: ProposalRecord) -> EventDraft:
        verdicts = dict(latest.verdicts)
        is_counted = latest.state is not ProposalState.MERGED
        if verdict != Verdict.COMMENT and context.actor is not None and is_counted:
            verdicts[context.actor] = (verdict, head, lineage or "")
        return context.draft(EventKind.REVIEWED, replace(latest, verdicts=verdicts), payload)

    event = append_to(context, number, make)
    assert event is not None, "a review is an event"
    return event.seq


def anchor_view(context: ReviewContext, record: ProposalRecord) -> AnchorView:
    """Return what may be named in comments of a proposal; main stands in for a deleted branch."""
    snapshots = []
    for name in (record.source, record.target):
        try:
            snapshot = head_snapshot(context.manifest, name)
        except NotFound:
            snapshot = head_snapshot(context.manifest, MAIN)
        snapshots.append((snapshot, context.scope_of(name)))
    return AnchorView.of(context.manifest, snapshots)


def target_rules(context: ReviewContext, record: ProposalRecord) -> tuple[ProtectionRule, ...]:
    """Return the rules about the target of a proposal."""
    permit = WritePermit(rules=context.rules)
    return rules_for(record.target, context.manifest.main.state().head, permit)


# --- reading ------------------------------------------------------------------------------------


def worst_status(runs: Sequence[CheckRun]) -> CheckStatus:
    """Return the worst status of some checks."""
    order = list(CheckStatus)
    return max((run.status for run in runs), key=order.index, default=CheckStatus.PASSED)
