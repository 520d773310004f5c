"""A graph to look at: harbours of northern Europe, with branches, tags and a year of commits."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import omnigraph as og

SCHEMA = """\
node Port @description("a place where ships call") {
  code: String @key @description("three capital letters")
  name: String @index
  country: String @index
  depth: F64? @description("metres at low water")
  pilots: Bool
  opened: Date?
  photo: Blob?
  @check(code, "^[A-Z]{3}$")
}
node Ship @description("a vessel") {
  imo: I64 @key @description("number of the International Maritime Organization")
  name: String @index
  kind: enum(container, ferry, tanker, tug)
  draught: F64?
  flags: [String]?
}
node Company @description("who owns or runs ships") {
  name: String @key
  founded: I32?
}
node Person {
  handle: String @key
  name: String @index
  bio: String?
}
edge CallsAt: Ship -> Port @description("a ship calls at a port") {
  on: Date?
  fee: F64?
}
edge Route: Port -> Port @description("a sea route") {
  nm: I32? @description("length in nautical miles")
}
edge OwnedBy: Ship -> Company
edge WorksFor: Person -> Company {
  role: String?
}
edge Knows: Person -> Person
"""
PORTS = (
    ("AAR", "Aarhus", "Denmark", 14.1),
    ("BGO", "Bergen", "Norway", 11.0),
    ("CPH", "Copenhagen", "Denmark", 10.5),
    ("GOT", "Gothenburg", "Sweden", 13.5),
    ("HAM", "Hamburg", "Germany", 15.1),
    ("HEL", "Helsinki", "Finland", 11.0),
    ("RTM", "Rotterdam", "Netherlands", 24.0),
    ("STO", "Stockholm", "Sweden", 9.5),
    ("TRD", "Trondheim", "Norway", 12.2),
    ("ANR", "Antwerp", "Belgium", 16.0),
    ("GDN", "Gdańsk", "Poland", 15.0),
    ("RIX", "Riga", "Latvia", 13.0),
    ("TLL", "Tallinn", "Estonia", 14.5),
    ("KEL", "Kiel", "Germany", 9.0),
)
ROUTES = (
    *(("BGO", "AAR"), ("AAR", "CPH"), ("CPH", "GOT"), ("GOT", "HAM"), ("HAM", "RTM")),
    *(("RTM", "ANR"), ("CPH", "STO"), ("STO", "HEL"), ("HEL", "TLL"), ("TLL", "RIX")),
    *(("RIX", "GDN"), ("GDN", "KEL"), ("KEL", "CPH"), ("TRD", "BGO"), ("RTM", "BGO")),
)
COMPANIES = ("Nordlinje", "Baltic Bulk", "Fjord Ferries", "Delta Tugs")
SHIPS = ("Aurora", "Emma", "Freya", "Balder", "Saga", "Viking Star", "Hanse", "Odin", "Selma")
KINDS = ("container", "ferry", "tanker", "tug")
PEOPLE = ("Ada", "Mia", "Kaya", "Noor", "Lev", "Ida", "Omar", "Åse", "Łucja", "José")
HOSTILE = (
    "<img src=x onerror=\"document.title='hacked'\"><script>document.title='hacked'</script>"
    "\u202egnp.exe\u202c \x1b[31mred\x1b[0m שלום 👩‍👩‍👧 </td></table>{{7*7}}${7*7}"
)


def ports() -> Iterator[dict[str, Any]]:
    """Yield the ports and the routes between them."""
    for index, (code, name, country, depth) in enumerate(PORTS):
        values = {"code": code, "name": name, "country": country, "pilots": index % 3 > 0}
        yield _node("Port", {**values, "depth": depth, "opened": f"18{40 + index}-05-01"})
    for index, (src, dst) in enumerate(ROUTES):
        yield _edge("Route", src, dst, nm=60 + index * 37 % 400)


def fleet(ships: int) -> Iterator[dict[str, Any]]:
    """Yield companies, ships and their calls."""
    for index, name in enumerate(COMPANIES):
        yield _node("Company", {"name": name, "founded": 1880 + index * 23})
    for index in range(ships):
        imo, nth = str(9_000_001 + index), index // len(SHIPS)
        name = SHIPS[index % len(SHIPS)] + (f" {nth + 1}" if nth else "")
        values = {"imo": int(imo), "name": name, "kind": KINDS[index % 4], "flags": ["NO", "EU"]}
        yield _node("Ship", {**values, "draught": 4 + index * 7 % 11 + 0.5})
        yield _edge("OwnedBy", imo, COMPANIES[index % 4])
        for nth in range(2):
            code = PORTS[(index * 5 + nth * 3) % len(PORTS)][0]
            day = f"2026-0{1 + index % 9}-{1 + index % 28:02}"
            yield _edge("CallsAt", imo, code, on=day, fee=100.0 + index % 50)


def people() -> Iterator[dict[str, Any]]:
    """Yield people, who they work for and whom they know."""
    for index, name in enumerate(PEOPLE):
        handle = f"p{index}"
        yield _node("Person", {"handle": handle, "name": name})
        yield _edge("WorksFor", handle, COMPANIES[index % 4], role="captain")
        yield _edge("Knows", handle, f"p{(index + 1) % len(PEOPLE)}")


def _node(name: str, data: dict[str, Any]) -> dict[str, Any]:
    return {"type": name, "data": data}


def _edge(name: str, src: str, dst: str, **data: Any) -> dict[str, Any]:
    return {"edge": name, "from": src, "to": dst, "data": data}


def lines(records: Iterator[dict[str, Any]]) -> bytes:
    """Return records as lines of JSON."""
    return "".join(json.dumps(record) + "\n" for record in records).encode()


def make_harbours(uri: Path, *, ships: int = 60) -> og.Graph:
    """Make the graph: main, a branch of each of two agents that touch the same port, a tag."""
    graph = og.init(uri, SCHEMA, actor="act-ops")
    graph.load(lines(ports()), message="Ports and routes")
    graph.load(lines(fleet(ships)), message="Ships of four companies")
    graph.tags.create("2026-spring")
    graph.as_actor("act-mia").load(lines(people()), message="People of the companies")
    survey = graph.as_actor("agent-42").branch("agent/42", create=True)
    survey.mutate(
        'query q() { update Port set { depth: 12.5 } where code = "BGO" }',
        message="Depth of Bergen from the survey of 2026",
    )
    survey.mutate(
        'query q() { insert Port { code: "OSL", name: "Oslo", country: "Norway", depth: 13.2, '
        'pilots: true } insert Route { from: "OSL", to: "CPH", nm: 272 } }',
        message="Add Oslo and its route",
    )
    names = graph.as_actor("agent-7").branch("agent/7", create=True)
    names.mutate(
        'query q() { update Port set { name: "Göteborg" } where code = "GOT" }',
        message="Local spelling of Gothenburg",
    )
    names.mutate('query q() { delete Person where handle = "p9" }', message="Remove José")
    mia = graph.as_actor("act-mia")
    mia.mutate(
        'query q() { update Port set { depth: 11.8 } where code = "BGO" }',
        message="Depth of Bergen from the pilot book",
    )
    graph.merge("agent/7", into="main", message="Merge local spellings")
    return graph


def add_hostile(graph: og.Graph, *, size: int = 1_000_000) -> None:
    """Add text that would do harm if it were more than text, and a very long one."""
    graph.as_actor("<b>mallory</b>").mutate(
        "query q($a: String, $b: String, $c: String) { "
        "insert Person { handle: $a, name: $b, bio: $c } }",
        {"a": "mallory", "b": HOSTILE, "c": HOSTILE + "x" * size},
        message=HOSTILE,
    )


CHECKS = """
query too_deep() @check("no port is deeper than 30 m") {
  match { $p: Port  $p.depth >= 30 }
  return { $p.id as id, $p.name as name, $p.depth as depth }
}
query named() @check("every port has a name") {
  match { $p: Port  $p.name = "" }
  return { $p.id as id }
}
"""


def make_proposals(graph: og.Graph) -> None:
    """Propose what two agents did: the first conflicts with main, a check fails for the second."""
    first = graph.as_actor("agent-42").proposals.create(
        "agent/42",
        into="main",
        title="Harbours of Norway",
        description="Depths of the survey of 2026.\n\nSource: Kystverket, edition 10.",
        reviewers=["act-ada", "act-mia"],
    )
    question = graph.as_actor("act-mia").proposals.get(first.number)
    asked = question.comment("The pilot book says 11.8. Where is it from?", on=("Port", "BGO"))
    first.comment("From the survey, sheet 4.", thread=asked.thread)
    deep = graph.as_actor("agent-9").branch("agent/9", create=True)
    deep.mutate(
        'query q() { update Port set { depth: 240.0 } where code = "RTM" '
        'insert Port { code: "NVK", name: "Narvik", country: "Norway", depth: 27.0, pilots: true }'
        " }",
        message="Depths of deep sea ports",
    )
    graph.as_actor("agent-9").proposals.create(
        "agent/9", into="main", title="Deep sea ports", reviewers=["act-ada"]
    )
