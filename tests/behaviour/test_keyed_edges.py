"""Edges with a key: repeated loads, merges of branches, keys that are added, changed, removed."""

import io
import json

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import omnigraph.graph as og
from omnigraph.catalog.migration_steps import ChangeKey, RemoveConstraint
from omnigraph.changes.errors import ChangeSchemaBoundary
from omnigraph.dataset_view import DatasetView
from omnigraph.errors import VersionReclaimed
from omnigraph.lang import SchemaError
from omnigraph.merge.conflicts import MergeConflicts
from omnigraph.merge.key_changes import KeyChangeBlocked
from omnigraph.write import ValidationFailed
from tests.support.changes import read_state
from tests.support.graphs import clean_at_once

PLAIN = """
node Stop { name: String @key }
edge Link: Stop -> Stop { on: Date  metres: I32?  look: Vector(2)?  file: Blob? }
edge Beside: Stop -> Stop
"""
KEYED = PLAIN.replace("edge Link: Stop -> Stop", "edge Link: Stop -> Stop @key(src, dst, on)")
BY_ENDS = PLAIN.replace("edge Link: Stop -> Stop", "edge Link: Stop -> Stop @key(src, dst)")

STOPS = [{"name": name} for name in "abcd"]


def link(src, dst, on="2024-05-01", **values):
    return {"from": src, "to": dst, "on": on, **values}


LINKS = [
    link("a", "b", metres=5, look=[1.0, 2.0], file="base64:AAEC"),
    link("a", "b", "2024-05-02"),
    link("b", "a", metres=7),
]
IDS = ['["a","b","19844"]', '["a","b","19845"]', '["b","a","19844"]']


def make(path, schema, links=LINKS):
    graph = og.init(path, schema)
    graph.load({"Stop": STOPS, "Link": links})
    return graph


def ids(graph, at="main"):
    return sorted(read_state(graph, at)["Link"])


def ends(graph, at="main"):
    return sorted(
        (row["src"], row["dst"], row["on"]) for row in read_state(graph, at)["Link"].values()
    )


# --- loading the same edges twice ----------------------------------------------------------------


def as_lines(links):
    return "".join(
        json.dumps({"edge": "Link", "from": e["from"], "to": e["to"], "data": data_of(e)}) + "\n"
        for e in links
    ).encode()


def data_of(entity):
    return {name: value for name, value in entity.items() if name not in ("from", "to")}


def load_lines(graph, links, folder):
    return graph.load(io.BytesIO(as_lines(links)))


def load_file(graph, links, folder):
    path = folder / "links.ndjson"
    path.write_bytes(as_lines(links))
    return graph.load(path)


def load_permissive(graph, links, folder):
    return graph.load(io.BytesIO(as_lines(links)), strict=False)


def load_rows(graph, links, folder):
    return graph.load({"Link": links})


def plain_rows(links):
    return [{n: e.get(n) for n in ("from", "to", "on", "metres")} for e in links]


def load_csv(graph, links, folder):
    path = folder / "links.csv"
    pd.DataFrame(plain_rows(links)).astype({"metres": "Int64"}).to_csv(path, index=False)
    return graph.load({"edge:Link": path})


def load_parquet(graph, links, folder):
    path = folder / "links.parquet"
    pq.write_table(pa.Table.from_pylist(plain_rows(links)), path)
    return graph.load({"edge:Link": path})


def load_frame(graph, links, folder):
    return graph.load({"Link": pd.DataFrame(plain_rows(links)).astype({"metres": "Int64"})})


def load_mutation(graph, links, folder):
    inserts = " ".join(
        f'insert Link {{ from: "{e["from"]}", to: "{e["to"]}", on: date("{e["on"]}") }}'
        for e in links
    )
    return graph.mutate(f"query q() {{ {inserts} }}")


LOADERS = [
    load_lines,
    load_file,
    load_permissive,
    load_rows,
    load_csv,
    load_parquet,
    load_frame,
    load_mutation,
]


@pytest.mark.parametrize("loader", LOADERS, ids=lambda loader: loader.__name__)
def test_edges_that_are_loaded_twice_are_there_once(tmp_path, loader):
    graph = make(tmp_path / "graph", KEYED, links=[])
    assert loader(graph, LINKS, tmp_path).commit is not None
    once = list(graph.export())
    head = graph.snapshot().commit_id
    assert ids(graph) == IDS
    assert loader(graph, LINKS, tmp_path).commit is None
    assert (list(graph.export()), graph.snapshot().commit_id) == (once, head)


def test_every_loader_makes_the_same_edges(tmp_path):
    plain = [link(e["from"], e["to"], e["on"], metres=e.get("metres")) for e in LINKS]
    exports = []
    for loader in LOADERS[:-1]:
        graph = make(tmp_path / loader.__name__, KEYED, links=[])
        loader(graph, plain, tmp_path)
        exports.append(list(graph.export()))
    assert all(lines == exports[0] for lines in exports)


def test_an_export_and_an_archive_load_into_the_same_graph(tmp_path):
    graph = make(tmp_path / "graph", KEYED)
    copy = og.init(tmp_path / "copy", KEYED)
    lines = "\n".join(graph.export()).encode()
    copy.load(io.BytesIO(lines))
    assert copy.load(io.BytesIO(lines)).commit is None
    assert list(copy.export()) == list(graph.export())


def test_an_id_that_is_not_the_key_is_refused_and_the_key_itself_is_not(tmp_path):
    graph = make(tmp_path / "graph", KEYED)
    assert graph.load({"Link": [{**LINKS[2], "id": IDS[2]}]}).commit is None
    with pytest.raises(ValidationFailed) as refused:
        graph.load({"Link": [{**LINKS[2], "id": "mine"}]})
    [violation] = refused.value.violations
    assert (violation.rule, violation.id) == ("id", IDS[2])
    assert violation.message == f"id 'mine' of Link is not its key '{IDS[2]}'"


def test_ends_in_an_older_spelling_make_the_key_of_the_nodes(tmp_path):
    schema = "node Day { on: Date @key } edge Next: Day -> Day @key(src, dst)"
    graph = og.init(tmp_path / "graph", schema)
    lines = [
        {"type": "Day", "data": {"id": "1970-01-02", "on": "1970-01-02"}},
        {"type": "Day", "data": {"id": "1970-01-03", "on": "1970-01-03"}},
        {"edge": "Next", "from": "1970-01-02", "to": "1970-01-03", "data": {}},
    ]
    text = "\n".join(map(json.dumps, lines)).encode()
    for _ in range(2):
        graph.load(io.BytesIO(text), strict=False)
    assert list(read_state(graph)["Next"]) == ['["1","2"]']


# --- notes ---------------------------------------------------------------------------------------


def test_unkeyed_edges_without_ids_are_noted_when_there_are_some(tmp_path):
    graph = make(tmp_path / "graph", PLAIN, links=[])
    assert graph.load({"Link": LINKS}).notes == ()
    again = graph.load({"Link": LINKS, "Beside": [{"from": "a", "to": "b"}]})
    assert again.notes == (
        "edge Link has no key and no ids were given, so a repeated load adds the same edges "
        "again; declare `@key(src, dst)` on the type to merge them",
    )
    assert again.to_json()["notes"] == list(again.notes)
    assert len(ends(graph)) == 6
    assert graph.load({"Link": LINKS}, mode="append").notes == ()
    assert graph.load({"Link": [{"id": "x", **LINKS[0]}]}).notes == ()


def test_keyed_edges_are_never_noted(tmp_path):
    graph = make(tmp_path / "graph", KEYED)
    result = graph.load({"Link": LINKS})
    assert result.notes == ()
    assert "notes" not in result.to_json()


# --- branches ------------------------------------------------------------------------------------


def test_the_same_edge_on_both_branches_is_one_entity(tmp_path):
    graph = make(tmp_path / "graph", KEYED)
    graph.branches.create("side")
    same, ours, theirs = link("c", "d", metres=1), link("b", "c"), link("c", "a")
    graph.load({"Link": [same, ours]})
    graph.load({"Link": [same, theirs]}, branch="side")
    merged = graph.merge("side")
    assert merged.counts["edge:Link"].inserted == 1
    expected = [(e["from"], e["to"], e["on"]) for e in (*LINKS, same, ours, theirs)]
    assert ends(graph) == sorted(expected)


def test_edges_of_one_key_that_differ_are_a_conflict(tmp_path):
    graph = make(tmp_path / "graph", KEYED)
    graph.branches.create("side")
    graph.load({"Link": [link("c", "d", metres=1)]})
    graph.load({"Link": [link("c", "d", metres=2)]}, branch="side")
    with pytest.raises(MergeConflicts) as refused:
        graph.merge("side")
    [conflict] = refused.value.conflicts
    assert (conflict.kind, conflict.type, conflict.id, conflict.properties) == (
        "divergent_insert",
        "Link",
        '["c","d","19844"]',
        ("metres",),
    )


# --- adding a key --------------------------------------------------------------------------------


def test_key_of_existing_edges_gives_them_new_ids_and_keeps_everything_else(tmp_path):
    graph = make(tmp_path / "graph", PLAIN)
    before, first = read_state(graph)["Link"], graph.snapshot().commit_id
    [step] = graph.schema.plan(KEYED).steps
    assert step.describe() == (
        "change key edge Link: none -> @key(src, dst, on) (rewrites 3 edges, ids change)"
    )
    result = graph.schema.apply(KEYED)
    assert [type(step) for step in result.steps] == [ChangeKey]
    after = read_state(graph)["Link"]
    assert sorted(after) == IDS
    assert sorted(after.values(), key=repr) == sorted(before.values(), key=repr)
    assert read_state(graph, first)["Link"] == before
    assert graph.load({"Link": LINKS}).commit is None
    rows = graph.query(
        'query q() { match { $s: Stop { name: "a" } $s link $t } return { $t.name } }'
    )
    assert rows.rows == [{"t.name": "b"}]
    assert graph.verify().ok


def test_key_change_is_a_schema_boundary_of_the_feed_and_new_entities_of_a_diff(tmp_path):
    graph = make(tmp_path / "graph", PLAIN)
    old = read_state(graph)["Link"]
    first = graph.snapshot().commit_id
    commit = graph.schema.apply(KEYED).commit
    graph.load({"Link": [link("c", "d")]})
    changes = [(c.op, c.type, c.id) for c in graph.diff(first, commit.id)]
    assert changes == [
        *(("delete", "Link", id_) for id_ in sorted(old)),
        *(("insert", "Link", id_) for id_ in IDS),
    ]
    with pytest.raises(ChangeSchemaBoundary) as refused:
        graph.changes.poll(start=f"after:{first}")
    assert refused.value.details["type_name"] == "Link"
    [block] = graph.changes.poll(start=f"after:{commit.id}").blocks
    assert [(c.op, c.id) for c in block.changes] == [("insert", '["c","d","19844"]')]


def test_key_of_an_empty_type_needs_no_rewrite(tmp_path):
    graph = make(tmp_path / "graph", PLAIN, links=[])
    [step] = graph.schema.plan(BY_ENDS).steps
    assert step.describe() == "change key edge Link: none -> @key(src, dst)"
    graph.schema.apply(BY_ENDS)
    graph.schema.apply(KEYED)
    graph.load({"Link": LINKS})
    assert ids(graph) == IDS


def test_key_that_edges_share_is_refused_with_every_duplicate(tmp_path):
    graph = make(tmp_path / "graph", PLAIN, [*LINKS, link("b", "a", "2024-05-03"), link("c", "d")])
    head, before = graph.snapshot().commit_id, read_state(graph)
    for dry_run in (True, False):
        with pytest.raises(ValidationFailed) as refused:
            graph.schema.apply(BY_ENDS, dry_run=dry_run)
        assert refused.value.totals == {"unique": 2}
        shown = sorted(v.message.partition(" held")[0] for v in refused.value.violations)
        assert shown == [
            "@unique violation on Link.(src, dst): value '(a, b)'",
            "@unique violation on Link.(src, dst): value '(b, a)'",
        ]
    assert (graph.snapshot().commit_id, read_state(graph)) == (head, before)


def test_key_changes_together_with_its_properties(tmp_path):
    graph = make(tmp_path / "graph", PLAIN)
    target = """
    node Stop { name: String @key }
    edge Track: Stop -> Stop @rename_from("Link") @key(src, dst, day, length, kind) {
      day: Date @rename_from("on")
      length: I64? @rename_from("metres")
      kind: enum(rail, road) @default(rail)
      file: Blob?
    }
    edge Beside: Stop -> Stop
    """
    with pytest.raises(SchemaError):
        graph.schema.apply(target)  # a nullable property is in no key
    target = target.replace("length, kind", "kind")
    graph.schema.apply(target)
    track = read_state(graph)["Track"]
    assert sorted(track) == [
        '["a","b","19844","rail"]',
        '["a","b","19845","rail"]',
        '["b","a","19844","rail"]',
    ]
    assert track['["a","b","19844","rail"]'] == {
        "src": "a",
        "dst": "b",
        "day": "2024-05-01",
        "length": 5,
        "kind": "rail",
        "file": "base64:AAEC",
    }
    assert graph.verify().ok


def test_key_that_is_removed_leaves_ids_alone(tmp_path):
    graph = make(tmp_path / "graph", KEYED)
    before, first = read_state(graph), graph.snapshot().commit_id
    result = graph.schema.apply(PLAIN)
    assert [type(step) for step in result.steps] == [RemoveConstraint]
    assert read_state(graph) == before
    assert list(graph.diff(first, result.commit.id)) == []
    graph.load({"Link": LINKS})
    assert len(ends(graph)) == 6


# --- other branches ------------------------------------------------------------------------------


def test_key_waits_for_branches_that_changed_the_edges(tmp_path):
    graph = make(tmp_path / "graph", PLAIN)
    for name in ("idle", "busy", "other", "away"):
        graph.branches.create(name)
    graph.load({"Link": [link("c", "d")]}, branch="busy")
    graph.load({"Stop": [{"name": "e"}], "Beside": [{"from": "a", "to": "b"}]}, branch="other")
    graph.load({"Link": [link("d", "c")]}, branch="away")
    for dry_run in (True, False):
        with pytest.raises(KeyChangeBlocked) as refused:
            graph.schema.apply(KEYED, dry_run=dry_run)
        assert refused.value.branches == ("away", "busy")
        assert refused.value.code == "key_change_blocked"
    with pytest.raises(KeyChangeBlocked) as refused:
        graph.schema.apply(KEYED, branch="busy")
    assert refused.value.branches == ("away",)
    graph.merge("busy")
    graph.branches.delete("away")
    graph.schema.apply(KEYED)
    assert len(ids(graph)) == 4


def test_edges_that_maintenance_moved_are_no_change(tmp_path):
    graph = make(tmp_path / "graph", PLAIN)
    graph.load({"Link": [link("c", "d")]})
    graph.branches.create("side")
    graph.optimize(branch="side")
    graph.schema.apply(KEYED)
    assert len(ids(graph)) == 4


@pytest.mark.parametrize("moved", [False, True], ids=["fast-forward", "three-way"])
def test_key_of_a_branch_is_merged_with_its_edges(tmp_path, moved):
    graph = make(tmp_path / "graph", PLAIN)
    graph.branches.create("side")
    graph.schema.apply(KEYED, branch="side")
    graph.load({"Link": [link("c", "d")]}, branch="side")
    if moved:
        graph.load({"Stop": [{"name": "e"}], "Beside": [{"from": "a", "to": "b"}]})
    graph.merge("side")
    assert ids(graph) == [*IDS, '["c","d","19844"]']
    assert graph.load({"Link": LINKS}).commit is None
    assert graph.verify().ok
    graph.load({"Link": [link("d", "c")]}, branch="side")
    graph.merge("side")
    assert ids(graph)[-1] == '["d","c","19844"]'


def test_key_of_the_target_stays_when_a_branch_is_merged(tmp_path):
    graph = make(tmp_path / "graph", PLAIN)
    graph.branches.create("side")
    graph.load({"Stop": [{"name": "e"}]}, branch="side")
    graph.schema.apply(KEYED)
    graph.merge("side")
    assert ids(graph) == IDS
    graph.merge("main", into="side")
    assert ids(graph, "side") == IDS


@pytest.mark.parametrize("into", ["main", "side"])
def test_edges_changed_beside_a_new_key_are_a_conflict(tmp_path, into):
    graph = make(tmp_path / "graph", PLAIN)
    graph.branches.create("side")
    graph.schema.apply(KEYED)
    graph.load({"Link": [link("c", "d")]}, branch="side")
    before = read_state(graph, into)
    with pytest.raises(MergeConflicts) as refused:
        graph.merge("side" if into == "main" else "main", into=into)
    [conflict] = [c for c in refused.value.conflicts if c.kind == "schema_conflict"]
    assert "Link: one side changed its key, the other its edges" in conflict.message
    assert read_state(graph, into) == before


@pytest.mark.parametrize("rows", [[], LINKS], ids=["empty", "filled"])
def test_key_on_both_sides_merges_only_without_edges(tmp_path, rows):
    graph = make(tmp_path / "graph", PLAIN, rows)
    graph.branches.create("side")
    graph.schema.apply(KEYED)
    graph.schema.apply(KEYED, branch="side")
    if rows:
        with pytest.raises(MergeConflicts, match="both sides changed its key"):
            graph.merge("side")
        return
    graph.load({"Link": LINKS})
    graph.merge("side")
    assert ids(graph) == IDS


def test_different_keys_on_both_sides_are_a_conflict(tmp_path):
    graph = make(tmp_path / "graph", PLAIN, [])
    graph.branches.create("side")
    graph.schema.apply(KEYED)
    graph.schema.apply(BY_ENDS, branch="side")
    with pytest.raises(MergeConflicts, match="multiple @key"):
        graph.merge("side")


def test_properties_added_beside_a_new_key_are_merged_into_it(tmp_path):
    graph = make(tmp_path / "graph", PLAIN)
    graph.branches.create("side")
    graph.schema.apply(PLAIN.replace("metres: I32?", "metres: I32?  lit: Bool?"), branch="side")
    graph.schema.apply(KEYED)
    graph.merge("side")
    assert read_state(graph)["Link"][IDS[2]] == {
        "src": "b",
        "dst": "a",
        "on": "2024-05-01",
        "metres": 7,
        "look": None,
        "file": None,
        "lit": None,
    }
    assert graph.verify().ok


def test_key_of_the_source_and_properties_of_the_target_are_a_conflict(tmp_path):
    graph = make(tmp_path / "graph", PLAIN)
    graph.branches.create("side")
    graph.schema.apply(PLAIN.replace("metres: I32?", "metres: I32?  lit: Bool?"))
    graph.schema.apply(KEYED, branch="side")
    with pytest.raises(MergeConflicts, match="one side changed its key, the other its properties"):
        graph.merge("side")


def test_commit_with_edges_of_the_former_key_is_not_picked(tmp_path):
    graph = make(tmp_path / "graph", PLAIN)
    graph.branches.create("side")
    graph.schema.apply(KEYED)
    picked = graph.load({"Link": [link("c", "d")]}, branch="side").commit
    with pytest.raises(MergeConflicts, match="one side changed its key"):
        graph.cherry_pick(picked.id)
    with pytest.raises(MergeConflicts, match="one side changed its key"):
        graph.revert(picked.id)


# --- what else may happen to rewritten edges -----------------------------------------------------


def test_edges_written_while_the_key_changes_are_rewritten_too(tmp_path):
    graph = make(tmp_path / "graph", PLAIN)
    other = og.open(graph.uri)
    late = [link("c", "d"), link("d", "c")]

    def observe(step):
        if step == "staged edge" and late:
            other.load({"Link": [late.pop()]})

    graph._manifest.datasets.observe = observe
    [step] = graph.schema.apply(KEYED).steps
    assert late == [], "the first two attempts lost a race each"
    assert step.edges == 3, "as planned first"
    assert ids(graph) == [*IDS, '["c","d","19844"]', '["d","c","19844"]']
    assert og.open(graph.uri).verify(deep=True).ok


def test_archive_with_history_has_the_edges_of_both_keys(tmp_path):
    graph = make(tmp_path / "graph", PLAIN)
    first, before = graph.snapshot().commit_id, read_state(graph)
    graph.schema.apply(KEYED)
    graph.export_archive(tmp_path / "a.tar", history=True)
    og.import_archive(tmp_path / "a.tar", tmp_path / "copy")
    copy = og.open(tmp_path / "copy")
    assert (read_state(copy, first), read_state(copy)) == (before, read_state(graph))
    assert copy.load({"Link": LINKS}).commit is None


def stored_blobs(graph):
    """Return what storage records of blobs; exports show the bytes of external ones, too."""
    snapshot = graph.snapshot()
    view = DatasetView.of(graph._manifest, snapshot, snapshot.type_of("edge:Link"))
    return [cell for batch in view.scan(["file"]) for cell in batch["file"].to_pylist()]


def test_blobs_stay_where_they_are_when_the_key_changes(tmp_path):
    outside = tmp_path / "outside.bin"
    outside.write_bytes(b"abc")
    graph = og.init(tmp_path / "graph", PLAIN, external_blobs=[tmp_path.as_uri()])
    graph.load({"Stop": STOPS})
    graph.load({"Link": [link("a", "b", file=outside.as_uri())]}, mode="overwrite")
    before = stored_blobs(graph)
    assert [cell["blob_uri"] for cell in before] == [outside.as_uri()]
    graph.schema.apply(KEYED)
    assert stored_blobs(graph) == before


def test_key_and_a_hard_drop_together_leave_nothing_of_the_property(tmp_path):
    graph = make(tmp_path / "graph", PLAIN)
    first = graph.snapshot().commit_id
    graph.schema.apply(KEYED.replace("  metres: I32?", ""), allow_data_loss=True)
    assert ids(graph) == IDS
    with pytest.raises(VersionReclaimed):
        read_state(graph, first)


def test_old_edges_are_cleaned_up_like_a_dropped_type(tmp_path):
    graph = make(tmp_path / "graph", PLAIN)
    graph.schema.apply(KEYED)
    folders = set((tmp_path / "graph" / "edges").iterdir())
    clean_at_once(graph, keep=1)
    gone = folders - set((tmp_path / "graph" / "edges").iterdir())
    assert len(gone) == 1
    assert ids(graph) == IDS
    assert graph.verify(deep=True).ok
