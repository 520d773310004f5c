"""Printing and formatting lose nothing: neither meaning nor comments, however odd the text."""

from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from omnigraph.lang import (
    Code,
    format_queries,
    format_schema,
    parse_queries,
    parse_schema,
    print_queries,
    print_schema,
    report_for_text,
)
from omnigraph.lang import tokens as tk
from omnigraph.lang.query_tree import QueryTree
from omnigraph.lang.schema_tree import SchemaTree
from omnigraph.lang.source import SourceText
from tests.support.effort import examples
from tests.support.strategies import queries, schemas

CORPUS = Path(__file__).parents[1] / "fuzz" / "corpus"
PARSE = {".pg": parse_schema, ".gq": parse_queries}
PRINT = {".pg": print_schema, ".gq": print_queries}
FORMAT = {".pg": format_schema, ".gq": format_queries}
NOISE = ("// c\n", "//\n", "/* c */", "/* c\n   d */", "\n", "\n\n \n", " \t", "\r\n", "// é\r\n")
ENUM_PARTS = (tk.NAME, tk.TYPE_NAME, tk.INT, "-")

laws = settings(max_examples=examples(100), suppress_health_check=[HealthCheck.too_slow])
corpus = pytest.mark.parametrize(
    "path", sorted(p for p in CORPUS.iterdir() if p.suffix in PARSE), ids=lambda path: path.name
)


@dataclass(frozen=True)
class Sample:
    """A tree that shows itself as text, which is what a failing example should look like."""

    tree: SchemaTree | QueryTree

    @property
    def language(self):
        return ".pg" if isinstance(self.tree, SchemaTree) else ".gq"

    def __repr__(self):
        return f"a {self.language} file:\n{PRINT[self.language](self.tree)}"


samples = st.builds(Sample, schemas) | st.builds(Sample, queries)
noise = st.lists(st.tuples(st.integers(0, 10_000), st.sampled_from(NOISE)), max_size=8)


def comments_of(text):
    return [comment.text.rstrip() for comment in tk.find_comments(SourceText(text))]


def with_noise(text, pieces):
    """Insert comments and blanks between tokens, but not inside an enum value."""
    gaps = [0]
    for one, following in zip(tokens_of(text), tokens_of(text)[1:], strict=False):
        touching = one.span.end == following.span.start
        if not (touching and one.kind in ENUM_PARTS and following.kind in ENUM_PARTS):
            gaps.append(one.span.end)
    for place, piece in sorted(((gaps[i % len(gaps)], piece) for i, piece in pieces), reverse=True):
        text = text[:place] + piece + text[place:]
    return text


def tokens_of(text):
    tokens = []
    for token in tk.tokenize(report_for_text(text, "", Code.QUERY_SYNTAX), Code.QUERY_SYNTAX):
        tokens.append(token)
        if token.kind == tk.END:
            return tokens


def assert_formatting_loses_nothing(text, language):
    formatted = FORMAT[language](text)
    assert PARSE[language](formatted) == PARSE[language](text)
    assert comments_of(formatted) == comments_of(text)
    assert FORMAT[language](formatted) == formatted


@laws
@given(samples)
def test_a_tree_equals_its_printed_and_read_self(sample):
    assert PARSE[sample.language](PRINT[sample.language](sample.tree)) == sample.tree


@laws
@given(samples, noise)
def test_formatting_keeps_tree_and_comments_and_settles_at_once(sample, pieces):
    text = with_noise(PRINT[sample.language](sample.tree), pieces)
    assert PARSE[sample.language](text) == sample.tree
    assert_formatting_loses_nothing(text, sample.language)


@corpus
def test_corpus_prints_and_reads_back(path):
    tree = PARSE[path.suffix](path.read_text(encoding="utf-8"))
    printed = PRINT[path.suffix](tree)
    assert PARSE[path.suffix](printed) == tree
    assert PRINT[path.suffix](PARSE[path.suffix](printed)) == printed


@corpus
def test_corpus_formats_without_loss(path):
    assert_formatting_loses_nothing(path.read_bytes().decode("utf-8"), path.suffix)


@corpus
@settings(max_examples=examples(14), suppress_health_check=[HealthCheck.too_slow])
@given(pieces=noise)
def test_corpus_formats_without_loss_whatever_is_put_between_its_tokens(path, pieces):
    text = with_noise(path.read_bytes().decode("utf-8").removeprefix("\ufeff"), pieces)
    assert_formatting_loses_nothing(text, path.suffix)
