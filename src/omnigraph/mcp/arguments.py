"""This module defines what tools take; schemas that agents read are made from these classes."""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, Any, TypeAlias

import msgspec
from msgspec import Meta, Struct, field

from omnigraph.mcp.paging import DEFAULT_ITEMS, MOST_ITEMS
from omnigraph.service.wire import ChangeOpOutput, EntityKindOutput, LoadMode

Branch: TypeAlias = Annotated[str | None, Meta(description="Branch; main by default.")]
State: TypeAlias = Annotated[
    str | None, Meta(description="Commit id, tag or time to read, in place of a branch.")
]
Name: TypeAlias = Annotated[
    str | None, Meta(description="Which query, if the text declares several.")
]
Params: TypeAlias = Annotated[
    dict[str, Any] | None, Meta(description="Values of the parameters, by name without `$`.")
]
Message: TypeAlias = Annotated[str | None, Meta(description="What the change is about.")]
Skip: TypeAlias = Annotated[int, Meta(ge=0, description="How many of the list to leave out first.")]
Limit: TypeAlias = Annotated[
    int, Meta(ge=1, le=MOST_ITEMS, description="How many of the list to show.")
]
Mutation: TypeAlias = Annotated[
    str, Meta(description="Text of a mutation: `query NAME($p: T) { insert | update | delete … }`.")
]


class Arguments(Struct, kw_only=True, forbid_unknown_fields=True):
    """What a tool takes: by default nothing."""


class Paged(Arguments, kw_only=True):
    """What a tool takes that answers with a list."""

    skip: Skip = 0
    limit: Limit = DEFAULT_ITEMS


class OfBranch(Paged, kw_only=True):
    """A branch."""

    branch: Branch = None


class OfCommit(Arguments, kw_only=True):
    """A commit."""

    commit_id: Annotated[str, Meta(description="Id of a commit, as `commits_list` shows it.")]


class Query(Paged, kw_only=True):
    """A query, and of which state."""

    query: Annotated[
        str, Meta(description="Text of a query: `query NAME($p: T) { match { … } return { … } }`.")
    ]
    name: Name = None
    params: Params = None
    branch: Branch = None
    snapshot: State = None


class Explain(Arguments, kw_only=True):
    """A query to be explained."""

    query: Annotated[str, Meta(description="Text of a query.")]
    name: Name = None
    params: Params = None
    branch: Branch = None
    snapshot: State = None
    analyze: Annotated[bool, Meta(description="Run it, and tell rows and times.")] = False


class Mutate(Arguments, kw_only=True):
    """A mutation."""

    query: Mutation
    name: Name = None
    params: Params = None
    branch: Branch = None
    if_commit: Annotated[
        str | None, Meta(description="Refuse unless the branch is at this commit.")
    ] = None
    message: Message = None


class Ingest(Arguments, kw_only=True):
    """Entities."""

    data: Annotated[
        str,
        Meta(
            description='Lines of JSON: {"type": T, "data": {…}} is a node, '
            '{"edge": E, "from": id, "to": id, "data": {…}} an edge.'
        ),
    ]
    branch: Branch = None
    from_: Annotated[
        str | None, Meta(description="Branch to fork from, if `branch` does not exist.")
    ] = field(default=None, name="from")
    mode: Annotated[
        LoadMode | None,
        Meta(
            description="`merge` (default) replaces entities that exist, `append` refuses them, "
            "`overwrite` replaces all of each type."
        ),
    ] = None


class BranchCreate(Arguments, kw_only=True):
    """A branch to be made."""

    name: Annotated[str, Meta(description="Name of the new branch.")]
    from_: Annotated[str | None, Meta(description="Branch to fork; main by default.")] = field(
        default=None, name="from"
    )


class BranchDelete(Arguments, kw_only=True):
    """A branch to be deleted."""

    name: Annotated[str, Meta(description="Name of the branch.")]


class BranchMerge(Arguments, kw_only=True):
    """A branch to be merged."""

    source: Annotated[str, Meta(description="Branch to merge.")]
    target: Annotated[str | None, Meta(description="Branch to merge into; main by default.")] = None
    delete_branch: Annotated[bool, Meta(description="Delete the source afterwards.")] = False


class Merge(BranchMerge, kw_only=True):
    """A branch to be merged, or tried to."""

    dry_run: Annotated[
        bool, Meta(description="Only tell what would happen, conflicts included.")
    ] = False
    strict: Annotated[
        bool, Meta(description="Do not merge different properties of one entity.")
    ] = False
    resolve: Annotated[
        str | dict[str, Any] | None,
        Meta(description="Who wins conflicts: `source`, `target`, or decisions by type and id."),
    ] = None
    message: Message = None


class SchemaApply(Arguments, kw_only=True):
    """A schema."""

    schema_source: Annotated[str, Meta(description="The whole new schema, as `.pg` text.")]
    allow_data_loss: Annotated[bool, Meta(description="Allow steps that drop data.")] = False


class Diff(Paged, kw_only=True):
    """Two states."""

    from_: Annotated[str, Meta(description="Branch, tag, commit id or time.")] = field(name="from")
    to: Annotated[str, Meta(description="Branch, tag, commit id or time.")]
    kinds: Annotated[list[EntityKindOutput], Meta(description="Only these kinds.")] = []
    types: Annotated[list[str], Meta(description="Only these types.")] = []
    ops: Annotated[list[ChangeOpOutput], Meta(description="Only these operations.")] = []


class Propose(Arguments, kw_only=True):
    """A mutation for a branch of its own."""

    query: Mutation
    name: Name = None
    params: Params = None
    branch: Annotated[
        str | None, Meta(description="Name of the new branch; one is made up by default.")
    ] = None
    from_: Annotated[str | None, Meta(description="Branch to fork; main by default.")] = field(
        default=None, name="from"
    )
    target: Annotated[
        str | None, Meta(description="Branch it shall be merged into; by default where it forks.")
    ] = None
    message: Message = None
    limit: Limit = DEFAULT_ITEMS


@lru_cache
def schema_of(shape: type[Arguments]) -> dict[str, Any]:
    """Return the JSON Schema of what a tool takes."""
    found = msgspec.json.schema(shape)
    definitions = found["$defs"]
    root = definitions.pop(shape.__name__)
    schema = {key: root[key] for key in ("type", "properties", "required") if key in root}
    schema["additionalProperties"] = False
    return schema | ({"$defs": definitions} if definitions else {})
