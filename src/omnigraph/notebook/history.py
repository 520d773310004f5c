"""Commits, branches and tags."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from omnigraph.notebook.elements import Html, cut, element, join, plural
from omnigraph.notebook.style import badge, document, head, note
from omnigraph.notebook.values import commit_id, facts, moment, table


def commit_html(commit: Mapping[str, Any]) -> str:
    """Return a commit with what it changed by type."""
    title = head("Commit", commit["message"] or "(no message)", *_badges(commit))
    about = {
        "ID": element("code", commit["graph_commit_id"]),
        "branch": commit["graph_branch"] or "main",
        "actor": commit["actor_id"],
        "created": moment(commit["created_at"]),
        "operation": commit["operation"],
        "parent": commit_id(commit["parent_commit_id"]),
        "merged": commit_id(commit["merged_parent_commit_id"]),
    }
    return document(title, facts(about), counts_table(commit["counts"]))


def commit_line(commit: Mapping[str, Any]) -> Html:
    """Return a commit on one line."""
    who = commit["actor_id"]
    return element(
        "div",
        commit_id(commit["graph_commit_id"]),
        element("span", cut(commit["message"] or "(no message)", 200)),
        element("span", moment(commit["created_at"]), class_="mute"),
        None if who is None else element("span", join("by ", who), class_="mute"),
        *_badges(commit),
        class_="head",
    )


def _badges(commit: Mapping[str, Any]) -> list[Html]:
    badges = [_total(commit["counts"])]
    if commit["merged_parent_commit_id"] is not None:
        badges.append(badge("merge", "accent"))
    if commit.get("proposal") is not None:
        badges.append(badge(f"proposal {commit['proposal']['number']}", "accent"))
    if commit.get("bypassed_protection"):
        badges.append(badge("bypassed protection", "remove"))
    return badges


def _total(counts: Mapping[str, Mapping[str, int]]) -> Html:
    sums = {name: sum(one[name] for one in counts.values()) for name in _TONES}
    shown = [
        element("span", f"{sign}{sums[name]:,}", class_=f"badge {tone}", title=name)
        for name, (sign, tone) in _TONES.items()
        if sums[name]
    ]
    return join(*shown) if shown else badge("no entities changed")


_TONES = {
    "inserted": ("+", "add"),
    "updated": ("~", "change"),
    "deleted": ("\N{MINUS SIGN}", "remove"),
}


def counts_table(counts: Mapping[str, Mapping[str, int]]) -> Html | None:
    """Return how many entities of each type were inserted, updated and deleted."""
    if not counts:
        return None
    rows = [
        (name.partition(":")[2] or name, name.partition(":")[0], *(one[n] for n in _TONES))
        for name, one in counts.items()
    ]
    return table(("type", "kind", *_TONES), rows)


def commits_html(commits: Sequence[Mapping[str, Any]]) -> str:
    """Return commits, the newest first."""
    rows = [
        (
            commit_id(commit["graph_commit_id"]),
            moment(commit["created_at"]),
            join() if commit["actor_id"] is None else commit["actor_id"],
            cut(commit["message"], 200) if commit["message"] else join(),
            commit["graph_branch"] or "main",
            join(*_badges(commit)),
        )
        for commit in commits
    ]
    columns = ("commit", "created", "actor", "message", "branch", "changes")
    shown = table(columns, rows) if rows else note("no commits")
    return document(head("Commits", None, badge(plural(len(rows), "commit"))), shown)


def branches_html(names: Sequence[str]) -> str:
    """Return the names of branches."""
    return document(
        head("Branches", None, badge(plural(len(names), "branch", "branches"))),
        table(("name",), [(name,) for name in names]),
    )


def refs_html(title: str, refs: Sequence[Mapping[str, Any]]) -> str:
    """Return tags or branches with the commits they start at or name."""
    columns = list(refs[0]) if refs else []
    rows = [[_ref_cell(name, ref[name]) for name in columns] for ref in refs]
    titles = [name.replace("_", " ") for name in columns]
    shown = table(titles, rows) if rows else note("none")
    return document(head(title, None, badge(f"{len(refs):,}")), shown)


def _ref_cell(name: str, one: object) -> object:
    if one is None:
        return join()
    return commit_id(str(one)) if name.endswith("commit") else one
