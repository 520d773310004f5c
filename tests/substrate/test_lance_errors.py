"""What Lance raises, by situation: the texts `storage/error_translation.py` goes by."""

import os
import subprocess
import sys
from pathlib import Path

import lance
import pytest
from lance import LanceDataset, LanceOperation
from lance.commit import CommitConflictError
from lance.fragment import write_fragments

from omnigraph.errors import Contention, GraphCorrupt, NotFound, StorageUnavailable
from omnigraph.storage.error_translation import translate_error
from tests.support.lance_datasets import append, content, create, rows

NOBODY = 65534


@pytest.fixture
def made(tmp_path):
    """Three versions; the last one deletes a row."""
    base = append(create(tmp_path / "d", rows(a=1, b=2)), rows(c=3))
    left = base.get_fragments()[0].delete_rows([0])
    operation = LanceOperation.Update(updated_fragments=[left], update_mode="rewrite_rows")
    return LanceDataset.commit(base, operation, read_version=2)


def raised(action, *arguments):
    """Return what an action raises, and what we make of it."""
    with pytest.raises((OSError, ValueError, RuntimeError)) as caught:
        action(*arguments)
    return caught.value, translate_error(caught.value, "reading")


def only(folder, pattern):
    [found] = Path(folder).glob(pattern)
    return found


def overwrite(base):
    staged = write_fragments(rows(z=1), base, mode="overwrite", return_transaction=True)
    return LanceDataset.commit(base, staged, max_retries=0)


# ------------------------------------------------------------------ lost races


@pytest.mark.parametrize(
    ("loser", "says"),
    [
        (lambda base: append(base, rows(y=1)), "Incompatible transaction"),
        (overwrite, "Failed to commit the transaction after 0 retries"),
    ],
)
def test_writer_overtaken_by_an_overwrite_meets_a_conflict(made, loser, says):
    base = lance.dataset(made.uri)
    overwrite(made)
    error, ours = raised(loser, base)
    assert isinstance(error, CommitConflictError)
    assert says in str(error)
    assert isinstance(ours, Contention)


# ------------------------------------------------------------------ missing


@pytest.mark.parametrize("version", [None, 1, 2**63 + 5])
def test_dataset_that_is_not_there_was_not_found(tmp_path, version):
    error, ours = raised(lambda: lance.dataset(str(tmp_path / "none"), version=version))
    assert type(error) is ValueError
    assert "was not found" in str(error)
    assert isinstance(ours, NotFound)


@pytest.mark.parametrize("version", [77, 2**63 + 5])
def test_version_that_is_not_there_was_not_found(made, version):
    error, ours = raised(lambda: lance.dataset(made.uri, version=version))
    assert type(error) is ValueError
    assert "was not found" in str(error)
    assert isinstance(ours, NotFound)


def test_empty_folder_is_not_a_dataset(tmp_path):
    error, ours = raised(lance.dataset, str(tmp_path))
    assert "was not found" in str(error)
    assert isinstance(ours, NotFound)


@pytest.mark.parametrize("pattern", ["_deletions/*", "data/*"])
def test_file_of_a_version_that_is_missing_was_not_found(made, pattern):
    for file in Path(made.uri).glob(pattern):
        file.unlink()
    error, ours = raised(lambda: content(lance.dataset(made.uri)))
    assert "Not found: " in str(error)
    assert isinstance(ours, NotFound)


# docs/format.md: nothing but the file itself tells that a newest version ever was.
def test_newest_version_that_is_missing_shows_the_one_before(made):
    only(made.uri, f"_versions/{2**64 - 1 - 3}.manifest").unlink()
    assert lance.dataset(made.uri).version == 2


def test_file_in_place_of_a_dataset_is_not_a_directory(tmp_path):
    (tmp_path / "file").write_text("x")
    error, ours = raised(lance.dataset, str(tmp_path / "file"))
    assert "Not a directory" in str(error)
    assert isinstance(ours, NotFound)


# ------------------------------------------------------------------ damaged

NEWEST = f"_versions/{2**64 - 1 - 3}.manifest"


@pytest.mark.parametrize(
    ("pattern", "damage", "says"),
    [
        (NEWEST, lambda old: b"", "Invalid range"),
        (NEWEST, lambda old: b"x" * 10, "does not have sufficient data"),
        (NEWEST, lambda old: b"x" * 500, "file size is too small"),
        (NEWEST, lambda old: old[: len(old) // 2], "file size is too small"),
        ("data/*", lambda old: b"", "Invalid range"),
        ("data/*", lambda old: old[: len(old) // 2], "Invalid range"),
        ("data/*", lambda old: b"x" * 5000, "does not appear to be a Lance file (invalid magic"),
        ("_deletions/*", lambda old: b"", "invalid seek"),
        ("_deletions/*", lambda old: b"x" * 500, "does not contain correct footer"),
        ("_deletions/*", lambda old: old[: len(old) // 2], "does not contain correct footer"),
    ],
)
def test_damaged_file_is_recognised_by_these_texts(made, pattern, damage, says):
    for file in Path(made.uri).glob(pattern):
        file.write_bytes(damage(file.read_bytes()))
    error, ours = raised(lambda: content(lance.dataset(made.uri)))
    assert says in str(error)
    assert isinstance(ours, GraphCorrupt)


# ------------------------------------------------------------------ refused by the machine


CHILD = """
import os, resource, sys
import pyarrow as pa
from tests.support.lance_datasets import create

folder, limit, user = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
os.setuid(user)
try:
    create(folder, pa.table({"id": [str(number) for number in range(100_000)]}))
except OSError as error:
    print(error)
"""


def write_in_child(folder, *, limit=2**30, user=None):
    """Write in a process with a limit, or of another user; return the error it meets."""
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            CHILD,
            folder,
            str(limit),
            str(os.getuid() if user is None else user),
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        cwd=Path(__file__).parents[2],
    )
    return done.stdout


def test_full_disk_gives_file_too_large(tmp_path):
    text = write_in_child(tmp_path / "d", limit=8192)
    assert "File too large" in text
    assert translate_error(OSError(text), "writing").code == "storage_full"


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody without permission")
def test_folder_of_another_user_gives_permission_denied(tmp_path):
    tmp_path.chmod(0o700)
    text = write_in_child(tmp_path / "d", user=NOBODY)
    assert "Permission denied" in text
    ours = translate_error(OSError(text), "writing")
    assert isinstance(ours, StorageUnavailable)
    assert ours.code == "storage_denied"
