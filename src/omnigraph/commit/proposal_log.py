"""The events of proposals: an append-only lineage with the same compare-and-swap as data.

An event is one row, with its number among all events and within its proposal. The head of the
lineage holds the open proposals and counters, so that listing and opening read no other events;
an event of a proposal that is not open carries the state of the proposal after it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, TypeAlias

from ulid import ULID

from omnigraph.commit.lineage import LineageState
from omnigraph.commit.lineage_maintenance import maintain_lineage
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.manifest_rows import NewManifestRow, head_row, manifest_table
from omnigraph.commit.model import CommitId, Head, RowChecksum
from omnigraph.commit.publish import retry_swap
from omnigraph.errors import AlreadyExists, GraphCorrupt, NotFound
from omnigraph.storage.layout import PROPOSALS

RECENT_EVENTS = 512
"""Events that are looked for in the newest pages of the lineage; older ones are found by a scan."""
MAX_SETTLED = 32
"""Numbers of merged proposals that the head of the lineage holds."""
MAX_NUMBER = 1 << 62
"""Greater than the number of any proposal."""
_EVENT_ROW = "proposal_event"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class EventKind(StrEnum):
    """What happened to a proposal."""

    CREATED = "created"
    EDITED = "edited"
    COMMENTED = "commented"
    RESOLVED = "resolved"
    UNRESOLVED = "unresolved"
    REVIEWED = "reviewed"
    CHECKED = "checked"
    CLOSED = "closed"
    REOPENED = "reopened"
    MERGED = "merged"


class ProposalState(StrEnum):
    """Whether a proposal can still be merged."""

    OPEN = "open"
    MERGED = "merged"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposalEvent:
    """One event; `event` is its number among all events, `seq` that within its proposal.

    `verified` means that a server identified the actor; otherwise the name is a claim.
    """

    event: int
    proposal: int
    seq: int
    kind: EventKind
    actor: str | None
    verified: bool
    created_at: datetime
    payload: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the wire form."""
        return {
            "event": self.event,
            "proposal": self.proposal,
            "seq": self.seq,
            "kind": str(self.kind),
            "actor_id": self.actor,
            "verified": self.verified,
            "created_at": (self.created_at - _EPOCH) // _MICROSECOND,
            "payload": dict(self.payload),
        }

    @classmethod
    def from_json(cls, facts: Mapping[str, Any]) -> ProposalEvent:
        """Read the wire form."""
        return cls(
            event=facts["event"],
            proposal=facts["proposal"],
            seq=facts["seq"],
            kind=EventKind(facts["kind"]),
            actor=facts["actor_id"],
            verified=facts["verified"],
            created_at=_EPOCH + facts["created_at"] * _MICROSECOND,
            payload=facts["payload"],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposalRecord:
    """The state of a proposal as its events fold to; times are microseconds since 1970.

    `head` and `base` are the commits of the source and of the merge base when it was created, or
    when it was merged or closed. `first_event` and `first_version` are where its events begin.
    """

    number: int
    seq: int = 0
    first_event: int = 0
    first_version: int = 0
    state: ProposalState = ProposalState.OPEN
    title: str = ""
    author: str | None = None
    verified: bool = False
    source: str
    source_lineage: str | None
    source_ancestors: tuple[str, ...] = ()
    target: str
    target_lineage: str | None
    head: CommitId
    base: CommitId
    reviewers: tuple[str, ...] = ()
    verdicts: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """The newest verdict by actor: the verdict, the commit and the lineage it is about."""
    comments: int = 0
    unresolved: int = 0
    checks: Sequence[str] = ()
    """The worst status of the last checks, and the heads of source and target they were run on."""
    created_at: int = 0
    updated_at: int = 0
    closed_at: int | None = None
    closed_by: str | None = None
    merge_commit: str | None = None
    description: str = ""
    """Not part of the folded head: the first event has it."""

    @property
    def is_open(self) -> bool:
        """Whether it can be merged."""
        return self.state is ProposalState.OPEN

    def to_json(self) -> dict[str, Any]:
        """Return the stored form, without members that are empty."""
        members = {k: v for k, v in asdict(self).items() if v not in (None, (), {}, "", 0, False)}
        members.pop("description", None)
        return members | {"source_lineage": self.source_lineage}

    @classmethod
    def from_json(cls, members: Mapping[str, Any]) -> ProposalRecord:
        """Read the stored form."""
        try:
            facts = {"target_lineage": None, **members}
            state = ProposalState(facts.pop("state", ProposalState.OPEN))
            for name in ("source_ancestors", "reviewers"):
                facts[name] = tuple(facts.get(name, ()))
            return cls(**facts, state=state)
        except (TypeError, ValueError) as error:
            raise GraphCorrupt("a proposal cannot be read", cause=str(error)) from error


@dataclass(frozen=True, slots=True)
class ProposalHead:
    """The open proposals by number, counters by state, and the number of events.

    `settled` are the numbers of those that were merged last.
    """

    events: int = 0
    last_number: int = 0
    counts: Mapping[str, int] = field(default_factory=dict)
    open: Mapping[int, ProposalRecord] = field(default_factory=dict)
    settled: tuple[int, ...] = ()

    @classmethod
    def of(cls, state: LineageState | None) -> ProposalHead:
        """Return what the head of the lineage holds."""
        facts = {} if state is None else state.head.proposals
        records = (ProposalRecord.from_json(one) for one in facts.get("open", ()))
        return cls(
            events=facts.get("events", 0),
            last_number=facts.get("last", 0),
            counts=facts.get("counts", {}),
            open={record.number: record for record in records},
            settled=tuple(facts.get("settled", ())),
        )

    def to_json(self) -> dict[str, Any]:
        """Return the stored form."""
        return {
            "events": self.events,
            "last": self.last_number,
            "counts": dict(self.counts),
            "open": [record.to_json() for record in self.open.values()],
            "settled": list(self.settled),
        }

    def after(self, before: ProposalRecord | None, record: ProposalRecord) -> ProposalHead:
        """Return the head after an event of a proposal."""
        counts = dict(self.counts)
        if before is not None:
            counts[before.state] = counts.get(before.state, 0) - 1
        counts[record.state] = counts.get(record.state, 0) + 1
        others = {n: one for n, one in self.open.items() if n != record.number}
        settled = self.settled
        if record.state is ProposalState.MERGED and record.number not in settled:
            settled = (*settled, record.number)[-MAX_SETTLED:]
        return ProposalHead(
            events=self.events + 1,
            last_number=max(self.last_number, record.number),
            counts={str(state): count for state, count in counts.items()},
            open={**others, record.number: record} if record.is_open else others,
            settled=settled,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class EventDraft:
    """An event to be appended, and the proposal after it."""

    kind: EventKind
    actor: str | None
    verified: bool
    payload: Mapping[str, Any] = field(default_factory=dict)
    record: ProposalRecord


EventMaker: TypeAlias = Callable[
    [ProposalHead, LineageState | None], tuple[ProposalRecord | None, EventDraft | None]
]
"""Returns a proposal and the event to append to it, or None if there is nothing to do."""


class ProposalLog:
    """The lineage of the proposals of a graph; it exists from the first proposal on."""

    def __init__(self, manifest: Manifest) -> None:
        self._manifest = manifest
        self._lineage = manifest.lineage(PROPOSALS)

    def state(self) -> LineageState | None:
        """Return the newest state; None if there never was a proposal."""
        try:
            return self._lineage.state()
        except NotFound:
            return None

    def head(self) -> ProposalHead:
        """Return the open proposals and counters."""
        return ProposalHead.of(self.state())

    def append(self, make: EventMaker) -> ProposalEvent | None:
        """Append the event that `make` returns for the newest state, by one swap.

        After a lost race `make` is called again; after a lost answer the event is found by its ID.
        """
        key, since, appended = f"event:{ULID()}", -1, list[ProposalEvent]()

        def attempt() -> None:
            nonlocal since
            state = self.state() or self._create()
            if since >= 0 and state.version > since:
                rows = [r for r in state.rows_after(since) if r["object_id"] == key]
                if rows:
                    appended[:] = [read_event(rows[0])]
                    return
            since = state.version
            head = ProposalHead.of(state)
            before, draft = make(head, state)
            if draft is None:
                return
            event, record = _event_of(draft, before, head, state)
            newer = replace(state.head, proposals=head.after(before, record).to_json())
            self._lineage.swap(state, newer, [_event_row(key, event, record, state.version + 1)])
            appended[:] = [event]

        retry_swap(attempt)
        self._manifest.datasets.observe("proposal: event appended")
        maintain_lineage(self._lineage)
        return appended[0] if appended else None

    def _create(self) -> LineageState:
        """Create the lineage; another process may do so at the same time."""
        datasets = self._manifest.datasets
        head = Head(
            commit_id=CommitId(""),
            schema_hash="",
            datasets={},
            row_checksum=RowChecksum(0, 0),
            relaxed=datasets.is_relaxed,
        )
        try:
            datasets.create(self._lineage.path, manifest_table([head_row(head, 1)]))
        except AlreadyExists:
            self._lineage.forget()
        return self._lineage.state()

    def events_of(self, number: int, state: LineageState | None = None) -> list[ProposalEvent]:
        """Return the events of a proposal, the oldest first."""
        state = state or self.state()
        if state is None:
            return []
        head = ProposalHead.of(state)
        record = head.open.get(number)
        if record is not None and head.events - record.first_event < RECENT_EVENTS:
            rows = state.rows_after(record.first_version - 1)
        else:
            condition = f"object_type = '{_EVENT_ROW}' AND stable_table_id = {number}"
            rows = [row.row for row in state.rows(condition)]
        events = [read_event(row) for row in rows if _is_of(row, number)]
        return sorted(events, key=lambda event: event.seq)

    def events_after(self, after: int, limit: int) -> list[ProposalEvent]:
        """Return the events that follow an event, in order, at most `limit` of them."""
        state = self.state()
        head = ProposalHead.of(state)
        if state is None or head.events <= after:
            return []
        if head.events - after <= RECENT_EVENTS:
            rows: list[dict[str, Any]] = []
            for page in state.pages():
                table = state.read_page(page)
                found = [row for row in table.to_pylist() if row["object_type"] == _EVENT_ROW]
                rows += found
                if any(row["row_count"] <= after + 1 for row in found):
                    break
        else:
            condition = (
                f"object_type = '{_EVENT_ROW}' AND row_count > {after} "
                f"AND row_count <= {after + limit}"
            )
            rows = [row.row for row in state.rows(condition)]
        events = (read_event(row) for row in rows if row["row_count"] > after)
        return sorted(events, key=lambda event: event.event)[:limit]

    def record_of(self, number: int, state: LineageState | None = None) -> ProposalRecord | None:
        """Return the state of a proposal; None if it does not exist."""
        return self.records_of([number], state).get(number)

    def records_of(
        self, numbers: Iterable[int], state: LineageState | None = None
    ) -> dict[int, ProposalRecord]:
        """Return the states of those proposals that exist; the log is scanned once at most."""
        state = state or self.state()
        if state is None:
            return {}
        wanted = {number for number in numbers if 0 < number < MAX_NUMBER}
        records = {n: r for n, r in ProposalHead.of(state).open.items() if n in wanted}
        listed = ", ".join(str(number) for number in sorted(wanted - records.keys()))
        if not listed:
            return records
        condition = (
            f"object_type = '{_EVENT_ROW}' AND table_key <> 'open' "
            f"AND stable_table_id IN ({listed})"
        )
        rows: dict[int, list[dict[str, Any]]] = {}
        for row in state.rows(condition):
            rows.setdefault(row.row["stable_table_id"], []).append(row.row)
        found = ((number, _newest_record(known)) for number, known in rows.items())
        return records | {number: record for number, record in found if record is not None}

    def is_merged(self, number: int) -> bool:
        """Return whether the merge of a proposal is an event."""
        record = self.record_of(number)
        return record is not None and record.state is ProposalState.MERGED

    def records_not_open(self, below: int, block: int) -> Iterator[ProposalRecord]:
        """Yield merged and closed proposals with numbers below one, the greatest first.

        Their numbers are read at once. What else is known of them is read in blocks, each twice as
        large as the one before, since each reads the numbers of all events again.
        """
        state = self.state()
        if state is None:
            return
        still_open = ProposalHead.of(state).open.keys()
        settled = self._newest_closing_rows(state, below) - still_open
        chosen = sorted(settled, reverse=True)
        while chosen:
            numbers, chosen, block = chosen[:block], chosen[block:], 2 * block
            records = self.records_of(numbers, state)
            yield from (records[number] for number in numbers if number in records)

    def _newest_closing_rows(self, state: LineageState, below: int) -> set[int]:
        """Return the numbers of proposals that were merged or closed at some time."""
        condition = (
            f"object_type = '{_EVENT_ROW}' AND table_key <> 'open' AND stable_table_id < {below}"
        )
        rows = state.rows(condition, columns=["stable_table_id"])
        return {row.row["stable_table_id"] for row in rows}


def _event_of(
    draft: EventDraft, before: ProposalRecord | None, head: ProposalHead, state: LineageState
) -> tuple[ProposalEvent, ProposalRecord]:
    """Number an event; times never go back within the lineage."""
    number = head.last_number + 1 if before is None else before.number
    newest = max((one.updated_at for one in head.open.values()), default=0)
    floor = max(newest if before is None else before.updated_at, 0)
    now = max((datetime.now(UTC) - _EPOCH) // _MICROSECOND, floor)
    seq = 1 if before is None else before.seq + 1
    record = replace(draft.record, number=number, seq=seq, updated_at=now)
    if before is None:
        record = replace(
            record,
            created_at=now,
            first_event=head.events + 1,
            first_version=state.version + 1,
            author=draft.actor,
            verified=draft.verified,
        )
    if record.is_open:
        record = replace(record, closed_at=None, closed_by=None)
    elif before is not None and before.state is not record.state:
        record = replace(record, closed_at=now, closed_by=draft.actor)
    event = ProposalEvent(
        event=head.events + 1,
        proposal=number,
        seq=seq,
        kind=draft.kind,
        actor=draft.actor,
        verified=draft.verified,
        created_at=_EPOCH + now * _MICROSECOND,
        payload=draft.payload,
    )
    return event, record


def _event_row(
    key: str, event: ProposalEvent, record: ProposalRecord, version: int
) -> NewManifestRow:
    facts = {k: v for k, v in event.to_json().items() if k not in ("event", "proposal", "seq")}
    if not record.is_open:
        facts["record"] = record.to_json()
    return NewManifestRow(
        object_id=key,
        object_type=_EVENT_ROW,
        metadata=json.dumps(facts, ensure_ascii=False, separators=(",", ":")),
        table_key=str(record.state),
        stable_table_id=event.proposal,
        table_incarnation_id=event.seq,
        table_version=version,
        table_branch=str(event.kind),
        row_count=event.event,
    )


def read_event(row: Mapping[str, Any]) -> ProposalEvent:
    """Read an event from its row."""
    try:
        facts = json.loads(row["metadata"])
        facts |= {
            "event": row["row_count"],
            "proposal": row["stable_table_id"],
            "seq": row["table_incarnation_id"],
        }
        return ProposalEvent.from_json(facts)
    except (LookupError, ValueError, TypeError) as error:
        message = "an event of a proposal cannot be read; `omnigraph verify` lists all damage"
        raise GraphCorrupt(message, object_id=row.get("object_id"), cause=str(error)) from error


def _newest_record(rows: Any) -> ProposalRecord | None:  # noqa: ANN401 - rows of any reader
    """Return the state after the newest event of a proposal that is not open."""
    newest = max(rows, key=lambda row: row["table_incarnation_id"], default=None)
    facts = {} if newest is None else json.loads(newest["metadata"])
    return ProposalRecord.from_json(facts["record"]) if "record" in facts else None


def _is_of(row: Mapping[str, Any], number: int) -> bool:
    return bool(row["object_type"] == _EVENT_ROW and row["stable_table_id"] == number)


def find_event_problems(state: LineageState) -> Iterator[str]:
    """Yield what is wrong with the events of a lineage and with the head that folds them."""
    rows = [row.row for row in state.rows(f"object_type = '{_EVENT_ROW}'")]
    head = ProposalHead.of(state)
    numbers = sorted(row["row_count"] for row in rows)
    if numbers != list(range(1, head.events + 1)):
        yield f"the head counts {head.events} events, stored are {len(numbers)}, or others"
    last: dict[int, dict[str, Any]] = {}
    counted: Counter[int] = Counter()
    for row in sorted(rows, key=lambda row: row["row_count"]):
        number = row["stable_table_id"]
        counted[number] += 1
        last[number] = row
        if row["table_incarnation_id"] != counted[number]:
            yield f"event {row['row_count']} is not the next one of proposal {number}"
        read_event(row)
    if sorted(last) != list(range(1, head.last_number + 1)):
        yield f"the head counts {head.last_number} proposals, events are of {len(last)}"
    states = Counter(row["table_key"] for row in last.values())
    if {k: v for k, v in head.counts.items() if v} != dict(states):
        yield "the head counts other proposals by state than the events"
    open_ = {number for number, row in last.items() if row["table_key"] == ProposalState.OPEN}
    if open_ != head.open.keys():
        yield "the head has other open proposals than the events"
    for number in sorted(open_ & head.open.keys()):
        if head.open[number].seq != counted[number]:
            yield f"the head does not hold the newest state of proposal {number}"
