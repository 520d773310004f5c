"""Check the words of messages, docstrings, comments and documentation pages.

The rule is in `docs/glossary.md`: the words of the field, and no images. Every finding is printed
as `file:line: text`, and the exit code is 1 if there is one. `--list` prints every string that a
user may see instead, with its role.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

WORDS = re.compile(
    r"\b(tell|tells|told|telling|somebody|nobody|whoever|anew|upkeep|hang(?:s|ing)? together"
    r"|so many|everybody|anybody"
    r"|(?:a|the|one|this|that|its|our|every|each|own) (?:room|door|face|house)"
    r"|rooms|doors|the walk|walks? (?:through|over|of)|this (?:module|package|script) \w+s\b)\b",
    re.IGNORECASE,
)
"""Words that are not used."""

EXCEPTIONS = (
    "docs/glossary.md:",  # the page lists the old names
)
"""Beginnings of findings that are right."""

_PAGES = (
    *("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/**/*.md", "examples/*.ipynb"),
    *("samples/**/*.pg", "samples/**/*.gq", "ui/src/**/*.svelte", "ui/src/**/*.ts"),
)
_PROSE = re.compile(r"[A-Za-z]{2,}[,;:.]? ")
_LOGGERS = ("debug", "info", "warning", "error", "exception", "critical", "log")
_ROLES = {
    "command": "help",
    "group": "help",
    "option": "help",
    "argument": "help",
    "add_argument": "help",
    "add_parser": "help",
    "echo": "output",
    "print": "output",
    "warn": "warning",
    **dict.fromkeys(_LOGGERS, "log"),
}
_NAMES = {
    "message": "message",
    "hint": "message",
    "help": "help",
    "help_": "help",
    "epilog": "help",
    "summary": "description",
    "description": "description",
    "instructions": "description",
    "title": "description",
}


@dataclass(frozen=True, slots=True, order=True)
class Text:
    """A text of a file: where it is, what it is for, and what it says."""

    path: str
    line: int
    role: str
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.text}"


def source_texts(path: Path) -> Iterator[Text]:
    """Yield the docstrings, comments and prose strings of a Python file."""
    name, source = _relative(path), path.read_text(encoding="utf-8")
    tree = ast.parse(source)
    docstrings = set(_docstrings(tree))
    yield from (Text(name, n.lineno, "docstring", str(n.value)) for n in docstrings)
    yield from _strings(name, tree, "string", docstrings)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield Text(name, token.start[0], "comment", token.string)


def page_texts(path: Path) -> Iterator[Text]:
    """Yield the lines of a documentation page."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return (Text(_relative(path), number, "page", line) for number, line in enumerate(lines, 1))


def _docstrings(tree: ast.AST) -> Iterator[ast.Constant]:
    """Yield strings that are statements: docstrings, also those of constants and fields."""
    for node in ast.walk(tree):
        match node:
            case ast.Expr(value=ast.Constant(value=str()) as constant):
                yield constant


def _strings(name: str, node: ast.AST, role: str, docstrings: set[ast.Constant]) -> Iterator[Text]:
    """Yield the prose strings below a node; a string has the role of the nearest context."""
    match node:
        case ast.Constant(value=str(value)) if node not in docstrings and _PROSE.search(value):
            yield Text(name, node.lineno, role, value)
        case ast.JoinedStr(values=values):
            text = "".join(_piece(value) for value in values)
            if _PROSE.search(text):
                yield Text(name, node.lineno, role, text)
            return
    for child in ast.iter_child_nodes(node):
        yield from _strings(name, child, _role(node, child) or role, docstrings)


def _piece(value: ast.expr) -> str:
    return str(value.value) if isinstance(value, ast.Constant) else "{…}"


def _role(parent: ast.AST, child: ast.AST) -> str | None:
    match parent, child:
        case ast.Raise(), _:
            return "message"
        case ast.Call(func=ast.Attribute(attr=function) | ast.Name(id=function)), _:
            is_class = function[:1].isupper()
            return (
                _NAMES.get(child.arg or "")
                if isinstance(child, ast.keyword)
                else (_ROLES.get(function) or ("message" if is_class else None))
            )
        case ast.Assign(targets=[ast.Name(id=target)]), _:
            return _NAMES.get(target)
        case ast.keyword(arg=str(argument)), _:
            return _NAMES.get(argument)
    return None


def _relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


def _texts() -> Iterator[Text]:
    for folder in ("src", "scripts", "demo", "benchmarks"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            if path != Path(__file__).resolve():
                yield from source_texts(path)
    for pattern in _PAGES:
        for path in sorted(ROOT.glob(pattern)):
            yield from page_texts(path)


def findings(texts: Iterator[Text]) -> Iterator[Text]:
    """Yield each line of the texts that has one of the words."""
    for text in texts:
        for offset, line in enumerate(text.text.splitlines()):
            if WORDS.search(line):
                yield Text(text.path, text.line + offset, text.role, line.strip())


def main() -> int:
    """Print the findings, or with `--list` all texts that a user may see."""
    parser = argparse.ArgumentParser(description="Check the words of messages and documentation.")
    parser.add_argument("--list", action="store_true", help="Print every user-visible string.")
    arguments = parser.parse_args()
    if arguments.list:
        for text in sorted(set(_texts())):
            if text.role not in ("comment", "page", "docstring"):
                print(f"{text.path}:{text.line}: {text.role}: {text.text!r}")
        return 0
    wrong = [
        text for text in sorted(set(findings(_texts()))) if not str(text).startswith(EXCEPTIONS)
    ]
    for text in wrong:
        print(text)
    if wrong:
        print(f"{len(wrong)} lines use words of the list in {Path(__file__).name}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
