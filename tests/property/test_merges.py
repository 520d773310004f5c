"""Random histories with branches and merges agree with a model that is nothing but dictionaries.

Branches also come to have properties of their own, which merges bring together.

`SOAK_SECONDS` asks for more, with new luck each time; `SEED` repeats it.
"""

import json
import os
import random
import time
from dataclasses import dataclass

import pytest

import omnigraph.graph as og
from omnigraph.merge.conflicts import MergeConflicts
from tests.support.effort import examples

SOAK_SECONDS = int(os.environ.get("SOAK_SECONDS", "0"))
SEED = os.environ.get("SEED")
RUNS = examples(4)
STEPS = 24
SCHEMA = """
node P { k: String @key  a: I64?  b: String?  tags: [String]? %s }
edge E: P -> P { w: F64? }
"""
KEYS, EDGES = [f"p{n}" for n in range(5)], [f"e{n}" for n in range(4)]
VALUES = {"a": (None, 0, 1), "b": (None, "", "x"), "tags": (None, [], ["t"])}


@dataclass(frozen=True)
class Commit:
    """A state and the commits it was made from.

    `added` are the properties nodes came to have; one that is null stands in no state.
    """

    state: dict
    parents: tuple["Commit", ...] = ()
    id: str | None = None
    added: frozenset = frozenset()

    def __hash__(self):
        return id(self)

    def __eq__(self, other):
        return self is other


def ancestors(commit):
    found, left = {commit}, [commit]
    while left:
        for parent in left.pop().parents:
            if parent not in found:
                found.add(parent)
                left.append(parent)
    return found


def bases(one, other):
    common = ancestors(one) & ancestors(other)
    return [c for c in common if not any(c in ancestors(d) - {d} for d in common if d is not c)]


UNDECIDED = object()


def combine(base, source, target, *, strict=False):
    """Return one entity made of three states; UNDECIDED when they do not go together."""
    if source == target or (base is not UNDECIDED and source == base):
        return target
    if base is not UNDECIDED and target == base:
        return source
    if strict or base in (UNDECIDED, None) or None in (source, target):
        return UNDECIDED
    made = {}
    for name in {*base, *source, *target}:
        sides = (side.get(name) for side in (base, source, target))
        found = combine(*sides, strict=True)
        if found is UNDECIDED:
            return UNDECIDED
        made[name] = found
    return sparse(made)


def sparse(values):
    """Leave out added properties that are null: an entity without them is the same."""
    return {k: v for k, v in values.items() if v is not None or not k.startswith("x")}


def base_of(found, key, all_bases):
    """Return an entity as the best common ancestors together have it."""
    value = found.state.get(key)
    for other in all_bases:
        if other is found:
            continue
        older = bases(found, other)
        root = base_of(older[0], key, older) if older else UNDECIDED
        value = combine(root, value, other.state.get(key), strict=True)
        if value is UNDECIDED:
            return UNDECIDED
    return value


def merged(source, target):
    """Return the merged state, or the ids of what does not go together."""
    roots = sorted(bases(source, target), key=lambda c: sorted(map(repr, c.state.items())))
    return brought(roots, source, target)


def brought(roots, source, target):
    """Return the target with what the source changed since its roots, or what is in the way."""
    state, torn = {}, set()
    for key in {*source.state, *target.state, *(k for r in roots for k in r.state)}:
        base = base_of(roots[0], key, roots)
        found = combine(base, source.state.get(key), target.state.get(key))
        if found is UNDECIDED:
            torn.add(key[1])
        elif found is not None:
            state[key] = found
    if torn:
        return None, torn
    nodes = {key[1] for key in state if key[0] == "P"}
    orphans = {k[1] for k, v in state.items() if k[0] == "E" and not {v["src"], v["dst"]} <= nodes}
    return (None, orphans) if orphans else (state, set())


class World:
    """A graph and what it should hold, branch by branch."""

    def __init__(self, folder, chance):
        self.chance = chance
        self.graph = og.init(folder, SCHEMA % "")
        self.heads = {"main": Commit({})}
        self.migrations = 0

    def read(self, at):
        rows = {}
        for line in self.graph.export(at):
            row = json.loads(line)
            name = row.get("type") or row["edge"]
            data = dict(row["data"])
            if name == "E":
                data |= {"src": row["from"], "dst": row["to"]}
            id_ = data.pop("id")
            rows[name, id_] = sparse({k: v for k, v in data.items() if k != "k"})
        return rows

    def step(self):
        branch = self.chance.choice(sorted(self.heads))
        action = self.chance.choice(
            ["put"] * 5
            + ["remove"] * 2
            + ["fork", "merge", "merge", "optimize", "revert", "pick", "migrate"]
        )
        getattr(self, action)(branch)

    def put(self, branch):
        state = dict(self.heads[branch].state)
        lines = {}
        for _ in range(self.chance.randint(1, 3)):
            nodes = sorted(key[1] for key in state if key[0] == "P")
            if nodes and self.chance.random() < 0.4:
                ends = {"src": self.chance.choice(nodes), "dst": self.chance.choice(nodes)}
                id_, w = self.chance.choice(EDGES), self.chance.choice((None, 0.5, -0.0))
                state["E", id_] = {"w": w, **ends}
                data = {"id": id_, "w": w}
                line = {"edge": "E", "from": ends["src"], "to": ends["dst"], "data": data}
                lines["E", id_] = line
            else:
                key = self.chance.choice(KEYS)
                values = {name: self.chance.choice(pool) for name, pool in VALUES.items()}
                added = sorted(self.heads[branch].added)
                values |= {name: self.chance.choice((None, 0, 1)) for name in added}
                state["P", key] = sparse(values)
                lines["P", key] = {"type": "P", "data": {"k": key, **values}}
        text = "\n".join(json.dumps(line) for line in lines.values())
        commit = self.graph.load(text.encode(), branch=branch).commit
        if commit is None:
            assert state == self.heads[branch].state, "a load that changes something is a commit"
        else:
            self.follow(branch, state, commit.id)

    def follow(self, branch, state, id_, *merged):
        """Note that a commit was made."""
        head = self.heads[branch]
        added = head.added.union(*(commit.added for commit in merged))
        self.heads[branch] = Commit(state, (head, *merged), id_, added)

    def migrate(self, branch):
        """Add a property of a name no other branch gives."""
        head = self.heads[branch]
        self.migrations += 1
        added = head.added | {f"x{self.migrations}"}
        text = SCHEMA % " ".join(f"{name}: I64?" for name in sorted(added))
        assert self.graph.schema.apply(text, branch=branch).applied
        self.heads[branch] = Commit(head.state, (head,), None, added)

    def remove(self, branch):
        state = dict(self.heads[branch].state)
        if not state:
            return
        kind, id_ = self.chance.choice(sorted(state))
        field = "k" if kind == "P" else "id"
        text = f'query q() {{ delete {kind} where {field} = "{id_}" }}'
        made = self.graph.mutate(text, branch=branch).commit
        del state[kind, id_]
        if kind == "P":
            state = {
                k: v for k, v in state.items() if k[0] == "P" or id_ not in (v["src"], v["dst"])
            }
        self.follow(branch, state, made.id)

    def fork(self, branch):
        if len(self.heads) < 4:
            name = f"b{len(self.heads)}"
            self.graph.branches.create(name, from_=branch)
            self.heads[name] = self.heads[branch]

    def optimize(self, branch):
        if self.graph.optimize(branch=branch).commit is not None:
            self.follow(branch, self.heads[branch].state, None)

    def merge(self, branch):
        others = sorted(set(self.heads) - {branch})
        if not others:
            return
        other = self.chance.choice(others)
        source, target = self.heads[other], self.heads[branch]
        if source in ancestors(target):
            assert self.graph.merge(other, into=branch).outcome == "already_up_to_date"
            return
        state, torn = merged(source, target)
        if state is None:
            with pytest.raises(MergeConflicts) as caught:
                self.graph.merge(other, into=branch)
            assert {conflict.id for conflict in caught.value.conflicts} == torn
            return
        result = self.graph.merge(other, into=branch)
        assert result.outcome == ("fast_forward" if target in ancestors(source) else "merged")
        self.follow(branch, state, result.commit.id, source)

    def revert(self, branch):
        head = self.heads[branch]
        if head.id is not None:
            self._transplant(branch, self.graph.revert, head, head.parents[0])

    def pick(self, branch):
        other = self.heads[self.chance.choice(sorted(self.heads))]
        if other.id is not None:
            self._transplant(branch, self.graph.cherry_pick, other.parents[0], other)

    def _transplant(self, branch, act, before, after):
        """Do what happened between two states."""
        target, commit = self.heads[branch], before if act == self.graph.revert else after
        if not before.added == after.added == target.added:
            return
        state, torn = brought([before], after, target)
        if state is None:
            with pytest.raises(MergeConflicts) as caught:
                act(commit.id, branch=branch)
            assert {conflict.id for conflict in caught.value.conflicts} == torn
            return
        made = act(commit.id, branch=branch).commit
        assert (made is None) == (state == target.state)
        if made is not None:
            self.follow(branch, state, made.id)

    def check(self):
        for branch, head in self.heads.items():
            assert self.read(branch) == head.state, branch
        assert [p for p in self.graph.verify().problems if not p.harmless] == []


def run(folder, seed):
    world = World(folder, random.Random(seed))
    for _ in range(STEPS):
        world.step()
        world.check()


def seeds():
    if SEED is not None:
        return [int(SEED)]
    return range(RUNS)


@pytest.mark.parametrize("seed", seeds())
def test_a_history_with_merges(tmp_path, seed):
    run(tmp_path / "graph", seed)


@pytest.mark.parametrize("seed", range(3))
def test_merges_of_different_entities_commute(tmp_path, seed):
    chance = random.Random(seed)
    world = World(tmp_path / "graph", chance)
    for _ in range(4):
        world.put("main")
    keys = chance.sample(KEYS, len(KEYS))
    for name, some in (("left", keys[:2]), ("right", keys[2:])):
        world.graph.branches.create(name)
        people = [{"k": key, "a": chance.choice((7, 8)), "b": name} for key in some]
        world.graph.load({"P": people}, branch=name)
    for order in (("left", "right"), ("right", "left")):
        name = "-then-".join(order)
        world.graph.branches.create(name)
        for branch in order:
            world.graph.merge(branch, into=name)
    assert world.read("left-then-right") == world.read("right-then-left")
    before = world.read("left-then-right")
    assert world.graph.merge("left", into="left-then-right").outcome == "already_up_to_date"
    world.graph.branches.create("twin", from_="left-then-right")
    world.graph.merge("right-then-left", into="twin")
    assert world.read("twin") == before


@pytest.mark.skipif(not SOAK_SECONDS, reason="only a soak goes on")
def test_more_histories(tmp_path):
    end = time.monotonic() + SOAK_SECONDS
    number = 0
    while time.monotonic() < end:
        seed = random.randrange(10**9)
        print(f"SEED={seed}")
        run(tmp_path / str(number), seed)
        number += 1
