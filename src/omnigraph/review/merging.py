"""Merge proposals: checks run on the staged commit, and publishing it merges the proposal.

The merge reads the events up to one, its version, and decides by them. The merge commit names the
proposal, the version and the source commit; the head of the target keeps that until the event of
the merge is written, so that a second merge is refused and a crash in between needs no repair.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from omnigraph.commit.model import CommitId, ProposalMark, Snapshot
from omnigraph.commit.proposal_log import EventKind, ProposalRecord, ProposalState
from omnigraph.commit.protection import (
    WritePermit,
    already_merged,
    rules_for,
)
from omnigraph.commit.snapshot import apply_scope, head_snapshot, snapshot_of_staged
from omnigraph.commit.staged_commit import StagedCommit
from omnigraph.errors import Category, Contention, OmniError
from omnigraph.lang import QueryError
from omnigraph.merge.merge import merge
from omnigraph.merge.model import MergeOptions, MergeResult
from omnigraph.policy import TypeScope
from omnigraph.policy.protection_rules import ProtectionRule
from omnigraph.query.checks import (
    COULD_NOT_RUN,
    CheckResult,
    CheckSeverity,
    ChecksFailed,
    StateCheck,
    error_result,
    run_checks,
    types_read,
)
from omnigraph.query.engine import Engine
from omnigraph.query.limits import QueryLimit
from omnigraph.review.model import CheckRun, CheckStatus
from omnigraph.review.proposals import (
    ReviewContext,
    append_to,
    divergence,
    record_merge,
    require_open,
    source_head,
    target_rules,
    worst_status,
)
from omnigraph.review.requirements import evaluate_rules
from omnigraph.write.request import WriteRequest

CHECK_TIMEOUT_SECONDS = 30.0
"""How long checks may take while a merge keeps the turn of its branch."""
_UNREADABLE = "it names types or properties that do not exist, or that the actor may not read"


class ReviewRequired(OmniError):
    """A proposal does not satisfy the protection of its target."""

    def __init__(self, record: ProposalRecord, requirements: Sequence[Any]) -> None:
        missing = [one for one in requirements if not one.satisfied]
        lines = "; ".join(one.message for one in missing)
        super().__init__(
            f"proposal {record.number} cannot be merged into '{record.target}' yet: {lines}",
            code="review_required",
            category=Category.CONFLICT,
            details={
                "proposal": record.number,
                "requirements": [one.to_json() for one in requirements],
            },
        )


@dataclass(slots=True)
class StagedChecks:
    """Runs checks on staged commits; a verdict stands while nothing changes what it read."""

    engine: Engine
    checks: Sequence[StateCheck]
    scope: TypeScope
    source: Snapshot
    results: dict[str, tuple[object, CheckResult, tuple[str, ...]]] = field(default_factory=dict)
    runs: list[CheckRun] = field(default_factory=list)
    rounds: int = 0

    def __call__(self, staged: StagedCommit, base: Snapshot, *, holding: bool) -> StagedCommit:
        """Check what a staged commit makes of a state; return it with what the checks read.

        Raises:
            ChecksFailed: a check failed; nothing is published.
            Contention: the checks took too long while other writers waited.
        """
        if not self.checks:
            return staged
        self.rounds += 1
        whole = snapshot_of_staged(base, staged)
        shown = apply_scope(self.engine.manifest, whole, self.scope)
        until = time.monotonic() + CHECK_TIMEOUT_SECONDS if holding else None
        read = set[str]()
        for check in self.checks:
            read |= set(self._verdict(check, base, shown, until))
        self.runs = [self._run_of(check, staged, base, shown) for check in self.checks]
        if any(run.is_blocking for run in self.runs):
            raise ChecksFailed([self.results[check.name][1] for check in self.checks])
        written = {dataset.table_key for dataset in staged.datasets}
        entries = base.entries()
        more = {
            key: (entries[key].key, entries[key].physical)
            for key in sorted(read - written)
            if key in entries
        }
        return replace(staged, reads={**staged.reads, **more})

    def _verdict(
        self, check: StateCheck, base: Snapshot, shown: Snapshot, until: float | None
    ) -> tuple[str, ...]:
        """Run a check unless its verdict stands; return the types that it reads."""
        known = self.results.get(check.name)
        if known is not None and known[0] == _states(base, known[2]):
            return known[2]
        left = None if until is None else until - time.monotonic()
        if left is not None and left <= 0:
            raise _too_slow(check)
        types: tuple[str, ...] = tuple(sorted(base.entries()))
        try:
            types = types_read(self.engine, shown, check) or types
            [result] = run_checks(self.engine, shown, [check], timeout=left)
        except QueryLimit as error:
            if until is not None and error.code == "query_timeout":
                raise _too_slow(check) from error
            result = error_result(check, error)
        except OmniError as error:
            result = error_result(check, error)
            if isinstance(error, QueryError) and not self.scope.is_everything:
                # The error quotes the text of the check, which may name anything.
                result = replace(result, message=f"{COULD_NOT_RUN}{_UNREADABLE}")
        self.results[check.name] = (_states(base, types), result, types)
        return types

    def _run_of(
        self, check: StateCheck, staged: StagedCommit, base: Snapshot, shown: Snapshot
    ) -> CheckRun:
        _, result, types = self.results[check.name]
        entities = result.row_entities or [()] * len(result.rows)
        pairs = [
            (dict(row), list(map(dict, found)))
            for row, found in zip(result.rows, entities, strict=True)
        ]
        status = CheckStatus.PASSED
        if not result.is_passed:
            status = CheckStatus.FAILED if result.is_failed else CheckStatus.WARNED
        if result.message.startswith(COULD_NOT_RUN):
            status = CheckStatus.ERROR
        return CheckRun(
            name=check.name,
            status=status,
            severity=str(check.severity),
            message=result.message,
            count=result.count,
            findings=[{"row": row, "entities": found} for row, found in pairs],
            commit=staged.id,
            source_commit=self.source.commit_id,
            target_commit=base.commit_id,
            types=tuple(key for key in types if key in shown.entries()),
        )


def _states(base: Snapshot, types: Sequence[str]) -> object:
    """Return what the verdict of a check depends on, besides the source."""
    entries = base.entries()
    return base.head.schema_hash, tuple(entries[key].state for key in types if key in entries)


def _too_slow(check: StateCheck) -> Contention:
    message = (
        f"other writers changed the branch while check '{check.name}' ran, which took longer than "
        f"{CHECK_TIMEOUT_SECONDS:.0f} seconds; merge again"
    )
    return Contention(message, code="check_contention", check=check.name)


class _DryRun(Exception):
    """The checks have run; nothing is to be published."""


def run_proposal_checks(
    context: ReviewContext,
    number: int,
    request: WriteRequest,
    engine: Engine,
    checks: Sequence[StateCheck],
    resolve: MergeOptions,
) -> list[CheckRun]:
    """Run the checks on the state that merging a proposal now would make; record the result."""
    record = context.record(number)
    require_open(record, "checked")
    source = source_head(context, record)
    rules = target_rules(context, record)
    checks = enforced_checks(rules, checks)
    checking = StagedChecks(engine, checks, context.scope_of(record.target), source)

    def inspect(staged: StagedCommit, base: Snapshot, *, holding: bool) -> StagedCommit:
        try:
            checking(staged, base, holding=holding)
        except ChecksFailed:
            raise _DryRun from None
        raise _DryRun

    if checks:
        try:
            request = replace(request, permit=replace(request.permit, rules=()))
            merge(context.manifest, request, source, replace(resolve, inspect=inspect))
        except _DryRun:
            pass
    record_checks(context, number, checking.runs)
    return checking.runs


def record_checks(context: ReviewContext, number: int, runs: Sequence[CheckRun]) -> None:
    """Append the result of checks as an event."""
    if not runs:
        return
    payload = {"checks": [run.to_json() for run in runs], "commit_id": runs[0].commit}
    status = (str(worst_status(runs)), runs[0].source_commit, runs[0].target_commit)

    def make(newest: ProposalRecord) -> Any:  # noqa: ANN401 - an event or None
        return context.draft(EventKind.CHECKED, replace(newest, checks=status), payload)

    append_to(context, number, make)


def merge_proposal(
    context: ReviewContext,
    number: int,
    request: WriteRequest,
    engine: Engine,
    checks: Sequence[StateCheck],
    options: MergeOptions,
) -> MergeResult:
    """Merge a proposal if it satisfies the protection of its target and its checks pass.

    Raises:
        ReviewRequired: a requirement is not satisfied.
        ChecksFailed: a check found something in the state that the merge would make.
        MergeConflicts: source and target contradict each other.
    """
    observe = context.manifest.datasets.observe
    _refuse_merged(context, number)
    known = context.log.head()
    record, version = known.open.get(number) or context.record(number), known.events
    require_open(record, "merged")
    source = source_head(context, record)
    sets_values = (request.actor or "") if options.decisions.sets_values else None
    permit, rules = _permit(context, record, source, request, version, sets_values)
    _check_known(rules, checks)
    checks = enforced_checks(rules, checks)
    checking = StagedChecks(engine, checks, context.scope_of(record.target), source)
    message = request.message or f"merge proposal {number}: {record.title}"
    request = replace(request, permit=permit, message=message)
    observe("proposal: decided")
    try:
        result = merge(context.manifest, request, source, replace(options, inspect=checking))
    except ChecksFailed:
        record_checks(context, number, checking.runs)
        raise
    observe("proposal: published")
    if result.commit is None:
        _refuse_merged(context, number)
        _record_up_to_date(context, number, source.commit_id)
        return result
    if checking.runs:
        record_checks_and_merge(context, number, checking.runs, result)
    else:
        record_merge(context, number, result.counts)
    observe("proposal: recorded")
    return result


def _refuse_merged(context: ReviewContext, number: int) -> None:
    """Raise if a proposal is merged; append the event of that if it is missing."""
    record = context.record(number)
    if record.state is ProposalState.MERGED:
        record_merge(context, number)
        raise already_merged(number, record.merge_commit)


def record_checks_and_merge(
    context: ReviewContext, number: int, runs: Sequence[CheckRun], result: MergeResult
) -> None:
    """Append the merge with the checks it was published on."""
    record_merge(context, number, result.counts)
    record_checks(context, number, runs)


def _permit(
    context: ReviewContext,
    record: ProposalRecord,
    source: Snapshot,
    request: WriteRequest,
    version: int,
    sets_values: str | None,
) -> tuple[WritePermit, tuple[ProtectionRule, ...]]:
    """Return what the merge commit shows, and the rules; raise unless it satisfies all of them."""
    manifest = context.manifest
    target = head_snapshot(manifest, record.target)
    _, authors = divergence(manifest, source, target)
    rules = rules_for(record.target, target.head, request.permit)
    head = (source.commit_id, source.lineage_id or "")
    found = evaluate_rules(rules, record, head, authors, context.groups, sets_values)
    bypasses = bool(rules) and _misses(found) and request.permit.may_bypass()
    if _misses(found) and not bypasses:
        raise ReviewRequired(record, [one for listed in found.values() for one in listed])

    def confirm() -> None:
        newest = context.log.record_of(record.number)
        if newest is not None and not newest.is_open:
            require_open(newest, "merged")

    satisfied = [rule for rule, listed in found.items() if all(one.satisfied for one in listed)]
    permit = replace(
        request.permit,
        proposal=ProposalMark(record.number, version, CommitId(source.commit_id)),
        satisfied=frozenset(satisfied),
        settled=_settled(context, target),
        confirm=confirm,
    )
    return permit, rules


def _settled(context: ReviewContext, target: Snapshot) -> frozenset[int]:
    """Return the proposals whose merge the head of the target need not hold any longer."""
    head, numbers = context.log.head(), [int(number) for number in target.head.merged]
    return frozenset(n for n in numbers if n in head.settled or context.log.is_merged(n))


def _misses(found: Mapping[Any, Sequence[Any]]) -> bool:
    return any(not one.satisfied for listed in found.values() for one in listed)


def enforced_checks(
    rules: Sequence[ProtectionRule], checks: Sequence[StateCheck]
) -> list[StateCheck]:
    """Return checks of which those that a rule requires must pass, whatever their severity."""
    required = {name for rule in rules for name in rule.checks}
    return [
        replace(check, severity=CheckSeverity.FAIL) if check.name in required else check
        for check in checks
    ]


def _check_known(rules: Sequence[Any], checks: Sequence[StateCheck]) -> None:
    """Raise if a rule requires a check that is not loaded."""
    known = {check.name for check in checks}
    missing = sorted({name for rule in rules for name in rule.checks} - known)
    if missing:
        names = ", ".join(missing)
        raise OmniError(
            f"the protection requires checks that are not loaded: {names}; open the graph with "
            "the queries that have them (`checks=`, `--checks`), or merge on the server",
            code="check_unknown",
            category=Category.CONFLICT,
            details={"checks": missing},
        )


def _record_up_to_date(context: ReviewContext, number: int, head: CommitId) -> None:
    """Append the merge of a proposal whose source the target has already."""
    payload: dict[str, Any] = {"commit_id": None, "source_commit_id": head, "summary": {}}

    def make(newest: ProposalRecord) -> Any:  # noqa: ANN401 - an event or None
        if not newest.is_open:
            return None
        record = replace(newest, state=ProposalState.MERGED, head=head)
        return context.draft(EventKind.MERGED, record, payload)

    append_to(context, number, make)
