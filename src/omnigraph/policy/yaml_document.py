"""Read YAML of a fixed structure, collecting every problem with its line.

The nodes of the document are read, not constructed, so that a repeated key is seen, and
every problem has its line.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import StrEnum
from typing import Any, TypeAlias, TypeVar

import yaml

from omnigraph.errors import InvalidInput
from omnigraph.lang import did_you_mean
from omnigraph.lang.diagnostics import quote
from omnigraph.policy.errors import PolicyInvalid, PolicyProblem

MAX_POLICY_CHARACTERS = 1024 * 1024
"""Characters a file may have; nesting is bounded by what the parser can hold."""
_TEXT, _INT = "tag:yaml.org,2002:str", "tag:yaml.org,2002:int"
_WordT = TypeVar("_WordT", bound=StrEnum)
YamlNode: TypeAlias = yaml.Node
YamlFields: TypeAlias = Mapping[str, YamlNode]


class PolicyDocument:
    """One file being read. Problems are collected, and the valid rest is returned."""

    def __init__(self, what: str) -> None:
        self.description = what
        self.problems: list[PolicyProblem] = []

    @contextmanager
    def parse(self, text: str) -> Iterator[YamlNode]:
        """Yield the root of a text; raise PolicyInvalid at the end if there are problems."""
        yield self._root(text)
        if self.problems:
            raise PolicyInvalid(self.description, self.problems)

    def _root(self, text: str) -> YamlNode:
        if len(text) > MAX_POLICY_CHARACTERS:
            message = f"the {self.description} is longer than {MAX_POLICY_CHARACTERS:,} characters"
            raise InvalidInput(message, code="policy_too_long")
        try:
            root: YamlNode | None = yaml.compose(text, Loader=yaml.SafeLoader)
        except yaml.MarkedYAMLError as error:
            line = error.problem_mark.line + 1 if error.problem_mark is not None else 1
            raise self._unreadable(line, f"{error.problem or 'it is not valid YAML'}") from error
        except yaml.YAMLError as error:
            raise self._unreadable(1, "it has characters that YAML does not allow") from error
        except RecursionError as error:
            raise self._unreadable(1, "it is nested too deeply") from error
        if root is None:
            raise self._unreadable(1, "it is empty")
        return root

    def _unreadable(self, line: int, message: str) -> PolicyInvalid:
        return PolicyInvalid(self.description, [PolicyProblem(line, message)])

    def add_problem(self, node: YamlNode, message: str) -> None:
        """Record a problem of a node."""
        self.problems.append(PolicyProblem(node.start_mark.line + 1, message))

    def fields(
        self, node: YamlNode, where: str, required: Sequence[str], optional: Sequence[str] = ()
    ) -> YamlFields:
        """Return what a mapping with known keys has."""
        members = self.mapping(node, where)
        names = (*required, *optional)
        for key, value in members.items():
            if key not in names:
                hint = did_you_mean(key, names)
                self.add_problem(value, f"{where} has no key `{quote(key)}`: {hint}")
        if isinstance(node, yaml.MappingNode):
            for key in required:
                if key not in members:
                    self.add_problem(node, f"{where} lacks `{key}`")
        return members

    def mapping(self, node: YamlNode, where: str) -> YamlFields:
        """Return the members of a mapping; each key must be text and occur once."""
        members: dict[str, YamlNode] = {}
        if not isinstance(node, yaml.MappingNode):
            self.add_problem(node, f"{where} must be a mapping of keys and values")
            return members
        for key, value in node.value:
            name = self.text(key, f"a key of {where}")
            if name is None:
                continue
            if name in members:
                self.add_problem(key, f"{where} has the key `{quote(name)}` twice")
            members[name] = value
        return members

    def items(self, node: YamlNode | None, where: str, *, some: bool = False) -> list[YamlNode]:
        """Return what a list has, with `some` at least one; one that is not there has nothing."""
        if node is None:
            return []
        if not isinstance(node, yaml.SequenceNode):
            self.add_problem(node, f"{where} must be a list")
            return []
        if some and not node.value:
            self.add_problem(node, f"{where} must name at least one")
        return list(node.value)

    def texts(self, node: YamlNode | None, where: str, *, some: bool = False) -> list[str]:
        """Return the texts of a list, each once."""
        items = self.items(node, where, some=some)
        texts_ = (self.text(item, f"each of {where}") for item in items)
        return list(dict.fromkeys(text for text in texts_ if text is not None))

    def text(self, node: YamlNode | None, where: str) -> str | None:
        """Return a text that is not blank."""
        if node is None:
            return None
        if not isinstance(node, yaml.ScalarNode) or node.tag != _TEXT:
            quoted = " (put it in quotes)" if isinstance(node, yaml.ScalarNode) else ""
            self.add_problem(node, f"{where} must be text{quoted}")
            return None
        if not node.value.strip():
            self.add_problem(node, f"{where} must not be blank")
            return None
        return str(node.value)

    def enum_value(self, node: YamlNode | None, where: str, choices: type[_WordT]) -> _WordT | None:
        """Return one of the known words."""
        text = self.text(node, where)
        if node is None or text is None:
            return None
        if text in list(choices):
            return choices(text)
        hint = did_you_mean(text, list(choices))
        self.add_problem(node, f"{where} cannot be `{quote(text)}`: {hint}")
        return None

    def plain(self, node: YamlNode) -> Any:  # noqa: ANN401 - any YAML value
        """Return a node as plain values; a mapping with unhashable keys is a problem."""
        try:
            return yaml.SafeLoader("").construct_document(node)
        except yaml.YAMLError as error:
            self.add_problem(node, f"it cannot be read: {error}")
            return None

    def version(self, node: YamlNode | None) -> None:
        """Check that a file is of version 1."""
        if node is None:
            return
        is_one = isinstance(node, yaml.ScalarNode) and (node.tag, node.value) == (_INT, "1")
        if not is_one:
            self.add_problem(node, f"`version` of the {self.description} must be 1")
