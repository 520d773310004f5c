"""This module removes at once what a schema dropped for good: versions only history still shows.

What a branch or a tag shows stays, and so do files no published version refers to: somebody may be
about to publish them. A purge that dies half-way changes no answer, and cleanup removes the rest.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from omnigraph.commit.history import folds, read_history
from omnigraph.commit.intents import Intents
from omnigraph.commit.lineage import LineageState
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.model import MAIN
from omnigraph.commit.rows import read_version
from omnigraph.errors import NotFound
from omnigraph.storage.files import (
    referenced_files,
    referenced_folders,
    version_file,
    version_of,
)
from omnigraph.storage.index import show_as_head
from omnigraph.storage.layout import dataset_path


def purge(manifest: Manifest, paths: Iterable[str], branch: str) -> None:
    """Remove old versions of datasets, by path; `branch` is the one that dropped something."""
    states = [manifest.main.state()]
    for native in sorted(manifest.named_lineages()):
        with suppress(NotFound):  # it was just deleted
            states.append(manifest.lineage(native).state())
    kept = _kept(manifest, states)
    published = _published(states)
    for path in paths:
        _purge(manifest, path, kept.get(path, set()), published.get(path, set()), branch)
        manifest.datasets.observe("purge: removed")


def _kept(manifest: Manifest, states: list[LineageState]) -> dict[str, set[int]]:
    """Return the versions of each dataset that branches, tags and intents need."""
    kept: dict[str, set[int]] = {}
    paths = _paths(states)
    branches = {None, *(branch.native for branch in manifest.branches().values())}
    heads = [s.head.datasets for s in states if s.lineage.native in branches]
    history = read_history(states)
    tagged = {tag.commit_id for tag in manifest.tags().values()} & set(history.commits)
    for datasets in [*heads, *folds(history, tagged)]:
        for entry in datasets.values():
            kept.setdefault(paths[entry.key], set()).add(entry.physical)
    for intent in Intents(manifest.objects).list():
        for staged in intent.staged.datasets:
            path = dataset_path(staged.table_key.partition(":")[0], *staged.key)
            found = {v for v in (staged.physical, staged.expected) if v is not None}
            kept.setdefault(path, set()).update(found)
    return kept


def _paths(states: Iterable[LineageState]) -> dict[object, str]:
    rows = (found.row for state in states for found in state.rows("object_type = 'table'"))
    return {(r["stable_table_id"], r["table_incarnation_id"]): r["location"] for r in rows}


def _published(states: list[LineageState]) -> dict[str, set[int]]:
    """Return every version of each dataset that a commit ever showed."""
    published: dict[str, set[int]] = {}
    paths = _paths(states)
    for state in states:
        for found in state.rows("object_type = 'table_version'"):
            _, entry = read_version(found.row)
            published.setdefault(paths[entry.key], set()).add(entry.physical)
    return published


def _purge(manifest: Manifest, path: str, kept: set[int], published: set[int], branch: str) -> None:
    listed = [info.path for info in manifest.objects.list(path)]
    if not kept:
        manifest.objects.delete(_manifests_first(listed))
        return
    below = {name.removeprefix(f"{path}/") for name in listed}
    versions = {v for v in kept if version_file(v) in below}
    old = {v for v in published - kept if version_file(v) in below}
    if branch == MAIN:
        # Other readers of Lance see what main shows, not what was dropped.
        newest = manifest.main.state().head.datasets
        shown = next((e for e in newest.values() if e.physical in versions), None)
        if shown is not None:
            show_as_head(manifest.datasets.open(path, shown.physical))
        old |= {v for v in map(version_of, below) if v is not None and v not in versions}
    needed, folders = _files(manifest, path, {*versions, None})
    doomed, gone = _files(manifest, path, old)
    files = [
        name
        for name in below
        if name in doomed - needed or any(map(name.startswith, gone - folders))
    ]
    manifest.objects.delete(_manifests_first(f"{path}/{name}" for name in files))


def _files(
    manifest: Manifest, path: str, versions: Iterable[int | None]
) -> tuple[set[str], set[str]]:
    """Return the files and folders of versions; None is the newest for other readers of Lance."""
    files: set[str] = set()
    folders: set[str] = set()
    for version in versions:
        with suppress(NotFound):
            handle = manifest.datasets.open(path, version)
            files |= referenced_files(handle)
            folders |= referenced_folders(handle)
    return files, folders


def _manifests_first(paths: Iterable[str]) -> list[str]:
    """Order files so that a version that is half removed cannot be opened."""
    return sorted(paths, key=lambda path: (not path.endswith(".manifest"), path))
