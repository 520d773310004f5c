import json
import tempfile
from pathlib import Path

import pyarrow as pa
import pytest

import omnigraph.graph as og
from omnigraph.commit.publish import publish
from omnigraph.commit.staged_commit import StagedCommit, StagedSchema, new_commit_id
from omnigraph.errors import (
    ExpectedVersionMismatch,
    InvalidInput,
    NotFound,
    SchemaMoved,
    StorageUnavailable,
)
from omnigraph.storage import staged_writes
from omnigraph.write import KeyConflict, ValidationFailed
from omnigraph.write.progress import Progress
from tests.support.load_fixtures import SCHEMA, all_rows, ndjson, thing


@pytest.fixture
def graph(tmp_path):
    return og.init(tmp_path / "graph", SCHEMA)


@pytest.fixture
def spills(tmp_path, monkeypatch):
    """The folder in which loads put what does not fit memory."""
    folder = tmp_path / "spills"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def edge(src, dst, **data):
    return {"edge": "Near", "from": src, "to": dst, "data": data}


def slugs(graph, at="main"):
    return [row["slug"] for row in all_rows(graph, "node:Thing", at)]


def reported(caught):
    return [str(violation) for violation in caught.value.violations]


# --- what a load says it did -------------------------------------------------------------------


def test_load_is_one_commit_and_says_what_it_did(graph):
    done = graph.as_actor("ann").load(
        ndjson(edge("a", "b"), thing("a"), thing("b"), {"type": "Note", "data": {"text": "x"}}),
        message="first",
    )
    [commit, _] = graph.commits.list()
    assert commit == done.commit
    assert (commit.operation, commit.message, commit.actor) == ("load", "first", "ann")
    assert {key: counts.inserted for key, counts in commit.counts.items()} == {
        "node:Note": 1,
        "node:Thing": 2,
        "edge:Near": 1,
    }
    assert done.to_json() == {
        "branch": "main",
        "base_branch": None,
        "branch_created": False,
        "mode": "merge",
        "nodes": [{"name": "Note", "entities_loaded": 1}, {"name": "Thing", "entities_loaded": 2}],
        "edges": [{"name": "Near", "entities_loaded": 1}],
        "total_entities": 4,
        "actor_id": "ann",
        "commit": commit.to_json(),
    }


def test_load_of_nothing_is_a_commit_too(graph):
    before = graph.snapshot().commit_id
    done = graph.load(b"")
    assert done.total == 0
    assert done.commit.parents == (before,)
    assert done.commit.counts == {}


def test_several_files_are_one_commit(graph, tmp_path):
    paths = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    for path in paths:
        path.write_bytes(ndjson(thing(path.stem)))
    assert graph.load([str(paths[0]), paths[1]]).nodes == {"Thing": 2}
    assert slugs(graph) == ["a", "b"]
    assert len(graph.commits.list()) == 2


def test_problems_name_the_file_they_are_in(graph, tmp_path):
    paths = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    for path in paths:
        path.write_bytes(ndjson(thing("a"), "{"))
    with pytest.raises(ValidationFailed) as caught:
        graph.load(paths)
    lines = [text.partition(": ")[0] for text in reported(caught)]
    assert lines == [f"{paths[0]}, line 2", f"{paths[1]}, line 1", f"{paths[1]}, line 2"]
    assert caught.value.violations[0].to_json()["source"] == {"file": str(paths[0]), "line": 2}


def test_rows_of_one_type_can_be_inserted(graph):
    done = graph.insert("Thing", [{"slug": "a"}])
    assert (done.mode, done.nodes) == ("append", {"Thing": 1})
    with pytest.raises(KeyConflict):
        graph.insert("Thing", [{"slug": "a"}])
    graph.insert("Thing", [{"slug": "a", "small": 2}], mode="merge")
    assert [row["small"] for row in all_rows(graph, "node:Thing")] == [2]


# --- modes -------------------------------------------------------------------------------------


def test_append_refuses_what_exists_and_changes_nothing(graph):
    graph.load(ndjson(thing("a", small=1)))
    with pytest.raises(KeyConflict) as caught:
        graph.load(ndjson(thing("b"), thing("a", small=2)), mode="append")
    assert reported(caught) == ["line 2: node Thing 'a' exists already"]
    assert caught.value.details["entity_id"] == "a"
    assert [(r["slug"], r["small"]) for r in all_rows(graph, "node:Thing")] == [("a", 1)]


def test_merge_replaces_whole_entities(graph):
    graph.load(ndjson(thing("a", small=1, title="x"), thing("b", small=1)))
    graph.load(ndjson(thing("a", small=2), thing("c")))
    rows = [(r["slug"], r["small"], r["title"]) for r in all_rows(graph, "node:Thing")]
    assert rows == [("a", 2, None), ("b", 1, None), ("c", None, None)]


def test_last_line_wins_for_ids_but_a_key_is_given_once(graph):
    notes = [{"type": "Note", "data": {"id": "n", "text": text}} for text in "xyz"]
    graph.load(ndjson(*notes))
    assert all_rows(graph, "node:Note") == [{"id": "n", "text": "z"}]
    with pytest.raises(ValidationFailed) as caught:
        graph.load(ndjson(thing("a"), thing("a")))
    assert reported(caught) == [
        "line 2: @unique violation on Thing.slug: value 'a' held by 'a' and 'a' (first at line 1)"
    ]
    with pytest.raises(KeyConflict):
        graph.load(
            ndjson({"type": "Note", "data": {"id": "m", "text": "x"}}, *notes), mode="append"
        )


def test_last_line_wins_however_lines_are_written(graph):
    odd = '{"data":{"id":"n","text":"%s"},"type":"Note"}'
    even = '{"type":"Note","data":{"id":"n","text":"%s"}}'
    for lines in ((odd, even), (even, odd), (even, odd, even)):
        texts = [line % number for number, line in enumerate(lines)]
        graph.load("\n".join(texts).encode())
        assert all_rows(graph, "node:Note") == [{"id": "n", "text": str(len(lines) - 1)}]


def test_partial_merge_keeps_what_is_not_given(graph):
    graph.load(ndjson(thing("a", small=1, title="x", tags=["t"])))
    graph.load(ndjson(thing("a", small=2), thing("b", title="new")), partial=True)
    graph.load({"Thing": pa.table({"slug": ["a"], "flag": [True]})}, partial=True)
    graph.load({"Thing": [{"slug": "a", "title": None}]}, partial=True)
    rows = [
        (r["slug"], r["small"], r["title"], r["flag"], r["tags"])
        for r in all_rows(graph, "node:Thing")
    ]
    assert rows == [("a", 2, None, True, ["t"]), ("b", None, "new", None, None)]


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_only_a_merge_is_partial(graph, mode):
    with pytest.raises(InvalidInput, match="a partial load merges"):
        graph.load(b"", mode=mode, partial=True)


def test_overwrite_replaces_types_that_appear_and_no_others(graph):
    graph.load(ndjson(thing("a"), thing("b"), {"type": "Note", "data": {"id": "n", "text": "x"}}))
    graph.load(ndjson(thing("c")), mode="overwrite")
    assert slugs(graph) == ["c"]
    assert [row["id"] for row in all_rows(graph, "node:Note")] == ["n"]


def test_overwrite_with_an_empty_table_empties_a_type(graph):
    graph.load(ndjson(thing("a"), edge("a", "a")))
    graph.load({"Near": pa.table({"from": pa.array([], pa.string()), "to": []})}, mode="overwrite")
    assert all_rows(graph, "edge:Near") == []
    graph.load({"Thing": []}, mode="overwrite")
    assert slugs(graph) == []


def test_overwrite_may_not_leave_edges_without_nodes(graph):
    graph.load(ndjson(thing("a"), edge("a", "a", id="e")))
    with pytest.raises(ValidationFailed) as caught:
        graph.load(ndjson(thing("b")), mode="overwrite")
    assert reported(caught) == ["src 'a' not found in Thing", "dst 'a' not found in Thing"]
    assert slugs(graph) == ["a"]


def test_unknown_mode_is_refused(graph):
    with pytest.raises(InvalidInput, match="one of append, merge, overwrite"):
        graph.load(b"", mode="replace")


# --- bad input ---------------------------------------------------------------------------------


def test_everything_wrong_is_reported_at_once_and_the_next_load_works(graph):
    before = graph.snapshot().commit_id
    lines = [
        thing("a"),
        thing("b", small="x"),
        edge("a", "nobody"),
        "{",
        {"type": "Note"},
        thing("a"),
        edge("b", "a"),
    ]
    with pytest.raises(ValidationFailed) as caught:
        graph.load(ndjson(*lines))
    assert reported(caught) == [
        "line 2: Thing.small: expected integer number, got string 'x'",
        "line 3: dst 'nobody' not found in Thing",
        "line 4: invalid JSON: Expecting property name enclosed in double quotes at column 2",
        "line 5: Note.text is required, but null or missing",
        "line 6: @unique violation on Thing.slug: value 'a' held by 'a' and 'a' (first at line 1)",
    ]
    assert caught.value.totals == {
        "syntax": 1,
        "value": 1,
        "required": 1,
        "unique": 1,
        "endpoint": 1,
    }
    assert graph.snapshot().commit_id == before
    graph.load(ndjson(thing("a")))
    assert slugs(graph) == ["a"]


def test_violations_carry_what_programs_need(graph):
    with pytest.raises(ValidationFailed) as caught:
        graph.load(ndjson(thing("a", small="x" * 500)))
    assert caught.value.violations[0].to_json() == {
        "rule": "value",
        "message": f"Thing.small: expected integer number, got string '{'x' * 40}'",
        "kind": "node",
        "type": "Thing",
        "id": "a",
        "property": "small",
        "value": "x" * 200 + "…",
        "source": {"file": None, "line": 1},
    }


def test_a_hundred_problems_are_listed_and_all_are_counted(graph):
    lines = [thing(str(n), small="x") for n in range(5000)]
    with pytest.raises(ValidationFailed) as caught:
        graph.load(ndjson(*lines))
    assert len(caught.value.violations) == 100
    assert caught.value.total == 5000
    assert caught.value.totals == {"value": 5000}


def test_malformed_line_in_the_middle_of_many_is_found(graph):
    lines = [thing(str(n)) for n in range(20_000)]
    lines[3816] = '{"type":"Thing","data":{"slug":"x" 1}}'
    with pytest.raises(ValidationFailed) as caught:
        graph.load(ndjson(*lines))
    assert reported(caught) == ["line 3817: invalid JSON: Expecting ',' delimiter at column 36"]


# --- branches ----------------------------------------------------------------------------------


def test_branch_is_forked_when_it_does_not_exist(graph):
    graph.load(ndjson(thing("a")))
    done = graph.load(ndjson(thing("b")), branch="new", from_="main")
    assert (done.branch, done.base_branch, done.branch_created) == ("new", "main", True)
    assert (slugs(graph), slugs(graph, "new")) == (["a"], ["a", "b"])
    done = graph.load(ndjson(thing("c")), branch="new", from_="main")
    assert (done.base_branch, done.branch_created) == ("main", False)
    assert slugs(graph, "new") == ["a", "b", "c"]


def test_missing_branch_without_a_base_is_refused(graph):
    with pytest.raises(NotFound) as caught:
        graph.load(b"", branch="new")
    assert caught.value.code == "branch_not_found"


@pytest.mark.parametrize("line", ["{", edge("x", "y")])
def test_failed_load_leaves_no_branch(graph, line):
    with pytest.raises(ValidationFailed):
        graph.load(ndjson(line), branch="new", from_="main")
    assert graph.branches.list() == ["main"]


def test_read_only_graph_is_not_loaded(graph):
    with pytest.raises(InvalidInput, match="read-only"):
        og.open(graph.uri, "ro").load(b"")


# --- races -------------------------------------------------------------------------------------


def racing(graph, act):
    """Make `act` happen once, between what a load stages and what it publishes."""
    datasets = graph._manifest.datasets
    done = []

    def observe(step):
        if step.startswith("staged") and not done:
            done.append(step)
            act()

    datasets.observe = observe


@pytest.mark.parametrize("mode", ["append", "merge"])
def test_load_that_lost_a_race_is_prepared_anew_without_reading_again(graph, mode):
    other = og.open(graph.uri)
    racing(graph, lambda: other.load(ndjson(thing("theirs"))))
    graph.load(iter_file(ndjson(thing("ours"))), mode=mode)
    assert slugs(graph) == ["ours", "theirs"]


def iter_file(data):
    """Return a file that can be read only once."""

    class Once:
        def __init__(self):
            self.left = [data]

        def read(self, size=-1):
            return self.left.pop() if self.left else b""

    return Once()


def test_rows_that_were_written_are_not_written_again_after_a_lost_race(graph, monkeypatch):
    written = []
    write = staged_writes.write_new_fragments

    def counted(rows, *rest):
        written.append(rows.num_rows)
        return write(rows, *rest)

    graph.load(ndjson(thing("a", small=1), thing("b", small=1)))
    other = og.open(graph.uri)
    racing(graph, lambda: other.load(ndjson(thing("b", small=2), thing("c", small=2))))
    monkeypatch.setattr(staged_writes, "write_new_fragments", counted)
    graph.load(ndjson(thing("a", small=3), thing("b", small=3), thing("d", small=3)))
    assert written == [3, 2]
    rows = [(row["slug"], row["small"]) for row in all_rows(graph, "node:Thing")]
    assert rows == [("a", 3), ("b", 3), ("c", 2), ("d", 3)]
    assert graph.verify().ok


def test_append_that_lost_to_the_same_id_is_a_conflict(graph):
    other = og.open(graph.uri)
    racing(graph, lambda: other.load(ndjson(thing("same", small=1))))
    with pytest.raises(KeyConflict):
        graph.load(ndjson(thing("same", small=2)), mode="append")
    assert [row["small"] for row in all_rows(graph, "node:Thing")] == [1]


def test_overwrite_that_lost_a_race_is_reported(graph):
    other = og.open(graph.uri)
    racing(graph, lambda: other.load(ndjson(thing("theirs"))))
    with pytest.raises(ExpectedVersionMismatch):
        graph.load(ndjson(thing("ours")), mode="overwrite")
    assert slugs(graph) == ["theirs"]


def test_schema_that_moved_while_loading_is_reported(graph):
    def move():
        document = graph.snapshot().schema.to_json()
        schema = StagedSchema("0" * 64, "// as before", document)
        staged = StagedCommit(id=new_commit_id(), operation="schema_apply", schema=schema)
        publish(graph._manifest.main, "main", staged)

    racing(graph, move)
    with pytest.raises(SchemaMoved):
        graph.load(ndjson(thing("ours")))


# --- memory, progress, interruption ------------------------------------------------------------


def test_rows_that_do_not_fit_memory_wait_in_files(graph, spills, monkeypatch):
    monkeypatch.setattr("omnigraph.write.spilling.SpillManager.__init__.__defaults__", (10_000,))
    seen = []
    graph._manifest.datasets.observe = lambda step: seen.append(sorted(spills.rglob("*.arrow")))
    graph.load(
        ndjson(*(thing(f"{n:05d}", title="x" * 50) for n in range(3000)), edge("00000", "00001"))
    )
    assert any(seen)
    assert slugs(graph) == [f"{n:05d}" for n in range(3000)]
    assert list(spills.iterdir()) == []


@pytest.mark.parametrize("phase", ["read", "write", "staged"])
def test_interrupted_load_leaves_nothing(graph, spills, monkeypatch, phase):
    monkeypatch.setattr("omnigraph.write.spilling.SpillManager.__init__.__defaults__", (10_000,))
    before = graph.snapshot().commit_id

    def interrupt(*_):
        raise KeyboardInterrupt

    def progress(now):
        if now.phase == phase:
            interrupt()

    monkeypatch.setattr("omnigraph.write.progress.REPORT_INTERVAL_SECONDS", 0)
    if phase == "staged":
        graph._manifest.datasets.observe = lambda step: interrupt() if "staged" in step else None
    with pytest.raises(KeyboardInterrupt):
        graph.load(
            ndjson(*(thing(str(n), title="x" * 50) for n in range(3000))),
            branch="new",
            from_="main",
            progress=progress,
        )
    graph._manifest.datasets.observe = lambda step: None
    assert list(spills.iterdir()) == []
    assert graph.branches.list() == ["main"]
    assert graph.snapshot().commit_id == before


def test_progress_counts_rows_and_bytes(graph, tmp_path, monkeypatch):
    monkeypatch.setattr("omnigraph.write.progress.REPORT_INTERVAL_SECONDS", 0)
    path = tmp_path / "t.jsonl"
    path.write_bytes(ndjson(*(thing(str(n)) for n in range(10))))
    size = path.stat().st_size
    seen = []
    graph.load(path, progress=seen.append)
    assert [now.phase for now in seen] == ["read", "read", "write"]
    assert seen[-1] == Progress("write", 10, size, size)


# --- blobs -------------------------------------------------------------------------------------


def test_external_blob_is_refused_unless_the_graph_allows_it(graph, tmp_path):
    outside = tmp_path / "files" / "a.txt"
    outside.parent.mkdir()
    outside.write_bytes(b"hello")
    line = ndjson(thing("a", file=outside.as_uri()))
    with pytest.raises(ValidationFailed) as caught:
        graph.load(line)
    assert caught.value.totals == {"blob": 1}
    allowed = og.open(graph.uri, external_blobs=[outside.parent.as_uri()])
    allowed.load(line)
    assert [row["file"] for row in all_rows(graph, "node:Thing")] == ["base64:aGVsbG8="]


def test_external_blob_that_cannot_be_read_is_reported(graph, tmp_path):
    allowed = og.open(graph.uri, external_blobs=[tmp_path.as_uri()])
    line = ndjson(thing("a", file=(tmp_path / "nothing").as_uri()))
    with pytest.raises(StorageUnavailable) as caught:
        allowed.load(line)
    assert caught.value.code == "external_blob_source"
    assert slugs(graph) == []


def test_mutations_ask_the_same_about_external_blobs(graph, tmp_path):
    graph.load(ndjson(thing("a")))
    source = 'query q($file: Blob) { update Thing set { file: $file } where slug = "a" }'
    with pytest.raises(ValidationFailed) as caught:
        graph.mutate(source, {"file": "s3://bucket/a"})
    assert caught.value.totals == {"blob": 1}


def test_base_of_external_blobs_must_be_one(tmp_path):
    with pytest.raises(InvalidInput, match="cannot be a base"):
        og.init(Path(tmp_path) / "other", SCHEMA, external_blobs=["here"])


@pytest.mark.parametrize(
    "column",
    [
        pa.array([2**60], pa.timestamp("ms")),
        pa.array([2**63 - 1], pa.timestamp("us", "UTC")),
        pa.array([-(2**60)]).view(pa.date64()),
        pa.array([2**31 - 1], pa.int32()).view(pa.date32()),
    ],
    ids=lambda column: str(column.type),
)
def test_an_instant_that_no_calendar_holds_is_a_violation(tmp_path, column):
    graph = og.init(tmp_path / "other", "node N { at: DateTime?  day: Date?  all: [DateTime]? }")
    for name, cells in (
        ("at", column),
        ("day", column),
        ("all", pa.ListArray.from_arrays([0, 1], column)),
    ):
        with pytest.raises(ValidationFailed) as caught:
            graph.load({"N": pa.table({name: cells})})
        [violation] = caught.value.violations
        assert (violation.rule, violation.property) == ("value", name)
        assert "out of range" in str(violation.record)


@pytest.mark.parametrize("depth", [500, 900, 20_000])
@pytest.mark.parametrize("source", ["lines", "older lines", "rows"])
def test_values_nested_deeply_are_violations(tmp_path, depth, source):
    graph = og.init(tmp_path / "other", "node N { text: String }")
    line = f'{{"type": "N", "data": {{"text": {"[" * depth}{"]" * depth}}}}}\n'.encode()
    nested: list = []
    for _ in range(depth):
        nested = [nested]
    data = {"N": [{"text": nested}]} if source == "rows" else line
    with pytest.raises(ValidationFailed) as caught:
        graph.load(data, strict=source != "older lines")
    [violation] = caught.value.violations
    assert violation.rule in ("value", "syntax")
    assert json.dumps(violation.to_json())
