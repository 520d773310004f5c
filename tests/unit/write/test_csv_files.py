"""CSV files are read by RFC 4180 in a declared encoding, or refused with the reason."""

import pytest

import omnigraph as og
from omnigraph.errors import InvalidInput
from omnigraph.write.violations import ValidationFailed

SCHEMA = "node Person { name: String @key  note: String? }"


@pytest.fixture
def graph(tmp_path):
    return og.init(tmp_path / "graph", SCHEMA)


def load(graph, tmp_path, data, **options):
    (tmp_path / "people.csv").write_bytes(data)
    graph.load({"Person": tmp_path / "people.csv"}, **options)
    return graph


def refused(graph, tmp_path, data, **options):
    with pytest.raises(ValidationFailed) as error:
        load(graph, tmp_path, data, **options)
    return [str(violation).rpartition("people.csv")[2] for violation in error.value.violations]


def test_a_quote_that_is_not_closed_is_refused(graph, tmp_path):
    wanted = [": row 2: a quoted cell is not closed"]
    assert refused(graph, tmp_path, b'name,note\na,b\nc,"d\ne,f\n') == wanted
    assert refused(graph, tmp_path, b'name,note\na,b\n"c,d\ne,f\n') == wanted
    assert refused(graph, tmp_path, b'name,note\na,b\n"c,d') == wanted


def test_cells_of_other_encodings_are_read_as_declared(graph, tmp_path):
    text = 'name,note\nÅse,"größer\nals"\n'
    for encoding in ("latin-1", "utf-16", "cp1252"):
        load(graph, tmp_path, text.encode(encoding), encoding=encoding, mode="overwrite")
        assert graph.entity_at("Person", "Åse")["note"] == "größer\nals"


def test_bytes_of_undeclared_encodings_are_refused_with_their_row(graph, tmp_path):
    [violation] = refused(graph, tmp_path, b"name,note\na,b\n\xc5se,c\n")
    assert violation.startswith(", row 2: Person.name: text is not UTF-8")
    [violation] = refused(graph, tmp_path, b"name,n\xf6te\na,b\n")
    wanted = ": the header is not UTF-8; give its encoding, such as latin-1"
    assert violation == wanted
    [violation] = refused(graph, tmp_path, b"name,note\na,b\n\xff\n", encoding="ascii")
    assert violation.startswith(": not ascii: ordinal not in range(128) near byte 15")
    with pytest.raises(InvalidInput) as unknown:
        load(graph, tmp_path, b"name\na\n", encoding="latin-99")
    assert unknown.value.code == "encoding_unknown"


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_row_of_too_many_cells_that_are_not_utf_8_is_refused_with_its_number(graph, tmp_path):
    [violation] = refused(graph, tmp_path, b"name,note\na,b\n\xff,c,d\n")
    assert violation == ": row 2: expected 2 cells, got 3, not all of them UTF-8"


def test_a_file_of_which_the_schema_was_inferred_can_be_loaded_again(tmp_path):
    file = tmp_path / "people.csv"
    file.write_text(",name\n0,Ada\n1,Bo\n")
    inferred = og.infer(file)
    graph = og.init(tmp_path / "inferred", inferred.schema)
    first = graph.load(inferred.rows())
    again = graph.load({"Person": file})
    assert (first.total, again.total, again.commit) == (2, 2, None)
    assert graph.entity_at("Person", "Bo") == {"id": "Bo", "name": "Bo", "_c0": 1}
