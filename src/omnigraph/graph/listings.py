"""Lists that notebooks show as tables."""

from __future__ import annotations

from omnigraph.commit.model import Commit, Tag, tag_facts
from omnigraph.notebook.history import branches_html, commits_html, refs_html
from omnigraph.notebook.reviews import checks_html, proposals_html
from omnigraph.query.checks import CheckResult
from omnigraph.review.model import CheckRun, ProposalSummary


class CommitList(list[Commit]):
    """Commits, the newest first."""

    def _repr_html_(self) -> str:
        return commits_html([commit.to_json() for commit in self])


class BranchNames(list[str]):
    """The names of branches."""

    def _repr_html_(self) -> str:
        return branches_html(self)


class TagList(list[Tag]):
    """Tags by name."""

    def _repr_html_(self) -> str:
        return refs_html("Tags", [tag_facts(tag) for tag in self])


class CheckResults(list[CheckResult]):
    """What checks of a state found."""

    def _repr_html_(self) -> str:
        return checks_html([result.to_json() for result in self])


class CheckRuns(tuple[CheckRun, ...]):
    """The checks of a proposal."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return checks_html([run.to_json() for run in self])


class ProposalList(list[ProposalSummary]):
    """Proposals, the newest first."""

    def _repr_html_(self) -> str:
        return proposals_html([proposal.to_json() for proposal in self])
