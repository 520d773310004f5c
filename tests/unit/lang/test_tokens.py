"""Cutting text into tokens."""

from itertools import takewhile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.lang import Code, SourceText, report_for_text
from omnigraph.lang import tokens as tk
from omnigraph.lang.source import TextSpan
from tests.support.diagnostic_lines import reported

CODE = Code.QUERY_SYNTAX


def cut(text):
    """Return the tokens as `kind:text` (a sign just as itself) and what was reported."""
    report = report_for_text(text, "test", CODE)
    tokens = list(takewhile(lambda token: token.kind != tk.END, tk.tokenize(report, CODE)))
    return [t.kind if t.kind == t.text else f"{t.kind}:{t.text}" for t in tokens], reported(report)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", []),
        (" \t\r\n", []),
        ("node", ["name:node"]),
        ("_x9 aB", ["name:_x9", "name:aB"]),
        ("Port P_9", ["type name:Port", "type name:P_9"]),
        ("$x $_ $aB9", ["variable:x", "variable:_", "variable:aB9"]),
        ("0 007", ["integer:0", "integer:007"]),
        ("1.5 0.0", ["decimal number:1.5", "decimal number:0.0"]),
        ("1..2", ["integer:1", "..", "integer:2"]),
        ("1.5..2.5", ["decimal number:1.5", "..", "decimal number:2.5"]),
        ("1.x", ["integer:1", ".", "name:x"]),
        ("-5", ["-", "integer:5"]),
        ("1-2", ["integer:1", "-", "integer:2"]),
        (
            "1+2*3/4%5",
            [
                *("integer:1", "+", "integer:2", "*", "integer:3"),
                "/",
                "integer:4",
                "%",
                "integer:5",
            ],
        ),
        ("a/b//c", ["name:a", "/", "name:b"]),
        ("a/ /*b*/ *c", ["name:a", "/", "*", "name:c"]),
        ("9lives", ["integer:9", "name:lives"]),
        ('"a" ""', ['string:"a"', 'string:""']),
        ('"a\nb"', ['string:"a\nb"']),
        (r'"\"" "\\"', [r'string:"\""', r'string:"\\"']),
        ('"// no /* comment */"', ['string:"// no /* comment */"']),
        ("->-> >= <= != = < > - ..", ["->", "->", ">=", "<=", "!=", "=", "<", ">", "-", ".."]),
        ("{}()[],:@.?", list("{}()[],:@.?")),
        ("a->b", ["name:a", "->", "name:b"]),
        ("a//b\nc", ["name:a", "name:c"]),
        ("a/*b*/c", ["name:a", "name:c"]),
        ("a/**/b/***/c/* * / */d", ["name:a", "name:b", "name:c", "name:d"]),
        ("/* // */a // /* b", ["name:a"]),
        ("x:I32", ["name:x", ":", "type name:I32"]),
    ],
)
def test_text_is_cut_into(text, tokens):
    assert cut(text) == (tokens, [])


@pytest.mark.parametrize(
    ("text", "tokens", "faults"),
    [
        ("a /* b", ["name:a"], ["1:3 comment is not closed | close it with `*/`"]),
        ("/*/", [], ["1:1 comment is not closed | close it with `*/`"]),
        ('a "b\nc', ["name:a"], ['1:3 string is not closed | close it with `"`']),
        (r'"a\"', [], ['1:1 string is not closed | close it with `"`']),
        (
            "$X $9 $ a",
            ["variable:X", "variable:9", "variable:", "name:a"],
            [
                f"1:{column} `{name}` is not a variable name"
                " | a variable is `$` and a name that starts with a lower-case letter"
                for column, name in ((1, "$X"), (4, "$9"), (7, "$"))
            ],
        ),
        (
            "a 'b c' d",
            ["name:a", "string:'b c'", "name:d"],
            ['1:3 unexpected character `\'` | strings are written with double quotes: `"…"`'],
        ),
        (
            "a # b",
            ["name:a", "name:b"],
            ["1:3 unexpected character `#` | comments are written `// …` or `/* … */`"],
        ),
        ("a ;; b", ["name:a", "name:b"], ["1:3 unexpected character `;`"]),
        ("a & b", ["name:a", "name:b"], ["1:3 unexpected character `&`"]),
        ("!", [], ["1:1 unexpected character `!`"]),
        ("é", [], ["1:1 unexpected character U+00E9 LATIN SMALL LETTER E WITH ACUTE"]),
        ("a\0b", ["name:a", "name:b"], ["1:2 unexpected character U+0000"]),
        ("a\u00a0b", ["name:a", "name:b"], ["1:2 unexpected character U+00A0 NO-BREAK SPACE"]),
        ("a\x0cb", ["name:a", "name:b"], ["1:2 unexpected character U+000C"]),
        ("a\ufeff", ["name:a"], ["1:2 unexpected character U+FEFF ZERO WIDTH NO-BREAK SPACE"]),
    ],
)
def test_what_is_no_token_is_reported_and_passed_over(text, tokens, faults):
    assert cut(text) == (tokens, faults)


def test_spans_cover_what_was_written():
    text = 'a $b  "c"\n->/* d */1.5'
    report = report_for_text(text, "test", CODE)
    tokens = takewhile(lambda token: token.kind != tk.END, tk.tokenize(report, CODE))
    assert [text[slice(*token.span)] for token in tokens] == ["a", "$b", '"c"', "->", "1.5"]


@pytest.mark.parametrize(
    ("text", "span"), [("ab", (2, 2)), ("ab  ", (4, 4)), ('ab "c', (3, 5)), ("ab /* c", (3, 7))]
)
def test_end_repeats_for_ever_and_covers_what_was_not_read(text, span):
    tokens = tk.tokenize(report_for_text(text, "test", CODE), CODE)
    assert next(tokens).text == "ab"
    assert [next(tokens) for _ in range(3)] == [tk.Token(tk.END, "", TextSpan(*span))] * 3


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ('""', ""),
        (r'"a\"b"', 'a"b'),
        (r'"\\n"', r"\n"),
        (r'"\n\r\t"', "\n\r\t"),
        ('"a\r\nb"', "a\r\nb"),
        ('"\0 é 😀"', "\0 é 😀"),
    ],
)
def test_string_is_decoded(written, value):
    report = report_for_text(written, "test", CODE)
    assert tk.decode_string(report, CODE, next(tk.tokenize(report, CODE))) == value
    assert reported(report) == []


def test_every_unknown_escape_of_a_string_is_reported_at_its_place():
    report = report_for_text('x "\\q ok \\\\q \\\n"', "test", CODE)
    tokens = tk.tokenize(report, CODE)
    next(tokens)
    assert tk.decode_string(report, CODE, next(tokens)) == "\\q ok \\q \\\n"
    hint = r"the escapes are \" \\ \n \r \t"
    assert reported(report) == [
        rf"1:4 unsupported escape sequence `\q` | {hint}",
        rf"1:14 unsupported escape sequence `\\u{{a}}` | {hint}",
    ]


@given(st.text())
def test_encoding_a_string_can_be_undone(value):
    report = report_for_text(tk.encode_string(value), "test", CODE)
    assert tk.decode_string(report, CODE, next(tk.tokenize(report, CODE))) == value
    assert reported(report) == []


def test_comments_are_found_with_their_places():
    source = SourceText('a // b\n"// no" /* c\n d */ //')
    found = tk.find_comments(source)
    assert [comment.text for comment in found] == ["// b", "/* c\n d */", "//"]
    assert [source.text[slice(*c.span)] for c in found] == [c.text for c in found]


def test_a_sign_is_found_outside_strings_and_comments():
    source = SourceText('a "{" /* { */ { {')
    assert tk.find_punctuation(source, "{", 0) == 15
    assert tk.find_punctuation(source, "{", 15) == 17
