"""This module reads one line of a graph batch, and says exactly what is wrong with it.

A node is `{"type": T, "data": {…}}`, an edge `{"edge": E, "from": id, "to": id, "data": {…}}`. No
member is named twice at any depth, no other member is allowed, and a line holds one value.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NoReturn

from omnigraph.catalog import Catalog, TypeKind
from omnigraph.lang.suggest import nearest_name
from omnigraph.types import json_kind
from omnigraph.write.inputs.lines import LINE_BYTES
from omnigraph.write.violations import Rule

STRUCTURAL_SLOTS = 131_072
"""How many of the characters `{}[],:` a line may have outside of text."""

RESERVED = frozenset(
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


class LineProblem(Exception):
    """What is wrong with a line as a whole."""

    def __init__(self, rule: Rule, message: str, **facts: Any) -> None:  # noqa: ANN401
        super().__init__(message)
        self.rule, self.message, self.facts = rule, message, facts


@dataclass(frozen=True, slots=True)
class Record:
    """One entity as a line gives it."""

    kind: TypeKind
    name: str
    data: Mapping[str, Any]
    src: str | None = None
    dst: str | None = None


def read_line(line: bytes, catalog: Catalog) -> Record:
    """Return the entity of a line; raise LineProblem when there is none."""
    value = parse_line(line)
    if not isinstance(value, dict):
        raise _syntax(f"expected an object, got {json_kind(value)}")
    found = [word for word in _KINDS if word in value]
    if len(found) != 1:
        both = "found both" if found else "found neither"
        raise _syntax(f"expected exactly one of `type` and `edge`, {both}")
    [word] = found
    for name in value:
        if name not in _MEMBERS[word]:
            raise _syntax(_unexpected(name))
    record_name = type_named(value[word], word, catalog)
    data = value.get("data", {})
    if not isinstance(data, dict):
        raise _syntax(f"`data` is an object, not {json_kind(data)}")
    kind = _KINDS[word]
    if kind is TypeKind.NODE:
        return Record(kind, record_name, data)
    return Record(kind, record_name, data, end_of(value, "from"), end_of(value, "to"))


def check_member(name: str, kind: TypeKind) -> str:
    """Say why a member of `data` is none of the type's properties."""
    if name in RESERVED:
        return f"`{name}` is reserved"
    if kind is TypeKind.EDGE and name in ("src", "dst"):
        return f"`{name}` is no property; give `{'from' if name == 'src' else 'to'}` beside `data`"
    return f"unknown property `{name}`"


def parse_line(line: bytes) -> Any:  # noqa: ANN401 - whatever stands there
    """Return the one JSON value of a line; raise LineProblem when there is none."""
    if len(line) > LINE_BYTES:
        raise LineProblem(Rule.LINE_BYTES, too_long())
    if len(line) > STRUCTURAL_SLOTS:
        _check_slots(line)
    try:
        text = line.rstrip(b"\r\n").decode()
    except UnicodeDecodeError as error:
        raise _syntax(f"not UTF-8: {error.reason} at byte {error.start + 1}") from error
    try:
        return json.loads(text, object_pairs_hook=_object, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        if error.msg == "Extra data":
            raise _syntax(f"more than one value on the line, at column {error.colno}") from error
        raise _syntax(f"invalid JSON: {error.msg} at column {error.colno}") from error
    except RecursionError as error:
        raise _syntax("too deeply nested") from error
    except ValueError as error:
        # Python reads no integer of more than some thousand digits.
        raise LineProblem(Rule.VALUE, "a number is too long to be read") from error


def too_long() -> str:
    """Say that a line is too long."""
    return f"the line is longer than {LINE_BYTES} bytes"


def _check_slots(line: bytes) -> None:
    def slots(text: bytes) -> int:
        return len(text) - len(text.translate(None, _STRUCTURAL))

    if slots(line) <= STRUCTURAL_SLOTS:
        return
    found = slots(_STRING.sub(b"", line))
    if found > STRUCTURAL_SLOTS:
        message = f"the line has more than {STRUCTURAL_SLOTS} structural characters"
        raise LineProblem(Rule.LINE_SLOTS, message, value=found)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise _syntax(f"member `{twice[:80]}` is given twice")
    return found


def _no_constant(word: str) -> NoReturn:
    raise _syntax(f"invalid JSON: {word} is no number")


def type_named(value: Any, word: str, catalog: Catalog) -> str:  # noqa: ANN401 - any JSON value
    """Return the type that `type` or `edge` names; raise LineProblem when there is none."""
    if not isinstance(value, str):
        raise _syntax(f"`{word}` is the name of a type, not {json_kind(value)}")
    if word == "type":
        if value in catalog.nodes:
            return value
    elif (edge := catalog.edge(value)) is not None:
        return edge.name
    kind = _KINDS[word]
    known = catalog.nodes if kind is TypeKind.NODE else catalog.edges
    message = unknown_type(kind, value, tuple(known))
    raise LineProblem(Rule.UNKNOWN_TYPE, message, kind=str(kind), type=value[:80])


@lru_cache
def unknown_type(kind: TypeKind, name: str, known: tuple[str, ...]) -> str:
    """Say that there is no such type; as many lines may be wrong in the same way, remember it."""
    near = nearest_name(name, known)
    hint = f"; did you mean `{near}`?" if near else ""
    return f"unknown {kind} type `{name[:80]}`{hint}"


def end_of(value: Mapping[str, Any], word: str) -> str:
    """Return the id `from` or `to` gives; raise LineProblem when it gives none."""
    if word not in value:
        raise LineProblem(Rule.REQUIRED, f"`{word}` is missing")
    end = value[word]
    if end is None:
        raise LineProblem(Rule.REQUIRED, f"`{word}` is null")
    if not isinstance(end, str):
        raise LineProblem(Rule.VALUE, f"`{word}` is the id of a node, not {json_kind(end)}")
    return end


def _unexpected(name: str) -> str:
    if name in RESERVED:
        return f"`{name}` is reserved"
    return f"unexpected member `{name[:80]}`"


def _syntax(message: str) -> LineProblem:
    return LineProblem(Rule.SYNTAX, message)
