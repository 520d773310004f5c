"""Store the protection of a graph: a row on main, folded into the heads of all branches."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeAlias

from omnigraph.commit.lineage import Lineage, LineageState
from omnigraph.commit.lineage_maintenance import maintain_lineage
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.manifest_rows import NewManifestRow
from omnigraph.commit.model import Head
from omnigraph.commit.protection import folded_protection, rules_of
from omnigraph.commit.publish import retry_swap
from omnigraph.errors import NotFound
from omnigraph.policy.protection_rules import ProtectionRule
from omnigraph.storage.compare_and_swap import ManifestRow

PROTECTION_KEY = "protection"
"""The key of the row that holds the protection of a graph, on main's lineage."""

_Change: TypeAlias = tuple[Head, list[NewManifestRow], list[ManifestRow]]


def read_protection(manifest: Manifest) -> tuple[ProtectionRule, ...]:
    """Return the rules stored in a graph."""
    return rules_of(manifest.main.state().head)


def write_protection(
    manifest: Manifest,
    rules: Sequence[ProtectionRule],
    *,
    actor: str | None,
    observe: Callable[[str], None] = lambda step: None,
) -> None:
    """Store the rules of a graph: on main first, and then in the head of every other branch.

    Until that is finished the head of main says so, and the next process that opens the graph for
    writing finishes it. A writer that read an older head loses its swap.
    """
    document = {"rules": [rule.to_json() for rule in rules], "actor": actor}

    def store(state: LineageState) -> _Change:
        version = _version_of(state.head.protection) + 1
        return _stored(state, {**document, "version": version})

    _swap(manifest.main, store)
    observe("protection: stored")
    spread_protection(manifest, observe)


def restore_protection(manifest: Manifest) -> None:
    """Store the newest protection that a head holds, after branches returned to older states."""
    held = [manifest.main.state().head.protection]
    for branch in manifest.registered_branches().values():
        with suppress(NotFound):
            held.append(manifest.lineage(branch.lineage_id).state().head.protection)
    newest = max(held, key=_version_of)

    def store(state: LineageState) -> _Change | None:
        if _version_of(state.head.protection) > _version_of(newest):
            return None  # changed meanwhile
        return _stored(state, newest)

    if any(_version_of(one) != _version_of(newest) for one in held):
        _swap(manifest.main, store)
        spread_protection(manifest)


def _version_of(protection: Mapping[str, Any]) -> int:
    return int(protection.get("version", 0))


def _stored(state: LineageState, document: Mapping[str, object]) -> _Change:
    """Return the change of main that stores a protection, to be folded into the other heads."""
    newer = {**document, "spreading": True}
    found = state.rows(f"object_id = '{PROTECTION_KEY}'")
    return replace(state.head, protection=newer), [_row(newer)], found


def spread_protection(
    manifest: Manifest, observe: Callable[[str], None] = lambda step: None
) -> None:
    """Fold the rules stored on main into the heads of all branches."""
    main = manifest.main.state()
    if not main.head.protection.get("spreading"):
        return
    wanted = folded_protection(main.head)
    for branch in manifest.registered_branches(main).values():
        lineage = manifest.lineage(branch.lineage_id)
        try:
            _swap(lineage, lambda state: _folded(state, wanted))
        except NotFound:
            continue  # it was just deleted
        observe("protection: folded")

    def finish(state: LineageState) -> _Change | None:
        if state.head.protection != main.head.protection:
            return None  # changed again meanwhile: that writer finishes it
        return replace(state.head, protection=wanted), [], []

    _swap(manifest.main, finish)


def _folded(state: LineageState, wanted: Mapping[str, Any]) -> _Change | None:
    is_older = _version_of(state.head.protection) < _version_of(wanted)
    if state.head.closed or not is_older:
        return None
    return replace(state.head, protection=wanted), [], []


def _swap(lineage: Lineage, change: Callable[[LineageState], _Change | None]) -> None:
    def attempt() -> None:
        state = lineage.state()
        if not state.is_current_format and not state.head.closed:
            lineage.upgrade()
            state = lineage.state()
        made = change(state)
        if made is not None:
            head, rows, stale = made
            lineage.swap(state, head, rows, stale)

    retry_swap(attempt)
    maintain_lineage(lineage)


def _row(document: Mapping[str, object]) -> NewManifestRow:
    stored = {k: v for k, v in document.items() if k != "spreading"}
    return NewManifestRow(
        object_id=PROTECTION_KEY,
        object_type="protection",
        metadata=json.dumps(stored, ensure_ascii=False, separators=(",", ":")),
    )
