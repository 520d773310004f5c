"""Cleanup: what is retained reads exactly as before, what is not is gone and says so."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import omnigraph.graph as og
from omnigraph.commit.intent_log import IntentLog
from omnigraph.errors import InvalidInput, VersionReclaimed
from tests.support.clock import Clock
from tests.support.graphs import (
    NOTE,
    SHIP,
    Change,
    clean_at_once,
    commit,
    delete,
    dump,
    insert,
    make_graph,
    overwrite,
    prepare,
    publish_prepared,
    upsert,
)
from tests.support.intents import leave_in_flight

FLOOR = timedelta(0)


run_cleanup = clean_at_once


def test_operation_rolled_back_during_cleanup_is_not_an_error(graph, monkeypatch):
    insert(graph, NOTE, {"n": {}})
    leave_in_flight(graph, Change("insert", NOTE, {"m": {}}), complete=False)
    objects = graph._manifest.objects
    find = objects.list

    def undo_after_listing(prefix):
        found = list(find(prefix))
        if prefix.startswith("nodes/"):
            og.open(graph.uri).recover(stale_after=timedelta(0))
        return iter(found)

    monkeypatch.setattr(objects, "list", undo_after_listing)
    report = run_cleanup(graph, keep=5)
    assert [dataset.error for dataset in report.datasets] == [None] * len(report.datasets)
    monkeypatch.undo()
    assert graph.verify().ok
    assert set(dump(graph)[NOTE]) == {"n"}


def stored(graph):
    return sorted(
        (str(path), path.stat().st_mtime_ns)
        for path in Path(graph.uri).rglob("*")
        if path.is_file()
    )


def dumps(graph, commits):
    """Read commits in a fresh process; those that were cleaned up are left out."""
    fresh, found = og.open(graph.uri, "ro"), {}
    for made in commits:
        try:
            found[made.id] = dump_strictly(fresh, made.id)
        except VersionReclaimed:
            continue
    return found


def dump_strictly(graph, at):
    snapshot = graph.snapshot(at)
    found = {}
    for table_key, entry in snapshot.entries().items():
        with graph._manifest.reading(table_key, entry) as handle:
            found[table_key] = sorted(handle.to_table().to_pylist(), key=lambda row: row["id"])
    return found


@pytest.fixture
def commits(graph):
    """Six commits of every kind; all change notes, only the first a ship."""
    return [
        commit(
            graph,
            Change("insert", SHIP, {"s": {"name": "Aurora"}}),
            Change("insert", NOTE, {"z": {"text": "0"}}),
        ),
        insert(graph, NOTE, {"a": {"text": "1"}, "b": {"text": "1"}}),
        upsert(graph, NOTE, {"a": {"text": "2"}}),
        delete(graph, NOTE, ["b"]),
        overwrite(graph, NOTE, {"c": {"text": "4"}}),
        upsert(graph, NOTE, {"c": {"text": "5"}, "d": {"text": "5"}}),
    ]


# --- what is retained --------------------------------------------------------------------------


@pytest.mark.parametrize("keep", [0, 1, 2, 4, 6, 99])
def test_newest_commits_read_as_before_and_older_ones_are_reclaimed(graph, commits, keep):
    before = dumps(graph, commits)
    report = run_cleanup(graph, keep=keep)
    retained = [made.id for made in commits][-max(keep, 1) :]
    assert dumps(graph, commits) == {id_: before[id_] for id_ in retained}
    assert [dataset.error for dataset in report.datasets] == [None] * 4
    fresh = og.open(graph.uri)
    assert fresh.verify().problems == []
    upsert(fresh, NOTE, {"next": {"text": "6"}})
    assert fresh.verify().problems == []


def test_reclaimed_commit_still_stands_in_history(graph, commits):
    listed = graph.commits.list()
    run_cleanup(graph, keep=1)
    fresh = og.open(graph.uri)
    assert fresh.commits.list() == listed
    with pytest.raises(VersionReclaimed) as caught:
        fresh.entity_at("Note", "a", commits[2].id)
    assert caught.value.message == "version 4 of node:Note has been cleaned up"
    assert caught.value.details == {"table_key": NOTE, "version": 4}
    assert (caught.value.code, caught.value.category) == ("version_reclaimed", "not_found")
    assert fresh.entity_at("Ship", "s", commits[2].id)["name"] == "Aurora"


@pytest.fixture
def hours(tmp_path, monkeypatch):
    """A graph with commits made five, four, … one hour ago."""
    now, made = datetime.now(UTC), []
    clock = Clock(monkeypatch, now - timedelta(hours=6))
    graph = make_graph(str(tmp_path / "old"))
    for ago in (5, 4, 3, 2, 1):
        clock.instant = now - timedelta(hours=ago)
        made.append(overwrite(graph, NOTE, {"n": {"text": str(ago)}}))
    return graph, made


@pytest.mark.parametrize(
    ("policy", "retained"),
    [
        ({"older_than": timedelta(hours=9)}, [5, 4, 3, 2, 1]),
        ({"older_than": timedelta.max}, [5, 4, 3, 2, 1]),
        ({"older_than": timedelta(hours=2, minutes=30)}, [3, 2, 1]),
        ({"older_than": timedelta(hours=1, minutes=30)}, [2, 1]),
        ({"older_than": timedelta(0)}, [1]),
        ({"keep": 2}, [2, 1]),
        ({"keep": 4, "older_than": timedelta(hours=1, minutes=30)}, [4, 3, 2, 1]),
        ({"keep": 1, "older_than": timedelta(hours=2, minutes=30)}, [3, 2, 1]),
    ],
    ids=str,
)
def test_what_was_a_head_within_the_age_or_is_among_the_newest_is_retained(hours, policy, retained):
    graph, made = hours
    run_cleanup(graph, **policy)
    found = dumps(graph, made)
    assert [5 - [c.id for c in made].index(id_) for id_ in found] == retained


def test_heads_of_all_branches_are_retained(graph, commits):
    graph.branches.create("old", from_=commits[1].id)
    graph.branches.create("side", from_=commits[2].id)
    upsert(graph, NOTE, {"a": {"text": "side"}}, branch="side")
    before = {at: dump(graph, at) for at in ("main", "old", "side")}
    run_cleanup(graph, keep=1)
    fresh = og.open(graph.uri)
    assert {at: dump(fresh, at) for at in ("main", "old", "side")} == before
    assert fresh.verify().problems == []


def test_data_only_a_deleted_branch_needed_is_removed(graph):
    graph.branches.create("side")
    insert(graph, NOTE, {str(n): {"text": str(n) * 10} for n in range(5000)}, branch="side")
    assert run_cleanup(graph, keep=1).bytes_removed < 10_000
    graph.branches.delete("side")
    report = run_cleanup(graph, keep=1)
    assert report.bytes_removed > 10_000
    assert report.lineages_removed == 1
    assert og.open(graph.uri).verify().problems == []


def test_what_an_operation_in_flight_staged_is_retained(graph, commits):
    prepared = prepare(graph, Change("upsert", NOTE, {"new": {"text": "n"}}))
    intent = IntentLog(graph._manifest.objects).begin("main", None, prepared.staged)
    upsert(graph, NOTE, {"moved": {}})
    run_cleanup(graph, keep=1)
    (change,) = prepared.staged.datasets
    fresh = og.open(graph.uri)
    for version in (change.expected, change.physical):
        assert fresh._manifest.datasets.open(folder(graph, NOTE), version).count_rows() > 0
    IntentLog(graph._manifest.objects).end(intent)
    run_cleanup(graph, keep=1)
    with pytest.raises(Exception, match="not found"):
        fresh._manifest.datasets.open(folder(graph, NOTE), change.physical)


def folder(graph, table_key):
    entry = graph.snapshot().entries()[table_key]
    return f"nodes/{entry.type_id:016x}-{entry.incarnation:016x}"


def test_nothing_younger_than_the_floor_is_removed(graph, commits):
    staged = prepare(graph, Change("upsert", NOTE, {"new": {"text": "n"}}))
    before = stored(graph)
    report = graph.cleanup(keep=1, confirm=True)
    assert report.bytes_removed == 0
    assert [row for row in stored(graph) if "/nodes/" in row[0]] == [
        row for row in before if "/nodes/" in row[0]
    ]
    publish_prepared(graph, staged)
    assert graph.verify().problems == []


# --- how it is asked for -----------------------------------------------------------------------


@pytest.mark.parametrize("policy", [{}, {"keep": None, "older_than": None}])
def test_cleanup_without_a_policy_is_refused(graph, policy):
    with pytest.raises(InvalidInput, match="specify what to retain") as caught:
        graph.cleanup(**policy, confirm=True)
    assert caught.value.code == "cleanup_policy_missing"


@pytest.mark.parametrize("policy", [{"keep": -1}, {"older_than": timedelta(seconds=-1)}])
def test_cleanup_that_retains_less_than_nothing_is_refused(graph, policy):
    with pytest.raises(InvalidInput, match="must not be negative") as caught:
        graph.cleanup(**policy)
    assert caught.value.code == "cleanup_policy_negative"


def test_dry_run_changes_nothing_and_foretells_the_real_one(graph, commits):
    graph.branches.create("side")
    graph.branches.delete("side")
    before = stored(graph)
    forereported = run_cleanup(graph, keep=2, dry_run=True)
    assert stored(graph) == before
    assert forereported.bytes_removed > 0
    done = run_cleanup(graph, keep=2)
    assert (forereported.dry_run, done.dry_run) == (True, False)
    assert done.datasets == forereported.datasets
    assert done.lineages_removed == forereported.lineages_removed == 1


def test_face_only_tells_unless_confirmed(graph, commits):
    before = stored(graph)
    assert graph.cleanup(keep=1).dry_run is True
    assert stored(graph) == before
    assert graph.cleanup(keep=1, confirm=True).dry_run is False


def test_second_run_finds_nothing_to_do(graph, commits):
    run_cleanup(graph, keep=2)
    before = [row for row in stored(graph) if "__manifest" not in row[0]]
    assert run_cleanup(graph, keep=2).bytes_removed == 0
    assert [row for row in stored(graph) if "__manifest" not in row[0]] == before


def test_wider_policy_after_a_narrow_one_is_not_an_error(graph, commits):
    run_cleanup(graph, keep=1)
    upsert(graph, NOTE, {"c": {"text": "6"}})
    report = run_cleanup(graph, keep=5)
    assert [dataset.error for dataset in report.datasets] == [None] * 4
    assert og.open(graph.uri).verify().problems == []


def test_report_is_plain_json(graph, commits):
    report = run_cleanup(graph, keep=2, older_than=timedelta(seconds=0), dry_run=True).to_json()
    note = report["datasets"].pop(0)
    assert (note["type_key"], note["error"]) == (NOTE, None)
    assert note["old_versions_removed"] == 4
    assert {**report, "datasets": []} == {
        "dry_run": True,
        "keep_versions": 2,
        "older_than_secs": 0,
        "bytes_removed": report["bytes_removed"],
        "bytes_kept": note["bytes_kept"] + sum(d["bytes_kept"] for d in report["datasets"]),
        "recent_files": 0,
        "recent_bytes": 0,
        "recent_removable_at": None,
        "lineages_removed": 0,
        "datasets": [],
    }


def test_report_tells_what_is_only_kept_because_it_is_recent(graph, commits):
    forereported = run_cleanup(graph, keep=1, dry_run=True)
    begun = datetime.now(UTC)
    kept = graph.cleanup(keep=1, confirm=True)
    assert kept.bytes_removed == 0
    assert kept.recent_bytes == forereported.bytes_removed > 0
    assert kept.recent_files == sum(dataset.files_removed for dataset in forereported.datasets)
    assert kept.bytes_kept - kept.recent_bytes == forereported.bytes_kept
    assert begun - timedelta(minutes=1) < kept.removable_at - timedelta(hours=1) <= begun
    facts = kept.to_json()
    assert (facts["recent_files"], facts["recent_bytes"]) == (kept.recent_files, kept.recent_bytes)
    assert facts["recent_removable_at"] == kept.removable_at.isoformat()
    assert run_cleanup(graph, keep=1).removable_at is None


def test_what_the_policy_keeps_is_not_only_recent(graph, commits):
    for policy in ({"keep": 99}, {"older_than": timedelta(days=1)}):
        report = graph.cleanup(**policy, confirm=True)
        assert report.recent_bytes < run_cleanup(graph, keep=1, dry_run=True).bytes_removed / 2
