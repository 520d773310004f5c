"""Rows of an answer as people and programs read them, also where the answer names no columns."""

import io

import pytest

from omnigraph.cli.results import Answer, write_result

TARGET = {"branch": "main", "snapshot": None}


def printed(rows, format_):
    facts = {"query_name": "q", "row_count": len(rows), "rows": rows, "graph_commit_id": "c"}
    file = io.BytesIO()
    write_result(Answer(facts), TARGET, format_, file)
    return file.getvalue().decode()


@pytest.mark.parametrize(
    ("format_", "shown"),
    [
        (
            "table",
            "2 rows from branch main via q\na    | b\n-----+-----\n1    | null\nnull | x\\ny\n",
        ),
        ("csv", 'a,b\n1,null\nnull,"x\ny"\n'),
    ],
)
def test_columns_that_are_not_named_are_those_of_the_rows(format_, shown):
    assert printed([{"a": 1}, {"b": "x\ny"}], format_) == shown


def test_table_without_columns_says_that_there_are_no_rows():
    assert printed([], "table") == "0 rows from branch main via q\n(no rows)\n"
