"""Lineages, branch and tag names and accepted schemas of one graph, cached per process."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from threading import Lock
from typing import Any

from omnigraph.catalog import AcceptedSchema
from omnigraph.commit.lineage import Lineage, LineageState
from omnigraph.commit.manifest_rows import (
    NewManifestRow,
    read_branch,
    read_schema,
    read_tag,
    row_values,
)
from omnigraph.commit.model import MAIN, Branch, DatasetEntry, Snapshot, Tag
from omnigraph.errors import GraphCorrupt, NotFound, OmniError, VersionReclaimed
from omnigraph.lang import nearest_name
from omnigraph.policy.permissions import TypeScope
from omnigraph.policy.schema_view import SchemaView
from omnigraph.storage import Datasets, Location
from omnigraph.storage.compare_and_swap import ManifestRow
from omnigraph.storage.layout import BRANCHES, PROPOSALS
from omnigraph.storage.lru_cache import LruCache
from omnigraph.storage.staged_writes import without_newest

MAX_LINEAGES = 128
"""Number of branches whose newest state a process caches, about 0.13 MB each."""
MAX_SCHEMAS = 32
MAX_VIEWS = 256
"""Number of cached schemas that are reduced by scopes."""


class Manifest:
    """The manifest of one graph with the caches of this process.

    Names are read again when their counter in main's head changes; accepted schemas are content
    addressed and never change. `snapshots` caches the newest snapshot of each lineage, `views` the
    schemas reduced by scopes. Branches and schemas are evicted least recently used first.
    """

    def __init__(self, location: Location) -> None:
        self.location = location
        self.datasets = Datasets(location)
        self.objects = self.datasets.objects
        self.main = Lineage(self.datasets, None)
        self._lineages: LruCache[str, Lineage] = LruCache(MAX_LINEAGES)
        self.snapshots: LruCache[str | None, Snapshot] = LruCache(MAX_LINEAGES)
        self.views: LruCache[tuple[str, TypeScope], SchemaView] = LruCache(MAX_VIEWS)
        self._schemas: LruCache[str, tuple[AcceptedSchema, str]] = LruCache(MAX_SCHEMAS)
        self._branches: tuple[int, dict[str, Branch]] = (-1, {})
        self._tags: tuple[int, dict[str, Tag]] = (-1, {})
        self._first_commit: str | None = None
        self._lock = Lock()

    def lineage(self, lineage_id: str | None) -> Lineage:
        """Return a lineage by ID, cached for recently used branches; None is main."""
        if lineage_id is None:
            return self.main
        with self._lock:
            lineage = self._lineages.get(lineage_id)
            return lineage or self._lineages.put(lineage_id, Lineage(self.datasets, lineage_id))

    def forget_lineage(self, path: str) -> None:
        """Drop what is cached of a lineage, given by its path, because a version was set aside."""
        with self._lock:
            lineages = [self.main, *self._lineages.values()]
        for lineage in lineages:
            if lineage.path == path:
                lineage.forget()
                self.snapshots.remove(lineage.lineage_id)

    def branches(self, state: LineageState | None = None) -> dict[str, Branch]:
        """Return every branch except main, by name; `state` is the version of main to read."""
        branches = self.registered_branches(state)
        deleted = {b.name for b in branches.values() if b.deleting and self.is_closed(b)}
        for name in deleted:
            branches = without_branch(branches, name)
        return branches

    def registered_branches(self, state: LineageState | None = None) -> dict[str, Branch]:
        """Return every branch whose name is in use, including closed branches.

        `state` is the version of main to read, by default the newest.
        """
        state = state or self.main.state()
        refs, branches = self._branches
        if refs != state.head.refs:
            rows = state.names("graph_branch")
            branches = {branch.name: branch for branch in (read_branch(row.row) for row in rows)}
            self._branches = (state.head.refs, branches)
        return branches

    def names_changed(
        self, refs: int, rows: Sequence[NewManifestRow], stale: Sequence[ManifestRow]
    ) -> None:
        """Update the cached names after a change by this process."""
        removed = {row.row["object_id"] for row in stale}
        written = [row_values(row) for row in rows]
        cached_refs, branches = self._branches
        if cached_refs == refs - 1:
            left = {n: branch for n, branch in branches.items() if f"branch:{n}" not in removed}
            new = [read_branch(row) for row in written if row["object_type"] == "graph_branch"]
            self._branches = (refs, left | {branch.name: branch for branch in new})
        cached_refs, tags = self._tags
        if cached_refs == refs - 1:
            kept = {n: tag for n, tag in tags.items() if f"tag:{n}" not in removed}
            tagged = [read_tag(row) for row in written if row["object_type"] == "graph_tag"]
            self._tags = (refs, kept | {tag.name: tag for tag in tagged})

    def is_closed(self, branch: Branch) -> bool:
        """Return whether the lineage of a branch no longer accepts commits."""
        try:
            return self.lineage(branch.lineage_id).state().head.closed
        except NotFound:
            return True

    def tags(self) -> dict[str, Tag]:
        """Return every tag, by name."""
        state = self.main.state()
        refs, tags = self._tags
        if refs != state.head.refs:
            rows = state.names("graph_tag")
            tags = {tag.name: tag for tag in (read_tag(row.row) for row in rows)}
            self._tags = (state.head.refs, tags)
        return tags

    def named_lineages(self) -> set[str]:
        """Return the lineages that branches, tags, open proposals or their history refer to."""
        return self.ref_lineages() | self._proposed_lineages()

    def ref_lineages(self) -> set[str]:
        """Return the lineages that branches, tags or their history refer to."""
        names: list[Branch | Tag] = [*self.registered_branches().values(), *self.tags().values()]
        return {
            lineage_id
            for name in names
            for lineage_id in (name.lineage_id, *name.ancestor_lineages)
            if lineage_id
        }

    def _proposed_lineages(self) -> set[str]:
        """Return the lineages of the sources of open proposals, which may be deleted branches."""
        try:
            facts = self.lineage(PROPOSALS).state().head.proposals
        except NotFound:
            return set()
        sources = [
            (record["source_lineage"], *record.get("source_ancestors", ()))
            for record in facts.get("open", ())
        ]
        return {lineage_id for source in sources for lineage_id in source if lineage_id}

    def stored_lineages(self) -> set[str]:
        """Return every lineage that has files in storage, main excluded."""
        return set(self.objects.folders(BRANCHES))

    def history_states(self, state: LineageState) -> Iterator[LineageState]:
        """Yield the states that hold the history of a lineage: its own, its ancestors', main's.

        A state that is read later holds at least as much history.
        """
        yield state
        for lineage_id in state.head.ancestor_lineages:
            yield self._ancestor_state(lineage_id)
        if state.lineage is not self.main:
            yield self.main.state()

    def _ancestor_state(self, lineage_id: str) -> LineageState:
        try:
            return self.lineage(lineage_id).state()
        except NotFound as error:
            if lineage_id in self.named_lineages():
                raise GraphCorrupt(
                    f"lineage {lineage_id} is missing: history ends there"
                ) from error
            raise  # its descendants were just deleted

    def first_commit(self) -> str:
        """Return the key of the row of the first commit; cached."""
        if self._first_commit is None:
            self._first_commit = self.main.state().first_commit()
        return self._first_commit

    def branch(self, name: str) -> Branch:
        """Return a branch by name."""
        trimmed = name.strip()
        if trimmed == MAIN:
            return Branch(name=MAIN, lineage_id=None)
        branch = self.branches().get(trimmed)
        if branch is None:
            raise branch_not_found_error(trimmed)
        return branch

    def known_branch(self, name: str) -> Branch:
        """Return a branch by name, without a request if it was used before; it may be deleted."""
        return self._branches[1].get(name.strip()) or self.branch(name)

    def head_state(self, name: str) -> tuple[Branch, LineageState]:
        """Return a branch and its newest state.

        A cached name is valid as long as its lineage is open, which saves a probe of main: a
        lineage is closed before its name can be reused.
        """
        cached = self._branches[1].get(name.strip())
        if cached is not None:
            with suppress(NotFound):
                state = self.lineage(cached.lineage_id).state()
                if not state.head.closed:
                    return cached, state
        branch = self.branch(name)
        try:
            state = self.lineage(branch.lineage_id).state()
        except NotFound as error:
            if branch.lineage_id is None:
                raise
            raise branch_not_found_error(branch.name) from error
        if state.head.closed:
            raise branch_not_found_error(branch.name)
        return branch, state

    @contextmanager
    def reading(
        self, table_key: str, entry: DatasetEntry, *, to_change: bool = False
    ) -> Iterator[Any]:
        """Yield a Lance handle of the dataset of `node:T` or `edge:E` at a snapshot's version.

        With `to_change`, new versions may be based on it: a state within a group of commits, at
        which a branch was created, is staged as a version of its own.
        """
        path = entry.path(table_key)
        try:
            with self.datasets.check_intact(path, entry.physical):
                handle = self.datasets.at(path, entry.physical, entry.excluded)
                if to_change and entry.excluded:
                    handle = without_newest(self.datasets.at(path, entry.physical), entry.excluded)
                yield handle
        except NotFound as error:
            raise _version_reclaimed_error(table_key, entry) from error

    def check_readable(self, snapshot: Snapshot) -> None:
        """Raise VersionReclaimed if cleanup has removed datasets of a snapshot."""
        head = self.lineage(snapshot.lineage_id).state().head
        if head.commit_id == snapshot.commit_id and not head.closed:
            return  # cleanup never removes a head
        for table_key, entry in snapshot.entries().items():
            if not self.datasets.has(entry.path(table_key), entry.physical):
                raise _version_reclaimed_error(table_key, entry)

    def schema(self, schema_hash: str, state: LineageState) -> tuple[AcceptedSchema, str]:
        """Return an accepted schema and its source."""
        schema = self._schemas.get(schema_hash)
        if schema is None:
            rows = (
                holder.oldest_row(f"schema:{schema_hash}") for holder in self.history_states(state)
            )
            row = next((row for row in rows if row is not None), None)
            if row is None:
                raise GraphCorrupt(f"accepted schema {schema_hash} is missing")
            schema = self._schemas.put(schema_hash, read_schema(row.row))
        return schema


def without_branch(branches: Mapping[str, Branch], name: str) -> dict[str, Branch]:
    """Return the branches without one of them; its children get its parent."""
    left = {**branches}
    parent = left.pop(name).parent
    return {
        child.name: replace(child, parent=parent) if child.parent == name else child
        for child in left.values()
    }


def branch_not_found_error(name: str) -> OmniError:
    """Return the error for a name that does not match any branch."""
    return NotFound(f"branch '{name}' does not exist", code="branch_not_found", branch=name)


def unknown_branch_error(name: str, names: Collection[str]) -> OmniError:
    """Return the error for opening a branch that does not exist; it explains how to create it."""
    trimmed = name.strip()
    nearest = nearest_name(trimmed, names)
    hint = "" if nearest is None else f" (did you mean '{nearest}'?)"
    message = f"branch '{trimmed}' does not exist{hint}; pass create=True or from_=… to create it"
    return NotFound(message, code="branch_not_found", branch=trimmed)


def _version_reclaimed_error(table_key: str, entry: DatasetEntry) -> VersionReclaimed:
    message = f"version {entry.version} of {table_key} has been cleaned up"
    return VersionReclaimed(message, table_key=table_key, version=entry.version)
