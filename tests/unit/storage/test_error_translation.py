"""What storage raises becomes one of our errors, by its type or by the texts pinned here."""

import pytest
from lance.commit import CommitConflictError

from omnigraph.errors import Contention, GraphCorrupt, NotFound, OmniError, StorageUnavailable
from omnigraph.storage.error_translation import translate_error, translate_errors

PATH = "/data/nodes/687836403d43ece0-68783720d43ece11/data/0403.lance"


@pytest.mark.parametrize(
    ("raised", "kind", "code"),
    [
        (CommitConflictError("whatever"), Contention, "contention"),
        (OSError("Retryable commit conflict for version 2"), Contention, "contention"),
        (OSError("Failed to commit the transaction after 0 retries."), Contention, "contention"),
        (OSError(f"Not found: {PATH}"), NotFound, "storage_not_found"),
        (ValueError(f"Dataset at path {PATH} was not found"), NotFound, "storage_not_found"),
        (FileNotFoundError(2, "gone"), NotFound, "storage_not_found"),
        (OSError("Not a directory (os error 20)"), NotFound, "storage_not_found"),
        (FileExistsError(17, "File exists"), StorageUnavailable, "storage_not_a_folder"),
        (NotADirectoryError(20, "x"), StorageUnavailable, "storage_not_a_folder"),
        (OSError("LanceError(IO): file size is too small"), GraphCorrupt, "graph_corrupt"),
        (OSError("Invalid range 0..0 for object of size 0"), GraphCorrupt, "graph_corrupt"),
        (ValueError("invalid magic: [76, 65]"), GraphCorrupt, "graph_corrupt"),
        (PermissionError(13, "Permission denied"), StorageUnavailable, "storage_denied"),
        (OSError("status 403 Forbidden: AccessDenied"), StorageUnavailable, "storage_denied"),
        (OSError("No space left on device (os error 28)"), StorageUnavailable, "storage_full"),
        (OSError("File too large (os error 27)"), StorageUnavailable, "storage_full"),
        (OSError("Read-only file system (os error 30)"), StorageUnavailable, "storage_read_only"),
        (RuntimeError("Already mutably borrowed"), StorageUnavailable, "storage_unavailable"),
        (
            OSError(f"connection reset while reading {PATH}"),
            StorageUnavailable,
            "storage_unavailable",
        ),
    ],
    ids=lambda value: str(value)[:40] if isinstance(value, Exception) else "",
)
def test_error_of_storage_becomes_ours(raised, kind, code):
    error = translate_error(raised, "opening x")
    assert (type(error), error.code) == (kind, code)
    assert error.message.startswith("opening x: ")
    assert "/data" not in error.message, "messages show no physical paths"


def test_cause_is_kept_and_short():
    error = translate_error(OSError("boom " * 1000), "opening x")
    assert error.details["cause"].startswith("boom boom")
    assert len(error.details["cause"]) == 300


def test_translation_chains_the_original():
    original = OSError("boom")
    with pytest.raises(StorageUnavailable) as caught, translate_errors("opening x"):
        raise original
    assert caught.value.__cause__ is original


def test_our_own_errors_pass_unchanged():
    ours = NotFound("no such branch", code="branch_not_found")
    with pytest.raises(OmniError) as caught, translate_errors("opening x"):
        raise ours
    assert caught.value is ours


def test_bugs_are_not_hidden():
    with pytest.raises(KeyError), translate_errors("opening x"):
        raise KeyError("bug")


def test_panic_of_lance_is_damage():
    panic = type("PanicException", (BaseException,), {})("range end index 12 out of range")
    with pytest.raises(GraphCorrupt) as caught, translate_errors("reading x"):
        raise panic
    assert caught.value.details["cause"] == "range end index 12 out of range"


def test_other_base_exceptions_pass():
    with pytest.raises(KeyboardInterrupt), translate_errors("reading x"):
        raise KeyboardInterrupt
