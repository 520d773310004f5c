"""This module holds the lineages of one graph, its names and its accepted schemas."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from threading import Lock
from typing import Any

from omnigraph.catalog import AcceptedSchema
from omnigraph.commit.lineage import Lineage, LineageState
from omnigraph.commit.manifest_rows import NewManifestRow, read_branch, read_schema, read_tag
from omnigraph.commit.model import MAIN, Branch, DatasetEntry, Snapshot, Tag
from omnigraph.errors import GraphCorrupt, NotFound, OmniError, VersionReclaimed
from omnigraph.lang import nearest_name
from omnigraph.policy.permissions import TypeScope
from omnigraph.policy.schema_view import SchemaView
from omnigraph.storage import Datasets, Location
from omnigraph.storage.compare_and_swap import ManifestRow
from omnigraph.storage.layout import BRANCHES, dataset_path
from omnigraph.storage.lru_cache import LruCache

MAX_LINEAGES = 128
"""Branches of which a process keeps the newest state, about 0.13 MB each."""
MAX_SCHEMAS = 32


class Manifest:
    """Everything a process knows about the manifest of one graph.

    Names are read again when main's head says that they changed; accepted schemas are content
    addressed and never change. `snapshots` holds the newest of each lineage, `views` what scopes
    show of accepted schemas. Of branches and schemas it keeps those that were used last.
    """

    def __init__(self, location: Location) -> None:
        self.location = location
        self.datasets = Datasets(location)
        self.objects = self.datasets.objects
        self.main = Lineage(self.datasets, None)
        self._lineages: LruCache[str, Lineage] = LruCache(MAX_LINEAGES)
        self.snapshots: LruCache[str | None, Snapshot] = LruCache(MAX_LINEAGES)
        self.views: dict[tuple[str, TypeScope], SchemaView] = {}
        self._schemas: LruCache[str, tuple[AcceptedSchema, str]] = LruCache(MAX_SCHEMAS)
        self._branches: tuple[int, dict[str, Branch]] = (-1, {})
        self._tags: tuple[int, dict[str, Tag]] = (-1, {})
        self._lock = Lock()

    def lineage(self, native: str | None) -> Lineage:
        """Return the lineage behind a branch; of branches used long ago it is read again."""
        if native is None:
            return self.main
        with self._lock:
            known = self._lineages.get(native)
            return known or self._lineages.put(native, Lineage(self.datasets, native))

    def branches(self, state: LineageState | None = None) -> dict[str, Branch]:
        """Return every branch but main, by name; `state` is the version of main to look at."""
        known = self.registered(state)
        gone = {b.name for b in known.values() if b.leaving and self.is_closed(b)}
        for name in gone:
            known = without_branch(known, name)
        return known

    def registered(self, state: LineageState | None = None) -> dict[str, Branch]:
        """Return every branch whose name is taken, also if only its name is left to be deleted.

        `state` is the version of main to look at, the newest if not given.
        """
        state = state or self.main.state()
        refs, known = self._branches
        if refs != state.head.refs:
            rows = state.names("graph_branch")
            known = {branch.name: branch for branch in (read_branch(f.row) for f in rows)}
            self._branches = (state.head.refs, known)
        return known

    def names_changed(
        self, refs: int, rows: Sequence[NewManifestRow], stale: Sequence[ManifestRow]
    ) -> None:
        """Take note of names this process has changed, instead of reading them all again."""
        gone = {found.row["object_id"] for found in stale}
        made = [asdict(row) for row in rows]
        known, branches = self._branches
        if known == refs - 1:
            left = {n: branch for n, branch in branches.items() if f"branch:{n}" not in gone}
            new = [read_branch(row) for row in made if row["object_type"] == "graph_branch"]
            self._branches = (refs, left | {branch.name: branch for branch in new})
        known, tags = self._tags
        if known == refs - 1:
            kept = {n: tag for n, tag in tags.items() if f"tag:{n}" not in gone}
            tagged = [read_tag(row) for row in made if row["object_type"] == "graph_tag"]
            self._tags = (refs, kept | {tag.name: tag for tag in tagged})

    def is_closed(self, branch: Branch) -> bool:
        """Tell whether nobody can publish on the lineage of a branch any more."""
        try:
            return self.lineage(branch.native).state().head.closed
        except NotFound:
            return True

    def tags(self) -> dict[str, Tag]:
        """Return every tag, by name."""
        state = self.main.state()
        refs, known = self._tags
        if refs != state.head.refs:
            rows = state.names("graph_tag")
            known = {tag.name: tag for tag in (read_tag(f.row) for f in rows)}
            self._tags = (state.head.refs, known)
        return known

    def named_lineages(self) -> set[str]:
        """Return the lineages that branches or tags need, also those only their history needs."""
        names: list[Branch | Tag] = [*self.registered().values(), *self.tags().values()]
        return {native for name in names for native in (name.native, *name.origins) if native}

    def stored_lineages(self) -> set[str]:
        """Return every lineage there is something of in storage, named or not, main left out."""
        return set(self.objects.folders(BRANCHES))

    def line(self, state: LineageState) -> Iterator[LineageState]:
        """Yield the states that hold the history of a lineage: its own, its origins', main's.

        What is read later may hold more; it never holds less.
        """
        yield state
        for native in state.head.origins:
            yield self._origin(native)
        if state.lineage is not self.main:
            yield self.main.state()

    def _origin(self, native: str) -> LineageState:
        try:
            return self.lineage(native).state()
        except NotFound as error:
            if native in self.named_lineages():
                raise GraphCorrupt(f"lineage {native} is missing: history ends there") from error
            raise  # whoever descended from it was just deleted

    def branch(self, name: str) -> Branch:
        """Return a branch by name."""
        trimmed = name.strip()
        if trimmed == MAIN:
            return Branch(name=MAIN, native=None)
        found = self.branches().get(trimmed)
        if found is None:
            raise branch_not_found_error(trimmed)
        return found

    def head_state(self, name: str) -> tuple[Branch, LineageState]:
        """Return a branch and its newest state.

        A name that was known is trusted as long as its lineage is open, which saves a probe of main
        and is exact: a lineage is closed before its name can mean another branch.
        """
        known = self._branches[1].get(name.strip())
        if known is not None:
            with suppress(NotFound):
                state = self.lineage(known.native).state()
                if not state.head.closed:
                    return known, state
        branch = self.branch(name)
        try:
            state = self.lineage(branch.native).state()
        except NotFound as error:
            if branch.native is None:
                raise
            raise branch_not_found_error(branch.name) from error
        if state.head.closed:
            raise branch_not_found_error(branch.name)
        return branch, state

    @contextmanager
    def reading(self, table_key: str, entry: DatasetEntry) -> Iterator[Any]:
        """Give the dataset of `node:T` or `edge:E` as a snapshot shows it, a Lance handle."""
        path = dataset_path(table_key.partition(":")[0], entry.type_id, entry.incarnation)
        try:
            with self.datasets.whole(path, entry.physical):
                yield self.datasets.at(path, entry.physical)
        except NotFound as error:
            raise _version_reclaimed_error(table_key, entry) from error

    def check_readable(self, snapshot: Snapshot) -> None:
        """Raise VersionReclaimed when cleanup has removed what a snapshot shows."""
        head = self.lineage(snapshot.native).state().head
        if head.commit_id == snapshot.commit_id and not head.closed:
            return  # cleanup does not remove what is a head
        for table_key, entry in snapshot.entries().items():
            path = dataset_path(table_key.partition(":")[0], entry.type_id, entry.incarnation)
            if not self.datasets.has(path, entry.physical):
                raise _version_reclaimed_error(table_key, entry)

    def schema(self, schema_hash: str, state: LineageState) -> tuple[AcceptedSchema, str]:
        """Return an accepted schema and its source."""
        known = self._schemas.get(schema_hash)
        if known is None:
            rows = (holder.oldest_row(f"schema:{schema_hash}") for holder in self.line(state))
            found = next((row for row in rows if row is not None), None)
            if found is None:
                raise GraphCorrupt(f"accepted schema {schema_hash} is missing")
            known = self._schemas.put(schema_hash, read_schema(found.row))
        return known


def without_branch(branches: Mapping[str, Branch], name: str) -> dict[str, Branch]:
    """Return the branches without one of them; its descendants go to its parent."""
    left = {**branches}
    parent = left.pop(name).parent
    return {
        child.name: replace(child, parent=parent) if child.parent == name else child
        for child in left.values()
    }


def branch_not_found_error(name: str) -> OmniError:
    """Return the error for a name that is no branch."""
    return NotFound(f"branch '{name}' does not exist", code="branch_not_found", branch=name)


def unknown_branch_error(name: str, known: Collection[str]) -> OmniError:
    """Return the error for opening a branch that does not exist, with the way to create it."""
    trimmed = name.strip()
    nearest = nearest_name(trimmed, known)
    hint = "" if nearest is None else f" (did you mean '{nearest}'?)"
    message = f"branch '{trimmed}' does not exist{hint}; pass create=True or from_=… to create it"
    return NotFound(message, code="branch_not_found", branch=trimmed)


def _version_reclaimed_error(table_key: str, entry: DatasetEntry) -> VersionReclaimed:
    message = f"version {entry.version} of {table_key} has been cleaned up"
    return VersionReclaimed(message, table_key=table_key, version=entry.version)
