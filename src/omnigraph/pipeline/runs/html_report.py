"""Render the report of a run as a self-contained HTML page.

Charts are inline SVG; colours follow the light or dark setting of the browser; there is no script.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from omnigraph.pipeline.runs.next_steps import NextStep, next_steps
from omnigraph.pipeline.runs.report import RunReport
from omnigraph.pipeline.runs.report_style import STYLE
from omnigraph.version import __version__

_MAX_CONFLICTS = 50
_STAGE_TEXTS = {
    "start": "to start Spark; a running session is reused by later runs of the same process",
    "extract": "to open, read through and check the sources",
    "stage": "to read, map and write the rows",
    "validate": "to check the rows against each other and the graph",
    "embed": "to compute vectors",
    "check": "for the checks of the pipeline",
    "publish": "to find unchanged rows and publish the commit",
    "merge": "to merge the branch",
}
_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB")


def report_page(report: RunReport) -> str:
    """Return the page of a report."""
    parts = [
        _head(report),
        _error(report),
        _numbers(report),
        _next(report),
        _types(report),
        _rules(report),
        _stages(report),
        _merge(report),
        _checks(report),
        _sources(report),
        _examples(report),
        _facts(report),
    ]
    body = "\n".join(part for part in parts if part)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(report.pipeline)}: run {escape(report.run)}</title>\n"
        f"<style>{STYLE}</style>\n</head>\n<body>\n<main>\n{body}\n"
        f"<footer>omnigraph {escape(__version__)}</footer>\n</main>\n</body>\n</html>\n"
    )


def size_text(size: float) -> str:
    """Return a number of bytes for people.

    >>> size_text(1536), size_text(12)
    ('1.5 KiB', '12 bytes')
    """
    for unit in _UNITS:
        if size < 1024 or unit == _UNITS[-1]:
            return f"{size:,.0f} {unit}" if unit == _UNITS[0] else f"{size:,.1f} {unit}"
        size /= 1024
    raise AssertionError("the last unit holds everything")


def seconds_text(seconds: float) -> str:
    """Return a time for people.

    >>> seconds_text(0.25), seconds_text(75)
    ('0.25 s', '1 min 15 s')
    """
    if seconds < 60:
        return f"{seconds:.2f} s" if seconds < 10 else f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def state_text(report: RunReport) -> str:
    """Return in a word or two how a run ended."""
    if report.repeated:
        return "already loaded"
    if (report.merge or {}).get("conflicts"):
        return "conflicts"
    if report.merge is not None:
        return "merged"
    return "published" if report.commit is not None and report.error is None else report.state


# --- parts -------------------------------------------------------------------------------------


def _head(report: RunReport) -> str:
    badge = "badge" if report.is_done else "badge bad"
    to = f" → {escape(str(report.merge['target']))}" if report.merge is not None else ""
    return (
        f'<header><h1>{escape(report.pipeline)}</h1><span class="{badge}">'
        f"{escape(state_text(report))}</span></header>\n"
        f'<p class="under">{escape(report.mode)} into <code>{escape(report.branch)}</code>{to}, '
        f"{escape(report.started_at[:19].replace('T', ' '))} UTC</p>"
    )


def _numbers(report: RunReport) -> str:
    changed = sum(
        type_[word]
        for type_ in report.types.values()
        for word in ("inserted", "updated", "deleted")
    )
    before = report.previous
    shown = [
        (f"{report.given:,}", "rows in", _delta(report.given, before, "given")),
        (f"{report.accepted:,}", "accepted", ""),
        (f"{report.rejected:,}", "rejected", _delta(report.rejected, before, "rejected")),
        (f"{changed:,}", "entities changed", ""),
        (size_text(report.bytes), "written", ""),
        (seconds_text(report.seconds), "total time", _delta(report.seconds, before, "seconds")),
    ]
    cells = (
        f'<div class="number"><b>{value}</b><span>{what}</span>{delta}</div>'
        for value, what, delta in shown
    )
    note = ""
    if before is not None:
        at = before["started_at"][:16].replace("T", " ")
        note = (
            f'<p class="under">compared with the previous run of this pipeline, {escape(at)} UTC '
            f"(<code>{escape(before['run'])}</code>)</p>"
        )
    return f'<div class="numbers">{"".join(cells)}</div>{note}'


def _delta(now: float, before: Mapping[str, Any] | None, name: str) -> str:
    """Return how a number differs from that of the previous run."""
    if before is None:
        return ""
    old = before[name]
    if now == old:
        text = "as before"
    else:
        is_time = name == "seconds"
        size = seconds_text(abs(now - old)) if is_time else f"{abs(now - old):,}"
        word = ("longer" if is_time else "more") if now > old else "shorter" if is_time else "fewer"
        text = f"{size} {word}" + (f" ({abs(now - old) / old:.0%})" if old else "")
    return f'<span class="delta">{text}</span>'


def _next(report: RunReport) -> str:
    items = [
        f"<li>{_step_text(step)}"
        + ("" if step.command is None else f'<code class="command">{escape(step.command)}</code>')
        + "</li>"
        for step in next_steps(report)
    ]
    return f"<section><h2>Next step</h2><ol>{''.join(items)}</ol></section>" if items else ""


def _step_text(step: NextStep) -> str:
    text = escape(step.text)
    return f'<a href="#rejects">{text}</a>' if step.rejects else text


def _error(report: RunReport) -> str:
    if report.error is None:
        return ""
    text = f"{report.error['code']}: {report.error['message']}"
    return f"<section><h2>Error</h2><pre>{escape(text)}</pre></section>"


def _types(report: RunReport) -> str:
    if not report.types:
        return ""
    most = max((type_["given"] for type_ in report.types.values()), default=0)
    bars = []
    rows = []
    for key, type_ in report.types.items():
        rejected = sum(type_["rejected"].values())
        value = f"{type_['accepted']:,}" + (f" + {rejected:,} rejected" if rejected else "")
        parts = (("ok", type_["accepted"]), ("bad", rejected))
        bars.append(_bar(key.partition(":")[2], parts, most, value))
        numbers = [type_["given"], type_["accepted"], rejected]
        numbers += [type_[word] for word in ("inserted", "updated", "deleted")]
        cells = [f"{number:,}" for number in numbers] + [size_text(type_["bytes"])]
        rows.append([f"{key.replace(':', ' ')}", *cells])
    heads = ["type", "rows in", "accepted", "rejected", "inserted", "updated", "deleted", "written"]
    legend = _legend([("ok", "accepted"), ("bad", "rejected")])
    return (
        f"<section><h2>Rows by type</h2>{''.join(bars)}{legend}</section>\n"
        f"<section><h2>Changes by type</h2>{_table(heads, rows)}</section>"
    )


def _rules(report: RunReport) -> str:
    counts: dict[tuple[str, str], int] = {}
    if report.unreadable:
        counts["files", "syntax"] = report.unreadable
    for key, type_ in report.types.items():
        for rule, count in type_["rejected"].items():
            counts[key.partition(":")[2], rule] = count
    if not counts:
        return ""
    most = max(counts.values())
    bars = [
        _bar(f"{name}: {rule}", (("bad", count),), most, f"{count:,}")
        for (name, rule), count in sorted(counts.items(), key=lambda item: -item[1])
    ]
    return f"<section><h2>Rejected rows by rule</h2>{''.join(bars)}</section>"


def _stages(report: RunReport) -> str:
    total = sum(stage["seconds"] for stage in report.stages)
    if not total:
        return ""
    slowest = max(report.stages, key=lambda stage: stage["seconds"])
    before = {one["name"]: one["seconds"] for one in (report.previous or {}).get("stages", ())}
    bars = []
    for stage in report.stages:
        name, seconds = stage["name"], stage["seconds"]
        value = f"{seconds_text(seconds)}, {seconds / total:.0%}"
        if name in before:
            value += f" (before: {seconds_text(before[name])})"
        bars.append(_bar(name, (("info", seconds),), slowest["seconds"], value))
    about = _STAGE_TEXTS.get(slowest["name"], "")
    share = f"{seconds_text(slowest['seconds'])} of {seconds_text(total)}"
    text = f"took the longest: {share}{about and ', '}{about}."
    lead = f"<b>{escape(slowest['name'])}</b> {escape(text)}"
    return f'<section><h2>Time by stage</h2><p class="lead">{lead}</p>{"".join(bars)}</section>'


def _merge(report: RunReport) -> str:
    merge = report.merge
    if merge is None:
        return ""
    title = f"<h2>Merge into {escape(str(merge['target']))}: {escape(merge['outcome'])}</h2>"
    conflicts = merge.get("conflicts") or []
    if conflicts:
        rows = [
            [f"{c['type_name'] or ''} {c['entity_id'] or ''}", c["kind"], c["message"]]
            for c in conflicts[:_MAX_CONFLICTS]
        ]
        note = (
            f"<p>Nothing was merged; branch <code>{escape(report.branch)}</code> is kept. Resolve "
            f"with <code>omnigraph merge {escape(report.branch)} --resolve …</code></p>"
        )
        return f"<section>{title}{note}{_table(['entity', 'conflict', 'reason'], rows)}</section>"
    rows = [
        [key.replace(":", " "), *(f"{counts[word]:,}" for word in counts)]
        for key, counts in merge.get("counts", {}).items()
    ]
    shown = _table(["type", "inserted", "updated", "deleted"], rows) if rows else ""
    return f"<section>{title}{shown}</section>"


def _checks(report: RunReport) -> str:
    if not report.checks:
        return ""
    rows = []
    for check in report.checks:
        outcome = "passed" if check["passed"] else str(check["severity"])
        entities = ", ".join(f"{one['type']} {one['id']}" for one in check["entities"])
        rows.append([check["name"], outcome, check["message"], entities])
    heads = ["check", "outcome", "finding", "entities"]
    return f"<section><h2>Checks</h2>{_table(heads, rows)}</section>"


def _sources(report: RunReport) -> str:
    rows = [
        [
            source["name"],
            source["kind"],
            f"{source['files']:,}" if source["files"] else "",
            "" if source["rows"] is None else f"{source['rows']:,}",
            f"{source['broken']:,}",
            _increment_text(source.get("incremental")),
        ]
        for source in report.sources
    ]
    heads = ["source", "kind", "files", "rows", "unreadable", "incremental"]
    if not any(row[-1] for row in rows):
        heads, rows = heads[:-1], [row[:-1] for row in rows]
    return f"<section><h2>Sources</h2>{_table(heads, rows)}</section>" if rows else ""


def _increment_text(increment: Mapping[str, Any] | None) -> str:
    """Return what an incremental source was read for."""
    if increment is None:
        return ""
    if "cursor" not in increment:
        return "new files"
    after = f"after {increment['after']} " if increment["after"] is not None else ""
    return f"{increment['cursor']}: {after}up to {increment['to']}"


def _examples(report: RunReport) -> str:
    if not report.examples:
        return ""
    rows = []
    for example in report.examples:
        place = example.get("source") or {}
        number = (f"{word} {place[word]}" for word in ("line", "row") if place.get(word))
        where = ", ".join(filter(None, [str(place.get("file") or "").rpartition("/")[2], *number]))
        rows.append(
            [
                str(example.get("type") or ""),
                str(example.get("rule", "")),
                str(example.get("message", "")),
                where,
            ]
        )
    note = f"<p>All rejected rows are in {_link(str(report.rejects))}.</p>"
    table = _table(["type", "rule", "message", "location"], rows)
    return f'<section id="rejects"><h2>Rejected rows</h2>{table}{note}</section>'


def _facts(report: RunReport) -> str:
    commit = report.commit or {}
    facts = {
        "run": report.run,
        "commit": commit.get("graph_commit_id"),
        "message": commit.get("message"),
        "actor": report.actor,
        "graph": report.graph,
        "file": report.file,
        "vectors": ", ".join(
            f"{made['type']}.{item['name']} {item['embedded']:,} by {made['model']}"
            for made in report.embedded
            for item in made["properties"]
        ),
    }
    items = (
        f"<dt>{name}</dt><dd><code>{escape(str(value))}</code></dd>"
        for name, value in facts.items()
        if value
    )
    return f"<section><h2>Details</h2><dl>{''.join(items)}</dl></section>"


def _link(address: str) -> str:
    """Return an address that a browser opens if it can."""
    if address.startswith(("http://", "https://", "file:/")):
        target = address
    elif "://" in address:
        return f"<code>{escape(address)}</code>"
    else:
        target = Path(address).absolute().as_uri()
    return f'<a href="{escape(target)}"><code>{escape(address)}</code></a>'


# --- shapes ------------------------------------------------------------------------------------


def _bar(name: str, parts: Iterable[tuple[str, float]], most: float, value: str) -> str:
    shapes = [_rect("track", 0, 100)]
    at = 0.0
    for colour, count in parts:
        # What is there at all is seen, however small its share.
        width = max(100 * count / most, 0.6) if most and count else 0
        shapes.append(_rect(colour, at, width))
        at += width
    chart = _svg(shapes, "", f"{name}: {value}")
    return (
        f'<div class="bar"><span class="name">{escape(name)}</span>'
        f'<span class="chart">{chart}</span><span class="value">{escape(value)}</span></div>'
    )


def _rect(colour: str, at: float, width: float, title: str = "") -> str:
    if width <= 0:
        return ""
    tooltip = f"<title>{escape(title)}</title>" if title else ""
    box = f'x="{at:.3f}" y="0" width="{width:.3f}" height="10"'
    return f'<rect class="{colour}" {box}>{tooltip}</rect>'


def _svg(shapes: Sequence[str], kind: str, label: str) -> str:
    css_class = f' class="{kind}"' if kind else ""
    return (
        f'<svg{css_class} viewBox="0 0 100 10" preserveAspectRatio="none" role="img" '
        f'aria-label="{escape(label)}">{"".join(shapes)}</svg>'
    )


def _legend(items: Iterable[tuple[str, str]]) -> str:
    shown = (
        f'<li><svg viewBox="0 0 10 10" aria-hidden="true">{_rect(colour, 0, 10)}</svg>'
        f"{escape(text)}</li>"
        for colour, text in items
    )
    return f'<ul class="legend">{"".join(shown)}</ul>'


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    numeric = [all(_is_number(row[i]) for row in rows) for i in range(len(heads))]

    def cell(tag: str, text: str, place: int) -> str:
        kind = ' class="n"' if numeric[place] else ""
        label = f' data-label="{escape(heads[place])}"' if tag == "td" else ""
        return f"<{tag}{kind}{label}>{escape(text)}</{tag}>"

    head = "".join(cell("th", text, i) for i, text in enumerate(heads))
    body = "".join(
        f"<tr>{''.join(cell('td', text, i) for i, text in enumerate(row))}</tr>" for row in rows
    )
    table = f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody>"
    return f'<div class="scroll"><table>{table}</table></div>'


def _is_number(text: str) -> bool:
    return not text or text[0].isdigit() or text.endswith(_UNITS)
