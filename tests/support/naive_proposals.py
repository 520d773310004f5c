"""Proposals in the simplest form: dictionaries, without events, swaps or staged commits."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


class Refused(Exception):
    """A call is refused, with this error code."""


@dataclass
class NaiveBranch:
    """A branch: every commit that it contains with its actor, and the ports."""

    incarnation: int
    head: int
    commits: dict[int, str]
    ports: set[str]


@dataclass
class NaiveProposal:
    """A proposal; `verdicts` are the newest ones, `comments` map IDs to their threads."""

    number: int
    title: str
    author: str
    source: str
    target: str
    incarnation: int
    head: int
    state: str = "open"
    reviewers: tuple[str, ...] = ()
    events: int = 1
    verdicts: dict[str, tuple[str, tuple[int, int]]] = field(default_factory=dict)
    reviews: list[tuple[str, str, tuple[int, int]]] = field(default_factory=list)
    comments: dict[int, int] = field(default_factory=dict)
    resolved: set[int] = field(default_factory=set)


@dataclass
class NaiveGraph:
    """Branches, proposals and whether `main` needs an approval."""

    branches: dict[str, NaiveBranch] = field(default_factory=dict)
    proposals: dict[int, NaiveProposal] = field(default_factory=dict)
    feed: list[tuple[int, int, str, str]] = field(default_factory=list)
    protected: bool = False
    counter: int = 0

    def __post_init__(self) -> None:
        self.branches["main"] = NaiveBranch(self._next(), 0, {0: ""}, set())

    def _next(self) -> int:
        self.counter += 1
        return self.counter

    def _event(self, proposal: NaiveProposal, kind: str, actor: str) -> int:
        proposal.events += kind != "created"
        self.feed.append((proposal.number, proposal.events, kind, actor))
        return proposal.events

    def _known(self, number: int) -> NaiveProposal:
        if number not in self.proposals:
            raise Refused("proposal_not_found")
        return self.proposals[number]

    def _open(self, number: int) -> NaiveProposal:
        proposal = self._known(number)
        if proposal.state != "open":
            raise Refused("proposal_not_open")
        return proposal

    def _source(self, proposal: NaiveProposal) -> NaiveBranch:
        if proposal.source not in self.branches:
            raise Refused("proposal_source_gone")
        return self.branches[proposal.source]

    # --- branches

    def branch(self, name: str) -> None:
        """Create a branch from main."""
        if name in self.branches:
            raise Refused("branch_exists")
        main = self.branches["main"]
        self.branches[name] = NaiveBranch(
            self._next(), main.head, dict(main.commits), set(main.ports)
        )

    def drop(self, name: str) -> None:
        """Delete a branch."""
        if name not in self.branches:
            raise Refused("branch_not_found")
        del self.branches[name]

    def change(self, name: str, code: str, actor: str) -> None:
        """Add a port to a branch."""
        if name not in self.branches:
            raise Refused("branch_not_found")
        if name == "main" and self.protected:
            raise Refused("branch_protected")
        branch = self.branches[name]
        branch.head = self._next()
        branch.commits[branch.head] = actor
        branch.ports.add(code)

    def _bring(self, source: NaiveBranch, target: NaiveBranch, actor: str) -> bool:
        """Merge a branch into another; return whether there was anything to merge."""
        if source.head in target.commits:
            return False
        target.head = self._next()
        target.commits |= source.commits
        target.commits[target.head] = actor
        target.ports |= source.ports
        return True

    # --- proposals

    def create(self, source: str, title: str, actor: str) -> int:
        """Propose to merge a branch into main."""
        if source not in self.branches:
            raise Refused("branch_not_found")
        branch, main = self.branches[source], self.branches["main"]
        if branch.head in main.commits:
            raise Refused("proposal_empty")
        self._check_unique(source)
        number = len(self.proposals) + 1
        made = NaiveProposal(number, title, actor, source, "main", branch.incarnation, branch.head)
        self.proposals[number] = made
        self._event(made, "created", actor)
        return number

    def _check_unique(self, source: str) -> None:
        if any(p.state == "open" and p.source == source for p in self.proposals.values()):
            raise Refused("proposal_exists")

    def edit(self, number: int, title: str, actor: str) -> None:
        """Change the title."""
        proposal = self._open(number)
        if proposal.title != title:
            proposal.title = title
            self._event(proposal, "edited", actor)

    def comment(self, number: int, actor: str, thread: int | None = None) -> int:
        """Comment, or reply to a comment."""
        proposal = self._known(number)
        if thread is not None and thread not in proposal.comments:
            raise Refused("comment_not_found")
        first = None if thread is None else proposal.comments[thread]
        id_ = self._event(proposal, "commented", actor)
        proposal.comments[id_] = id_ if first is None else first
        return id_

    def resolve(self, number: int, comment: int, actor: str, *, resolved: bool) -> None:
        """Resolve the thread of a comment, or open it again."""
        proposal = self._known(number)
        if comment not in proposal.comments:
            raise Refused("comment_not_found")
        thread = proposal.comments[comment]
        if (thread in proposal.resolved) != resolved:
            proposal.resolved ^= {thread}
            self._event(proposal, "resolved" if resolved else "unresolved", actor)

    def review(self, number: int, verdict: str, actor: str) -> None:
        """Review the newest state of the source."""
        proposal = self._known(number)
        source = self.branches.get(proposal.source)
        incarnation = proposal.incarnation if source is None else source.incarnation
        about = (proposal.head, incarnation)
        if proposal.state == "open":
            about = (self._source(proposal).head, incarnation)
        if proposal.state != "merged" and verdict != "comment":
            proposal.verdicts[actor] = (verdict, about)
        proposal.reviews.append((actor, verdict, about))
        self._event(proposal, "reviewed", actor)

    def close(self, number: int, actor: str, note: str | None) -> None:
        """Close a proposal."""
        proposal = self._open(number)
        proposal.state = "closed"
        source = self.branches.get(proposal.source)
        proposal.head = proposal.head if source is None else source.head
        id_ = self._event(proposal, "closed", actor)
        if note:
            proposal.comments[id_] = id_

    def reopen(self, number: int, actor: str, note: str | None) -> None:
        """Open a closed proposal again."""
        proposal = self._known(number)
        if proposal.state != "closed":
            raise Refused("proposal_not_closed")
        self._source(proposal)
        self._check_unique(proposal.source)
        proposal.state = "open"
        id_ = self._event(proposal, "reopened", actor)
        if note:
            proposal.comments[id_] = id_

    def is_satisfied(self, proposal: NaiveProposal) -> bool:
        """Return whether the rule of main, if there is one, permits the merge."""
        if not self.protected:
            return True
        source, main = self.branches.get(proposal.source), self.branches["main"]
        authors = {proposal.author}
        head = None
        if source is not None:
            head = (source.head, source.incarnation)
            authors |= {a for c, a in source.commits.items() if c not in main.commits}
        verdicts = proposal.verdicts.items()
        blocked = any(verdict == "request_changes" for _, (verdict, _) in verdicts)
        approved = any(
            verdict == "approve" and about == head and actor not in authors
            for actor, (verdict, about) in verdicts
        )
        return approved and not blocked

    def merge(self, number: int, actor: str) -> None:
        """Merge a proposal."""
        proposal = self._open(number)
        source = self._source(proposal)
        if not self.is_satisfied(proposal):
            raise Refused("review_required")
        self._bring(source, self.branches["main"], actor)
        proposal.head = source.head
        proposal.state = "merged"
        self._event(proposal, "merged", actor)

    # --- what is shown

    def shown(self, number: int) -> dict[str, Any]:
        """Return what a proposal shows, as far as this model knows it."""
        proposal = self._known(number)
        source = self.branches.get(proposal.source)
        is_open = proposal.state == "open"
        head = None if source is None else (source.head, source.incarnation)
        verdicts = proposal.verdicts.values()
        approvals = [v for v in verdicts if v[0] == "approve" and (not is_open or v[1] == head)]
        threads = set(proposal.comments.values())
        present = (
            "present" if source and source.incarnation == proposal.incarnation else "recreated"
        )
        return {
            "title": proposal.title,
            "state": proposal.state,
            "author_id": proposal.author,
            "source_state": "deleted" if source is None else present,
            "approvals": len(approvals),
            "changes_requested": sum(v[0] == "request_changes" for v in verdicts),
            "comment_count": len(proposal.comments),
            "unresolved_count": len(threads - proposal.resolved),
            "mergeable": is_open and source is not None and self.is_satisfied(proposal),
            "stale": [is_open and about != head for _, _, about in proposal.reviews],
            "reviews": [(actor, verdict) for actor, verdict, _ in proposal.reviews],
            "comments": list(proposal.comments.items()),
        }
