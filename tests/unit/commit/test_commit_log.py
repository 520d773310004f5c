"""Traversals of the commit graph: by parents, never by time; checked against naive models."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.commit.commit_log import ancestors, find_divergence, newest_first
from omnigraph.commit.manifest_rows import CommitRow
from omnigraph.commit.model import Commit
from omnigraph.errors import GraphCorrupt

START = datetime(2026, 1, 1, tzinfo=UTC)


def dag(parents, minutes=None, without_generation=""):
    """Make commits named by one character each; time runs as given, else as they are listed."""
    clock = minutes or {name: index for index, name in enumerate(parents)}
    generations = dict.fromkeys(without_generation, 0)
    for name in parents:
        generations.setdefault(
            name, 1 + max((generations.get(p, 0) for p in parents[name]), default=0)
        )
    return {
        name: CommitRow(
            Commit(
                id=name,
                parents=tuple(of),
                branch="main",
                actor=None,
                message=None,
                operation="load",
                created_at=START + timedelta(minutes=clock[name]),
                manifest_version=1,
            ),
            None,
            generation=generations[name],
        )
        for name, of in parents.items()
    }


def order(commits, start):
    return "".join(commit.id for commit in newest_first(commits, start))


# --- newest first ------------------------------------------------------------------------------


def test_line_is_listed_from_its_end():
    assert order(dag({"a": "", "b": "a", "c": "b"}), "c") == "cba"


def test_clock_that_goes_backwards_does_not_change_the_order_of_a_line():
    commits = dag({"a": "", "b": "a", "c": "b", "d": "c"}, {"a": 9, "b": 5, "c": 7, "d": 0})
    assert order(commits, "d") == "dcba"


def test_lines_that_were_merged_are_interleaved_by_time():
    commits = dag({"a": "", "b": "a", "x": "a", "c": "b", "y": "x", "m": "cy"})
    assert order(commits, "m") == "mycxba"


def test_only_what_the_start_descends_from_is_listed():
    commits = dag({"a": "", "b": "a", "x": "a", "c": "b"})
    assert order(commits, "c") == "cba"
    assert order(commits, "x") == "xa"


def test_of_commits_of_one_instant_the_greater_id_is_newer():
    commits = dag({"a": "", "b": "a", "c": "a", "m": "bc"}, dict.fromkeys("abcm", 0))
    assert order(commits, "m") == "mcba"


def test_parent_that_is_not_here_ends_its_line():
    assert order(dag({"b": "a", "c": "b"}), "c") == "cb"


def test_start_that_is_not_here_is_corruption():
    with pytest.raises(GraphCorrupt, match="commit z is missing from the history"):
        list(newest_first(dag({"a": ""}), "z"))


# --- merge bases -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parents", "one", "other", "bases"),
    [
        ({"a": "", "b": "a", "c": "b"}, "c", "c", ["c"]),
        ({"a": "", "b": "a", "c": "b"}, "c", "a", ["a"]),
        ({"a": "", "b": "a", "x": "a", "y": "x"}, "b", "y", ["a"]),
        ({"a": "", "b": "a", "x": "a", "m": "bx", "y": "x"}, "m", "y", ["x"]),
        ({"a": "", "b": "a", "x": "a", "m": "bx", "n": "xb"}, "m", "n", ["x", "b"]),
        ({"a": "", "z": ""}, "a", "z", []),
        ({"a": "", "b": "a", "x": "a", "m": "bx", "n": "xb", "o": "m", "p": "no"}, "p", "o", ["o"]),
    ],
    ids=["same", "ancestor", "fork", "merged", "criss-cross", "unrelated", "criss-cross, merged"],
)
def test_best_common_ancestors(parents, one, other, bases):
    assert find_divergence(dag(parents), one, other).bases == bases
    assert find_divergence(dag(parents), other, one).bases == bases


def test_long_line_has_its_merge_base_found_at_once():
    names = [chr(1000 + n) for n in range(20_000)]
    commits = dag(dict(zip(names, ["", *names], strict=False)))
    assert find_divergence(commits, names[-1], names[15_000]).bases == [names[15_000]]


# --- models ------------------------------------------------------------------------------------


@st.composite
def dags(draw):
    """Draw a DAG of up to 12 commits with up to two parents each and clocks of any order."""
    names = "abcdefghijkl"[: draw(st.integers(1, 12))]
    parents = {}
    for index, name in enumerate(names):
        known = names[:index]
        chosen = st.lists(st.sampled_from(known), unique=True, max_size=2) if known else st.just([])
        parents[name] = "".join(draw(chosen))
    minutes = {name: draw(st.integers(0, 5)) for name in names}
    return dag(parents, minutes, names[: draw(st.integers(0, len(names)))])


class CountedReads(dict):
    """Commits that note which of them were read."""

    def __init__(self, commits):
        super().__init__(commits)
        self.read = set()

    def __getitem__(self, name):
        self.read.add(name)
        return super().__getitem__(name)

    def get(self, name):
        if name not in self:
            return None
        return self[name]


def reachable(commits, name):
    found = {name}
    for parent in commits[name].commit.parents:
        found |= reachable(commits, parent)
    return found


@given(dags(), st.data())
def test_ancestors_are_what_parents_reach(commits, data):
    start = data.draw(st.sampled_from(sorted(commits)))
    assert ancestors(commits, start) == reachable(commits, start)


@given(dags(), st.data())
def test_no_commit_comes_before_a_child_of_it(commits, data):
    start = data.draw(st.sampled_from(sorted(commits)))
    listed = order(commits, start)
    assert sorted(listed) == sorted(reachable(commits, start))
    for name in listed:
        assert all(listed.index(name) < listed.index(p) for p in commits[name].commit.parents)


@given(dags(), st.data())
def test_order_does_not_depend_on_generations(commits, data):
    start = data.draw(st.sampled_from(sorted(commits)))
    without = {name: replace(row, generation=0) for name, row in commits.items()}
    assert order(commits, start) == order(without, start)


@given(dags(), st.data())
def test_merge_bases_are_the_maximal_common_ancestors(commits, data):
    one, other = (data.draw(st.sampled_from(sorted(commits))) for _ in range(2))
    first, second = reachable(commits, one), reachable(commits, other)
    common = first & second
    maximal = {
        name
        for name in common
        if not any(name in reachable(commits, later) for later in common - {name})
    }
    divergence = find_divergence(commits, one, other)
    assert divergence.bases == sorted(maximal, reverse=True)
    assert (divergence.only_one, divergence.only_other) == (first - common, second - common)


# --- how much is read --------------------------------------------------------------------------


def long_line(length):
    names = [f"{n:06}" for n in range(length)]
    parents = [(), *((name,) for name in names)]
    return names, CountedReads(dag(dict(zip(names, parents, strict=False))))


def test_newest_commits_are_listed_without_reading_the_others():
    names, commits = long_line(2_000)
    newest = [commit.id for commit in islice(newest_first(commits, names[-1]), 3)]
    assert newest == names[:-4:-1]
    assert commits.read <= set(names[-5:])


def test_merge_base_is_found_without_reading_what_is_below_it():
    names, commits = long_line(2_000)
    assert find_divergence(commits, names[-1], names[-10]).bases == [names[-10]]
    assert commits.read <= set(names[-12:])
