"""This module shows a part of a state: the types and properties somebody may see.

What is left out is not there: the snapshot has a schema without it, so that nothing that reads by
the snapshot can find it.
"""

from __future__ import annotations

from dataclasses import replace

from omnigraph.catalog import AcceptedSchema, TypeKind
from omnigraph.commit.lineage import LineageState
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.model import Commit, Snapshot
from omnigraph.policy.scope import TypeScope
from omnigraph.policy.view import View, reduce_schema

MAX_VIEWS = 256
"""Reduced schemas that are kept."""


def seen(manifest: Manifest, snapshot: Snapshot, scope: TypeScope) -> Snapshot:
    """Return what a scope shows of a state."""
    whole = snapshot.whole or snapshot
    if scope.is_everything:
        return whole
    view = _view(manifest, whole.head.schema_hash, (whole.schema, whole.schema_source), scope)
    kinds = (TypeKind.NODE, TypeKind.EDGE)
    shown = {(t.id, t.incarnation) for kind in kinds for t in view.schema.of_kind(kind)}
    datasets = {key: entry for key, entry in whole.head.datasets.items() if key in shown}
    return replace(
        whole,
        head=replace(whole.head, datasets=datasets),
        schema=view.schema,
        schema_source=view.source,
        scope=scope,
        whole=whole,
    )


def seen_schema(
    manifest: Manifest, schema_hash: str, state: LineageState, scope: TypeScope
) -> AcceptedSchema:
    """Return what a scope shows of an accepted schema."""
    accepted = manifest.schema(schema_hash, state)
    return (
        accepted[0] if scope.is_everything else _view(manifest, schema_hash, accepted, scope).schema
    )


def seen_commit(commit: Commit, scope: TypeScope) -> Commit:
    """Return what a scope shows of a commit: counts tell about all types, or are not told."""
    return commit if scope.is_everything else replace(commit, counts={})


def _view(
    manifest: Manifest, schema_hash: str, accepted: tuple[AcceptedSchema, str], scope: TypeScope
) -> View:
    key = (schema_hash, scope)
    found = manifest.views.get(key)
    if found is None:
        if len(manifest.views) >= MAX_VIEWS:
            manifest.views.clear()
        found = reduce_schema(*accepted, scope)
        manifest.views[key] = found
    return found
