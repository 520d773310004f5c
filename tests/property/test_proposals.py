"""Random sequences of operations on proposals, compared with a naive model after each."""

import random

import pytest

import omnigraph as og
from omnigraph.errors import OmniError
from tests.support.effort import EFFORT
from tests.support.naive_proposals import NaiveGraph, Refused

LONG = 5_000 if EFFORT > 1 else 150
"""Steps of one sequence; `make soak` has the time for many."""
SCHEMA = "node Port { code: String @key }\n"
SOURCES = ("a", "b", "c", "d")
ACTORS = ("act-ada", "act-bob", "act-eve")
RULE = {"branches": ["main"], "require": {"approvals": 1}}
READ = "query q() { match { $p: Port } return { $p.code as code } order { code } }"


class Story:
    """The same operations on a graph and on the model."""

    def __init__(self, path, seed):
        self.chance = random.Random(seed)
        self.graph = og.init(path, SCHEMA)
        self.model = NaiveGraph()
        self.steps = 0
        self.outcomes = {}

    def begin(self):
        """Create proposals of some branches, which the random steps go on with."""
        graph, model, actor = self.graph.as_actor(ACTORS[0]), self.model, ACTORS[0]
        for source in SOURCES[:3]:
            graph.branches.create(source)
            model.branch(source)
            graph.mutate(f'query q() {{ insert Port {{ code: "{source}" }} }}', branch=source)
            model.change(source, source, actor)
            graph.proposals.create(source, into="main", title=source)
            model.create(source, source, actor)

    def both(self, name, real, naive):
        """Do something on both; they agree on whether it is refused, and how."""
        expected = found = None
        try:
            naive()
        except Refused as refused:
            expected = str(refused)
        try:
            real()
        except OmniError as error:
            found = error.code
        assert found == expected, (self.steps, name)
        self.outcomes.setdefault(name, set()).add(found)

    def step(self):
        """Do something at random."""
        self.steps += 1
        chance, model = self.chance, self.model
        actor = chance.choice(ACTORS)
        graph = self.graph.as_actor(actor)
        source = chance.choice(SOURCES)
        number = chance.randint(max(1, len(model.proposals) - 4), len(model.proposals) + 1)

        def proposal():
            return graph.proposals.get(number)

        known = list(model.proposals[number].comments) if number in model.proposals else []
        comment = chance.choice([*known, 1])
        text, note = f"text {self.steps}", chance.choice([None, "why"])
        verdict = chance.choice(["approve", "approve", "request_changes", "comment"])
        resolved = chance.random() < 0.6
        code = f"P{self.steps}"
        write = f'query q() {{ insert Port {{ code: "{code}" }} }}'
        options = {
            "branch": (
                5,
                lambda: graph.branches.create(source),
                lambda: model.branch(source),
            ),
            "drop": (1, lambda: graph.branches.delete(source), lambda: model.drop(source)),
            "change": (
                8,
                lambda: graph.mutate(write, branch=source),
                lambda: model.change(source, code, actor),
            ),
            "change main": (
                1,
                lambda: graph.mutate(write),
                lambda: model.change("main", code, actor),
            ),
            "create": (
                8,
                lambda: graph.proposals.create(source, into="main", title=text),
                lambda: model.create(source, text, actor),
            ),
            "edit": (
                2,
                lambda: proposal().edit(title=text),
                lambda: model.edit(number, text, actor),
            ),
            "comment": (
                3,
                lambda: proposal().comment(text),
                lambda: model.comment(number, actor),
            ),
            "reply": (
                3,
                lambda: proposal().comment(text, thread=comment),
                lambda: model.comment(number, actor, comment),
            ),
            "resolve": (
                3,
                lambda: proposal().resolve(comment, resolved=resolved),
                lambda: model.resolve(number, comment, actor, resolved=resolved),
            ),
            "review": (
                8,
                lambda: proposal().review(verdict, text),
                lambda: model.review(number, verdict, actor),
            ),
            "close": (2, lambda: proposal().close(note), lambda: model.close(number, actor, note)),
            "reopen": (
                3,
                lambda: proposal().reopen(note),
                lambda: model.reopen(number, actor, note),
            ),
            "merge": (6, lambda: proposal().merge(), lambda: model.merge(number, actor)),
            "protect": (1, self.protect, lambda: setattr(model, "protected", True)),
            "unprotect": (
                1,
                lambda: graph.protection.clear(),
                lambda: setattr(model, "protected", False),
            ),
        }
        names = list(options)
        [name] = chance.choices(names, [options[name][0] for name in names])
        _, real, naive = options[name]
        self.both(name, real, naive)
        if number in model.proposals:
            self.compare(number)

    def protect(self):
        self.graph.protection.set(RULE)

    def compare(self, number):
        facts = self.graph.proposals.get(number).to_json()
        shown = {
            **facts,
            "stale": [one["stale"] for one in facts["reviews"]],
            "reviews": [(one["actor_id"], one["verdict"]) for one in facts["reviews"]],
            "comments": [(one["id"], one["thread"]) for one in facts["comments"]],
        }
        expected = self.model.shown(number)
        assert {name: shown[name] for name in expected} == expected, self.steps

    def compare_all(self):
        """Compare every list, the feed, and what the branches hold."""
        graph, model = og.open(self.graph.uri), self.model
        for state in ("open", "merged", "closed", "all"):
            listed = [one.number for one in graph.proposals.list(state)]
            assert listed == sorted(
                (n for n, p in model.proposals.items() if state in ("all", p.state)), reverse=True
            )
        for one in graph.proposals.list("all", author=ACTORS[0]):
            expected = model.shown(one.number)
            facts = one.to_json()
            names = facts.keys() & expected.keys()
            assert {n: facts[n] for n in names} == {n: expected[n] for n in names}
        feed, cursor = [], None
        while True:
            page = graph.proposals.events(cursor, limit=97)
            feed += [(e.proposal, e.seq, str(e.kind), e.actor) for e in page.events]
            cursor = page.cursor
            if page.caught_up:
                break
        assert feed == model.feed
        assert sorted(graph.branches.list()) == sorted(model.branches)
        for name, branch in model.branches.items():
            assert [row["code"] for row in graph.query(READ, at=name).rows] == sorted(branch.ports)


@pytest.mark.parametrize(("seed", "steps"), [(1, LONG), (2, 150)])
def test_random_operations_on_proposals_agree_with_a_naive_model(tmp_path, seed, steps):
    story = Story(tmp_path / "g", seed)
    story.begin()
    for step in range(steps):
        story.step()
        if step % (steps // 4) == 0:
            story.compare_all()
    story.compare_all()
    assert story.graph.verify().ok
    assert {None, "proposal_not_open"} <= story.outcomes["merge"], story.outcomes
    assert None in story.outcomes["close"], story.outcomes
    assert sum(len(codes) for codes in story.outcomes.values()) >= 24, story.outcomes
