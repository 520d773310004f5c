"""Commands on a disk without any space left, driven from outside."""

import pytest

from tests.support.failing_storage import can_mount
from tests.support.small_disk import LEFT_BYTES, run_alone

pytestmark = pytest.mark.skipif(not can_mount(), reason="mounting is not allowed here")


def test_cleanup_frees_space_on_a_full_disk():
    facts = run_alone("tests.support.small_disk", "cleanup")
    assert facts["before"] == 0
    assert (facts["refused"]["code"], facts["refused"]["err"][:19]) == (1, "error[storage_full]")
    assert (facts["cleaned"]["code"], facts["cleaned"]["err"]) == (0, "")
    assert facts["freed"] > 0.8 * LEFT_BYTES
    assert (facts["written"]["code"], facts["written"]["err"]) == (0, "")
    assert facts["verified"]["out"].startswith("ok: ")


def test_an_archive_that_does_not_fit_is_a_typed_error_and_leaves_no_file():
    facts = run_alone("tests.support.small_disk", "export")
    for kind in ("archive", "history"):
        assert "Traceback" not in facts[kind]["err"], kind
        assert (facts[kind]["code"], facts[kind]["err"][:19]) == (1, "error[storage_full]")
        assert "free some" in facts[kind]["err"]
    assert facts["left"] == ["filler"]
