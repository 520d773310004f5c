"""The objects that notebooks show, of one story, on any way to a graph."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import omnigraph as og

ROOT = Path(__file__).resolve().parents[2]
HARBOUR = ROOT / "samples" / "harbour"
DATA = str(HARBOUR / "data.ndjson")
CALLS = """query calls() {
  match { $s: Ship  $s $c:callsAt $p }
  return { $s.label, $p.city, $c.on, $c.fee, $s.flags }
  order { $s.label, $c.on }
}"""
ROUTES = "query routes() { match { $a: Port  $a route $b } return { $a.code, $b.code } }"
CORRECT = """query correct() {
  update Port set { depth: 13.5, city: "Århus" } where code = "AAR"
  insert Port { code: "OSL", city: "Oslo", depth: 9.0 }
}"""
DEEPEN = 'query deepen() { update Port set { depth: 12.0 } where code = "AAR" }'
BRANCH = "agent/42"

_ID = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}|…[0-9A-HJKMNP-TV-Z]{8}")
_TIME = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC")
_STYLE = re.compile(r"<style>.*?</style>", re.DOTALL)
_BLOCK = re.compile(r"(<(?:div|details|table|tr|svg|g|path)\b)")
_ELEMENTS = """div span bdi code table thead tbody tr th td details summary style
svg g defs marker title path rect circle text"""
ELEMENTS = set(_ELEMENTS.split())
"""The elements of an output."""
_ATTRIBUTES = """class scope title role aria-label style viewbox d x y cx cy r rx width height id
refx refy markerwidth markerheight orient marker-end font-size stroke-width"""
ATTRIBUTES = set(_ATTRIBUTES.split())


def shown_objects(graph: Any) -> Iterator[tuple[str, Any]]:
    """Yield objects with their names, as a graph of the harbour returns them in a story."""
    yield "schema", graph.schema
    yield "load", graph.load(DATA)
    yield "snapshot", graph.snapshot()
    yield "result", graph.query(CALLS)
    yield "result of nodes", graph.query("query ports() { match { $p: Port } return { $p } }")
    yield (
        "result without rows",
        graph.query('query q() { match { $p: Port { code: "ZZZ" } } return { $p.code } }'),
    )
    yield "stream", graph.stream(CALLS)
    yield "explanation", graph.explain(CALLS)
    yield "graph of a result", graph.query(ROUTES).graph()
    yield "subgraph", graph.subgraph(CALLS)
    yield "neighbours", graph.neighbours("Port", "AAR")
    yield from _review(graph)
    yield "tag", graph.tags.create("survey", at="main")
    yield "tags", graph.tags.list()
    text = (HARBOUR / "schema-next.pg").read_text(encoding="utf-8")
    yield "schema plan", graph.schema.plan(text)
    yield "schema change", graph.schema.apply(text)
    yield "error of a query", raised(graph.query, "query q() { match { $p: Prt } return { $p } }")
    broken = str(HARBOUR / "broken.ndjson")
    yield "error of data", raised(graph.load, broken)


def _review(graph: Any) -> Iterator[tuple[str, Any]]:
    branch = graph.branch(BRANCH, create=True)
    yield "mutation", branch.mutate(CORRECT, message="Correct the depth of Aarhus")
    yield "mutation without effect", branch.mutate(CORRECT.partition("insert")[0] + "}")
    yield "difference", graph.diff("main", BRANCH)
    yield "commits", graph.commits.list(BRANCH)
    yield "commit", graph.commits.list(BRANCH, limit=1)[0]
    yield "changes of a commit", graph.commits.changes(graph.commits.list(BRANCH, limit=1)[0].id)
    yield "branches", graph.branches.list()
    yield "branch", graph.branches.get(BRANCH)
    yield "history of an entity", branch.history("Port", "AAR")
    yield "origins of values", branch.blame("Port", "AAR")
    graph.mutate(DEEPEN, message="Survey of the harbour")
    yield "merge with conflicts", graph.merge(BRANCH, dry_run=True)
    yield "error of a merge", raised(graph.merge, BRANCH)
    text = "Adds Oslo.\nCorrects Aarhus."
    proposal = graph.proposals.create(BRANCH, title="Harbours of Norway", description=text)
    proposal.comment("The depth looks wrong.", on=("Port", "AAR", "depth"))
    proposal.review("comment", "I asked the port.")
    yield "proposal", proposal.refresh()
    yield "proposals", graph.proposals.list()
    yield "preview", proposal.preview()
    yield "checks of a proposal", proposal.run_checks()
    yield "protection", graph.protection
    yield "merge", graph.merge(BRANCH, resolve="source")


def local_objects(graph: Any) -> Iterator[tuple[str, Any]]:
    """Yield objects that only an embedded graph has; their numbers depend on the machine."""
    yield "graph", graph
    yield "catalog", graph.schema.catalog
    yield "analysis of a plan", graph.explain(ROUTES, analyze=True)
    yield "running queries", graph.running_queries()
    yield "checks", graph.run_checks()
    yield "status", graph.maintenance.status()
    yield "indexes", graph.indexes.status()
    yield "maintenance", graph.optimize()
    yield "verification", graph.verify()
    yield "cleanup", graph.cleanup(keep=1)
    yield "repair", graph.repair()
    yield "poll", graph.changes.poll(start="now")


def raised(call: Any, *arguments: Any) -> Exception:
    """Return the error that a call raises."""
    try:
        call(*arguments)
    except og.OmniError as error:
        return error
    raise AssertionError("it raises nothing")


def structure(html: str) -> str:
    """Return an output without its style and what differs from run to run, a line for a block."""
    plain = _TIME.sub("TIME", _ID.sub("COMMIT", _STYLE.sub("", html))).replace(f"{ROOT}/", "")
    return _BLOCK.sub(r"\n\1", plain).strip() + "\n"


class Outline(HTMLParser):
    """What a browser finds in an output: elements and attributes, and the text."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.foreign: list[str] = []
        self.text = ""
        self.open: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what an output never has."""
        if tag not in ELEMENTS:
            self.foreign.append(tag)
        self.foreign += [name for name, _ in attrs if name not in ATTRIBUTES]
        if tag not in ("path", "rect", "circle"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """Check that elements are closed in order."""
        if tag in ("path", "rect", "circle"):
            return
        if not self.open or self.open.pop() != tag:
            self.foreign.append(f"/{tag}")

    def handle_data(self, data: str) -> None:
        """Collect the text."""
        if self.open[-1:] != ["style"]:
            self.text += data
