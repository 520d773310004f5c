"""Creation: one create-if-absent, and what Lance keeps of a schema."""

import lance
import pyarrow as pa
import pytest
from lance import LanceDataset
from lance.fragment import write_fragments

from omnigraph.storage.layout import PRIMARY_KEY
from tests.support.lance_datasets import SCHEMA, append, content, create, files, rows

ROUNDS = {"local": 20, "s3": 10}


def race(racer, uri, options, rounds):
    """Create one dataset after the other together with all racers; return what each got."""
    got = []
    for number in range(rounds):
        racer.together()
        try:
            create(f"{uri}/{number}", rows(winner=racer.number), options)
            got.append("won")
        except OSError as error:
            got.append(str(error))
    return got


# storage/datasets.py create, which makes graphs: one creator wins, the others hear of it.
@pytest.mark.parametrize("where", ["local", "s3"])
def test_of_four_racing_creators_exactly_one_wins(where, tmp_path, request, racers):
    uri, options = str(tmp_path), None
    if where == "s3":
        server = request.getfixturevalue("s3")
        uri, options = server.fresh(), server.lance_options
    got = racers.run(race, uri, options, ROUNDS[where])
    for number, outcomes in enumerate(zip(*got, strict=True)):
        assert outcomes.count("won") == 1
        made = lance.dataset(f"{uri}/{number}", storage_options=options)
        assert (made.version, content(made)) == (1, {"winner": outcomes.index("won")})
        for text in outcomes:
            assert text == "won" or "already exists" in text or "0.manifest was not found" in text


# storage/datasets.py create: the texts of a loser, whether it comes late or was just overtaken.
def test_late_creator_gets_an_error(tmp_path):
    create(tmp_path / "d", rows(a=1))
    with pytest.raises(OSError, match="Dataset already exists"):
        create(tmp_path / "d", rows(b=2))


def test_creator_overtaken_while_staging_finds_no_version_zero(tmp_path):
    uri = str(tmp_path / "d")
    staged = write_fragments(rows(b=2), uri, mode="create", return_transaction=True)
    create(uri, rows(a=1))
    with pytest.raises(OSError, match=r"_versions/0\.manifest was not found"):
        LanceDataset.commit(uri, staged, max_retries=0)
    assert content(lance.dataset(uri)) == {"a": 1}


# storage/datasets.py create: a creator killed before its commit blocks nobody.
def test_files_without_a_version_do_not_stand_in_the_way_of_a_creator(tmp_path):
    uri = str(tmp_path / "d")
    write_fragments(rows(orphan=1), uri, mode="create", return_transaction=True)
    assert [name.partition("/")[0] for name in files(uri)] == ["data"]
    with pytest.raises(ValueError, match="was not found"):
        lance.dataset(uri)
    assert content(create(uri, rows(a=1))) == {"a": 1}


# commit/manifest_rows.py, storage/layout.py: keys, marks and the format stamp are read back.
def test_schema_comes_back_with_its_metadata(tmp_path):
    schema = pa.schema(
        [
            pa.field("id", pa.string(), nullable=False, metadata=PRIMARY_KEY),
            pa.field("number", pa.uint64(), metadata={b"mark": b"1"}),
            pa.field("list", pa.list_(pa.string())),
        ],
        metadata={b"stamp": b"1"},
    )
    made = create(tmp_path / "d", schema.empty_table())
    read = lance.dataset(made.uri).schema
    assert read.equals(schema, check_metadata=True)
    assert read.field("id").metadata == PRIMARY_KEY


# commit/manifest_rows.py: detached versions exceed signed 64-bit numbers and are stored as
# unsigned ones.
def test_unsigned_numbers_beyond_the_signed_range_are_kept_and_filtered(tmp_path):
    big = 2**64 - 5
    table = pa.table({"id": ["a", "b"], "v": pa.array([big, 1], pa.uint64())})
    made = create(tmp_path / "d", table)
    assert made.to_table(filter=f"v = {big}")["id"].to_pylist() == ["a"]
    assert made.to_table()["v"].to_pylist() == [big, 1]


# storage/layout.py empty_table: a type with a blob has no entity at first.
def test_empty_table_with_a_blob_column_is_created_and_takes_blobs(tmp_path):
    schema = pa.schema([SCHEMA.field("id"), lance.blob_field("data")])
    empty = pa.Table.from_arrays([pa.array([], pa.string()), lance.blob_array([])], schema=schema)
    made = create(tmp_path / "d", empty)
    assert made.count_rows() == 0
    blobs = lance.blob_array([b"hello", None, b""])
    filled = append(made, pa.Table.from_arrays([pa.array(["a", "b", "c"]), blobs], schema=schema))
    found = filled.read_blobs("data", indices=[0, 1, 2], preserve_order=True)
    assert [value for _, value in found] == [b"hello", None, b""]


# storage/layout.py dataset_schema: `id`, `src` and `dst` are never null, whoever writes.
@pytest.mark.parametrize(
    ("nullable", "says"),
    [
        (False, "Column 'id' is declared as non-nullable but contains null values"),
        (True, "The field `id` contained null values even though the field is marked non-null"),
    ],
)
def test_null_in_a_column_that_must_have_values_is_refused(tmp_path, nullable, says):
    made = create(tmp_path / "d")
    schema = pa.schema([pa.field("id", pa.string(), nullable=nullable), SCHEMA.field("n")])
    with pytest.raises(OSError, match=says):
        append(made, pa.table({"id": [None], "n": [1]}, schema=schema))


# storage/staged_writes.py: datasets are made without stable row ids, so ids and addresses are the
# same.
def test_row_addresses_name_the_fragment_and_the_place_in_it(tmp_path):
    made = append(create(tmp_path / "d", rows(a=1, b=2)), rows(c=3))
    found = made.to_table(columns=["id"], with_row_address=True).to_pydict()
    assert found == {"id": ["a", "b", "c"], "_rowaddr": [0, 1, 1 << 32]}


# maintain/cleanup.py sweeps by itself; Lance must not do it behind our back.
def test_lance_cleans_up_nothing_by_itself(tmp_path):
    assert create(tmp_path / "d").config() == {}
