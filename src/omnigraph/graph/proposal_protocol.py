"""The methods on proposals and protection that an embedded and a remote graph share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from omnigraph.changes.difference import Difference
from omnigraph.changes.model import Change, ChangeFilter, parse_change_filter
from omnigraph.commit.model import CommitId, Counts
from omnigraph.commit.proposal_log import ProposalState
from omnigraph.errors import InvalidInput
from omnigraph.graph.listings import CheckRuns, ProposalList
from omnigraph.graph.part import BranchContext, GraphPart
from omnigraph.merge.model import MergeResult
from omnigraph.notebook.results import report_html
from omnigraph.notebook.reviews import preview_html, proposal_html
from omnigraph.policy.protection_rules import ProtectionRule, parse_rules
from omnigraph.review.model import (
    CheckRun,
    Comment,
    ProposalDetails,
    ProposalSummary,
    Requirement,
    Review,
)
from omnigraph.review.proposals import ProposalText
from omnigraph.review.views import EventPage, ProposalFilter, ProposalPage

_ContextT = TypeVar("_ContextT", bound=BranchContext)
_StateT = TypeVar("_StateT")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposalPreview:
    """What merging a proposal would do: conflicts and counts, and the steps of the schema."""

    merge: MergeResult
    schema: Mapping[str, Any] | None = None
    """The migration plan, as `schema.plan` describes it, with the `effect` of each step on the data
    of the target; None if the schema does not change."""

    def to_json(self) -> dict[str, Any]:
        """Return the wire form."""
        merge = self.merge.to_json()
        return {"merge": merge, "summary": merge["counts"], "schema": self.schema}

    def _repr_html_(self) -> str:
        return preview_html(self.to_json())


def _comment_id(comment: int | Comment) -> int:
    """Return the ID of a comment that is given, or given by its ID."""
    given: object = comment.id if isinstance(comment, Comment) else comment
    if not isinstance(given, int):
        message = f"the ID of a comment is an integer, not {given!r:.40}"
        raise InvalidInput(message, code="proposal_invalid", problems=[message])
    return given


class ProposalsApi(GraphPart[_ContextT, _StateT]):
    """The proposals of a graph: requests to merge a branch into another."""

    def create(
        self,
        source: str,
        into: str | None = None,
        *,
        title: str,
        description: str = "",
        reviewers: Sequence[str] = (),
    ) -> Proposal:
        """Propose to merge a branch into another, by default into the current one."""
        names: tuple[object, ...] = (source, into)
        for name in names:
            if name is not None and not isinstance(name, str):
                message = f"a branch is given by its name, not {name!r:.40}"
                raise InvalidInput(message, code="proposal_invalid", problems=[message])
        text = ProposalText(title=title, description=description, reviewers=reviewers)
        return self._bound(self._create(source.strip(), self._branch(into).strip(), text))

    def get(self, number: int) -> Proposal:
        """Return a proposal as it is now."""
        given: object = number
        if not isinstance(given, int):
            message = f"the number of a proposal is an integer, not {given!r:.40}"
            raise InvalidInput(message, code="proposal_invalid", problems=[message])
        return self._bound(self._get(number))

    def list(
        self,
        state: str = "open",
        *,
        author: str | None = None,
        reviewer: str | None = None,
        target: str | None = None,
        limit: int | None = None,
    ) -> list[ProposalSummary]:
        """Return proposals, the newest first.

        `state` is `open`, `merged`, `closed` or `all`. Without a `limit` all are returned.
        """
        given: object = limit
        if given is not None and not (isinstance(given, int) and given >= 0):
            message = f"a limit is a whole number from 0 on, not {given!r:.40}"
            raise InvalidInput(message, code="limit_invalid")
        found = ProposalList()
        scope = ProposalFilter(state=state, author=author, reviewer=reviewer, target=target)
        token = None
        while True:
            size = PAGE if limit is None else min(limit - len(found), PAGE)
            if size <= 0:
                return found
            page = self._page(scope, size, token)
            found += page.proposals
            token = page.next_page_token
            if token is None:
                return found

    def page(
        self,
        state: str = "open",
        *,
        author: str | None = None,
        reviewer: str | None = None,
        target: str | None = None,
        limit: int = 50,
        page_token: str | None = None,
    ) -> ProposalPage:
        """Return a page of proposals, the number of those in each state, and how to continue."""
        scope = ProposalFilter(state=state, author=author, reviewer=reviewer, target=target)
        return self._page(scope, limit, page_token)

    @abstractmethod
    def events(
        self, after: str | None = None, *, proposal: int | None = None, limit: int = 100
    ) -> EventPage:
        """Return the events after a cursor, in the order they happened, of one proposal or all."""

    @abstractmethod
    def _create(self, source: str, target: str, text: ProposalText) -> ProposalDetails: ...

    @abstractmethod
    def _get(self, number: int) -> ProposalDetails: ...

    @abstractmethod
    def _page(self, scope: ProposalFilter, limit: int, token: str | None) -> ProposalPage: ...

    @abstractmethod
    def _edit(self, number: int, text: ProposalText) -> ProposalDetails: ...

    @abstractmethod
    def _close(self, number: int, comment: str | None) -> ProposalDetails: ...

    @abstractmethod
    def _reopen(self, number: int, comment: str | None) -> ProposalDetails: ...

    @abstractmethod
    def _comment(self, number: int, body: str, on: object, thread: int | None) -> int: ...

    @abstractmethod
    def _resolve(self, number: int, comment: int, *, resolved: bool) -> int: ...

    @abstractmethod
    def _review(self, number: int, verdict: str, body: str, commit: str | None) -> int: ...

    @abstractmethod
    def _run_checks(self, number: int) -> Sequence[CheckRun]: ...

    @abstractmethod
    def _preview(self, number: int) -> ProposalPreview: ...

    @abstractmethod
    def _diff(self, number: int, scope: ChangeFilter) -> Iterator[Change]: ...

    @abstractmethod
    def _merge(self, number: int, call: ProposalMerge) -> MergeResult: ...

    def _bound(self, details: ProposalDetails) -> Proposal:
        return Proposal(self, details)


PAGE = 200
"""Proposals that `list` reads at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposalMerge:
    """How to merge a proposal."""

    resolve: str | Mapping[str, Any] | None = None
    delete_branch: bool = False
    message: str | None = None
    timeout: float | None = None


class Proposal:
    """A proposal as it was read; every method that changes it reads it again."""

    def __init__(self, api: ProposalsApi[Any, Any], details: ProposalDetails) -> None:
        self._api = api
        self._details = details

    def __repr__(self) -> str:
        return (
            f"<Proposal {self.number} {self.state}: {self.title!r}, "
            f"{self.source} into {self.target}>"
        )

    def _repr_html_(self) -> str:
        return proposal_html(self._details.to_json())

    @property
    def number(self) -> int:
        """Its number, unique in the graph."""
        return self._details.summary.number

    @property
    def title(self) -> str:
        """The title."""
        return self._details.summary.title

    @property
    def description(self) -> str:
        """The description."""
        return self._details.description

    @property
    def author(self) -> str | None:
        """Who made it."""
        return self._details.summary.author

    @property
    def source(self) -> str:
        """The branch to be merged."""
        return self._details.summary.source

    @property
    def target(self) -> str:
        """The branch it is to be merged into."""
        return self._details.summary.target

    @property
    def state(self) -> ProposalState:
        """`open`, `merged` or `closed`."""
        return self._details.summary.state

    @property
    def head(self) -> CommitId | None:
        """The newest commit of the source; of a merged one, the commit that was merged."""
        return self._details.summary.head

    @property
    def base(self) -> CommitId | None:
        """The merge base."""
        return self._details.summary.base

    @property
    def reviewers(self) -> tuple[str, ...]:
        """The actors that were asked for a review."""
        return self._details.summary.reviewers

    @property
    def reviews(self) -> tuple[Review, ...]:
        """The reviews, the oldest first."""
        return self._details.reviews

    @property
    def comments(self) -> tuple[Comment, ...]:
        """The comments, the oldest first."""
        return self._details.comments

    @property
    def checks(self) -> tuple[CheckRun, ...]:
        """The last checks."""
        return self._details.checks

    @property
    def requirements(self) -> tuple[Requirement, ...]:
        """What the protection of the target requires, and what of it is satisfied."""
        return self._details.requirements

    @property
    def mergeable(self) -> bool:
        """Whether it is open and satisfies the requirements; conflicts are in the preview."""
        return self._details.is_mergeable

    @property
    def counts(self) -> Mapping[str, Counts] | None:
        """The changes by type of a merged or closed proposal."""
        return self._details.counts

    @property
    def merge_commit(self) -> CommitId | None:
        """The commit that merged it."""
        return self._details.summary.merge_commit

    @property
    def created_at(self) -> datetime:
        """When it was made."""
        return self._details.summary.created_at

    @property
    def updated_at(self) -> datetime:
        """When its last event was."""
        return self._details.summary.updated_at

    @property
    def details(self) -> ProposalDetails:
        """Everything that was read."""
        return self._details

    def to_json(self) -> dict[str, Any]:
        """Return the wire form."""
        return self._details.to_json()

    def refresh(self) -> Proposal:
        """Read it again; return it."""
        self._details = self._api._get(self.number)
        return self

    def diff(
        self,
        *,
        kinds: Sequence[str] | None = None,
        types: Sequence[str] | None = None,
        ops: Sequence[str] | None = None,
    ) -> Difference:
        """Return the entities that it changes, compared with the merge base."""
        return Difference(self._api._diff(self.number, parse_change_filter(kinds, types, ops)))

    def preview(self) -> ProposalPreview:
        """Return what merging it would do: counts, conflicts, violations, schema steps."""
        return self._api._preview(self.number)

    def comment(
        self, body: str, *, on: object = None, thread: int | Comment | None = None
    ) -> Comment:
        """Comment on it; `on` is `(type, id, property)`, of which the last may be left out.

        With `thread`, a comment or its ID, it is a reply in its thread.
        """
        first = None if thread is None else _comment_id(thread)
        return self._comment(self._api._comment(self.number, body, on, first))

    def resolve(self, comment: int | Comment, *, resolved: bool = True) -> Comment:
        """Resolve the thread of a comment, or with `resolved=False` open it again."""
        id_ = _comment_id(comment)
        return self._comment(self._api._resolve(self.number, id_, resolved=resolved))

    def review(self, verdict: str, body: str = "", *, commit: str | None = None) -> Review:
        """Add a review: `approve`, `request_changes` or `comment`.

        With `commit`, the commit of the source that was looked at, it is refused if the source has
        moved on.
        """
        id_ = self._api._review(self.number, verdict, body, commit)
        return next(review for review in self.refresh().reviews if review.id == id_)

    def run_checks(self) -> tuple[CheckRun, ...]:
        """Run the checks on the state that merging it now would make."""
        runs = CheckRuns(self._api._run_checks(self.number))
        self.refresh()
        return runs

    def merge(
        self,
        *,
        resolve: str | Mapping[str, Any] | None = None,
        delete_branch: bool = False,
        message: str | None = None,
        timeout: float | None = None,
    ) -> MergeResult:
        """Merge it; `resolve` decides conflicts as in `graph.merge`."""
        call = ProposalMerge(
            resolve=resolve, delete_branch=delete_branch, message=message, timeout=timeout
        )
        result = self._api._merge(self.number, call)
        self.refresh()
        return result

    def close(self, comment: str | None = None) -> Proposal:
        """Close it without merging."""
        self._details = self._api._close(self.number, comment)
        return self

    def reopen(self, comment: str | None = None) -> Proposal:
        """Open it again after it was closed."""
        self._details = self._api._reopen(self.number, comment)
        return self

    def edit(
        self,
        *,
        title: str | None = None,
        description: str | None = None,
        reviewers: Sequence[str] | None = None,
    ) -> Proposal:
        """Change the title, the description or the reviewers."""
        text = ProposalText(title=title, description=description, reviewers=reviewers)
        self._details = self._api._edit(self.number, text)
        return self

    def _comment(self, id_: int) -> Comment:
        return next(comment for comment in self.refresh().comments if comment.id == id_)


class ProtectionApi(GraphPart[_ContextT, _StateT]):
    """The protection of branches, which every writer of the graph is held to."""

    @property
    def rules(self) -> tuple[ProtectionRule, ...]:
        """The rules stored in the graph."""
        return self._read()[0]

    @property
    def policy_rules(self) -> tuple[ProtectionRule, ...]:
        """The rules of the policy in use, which count as well."""
        return self._read()[1]

    def set(self, rules: ProtectionRule | Mapping[str, Any] | Iterable[Any]) -> None:
        """Replace the stored rules.

        A rule is `{"branches": ["main"], "require": {"proposal": True, "approvals": 1,
        "from": "reviewers", "checks": [...], "fresh": True, "self_approval": False}}`.
        """
        given: object = rules
        if isinstance(given, Mapping) or not isinstance(given, Iterable):
            given = [given]
        listed = list(given)
        plain = [rule.to_json() if isinstance(rule, ProtectionRule) else rule for rule in listed]
        self._write(parse_rules(plain))

    def clear(self) -> None:
        """Remove all stored rules."""
        self._write(())

    def to_json(self) -> dict[str, Any]:
        """Return the wire form."""
        stored, policy = self._read()
        return {
            "rules": [rule.to_json() for rule in stored],
            "policy_rules": [rule.to_json() for rule in policy],
        }

    @abstractmethod
    def _read(self) -> tuple[tuple[ProtectionRule, ...], tuple[ProtectionRule, ...]]: ...

    @abstractmethod
    def _write(self, rules: tuple[ProtectionRule, ...]) -> None: ...

    def _repr_html_(self) -> str:
        return report_html("Protection", self.to_json())
