"""The proposals and the protection of a remote graph."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from omnigraph.changes.model import Change, ChangeFilter
from omnigraph.commit.proposal_log import ProposalEvent
from omnigraph.graph.proposal_protocol import (
    ProposalMerge,
    ProposalPreview,
    ProposalsApi,
    ProtectionApi,
)
from omnigraph.merge.model import MergeResult
from omnigraph.policy.protection_rules import ProtectionRule, read_rules
from omnigraph.review.model import CheckRun, ProposalDetails, ProposalSummary, summary_members
from omnigraph.review.proposals import ProposalText
from omnigraph.review.views import EventPage, ProposalFilter, ProposalPage
from omnigraph.service import wire
from omnigraph.service.client.decode import read_change, read_merge
from omnigraph.service.client.resources import (
    RemoteAddress,
    RemoteTarget,
    filter_members,
    members,
)
from omnigraph.service.operations import review as operations


class RemoteProposals(ProposalsApi[RemoteAddress, RemoteTarget]):
    """The proposals of a graph: requests to merge a branch into another."""

    def events(
        self, after: str | None = None, *, proposal: int | None = None, limit: int = 100
    ) -> EventPage:
        request = wire.ProposalEventsQuery(after=after, proposal=proposal, limit=limit)
        facts = members(self._context.call(operations.list_events, request))
        events = tuple(ProposalEvent.from_json(event) for event in facts["events"])
        return EventPage(events, facts["cursor"], facts["caught_up"])

    def _create(self, source: str, target: str, text: ProposalText) -> ProposalDetails:
        request = wire.ProposalCreateRequest(
            source=source, target=target, **_text_members(text, wire.ProposalCreateRequest)
        )
        return _details(self._context.call(operations.create_proposal, request))

    def _get(self, number: int) -> ProposalDetails:
        request = wire.ProposalQuery(number=str(number))
        return _details(self._context.call(operations.get_proposal, request))

    def _page(self, scope: ProposalFilter, limit: int, token: str | None) -> ProposalPage:
        request = wire.ProposalListQuery(
            state=scope.state,
            author=scope.author,
            reviewer=scope.reviewer,
            target=scope.target,
            limit=limit,
            page_token=token,
        )
        facts = members(self._context.call(operations.list_proposals, request))
        listed = tuple(ProposalSummary(**summary_members(one)) for one in facts["proposals"])
        return ProposalPage(listed, facts["counts"], facts.get("next_page_token"))

    def _edit(self, number: int, text: ProposalText) -> ProposalDetails:
        body = wire.ProposalEditRequest(**_text_members(text, wire.ProposalEditRequest))
        request = wire.ProposalEditQuery(number=str(number), body=body)
        return _details(self._context.call(operations.edit_proposal, request))

    def _close(self, number: int, comment: str | None) -> ProposalDetails:
        request = _closing(number, comment)
        return _details(self._context.call(operations.close_proposal, request))

    def _reopen(self, number: int, comment: str | None) -> ProposalDetails:
        request = _closing(number, comment)
        return _details(self._context.call(operations.reopen_proposal, request))

    def _comment(self, number: int, body: str, on: object, thread: int | None) -> int:
        given = {"body": body, "on": _anchor(on), "thread": thread}
        sent = _convert({k: v for k, v in given.items() if v is not None}, wire.CommentRequest)
        request = wire.ProposalCommentQuery(number=str(number), body=sent)
        return self._context.call(operations.comment_proposal, request).id

    def _resolve(self, number: int, comment: int, *, resolved: bool) -> int:
        body = wire.ResolveRequest(resolved=resolved)
        request = wire.ResolveCommentQuery(number=str(number), comment_id=str(comment), body=body)
        return self._context.call(operations.resolve_comment, request).id

    def _review(self, number: int, verdict: str, body: str, commit: str | None) -> int:
        sent = wire.ReviewRequest(verdict=verdict, body=body, commit=commit)
        request = wire.ProposalReviewQuery(number=str(number), body=sent)
        return self._context.call(operations.review_proposal, request).id

    def _run_checks(self, number: int) -> Sequence[CheckRun]:
        request = wire.ProposalQuery(number=str(number))
        facts = members(self._context.call(operations.run_checks, request))
        return [CheckRun.from_json(one) for one in facts["checks"]]

    def _preview(self, number: int) -> ProposalPreview:
        request = wire.ProposalQuery(number=str(number))
        facts = members(self._context.call(operations.preview_proposal, request))
        return ProposalPreview(merge=read_merge(facts["merge"]), schema=facts["schema"])

    def _diff(self, number: int, scope: ChangeFilter) -> Iterator[Change]:
        request = wire.ProposalDiffQuery(number=str(number), **filter_members(scope))
        lines = self._context.lines(operations.diff_proposal, request)
        return (read_change(msgspec.json.decode(line)) for line in lines)

    def _merge(self, number: int, call: ProposalMerge) -> MergeResult:
        body = wire.ProposalMergeRequest(
            resolve=call.resolve, delete_branch=call.delete_branch, message=call.message
        )
        request = wire.ProposalMergeQuery(number=str(number), body=body)
        wait = {} if call.timeout is None else {"Prefer": f"wait={math.ceil(call.timeout)}"}
        answer = self._context.call(operations.merge_proposal, request, headers=wait)
        return read_merge(members(answer))


class RemoteProtection(ProtectionApi[RemoteAddress, RemoteTarget]):
    """The protection of branches, which every writer of the graph is held to."""

    def _read(self) -> tuple[tuple[ProtectionRule, ...], tuple[ProtectionRule, ...]]:
        answer = self._context.call(operations.get_protection, wire.NoRequest())
        return read_rules(answer.rules), read_rules(answer.policy_rules)

    def _write(self, rules: tuple[ProtectionRule, ...]) -> None:
        if not rules:
            self._context.call(operations.clear_protection, wire.NoRequest())
            return
        request = wire.ProtectionRequest(rules=[rule.to_json() for rule in rules])
        self._context.call(operations.set_protection, request)


def _details(answer: wire.ProposalOutput) -> ProposalDetails:
    return ProposalDetails.from_json(members(answer))


def _closing(number: int, comment: str | None) -> wire.ProposalCloseQuery:
    body = wire.ProposalCommentText(comment=comment)
    return wire.ProposalCloseQuery(number=str(number), body=body)


def _text_members(text: ProposalText, shape: type) -> dict[str, Any]:
    """Return what is given of a text, checked as an embedded graph checks it."""
    facts = text.check()
    names = {field.name for field in msgspec.structs.fields(shape)}
    listed = {k: list(v) if isinstance(v, tuple) else v for k, v in facts.items()}
    return {name: value for name, value in listed.items() if name in names}


def _anchor(on: object) -> Any:  # noqa: ANN401 - JSON
    if isinstance(on, str):
        return {"type": on}
    if isinstance(on, tuple | list):
        return dict(zip(("type", "id", "property"), on, strict=False))
    return dict(on) if isinstance(on, Mapping) else on


def _convert(value: Mapping[str, Any], shape: type[wire.CommentRequest]) -> wire.CommentRequest:
    return msgspec.convert(value, shape)
