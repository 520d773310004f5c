"""Cleanup, file by file: leftovers go, what a version needs stays, damage stops it."""

import shutil
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import lance
import pyarrow as pa
import pytest

import omnigraph.graph as og
from omnigraph.commit.intent_log import IntentLog
from omnigraph.commit.staged_commit import StagedCommit, StagedDataset, new_commit_id
from omnigraph.errors import NotFound, StorageUnavailable
from omnigraph.storage import staged_writes
from omnigraph.storage.layout import dataset_path, version_file
from tests.support.graphs import (
    NOTE,
    SHIP,
    Change,
    clean_at_once,
    dump,
    insert,
    overwrite,
    prepare,
    publish_prepared,
    upsert,
)
from tests.support.intents import age


def last_cleanup(graph, keep=1, **more):
    return clean_at_once(graph, keep=keep, **more)


def path_of(graph, table_key):
    entry = graph.snapshot().entries()[table_key]
    return dataset_path(table_key.partition(":")[0], *entry.key)


def publish_dataset(graph, table_key, handle):
    entry = graph.snapshot().entries()[table_key]
    physical = None if handle is None else int(handle.version)
    rows = 0 if handle is None else handle.count_rows()
    change = StagedDataset(table_key, *entry.key, entry.physical, physical, rows)
    staged = StagedCommit(id=new_commit_id(), operation="load", datasets=(change,))
    publish_prepared(graph, replace(prepare(graph), staged=staged))


def base_of(graph, table_key):
    entry = graph.snapshot().entries()[table_key]
    return graph._manifest.datasets.at(path_of(graph, table_key), entry.physical)


def test_dataset_nobody_knows_is_removed(graph):
    orphan = Path(graph.uri) / "edges" / "0-0" / "data"
    orphan.mkdir(parents=True)
    (orphan / "x.lance").write_bytes(b"x" * 100)
    report = sweep(graph)
    assert ("edges/0-0", 100) in [(d.type_key, d.bytes_removed) for d in report.datasets]
    assert not (orphan / "x.lance").exists()
    assert graph.verify().problems == []


def test_staged_data_nobody_published_is_removed(graph):
    insert(graph, NOTE, {"a": {"text": "x"}})
    prepared = prepare(graph, Change("insert", NOTE, {"b": {"text": "y" * 5000}}))
    (change,) = prepared.staged.datasets
    before = dump(graph)
    assert sweep(graph).bytes_removed > 100
    assert not (Path(graph.uri) / path_of(graph, NOTE) / version_file(change.physical)).exists()
    assert dump(og.open(graph.uri)) == before


def test_large_blobs_of_retained_versions_stay(tmp_path):
    graph = og.init(tmp_path / "g", "node File { content: Blob? }")
    base = base_of(graph, "node:File")
    for content in (b"old" * 100_000, b"new" * 100_000):
        rows = pa.table([["f"], lance.blob_array([content])], schema=base.schema)
        base = staged_writes.overwrite(base, rows)
        publish_dataset(graph, "node:File", base)
    blobs = lambda: list((tmp_path / "g").rglob("*.blob"))  # noqa: E731
    assert len(blobs()) == 2
    sweep(graph)
    assert len(blobs()) == 1
    handle = base_of(og.open(tmp_path / "g"), "node:File")
    assert handle.take_blobs("content", indices=[0])[0].readall() == b"new" * 100_000
    assert graph.verify().problems == []


def test_indexes_of_retained_versions_stay(graph):
    insert(graph, NOTE, {str(n): {"text": str(n)} for n in range(50)})
    base = base_of(graph, NOTE)
    index = base.create_index_uncommitted("id", "BTREE", name="by_id", fragment_ids=[0])
    operation = lance.LanceOperation.CreateIndex([index], [])
    indexed = lance.LanceDataset.commit(base, operation, read_version=base.version, detached=True)
    publish_dataset(graph, NOTE, indexed)
    sweep(graph)
    handle = base_of(og.open(graph.uri), NOTE)
    assert "ScalarIndexQuery" in handle.scanner(filter="id = '7'").explain_plan()
    assert handle.to_table(filter="id = '7'")["text"].to_pylist() == ["7"]


def test_dropped_dataset_is_removed_whole(graph):
    insert(graph, NOTE, {"a": {"text": "x"}})
    folder = Path(graph.uri) / path_of(graph, NOTE)
    publish_dataset(graph, NOTE, None)
    sweep(graph)
    assert not any(path.is_file() for path in folder.rglob("*"))


def test_foreign_reader_of_the_newest_version_is_not_disturbed(graph):
    for number in range(3):
        overwrite(graph, NOTE, {"n": {"text": str(number)}})
    sweep(graph)
    assert lance.dataset(f"{graph.uri}/{path_of(graph, NOTE)}").count_rows() == 0


def test_dataset_whose_shown_version_is_lost_is_left_alone(graph):
    for number in range(3):
        overwrite(graph, NOTE, {"n": {"text": str(number)}})
        overwrite(graph, SHIP, {"s": {"name": str(number)}})
    folder = Path(graph.uri) / path_of(graph, NOTE)
    entry = graph.snapshot().entries()[NOTE]
    (folder / version_file(entry.physical)).unlink()
    before = sorted(folder.rglob("*"))
    report = {d.type_key: d for d in sweep(graph).datasets}
    assert report[NOTE].error == "a version a branch shows is missing: nothing is removed"
    assert report[NOTE].bytes_removed == 0
    assert sorted(folder.rglob("*")) == before
    assert report[SHIP].error is None
    assert report[SHIP].old_versions_removed == 2


def test_damaged_branch_stops_everything(graph):
    branch = graph.branches.create("side")
    insert(graph, NOTE, {"a": {}}, branch="side")
    shutil.rmtree(Path(graph.uri) / "__branches" / branch.lineage_id)
    fresh = og.open(graph.uri)
    with pytest.raises(NotFound):
        sweep(fresh)


def test_version_removal_comes_before_its_data(graph, monkeypatch):
    for number in range(3):
        overwrite(graph, NOTE, {"n": {"text": str(number)}})
    deleted = []
    remove = graph._manifest.objects.delete
    monkeypatch.setattr(
        graph._manifest.objects,
        "delete",
        lambda paths: [deleted.append(path) or remove([path]) for path in paths],
    )
    sweep(graph)
    kinds = [path.endswith(".manifest") for path in deleted if path.startswith("nodes/")]
    assert kinds == sorted(kinds, reverse=True)
    assert any(kinds)
    assert not all(kinds)


def test_interrupted_cleanup_is_taken_up_by_the_next(graph, monkeypatch):
    for number in range(4):
        overwrite(graph, NOTE, {"n": {"text": str(number)}})
    before = dump(graph)
    remove, count = graph._manifest.objects.delete, []

    def failing(paths):
        for path in paths:
            count.append(path)
            if len(count) == 3:
                raise StorageUnavailable("deleting objects: storage failed")
            remove([path])

    monkeypatch.setattr(graph._manifest.objects, "delete", failing)
    report = {d.type_key: d for d in sweep(graph).datasets}
    assert report[NOTE].error == "deleting objects: storage failed"
    fresh = og.open(graph.uri)
    assert dump(fresh) == before
    assert [d.error for d in sweep(fresh).datasets] == [None] * 4
    assert fresh.verify().problems == []


def test_stale_operations_are_settled_first(graph):
    prepared = prepare(graph, Change("insert", NOTE, {"b": {}}))
    intents = IntentLog(graph._manifest.objects)
    intent = intents.begin("main", None, prepared.staged)
    age(graph, intent, timedelta(hours=1))
    sweep(graph, dry_run=True)
    assert len(intents.list()) == 1
    sweep(graph)
    assert intents.list() == []
    assert [row["recovery_kind"] for row in graph.recoveries()] == ["RolledBack"]


def test_old_manifest_versions_are_forgotten(graph):
    for number in range(5):
        upsert(graph, NOTE, {"n": {"text": str(number)}})
    versions = Path(graph.uri) / "__manifest" / "_versions"
    before = len(list(versions.glob("*.manifest")))
    sweep(graph, keep=9)
    assert len(list(versions.glob("*.manifest"))) < before
    assert len(og.open(graph.uri).commits.list()) == 6
    assert og.open(graph.uri).verify().problems == []
