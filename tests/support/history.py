"""Gives a graph on disk a long history at once, as thousands of commits would have left it.

The rows are those real commits write, made by the same encoders and swapped in together: one large
fragment, as merging leaves it. The files of old manifest versions are stand-ins, because nobody
opens them: their number is what costs. There is one for every commit, unless it is said how many
publishers would have left of them.
"""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import omnigraph.graph as og
from omnigraph.commit.manifest_rows import CommitRow, NewManifestRow, commit_row, version_row
from omnigraph.commit.model import Commit
from omnigraph.commit.publish import CHECKPOINT_INTERVAL
from omnigraph.commit.staged_commit import new_commit_id

_DETACHED = 1 << 63


def grow(graph: og.Graph, table_key: str, commits: int, versions: int | None = None) -> None:
    """Add commits that change one type until the graph has this many, and files of versions."""
    lineage = graph._manifest.main
    state, entry = lineage.state(), graph.snapshot().entries()[table_key]
    missing = commits - len(graph.commits.list())
    if missing <= 0:
        return
    head, rows = state.head, list[NewManifestRow]()
    parent, generation = head.commit_id, head.generation
    for _ in range(missing):
        made = Commit(
            id=new_commit_id(),
            parents=(parent,),
            branch="main",
            actor=None,
            message='["upsert"]',
            operation="load",
            created_at=datetime.now(UTC),
            manifest_version=state.version + 1,
            schema_hash=head.schema_hash,
        )
        entry = replace(entry, version=entry.version + 1)
        generation += 1
        row = CommitRow(made, None, generation=generation)
        if generation % CHECKPOINT_INTERVAL == 0:
            row = replace(row, datasets=tuple(({**head.datasets, entry.key: entry}).values()))
        rows += [commit_row(row), version_row(entry, table_key, made.id)]
        parent = made.id
    datasets = {**head.datasets, entry.key: entry}
    lineage.swap(
        state, replace(head, commit_id=parent, datasets=datasets, generation=generation), rows
    )
    files = missing if versions is None else versions
    _add_version_files(Path(graph.uri) / "__manifest" / "_versions", files)


def _add_version_files(folder: Path, count: int) -> None:
    """Put files behind the newest version: named like detached ones, they are never the latest."""
    some = next(folder.glob("*.manifest"))
    known = len(list(folder.glob("d*.manifest")))
    for number in range(count):
        os.link(some, folder / f"d{_DETACHED + known + number}.manifest")
