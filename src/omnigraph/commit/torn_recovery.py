"""Continue after a power failure: set incomplete versions aside and record each in the audit."""

from __future__ import annotations

from functools import partial

from omnigraph.commit.manifest import Manifest
from omnigraph.commit.recovery import RecoveryKind, record_repair
from omnigraph.storage.torn_version import TornVersion


def set_aside_torn_versions(manifest: Manifest) -> None:
    """Set versions that a power failure left incomplete aside from now on, as they are found.

    Without this, as in read-only mode, the versions before them are read.
    """
    manifest.datasets.on_torn_version = partial(_record_torn_version, manifest)


def _record_torn_version(manifest: Manifest, torn: TornVersion) -> None:
    # Its number and the numbers of its fragments are used again.
    manifest.forget_lineage(torn.path)
    kind = RecoveryKind.TORN_VERSION_SET_ASIDE
    if torn.moved_to is None:
        kind = RecoveryKind.UNSYNCED_VERSION_LOST
    outcome = {
        "table_key": torn.path,
        "from_version": str(torn.version),
        "to_version": str(torn.version - 1),
        "moved_to": torn.moved_to,
    }
    record_repair(manifest, kind, torn.path, None, [outcome], operation="power failure")
