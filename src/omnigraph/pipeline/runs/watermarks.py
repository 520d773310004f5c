"""The watermarks of incremental sources: how far the commits of a branch have read them.

A watermark is part of the commit with the rows up to it, so it is exact however a run ends, and on
every branch. Each records the commit whose watermark it continues.
"""

from __future__ import annotations

import base64
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from omnigraph.commit.commit_log import ancestors
from omnigraph.commit.history import read_commits
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.model import Snapshot
from omnigraph.errors import Contention

FILE_DIGEST_BYTES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Watermark:
    """How far a source was read by `commit` and all commits before it.

    `value` is the greatest value of `cursor`, as text of a Spark type; `types` are the types made
    from the rows; `files` are digests of the files that were read.
    """

    commit: str
    cursor: str | None = None
    type: str | None = None
    value: str | None = None
    types: tuple[str, ...] = ()
    files: frozenset[bytes] = field(default=frozenset(), repr=False)


def find_watermarks(
    manifest: Manifest, snapshot: Snapshot, names: Collection[str]
) -> dict[str, Watermark]:
    """Return the watermarks in the history of a snapshot by name; the history is read once."""
    if not names:
        return {}
    commits = read_commits(manifest.history_states(manifest.lineage(snapshot.lineage_id).state()))
    found: dict[str, dict[str, Mapping[str, Any]]] = {name: {} for name in names}
    for id_ in ancestors(commits, snapshot.commit_id) & set(commits):
        for name, mark in commits[id_].commit.watermarks.items():
            if name in found:
                found[name][id_] = mark
    return {name: _newest(marks) for name, marks in found.items() if marks}


def _newest(marks: Mapping[str, Mapping[str, Any]]) -> Watermark:
    """Return the watermark that no other one continues: the newest if branches were merged."""
    commit = max(set(marks) - {mark["after"] for mark in marks.values()})
    mark = marks[commit]
    return Watermark(
        commit=commit,
        cursor=mark.get("cursor"),
        type=mark.get("type"),
        value=mark.get("value"),
        types=tuple(mark["types"]),
        files=frozenset().union(*(unpack_digests(one.get("files", "")) for one in marks.values())),
    )


def check_watermarks(
    manifest: Manifest, snapshot: Snapshot, recorded: Mapping[str, Mapping[str, Any]]
) -> None:
    """Raise Contention if another run has read sources further since these marks were made."""
    now = find_watermarks(manifest, snapshot, recorded)
    for name, mark in recorded.items():
        newest = now[name].commit if name in now else None
        if newest != mark["after"]:
            message = (
                f"another run has read source `{name}` meanwhile and published commit {newest} on "
                f"{snapshot.branch}; resume the run, which reads what is left"
            )
            raise Contention(message)


def pack_digests(digests: Collection[bytes]) -> str:
    """Return digests as text."""
    return base64.b64encode(b"".join(sorted(digests))).decode()


def unpack_digests(text: str) -> set[bytes]:
    """Return what `pack_digests` packed."""
    data = base64.b64decode(text)
    return {data[n : n + FILE_DIGEST_BYTES] for n in range(0, len(data), FILE_DIGEST_BYTES)}
