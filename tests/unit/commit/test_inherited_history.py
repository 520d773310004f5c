"""Inherited history stands in other lineages, which stay for as long as a branch needs them."""

import pytest

import omnigraph.graph as og
from omnigraph.commit import branches as module
from omnigraph.errors import GraphCorrupt, NotFound
from tests.support.graphs import NOTE, clean_at_once, dump, insert, upsert


def run_cleanup(graph):
    return clean_at_once(graph, keep=1)


def text(graph, at):
    return dump(graph, at)[NOTE]["n"]["text"]


def generations(graph, count, *, delete=True):
    """Make each branch from the one before, with a commit on each; return the commits."""
    made, parent = [insert(graph, NOTE, {"n": {"text": "main"}})], "main"
    for number in range(count):
        name = f"g{number}"
        graph.branches.create(name, from_=parent)
        made.append(upsert(graph, NOTE, {"n": {"text": name}}, branch=name))
        if delete and parent != "main":
            graph.branches.delete(parent, force=True)
        parent = name
    return made


def test_lineage_of_a_branch_holds_its_own_commits_only(graph):
    insert(graph, NOTE, {"n": {"text": "main"}})
    branch = graph.branches.create("side")
    own = upsert(graph, NOTE, {"n": {"text": "side"}}, branch="side")
    rows = graph._manifest.lineage(branch.lineage_id).state().rows("object_type = 'graph_commit'")
    assert [found.row["object_id"] for found in rows] == [f"commit:{own.id}"]
    assert len(graph.commits.list("side")) == 3


def test_lineage_names_where_the_rest_of_its_history_is(graph):
    generations(graph, 3, delete=False)
    lineage_ids = [graph.branches.get(f"g{n}").lineage_id for n in range(3)]
    ancestor_lineages = [graph.branches.get(f"g{n}").ancestor_lineages for n in range(3)]
    assert ancestor_lineages == [(), (lineage_ids[0],), (lineage_ids[1], lineage_ids[0])]
    heads = [graph._manifest.head_state(f"g{n}")[1].head for n in range(3)]
    assert [head.ancestor_lineages for head in heads] == ancestor_lineages


def test_branch_that_was_never_written_to_is_passed_over(graph):
    insert(graph, NOTE, {"n": {"text": "main"}})
    for name, source in (("a", "main"), ("b", "a"), ("c", "b")):
        assert graph.branches.create(name, from_=source).ancestor_lineages == ()
    for name in ("a", "b"):
        graph.branches.delete(name, force=True)
    assert run_cleanup(graph).lineages_removed == 2
    assert graph._manifest.stored_lineages() == {graph.branches.get("c").lineage_id}
    assert text(og.open(graph.uri), "c") == "main"
    assert og.open(graph.uri).verify().problems == []


def test_old_state_of_an_unwritten_branch_is_not_a_new_state(graph):
    first = insert(graph, NOTE, {"n": {"text": "first"}})
    graph.branches.create("a")
    upsert(graph, NOTE, {"n": {"text": "own"}}, branch="a")
    made = graph.branches.create("b", from_=graph._manifest.branch("a").fork_commit)
    assert (made.parent, made.ancestor_lineages, made.fork_commit) == ("main", (), first.id)


def test_lineages_are_kept_while_a_descendant_or_a_tag_needs_them(graph):
    commits = generations(graph, 4)
    graph.tags.create("second", at=commits[2].id)
    assert run_cleanup(graph).lineages_removed == 0
    fresh = og.open(graph.uri)
    assert [c.id for c in fresh.commits.list("g3")][:5] == [c.id for c in reversed(commits)]
    assert (text(fresh, "g3"), text(fresh, "second")) == ("g3", "g1")
    assert fresh.verify().problems == []
    fresh.branches.delete("g3")
    assert run_cleanup(fresh).lineages_removed == 2
    assert text(og.open(graph.uri), "second") == "g1"
    assert og.open(graph.uri).verify().problems == []
    fresh.tags.delete("second")
    assert run_cleanup(fresh).lineages_removed == 2
    assert graph._manifest.stored_lineages() == set()


def test_commit_only_a_deleted_branch_had_is_gone_although_its_lineage_is_kept(graph):
    first, inherited = generations(graph, 1)
    graph.branches.create("child", from_="g0")
    upsert(graph, NOTE, {"n": {"text": "child"}}, branch="child")
    later = upsert(graph, NOTE, {"n": {"text": "later"}}, branch="g0")
    graph.branches.delete("g0", force=True)
    fresh = og.open(graph.uri)
    assert [c.id for c in fresh.commits.list("child")][1:3] == [inherited.id, first.id]
    assert fresh.snapshot(inherited.id).branch == "child"
    for ask in (fresh.commits.get, fresh.snapshot, lambda id_: fresh.branches.create("x", id_)):
        with pytest.raises(NotFound) as caught:
            ask(later.id)
        assert caught.value.code == "commit_not_found"


def test_many_generations_need_few_lineages(graph, monkeypatch):
    monkeypatch.setattr(module, "MAX_ANCESTOR_LINEAGES", 3)
    commits = generations(graph, 10)
    most = max(len(graph._manifest.head_state("g9")[1].head.ancestor_lineages), 1)
    assert most <= 3
    run_cleanup(graph)
    assert len(graph._manifest.stored_lineages()) <= 4
    fresh = og.open(graph.uri)
    assert [c.id for c in fresh.commits.list("g9")][:-1] == [c.id for c in reversed(commits)]
    assert fresh.commits.merge_base("main", "g9") == (commits[0].id,)
    assert fresh.snapshot(commits[4].id).commit_id == commits[4].id
    assert fresh.verify().problems == []


def test_every_state_of_many_generations_reads_until_it_is_cleaned_up(graph, monkeypatch):
    monkeypatch.setattr(module, "MAX_ANCESTOR_LINEAGES", 2)
    commits = generations(graph, 7)
    fresh = og.open(graph.uri)
    texts = [text(fresh, commit.id) for commit in commits]
    assert texts == ["main", *(f"g{n}" for n in range(7))]


def test_missing_ancestor_lineage_is_reported_as_damage(graph, tmp_path):
    generations(graph, 2)
    (lineage_id,) = graph.branches.get("g1").ancestor_lineages
    (tmp_path / "graph" / "__branches" / lineage_id).rename(tmp_path / "elsewhere")
    fresh = og.open(graph.uri)
    assert text(fresh, "g1") == "g1"
    with pytest.raises(GraphCorrupt, match=f"lineage {lineage_id} is missing"):
        fresh.commits.list("g1")
    assert [p.where for p in fresh.verify().problems if not p.harmless] == ["branch g1"]
    with pytest.raises(NotFound):
        run_cleanup(fresh)


def test_schema_row_of_a_new_lineage_is_the_one_it_came_from(graph):
    branch = graph.branches.create("side")
    key = f"schema:{graph.snapshot().head.schema_hash}"
    states = [
        graph._manifest.lineage(lineage_id).state() for lineage_id in (None, branch.lineage_id)
    ]
    main, side = (state.row(key) for state in states)
    assert main == side


def test_merge_copies_footprints_with_the_commits_it_brings(tmp_path):
    graph = og.init(tmp_path / "g", "node Note { key: String @key  text: String? }")
    graph.load({"Note": [{"key": "n"}]})
    side = graph.branches.create("side")
    for text_ in ("one", "two"):
        graph.load({"Note": [{"key": "n", "text": text_}]}, branch="side")
    stored = footprints(graph, side.lineage_id)
    og.open(tmp_path / "g").merge("side", delete_branch=True)
    assert len(stored) == 2
    assert all(stored.values())
    assert stored.items() <= footprints(graph, None).items()


def footprints(graph, lineage_id):
    """Return the footprints of the commits in a lineage."""
    state = graph._manifest.lineage(lineage_id).state()
    rows = (found.row for found in state.rows("object_type = 'graph_commit'", footprints=True))
    return {row["object_id"]: row["footprint"] for row in rows}
