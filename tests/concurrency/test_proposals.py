"""Proposals by processes that die while they merge, and by many that work at once."""

import itertools
import os
from collections import Counter

import pytest

import omnigraph as og
from omnigraph.errors import OmniError
from omnigraph.policy.protection_rules import parse_rules
from omnigraph.query.checks import QueryCheck, StateCheck
from omnigraph.review import merging
from tests.support.effort import EFFORT
from tests.support.graphs import clean_at_once
from tests.support.proposal_children import (
    ADA,
    BOB,
    CHECKS,
    SCHEMA,
    add,
    at_once,
    merge_to_step,
    opened,
    ports,
    protect_to_step,
)

MOST_STEPS = 80
SOAK = bool(int(os.environ.get("SOAK_SECONDS") or 0))
WORKERS = 8


def prepared(tmp_path, name="g", sources=("side",), *, checks=True, protected=True):
    """Return the address of a graph with proposals that can be merged."""
    folder = tmp_path / name
    folder.mkdir()
    if checks:
        (folder / "checks.gq").write_text(CHECKS)
    graph = og.init(folder / "g", SCHEMA, actor=ADA)
    add(graph, "OLD")
    for source in sources:
        graph.branches.create(source)
        add(graph, source.upper(), source)
        made = graph.proposals.create(source, into="main", title=source)
        graph.as_actor(BOB).proposals.get(made.number).review("approve")
    add(graph, "NEWER")
    if protected:
        graph.protection.set([{"branches": ["main"], "require": {"approvals": 1}}])
    return graph.uri


def all_events(graph, limit=50):
    events, cursor = [], None
    while True:
        page = graph.proposals.events(cursor, limit=limit)
        events += page.events
        cursor = page.cursor
        if page.caught_up:
            return events


def merge_commits(graph):
    return [c for c in graph.commits.list() if c.proposal is not None]


def code_of(call):
    with pytest.raises(OmniError) as caught:
        call()
    return caught.value.code


@pytest.mark.parametrize("after", ["merge", "close", "comment", "nothing"])
def test_killed_at_any_step_of_a_merge(tmp_path, after):
    """The proposal is merged exactly if the merge commit is visible; nothing has to be repaired."""
    if after != "merge" and not SOAK:
        steps = ["proposal: decided", "proposal: published", "proposal: event appended"]
    else:
        steps = None
    seen, names = set(), []
    for step in range(MOST_STEPS):
        uri = prepared(tmp_path, f"{step}")
        stopped_at = merge_to_step(uri, step)
        names.append(stopped_at)
        if steps is not None and stopped_at is not None and stopped_at not in steps:
            continue

        graph = opened(uri)
        is_merged = "SIDE" in ports(graph)
        seen.add(is_merged)
        shown = graph.proposals.get(1)
        assert str(shown.state) == ("merged" if is_merged else "open"), stopped_at
        [listed] = graph.proposals.list("all")
        assert listed.state == shown.state, stopped_at
        commits = merge_commits(graph)
        assert [c.proposal.number for c in commits] == [1] * is_merged, stopped_at
        assert shown.merge_commit == (commits[0].id if is_merged else None), stopped_at
        assert graph.verify().ok, (stopped_at, graph.verify().problems)

        if after == "close":
            if is_merged:
                assert code_of(shown.close) == "proposal_not_open", stopped_at
            else:
                assert shown.close().state == "closed", stopped_at
        elif after == "comment":
            assert shown.comment("late").after_merge == is_merged, stopped_at
        elif after == "merge":
            if is_merged:
                assert code_of(shown.merge) == "proposal_not_open", stopped_at
            else:
                shown.merge()
            assert ports(opened(uri)) == ["NEWER", "OLD", "SIDE"], stopped_at
            assert len(merge_commits(opened(uri))) == 1, stopped_at
        kinds = [str(event.kind) for event in all_events(opened(uri))]
        expected = (is_merged and after != "nothing") or after == "merge"
        if after != "nothing":
            assert kinds.count("merged") == expected, (stopped_at, kinds)
        assert opened(uri).verify().ok, stopped_at
        if stopped_at is None:
            break
    assert stopped_at is None, "the last child was not killed, so there are no more steps"
    assert seen == {False, True}
    assert {"proposal: decided", "proposal: published", "proposal: recorded"} <= set(names)


BRANCHES = ("main", "release/1", "release/2", "release/3")


@pytest.mark.parametrize("had_rules", [False, True])
def test_killed_at_any_step_of_setting_the_protection(tmp_path, had_rules):
    """The rules hold on all branches or on none, as soon as another process opens the graph."""
    seen, names = set(), []
    for step in range(MOST_STEPS):
        graph = og.init(tmp_path / f"{step}", SCHEMA, actor=ADA)
        for branch in BRANCHES[1:]:
            graph.branches.create(branch)
        if had_rules:
            graph.protection.set({"branches": ["release/1"]})
        rules = [{"branches": ["main", "release/[23]"], "require": {"approvals": 1}}]
        names.append(protect_to_step(graph.uri, step, rules))
        is_stored = og.open(graph.uri, mode="ro").protection.rules == parse_rules(rules)
        seen.add(is_stored)
        refused = {*BRANCHES} - {"release/1"} if is_stored else {"release/1"} if had_rules else ()
        late = opened(graph.uri)
        for branch in BRANCHES:
            if branch in refused:
                assert code_of(lambda: add(late, "X", branch)) == "branch_protected", names[-1]  # noqa: B023
            else:
                add(late, "X", branch)
        fresh = opened(graph.uri)
        assert [b for b in BRANCHES if ports(fresh, b) != ["X"]] == sorted(refused), names[-1]
        assert fresh.verify().ok, (names[-1], fresh.verify().problems)
        if names[-1] is None:
            break
    assert names[-1] is None, "the last child was not killed, so there are no more steps"
    assert seen == {False, True}
    assert names.count("protection: folded") == len(BRANCHES) - 1


def test_events_of_eight_processes_have_one_order(tmp_path):
    uri = prepared(tmp_path, sources=("a", "b", "c"), protected=False)
    rounds = 6 * EFFORT
    answers = at_once(uri, [("converse", (worker, rounds)) for worker in range(WORKERS)])

    graph = opened(uri)
    events = all_events(graph, limit=7)
    assert [event.event for event in events] == list(range(1, len(events) + 1))
    assert len(events) == 6 + WORKERS * (rounds + 1)
    by_proposal = {}
    for event in events:
        by_proposal.setdefault(event.proposal, []).append(event.seq)
    assert all(seqs == list(range(1, len(seqs) + 1)) for seqs in by_proposal.values())
    assert sorted(by_proposal) == list(range(1, 4 + WORKERS))

    written = {
        (e.proposal, e.seq, e.payload.get("body", e.payload.get("title")), e.actor)
        for e in events[6:]
    }
    acknowledged = {
        (number, seq, text, f"act-{worker}")
        for worker, answer in enumerate(answers)
        for number, seq, text in answer
    }
    assert written == acknowledged
    assert all(
        one.created_at <= other.created_at
        for one, other in itertools.pairwise(events)
        if one.proposal == other.proposal
    )
    for number in (1, 2, 3):
        shown = graph.proposals.get(number)
        bodies = Counter(one.body for one in (*shown.comments, *shown.reviews) if one.body)
        assert bodies == Counter(text for n, _, text, _ in written if n == number)
    assert graph.proposals.page("open").counts["open"] == 3 + WORKERS
    assert graph.verify().ok


@pytest.mark.parametrize("others", [["merge"] * 3, ["merge", "close", "close"]])
def test_two_reviewers_settle_a_proposal_at_once(tmp_path, others):
    for attempt in range(2 * EFFORT):
        uri = prepared(tmp_path, f"{attempt}", checks=False)
        verbs = ["merge", *others]
        works = [
            ("settle", (verb, 1, actor)) for verb, actor in zip(verbs, (ADA, BOB) * 2, strict=False)
        ]
        answers = at_once(uri, works)

        graph = opened(uri)
        shown, commits = graph.proposals.get(1), merge_commits(graph)
        done = [pair for pair in zip(verbs, answers, strict=True) if pair[1] != "proposal_not_open"]
        merged = [answer for verb, answer in done if verb == "merge"]
        closed = [answer for verb, answer in done if verb == "close"]
        assert ("SIDE" in ports(graph)) == bool(merged) == bool(commits)
        assert merged == [c.id for c in commits] == [shown.merge_commit] * len(merged)
        assert str(shown.state) == ("merged" if merged else "closed")
        assert len(merged) + len(closed) >= 1
        kinds = Counter(str(event.kind) for event in all_events(graph))
        assert (kinds["merged"], kinds["closed"]) == (len(merged), len(closed))
        assert graph.verify().ok


def test_many_proposals_are_merged_into_one_branch_at_once(tmp_path):
    sources = [f"s{number}" for number in range(4)]
    uri = prepared(tmp_path, sources=sources)
    answers = at_once(uri, [("settle", ("merge", n, ADA)) for n in range(1, 5)])
    graph = opened(uri)
    assert ports(graph) == sorted(["NEWER", "OLD", *(s.upper() for s in sources)])
    assert {c.id: c.proposal.number for c in merge_commits(graph)} == {
        answer: number for number, answer in enumerate(answers, start=1)
    }
    states = [(one.number, str(one.state)) for one in graph.proposals.list("all")]
    assert states == [(n, "merged") for n in (4, 3, 2, 1)]


def on_step(graph, name, action):
    """Do something once, when a graph comes to a step."""
    waiting = [action]

    def observe(step):
        if step == name and waiting:
            waiting.pop()()

    graph._manifest.datasets.observe = observe


def test_source_that_moves_during_the_merge_is_merged_as_approved(tmp_path):
    uri = prepared(tmp_path)
    graph = opened(uri)
    proposal = graph.proposals.get(1)
    approved = proposal.head
    on_step(graph, "proposal: decided", lambda: add(opened(uri), "LATER", "side"))
    commit = proposal.merge().commit
    assert commit.proposal.source_commit_id == approved
    assert ports(opened(uri)) == ["NEWER", "OLD", "SIDE"]


def test_target_that_moves_during_the_merge_is_checked_again(tmp_path):
    uri = prepared(tmp_path, protected=False)
    graph = opened(uri)
    proposal = graph.proposals.get(1)
    on_step(graph, "proposal: decided", lambda: add(opened(uri), "DEEP", depth=500))
    assert code_of(proposal.merge) == "checks_failed"
    assert ports(opened(uri)) == ["DEEP", "NEWER", "OLD"]
    assert proposal.refresh().state == "open"


def test_rule_that_appears_during_the_merge_holds(tmp_path):
    uri = prepared(tmp_path, protected=False)
    graph = opened(uri)
    proposal = graph.proposals.get(1)
    rule = {"branches": ["main"], "require": {"approvals": 2}}
    on_step(graph, "proposal: decided", lambda: opened(uri).protection.set(rule))
    assert code_of(proposal.merge) in ("branch_protected", "review_required")
    assert ports(opened(uri)) == ["NEWER", "OLD"]


def test_proposal_that_is_closed_during_the_merge_is_not_merged(tmp_path):
    uri = prepared(tmp_path)
    graph = opened(uri)
    proposal = graph.proposals.get(1)
    on_step(graph, "proposal: decided", lambda: opened(uri).proposals.get(1).close())
    assert code_of(proposal.merge) == "proposal_not_open"
    assert ports(opened(uri)) == ["NEWER", "OLD"]
    assert opened(uri).proposals.get(1).state == "closed"


def test_review_during_the_merge_is_kept_as_after_the_merge(tmp_path):
    uri = prepared(tmp_path)
    graph = opened(uri)
    proposal = graph.proposals.get(1)

    def object_to_it():
        opened(uri, BOB).proposals.get(1).review("request_changes", "wait")

    on_step(graph, "proposal: decided", object_to_it)
    proposal.merge()
    shown = opened(uri).proposals.get(1)
    assert shown.state == "merged"
    assert [(r.verdict, r.after_merge) for r in shown.reviews] == [
        ("approve", False),
        ("request_changes", True),
    ]


# --- checks that run while others write ---------------------------------------------------------

NOTED = SCHEMA + "node Note { text: String @key }\n"
TWO_CHECKS = (
    CHECKS
    + """
query long_note() @check("notes are short") {
  match { $n: Note  $n.text = "long" }
  return { $n.id as id }
}
"""
)


def note(graph, text):
    graph.mutate(f'query q() {{ insert Note {{ text: "{text}" }} }}')


@pytest.fixture
def checked(tmp_path, monkeypatch):
    """Return a graph with a proposal, the checks that run, and what to do after each."""
    (tmp_path / "checks.gq").write_text(TWO_CHECKS)
    graph = og.init(tmp_path / "g", NOTED, actor=ADA)
    add(graph, "OLD")
    note(graph, "short")
    graph.branches.create("side")
    add(graph, "SIDE", "side")
    graph.proposals.create("side", into="main", title="side")
    ran, after, plain = [], [], merging.run_checks

    def noting(engine, snapshot, checks, **options):
        found = plain(engine, snapshot, checks, **options)
        ran.extend(check.name for check in checks)
        if after:
            after.pop(0)()
        return found

    monkeypatch.setattr(merging, "run_checks", noting)
    return opened(graph.uri), ran, after


def test_verdict_stands_unless_a_commit_touched_what_the_check_read(checked):
    graph, ran, after = checked
    after[:] = [lambda: None, lambda: add(opened(graph.uri), "NEW")]
    merged = graph.proposals.get(1).merge().commit
    assert ran == ["too_deep", "long_note", "too_deep"]
    assert ports(opened(graph.uri)) == ["NEW", "OLD", "SIDE"]
    runs = opened(graph.uri).proposals.get(1).checks
    assert [(run.name, run.commit) for run in runs] == [
        ("too_deep", merged.id),
        ("long_note", merged.id),
    ]


def test_type_that_only_a_check_reads_is_checked_again_when_it_moves(checked):
    graph, ran, after = checked
    after[:] = [lambda: None, lambda: note(opened(graph.uri), "long")]
    assert code_of(graph.proposals.get(1).merge) == "checks_failed"
    assert ran == ["too_deep", "long_note", "long_note"]
    assert ports(opened(graph.uri)) == ["OLD"]


def test_merge_keeps_the_turn_after_two_re_runs(checked):
    graph, ran, after = checked

    def disturb(number):
        return [lambda: add(opened(graph.uri), f"NEW{number}"), lambda: None]

    after[:] = [*disturb(0), disturb(1)[0], disturb(2)[0]]
    graph.proposals.get(1).merge()
    assert ran == ["too_deep", "long_note", "too_deep", "too_deep", "too_deep"]
    assert ports(opened(graph.uri)) == ["NEW0", "NEW1", "NEW2", "OLD", "SIDE"]


def test_cleanup_while_checks_run_spares_the_staged_merge(checked):
    graph, ran, after = checked

    def clean():
        other = opened(graph.uri)
        other.optimize()
        clean_at_once(other, keep=1)

    after[:] = [clean, clean]
    merged = graph.proposals.get(1).merge().commit
    assert ran[:2] == ["too_deep", "long_note"]
    fresh = opened(graph.uri)
    assert ports(fresh) == ["OLD", "SIDE"]
    assert {run.commit for run in fresh.proposals.get(1).checks} == {merged.id}
    assert fresh.verify(deep=True).ok


@pytest.mark.parametrize("seconds", [0.0, 0.005])
def test_checks_that_take_too_long_in_the_turn_change_nothing(checked, monkeypatch, seconds):
    graph, ran, after = checked
    monkeypatch.setattr(merging, "CHECK_TIMEOUT_SECONDS", seconds)
    slow = "match { $a: Port $b: Port $c: Port $a.depth + $b.depth > $c.depth + 900 }"
    checks = [StateCheck("slow", QueryCheck(f"query slow() {{ {slow} return {{ $c.id as i }} }}"))]
    graph.load({"Port": [{"code": f"C{n}", "depth": n} for n in range(99)]}, branch="side")
    after[:] = [
        lambda: add(opened(graph.uri), "NEW0"),
        lambda: add(opened(graph.uri), "NEW1"),
        lambda: add(opened(graph.uri), "NEW2"),
    ]
    before = graph.proposals.events().cursor
    assert code_of(graph.with_checks(checks).proposals.get(1).merge) == "check_contention"
    assert ran == ["slow"] * 3
    fresh = opened(graph.uri)
    assert ports(fresh) == ["NEW0", "NEW1", "NEW2", "OLD"]
    assert fresh.proposals.get(1).state == "open"
    assert fresh.proposals.events().cursor == before
    assert fresh.verify().ok
    add(fresh, "AFTER")  # the turn was given back
