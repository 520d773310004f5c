"""Lookups in small fragments: equal to a scan at every version, and nothing is read twice."""

import random

import pyarrow as pa
import pytest

from omnigraph.storage import small_fragments, staged_writes
from omnigraph.storage.compaction import compaction_tasks, run_compaction, stage_compaction
from omnigraph.storage.partial_version import open_without_newest
from omnigraph.storage.row_lookup import ROW_ADDRESS, lookup_rows, select_rows
from omnigraph.storage.staged_writes import replace_rows, write_new_fragments
from tests.support import staging

IDS = [f"n{number}" for number in range(12)]


@pytest.fixture
def scanned(monkeypatch):
    """The numbers of rows of the fragments that were read from storage."""
    read, scan = [], small_fragments._scan

    def counted(handle, fragments, column):
        read.extend(fragment.physical_rows for fragment in fragments)
        return scan(handle, fragments, column)

    monkeypatch.setattr(small_fragments, "_scan", counted)
    return read


def by_scan(handle, column, keys, columns):
    rows = select_rows(handle, list(dict.fromkeys([*columns, column]))).to_pylist()
    wanted = [*columns, ROW_ADDRESS]
    return sorted(([row[name] for name in wanted] for row in rows if row[column] in keys), key=repr)


def assert_same(handle, keys, columns, column="id"):
    rows = lookup_rows(handle, column, pa.array(keys), columns, int(handle.count_rows()))
    found = [[row[name] for name in [*columns, ROW_ADDRESS]] for row in rows.to_pylist()]
    assert sorted(found, key=repr) == by_scan(handle, column, keys, columns)


def compacted(handle):
    results = [run_compaction(handle, task) for task in compaction_tasks(handle)]
    return stage_compaction(handle, results)[0] if results else handle


@pytest.mark.parametrize("seed", range(6))
def test_any_history_lookups_equal_a_scan_at_every_version(empty, table, datasets, seed):
    rng = random.Random(seed)
    versions = [empty]
    for _ in range(25):
        base = rng.choice(versions[-3:])  # siblings reuse the numbers of fragments
        ids = rng.sample(IDS, rng.randint(1, 4))
        rows = table({id_: (f"{id_}-{rng.random()}", None) for id_ in ids})
        match rng.choice(["upsert", "upsert", "delete", "compact", "partial"]):
            case "upsert":
                versions.append(staging.upsert(base, rows))
            case "delete":
                versions.append(staging.delete(base, ids))
            case "compact":
                versions.append(compacted(base))
            case "partial" if len(ids) > 1:
                made = staging.append(base, rows)
                assert_same(made, IDS, ["id", "text"])
                versions.append(open_without_newest(made, 1, datasets.session, None))
                assert_same(versions.pop(), IDS, ["id", "text"])
        keys = rng.sample([*IDS, "absent"], rng.randint(1, 6))
        for columns in (["id"], ["id", "text"], ["text"]):
            assert_same(versions[-1], keys, columns)
        texts = versions[-1].to_table()["text"].to_pylist()[:2]
        assert_same(versions[-1], ["none", *texts], ["id"], column="text")


def test_large_fragments_beside_small_ones_are_looked_up_too(empty, table):
    large = {f"l{number}": (None, number) for number in range(small_fragments.MAX_ROWS + 1)}
    handle = staging.append(empty, table({"a": ("x", 1)}))
    handle = staging.append(handle, table(large))
    handle = staging.append(handle, table({"b": ("y", 2)}))
    assert_same(handle, ["a", "b", "l0", f"l{small_fragments.MAX_ROWS}", "absent"], ["id", "score"])
    assert_same(handle, ["l7"], ["id"])
    assert_same(handle, ["a", "l7", "b"], ["id"])


def test_what_a_process_wrote_is_not_read_back(empty, table, scanned):
    handle = empty
    for number in range(5):
        new = write_new_fragments(table({f"w{number}": ("x", 1)}), handle)
        handle = replace_rows(handle, [], new)
        assert_same(handle, [f"w{number}", "absent"], ["id"])
    assert scanned == []


def test_each_fragment_of_another_writer_is_read_once(empty, table, scanned, monkeypatch):
    monkeypatch.setattr(staged_writes, "cache_key_columns", lambda *_: None)
    handle = staging.append(empty, table({"a": ("x", 1), "b": ("x", 1)}))
    for _ in range(3):
        assert_same(handle, ["a", "absent"], ["id"])
    assert scanned == [2]
    handle = staging.append(handle, table({"c": ("x", 1)}))
    assert_same(handle, ["a", "c"], ["id"])
    assert scanned == [2, 1]


def test_many_small_fragments_are_scanned(empty, table, monkeypatch, scanned):
    monkeypatch.setattr(small_fragments, "MAX_FRAGMENTS", 2)
    handle = empty
    for number in range(3):
        handle = staging.append(handle, table({f"m{number}": ("x", 1)}))
    assert_same(handle, ["m0", "m2"], ["id"])
    assert scanned == []
