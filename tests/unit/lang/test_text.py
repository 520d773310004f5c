"""From bytes to text, or where they are not text."""

import pytest

from omnigraph.lang import Code, read_queries, read_schema, report_for_bytes, report_for_text
from omnigraph.lang.diagnostics import MAX_SOURCE_BYTES
from tests.support.diagnostic_lines import reported

CODE = Code.SCHEMA_UNREADABLE


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", ""),
        (b"node A {}", "node A {}"),
        (b"\xef\xbb\xbfnode A {}", "node A {}"),
        (b"\xef\xbb\xbf\xef\xbb\xbfx", "\ufeffx"),
        (b"a\r\nb\0", "a\r\nb\0"),
        ("é😀".encode(), "é😀"),
    ],
)
def test_utf_8_is_read_and_one_byte_order_mark_dropped(data, text):
    report = report_for_bytes(data, "f", CODE)
    assert report.source.text == text
    assert report.source.name == "f"
    assert reported(report) == []


@pytest.mark.parametrize(
    ("data", "place", "byte"),
    [
        (b"\xff", "1:1", "0xff"),
        (b"ab\xffcd", "1:3", "0xff"),
        (b"a\nb\xc3(", "2:2", "0xc3"),
        ("é".encode() + b"\x80", "1:2", "0x80"),
        (b"\xef\xbb\xbfa\xff", "1:2", "0xff"),
        (b"\xed\xa0\x80", "1:1", "0xed"),
        (b"\xc0\xaf", "1:1", "0xc0"),
        (b"\xf4\x90\x80\x80", "1:1", "0xf4"),
        ("node A {}".encode("utf-16"), "1:1", "0xff"),
    ],
)
def test_what_is_not_utf_8_is_reported_with_its_place(data, place, byte):
    report = report_for_bytes(data, "f", CODE)
    assert reported(report) == [f"{place} byte {byte} is not valid UTF-8 | save the file as UTF-8"]
    assert report.diagnostics[0].code is CODE
    assert "�" in report.diagnostics[0].render()


@pytest.mark.parametrize(
    ("text", "place"), [("\ud800", "1:1"), ("ab\udc80", "1:3"), ("\ufeffa\n\udfff", "2:1")]
)
def test_half_a_surrogate_pair_is_reported_with_its_place(text, place):
    report = report_for_text(text, "f", CODE)
    assert reported(report) == [f"{place} the text has an unpaired surrogate"]
    assert "?" in report.diagnostics[0].render()
    report.diagnostics[0].render().encode("utf-8")


def test_text_larger_than_the_limit_is_refused_and_not_read():
    at_limit = b"//" + b"x" * (MAX_SOURCE_BYTES - 2)
    assert reported(report_for_bytes(at_limit, "f", CODE)) == []
    report = report_for_bytes(at_limit + b"x", "f", CODE)
    assert reported(report) == [
        "1:1 the text is 16,777,217 bytes long; 16,777,216 is the limit"
        " | split it into several files"
    ]


def test_the_limit_counts_bytes():
    report = report_for_text("é" * (MAX_SOURCE_BYTES // 2 + 1), "f", CODE)
    assert [d.message for d in report.errors] == [
        "the text is 16,777,218 bytes long; 16,777,216 is the limit"
    ]


@pytest.mark.parametrize("read", [read_schema, read_queries])
def test_unreadable_text_is_reported_once_and_gives_an_empty_tree(read):
    report = report_for_bytes(b"node A {}\xff broken", "f", CODE)
    tree = read(report)
    assert tree == type(tree)()
    assert len(report.diagnostics) == 1
