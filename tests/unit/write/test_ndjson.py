import gzip
import io
import json
import tracemalloc

import pyarrow as pa
import pytest

import omnigraph.graph as og
from omnigraph.write.inputs.line_parser import (
    MAX_LINE_BYTES,
    LineBlock,
    OversizedLine,
    read_line_blocks,
)
from omnigraph.write.inputs.ndjson_reader import read_ndjson
from omnigraph.write.progress import ProgressMeter
from omnigraph.write.row_builder import RowBuilder
from omnigraph.write.spilling import SpillManager
from tests.support.load_fixtures import accepted, ndjson, taken, thing


def problems(text):
    """Return what is wrong with lines, read one by one and together."""
    slow, fast = taken(text, fast=False)[1], taken(text, fast=True)[1]
    assert slow == fast
    return slow


def rows(text):
    """Return the slugs that lines give."""
    found, reported = taken(text, fast=True)
    assert reported == []
    return [row[1] for row in found.get("node:Thing", [])]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("{", "invalid JSON: Expecting property name enclosed in double quotes at column 2"),
        ('{"type":"Thing"', "invalid JSON: Expecting ',' delimiter at column 16"),
        ("[]", "expected an object, got array"),
        ("7", "expected an object, got integer"),
        ("{}", "expected exactly one of `type` and `edge`, found neither"),
        (
            {"type": "Note", "edge": "Near"},
            "expected exactly one of `type` and `edge`, found both",
        ),
        ({"type": 1}, "`type` is the name of a type, not integer"),
        ({"type": "Thng"}, "unknown node type `Thng`; did you mean `Thing`?"),
        ({"type": "thing"}, "unknown node type `thing`; did you mean `Thing`?"),
        (
            {"edge": "Nearr", "from": "a", "to": "b"},
            "unknown edge type `Nearr`; did you mean `Near`?",
        ),
        ({"type": "Note", "more": 1}, "unexpected member `more`"),
        ({"type": "Note", "from": "a"}, "unexpected member `from`"),
        ({"type": "Note", "_rowid": 1}, "`_rowid` is reserved"),
        ({"type": "Note", "data": None}, "`data` is an object, not null"),
        ({"type": "Note", "data": []}, "`data` is an object, not array"),
        ('{"type":"Note","type":"Note"}', "member `type` is given twice"),
        ('{"type":"Note","data":{"text":"a","text":"b"}}', "member `text` is given twice"),
        (
            '{"type":"Thing","data":{"slug":"a","tags":[{"x":1,"x":2}]}}',
            "member `x` is given twice",
        ),
        ('{"type":"Note","data":{"text":"a"}} {}', "more than one value on the line, at column 37"),
        ('{"type":"Note","data":{"text":"a"}}x', "more than one value on the line, at column 36"),
        (thing(nope=1), "Thing: unknown property `nope`"),
        (thing(_tombstone=1), "Thing: `_tombstone` is reserved"),
        (
            {"edge": "Near", "from": "a", "to": "b", "data": {"src": "a"}},
            "Near: `src` is not a property; give `from` beside `data`",
        ),
        ({"edge": "Near", "to": "b"}, "`from` is missing"),
        ({"edge": "Near", "from": "a", "to": None}, "`to` is null"),
        ({"edge": "Near", "from": 1, "to": "b"}, "`from` is the id of a node, not integer"),
        (thing(id=7), "id of Thing: expected string, got integer"),
        (thing(id=None), "id of Thing: expected string, got null"),
        (thing(id="b"), "id 'b' of Thing is not its key 'a'"),
        ({"type": "Note", "data": {"text": "a", "id": ""}}, "id of Note: an id is not empty"),
        ({"type": "Thing"}, "Thing.slug is required, but null or missing"),
        ({"type": "Thing", "data": {"slug": None}}, "Thing.slug is required, but null or missing"),
        ({"type": "Thing", "data": {"slug": 7}}, "Thing.slug: expected string, got integer"),
        (thing(small=3.0), "Thing.small: expected integer number, got number"),
        (thing(small=2**31), "Thing.small: value 2147483648 exceeds I32 (-2147483648..2147483647)"),
        (thing(huge=-1), "Thing.huge: value -1 exceeds U64 (0..18446744073709551615)"),
        (thing(large="1"), "Thing.large: expected integer number, got string '1'"),
        (thing(single=1e39), "Thing.single: value 1e+39 exceeds F32"),
        ('{"type":"Note","data":{"text":NaN}}', "invalid JSON: NaN is not a number"),
        (
            '{"type":"Thing","data":{"slug":"a","double":Infinity}}',
            "invalid JSON: Infinity is not a number",
        ),
        (
            '{"type":"Thing","data":{"slug":"a","double":1e400}}',
            "Thing.double: value inf is not a finite F64",
        ),
        (thing(flag=1), "Thing.flag: expected boolean, got integer"),
        (thing(title=True), "Thing.title: expected string, got boolean"),
        (
            thing(day="2023-02-29"),
            "Thing.day: invalid Date literal '2023-02-29': day is out of range for month",
        ),
        (
            thing(moment="later"),
            "Thing.moment: invalid DateTime literal 'later': expected e.g. 2024-05-01T12:30:00Z",
        ),
        (thing(tags="a"), "Thing.tags: expected array, got string"),
        (thing(tags=["a", None]), "Thing.tags: element 1: expected String, got null"),
        (thing(spot=[1]), "Thing.spot: expected 2 values, got 1"),
        (thing(file="base64:?"), "Thing.file: invalid base64: "),
        (
            thing(file="s3://a/b"),
            "Thing.file: external blob 's3://a/b' is refused: this graph allows none",
        ),
        (
            '{"type":"Note","data":{"text":"\\ud800"}}',
            "Note.text: text with an unpaired surrogate is not valid Unicode",
        ),
        ("[" * 100_000, "too deeply nested"),
        (
            '{"type":"Thing","data":{"slug":"a","large":' + "9" * 5000 + "}}",
            "a number is too long to be read",
        ),
    ],
)
def test_bad_line_is_reported_with_its_number(line, problem):
    [reported] = problems(ndjson(thing("z"), "", line))
    assert reported.startswith(f"line 3: {problem}")


def test_line_that_is_not_utf8_is_reported_and_the_others_are_read():
    text = ndjson(thing("a")) + b'\n{"type":"Note","data":{"text":"\xff"}}\n' + ndjson(thing("b"))
    found, reported = taken(text, fast=True)
    assert reported == ["line 2: not UTF-8: invalid start byte at byte 32"]
    assert [row[1] for row in found["node:Thing"]] == ["a", "b"]


def test_all_problems_of_a_line_and_of_all_lines_are_reported():
    reported = problems(ndjson(thing(nope=1, small="x", flag="y"), "{", thing(day=True)))
    assert reported == [
        "line 1: Thing.flag: expected boolean, got string",
        "line 1: Thing.small: expected integer number, got string 'x'",
        "line 1: Thing: unknown property `nope`",
        "line 2: invalid JSON: Expecting property name enclosed in double quotes at column 2",
        "line 3: Thing.day: expected string, got boolean",
    ]


def test_values_are_what_the_lines_say():
    given = {
        "slug": "ä",
        "title": 'say "hi"\n',
        "flag": True,
        "small": -1,
        "large": 2**63 - 1,
        "count": 2**32 - 1,
        "huge": 2**64 - 1,
        "single": 0.5,
        "double": 0.1,
        "day": "2020-02-29",
        "moment": "2020-01-01T10:00:00.123+02:00",
        "tags": ["a", ""],
        "sizes": [],
        "days": ["1999-12-31"],
        "spot": [1, 2.5],
        "file": "base64:aGk=",
    }
    [[_, id_, *cells]] = taken(ndjson(thing(**given)), fast=True)[0]["node:Thing"]
    names = list(accepted().catalog.nodes["Thing"].properties)
    assert id_ == "ä"
    assert dict(zip(names, cells, strict=True)) == {
        **given,
        "moment": "2020-01-01T08:00:00.123Z",
        "spot": [1.0, 2.5],
    }


def test_edges_may_be_named_in_any_case_and_nodes_may_be_missing_everything():
    text = ndjson({"edge": "nEAR", "from": "a", "to": "b"}, {"type": "Note"})
    found, reported = taken(text, fast=True)
    assert reported == []
    assert [row[1:4] for row in found["edge:Near"]] == [["fresh", "a", "b"]]
    assert [row[1:] for row in found["node:Note"]] == [["fresh", None]]


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\n\n", "\n \t\r\n"])
@pytest.mark.parametrize("end", ["", "\n"])
def test_blank_lines_and_kinds_of_newlines_do_not_matter(newline, end):
    text = newline.join(json.dumps(thing(slug)) for slug in "abc") + end
    assert rows(text.encode()) == ["a", "b", "c"]


def test_byte_order_mark_is_skipped():
    assert rows(b"\xef\xbb\xbf" + ndjson(thing("a"))) == ["a"]


def test_empty_input_gives_nothing():
    assert taken(b"", fast=True) == ({}, [])
    assert taken(b"\n \n", fast=True) == ({}, [])


def test_rows_stay_in_the_order_of_their_lines():
    odd = '{"data":{"slug":"%d"},"type":"Thing"}'
    lines = [odd % n if n % 3 else json.dumps(thing(str(n))) for n in range(500)]
    assert rows("\n".join(lines).encode()) == [str(n) for n in range(500)]


def test_file_objects_and_packed_bytes_are_read_alike():
    text = ndjson(thing("a"), thing("b"))
    packed = pa.BufferOutputStream()
    with pa.CompressedOutputStream(packed, "zstd") as stream:
        stream.write(text)
    for source in (
        io.BytesIO(text),
        io.StringIO(text.decode()),
        gzip.compress(text),
        gzip.compress(ndjson(thing("a")) + b"\n") + gzip.compress(ndjson(thing("b"))),
        packed.getvalue().to_pybytes(),
    ):
        assert _slugs(source) == ["a", "b"]


def _slugs(source):
    with SpillManager() as spill:
        intake = RowBuilder(accepted(), spill)
        read_ndjson(source, intake, ProgressMeter())
        assert not intake.changes.findings
        assert intake.is_whole
        [batch] = intake.finish().types["node:Thing"].batches
        return batch.rows["slug"].to_pylist()


@pytest.mark.parametrize("pack", ["gzip", "zstd"])
def test_packed_file_that_ends_too_early_is_reported(pack):
    stream = pa.BufferOutputStream()
    with pa.CompressedOutputStream(stream, pack) as packing:
        packing.write(ndjson(*(thing(str(n)) for n in range(1000))))
    packed = stream.getvalue().to_pybytes()
    with SpillManager() as spill:
        intake = RowBuilder(accepted(), spill)
        read_ndjson(packed[: len(packed) // 2], intake, ProgressMeter())
        assert not intake.is_whole
        assert [str(v) for v in intake.changes.findings.listed] == [
            "the packed data ends too early"
        ]


# --- lines that are too long -------------------------------------------------------------------


def test_line_beyond_the_limit_is_skipped_and_the_rest_is_read():
    pieces = [b"a\n", b"b" * 6, b"b" * 6, b"b\nc\n", b"d"]
    assert list(read_line_blocks(pieces, limit=10)) == [
        LineBlock(b"a\n", 1),
        OversizedLine(2),
        LineBlock(b"c\n", 3),
        LineBlock(b"d\n", 4),
    ]


def test_last_line_beyond_the_limit_is_reported():
    assert list(read_line_blocks([b"x" * 11], limit=10)) == [OversizedLine(1)]


class _Endless(io.RawIOBase):
    """A file of one good line, a line of a gigabyte, and another good line, made while read."""

    def __init__(self):
        super().__init__()
        filler = b"x" * (1024 * 1024)
        self._pieces = iter(
            [ndjson(thing("a")) + b"\n", *[filler] * 1024, b"\n", ndjson(thing("b"))]
        )

    def readable(self):
        return True

    def read(self, size=-1):
        return next(self._pieces, b"")


def test_line_of_a_gigabyte_takes_no_gigabyte_of_memory():
    with SpillManager() as spill:
        intake = RowBuilder(accepted(), spill)
        tracemalloc.start()
        try:
            read_ndjson(_Endless(), intake, ProgressMeter())
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak < 4 * MAX_LINE_BYTES
        assert [str(v) for v in intake.changes.findings.listed] == [
            f"line 2: the line is longer than {MAX_LINE_BYTES} bytes"
        ]
        [batch] = intake.finish().types["node:Thing"].batches
        assert batch.rows["slug"].to_pylist() == ["a", "b"]


def test_line_of_too_many_brackets_is_refused_before_it_is_parsed():
    line = '{"type":"Thing","data":{"slug":"a","tags":[' + "[]," * 140_000 + "[]]}}"
    assert problems(line.encode()) == [
        "line 1: the line has more than 131072 structural characters"
    ]


def test_brackets_inside_text_do_not_count():
    assert rows(ndjson(thing("a", title="[]" * 140_000))) == ["a"]


@pytest.mark.parametrize("zero", ["-0", "-0.0", "0", "-0e1"])
def test_negative_zeros_are_read_alike(tmp_path, zero):
    schema = "node N { name: String @key  one: F64?  all: [F32]?  at: Vector(2)? }"
    data = f'{{"one": {zero}, "all": [1, {zero}], "at": [{zero}, 1], "name": "%s"}}'
    lines = [f'{{"type": "N", "data": {data % name}}}\n' for name in "ab"]
    graph = og.init(tmp_path / "graph", schema)
    # The grammar reads lines one by one where one of them is in doubt.
    graph.load(lines[0].encode())
    graph.load((lines[1].rstrip() + " \n").encode())
    one, two = (graph.entity_at("N", name) for name in "ab")
    assert repr({**one, "id": "", "name": ""}) == repr({**two, "id": "", "name": ""})
