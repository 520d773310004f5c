"""The change feed of a branch: what happened since a cursor, commit by commit.

Nothing is kept for a reader: a cursor says behind which commit it is, a page token where within a
block. A page ends within a block, or at the end of one. Changes may be delivered again; those
before a cursor were delivered completely.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from omnigraph.changes.commit_changes import (
    ChangeBlock,
    CommitSnapshots,
    Limits,
    PageBudget,
    block_changes,
)
from omnigraph.changes.cursors import (
    PagePosition,
    TokenKind,
    decode_token,
    encode_token,
    reject_invalid_token,
)
from omnigraph.changes.errors import ChangeFeedGap, ChangeSchemaBoundary, CursorRejected
from omnigraph.changes.model import ChangeFilter, check_filter_types
from omnigraph.changes.version_history import FirstParentHistory
from omnigraph.commit.history import find_commit
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.snapshot import apply_scope, apply_scope_to_commit, apply_scope_to_schema
from omnigraph.errors import InvalidInput
from omnigraph.notebook.display import ReportDisplay

NOW, BEGINNING, AFTER = "now", "beginning", "after:"


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedRequest:
    """A request of a page; at most one of `start`, `cursor` and `page_token` gives the position."""

    branch: str
    start: str | None = None
    cursor: str | None = None
    page_token: str | None = None
    scope: ChangeFilter = field(default_factory=ChangeFilter)
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        """Refuse two places to go on from."""
        positions = [n for n in ("start", "cursor", "page_token") if getattr(self, n) is not None]
        if len(positions) > 1:
            message = f"{' and '.join(positions)} exclude each other: give one"
            raise InvalidInput(message, code="feed_position_ambiguous")


@dataclass(frozen=True, slots=True)
class FeedPage(ReportDisplay):
    """Some blocks, and how to go on: behind the last one (`cursor`), or within it (`page_token`).

    `caught_up` means that the cursor is at the head of the branch.
    """

    blocks: tuple[ChangeBlock, ...]
    next_page_token: str | None = None
    cursor: str | None = None
    caught_up: bool | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the wire form."""
        names = ("next_page_token", "cursor", "caught_up")
        facts = {name: getattr(self, name) for name in names}
        return {
            "blocks": [block.to_json() for block in self.blocks],
            **{name: fact for name, fact in facts.items() if fact is not None},
        }


@dataclass(frozen=True, slots=True)
class _FeedPosition:
    """Behind which commit a reader is, how far it will go, and where it is in the next block."""

    done: int
    cut: int
    behind: PagePosition | None = None


def poll(manifest: Manifest, request: FeedRequest) -> FeedPage:
    """Return the next page of a branch.

    Raises:
        CursorRejected: a token is damaged or for something else.
        ChangeSchemaBoundary: the next commit changed the schema.
        ChangeFeedGap: the changes of the next commit can no longer be read.
    """
    line = FirstParentHistory.at_head(manifest, request.branch)
    line = line.since(_oldest_commit(line, request))
    at = _find_position(line, request)
    schemas = (line.commit(place).schema_hash for place in (at.done, -1))
    sight = request.scope.sight
    reduced = [apply_scope_to_schema(manifest, address, line.state, sight) for address in schemas]
    check_filter_types(request.scope, reduced)
    return _next_page(line, request, at)


def feed_cursor(line: FirstParentHistory, scope: ChangeFilter, place: int) -> str:
    """Return the cursor behind a commit of a line."""
    return encode_token(TokenKind.FEED_CURSOR, line.bound(scope), {"done": line.commits[place]})


def last_read_index(line: FirstParentHistory, request: FeedRequest) -> int:
    """Return the place of the commit a reader is behind."""
    return _find_position(line, request).done


def _next_page(line: FirstParentHistory, request: FeedRequest, at: _FeedPosition) -> FeedPage:
    scope, budget, steps = request.scope, PageBudget(request.limits), line.steps()
    blocks, done, behind = list[ChangeBlock](), at.done, at.behind
    stop = min(at.cut, at.done + request.limits.commits)
    snapshots = line.snapshots(at.done, stop + 1)
    states = (apply_scope(line.manifest, snapshot, scope.sight) for snapshot in snapshots)
    for old, new in pairwise(states):
        pair = CommitSnapshots(apply_scope_to_commit(line.commit(done + 1), scope.sight), old, new)
        changes = block_changes(line.manifest, pair, scope, steps, behind)
        try:
            taken, complete = budget.take(changes)
        except (ChangeFeedGap, ChangeSchemaBoundary) as error:
            if blocks:
                break
            if isinstance(error, ChangeFeedGap):
                raise ChangeFeedGap(error.commit_id, feed_cursor(line, scope, done)) from error
            raise
        if not taken and not complete:
            break
        blocks.append(ChangeBlock(pair.commit, taken))
        if not complete:
            place = PagePosition.behind(taken[-1].type_id, taken[-1].id).to_json()
            position = {"done": line.commits[done], "cut": line.commits[at.cut], "behind": place}
            token = encode_token(TokenKind.FEED_PAGE, line.bound(scope), position)
            return FeedPage(tuple(blocks), next_page_token=token)
        done, behind = done + 1, None
    caught_up = done == len(line.commits) - 1
    return FeedPage(tuple(blocks), cursor=feed_cursor(line, scope, done), caught_up=caught_up)


def _oldest_commit(line: FirstParentHistory, request: FeedRequest) -> str | None:
    """Return the commit behind which a reader is; None for the first of the line."""
    kinds = {TokenKind.FEED_CURSOR: request.cursor, TokenKind.FEED_PAGE: request.page_token}
    for kind, token in kinds.items():
        if token is not None:
            with reject_invalid_token():
                return str(decode_token(token, kind, line.bound(request.scope))["done"])
    if request.start in (None, NOW):
        return line.commits[-1]
    return (request.start or "").removeprefix(AFTER).strip()


def _find_position(line: FirstParentHistory, request: FeedRequest) -> _FeedPosition:
    head, bound = len(line.commits) - 1, line.bound(request.scope)
    if request.cursor is not None:
        facts = decode_token(request.cursor, TokenKind.FEED_CURSOR, bound)
        with reject_invalid_token():
            return _FeedPosition(_commit_index(line, facts["done"]), head)
    if request.page_token is not None:
        facts = decode_token(request.page_token, TokenKind.FEED_PAGE, bound)
        with reject_invalid_token():
            done, cut = _commit_index(line, facts["done"]), _commit_index(line, facts["cut"])
            return _FeedPosition(done, cut, PagePosition.from_json(facts["behind"]))
    return _FeedPosition(_start_index(line, NOW if request.start is None else request.start), head)


def _commit_index(line: FirstParentHistory, commit_id: str) -> int:
    place = line.place(commit_id)
    if place is None:
        raise CursorRejected("its commit is not on the branch")
    return place


def _start_index(line: FirstParentHistory, start: str) -> int:
    if start == NOW:
        return len(line.commits) - 1
    if start == BEGINNING:
        return 0
    if not start.startswith(AFTER):
        message = f"start is '{NOW}', '{BEGINNING}' or '{AFTER}' and a commit id, not '{start}'"
        raise InvalidInput(message, code="feed_start_invalid", start=start)
    commit_id = start.removeprefix(AFTER).strip()
    place = line.place(commit_id)
    if place is None:
        find_commit(line.manifest, commit_id)
        message = f"commit {commit_id} is not on the first-parent line of '{line.branch.name}'"
        raise InvalidInput(message, code="commit_not_on_branch", commit=commit_id)
    return place
