"""How long Studio takes to answer an interaction and to draw a large graph, in a real browser."""

import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import Page, expect

from tests.support.browser import Visit, chromium, visiting
from tests.support.serving import serving
from tests.support.studio_graph import make_harbours, make_proposals

ONCE = 1.0
"""These have no scale."""
_VISITS = 5
_LAYOUTS = 3
_INTERACTION_MS, _LAYOUT_SECONDS = 100, 2.0
# What the browser measures from a key or click to the next frame, per interaction.
_OBSERVE = """
window.took = new Map();
new PerformanceObserver((list) => {
  for (const { interactionId: id, duration } of list.getEntries())
    if (id) window.took.set(id, Math.max(duration, window.took.get(id) ?? 0));
}).observe({ type: 'event', durationThreshold: 16, buffered: true });
"""
_QUERY = "match { $s: Ship  $s callsAt $p } return { $s.name, $p.name }"
_PAGES = ("d", "q", "h", "c", "p", "o")


def interactions() -> list[dict[str, object]]:
    """Measure keys and clicks on the sample graph, and the drawing of 2,000 nodes."""
    took = [ms for _ in range(_VISITS) for ms in _interactions_of_a_visit()]
    layouts = [_layout_seconds() for _ in range(_LAYOUTS)]
    return [
        _row("interactions in Studio, the slowest", max(took), took, "ms", _INTERACTION_MS),
        _row("2,000 nodes drawn in Studio", min(layouts), layouts, "s", _LAYOUT_SECONDS),
    ]


def _row(
    name: str, best: float, values: list[float], unit: str, budget: float
) -> dict[str, object]:
    median = round(statistics.median(values), 3)
    return {"name": name, "best": round(best, 3), "median": median, "unit": unit, "budget": budget}


def _interactions_of_a_visit() -> list[float]:
    with _visit(24, proposals=True) as visit:
        page = visit.page
        visit.open("overview")
        expect(page.get_by_text("Recent commits")).to_be_visible()
        page.wait_for_load_state("networkidle")
        for act in _acts(page):
            act()
            page.wait_for_load_state("networkidle")
            page.wait_for_timeout(100)
        found: list[float] = page.evaluate("[...window.took.values()]")
        # What the observer leaves out took less than its threshold.
        return found or [16.0]


def _acts(page: Page) -> Iterator[Callable[[], None]]:
    press = page.keyboard.press
    for key in _PAGES:
        yield lambda: press("g")
        yield lambda key=key: press(key)
    yield lambda: press("t")
    yield lambda: page.keyboard.type("agent")
    yield lambda: press("Escape")
    yield lambda: press("?")
    yield lambda: press("Escape")
    yield lambda: press("g")
    yield lambda: press("d")
    yield page.get_by_role("grid").focus
    for _ in range(5):
        yield lambda: press("ArrowDown")
    yield lambda: press("Enter")
    yield lambda: press("g")
    yield lambda: press("q")
    yield page.get_by_role("textbox", name="Query").click
    yield lambda: page.keyboard.type("match { $s: Ship ")
    yield lambda: press("Escape")
    yield lambda: press("ControlOrMeta+a")
    yield lambda: page.keyboard.insert_text(_QUERY)
    yield page.get_by_role("button", name="Run", exact=True).click
    for tab in ("Graph", "Plan", "JSON"):
        yield page.get_by_role("tab", name=tab).click


def _layout_seconds() -> float:
    with _visit(1_996, proposals=False) as visit:
        page = visit.page
        visit.open("query")
        page.get_by_role("textbox", name="Query").click()
        page.keyboard.insert_text("match { $s callsAt $p } return { $s.name, $p.code }")
        page.get_by_role("button", name="Run", exact=True).click()
        expect(page.get_by_role("status")).to_contain_text("rows")
        page.wait_for_load_state("networkidle")
        begun = time.perf_counter()
        page.get_by_role("tab", name="Graph").click()
        expect(page.get_by_role("figure", name="Result")).to_be_visible()
        expect(page.get_by_text("Laying out the graph")).to_have_count(0)
        return time.perf_counter() - begun


@contextmanager
def _visit(ships: int, *, proposals: bool) -> Iterator[Visit]:
    with TemporaryDirectory() as folder:
        graph = make_harbours(Path(folder, "g"), ships=ships)
        if proposals:
            make_proposals(graph)
        with (
            serving(f"--graph=harbours={graph.uri}", "--unauthenticated") as server,
            chromium() as browser,
            visiting(browser, server.url) as visit,
        ):
            visit.page.add_init_script(_OBSERVE)
            yield visit
