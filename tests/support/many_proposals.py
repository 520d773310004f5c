"""Gives a graph thousands of proposals at once, as creating and merging or closing each would."""

from __future__ import annotations

from dataclasses import replace

import omnigraph.graph as og
from omnigraph.commit.proposal_log import (
    EventDraft,
    EventKind,
    ProposalHead,
    ProposalLog,
    ProposalRecord,
    ProposalState,
    _event_of,
    _event_row,
)

ENDINGS = (
    (EventKind.CLOSED, ProposalState.CLOSED),
    (EventKind.MERGED, ProposalState.MERGED),
)


def settle_proposals(graph: og.Graph, count: int) -> None:
    """Add proposals that are merged or closed already; the graph has one proposal at least."""
    log = ProposalLog(graph._manifest)
    state = log.state()
    assert state is not None, "it has a proposal"
    head, rows = ProposalHead.of(state), []
    [pattern] = list(head.open.values())[:1]

    def append(before: ProposalRecord | None, kind: EventKind, record: ProposalRecord) -> None:
        nonlocal head
        draft = EventDraft(kind=kind, actor="act-ada", verified=False, record=record)
        event, after = _event_of(draft, before, head, state)
        head = head.after(before, after)
        rows.append(_event_row(f"event:{event.event}", event, after, state.version + 1))

    for number in range(count):
        kind, ended = ENDINGS[number % 2]
        fresh = replace(pattern, seq=0, source=f"old/{number}", title=f"number {number}")
        append(None, EventKind.CREATED, fresh)
        opened = head.open[head.last_number]
        append(opened, kind, replace(opened, state=ended))
    newer = replace(state.head, proposals=head.to_json())
    state.lineage.swap(state, newer, rows)
