"""The life of a graph, the same in a folder and in a bucket."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

import omnigraph.graph as og
from omnigraph.commit.intent_log import IntentLog
from omnigraph.commit.lineage_maintenance import remove_old_versions
from omnigraph.commit.snapshot import snapshot_at_version
from omnigraph.errors import (
    AlreadyExists,
    ExpectedVersionMismatch,
    InvalidInput,
    NotFound,
    OmniError,
    PreconditionFailed,
)
from tests.support.graphs import (
    CALLS_AT,
    NOTE,
    PORT,
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
    until_published,
    upsert,
)

AT_ONCE = timedelta(0)
ROUNDS = 3


@pytest.fixture
def graph(graph_root, templates, again):
    templates.copy("empty", make_graph, *graph_root)
    return again()


@pytest.fixture
def again(graph_root):
    """Open the graph as another process would: with nothing known."""
    return lambda mode="rw": og.open(graph_root.uri, mode, storage_options=graph_root.options)


def ships(graph, at="main"):
    return {id_: row["tons"] for id_, row in dump(graph, at)[SHIP].items()}


def objects(graph):
    found = graph._manifest.objects.list("")
    return {info.path: (info.size, info.modified) for info in found}


def refusal(code, action, *arguments, **options):
    with pytest.raises(OmniError) as caught:
        action(*arguments, **options)
    assert caught.value.code == code
    return caught.value


# ------------------------------------------------------------------ create and open


def test_new_graph_is_empty_and_whole(graph, again):
    assert dump(graph) == {SHIP: {}, PORT: {}, NOTE: {}, CALLS_AT: {}}
    assert [entry.version for entry in graph.snapshot().entries().values()] == [1, 1, 1, 1]
    report = again().verify()
    assert (report.branches, report.commits, report.versions, report.problems) == (1, 1, 4, [])


def test_graph_is_not_created_twice(graph, graph_root):
    with pytest.raises(AlreadyExists) as caught:
        make_graph(*graph_root)
    assert caught.value.code == "already_initialized"
    assert graph.verify().problems == []


def test_address_without_a_graph_is_not_found_and_stays_empty(graph_root):
    with pytest.raises(NotFound) as caught:
        og.open(graph_root.uri, storage_options=graph_root.options)
    assert caught.value.code == "graph_not_found"
    assert graph_root.uri in caught.value.message


def init_race(racer, uri, options, rounds):
    """Create graphs together with all racers; return what each attempt got."""
    got = []
    for number in range(rounds):
        racer.together()
        try:
            graph = make_graph(f"{uri}/{number}", options)
            got.append(graph.snapshot().commit_id)
        except AlreadyExists as error:
            got.append(error.code)
    return got


def test_of_four_racing_creators_one_wins_and_the_others_fail(graph_root, racers):
    got = racers.run(init_race, *graph_root, ROUNDS)
    for number, outcomes in enumerate(zip(*got, strict=True)):
        winners = [outcome for outcome in outcomes if outcome != "already_initialized"]
        assert len(winners) == 1
        graph = og.open(f"{graph_root.uri}/{number}", storage_options=graph_root.options)
        assert [made.id for made in graph.commits.list()] == winners
    # Each loser may leave unreferenced datasets, which do not affect the graph.
    report = graph.verify()
    assert report.ok
    leftover = "no branch refers to this dataset"
    assert {problem.message for problem in report.problems} <= {leftover}
    insert(graph, SHIP, {"a": {"name": "Ada"}})
    clean_at_once(graph, keep=9)
    assert graph.verify().problems == []


# ------------------------------------------------------------------ commits


def test_every_kind_of_change_is_seen_by_the_next_process(graph, again):
    insert(graph, SHIP, {"a": {"name": "Ada", "tons": 1}, "b": {"name": "Bea", "tons": 2}})
    upsert(graph, SHIP, {"b": {"name": "Bea", "tons": 20}, "c": {"name": "Cea", "tons": 3}})
    delete(graph, SHIP, ["a"])
    overwrite(graph, PORT, {"p": {"city": "Oslo"}})
    commit(
        graph,
        Change("insert", NOTE, {"n": {"text": "x"}}),
        Change("insert", CALLS_AT, {"e": {"src": "b", "dst": "p", "fee": 5}}),
    )
    assert dump(again()) == {
        SHIP: {"b": {"name": "Bea", "tons": 20}, "c": {"name": "Cea", "tons": 3}},
        PORT: {"p": {"city": "Oslo", "depth": None}},
        NOTE: {"n": {"text": "x"}},
        CALLS_AT: {"e": {"src": "b", "dst": "p", "fee": 5}},
    }
    entries = again().snapshot().entries()
    assert {key: entry.version for key, entry in entries.items()} == {
        SHIP: 4,
        PORT: 2,
        NOTE: 2,
        CALLS_AT: 2,
    }
    assert again().verify().problems == []


def test_writer_that_was_overtaken_is_refused_and_changes_nothing(graph, again):
    slow = prepare(graph, Change("insert", SHIP, {"slow": {"name": "S"}}))
    insert(again(), SHIP, {"fast": {"name": "F"}})
    with pytest.raises(ExpectedVersionMismatch) as caught:
        publish_prepared(graph, slow)
    error = caught.value
    assert (error.table_key, error.expected, error.actual) == (SHIP, 1, 2)
    assert list(ships(again())) == ["fast"]


def test_writer_of_another_type_is_not_disturbed(graph, again):
    slow = prepare(graph, Change("insert", PORT, {"p": {"city": "Oslo"}}))
    first = insert(again(), SHIP, {"fast": {"name": "F"}})
    assert publish_prepared(graph, slow).parents == (first.id,)


def test_unmet_precondition_is_refused(graph):
    head = graph.snapshot().commit_id
    made = insert(graph, SHIP, {"a": {"name": "Ada"}})
    prepared = prepare(graph, Change("insert", PORT, {"p": {"city": "Oslo"}}))
    late = replace(prepared, staged=replace(prepared.staged, if_commit=head))
    with pytest.raises(PreconditionFailed) as caught:
        publish_prepared(graph, late)
    assert (caught.value.expected, caught.value.actual) == (head, made.id)


def write_race(racer, uri, options, count):
    """Commit to one graph together with all racers; return the ids that were acknowledged."""
    graph = og.open(uri, storage_options=options)
    racer.together()
    made = []
    for number in range(count):
        rows = {f"{racer.number}-{number}": {"name": "x", "tons": number}}
        made.append(until_published(lambda rows=rows: insert(graph, SHIP, rows)).id)
    return made


def test_writers_in_four_processes_lose_nothing(graph, graph_root, again, racers):
    made = racers.run(write_race, *graph_root, 4)
    fresh = again()
    history = fresh.commits.list()
    assert {found.id for found in history[:-1]} == {id_ for ids in made for id_ in ids}
    assert [found.parents for found in history] == [
        *((parent.id,) for parent in history[1:]),
        (),
    ]
    assert ships(fresh) == {
        f"{racer}-{number}": number for racer in range(4) for number in range(4)
    }
    assert fresh.verify().problems == []


# ------------------------------------------------------------------ branches and tags


def test_branches_share_what_was_and_part_from_there(graph, again):
    first = insert(graph, SHIP, {"a": {"name": "Ada", "tons": 1}})
    graph.branches.create("review/one")
    graph.branches.create("review", "review/one")
    insert(graph, SHIP, {"m": {"name": "M", "tons": 9}})
    insert(graph, SHIP, {"b": {"name": "Bea", "tons": 2}}, branch="review/one")
    insert(again(), SHIP, {"c": {"name": "Cea", "tons": 3}}, branch="review")
    fresh = again()
    assert fresh.branches.list() == ["main", "review", "review/one"]
    assert ships(fresh) == {"a": 1, "m": 9}
    assert ships(fresh, "review/one") == {"a": 1, "b": 2}
    assert ships(fresh, "review") == {"a": 1, "c": 3}
    assert fresh.commits.merge_base("main", "review/one") == (first.id,)
    assert [made.branch for made in fresh.commits.list("review/one")] == [
        "review/one",
        "main",
        "main",
    ]
    assert fresh.verify().problems == []


def test_branch_starts_at_any_commit(graph, again):
    old = insert(graph, SHIP, {"a": {"name": "Ada", "tons": 1}})
    insert(graph, SHIP, {"b": {"name": "Bea", "tons": 2}})
    graph.branches.create("old", old.id)
    insert(again(), SHIP, {"c": {"name": "Cea", "tons": 3}}, branch="old")
    assert ships(again(), "old") == {"a": 1, "c": 3}


def test_deleted_branch_is_gone_in_every_process_and_its_name_is_free(graph, again):
    other = again()
    graph.branches.create("side")
    insert(other, SHIP, {"a": {"name": "Ada", "tons": 1}}, branch="side")
    prepared = prepare(other, Change("insert", SHIP, {"late": {"name": "L"}}), branch="side")
    graph.branches.delete("side")
    refusal("branch_not_found", publish_prepared, other, prepared)
    refusal("branch_not_found", graph.branches.delete, "side")
    graph.branches.create("side")
    assert ships(other, "side") == {}
    assert again().branches.list() == ["main", "side"]


def test_branch_that_others_descend_from_is_deleted_by_force_only(graph):
    graph.branches.create("parent")
    graph.branches.create("child", "parent")
    error = refusal("branch_has_descendants", graph.branches.delete, "parent")
    assert "child" in error.message
    graph.branches.delete("parent", force=True)
    assert graph.branches.get("child").parent == "main"


def branch_race(racer, uri, options, rounds):
    graph, got = og.open(uri, storage_options=options), []
    for number in range(rounds):
        racer.together()
        try:
            got.append(graph.branches.create(f"race/{number}").lineage_id)
        except AlreadyExists as error:
            got.append(error.code)
    return got


def test_of_four_processes_that_create_a_branch_one_wins(graph, graph_root, again, racers):
    got = racers.run(branch_race, *graph_root, ROUNDS)
    for number, outcomes in enumerate(zip(*got, strict=True)):
        [winner] = [outcome for outcome in outcomes if outcome != "branch_exists"]
        assert again().branches.get(f"race/{number}").lineage_id == winner
    assert again().verify().ok


def test_tag_names_one_commit_for_ever(graph, again):
    made = insert(graph, SHIP, {"a": {"name": "Ada", "tons": 1}})
    graph.tags.create("v1", made.id)
    insert(graph, SHIP, {"b": {"name": "Bea", "tons": 2}})
    assert ships(again(), "v1") == {"a": 1}
    refusal("tag_exists", graph.tags.create, "v1")
    graph.tags.delete("v1")
    assert again().tags.list() == []
    refusal("target_not_found", again().snapshot, "v1")


# ------------------------------------------------------------------ time travel


def test_every_state_is_found_by_commit_tag_time_and_manifest_version(graph, again):
    made = [insert(graph, SHIP, {f"s{n}": {"name": "x", "tons": n}}) for n in range(3)]
    graph.tags.create("second", made[1].id)
    fresh = again()
    for number, found in enumerate(made):
        expected = {f"s{n}": n for n in range(number + 1)}
        assert ships(fresh, found.id) == expected
        assert ships(fresh, found.created_at) == expected
        assert ships(fresh, found.created_at.isoformat()) == expected
        by_version = snapshot_at_version(fresh._manifest, found.manifest_version)
        assert by_version.commit_id == found.id
        assert ships(fresh, by_version) == expected
    assert ships(fresh, "second") == {"s0": 0, "s1": 1}
    assert ships(fresh, datetime.now(UTC)) == {"s0": 0, "s1": 1, "s2": 2}
    assert fresh.entity_at("Ship", "s2", made[1].id) is None
    assert fresh.entity_at("Ship", "s1", made[1].id) == {"id": "s1", "name": "x", "tons": 1}
    refusal("target_not_found", fresh.snapshot, datetime(2020, 1, 1, tzinfo=UTC))
    refusal("commit_not_found", fresh.snapshot, "01ARZ3NDEKTSV4RRFFQ69G5FAV")


# ------------------------------------------------------------------ reading only


def test_reader_writes_nothing(graph, again):
    insert(graph, SHIP, {"a": {"name": "Ada", "tons": 1}})
    graph.branches.create("side")
    before = objects(graph)
    reader = again("ro")
    assert (ships(reader), ships(reader, "side")) == ({"a": 1}, {"a": 1})
    assert reader.verify().ok
    assert reader.recoveries() == []
    reader.cleanup(keep=1)
    with pytest.raises(InvalidInput, match="read-only"):
        reader.branches.create("more")
    assert objects(graph) == before


# ------------------------------------------------------------------ upkeep


def test_cleanup_reports_in_a_dry_run_and_then_keeps_what_is_retained(graph, again):
    made = [insert(graph, SHIP, {f"s{n}": {"name": "x", "tons": n}}) for n in range(6)]
    graph.branches.create("side", made[1].id)
    graph.tags.create("kept", made[2].id)
    planned = clean_at_once(graph, keep=2, dry_run=True)
    before = objects(graph)
    assert objects(again()) == before
    done = clean_at_once(again(), keep=2)
    assert [d.error for d in done.datasets] == [None] * 4
    assert done.bytes_removed == planned.bytes_removed > 0
    gone = {path for path in before if path.startswith(("nodes/", "edges/"))} - set(objects(graph))
    assert sum(before[path][0] for path in gone) == done.bytes_removed
    fresh = again()
    assert fresh.verify().problems == []
    # The two newest commits of main, and what `side` and `kept` name.
    for number in (5, 4, 1, 2):
        assert ships(fresh, made[number].id) == {f"s{n}": n for n in range(number + 1)}
    assert ships(fresh, "side") == {"s0": 0, "s1": 1}
    assert ships(fresh, "kept") == {"s0": 0, "s1": 1, "s2": 2}
    refusal("version_reclaimed", fresh.entity_at, "Ship", "s0", made[3].id)
    assert len(fresh.commits.list()) == 7
    insert(fresh, SHIP, {"after": {"name": "x", "tons": 7}})
    assert again().verify().problems == []


def test_cleanup_spares_what_a_writer_is_about_to_publish(graph, again):
    slow = prepare(graph, Change("insert", SHIP, {"slow": {"name": "S", "tons": 1}}))
    again().cleanup(keep=1, confirm=True)
    publish_prepared(graph, slow)
    assert ships(again()) == {"slow": 1}
    assert again().verify().problems == []


def test_writer_that_sleeps_while_history_is_forgotten_loses_nothing(graph, again):
    def sleep(step):
        if step == "swap: new rows written" and not made:
            other = again()
            made.extend(insert(other, SHIP, {f"s{n}": {"name": "x", "tons": n}}) for n in range(3))
            remove_old_versions(other._manifest.main, datetime.now(UTC))

    made = []
    graph._manifest.datasets.observe = sleep
    slow = insert(graph, PORT, {"p": {"city": "Oslo"}})
    assert slow.parents == (made[-1].id,)
    fresh = again()
    assert [found.id for found in fresh.commits.list(limit=4)] == [
        slow.id,
        *(found.id for found in reversed(made)),
    ]
    assert (sorted(ships(fresh)), list(dump(fresh)[PORT])) == (["s0", "s1", "s2"], ["p"])
    assert fresh.verify().problems == []


def test_recovery_finishes_what_is_complete_and_undoes_the_rest(graph, again):
    intents = IntentLog(graph._manifest.objects)
    for table_key, rows, complete in (
        (SHIP, {"done": {"name": "D", "tons": 1}}, True),
        (PORT, {"half": {"city": "H"}}, False),
    ):
        prepared = prepare(graph, Change("insert", table_key, rows))
        intent = intents.begin("main", None, prepared.staged)
        intents.update(intent, prepared.staged, complete=complete)
    assert again().recover() == []
    kinds = [str(recovery.kind) for recovery in again().recover(stale_after=AT_ONCE)]
    assert kinds == ["RolledForward", "RolledBack"]
    fresh = again()
    assert (ships(fresh), dump(fresh)[PORT]) == ({"done": 1}, {})
    assert [row["recovery_kind"] for row in fresh.recoveries()] == kinds
    assert IntentLog(fresh._manifest.objects).list() == []
    assert fresh.recover(stale_after=AT_ONCE) == []
    assert fresh.verify().problems == []
