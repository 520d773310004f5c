"""Recovery of runs: find published commits, abort runs, remove staged files."""

from __future__ import annotations

import io
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

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
from omnigraph.pipeline.load.staging import STAGED_FILES, read_part
from omnigraph.pipeline.runs.run import PipelineRun, RunState, RunStore
from omnigraph.storage.layout import POSITIONS, REMOVED, STAGED, VECTORS

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


def remove_unpublished_files(
    manifest: Manifest, run: PipelineRun, but: Collection[str] = ()
) -> None:
    """Remove files of rows and vectors that are certainly not published.

    Rows whose files of positions are `but` stay.
    """
    remove_staged_files(manifest, run.folder, _vector_files(manifest, run), but)


def remove_staged_files(
    manifest: Manifest, folder: str, others: Sequence[str] = (), but: Collection[str] = ()
) -> None:
    """Remove files of rows that the files of positions in a folder name, `but` some, and others."""
    unpublished = list(others)
    listed = manifest.objects.list(f"{folder}/{POSITIONS}")
    positions = [info.path for info in listed if info.path not in but]
    for path in positions:
        data = manifest.objects.get(path)
        if data is None:
            continue
        for file in json.loads(pq.read_schema(io.BytesIO(data)).metadata[STAGED_FILES]):
            large = manifest.objects.list(file.removesuffix(".lance"))
            unpublished += [file, *(info.path for info in large if info.path != file)]
    manifest.objects.delete([*unpublished, *positions])


def kept_parts(manifest: Manifest, run: PipelineRun, signature: str) -> dict[str, set[str]]:
    """Return the parts of the input that tasks of a run have staged, with files of positions."""
    found = {}
    for info in manifest.objects.list(f"{run.folder}/{STAGED}"):
        kept = read_part(manifest.objects, info.path)
        if kept is not None and kept.get("signature") == signature:
            part = info.path.rpartition("/")[2].removesuffix(".json")
            found[part] = position_files([kept["result"]])
    return found


def position_files(results: Iterable[Mapping[str, Any]]) -> set[str]:
    """Return the files of positions that results of tasks name."""
    types = (found for result in results for found in result.get("types", ()))
    return {found["at"] for found in types if found["at"] is not None}


def _vector_files(manifest: Manifest, run: PipelineRun) -> list[str]:
    staged = read_staged(manifest.objects, run)
    return [
        f"{staged.types[key].path}/data/{file['path']}"
        for key, facts in run.stages.get("embed", {"types": ()})["types"]
        for _, _, file in facts["files"]
        if staged is not None
    ]


def drop_branch(manifest: Manifest, branch: str, head: str) -> None:
    """Remove a branch that was forked for a load, unless it has newer commits."""
    with suppress(OmniError):
        newest = head_snapshot(manifest, branch)
        if newest.commit_id == head:
            delete_branch(manifest, branch, unchanged_since=newest)


def clear_folder(
    manifest: Manifest,
    run: PipelineRun,
    *,
    entirely: bool = False,
    but: Sequence[str] = (),
    parts: Collection[str] = (),
) -> None:
    """Remove the temporary files of a run, `but` some; `entirely` also removes its record.

    Results of `parts` of the input stay.
    """
    kept = {f"{run.folder}/{STAGED}/{part}.json" for part in parts}
    names = [name for name in (POSITIONS, VECTORS, REMOVED, STAGED) if name not in but]
    folders = [run.folder] if entirely else [f"{run.folder}/{name}" for name in names]
    paths = (info.path for folder in folders for info in manifest.objects.list(folder))
    manifest.objects.delete(path for path in paths if path not in kept)
