"""Bodies of changes."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, Struct, UnsetType, field

from omnigraph.service.wire.requests import ChangeOpOutput, EntityKindOutput, EpochMicros


class ChangeCauseOutput(Struct, kw_only=True):
    """The commit behind changes."""

    graph_commit_id: str
    parent_commit_id: str | UnsetType | None = UNSET
    merged_parent_commit_id: str | UnsetType | None = UNSET
    authored_branch: str
    actor_id: str | UnsetType | None = UNSET
    authored_at: EpochMicros


class ChangeTypeOutput(Struct, kw_only=True):
    """The type of an entity; its id survives renames."""

    id: str
    name: str


class ChangeEndpointsOutput(Struct, kw_only=True):
    """The ends of an edge."""

    from_: str = field(name="from")
    to: str


class ChangeImageOutput(Struct, kw_only=True):
    """An entity as a state shows it."""

    properties: Any
    endpoints: ChangeEndpointsOutput | UnsetType | None = UNSET


class EntityChangeOutput(Struct, kw_only=True):
    """What happened to one entity."""

    kind: EntityKindOutput
    type: ChangeTypeOutput
    id: str
    op: ChangeOpOutput
    before: ChangeImageOutput | UnsetType | None = UNSET
    after: ChangeImageOutput | UnsetType | None = UNSET


class CommitChangesOutput(Struct, kw_only=True):
    """A page of what one commit changed."""

    cause: ChangeCauseOutput
    changes: list[EntityChangeOutput]
    next_page_token: str | UnsetType | None = UNSET


class ChangeBlockOutput(Struct, kw_only=True):
    """What one commit changed, or a part of it."""

    cause: ChangeCauseOutput
    changes: list[EntityChangeOutput]


class ChangeFeedOutput(Struct, kw_only=True):
    """A page of changes and how to go on."""

    blocks: list[ChangeBlockOutput]
    next_page_token: str | UnsetType | None = UNSET
    cursor: str | UnsetType | None = UNSET
    caught_up: bool | UnsetType | None = UNSET


class ChangeBaselineOutput(Struct, kw_only=True):
    """Which state a baseline is, and how to go on from it."""

    snapshot_commit_id: str
    resume_cursor: str


class ChangeBaselineRecord(Struct, kw_only=True):
    """The last line of a baseline."""

    baseline: ChangeBaselineOutput
