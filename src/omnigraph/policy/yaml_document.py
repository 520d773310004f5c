"""Read YAML of a fixed structure, collecting every problem with its line.

Nothing is constructed: the nodes of the document are read, so that a repeated key is seen, and
every problem has its line.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import StrEnum
from typing import TypeAlias, TypeVar

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
    """One file in the reading. What is wrong is noted, and what is left of it is returned."""

    def __init__(self, what: str) -> None:
        self.what = what
        self.problems: list[PolicyProblem] = []

    @contextmanager
    def reading(self, text: str) -> Iterator[YamlNode]:
        """Give the root of a text; raise PolicyInvalid in the end if anything was wrong."""
        yield self._root(text)
        if self.problems:
            raise PolicyInvalid(self.what, self.problems)

    def _root(self, text: str) -> YamlNode:
        if len(text) > MAX_POLICY_CHARACTERS:
            message = f"the {self.what} is longer than {MAX_POLICY_CHARACTERS:,} characters"
            raise InvalidInput(message, code="policy_too_long")
        try:
            root: YamlNode | None = yaml.compose(text, Loader=yaml.SafeLoader)
        except yaml.MarkedYAMLError as error:
            line = error.problem_mark.line + 1 if error.problem_mark is not None else 1
            raise self._unreadable(line, f"{error.problem or 'it is not valid YAML'}") from error
        except yaml.YAMLError as error:
            raise self._unreadable(1, "it holds characters that YAML does not know") from error
        except RecursionError as error:
            raise self._unreadable(1, "it is nested too deeply") from error
        if root is None:
            raise self._unreadable(1, "it is empty")
        return root

    def _unreadable(self, line: int, message: str) -> PolicyInvalid:
        return PolicyInvalid(self.what, [PolicyProblem(line, message)])

    def wrong(self, node: YamlNode, message: str) -> None:
        """Note what is wrong with a node."""
        self.problems.append(PolicyProblem(node.start_mark.line + 1, message))

    def fields(
        self, node: YamlNode, where: str, required: Sequence[str], optional: Sequence[str] = ()
    ) -> YamlFields:
        """Return what a mapping with known keys has."""
        found = self.mapping(node, where)
        known = (*required, *optional)
        for key, value in found.items():
            if key not in known:
                hint = did_you_mean(key, known)
                self.wrong(value, f"{where} has no key `{quote(key)}`: {hint}")
        if isinstance(node, yaml.MappingNode):
            for key in required:
                if key not in found:
                    self.wrong(node, f"{where} lacks `{key}`")
        return found

    def mapping(self, node: YamlNode, where: str) -> YamlFields:
        """Return what a mapping has by its keys, each of which is text and stands once."""
        found: dict[str, YamlNode] = {}
        if not isinstance(node, yaml.MappingNode):
            self.wrong(node, f"{where} is a mapping of keys and values")
            return found
        for key, value in node.value:
            name = self.text(key, f"a key of {where}")
            if name is None:
                continue
            if name in found:
                self.wrong(key, f"{where} has the key `{quote(name)}` twice")
            found[name] = value
        return found

    def items(self, node: YamlNode | None, where: str, *, some: bool = False) -> list[YamlNode]:
        """Return what a list has, with `some` at least one; one that is not there has nothing."""
        if node is None:
            return []
        if not isinstance(node, yaml.SequenceNode):
            self.wrong(node, f"{where} is a list")
            return []
        if some and not node.value:
            self.wrong(node, f"{where} names at least one")
        return list(node.value)

    def texts(self, node: YamlNode | None, where: str, *, some: bool = False) -> list[str]:
        """Return the texts of a list, each once."""
        items = self.items(node, where, some=some)
        found = (self.text(item, f"each of {where}") for item in items)
        return list(dict.fromkeys(text for text in found if text is not None))

    def text(self, node: YamlNode | None, where: str) -> str | None:
        """Return a text that is not blank."""
        if node is None:
            return None
        if not isinstance(node, yaml.ScalarNode) or node.tag != _TEXT:
            quoted = " (put it in quotes)" if isinstance(node, yaml.ScalarNode) else ""
            self.wrong(node, f"{where} is text{quoted}")
            return None
        if not node.value.strip():
            self.wrong(node, f"{where} is not blank")
            return None
        return str(node.value)

    def word(self, node: YamlNode | None, where: str, known: type[_WordT]) -> _WordT | None:
        """Return one of the known words."""
        text = self.text(node, where)
        if node is None or text is None:
            return None
        found = next((word for word in known if word == text), None)
        if found is None:
            hint = did_you_mean(text, list(known))
            self.wrong(node, f"{where} is not `{quote(text)}`: {hint}")
        return found

    def version(self, node: YamlNode | None) -> None:
        """Check that a file is of version 1."""
        if node is None:
            return
        is_one = isinstance(node, yaml.ScalarNode) and (node.tag, node.value) == (_INT, "1")
        if not is_one:
            self.wrong(node, f"`version` of the {self.what} is 1")
