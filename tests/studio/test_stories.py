"""What people do in Studio, from the first visit on, in a real browser."""

import json
import re
import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest
from playwright.sync_api import Error, expect

import omnigraph as og
from tests.support.browser import PATIENCE, visiting
from tests.support.clock import Clock
from tests.support.studio_graph import HOSTILE, add_hostile, make_harbours

STORED = """
query deep_ports($depth: F64) @description("Ports at least so deep.") {
  match { $p: Port  $p.depth >= $depth }
  return { $p.code, $p.depth }
  order { $p.depth desc }
}
"""
FIRST_LOAD = 350_000
"""Bytes, compressed, of all files of Studio that the first view needs."""
POLICY = """\
version: 1
groups: { harbour: [act-ada], guests: [act-bob] }
rules:
  - id: all
    allow: { actors: { group: harbour }, actions: [read, export, change, branch_create] }
  - id: no-people
    allow: { actors: { group: guests }, actions: [read], types: [Port, Ship, Route, CallsAt] }
"""
expect.set_options(timeout=PATIENCE)


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    return make_harbours(tmp_path_factory.mktemp("studio") / "g")


@pytest.fixture(scope="module")
def server(graph, serve, tmp_path_factory):
    folder = tmp_path_factory.mktemp("queries")
    (folder / "q.gq").write_text(STORED)
    with serve(f"--graph=harbours={graph.uri}", f"--queries={folder}", "--unauthenticated") as one:
        yield one


@pytest.fixture
def visit(browser, server):
    with visiting(browser, server.url) as opened:
        yield opened


def rows(page, label):
    """The table of a label, once it has rows."""
    table = page.get_by_role("grid", name=label)
    expect(table.get_by_role("row").nth(1)).to_be_visible()
    return table


def write_query(page, text):
    editor = page.get_by_role("textbox", name="Query")
    editor.click()
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.insert_text(text)


def test_the_first_visit_shows_types_commits_and_branches(visit):
    page = visit.page
    visit.open()
    expect(page.get_by_role("heading", name="harbours")).to_be_visible()
    expect(page.get_by_text("87 nodes of 4 types, 212 edges of 5 types")).to_be_visible()
    expect(page.get_by_role("group", name="Schema diagram: 4 node types")).to_be_visible()
    expect(page.get_by_role("link", name="Merge local spellings")).to_be_visible()
    expect(page.get_by_text("2 ahead · 4 behind")).to_be_visible()
    assert page.title() == "Overview · harbours"
    page.get_by_role("region", name="Types").get_by_role("link", name="Port 14").click()
    table = rows(page, "Port")
    expect(table.get_by_role("row", name="BGO")).to_contain_text("Norway")
    table.get_by_role("row", name="BGO").click()
    expect(page.get_by_role("heading", name="Bergen")).to_be_visible()
    expect(
        page.get_by_role("row", name="depth").get_by_role("link", name="act-mia")
    ).to_be_visible()
    expect(page.get_by_text("from 9 Ship")).to_be_visible()
    page.get_by_role("link", name=re.compile("^History 2")).click()
    expect(page.get_by_text("Depth of Bergen from the pilot book")).to_be_visible()
    page.go_back()
    page.go_back()
    expect(table).to_be_visible()
    assert "#/data/Port" in page.url


def test_a_table_is_filtered_sorted_and_shared_by_its_address(visit, browser, server):
    page = visit.page
    visit.open("data/Port")
    rows(page, "Port")
    page.get_by_role("button", name="Filter", exact=True).click()
    page.get_by_label("Property").select_option("depth")
    page.get_by_label("Condition").select_option("ge")
    page.get_by_label("Value", exact=True).fill("14.5")
    page.get_by_label("Value", exact=True).press("Enter")
    expect(page.get_by_text(re.compile("^1.5 of 5$"))).to_be_visible()
    page.get_by_role("columnheader", name="depth").get_by_role("button").click()
    expect(page.get_by_role("columnheader", name="depth")).to_have_attribute(
        "aria-sort", "ascending"
    )
    first = page.get_by_role("grid").get_by_role("row").nth(1)
    expect(first).to_contain_text("TLL")
    with visiting(browser, server.url) as other:
        other.page.goto(page.url)
        expect(other.page.get_by_text(re.compile("^1.5 of 5$"))).to_be_visible()
        expect(other.page.get_by_role("grid").get_by_role("row").nth(1)).to_contain_text("TLL")


def test_a_mistake_in_a_query_is_fixed_by_its_hint(visit):
    page = visit.page
    visit.open("query")
    write_query(page, "match { $s: Shp  $s callsAt $p  $p.depth > 20 } return { $s.name, $p.code }")
    expect(page.get_by_text("unknown node type `Shp`: did you mean `Ship`?")).to_be_visible()
    page.locator(".cm-lintRange-error").first.hover()
    page.get_by_role("button", name="Write Ship").click()
    expect(page.get_by_text("unknown node type")).to_have_count(0)
    page.get_by_role("button", name="Run", exact=True).click()
    table = rows(page, "Rows")
    expect(table.get_by_role("row").nth(1)).to_contain_text("RTM")
    expect(page.get_by_role("status")).to_contain_text("8 rows in")
    page.get_by_role("tab", name="Graph").click()
    expect(page.get_by_role("figure", name="Result: 9 nodes, 8 edges")).to_be_visible()
    page.get_by_role("tab", name="Plan").click()
    expect(page.get_by_role("cell", name=re.compile("^Project"))).to_be_visible()
    page.get_by_role("tab", name="JSON").click()
    expect(page.locator("pre")).to_contain_text('"p.code": "RTM"')


def test_words_are_completed_from_the_schema_and_parameters_are_asked_for(visit):
    page = visit.page
    visit.open("query")
    write_query(page, "query q($least: F64) { match { $p: Port  $p.depth >= $least } return { $p.")
    page.keyboard.press("Control+Space")
    expect(page.locator(".cm-tooltip-autocomplete")).to_contain_text("country")
    page.keyboard.type("cod")
    expect(page.locator(".cm-tooltip-autocomplete li")).to_have_count(1)
    page.keyboard.press("Enter")
    page.keyboard.insert_text(" } }")
    page.get_by_label("$least").fill("16")
    page.get_by_label("$least").press("Enter")
    table = rows(page, "Rows")
    assert {r.inner_text() for r in table.get_by_role("gridcell").all()} == {"ANR", "RTM"}
    page.reload()
    rows(page, "Rows")


def test_a_stored_query_is_run_by_name(visit):
    page = visit.page
    visit.open("query")
    page.get_by_role("link", name="deep_ports").click()
    expect(page.get_by_text("Ports at least so deep.")).to_be_visible()
    page.get_by_label("$depth").fill("16")
    page.get_by_role("button", name="Run").click()
    assert rows(page, "deep_ports").get_by_role("row").nth(1).inner_text().split() == ["RTM", "24"]


def test_travelling_to_a_time_shows_the_graph_as_it_was(visit, graph):
    page = visit.page
    visit.open("data/Port/BGO")
    expect(page.get_by_role("row", name="depth")).to_contain_text("11.8")
    page.get_by_role("button", name="State: main").click()
    page.get_by_role("button", name="2026-spring").click()
    expect(page.get_by_role("row", name="depth")).to_contain_text("11")
    expect(page.get_by_role("row", name="depth")).not_to_contain_text("11.8")
    assert "at=2026-spring" in page.url
    page.get_by_role("link", name="Overview").first.click()
    expect(page.get_by_text("78 nodes of 4 types, 195 edges of 5 types")).to_be_visible()
    page.get_by_role("link", name="Back to now").click()
    expect(page.get_by_text("87 nodes of 4 types")).to_be_visible()
    page.get_by_role("button", name="State: main").click()
    visit.expected = ["404"]
    page.get_by_role("button", name="Yesterday").click()
    expect(page.get_by_role("alert").first).to_contain_text("has no commit at or before")


def test_yesterday_is_one_press_away(browser, serve, tmp_path, monkeypatch):
    today = datetime.now(UTC)
    clock = Clock(monkeypatch, today - timedelta(days=2))
    graph = og.init(tmp_path / "g", "node Port { code: String @key  depth: F64 }")
    graph.load({"Port": [{"code": "BGO", "depth": 11.0}, {"code": "OSL", "depth": 9.0}]})
    clock.instant = today
    graph.mutate('query q() { update Port set { depth: 12.5 } where code = "BGO" }')
    graph.mutate('query q() { delete Port where code = "OSL" }')
    with (
        serve(f"--graph=g={graph.uri}", "--unauthenticated") as server,
        visiting(browser, server.url) as visit,
    ):
        page = visit.page
        visit.open("data/Port")
        table = rows(page, "Port")
        assert table.get_by_role("row").nth(1).inner_text().split() == ["BGO", "12.5"]
        page.get_by_role("button", name="State: main").click()
        page.get_by_role("button", name="Yesterday").click()
        expect(table.get_by_role("row")).to_have_count(3)
        lines = [row.inner_text().split() for row in table.get_by_role("row").all()[1:]]
        assert lines == [["BGO", "11"], ["OSL", "9"]]
        yesterday = (today - timedelta(days=1)).date().isoformat()
        assert f"at={yesterday}T" in page.url
        page.reload()
        expect(table.get_by_role("row")).to_have_count(3)
        page.get_by_role("link", name="Overview").first.click()
        expect(page.get_by_text("2 nodes of 1 type")).to_be_visible()
        page.go_back()
        page.go_back()
        expect(table.get_by_role("row")).to_have_count(2)


def test_two_branches_are_compared_property_by_property(visit):
    page = visit.page
    visit.open("overview")
    page.get_by_text("2 ahead · 4 behind").click()
    expect(page.get_by_role("heading", name="What changes")).to_be_visible()
    bergen = page.get_by_role("article").filter(has_text="Bergen")
    expect(bergen).to_contain_text("changed")
    expect(bergen.get_by_role("row", name="depth")).to_contain_text("11.8")
    expect(bergen.get_by_role("row", name="depth")).to_contain_text("12.5")
    expect(page.get_by_role("article").filter(has_text="Oslo")).to_contain_text("added")
    expect(page.get_by_role("figure", name="Changed subgraph")).to_be_visible()
    page.get_by_role("link", name="Swap the states").click()
    expect(page.get_by_role("article").filter(has_text="Oslo")).to_contain_text("removed")


def test_a_commit_shows_its_changes(visit):
    page = visit.page
    visit.open("history")
    page.get_by_role("link", name="Local spelling of Gothenburg").click()
    changed = page.get_by_role("article")
    expect(changed).to_contain_text("Gothenburg")
    expect(changed).to_contain_text("Göteborg")
    page.get_by_role("link", name="Compare with its parent").click()
    expect(page.get_by_role("article")).to_contain_text("Göteborg")


PAGE_KEYS = {
    "q": "Query",
    "h": "History",
    "c": "Compare",
    "p": "Proposals",
    "r": "Pipelines",
    "e": "Health",
    "o": "Overview",
}


def test_everything_is_reached_with_the_keyboard(visit):
    page = visit.page
    visit.open()
    expect(page.get_by_role("heading", name="harbours")).to_be_visible()
    page.keyboard.press("g")
    page.keyboard.press("d")
    table = rows(page, "Company")
    table.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Delta Tugs")).to_be_visible()
    page.keyboard.press("t")
    expect(page.get_by_role("textbox", name="Search states")).to_be_focused()
    page.keyboard.type("agent/42")
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="State: agent/42")).to_be_focused()
    page.keyboard.press("?")
    shortcuts = page.get_by_role("dialog", name="Keyboard shortcuts")
    expect(shortcuts).to_be_visible()
    page.keyboard.press("Escape")
    expect(shortcuts).to_be_hidden()
    for key, name in PAGE_KEYS.items():
        page.keyboard.press("g")
        page.keyboard.press(key)
        expect(page.get_by_role("navigation", name="Pages").locator("[aria-current]")).to_have_text(
            name
        )
        page.evaluate("document.activeElement.blur()")
    page.reload()
    expect(page.get_by_role("heading", name="harbours")).to_be_visible()
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()


PAGES = {
    "overview": "Recent commits",
    "data/Port": "BGO",
    "data/Port/BGO": "Neighbours",
    "data/Port/BGO?view=history": "pilot book",
    "query": "Run a query to see its answer",
    "history": "Ports and routes",
    "compare?from=main&to=agent%2F42": "What changes",
    "compare": "Choose what to compare with",
}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(browser, server, scheme):
    found = {}
    with visiting(browser, server.url, color_scheme=scheme) as visit:
        for address, text in PAGES.items():
            visit.open(address)
            expect(visit.page.get_by_text(text).first).to_be_visible()
            visit.page.wait_for_load_state("networkidle")
            found[address] = visit.serious_findings()
        visit.page.get_by_role("button", name="State: main").click()
        expect(visit.page.get_by_role("button", name="2026-spring")).to_be_visible()
        found["picker"] = visit.serious_findings()
        visit.page.goto(f"{server.url}/docs")
        expect(visit.page.get_by_text("Run a query").first).to_be_visible()
        found["docs"] = visit.serious_findings()
    assert {where: what for where, what in found.items() if what} == {}


def test_hostile_text_is_text_everywhere(browser, serve, tmp_path):
    graph = make_harbours(tmp_path / "g", ships=4)
    add_hostile(graph)
    with (
        serve(f"--graph=g={graph.uri}", "--unauthenticated") as server,
        visiting(browser, server.url) as visit,
    ):
        for address in (
            "overview",
            "history",
            "data/Person",
            "data/Person/mallory",
            "data/Person/mallory?view=history",
            "compare?from=2026-spring&to=main",
        ):
            visit.open(address)
            expect(visit.page.get_by_text("<img src=x onerror").first).to_be_visible()
            assert visit.page.title() != "hacked"
            shown = visit.page.inner_text("body")
            assert "\u202e" not in shown
            assert "\x1b" not in shown
            assert "⟨202E⟩" in shown
            wide = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
            assert visit.page.evaluate(wide)
            assert visit.page.locator("#app script, #app img").count() == 0
        visit.open("data/Person/mallory")
        visit.page.get_by_role("button", name=re.compile("Show all 1,000,")).click()
        expect(visit.page.get_by_text("x" * 1000).first).to_be_visible()
    assert HOSTILE.startswith("<img")


@pytest.fixture
def guarded(graph, serve, tmp_path):
    (tmp_path / "policy.yaml").write_text(POLICY)
    tokens = tmp_path / "tokens.json"
    tokens.write_text(json.dumps({"act-ada": "token-ada", "act-bob": "token-bob"}))
    environment = {"OMNIGRAPH_SERVER_BEARER_TOKENS_FILE": str(tokens)}
    words = (f"--graph=harbours={graph.uri}", f"--policy={tmp_path / 'policy.yaml'}")
    with serve(*words, environment=environment) as server:
        yield server


def sign_in(page, token):
    page.get_by_label("Token").fill(token)
    page.get_by_role("button", name="Sign in").click()


HIDDEN_FROM = ("compare?from=2026-spring&to=main", "pipelines", "proposals", "health")


def test_an_actor_finds_no_trace_of_a_hidden_type(browser, guarded):
    with visiting(browser, guarded.url) as visit:
        # Reports of pipelines and sizes count every type: they are refused as a whole.
        visit.expected = ["401", "/pipeline-runs", "/status"]
        page, said = visit.page, []
        page.on("response", lambda answer: said.append(answer))
        visit.open("overview")
        sign_in(page, "wrong")
        expect(page.get_by_role("alert")).to_contain_text("did not accept the token")
        sign_in(page, "token-bob")
        expect(page.get_by_text("74 nodes of 2 types")).to_be_visible()
        bodies, read = [], 0
        for address in ("overview", "data/Person", "history", "query", *HIDDEN_FROM):
            visit.open(address)
            page.wait_for_load_state("networkidle")
            assert "Person" not in page.inner_text("body").replace("People", "")
            for answer in said[read:]:
                with suppress(Error):  # of a request that the next page has cancelled
                    bodies += [answer.text()] if "/graphs/" in answer.url else []
            read = len(said)
        assert len(bodies) > len(HIDDEN_FROM)
        assert not any('"Person"' in body or "node:Person" in body for body in bodies)
        assert page.evaluate("JSON.stringify(localStorage) + document.cookie").find("token") == -1
        assert not any("token-bob" in answer.url for answer in said)
        assert not any("token-bob" in line for line in guarded.log)
        page.get_by_role("button", name="Sign out").click()
        expect(page.get_by_role("heading", name="Sign in to Studio")).to_be_visible()
        sign_in(page, "token-ada")
        visit.open("data/Person")
        rows(page, "Person")


def test_a_link_to_a_graph_that_is_not_served_names_the_others(browser, serve, tmp_path):
    schema = "node Note { slug: String @key }"
    graphs = [f"--graph={name}={og.init(tmp_path / name, schema).uri}" for name in ("one", "two")]
    with (
        serve(*graphs, "--unauthenticated") as server,
        visiting(browser, server.url) as visit,
    ):
        visit.open("overview?graph=three")
        page = visit.page
        expect(page.get_by_role("heading", name="There is no graph three here")).to_be_visible()
        page.get_by_role("main").get_by_role("link", name="two").click()
        expect(page.get_by_role("heading", name="two")).to_be_visible()
        expect(page.get_by_text("0 nodes of 1 type")).to_be_visible()


def test_the_policy_that_permits_only_own_files_is_sent(server):
    with server.client() as client:
        for path in ("/", "/docs", "/studio/icon.svg"):
            sent = client.get(path).headers["content-security-policy"]
            assert "default-src 'none'" in sent
            assert "script-src 'self';" in sent
            assert "unsafe" not in sent
        text = client.get("/").text
        assert "__CSP_NONCE__" not in text
        assert not re.search(r"<script(?![^>]*\bsrc=)", text)


@pytest.mark.parametrize("address", ["overview", "query", "data/Port/BGO", "proposals", "health"])
def test_whatever_is_opened_first_is_small(browser, server, address):
    with visiting(browser, server.url) as visit:
        sizes = {}
        session = visit.page.context.new_cdp_session(visit.page)
        session.send("Network.enable")
        names = {}
        session.on(
            "Network.requestWillBeSent",
            lambda e: names.update({e["requestId"]: e["request"]["url"]}),
        )
        session.on(
            "Network.loadingFinished",
            lambda e: sizes.update({names[e["requestId"]]: e["encodedDataLength"]}),
        )
        visit.open(address)
        visit.page.wait_for_load_state("networkidle")
        own = {url: size for url, size in sizes.items() if "/graphs/" not in url}
        assert any(url.endswith(".woff2") for url in own)
        assert sum(own.values()) <= FIRST_LOAD, own


def test_a_large_result_and_a_large_graph_stay_quick(browser, serve, tmp_path):
    graph = make_harbours(tmp_path / "g", ships=3000)
    with (
        serve(f"--graph=g={graph.uri}", "--unauthenticated") as server,
        visiting(browser, server.url) as visit,
    ):
        page = visit.page
        visit.open("query")
        write_query(page, "match { $s callsAt $p } return { $s.name, $s.imo, $p.code }")
        page.get_by_role("button", name="Run", exact=True).click()
        table = rows(page, "Rows")
        expect(page.get_by_role("status")).to_contain_text("6,000 rows")
        assert table.get_by_role("row").count() < 100
        table.focus()
        page.keyboard.press("End")
        expect(table.locator("[aria-rowindex='6001']")).to_be_visible()
        begun = time.monotonic()
        page.get_by_role("tab", name="Graph").click()
        expect(page.get_by_role("figure", name=re.compile("^Result: 2,000 nodes"))).to_be_visible()
        expect(page.get_by_text("Laying out the graph")).to_have_count(0)
        assert time.monotonic() - begun < PATIENCE / 1000
