"""Parse one line of a graph batch, and report exactly what is wrong with it.

A node is `{"type": T, "data": {…}}`, an edge `{"edge": E, "from": id, "to": id, "data": {…}}`. No
member is named twice at any depth, no other member is allowed, and a line holds one value.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NoReturn

import numpy as np

from omnigraph.catalog import Catalog, TypeKind
from omnigraph.lang.diagnostics import nearest_name
from omnigraph.types import json_kind
from omnigraph.write.violations import ViolationRule

# ----------------------------------------------------------------------
# Blocks of whole lines of a stream, with a limit on the length of a line.


MAX_LINE_BYTES = 32 * 1024 * 1024
"""The longest line of a graph batch."""
MAX_DEPTH = 100
"""Levels of lists and objects in a record."""

_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class LineBlock:
    """Whole lines, each with its newline, and the number of the first."""

    data: bytes
    first: int


@dataclass(frozen=True, slots=True)
class OversizedLine:
    """A line that was skipped because it is too long."""

    line: int


def read_line_blocks(
    chunks: Iterable[bytes], limit: int = MAX_LINE_BYTES
) -> Iterator[LineBlock | OversizedLine]:
    """Yield all lines in blocks; skip lines beyond the limit without holding them."""
    number = 1
    waiting: list[bytes] = []
    held = 0
    skipping = False
    at_start = True
    for chunk in chunks:
        data = chunk.removeprefix(_BOM) if at_start else chunk
        at_start = False
        if skipping:
            end = data.find(b"\n")
            if end < 0:
                continue
            skipping, number, data = False, number + 1, data[end + 1 :]
        cut = data.rfind(b"\n") + 1
        if cut:
            block = b"".join([*waiting, data[:cut]])
            yield LineBlock(block, number)
            number += block.count(b"\n")
            waiting, held, data = [], 0, data[cut:]
        waiting.append(data)
        held += len(data)
        if held > limit:
            yield OversizedLine(number)
            waiting, held, skipping = [], 0, True
    if held:
        yield LineBlock(b"".join([*waiting, b"\n"]), number)


@dataclass(frozen=True, slots=True)
class LineIndex:
    """The lines of a block: its bytes, where each line begins, and the position of the first.

    `says_null` is whether the word null occurs.
    """

    data: bytes
    starts: np.ndarray[Any, Any]
    first: int
    says_null: bool

    @classmethod
    def of(cls, block: LineBlock, base: int) -> LineIndex:
        """Find the lines of a block; `base` is what positions in its file begin with."""
        ends = np.flatnonzero(np.frombuffer(block.data, np.uint8) == ord("\n")) + 1
        starts = np.concatenate([np.zeros(1, np.int64), ends]).astype(np.int32)
        return cls(block.data, starts, base + block.first, b"null" in block.data)

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, index: int) -> bytes:
        return self.data[self.starts[index] : self.starts[index + 1]]


MAX_STRUCTURAL_CHARS = 131_072
"""How many of the characters `{}[],:` a line may have outside of text."""

RESERVED_COLUMNS = frozenset(
    (
        "_tombstone",
        "_rowid",
        "_rowaddr",
        "_rowoffset",
        "_row_created_at_version",
        "_row_last_updated_at_version",
    )
)
"""Names of physical columns, which no input may set."""

_STRUCTURAL = b"{}[],:"
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"', re.S)
_MEMBERS = {"type": frozenset(("type", "data")), "edge": frozenset(("edge", "from", "to", "data"))}
_KINDS = {"type": TypeKind.NODE, "edge": TypeKind.EDGE}


class InvalidLine(Exception):
    """What is wrong with a line as a whole."""

    def __init__(self, rule: ViolationRule, message: str, **facts: Any) -> None:  # noqa: ANN401
        super().__init__(message)
        self.rule, self.message, self.facts = rule, message, facts


@dataclass(frozen=True, slots=True)
class EntityRecord:
    """One entity as a line gives it."""

    kind: TypeKind
    name: str
    data: Mapping[str, Any]
    src: str | None = None
    dst: str | None = None


def read_line(line: bytes, catalog: Catalog) -> EntityRecord:
    """Return the entity of a line; raise InvalidLine when there is none."""
    value = parse_line(line)
    if not isinstance(value, dict):
        raise _syntax(f"expected an object, got {json_kind(value)}")
    words = [word for word in _KINDS if word in value]
    if len(words) != 1:
        both = "found both" if words else "found neither"
        raise _syntax(f"expected exactly one of `type` and `edge`, {both}")
    [word] = words
    for name in value:
        if name not in _MEMBERS[word]:
            raise _syntax(_unexpected(name))
    record_name = find_named_type(value[word], word, catalog)
    return make_record(value, word, record_name, value.get("data", {}))


def make_record(value: Mapping[str, Any], word: str, name: str, data: object) -> EntityRecord:
    """Return the entity of a type; raise InvalidLine when its data or ends are invalid."""
    if not isinstance(data, dict):
        raise _syntax(f"`data` is an object, not {json_kind(data)}")
    ends = ("from", "to") if word == "edge" else ()
    return EntityRecord(_KINDS[word], name, data, *(_endpoint_id(value, end) for end in ends))


def unknown_member_message(name: str, kind: TypeKind) -> str:
    """Say why a member of `data` is none of the type's properties."""
    if name in RESERVED_COLUMNS:
        return f"`{name}` is reserved"
    if kind is TypeKind.EDGE and name in ("src", "dst"):
        return (
            f"`{name}` is not a property; give `{'from' if name == 'src' else 'to'}` beside `data`"
        )
    return f"unknown property `{name}`"


def parse_line(line: bytes) -> Any:  # noqa: ANN401 - whatever stands there
    """Return the one JSON value of a line; raise InvalidLine when there is none."""
    if len(line) > MAX_LINE_BYTES:
        raise InvalidLine(ViolationRule.LINE_BYTES, line_too_long_message())
    if len(line) > MAX_STRUCTURAL_CHARS:
        _check_slots(line)
    try:
        text = line.rstrip(b"\r\n").decode()
    except UnicodeDecodeError as error:
        raise _syntax(f"not UTF-8: {error.reason} at byte {error.start + 1}") from error
    try:
        value = json.loads(
            text, object_pairs_hook=_object_without_duplicates, parse_constant=_reject_constant
        )
    except json.JSONDecodeError as error:
        if error.msg == "Extra data":
            raise _syntax(f"more than one value on the line, at column {error.colno}") from error
        raise _syntax(f"invalid JSON: {error.msg} at column {error.colno}") from error
    except RecursionError as error:
        raise _syntax("too deeply nested") from error
    except ValueError as error:
        # Python reads no integer of more than some thousand digits.
        raise InvalidLine(ViolationRule.VALUE, "a number is too long to be read") from error
    if is_too_deep(value, text):
        raise _syntax("too deeply nested")
    return value


def is_too_deep(value: Any, text: str, start: int = 0, end: int | None = None) -> bool:  # noqa: ANN401 - any JSON value
    """Return whether a value of a text is nested more deeply than any value can be stored."""
    if text.count("[", start, end) + text.count("{", start, end) <= MAX_DEPTH:
        return False
    level = [value]
    for _ in range(MAX_DEPTH):
        parts = (
            v.values() if isinstance(v, dict) else v for v in level if isinstance(v, dict | list)
        )
        level = [item for part in parts for item in part]
    return bool(level)


def line_too_long_message() -> str:
    """Say that a line is too long."""
    return f"the line is longer than {MAX_LINE_BYTES} bytes"


def _check_slots(line: bytes) -> None:
    def slots(text: bytes) -> int:
        return len(text) - len(text.translate(None, _STRUCTURAL))

    if slots(line) <= MAX_STRUCTURAL_CHARS:
        return
    outside = slots(_STRING.sub(b"", line))
    if outside > MAX_STRUCTURAL_CHARS:
        message = f"the line has more than {MAX_STRUCTURAL_CHARS} structural characters"
        raise InvalidLine(ViolationRule.LINE_SLOTS, message, value=outside)


def _object_without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise _syntax(f"member `{twice[:80]}` is given twice")
    return members


def _reject_constant(word: str) -> NoReturn:
    raise _syntax(f"invalid JSON: {word} is not a number")


def find_type_name(catalog: Catalog, kind: TypeKind, name: str) -> str | None:
    """Return the declared name of a type; that of an edge is not case-sensitive."""
    if kind is TypeKind.NODE:
        return name if name in catalog.nodes else None
    edge = catalog.edge(name)
    return None if edge is None else edge.name


def find_named_type(value: Any, word: str, catalog: Catalog) -> str:  # noqa: ANN401 - any JSON value
    """Return the type that `type` or `edge` names; raise InvalidLine when there is none."""
    if not isinstance(value, str):
        raise _syntax(f"`{word}` is the name of a type, not {json_kind(value)}")
    kind = _KINDS[word]
    name = find_type_name(catalog, kind, value)
    if name is not None:
        return name
    names = catalog.nodes if kind is TypeKind.NODE else catalog.edges
    message = unknown_type_message(kind, value, tuple(names))
    raise InvalidLine(ViolationRule.UNKNOWN_TYPE, message, kind=str(kind), type=value[:80])


@lru_cache
def unknown_type_message(kind: TypeKind, name: str, names: tuple[str, ...]) -> str:
    """Return the error for an unknown type, cached because many lines may have the same one."""
    near = nearest_name(name, names)
    hint = f"; did you mean `{near}`?" if near else ""
    return f"unknown {kind} type `{name[:80]}`{hint}"


def _endpoint_id(value: Mapping[str, Any], word: str) -> str:
    """Return the ID that `from` or `to` gives; raise InvalidLine when it gives none."""
    if word not in value:
        raise InvalidLine(ViolationRule.REQUIRED, f"`{word}` is missing")
    end = value[word]
    if end is None:
        raise InvalidLine(ViolationRule.REQUIRED, f"`{word}` is null")
    if not isinstance(end, str):
        raise InvalidLine(
            ViolationRule.VALUE, f"`{word}` is the id of a node, not {json_kind(end)}"
        )
    return end


def _unexpected(name: str) -> str:
    if name in RESERVED_COLUMNS:
        return f"`{name}` is reserved"
    return f"unexpected member `{name[:80]}`"


def _syntax(message: str) -> InvalidLine:
    return InvalidLine(ViolationRule.SYNTAX, message)
