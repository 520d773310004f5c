"""This module reads YAML strictly: plain values, and the line each of them stands on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

MAX_BYTES = 1024 * 1024

Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Mistake:
    """Something YAML allows and we do not, or not YAML at all."""

    duplicate: bool
    path: Path
    line: int
    message: str


@dataclass(frozen=True, slots=True)
class Document:
    """The values of a file, where they stand, and what is wrong with the text."""

    value: Any
    lines: Mapping[Path, int] = field(default_factory=dict)
    mistakes: tuple[Mistake, ...] = ()

    def line(self, path: Path) -> int:
        """Return the line of a value, or of the nearest one around it."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)


def read_document(text: str) -> Document:
    """Read a text; nothing is raised, mistakes are listed."""
    if len(text.encode("utf-8", "replace")) > MAX_BYTES:
        return _broken(f"the file is longer than {MAX_BYTES:,} bytes", 1)
    try:
        root = yaml.compose(text, yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        return _broken(error.problem or "this is no YAML", line)
    except (yaml.YAMLError, RecursionError) as error:
        return _broken(str(error).partition("\n")[0] or "this is no YAML", 1)
    if root is None:
        return _broken("the file is empty", 1)
    reader = _Reader()
    value = reader.read(root, ())
    return Document(value, reader.lines, tuple(reader.mistakes))


def _broken(message: str, line: int) -> Document:
    return Document(None, {}, (Mistake(False, (), line, message),))


class _Reader:
    """One walk over the nodes of a text."""

    def __init__(self) -> None:
        self.lines: dict[Path, int] = {}
        self.mistakes: list[Mistake] = []
        self._seen: set[int] = set()
        self._plain = yaml.SafeLoader("")

    def read(self, node: yaml.Node, path: Path) -> Any:  # noqa: ANN401 - any YAML value
        """Return the value of a node."""
        line = node.start_mark.line + 1
        self.lines.setdefault(path, line)
        if id(node) in self._seen:
            # An alias can repeat itself without end.
            self._mistake(path, line, "`*` refers to another place; write the value here")
            return None
        self._seen.add(id(node))
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path)
        if isinstance(node, yaml.SequenceNode):
            return [self.read(item, (*path, number)) for number, item in enumerate(node.value)]
        return self._scalar(node, path, line)

    def _mapping(self, node: yaml.MappingNode, path: Path) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in node.value:
            line = key.start_mark.line + 1
            if not isinstance(key, yaml.ScalarNode):
                self._mistake(path, line, "a key is a plain name")
                continue
            name = key.value
            inner = (*path, name)
            if name in found:
                message = f"`{name}` is given twice, first on line {self.lines[inner]}"
                self.mistakes.append(Mistake(True, inner, line, message))
                continue
            self.lines[inner] = line
            found[name] = self.read(value, inner)
        return found

    def _scalar(self, node: yaml.Node, path: Path, line: int) -> Any:  # noqa: ANN401
        try:
            return self._plain.construct_object(node)
        except (yaml.YAMLError, ValueError):
            self._mistake(path, line, f"`{node.value}` is no plain value")
            return None

    def _mistake(self, path: Path, line: int, message: str) -> None:
        self.mistakes.append(Mistake(False, path, line, message))
