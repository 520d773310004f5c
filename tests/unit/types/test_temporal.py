"""Date and DateTime text."""

from datetime import UTC, date, datetime

import pytest

from omnigraph.types import parse_date, parse_datetime
from omnigraph.types.temporal import epoch_days, epoch_milliseconds


def utc(*parts):
    return datetime(*parts, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("1970-01-01", date(1970, 1, 1)),
        ("2024-02-29", date(2024, 2, 29)),
        ("0001-01-01", date(1, 1, 1)),
        ("9999-12-31", date(9999, 12, 31)),
    ],
)
def test_date_text_is_read(text, day):
    assert parse_date(text) == day


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2023-02-29",
        "2024-13-01",
        "2024-00-01",
        "2024-01-32",
        "0000-01-01",
        "24-01-01",
        "2024-1-1",
        "2024/01/01",
        "20240101",
        "2024-01-01 ",
        "2024-01-01\n",
        "2024-01-01T00:00:00Z",
        "+2024-01-01",
        "10000-01-01",
        "\N{ARABIC-INDIC DIGIT TWO}024-01-01",
        "x" * 10_000,
    ],
)
def test_other_date_text_is_refused(text):
    with pytest.raises(ValueError, match=r"^invalid Date literal") as refusal:
        parse_date(text)
    assert len(str(refusal.value)) < 120


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("1970-01-01T00:00:01Z", utc(1970, 1, 1, 0, 0, 1)),
        ("2024-05-01", utc(2024, 5, 1)),
        ("2024-05-01T12:30", utc(2024, 5, 1, 12, 30)),
        ("2024-05-01 12:30:45", utc(2024, 5, 1, 12, 30, 45)),
        ("2024-05-01t12:30:45z", utc(2024, 5, 1, 12, 30, 45)),
        ("2024-05-01T12:30:45 Z", utc(2024, 5, 1, 12, 30, 45)),
        ("2024-05-01T12:30:00+02:00", utc(2024, 5, 1, 10, 30)),
        ("2024-05-01T12:30:00+0230", utc(2024, 5, 1, 10)),
        ("2024-05-01T12:30:00-05", utc(2024, 5, 1, 17, 30)),
        ("2024-01-01T00:30:00+01:00", utc(2023, 12, 31, 23, 30)),
        ("2024-05-01T12:30:45.1Z", utc(2024, 5, 1, 12, 30, 45, 100_000)),
        ("2024-05-01T12:30:45.123Z", utc(2024, 5, 1, 12, 30, 45, 123_000)),
        ("2024-05-01T12:30:45.123999999Z", utc(2024, 5, 1, 12, 30, 45, 123_000)),
        ("1969-12-31T23:59:59.9999Z", utc(1969, 12, 31, 23, 59, 59, 999_000)),
        ("0001-01-01T00:00:00Z", utc(1, 1, 1)),
        ("9999-12-31T23:59:59.999Z", utc(9999, 12, 31, 23, 59, 59, 999_000)),
    ],
)
def test_datetime_text_is_read_as_utc_milliseconds(text, moment):
    assert parse_datetime(text) == moment
    assert parse_datetime(text).tzinfo is UTC


@pytest.mark.parametrize(
    "text",
    [
        "",
        "now",
        "2024-05-01T",
        "2024-05-01T12",
        "2024-05-01T24:00:00Z",
        "2024-05-01T12:60:00Z",
        "2016-12-31T23:59:60Z",
        "2024-02-30T00:00:00Z",
        "2024-05-01T12:30:45.",
        "2024-05-01T12:30:45.1234567890Z",
        "2024-05-01T12:30:45,5Z",
        "2024-05-01T12:30:45+1",
        "2024-05-01T12:30:45+24:00",
        "2024-05-01T12:30:45+01:75",
        "2024-05-01T12:30:45\n",
        "2024-05-01T12:30:45 ",
        "2024-05-01Z",
        "0000-01-01T00:00:00Z",
        "0001-01-01T00:00:00+01:00",
        "9999-12-31T23:59:59-01:00",
        "y" * 10_000,
    ],
)
def test_other_datetime_text_is_refused(text):
    with pytest.raises(ValueError, match=r"^invalid DateTime literal") as refusal:
        parse_datetime(text)
    assert len(str(refusal.value)) < 120


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("2016-12-31T23:59:60Z", "second must be in 0..59"),
        ("2024-05-01T24:00:00Z", "hour must be in 0..23"),
        ("2024-05-01T12:30:45+24:00", "an offset is at most 23:59"),
        ("2024-05-01T12:30:45+01:75", "an offset is at most 23:59"),
        ("2024-02-30", "day is out of range for month"),
    ],
)
def test_refusal_says_which_part_is_wrong(text, reason):
    with pytest.raises(ValueError) as refusal:  # noqa: PT011 - the whole sentence is compared
        parse_datetime(text)
    assert str(refusal.value) == f"invalid DateTime literal '{text}': {reason}"


def test_stored_forms_count_from_the_epoch():
    assert epoch_days(date(1970, 1, 2)) == 1
    assert epoch_days(date(1969, 12, 31)) == -1
    assert epoch_milliseconds(utc(1970, 1, 1, 0, 0, 1)) == 1000
    assert epoch_milliseconds(utc(1969, 12, 31, 23, 59, 59, 999_000)) == -1
