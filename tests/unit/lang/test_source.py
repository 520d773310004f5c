"""Where an offset is, as people count."""

import pytest

from omnigraph.lang import SourceText, TextPosition, TextSpan


@pytest.mark.parametrize(
    ("text", "offset", "position"),
    [
        ("", 0, (1, 1)),
        ("abc", 2, (1, 3)),
        ("abc", 99, (1, 4)),
        ("a\nb", 1, (1, 2)),
        ("a\nb", 2, (2, 1)),
        ("a\n", 2, (2, 1)),
        ("a\r\nb", 3, (2, 1)),
        ("\n\n\n", 2, (3, 1)),
        ("😀é\nx", 2, (1, 3)),
        ("a\u2028b\x0bc\rd", 7, (1, 8)),
    ],
)
def test_lines_end_at_line_feeds_and_columns_count_characters(text, offset, position):
    assert SourceText(text).position(offset) == TextPosition(*position)


def test_a_line_comes_without_its_line_break():
    source = SourceText("a\r\n\nb")
    assert [source.line(number) for number in (1, 2, 3)] == ["a", "", "b"]


def test_spans_join_from_start_to_end():
    assert TextSpan(1, 2).to(TextSpan(5, 9)) == TextSpan(1, 9)


def test_text_without_a_name_has_one():
    assert SourceText("x").name == "<text>"
