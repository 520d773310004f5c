"""A graph returns to its last good versions: nothing more is lost than the report says."""

import hashlib
import json
import shutil
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.protection import BranchProtected
from omnigraph.errors import Contention, GraphCorrupt
from omnigraph.maintain import last_good_subprocess
from omnigraph.maintain.last_good import LastGoodSearch
from omnigraph.maintain.last_good_model import LastGoodReport
from omnigraph.maintain.last_good_subprocess import find_last_good
from omnigraph.maintain.return_to_last_good import return_to_last_good
from omnigraph.storage import locate
from omnigraph.storage.checksums import clear_checked_files
from omnigraph.storage.layout import version_file
from tests.support.program import omnigraph

SCHEMA = """
node Person { name: String @key  age: I32? }
edge Knows: Person -> Person
"""


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    folder = tmp_path_factory.mktemp("template") / "graph"
    graph = og.init(folder, SCHEMA)
    people(graph, "ada", "bo")
    graph.branches.create("side")
    people(graph, "cy", branch="side")
    people(graph, "di", message="the third", actor="act-di")
    graph.mutate('query m() { update Person set { age: 9 } where name = "ada" }')
    return folder


@pytest.fixture
def place(template, tmp_path):
    return Path(shutil.copytree(template, tmp_path / "graph"))


def people(graph, *names, branch=None, actor=None, **options):
    graph = og.open(graph.uri, actor=actor) if actor else graph
    graph.insert("Person", [{"name": name} for name in names], branch=branch, **options)


def ages(graph, at=None):
    rows = graph.query("query q() { match { $p: Person } return { $p.name, $p.age } }", at=at).rows
    return {row["p.name"]: row["p.age"] for row in rows}


def versions(place, lineage="__manifest"):
    """Return the version files of a lineage, newest first."""
    return sorted((place / lineage / "_versions").glob("*.manifest"))


def data_file(place, version, lineage="__manifest"):
    """Return the data file that a version added, by the time it was written."""
    files = sorted((place / lineage / "data").iterdir(), key=lambda f: f.stat().st_mtime_ns)
    return files[version - 1]


def spoil(file):
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def search(place, **options):
    manifest = Manifest(locate(place, **options))
    plans = LastGoodSearch(manifest, lambda _: None, lambda *_: None).run()
    return LastGoodReport(lineages=tuple(plans))


def repaired(place):
    report = return_to_last_good(Manifest(locate(place)), search(place), actor="act-ada")
    clear_checked_files()
    return report, og.open(place)


def files_of(place):
    return {
        str(file.relative_to(place)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in place.rglob("*")
        if file.is_file()
    }


def test_damaged_version_file_loses_nothing(place):
    before = og.open(place)
    log, newest = before.commits.list(), len(versions(place))
    spoil(versions(place)[0])
    assert og.open(place, mode="ro").commits.list() == log[1:], "the state before it is read"
    report, graph = repaired(place)
    [main, side] = report.lineages
    assert (main.last_good, main.kept, side.is_whole) == (newest - 1, newest, True)
    assert (main.lost_commits, main.lost_names, main.unreadable_versions) == ((), (), 0)
    assert graph.commits.list() == log
    assert ages(graph) == {"ada": 9, "bo": None, "di": None}
    people(graph, "eva")
    assert graph.verify(deep=True).problems == []


@pytest.mark.parametrize("count", [1, 3])
def test_removed_version_files_lose_nothing(place, count):
    log = og.open(place).commits.list()
    for file in versions(place)[:count]:
        file.unlink()
    shown = og.open(place, mode="ro").commits.list()
    assert 0 < len(shown) < len(log)
    assert shown == log[-len(shown) :], "an older state is read"
    assert repaired(place)[1].commits.list() == log


def test_swapped_version_files_do_not_make_an_older_state_the_newest(place):
    log = og.open(place).commits.list()
    newer, older = versions(place)[:2]
    held = newer.read_bytes()
    newer.write_bytes(older.read_bytes())
    older.write_bytes(held)
    with pytest.raises(GraphCorrupt):
        og.open(place)
    assert repaired(place)[1].commits.list() == log


def test_damaged_rows_of_a_commit_lose_it_and_what_follows(place):
    *_, third, last = reversed(log := og.open(place).commits.list())
    spoil(data_file(place, last.manifest_version - 1))
    report, graph = repaired(place)
    main = report.lineages[0]
    assert main.kept == third.manifest_version - 1
    assert main.lost_commits == (last,)
    assert main.unreadable_versions == 1, "the commit before it cannot be read"
    assert graph.commits.list() == log[2:]
    assert ages(graph) == {"ada": None, "bo": None}
    assert ages(graph, "side") == {"ada": None, "bo": None, "cy": None}
    people(graph, "eva")
    assert graph.verify().ok


def test_damaged_file_of_a_dataset_loses_the_commits_that_show_it(place):
    graph = og.open(place)
    log = graph.commits.list()
    path = graph.snapshot().entries()["node:Person"].path("node:Person")
    files = sorted((place / path / "data").iterdir(), key=lambda f: f.stat().st_mtime_ns)
    spoil(files[-2])  # of commit "the third"; the last is that of the update
    report, graph = repaired(place)
    main = report.lineages[0]
    assert main.lost_commits == tuple(log[:2])
    assert [(c.message, c.actor) for c in main.lost_commits] == [
        (None, None),
        ("the third", "act-di"),
    ]
    assert main.lost_commits[1].counts["node:Person"].inserted == 1
    assert (main.unreadable_versions, graph.commits.list()) == (0, log[2:])
    assert graph.verify().ok


def test_damaged_index_is_no_reason_to_return(place):
    og.open(place).optimize()
    spoil(next(iter(place.glob("nodes/*/_indices/*/page_data.lance"))))
    assert search(place).damaged == ()


def test_lost_names_are_reported(place):
    graph = og.open(place)
    graph.branches.create("late")
    graph.tags.create("v1")
    spoil(data_file(place, len(versions(place)) - 1))
    report, graph = repaired(place)
    # The row of the branch is in the damaged file, the row of the tag after it.
    assert report.lineages[0].lost_names == ("tag v1",)
    assert report.lineages[0].unreadable_versions == 1
    assert (graph.branches.list(), graph.tags.list()) == (["main", "side"], [])


@pytest.mark.parametrize("merged", [False, True])
def test_commits_of_a_branch_that_is_lost_are_reported(tmp_path, merged):
    place = tmp_path / "graph"
    graph = og.init(place, "node Port { code: String @key }\nnode Ship { name: String @key }")
    ports = graph.insert("Port", [{"code": "BGO"}]).commit
    entry = graph.snapshot().entry("node:Port")
    graph.branches.create("agent")
    made = [graph.insert("Ship", [{"name": n}], branch="agent").commit for n in ("Emma", "Olga")]
    merge = [graph.merge("agent").commit] if merged else []
    [file] = place.glob(f"nodes/{entry.type_id:016x}-*/data/*.lance")
    spoil(file)
    [plan] = search(place).damaged
    assert plan.lost_names == ("branch agent",)
    lost = [*merge, ports, *reversed(made)]
    assert [commit.id for commit in plan.lost_commits] == [commit.id for commit in lost]
    assert plan.unreadable_versions == 0


def test_branch_that_was_deleted_after_the_last_good_version_stays_deleted(place):
    graph = og.open(place)
    before = len(versions(place))
    graph.branches.delete("side")
    for version in range(before + 1, len(versions(place)) + 1):
        spoil(data_file(place, version))
    report, graph = repaired(place)
    assert report.lineages[0].last_good == before
    assert graph.branches.list() == ["main"]
    assert graph.verify().ok


def test_branch_without_a_whole_version_is_set_aside(place):
    graph = og.open(place)
    lineage = f"__branches/{graph._manifest.branches()['side'].lineage_id}"
    cy = graph.branch("side").commits.list()[0]
    spoil(data_file(place, 1, lineage))
    report, graph = repaired(place)
    assert (report.lineages[1].last_good, report.lineages[1].lost_commits) == (None, (cy,))
    assert graph.branches.list() == ["main"]
    assert list((place / report.quarantine / lineage / "_versions").iterdir()) != []
    assert graph.verify().ok


def test_lost_commit_that_another_branch_has_merged_is_named_as_such(place):
    graph = og.open(place)
    cy = graph.branch("side").commits.list()[0]
    graph.merge("side", into="main")
    lineage = f"__branches/{graph._manifest.branches()['side'].lineage_id}"
    spoil(data_file(place, 1, lineage))
    shown = omnigraph("repair", str(place), "--to-last-good").out
    [line] = [line for line in shown.splitlines() if "lost: commit" in line]
    assert line.startswith(f"  would be lost: commit {cy.id} ")
    assert line.endswith(", merged: another branch keeps it")
    report, graph = repaired(place)
    [plan] = report.damaged
    assert (plan.lost_commits, plan.merged_commits) == ((cy,), (cy.id,))
    assert set(ages(graph)) == {"ada", "bo", "cy", "di"}
    assert graph.branches.list() == ["main"]


def test_graph_without_a_whole_version_is_not_changed(place):
    spoil(data_file(place, 1))
    before = files_of(place)
    report = search(place)
    assert not report.is_possible
    with pytest.raises(GraphCorrupt, match="no manifest version of main is whole"):
        return_to_last_good(Manifest(locate(place)), report)
    assert files_of(place) == before


@pytest.mark.parametrize(("lost", "swaps"), [("__manifest", 2), ("__branches/*", 1)])
def test_protection_survives_where_any_branch_still_has_it(place, lost, swaps):
    graph = og.open(place)
    graph.protection.set({"branches": ["side"], "tags": ["v*"]})
    rules = graph.protection.rules
    [folder] = place.glob(lost)
    lineage = str(folder.relative_to(place))
    spoil(data_file(place, len(versions(place, lineage)) - swaps + 1, lineage))
    report, graph = repaired(place)
    assert [plan.lost_commits for plan in report.damaged] == [()]
    assert graph.protection.rules == rules
    with pytest.raises(BranchProtected):
        people(graph, "eva", branch="side")
    people(graph, "eva")
    assert graph.verify(deep=True).problems == []


def test_search_changes_nothing_and_the_return_keeps_every_file(place):
    spoil(data_file(place, len(versions(place))))
    before = files_of(place)
    assert search(place).damaged
    assert files_of(place) == before
    report, _ = repaired(place)
    after = set(files_of(place).values())
    hints = {place / f"{lineage}/_versions/latest_version_hint.json" for lineage in ("__manifest",)}
    kept = {name: digest for name, digest in before.items() if place / name not in hints}
    assert set(kept.values()) <= after
    assert report.quarantine is not None
    [row] = og.open(place).recoveries()
    assert (row["recovery_kind"], row["branch"], row["recovery_for_actor"]) == (
        "ReturnedToLastGood",
        "main",
        "act-ada",
    )


def test_damaged_audit_does_not_prevent_the_return(place):
    spoil(data_file(place, len(versions(place))))
    repaired(place)
    people(og.open(place), "eva")
    spoil(data_file(place, len(versions(place))))
    for file in (place / "_graph_commit_recoveries.lance/_versions").glob("*.manifest"):
        spoil(file)
    repaired(place)
    assert len(og.open(place).recoveries()) == 1


# --- beside writers ------------------------------------------------------------------------------


def test_process_that_has_cached_a_lost_version_continues_from_the_good_one(place):
    stale = og.open(place)
    assert ages(stale)["ada"] == 9
    spoil(data_file(place, len(versions(place))))
    _, graph = repaired(place)
    people(graph, "eva")
    people(stale, "fay")
    expected = {"ada": None, "bo": None, "di": None, "eva": None, "fay": None}
    assert ages(stale) == ages(og.open(place)) == expected
    assert og.open(place).verify().ok


def test_version_published_after_the_search_is_kept(place):
    writer = og.open(place)
    spoil(versions(place)[0])
    report = search(place)
    people(writer, "eva")  # it has cached the version whose file is damaged
    with pytest.raises(Contention, match="run the repair again"):
        return_to_last_good(Manifest(locate(place)), report)
    assert ages(og.open(place))["eva"] is None
    assert not (place / "_quarantine").exists()


def test_version_published_during_the_return_is_kept(place):
    spoil(versions(place)[0])
    report, manifest = search(place), Manifest(locate(place))
    newer = place / "__manifest" / version_file(report.lineages[0].newest + 1)
    before = files_of(place)

    def publish(step):
        if step == "repair: versions set aside":
            newer.write_bytes(b"of another writer")

    manifest.datasets.observe = publish
    with pytest.raises(Contention, match="which was undone"):
        return_to_last_good(manifest, report)
    newer.unlink()
    assert files_of(place) == before


def lose_a_race(place):
    """Publish a commit, and let another writer write the same version in vain."""
    graph, loser = og.open(place), og.open(place)
    state = loser._manifest.main.state()
    people(graph, "eva")
    with pytest.raises(Contention):
        loser._manifest.main.swap(state, state.head)
    return graph.commits.list()


def test_rows_of_a_writer_that_lost_a_race_are_not_published(place):
    log = lose_a_race(place)
    versions(place)[0].write_bytes(b"")
    report, graph = repaired(place)
    assert [version for version, _ in report.lineages[0].republished] == [log[0].manifest_version]
    assert (graph.commits.list(), ages(graph)["eva"]) == (log, None)


def test_version_that_two_writers_may_have_written_is_lost(place):
    log = lose_a_race(place)
    versions(place)[0].write_bytes(b"")
    [winner] = (place / "__manifest/_transactions").glob(f"{log[1].manifest_version}-*.txn")
    winner.with_name(f"{log[1].manifest_version}-{'0' * 8}.txn").write_bytes(b"of the loser")
    report, graph = repaired(place)
    assert (report.lineages[0].republished, report.lineages[0].unreadable_versions) == ((), 1)
    assert graph.commits.list() == log[1:]


# --- buckets -------------------------------------------------------------------------------------


def test_damaged_version_in_a_bucket_loses_nothing(s3):
    uri = s3.fresh()
    graph = og.init(uri, SCHEMA, storage_options=s3.options)
    people(graph, "ada")
    people(graph, "bo")
    log, location = graph.commits.list(), locate(uri, s3.options)
    objects = Manifest(location).objects
    newest = f"__manifest/{version_file(log[0].manifest_version)}"
    objects.put(newest, objects.get(newest)[:50])
    with pytest.raises(GraphCorrupt):
        og.open(uri, storage_options=s3.options)
    plans = LastGoodSearch(Manifest(location), lambda _: None, lambda *_: None).run()
    assert [(plan.last_good, plan.kept) for plan in plans] == [(2, 3)]
    report = return_to_last_good(Manifest(location), LastGoodReport(lineages=tuple(plans)))
    assert objects.get(f"{report.quarantine}/{newest}") is not None
    again = og.open(uri, storage_options=s3.options)
    people(again, "cy")
    assert ages(again) == {"ada": None, "bo": None, "cy": None}
    assert again.commits.list()[1:] == log
    assert again.verify().ok


# --- child process and command line --------------------------------------------------------------


def test_version_that_ends_the_child_is_damaged(place, monkeypatch):
    newest = len(versions(place))
    program = (
        "import os\nfrom omnigraph.maintain import last_good as m\n"
        "old = m.LastGoodSearch._examine\n"
        f"def examine(self, files, version, inherited):\n"
        f"    if version == {newest} and (files.path, version) not in self._fatal:\n"
        "        self._examining(files.path, version); os.abort()\n"
        "    return old(self, files, version, inherited)\n"
        "m.LastGoodSearch._examine = examine\n"
    )
    head, _, tail = last_good_subprocess._PROGRAM.partition("from ")
    monkeypatch.setattr(last_good_subprocess, "_PROGRAM", f"{head}\n{program}\nfrom {tail}")
    main = find_last_good(locate(place)).lineages[0]
    assert main.damage == (f"version {newest}: reading it ends the process",)
    assert main.kept == newest


def test_command_shows_the_loss_and_continues(place):
    *_, last = reversed(og.open(place).commits.list())
    spoil(data_file(place, last.manifest_version - 1))
    shown = omnigraph("repair", str(place), "--to-last-good")
    assert shown.code == 1
    assert "would be lost: 1 manifest version whose content cannot be read" in shown.out
    assert f"would be lost: commit {last.id} " in shown.out
    facts = json.loads(omnigraph("repair", place, "--to-last-good", "--confirm", "--json").out)
    [main, _] = facts["lineages"]
    assert [c["graph_commit_id"] for c in main["lost_commits"]] == [last.id]
    assert (facts["confirm"], facts["possible"]) == (True, True)
    done = omnigraph("repair", place, "--to-last-good")
    assert (done.code, done.out.splitlines()[-1]) == (
        0,
        "nothing to return: the newest version of every branch is whole",
    )
    assert omnigraph("verify", place).code == 0


def test_command_proposes_no_step_that_cannot_succeed(place):
    spoil(data_file(place, 1))  # every version refers to it
    shown = omnigraph("repair", str(place), "--to-last-good")
    assert (shown.code, "--confirm" in shown.err) == (1, False)
    assert shown.out.splitlines()[-1] == (
        "no version of main is whole: restore the damaged files from a backup"
    )


def test_place_without_a_graph_is_not_found(tmp_path):
    missing = omnigraph("repair", str(tmp_path / "none"), "--to-last-good")
    assert (missing.code, "no graph at" in missing.err) == (1, True)
