"""What staged indexes rely on in Lance."""

import lance
import pyarrow as pa
import pytest
from lance import LanceDataset, LanceOperation


@pytest.fixture
def base(tmp_path):
    rows = pa.table({"id": [f"r{n:03d}" for n in range(40)], "n": range(40)})
    return lance.write_dataset(rows, tmp_path / "d", max_rows_per_file=10)


def segment(base, fragments):
    return base.create_index_uncommitted(
        "id", "BTREE", name="id_btree", fragment_ids=fragments, replace=True
    )


def stage(base, *segments):
    operation = LanceOperation.CreateIndex(list(segments), [])
    return LanceDataset.commit(base, operation, read_version=base.version, detached=True)


def covered(handle):
    return [sorted(s.fragment_ids) for index in handle.describe_indices() for s in index.segments]


def test_an_index_can_be_staged_on_a_detached_version_and_is_used(base):
    first = stage(base, segment(base, [0, 1, 2, 3]))
    again = stage(first, first.create_index_uncommitted("n", "BTREE", "n_btree", fragment_ids=[0]))
    for handle in (first, again):
        assert "ScalarIndexQuery" in handle.scanner(filter="id = 'r007'").explain_plan()
        assert handle.to_table(filter="id = 'r007'")["n"].to_pylist() == [7]
    assert lance.dataset(base.uri).describe_indices() == []


def test_a_segment_of_the_same_name_adds_coverage(base):
    first = stage(base, segment(base, [0, 1]))
    both = stage(first, segment(first, [2, 3]))
    assert covered(both) == [[0, 1], [2, 3]]
    found = both.to_table(filter="id IN ('r001', 'r035')")["n"].to_pylist()
    assert sorted(found) == [1, 35]


def test_rows_no_segment_covers_are_found_too(base):
    some = stage(base, segment(base, [1]))
    found = some.to_table(filter="id IN ('r001', 'r015', 'r035')")["n"].to_pylist()
    assert sorted(found) == [1, 15, 35]


def test_fragments_must_be_named(base):
    with pytest.raises(ValueError, match="fragment_ids"):
        base.create_index_uncommitted("id", "BTREE", name="id_btree")


def test_an_index_survives_updates_that_rewrite_rows(base):
    indexed = stage(base, segment(base, [0, 1, 2, 3]))
    left = indexed.get_fragment(0).delete_rows([7])
    new = lance.fragment.write_fragments(
        pa.table({"id": ["r007"], "n": [700]}), indexed, mode="append", return_transaction=True
    ).operation.fragments
    operation = LanceOperation.Update(
        updated_fragments=[left], new_fragments=new, update_mode="rewrite_rows"
    )
    after = LanceDataset.commit(indexed, operation, read_version=indexed.version, detached=True)
    assert covered(after) == [[0, 1, 2, 3]]
    assert after.to_table(filter="id IN ('r007', 'r008')").to_pylist() == [
        {"id": "r008", "n": 8},
        {"id": "r007", "n": 700},
    ]
