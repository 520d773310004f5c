"""Reads Markdown pages: their code blocks, links and anchors."""

from __future__ import annotations

import doctest
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]

_FENCE = re.compile(r"^(?P<mark>`{3,})(?P<info>[^`]*)$")
_HEADING = re.compile(r"^#{1,6} +(?P<title>.+?) *#*$")
_LINK = re.compile(r"\[[^\]]*\]\((?P<target>[^()\s]+)\)|^\[[^\]]+\]: *(?P<named>\S+)", re.MULTILINE)
_CODE = re.compile(r"`[^`\n]*`")
_ANY_LINES = "…"


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block: its language, the words after it, and where it stands."""

    page: Path
    line: int
    language: str
    words: tuple[str, ...]
    text: str

    @property
    def place(self) -> str:
        """Return `docs/page.md:12`, as test ids and editors show it."""
        return f"{self.page.relative_to(ROOT).as_posix()}:{self.line}"

    @property
    def expected_error(self) -> str | None:
        """Return the code after `error:`, if the block is one that must be refused."""
        codes = [word.removeprefix("error:") for word in self.words if word.startswith("error:")]
        return codes[0] if codes else None


def pages() -> list[Path]:
    """Return every page for people: those at the root and all below `docs/`."""
    return sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


def blocks(*languages: str) -> list[Block]:
    """Return the blocks of these languages on every page."""
    return [b for page in pages() for b in page_blocks(page) if b.language in languages]


def page_blocks(page: Path) -> Iterator[Block]:
    """Yield the fenced blocks of a page."""
    opened: tuple[int, str, list[str]] | None = None
    content: list[str] = []
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), start=1):
        fence = _FENCE.match(line)
        if opened is None:
            if fence is not None:
                opened = (number, fence["mark"], fence["info"].split())
        elif fence is not None and fence["mark"] == opened[1] and not fence["info"].strip():
            start, _, words = opened
            text = "".join(f"{written}\n" for written in content)
            yield Block(page, start, words[0] if words else "", tuple(words[1:]), text)
            opened, content = None, []
        else:
            content.append(line)
    assert opened is None, f"{page.name}: a block is not closed"


def links(page: Path) -> list[str]:
    """Return the targets of a page's links that lead to something of ours."""
    text = _CODE.sub("", _without_blocks(page))
    found = (match["target"] or match["named"] for match in _LINK.finditer(text))
    return [target for target in found if not re.match(r"[a-z]+:", target)]


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, made as GitHub makes them."""
    found: set[str] = set()
    seen: Counter[str] = Counter()
    for line in _without_blocks(page).splitlines():
        heading = _HEADING.match(line)
        if heading is None:
            continue
        kept = re.sub(r"[^\w\- ]", "", heading["title"].lower())
        slug = kept.replace(" ", "-")
        found.add(f"{slug}-{seen[slug]}" if seen[slug] else slug)
        seen[slug] += 1
    return found


def _without_blocks(page: Path) -> str:
    lines = page.read_text(encoding="utf-8").splitlines()
    for block in page_blocks(page):
        end = block.line + block.text.count("\n") + 1
        lines[block.line - 1 : end] = [""] * (end - block.line + 1)
    return "\n".join(lines)


def console_commands(block: Block) -> list[tuple[str, str]]:
    """Return the commands of a `console` block, each with the output shown for it."""
    found: list[tuple[str, str]] = []
    for line in block.text.splitlines(keepends=True):
        if line.startswith("$ "):
            found.append((line[2:].rstrip("\n"), ""))
        else:
            assert found, f"{block.place}: output stands before any command"
            command, output = found[-1]
            found[-1] = (command, output + line)
    return found


def shows(shown: str, output: str) -> bool:
    """Return whether output is what a page shows.

    A line `…` stands for any number of lines, `…` inside a line for any text.
    """
    any_lines = r"(?:.*\n)*?"
    parts = (
        any_lines if line.strip() == _ANY_LINES else re.escape(line).replace(_ANY_LINES, ".*?")
        for line in shown.splitlines(keepends=True)
    )
    return re.fullmatch("".join(parts), output) is not None


def page_name(page: Path) -> str:
    """Return the path of a page from the root of the source tree."""
    return page.relative_to(ROOT).as_posix()


def _python(page: Path) -> list[Block]:
    return [block for block in page_blocks(page) if block.language == "python"]


def uses_spark(page: Path) -> bool:
    """Return whether Python of a page starts a session, or uses one that runs."""
    return any(re.search(r"pipeline|spark", block.text) for block in _python(page))


def run_python(page: Path) -> None:
    """Run the Python blocks of a page one after the other; sessions show what they show."""
    names: dict[str, Any] = {"__name__": "__main__"}
    for block in _python(page):
        if ">>>" not in block.text:
            exec(compile(block.text, block.place, "exec"), names)
            continue
        test = doctest.DocTestParser().get_doctest(
            block.text, names, block.place, block.place, block.line
        )
        said: list[str] = []
        failed = doctest.DocTestRunner().run(test, out=said.append, clear_globs=False).failed
        names.update(test.globs)
        assert not failed, "".join(said)
