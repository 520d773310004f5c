"""Allocators of stable identities."""

import time
from itertools import pairwise

import pytest

from omnigraph.catalog import (
    IdentityError,
    SequentialAllocator,
    TimeOrderedAllocator,
    identity_text,
    parse_identity,
)
from omnigraph.catalog.identity import MAX_IDENTITY, RANDOM_BITS

MILLISECOND = 1_000_000


def test_a_sequence_counts_up_from_its_start():
    allocator = SequentialAllocator(7)
    assert [allocator.allocate(count) for count in (1, 3, 2)] == [7, 8, 11]
    assert SequentialAllocator().allocate(1) == 1


def test_time_ordered_identities_start_at_the_present_millisecond():
    allocator = TimeOrderedAllocator(lambda: 5 * MILLISECOND + 999, lambda bits: bits)
    assert allocator.allocate(1) == (5 << RANDOM_BITS) + RANDOM_BITS


def test_identities_count_up_within_a_millisecond_and_start_anew_in_the_next():
    times = iter([5, 5, 6, 4])
    draws = iter([100, 7])
    allocator = TimeOrderedAllocator(lambda: next(times) * MILLISECOND, lambda _: next(draws))
    base = 5 << RANDOM_BITS
    runs = [allocator.allocate(10) for _ in range(4)]
    assert runs == [base + 100, base + 110, (6 << RANDOM_BITS) + 7, (6 << RANDOM_BITS) + 17]


def test_a_run_that_overflows_its_millisecond_pushes_the_next_one_on():
    times = iter([5, 6])
    allocator = TimeOrderedAllocator(lambda: next(times) * MILLISECOND, lambda _: 0)
    allocator.allocate(2**RANDOM_BITS + 50)
    assert allocator.allocate(1) == (6 << RANDOM_BITS) + 50


def test_the_real_clock_gives_increasing_identities_of_63_bits():
    allocator = TimeOrderedAllocator()
    runs = [allocator.allocate(3) for _ in range(1000)]
    assert all(b - a >= 3 for a, b in pairwise(runs))
    assert abs((runs[0] >> RANDOM_BITS) - time.time_ns() // MILLISECOND) < 600_000
    assert runs[-1].bit_length() == 63


def test_two_allocators_hardly_ever_meet():
    firsts = {TimeOrderedAllocator(lambda: MILLISECOND).allocate(1) for _ in range(50)}
    assert len(firsts) > 45


@pytest.mark.parametrize(
    "allocator",
    [
        SequentialAllocator(MAX_IDENTITY - 1),
        TimeOrderedAllocator(lambda: 2**42 * MILLISECOND - 1, lambda bits: 2**bits - 2),
    ],
)
def test_an_allocator_that_reaches_the_end_says_so(allocator):
    with pytest.raises(IdentityError, match="allocator is exhausted") as refusal:
        allocator.allocate(3)
    assert refusal.value.code == "identity_exhausted"
    assert allocator.allocate(2) == MAX_IDENTITY - 1


@pytest.mark.parametrize("allocator", [SequentialAllocator(), TimeOrderedAllocator()])
def test_nothing_cannot_be_allocated(allocator):
    with pytest.raises(ValueError, match="at least one"):
        allocator.allocate(0)


@pytest.mark.parametrize(
    ("identity", "text"),
    [(1, "0000000000000001"), (0xABCDEF, "0000000000abcdef"), (MAX_IDENTITY, "f" * 16)],
)
def test_identities_are_written_as_sixteen_digits(identity, text):
    assert identity_text(identity) == text
    assert parse_identity(text) == identity


@pytest.mark.parametrize(
    "text", ["", "1", "0" * 15, "0" * 17, "0" * 15 + "F", "0x" + "0" * 14, "\u0660" * 16]
)
def test_other_spellings_of_identities_are_refused(text):
    with pytest.raises(ValueError, match="16 lower-case hexadecimal digits"):
        parse_identity(text)
