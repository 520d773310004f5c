"""What people see of the runs of pipelines and of the condition of a graph, in a real browser."""

import json
import re
import shutil

import pytest
from playwright.sync_api import expect

import omnigraph as og
from omnigraph.pipeline.runs.run import RunState, RunStore
from tests.studio.conftest import WAYS
from tests.support.browser import PATIENCE, visiting
from tests.support.program import ROOT
from tests.support.studio_graph import HOSTILE

LIBRARY = ROOT / "samples" / "library"
POLICY = """\
version: 1
groups: { librarians: [act-ada], readers: [act-bob] }
rules:
  - id: all
    allow: { actors: { group: librarians }, actions: [read, change, branch_create, admin] }
  - id: reading
    allow: { actors: { group: readers }, actions: [read] }
"""
TOKENS = {"act-ada": "token-ada", "act-bob": "token-bob"}
expect.set_options(timeout=PATIENCE)


@pytest.fixture(scope="module")
def library(spark, tmp_path_factory):
    """A graph, a finished run with rejected rows on its own branch, and an interrupted one."""
    folder = tmp_path_factory.mktemp("library")
    shutil.copytree(LIBRARY, folder / "library")
    graph = og.init(folder / "g", LIBRARY / "schema.pg", actor="act-ada")
    graph.load(LIBRARY / "data.ndjson", message="Articles until week 30")
    report = graph.pipeline.run(folder / "library/pipeline.yaml")
    runs = RunStore(graph._manifest.objects)
    facts = {"pipeline": "nightly topics", "mode": "merge", "merge_into": "main"}
    begun = runs.finish_stage(runs.begin("incoming/topics", about=facts), "stage", {})
    return graph, report, runs.release(begun)


@pytest.fixture
def server(library, serve):
    with serve(f"--graph=library={library[0].uri}", "--unauthenticated") as one:
        yield one


@pytest.fixture
def visit(browser, server):
    with visiting(browser, server.url) as opened:
        yield opened


def cells(table, row):
    """The texts of a row, once the table has it."""
    shown = table.get_by_role("row", name=row)
    expect(shown).to_be_visible()
    return shown.get_by_role("cell").all_inner_texts()


@pytest.mark.parametrize("serve", WAYS, indirect=True)
def test_rejected_rows_of_a_run_are_read_and_its_branch_is_proposed(visit, library):
    page, (graph, report, begun) = visit.page, library
    refused = list(graph.pipeline.rejects(report.run))  # a row is listed for each rule it breaks
    dangling = [row for row in refused if row["rule"] == "endpoint"]
    assert {row["rule"] for row in refused} == {"endpoint", "required", "syntax"}
    visit.open()
    running = page.get_by_role("region", name="Pipeline runs")
    expect(running.get_by_role("listitem")).to_have_count(2)
    running.get_by_role("link", name="weekly articles").click()
    expect(page.get_by_role("heading", name="weekly articles")).to_be_visible()
    expect(page.get_by_text("Finished", exact=True)).to_be_visible()
    figures = dict(
        zip(
            page.locator("dl.figures dt").all_inner_texts(),
            page.locator("dl.figures dd.num").all_inner_texts(),
            strict=True,
        )
    )
    assert (figures["Rows read"], figures["Accepted"], figures["Rejected"]) == ("23", "19", "4")
    types = page.get_by_role("region", name="Rows by type").get_by_role("table")
    assert cells(types, "Article")[1:4] == ["6", "5", "1"]
    assert cells(types, "About")[1:4] == ["13", "11", "2"]

    rejects = page.get_by_role("region", name="Rejected rows")
    grid = rejects.get_by_role("grid")
    expect(grid.get_by_role("row")).to_have_count(1 + len(refused))
    rejects.get_by_role("link", name="endpoint 2").click()
    expect(grid.get_by_role("row")).to_have_count(1 + len(dangling))
    assert "rule=endpoint" in page.url
    shown = [row.get_by_role("gridcell").nth(2) for row in grid.get_by_role("row").all()[1:]]
    assert [cell.inner_text() for cell in shown] == [row["message"] for row in dangling]
    page.go_back()
    expect(grid.get_by_role("row")).to_have_count(1 + len(refused))
    with page.expect_download() as download:
        rejects.get_by_role("link", name="NDJSON").click()
    lines = download.value.path().read_text().splitlines()
    assert [json.loads(line) for line in lines] == refused
    expect(page.get_by_role("region", name="Sources")).to_contain_text("csv")

    page.get_by_role("link", name="Propose to merge").click()
    expect(page.get_by_label("Title")).to_have_value("articles of week-31")
    visit.open("pipelines")
    runs = page.get_by_role("region", name="Runs")
    expect(runs.get_by_text("4 rejected")).to_be_visible()
    page.get_by_label("State of the run").select_option("interrupted")
    expect(runs.get_by_role("listitem")).to_have_count(1)
    runs.get_by_role("link", name="nightly topics").click()
    expect(page.get_by_role("region", name="Progress")).to_contain_text("stage")
    expect(page.get_by_text(f"omnigraph pipeline resume {begun.id}")).to_be_visible()
    assert report.run != begun.id


def test_a_run_at_work_is_followed(browser, serve, tmp_path):
    graph = og.init(tmp_path / "g", "node Note { slug: String @key }")
    runs = RunStore(graph._manifest.objects)
    run = runs.begin("incoming/now", about={"pipeline": "live", "mode": "append"})
    with (
        serve(f"--graph=g={graph.uri}", "--unauthenticated") as server,
        visiting(browser, server.url) as visit,
    ):
        page = visit.page
        visit.open("pipelines")
        page.get_by_role("link", name="live").click()
        expect(page.get_by_text("Running", exact=True)).to_be_visible()
        expect(page.get_by_text("No stage is finished yet.")).to_be_visible()
        run = runs.finish_stage(run, "stage", {})
        expect(page.get_by_text("read, map and write the rows")).to_be_visible()
        run = runs.end(run, RunState.FAILED, {"error": "the disk is full"})
        expect(page.get_by_text("the disk is full")).to_be_visible()
        expect(page.get_by_text("Failed", exact=True)).to_be_visible()


def test_an_unknown_run_says_so(visit):
    visit.expected = ["404"]
    visit.open("pipelines/none")
    expect(visit.page.get_by_role("alert")).to_contain_text("pipeline run 'none' does not exist")


def test_the_condition_of_a_graph_is_shown(visit, library):
    graph, page = library[0], visit.page
    visit.open("health")
    status = graph.maintenance.status()
    files = page.get_by_role("region", name="Fragments and files").get_by_role("table")
    for type_ in status.types:
        row = cells(files, type_.type_key.partition(":")[2])
        assert row[0] == str(type_.counts.rows)
        assert row[2] == str(type_.counts.fragments)
        assert row[3:5] == [str(type_.versions), str(type_.files)]
    indexes = page.get_by_role("region", name="Indexes").get_by_role("table")
    expect(indexes.get_by_role("row")).to_have_count(1 + len(graph.indexes.status()))
    page.get_by_role("button", name="Verify", exact=True).click()
    expect(page.get_by_text("The graph is intact")).to_be_visible()
    found = graph.verify()
    expect(page.get_by_text(f"{found.commits} commits, {found.versions} dataset")).to_be_visible()
    assert "verify=quick" in page.url
    page.get_by_label("Commits to keep").fill("1")
    page.get_by_role("button", name="Estimate").click()
    estimate = graph.cleanup(keep=1)
    shown = page.get_by_role("region", name="Cleanup estimate")
    expect(shown.get_by_text("can be removed")).to_be_visible()
    expect(shown).to_contain_text(f"{estimate.recent_files} files")
    page.reload()
    expect(page.get_by_text("The graph is intact")).to_be_visible()
    expect(shown.get_by_label("Commits to keep")).to_have_value("1")


def test_an_incomplete_index_and_damage_are_shown(browser, serve, tmp_path):
    graph = og.init(tmp_path / "g", "node Note { slug: String @key  text: String @index }")
    graph.load({"Note": [{"slug": f"n{number}", "text": "a"} for number in range(300)]})
    [file] = [path for path in (tmp_path / "g").rglob("*.lance") if b"n299" in path.read_bytes()]
    with (
        serve(f"--graph=g={graph.uri}", "--unauthenticated") as server,
        visiting(browser, server.url) as visit,
    ):
        page = visit.page
        visit.open("health")
        indexes = page.get_by_role("region", name="Indexes")
        expect(indexes).to_contain_text("incomplete")
        expect(indexes.get_by_text("omnigraph index build")).to_be_visible()
        file.write_bytes(file.read_bytes()[:-40])
        page.get_by_role("button", name="Verify with checksums").click()
        expect(page.get_by_text("The graph is damaged")).to_be_visible()
        expect(page.get_by_role("region", name="Verify")).to_contain_text(file.name)


def test_without_the_action_admin_only_indexes_are_shown(browser, library, serve, tmp_path):
    (tmp_path / "policy.yaml").write_text(POLICY)
    (tmp_path / "tokens.json").write_text(json.dumps(TOKENS))
    words = (f"--graph=library={library[0].uri}", f"--policy={tmp_path / 'policy.yaml'}")
    environment = {"OMNIGRAPH_SERVER_BEARER_TOKENS_FILE": str(tmp_path / "tokens.json")}
    with (
        serve(*words, environment=environment) as server,
        visiting(browser, server.url) as visit,
    ):
        visit.expected = ["401", "403"]
        page = visit.page
        visit.open("health")
        page.get_by_label("Token").fill(TOKENS["act-bob"])
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("alert")).to_contain_text("Ask the owner of the graph")
        expect(page.get_by_role("region", name="Indexes").get_by_role("table")).to_be_visible()
        expect(page.get_by_role("button", name="Verify")).to_have_count(0)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious_about_runs_and_health(browser, server, library, scheme):
    report, begun = library[1:]
    found = {}
    with visiting(browser, server.url, color_scheme=scheme) as visit:
        for address, text in {
            "pipelines": "weekly articles",
            f"pipelines/{report.run}": "Rows by type",
            f"pipelines/{begun.id}": "omnigraph pipeline abort",
            "health?keep=1&verify=quick": "The graph is intact",
        }.items():
            visit.open(address)
            expect(visit.page.get_by_text(text).first).to_be_visible()
            visit.page.wait_for_load_state("networkidle")
            found[address] = visit.serious_findings()
    assert {where: what for where, what in found.items() if what} == {}


def test_hostile_text_of_runs_is_text(browser, serve, tmp_path):
    graph = og.init(tmp_path / "g", "node Note { slug: String @key }")
    runs = RunStore(graph._manifest.objects)
    facts = {"pipeline": HOSTILE, "mode": "append", "merge_into": HOSTILE, "error": HOSTILE}
    run = runs.settle(runs.begin(HOSTILE, about=facts), RunState.FAILED)
    with (
        serve(f"--graph=g={graph.uri}", "--unauthenticated") as server,
        visiting(browser, server.url) as visit,
    ):
        for address in ("pipelines", f"pipelines/{run.id}", "overview"):
            visit.open(address)
            expect(visit.page.get_by_text("<img src=x onerror").first).to_be_visible()
            shown = visit.page.inner_text("body")
            assert visit.page.title() != "hacked"
            assert not re.search("[\u202e\x1b]", shown)
            wide = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
            assert visit.page.evaluate(wide)
