"""This module tells what one commit changed, page by page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from omnigraph.changes.block import Block, EntityChange, Limits, Pair, Room, block_changes
from omnigraph.changes.errors import CommitHasNoParent
from omnigraph.changes.model import Scope
from omnigraph.changes.scope import check_types
from omnigraph.changes.steps import Steps
from omnigraph.changes.tokens import Place, TokenKind, decode, digest, encode, filter_digest
from omnigraph.commit.history import find_commit
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.model import Commit, Snapshot
from omnigraph.commit.snapshot import snapshot_of_commit
from omnigraph.commit.view import seen, seen_commit


@dataclass(frozen=True, slots=True)
class CommitPage:
    """Some changes of a commit; `next_page_token` is there until all were told."""

    commit: Commit
    changes: tuple[EntityChange, ...]
    next_page_token: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the wire form."""
        facts, token = Block(self.commit, self.changes).to_json(), self.next_page_token
        return facts if token is None else {**facts, "next_page_token": token}


def commit_page(
    manifest: Manifest,
    commit_id: str,
    scope: Scope,
    *,
    page_token: str | None = None,
    limits: Limits | None = None,
) -> CommitPage:
    """Return what a commit changed against its first parent, or the next page of it.

    Raises:
        CommitHasNoParent: it is the first commit of the graph.
        ChangeSchemaBoundary: it changed the schema.
        ChangeFeedGap: a version it needs has been cleaned up.
        CursorRejected: the token is damaged or for something else.
    """
    row, _ = find_commit(manifest, commit_id)
    if not row.commit.parents:
        raise CommitHasNoParent(row.commit.id)
    ids, sight = (row.commit.parents[0], row.commit.id), scope.sight
    old, new = (seen(manifest, snapshot_of_commit(manifest, id_), sight) for id_ in ids)
    commit = seen_commit(row.commit, sight)
    bound = _bound(new, scope)
    behind = None
    if page_token is not None:
        behind = Place.from_json(decode(page_token, TokenKind.COMMIT_PAGE, bound))
    check_types(scope, [new.schema])
    pair, steps = Pair(commit, old, new), Steps(manifest, (old, new))
    changes = block_changes(manifest, pair, scope, steps, behind)
    taken, complete = Room(limits or Limits()).take(changes)
    if complete:
        return CommitPage(commit, taken)
    place = Place.behind(taken[-1].type_id, taken[-1].id)
    token = encode(TokenKind.COMMIT_PAGE, bound, place.to_json())
    return CommitPage(commit, taken, token)


def _bound(snapshot: Snapshot, scope: Scope) -> Mapping[str, str]:
    return {
        "graph": digest(snapshot.schema.domain),
        "commit": snapshot.commit_id,
        "filter": filter_digest(scope),
    }
