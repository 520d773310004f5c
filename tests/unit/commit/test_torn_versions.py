"""The newest version of a lineage may be torn: it is not read, and a writer sets it aside."""

from pathlib import Path

import pytest

import omnigraph.graph as og
from omnigraph.errors import OutcomeUnknown, StorageUnavailable
from omnigraph.storage import file_sync
from omnigraph.storage.layout import version_file
from tests.support.graphs import NOTE, SCHEMA, clean_at_once, dump, insert

TORN = {
    "empty": lambda data: b"",
    "cut": lambda data: data[: len(data) // 2],
    "footer cut": lambda data: data[:-1],
    "zeros": lambda data: bytes(len(data)),
    "first block zero": lambda data: bytes(4096) + (data * 4)[: 4096 - len(data)] + data,
}


@pytest.fixture(autouse=True)
def _fast_sync(monkeypatch):
    """Check what would be synced; a busy disk takes seconds for each."""
    monkeypatch.setattr(file_sync, "fsync_path", lambda path: path.stat())


@pytest.fixture
def graph(tmp_path):
    graph = og.init(tmp_path / "g", SCHEMA, durability="full")
    insert(graph, NOTE, {"a": {"text": "x"}})
    return graph


def newest_file(graph, lineage_id=None):
    lineage = graph._manifest.lineage(lineage_id)
    return Path(graph.uri, lineage.path, version_file(lineage.state().version))


def tear(file, kind="cut"):
    file.write_bytes(TORN[kind](file.read_bytes()))


@pytest.mark.parametrize("kind", TORN)
def test_reader_uses_the_version_before_and_changes_nothing(graph, kind):
    before = dump(graph)
    insert(graph, NOTE, {"b": {}})
    tear(newest_file(graph), kind)
    files = sorted(Path(graph.uri).rglob("*"))
    reader = og.open(graph.uri, mode="ro")
    assert dump(reader) == before
    problems = [problem.message for problem in reader.verify().problems]
    assert any("manifest version 3 is incomplete" in message for message in problems)
    assert sorted(Path(graph.uri).rglob("*")) == files


@pytest.mark.parametrize("kind", TORN)
def test_writer_sets_it_aside_and_continues(graph, kind):
    insert(graph, NOTE, {"b": {}})
    tear(newest_file(graph), kind)
    torn = newest_file(graph).read_bytes()
    writer = og.open(graph.uri)
    [row] = writer.recoveries()
    assert row["recovery_kind"] == "TornVersionSetAside"
    [outcome] = row["per_table_outcomes"]
    assert (outcome["table_key"], outcome["from_version"]) == ("__manifest", "3")
    assert Path(graph.uri, outcome["moved_to"]).read_bytes() == torn
    insert(writer, NOTE, {"c": {"text": "y"}})
    assert set(dump(og.open(graph.uri))[NOTE]) == {"a", "c"}
    assert writer.verify().problems == []
    assert [row["recovery_kind"] for row in og.open(graph.uri).recoveries()] == [
        "TornVersionSetAside"
    ]


def test_branch_is_continued_when_it_is_read(graph):
    lineage_id = graph.branches.create("side").lineage_id
    insert(graph, NOTE, {"b": {}}, branch="side")
    tear(newest_file(graph, lineage_id))
    writer = og.open(graph.uri)
    assert set(dump(writer, "side")[NOTE]) == {"a"}
    insert(writer, NOTE, {"c": {}}, branch="side")
    assert set(dump(og.open(graph.uri), "side")[NOTE]) == {"a", "c"}
    assert [row["branch"] for row in writer.recoveries()] == [f"__branches/{lineage_id}"]


def test_writer_reads_a_lineage_again_whose_version_was_set_aside(graph):
    writer = og.open(graph.uri)
    insert(writer, NOTE, {"b": {"text": "lost"}})
    tear(newest_file(writer))
    insert(og.open(graph.uri), NOTE, {"c": {"text": "kept"}})
    writer._manifest.forget_lineage("__manifest")
    assert dump(writer)[NOTE] == {"a": {"text": "x"}, "c": {"text": "kept"}}
    assert [c.operation for c in writer.commits.list()] == [
        c.operation for c in og.open(graph.uri).commits.list()
    ]
    assert writer.commits.list()[0].id == og.open(graph.uri).commits.list()[0].id


def test_version_that_another_writer_published_again_stays(graph):
    insert(graph, NOTE, {"b": {}})
    file = newest_file(graph)
    tear(file)
    insert(og.open(graph.uri), NOTE, {"c": {}})
    graph._manifest.datasets.set_aside_torn_version("__manifest")
    assert file.exists()
    assert set(dump(og.open(graph.uri))[NOTE]) == {"a", "c"}


def test_name_that_was_lost_is_recorded_by_the_next_writer(graph):
    insert(graph, NOTE, {"b": {}})
    newest_file(graph).unlink()
    assert not og.open(graph.uri, mode="ro").verify().ok
    writer = og.open(graph.uri)
    [row] = writer.recoveries()
    assert row["recovery_kind"] == "UnsyncedVersionLost"
    assert writer.verify().problems == []


def test_torn_audit_is_set_aside(graph):
    insert(graph, NOTE, {"b": {}})
    tear(newest_file(graph))
    og.open(graph.uri)
    audit = Path(graph.uri, "_graph_commit_recoveries.lance")
    newest = min((audit / "_versions").glob("*.manifest"))
    tear(newest)
    writer = og.open(graph.uri)
    insert(writer, NOTE, {"c": {}})
    assert [row["branch"] for row in writer.recoveries()] == ["_graph_commit_recoveries.lance"]


# --- what is synced, and when ---------------------------------------------------------------------


def recorded(graph):
    """Record the names of version files of main that a graph syncs."""
    synced = []
    files = graph._manifest.objects.files
    real = files.fsync

    def record(path):
        real(path)
        if path.parent == Path(graph.uri, "__manifest", "_versions"):
            synced.append(path.name)

    files.fsync = record
    return synced


def name_of(version):
    return version_file(version).removeprefix("_versions/")


def test_second_writer_syncs_the_version_it_builds_on(graph):
    version = graph._manifest.main.state().version
    first = og.open(graph.uri, durability="full")
    first._manifest.objects.files.fsync = lambda path: None  # as if it died before
    insert(first, NOTE, {"b": {}})
    writer = og.open(graph.uri, durability="full")
    synced = recorded(writer)
    insert(writer, NOTE, {"c": {}})
    assert synced == [name_of(version + 1), name_of(version + 2)]
    synced.clear()
    insert(writer, NOTE, {"d": {}})
    assert synced == [name_of(version + 3)]


def test_cleanup_syncs_states_of_other_writers_before_it_removes_files(graph):
    insert(graph, NOTE, {"b": {}})
    cleaner = og.open(graph.uri, durability="full")
    synced, removed = recorded(cleaner), []
    delete, objects = cleaner._manifest.objects.delete, cleaner._manifest.objects
    late = og.open(graph.uri, durability="relaxed")
    published = []

    def observe(step):
        if step == "cleanup: announced":
            insert(late, NOTE, {"c": {}})
            published.append(name_of(late._manifest.main.state().version))

    def record(paths):
        listed = list(paths)
        if any(path.startswith("nodes/") for path in listed):
            removed.append(list(synced))
        delete(listed)

    cleaner._manifest.datasets.observe, objects.delete = observe, record
    clean_at_once(cleaner, keep=1)
    assert removed
    assert published[0] in removed[0]


def test_commit_whose_sync_fails_is_of_unknown_outcome(graph):
    writer = og.open(graph.uri, durability="full")
    version = writer._manifest.main.state().version
    files = writer._manifest.objects.files
    real = files.fsync

    def fail(path):
        if path.name == name_of(version + 1):
            raise OSError(5, "Input/output error")
        real(path)

    files.fsync = fail
    with pytest.raises(OutcomeUnknown):
        insert(writer, NOTE, {"b": {}})
    files.fsync = real
    assert set(dump(og.open(graph.uri))[NOTE]) == {"a", "b"}


def test_commit_whose_files_cannot_be_synced_is_not_published(graph):
    writer = og.open(graph.uri, durability="full")
    files = writer._manifest.objects.files

    def fail(path):
        raise OSError(5, "Input/output error")

    files.fsync = fail
    with pytest.raises(StorageUnavailable) as caught:
        insert(writer, NOTE, {"b": {}})
    assert caught.value.code == "sync_failed"
    assert set(dump(og.open(graph.uri))[NOTE]) == {"a"}


def relaxed_commit(graph, name, branch="main"):
    """Publish a commit whose files are not synced; return the files it added."""
    before = set(Path(graph.uri).rglob("*"))
    insert(og.open(graph.uri, durability="relaxed"), NOTE, {name: {}}, branch=branch)
    added = {file for file in set(Path(graph.uri).rglob("*")) - before if file.is_file()}
    return {file for file in added if file.suffix in (".lance", ".manifest")}


def all_synced(graph):
    synced, files = set(), graph._manifest.objects.files
    real = files.fsync

    def record(path):
        real(path)
        synced.add(path)

    files.fsync = record
    return synced


@pytest.mark.parametrize("operation", ["commit", "branch", "tag"])
def test_full_writer_syncs_what_relaxed_ones_left(graph, operation):
    files = relaxed_commit(graph, "b") | relaxed_commit(graph, "c")
    assert len(files) >= 6
    assert og.open(graph.uri)._manifest.main.state().head.relaxed
    writer = og.open(graph.uri, durability="full")
    synced = all_synced(writer)
    match operation:
        case "commit":
            insert(writer, NOTE, {"d": {}})
        case "branch":
            writer.branches.create("side")
        case _:
            writer.tags.create("now")
    assert files <= synced
    assert not og.open(graph.uri)._manifest.main.state().head.relaxed
