"""Paths are decoded part by part; an encoded slash is no slash."""

import pytest

from omnigraph.server.request import decode_path, decode_path_parameter


@pytest.mark.parametrize(
    ("raw", "parts"),
    [
        (b"/graphs/a/branches/review%2Fx", ["", "graphs", "a", "branches", "review/x"]),
        (b"/graphs/a%2Fb/schema", ["", "graphs", "a/b", "schema"]),
        (b"/a%252Fb", ["", "a%2Fb"]),
        (b"/%C3%A9", ["", "é"]),
        (b"/a?b=/c", ["", "a"]),
        (b"/", ["", ""]),
        (b"//", ["", "", ""]),
    ],
)
def test_parts_stay_parts(raw, parts):
    found = decode_path({"raw_path": raw, "path": "?"})
    assert [decode_path_parameter(part) for part in found.split("/")] == parts


@pytest.mark.parametrize("raw", [b"/%ff", b"/a%00b", b"/a\x00b"])
def test_what_is_no_path_is_none(raw):
    assert decode_path({"raw_path": raw, "path": "?"}) is None


def test_without_raw_bytes_the_path_is_taken():
    assert decode_path({"path": "/a/b"}) == "/a/b"
