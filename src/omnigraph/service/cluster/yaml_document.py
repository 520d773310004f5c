"""Strict YAML: plain values, each with its line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

MAX_YAML_BYTES = 1024 * 1024

YamlPath = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class YamlProblem:
    """Something YAML allows and we do not, or not YAML at all."""

    duplicate: bool
    path: YamlPath
    line: int
    message: str


@dataclass(frozen=True, slots=True)
class YamlDocument:
    """The values of a file, their lines, and the errors of the text."""

    value: Any
    lines: Mapping[YamlPath, int] = field(default_factory=dict)
    mistakes: tuple[YamlProblem, ...] = ()

    def line(self, path: YamlPath) -> int:
        """Return the line of a value, or of the nearest one around it."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)


def read_yaml(text: str) -> YamlDocument:
    """Read a text; nothing is raised, errors are listed."""
    if len(text.encode("utf-8", "replace")) > MAX_YAML_BYTES:
        return _invalid_yaml(f"the file is longer than {MAX_YAML_BYTES:,} bytes", 1)
    try:
        root = yaml.compose(text, yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        return _invalid_yaml(error.problem or "not valid YAML", line)
    except (yaml.YAMLError, RecursionError) as error:
        return _invalid_yaml(str(error).partition("\n")[0] or "not valid YAML", 1)
    if root is None:
        return _invalid_yaml("the file is empty", 1)
    reader = _YamlNodeReader()
    value = reader.read(root, ())
    return YamlDocument(value, reader.lines, tuple(reader.mistakes))


def _invalid_yaml(message: str, line: int) -> YamlDocument:
    return YamlDocument(None, {}, (YamlProblem(False, (), line, message),))


class _YamlNodeReader:
    """Reads the nodes of one document."""

    def __init__(self) -> None:
        self.lines: dict[YamlPath, int] = {}
        self.mistakes: list[YamlProblem] = []
        self._seen: set[int] = set()
        self._plain = yaml.SafeLoader("")

    def read(self, node: yaml.Node, path: YamlPath) -> Any:  # noqa: ANN401 - any YAML value
        """Return the value of a node."""
        line = node.start_mark.line + 1
        self.lines.setdefault(path, line)
        if id(node) in self._seen:
            # An alias can repeat itself without end.
            self._mistake(path, line, "aliases (`*`) are not supported; write the value here")
            return None
        self._seen.add(id(node))
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path)
        if isinstance(node, yaml.SequenceNode):
            return [self.read(item, (*path, number)) for number, item in enumerate(node.value)]
        return self._scalar(node, path, line)

    def _mapping(self, node: yaml.MappingNode, path: YamlPath) -> dict[str, Any]:
        members: dict[str, Any] = {}
        for key, value in node.value:
            line = key.start_mark.line + 1
            if not isinstance(key, yaml.ScalarNode):
                self._mistake(path, line, "a key is a plain name")
                continue
            name = key.value
            inner = (*path, name)
            if name in members:
                message = f"`{name}` is given twice, first on line {self.lines[inner]}"
                self.mistakes.append(YamlProblem(True, inner, line, message))
                continue
            self.lines[inner] = line
            members[name] = self.read(value, inner)
        return members

    def _scalar(self, node: yaml.Node, path: YamlPath, line: int) -> Any:  # noqa: ANN401
        try:
            return self._plain.construct_object(node)
        except (yaml.YAMLError, ValueError):
            self._mistake(path, line, f"`{node.value}` is not a plain value")
            return None

    def _mistake(self, path: YamlPath, line: int, message: str) -> None:
        self.mistakes.append(YamlProblem(False, path, line, message))
