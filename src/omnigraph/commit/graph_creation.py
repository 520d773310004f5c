"""Create and open graphs.

Creation writes the datasets first, under unique identities, and then the manifest in one
create-if-absent: of two concurrent creators one wins, and files of a killed one block no other.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime

from ulid import ULID

from omnigraph.catalog import (
    AcceptedSchema,
    AcceptedType,
    TimeOrderedAllocator,
    TypeKind,
    accept_schema,
    read_catalog,
)
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.manifest_rows import (
    CommitRow,
    NewManifestRow,
    commit_row,
    head_row,
    manifest_table,
    schema_row,
    table_row,
    update_row_checksum,
    version_row,
)
from omnigraph.commit.model import MAIN, Commit, DatasetEntry, Head, RowChecksum
from omnigraph.commit.staged_commit import new_commit_id
from omnigraph.errors import AlreadyExists, NotFound, OmniError
from omnigraph.lang import Code, SchemaError, report_for_text
from omnigraph.storage import Location
from omnigraph.storage.compare_and_swap import ANCHOR_FRAGMENT
from omnigraph.storage.layout import (
    MANIFEST,
    dataset_path,
    dataset_schema,
    empty_table,
    property_column,
)


def create_graph(manifest: Manifest, schema_text: str, *, actor: str | None = None) -> None:
    """Create an empty graph; raise AlreadyExists if there is one."""
    report = report_for_text(schema_text, "<schema>", Code.SCHEMA_UNREADABLE)
    catalog = read_catalog(report)
    if report.errors:
        raise SchemaError(report.sorted())
    manifest.objects.reach()
    if _exists(manifest):
        raise _already_exists_error(manifest.location)
    manifest.objects.probe()
    accepted = accept_schema(
        catalog, allocator=TimeOrderedAllocator(), domain=str(ULID()), report=report
    )
    rows = _initial_rows(manifest, accepted, schema_text, actor)
    if manifest.location.is_local:
        # A creator that a power failure interrupted may have left the name of the first version.
        manifest.datasets.set_aside_torn_version(MANIFEST)
    try:
        manifest.datasets.create(MANIFEST, manifest_table(rows))
    except AlreadyExists as error:
        # The graph is ours, by its commit ID, if only the response was lost.
        if manifest.main.state().row(rows[1].object_id) is None:
            raise _already_exists_error(manifest.location) from error
    manifest.objects.hold_reserve()


def open_graph(manifest: Manifest) -> None:
    """Check that there is a graph in a supported format; write nothing."""
    manifest.objects.reach()
    try:
        manifest.main.state()
    except NotFound as error:
        location = manifest.location
        message = f"no graph at {location}"
        raise NotFound(message, code="graph_not_found", uri=location.uri) from error


def schema_hash(accepted: AcceptedSchema, source: str) -> str:
    """Return the content address of an accepted schema with its source text."""
    text = json.dumps([source, accepted.to_json()], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def create_datasets(manifest: Manifest, types: Iterable[AcceptedType]) -> dict[str, DatasetEntry]:
    """Create an empty dataset for each node and edge type; return them by `node:T` or `edge:E`."""
    entries: dict[str, DatasetEntry] = {}
    for type_ in types:
        assert type_.incarnation is not None, "node and edge types have an incarnation"
        columns = [
            property_column(p.name, p.type, type_.property_ids[p.name])
            for p in type_.definition.properties.values()
        ]
        path = dataset_path(type_.kind, type_.id, type_.incarnation)
        physical = manifest.datasets.create(path, empty_table(dataset_schema(type_.kind, columns)))
        manifest.datasets.observe(f"created dataset {path.partition('/')[0]}")
        key = f"{type_.kind}:{type_.name}"
        entries[key] = DatasetEntry(type_.id, type_.incarnation, 1, physical, 0)
    return entries


def _initial_rows(
    manifest: Manifest, accepted: AcceptedSchema, source: str, actor: str | None
) -> list[NewManifestRow]:
    stored = [*accepted.of_kind(TypeKind.NODE), *accepted.of_kind(TypeKind.EDGE)]
    entries = create_datasets(manifest, stored)
    address = schema_hash(accepted, source)
    commit = Commit(
        id=new_commit_id(),
        parents=(),
        branch=MAIN,
        actor=actor,
        message=None,
        operation="init",
        created_at=datetime.now(UTC),
        manifest_version=1,
        schema_hash=address,
    )
    head = Head(
        commit_id=commit.id,
        schema_hash=address,
        datasets={entry.key: entry for entry in entries.values()},
        names=ANCHOR_FRAGMENT + 1,
        created_at=commit.created_at,
        generation=1,
        relaxed=manifest.datasets.is_relaxed,
    )
    first = commit_row(CommitRow(commit, None, generation=1, datasets=tuple(entries.values())))
    rows = [first, schema_row(address, source, accepted.to_json())]
    for key, entry in entries.items():
        path = entry.path(key)
        checksums = manifest.datasets.new_checksums(path, None, entry.physical)
        rows += [table_row(entry, key, path), version_row(entry, key, commit.id, checksums)]
    head = replace(head, row_checksum=update_row_checksum(RowChecksum(0, 0), rows))
    return [head_row(head, commit.manifest_version), *rows]


def _exists(manifest: Manifest) -> bool:
    try:
        manifest.main.state()
    except NotFound:
        return False
    return True


def _already_exists_error(location: Location) -> OmniError:
    return AlreadyExists(f"a graph already exists at {location}", code="already_initialized")
