"""Compact lineages after a publish: merge small fragments and remove old versions.

Results do not change. History is stored in rows, so an old version of a lineage is only a shortcut
to one of its states.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, timedelta

from omnigraph.commit.lineage import MIN_VERSION_AGE_IN_BUCKET, Lineage
from omnigraph.errors import OmniError
from omnigraph.storage import ObjectInfo
from omnigraph.storage.layout import parse_version_file, referenced_files

VERSIONS_KEPT = 256
"""Newest versions of a lineage that publishers keep, for readers and slow writers."""
VERSIONS_PER_REMOVAL = 128
"""Publishers remove old versions once per this number of versions."""
MIN_AGE_ON_DISK = timedelta(minutes=1)
"""On a disk, finding the newest version lists all of them, so old ones are removed early."""

_CLOCK_SLACK = timedelta(minutes=1)
"""File times that differ by less count as equal."""


def maintain_lineage(lineage: Lineage) -> None:
    """Merge fragments and remove old versions when due; errors do not affect published commits."""
    with suppress(OmniError):
        merged = lineage.compact()
        state = lineage.cached_state
        if (
            merged
            and state
            and state.version // VERSIONS_PER_REMOVAL
            != ((state.version - merged) // VERSIONS_PER_REMOVAL)
        ):
            remove_old_versions(lineage, MIN_AGE_ON_DISK, keep=VERSIONS_KEPT)


def remove_old_versions(lineage: Lineage, before: datetime | timedelta, *, keep: int = 0) -> None:
    """Remove versions older than the one that was the newest at a time, and their files.

    `before` is a time of the store or an age counted from the newest version. The newest `keep`
    versions are always kept, and in a bucket those that readers may rely on. Files written since
    the oldest kept version are kept; a copied graph, whose files are all new, may lose files of
    versions in between, which then count as removed, but never a file of the newest state.
    """
    objects = lineage.datasets.objects
    listed = {
        info.path.removeprefix(f"{lineage.path}/"): info for info in objects.list(lineage.path)
    }
    versions = {
        v: info for path, info in listed.items() if (v := parse_version_file(path)) is not None
    }
    last = max(versions, default=0) - keep
    newest_time = max(info.modified for info in versions.values())
    if isinstance(before, timedelta):
        before = newest_time - before
    if not lineage.datasets.location.is_local:
        before = min(before, newest_time - MIN_VERSION_AGE_IN_BUCKET)
    oldest = max(
        (v for v, info in versions.items() if v <= last and info.modified < before), default=0
    )
    if all(version >= oldest for version in versions):
        return
    newest = lineage.datasets.open(lineage.path)
    lineage.sync(int(newest.version))  # of another process, perhaps; older ones are its fallback
    needed = referenced_files(newest) | referenced_files(
        lineage.datasets.open(lineage.path, oldest)
    )
    limit = versions[oldest].modified - _CLOCK_SLACK
    doomed = [
        path
        for path, info in listed.items()
        if path not in needed and _is_old(path, info, oldest, limit)
    ]
    # The oldest version is removed first: a reader that finds a version finds all newer ones.
    doomed.sort(key=lambda path: (parse_version_file(path) is None, parse_version_file(path) or 0))
    objects.delete(f"{lineage.path}/{path}" for path in doomed)


def _is_old(path: str, info: ObjectInfo, oldest: int, limit: datetime) -> bool:
    version = parse_version_file(path)
    if version is not None:
        return version < oldest
    return info.modified < limit and not path.startswith("_versions/")
