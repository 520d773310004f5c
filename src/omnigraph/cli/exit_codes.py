"""Exit codes of `omnigraph pipeline run` and `resume`, by cause, for schedulers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum

import click

from omnigraph.errors import Category, OmniError
from omnigraph.lang import DiagnosticError
from omnigraph.pipeline.errors import TooManyRejects
from omnigraph.pipeline.runs.report import RunReport
from omnigraph.write import ValidationFailed


class ExitCode(IntEnum):
    """Why a run ended."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    PIPELINE_INVALID = 3
    DATA_INVALID = 4
    MERGE_CONFLICTS = 5
    CHECKS_FAILED = 6
    TRY_AGAIN = 7
    OUTCOME_UNKNOWN = 8
    DENIED = 9
    INTERRUPTED = 130


EXIT_CODES: dict[ExitCode, tuple[str, str]] = {
    ExitCode.DONE: ("the run is finished, or the same files were loaded before", "nothing"),
    ExitCode.FAILED: ("any other error", "follow the message"),
    ExitCode.USAGE: ("invalid options", "correct the command line"),
    ExitCode.PIPELINE_INVALID: (
        "the pipeline file, a variable, the target or the selection is invalid",
        "correct it; a retry fails again",
    ),
    ExitCode.DATA_INVALID: (
        "rows break rules, cannot be read, or too many were rejected",
        "correct the data, or reject invalid rows",
    ),
    ExitCode.MERGE_CONFLICTS: (
        "the commit is on the branch; its merge has conflicts",
        "`omnigraph merge BRANCH --resolve …`",
    ),
    ExitCode.CHECKS_FAILED: (
        "a check of severity `fail` found something; nothing was published",
        "correct the data or the check",
    ),
    ExitCode.TRY_AGAIN: (
        "other writers, storage, Spark or an embedding service were in the way",
        "`pipeline resume RUN`, or run again later",
    ),
    ExitCode.OUTCOME_UNKNOWN: (
        "it is unknown whether the commit was published: storage could not be read",
        "`pipeline resume RUN`, which finds out",
    ),
    ExitCode.DENIED: ("the policy denies it", "ask for the permission"),
    ExitCode.INTERRUPTED: ("Ctrl-C or SIGINT", "`pipeline resume RUN`"),
}
"""The cause of each code and the next step; the table in the guide is generated from it."""

_BY_CODE = {
    **dict.fromkeys(
        (
            *("pipeline_changed", "pipeline_target_unknown", "selection_invalid"),
            "watermark_mismatch",
        ),
        ExitCode.PIPELINE_INVALID,
    ),
    "pipeline_file_unreadable": ExitCode.PIPELINE_INVALID,
    "input_unreadable": ExitCode.DATA_INVALID,
    "missing_unknown": ExitCode.DATA_INVALID,
    "checks_failed": ExitCode.CHECKS_FAILED,
}
_BY_CATEGORY = {
    Category.CONTENTION: ExitCode.TRY_AGAIN,
    Category.UNAVAILABLE: ExitCode.TRY_AGAIN,
    Category.OUTCOME_UNKNOWN: ExitCode.OUTCOME_UNKNOWN,
    Category.DENIED: ExitCode.DENIED,
}
_KEY = "_omnigraph_exit_code"


def cause_of(error: OmniError) -> ExitCode:
    """Return the exit code of an error by its cause."""
    match error:
        case DiagnosticError():
            return ExitCode.PIPELINE_INVALID
        case ValidationFailed() | TooManyRejects():
            return ExitCode.DATA_INVALID
    by_code = _BY_CODE.get(error.code)
    return by_code or _BY_CATEGORY.get(error.category, ExitCode.FAILED)


def run_exit_code(report: RunReport) -> ExitCode:
    """Return the exit code of a run that has a report."""
    if report.is_done:
        return ExitCode.DONE
    return ExitCode.FAILED if report.error is not None else ExitCode.MERGE_CONFLICTS


@contextmanager
def exit_codes_by_cause() -> Iterator[None]:
    """Mark errors of a block, so that the program exits with the code of their cause."""
    try:
        yield
    except OmniError as error:
        setattr(error, _KEY, cause_of(error))
        raise


def exits_by_cause(command: click.Command) -> click.Command:
    """Let a command exit with the code of the cause of an error."""
    assert command.callback is not None, "it is a function"
    command.callback = exit_codes_by_cause()(command.callback)
    return command


def exit_code_of(error: OmniError) -> int:
    """Return the exit code of an error that ends the program."""
    return int(getattr(error, _KEY, ExitCode.FAILED))
