"""The rows of the manifest: everything written is read back equal, and the head stays small."""

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.catalog import IncarnationId, TypeId
from omnigraph.commit.manifest_rows import (
    FORMAT_VERSION_KEY,
    MANIFEST_SCHEMA,
    CommitRow,
    branch_row,
    commit_row,
    head_row,
    manifest_table,
    read_branch,
    read_commit,
    read_head,
    read_schema,
    read_tag,
    read_version,
    schema_row,
    table_row,
    tag_row,
    tombstone_row,
    version_row,
)
from omnigraph.commit.model import Branch, Commit, Counts, DatasetEntry, Head, Tag
from omnigraph.errors import GraphCorrupt, OmniError

U63, U64 = (1 << 63) - 1, (1 << 64) - 1
texts = st.text(max_size=20)
ids = st.text("0123456789ABCDEFGHJKMNPQRSTVWXYZ", min_size=26, max_size=26)
identities = st.integers(1, U63)
instants = st.datetimes(datetime(1970, 1, 1), datetime(9000, 1, 1)).map(
    lambda instant: instant.replace(tzinfo=UTC)
)
entries = st.builds(
    DatasetEntry,
    identities.map(TypeId),
    identities.map(IncarnationId),
    st.integers(1, 1 << 40),
    st.integers(1, U64),
    st.integers(0, 1 << 48),
)
heads = st.builds(
    Head,
    commit_id=ids,
    schema_hash=st.text("0123456789abcdef", min_size=64, max_size=64),
    datasets=st.lists(entries, max_size=5).map(lambda found: {e.key: e for e in found}),
    closed=st.booleans(),
    refs=st.integers(0, 1 << 40),
)
commits = st.builds(
    Commit,
    id=ids,
    parents=st.lists(ids, max_size=3).map(tuple),
    branch=texts,
    actor=st.none() | texts,
    message=st.none() | texts,
    operation=texts,
    created_at=instants,
    manifest_version=st.integers(1, U63),
    counts=st.dictionaries(texts, st.builds(Counts, *[st.integers(0, U63)] * 3), max_size=3),
    schema_hash=texts,
)
ENTRY = DatasetEntry(TypeId(U63), IncarnationId(U63), 10_000_000, U64, 10_000_000_000)


def through_arrow(row):
    """Write a row into a table of the manifest and take it out again."""
    (found,) = manifest_table([row]).to_pylist()
    return found


@given(heads)
def test_head_is_read_as_it_was_written(head):
    assert read_head(through_arrow(head_row(head, 7))) == head


@given(
    st.builds(
        CommitRow,
        commits,
        st.none() | ids,
        aborted=st.booleans(),
        state=st.none() | st.lists(entries).map(tuple),
        generation=st.integers(0, 2**40),
        datasets=st.none() | st.lists(entries).map(tuple),
    )
)
def test_commit_is_read_as_it_was_written(row):
    assert read_commit(through_arrow(commit_row(row))) == row


@given(entries, ids)
def test_published_version_is_read_as_it_was_written(entry, commit_id):
    found = read_version(through_arrow(version_row(entry, "node:T", commit_id)))
    assert found == (commit_id, entry)


@given(
    st.builds(
        Branch,
        name=texts,
        lineage_id=ids,
        parent=st.none() | texts,
        fork_commit=st.none() | ids,
        actor=st.none() | texts,
        created_at=st.none() | instants,
        deleting=st.booleans(),
    )
)
def test_branch_is_read_as_it_was_written(branch):
    assert read_branch(through_arrow(branch_row(branch))) == branch


@given(
    st.builds(
        Tag,
        name=texts,
        commit_id=ids,
        lineage_id=st.none() | ids,
        actor=st.none() | texts,
        created_at=instants,
    )
)
def test_tag_is_read_as_it_was_written(tag):
    assert read_tag(through_arrow(tag_row(tag))) == tag


def test_head_needs_less_than_100_bytes_per_type():
    entries = [
        DatasetEntry(TypeId(U63 - n), ENTRY.incarnation, ENTRY.version, ENTRY.physical, ENTRY.rows)
        for n in range(1000)
    ]
    head = Head(commit_id="0" * 26, schema_hash="0" * 64, datasets={e.key: e for e in entries})
    size = len(head_row(head, 7).metadata.encode())
    empty = len(head_row(Head(commit_id="0" * 26, schema_hash="0" * 64, datasets={}), 1).metadata)
    assert (size - empty) / len(entries) < 100
    assert empty < 200


def test_rows_of_a_dataset_share_its_identity_and_differ_in_their_keys():
    table = table_row(ENTRY, "node:T", "nodes/x")
    version = version_row(ENTRY, "node:T", "C")
    tombstone = tombstone_row(ENTRY, "node:T", "C")
    identity = "7fffffffffffffff-7fffffffffffffff"
    assert table.object_id == f"table:{identity}"
    assert version.object_id == f"version:{identity}@C"
    assert tombstone.object_id == f"tombstone:{identity}@C"
    kinds = [row.object_type for row in (table, version, tombstone)]
    assert kinds == ["table", "table_version", "table_tombstone"]
    found = {
        (row.stable_table_id, row.table_incarnation_id, row.table_key)
        for row in (table, version, tombstone)
    }
    assert found == {(U63, U63, "node:T")}


def test_manifest_carries_its_format_and_its_key():
    table = manifest_table([])
    assert table.schema == MANIFEST_SCHEMA
    assert table.schema.metadata == {FORMAT_VERSION_KEY: b"2"}
    key = table.schema.field("object_id")
    assert (key.nullable, key.metadata) == (
        False,
        {b"lance-schema:unenforced-primary-key": b"true"},
    )


@pytest.mark.parametrize(
    "metadata",
    [
        None,
        "",
        "{",
        "[]",
        "{}",
        '{"commit":"c","schema":"s"}',
        '{"commit":"c","datasets":["x"]}',
        '{"commit":"c","schema":"s","datasets":["1-2:3:4:nothex"]}',
    ],
)
def test_head_that_cannot_be_read_is_corruption(metadata):
    with pytest.raises(GraphCorrupt, match="manifest row graph_head cannot be read"):
        read_head({"metadata": metadata})


@pytest.mark.parametrize("metadata", [None, "{", "[]", "{}", '{"parents":[]}'])
def test_commit_that_cannot_be_read_is_corruption(metadata):
    with pytest.raises(GraphCorrupt, match="commit:C cannot be read"):
        read_commit({"object_id": "commit:C", "metadata": metadata, "table_version": 1})


@pytest.mark.parametrize("metadata", [None, "{", "{}", json.dumps({"source": "", "ir": None})])
def test_schema_that_cannot_be_read_is_a_typed_error(metadata):
    row = schema_row("h", "node T {}", {})
    with pytest.raises(OmniError, match=r"corrupt|cannot be read") as caught:
        read_schema({"object_id": row.object_id, "metadata": metadata})
    assert caught.value.category == "internal"
