"""Footprints: what a commit changed, compared with what a change relies on."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.commit.footprint import (
    MAX_EXACT,
    MAX_FILTER_BYTES,
    MAX_KEYS,
    NO_FOOTPRINT,
    UNKNOWN_FOOTPRINT,
    Footprint,
    Requirements,
    hash_key,
)

PERSON, KNOWS = (1, 2), (3, 4)
HASHES = st.frozensets(st.integers(0, 2**64 - 1), max_size=40)


def keys(count, start=0):
    return frozenset(hash_key(PERSON, "id", str(number)) for number in range(start, start + count))


def stored(footprint):
    return Footprint.decode(footprint.encode())


@given(HASHES, HASHES)
def test_exact_footprints_overlap_where_sets_intersect(written, required):
    footprint = stored(Footprint(frozenset({PERSON}), written))
    assert footprint.keys == written
    assert footprint.overlaps(Requirements(required)) is bool(written & required)


@pytest.mark.parametrize("count", [MAX_EXACT, MAX_EXACT + 1, 3_000, MAX_KEYS])
def test_no_key_is_missed_in_any_stored_form(count):
    written = keys(count)
    footprint = stored(Footprint(frozenset({PERSON}), written))
    assert all(footprint.overlaps(Requirements(frozenset({key}))) for key in list(written)[:2_000])


@pytest.mark.parametrize("count", [MAX_EXACT + 1, 3_000, MAX_KEYS])
def test_a_filter_rarely_reports_a_key_it_does_not_contain(count):
    footprint = stored(Footprint(frozenset({PERSON}), keys(count)))
    others = keys(2_000, start=10**9)
    wrong = sum(footprint.overlaps(Requirements(frozenset({key}))) for key in others)
    assert wrong < 40
    assert len(footprint.keys.bits) <= MAX_FILTER_BYTES


def test_too_many_keys_stand_for_whole_types():
    footprint = stored(Footprint(frozenset({PERSON}), keys(MAX_KEYS + 1)))
    assert footprint == Footprint(frozenset({PERSON}))
    other_key = keys(1, start=10**9)
    assert footprint.overlaps(Requirements(other_key, key_types=frozenset({PERSON})))
    assert not footprint.overlaps(Requirements(other_key, key_types=frozenset({KNOWS})))
    assert footprint.overlaps(Requirements(types=frozenset({PERSON})))
    assert not footprint.overlaps(Requirements(types=frozenset({KNOWS})))


def test_a_change_that_scanned_a_type_overlaps_every_commit_to_it():
    footprint = stored(Footprint(frozenset({PERSON}), keys(1)))
    assert footprint.overlaps(Requirements(types=frozenset({PERSON})))
    assert not footprint.overlaps(Requirements(types=frozenset({KNOWS})))


def test_maintenance_overlaps_nothing():
    footprint = stored(NO_FOOTPRINT)
    assert footprint == NO_FOOTPRINT
    both = frozenset({PERSON, KNOWS})
    assert not footprint.overlaps(Requirements(keys(10), both, both))


@pytest.mark.parametrize("data", [None, b"", b"\x09unknown form"])
def test_what_cannot_be_read_may_have_changed_anything(data):
    assert Footprint.decode(data) == UNKNOWN_FOOTPRINT
    assert UNKNOWN_FOOTPRINT.overlaps(Requirements())


def test_keys_differ_by_type_topic_and_values():
    every = [
        hash_key(PERSON, "id", "a"),
        hash_key(KNOWS, "id", "a"),
        hash_key(PERSON, "src", "a"),
        hash_key(PERSON, "id", "a", "b"),
        hash_key(PERSON, "id", "ab"),
        hash_key(PERSON, "id", "a\x001:b"),
        hash_key(PERSON, "id", "\ud800"),
    ]
    assert len(set(every)) == len(every)


def test_the_hash_of_a_key_is_part_of_the_format():
    assert hash_key((1, 2), "id", "ann") == 8385768749367327424
