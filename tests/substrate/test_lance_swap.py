"""The swap: two updates of one base that touch one fragment conflict, and nothing is lost.

`storage/compare_and_swap.py` rests on it, and with it every commit, branch and tag. Each pair of
the two operations on a manifest is tried in turn, in threads and between processes.
"""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier

import lance
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from lance import LanceDataset, LanceOperation
from lance.commit import CommitConflictError

from omnigraph.errors import Contention, GraphCorrupt, NotFound
from omnigraph.storage.compare_and_swap import (
    ANCHOR_FRAGMENT,
    compare_and_swap,
    next_fragment_id,
    read_head_row,
    read_rows,
)
from omnigraph.storage.error_translation import translate_errors
from tests.support.lance_datasets import append, content, create, rows

ROUNDS = 20


@pytest.fixture
def line(tmp_path):
    """Some versions of a line of swaps."""
    handle = create(tmp_path / "d", rows(head=0, a=1))
    return change(change(handle, 1), 2)


def change(handle, number):
    """Replace the head and add a row."""
    return compare_and_swap(handle, [head_and_row(number)], ignore)


def compact(handle, number=0):
    """Merge all fragments but the anchor into one; the number is not used."""
    head = rows(head=read_head_row(handle, ["n"])["n"])
    return compare_and_swap(handle, [others(handle), head], ignore, merged=tail(handle))


def change_and_compact(handle, number):
    """Replace the head, add a row and merge all fragments but the anchor."""
    return compare_and_swap(
        handle, [others(handle), head_and_row(number)], ignore, merged=tail(handle)
    )


def head_and_row(number):
    return rows(**{"head": number, f"row{number}": number})


def tail(handle):
    return [fragment.fragment_id for fragment in handle.get_fragments()[1:]]


def others(handle):
    """Return the rows of all fragments but the anchor, heads left out."""
    with translate_errors("reading"):
        table = pa.concat_tables([f.to_table() for f in handle.get_fragments()[1:]])
    return table.filter(pc.not_equal(table["id"], "head"))


def ignore(step):
    """Look away."""


OPERATIONS = [change, compact, change_and_compact]


# commit/lineage.py compact: the head says which fragments names are in before they have numbers.
def test_new_fragments_are_numbered_in_order_from_the_greatest_there_ever_was(line):
    for _ in range(3):
        first = next_fragment_id(line)
        line = compact(line)
        assert [f.fragment_id for f in line.get_fragments()][-2:] == [first, first + 1]
        line = change(change(line, 1), 2)
        assert line.get_fragments()[-1].fragment_id == first + 3


def attempt(operation, handle, number):
    try:
        return int(operation(handle, number).version)
    except Contention:
        return None


# storage/compare_and_swap.py: the compare-and-swap itself; commit/lineage.py compact: the second
# kind.
@pytest.mark.parametrize("second", OPERATIONS)
@pytest.mark.parametrize("first", OPERATIONS)
def test_second_of_two_from_one_base_is_refused_and_changes_nothing(line, first, second):
    base = lance.dataset(line.uri)
    winner = first(line, 3)
    assert winner.version == line.version + 1
    with pytest.raises(Contention):
        second(base, 4)
    latest = lance.dataset(line.uri)
    assert latest.version == winner.version
    assert content(latest) == content(winner)
    assert change(latest, 5).version == winner.version + 1


# storage/error_translation.py: how Lance says it, for which Contention stands.
def test_refusal_is_a_commit_conflict_error_with_this_text(line):
    base = lance.dataset(line.uri)
    change(line, 3)
    with pytest.raises(Contention) as caught:
        change(base, 4)
    assert isinstance(caught.value.__cause__, CommitConflictError)
    assert "Retryable commit conflict for version" in str(caught.value.__cause__)


@pytest.mark.parametrize(
    "operations",
    [(change, change), (change, compact), (compact, change), (change, change_and_compact)],
)
def test_of_two_threads_from_one_base_exactly_one_wins(line, operations):
    barrier = Barrier(2)
    uri = line.uri

    def run(operation, number):
        handle = lance.dataset(uri)
        barrier.wait(10)
        return attempt(operation, handle, number)

    version = line.version
    with ThreadPoolExecutor(2) as pool:
        for number in range(ROUNDS):
            won = [v for v in pool.map(run, operations, (number, 100 + number)) if v is not None]
            assert won == [version + 1]
            version += 1
    assert lance.dataset(uri).version == version
    assert [v["version"] for v in lance.dataset(uri).versions()][-1] == version


def race(racer, uri, options, rounds):
    """Swap or compact from one base in every round; return the versions won."""
    won = []
    for number in range(rounds):
        handle = lance.dataset(uri, storage_options=options)
        racer.together()
        operation = [compact, change, change_and_compact, change][(racer.number + number) % 4]
        won.append(attempt(operation, handle, 1000 * (racer.number + 1) + number))
        racer.together()
    return won


def check_race(racers, line, options, rounds):
    won = racers.run(race, line.uri, options, rounds)
    winners = [[version for version in versions if version] for versions in zip(*won, strict=True)]
    assert winners == [[line.version + 1 + number] for number in range(rounds)]
    latest = lance.dataset(line.uri, storage_options=options)
    assert latest.version == line.version + rounds
    changes = {
        f"row{1000 * (racer + 1) + number}"
        for racer, versions in enumerate(won)
        for number, version in enumerate(versions)
        if version and (racer + number) % 4
    }
    assert set(content(latest)) == set(content(line)) | changes


def test_of_four_processes_from_one_base_exactly_one_wins_every_round(line, racers):
    check_race(racers, line, None, ROUNDS)


def test_of_four_processes_on_s3_exactly_one_wins_every_round(s3, racers):
    options = s3.lance_options
    line = change(create(s3.fresh(), rows(head=0, a=1), options), 1)
    check_race(racers, line, options, ROUNDS // 2)


# storage/compare_and_swap.py read_head_row: the head is the first row of the newest fragment.
def test_swapped_rows_are_the_newest_fragment_in_their_order(line):
    made = change(line, 3)
    newest = made.get_fragments()[-1]
    found = newest.to_table(with_row_address=True).to_pylist()
    assert [(row["id"], row["_rowaddr"]) for row in found] == [
        ("head", newest.fragment_id << 32),
        ("row3", (newest.fragment_id << 32) + 1),
    ]
    assert newest.fragment_id > max(f.fragment_id for f in line.get_fragments())


# storage/compare_and_swap.py read_head_row: looks at the newest fragment only, so reading a head
# costs one.
def test_merged_rows_stand_before_the_head_which_is_the_newest_fragment(line):
    made = compact(line)
    _, merged, newest = made.get_fragments()
    assert merged.to_table()["id"].to_pylist() == ["row1", "row2"]
    assert newest.to_table()["id"].to_pylist() == ["head"]
    assert merged.fragment_id > max(f.fragment_id for f in line.get_fragments())
    assert content(made) == content(line)


# storage/compare_and_swap.py swap with fragments to merge: one commit does both, and the head
# stays last.
def test_swap_that_merges_too_leaves_the_head_in_the_newest_fragment(line):
    made = change_and_compact(line, 3)
    _, merged, newest = made.get_fragments()
    assert merged.to_table()["id"].to_pylist() == ["row1", "row2"]
    assert newest.to_table()["id"].to_pylist() == ["head", "row3"]
    assert read_head_row(made, ["id", "n"]) == {"id": "head", "n": 3}


# storage/compare_and_swap.py: the anchor is fragment 0 for ever, and fragments stand in the order
# of their ids.
def test_fragments_are_listed_by_age_and_the_first_keeps_its_number(line):
    made = change(compact(change(line, 3)), 4)
    numbers = [fragment.fragment_id for fragment in made.get_fragments()]
    assert numbers == sorted(numbers)
    assert numbers[0] == ANCHOR_FRAGMENT


# storage/compare_and_swap.py, the reason for the anchor: cleanup removes the version that refuses
# a writer.
@pytest.mark.parametrize("second", OPERATIONS)
@pytest.mark.parametrize("since", [[change] * 3, [change, compact], [change, compact, change]])
def test_writer_that_slept_through_a_cleanup_is_refused_all_the_same(line, since, second):
    slept = lance.dataset(line.uri)
    content(slept)
    for number, operation in enumerate(since, start=3):
        line = operation(line, number)
    lance.dataset(line.uri).cleanup_old_versions(older_than=timedelta(0))
    assert [v["version"] for v in lance.dataset(line.uri).versions()] == [line.version]
    with pytest.raises((Contention, NotFound)):
        second(slept, 9)
    latest = lance.dataset(line.uri)
    assert (latest.version, content(latest)) == (line.version, content(line))
    assert change(latest, 10).version == line.version + 1


# storage/compare_and_swap.py: a fragment may be emptied and another be thinned in the same commit.
def test_swap_that_empties_a_fragment_removes_it(line):
    stale = read_rows(line, "id = 'row1' OR n = 2")
    first, second = sorted({row.address >> 32 for row in stale})
    made = compare_and_swap(line, [rows(head=3)], ignore, stale)
    left = {f.fragment_id: f.num_deletions for f in made.get_fragments()}
    assert second not in left
    assert left[first] == 1
    assert content(made) == {"head": 3, "a": 1}


# storage/compare_and_swap.py _commit: a writer that leaves the anchor alone is noticed, not
# silently merged.
def test_swap_over_a_foreign_append_is_noticed(line):
    base = lance.dataset(line.uri)
    append(line, rows(foreign=1))
    with pytest.raises(GraphCorrupt):
        change(base, 3)


# storage/compare_and_swap.py: why the anchor is needed; Lance rebases two updates of different
# fragments.
def test_updates_of_different_fragments_are_both_admitted(line):
    base = lance.dataset(line.uri)
    first, *_, last = line.get_fragments()
    for handle, fragment in ((line, first), (base, last)):
        operation = LanceOperation.Update(removed_fragment_ids=[fragment.fragment_id])
        LanceDataset.commit(handle, operation, read_version=handle.version, max_retries=0)
    assert lance.dataset(line.uri).version == line.version + 2
