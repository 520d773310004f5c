"""This module ends runs: it finds what was published, gives the rest up, removes what is left."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from contextlib import suppress

import pyarrow.parquet as pq

from omnigraph.commit.branches import delete_branch
from omnigraph.commit.history import ancestors, find_commit, read_commits
from omnigraph.commit.intents import Intent, Intents
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.model import Commit, Snapshot
from omnigraph.commit.recovery import RecoveryKind, withdraw
from omnigraph.commit.snapshot import head_snapshot
from omnigraph.errors import NotFound, OmniError
from omnigraph.pipeline.runs import Run, Runs, RunState
from omnigraph.pipeline.staged import staged_by
from omnigraph.pipeline.staging import STAGED_FILES
from omnigraph.storage.layout import IDS, POSITIONS, VECTORS

_PUBLISHED = (RecoveryKind.ALREADY_PUBLISHED, RecoveryKind.ROLLED_FORWARD)


def published_before(manifest: Manifest, source: Snapshot, run: Run) -> Commit | None:
    """Return the commit of this run, or of another one with the same key, if the branch has it."""
    ids = {run.commit_id}
    if run.key is not None:
        runs = Runs(manifest.objects).list()
        ids |= {r.commit_id for r in runs if (r.key, r.branch) == (run.key, run.branch)}
    state = manifest.lineage(source.native).state()
    commits = read_commits(manifest.line(state))
    # The branch of an earlier run may have been merged, and be gone.
    found = sorted(ids & ancestors(commits, state.head.commit_id) & set(commits))
    return commits[found[0]].commit if found else None


def conclude(manifest: Manifest, run: Run, commit: Commit) -> Run:
    """Write down of a run that its commit, or one with the same key, is there."""
    intent = intent_of(manifest, run)
    if intent is not None and run.commit_id == commit.id:
        Intents(manifest.objects).end(intent)
    clear_folder(manifest, run)
    return Runs(manifest.objects).end(run, RunState.FINISHED, {"commit": commit.id})


def abort_run(manifest: Manifest, run: Run) -> Run:
    """Give a run up: nobody can publish it any more, and what it staged is removed.

    Whoever is at work on it stops. What is published stays: such a run is finished.
    """
    runs, intent = Runs(manifest.objects), intent_of(manifest, run)
    run = runs.settle(run, RunState.ABORTED)
    if run.state is RunState.ABORTED:
        kind = None if intent is None else withdraw(manifest, intent)
        if kind in _PUBLISHED or (kind is None and _is_there(manifest, run)):
            run = runs.settle(run, RunState.FINISHED, {"commit": run.commit_id})
        if kind is RecoveryKind.ROLLED_BACK:
            # Without a fence nobody knows what became of it: cleanup finds what is not needed.
            discard(manifest, run)
    elif intent is not None:
        Intents(manifest.objects).end(intent)
    made = run.stages.get("branch")
    if run.state is RunState.ABORTED and made is not None:
        drop_branch(manifest, run.branch, made["head"])
    clear_folder(manifest, run)
    return run


def _is_there(manifest: Manifest, run: Run) -> bool:
    """Tell whether the commit of a run is in the history of a branch or tag."""
    try:
        find_commit(manifest, run.commit_id)
    except NotFound:
        return False
    return True


def intent_of(manifest: Manifest, run: Run) -> Intent | None:
    """Return the intent of a run that is in flight."""
    found = Intents(manifest.objects).list()
    return next((intent for intent in found if intent.staged.id == run.commit_id), None)


def discard(manifest: Manifest, run: Run) -> None:
    """Remove the files of rows and of their vectors that surely were not published."""
    doomed = _vector_files(run)
    positions = [info.path for info in manifest.objects.list(f"{run.folder}/{POSITIONS}")]
    for path in positions:
        data = manifest.objects.get(path)
        if data is None:
            continue
        for file in json.loads(pq.read_schema(io.BytesIO(data)).metadata[STAGED_FILES]):
            large = manifest.objects.list(file.removesuffix(".lance"))
            doomed += [file, *(found.path for found in large if found.path != file)]
    manifest.objects.delete([*doomed, *positions])


def _vector_files(run: Run) -> list[str]:
    staged = staged_by(run)
    return [
        f"{staged.types[key].path}/data/{file['path']}"
        for key, facts in run.stages.get("embed", {"types": ()})["types"]
        for _, _, file in facts["files"]
        if staged is not None
    ]


def drop_branch(manifest: Manifest, branch: str, head: str) -> None:
    """Remove a branch that was forked for a load, unless somebody has used it since."""
    with suppress(OmniError):
        if head_snapshot(manifest, branch).commit_id == head:
            delete_branch(manifest, branch)


def clear_folder(
    manifest: Manifest, run: Run, *, entirely: bool = False, but: Sequence[str] = ()
) -> None:
    """Remove the files a run needs while it lasts, `but` some; `entirely` leaves no trace of it."""
    names = [name for name in (POSITIONS, IDS, VECTORS) if name not in but]
    folders = [run.folder] if entirely else [f"{run.folder}/{name}" for name in names]
    found = (info.path for folder in folders for info in manifest.objects.list(folder))
    manifest.objects.delete(found)
