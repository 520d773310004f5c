"""This module changes data: mutations, loads, schemas."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import msgspec

from omnigraph.errors import Category, InvalidInput, OmniError
from omnigraph.policy.permissions import PolicyAction
from omnigraph.service import wire
from omnigraph.service.operations.reading import shaped
from omnigraph.service.operations.targets import branch_name
from omnigraph.service.session import GraphSession

SMALL_LOAD = 256 * 1024
"""Bytes up to which a load waits for its turn."""


def mutate(
    visit: GraphSession, request: wire.ChangeRequest, if_commit: str | None = None
) -> wire.ChangeOutput:
    """Run a mutation as one commit; `if_commit` refuses when the branch is at another."""
    branch = branch_name(request.branch)
    visit.require(PolicyAction.CHANGE, branch)
    size = len(request.query) + len(msgspec.json.encode(request.params))
    with visit.admit(size), visit.served.turns.take(branch):
        done = visit.graph.mutate(
            request.query,
            request.params,
            name=request.name,
            branch=branch,
            if_commit=if_commit,
            message=request.message,
        )
    return shaped(done.to_json(), wire.ChangeOutput)


@dataclass(frozen=True, slots=True)
class LoadRequest:
    """Where lines go that are read later."""

    branch: str
    from_: str | None
    mode: wire.LoadMode
    message: str | None = None
    partial: bool = False
    vectors_from: str | None = None

    @classmethod
    def of(
        cls, branch: str | None = None, from_: str | None = None, mode: str | None = None
    ) -> LoadRequest:
        """Read what is asked for; a mode there is none of is refused."""
        known = [str(word) for word in wire.LoadMode]
        if mode is not None and mode not in known:
            message = f"unknown load mode '{mode}'; it is one of {', '.join(known)}"
            raise InvalidInput(message, code="load_mode_invalid")
        fork = None if from_ is None else branch_name(from_)
        return cls(branch_name(branch), fork, wire.LoadMode(mode or wire.LoadMode.MERGE))


def authorise_load(visit: GraphSession, request: LoadRequest) -> None:
    """Raise PolicyDenied unless the caller may load there; a branch may have to be made first."""
    branch = request.branch
    if request.from_ is not None and not visit.graph.branches.exists(branch):
        visit.require(PolicyAction.BRANCH_CREATE, request.from_, branch)
    visit.require(PolicyAction.CHANGE, branch)


def load(visit: GraphSession, request: wire.IngestRequest) -> wire.IngestOutput:
    """Load records of the forgiving grammar as one commit."""
    wanted = LoadRequest.of(request.branch, request.from_, request.mode)
    facts = _loaded(visit, wanted, request.data.encode(), strict=False)
    return shaped({**facts, "uri": visit.served.graph.uri}, wire.IngestOutput)


def load_lines(visit: GraphSession, request: LoadRequest, data: bytes) -> wire.GraphBatchLoadOutput:
    """Load lines of the strict grammar as one commit."""
    try:
        data.decode()
    except UnicodeDecodeError as error:
        message = f"the body is not UTF-8 text: byte {error.start} is not"
        raise InvalidInput(message, code="body_malformed") from error
    return shaped(_loaded(visit, request, data, strict=True), wire.GraphBatchLoadOutput)


def _loaded(
    visit: GraphSession, request: LoadRequest, data: bytes, *, strict: bool
) -> dict[str, object]:
    authorise_load(visit, request)
    with visit.admit(len(data)), _turn(visit, request.branch, len(data)):
        done = visit.graph.load(
            data,
            mode=str(request.mode),
            branch=request.branch,
            from_=request.from_,
            strict=strict,
            message=request.message,
            partial=request.partial,
            vectors_from=request.vectors_from,
        )
    return done.to_json()


def _turn(visit: GraphSession, branch: str, size: int) -> AbstractContextManager[None]:
    """Wait for a turn; a large load takes long, and nobody shall wait for it."""
    return visit.served.turns.take(branch) if size <= SMALL_LOAD else nullcontext()


def apply_schema(visit: GraphSession, request: wire.SchemaApplyRequest) -> wire.SchemaApplyOutput:
    """Make another schema the accepted one; a declared graph has its schema declared elsewhere."""
    branch = branch_name(request.branch)
    visit.require(PolicyAction.SCHEMA_APPLY, None, branch)
    if visit.service.declared:
        message = "this graph belongs to a cluster: change its schema there and apply the cluster"
        raise OmniError(message, code="schema_declared", category=Category.CONFLICT)
    source = request.schema_source
    # With a line end it is a text for certain: a caller must not name a file of this machine.
    text = source if "\n" in source or "{" in source else f"{source}\n"
    with visit.admit(len(text)):
        done = visit.graph.schema.apply(
            text,
            branch=branch,
            allow_data_loss=request.allow_data_loss,
            message=request.message,
            dry_run=request.dry_run,
        )
    return shaped({**done.to_json(), "uri": visit.served.graph.uri}, wire.SchemaApplyOutput)
