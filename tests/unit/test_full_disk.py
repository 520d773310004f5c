"""A disk without any space left: cleanup can free some, and every error says what to do."""

import pytest

from tests.support.failing_storage import can_mount
from tests.support.full_disk import seen

pytestmark = pytest.mark.skipif(not can_mount(), reason="mounting is not allowed here")


@pytest.mark.parametrize("kind", ["reserve", "no reserve"])
def test_cleanup_frees_space_on_a_full_disk(kind):
    found = seen(kind)
    assert (found["refused"], found["before"]) == ("storage_full", 0)
    assert found["errors"] == []
    assert found["removed"] > 19 * 40_000
    assert found["freed"] > 15 * 40_000
    assert found["text"] == "after"
    assert found["ok"]
    assert found["sweeping"] == []
    assert found["reserve"] == 256 * 1024


def test_files_that_cannot_be_written_are_typed_errors_with_a_next_step():
    found = seen("writing")
    left = found.pop("left")
    assert found.pop("spill")[0] == "spill_failed"
    assert {name: code for name, (code, _) in found.items()} == dict.fromkeys(found, "storage_full")
    assert all("free some" in message for _, message in found.values())
    assert left == ["filler"]
