"""Processes that wait for the turn are published by the one that has it, once or not at all."""

import fcntl
import os
import shutil
import signal
from functools import partial
from unittest.mock import patch

import pytest

import omnigraph.graph as og
from omnigraph.errors import OutcomeUnknown
from omnigraph.write import group_commit
from tests.support.children import Place, drain, finish, start
from tests.support.groups import LONG, Caller
from tests.support.waiting_writers import SCHEMA, HeldTurn, call, write

MOST_STEPS = 60


@pytest.fixture
def place(tmp_path):
    """Return where a graph is on disk."""
    og.init(tmp_path / "graph", SCHEMA)
    return Place(str(tmp_path / "graph"))


class Children:
    """Child processes that write, each with a connection."""

    def __init__(self, place, turn, branch="main"):
        self.place, self.turn, self.branch, self.children = place, turn, branch, []

    def start(self, *changes, step=None):
        """Start a process, and wait until it has left its group."""
        self.children.append(start(write, self.place, list(changes), step, self.branch))
        self.turn.wait_for(len(self.children))

    def results(self):
        """Return what the processes got, in the order of their start."""
        said = []
        for process, connection in self.children:
            code = finish(process)
            said.append((code, drain(connection)))
            connection.close()
        return said


def slugs(graph, type_name, at=None):
    source = f"query q() {{ match {{ $n: {type_name} }} return {{ $n.slug }} }}"
    return sorted(row["n.slug"] for row in graph.query(source, at=at))


def check(graph, turn):
    report = graph.verify()
    assert report.ok, report.problems
    assert turn.names() == []


def test_processes_that_wait_are_published_by_one_swap(place):
    turn = HeldTurn(place)
    children = Children(place, turn)
    with turn.held():
        children.start(("both", {"slug": "a"}))
        children.start(("part", {"slug": "b", "version": 7}), ("label", {"slug": "b", "code": 1}))
        children.start(("part", {"slug": "c"}))
        children.start(("label", {"slug": "d"}))
    said = children.results()
    assert [code for code, _ in said] == [0] * 4
    ids = [id_ for _, results in said for kind, id_ in results if kind == "done"]
    assert len(ids) == 5

    graph = place.open()
    commits = graph.commits.list(limit=10)[::-1]
    assert {commit.id for commit in commits[1:]} == set(ids)
    assert [commit.parents for commit in commits[1:]] == [(c.id,) for c in commits[:-1]]
    # The two changes of the second process are one group, unless the second came too late for it.
    assert len({commit.manifest_version for commit in commits[1:]}) <= 2
    assert {commit.operation for commit in commits[1:]} == {"mutation"}
    assert sorted(c.message for c in commits[1:]) == sorted(
        ["both made", "label made", "label made", "part made", "part made"]
    )
    seen = {"Part": set(), "Label": set()}
    for commit in commits[1:]:
        for type_name, before in seen.items():
            now = set(slugs(graph, type_name, at=commit.id))
            inserted = commit.counts.get(f"node:{type_name}")
            assert before <= now
            assert len(now - before) == (inserted.inserted if inserted else 0)
            seen[type_name] = now
    assert seen == {"Part": {"a", "b", "c"}, "Label": {"a", "b", "d"}}
    [row] = graph.query('query q() { match { $p: Part { slug: "b" } } return { $p.version } }')
    assert row["p.version"] == 7
    check(graph, turn)


@pytest.mark.parametrize(
    ("changes", "refusals"),
    [
        ([("label", {"slug": "x", "code": 5}), ("label", {"slug": "y", "code": 5})], 1),
        ([("part", {"slug": "x", "version": 1}), ("part", {"slug": "x", "version": 2})], 0),
    ],
    ids=["unique", "same key"],
)
def test_a_group_that_relies_on_what_another_writes_is_prepared_again(place, changes, refusals):
    turn = HeldTurn(place)
    children = Children(place, turn)
    with turn.held():
        for change in changes:
            children.start(change)
    kinds = [results[0][0] for _, results in children.results()]
    assert kinds.count("refused") == refusals
    graph = place.open()
    # The first that waited is the first that has the turn.
    last = changes[0] if refusals else changes[1]
    kind = {"part": "Part", "label": "Label"}[last[0]]
    assert slugs(graph, kind) == [last[1]["slug"]]
    versions = [commit.manifest_version for commit in graph.commits.list(limit=10)]
    assert len(set(versions)) == len(versions)
    check(graph, turn)


def test_a_group_is_not_published_with_what_removes_what_it_relies_on(place):
    graph = place.open()
    call(graph, ("both", {"slug": "a"}))
    turn = HeldTurn(place)
    children = Children(place, turn)
    with turn.held():
        deletion = Caller(partial(call, graph, ("unlabel", {"slug": "a"})))
        deletion.start()
        turn.wait_for_line()
        children.start(("link", {"part": "a", "label": "a"}))
        children.start(("part", {"slug": "b"}))
    [(_, [link]), (_, [part])] = children.results()
    deletion.join(LONG)
    assert deletion.error is None
    assert (link[0], part[0]) == ("refused", "done")
    commits = {commit.id: commit for commit in graph.commits.list(limit=10)}
    assert commits[part[1]].parents == (deletion.result,)
    assert commits[part[1]].manifest_version == commits[deletion.result].manifest_version
    assert (slugs(graph, "Part"), slugs(graph, "Label")) == (["a", "b"], [])
    check(graph, turn)


def test_a_group_is_not_published_after_a_commit_that_removed_what_it_relies_on(place):
    graph = place.open()
    call(graph, ("both", {"slug": "a"}))
    turn = HeldTurn(place)
    children = Children(place, turn)
    with turn.held():
        children.start(("part", {"slug": "b"}))
        turn.wait_for_line()
        children.start(("link", {"part": "a", "label": "a"}))
        call(graph, ("unlabel", {"slug": "a"}), timeout=0.3)  # without the turn
    [(_, [part]), (_, [link])] = children.results()
    assert (part[0], link[0]) == ("done", "refused")
    assert (slugs(graph, "Part"), slugs(graph, "Label")) == (["a", "b"], [])
    check(graph, turn)


def test_a_group_is_prepared_again_after_a_change_of_the_schema(place):
    graph = place.open()
    turn = HeldTurn(place)
    children = Children(place, turn)
    with turn.held():
        children.start(("part", {"slug": "b"}))
        turn.wait_for_line()
        children.start(("part", {"slug": "c", "version": 1}))
        applied = graph.schema.apply(SCHEMA.replace("I64? }", "I64?  note: String? }"), timeout=0.3)
    [(_, [first]), (_, [second])] = children.results()
    assert (first[0], second[0]) == ("done", "done")
    commits = {commit.id: commit for commit in graph.commits.list(limit=10)}
    newest = place.open().snapshot().commit_id
    assert newest in (first[1], second[1])
    assert all(
        commits[id_].schema_hash == commits[newest].schema_hash for _, id_ in (first, second)
    )
    assert applied.commit is not None
    assert commits[applied.commit.id].schema_hash == commits[newest].schema_hash
    assert slugs(graph, "Part") == ["b", "c"]
    check(graph, turn)


def test_a_group_is_not_published_on_another_branch_of_the_same_name(place):
    graph = place.open()
    lineage = graph.branches.create("side").lineage_id
    call(graph.branch("side"), ("both", {"slug": "a"}))
    turn = HeldTurn(place, lineage)
    children = Children(place, turn, "side")
    with turn.held():
        children.start(("part", {"slug": "b"}))
        turn.wait_for_line()
        children.start(("link", {"part": "a", "label": "a"}))
        graph.branches.delete("side")
        graph.branches.create("side")
        for number in range(3):
            call(graph.branch("side"), ("part", {"slug": f"c{number}"}))
    [(_, [part]), (_, [link])] = children.results()
    assert (part[0], link[0]) == ("done", "refused")
    assert slugs(graph.branch("side"), "Part") == ["b", "c0", "c1", "c2"]
    check(graph, turn)


def test_what_a_process_left_that_ended_is_not_published(place):
    turn = HeldTurn(place)
    children = Children(place, turn)
    with turn.held():
        children.start(("part", {"slug": "dead"}))
        os.kill(children.children[0][0].pid, signal.SIGKILL)
        children.children[0][0].join()
        assert len(turn.names()) == 1
        children.start(("part", {"slug": "a"}))
    children.children[0][1].close()
    del children.children[0]
    [(code, [(kind, _)])] = children.results()
    assert (code, kind) == (0, "done")
    graph = place.open()
    assert slugs(graph, "Part") == ["a"]
    check(graph, turn)


def test_a_process_that_dies_while_it_publishes_for_another(place):
    """The change of the other is acknowledged and there once; its own is whole or absent."""
    graph, turn, steps = place.open(), HeldTurn(place), []
    for step in range(MOST_STEPS):
        publisher, other = f"p{step}", f"o{step}"
        caller = Caller(partial(call, graph, ("both", {"slug": other})))
        with turn.held():
            process, connection = start(write, place, [("both", {"slug": publisher})], step)
            turn.wait_for(1)
            turn.wait_for_line()
            caller.start()
            turn.wait_for(2)
        code = finish(process)
        said = drain(connection)
        connection.close()
        caller.join(LONG)
        assert caller.error is None, said
        commits = graph.commits.list(limit=10)
        assert [commit.id for commit in commits].count(caller.result) == 1
        parts = slugs(graph, "Part")
        assert parts == slugs(graph, "Label")
        assert parts.count(other) == 1
        is_published = publisher in parts
        versions = [commit.manifest_version for commit in commits]
        assert versions.count(versions[0]) == 1 + is_published
        if code == 0:
            break
        assert code == -signal.SIGKILL, said
        steps.append((said[-1][1], is_published))
    assert code == 0, "the last process was not killed, so there are no more steps"
    assert is_published
    assert steps[0] == ("staged node", False)
    assert ("swap: done", True) in steps
    check(graph, turn)


def test_a_group_that_was_taken_and_not_published_is_published_by_its_owner(place):
    graph, turn = place.open(), HeldTurn(place)
    caller = Caller(partial(call, graph, ("part", {"slug": "a"})))
    with turn.held():
        caller.start()
        turn.wait_for(1)
        turn.take()
    caller.join(LONG)
    assert [commit.id for commit in graph.commits.list(limit=1)] == [caller.result]
    assert slugs(graph, "Part") == ["a"]
    check(graph, turn)


def test_a_group_whose_files_are_removed_by_hand_is_published_by_its_owner(place):
    graph, turn = place.open(), HeldTurn(place)
    caller = Caller(partial(call, graph, ("part", {"slug": "a"})))
    with turn.held():
        caller.start()
        turn.wait_for(1)
        shutil.rmtree(turn.folder)
    caller.join(LONG)
    assert [commit.id for commit in graph.commits.list(limit=1)] == [caller.result]
    assert slugs(graph, "Part") == ["a"]
    check(graph, turn)


@pytest.mark.parametrize("content", [b"", b"{", b'{"format": 2}', b'{"format": 1}'])
def test_a_file_that_is_not_a_group_is_skipped(place, content):
    graph, turn = place.open(), HeldTurn(place)
    turn.folder.mkdir(parents=True)
    file = turn.folder / "0.ready"
    file.write_bytes(content)
    with file.open("rb") as locked:
        fcntl.flock(locked, fcntl.LOCK_EX)
        call(graph, ("part", {"slug": "a"}))
        assert file.read_bytes() == content
    call(graph, ("part", {"slug": "b"}))
    assert slugs(graph, "Part") == ["a", "b"]
    check(graph, turn)  # its owner has ended, so it was removed


def test_the_outcome_is_unknown_if_the_publisher_does_not_go_on(place):
    graph, turn = place.open(), HeldTurn(place)
    caller = Caller(partial(call, graph, ("part", {"slug": "a"}), timeout=0.3))
    with patch.object(group_commit, "SECONDS_FOR_OTHERS", 0.2), turn.held():
        caller.start()
        turn.wait_for(1)
        turn.take()
        caller.join(LONG)
    assert isinstance(caller.error, OutcomeUnknown)
    assert slugs(graph, "Part") == []
    check(graph, turn)


def test_a_group_that_no_process_takes_is_withdrawn_at_its_deadline(place):
    graph, turn = place.open(), HeldTurn(place)
    with turn.held():
        id_ = call(graph, ("part", {"slug": "a"}), timeout=0.3)  # without the turn
    assert [commit.id for commit in graph.commits.list(limit=1)] == [id_]
    check(graph, turn)
