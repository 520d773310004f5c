"""What may be deleted, what a session remembers, and what a look at the newest version costs."""

import json
import shutil
from datetime import timedelta
from pathlib import Path

import lance
import pytest

from omnigraph.errors import Contention
from omnigraph.storage.compare_and_swap import compare_and_swap
from omnigraph.storage.layout import referenced_files, version_file
from tests.support.lance_datasets import append, content, create, files, rows


def change(handle, number):
    return compare_and_swap(handle, [rows(**{"head": number, f"r{number}": 0})], lambda step: None)


@pytest.fixture
def line(tmp_path):
    """Six versions."""
    handle = create(tmp_path / "d", rows(head=0, a=1))
    for number in range(1, 6):
        handle = change(handle, number)
    return handle


# ------------------------------------------------------------------ Lance's own cleanup


# commit/lineage_maintenance.py: the files of old versions are removed behind Lance's back.
def test_versions_whose_files_are_gone_are_not_read(line):
    known = lance.dataset(line.uri, version=5)
    needed = referenced_files(known) | referenced_files(line)
    for version in range(1, 5):
        (Path(line.uri) / version_file(version)).unlink()
    for path in files(line.uri) - needed:
        if not path.startswith("_versions/"):
            (Path(line.uri) / path).unlink()
    assert known.latest_version == 6
    again = lance.dataset(line.uri)
    assert (again.version, content(again)) == (6, content(line))
    assert content(lance.dataset(line.uri, version=5)) == content(known)
    assert content(change(again, 7))["head"] == 7
    with pytest.raises(Contention):
        change(known, 8)


# maintain/verify.py: a newest version that was lost is noticed by what Lance noted of it.
def test_newest_version_is_noted_after_each_commit_and_its_loss_goes_unnoticed(line):
    note = Path(line.uri) / "_versions" / "latest_version_hint.json"
    assert json.loads(note.read_text()) == {"version": 6}
    (Path(line.uri) / version_file(6)).unlink()
    assert lance.dataset(line.uri).version == 5
    assert json.loads(note.read_text()) == {"version": 6}


# maintain/cleanup.py never calls Lance's cleanup on nodes and edges: this is what would happen.
def test_cleanup_does_not_know_detached_versions(tmp_path):
    base = create(tmp_path / "d", rows(a=1))
    staged = append(base, rows(b=2), detached=True)
    append(base, rows(c=3))
    lance.dataset(base.uri).cleanup_old_versions(older_than=timedelta(0), delete_unverified=True)
    with pytest.raises((OSError, ValueError), match="Not found"):
        content(lance.dataset(base.uri, version=staged.version))


# ------------------------------------------------------------------ our own sweep


# maintain/cleanup.py: transactions, hints and whatever no version refers to may go.
def test_version_is_readable_from_the_files_it_refers_to(line):
    expected = content(line)
    kept = referenced_files(lance.dataset(line.uri))
    for name in files(line.uri) - kept:
        (Path(line.uri) / name).unlink()
    assert files(line.uri) == kept
    assert content(lance.dataset(line.uri, version=6)) == expected
    assert content(lance.dataset(line.uri)) == expected


def test_detached_version_is_readable_from_the_files_it_refers_to(tmp_path):
    base = append(create(tmp_path / "d", rows(a=1, b=2)), rows(c=3))
    first = append(base, rows(d=4), detached=True)
    staged = append(first, rows(e=5), detached=True)
    kept = referenced_files(lance.dataset(base.uri, version=staged.version))
    for name in files(base.uri) - kept:
        (Path(base.uri) / name).unlink()
    found = lance.dataset(base.uri, version=staged.version)
    assert content(found) == {"a": 1, "b": 2, "c": 3, "d": 4, "e": 5}
    assert set(content(append(found, rows(f=6), detached=True))) == {"a", "b", "c", "d", "e", "f"}


# storage/compare_and_swap.py: a conflict is found in the manifests, also when transaction files
# are gone.
def test_swap_is_refused_without_transaction_files(line):
    base = lance.dataset(line.uri)
    change(line, 7)
    for file in Path(line.uri).glob("_transactions/*"):
        file.unlink()
    with pytest.raises(Contention):
        change(base, 8)


# storage/datasets.py: the hint is Lance's own; a wrong one must not lead astray.
@pytest.mark.parametrize("hint", [None, '{"version":2}', '{"version":99}', "garbage", ""])
def test_wrong_hint_of_the_latest_version_does_not_matter(line, hint):
    file = Path(line.uri) / "_versions" / "latest_version_hint.json"
    file.unlink() if hint is None else file.write_text(hint)
    assert line.latest_version == 6
    assert lance.dataset(line.uri).version == 6
    assert change(lance.dataset(line.uri), 9).version == 7


# ------------------------------------------------------------------ sessions, handles, counters


# commit/lineage.py state: a handle that stands still tells whether something is newer.
def test_handle_tells_the_latest_version_and_stays_where_it_is(line):
    known = lance.dataset(line.uri)
    made = change(lance.dataset(line.uri), 7)
    assert (known.version, known.latest_version) == (6, made.version)
    assert content(known)["head"] == 5


# commit/lineage.py state: the probe is one request, however long the history is.
def test_look_at_the_latest_version_is_one_request(s3):
    handle = create(s3.fresh(), rows(head=0, a=1), s3.lance_options)
    for number in range(1, 4):
        handle = change(handle, number)
        handle.io_stats_incremental()
        assert handle.latest_version == handle.version
        stats = handle.io_stats_incremental()
        assert (stats.read_iops, stats.read_bytes, stats.write_iops) == (1, 0, 0)


# tests/cost: operations are counted by these; a counter starts again when it was read.
def test_counters_count_requests_and_start_again(s3):
    handle = create(s3.fresh(), rows(a=1), s3.lance_options)
    opened = lance.dataset(handle.uri, storage_options=s3.lance_options)
    opened.io_stats_incremental()
    content(opened)
    first, second = opened.io_stats_incremental(), opened.io_stats_incremental()
    assert first.read_iops >= 1
    assert first.read_bytes > 0
    assert (second.read_iops, second.read_bytes, second.write_iops, second.written_bytes) == (
        0,
    ) * 4


# storage/datasets.py: one session per graph; a warm one opens a pinned version without reading it.
def test_session_opens_a_known_version_without_reading_it_again(s3):
    uri = create(s3.fresh(), rows(a=1), s3.lance_options).uri
    session = lance.Session()
    for expected in (True, False):
        handle = lance.dataset(uri, version=1, session=session, storage_options=s3.lance_options)
        assert (handle.io_stats_incremental().read_bytes > 0) is expected


# storage/datasets.py: a folder that was deleted and made anew shows nothing of the old one.
@pytest.mark.parametrize("version", [None, 1])
def test_session_is_not_confused_by_a_recreated_dataset(tmp_path, version):
    uri = str(tmp_path / "d")
    session = lance.Session()
    create(uri, rows(old=1))
    assert content(lance.dataset(uri, version=version, session=session)) == {"old": 1}
    shutil.rmtree(uri)
    create(uri, rows(new=2))
    assert content(lance.dataset(uri, version=version, session=session)) == {"new": 2}
