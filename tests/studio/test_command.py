"""`omnigraph studio` in a real browser: the address that it prints shows the graph."""

import re
import subprocess
import sys

from playwright.sync_api import expect

from tests.support.browser import PATIENCE, visiting
from tests.support.studio_graph import make_harbours

expect.set_options(timeout=PATIENCE)


def test_the_printed_address_shows_the_overview(browser, tmp_path):
    graph = make_harbours(tmp_path / "g")
    command = [sys.executable, "-m", "omnigraph.cli", "studio", graph.uri, "--no-open"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            url = re.search(r"http://\S+", process.stdout.readline())[0]
            base, _, fragment = url.partition("#")
            assert re.fullmatch(r"token=[\w-]{40,}", fragment)
            with visiting(browser, base.rstrip("/")) as visit:
                visit.page.goto(url)
                expect(visit.page).to_have_title("Overview · graph")
                assert visit.page.url == f"{base}#/"
        finally:
            process.terminate()
