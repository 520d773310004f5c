"""Take the pictures of the README from Studio, as a browser shows it on a graph of harbours."""

from __future__ import annotations

import tempfile
from pathlib import Path
from urllib.parse import urlencode

from playwright.sync_api import Page, expect

from tests.support.browser import chromium, visiting
from tests.support.serving import serving
from tests.support.studio_graph import CHECKS, make_harbours, make_proposals

OUT = Path(__file__).resolve().parents[1] / "docs/images"
SIZE = {"width": 1440, "height": 900}
QUERY = "match { $s: Ship  $s callsAt $p  $p.depth > 14 } return { $s.name, $p.name, $p.depth }"


def main() -> None:
    """Write the pictures, at one and a half times the resolution of the page."""
    OUT.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        graph = make_harbours(folder / "g", ships=24)
        make_proposals(graph)
        (folder / "queries").mkdir()
        (folder / "queries/checks.gq").write_text(CHECKS)
        words = (f"--graph=harbours={graph.uri}", f"--queries={folder / 'queries'}")
        with serving(*words, "--unauthenticated") as server, chromium() as browser:
            options = {"viewport": SIZE, "device_scale_factor": 1.5}
            with visiting(browser, server.url, **options) as visit:
                visit.open("overview")
                expect(visit.page.get_by_text("ahead").first).to_be_visible()
                _keep(visit.page, "studio-overview")
                visit.open("proposals/1?tab=conflicts")
                expect(visit.page.get_by_role("article", name="Conflict BGO")).to_be_visible()
                _keep(visit.page, "studio-proposal")
            with visiting(browser, server.url, color_scheme="dark", **options) as visit:
                visit.open(f"query?{urlencode({'q': QUERY, 'run': 1, 'view': 'graph'})}")
                page = visit.page
                expect(page.get_by_role("figure", name="Result")).to_be_visible()
                _keep(page, "studio-query")


def _keep(page: Page, name: str) -> None:
    page.wait_for_load_state("networkidle")
    page.wait_for_timeout(800)  # what is drawn on a canvas has no event
    page.screenshot(path=OUT / f"{name}.png")
    print(f"docs/images/{name}.png")


if __name__ == "__main__":
    main()
