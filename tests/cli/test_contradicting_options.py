"""Options that contradict each other are refused before a graph is opened."""

import pytest

from tests.support.program import HARBOUR, omnigraph

OLD, NEW = (str(HARBOUR / name) for name in ("schema.pg", "schema-next.pg"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("export", "g", "--format", "csv"), "--format needs --parts FOLDER"),
        (("export", "g", "--parquet", "x", "--format", "csv"), "--format needs --parts FOLDER"),
        (("diff", "g", "main", "main", "--stat", "--jsonl"), "--stat and --jsonl"),
        (("diff", "g", "main", "main", "--json", "--jsonl"), "--json and --jsonl"),
        (("schema", "plan", "g", "--schema", NEW, "--from", OLD), "pass no graph"),
        (("schema", "plan", "--from", OLD, "--to", NEW, "--store", "g"), "pass no graph"),
    ],
)
def test_contradicting_options_are_refused(arguments, message):
    ran = omnigraph(*arguments)
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err
