"""Old versions of a lineage are forgotten by publishers and by cleanup; no state is."""

import os
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import omnigraph.graph as og
from omnigraph.commit import lineage_maintenance as module
from omnigraph.commit.lineage import MAX_TAIL_FRAGMENTS
from omnigraph.commit.lineage_maintenance import remove_old_versions
from omnigraph.commit.snapshot import snapshot_at_version
from omnigraph.errors import VersionReclaimed
from omnigraph.storage.layout import parse_version_file, version_file
from tests.support.graphs import NOTE, dump, insert, upsert


@pytest.fixture
def hasty(monkeypatch):
    """Let publishers forget whatever is not among the newest few, however young."""
    monkeypatch.setattr(module, "VERSIONS_KEPT", 8)
    monkeypatch.setattr(module, "VERSIONS_PER_REMOVAL", 4)
    monkeypatch.setattr(module, "MIN_AGE_ON_DISK", timedelta(0))
    monkeypatch.setattr(module, "_CLOCK_SLACK", timedelta(0))


def folder(graph, lineage_id=None):
    return Path(graph.uri) / ("__manifest" if lineage_id is None else f"__branches/{lineage_id}")


def stored(graph, lineage_id=None):
    root = folder(graph, lineage_id)
    return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}


def versions(graph, lineage_id=None):
    found = {parse_version_file(path) for path in stored(graph, lineage_id)}
    return sorted(found - {None})


def write(graph, count, branch="main"):
    made = [upsert(graph, NOTE, {"n": {"text": str(n)}}, branch=branch) for n in range(count)]
    return [commit.id for commit in made]


@pytest.mark.parametrize("branch", ["main", "side"])
def test_publishers_keep_the_number_of_versions_and_files_small(graph, hasty, branch):
    lineage_id = graph.branches.create("side").lineage_id if branch == "side" else None
    commits = write(graph, 8 * MAX_TAIL_FRAGMENTS, branch)
    assert len(versions(graph, lineage_id)) <= 8 + 2 * MAX_TAIL_FRAGMENTS
    assert len(stored(graph, lineage_id)) <= 5 * (8 + 2 * MAX_TAIL_FRAGMENTS)
    fresh = og.open(graph.uri)
    assert [commit.id for commit in fresh.commits.list(branch)][:-1] == commits[::-1]
    assert dump(fresh, commits[3])[NOTE] == {"n": {"text": "3"}}
    assert fresh.verify().problems == []


def test_young_versions_stay_however_many(graph, monkeypatch):
    monkeypatch.setattr(module, "VERSIONS_KEPT", 8)
    monkeypatch.setattr(module, "VERSIONS_PER_REMOVAL", 4)
    before = stored(graph)
    write(graph, 4 * MAX_TAIL_FRAGMENTS)
    newest = graph._manifest.main.state().version
    assert versions(graph) == list(range(1, newest + 1))
    assert before <= stored(graph)


def test_one_that_was_the_newest_at_the_time_and_all_since_stay(graph):
    write(graph, 4)
    made = (folder(graph) / version_file(3)).stat().st_mtime
    before = datetime.fromtimestamp(made, UTC) + timedelta(microseconds=1)
    remove_old_versions(graph._manifest.main, before)
    assert versions(graph) == [3, 4, 5]
    fresh = og.open(graph.uri)._manifest.main
    for version in (1, 2):
        with pytest.raises(VersionReclaimed):
            fresh.at(version)
    assert [fresh.at(version).version for version in (3, 4, 5)] == [3, 4, 5]


@pytest.mark.parametrize("keep", [0, 1, 2, 99])
def test_newest_ones_stay_whatever_the_time(graph, keep):
    write(graph, 4)
    remove_old_versions(graph._manifest.main, datetime.now(UTC) + timedelta(1), keep=keep)
    assert versions(graph) == list(range(max(1, 5 - keep), 6))


def test_reader_at_a_version_that_stays_is_not_disturbed(graph, hasty):
    write(graph, 2 * MAX_TAIL_FRAGMENTS)
    reader = og.open(graph.uri)
    state = reader._manifest.main.state()
    rows = len(state.rows("object_id IS NOT NULL"))
    write(graph, 6)
    remove_old_versions(graph._manifest.main, datetime.now(UTC), keep=7)
    assert len(state.rows("object_id IS NOT NULL")) == rows


def test_forgetting_leaves_branches_whole(graph, hasty):
    for number in range(4):
        upsert(graph, NOTE, {"n": {"text": str(number)}})
        graph.branches.create(f"b{number}")
    write(graph, 2 * MAX_TAIL_FRAGMENTS)
    remove_old_versions(graph._manifest.main, datetime.now(UTC))
    fresh = og.open(graph.uri)
    assert [dump(fresh, f"b{n}")[NOTE]["n"]["text"] for n in range(4)] == ["0", "1", "2", "3"]
    assert [len(fresh.commits.list(f"b{n}")) for n in range(4)] == [2, 3, 4, 5]
    for number in range(4):
        insert(fresh, NOTE, {"own": {}}, branch=f"b{number}")
    assert fresh.verify().problems == []


@pytest.mark.parametrize("seed", range(5))
def test_copied_graph_whose_files_have_any_age_loses_no_state(graph, hasty, seed):
    write(graph, 3 * MAX_TAIL_FRAGMENTS)
    newest = graph._manifest.main.state().version
    shown = {v: dump(graph, snapshot_at_version(graph._manifest, v)) for v in range(1, newest)}
    chance, now = random.Random(seed), datetime.now(UTC).timestamp()
    for path in folder(graph).rglob("*"):
        then = now - chance.uniform(0, 10_000)
        os.utime(path, (then, then))
    remove_old_versions(og.open(graph.uri)._manifest.main, datetime.now(UTC), keep=20)
    fresh = og.open(graph.uri)
    assert {v: dump(fresh, snapshot_at_version(fresh._manifest, v)) for v in shown} == shown
    assert fresh.verify().problems == []
    write(fresh, MAX_TAIL_FRAGMENTS)
    assert og.open(graph.uri).verify().problems == []


@pytest.mark.parametrize(
    ("path", "version"),
    [
        (version_file(1), 1),
        (version_file(10_000), 10_000),
        (version_file((1 << 63) + 5), None),
        ("_versions/latest_version_hint.json", None),
        ("_versions/7.manifest", None),
        ("data/x.lance", None),
    ],
)
def test_path_tells_its_version(path, version):
    assert parse_version_file(path) == version
