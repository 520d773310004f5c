"""This module keeps lineages small: publishers merge fragments and forget old versions by the way.

Nothing here changes an answer. History stands in rows, so an old version of a lineage is only a
shortcut to one of its states.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, timedelta

from omnigraph.commit.lineage import Lineage
from omnigraph.errors import OmniError
from omnigraph.storage import ObjectInfo
from omnigraph.storage.layout import parse_version_file, referenced_files

VERSIONS_KEPT = 256
"""Versions of a lineage publishers leave; the newest are what readers and slow writers are at."""
VERSIONS_PER_REMOVAL = 128
"""A publisher looks for versions to forget once in this many."""
MIN_AGE_ON_DISK = timedelta(minutes=1)
"""Looking at the newest version lists them all on a disk, so old ones go soon; reads are short."""
MIN_AGE_IN_BUCKET = timedelta(hours=1)
"""In a bucket the newest is listed first however many there are, and reads may be slow."""

_CLOCK_SLACK = timedelta(minutes=1)
"""Times of files are only told apart when they differ by more than this."""


def maintain_lineage(lineage: Lineage) -> None:
    """Merge and forget now and then; what was published stays whatever becomes of this."""
    with suppress(OmniError):
        merged = lineage.compact()
        state = lineage.known
        if (
            merged
            and state
            and state.version // VERSIONS_PER_REMOVAL
            != ((state.version - merged) // VERSIONS_PER_REMOVAL)
        ):
            age = MIN_AGE_ON_DISK if lineage.datasets.location.is_local else MIN_AGE_IN_BUCKET
            remove_old_versions(lineage, age, keep=VERSIONS_KEPT)


def remove_old_versions(lineage: Lineage, before: datetime | timedelta, *, keep: int = 0) -> None:
    """Remove what only versions need that are older than the one that was the newest at a time.

    The time is one of the store; an age counts from the newest version. The newest `keep` stay in
    any case. Of a version that stays, no file is removed that was written
    since the oldest of them; a copied graph, whose files are all new, may lose files of versions in
    between, which then count as forgotten, but never any of the newest state.
    """
    objects = lineage.datasets.objects
    listed = {
        info.path.removeprefix(f"{lineage.path}/"): info for info in objects.list(lineage.path)
    }
    made = {v: info for path, info in listed.items() if (v := parse_version_file(path)) is not None}
    last = max(made, default=0) - keep
    if isinstance(before, timedelta):
        before = max(info.modified for info in made.values()) - before
    oldest = max((v for v, info in made.items() if v <= last and info.modified < before), default=0)
    if all(version >= oldest for version in made):
        return
    newest = lineage.datasets.open(lineage.path)
    needed = referenced_files(newest) | referenced_files(
        lineage.datasets.open(lineage.path, oldest)
    )
    limit = made[oldest].modified - _CLOCK_SLACK
    doomed = [
        path
        for path, info in listed.items()
        if path not in needed and _is_old(path, info, oldest, limit)
    ]
    # The oldest version goes first: whoever finds a version there finds all that came after it.
    doomed.sort(key=lambda path: (parse_version_file(path) is None, parse_version_file(path) or 0))
    objects.delete(f"{lineage.path}/{path}" for path in doomed)


def _is_old(path: str, info: ObjectInfo, oldest: int, limit: datetime) -> bool:
    version = parse_version_file(path)
    if version is not None:
        return version < oldest
    return info.modified < limit and not path.startswith("_versions/")
