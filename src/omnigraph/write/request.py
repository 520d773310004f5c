"""A write request, and its permission checks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial

from omnigraph.catalog import AcceptedType, TypeKind
from omnigraph.catalog.model import DST, ID, SRC
from omnigraph.commit.model import CommitId
from omnigraph.commit.protection import NO_PERMIT, WritePermit
from omnigraph.embed import Embedder
from omnigraph.embed.config import VectorsFrom
from omnigraph.errors import InvalidInput
from omnigraph.plan.expressions import EntityKind, predicate_refs
from omnigraph.plan.query_plan import Delete, MutationPlan, Update
from omnigraph.policy import PolicyDenied
from omnigraph.policy.authorization import ALL_RIGHTS, AccessRights, Authorizer
from omnigraph.write.change_set import ChangeSet
from omnigraph.write.committed_state import CommittedState

DEFAULT_TIMEOUT_SECONDS = 30.0
"""How long a change waits for other writers of its branch."""

MAINTENANCE_OPERATION = "optimize"
"""The operation of commits that change no entity."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteRequest:
    """Who wants a change, where, and under which condition.

    `external_blobs` are the bases below which blobs may stay where they are, `embedder` makes
    vectors of texts; `vectors_from` is the model that made the vectors given, if that is known.
    `rights` say which types the actor may change and see, `permit` what the writer shows where the
    branch is protected. `timeout` is in seconds.
    """

    branch: str
    operation: str
    actor: str | None = None
    message: str | None = None
    if_commit: CommitId | None = None
    external_blobs: tuple[str, ...] = ()
    embedder: Embedder = field(default_factory=Embedder)
    vectors_from: VectorsFrom = None
    rights: AccessRights = ALL_RIGHTS
    permit: WritePermit = NO_PERMIT
    timeout: float = DEFAULT_TIMEOUT_SECONDS

    def __post_init__(self) -> None:
        check_timeout(self.timeout)
        for word, text in (("an actor", self.actor), ("a message", self.message)):
            try:
                (text or "").encode()
            except UnicodeEncodeError as error:
                message = f"{word} with half of a surrogate pair is not valid Unicode"
                raise InvalidInput(message, code="text_invalid") from error


def check_timeout(timeout: object) -> None:
    """Raise InvalidInput for a timeout that is not a number of seconds."""
    if not isinstance(timeout, int | float) or not 0 <= timeout < float("inf"):
        message = f"a timeout is a number of seconds from 0 on, not {timeout!r}"
        raise InvalidInput(message, code="timeout_invalid")


def permit_for(gate: Authorizer, branch: str) -> WritePermit:
    """Return what an actor shows where a branch, or a tag, is protected."""
    if gate.policy is None:
        return NO_PERMIT
    return WritePermit(
        rules=gate.policy.bundle.protection,
        may_bypass=partial(gate.may_bypass_protection, branch.strip()),
    )


# ----------------------------------------------------------------------
# Permission checks: compare a change with what an actor may change and see, type by type.
#
# It looks at what is written of the schema and the change, never at entities: whether something is
# refused reveals nothing about what is in types that may not be seen.


_SYSTEM_PROPERTIES = frozenset(property_.name for property_ in (ID, SRC, DST))


def check_mutation_allowed(
    plan: MutationPlan, request: WriteRequest, committed: CommittedState
) -> None:
    """Refuse a mutation with conditions on what may not be read.

    How many entities an update or a delete finds reveals something about what it looks for.
    """
    if request.rights.read.is_everything:
        return
    shown, unread = committed.apply_scope(request.rights.read).catalog, set[str]()
    for statement in plan.statements:
        if isinstance(statement, Update | Delete):
            is_node, name = statement.kind is EntityKind.NODE, statement.type_name
            type_ = shown.nodes.get(name) if is_node else shown.edges.get(name)
            tested = [ref.property for test in statement.tests for ref in predicate_refs(test)]
            if type_ is None:
                unread.add(name)
            else:
                names = type_.properties.keys() | _SYSTEM_PROPERTIES
                unread |= {f"{name}.{property_}" for property_ in tested if property_ not in names}
    if unread:
        _deny(request, f"look for {', '.join(sorted(unread))}")


def check_changes_allowed(
    changes: ChangeSet, request: WriteRequest, committed: CommittedState
) -> None:
    """Refuse a change of types that may not be changed.

    Deleted nodes take edges with them, which has to be allowed, too; and as their number is
    returned, they have to be visible.
    """
    rights = request.rights
    if rights.is_everything:
        return
    shown = committed.apply_scope(rights.read).catalog
    changed = [change for change in changes.types.values() if not change.is_empty]
    refused = {c.shape.name for c in changed if not rights.change.covers(c.shape.name)}
    for change in changed:
        if change.shape.kind is TypeKind.NODE and (change.deleted or change.replace):
            edges = committed.snapshot.catalog.incident_edges(change.shape.name)
            refused |= {
                edge.name
                for edge in edges
                if edge.name not in shown.edges or not rights.change.covers(edge.name)
            }
    _deny_types(refused, request, committed)


def check_whole_types_allowed(
    types: Iterable[AcceptedType], request: WriteRequest, committed: CommittedState
) -> None:
    """Refuse what shows whole entities of types, unless they may be changed and seen whole."""
    rights = request.rights
    if rights.is_everything:
        return
    schema = committed.apply_scope(rights.read).schema
    refused = set[str]()
    for type_ in types:
        shown = schema.find(type_.kind, type_.name)
        is_whole = shown is not None and shown.property_ids.keys() == type_.property_ids.keys()
        if not is_whole or not rights.change.covers(type_.name):
            refused.add(type_.name)
    _deny_types(refused, request, committed)


def check_schema_changes_allowed(hashes: Iterable[str], request: WriteRequest) -> None:
    """Refuse to bring changes across schemas to who may not see or change all of them."""
    if not request.rights.is_everything and len(set(hashes)) > 1:
        _deny(request, "bring changes of the schema")


def _deny_types(names: set[str], request: WriteRequest, committed: CommittedState) -> None:
    """Refuse to change types; those that may not even be named are not."""
    catalog = committed.apply_scope(request.rights.named).catalog
    visible = sorted(name for name in names if name in catalog.nodes or name in catalog.edges)
    if names:
        others = [] if len(visible) == len(names) else ["types that it may not see"]
        _deny(request, f"change {', '.join([*visible, *others])}")


def _deny(request: WriteRequest, what: str) -> None:
    message = f"policy does not let actor '{request.actor}' {what} on branch '{request.branch}'"
    raise PolicyDenied(message, actor=request.actor, branch=request.branch)
