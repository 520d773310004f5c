"""Arguments of MCP tools; the JSON Schemas that agents read are made from these structs."""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, Any, TypeAlias

import msgspec
from msgspec import Meta, Struct, field

from omnigraph.service.wire import ChangeOpOutput, EntityKindOutput, LoadMode

DEFAULT_ITEMS = 100
MAX_ITEMS = 1_000

BranchField: TypeAlias = Annotated[str | None, Meta(description="Branch; main by default.")]
StateField: TypeAlias = Annotated[
    str | None, Meta(description="Commit ID, tag or time to read, in place of a branch.")
]
TypeField: TypeAlias = Annotated[
    str, Meta(description="Type of the entity; `node:T` or `edge:T` if a name means both.")
]
EntityIdField: TypeAlias = Annotated[
    str, Meta(description="ID of the entity; of a node with a key, the key.")
]
NameField: TypeAlias = Annotated[
    str | None, Meta(description="Which query, if the text declares several.")
]
ParamsField: TypeAlias = Annotated[
    dict[str, Any] | None, Meta(description="Values of the parameters, by name without `$`.")
]
MessageField: TypeAlias = Annotated[str | None, Meta(description="What the change is about.")]
MAX_SKIP = 1 << 53
"""Greater than the length of any list."""
SkipField: TypeAlias = Annotated[
    int, Meta(ge=0, le=MAX_SKIP, description="Number of items to skip.")
]
LimitField: TypeAlias = Annotated[
    int, Meta(ge=1, le=MAX_ITEMS, description="Number of items to return.")
]
MutationField: TypeAlias = Annotated[
    str, Meta(description="Text of a mutation: `query NAME($p: T) { insert | update | delete … }`.")
]


class ToolArguments(Struct, kw_only=True, forbid_unknown_fields=True):
    """No arguments."""


class PagedArguments(ToolArguments, kw_only=True):
    """A page of a list."""

    skip: SkipField = 0
    limit: LimitField = DEFAULT_ITEMS


class BranchArguments(PagedArguments, kw_only=True):
    """A branch."""

    branch: BranchField = None


class CommitArguments(ToolArguments, kw_only=True):
    """A commit."""

    commit_id: Annotated[str, Meta(description="ID of a commit, as `commits_list` shows it.")]


class EntityArguments(ToolArguments, kw_only=True):
    """An entity, and of which state."""

    type: TypeField
    id: EntityIdField
    branch: BranchField = None
    snapshot: StateField = None


class HistoryArguments(PagedArguments, kw_only=True):
    """An entity, up to which state, and a page of its changes."""

    type: TypeField
    id: EntityIdField
    branch: BranchField = None
    snapshot: StateField = None


class QueryArguments(PagedArguments, kw_only=True):
    """A query, and of which state."""

    query: Annotated[
        str, Meta(description="Text of a query: `query NAME($p: T) { match { … } return { … } }`.")
    ]
    name: NameField = None
    params: ParamsField = None
    branch: BranchField = None
    snapshot: StateField = None


class ExplainArguments(ToolArguments, kw_only=True):
    """A query to explain."""

    query: Annotated[str, Meta(description="Text of a query.")]
    name: NameField = None
    params: ParamsField = None
    branch: BranchField = None
    snapshot: StateField = None
    analyze: Annotated[bool, Meta(description="Run it, and show rows and times.")] = False


class MutateArguments(ToolArguments, kw_only=True):
    """A mutation."""

    query: MutationField
    name: NameField = None
    params: ParamsField = None
    branch: BranchField = None
    if_commit: Annotated[
        str | None, Meta(description="Refuse unless the branch is at this commit.")
    ] = None
    message: MessageField = None


class IngestArguments(ToolArguments, kw_only=True):
    """Entities."""

    data: Annotated[
        str,
        Meta(
            description='Lines of JSON: {"type": T, "data": {…}} is a node, '
            '{"edge": E, "from": id, "to": id, "data": {…}} an edge.'
        ),
    ]
    branch: BranchField = None
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


class BranchCreateArguments(ToolArguments, kw_only=True):
    """A branch to create."""

    name: Annotated[str, Meta(description="Name of the new branch.")]
    from_: Annotated[str | None, Meta(description="Branch to fork; main by default.")] = field(
        default=None, name="from"
    )


class BranchDeleteArguments(ToolArguments, kw_only=True):
    """A branch to delete."""

    name: Annotated[str, Meta(description="Name of the branch.")]


class BranchMergeArguments(ToolArguments, kw_only=True):
    """A branch to merge."""

    source: Annotated[str, Meta(description="Branch to merge.")]
    target: Annotated[str | None, Meta(description="Branch to merge into; main by default.")] = None
    delete_branch: Annotated[bool, Meta(description="Delete the source afterwards.")] = False


class MergeArguments(BranchMergeArguments, kw_only=True):
    """A branch to merge, or a dry run."""

    dry_run: Annotated[
        bool, Meta(description="Only report what would happen, conflicts included.")
    ] = False
    strict: Annotated[
        bool, Meta(description="Do not merge different properties of one entity.")
    ] = False
    resolve: Annotated[
        str | dict[str, Any] | None,
        Meta(
            description="Resolution of conflicts: `source`, `target`, or decisions by type and id."
        ),
    ] = None
    message: MessageField = None


class SchemaApplyArguments(ToolArguments, kw_only=True):
    """A schema."""

    schema_source: Annotated[str, Meta(description="The whole new schema, as `.pg` text.")]
    allow_data_loss: Annotated[bool, Meta(description="Allow steps that drop data.")] = False


class DiffArguments(PagedArguments, kw_only=True):
    """Two states."""

    from_: Annotated[str, Meta(description="Branch, tag, commit ID or time.")] = field(name="from")
    to: Annotated[str, Meta(description="Branch, tag, commit ID or time.")]
    kinds: Annotated[list[EntityKindOutput], Meta(description="Only these kinds.")] = []
    types: Annotated[list[str], Meta(description="Only these types.")] = []
    ops: Annotated[list[ChangeOpOutput], Meta(description="Only these operations.")] = []


class ProposeArguments(ToolArguments, kw_only=True):
    """A mutation for a branch of its own."""

    query: MutationField
    name: NameField = None
    params: ParamsField = None
    branch: Annotated[
        str | None, Meta(description="Name of the new branch; generated by default.")
    ] = None
    from_: Annotated[str | None, Meta(description="Branch to fork; main by default.")] = field(
        default=None, name="from"
    )
    target: Annotated[
        str | None,
        Meta(description="Branch to merge into; by default the one it forks."),
    ] = None
    message: MessageField = None
    title: Annotated[
        str | None, Meta(description="Title of the proposal; by default the message.")
    ] = None
    reviewers: Annotated[list[str], Meta(description="Actors to review it.")] = []
    limit: LimitField = DEFAULT_ITEMS


@lru_cache
def argument_schema(shape: type[Struct]) -> dict[str, Any]:
    """Return the JSON Schema of the arguments of a tool."""
    document = msgspec.json.schema(shape)
    definitions = document["$defs"]
    root = definitions.pop(shape.__name__)
    schema = {key: root[key] for key in ("type", "properties", "required") if key in root}
    schema["additionalProperties"] = False
    return schema | ({"$defs": definitions} if definitions else {})


ProposalNumberField: TypeAlias = Annotated[
    int, Meta(ge=1, description="Number of a proposal, as `proposals_list` shows it.")
]


class ProposalArguments(ToolArguments, kw_only=True):
    """A proposal."""

    number: ProposalNumberField


class ProposalListArguments(PagedArguments, kw_only=True):
    """Which proposals to list."""

    state: Annotated[str, Meta(description="`open`, `merged`, `closed` or `all`.")] = "open"
    author: Annotated[str | None, Meta(description="Only proposals of this actor.")] = None
    reviewer: Annotated[str | None, Meta(description="Only proposals with this reviewer.")] = None
    target: Annotated[str | None, Meta(description="Only proposals into this branch.")] = None


class ProposalCloseArguments(ProposalArguments, kw_only=True):
    """A proposal to close."""

    comment: Annotated[str | None, Meta(description="Why it is closed.")] = None


class ProposalCommentArguments(ProposalArguments, kw_only=True):
    """A comment on a proposal."""

    body: Annotated[str, Meta(description="The comment, as plain text.")]
    on: Annotated[
        dict[str, Any] | None,
        Meta(description="Subject: `type`, optionally with `id` and `property`."),
    ] = None
    thread: Annotated[int | None, Meta(description="ID of the comment to reply to.")] = None


class ProposalReviewArguments(ProposalArguments, kw_only=True):
    """A review of a proposal."""

    verdict: Annotated[str, Meta(description="`approve`, `request_changes` or `comment`.")]
    body: Annotated[str, Meta(description="Reasons, as plain text.")] = ""
    commit: Annotated[str | None, Meta(description="The `head_commit_id` that was reviewed.")] = (
        None
    )


class ProposalMergeArguments(ProposalArguments, kw_only=True):
    """A proposal to merge."""

    resolve: Annotated[
        Any, Meta(description="Decisions about conflicts, as `merge` takes them.")
    ] = None
    delete_branch: Annotated[bool, Meta(description="Delete the source branch afterwards.")] = False
    message: MessageField = None


class ProposalDiffArguments(PagedArguments, kw_only=True):
    """Which changes of a proposal to list."""

    number: ProposalNumberField
    kind: Annotated[list[EntityKindOutput], Meta(description="Only these kinds.")] = []
    type: Annotated[list[str], Meta(description="Only these types.")] = []
    op: Annotated[list[ChangeOpOutput], Meta(description="Only these operations.")] = []


class ProposalCreateArguments(ToolArguments, kw_only=True):
    """What is proposed."""

    source: Annotated[str, Meta(description="Branch to merge.")]
    target: Annotated[str | None, Meta(description="Branch to merge into; main by default.")] = None
    title: Annotated[str, Meta(description="What is proposed, in one line.")]
    description: Annotated[str, Meta(description="Why and how, as plain text.")] = ""
    reviewers: Annotated[list[str], Meta(description="Actors to review it.")] = []


class ChecksArguments(ToolArguments, kw_only=True):
    """The state to check."""

    branch: Annotated[str | None, Meta(description="Branch; main by default.")] = None
    snapshot: Annotated[str | None, Meta(description="Commit ID, tag or time instead.")] = None


class ProposalEventsArguments(ToolArguments, kw_only=True):
    """The events after a cursor."""

    after: Annotated[str | None, Meta(description="`cursor` of an earlier answer.")] = None
    proposal: Annotated[int | None, Meta(description="Only events of this proposal.")] = None
    limit: LimitField = DEFAULT_ITEMS


def paged_arguments(request: type[Struct], *, paged: bool) -> type[Struct]:
    """Return the arguments of a tool that takes the members of a request, and a page of a list."""
    base = PagedArguments if paged else ToolArguments
    fields = msgspec.structs.fields(request)
    return msgspec.defstruct(
        f"{request.__name__}Arguments",
        [_definition(field) for field in fields],
        bases=(base,),
        kw_only=True,
        forbid_unknown_fields=True,
        rename={field.name: field.encode_name for field in fields},
    )


def _definition(info: msgspec.structs.FieldInfo) -> Any:  # noqa: ANN401 - as defstruct takes it
    if info.required:
        return info.name, info.type
    if info.default is not msgspec.NODEFAULT:
        return info.name, info.type, info.default
    return info.name, info.type, field(default_factory=info.default_factory)
