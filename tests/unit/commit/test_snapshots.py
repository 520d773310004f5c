"""Time travel: every way to name a state gives exactly that state, cheaply and for ever."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

import omnigraph.graph as og
from omnigraph.commit import lineage
from omnigraph.commit.commit_log import datasets_at_commit
from omnigraph.commit.history import find_commit, read_commits
from omnigraph.commit.lineage import MAX_TAIL_FRAGMENTS
from omnigraph.commit.lineage_maintenance import remove_old_versions
from omnigraph.commit.snapshot import resolve_snapshot, snapshot_at_version
from omnigraph.commit.staged_commit import StagedDataset
from omnigraph.errors import NotFound, VersionReclaimed
from tests.support.clock import Clock
from tests.support.graphs import (
    NOTE,
    SHIP,
    Change,
    add_column,
    delete,
    dump,
    insert,
    overwrite,
    prepare,
    publish_prepared,
    upsert,
)

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    """The clock of every commit, also of the first."""
    return Clock(monkeypatch, NOON - timedelta(minutes=1))


@pytest.fixture
def history(graph, clock):
    """Three commits at 12:00, 12:10 and 12:20, and a branch with one more from the second."""
    commits = []
    for number in range(3):
        clock.instant = NOON + timedelta(minutes=10 * number)
        commits.append(upsert(graph, NOTE, {"n": {"text": str(number)}}))
    graph.branches.create("side", from_=commits[1].id)
    clock.instant = NOON + timedelta(minutes=15)
    commits.append(upsert(graph, NOTE, {"n": {"text": "side"}}, branch="side"))
    return commits


def text(graph, at, **more):
    return dump(graph, resolve_snapshot(graph._manifest, at, **more))[NOTE]["n"]["text"]


# --- every way to name a state -----------------------------------------------------------------


@pytest.mark.parametrize("fresh", [False, True], ids=["same process", "fresh"])
def test_state_is_found_by_branch_commit_tag_and_version(graph, history, fresh):
    graph.tags.create("v1", at=history[0].id)
    graph.tags.create("sided", at="side")
    graph = og.open(graph.uri, "ro") if fresh else graph
    named = {"main": "2", " main ": "2", "side": "side", "v1": "0", "sided": "side"}
    assert {at: text(graph, at) for at in named} == named
    assert [text(graph, commit.id) for commit in history] == ["0", "1", "2", "side"]
    versions = [commit.manifest_version for commit in history[:3]]
    assert [text(graph, version) for version in versions] == ["0", "1", "2"]
    assert text(graph, history[3].manifest_version, branch="side") == "side"
    assert text(graph, graph.snapshot(history[1].id)) == "1"


@pytest.mark.parametrize(
    ("minutes", "found"), [(0, "0"), (9.99, "0"), (10, "1"), (15, "1"), (20, "2"), (999, "2")]
)
def test_instant_means_the_newest_commit_not_after_it(graph, history, minutes, found):
    instant = NOON + timedelta(minutes=minutes)
    assert text(graph, instant) == found
    assert text(graph, instant.isoformat()) == found
    assert text(graph, instant.replace(tzinfo=None)) == found, "without a zone it is UTC"
    assert text(graph, instant.replace(tzinfo=None).isoformat(" ")) == found
    east = instant.astimezone(timezone(timedelta(hours=5, minutes=30)))
    assert text(graph, east) == text(graph, east.isoformat()) == found


def test_instant_of_a_branch_includes_what_it_inherited(graph, history):
    assert text(graph, NOON + timedelta(minutes=16), branch="side") == "side"
    assert text(graph, NOON + timedelta(minutes=14), branch="side") == "1"
    assert text(graph, NOON, branch="side") == "0"


def test_instant_before_the_first_commit_is_not_found(graph, history):
    with pytest.raises(NotFound, match="branch 'main' has no commit at or before") as caught:
        graph.snapshot("2001-01-01")
    assert caught.value.code == "target_not_found"


def test_clock_that_went_backwards_does_not_confuse_the_line(graph, clock):
    commits, micro = [], timedelta(microseconds=1)
    for minutes in (30, 10, 40):
        clock.instant = NOON + timedelta(minutes=minutes)
        commits.append(upsert(graph, NOTE, {"n": {"text": str(minutes)}}))
    assert [c.id for c in graph.commits.list()[:3]] == [c.id for c in reversed(commits)]
    half = NOON + timedelta(minutes=30)
    assert [c.created_at for c in commits] == [half, half + micro, NOON + timedelta(minutes=40)]
    assert [text(graph, at) for at in (half, half + micro)] == ["30", "10"]
    assert text(graph, NOON + timedelta(minutes=39)) == "10"


@pytest.mark.parametrize("source", ["head", "older"])
def test_times_grow_along_a_branch_and_its_source(graph, clock, source):
    clock.instant = NOON
    first = upsert(graph, NOTE, {"n": {"text": "main"}})
    if source == "older":
        upsert(graph, NOTE, {"n": {"text": "moved on"}})
    graph.branches.create("side", from_=first.id)
    clock.instant = NOON - timedelta(days=1)
    side = upsert(og.open(graph.uri), NOTE, {"n": {"text": "side"}}, branch="side")
    assert side.created_at == first.created_at + timedelta(microseconds=1)
    assert text(graph, NOON, branch="side") == "main"


@pytest.mark.parametrize(
    "target", ["nobody", "", "01ARZ3NDEKTSV4RRFFQ69G5FA", "2026-13-01", "o'brien", "main/x"]
)
def test_unknown_target_is_not_found(graph, target):
    with pytest.raises(NotFound) as caught:
        graph.snapshot(target)
    assert caught.value.code == "target_not_found"
    assert (
        caught.value.message == f"'{target}' does not match any branch, tag, commit ID or timestamp"
    )


def test_unknown_commit_is_not_found(graph):
    with pytest.raises(NotFound) as caught:
        graph.snapshot("01ARZ3NDEKTSV4RRFFQ69G5FAV")
    assert caught.value.code == "commit_not_found"


@pytest.mark.parametrize("version", [0, 99])
def test_unknown_manifest_version_is_not_found(graph, version):
    with pytest.raises(VersionReclaimed, match=f"manifest version {version} does not exist") as e:
        graph.snapshot(version)
    assert e.value.category == "not_found"


def test_branch_name_wins_over_a_tag_of_the_same_name(graph, history):
    graph.tags.create("both", at=history[0].id)
    graph.branches.create("both", from_=history[1].id)
    assert text(graph, "both") == "1"


def test_tag_that_looks_like_a_time_is_a_tag(graph, history):
    graph.tags.create("2026-05-02", at=history[0].id)
    assert text(graph, "2026-05-02") == "0"


# --- cheap and immutable -----------------------------------------------------------------------


def test_snapshot_is_the_same_object_while_nothing_moves(graph):
    first = graph.snapshot()
    assert graph.snapshot() is first
    entry = first.entries()[NOTE]
    with graph._manifest.reading(NOTE, entry) as one, graph._manifest.reading(NOTE, entry) as two:
        assert one is two
    insert(graph, NOTE, {"a": {}})
    second = graph.snapshot()
    assert second is not first
    assert second.head.datasets[first.entries()[SHIP].key] == first.entries()[SHIP]


def test_commit_of_another_process_is_seen_without_asking_for_it(graph):
    other = og.open(graph.uri)
    assert dump(graph)[NOTE] == {}
    made = insert(other, NOTE, {"a": {"text": "x"}})
    assert graph.snapshot().commit_id == made.id
    assert dump(graph)[NOTE] == {"a": {"text": "x"}}


def test_snapshot_taken_before_a_change_never_shows_it(graph):
    insert(graph, NOTE, {"a": {"text": "x"}})
    before = graph.snapshot()
    delete(graph, NOTE, ["a"])
    overwrite(graph, NOTE, {"b": {}})
    assert dump(graph, before)[NOTE] == {"a": {"text": "x"}}
    assert graph.entity_at("Note", "a", before) == {"id": "a", "text": "x"}


def test_schema_of_a_snapshot_is_read_once(graph):
    assert graph.snapshot().schema is graph.snapshot(graph.snapshot().commit_id).schema


@pytest.mark.parametrize("table_key", ["node:Nobody", "edge:Note", "node:", "node:CallsAt"])
def test_unknown_type_is_not_found(graph, table_key):
    with pytest.raises(NotFound) as caught:
        graph.snapshot().entry(table_key)
    assert caught.value.code == "unknown_type"


# --- history adds up ---------------------------------------------------------------------------


def test_every_commit_refolds_to_what_its_head_was(graph):
    insert(graph, NOTE, {"a": {}, "b": {}})
    upsert(graph, SHIP, {"s": {"name": "Aurora"}})
    graph.branches.create("side")
    delete(graph, NOTE, ["a"])
    insert(graph, NOTE, {"c": {}}, branch="side")
    add_column(graph, SHIP, "colour", branch="side")
    entry = graph.snapshot("side").entries()[NOTE]
    gone = StagedDataset(NOTE, *entry.key, expected=entry.physical, physical=None)
    prepared = prepare(graph, Change("upsert", SHIP, {"t": {"name": "Bora"}}), branch="side")
    staged = type(prepared.staged)(id=prepared.staged.id, operation="drop", datasets=(gone,))
    publish_prepared(graph, type(prepared)("side", prepared.lineage_id, staged))
    for branch in ("main", "side"):
        state = graph._manifest.head_state(branch)[1]
        for commit in graph.commits.list(branch):
            shown = graph._manifest.lineage(graph.branches.get(commit.branch).lineage_id).at(
                commit.manifest_version
            )
            assert shown.head.commit_id == commit.id
            assert (
                datasets_at_commit(
                    graph._manifest.history_states(state),
                    find_commit(graph._manifest, commit.id)[0],
                )
                == shown.head.datasets
            )
    assert entry.key not in graph._manifest.head_state("side")[1].head.datasets


@pytest.mark.parametrize("rows", [4, 8, 40])
def test_state_of_a_commit_is_found_where_its_rows_are_read_in_parts(tmp_path, monkeypatch, rows):
    monkeypatch.setattr(lineage, "PAGE_ROWS", rows)  # so that a merged fragment has many parts
    types = " ".join(f"node {name} {{ slug: String @key }}" for name in "ABC")
    graph, heads = og.init(tmp_path / "g", types), {}
    for number in range(2 * MAX_TAIL_FRAGMENTS + 2):
        graph.load({name: [{"slug": str(number)}] for name in "ABC"})
        head = graph.snapshot()
        heads[head.commit_id] = head.head.datasets
    state = graph._manifest.main.state()
    commits = read_commits([state])
    found = {id_: datasets_at_commit([state], commits[id_]) for id_ in heads}
    assert found == heads


# --- manifest versions that are gone -----------------------------------------------------------


def versions(graph, branch="main"):
    """Return what every manifest version of a branch shows: its commit and its entities."""
    newest = graph._manifest.head_state(branch)[1].version
    found = [snapshot_at_version(graph._manifest, v, branch) for v in range(1, newest + 1)]
    assert [snapshot.manifest_version for snapshot in found] == list(range(1, newest + 1))
    return [(s.branch, s.lineage_id, s.commit_id, dump(graph, s)) for s in found]


@pytest.mark.parametrize("branch", ["main", "side", "grandchild"])
def test_state_at_a_version_that_was_cleaned_up_comes_from_history(graph, history, branch):
    graph.branches.create("grandchild", from_="side")
    upsert(graph, NOTE, {"n": {"text": "grandchild"}}, branch="grandchild")
    for _ in range(2 * MAX_TAIL_FRAGMENTS):
        upsert(graph, NOTE, {"n": {"text": "more"}}, branch=branch)
    before, lineage = versions(graph, branch), graph._manifest.head_state(branch)[1].lineage
    remove_old_versions(lineage, datetime.now(UTC))
    with pytest.raises(VersionReclaimed):
        og.open(graph.uri)._manifest.lineage(lineage.lineage_id).at(2)
    assert versions(og.open(graph.uri), branch) == before


def test_version_of_a_branch_is_counted_from_its_making(graph, history):
    first = snapshot_at_version(graph._manifest, 1, "side")
    assert (first.branch, first.commit_id) == ("side", history[1].id)
    assert history[3].manifest_version == 2
    for version in (0, 3):
        with pytest.raises(VersionReclaimed, match=f"version {version} does not exist"):
            snapshot_at_version(graph._manifest, version, "side")
