"""Lineages: probing, older versions, and the upkeep publishers do by the way."""

import shutil
from functools import partial
from pathlib import Path

import lance
import pytest

import omnigraph.graph as og
from omnigraph.commit import lineage as module
from omnigraph.commit.lineage import MAX_TAIL_FRAGMENTS, TOO_MANY_FRAGMENTS, Lineage
from omnigraph.commit.rebase import footprints_since
from omnigraph.errors import Contention, GraphCorrupt, NotFound
from tests.support.graphs import (
    NOTE,
    PORT,
    Change,
    dump,
    insert,
    prepare,
    publish_prepared,
    upsert,
)
from tests.support.groups import publish_together
from tests.support.history import grow


def fragments(graph, branch="main"):
    return len(graph._manifest.head_state(branch)[1].handle.get_fragments())


def keys(state):
    return sorted(found.row["object_id"] for found in state.rows("object_type <> 'graph_head'"))


def test_state_is_the_same_while_nothing_is_newer(graph):
    lineage = graph._manifest.main
    assert lineage.state() is lineage.state()


def test_state_follows_other_processes(graph):
    lineage = Lineage(graph._manifest.datasets, None)
    before = lineage.state()
    made = insert(graph, NOTE, {"a": {}})
    after = lineage.state()
    assert (before.version, after.version) == (1, 2)
    assert after.head.commit_id == made.id
    assert lineage.at(1).head == before.head
    assert lineage.at(2) is after


def test_published_state_needs_no_reading_back(graph):
    insert(graph, NOTE, {"a": {}})
    known = graph._manifest.main.state()
    read = Lineage(graph._manifest.datasets, None).state()
    assert (known.version, known.head) == (read.version, read.head)


def test_row_is_found_by_its_key(graph):
    state = graph._manifest.main.state()
    assert state.row(f"commit:{state.head.commit_id}")["object_type"] == "graph_commit"
    assert state.row("commit:o'brien") is None


@pytest.mark.parametrize("branch", ["main", "side"])
def test_publishers_keep_the_number_of_fragments_small(graph, branch):
    graph.branches.create("side")
    most, commits = 0, []
    for number in range(3 * MAX_TAIL_FRAGMENTS):
        made = upsert(graph, NOTE, {"n": {"text": str(number)}}, branch=branch)
        commits.append(made.id)
        most = max(most, fragments(graph, branch))
    assert most <= MAX_TAIL_FRAGMENTS + 2
    fresh = og.open(graph.uri)
    assert [commit.id for commit in fresh.commits.list(branch)][:-1] == commits[::-1]
    assert dump(fresh, commits[7])[NOTE] == {"n": {"text": "7"}}
    assert fresh.verify().problems == []


def test_merging_fragments_loses_and_doubles_no_row(graph):
    for number in range(MAX_TAIL_FRAGMENTS):
        insert(graph, NOTE, {str(number): {}})
    lineage = graph._manifest.main
    before = keys(lineage.state())
    assert lineage.compact() == 0, "nothing to do yet"
    upsert(graph, NOTE, {"more": {}})
    assert fragments(graph) < MAX_TAIL_FRAGMENTS
    after = keys(lineage.state())
    assert len(after) == len(set(after))
    assert set(before) < set(after)


@pytest.mark.parametrize("rows", [4, 8, 16])
def test_rows_after_a_version_are_all_commits_of_a_group(tmp_path, monkeypatch, rows):
    monkeypatch.setattr(module, "PAGE_ROWS", rows)  # so that a group is longer than a page
    graph = og.init(tmp_path / "g", "node Port { code: String @key }")
    lineage = graph._manifest.main
    for _ in range(3):
        graph.insert("Port", [{"code": str(lineage.state().version)}])
    before = lineage.state().version
    codes = [f"g{number}" for number in range(6)]
    texts = [f'query i() {{ insert Port {{ code: "{code}" }} }}' for code in codes]
    publish_together(graph, *(partial(graph.mutate, text) for text in texts))
    for number in range(MAX_TAIL_FRAGMENTS + 1):  # until their fragments are merged
        assert len(footprints_since(lineage.state(), before)) == len(codes) + number
        graph.insert("Port", [{"code": str(number + 100)}])
    assert len(lineage.state().handle.get_fragments()) < MAX_TAIL_FRAGMENTS


def test_large_fragments_are_left_alone(graph, monkeypatch):
    monkeypatch.setattr(module, "BASE_FRAGMENT_ROWS", 20)
    monkeypatch.setattr(module, "MAX_TAIL_FRAGMENTS", 4)
    for number in range(40):
        upsert(graph, NOTE, {"n": {"text": str(number)}})
    sizes = [f.physical_rows for f in graph._manifest.main.state().handle.get_fragments()]
    assert sum(size >= 20 for size in sizes) >= 2
    assert sum(size < 20 for size in sizes) <= 6
    assert og.open(graph.uri).verify().problems == []


def test_merging_does_not_rewrite_a_long_history(graph):
    grow(graph, NOTE, 2_000)
    largest = max(sizes(graph).items(), key=lambda found: found[1])
    for number in range(3 * MAX_TAIL_FRAGMENTS):
        upsert(graph, NOTE, {"n": {"text": str(number)}})
    assert largest in sizes(graph).items()
    assert len(sizes(graph)) <= MAX_TAIL_FRAGMENTS + 4


def test_fragments_of_like_size_are_merged_into_larger_ones(graph):
    for number in range(12 * MAX_TAIL_FRAGMENTS):
        upsert(graph, NOTE, {"n": {"text": str(number)}})
    tiers = sorted(sizes(graph).values(), reverse=True)
    assert tiers[0] > 3 * MAX_TAIL_FRAGMENTS
    assert len(tiers) <= MAX_TAIL_FRAGMENTS + 4
    assert og.open(graph.uri).verify().problems == []


def sizes(graph):
    found = graph._manifest.main.state().handle.get_fragments()
    return {fragment.fragment_id: fragment.physical_rows for fragment in found}


@pytest.mark.parametrize("deed", ["compaction", "append", "head taken away"])
def test_manifest_others_wrote_to_still_shows_its_newest_state(graph, deed):
    for number in range(5):
        upsert(graph, NOTE, {"n": {"text": str(number)}})
    handle = graph._manifest.datasets.open("__manifest")
    if deed == "compaction":
        handle.optimize.compact_files()
    elif deed == "append":
        lance.write_dataset(handle.to_table(filter="object_type = 'schema'"), handle, mode="append")
    else:
        handle.delete("object_id = 'graph_head' AND table_version = 6")
    fresh = og.open(graph.uri)
    assert dump(fresh)[NOTE] == {"n": {"text": "4" if deed != "head taken away" else "3"}}
    assert len(fresh.commits.list()) == (6 if deed != "head taken away" else 5)


def test_manifest_without_a_head_is_corrupt(graph):
    graph._manifest.datasets.open("__manifest").delete("object_id = 'graph_head'")
    with pytest.raises(GraphCorrupt, match="the manifest has no head"):
        og.open(graph.uri)


def test_swap_that_took_long_is_looked_for_before_it_counts(graph, monkeypatch):
    monkeypatch.setattr(module, "SLOW_SWAP_SECONDS", -1.0)
    made = insert(graph, NOTE, {"a": {}})
    other = og.open(graph.uri)

    def overtake(step):
        if step == "swap: done":
            graph._manifest.datasets.observe = lambda step: None
            insert(other, NOTE, {"late": {}})

    graph._manifest.datasets.observe = overtake
    second = insert(graph, PORT, {"b": {"city": "B"}})
    history = [commit.id for commit in og.open(graph.uri).commits.list()]
    assert history[1:3] == [second.id, made.id]
    assert og.open(graph.uri).verify().problems == []


def test_swap_that_slept_while_its_lineage_was_removed_does_not_count(graph, monkeypatch):
    monkeypatch.setattr(module, "SLOW_SWAP_SECONDS", -1.0)
    branch = graph.branches.create("side")
    prepared = prepare(graph, Change("insert", NOTE, {"a": {}}), branch="side")
    folder = Path(graph.uri) / "__branches" / branch.lineage_id

    def remove(step):
        if step == "swap: new rows written":
            shutil.rmtree(folder)

    graph._manifest.datasets.observe = remove
    with pytest.raises((GraphCorrupt, NotFound)):
        publish_prepared(graph, prepared)


def test_lineage_that_was_never_read_has_nothing_to_merge(graph):
    assert Lineage(graph._manifest.datasets, None).compact() == 0


def test_merging_that_loses_a_race_is_refused_and_harmless(graph, monkeypatch):
    monkeypatch.setattr(module, "MAX_TAIL_FRAGMENTS", 100)
    for number in range(5):
        upsert(graph, NOTE, {"n": {"text": str(number)}})
    slow = og.open(graph.uri)
    slow.snapshot()
    insert(graph, NOTE, {"m": {"text": "new"}})
    monkeypatch.setattr(module, "MAX_TAIL_FRAGMENTS", 1)
    with pytest.raises(Contention):
        slow._manifest.main.compact()
    assert dump(og.open(graph.uri))[NOTE] == {"n": {"text": "4"}, "m": {"text": "new"}}


def test_publish_merges_as_well_when_maintenance_keeps_failing(graph, monkeypatch):
    monkeypatch.setattr(graph._manifest.main, "compact", lambda: 0)
    most, commits = 0, []
    for number in range(2 * TOO_MANY_FRAGMENTS):
        commits.append(upsert(graph, NOTE, {"n": {"text": str(number)}}).id)
        most = max(most, fragments(graph))
    assert most <= TOO_MANY_FRAGMENTS + 3
    fresh = og.open(graph.uri)
    assert [commit.id for commit in fresh.commits.list()][:-1] == commits[::-1]
    assert fresh.verify().problems == []


def test_lineage_that_is_gone_is_not_found(graph):
    branch = graph.branches.create("side")
    insert(graph, NOTE, {"a": {}}, branch="side")
    state = graph._manifest.lineage(branch.lineage_id).state()
    shutil.rmtree(Path(graph.uri) / "__branches" / branch.lineage_id)
    with pytest.raises(NotFound):
        state.rows("object_id IS NOT NULL")
    with pytest.raises(NotFound):
        graph._manifest.lineage(branch.lineage_id).state()


def test_lineage_that_lacks_a_file_is_corrupt(graph, tmp_path):
    for file in (tmp_path / "graph" / "__manifest" / "data").iterdir():
        file.unlink()
    with pytest.raises(GraphCorrupt, match="a file of __manifest is missing"):
        og.open(graph.uri)


def test_pages_are_read_once_with_and_without_footprints(tmp_path, monkeypatch):
    graph = og.init(tmp_path / "g", "node Note { key: String @key }")
    for number in range(5):
        graph.load({"Note": [{"key": str(number)}]})
    state, reads = og.open(tmp_path / "g")._manifest.main.state(), []
    plain = module.check_file_checksums

    def noting(*arguments):
        reads.append(arguments)
        return plain(*arguments)

    monkeypatch.setattr(module, "check_file_checksums", noting)
    pages = state.pages()
    without = [state.read_page(page) for page in pages]
    assert len(reads) == len(pages)
    whole = [state.read_page(page, footprints=True) for page in pages]
    assert len(reads) == 2 * len(pages)
    assert [table.drop_columns(["footprint"]) for table in whole] == without
    assert [state.read_page(page) for page in pages] == without
    assert [state.read_page(page, footprints=True) for page in pages] == whole
    assert len(reads) == 2 * len(pages)
    assert any(footprint for table in whole for footprint in table["footprint"].to_pylist())
