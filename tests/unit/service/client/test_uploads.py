"""Input becomes lines, and an invalid line is reported with its place in the input."""

from collections import Counter

import pyarrow as pa
import pytest

from omnigraph.errors import InvalidInput
from omnigraph.service.client.uploads import to_upload
from omnigraph.write.violations import InputLocation, ValidationFailed, Violation, ViolationRule
from tests.support.catalogs import sound

CATALOG = sound("node Person { name: String @key  seen: DateTime?  days: [DateTime]? }\n")
MOMENT = 1_714_564_800_123


def wrong(line, message="no"):
    found = [Violation(rule=ViolationRule.VALUE, message=message, source=InputLocation("", line))]
    return ValidationFailed(found, Counter({ViolationRule.VALUE: 1}))


def test_instants_of_tables_keep_their_time_of_day():
    seen = pa.array([MOMENT]).view(pa.date64())
    days = pa.ListArray.from_arrays([0, 1], seen)
    table = pa.table({"name": ["ann"], "seen": seen, "days": days})
    assert to_upload({"Person": table}, CATALOG).content == (
        b'{"type": "Person", "data": {"name": "ann", "seen": 1714564800123, '
        b'"days": [1714564800123]}}\n'
    )


def test_lines_are_reported_by_file_and_row(tmp_path):
    one, two = tmp_path / "one.ndjson", tmp_path / "two.ndjson"
    one.write_bytes(b"{}\n{}")
    two.write_bytes(b"{}\n")
    upload = to_upload([one, two], CATALOG)
    assert upload.content == b"{}\n{}\n{}\n"
    [found] = upload.placed(wrong(3, "twice (first at line 2)")).violations
    assert str(found) == f"{two}, line 1: twice (first at {one}, line 2)"
    rows = to_upload({"Person": [{"name": "ann"}, {"name": "bo"}]}, CATALOG)
    refused = rows.placed(wrong(2))
    assert str(refused) == "Person, row 2: no"
    assert (refused.total, refused.totals) == (1, {"value": 1})
    assert str(rows.placed(wrong(9))) == "line 9: no"


def test_a_table_that_cannot_be_read_on_is_reported():
    def batches():
        yield pa.record_batch({"name": ["ann"]})
        raise ValueError("the source is gone")

    reader = pa.RecordBatchReader.from_batches(pa.schema([("name", pa.string())]), batches())
    with pytest.raises(InvalidInput, match=r"^Person: .*the source is gone$") as caught:
        to_upload({"Person": reader}, CATALOG)
    assert caught.value.code == "input_unreadable"
