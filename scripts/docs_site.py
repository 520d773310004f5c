"""Hooks of MkDocs: the navigation from the folders of `docs/`, and links to files of the source.

A page is found by its folder: a new file in `docs/guide` is a guide. Pages that the tables of
`docs/README.md` list stand in that order, others after them by name.
"""

from __future__ import annotations

import os
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]  # MkDocs runs this file by its path

from scripts import docs_reference  # noqa: E402

DOCS = ROOT / "docs"
SECTIONS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("Start", ("README.md", "install.md", "quickstart.md", "concepts.md", "comparison.md")),
    ("Tutorials", ("tutorials/*.md",)),
    ("Guides", ("guide/*.md",)),
    ("Languages", ("language/*.md",)),
    ("Reference", ("reference/*.md", "spec/*.md", "storage.md", "costs.md", "glossary.md")),
    ("Internals", ("architecture.md", "adr/*.md")),
)
"""The sections of the navigation, with patterns of their pages; other pages follow in Guides."""

_TITLE = re.compile(r"^# +(.+?) *$", re.MULTILINE)
_LISTED = re.compile(r"\]\(([\w./-]+\.md)\)")
_LINK = re.compile(r"\[(?P<text>[^\]]*)\]\((?P<path>\.\./[^)#\s]+)(?P<anchor>#[^)\s]*)?\)")
_FENCE = re.compile(r"^```(\w+)[^\n]*$", re.MULTILINE)
_BUILT = re.compile(r"^<!-- built:(\w+) -->$", re.MULTILINE)
_HIGHLIGHTED = {"pg": "js", "gq": "js"}
"""The languages whose colours fit ours: strings, numbers, comments and braces are the same."""


def navigation(docs: Path = DOCS) -> list[dict[str, list[dict[str, str]]]]:
    """Return the navigation: sections with the titles and paths of their pages."""
    listed = _LISTED.findall((docs / "README.md").read_text(encoding="utf-8"))
    order = {path: number for number, path in enumerate(listed)}
    pages = {path.relative_to(docs).as_posix() for path in docs.rglob("*.md")}
    sections: dict[str, list[str]] = {}
    for title, patterns in SECTIONS:
        sections[title] = [
            path.relative_to(docs).as_posix()
            for pattern in patterns
            for path in sorted(
                docs.glob(pattern),
                key=lambda path: (
                    path.name != "README.md",
                    order.get(path.relative_to(docs).as_posix(), len(order)),
                    path.name,
                ),
            )
        ]
        pages -= set(sections[title])
    sections["Guides"] += sorted(pages)
    return [
        {title: [{page_title(docs / path): path} for path in paths]}
        for title, paths in sections.items()
        if paths
    ]


def page_title(page: Path) -> str:
    """Return the title of a page: its first heading."""
    match = _TITLE.search(page.read_text(encoding="utf-8"))
    return match[1].replace("`", "") if match else page.stem


def source_address() -> str | None:
    """Return the address of the files of the source, from the metadata of the package."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    addresses = {name.lower(): address for name, address in project.get("urls", {}).items()}
    address = addresses.get("source") or addresses.get("repository")
    return None if address is None else f"{address.rstrip('/')}/blob/main"


def page_markdown(text: str, page: Path, base: str | None) -> str:
    """Return the text of a page as MkDocs reads it.

    Links to files outside of `docs/` lead to the source, or become text without its address;
    words after the language of a block are removed, and blocks that are built are filled in.
    """

    def link(match: re.Match[str]) -> str:
        target = Path(os.path.normpath(page.parent / match["path"]))
        if target.is_relative_to(DOCS):
            return match[0]
        if base is None:
            return match["text"]
        path = target.relative_to(ROOT).as_posix()
        return f"[{match['text']}]({base}/{path}{match['anchor'] or ''})"

    text = _LINK.sub(link, text)
    text = _FENCE.sub(lambda match: f"```{_HIGHLIGHTED.get(match[1], match[1])}", text)
    return _BUILT.sub(lambda match: docs_reference.BLOCKS[match[1]](), text)


def on_config(config: Any) -> Any:  # noqa: ANN401 - of MkDocs
    """Set the navigation."""
    config.nav = navigation(Path(config.docs_dir))
    return config


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:  # noqa: ANN401 - of MkDocs
    """Prepare the text of a page."""
    return page_markdown(markdown, Path(page.file.abs_src_path), source_address())
