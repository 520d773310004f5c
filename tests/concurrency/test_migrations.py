"""Schemas are applied by processes that die, and beside processes that write."""

import os
from collections import Counter

import pytest

import omnigraph.graph as og
from omnigraph.errors import SchemaMoved
from omnigraph.write import ValidationFailed
from tests.support import migration_workers
from tests.support.changes import read_state
from tests.support.fork_server import process_pool
from tests.support.migration_workers import FIRST, MANY, ROUND, fill, read_log, run_to_step

SOAK_SECONDS = int(os.environ.get("SOAK_SECONDS", "0"))
SOAK = SOAK_SECONDS > 0
MOST_STEPS = 60
KNOWN = {"schema_moved", "contention", "expected_version_mismatch"}
"""Errors that a process concurrent with others may get."""


@pytest.mark.parametrize(
    ("fresh_place", "loss"),
    [("local", False), ("local", True), ("s3", False), *([("s3", True)] if SOAK else [])],
    indirect=["fresh_place"],
)
def test_killed_at_any_step_leaves_the_old_or_the_new_schema(fresh_place, loss, templates):
    seen, steps = set(), []
    for step in range(MOST_STEPS):
        place = fresh_place()
        before = templates.copy("migrations", build, place.uri, place.options)

        stopped_at = run_to_step(place, MANY, step, allow_data_loss=loss)
        steps.append(stopped_at)

        graph = place.open()
        found = read_state(graph)
        is_new = graph.schema.source == MANY
        assert is_new or (graph.schema.source, found) == (FIRST, before), stopped_at
        assert graph.verify().ok, (stopped_at, graph.verify().problems)
        assert len(graph.commits.list()) == (3 if is_new else 2), stopped_at
        if is_new:
            assert found == expected(before), stopped_at
        seen.add(is_new)
        if stopped_at is None:
            break
        assert graph.schema.apply(MANY, allow_data_loss=loss).applied is not is_new, stopped_at
        assert read_state(place.open()) == expected(before), stopped_at
    assert stopped_at is None, "the last child was not killed, so there are no more steps"
    assert {"created dataset nodes", "created dataset edges", "staged node"} <= set(steps)
    assert ("purge: removed" in steps) == loss
    assert seen == {False, True}


def build(uri, options):
    graph = og.init(uri, FIRST, storage_options=options)
    fill(graph)
    return read_state(graph)


def expected(before):
    people = {
        id_: {"name": id_, "years": row["age"], "level": 1, "note": None}
        for id_, row in before["Person"].items()
    }
    return {"Human": people, "Place": {}, "At": {}}


@pytest.mark.parametrize(
    ("fresh_place", "seconds"),
    [("local", SOAK_SECONDS or 4), ("s3", SOAK_SECONDS or 5)],
    indirect=["fresh_place"],
)
def test_writers_beside_migrations_lose_nothing(fresh_place, seconds, tmp_path):
    place = fresh_place()
    graph = og.init(place.uri, FIRST, storage_options=place.options)
    fill(graph)
    jobs = [migration_workers.migrate, migration_workers.migrate, *[migration_workers.write] * 4]
    logs = [tmp_path / f"{number}.log" for number in range(len(jobs))]
    with process_pool(len(jobs)) as pool:
        running = [
            pool.submit(job, place, str(log), seconds, number)
            for number, (job, log) in enumerate(zip(jobs, logs, strict=True))
        ]
        for worker in running:
            worker.result(timeout=10 * seconds + 60)
    migrated, written = (
        [e for log in part for e in read_log(log)] for part in (logs[:2], logs[2:])
    )
    refused = Counter(code for _, _, code in migrated if code)
    refused.update(code for name, code, _ in written if name is None)
    print(f"{len(migrated)} migrations, {len(written)} writes, refused: {dict(refused)}")
    assert set(refused) <= KNOWN

    graph = place.open()
    chain = [commit.id for commit in graph.commits.list()]
    made = [commit for _, commit, _ in migrated if commit]
    put = {name: (age, commit) for name, age, commit in written if name}
    assert sorted(chain[:-2]) == sorted([*made, *(commit for _, commit in put.values())])
    assert len(made) > 0, "too few migrations to mean something"
    assert len(put) > 4, "too few writes to mean something"
    ages = {id_: row["age"] for id_, row in read_state(graph)["Person"].items()}
    assert ages == {**{f"p{n}": n for n in range(5)}, **{n: age for n, (age, _) in put.items()}}
    for commit in chain[:20]:
        snapshot = graph.snapshot(commit)
        assert snapshot.schema_source in ROUND
        read_state(graph, commit)
    assert graph.verify().ok, graph.verify().problems


# --- one at a time, as seen by the other -------------------------------------------------------


@pytest.fixture
def graph(tmp_path):
    made = og.init(tmp_path / "graph", FIRST)
    fill(made)
    return made


def meanwhile(graph, job, steps=("staged node",)):
    """Do something in another handle when this one comes to a step for the first time."""
    waiting = [job]

    def observe(step):
        if step in steps and waiting:
            waiting.pop()(og.open(graph.uri))

    graph._manifest.datasets.observe = observe


def test_an_insert_prepared_under_the_old_schema_is_prepared_again(graph):
    wider = FIRST.replace("age: I32?", "age: I64?  level: I32 @default(7)")
    meanwhile(graph, lambda other: other.schema.apply(wider))
    graph.mutate('query q() { insert Person { name: "new", age: 1 } }')
    row = read_state(graph)["Person"]["new"]
    assert (row["age"], row["level"]) == (1, 7)
    assert [c.operation for c in graph.commits.list()][:2] == ["mutation", "schema_apply"]


def test_an_update_prepared_under_the_old_schema_is_refused(graph):
    wider = FIRST.replace("age: I32?", "age: I64?")
    meanwhile(graph, lambda other: other.schema.apply(wider))
    with pytest.raises(SchemaMoved):
        graph.mutate('query q() { update Person set { age: 9 } where name = "p1" }')
    assert read_state(graph)["Person"]["p1"]["age"] == 1


def test_a_load_prepared_under_the_old_schema_is_refused(graph):
    meanwhile(graph, lambda other: other.schema.apply(FIRST.replace("city: String?", "")))
    with pytest.raises(SchemaMoved):
        graph.load({"Person": [{"name": "x", "city": "rome"}]})
    assert "x" not in read_state(graph)["Person"]


def test_a_migration_is_prepared_again_based_on_a_concurrent_write(graph):
    meanwhile(graph, lambda other: other.load({"Person": [{"name": "late", "age": 3}]}))
    done = graph.schema.apply(FIRST.replace("age: I32?", "age: I64?  level: I32 @default(7)"))
    row = read_state(graph)["Person"]["late"]
    assert (row["age"], row["level"]) == (3, 7)
    assert graph.snapshot().commit_id == done.commit.id


def test_what_a_migration_has_checked_cannot_change_before_it_is_made(graph):
    """A write that breaks the new rule in between is seen."""
    text = FIRST.replace("city: String?", "city: String? @unique")
    twice = {"Person": [{"name": "late", "city": "c1"}]}
    waiting = [lambda: og.open(graph.uri).load(twice)]

    def progress(report):
        if report.phase == "publish" and waiting:
            waiting.pop()()

    with pytest.raises(ValidationFailed):
        graph.schema.apply(text, progress=progress)
    assert graph.schema.source == FIRST


def test_a_migration_that_another_has_made_meanwhile_is_none(graph):
    text = FIRST.replace("age: I32?", "age: I64?")
    meanwhile(graph, lambda other: other.schema.apply(text))
    done = graph.schema.apply(text)
    assert not done.applied
    assert done.steps == ()


def test_a_migration_does_not_undo_another_of_which_it_knew_nothing(graph):
    meanwhile(graph, lambda other: other.schema.apply(FIRST + "node Other { }"))
    with pytest.raises(SchemaMoved):
        graph.schema.apply(FIRST.replace("age: I32?", "age: I64?"))
    assert graph.schema.source == FIRST + "node Other { }"
