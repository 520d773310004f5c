"""Histories of entities agree with the differences between all consecutive commits.

Random changes of four branches: mutations, loads, groups, merges, reverts, cherry-picks, renames,
maintenance, deleted branches. `SEED` repeats a sequence.
"""

import os
import random
import re
from contextlib import suppress
from functools import partial

import pytest

import omnigraph.graph as og
from omnigraph.errors import AlreadyExists, InvalidInput, NotFound, VersionReclaimed
from omnigraph.lang import SchemaError
from omnigraph.merge.conflicts import MergeConflicts
from omnigraph.write import ValidationFailed
from tests.support.effort import examples
from tests.support.graphs import clean_at_once
from tests.support.groups import make_together
from tests.support.naive_history import NaiveHistory, describe

SCHEMA = """
node Port { code: String @key  depth: I64?  name: String? }
edge Route: Port -> Port @key(src, dst) { km: I64? }
"""
BRANCHES = ("one", "two", "three")
CODES = ("a", "b", "c")
LINKS = ('["a","b"]', '["b","c"]')
SEEDS = [int(os.environ["SEED"])] if os.environ.get("SEED") else range(2, 2 + examples(3))
STEPS = 40
REFUSALS = InvalidInput, NotFound, AlreadyExists, ValidationFailed, SchemaError, MergeConflicts
"""Changes that do not apply to a state."""


class RandomGraph:
    """A graph that is changed at random."""

    def __init__(self, path, seed, *, merging=False):
        self.graph = og.init(path, SCHEMA)
        self.merging = merging
        self.chance = random.Random(seed)
        self.renames = 0
        ports = [{"code": code, "depth": 0, "name": code} for code in CODES]
        self.graph.load({"Port": ports, "Route": [{"from": "a", "to": "b"}]})
        for name in BRANCHES:
            self.graph.branches.create(name)

    def step(self):
        """Make one change; what does not apply is refused and changes nothing."""
        steps = (
            *([self.load] * 5),
            *([self.mutate] * 8),
            *([self.link] * 2),
            *([self.merge] * 9),
            *([self.branch] * 3),
            *(self.group, self.group, self.overwrite, self.pick, self.revert),
            *(self.delete, self.rename, self.widen, self.optimize, self.delete_branch),
        )
        if self.merging:
            steps = (*([self.mutate] * 6), *([self.merge] * 8), self.load, self.delete)
        with suppress(*REFUSALS):
            self.chance.choice(steps)()

    @property
    def some_branch(self):
        return self.chance.choice(self.graph.branches.list())

    def names(self, branch):
        """Return the current names of the node type, its properties, and the edge type."""
        schema = self.graph.snapshot(branch).schema
        [node], [edge] = schema.catalog.nodes, schema.catalog.edges
        type_ = schema.find("node", node)
        code, depth, name = sorted(type_.property_ids, key=type_.property_ids.get)[:3]
        return node, code, depth, name, edge

    def row(self, branch):
        node, code, depth, name, _ = self.names(branch)
        values = {depth: self.chance.choice((1, 2, 3, None)), name: self.chance.choice("xyz")}
        return node, {code: self.chance.choice(CODES), **values}

    def load(self):
        branch = self.some_branch
        node, row = self.row(branch)
        if self.chance.random() < 0.4:
            row.popitem()
        partial = self.chance.random() < 0.5
        self.graph.load({node: [row]}, branch=branch, partial=partial)

    def overwrite(self):
        branch = self.some_branch
        node, row = self.row(branch)
        self.graph.load({node: [row]}, mode="overwrite", branch=branch)

    def mutate(self):
        branch = self.some_branch
        node, code, depth, name, _ = self.names(branch)
        which = self.chance.choice((depth, name))
        value = self.chance.choice((1, 2)) if which == depth else f'"{self.chance.choice("pq")}"'
        target = self.chance.choice(CODES)
        self.graph.mutate(
            f'query m() {{ update {node} set {{ {which}: {value} }} where {code} = "{target}" }}',
            branch=branch,
        )

    def delete(self):
        branch = self.some_branch
        node, code, *_ = self.names(branch)
        target = self.chance.choice(CODES)
        self.graph.mutate(f'query d() {{ delete {node} where {code} = "{target}" }}', branch=branch)

    def link(self):
        branch = self.some_branch
        *_, edge = self.names(branch)
        src, dst = self.chance.choice((("a", "b"), ("b", "c")))
        row = {"from": src, "to": dst, "km": self.chance.choice((1, 2))}
        self.graph.load({edge: [row]}, branch=branch)

    def group(self):
        rows = [self.row("main") for _ in range(3)]
        changes = [partial(self.graph.load, {node: [row]}) for node, row in rows]
        make_together(self.graph, *changes)

    def merge(self):
        branches = self.graph.branches.list()
        source, target = self.chance.sample(branches, 2) if len(branches) > 1 else branches * 2
        resolve = self.chance.choice(("source", "target", "target"))
        self.graph.merge(source, into=target, resolve=resolve)

    def branch(self):
        name = self.chance.choice(BRANCHES)
        self.graph.branches.create(name, from_=self.some_branch)

    def delete_branch(self):
        self.graph.branches.delete(self.chance.choice(BRANCHES), force=True)

    def some_commit(self):
        return self.chance.choice(self.graph.commits.list(self.some_branch, limit=8)).id

    def pick(self):
        self.graph.cherry_pick(self.some_commit(), branch=self.some_branch, resolve="source")

    def revert(self):
        self.graph.revert(self.some_commit(), branch=self.some_branch, resolve="source")

    def rename(self):
        node, _, depth, _, _ = self.names("main")
        self.renames += 1
        text = re.sub(r' @rename_from\("\w+"\)', "", self.graph.schema.source)
        if self.chance.random() < 0.5:
            new = f"Port{self.renames}"
            text = text.replace(f"node {node}", f'node {new} @rename_from("{node}")')
            text = text.replace(f"{node} -> {node}", f"{new} -> {new}")
        else:
            text = text.replace(f"{depth}: I64?", f'd{self.renames}: I64? @rename_from("{depth}")')
        self.graph.schema.apply(text)

    def widen(self):
        self.renames += 1
        text = re.sub(r' @rename_from\("\w+"\)', "", self.graph.schema.source)
        place = text.index("}")
        self.graph.schema.apply(f"{text[:place]} n{self.renames}: I64?\n{text[place:]}")

    def optimize(self):
        self.graph.optimize(branch=self.some_branch)


def types_and_ids(graph, branch):
    for type_ in graph.snapshot(branch).types():
        yield from ((type_, id_) for id_ in (CODES if type_.kind == "node" else LINKS))


def listed(history):
    return [(entry.commit.id, *describe(entry)) for entry in history]


@pytest.mark.parametrize("merging", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_history_and_blame_agree_with_the_differences_of_all_commits(tmp_path, seed, merging):
    changed = RandomGraph(tmp_path / "g", seed, merging=merging)
    for _ in range(STEPS):
        changed.step()
    graph = og.open(tmp_path / "g")
    naive, expected, origins = NaiveHistory(graph), {}, {}
    for branch in graph.branches.list():
        for type_, id_ in types_and_ids(graph, branch):
            key = (branch, type_.entity, id_)
            expected[key] = naive.history(branch, type_, id_)
            history = graph.history(type_.entity, id_, branch)
            assert history.unknown_before == ()
            assert listed(history) == expected[key], key
            assert listed(graph.history(type_.entity, id_, branch, limit=2)) == expected[key][:2]
            if graph.entity_at(type_.entity, id_, branch) is None:
                with pytest.raises(NotFound):
                    graph.blame(type_.entity, id_, branch)
            else:
                origins[key] = naive.blame(branch, type_, id_)
                blame = graph.blame(type_.entity, id_, branch)
                assert {name: origin.commit_id for name, origin in blame.items()} == origins[key]
    clean_at_once(graph, keep=changed.chance.choice((1, 2, 4, 8)))
    graph = og.open(tmp_path / "g")
    for key, entries in expected.items():
        check_cut_history(graph, naive, key, entries)
    for key, commits in origins.items():
        check_cut_blame(graph, naive, key, commits)


def check_cut_history(graph, naive, key, entries):
    """Check that all is known but what may have happened before the commits that are named."""
    branch, type_name, id_ = key
    history = graph.history(type_name, id_, branch)
    cut = {c.id for commit_id in history.unknown_before for c in naive.log(commit_id)}
    found = listed(history)
    merged = {c for c in history.unknown_before if len(naive.commit(c).parents) == 2}
    assert [e for e in found if e in entries or e[0] not in merged] == [
        e for e in entries if e in found
    ]
    assert {entry[0] for entry in entries if entry not in found} <= cut, key


def check_cut_blame(graph, naive, key, commits):
    branch, type_name, id_ = key
    blame = graph.blame(type_name, id_, branch)
    assert blame.keys() == commits.keys()
    for name, origin in blame.items():
        if origin.unknown_before is None:
            assert origin.commit_id == commits[name]
        else:
            cut = {commit.id for commit in naive.log(origin.unknown_before)}
            assert commits[name] in cut, (key, name)


def test_state_that_was_cleaned_up_has_no_history(tmp_path):
    graph = og.init(tmp_path / "g", SCHEMA)
    first = graph.load({"Port": [{"code": "a"}]}).commit
    graph.load({"Port": [{"code": "b"}]})
    clean_at_once(graph, keep=1)
    with pytest.raises(VersionReclaimed):
        og.open(tmp_path / "g").history("Port", "a", first.id)
