"""Recovery of runs: find published commits, abort runs, remove staged files."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from contextlib import suppress

import pyarrow.parquet as pq

from omnigraph.commit.branches import delete_branch
from omnigraph.commit.commit_log import ancestors
from omnigraph.commit.history import find_commit, read_commits
from omnigraph.commit.intent_log import IntentLog, OperationIntent
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.model import Commit, Snapshot
from omnigraph.commit.recovery import RecoveryKind, abort_intent
from omnigraph.commit.snapshot import head_snapshot
from omnigraph.errors import NotFound, OmniError
from omnigraph.pipeline.load.staged_load import read_staged
from omnigraph.pipeline.load.staging import STAGED_FILES
from omnigraph.pipeline.runs.run import PipelineRun, RunState, RunStore
from omnigraph.storage.layout import POSITIONS, REMOVED, VECTORS

_PUBLISHED_KINDS = (RecoveryKind.ALREADY_PUBLISHED, RecoveryKind.ROLLED_FORWARD)


def find_published_commit(manifest: Manifest, source: Snapshot, run: PipelineRun) -> Commit | None:
    """Return the commit of this run, or of another one with the same key, if the branch has it."""
    ids = {run.commit_id}
    if run.key is not None:
        runs = RunStore(manifest.objects).list()
        ids |= {r.commit_id for r in runs if (r.key, r.branch) == (run.key, run.branch)}
    state = manifest.lineage(source.lineage_id).state()
    commits = read_commits(manifest.history_states(state))
    # The branch of an earlier run may have been merged, and be gone.
    published = sorted(ids & ancestors(commits, state.head.commit_id) & set(commits))
    return commits[published[0]].commit if published else None


def mark_published(manifest: Manifest, run: PipelineRun, commit: Commit) -> PipelineRun:
    """Record that the commit of a run, or one with the same key, is published."""
    intent = find_intent(manifest, run)
    if intent is not None and run.commit_id == commit.id:
        IntentLog(manifest.objects).end(intent)
    clear_folder(manifest, run)
    return RunStore(manifest.objects).end(run, RunState.FINISHED, {"commit": commit.id})


def abort_run(manifest: Manifest, run: PipelineRun) -> PipelineRun:
    """Abort a run: it cannot be published any more, and its staged files are removed.

    A process that runs it stops. A published commit stays: such a run is finished.
    """
    runs, intent = RunStore(manifest.objects), find_intent(manifest, run)
    run = runs.settle(run, RunState.ABORTED)
    if run.state is RunState.ABORTED:
        kind = None if intent is None else abort_intent(manifest, intent)
        if kind in _PUBLISHED_KINDS or (kind is None and _has_commit(manifest, run)):
            run = runs.settle(run, RunState.FINISHED, {"commit": run.commit_id})
        if kind is RecoveryKind.ROLLED_BACK:
            # Without a fence the outcome is unknown: cleanup removes files that are not referenced.
            remove_unpublished_files(manifest, run)
    elif intent is not None:
        IntentLog(manifest.objects).end(intent)
    branch = run.stages.get("branch")
    if run.state is RunState.ABORTED and branch is not None:
        drop_branch(manifest, run.branch, branch["head"])
    clear_folder(manifest, run)
    return run


def _has_commit(manifest: Manifest, run: PipelineRun) -> bool:
    """Return whether the commit of a run is in the history of a branch or tag."""
    try:
        find_commit(manifest, run.commit_id)
    except NotFound:
        return False
    return True


def find_intent(manifest: Manifest, run: PipelineRun) -> OperationIntent | None:
    """Return the intent of a run in progress."""
    intents = IntentLog(manifest.objects).list()
    return next((intent for intent in intents if intent.staged.id == run.commit_id), None)


def remove_unpublished_files(manifest: Manifest, run: PipelineRun) -> None:
    """Remove files of rows and vectors that are certainly not published."""
    remove_staged_files(manifest, run.folder, _vector_files(run))


def remove_staged_files(manifest: Manifest, folder: str, others: Sequence[str] = ()) -> None:
    """Remove files of rows that the files of positions in a folder name, and others."""
    unpublished = list(others)
    positions = [info.path for info in manifest.objects.list(f"{folder}/{POSITIONS}")]
    for path in positions:
        data = manifest.objects.get(path)
        if data is None:
            continue
        for file in json.loads(pq.read_schema(io.BytesIO(data)).metadata[STAGED_FILES]):
            large = manifest.objects.list(file.removesuffix(".lance"))
            unpublished += [file, *(info.path for info in large if info.path != file)]
    manifest.objects.delete([*unpublished, *positions])


def _vector_files(run: PipelineRun) -> list[str]:
    staged = read_staged(run)
    return [
        f"{staged.types[key].path}/data/{file['path']}"
        for key, facts in run.stages.get("embed", {"types": ()})["types"]
        for _, _, file in facts["files"]
        if staged is not None
    ]


def drop_branch(manifest: Manifest, branch: str, head: str) -> None:
    """Remove a branch that was forked for a load, unless it has newer commits."""
    with suppress(OmniError):
        if head_snapshot(manifest, branch).commit_id == head:
            delete_branch(manifest, branch)


def clear_folder(
    manifest: Manifest, run: PipelineRun, *, entirely: bool = False, but: Sequence[str] = ()
) -> None:
    """Remove the temporary files of a run, `but` some; `entirely` also removes its record."""
    names = [name for name in (POSITIONS, VECTORS, REMOVED) if name not in but]
    folders = [run.folder] if entirely else [f"{run.folder}/{name}" for name in names]
    paths = (info.path for folder in folders for info in manifest.objects.list(folder))
    manifest.objects.delete(paths)
