"""A graph behind a server for programs with an event loop: the methods of `RemoteGraph`, awaited.

Signatures and docstrings are those of the remote graph. A method that gives an iterator there gives
an asynchronous one here.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from typing import Any, Self, TypeVar

from omnigraph.catalog import Catalog
from omnigraph.commit.proposal_log import ProposalState
from omnigraph.graph.proposal_protocol import Proposal
from omnigraph.graph.type_summary import TypeList
from omnigraph.notebook.elements import public_uri
from omnigraph.policy.protection_rules import ProtectionRule
from omnigraph.query.entities import Blob
from omnigraph.query.result import ResultStream
from omnigraph.review.model import ProposalDetails
from omnigraph.service.client.async_calls import AsyncPart, awaited, awaited_as, iterated
from omnigraph.service.client.event_loop import EventLoopTransport
from omnigraph.service.client.graph import RemoteGraph
from omnigraph.service.client.proposals import RemoteProposals, RemoteProtection
from omnigraph.service.client.resources import (
    RemoteBranches,
    RemoteChanges,
    RemoteCommits,
    RemoteSchema,
    RemoteTags,
    RemoteTarget,
)
from omnigraph.types import PropertyType

_T = TypeVar("_T")


class AsyncBranches(AsyncPart[RemoteBranches]):
    """The branches of a graph."""

    create = awaited(RemoteBranches.create)
    list = awaited(RemoteBranches.list)
    get = awaited(RemoteBranches.get)
    delete = awaited(RemoteBranches.delete)


class AsyncTags(AsyncPart[RemoteTags]):
    """The tags of a graph."""

    create = awaited(RemoteTags.create)
    list = awaited(RemoteTags.list)
    delete = awaited(RemoteTags.delete)


class AsyncCommits(AsyncPart[RemoteCommits]):
    """The history of a graph."""

    list = awaited(RemoteCommits.list)
    get = awaited(RemoteCommits.get)
    changes = awaited(RemoteCommits.changes)
    merge_base = awaited(RemoteCommits.merge_base)
    divergence = awaited(RemoteCommits.divergence)


class AsyncChanges(AsyncPart[RemoteChanges]):
    """The changes of a branch, commit by commit, for a reader that keeps a copy."""

    poll = awaited(RemoteChanges.poll)
    baseline = awaited(RemoteChanges.baseline)


class AsyncSchema(AsyncPart[RemoteSchema]):
    """The schema of a graph."""

    plan = awaited(RemoteSchema.plan)
    apply = awaited(RemoteSchema.apply)
    diff = awaited(RemoteSchema.diff)
    snapshot = awaited(RemoteSchema.snapshot)

    @property
    def source(self) -> Coroutine[Any, Any, str]:
        """The text of the accepted schema, to be awaited."""
        return self._loop.run(lambda: self._part.source)

    @property
    def catalog(self) -> Coroutine[Any, Any, Catalog]:
        """The types of the accepted schema, to be awaited."""
        return self._loop.run(lambda: self._part.catalog)


class AsyncProposal(AsyncPart[Proposal]):
    """A proposal as it was read; every method that changes it reads it again."""

    def __repr__(self) -> str:
        return repr(self._part)

    @property
    def number(self) -> int:
        """Its number, unique in the graph."""
        return self._part.number

    @property
    def title(self) -> str:
        """The title."""
        return self._part.title

    @property
    def state(self) -> ProposalState:
        """`open`, `merged` or `closed`."""
        return self._part.state

    @property
    def mergeable(self) -> bool:
        """Whether it is open and satisfies the requirements; conflicts are in the preview."""
        return self._part.mergeable

    @property
    def details(self) -> ProposalDetails:
        """Everything that was read."""
        return self._part.details

    def to_json(self) -> dict[str, Any]:
        """Return the wire form."""
        return self._part.to_json()

    diff = iterated(Proposal.diff)
    preview = awaited(Proposal.preview)
    comment = awaited(Proposal.comment)
    resolve = awaited(Proposal.resolve)
    review = awaited(Proposal.review)
    run_checks = awaited(Proposal.run_checks)
    merge = awaited(Proposal.merge)
    refresh = awaited_as(Proposal.refresh, lambda part, loop: AsyncProposal(part, loop))
    close = awaited_as(Proposal.close, lambda part, loop: AsyncProposal(part, loop))
    reopen = awaited_as(Proposal.reopen, lambda part, loop: AsyncProposal(part, loop))
    edit = awaited_as(Proposal.edit, lambda part, loop: AsyncProposal(part, loop))


class AsyncProposals(AsyncPart[RemoteProposals]):
    """The proposals of a graph: requests to merge a branch into another."""

    create = awaited_as(RemoteProposals.create, AsyncProposal)
    get = awaited_as(RemoteProposals.get, AsyncProposal)
    list = awaited(RemoteProposals.list)
    page = awaited(RemoteProposals.page)
    events = awaited(RemoteProposals.events)


class AsyncProtection(AsyncPart[RemoteProtection]):
    """The protection of branches, which every writer of the graph is held to."""

    set = awaited(RemoteProtection.set)
    clear = awaited(RemoteProtection.clear)
    to_json = awaited(RemoteProtection.to_json)

    @property
    def rules(self) -> Coroutine[Any, Any, tuple[ProtectionRule, ...]]:
        """The rules stored in the graph, to be awaited."""
        return self._loop.run(lambda: self._part.rules)

    @property
    def policy_rules(self) -> Coroutine[Any, Any, tuple[ProtectionRule, ...]]:
        """The rules of the policy in use, which count as well, to be awaited."""
        return self._loop.run(lambda: self._part.policy_rules)


class AsyncResultStream(AsyncPart[ResultStream]):
    """The rows of a query, some at a time; they can be gone through once."""

    def __repr__(self) -> str:
        return repr(self._part)

    @property
    def name(self) -> str:
        """The name of the query."""
        return self._part.name

    @property
    def columns(self) -> list[str]:
        """The names of the columns, in order."""
        return self._part.columns

    @property
    def types(self) -> Mapping[str, PropertyType]:
        """The types of the columns."""
        return self._part.types

    @property
    def graph_commit_id(self) -> str:
        """The commit that is read."""
        return self._part.graph_commit_id

    @property
    def row_count(self) -> int:
        """The number of rows."""
        return self._part.row_count

    parts = iterated(ResultStream.parts)
    __aiter__ = iterated(ResultStream.__iter__)


class AsyncBlob(AsyncPart[Blob]):
    """A blob of one entity in one state of a graph; it stays readable as it is."""

    @property
    def size(self) -> int | None:
        """The number of bytes; None if it is stored elsewhere, at `uri`."""
        return self._part.size

    @property
    def etag(self) -> str:
        """The version of its bytes, for caches."""
        return self._part.etag

    @property
    def uri(self) -> str | None:
        """The address of one that is stored elsewhere."""
        return self._part.uri

    def to_json(self) -> dict[str, Any]:
        """Return its selector, kind, size and version as plain JSON values."""
        return self._part.to_json()

    read = awaited(Blob.read)
    chunks = iterated(Blob.chunks)


class AsyncGraph(AsyncPart[RemoteGraph]):
    """A graph behind a server, whose methods are awaited.

    A task that is cancelled, or that exceeds its `asyncio.timeout`, ends its request, and the
    server stops the query. A write that was cancelled may have been committed.
    """

    def __init__(self, part: RemoteGraph, loop: EventLoopTransport) -> None:
        super().__init__(part, loop)
        self.branches = AsyncBranches(part.branches, loop)
        self.tags = AsyncTags(part.tags, loop)
        self.commits = AsyncCommits(part.commits, loop)
        self.changes = AsyncChanges(part.changes, loop)
        self.schema = AsyncSchema(part.schema, loop)
        self.proposals = AsyncProposals(part.proposals, loop)
        self.protection = AsyncProtection(part.protection, loop)

    def __repr__(self) -> str:
        return f"<AsyncGraph {public_uri(self.uri)} on {self.branch_name}>"

    @property
    def uri(self) -> str:
        """The address of the graph."""
        return self._part.uri

    @property
    def branch_name(self) -> str:
        """The branch it reads and writes by default."""
        return self._part.branch_name

    @property
    def types(self) -> Coroutine[Any, Any, TypeList]:
        """The types of its newest state, to be awaited."""
        return self._loop.run(lambda: self._part.types)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, error: type[BaseException] | None, *rest: object) -> None:
        """Merge the branch if `merge_into` was given and no error was raised; else close it."""
        await self._loop.run(partial(self._part.__exit__, error, *rest))

    async def branch(
        self,
        name: str,
        from_: RemoteTarget | None = None,
        *,
        create: bool = False,
        merge_into: str | None = None,
    ) -> AsyncGraph:
        """Return the same graph bound to a branch, as `RemoteGraph.branch` does."""
        bind = partial(self._part.branch, name, from_=from_, create=create, merge_into=merge_into)
        return AsyncGraph(await self._loop.run(bind), self._loop)

    async def run(self, function: Callable[[], _T]) -> _T:
        """Run a function that sends requests, such as `result.graph`, in a thread."""
        return await self._loop.run(function)

    close = awaited(RemoteGraph.close)
    query = awaited(RemoteGraph.query)
    stream = awaited_as(RemoteGraph.stream, AsyncResultStream)
    explain = awaited(RemoteGraph.explain)
    subgraph = awaited(RemoteGraph.subgraph)
    queries = awaited(RemoteGraph.queries)
    invoke = awaited(RemoteGraph.invoke)
    running_queries = awaited(RemoteGraph.running_queries)
    cancel_query = awaited(RemoteGraph.cancel_query)
    snapshot = awaited(RemoteGraph.snapshot)
    entity_at = awaited(RemoteGraph.entity_at)
    neighbours = awaited(RemoteGraph.neighbours)
    history = awaited(RemoteGraph.history)
    blame = awaited(RemoteGraph.blame)
    blob = awaited_as(RemoteGraph.blob, AsyncBlob)
    run_checks = awaited(RemoteGraph.run_checks)
    diff = iterated(RemoteGraph.diff)
    export = iterated(RemoteGraph.export)
    mutate = awaited(RemoteGraph.mutate)
    load = awaited(RemoteGraph.load)
    insert = awaited(RemoteGraph.insert)
    put_blob = awaited(RemoteGraph.put_blob)
    clear_blob = awaited(RemoteGraph.clear_blob)
    merge = awaited(RemoteGraph.merge)
    revert = awaited(RemoteGraph.revert)
    cherry_pick = awaited(RemoteGraph.cherry_pick)
    recoveries = awaited(RemoteGraph.recoveries)
