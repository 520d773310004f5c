"""A real browser that looks at Studio: found by itself, and strict about what pages do."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Error, Page, Playwright, sync_playwright

from omnigraph.server.studio_files import BUILT

REQUIRE = "OMNIGRAPH_REQUIRE_BROWSER"
PATIENCE = 30_000
"""Milliseconds after which something that should be on a page is a failure."""
_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_AXE = Path(__file__).parents[2] / "ui/node_modules/axe-core/axe.min.js"
_VIOLATIONS = """
addEventListener('securitypolicyviolation', (event) =>
  console.error(`CSP ${event.violatedDirective} ${event.blockedURI} ${event.sample}`))
"""


def find_browser(playwright: Playwright) -> str | None:
    """Return where a Chromium is: one of the system, else one that playwright has."""
    found = next(filter(None, map(shutil.which, _NAMES)), None)
    brought = playwright.chromium.executable_path
    return found or (brought if Path(brought).is_file() else None)


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start a browser; skip the tests where there is none, unless one is required."""
    missing = None if (BUILT / "index.html").is_file() else "Studio is not built: run make ui"
    with sync_playwright() as playwright:
        path = find_browser(playwright)
        if path is None:
            missing = "no Chromium: apt install chromium, or playwright install chromium"
        if missing is not None:
            if os.environ.get(REQUIRE) == "1":
                pytest.fail(missing)
            pytest.skip(missing)
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@dataclass(slots=True)
class Visit:
    """A page and what went wrong on it, which is nothing."""

    page: Page
    url: str
    faults: list[str] = field(default_factory=list)
    expected: list[str] = field(default_factory=list)
    """Parts of console errors that a story causes on purpose, as the answer 404 of a lookup."""

    def open(self, address: str = "") -> None:
        """Go to an address behind `#`."""
        self.page.goto(f"{self.url}/#/{address}")

    def note(self, said: ConsoleMessage) -> None:
        """Keep an error of the console, with the address it is about."""
        self.faults.append(f"{said.text} {said.location.get('url', '')}".strip())

    def check(self) -> None:
        """Fail if a script failed, anything was blocked, or an error was logged."""
        serious = [f for f in self.faults if not any(part in f for part in self.expected)]
        assert serious == []

    def serious_findings(self) -> list[dict[str, Any]]:
        """Return what axe finds serious about the page as it is."""
        if not self.page.evaluate("'axe' in window"):
            self.page.evaluate(_AXE.read_text(encoding="utf-8"))
        found: dict[str, Any] = self.page.evaluate("axe.run()")
        return [
            {"rule": one["id"], "places": [node["html"][:200] for node in one["nodes"][:3]]}
            for one in found["violations"]
            if one["impact"] in ("serious", "critical")
        ]


@contextmanager
def visiting(browser: Browser, url: str, **options: Any) -> Iterator[Visit]:
    """Open a page of its own cookies and storage; what went wrong on it fails the test."""
    context = browser.new_context(**{"viewport": {"width": 1280, "height": 820}, **options})
    context.set_default_timeout(PATIENCE)
    context.add_init_script(_VIOLATIONS)
    page = context.new_page()
    visit = Visit(page, url)
    page.on("pageerror", lambda error: visit.faults.append(f"script: {error}"))
    page.on("console", lambda said: visit.note(said) if said.type == "error" else None)
    try:
        yield visit
        visit.check()
    finally:
        try:
            context.close()
        except Error as error:
            visit.faults.append(str(error))
