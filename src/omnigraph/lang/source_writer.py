"""Write lines for the printers, with comments where they belong.

A tree printed without its source gets the canonical layout. Printed with its source it also keeps
comments, single blank lines and the spelling of literals, which is what `omnigraph fmt` does.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from decimal import Decimal

from omnigraph.lang.source import SourceText, TextSpan
from omnigraph.lang.tokens import CommentToken, encode_string, find_punctuation

LINE_WIDTH = 100

_INDENT = "  "
_GAP = re.compile(r"[ \t,]*")
_BLANK_LINE = re.compile(r"\n[ \t\r]*\n")
_NUMBER = re.compile(r"[-0-9.]+")


class SourceWriter:
    """Collects indented lines in the order of the source."""

    def __init__(
        self, source: SourceText | None = None, comments: Sequence[CommentToken] = ()
    ) -> None:
        self._source = source
        self._comments = comments
        self._next_comment = 0
        self._lines: list[str] = []
        self._indent = 0
        self._end = 0
        self._block_opened = True

    def text(self) -> str:
        """Return everything written, with the comments that were left."""
        self._flush_comments(None)
        return "".join(line + "\n" for line in self._lines)

    def line(self, text: str, span: TextSpan) -> None:
        """Write one item of `span`, with the comments before, in and beside it."""
        self._flush_comments(span.end)
        self._blank_before(span.start)
        self._put(text)
        self._end = max(self._end, span.end)
        self._comment_beside(span.end)

    def open(self, text: str, start: int) -> None:
        """Write the line that opens a block standing at `start` and indent what follows."""
        self.line(text, TextSpan(start, self._opening(text[-1], start)))
        self._indent += 1
        self._block_opened = True

    def close(self, text: str, end: int) -> None:
        """Write the line that closes a block which ends before offset `end`."""
        self._flush_comments(max(0, end - 1))
        self._indent -= 1
        self._block_opened = True
        self._put(text)
        self._end = max(self._end, end)
        self._comment_beside(end)

    def blank(self) -> None:
        """Add an empty line, unless a block was just opened."""
        if self._lines and self._lines[-1] and not self._block_opened:
            self._lines.append("")

    def width(self, text: str) -> int:
        """Return how long the first line of `text` would be at the current indentation."""
        return len(_INDENT) * self._indent + len(text.partition("\n")[0])

    def has_comments(self, bracket: str, span: TextSpan) -> bool:
        """Return whether there are comments after the first `bracket` of `span`."""
        if self._next_comment >= len(self._comments):
            return False
        opening = self._opening(bracket, span.start)
        following = bisect_left(self._comments, opening, self._next_comment, key=_comment_start)
        return (
            following < len(self._comments) and _comment_start(self._comments[following]) < span.end
        )

    def _opening(self, bracket: str, start: int) -> int:
        """Return where the first `bracket` from `start` ends, in the source if there is one."""
        return find_punctuation(self._source, bracket, start) if self._source is not None else start

    # --- spelling ------------------------------------------------------------------------------

    def string(self, value: str, span: TextSpan) -> str:
        """Return a string literal, as spelled in the source where there is one."""
        return self._spelled(span) or encode_string(value)

    def number(self, plain: str, span: TextSpan) -> str:
        """Return a number or range, as spelled in the source where it is one token there."""
        spelled = self._spelled(span) or ""
        return spelled if _NUMBER.fullmatch(spelled) else plain

    def _spelled(self, span: TextSpan) -> str | None:
        if self._source is None or span.end <= span.start:
            return None
        return self._source.text[span.start : span.end]

    # --- lines and comments --------------------------------------------------------------------

    def _put(self, text: str) -> None:
        indent = _INDENT * self._indent
        self._lines.append(indent + text if text else "")
        self._block_opened = False

    def _flush_comments(self, before: int | None) -> None:
        """Write the pending comments that start before an offset on lines of their own."""
        while self._next_comment < len(self._comments):
            comment = self._comments[self._next_comment]
            if before is not None and comment.span.start >= before:
                return
            self._next_comment += 1
            self._blank_before(comment.span.start)
            self._put(comment.text.rstrip())
            self._end = max(self._end, comment.span.end)

    def _blank_before(self, start: int) -> None:
        """Keep one blank line where the author left at least one."""
        if self._source is None or start <= self._end:
            return
        if _BLANK_LINE.search(self._source.text, self._end, start):
            self.blank()

    def _comment_beside(self, end: int) -> None:
        """Append a comment that is on the same source line as the item just written."""
        if self._source is None or self._next_comment >= len(self._comments):
            return
        comment = self._comments[self._next_comment]
        gap = _GAP.match(self._source.text, end)
        if gap is None or gap.end() != comment.span.start:
            return
        self._next_comment += 1
        self._lines[-1] += " " + comment.text.rstrip()
        self._end = max(self._end, comment.span.end)


def _comment_start(comment: CommentToken) -> int:
    return comment.span.start


def plain_number(value: float) -> str:
    """Write a number the grammar can read back exactly: no exponent, a float with its point."""
    if isinstance(value, int):
        return str(value)
    text = format(Decimal(repr(value)), "f")
    return text if "." in text else text + ".0"
