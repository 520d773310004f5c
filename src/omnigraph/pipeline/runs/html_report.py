"""Render the report of a run as a self-contained HTML page.

Charts are inline SVG; colours follow the light or dark setting of the browser; there is no script.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from omnigraph.pipeline.runs.report import RunReport
from omnigraph.version import __version__

_STYLE = """
:root { color-scheme: light dark; --bg: #f6f7f9; --card: #ffffff; --ink: #1a202c; --soft: #5a6577;
  --line: #e2e6ec; --ok: #2f8f6b; --bad: #d2691e; --info: #3b6fb6; --track: #e9edf2;
  --s0: #3b6fb6; --s1: #2f8f6b; --s2: #c99a2e; --s3: #8a5fb0; --s4: #c2557a; --s5: #4a9aa8; }
@media (prefers-color-scheme: dark) { :root { --bg: #12161c; --card: #1b212a; --ink: #e8ecf2;
  --soft: #9aa7b8; --line: #2c3440; --ok: #4fbf94; --bad: #f0945a; --info: #7aa7e0;
  --track: #2a323d; --s0: #7aa7e0; --s1: #4fbf94; --s2: #e0b95a; --s3: #b794d6; --s4: #e38aa8;
  --s5: #79c3cf; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--bg); color: var(--ink); line-height: 1.45;
  font: 16px/1.45 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
main { max-width: 60rem; margin: 0 auto; padding: 1.5rem 1rem 3rem; }
h1 { font-size: 1.5rem; margin: 0; overflow-wrap: anywhere; }
h2 { font-size: 1.05rem; margin: 0 0 .8rem; }
header { display: flex; flex-wrap: wrap; gap: .4rem .8rem; align-items: center; }
.badge { border-radius: 99px; padding: .1rem .7rem; font-size: .85rem; font-weight: 600;
  color: var(--card); background: var(--ok); }
.badge.bad { background: var(--bad); }
.under { color: var(--soft); margin: .3rem 0 1.2rem; overflow-wrap: anywhere; }
.numbers { display: grid; grid-template-columns: repeat(auto-fit, minmax(8.5rem, 1fr)); gap: .7rem;
  margin-bottom: .9rem; }
.number, section { background: var(--card); border: 1px solid var(--line); border-radius: .7rem; }
.number { padding: .7rem .9rem; }
.number b { display: block; font-size: 1.35rem; white-space: nowrap;
  font-variant-numeric: tabular-nums; }
.number span { color: var(--soft); font-size: .85rem; }
section { padding: 1rem; margin-bottom: .9rem; }
.bar { display: grid; grid-template-columns: 11rem 1fr 12rem;
  gap: .2rem .7rem; align-items: center; margin: .35rem 0; font-size: .92rem; }
.bar .name { overflow-wrap: anywhere; }
.bar .value { text-align: right; color: var(--soft); font-variant-numeric: tabular-nums; }
svg { display: block; width: 100%; height: .8rem; border-radius: .3rem; }
svg.tall { height: 1.5rem; }
.track { fill: var(--track); } .ok { fill: var(--ok); } .bad { fill: var(--bad); }
.info { fill: var(--info); }
.s0 { fill: var(--s0); } .s1 { fill: var(--s1); } .s2 { fill: var(--s2); } .s3 { fill: var(--s3); }
.s4 { fill: var(--s4); } .s5 { fill: var(--s5); }
.legend { display: flex; flex-wrap: wrap; gap: .3rem 1rem; margin: .6rem 0 0; padding: 0;
  list-style: none; font-size: .9rem; }
.legend svg { display: inline-block; width: .7rem; height: .7rem; margin-right: .35rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; }
th, td { text-align: left; padding: .35rem .7rem .35rem 0; border-bottom: 1px solid var(--line);
  vertical-align: top; }
th { color: var(--soft); font-weight: 500; white-space: nowrap; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
tr:last-child td { border-bottom: 0; }
code { font: .88em ui-monospace, SFMono-Regular, Menlo, Consolas, monospace;
  overflow-wrap: anywhere; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .3rem 1rem; margin: 0;
  font-size: .92rem; }
dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; margin: 0; font-size: .88rem; }
footer { color: var(--soft); font-size: .85rem; }
@media (max-width: 34rem) { .bar { grid-template-columns: 1fr auto; }
  .bar .chart { grid-column: 1 / -1; grid-row: 2; } dl { grid-template-columns: 1fr; gap: 0; }
  dd { margin-bottom: .5rem; } }
"""
_MAX_CONFLICTS = 50
_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB")


def report_page(report: RunReport) -> str:
    """Return the page of a report."""
    parts = [
        _head(report),
        _numbers(report),
        _error(report),
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
        f"<style>{_STYLE}</style>\n</head>\n<body>\n<main>\n{body}\n"
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
        type_[word] for type_ in report.types.values() for word in ("inserted", "updated")
    )
    shown = [
        (f"{report.given:,}", "rows in"),
        (f"{report.accepted:,}", "accepted"),
        (f"{report.rejected:,}", "rejected"),
        (f"{changed:,}", "entities written"),
        (size_text(report.bytes), "written"),
        (seconds_text(report.seconds), "total time"),
    ]
    cells = (
        f'<div class="number"><b>{value}</b><span>{what}</span></div>' for value, what in shown
    )
    return f'<div class="numbers">{"".join(cells)}</div>'


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
    shapes = []
    at = 0.0
    for number, stage in enumerate(report.stages):
        width = 100 * stage["seconds"] / total
        shapes.append(_rect(f"s{number % 6}", at, width, stage["name"]))
        at += width
    legend = _legend(
        (f"s{number % 6}", f"{stage['name']} {seconds_text(stage['seconds'])}")
        for number, stage in enumerate(report.stages)
    )
    return (
        f"<section><h2>Time by stage</h2>{_svg(shapes, 'tall', 'time by stage')}{legend}</section>"
    )


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
        ]
        for source in report.sources
    ]
    heads = ["source", "kind", "files", "rows", "unreadable"]
    return f"<section><h2>Sources</h2>{_table(heads, rows)}</section>" if rows else ""


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
    note = f"<p>All rejected rows are in <code>{escape(str(report.rejects))}</code>.</p>"
    table = _table(["type", "rule", "message", "location"], rows)
    return f"<section><h2>Rejected rows</h2>{table}{note}</section>"


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


# --- shapes ------------------------------------------------------------------------------------


def _bar(name: str, parts: Iterable[tuple[str, int]], most: int, value: str) -> str:
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
        return f"<{tag}{kind}>{escape(text)}</{tag}>"

    head = "".join(cell("th", text, i) for i, text in enumerate(heads))
    body = "".join(
        f"<tr>{''.join(cell('td', text, i) for i, text in enumerate(row))}</tr>" for row in rows
    )
    return f'<div class="scroll"><table><tr>{head}</tr>{body}</table></div>'


def _is_number(text: str) -> bool:
    return not text or text[0].isdigit() or text.endswith(_UNITS)
