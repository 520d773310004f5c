"""This module is what the face of a graph calls: run a mutation, load data, tell what happened."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from omnigraph.catalog.model import ID
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.model import Commit
from omnigraph.commit.snapshot import head_snapshot
from omnigraph.commit.view import seen
from omnigraph.errors import InvalidInput, NotFound
from omnigraph.lang.query_tree import Operator
from omnigraph.plan import MutationPlan, bind_parameters, compile_query
from omnigraph.plan.expressions import Compare, Constant, EntityKind, PropertyRef
from omnigraph.plan.query import ENTITY, InsertEdge, InsertNode, Update
from omnigraph.query.entity import find_type
from omnigraph.types import Scalar
from omnigraph.types.blob import blob_text
from omnigraph.write.apply import apply
from omnigraph.write.change_set import ChangeSet
from omnigraph.write.coerce import Rules
from omnigraph.write.committed import Committed
from omnigraph.write.external import ExternalBlobs
from omnigraph.write.mutate import Mutation
from omnigraph.write.request import Request
from omnigraph.write.rights import check_plan


@dataclass(frozen=True, slots=True, kw_only=True)
class MutationResult:
    """What a mutation did; `commit` is None when nothing changed."""

    name: str
    branch: str
    affected_nodes: int
    affected_edges: int
    commit: Commit | None
    actor: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the wire form."""
        return {
            "branch": self.branch,
            "query_name": self.name,
            "affected_nodes": self.affected_nodes,
            "affected_edges": self.affected_edges,
            "actor_id": self.actor,
            "commit": self.commit.to_json() if self.commit is not None else None,
        }


def run_mutation(
    manifest: Manifest,
    request: Request,
    source: str,
    parameters: Mapping[str, Any] | None = None,
    name: str | None = None,
) -> MutationResult:
    """Run one mutation of a query text as one commit."""
    now = datetime.now(UTC)
    rules = Rules(external=ExternalBlobs.below(request.external_blobs))
    run: list[Mutation] = []

    def prepare(committed: Committed) -> ChangeSet:
        plan = _plan(request, committed, source, name)
        bound = bind_parameters(plan.parameters, parameters)
        run[:] = [Mutation(plan, bound, now, committed, rules=rules)]
        return run[0].run()

    def again() -> bool:
        return all(isinstance(s, InsertNode | InsertEdge) for s in run[0].plan.statements)

    commit = apply(manifest, request, prepare, again=again)
    return MutationResult(
        name=run[0].plan.name,
        branch=request.branch,
        affected_nodes=run[0].affected_nodes,
        affected_edges=run[0].affected_edges,
        commit=commit,
        actor=request.actor,
    )


def write_blob(
    manifest: Manifest, request: Request, selector: tuple[str, str, str], data: bytes
) -> Commit | None:
    """Set the blob of one entity, named by type, id and property; None when it is that already."""
    type_name, id_, property_name = selector
    snapshot = seen(manifest, head_snapshot(manifest, request.branch), request.rights.named)
    found = find_type(snapshot, type_name)
    property_ = found.definition.properties.get(property_name)
    if property_ is None or property_.type.scalar is not Scalar.BLOB:
        message = f"{found.kind} type {found.name} has no Blob property '{property_name}'"
        raise InvalidInput(message, code="not_a_blob", type=found.name)
    test = Compare(PropertyRef(ENTITY, ID.name, ID.type), Operator.EQ, Constant(id_, ID.type))
    value = Constant(blob_text(data), property_.type)
    kind = EntityKind(found.kind)
    update = Update(kind, found.name, {property_name: value}, (test,))
    plan = MutationPlan(name="put_blob", parameters=(), statements=(update,))

    def prepare(committed: Committed) -> ChangeSet:
        check_plan(plan, request, committed)
        mutation = Mutation(plan, {}, datetime.now(UTC), committed)
        changes = mutation.run()
        affected[:] = [mutation.affected_nodes + mutation.affected_edges]
        return changes

    affected: list[int] = []
    commit = apply(manifest, request, prepare, again=lambda: True)
    if not any(affected):
        message = f"{found.kind} {found.name} '{id_}' does not exist"
        raise NotFound(message, code="entity_not_found", type=found.name, id=id_)
    return commit


def _plan(request: Request, committed: Committed, source: str, name: str | None) -> MutationPlan:
    plan = compile_query(committed.seen(request.rights.named).catalog, source, name)
    if not isinstance(plan, MutationPlan):
        message = f"query '{plan.name}' reads; run it as a query, not as a mutation"
        raise InvalidInput(message, code="query_not_a_mutation", query=plan.name)
    check_plan(plan, request, committed)
    return plan
