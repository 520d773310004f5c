"""`omnigraph proposal`."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from omnigraph.changes.diff import ChangeTotals
from omnigraph.cli.changes import (
    change_filter_options,
    print_change,
    print_merge_result,
    resolve_option,
    stat_lines,
    summary_text,
)
from omnigraph.cli.open_graph import GraphOpener, graph_command
from omnigraph.cli.output import (
    count_text,
    json_requested,
    print_json,
    print_result,
    print_table,
    printable_lines,
    stream_json,
)
from omnigraph.cli.progress import show_progress
from omnigraph.cli.stored_checks import NO_CHECKS, checks_option, with_checks
from omnigraph.errors import InvalidInput
from omnigraph.graph import Graph
from omnigraph.graph.proposal_protocol import Proposal
from omnigraph.review.model import CheckRun, Comment, ProposalSummary, Review

number_argument = click.argument("number", type=click.IntRange(1), metavar="NUMBER")


@click.group()
def proposal() -> None:
    """Propose to merge a branch, review proposals and merge them."""


def _body_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of a text: given, or the content of a file."""
    file = click.option(
        "--file", "body_file", type=click.Path(path_type=Path), help="File with the text."
    )
    return click.option("--body", "-b", help="The text.")(file(command))


def _text(body: str | None, file: Path | None) -> str | None:
    if file is None:
        return body
    if body is not None:
        raise InvalidInput("give --body or --file, not both", code="option_invalid")
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        message = f"cannot read the text in {file}: {error}"
        raise InvalidInput(message, code="file_unreadable") from error


@proposal.command()
@graph_command(actor=True, mode="rw")
@click.argument("source")
@click.option("--into", default="main", help="Branch to merge into.")
@click.option("--title", "-t", required=True, help="What is proposed, in one line.")
@click.option("--reviewer", "reviewers", multiple=True, help="Actor to review it; repeatable.")
@_body_options
def create(
    graph: Graph,
    source: str,
    into: str,
    title: str,
    reviewers: tuple[str, ...],
    body: str | None,
    body_file: Path | None,
) -> None:
    """Propose to merge a branch; the text is the description."""
    made = graph.proposals.create(
        source,
        into=into,
        title=title,
        description=_text(body, body_file) or "",
        reviewers=reviewers,
    )
    text = f"opened proposal {made.number}: {made.source} into {made.target}"
    print_result(made.to_json(), text)


@proposal.command("list")
@graph_command()
@click.option(
    "--state",
    type=click.Choice(["open", "merged", "closed", "all"]),
    default="open",
    help="Proposals to list.",
)
@click.option("--author", help="Only proposals of this actor.")
@click.option("--reviewer", help="Only proposals that this actor was asked to review.")
@click.option("--target", help="Only proposals into this branch.")
@click.option("--limit", type=click.IntRange(1), default=50, help="Number of proposals to list.")
def list_proposals(graph: Graph, limit: int, **scope: Any) -> None:  # noqa: ANN401 - strings
    """List proposals, the newest first."""
    found = graph.proposals.list(**scope, limit=limit + 1)
    has_more = len(found) > limit
    del found[limit:]
    if json_requested():
        print_json({"proposals": [one.to_json() for one in found], "more": has_more})
        return
    rows = [_summary_row(one) for one in found]
    headers = ("number", "state", "source", "target", "author", "reviews", "checks", "title")
    print_table(count_text(len(found), "proposal"), headers, rows)
    if has_more:
        click.echo(f"there are more; list them with --limit {2 * limit}")


def _summary_row(one: ProposalSummary) -> tuple[str, ...]:
    reviews = f"+{one.approvals} -{one.changes_requested}"
    return (
        str(one.number),
        str(one.state),
        one.source,
        one.target,
        one.author or "-",
        reviews,
        one.checks_state,
        one.title,
    )


@proposal.command()
@graph_command()
@number_argument
def show(graph: Graph, number: int) -> None:
    """Show a proposal with its reviews, comments and checks."""
    found = graph.proposals.get(number)
    print_result(found.to_json(), *_lines(found))


def _lines(found: Proposal) -> list[str]:
    details = found.details.summary
    lines = [
        click.style(f"proposal {found.number}: {found.title}", bold=True),
        f"{found.state}: {found.source} into {found.target}, by {found.author or 'unknown'}",
    ]
    if found.reviewers:
        lines.append(f"reviewers: {', '.join(found.reviewers)}")
    if details.source_state != "present":
        lines.append(f"the source branch was {details.source_state}")
    if found.description:
        lines += ["", *(f"  {line}" for line in printable_lines(found.description))]
    lines += [f"{review_line(review)}" for review in found.reviews]
    lines += [line for run in found.checks for line in _check_lines(run)]
    lines += [line for comment in found.comments for line in _comment_lines(comment)]
    lines += [
        f"{'ok' if one.satisfied else 'missing'}: {one.message}" for one in found.requirements
    ]
    for key, counts in (found.counts or {}).items():
        lines.append(f"  {key}: +{counts.inserted} ~{counts.updated} -{counts.deleted}")
    return lines


def review_line(review: Review) -> str:
    """Return a review on one line."""
    stale = " (of an older state)" if review.stale else ""
    late = " (after the merge)" if review.after_merge else ""
    body = " ".join(printable_lines(review.body))
    return f"{review.actor or 'unknown'}: {review.verdict}{stale}{late}" + (
        f": {body}" if body else ""
    )


def _check_lines(run: CheckRun) -> list[str]:
    stale = "" if run.current else " (of an older state)"
    lines = [f"check {run.name}: {run.status}{stale}: {' '.join(printable_lines(run.message))}"]
    for finding in run.findings:
        entities = ", ".join(f"{one['type']} {one['id']}" for one in finding["entities"])
        values = ", ".join(f"{name}: {value!r}" for name, value in finding["row"].items())
        lines.append(
            "  " + " ".join(printable_lines(f"{entities}: {values}" if entities else values))
        )
    return lines


def _comment_lines(comment: Comment) -> list[str]:
    on, reply = comment.on, comment.thread != comment.id
    about = (
        ""
        if on is None or reply
        else f" on {on.type}" + "".join(f" {part}" for part in (on.id, on.property) if part)
    )
    done = " (resolved)" if comment.resolved and not reply else ""
    indent = "    " if reply else "  "
    head = f"{indent}[{comment.id}] {comment.actor or 'unknown'}{about}{done}:"
    return [
        *printable_lines(head),
        *(f"{indent}  {line}" for line in printable_lines(comment.body)),
    ]


@proposal.command()
@graph_command()
@number_argument
@change_filter_options
@click.option("--stat", is_flag=True, help="Print only the number of changes of each type.")
@click.option("--jsonl", "as_lines", is_flag=True, help="Print one JSON object per line.")
def diff(graph: Graph, number: int, scope: dict[str, Any], stat: bool, as_lines: bool) -> None:
    """Show the entities that a proposal changes."""
    tally = ChangeTotals()
    changes = tally.counting(graph.proposals.get(number).diff(**scope))
    if stat:
        deque(changes, maxlen=0)
        print_result({"number": number, "stats": tally.to_json()}, *stat_lines(tally))
    elif json_requested():
        items = (change.to_json() for change in changes)
        stream_json({"number": number}, "changes", items, lambda: {"stats": tally.to_json()})
    elif as_lines:
        for change in changes:
            click.echo(json.dumps(change.to_json(), ensure_ascii=False))
    else:
        for change in changes:
            print_change(change)
        click.echo(summary_text(tally))


@proposal.command()
@graph_command(actor=True, mode="rw")
@number_argument
@click.option("--on", nargs=1, multiple=True, metavar="NAME", help="Type, ID, property; repeat.")
@click.option("--reply-to", type=int, metavar="ID", help="Comment to reply to.")
@click.option("--resolve", type=int, metavar="ID", help="Resolve the thread of this comment.")
@click.option("--unresolve", type=int, metavar="ID", help="Open the thread of this comment again.")
@_body_options
def comment(
    graph: Graph,
    number: int,
    on: tuple[str, ...],
    reply_to: int | None,
    resolve: int | None,
    unresolve: int | None,
    body: str | None,
    body_file: Path | None,
) -> None:
    """Comment on a proposal, reply, or resolve a thread.

    `--on Port --on BGO --on depth` comments on a property of an entity.
    """
    if resolve is not None and unresolve is not None:
        raise click.UsageError("--resolve and --unresolve are about one thread: pass one of them")
    found, text = graph.proposals.get(number), _text(body, body_file)
    id_, done = (resolve, True) if unresolve is None else (unresolve, False)
    if text is None and id_ is None:
        raise InvalidInput("pass --body or --file with the comment", code="option_invalid")
    if id_ is not None:  # first, so that a thread that does not exist leaves no comment
        thread = found.resolve(id_, resolved=done)
        if text is None:
            print_result(thread.to_json(), f"{'resolved' if done else 'opened'} thread {thread.id}")
            return
    assert text is not None, "one of them is given"
    made = found.comment(text, on=on or None, thread=reply_to)
    print_result(made.to_json(), f"added comment {made.id} to proposal {number}")


@proposal.command()
@graph_command(actor=True, mode="rw")
@number_argument
@click.argument("verdict", type=click.Choice(["approve", "request_changes", "comment"]))
@click.option("--commit", help="Commit of the source that was reviewed.")
@_body_options
def review(
    graph: Graph,
    number: int,
    verdict: str,
    commit: str | None,
    body: str | None,
    body_file: Path | None,
) -> None:
    """Approve a proposal, request changes, or only comment."""
    text = _text(body, body_file) or ""
    made = graph.proposals.get(number).review(verdict, text, commit=commit)
    print_result(made.to_json(), review_line(made))
    if made.actor is None and verdict != "comment":
        message = "warning: a review without an actor does not count; pass --as ACTOR"
        click.echo(message, err=True)


@proposal.command()
@graph_command(actor=True, mode="rw", lazy=True)
@number_argument
@checks_option
def check(opens: GraphOpener, number: int, checks: Path | None) -> None:
    """Run the checks on the state that merging a proposal now would make."""
    graph = with_checks(opens(), checks)
    with show_progress("running checks"):
        runs = graph.proposals.get(number).run_checks()
    value = {"checks": [run.to_json() for run in runs]}
    lines = [line for run in runs for line in _check_lines(run)]
    print_result(value, *(lines or [NO_CHECKS]))
    if any(run.is_blocking for run in runs):
        raise SystemExit(1)


@proposal.command()
@graph_command(actor=True, mode="rw", lazy=True)
@number_argument
@resolve_option
@click.option("--delete-branch", is_flag=True, help="Delete the source branch after the merge.")
@click.option("--message", "-m", help="Message of the commit.")
@click.option("--dry-run", is_flag=True, help="Only show what merging would do.")
@checks_option
def merge(
    opens: GraphOpener,
    number: int,
    resolve: str | None,
    delete_branch: bool,
    message: str | None,
    dry_run: bool,
    checks: Path | None,
) -> None:
    """Merge a proposal if its checks pass and the rules of its target are satisfied."""
    graph = with_checks(opens(), checks)
    found = graph.proposals.get(number)
    with show_progress("merging"):
        if not dry_run:
            result = found.merge(resolve=resolve, delete_branch=delete_branch, message=message)
            print_merge_result(result, "merged", dry_run=False)
            return
        preview = found.preview()
    plan = preview.schema or {}
    lines = [f"schema: {' '.join(printable_lines(text))}" for text in plan.get("descriptions", ())]
    print_merge_result(preview.merge, "merged", dry_run=True, lines=lines, schema=preview.schema)


@proposal.command()
@graph_command(actor=True, mode="rw")
@number_argument
@click.option("--comment", "note", help="Why it is closed.")
def close(graph: Graph, number: int, note: str | None) -> None:
    """Close a proposal without merging it."""
    closed = graph.proposals.get(number).close(note)
    print_result(closed.to_json(), f"closed proposal {number}")


@proposal.command()
@graph_command(actor=True, mode="rw")
@number_argument
@click.option("--comment", "note", help="Why it is opened again.")
def reopen(graph: Graph, number: int, note: str | None) -> None:
    """Open a closed proposal again."""
    opened = graph.proposals.get(number).reopen(note)
    print_result(opened.to_json(), f"opened proposal {number} again")


@proposal.command()
@graph_command(actor=True, mode="rw")
@number_argument
@click.option("--title", "-t", help="The new title.")
@click.option(
    "--reviewer", "reviewers", multiple=True, help="Actor to review it; repeatable, replaces all."
)
@_body_options
def edit(
    graph: Graph,
    number: int,
    title: str | None,
    reviewers: tuple[str, ...],
    body: str | None,
    body_file: Path | None,
) -> None:
    """Change the title, the description or the reviewers."""
    description = _text(body, body_file)
    if title is None and description is None and not reviewers:
        message = "nothing to change: pass --title, --body, --file or --reviewer"
        raise InvalidInput(message, code="option_invalid")
    edited = graph.proposals.get(number).edit(
        title=title, description=description, reviewers=reviewers or None
    )
    print_result(edited.to_json(), f"edited proposal {number}")


@proposal.command()
@graph_command()
@click.option("--after", help="Cursor that an earlier call printed.")
@click.option("--proposal", "number", type=click.IntRange(1), help="Only this proposal.")
@click.option("--limit", type=click.IntRange(1, 1000), default=100, help="Number of events.")
def events(graph: Graph, after: str | None, number: int | None, limit: int) -> None:
    """List what happened to proposals, in order, and the cursor to continue from."""
    page = graph.proposals.events(after, proposal=number, limit=limit)
    lines = [
        f"{event.event}  proposal {event.proposal}  {event.kind}  {event.actor or 'unknown'}"
        for event in page.events
    ]
    print_result(page.to_json(), *lines, f"cursor: {page.cursor}")
