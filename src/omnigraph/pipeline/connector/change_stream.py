"""The change feed of a branch as a Spark streaming source.

An offset is a cursor of the feed, so that a stream continues exactly where it stopped, and is
rejected by another graph, by a recreated branch, or with another filter. Rows are the changes of
commits; `place` orders the commits.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import LongType, StringType, StructField, StructType, TimestampType

from omnigraph.changes.commit_changes import Limits
from omnigraph.changes.feed import FeedPage, FeedRequest, feed_cursor, last_read_index, poll
from omnigraph.changes.model import Change, ChangeFilter, parse_change_filter
from omnigraph.changes.version_history import FirstParentHistory
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.model import MAIN, Commit
from omnigraph.errors import InvalidInput
from omnigraph.pipeline.connector.columns import arrow_schema
from omnigraph.pipeline.connector.permission import SourcePermission
from omnigraph.pipeline.connector.table_scan import manifest_at
from omnigraph.storage import Location

SCHEMA = StructType(
    [
        StructField("place", LongType()),
        StructField("commit", StringType()),
        StructField("authored_at", TimestampType()),
        *(
            StructField(name, StringType())
            for name in ("actor", "kind", "type", "id", "op", "from", "to", "before", "after")
        ),
    ]
)
"""The columns of a change; `before` and `after` are properties as a JSON object."""
CHANGES = "changes"
"""The option that names the branch whose changes are read."""
COMMITS_PER_TASK = 16


@dataclass(frozen=True, slots=True)
class ChangeFeedOptions:
    """Which changes of which branch are read."""

    location: Location
    branch: str = MAIN
    start: str | None = None
    scope: ChangeFilter = field(default_factory=ChangeFilter)
    max_changes: int | None = None

    @classmethod
    def by_options(cls, location: Location, options: Mapping[str, str]) -> ChangeFeedOptions:
        """Read the options of a reader."""
        words = {name: _words(options.get(name)) for name in ("kinds", "types", "ops")}
        most = options.get("maxChangesPerBatch")
        if most is not None and not (most.isdigit() and int(most)):
            message = f"the option 'maxChangesPerBatch' must be a number of changes, got '{most}'"
            raise InvalidInput(message, code="option_invalid", option="maxChangesPerBatch")
        branch = options.get(CHANGES, MAIN).strip()
        sight = SourcePermission.by_options(options).sight(branch)
        return cls(
            location,
            branch,
            options.get("start"),
            replace(parse_change_filter(**words), sight=sight),
            None if most is None else int(most),
        )

    def poll(self, **where: Any) -> FeedRequest:  # noqa: ANN401 - as the class has them
        """Return the request to the change feed."""
        return FeedRequest(branch=self.branch, scope=self.scope, **where)

    def line(self) -> FirstParentHistory:
        """Return the commits of the branch as they are now."""
        return FirstParentHistory.read(manifest_at(self.location), self.branch)


def _words(text: str | None) -> list[str] | None:
    return None if text is None else [word.strip() for word in text.split(",")]


class _CommitPartition(InputPartition):
    """Some commits: the place of each, and the cursor before it."""

    def __init__(self, commits: list[tuple[int, str]]) -> None:
        super().__init__(None)
        self.commits = commits


class ChangeStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads what happened on a branch, batch by batch."""

    def __init__(self, feed: ChangeFeedOptions) -> None:
        self.feed = feed
        self.last: int | None = None

    def initialOffset(self) -> dict[str, str]:
        """Return where to begin: what `start` says, by default with what happens next."""
        line = self.feed.line()
        place = last_read_index(line, self.feed.poll(start=self.feed.start))
        return {"cursor": feed_cursor(line, self.feed.scope, place)}

    def getDefaultReadLimit(self) -> ReadLimit:
        """Return how much a batch may hold."""
        most = self.feed.max_changes
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    def prepareForTriggerAvailableNow(self) -> None:
        """Note the newest commit: later ones are for the next run."""
        self.last = len(self.feed.line().commits) - 1

    def latestOffset(self, start: dict[str, str], limit: ReadLimit) -> dict[str, str]:
        """Return the newest commit a batch may go to; at least one, if there is one."""
        line = self.feed.line()
        place = self._place(line, start)
        last = len(line.commits) - 1 if self.last is None else self.last
        if isinstance(limit, ReadMaxRows):
            last = _last_place_within(line, place, last, limit.max_rows)
        return {"cursor": feed_cursor(line, self.feed.scope, max(place, last))}

    def partitions(self, start: dict[str, str], end: dict[str, str]) -> Sequence[InputPartition]:
        """Return the commits behind one offset and up to another, some for each task."""
        line = self.feed.line()
        first, last = self._place(line, start), self._place(line, end)
        commits = [(n + 1, feed_cursor(line, self.feed.scope, n)) for n in range(first, last)]
        starts = range(0, len(commits), COMMITS_PER_TASK)
        return [_CommitPartition(commits[at : at + COMMITS_PER_TASK]) for at in starts]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the changes of commits."""
        assert isinstance(partition, _CommitPartition)
        manifest = manifest_at(self.feed.location)
        for place, cursor in partition.commits:
            for page in _pages(manifest, self.feed, cursor):
                for block in page.blocks:
                    if block.changes:
                        yield _rows(place, block.commit, block.changes)

    def _place(self, line: FirstParentHistory, offset: Mapping[str, str]) -> int:
        return last_read_index(line, self.feed.poll(cursor=offset["cursor"]))


def _last_place_within(line: FirstParentHistory, place: int, last: int, most: int) -> int:
    """Return how far to go for at most `most` changes; a commit is never split."""
    total, at = 0, place
    for at in range(place + 1, last + 1):
        counts = line.commit(at).counts.values()
        total += sum(c.inserted + c.updated + c.deleted for c in counts)
        if total >= most:
            return at if total == most or at == place + 1 else at - 1
    return at


def _pages(manifest: Manifest, feed: ChangeFeedOptions, cursor: str) -> Iterator[FeedPage]:
    """Yield the pages of the one commit behind a cursor."""
    limits = Limits(commits=1)
    page = poll(manifest, feed.poll(cursor=cursor, limits=limits))
    yield page
    while page.next_page_token is not None:
        page = poll(manifest, feed.poll(page_token=page.next_page_token, limits=limits))
        yield page


def _rows(place: int, commit: Commit, changes: Sequence[Change]) -> pa.RecordBatch:
    rows = [_row(place, commit, change) for change in changes]
    wanted = arrow_schema(SCHEMA)
    columns = [pa.array(v, f.type) for v, f in zip(zip(*rows, strict=True), wanted, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=wanted)


def _row(place: int, commit: Commit, change: Change) -> tuple[Any, ...]:
    image = change.after or change.before
    src, dst = (image.endpoints if image is not None else None) or (None, None)
    what = (str(change.kind), change.type, change.id, str(change.op), src, dst)
    images = (None if i is None else _json(i.properties) for i in (change.before, change.after))
    return (place, commit.id, commit.created_at, commit.actor, *what, *images)


def _json(properties: Mapping[str, Any]) -> str:
    return json.dumps(properties, ensure_ascii=False, separators=(",", ":"))
