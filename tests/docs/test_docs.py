"""Everything the pages show is executed, and everything they refer to exists.

A block of `pg` is a schema that is accepted. A block of `gq` holds queries that are accepted for
the harbour schema, or with `gq local` for the nearest `pg` block above. `error:CODE` after the
language says that the block is refused with that code alone. In a block of `console` every
`$ omnigraph …` prints what is shown; a line `…` stands for any lines. `./my-graph` is a graph of
its own for each page, whose blocks run one after the other. Blocks of `python` run.
"""

import doctest
import os
import re
import shlex
from importlib import import_module

import pytest

import omnigraph
from omnigraph import OmniError
from scripts import docs_gen
from tests.support.docs import (
    ROOT,
    anchors,
    blocks,
    console_commands,
    links,
    page_blocks,
    page_name,
    pages,
    run_python,
    shows,
    uses_spark,
)
from tests.support.program import omnigraph_said

HARBOUR = (ROOT / "samples" / "harbour" / "schema.pg").read_text(encoding="utf-8")
SOURCE = ROOT / "src"
GRAPH = "./my-graph"
MODULES = sorted(
    ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
    for path in SOURCE.rglob("*.py")
    if path.stem != "__main__"
)


each_page = pytest.mark.parametrize("page", pages(), ids=page_name)


# --- generated tables --------------------------------------------------------------------------


def test_generated_blocks_are_current():
    stale = [page.relative_to(ROOT).as_posix() for page, _ in docs_gen.stale_pages()]
    assert not stale, "run make docs-gen"


def test_every_generated_block_is_on_a_page():
    text = "".join(page.read_text(encoding="utf-8") for page in pages())
    assert [name for name, block in docs_gen.BLOCKS.items() if block() not in text] == []


def test_stale_page_is_found_and_names_the_text_it_should_have(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("a\n<!-- generated:limits -->\nold\n<!-- /generated -->\nb\n", encoding="utf-8")
    [(found, wanted)] = docs_gen.stale_pages(tmp_path)
    assert found == page
    assert docs_gen.limits() in wanted
    assert "old" not in wanted
    page.write_text(wanted, encoding="utf-8")
    assert list(docs_gen.stale_pages(tmp_path)) == []


def test_check_reports_a_stale_page_and_changes_nothing(tmp_path, monkeypatch, capsys):
    page = tmp_path / "page.md"
    page.write_text("<!-- generated:limits -->\n<!-- /generated -->\n", encoding="utf-8")
    before = page.read_bytes()
    monkeypatch.setattr("sys.argv", ["docs_gen.py", "--check"])
    assert docs_gen.main(tmp_path) == 1
    assert page.read_bytes() == before
    assert "page.md" in capsys.readouterr().out
    monkeypatch.setattr("sys.argv", ["docs_gen.py"])
    assert docs_gen.main(tmp_path) == 0
    assert page.read_bytes() != before


# --- schemas and queries -----------------------------------------------------------------------


def refusal(schema, queries=None):
    """Return the codes of the errors that refuse a schema or queries."""
    try:
        omnigraph.check(schema, queries)
    except OmniError as error:
        return {str(d.code) for d in error.diagnostics if d.severity == "error"}
    return set()


def outcomes(language, schema_of):
    """Return the blocks of a language that have another outcome than they announce."""
    problems = []
    for block in blocks(language):
        schema, queries = schema_of(block)
        announced = {block.expected_error} if block.expected_error else set()
        found = refusal(schema, queries)
        if found != announced:
            problems.append(f"{block.place}: refused with {found}, announced {announced}")
    return problems


def schema_above(block):
    """Return the schema that the queries of a block are for."""
    if "local" not in block.words:
        return HARBOUR
    before = [b for b in page_blocks(block.page) if b.language == "pg" and b.line < block.line]
    return before[-1].text


def test_schema_blocks_have_the_outcome_they_announce():
    assert outcomes("pg", lambda block: (block.text, None)) == []


def test_query_blocks_have_the_outcome_they_announce():
    assert outcomes("gq", lambda block: (schema_above(block), block.text)) == []


def test_words_after_the_language_of_a_block_are_known():
    problems = []
    for block in blocks("pg", "gq"):
        words = {word for word in block.words if not word.startswith("error:")}
        if words - ({"local"} if block.language == "gq" else set()):
            problems.append(f"{block.place}: {words}")
    assert problems == []


# --- commands and programs ---------------------------------------------------------------------


def run_omnigraph(command):
    words = shlex.split(command, comments=True)[1:]
    typed = ""
    if "<" in words:
        *words, _, path = words
        typed = (ROOT / path).read_text(encoding="utf-8")
    return omnigraph_said(words, {**os.environ, "NO_COLOR": "1"}, ROOT, typed)


@each_page
def test_commands_print_what_the_page_shows(page, tmp_path):
    commands = [
        command
        for block in page_blocks(page)
        if block.language == "console"
        for command in console_commands(block)
    ]
    for command, shown in commands:
        program = command.split()[0]
        assert program in ("omnigraph", "make", "pip"), f"{command}: only these can be checked"
        if program == "omnigraph":
            graph = str(tmp_path / "my-graph")
            output = run_omnigraph(command.replace(GRAPH, graph))
            assert shows(shown, output.replace(graph, GRAPH)), f"{command}\n{output}"


def test_one_line_of_dots_stands_for_any_lines():
    assert shows("a\n…\nd\n", "a\nb\nc\nd\n")
    assert shows("a\n…\n", "a\n")
    assert not shows("a\n…\nd\n", "a\nb\nc\n")
    assert not shows("a\n", "a\nb\n")


@pytest.mark.parametrize("page", [p for p in pages() if not uses_spark(p)], ids=page_name)
def test_python_blocks_of_a_page_run_one_after_the_other(page):
    run_python(page)


def test_doctests_of_all_modules_hold():
    assert [name for name in MODULES if doctest.testmod(import_module(name)).failed] == []


# --- links -------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", ["docs/architecture.md", "CONTRIBUTING.md"])
def test_modules_that_a_page_names_exist(page):
    named = set(re.findall(r"`([\w/]+/\w+\.py)`", (ROOT / page).read_text()))
    assert not [
        path
        for path in named
        if not (SOURCE / "omnigraph" / path).exists() | (ROOT / path).exists()
    ]


def test_links_of_all_pages_lead_somewhere():
    broken = []
    for page in pages():
        for link in links(page):
            path, _, anchor = link.partition("#")
            target = (page.parent / path).resolve() if path else page
            if not target.exists() or (anchor and anchor not in anchors(target)):
                broken.append(f"{page.relative_to(ROOT).as_posix()}: {link}")
    assert broken == []
