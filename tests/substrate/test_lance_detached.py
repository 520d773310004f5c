"""Detached versions carry every change of data: applied exactly to their base, seen by nobody."""

import lance
import pyarrow as pa
import pytest
from lance import LanceDataset, LanceOperation
from lance.fragment import write_fragments
from lance.schema import LanceSchema

from tests.support.lance_datasets import SCHEMA, append, content, create, files, rows


@pytest.fixture
def base(tmp_path):
    """Two fragments: a, b and c, d."""
    return append(create(tmp_path / "d", rows(a=1, b=2)), rows(c=3, d=4))


def update(base, *, removed=(), updated=(), new=()):
    operation = LanceOperation.Update(
        removed_fragment_ids=list(removed),
        updated_fragments=list(updated),
        new_fragments=list(new),
        update_mode="rewrite_rows",
    )
    return LanceDataset.commit(base, operation, read_version=base.version, detached=True)


def merge(base, fragments, schema):
    operation = LanceOperation.Merge(fragments, schema)
    return LanceDataset.commit(base, operation, read_version=base.version, detached=True)


def kept(base):
    return [fragment.metadata for fragment in base.get_fragments()]


def written(base, table):
    return write_fragments(table, base, mode="append", return_transaction=True).operation.fragments


def staged_append(base):
    return append(base, rows(e=5), detached=True)


def staged_upsert(base):
    left = base.get_fragments()[0].delete_rows([1])
    return update(base, updated=[left], new=written(base, rows(b=20, e=5)))


def staged_delete(base):
    return update(base, updated=[base.get_fragments()[1].delete_rows([0])])


def staged_overwrite(base):
    staged = write_fragments(rows(z=9), base, mode="overwrite", return_transaction=True)
    return LanceDataset.commit(base, staged, detached=True)


# storage/staged_writes.py: every function there ends in one of these commits.
@pytest.mark.parametrize(
    ("stage", "outcome"),
    [
        (staged_append, {"a": 1, "b": 2, "c": 3, "d": 4, "e": 5}),
        (staged_upsert, {"a": 1, "b": 20, "c": 3, "d": 4, "e": 5}),
        (staged_delete, {"a": 1, "b": 2, "d": 4}),
        (staged_overwrite, {"z": 9}),
    ],
)
def test_staged_change_is_exactly_its_base_changed_and_moves_no_head(base, stage, outcome):
    made = stage(base)
    assert content(made) == outcome
    assert content(lance.dataset(base.uri, version=made.version)) == outcome
    latest = lance.dataset(base.uri)
    assert (latest.version, content(latest)) == (2, {"a": 1, "b": 2, "c": 3, "d": 4})
    assert [version["version"] for version in latest.versions()] == [1, 2]


# commit/publish.py: the manifest decides who wins, so staging must never rebase over others.
@pytest.mark.parametrize("stage", [staged_append, staged_upsert, staged_delete, staged_overwrite])
def test_staged_change_of_an_older_base_knows_nothing_of_what_came_later(base, stage):
    expected = content(stage(base))
    append(base, rows(later=1))
    LanceDataset.commit(
        base.uri, write_fragments(rows(q=7), base.uri, mode="overwrite", return_transaction=True)
    )
    assert content(stage(lance.dataset(base.uri, version=2))) == expected


# storage/staged_writes.py: the second write of a type starts from the detached version of the
# first.
def test_detached_version_is_a_base_for_further_detached_versions(base):
    first = staged_upsert(base)
    second = append(first, rows(f=6), detached=True)
    address = first.to_table(filter="id = 'b'", with_row_address=True)["_rowaddr"][0].as_py()
    fragment = second.get_fragment(address >> 32)
    third = update(second, updated=[fragment.delete_rows([address & 0xFFFFFFFF])])
    assert content(third) == {"a": 1, "c": 3, "d": 4, "e": 5, "f": 6}
    assert content(first) == {"a": 1, "b": 20, "c": 3, "d": 4, "e": 5}


# storage/staged_writes.py: two writers stage on one base; both versions stay whole whoever is
# published.
def test_siblings_of_one_base_do_not_disturb_each_other(base):
    one, other = append(base, rows(x=1), detached=True), append(base, rows(y=2), detached=True)
    assert one.version != other.version
    assert set(content(one)) - set(content(base)) == {"x"}
    assert set(content(other)) - set(content(base)) == {"y"}


# storage/layout.py, commit/recovery.py: names of version files are computed, not looked up.
def test_version_files_are_named_by_their_numbers(base):
    made = staged_append(base)
    assert made.version >= 2**63
    names = {name for name in files(base.uri) if name.endswith(".manifest")}
    assert names == {
        f"_versions/d{made.version}.manifest",
        f"_versions/{2**64 - 1 - 1:020d}.manifest",
        f"_versions/{2**64 - 1 - 2:020d}.manifest",
    }


# storage/staged_writes.py delete_rows: a fragment without rows left must be removed, not updated.
def test_fragment_that_loses_its_last_row_has_no_metadata_left(base):
    fragment = base.get_fragments()[0]
    assert fragment.delete_rows([0]) is not None
    assert fragment.delete_rows([0, 1]) is None
    assert content(update(base, removed=[fragment.fragment_id])) == {"c": 3, "d": 4}


# storage/staged_writes.py lose: who took rows from a fragment did so for newer versions that have
# it, too.
def test_deletions_of_a_fragment_are_taken_over_by_a_version_made_elsewhere(base):
    fragment = base.get_fragments()[0]
    left = fragment.delete_rows([0])
    newer = append(base, rows(e=5))
    assert newer.get_fragments()[0].fragment_id == fragment.fragment_id
    assert content(update(newer, updated=[left])) == {"b": 2, "c": 3, "d": 4, "e": 5}


# storage/version_diff.py: the property makes a class each time it is asked.
def test_name_of_a_data_file_is_kept_in_a_field(base):
    for fragment in base.get_fragments():
        assert [f._path for f in fragment.metadata.files] == [
            f.path for f in fragment.metadata.files
        ]


# storage/staged_writes.py: an update that removes nothing and adds nothing is a version all the
# same.
def test_empty_update_is_a_version_of_its_own(base):
    made = update(base)
    assert made.version >= 2**63
    assert content(made) == content(base)


# storage/staged_writes.py add_columns: a new property is metadata only.
def test_new_column_is_added_without_writing_data(base):
    before = {name for name in files(base.uri) if name.startswith("data/")}
    wider = pa.schema([*base.schema, pa.field("extra", pa.string())])
    made = merge(base, kept(base), LanceSchema.from_pyarrow(wider))
    assert made.schema.names == ["id", "n", "extra"]
    assert made.to_table()["extra"].to_pylist() == [None] * 4
    assert {name for name in files(base.uri) if name.startswith("data/")} == before
    extended = append(made, pa.table({"id": ["e"], "n": [5], "extra": ["x"]}, wider), detached=True)
    assert extended.to_table()["extra"].to_pylist() == [None] * 4 + ["x"]


# storage/staged_writes.py add_columns: types without any entity get new properties too.
def test_new_column_is_added_to_a_dataset_without_fragments(tmp_path):
    empty = create(tmp_path / "d")
    assert empty.get_fragments() == []
    wider = pa.schema([*empty.schema, pa.field("extra", pa.string())])
    made = merge(empty, [], LanceSchema.from_pyarrow(wider))
    assert made.schema.names == ["id", "n", "extra"]
    extended = append(made, pa.table({"id": ["e"], "n": [5], "extra": ["x"]}, wider), detached=True)
    assert extended.to_table().to_pylist() == [{"id": "e", "n": 5, "extra": "x"}]


# storage/staged_writes.py add_columns: marks of identity and keys survive a new column.
def test_metadata_of_columns_and_schema_survives_a_new_column(tmp_path):
    field = pa.field("n", pa.int32(), metadata={b"mark": b"1"})
    schema = pa.schema([SCHEMA.field("id"), field], metadata={b"stamp": b"7"})
    made = create(tmp_path / "d", pa.table({"id": ["a"], "n": [1]}, schema=schema))
    wider = pa.schema([*made.schema, pa.field("m", pa.int32())], metadata=made.schema.metadata)
    merged = merge(made, kept(made), LanceSchema.from_pyarrow(wider))
    again = lance.dataset(made.uri, version=merged.version).schema
    assert again.metadata == {b"stamp": b"7"}
    assert again.field("n").metadata == {b"mark": b"1"}
    assert not again.field("id").nullable


def numbers(schema):
    """Every field of a schema with its number, nested ones included."""

    def walk(field):
        yield field.name(), field.id()
        for child in field.children():
            yield from walk(child)

    return [found for field in schema.fields() for found in walk(field)]


# storage/staged_writes.py add_columns numbers all columns anew: were one to change, it would read
# garbage.
def test_columns_numbered_again_keep_their_numbers_whatever_their_types(tmp_path):
    vector = pa.list_(pa.float32(), 4)
    first = [
        pa.field("id", pa.string(), nullable=False),
        pa.field("list", pa.list_(pa.string())),
        lance.blob_field("blob"),
        pa.field("vector", vector),
        pa.field("n", pa.int32()),
    ]
    arrays = [
        pa.array(["a"]),
        pa.array([["x", "y"]]),
        lance.blob_array([b"hello"]),
        pa.array([[1, 2, 3, 4]], vector),
        pa.array([7], pa.int32()),
    ]
    made = create(tmp_path / "d", pa.table(arrays, schema=pa.schema(first)))
    for field in (
        lance.blob_field("blob2"),
        pa.field("list2", pa.list_(pa.int64())),
        pa.field("last", pa.bool_()),
    ):
        schema = LanceSchema.from_pyarrow(pa.schema([*made.schema, field]))
        made = merge(made, kept(made), schema)
        assert numbers(made.lance_schema) == numbers(schema)
        assert numbers(LanceSchema.from_pyarrow(made.schema)) == numbers(schema)
    pieces = [
        f.merge_columns(lambda b: pa.record_batch({"m": b["n"].cast(pa.int64())}), columns=["n"])
        for f in made.get_fragments()
    ]
    made = merge(made, [metadata for metadata, _ in pieces], pieces[0][1])
    assert numbers(LanceSchema.from_pyarrow(made.schema)) == numbers(made.lance_schema)
    row = made.to_table(columns=["id", "list", "vector", "n", "list2", "last", "m"]).to_pylist()[0]
    values = ["a", ["x", "y"], [1.0, 2.0, 3.0, 4.0], 7, None, None, 7]
    assert list(row.values()) == values
    assert made.take_blobs("blob", indices=[0])[0].readall() == b"hello"


# storage/staged_writes.py widen_column: a wider type is one new column file beside the old ones.
def test_wider_column_is_written_beside_the_old_one(base):
    def widened(batch):
        return pa.record_batch({"wide": batch["n"].cast(pa.int64())})

    old = {name for name in files(base.uri) if name.startswith("data/")}
    pieces = [f.merge_columns(widened, columns=["n"]) for f in base.get_fragments()]
    made = merge(base, [metadata for metadata, _ in pieces], pieces[0][1])
    assert made.schema.field("wide").type == pa.int64()
    assert made.to_table().to_pydict() == {
        "id": ["a", "b", "c", "d"],
        "n": [1, 2, 3, 4],
        "wide": [1, 2, 3, 4],
    }
    new = {name for name in files(base.uri) if name.startswith("data/")} - old
    assert len(new) == len(pieces)
    assert content(base) == {"a": 1, "b": 2, "c": 3, "d": 4}


# storage/staged_writes.py widen_column: rows deleted before stay deleted, also when a column is
# added.
def test_wider_column_leaves_deleted_rows_deleted(base):
    def widened(batch):
        return pa.record_batch({"wide": batch["n"].cast(pa.int64())})

    without = update(base, updated=[base.get_fragments()[0].delete_rows([0])])
    pieces = [f.merge_columns(widened, columns=["n"]) for f in without.get_fragments()]
    made = merge(without, [metadata for metadata, _ in pieces], pieces[0][1])
    assert made.to_table(columns=["id", "wide"]).to_pydict() == {
        "id": ["b", "c", "d"],
        "wide": [2, 3, 4],
    }


# storage/staged_writes.py: the guard that no code path commits on a detached base without
# `detached=True`.
def test_ordinary_commit_on_a_detached_base_is_refused(base):
    made = staged_append(base)
    staged = write_fragments(rows(z=1), made, mode="append", return_transaction=True)
    with pytest.raises(OSError, match="regular version numbers are appearing as 'detached'"):
        LanceDataset.commit(made, staged)
    assert lance.dataset(base.uri).version == 2


# storage/staged_writes.py record_embedding_models: field metadata is part of a version, and of
# those made from it.
def test_field_metadata_belongs_to_a_detached_version(base):
    def marked(handle, value):
        number = {f.name(): f.id() for f in handle.lance_schema.fields()}["n"]
        change = {number: LanceOperation.UpdateMap({"maker": value})}
        operation = LanceOperation.UpdateConfig(field_metadata_updates=change)
        return LanceDataset.commit(handle, operation, read_version=handle.version, detached=True)

    def maker(handle):
        return (handle.schema.field("n").metadata or {}).get(b"maker")

    made = marked(staged_append(base), "m1")
    assert content(made) == content(staged_append(base))
    later = staged_append(made)
    again = lance.dataset(base.uri, version=later.version)
    assert [maker(handle) for handle in (base, made, later, again)] == [None, *([b"m1"] * 3)]
    assert maker(marked(made, None)) is None
    assert maker(marked(made, "")) == b""
    assert maker(lance.dataset(base.uri, version=made.version)) == b"m1"
