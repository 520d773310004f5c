"""How people review what agents propose, in a real browser."""

import json
import re

import pytest
from playwright.sync_api import expect

from tests.studio.conftest import WAYS
from tests.support.browser import visiting
from tests.support.studio_graph import (
    CHECKS,
    HOSTILE,
    add_hostile,
    make_harbours,
    make_proposals,
)

POLICY = """\
version: 1
groups: { people: [act-ada, act-mia, agent-42, agent-9] }
rules:
  - id: all
    allow: { actors: { group: people }, actions: [read, change, invoke_query] }
  - id: branches
    allow: { actors: { group: people }, actions: [branch_create, branch_merge, branch_delete] }
"""
TOKENS = {actor: f"token-{actor}" for actor in ("act-ada", "act-mia", "agent-9")}
RULES = [{"branches": ["main"], "require": {"proposal": True, "approvals": 1}}]
expect.set_options(timeout=30_000)


@pytest.fixture
def server(serve, tmp_path):
    graph = make_harbours(tmp_path / "g", ships=4)
    make_proposals(graph)
    graph.protection.set(RULES)
    (tmp_path / "queries").mkdir()
    (tmp_path / "queries/checks.gq").write_text(CHECKS)
    (tmp_path / "policy.yaml").write_text(POLICY)
    (tmp_path / "tokens.json").write_text(json.dumps(TOKENS))
    words = (
        f"--graph=harbours={graph.uri}",
        f"--queries={tmp_path / 'queries'}",
        f"--policy={tmp_path / 'policy.yaml'}",
    )
    tokens = {"OMNIGRAPH_SERVER_BEARER_TOKENS_FILE": str(tmp_path / "tokens.json")}
    with serve(*words, environment=tokens) as one:
        yield one


@pytest.fixture
def ada(browser, server):
    with visiting(browser, server.url) as visit:
        visit.expected = ["401", "409", "/merge"]  # signing in; what is refused on purpose
        visit.open("proposals")
        visit.page.get_by_label("Token").fill(TOKENS["act-ada"])
        visit.page.get_by_role("button", name="Sign in").click()
        yield visit


def open_proposal(page, title):
    page.get_by_role("link", name=title, exact=True).click()
    expect(page.get_by_role("heading", name=re.compile(f"^{title}"))).to_be_visible()
    return page.get_by_role("complementary", name="Merge and review")


@pytest.mark.parametrize("serve", WAYS, indirect=True)
def test_a_conflict_is_resolved_by_hand_and_the_proposal_merged(ada, server):
    page = ada.page
    expect(page.get_by_role("link", name="Deep sea ports")).to_be_visible()
    side = open_proposal(page, "Harbours of Norway")
    expect(page.get_by_text("Source: Kystverket, edition 10.")).to_be_visible()
    expect(page.get_by_text("From the survey, sheet 4.")).to_be_visible()
    merge = side.get_by_role("button", name="Merge into main")
    expect(merge).to_be_disabled()
    expect(side.get_by_text("0 of 1 approvals")).to_have_count(2)
    expect(side.get_by_role("link", name="1 conflict to decide")).to_be_visible()

    page.get_by_role("link", name=re.compile("^Changes")).click()
    bergen = page.get_by_role("article").filter(has_text="Bergen")
    expect(bergen.get_by_text("The pilot book says 11.8.")).to_be_visible()
    bergen.get_by_role("button", name="Comment on depth").click()
    page.get_by_label("Comment on the change").fill("Take the mean of both.")
    page.get_by_label("Comment on the change").press("Control+Enter")
    expect(bergen.get_by_text("Take the mean of both.")).to_be_visible()
    mine = page.get_by_role("region", name="Thread of act-ada")
    mine.get_by_role("button", name="Resolve").click()
    expect(mine.get_by_text("Resolved")).to_be_visible()

    side.get_by_role("button", name="Approve").click()
    page.get_by_label("What you looked at").fill("The sheets of the survey.")
    page.get_by_role("dialog").get_by_role("button", name="Approve").click()
    expect(side.get_by_text("1 of 1 approvals")).to_be_visible()
    side.get_by_role("link", name="1 conflict to decide").click()
    conflict = page.get_by_role("article", name="Conflict BGO")
    expect(conflict).to_contain_text("12.5")
    expect(conflict).to_contain_text("11.8")
    conflict.get_by_label("Value of depth by hand").fill("12.1")
    expect(conflict).to_contain_text("decided")
    expect(merge).to_be_enabled()
    merge.click()
    dialog = page.get_by_role("dialog", name="Merge #1")
    expect(dialog).to_contain_text("1 conflict will be merged as you decided.")
    dialog.get_by_label("Delete the branch afterwards").check()
    dialog.get_by_role("button", name="Merge").click()
    expect(page.get_by_text("Merged by")).to_be_visible()
    side.get_by_role("link", name="See the merge commit").click()
    expect(page.get_by_role("article").filter(has_text="Oslo")).to_contain_text("added")
    ada.open("data/Port/BGO")
    expect(page.get_by_role("row", name="depth")).to_contain_text("12.1")
    ada.open("proposals?state=merged")
    expect(page.get_by_role("link", name="Harbours of Norway")).to_be_visible()
    with server.client(TOKENS["act-mia"]) as client:
        found = client.get("/graphs/harbours/proposals/1").json()
        assert (found["state"], found["closed_by"]) == ("merged", "act-ada")
        assert [c["body"] for c in found["comments"]][-1] == "Take the mean of both."
        assert "agent/42" not in client.get("/graphs/harbours/branches").json()["branches"]


def test_a_failing_check_keeps_a_proposal_from_being_merged(ada, server):
    page = ada.page
    side = open_proposal(page, "Deep sea ports")
    side.get_by_role("button", name="Approve").click()
    page.get_by_role("dialog").get_by_role("button", name="Approve").click()
    merge = side.get_by_role("button", name="Merge into main")
    expect(merge).to_be_enabled()
    merge.click()
    page.get_by_role("dialog").get_by_role("button", name="Merge").click()
    expect(page.get_by_role("dialog").get_by_role("alert")).to_contain_text("too_deep")
    page.keyboard.press("Escape")
    expect(merge).to_be_disabled()
    side.get_by_role("link", name="A check fails: too_deep").click()
    check = page.get_by_role("region", name="Check too_deep")
    expect(check).to_contain_text("no port is deeper than 30 m")
    expect(check).to_contain_text("Rotterdam")
    expect(check).to_contain_text("240")
    expect(page.get_by_role("region", name="Check named")).to_contain_text("passed")
    side.get_by_role("button", name="Request changes").click()
    page.get_by_label("What should change").fill("240 m cannot be right.")
    page.get_by_label("What should change").press("Control+Enter")
    page.get_by_role("link", name=re.compile("^Conversation")).click()
    expect(page.get_by_text("240 m cannot be right.")).to_be_visible()

    # The agent corrects it on its branch; the proposal follows.
    fix = 'query q() { update Port set { depth: 24.0 } where code = "RTM" }'
    with server.client(TOKENS["agent-9"]) as client:
        body = {"query": fix, "branch": "agent/9", "message": "Depth of Rotterdam"}
        assert client.post("/graphs/harbours/mutate", json=body).status_code == 200
    page.reload()
    expect(page.get_by_text("stale: the branch has moved").first).to_be_visible()
    side.get_by_role("button", name="Run again").click()
    expect(side.get_by_role("paragraph").filter(has_text="too_deep")).to_contain_text("passed")
    side.get_by_role("button", name="Close without merging").click()
    page.get_by_role("dialog").get_by_label("Why (optional)").fill("Later.")
    page.get_by_role("dialog").get_by_role("button", name="Close without merging").click()
    expect(page.get_by_text("nothing was merged")).to_be_visible()
    side.get_by_role("button", name="Reopen").click()
    page.get_by_role("dialog").get_by_role("button", name="Reopen").click()
    expect(merge).to_be_visible()


def test_a_proposal_is_opened_from_a_comparison(ada, server):
    page = ada.page
    fix = 'query q() { update Port set { name: "Bergen havn" } where code = "BGO" }'
    with server.client(TOKENS["act-mia"]) as client:
        made = client.post("/graphs/harbours/branches", json={"name": "mia", "from": "main"})
        assert made.status_code == 200
        body = {"query": fix, "branch": "mia", "message": "Name of Bergen"}
        assert client.post("/graphs/harbours/mutate", json=body).status_code == 200
    ada.open("compare?from=main&to=mia")
    page.get_by_role("link", name="Propose to merge").click()
    expect(page.get_by_label("Title")).to_have_value("Name of Bergen")
    page.get_by_label("Description").fill("As on the sea chart.")
    page.get_by_label("Reviewers").fill("act-mia, agent-9")
    page.get_by_role("button", name="Open the proposal").click()
    expect(page.get_by_role("heading", name="Name of Bergen #3")).to_be_visible()
    side = page.get_by_role("complementary")
    expect(side.get_by_role("paragraph").filter(has_text="agent-9")).to_contain_text("not yet")
    page.get_by_role("button", name="Edit").click()
    page.get_by_role("dialog").get_by_label("Title").fill("Bergen havn")
    page.get_by_role("dialog").get_by_role("button", name="Edit").click()
    expect(page.get_by_role("heading", name="Bergen havn #3")).to_be_visible()
    ada.open("proposals/new?source=mia")
    page.get_by_role("button", name="Open the proposal").click()
    page.get_by_role("link", name="Open proposal #3").click()
    expect(page.get_by_role("heading", name="Bergen havn #3")).to_be_visible()
    ada.open("proposals")
    page.get_by_role("searchbox", name="Search proposals").fill("havn mia")
    expect(page.get_by_role("link", name="Deep sea ports")).to_have_count(0)
    expect(page.get_by_role("link", name="Bergen havn")).to_be_visible()


def test_a_proposal_is_reviewed_with_the_keyboard(ada):
    page = ada.page
    expect(page.get_by_role("link", name="Deep sea ports")).to_be_visible()
    page.keyboard.press("j")
    page.keyboard.press("j")
    expect(page.get_by_role("link", name="Harbours of Norway")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Harbours of Norway")).to_be_visible()
    page.keyboard.press("2")
    expect(page.get_by_role("heading", name="What changes")).to_be_visible()
    page.keyboard.press("j")
    expect(page.get_by_role("link", name="Bergen").last).to_be_focused()
    page.keyboard.press("4")
    conflict = page.get_by_role("article", name="Conflict BGO")
    conflict.get_by_role("radio", name="agent/42").focus()
    page.keyboard.press("Space")
    expect(conflict).to_contain_text("decided")
    page.keyboard.press("ArrowRight")
    expect(conflict.get_by_role("radio", name="main")).to_be_checked()
    page.keyboard.press("a")
    page.keyboard.type("Looked at all of it.")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.keyboard.press("c")
    expect(page.get_by_label("Comment", exact=True)).to_be_focused()
    page.keyboard.type("Thank you!")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("region", name="Thread of act-ada")).to_contain_text("Thank you!")
    page.keyboard.press("Escape")
    page.keyboard.press("m")
    expect(page.get_by_role("dialog", name="Merge #1")).to_be_visible()
    page.keyboard.press("Control+Enter")
    expect(page.get_by_text("Merged by")).to_be_visible()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_contain_text("Next change")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious_about_proposals(browser, server, scheme):
    found = {}
    with visiting(browser, server.url, color_scheme=scheme) as visit:
        visit.expected = ["401"]
        visit.open("proposals")
        visit.page.get_by_label("Token").fill(TOKENS["act-ada"])
        visit.page.get_by_role("button", name="Sign in").click()
        for address, text in {
            "proposals": "Deep sea ports",
            "proposals/1": "Where is it from?",
            "proposals/1?tab=changes": "What changes",
            "proposals/1?tab=checks": "No checks have run",
            "proposals/1?tab=conflicts": "both changed depth",
            "proposals/new?source=agent%2F9": "Ask others to review",
        }.items():
            visit.open(address)
            expect(visit.page.get_by_text(text).first).to_be_visible()
            visit.page.wait_for_load_state("networkidle")
            found[address] = visit.serious_findings()
        visit.open("proposals/2")
        visit.page.get_by_role("button", name="Approve").click()
        expect(visit.page.get_by_role("dialog")).to_be_visible()
        found["dialog"] = visit.serious_findings()
    assert {where: what for where, what in found.items() if what} == {}


def test_hostile_text_of_proposals_is_text(browser, serve, tmp_path):
    graph = make_harbours(tmp_path / "g", ships=4)
    evil = graph.as_actor("<b>mallory</b>").branch("evil/x", create=True)
    add_hostile(evil)
    printable = "<img src=x onerror=\"document.title='hacked'\"> {{7*7}}"
    made = graph.as_actor("<b>mallory</b>").proposals.create(
        evil.branch_name,
        into="main",
        title=printable,
        description=HOSTILE + "y" * 50_000,
        reviewers=["<u>eve</u>"],
    )
    made.comment(HOSTILE, on=("Person", "mallory", "bio"))
    made.review("comment", HOSTILE)
    with (
        serve(f"--graph=g={graph.uri}", "--unauthenticated") as server,
        visiting(browser, server.url) as visit,
    ):
        for address, role, text in (
            ("proposals", "link", "<img src=x onerror"),
            ("proposals/1", "listitem", "⟨202E⟩"),
            ("proposals/1?tab=changes", "article", "⟨202E⟩"),
        ):
            visit.open(address)
            expect(visit.page.get_by_role(role).filter(has_text=text).first).to_be_visible()
            shown = visit.page.inner_text("body")
            assert visit.page.title() != "hacked"
            assert "\u202e" not in shown
            assert "\x1b" not in shown
            wide = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
            assert visit.page.evaluate(wide)
            assert visit.page.locator("#app script, #app img, #app u").count() == 0
