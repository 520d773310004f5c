"""Print what damage affects, and what a return to the last good versions loses."""

from __future__ import annotations

from collections.abc import Iterator

import click

from omnigraph.cli.open_graph import StoredGraph
from omnigraph.cli.output import count_text, print_result
from omnigraph.cli.progress import show_progress
from omnigraph.commit.model import Commit
from omnigraph.graph import repair_to_last_good
from omnigraph.maintain.damaged_files import DamagedFile
from omnigraph.maintain.last_good_model import LastGoodReport, LineagePlan

_MAX_LISTED = 20


def print_last_good(stored: StoredGraph, *, confirm: bool) -> None:
    """Search the last good versions, return to them with `confirm`, and print the report."""
    with show_progress("searching the last good versions"):
        report = repair_to_last_good(
            stored.address, confirm=confirm, policy=stored.policy, actor=stored.actor
        )
    if report.damaged and report.is_possible and not confirm:
        click.echo("dry run: nothing was changed; add --confirm to continue from there", err=True)
    print_result({"uri": stored.address, **report.to_json()}, *_lines(report))
    if report.damaged and not confirm:
        raise SystemExit(1)


def _lines(report: LastGoodReport) -> Iterator[str]:
    for plan in report.lineages:
        yield from _plan_lines(plan, confirmed=report.confirmed)
    if report.quarantine is not None:
        yield f"damaged files are kept in {report.quarantine}"
    if not report.damaged:
        yield "nothing to return: the newest version of every branch is whole"
    elif not report.is_possible:
        yield "no version of main is whole: restore the damaged files from a backup"
    elif report.confirmed:
        yield "run `omnigraph verify --deep` next: it lists damage that only older commits show"


def _plan_lines(plan: LineagePlan, *, confirmed: bool) -> Iterator[str]:
    if plan.is_whole:
        yield f"branch {plan.branch}: version {plan.newest} is whole"
        return
    if plan.last_good is None:
        yield f"branch {plan.branch}: no version is whole"
    elif plan.kept == plan.newest:
        verb = "was" if confirmed else "would be"
        yield f"branch {plan.branch}: version {plan.newest} {verb} rebuilt from intact files"
    else:
        verb = "returned" if confirmed else "would return"
        yield f"branch {plan.branch}: {verb} from version {plan.newest} to {plan.kept}"
    yield from _listed("damaged: ", plan.damage)
    verb = "lost" if confirmed else "would be lost"
    yield from _listed(f"{verb}: ", _lost_commits(plan))
    yield from _listed(f"{verb}: ", plan.lost_names)
    if plan.unreadable_versions:
        versions = count_text(plan.unreadable_versions, "manifest version")
        yield f"  {verb}: {versions} whose content cannot be read"
    if not (plan.lost_commits or plan.lost_names or plan.unreadable_versions):
        yield "  nothing is lost"


def _lost_commits(plan: LineagePlan) -> list[str]:
    return [
        _describe(c) + (", merged: another branch keeps it" if c.id in plan.merged_commits else "")
        for c in plan.lost_commits
    ]


def _listed(label: str, texts: tuple[str, ...] | list[str]) -> Iterator[str]:
    for text in texts[:_MAX_LISTED]:
        yield f"  {label}{text}"
    if len(texts) > _MAX_LISTED:
        yield f"  {label}{len(texts) - _MAX_LISTED} more; --json lists all"


def damaged_file_lines(file: DamagedFile) -> Iterator[str]:
    """Yield what a damaged file affects, what history can restore, and the next step."""
    wrote = f", written by commit {file.commit_id}" if file.commit_id else ""
    yield f"damaged: {file.file} of {file.type_key}{wrote}"
    if not file.derived:
        yield f"  affects: {_affected(file)}"
        yield from _listed("entity: ", list(file.ids))
        for commit_id, ids in file.restorable.items():
            images = count_text(len(ids), "entity", "entities")
            yield f"  restorable: {images} as of commit {commit_id}, an intact version"
    yield f"  next: {file.next_step}"


def _affected(file: DamagedFile) -> str:
    if file.rows is None:
        rows = "an unknown number of entities"
    else:
        rows = count_text(file.rows, "entity", "entities")
        unknown = file.rows - len(file.ids)
        rows += f" ({unknown} with unreadable ids)" if unknown else ""
    versions = count_text(file.commits, "published version")
    where = f"branch {', '.join(file.branches)}" if file.branches else "no branch head"
    return f"{rows}; {versions}; {where}"


def _describe(commit: Commit) -> str:
    counts = ", ".join(
        f"{key} +{c.inserted} ~{c.updated} -{c.deleted}" for key, c in sorted(commit.counts.items())
    )
    parts = [
        f"commit {commit.id}",
        f"{commit.created_at:%Y-%m-%d %H:%M:%S}",
        commit.operation,
        f"by {commit.actor}" if commit.actor else "",
        f"({counts})" if counts else "",
        f"'{commit.message}'" if commit.message else "",
    ]
    return " ".join(filter(None, parts))
