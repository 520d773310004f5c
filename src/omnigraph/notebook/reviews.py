"""Merges, proposals and checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from omnigraph.notebook.changes import conflict_blocks
from omnigraph.notebook.elements import Html, cut, element, join, plural
from omnigraph.notebook.history import commit_line, counts_table
from omnigraph.notebook.results import records
from omnigraph.notebook.style import badge, document, head, note, section
from omnigraph.notebook.values import MAX_ROWS, commit_id, facts, moment, table

_STATES = {"open": "add", "merged": "accent", "closed": "remove"}
_VERDICTS = {"approve": "add", "request_changes": "remove"}
_CHECKS = {"passed": "add", "failed": "remove", "error": "remove", "warned": "change"}


def merge_html(merge: Mapping[str, Any]) -> str:
    """Return what a merge did or would do, with its conflicts."""
    title = head("Merge", join(merge["source"], " → ", merge["target"]), *_merge_badges(merge))
    return document(title, *merge_parts(merge))


def _merge_badges(merge: Mapping[str, Any]) -> list[Html]:
    conflicts = len(merge["conflicts"])
    if conflicts:
        return [badge(plural(conflicts, "conflict"), "remove")]
    published = merge["commit"] is not None or merge["outcome"] == "already_up_to_date"
    state = badge("published", "add") if merge["commit"] is not None else badge("not published")
    return [
        badge(merge["outcome"].replace("_", " "), "accent"),
        *([] if not published else [state]),
    ]


def merge_parts(merge: Mapping[str, Any]) -> list[Html | None]:
    """Return the commit, the counts and the conflicts of a merge."""
    commit, error = merge["commit"], merge.get("branch_delete_error")
    return [
        None if commit is None else section("Commit", commit_line(commit)),
        counts_table(merge["counts"]),
        *conflict_blocks(merge["conflicts"]),
        None if error is None else note(f"The branch was kept: {error}"),
    ]


def preview_html(preview: Mapping[str, Any]) -> str:
    """Return what merging a proposal would do."""
    merge, plan = preview["merge"], preview["schema"]
    title = join(merge["source"], " → ", merge["target"])
    steps = None if plan is None else section("Schema", records(plan["steps"]))
    return document(head("Preview", title, *_merge_badges(merge)), *merge_parts(merge), steps)


def proposal_html(proposal: Mapping[str, Any]) -> str:
    """Return a proposal: its state, requirements, checks, reviews and comments."""
    state = proposal["state"]
    title = head(
        f"Proposal {proposal['number']}",
        proposal["title"],
        badge(state, _STATES.get(state, "")),
        badge("can be merged", "add") if proposal["mergeable"] else None,
    )
    about = {
        "merge": join(proposal["source"], " → ", proposal["target"]),
        "author": proposal["author_id"],
        "reviewers": ", ".join(proposal["reviewers"]) or None,
        "created": moment(proposal["created_at"]),
        "closed": moment(proposal["closed_at"]),
        "merge commit": commit_id(proposal["merge_commit_id"]),
    }
    text = proposal["description"]
    return document(
        title,
        element("div", cut(text, 2_000), class_="text") if text else None,
        facts(about),
        counts_table(proposal["summary"] or {}),
        _requirements(proposal["requirements"]),
        section("Checks", checks_table(proposal["checks"])) if proposal["checks"] else None,
        _reviews(proposal["reviews"]),
        _comments(proposal["comments"]),
    )


def _requirements(requirements: Sequence[Mapping[str, Any]]) -> Html | None:
    if not requirements:
        return None
    rows = [
        (
            badge("satisfied", "add") if one["satisfied"] else badge("missing", "remove"),
            one["message"],
        )
        for one in requirements
    ]
    return section(
        "Required by the protection of the target", table(("state", "requirement"), rows)
    )


def _reviews(reviews: Sequence[Mapping[str, Any]]) -> Html | None:
    if not reviews:
        return None
    rows = [
        (
            one["actor_id"] or join(),
            join(
                badge(one["verdict"].replace("_", " "), _VERDICTS.get(one["verdict"], "")),
                badge("stale", "change") if one["stale"] else None,
            ),
            one["body"] or join(),
            moment(one["created_at"]),
        )
        for one in reversed(reviews)
    ]
    return section("Reviews", table(("actor", "verdict", "text", "created"), rows))


def _comments(comments: Sequence[Mapping[str, Any]]) -> Html | None:
    if not comments:
        return None
    shown = [
        element(
            "div",
            element(
                "div",
                element("span", one["actor_id"] or "", class_="title"),
                element("span", moment(one["created_at"]), class_="mute"),
                _anchor(one["on"]),
                badge("resolved", "add") if one["resolved"] else None,
                class_="head",
            ),
            element("div", one["body"], class_="text"),
            class_="entity",
        )
        for one in comments[-MAX_ROWS:]
    ]
    rest = len(comments) - len(shown)
    older = note(f"{plural(rest, 'older comment')} not shown") if rest else None
    return section("Comments", older, *shown)


def _anchor(on: Mapping[str, Any] | None) -> Html | None:
    if on is None:
        return None
    parts = [part for part in (on["type"], on["id"], on["property"]) if part is not None]
    return badge(" · ".join(cut(part, 60) for part in parts), "change" if on["outdated"] else "")


def checks_table(checks: Sequence[Mapping[str, Any]]) -> Html:
    """Return checks with their states and the number of their findings."""
    rows = [
        (
            check["name"],
            _state(check),
            check["severity"],
            check.get("count", 0),
            check["message"],
        )
        for check in checks
    ]
    return table(("check", "state", "severity", "findings", "message"), rows)


def _state(check: Mapping[str, Any]) -> Html:
    """Return the state of a check of a proposal, or of one that was run on a state."""
    if "status" in check:
        return badge(check["status"], _CHECKS.get(check["status"], ""))
    if check["passed"]:
        return badge("passed", "add")
    return badge("failed", "remove") if check["severity"] == "fail" else badge("warned", "change")


def checks_html(checks: Sequence[Mapping[str, Any]]) -> str:
    """Return checks as one output, with the first findings of each."""
    findings = [
        section(f"Findings of {check['name']}", records(_rows(check)))
        for check in checks
        if _rows(check)
    ]
    shown = checks_table(checks) if checks else note("no checks")
    return document(head("Checks", None, badge(plural(len(checks), "check"))), shown, *findings)


def _rows(check: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    rows: Sequence[Mapping[str, Any]] = check.get("findings") or check.get("rows") or ()
    return rows


def proposals_html(proposals: Sequence[Mapping[str, Any]]) -> str:
    """Return proposals, the newest first."""
    rows = [
        (
            one["number"],
            one["title"],
            badge(one["state"], _STATES.get(one["state"], "")),
            join(one["source"], " → ", one["target"]),
            one["author_id"] or join(),
            one["approvals"],
            one["unresolved_count"],
            moment(one["updated_at"]),
        )
        for one in proposals
    ]
    columns = (
        "number",
        "title",
        "state",
        "merge",
        "author",
        "approvals",
        "open comments",
        "updated",
    )
    shown = table(columns, rows) if rows else note("no proposals")
    return document(head("Proposals", None, badge(f"{len(rows):,}")), shown)
