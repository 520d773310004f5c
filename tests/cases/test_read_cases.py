"""The engine gives the rows that the read cases say, in every execution mode."""

import re

import pytest

from omnigraph.errors import OmniError
from omnigraph.plan import FUNCTIONS
from tests.support.agreement import disagreement
from tests.support.case_runs import data_lines, run
from tests.support.cases import ROOT, parse_cases
from tests.support.generated_reads import Read
from tests.support.graph_data import put
from tests.support.read_checks import WAYS
from tests.support.reference import RefusedError

CASES = [
    pytest.param(case, id=f"{path.stem}: {case.title}")
    for path in sorted(ROOT.glob("read/*.case"))
    for case in parse_cases(path.read_text(encoding="utf-8")).cases
    if case.one("rows") is not None
]


@pytest.fixture(scope="module")
def graph_of(tmp_path_factory):
    """Return the graph of a case; equal data is loaded once."""
    graphs = {}

    def load(case):
        schema, lines = schema_text(case), tuple(data_lines(case.one("data")))
        if (schema, lines) not in graphs:
            folder = tmp_path_factory.mktemp("graph")
            graphs[schema, lines] = put(folder / "g", schema, lines)
        return graphs[schema, lines]

    return load


def schema_text(case):
    section = case.one("schema")
    if section.argument:
        return (ROOT / "schemas" / f"{section.argument}.pg").read_text(encoding="utf-8")
    return section.body


@pytest.mark.parametrize("case", CASES)
def test_engine_gives_the_rows_of_the_case(case, graph_of):
    found = run(case)
    [query] = case.all("query")
    read = Read(query.body, dict(found.values))
    for way, ask in WAYS.items():
        if isinstance(found.answer, RefusedError):
            with pytest.raises(OmniError):
                ask(graph_of(case), read)
            continue
        given = ask(graph_of(case), read)
        reported = disagreement(found.answer, given.columns, given.rows)
        assert reported is None, f"{way}: {reported}"


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name != "now"])
def test_every_function_has_cases_with_null_and_with_nothing_to_find(name):
    texts = [str(param.values[0]) for param in CASES if f"{name}(" in str(param.values[0])]
    assert any(re.search(r"null|\$q: String\?|Vector\(2\)\?", text) for text in texts)
    assert any("--- rows\nnone" in text or "over no" in text for text in texts)


@pytest.mark.parametrize("name", [n for n in FUNCTIONS if n not in ("now", "nearest")])
def test_every_function_of_text_has_a_case_with_letters_beyond_ascii(name):
    texts = [str(param.values[0]) for param in CASES if f"{name}(" in str(param.values[0])]
    assert not all(map(str.isascii, texts))
