"""Verify finds every kind of damage planted, names it, and calls leftovers harmless."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

import omnigraph.graph as og
from omnigraph.commit.intent_log import IntentLog
from omnigraph.commit.manifest_rows import NewManifestRow
from omnigraph.commit.staged_commit import StagedCommit, StagedDataset, new_commit_id
from omnigraph.storage.layout import dataset_path, version_file
from tests.support import staging
from tests.support.graphs import (
    NOTE,
    SHIP,
    Change,
    delete,
    insert,
    prepare,
    publish_prepared,
    upsert,
    widen_column,
)


@pytest.fixture
def graph(graph):
    insert(graph, NOTE, {"a": {"text": "x"}, "b": {"text": "y"}})
    insert(graph, SHIP, {"s": {"name": "Aurora", "tons": 7}})
    upsert(graph, NOTE, {"a": {"text": "z"}})
    assert graph.verify().problems == []
    return graph


def damage(graph):
    """Return what a fresh process finds broken."""
    found = og.open(graph.uri, "ro").verify()
    assert not found.ok
    return [(problem.where, problem.message) for problem in found.problems]


def swap(graph, head=None, rows=(), stale=(), branch="main"):
    """Change rows of the manifest behind everybody's back."""
    state = graph._manifest.head_state(branch)[1]
    found = [state.rows(f"object_id = '{key}'")[0] for key in stale]
    new = replace(state.head, **(head or {}))
    state.lineage.swap(state, new, [row(state) for row in rows], found)


def folder(graph, table_key):
    entry = graph.snapshot().entries()[table_key]
    return Path(graph.uri) / dataset_path(table_key.partition(":")[0], *entry.key)


def publish_dataset(graph, table_key, physical, rows):
    entry = graph.snapshot().entries()[table_key]
    change = StagedDataset(table_key, *entry.key, entry.physical, physical, rows)
    staged = StagedCommit(id=new_commit_id(), operation="load", datasets=(change,))
    publish_prepared(graph, replace(prepare(graph), staged=staged))


def test_whole_graph_has_no_problems_and_is_counted(graph):
    graph.branches.create("side")
    insert(graph, NOTE, {"c": {}}, branch="side")
    graph.tags.create("old", at=graph.commits.list()[-1].id)
    found = og.open(graph.uri, "ro").verify()
    assert found.to_json() == {
        "ok": True,
        "branches": 2,
        "commits": 5,
        "versions": 7,
        "problems": [],
    }


# --- damage to data ----------------------------------------------------------------------------


def test_missing_data_file_is_found(graph):
    for file in (folder(graph, NOTE) / "data").iterdir():
        file.unlink()
    ((where, message),) = damage(graph)
    assert where == f"branch main, nodes/{folder(graph, NOTE).name}"
    assert message.startswith("version 3 lacks 2 of its files, such as data/")


def test_missing_file_of_an_unread_column_is_found(graph):
    before = set((folder(graph, SHIP) / "data").iterdir())
    widen_column(graph, SHIP, "tons", "tons_wide")
    (added,) = set((folder(graph, SHIP) / "data").iterdir()) - before
    added.unlink()
    assert [message for _, message in damage(graph)] == [
        f"version 3 lacks 1 of its files, such as data/{added.name}"
    ]


def test_missing_deletions_are_found(graph):
    shutil.rmtree(folder(graph, NOTE) / "_deletions")
    assert "lacks 1 of its files, such as _deletions/" in damage(graph)[0][1]


def test_missing_version_is_found(graph):
    entry = graph.snapshot().entries()[NOTE]
    (folder(graph, NOTE) / version_file(entry.physical)).unlink()
    ((_, message),) = damage(graph)
    assert message.startswith("version 3 cannot be read: ")


def test_missing_dataset_is_found(graph):
    shutil.rmtree(folder(graph, NOTE))
    assert damage(graph)[0][1].startswith("version 3 cannot be read: ")


@pytest.mark.parametrize("content", [b"", b"garbage" * 500])
def test_damaged_data_file_is_found(graph, content):
    for file in (folder(graph, SHIP) / "data").iterdir():
        file.write_bytes(content)
    message = f"version 2 is damaged: data/{file.name} does not match its checksum"
    assert [reported for _, reported in damage(graph)] == [message]


def test_wrong_row_count_is_found(graph):
    physical = graph.snapshot().entries()[SHIP].physical
    publish_dataset(graph, SHIP, physical, rows=5)
    assert [message for _, message in damage(graph)] == [
        "version 3 has 1 rows, the manifest says 5"
    ]


def test_id_that_stands_twice_is_found(graph):
    with graph._manifest.reading(SHIP, graph.snapshot().entries()[SHIP]) as base:
        doubled = staging.append(base, base.to_table())
    publish_dataset(graph, SHIP, int(doubled.version), rows=2)
    assert [message for _, message in damage(graph)] == ["version 3 has 2 rows but only 1 ids"]


# --- damage to history -------------------------------------------------------------------------


def test_manifest_row_that_stands_twice_is_found(graph):
    commit = graph.commits.list()[0]

    def again(state):
        return NewManifestRow(**state.row(f"commit:{commit.id}"))

    swap(graph, rows=[again])
    assert damage(graph) == [("branch main", f"manifest row commit:{commit.id} exists 2 times")]


@pytest.mark.parametrize(
    ("member", "value", "problems"),
    [
        ("generation", 1, ["the generation of commit {id} is not above those of its parents"]),
        ("datasets", [], ["the datasets that commit {id} records differ from its history"]),
    ],
)
def test_wrong_shortcut_of_a_commit_is_found(graph, member, value, problems):
    commit = graph.commits.list()[1]
    key = f"commit:{commit.id}"

    def changed(state):
        row = state.row(key)
        metadata = json.dumps({**json.loads(row["metadata"]), member: value})
        return NewManifestRow(**{**row, "metadata": metadata})

    swap(graph, rows=[changed], stale=[key])
    assert damage(graph) == [("branch main", text.format(id=commit.id)) for text in problems]


def test_head_with_another_generation_than_its_commit_is_found(graph):
    swap(graph, head={"generation": 99})
    message = "the generation of the head differs from its commit"
    assert damage(graph) == [("branch main", message)]


def test_missing_head_commit_is_found(graph):
    head = graph.snapshot().commit_id
    swap(graph, stale=[f"commit:{head}"])
    assert damage(graph) == [("branch main", f"head commit {head} is missing")]


def test_missing_commit_in_the_middle_is_found(graph):
    middle = graph.commits.list()[2].id
    swap(graph, stale=[f"commit:{middle}"])
    assert damage(graph) == [
        ("branch main", f"commit {middle} is a parent but is missing"),
        ("branch main", f"commit {middle} is missing from the history"),
    ]


@pytest.mark.parametrize("what", ["rows", "version"])
def test_tampered_head_is_found(graph, what):
    entry = graph.snapshot().entries()[SHIP]
    wrong = replace(entry, **{what: 9})
    swap(graph, head={"datasets": {**graph.snapshot().head.datasets, entry.key: wrong}})
    assert ("branch main", "the datasets of the head differ from its history") in damage(graph)


def test_head_that_forgot_a_dataset_is_found(graph):
    swap(graph, head={"datasets": {}})
    assert damage(graph) == [
        ("branch main", "the datasets of the head differ from its history"),
        ("branch main", "the datasets of the head do not match the accepted schema"),
    ]


def test_head_of_another_schema_is_found(graph):
    swap(graph, head={"schema_hash": "0" * 64})
    assert damage(graph) == [("branch main", f"accepted schema {'0' * 64} is missing")]


def test_missing_schema_is_found_also_by_a_process_that_knows_it(graph):
    address = graph.snapshot().head.schema_hash
    swap(graph, stale=[f"schema:{address}"])
    message = f"accepted schema {address} is missing"
    assert damage(graph) == [("branch main", message)]
    assert [problem.message for problem in graph.verify().problems] == [message]


def test_missing_registration_is_found(graph):
    entry = graph.snapshot().entries()[NOTE]
    swap(graph, stale=[f"table:{entry.type_id:016x}-{entry.incarnation:016x}"])
    assert damage(graph)[0] == (
        "branch main",
        f"dataset {entry.type_id:016x} is not registered",
    )


def test_missing_published_version_is_found(graph):
    entry, commit = graph.snapshot().entries()[NOTE], graph.commits.list()[0]
    identity = f"{entry.type_id:016x}-{entry.incarnation:016x}"
    swap(graph, stale=[f"version:{identity}@{commit.id}"])
    assert damage(graph) == [("branch main", "the datasets of the head differ from its history")]


def test_lost_manifest_file_is_found_by_an_open_graph(graph):
    reader = og.open(graph.uri, "ro")
    oldest = min(
        (Path(graph.uri) / "__manifest" / "data").iterdir(), key=lambda f: f.stat().st_mtime
    )
    oldest.unlink()
    assert [(p.where, p.message) for p in reader.verify().problems] == [
        ("branch main", "a file of __manifest is missing")
    ]


@pytest.mark.parametrize("branch", ["main", "side"])
def test_lost_newest_version_of_a_manifest_is_found(graph, branch):
    lineage_id = graph.branches.create("side").lineage_id
    insert(graph, NOTE, {"lost": {}}, branch=branch)
    state = graph._manifest.head_state(branch)[1]
    root = Path(graph.uri) / ("__manifest" if branch == "main" else f"__branches/{lineage_id}")
    (root / version_file(state.version)).unlink()
    message = f"manifest version {state.version} is missing: an older state is used"
    assert damage(graph) == [(f"branch {branch}", message)]


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"version": "x"}'])
def test_unreadable_version_hint_is_ignored(graph, content):
    (Path(graph.uri) / "__manifest" / "_versions" / "latest_version_hint.json").write_text(content)
    assert graph.verify().problems == []


def test_lineage_that_is_gone_is_found(graph):
    branch = graph.branches.create("side")
    insert(graph, NOTE, {"c": {}}, branch="side")
    shutil.rmtree(Path(graph.uri) / "__branches" / branch.lineage_id)
    found = damage(graph)
    assert found[0][0] == "branch side"


def test_damage_is_reported_for_the_branch_and_the_tag_that_show_it(graph):
    graph.tags.create("old")
    graph.branches.create("side")
    path = folder(graph, NOTE)
    upsert(graph, NOTE, {"a": {"text": "later"}})
    entry = graph.snapshot("old").entries()[NOTE]
    (path / version_file(entry.physical)).unlink()
    assert [where for where, _ in damage(graph)] == [
        f"branch side, nodes/{path.name}",
        f"tag old, nodes/{path.name}",
    ]


def test_tag_of_a_commit_that_is_nowhere_is_found(graph):
    first = graph.commits.list()[-2]
    graph.tags.create("old", at=first.id)
    swap(graph, stale=[f"commit:{first.id}"])
    assert "tag old" in [problem.where for problem in graph.verify().problems]


# --- leftovers ---------------------------------------------------------------------------------


def test_leftovers_are_named_and_harmless(graph):
    (Path(graph.uri) / "nodes" / "orphan" / "data").mkdir(parents=True)
    (Path(graph.uri) / "nodes" / "orphan" / "data" / "x").write_bytes(b"x")
    branch = graph.branches.create("side")
    graph.branches.delete("side")
    prepared = prepare(graph, Change("insert", NOTE, {"c": {}}))
    intent = IntentLog(graph._manifest.objects).begin("main", None, prepared.staged)
    found = og.open(graph.uri, "ro").verify()
    assert found.ok
    assert {(p.where, p.message) for p in found.problems} == {
        ("nodes/orphan", "no branch refers to this dataset"),
        (f"lineage {branch.lineage_id}", "no branch refers to this lineage"),
        (f"intent {intent.id}", "load on branch main is in progress"),
    }
    assert found.to_json()["problems"][0]["harmless"] is True


def test_branch_that_is_closed_but_named_is_harmless(graph):
    graph.branches.create("side")
    swap(graph, head={"closed": True}, branch="side")
    (problem,) = og.open(graph.uri, "ro").verify().problems
    assert (problem.where, problem.harmless) == ("branch side", True)


def test_dropped_dataset_is_not_a_leftover(graph):
    delete(graph, SHIP, ["s"])
    assert graph.verify().problems == []


def test_intent_that_cannot_be_read_is_found(graph):
    graph._manifest.objects.put("__recovery/X.json", b"{")
    assert damage(graph) == [("manifest", "intent __recovery/X.json cannot be read")]


def test_branch_deleted_during_the_check_is_not_a_problem(graph, monkeypatch):
    branch = graph.branches.create("side")
    insert(graph, NOTE, {"c": {}}, branch="side")
    lineage = graph._manifest.lineage(branch.lineage_id)
    state, rival = lineage.state, og.open(graph.uri)

    def vanish():
        monkeypatch.setattr(lineage, "state", state)
        rival.branches.delete("side")
        shutil.rmtree(Path(graph.uri) / "__branches" / branch.lineage_id)
        return state()

    monkeypatch.setattr(lineage, "state", vanish)
    assert graph.verify().ok
