"""This module is what happened to a graph, for readers that keep a copy of it."""

from __future__ import annotations

from collections.abc import Sequence

from omnigraph.changes.baseline import Baseline, capture
from omnigraph.changes.block import Limits
from omnigraph.changes.feed import FeedPage, Poll, poll
from omnigraph.graph.context import Context
from omnigraph.maintain.export import export_lines
from omnigraph.policy import Action


class Changes:
    """What happened on a branch, commit by commit, for a reader that keeps a copy of it."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def poll(  # noqa: PLR0913 - everything a poll can be told
        self,
        *,
        branch: str | None = None,
        start: str | None = None,
        cursor: str | None = None,
        page_token: str | None = None,
        kinds: Sequence[str] | None = None,
        types: Sequence[str] | None = None,
        ops: Sequence[str] | None = None,
        limits: Limits | None = None,
    ) -> FeedPage:
        """Return the next page of changes, and how to go on.

        From where is said by `start` (`now`, which is the default, `beginning` or `after:ID`), by
        the `cursor` of an earlier page, or by its `page_token` if it ended within a commit.
        """
        name = branch or self._context.on
        sight = self._context.gate.check(Action.READ, name.strip())
        asked = Poll(
            branch=name,
            start=start,
            cursor=cursor,
            page_token=page_token,
            scope=self._context.scope(sight, kinds, types, ops),
            limits=limits or Limits(),
        )
        return poll(self._context.manifest, asked)

    def baseline(
        self,
        *,
        branch: str | None = None,
        kinds: Sequence[str] | None = None,
        types: Sequence[str] | None = None,
        ops: Sequence[str] | None = None,
    ) -> Baseline:
        """Return all entities of the newest state and the cursor that goes on from there.

        `ops` do not limit the entities, only the changes that are polled afterwards.
        """
        manifest, name = self._context.manifest, branch or self._context.on
        sight = self._context.gate.check(Action.EXPORT, name.strip())
        found = capture(manifest, name, self._context.scope(sight, kinds, types, ops))
        lines = export_lines(manifest, found.snapshot, found.types) if found.types else iter(())
        return Baseline(found, lines)
