"""The grammars of the language pages are those of the parsers."""

import ast
import re
from pathlib import Path
from random import Random

import pytest

from omnigraph.lang import (
    Code,
    base_parser,
    parse_queries,
    parse_schema,
    query_parser,
    report_for_text,
    schema_parser,
)
from omnigraph.lang.query_tree import ComparisonOperator, SortDirection
from omnigraph.lang.schema_parser import CONSTRAINT_WORDS
from omnigraph.lang.tokens import tokenize
from omnigraph.types import BASE_NAMES
from tests.support.docs import ROOT, blocks, page_blocks
from tests.support.grammar import read_grammar

LANGUAGE = ROOT / "docs" / "language"
LOOKING = {"at_word", "before_word", "accept_word", "expect_word", "at", "accept", "expect"}
SENTENCES = 400
SAID_IN_PROSE = (
    re.compile(r"@ (description|instruction|check) [^{]*@ \1"),  # each at most once
)
"""What the grammar of queries derives and the text around it takes back."""


def page_grammar(name):
    [block] = [b for b in page_blocks(LANGUAGE / name) if b.language == "ebnf"]
    return read_grammar(block.text)


SCHEMA, QUERY = page_grammar("schema.md"), page_grammar("queries.md")
both = pytest.mark.parametrize("grammar", [SCHEMA, QUERY], ids=["schema", "query"])


# --- words -------------------------------------------------------------------------------------


def compared_texts(module):
    """Return the texts a parser compares tokens with, as far as the module alone tells."""
    found = set()
    for node in ast.walk(ast.parse(Path(module.__file__).read_bytes())):
        match node:
            case ast.Call(func=ast.Attribute(attr=name), args=args) if name in LOOKING:
                wanted = args if name in ("at_word", "before_word") else args[:1]
            case ast.Compare(left=ast.Attribute(attr="text" | "kind"), comparators=wanted):
                pass
            case _:
                continue
        for written in wanted:
            found |= values(written, module)
    token_kinds = {"variable", "name", "type name", "integer", "decimal number", "string"}
    return found - token_kinds - {"end of text"}


def values(written, module):
    """Return the strings an expression stands for; local names stand for nothing."""
    inner = written.value if isinstance(written, ast.Starred) else written
    try:
        value = eval(compile(ast.Expression(inner), "<parser>", "eval"), vars(module))
    except NameError:
        return set()
    many = [value] if isinstance(value, str) else value
    return {str(item) for item in many if isinstance(item, str)}


def test_schema_grammar_has_every_text_its_parser_looks_for():
    assert compared_texts(schema_parser) | compared_texts(base_parser) <= SCHEMA.terminals


def test_query_grammar_has_every_text_its_parser_looks_for():
    # `enum` is looked for in a parameter only to be refused.
    assert compared_texts(query_parser) - {"enum"} <= QUERY.terminals


def test_words_the_parsers_look_for_are_found_at_all():
    assert {"node", "edge", "card", "key", "check", "true"} <= compared_texts(schema_parser)
    assert {"query", "match", "distinct", "in", "date", "desc"} <= compared_texts(query_parser)


@both
def test_every_word_of_a_grammar_is_known_to_the_parsers(grammar):
    parsers = (schema_parser, query_parser, base_parser)
    known = {text for module in parsers for text in compared_texts(module)}
    known |= {
        *BASE_NAMES,
        *CONSTRAINT_WORDS,
        *map(str, ComparisonOperator),
        *map(str, SortDirection),
        "Vector",
    }
    assert {text for text in grammar.terminals if text[0].isalpha()} <= known


@both
def test_every_sign_of_a_grammar_is_one_token(grammar):
    for sign in (text for text in grammar.terminals if not text[0].isalpha()):
        token = next(
            tokenize(report_for_text(sign, "<sign>", Code.QUERY_SYNTAX), Code.QUERY_SYNTAX)
        )
        assert token.kind == token.text == sign


@both
def test_both_grammars_list_all_base_types(grammar):
    assert set(BASE_NAMES) <= grammar.terminals


@both
def test_every_name_of_a_grammar_is_defined_and_used(grammar):
    assert grammar.undefined() == set()
    assert grammar.unused() == set()


# --- sentences ---------------------------------------------------------------------------------


def test_parser_reads_what_the_schema_grammar_derives():
    random = Random(1)
    for _ in range(SENTENCES):
        parse_schema(SCHEMA.sentence(random))


def test_parser_reads_what_the_query_grammar_derives():
    random = Random(2)
    for _ in range(SENTENCES):
        text = QUERY.sentence(random)
        if not any(exception.search(text) for exception in SAID_IN_PROSE):
            parse_queries(text)


def accepted(language):
    written = [b.text for b in blocks(language) if b.expected_error is None]
    files = (p for p in (ROOT / "samples").rglob(f"*.{language}") if p.stem != "mistakes")
    return [*written, *(path.read_text(encoding="utf-8") for path in sorted(files))]


def test_schema_grammar_derives_every_schema_we_show():
    assert [text for text in accepted("pg") if not SCHEMA.derives(text)] == []


def test_query_grammar_derives_every_query_we_show():
    assert [text for text in accepted("gq") if not QUERY.derives(text)] == []


def test_grammars_do_not_derive_broken_text():
    assert not SCHEMA.derives("node Port { code String }")
    assert not SCHEMA.derives("node Port { } edge")
    assert not QUERY.derives("query q() { match { } return { $p } }")
    assert not QUERY.derives("query q() { match { $p: Port } }")
