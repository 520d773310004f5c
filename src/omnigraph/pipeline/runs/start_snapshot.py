"""Find the snapshot that a pipeline starts from."""

from __future__ import annotations

from omnigraph.commit.manifest import Manifest
from omnigraph.commit.model import MAIN, Snapshot
from omnigraph.commit.snapshot import head_snapshot
from omnigraph.pipeline.config.spec import Pipeline


def find_start_snapshot(manifest: Manifest, pipeline: Pipeline) -> tuple[Snapshot, bool]:
    """Return the state a pipeline starts from, and whether it is that of its branch."""
    branch = pipeline.branch.strip()
    if branch == MAIN or branch in manifest.branches():
        return head_snapshot(manifest, branch), True
    return head_snapshot(manifest, pipeline.base or MAIN), False
