"""Keys are added up across tasks: the result is that of all rows at once, however they are cut."""

import json
import random
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.cloudpickle import dumps

import omnigraph.graph as og
from omnigraph.pipeline.load import fragment_scan, key_shuffle
from omnigraph.pipeline.load.fragment_scan import DatasetFragments
from omnigraph.pipeline.load.key_shuffle import (
    ComputedContribution,
    KeyAggregation,
    KeyContribution,
    _ShufflePlan,
    bucket_numbers,
    hash_keys,
    read_tasks,
)
from omnigraph.pipeline.sources import splits
from omnigraph.storage.location import locate
from omnigraph.write.violations import ValidationFailed
from tests.support.changes import said

IDS = st.lists(st.text(max_size=30), min_size=1, max_size=50)
FEW = st.lists(st.text("ab", max_size=3), max_size=30)


def texts(*ids):
    return pa.array(ids, pa.string())


# --- hashes --------------------------------------------------------------------------------------


@given(IDS, st.integers(1, 7), st.integers(0, 5))
def test_a_bucket_depends_on_the_key_alone(ids, count, skipped):
    column = texts(*["x"] * skipped, *ids).slice(skipped)
    found = bucket_numbers(column, count).tolist()
    assert all(0 <= number < count for number in found)
    assert found == [bucket_numbers(texts(id_), count)[0] for id_ in ids]


@pytest.mark.parametrize("length", [1, 7, 8, 9, 40, 255, 256, 257, 700])
def test_every_byte_and_the_length_of_a_key_count(length):
    key = "k" * length
    others = [key[:place] + "x" + key[place + 1 :] for place in range(length)]
    hashes = hash_keys(texts(key, *others, key + "\0", key + "k")).tolist()
    assert len(set(hashes)) == length + 3


@pytest.mark.parametrize(
    "key",
    ["person-{:08d}", "{}@mail-production.example.org", "{}:tenant-production-eu", "{:x}"],
)
def test_keys_of_every_form_are_spread(key):
    numbers = bucket_numbers(texts(*(key.format(number) for number in range(10_000))), 10)
    sizes = np.bincount(numbers, minlength=10)
    assert sizes.min() > 850
    assert sizes.max() < 1150


# --- blocks --------------------------------------------------------------------------------------

NAMES = ["s", "c", "addr", "referred", "number"]
FLAGS = {name: (lambda sums, name=name: np.abs(sums[name])) for name in NAMES}


def fragments(rows):
    """Return a version of so many rows that nothing reads."""
    sizes = dict.fromkeys(range(rows // 1000000), 1000000)
    return DatasetFragments(locate("nowhere"), "nodes/x", 1, SimpleNamespace(), sizes)


def aggregation(rows=1):
    source = fragments(rows)
    contributions = [
        KeyContribution(source, ("id",), {"s": 1}),
        KeyContribution(source, ("id",), {"c": 1}, "addr"),
        KeyContribution(source, ("src",), {"referred": 1, "number": 1}),
    ]
    return KeyAggregation(contributions, NAMES, FLAGS, [ComputedContribution(None, {"number": -1})])


def tables(keys, addresses=None):
    columns = {"id": texts(*keys)}
    if addresses is not None:
        columns["addr"] = pa.array([addresses[key] for key in keys], pa.int64())
    return pa.table(columns)


def added_up(inputs, tasks, buckets, chance):
    """Return the sums of each key when tasks cut inputs, and their blocks arrive in any order."""
    plan = _ShufflePlan(
        _ShufflePlan.of([aggregation()]).sources,
        _ShufflePlan.of([aggregation()]).sinks,
        [0, buckets],
    )
    blocks = []
    for number, rows in enumerate(inputs):
        for task in range(tasks):
            some = rows.filter(pa.array([n % tasks == task for n in range(len(rows))], pa.bool_()))
            made = [batch.to_pylist() for batch in plan.cut(number, some)]
            assert made == [batch.to_pylist() for batch in plan.cut(number, some)]  # repeated
            blocks += [row for batch in made for row in batch]
    chance.shuffle(blocks)
    schema = pa.schema({"bucket": pa.int32(), "contribution": pa.int32(), "block": pa.binary()})
    found = {}
    for batch in plan.sums([pa.RecordBatch.from_pylist(blocks, schema)]):
        for row in batch.to_pylist():
            assert row["id"] not in found
            found[row["id"]] = dict(zip(NAMES, row["sums"], strict=True))
    return found


@pytest.mark.parametrize(
    "patch",
    [
        {},
        {"hash_keys": lambda keys: np.zeros(len(keys), np.uint64)},
        {"hash_keys": lambda keys: key_shuffle_hash(keys) << np.uint64(60)},
        {"BLOCK_BYTES": 1, "_BATCH_BYTES": 1, "_OUTPUT_ROWS": 2, "_CHUNK": 3},
        {"_MAX_OFFSET": 1},
    ],
    ids=["plain", "one hash", "16 hashes", "small blocks", "large keys"],
)
@given(FEW, FEW, st.sets(st.text("ab", max_size=3)), FEW, st.integers(1, 5), st.randoms())
def test_sums_are_those_of_all_rows_at_once(patch, rows, ends, committed, moved, tasks, chance):
    addresses = {key: (n << 32) + 2**60 + 1 for n, key in enumerate(sorted(committed))}
    inputs = [tables(rows), tables(sorted(committed), addresses), tables(ends), tables(moved)]
    with pytest.MonkeyPatch.context() as patched:
        for name, value in patch.items():
            patched.setattr(key_shuffle, name, value)
        found = added_up(inputs, tasks, chance.randint(1, 6), chance)
    often, left = Counter(ends), Counter(moved)
    expected = {
        key: {
            "s": rows.count(key),
            "c": int(key in committed),
            "addr": addresses.get(key, 0),
            "referred": often[key],
            "number": often[key] - left[key],
        }
        for key in {*rows, *ends, *committed, *moved}
    }
    assert found == {key: sums for key, sums in expected.items() if any(sums.values())}


key_shuffle_hash = hash_keys


def test_one_key_in_all_rows_of_a_task_is_one_entry():
    plan = _ShufflePlan.of([aggregation()])
    [batch] = plan.cut(2, tables(["hub"] * 100_000))
    [block] = batch["block"].to_pylist()
    assert len(block) < 1_000


# --- Spark ---------------------------------------------------------------------------------------

SCHEMA = """
node Person { name: String @key  age: I32?  email: String? @unique }
edge Knows: Person -> Person @card(0..40) { since: I32? }
edge Likes: Person -> Person @card(1..2)
"""


def line(**record):
    return json.dumps(record) + "\n"


def person(name, **facts):
    return line(type="Person", data={"name": name, **facts})


def knows(src, dst, type_="Knows"):
    return line(**{"edge": type_, "from": src, "to": dst})


def skewed_lines():
    """Return people and edges in any order: a hub, repeated keys far apart, missing ends."""
    made = [person(f"user.{n}@mail.example.org", age=n) for n in range(120)]
    made += [person("user.7@mail.example.org", age=700), person("user.7@mail.example.org", age=701)]
    made += [person("a", email="x@y"), person("b", email="x@y")]
    made += [knows("user.0@mail.example.org", f"user.{n}@mail.example.org") for n in range(1, 60)]
    made += [knows(f"user.{n}@mail.example.org", "user.0@mail.example.org") for n in range(1, 60)]
    made += [knows("user.1@mail.example.org", f"nobody.{n}") for n in range(3)]
    made += [knows("user.2@mail.example.org", "user.3@mail.example.org", "Likes")] * 3
    random.Random(5).shuffle(made)
    return "".join(made)


@pytest.fixture(scope="module")
def skewed(tmp_path_factory):
    """Return a file of lines that break many rules, and the verdict of one process."""
    folder = tmp_path_factory.mktemp("skewed")
    file = folder / "rows.ndjson"
    file.write_text(skewed_lines())
    return file, verdict(og.init(folder / "local", SCHEMA), file, "local")


def verdict(graph, file, engine):
    graph.load({"Person": [{"name": "user.9@mail.example.org"}]})
    with pytest.raises(ValidationFailed) as failure:
        graph.load(file, mode="append", engine=engine)
    return said(failure.value)


@pytest.mark.parametrize(("split", "piece", "bucket"), [(10**6, 10**6, 10**6), (600, 1, 20)])
def test_verdicts_do_not_depend_on_the_number_of_tasks(
    spark, skewed, tmp_path, monkeypatch, split, piece, bucket
):
    monkeypatch.setattr(splits, "SPLIT_BYTES", split)
    monkeypatch.setattr(fragment_scan, "PIECE_ROWS", piece)
    monkeypatch.setattr(key_shuffle, "SINGLE_BUCKET_ROWS", 0)
    monkeypatch.setattr(key_shuffle, "BUCKET_ROWS", bucket)
    monkeypatch.setattr(key_shuffle, "PARTITION_BUCKETS", 2)
    file, expected = skewed
    assert verdict(og.init(tmp_path / "spark", SCHEMA), file, "spark") == expected


def test_what_is_sent_to_every_task_does_not_grow_with_their_number():
    sent = []
    for rows in (10_000_000, 10_000_000_000):
        each = [aggregation(rows)] * 2
        plan = _ShufflePlan.of(each)
        tasks, read = read_tasks(plan, each)
        assert len(tasks) == 2 * 3 * rows // 1_000_000
        sent.append((len(dumps(read)), len(dumps(plan.sums)), max(len(dumps(t)) for t in tasks)))
    for few, many in zip(*sent, strict=True):
        assert many <= few + 100


def test_what_the_driver_collects_does_not_grow_with_the_number_of_tasks(
    spark, tmp_path, monkeypatch
):
    monkeypatch.setattr(key_shuffle, "SINGLE_BUCKET_ROWS", 0)
    file = tmp_path / "rows.ndjson"
    ring = [knows(f"p{n}", f"p{(n + 1) % 200}") for n in range(200)]
    file.write_text("".join([*(person(f"p{n}") for n in range(200)), *ring]))
    collected, collect = [], type(spark.range(1)).collect

    def spy(frame):
        rows = collect(frame)
        if "aggregation" in frame.columns:
            collected.append(len(rows))
        return rows

    monkeypatch.setattr(type(spark.range(1)), "collect", spy)
    for split, piece, bucket in ((10**6, 10**6, 10**6), (2_000, 1, 20)):
        monkeypatch.setattr(splits, "SPLIT_BYTES", split)
        monkeypatch.setattr(fragment_scan, "PIECE_ROWS", piece)
        monkeypatch.setattr(key_shuffle, "BUCKET_ROWS", bucket)
        graph = og.init(tmp_path / f"graph-{split}", SCHEMA.replace("1..2", "0..2"))
        graph.load(file, engine="spark")
        assert graph.snapshot().catalog
    assert collected == [0, 0]  # without a flag, no key has a row
