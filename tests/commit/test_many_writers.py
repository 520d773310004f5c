"""Eight processes write one graph at the same time; history shows whether anything was lost.

`SEED` repeats the luck of each process, though not their timing.
"""

import json
import os
import random
from collections import Counter
from itertools import pairwise

import pytest

from omnigraph.commit.history import read_commits
from omnigraph.commit.lineage import TOO_MANY_FRAGMENTS
from tests.commit.conftest import SOAK_SECONDS
from tests.support.fork_server import process_pool
from tests.support.graphs import SHIP, Change, dump, make_graph
from tests.support.operations import applied, populate
from tests.support.writers import Shift, work

WRITERS = 8


@pytest.mark.parametrize(
    ("fresh_place", "seconds", "age_floor"),
    [("local", SOAK_SECONDS or 11, 8), ("s3", SOAK_SECONDS or 4, 30)],
    indirect=["fresh_place"],
)
def test_many_writers_lose_nothing_and_double_nothing(fresh_place, seconds, age_floor, tmp_path):
    seed = int(os.environ.get("SEED", random.randrange(1 << 32)))
    print(f"SEED={seed}")
    place = fresh_place()
    first = dump(populate(make_graph(place.uri, place.options)))
    logs = [tmp_path / f"{number}.log" for number in range(WRITERS)]
    with process_pool(WRITERS) as pool:
        shifts = [
            Shift(place, str(log), number, seconds, seed + number, age_floor)
            for number, log in enumerate(logs)
        ]
        running = [pool.submit(work, shift) for shift in shifts]
        turns = [worker.result(timeout=10 * seconds + 60) for worker in running]
    attempts = [attempt for log in logs for attempt in read_log(log)]
    print(f"{sum(turns)} turns: {dict(Counter((a['what'], a['outcome']) for a in attempts))}")

    check = Check(place.open(), first, attempts)
    check.every_branch_is_one_chain_of_what_was_acknowledged()
    check.what_was_refused_is_nowhere()
    check.rows_are_what_the_commits_add_up_to()
    check.nothing_was_acknowledged_on_a_branch_after_its_deletion()
    check.upkeep_did_no_harm()


def read_log(path):
    """Return the attempts of one process; none was killed, so each has ended."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    begun = [line for line in lines if "begun" in line]
    ended = [line for line in lines if "ended" in line]
    assert len(begun) == len(ended)
    return [{**start, **end} for start, end in zip(begun, ended, strict=True)]


class Check:
    """Compare what the processes logged with what the graph contains."""

    def __init__(self, graph, first, attempts):
        self.graph = graph
        self.first = first
        self.attempts = attempts
        self.tries = {a["id"]: a for a in attempts if a["what"] == "commit"}
        self.done = {id_ for id_, a in self.tries.items() if a["outcome"] == "done"}
        self.lineage_ids = {
            name: graph.branches.get(name).lineage_id for name in graph.branches.list()
        }
        self.chains = {name: graph.commits.list(name)[::-1] for name in self.lineage_ids}

    def every_branch_is_one_chain_of_what_was_acknowledged(self):
        for name, chain in self.chains.items():
            assert not chain[0].parents
            for parent, child in pairwise(chain):
                assert child.parents == (parent.id,), f"{name}: {child.id}"
            ids = [commit.id for commit in chain]
            assert len(set(ids)) == len(ids)
            assert set(ids[2:]) <= self.done, f"{name} has commits that were not acknowledged"
            lineage_id = self.lineage_ids[name]
            ours = {id_ for id_ in self.done if self.tries[id_]["lineage_id"] == lineage_id}
            assert ours <= set(ids), f"{name} lost {sorted(ours - set(ids))}"
        assert set(read_commits([self.graph._manifest.main.state()])) == {
            commit.id for commit in self.chains["main"]
        }

    def what_was_refused_is_nowhere(self):
        refused = set(self.tries) - self.done
        for lineage_id in (None, *self.graph._manifest.stored_lineages()):
            found = set(read_commits([self.graph._manifest.lineage(lineage_id).state()]))
            assert not refused & found, sorted(refused & found)

    def rows_are_what_the_commits_add_up_to(self):
        for name, chain in self.chains.items():
            rows = self.first
            counted = rows[SHIP]["fixed"]["tons"]
            for commit in chain[2:]:
                changes = [Change(**change) for change in self.tries[commit.id]["changes"]]
                counted += any(change.table_key == SHIP for change in changes)
                rows = applied(rows, changes)
            assert dump(self.graph, name) == rows, name
            assert rows[SHIP]["fixed"]["tons"] == counted, f"{name}: an addition was lost"

    def nothing_was_acknowledged_on_a_branch_after_its_deletion(self):
        made = {
            a["lineage_id"]: a for a in self.attempts if a["what"] == "branch" and "lineage_id" in a
        }
        removals = [a for a in self.attempts if a["what"] == "unbranch" and a["outcome"] == "done"]
        assert set(self.lineage_ids.values()) <= {None, *made}
        for lineage_id in set(made) - set(self.lineage_ids.values()):
            name, born = made[lineage_id]["name"], made[lineage_id]["begun"]
            ends = [r["ended"] for r in removals if r["name"] == name and r["ended"] > born]
            assert ends, f"{name} vanished"
            late = [
                id_
                for id_ in self.done
                if self.tries[id_]["lineage_id"] == lineage_id
                and self.tries[id_]["begun"] > max(ends)
            ]
            assert not late, f"{late} were acknowledged on {name} after its deletion"

    def upkeep_did_no_harm(self):
        outcomes = Counter(
            (a["what"], a["outcome"])
            for a in self.attempts
            if a["what"] in ("cleanup", "recover", "verify")
        )
        assert {outcome for _, outcome in outcomes} == {"done"}, outcomes
        for attempt in self.attempts:
            if attempt["what"] == "cleanup":
                assert not [d for d in attempt["datasets"] if d["error"]], attempt
            if attempt["what"] == "verify":
                assert attempt["ok"], attempt["problems"]
        verification = self.graph.verify()
        assert verification.ok, verification.problems
        small = self.graph._manifest.main.state().handle.get_fragments()
        assert len(small) <= TOO_MANY_FRAGMENTS + WRITERS, "the manifest is not compacted"
