"""The proposals and the protection of an embedded graph."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace

from omnigraph.changes.diff import diff
from omnigraph.changes.model import Change, ChangeFilter, check_filter_types
from omnigraph.commit.branches import delete_branch
from omnigraph.commit.model import Snapshot
from omnigraph.commit.proposal_log import ProposalRecord
from omnigraph.commit.protection_store import read_protection, write_protection
from omnigraph.commit.snapshot import SnapshotRef, apply_scope, head_snapshot
from omnigraph.errors import NotFound, OmniError
from omnigraph.graph.context import GraphContext
from omnigraph.graph.proposal_protocol import (
    ProposalMerge,
    ProposalPreview,
    ProposalsApi,
    ProtectionApi,
)
from omnigraph.graph.protocol import CommitOptions
from omnigraph.merge.conflict_decisions import parse_decisions
from omnigraph.merge.conflicts import MergeConflicts
from omnigraph.merge.merge import merge
from omnigraph.merge.model import MergeOptions, MergeResult
from omnigraph.policy import PolicyAction, TypeScope
from omnigraph.policy.protection_rules import ProtectionRule
from omnigraph.query.engine import Engine
from omnigraph.review.merging import merge_proposal, run_proposal_checks
from omnigraph.review.model import CheckRun, ProposalDetails
from omnigraph.review.proposals import (
    ProposalText,
    ReviewContext,
    add_comment,
    add_review,
    check_actor_name,
    close_proposal,
    create_proposal,
    edit_proposal,
    proposal_states,
    reopen_proposal,
    require_open,
    resolve_comment,
    source_head,
)
from omnigraph.review.schema_changes import SchemaReview
from omnigraph.review.views import (
    EventPage,
    ProposalFilter,
    ProposalPage,
    list_proposals,
    read_events,
    read_proposal,
)


class Proposals(ProposalsApi[GraphContext, SnapshotRef]):
    """The proposals of a graph: requests to merge a branch into another."""

    @property
    def _reading(self) -> ReviewContext:
        """Return the actor and what it may see."""
        context = self._context
        context.gate.check_actor()
        policy = context.gate.policy
        return ReviewContext(
            manifest=context.manifest,
            actor=context.gate.actor,
            verified=context.verified,
            rules=() if policy is None else policy.bundle.protection,
            groups=None if policy is None else policy.bundle.groups,
            scope_of=self._scope_of,
            may_manage=self._check_manage,
        )

    @property
    def _writing(self) -> ReviewContext:
        self._context.require_writable()
        check_actor_name(self._context.gate.actor)
        return self._reading

    def _scope_of(self, branch: str) -> TypeScope:
        return self._context.gate.check(PolicyAction.READ, branch)

    def _check_manage(self, record: ProposalRecord) -> None:
        """Allow the author, and actors that may merge into the target."""
        gate = self._context.gate
        if gate.actor is None or gate.actor != record.author:
            gate.check(PolicyAction.BRANCH_MERGE, record.source, record.target)

    def branches(self, number: int) -> tuple[str, str]:
        """Return the source and the target of a proposal that may be read."""
        record = self._reading.record(number)
        return record.source, record.target

    def events(
        self, after: str | None = None, *, proposal: int | None = None, limit: int = 100
    ) -> EventPage:
        return read_events(self._reading, after, proposal=proposal, limit=limit)

    def _create(self, source: str, target: str, text: ProposalText) -> ProposalDetails:
        for name in (source, target):
            self._scope_of(name)
        return self._get(create_proposal(self._writing, source, target, text))

    def _get(self, number: int) -> ProposalDetails:
        return read_proposal(self._reading, number)

    def _page(self, scope: ProposalFilter, limit: int, token: str | None) -> ProposalPage:
        return list_proposals(self._reading, scope, limit, token)

    def _edit(self, number: int, text: ProposalText) -> ProposalDetails:
        edit_proposal(self._writing, number, text)
        return self._get(number)

    def _close(self, number: int, comment: str | None) -> ProposalDetails:
        close_proposal(self._writing, number, comment)
        return self._get(number)

    def _reopen(self, number: int, comment: str | None) -> ProposalDetails:
        reopen_proposal(self._writing, number, comment)
        return self._get(number)

    def _comment(self, number: int, body: str, on: object, thread: int | None) -> int:
        return add_comment(self._writing, number, body, on=on, thread=thread)

    def _resolve(self, number: int, comment: int, *, resolved: bool) -> int:
        return resolve_comment(self._writing, number, comment, resolved=resolved)

    def _review(self, number: int, verdict: str, body: str, commit: str | None) -> int:
        return add_review(self._writing, number, verdict, body, commit=commit)

    def _run_checks(self, number: int) -> Sequence[CheckRun]:
        review = self._writing
        record = review.record(number)
        self._context.check_preview(record.source, record.target)
        target = CommitOptions(record.target, None)
        request = self._context.merge_request("merge", target)
        checks = self._context.checks
        return run_proposal_checks(review, number, request, self._engine, checks, MergeOptions())

    def _preview(self, number: int) -> ProposalPreview:
        review = self._reading
        record = review.record(number)
        require_open(record, "previewed")
        self._context.check_preview(record.source, record.target)
        source, manifest = source_head(review, record), self._context.manifest
        request = self._context.preview_request("merge", CommitOptions(record.target, None))
        result = merge(manifest, request, source, MergeOptions(dry_run=True))
        base, head = self._shown_states(record)
        target = head_snapshot(manifest, record.target)
        target = apply_scope(manifest, target, self._scope_of(record.target))
        plan = SchemaReview(manifest, base, head, target).to_json()
        return ProposalPreview(merge=result, schema=plan)

    def _diff(self, number: int, scope: ChangeFilter) -> Iterator[Change]:
        base, head = self._shown_states(self._reading.record(number))
        check_filter_types(scope, [base.schema, head.schema])
        return diff(self._context.manifest, base, head, scope)

    def _shown_states(self, record: ProposalRecord) -> tuple[Snapshot, Snapshot]:
        """Return what may be seen of the base and the newest state of the source."""
        manifest = self._context.manifest
        base, head = proposal_states(manifest, record)
        scopes = (self._scope_of(record.target), self._scope_of(record.source))
        return apply_scope(manifest, base, scopes[0]), apply_scope(manifest, head, scopes[1])

    def _merge(self, number: int, call: ProposalMerge) -> MergeResult:
        review, gate = self._writing, self._context.gate
        record = review.record(number)
        gate.check(PolicyAction.BRANCH_MERGE, record.source, record.target)
        if call.delete_branch:
            gate.check(PolicyAction.BRANCH_DELETE, target_branch=record.source)
        target = CommitOptions(record.target, call.message, timeout=call.timeout)
        request = self._context.merge_request("merge", target)
        options = MergeOptions(decisions=parse_decisions(call.resolve))
        checks = self._context.checks
        before: Snapshot | None = None
        with suppress(NotFound):  # a branch that is gone is reported by the merge
            before = head_snapshot(self._context.manifest, record.source)
        try:
            result = merge_proposal(review, number, request, self._engine, checks, options)
        except MergeConflicts as error:
            conflicts = error.conflicts
            self._context.check_conflicts_shown(conflicts, record.source, record.target)
            raise
        return self._delete_source(record, before, result) if call.delete_branch else result

    def _delete_source(
        self, record: ProposalRecord, before: Snapshot | None, result: MergeResult
    ) -> MergeResult:
        permit, manifest = self._context.permit(record.source), self._context.manifest
        try:
            delete_branch(manifest, record.source, permit=permit, unchanged_since=before)
        except OmniError as error:
            return replace(result, branch_deleted=False, branch_delete_error=error.message)
        return replace(result, branch_deleted=True)

    @property
    def _engine(self) -> Engine:
        """Return an engine that writes no derived files: it reads states that are not published."""
        embedder = self._context.engine.embedder
        return Engine(self._context.manifest, may_write=False, embedder=embedder)


class Protection(ProtectionApi[GraphContext, SnapshotRef]):
    """The protection of branches, which every writer of the graph is held to."""

    def _read(self) -> tuple[tuple[ProtectionRule, ...], tuple[ProtectionRule, ...]]:
        gate = self._context.gate
        gate.check(PolicyAction.READ)
        policy = gate.policy
        return read_protection(self._context.manifest), (
            () if policy is None else policy.bundle.protection
        )

    def _write(self, rules: tuple[ProtectionRule, ...]) -> None:
        self._context.gate.check(PolicyAction.ADMIN)
        self._context.require_writable()
        manifest = self._context.manifest
        observe = manifest.datasets.observe
        write_protection(manifest, rules, actor=self._context.gate.actor, observe=observe)
