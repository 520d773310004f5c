"""Remove data that a schema change dropped permanently: versions that only history refers to.

Versions of branches, tags and open proposals are kept, and so are files without a published
version: a writer may be about to publish them. An interrupted purge changes no results, and cleanup
removes the rest.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from contextlib import suppress

from omnigraph.catalog import IncarnationId, TypeId, identity_text
from omnigraph.commit.commit_log import ancestors
from omnigraph.commit.history import (
    CommitHistory,
    add_versions,
    dataset_paths,
    datasets_at_commits,
    read_history,
)
from omnigraph.commit.intent_log import IntentLog
from omnigraph.commit.lineage import LineageState
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.model import MAIN
from omnigraph.errors import NotFound
from omnigraph.maintain.cleanup import proposed_commits
from omnigraph.maintain.recorded_checksums import lineage_states
from omnigraph.storage.compaction import restore_as_latest
from omnigraph.storage.layout import (
    manifests_first,
    parse_version_file,
    referenced_files,
    referenced_folders,
    version_file,
)


def purge(manifest: Manifest, paths: Iterable[str], branch: str) -> None:
    """Remove old versions of datasets, by path; `branch` is the one with the schema change."""
    states = lineage_states(manifest)
    history = read_history(states)
    registered, published = dataset_paths(states), defaultdict[str, set[int]](set)
    kept = _kept_versions(manifest, states, history, registered, branch)
    for entries in history.published.values():
        add_versions(published, entries, registered)
    for path in paths:
        _purge_dataset(manifest, path, kept[path], published[path] - kept[path], branch)
        manifest.datasets.observe("purge: removed")


def _kept_versions(
    manifest: Manifest,
    states: list[LineageState],
    history: CommitHistory,
    paths: Mapping[tuple[TypeId, IncarnationId], str],
    branch: str,
) -> defaultdict[str, set[int]]:
    """Return the versions that branches, tags, open proposals and intents need, by path.

    A branch that still has a type keeps its whole history, except the branch that dropped it.
    """
    kept = defaultdict[str, set[int]](set)
    names = {MAIN: None, **{b.name: b.lineage_id for b in manifest.branches().values()}}
    heads = {state.lineage.lineage_id: state.head for state in states}
    for name, lineage_id in names.items():
        head = heads.get(lineage_id)
        if head is None:
            continue
        add_versions(kept, head.datasets, paths)
        if name != branch:
            for commit in ancestors(history.commits, head.commit_id):
                shown = history.published.get(commit, {})
                present = {k: e for k, e in shown.items() if k in head.datasets}
                add_versions(kept, present, paths)
    named = {tag.commit_id for tag in manifest.tags().values()}
    named |= proposed_commits(manifest, history.commits)
    for datasets in datasets_at_commits(history, named & set(history.commits)):
        add_versions(kept, datasets, paths)
    for intent in IntentLog(manifest.objects).list():
        for staged in intent.staged.datasets:
            kept[staged.path] |= staged.versions
    return kept


def _purge_dataset(
    manifest: Manifest, path: str, kept: set[int], gone: set[int], branch: str
) -> None:
    listed = [info.path for info in manifest.objects.list(path)]
    if not kept:
        manifest.objects.delete(manifests_first(listed))
        return
    below = {name.removeprefix(f"{path}/") for name in listed}
    versions = {v for v in kept if version_file(v) in below}
    old = {v for v in gone if version_file(v) in below}
    if branch == MAIN:
        # Other Lance readers see the version of main, not dropped data.
        for entry in manifest.main.state().head.datasets.values():
            if path.endswith(f"/{identity_text(entry.type_id)}-{identity_text(entry.incarnation)}"):
                handle = manifest.datasets.open(path, entry.physical)
                manifest.datasets.sync_version(path, restore_as_latest(handle))
        old |= {v for v in map(parse_version_file, below) if v is not None and v not in versions}
    needed, folders = _version_files(manifest, path, {*versions, None})
    removable, removable_folders = _version_files(manifest, path, old)
    files = [
        name
        for name in below
        if name in removable - needed or any(map(name.startswith, removable_folders - folders))
    ]
    manifest.objects.delete(manifests_first(f"{path}/{name}" for name in files))


def _version_files(
    manifest: Manifest, path: str, versions: Iterable[int | None]
) -> tuple[set[str], set[str]]:
    """Return the files and folders of versions; None is the latest for other Lance readers."""
    files: set[str] = set()
    folders: set[str] = set()
    for version in versions:
        with suppress(NotFound):
            handle = manifest.datasets.open(path, version)
            files |= referenced_files(handle)
            folders |= referenced_folders(handle)
    return files, folders
