"""The canvas that notebooks show, in a real browser, on a page that knows nothing of Studio."""

import json

import pytest
from playwright.sync_api import expect

from omnigraph.query.graph_view import SCRIPT
from tests.support.browser import PATIENCE, visiting

ADDRESS = "http://notebook.test"
PAGE = """<!doctype html><meta charset="utf-8"><title>Notebook</title>
<body data-jp-theme-light="true"><div id="output"></div>
<script type="module">
  import widget from '/canvas.js';
  const state = await (await fetch('/graph.json')).json();
  window.remove = widget.render({ model: { get: (name) => state[name] }, el: output });
</script>"""
HOSTILE = '<img src=x onerror="window.hacked = 1">\u202egnp.exe'
GRAPH = {
    "nodes": [
        {"type": "Port", "id": "AAR", "label": "Aarhus"},
        {"type": "Port", "id": "BGO", "label": HOSTILE},
        {"type": "Ship", "id": "1", "label": None},
    ],
    "edges": [
        {"type": "Route", "src_type": "Port", "src": "AAR", "dst_type": "Port", "dst": "BGO"},
        {"type": "CallsAt", "src_type": "Ship", "src": "1", "dst_type": "Port", "dst": "AAR"},
    ],
}
expect.set_options(timeout=PATIENCE)


def answer(route, graph, policy):
    path = route.request.url.removeprefix(ADDRESS)
    headers = {"Content-Security-Policy": policy} if policy else {}
    match path:
        case "/canvas.js":
            text = SCRIPT.read_text(encoding="utf-8")
            route.fulfill(body=text, content_type="text/javascript")
        case "/graph.json":
            route.fulfill(body=json.dumps(graph), content_type="application/json")
        case "/":
            route.fulfill(body=PAGE, content_type="text/html", headers=headers)
        case _:
            route.fulfill(status=204)


@pytest.fixture
def notebook(browser):
    with visiting(browser, ADDRESS) as visit:

        def show(graph=GRAPH, policy=None):
            visit.page.route("**/*", lambda route: answer(route, graph, policy))
            visit.page.goto(f"{ADDRESS}/")
            expect(visit.page.locator("figure canvas").first).to_be_visible()
            return visit.page

        yield show, visit


DRAWN = """() => {
  const root = output.firstElementChild.shadowRoot;
  const seen = new Set();
  for (const canvas of root.querySelectorAll('canvas')) {
    const { width, height } = canvas;
    const data = canvas.getContext('2d').getImageData(0, 0, width, height).data;
    for (let at = 0; at < data.length; at += 4)
      if (data[at + 3]) seen.add(data.slice(at, at + 3).join());
  }
  return seen.size > 10;
}"""
"""Whether the canvas has many colours: it has none before anything is drawn."""


def background(page):
    return page.locator("figure").evaluate("figure => getComputedStyle(figure).backgroundColor")


def test_nodes_are_drawn_with_a_legend_and_as_a_list(notebook):
    show, _ = notebook
    page = show()
    page.wait_for_function("output.firstElementChild.shadowRoot.querySelectorAll('li').length == 3")
    expect(page.locator("figure")).to_have_attribute("aria-label", "Graph: 3 nodes, 2 edges")
    expect(page.locator(".legend .pill")).to_have_text(["Port", "Ship"])
    expect(page.locator("li")).to_have_text(
        ["Port Aarhus", 'Port <img src=x onerror="window.hacked = 1">⟨202E⟩gnp.exe', "Ship 1"]
    )
    assert page.evaluate("window.hacked") is None
    page.wait_for_function(DRAWN)


def test_the_canvas_has_the_theme_of_the_notebook(notebook):
    show, _ = notebook
    page = show()
    assert background(page) == "rgb(255, 255, 255)"
    page.evaluate("document.body.dataset.jpThemeLight = 'false'")
    page.wait_for_function("output.firstElementChild.dataset.theme == 'dark'")
    assert background(page) == "rgb(27, 29, 32)"


def test_a_click_selects_a_node_and_removal_leaves_nothing(notebook):
    show, _ = notebook
    page = show({"nodes": GRAPH["nodes"][:1], "edges": []})
    page.wait_for_function(DRAWN)
    box = page.locator("figure").bounding_box()
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    expect(page.locator("figcaption")).to_contain_text("Aarhus")
    expect(page.locator("figcaption")).to_contain_text("Port · AAR")
    page.evaluate("window.remove()")
    assert page.evaluate("output.childElementCount") == 0


def test_a_page_that_forbids_workers_shows_the_graph(notebook):
    show, visit = notebook
    visit.expected += ["worker-src", "blob:", "data:"]
    page = show(policy="worker-src 'none'")
    page.wait_for_function(DRAWN)
