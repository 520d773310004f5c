"""Durations in text."""

from datetime import timedelta

import pytest

from omnigraph.types.duration import format_duration, parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("0", 0), ("90", 90), ("90s", 90), ("15 m", 900), ("12h", 43_200), ("30d", 2_592_000)],
)
def test_duration_is_parsed_and_printed_without_loss(text, seconds):
    duration = parse_duration(text)
    assert duration == timedelta(seconds=seconds)
    assert parse_duration(format_duration(duration)) == duration


def test_duration_is_printed_in_its_largest_unit():
    texts = [format_duration(timedelta(seconds=s)) for s in (0, 90, 7_200, 86_400, 90_000)]
    assert texts == ["0s", "90s", "2h", "1d", "25h"]


@pytest.mark.parametrize("text", ["", "d", "-1d", "1.5h", "3 years", "999999999w"])
def test_other_text_is_not_a_duration(text):
    with pytest.raises(ValueError, match="duration"):
        parse_duration(text)
