"""Return lineages to their last good versions.

The version files after the last good one are moved to a quarantine folder; nothing is deleted.
Intact later rows are published again, and empty swaps follow until the version is greater than any
that existed: a process that has cached a lost version finds a newer one and reads it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace

from ulid import ULID

from omnigraph.commit.branches import remove_closed_branches, remove_lineage_names
from omnigraph.commit.commit_queue import TurnLocks, lock_folder
from omnigraph.commit.lineage import Lineage, LineageState
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.manifest_rows import NewManifestRow
from omnigraph.commit.model import MAIN
from omnigraph.commit.protection_store import restore_protection
from omnigraph.commit.recovery import RecoveryKind, record_repair
from omnigraph.errors import Contention, GraphCorrupt
from omnigraph.maintain.last_good import new_and_stale_rows
from omnigraph.maintain.last_good_model import LastGoodReport, LineagePlan
from omnigraph.maintain.lineage_files import LineageFiles, rows_by_key
from omnigraph.storage.layout import AUDIT, QUARANTINE, lineage_path, version_file, version_hint

TURN_SECONDS = 30.0
"""How long a repair waits for writers of the same machine before it goes on."""


def return_to_last_good(
    manifest: Manifest, report: LastGoodReport, *, actor: str | None = None
) -> LastGoodReport:
    """Carry out a plan that was just made; return it with the quarantine folder.

    Raises:
        GraphCorrupt: main has no whole version; nothing was changed.
        Contention: another process published a version since the plan was made.
    """
    if not report.is_possible:
        first = report.lineages[0].damage[0]
        message = f"no manifest version of main is whole ({first}): restore the files from a backup"
        raise GraphCorrupt(f"{message}, or import an archive", damage=report.lineages[0].damage)
    if not report.damaged:
        return replace(report, confirmed=True)
    quarantine = f"{QUARANTINE}/{ULID()}"
    for plan in report.damaged:
        _check_unchanged(manifest, plan)
    for plan in report.damaged:
        with _turn(manifest, plan):
            _return_lineage(manifest, plan, quarantine)
        manifest.datasets.observe("repair: lineage returned")
    fresh = Manifest(manifest.location)
    fresh.datasets.observe = manifest.datasets.observe
    lost = [p.lineage_id for p in report.damaged if p.last_good is None and p.lineage_id]
    remove_lineage_names(fresh, lost)
    remove_closed_branches(fresh)
    restore_protection(fresh)
    for plan in report.damaged:
        _audit(fresh, plan, quarantine, actor)
    return replace(report, confirmed=True, quarantine=quarantine)


def _turn(manifest: Manifest, plan: LineagePlan) -> AbstractContextManager[None]:
    """Hold the turn of the writers of a branch on this machine."""
    locks = TurnLocks(lock_folder(manifest.location), plan.lineage_id or MAIN)
    return locks.turn(time.monotonic() + TURN_SECONDS)


def _check_unchanged(manifest: Manifest, plan: LineagePlan) -> LineageFiles:
    files = LineageFiles(manifest, plan.lineage_id)
    if files.newest != plan.newest:
        raise Contention(
            f"branch {plan.branch} got version {files.newest} while its version {plan.newest} was "
            "examined: another process writes to it; run the repair again"
        )
    return files


def _return_lineage(manifest: Manifest, plan: LineagePlan, quarantine: str) -> None:
    files = _check_unchanged(manifest, plan)
    path = files.path
    if plan.last_good is None:
        _move(manifest, [info.path for info in manifest.objects.list(path)], quarantine)
        return
    later = sorted((v for v in files.versions if v > plan.last_good), reverse=True)
    moved = [f"{path}/{files.versions[version]}" for version in later]
    _move(manifest, moved, quarantine)
    manifest.datasets.observe("repair: versions set aside")
    if manifest.objects.exists(f"{path}/{version_file(plan.newest + 1)}"):
        _move_back(manifest, moved, quarantine)
        raise Contention(
            f"another process published version {plan.newest + 1} of branch {plan.branch} during "
            "the repair, which was undone; run it again"
        )
    if manifest.location.is_local:
        hint = json.dumps({"version": plan.last_good}, separators=(",", ":"))
        manifest.objects.put(version_hint(path), hint.encode())
    lineage = Lineage(manifest.datasets, plan.lineage_id)
    state = lineage.open_version(plan.last_good)
    for _, file in plan.republished:
        state = _publish_again(lineage, state, files, file)
    while state.version <= plan.newest:
        state = lineage.swap(state, state.head)


def _publish_again(
    lineage: Lineage, state: LineageState, files: LineageFiles, file: str
) -> LineageState:
    """Publish the rows of an intact data file."""
    stored = files.read(file)
    if stored is None or stored.head is None:
        raise GraphCorrupt(f"{files.path}/{file} has changed since the plan; run the repair again")
    current = state.rows("object_type <> 'graph_head'", footprints=True)
    by_key = rows_by_key(row.row for row in current)
    new, _ = new_and_stale_rows(by_key, stored.rows)
    rows = [NewManifestRow(**row) for row in stored.rows if row["object_id"] in new]
    stale = [row for row in current if row.row["object_id"] in new]
    head = replace(stored.head[1], names=state.head.names)
    return lineage.swap(state, head, rows, stale)


# --- quarantine and audit ------------------------------------------------------------------------


def _move(manifest: Manifest, paths: Iterable[str], quarantine: str) -> None:
    for path in paths:
        manifest.objects.move(path, f"{quarantine}/{path}")


def _move_back(manifest: Manifest, paths: Sequence[str], quarantine: str) -> None:
    for path in reversed(paths):
        manifest.objects.move(f"{quarantine}/{path}", path)


def _audit(manifest: Manifest, plan: LineagePlan, quarantine: str, actor: str | None) -> None:
    """Record the return of a lineage; a damaged log is set aside."""
    outcomes = [
        {
            "table_key": lineage_path(plan.lineage_id),
            "from_version": str(plan.newest),
            "to_version": str(plan.kept),
            "lost_commits": [commit.id for commit in plan.lost_commits],
            "quarantine": quarantine,
        }
    ]
    kind = RecoveryKind.RETURNED_TO_LAST_GOOD
    try:
        record_repair(manifest, kind, plan.branch, actor, outcomes)
    except GraphCorrupt:
        _move(manifest, [info.path for info in manifest.objects.list(AUDIT)], quarantine)
        record_repair(manifest, kind, plan.branch, actor, outcomes)
