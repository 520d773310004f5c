"""The rows of queries, what statements did, plans of queries, and reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from omnigraph.notebook.diagram import graph_drawing
from omnigraph.notebook.elements import Html, cut, element, join, plural
from omnigraph.notebook.history import commit_line, counts_table
from omnigraph.notebook.style import badge, document, head, note, section
from omnigraph.notebook.values import MAX_ROWS, commit_id, facts, moment, table

_TIMES = ("_at",)


def result_html(result: Mapping[str, Any]) -> str:
    """Return the rows of a query; `rows` are the first ones of `row_count`."""
    columns, rows = result["columns"], result["rows"]
    about = f"{plural(result['row_count'], 'row')}, {plural(len(columns), 'column')}"
    shown = (
        table(columns, [[row[name] for name in columns] for row in rows], result["row_count"])
        if result["row_count"]
        else note("no rows")
    )
    at = join("at ", commit_id(result["graph_commit_id"]))
    return document(head("Result", result["query_name"], badge(about), badge(at)), shown)


def stream_html(name: str, columns: Sequence[str], row_count: int) -> str:
    """Return what is known of rows that can be gone through once."""
    about = badge(plural(row_count, "row"))
    remark = note("Its rows are read as they are consumed: iterate, or use parts() or to_reader().")
    return document(
        head("Result stream", name, about), facts({"columns": ", ".join(columns)}), remark
    )


def mutation_html(facts_: Mapping[str, Any]) -> str:
    """Return what a mutation did."""
    nodes = plural(facts_["affected_nodes"], "node")
    edges = plural(facts_["affected_edges"], "edge")
    title = head("Mutation", facts_["query_name"], badge(nodes), badge(edges))
    return document(title, _outcome(facts_))


def load_html(facts_: Mapping[str, Any]) -> str:
    """Return what a load did."""
    total = badge(plural(facts_["total_entities"], "entity", "entities"))
    rows = [
        (one["name"], kind.removesuffix("s"), one["entities_loaded"])
        for kind in ("nodes", "edges")
        for one in facts_[kind]
    ]
    notes = [note(text) for text in facts_.get("notes", ())]
    into = badge(join("into ", facts_["branch"]), "accent" if facts_["branch_created"] else "")
    by_type = table(("type", "kind", "given"), rows)
    return document(
        head("Load", facts_["mode"], total, into),
        by_type if rows else None,
        _outcome(facts_),
        *notes,
    )


def _outcome(facts_: Mapping[str, Any]) -> Html:
    commit = facts_["commit"]
    if commit is None:
        return note("Nothing changed, so there is no commit.")
    return join(section("Commit", commit_line(commit)), counts_table(commit["counts"]))


def schema_result_html(facts_: Mapping[str, Any]) -> str:
    """Return the steps of a migration, applied or planned."""
    supported = facts_["supported"]
    if "applied" not in facts_:
        title = "Schema plan"
        state = badge("possible", "add") if supported else badge("refused", "remove")
    else:
        title = "Schema change"
        applied = facts_["applied"]
        state = badge("applied", "add") if applied else badge("not applied", "change")
    steps = facts_["descriptions"]
    shown = [element("div", text, class_="text") for text in steps[:MAX_ROWS]]
    more = (
        note(f"{len(steps) - len(shown):,} more steps not shown") if len(steps) > MAX_ROWS else None
    )
    commit = facts_.get("commit")
    done = None if commit is None else section("Commit", commit_line(commit))
    about = badge(plural(len(steps), "step"))
    none = None if steps else note("no steps: the schemas are equal")
    return document(head(title, None, state, about), *shown, more, none, done)


def explanation_html(facts_: Mapping[str, Any]) -> str:
    """Return the operators of a plan as a tree, with measured values where there are some."""
    steps = facts_["steps"]
    measured = any("seconds" in step for step in steps)
    columns = ["operator", "estimated rows"]
    if measured:
        columns += ["rows", "time", "reads"]
    rows = [
        [
            element("code", "\u2007\u2007" * step["depth"] + cut(step["operator"])),
            step["estimated_rows"],
            *_measured(step, measured=measured),
        ]
        for step in steps
    ]
    choices = [
        note(f"Starts at ${choice['start']}: {choice['reason']}")
        for choice in facts_.get("choices", ())
    ]
    title = head("Plan", facts_["query_name"], badge("measured", "accent") if measured else None)
    return document(title, table(columns, rows), *choices)


def _measured(step: Mapping[str, Any], *, measured: bool) -> list[object]:
    if not measured:
        return []
    if "seconds" not in step:
        return ["", "", ""]
    return [step["rows"], f"{step['seconds'] * 1000:,.1f} ms", step["reads"]]


def subgraph_html(facts_: Mapping[str, Any], remark: str | None = None) -> str:
    """Return nodes and edges, drawn."""
    nodes, edges = facts_["nodes"], facts_["edges"]
    about = [badge(plural(len(nodes), "node")), badge(plural(len(edges), "edge"))]
    cut_off = badge("the pattern matches more", "change") if facts_["truncated"] else None
    at = badge(join("at ", commit_id(facts_["graph_commit_id"])))
    drawing = graph_drawing(nodes, edges)
    return document(
        head("Graph", None, *about, cut_off, at), drawing, None if remark is None else note(remark)
    )


def neighbours_html(facts_: Mapping[str, Any]) -> str:
    """Return the neighbours of a node by edge type and direction."""
    rows = [
        (
            group["edge"],
            group["direction"],
            group["type"],
            group["count"],
            ", ".join(cut(one["label"] or one["id"], 40) for one in group["neighbours"][:5]),
        )
        for group in facts_["groups"]
    ]
    shown = table(("edge", "direction", "type", "edges", "first"), rows) if rows else note("none")
    return document(head("Neighbours"), shown)


def report_html(title: str, report: Mapping[str, Any]) -> str:
    """Return any report: its values, and its lists as tables."""
    return document(head(title, None, _verdict(report)), *_members(report, depth=0))


def _verdict(report: Mapping[str, Any]) -> Html | None:
    if "ok" not in report:
        return None
    return badge("ok", "add") if report["ok"] else badge("problems found", "remove")


def _members(report: Mapping[str, Any], depth: int) -> list[Html]:
    plain: dict[str, object] = {}
    parts = []
    for name, one in report.items():
        words = name.replace("_", " ")
        match one:
            case {"graph_commit_id": _, "created_at": _}:
                parts.append(section(words, commit_line(one)))
            case Mapping() if one and all(isinstance(v, Mapping) for v in one.values()):
                rows = [{"": key, **entry} for key, entry in one.items()]
                parts.append(section(words, records(rows)))
            case Mapping() if one and depth == 0:
                parts.append(section(words, *_members(one, depth=1)))
            case [Mapping(), *_]:
                parts.append(section(words, records(one)))
            case [*texts] if all(isinstance(text, str) for text in texts):
                plain[words] = ", ".join(texts[:MAX_ROWS]) if texts else None
            case _ if name != "ok" and one not in _EMPTY:
                plain[words] = _cell(name, one)
    return [facts(plain), *parts] if any(one is not None for one in plain.values()) else parts


def records(rows: Sequence[Mapping[str, Any]]) -> Html:
    """Return objects as a table of their members."""
    first = rows[:MAX_ROWS]
    names = dict.fromkeys(name for row in first for name in row)
    filled = [n for n in names if any(row.get(n) not in _EMPTY for row in first)]
    titles = [name.replace("_", " ").removesuffix(" id") for name in filled]
    return table(titles, [[_cell(n, row.get(n)) for n in filled] for row in first], len(rows))


_EMPTY: tuple[object, ...] = (None, "", [], {}, ())


def _cell(name: str, one: Any) -> object:  # noqa: ANN401 - any JSON value
    match one:
        case None | "" | [] | {} | ():
            return join()
        case int() if name.endswith(_TIMES):
            return moment(one)
        case int() if "bytes" in name:
            return f"{one:,}"
        case str() if "commit" in name:
            return commit_id(one)
        case [str(), *_] if all(isinstance(text, str) for text in one):
            return ", ".join(one)
    return one


def records_html(title: str, rows: Sequence[Mapping[str, Any]]) -> str:
    """Return a list of objects as one output."""
    return document(
        head(title, None, badge(f"{len(rows):,}")), records(rows) if rows else note("none")
    )
