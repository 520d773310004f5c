"""The documentation site: every page is in the navigation, and it builds without warnings."""

import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from importlib.util import find_spec
from pathlib import Path

import pytest

from omnigraph.cli.app import COMMANDS
from omnigraph.error_codes import ERROR_CODES
from omnigraph.graph.protocol import GraphApi
from scripts import docs_reference, docs_site
from tests.support.docs import ROOT

DOCS = ROOT / "docs"


def test_every_page_is_in_the_navigation_once():
    paths = [p for section in docs_site.navigation() for pages in section.values() for p in pages]
    found = [path for page in paths for path in page.values()]
    assert sorted(found) == sorted(p.relative_to(DOCS).as_posix() for p in DOCS.rglob("*.md"))


def test_a_new_page_is_found_by_its_folder(tmp_path):
    (tmp_path / "guide").mkdir()
    (tmp_path / "README.md").write_text("# Start\n\n[b](guide/b.md)\n")
    for name in "abc":
        (tmp_path / "guide" / f"{name}.md").write_text(f"# The page `{name}`\n")
    (tmp_path / "other.md").write_text("# Another\n")
    assert docs_site.navigation(tmp_path) == [
        {"Start": [{"Start": "README.md"}]},
        {
            "Guides": [
                {"The page b": "guide/b.md"},
                {"The page a": "guide/a.md"},
                {"The page c": "guide/c.md"},
                {"Another": "other.md"},
            ]
        },
    ]


def test_links_to_the_source_lead_to_the_repository_or_become_text():
    text = "see [it](../../samples/crm/schema.pg#L3) and [that](../costs.md)\n```pg error:S1\n```"
    page = DOCS / "guide" / "page.md"
    with_base = docs_site.page_markdown(text, page, "https://example.com/blob/main")
    assert "[it](https://example.com/blob/main/samples/crm/schema.pg#L3)" in with_base
    assert "[that](../costs.md)" in with_base
    assert "error:S1" not in with_base
    assert docs_site.page_markdown(text, page, None).startswith("see it and [that]")


def test_the_reference_has_every_command_method_and_error():
    commands = docs_reference.command_reference()
    tree = docs_reference.command_tree()
    for words, command in tree.items():
        is_group = hasattr(command, "commands")
        assert is_group or f"### omnigraph {words}\n" in commands
    assert set(COMMANDS) <= set(tree)
    python = docs_reference.python_reference()
    for name in (name for name in vars(GraphApi) if not name.startswith("_")):
        assert f"### graph.{name}\n" in python
    assert "| `og.MergeConflicts` |" in python


def test_the_comparison_has_the_recorded_numbers():
    rows = json.loads(docs_reference.RESULTS.read_text(encoding="utf-8"))["results"]
    [lookup] = [r for r in rows if r["name"].startswith("point lookup by key / the same in lady")]
    [line] = [x for x in docs_reference.comparison().splitlines() if "point lookup" in x]
    assert f" {lookup['median']:.2f} " in line


class _Ids(HTMLParser):
    """Collects the anchors and links of a page."""

    def __init__(self):
        super().__init__()
        self.ids, self.links = set(), []

    def handle_starttag(self, tag, attrs):
        for name, value in attrs:
            if name == "id":
                self.ids.add(value)
            elif name == "href" and tag == "a" and value:
                self.links.append(value)


def parsed(path):
    parser = _Ids()
    parser.feed(path.read_text(encoding="utf-8"))
    return parser


@pytest.mark.skipif(find_spec("mkdocs") is None, reason="mkdocs is not installed")
def test_the_site_builds_without_warnings_and_its_links_lead_somewhere(tmp_path):
    run = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    pages = {path: parsed(path) for path in tmp_path.rglob("*.html")}
    broken = []
    for path, page in pages.items():
        for link in page.links:
            target, _, anchor = link.partition("#")
            if re.match(r"[a-z]+:|/", target) or path.name == "404.html":
                continue
            place = (path.parent / target).resolve() if target else path
            place = place / "index.html" if place.is_dir() else place
            if not place.is_file() or (anchor and anchor not in pages[place].ids):
                broken.append(f"{path.relative_to(tmp_path)}: {link}")
    assert broken == []
    index = json.loads((tmp_path / "search" / "search_index.json").read_text(encoding="utf-8"))
    texts = " ".join(entry["title"] for entry in index["docs"])
    assert "omnigraph proposal create" in texts
    assert "graph.cherry_pick" in texts
    errors = (tmp_path / "reference" / "errors" / "index.html").read_text(encoding="utf-8")
    assert all(code in errors for code in ERROR_CODES)
    assert not [p for p in tmp_path.rglob("*.html") if "<!-- built:" in Path(p).read_text("utf-8")]
