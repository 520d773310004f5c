"""What to do after a run, as commands."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from omnigraph.commit.model import MAIN
from omnigraph.pipeline.runs.report import RunReport

_RESUMABLE = ("contention", "unavailable", "outcome_unknown")
"""Categories of errors that may be gone when the run is resumed."""


@dataclass(frozen=True, slots=True)
class NextStep:
    """What can be done, and the command that does it."""

    text: str
    command: str | None = None
    rejects: bool = False
    """Whether it is about the rejected rows."""


def next_steps(report: RunReport) -> list[NextStep]:
    """Return what a user would do next, the most useful first."""
    store = f"--store {shlex.quote(report.graph)}"
    if report.error is not None:
        return _after_error(report, store)
    if report.repeated:
        text = "The same files were loaded before; nothing was done. To load them again:"
        return [
            NextStep(text, f"omnigraph pipeline run {shlex.quote(report.file)} {store} --force")
        ]
    steps = []
    if report.rejects is not None:
        steps.append(NextStep("Correct the rejected rows and run again.", rejects=True))
    branch = shlex.quote(report.branch)
    if (report.merge or {}).get("conflicts"):
        into = shlex.quote(str((report.merge or {})["target"]))
        merge = f"omnigraph merge {branch} --into {into} {store}"
        steps.insert(0, NextStep("Look at the conflicts:", f"{merge} --dry-run"))
        return [*steps, NextStep("Resolve them:", f"{merge} --resolve …")]
    if report.merge is not None or report.branch == MAIN or report.commit is None:
        if report.commit is not None and any(_changed(report)):
            commit = report.commit["graph_commit_id"]
            show = f"omnigraph changes commit {commit} {store}"
            steps.append(NextStep("See the entities that changed:", show))
        return steps
    base = shlex.quote(report.base or MAIN)
    title = shlex.quote(str(report.commit["message"] or report.pipeline))
    return [
        NextStep(
            f"Review what differs from {report.base or MAIN}:",
            f"omnigraph diff {base} {branch} --stat {store}",
        ),
        *steps,
        NextStep(
            "Ask others to review it:",
            f"omnigraph proposal create {branch} --into {base} --title {title} {store}",
        ),
        NextStep("Or merge it now:", f"omnigraph merge {branch} --into {base} {store}"),
    ]


def _changed(report: RunReport) -> list[int]:
    words = ("inserted", "updated", "deleted")
    return [type_[word] for type_ in report.types.values() for word in words]


def _after_error(report: RunReport, store: str) -> list[NextStep]:
    assert report.error is not None, "there is an error"
    resume = f"omnigraph pipeline resume {report.run} {store}"
    run = f"omnigraph pipeline run {shlex.quote(report.file)} {store}"
    if report.commit is not None:
        return [NextStep("The commit is published; complete the run:", resume)]
    if report.error.get("category") in _RESUMABLE:
        return [NextStep("Nothing was published. Continue when the cause is gone:", resume)]
    return [NextStep("Nothing was published. Correct the cause, then run again:", run)]
