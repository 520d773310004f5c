"""Tokenizer of both languages.

Punctuation tokens have themselves as kind. Words are not sorted into keywords and names here:
no word is reserved, the grammar decides by place.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import NamedTuple

from omnigraph.lang.codes import Code
from omnigraph.lang.diagnostics import DiagnosticReport, quote
from omnigraph.lang.source import SourceText, TextSpan

VARIABLE = "variable"
NAME = "name"
TYPE_NAME = "type name"
INT = "integer"
FLOAT = "decimal number"
STRING = "string"
END = "end of text"

# Possessive quantifiers (`*+`) keep the matcher from remembering ways back it never needs.
_TOKEN = re.compile(
    r"""
    [ \t\r\n]*+
    (?: (?P<variable>\$[a-z_][A-Za-z0-9_]*+)
      | (?P<name>[a-z_][A-Za-z0-9_]*+)
      | (?P<type>[A-Z][A-Za-z0-9_]*+)
      | (?P<float>[0-9]++\.[0-9]++)
      | (?P<int>[0-9]++)
      | (?P<string>"[^"\\]*+(?:\\.[^"\\]*+)*+")
      | (?P<punctuation>->|\.\.|>=|<=|!=|[{}()\[\],:@.?=<>+*%-]|/(?![/*]))
      | (?P<comment>//[^\n]*+|/\*.*?\*/)
      | (?P<end>\Z)
      | (?P<open_comment>/\*)
      | (?P<open_string>")
      | (?P<bad_variable>\$[A-Za-z0-9_]*+)
      | (?P<bad_string>'[^'\n]*+')
      | (?P<other>[^\s$A-Za-z0-9_"/{}()\[\],:@.?=<>+*%-]++|.)
    )
    """,
    re.VERBOSE | re.DOTALL,
)
_KINDS = {
    "variable": VARIABLE,
    "name": NAME,
    "type": TYPE_NAME,
    "float": FLOAT,
    "int": INT,
    "string": STRING,
}
_INTENDED_KINDS = {"bad_variable": VARIABLE, "bad_string": STRING}
_UNTERMINATED = ("open_comment", "open_string")
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES = {'"': '"', "\\": "\\", "n": "\n", "r": "\r", "t": "\t"}


class Token(NamedTuple):
    """One token: its kind, its text as written (a variable's without `$`) and its place."""

    kind: str
    text: str
    span: TextSpan


class CommentToken(NamedTuple):
    """One comment as written, with its place."""

    text: str
    span: TextSpan


def tokenize(report: DiagnosticReport, code: Code) -> Iterator[Token]:
    """Cut the report's source into tokens, one at a time; after the last, END tokens for ever.

    The END token covers what was not read: nothing, or all from an open string or comment on.
    """
    text = report.source.text
    rest = len(text)
    for match in _TOKEN.finditer(text):
        group = match.lastgroup or ""
        if group == "punctuation":
            sign = match[group]
            yield Token(sign, sign, TextSpan(*match.span(group)))
        elif group in _KINDS:
            written = match[group][1:] if group == "variable" else match[group]
            yield Token(_KINDS[group], written, TextSpan(*match.span(group)))
        elif group == "end":
            break
        elif group != "comment":
            span = TextSpan(*match.span(group))
            _report_invalid_token(report, code, group, match[group], span)
            if group in _INTENDED_KINDS:
                yield Token(_INTENDED_KINDS[group], match[group].removeprefix("$"), span)
            if group in _UNTERMINATED or report.full:
                rest = match.start(group)
                break
    end = Token(END, "", TextSpan(rest, len(text)))
    while True:
        yield end


def find_comments(source: SourceText) -> list[CommentToken]:
    """Return the comments of source text that was read without error."""
    matches = (m for m in _TOKEN.finditer(source.text) if m.lastgroup == "comment")
    return [CommentToken(m["comment"], TextSpan(*m.span("comment"))) for m in matches]


def find_punctuation(source: SourceText, sign: str, start: int) -> int:
    """Return where the first `sign` outside strings and comments ends, looking from `start`."""
    matches = (m for m in _TOKEN.finditer(source.text, start) if m["punctuation"] == sign)
    return next(matches).end()


def _report_invalid_token(
    report: DiagnosticReport, code: Code, group: str, text: str, span: TextSpan
) -> None:
    """Report text that is not a token."""
    hint = None
    match group:
        case "open_comment":
            message, hint = "comment is not closed", "close it with `*/`"
        case "open_string":
            message, hint = "string is not closed", 'close it with `"`'
        case "bad_variable":
            message = f"`{quote(text)}` is not a variable name"
            hint = "a variable is `$` and a name that starts with a lower-case letter"
        case _:
            character = text[0]
            name = unicodedata.name(character, "")
            is_printable = character.isascii() and character.isprintable()
            shown = f"`{character}`" if is_printable else f"U+{ord(character):04X} {name}".rstrip()
            message = f"unexpected character {shown}"
            if character == "'":
                hint = 'strings are written with double quotes: `"…"`'
            elif character == "#":
                hint = "comments are written `// …` or `/* … */`"
    report.add(code, message, span, hint=hint)


def decode_string(report: DiagnosticReport, code: Code, token: Token) -> str:
    """Return the value of a STRING token; an unknown escape is reported and kept as written."""

    def replace(match: re.Match[str]) -> str:
        value = _ESCAPES.get(match[1])
        if value is None:
            start = token.span.start + 1 + match.start()
            report.add(
                code,
                f"unsupported escape sequence `{quote(match[0])}`",
                TextSpan(start, start + 2),
                hint=r"the escapes are \" \\ \n \r \t",
            )
            return match[0]
        return value

    body = token.text[1:-1]
    return _ESCAPE.sub(replace, body) if "\\" in body else body


def encode_string(value: str) -> str:
    """Write `value` as a string literal; the inverse of `decode_string`."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    escaped = escaped.replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
    return f'"{escaped}"'
