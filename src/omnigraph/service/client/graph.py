"""A graph behind a server, by HTTP."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, replace
from io import BytesIO
from typing import Any, Literal, NoReturn, overload

import httpx
import msgspec
import pyarrow as pa

from omnigraph.catalog import Catalog
from omnigraph.changes.entity_model import EntityHistory, ValueOrigin
from omnigraph.changes.model import Change, ChangeFilter
from omnigraph.commit.model import MAIN, Commit
from omnigraph.embed.config import VectorsFrom
from omnigraph.errors import InvalidInput, NotFound, StorageUnavailable
from omnigraph.graph.listings import CheckResults
from omnigraph.graph.modes import EngineName, OpenMode
from omnigraph.graph.protocol import CommitOptions, GraphApi, MergeCall, QueryCall
from omnigraph.merge.model import MergeResult
from omnigraph.notebook.display import ReportList
from omnigraph.query.checks import CheckResult
from omnigraph.query.engine_names import is_spark_engine
from omnigraph.query.entities import Blob
from omnigraph.query.explain import Explanation
from omnigraph.query.neighbours import Neighbours
from omnigraph.query.result import Result, ResultStream, column_types, to_stored_types
from omnigraph.query.running import RunningQuery
from omnigraph.query.subgraph import Subgraph
from omnigraph.service import wire
from omnigraph.service.client.blobs import find_blob
from omnigraph.service.client.decode import (
    RemoteSnapshot,
    read_change,
    read_explanation,
    read_history,
    read_instant,
    read_load,
    read_merge,
    read_mutation,
    read_neighbours,
    read_origins,
    read_running_query,
    read_subgraph,
)
from omnigraph.service.client.proposals import RemoteProposals, RemoteProtection
from omnigraph.service.client.resources import (
    RemoteAddress,
    RemoteBranches,
    RemoteChanges,
    RemoteCommits,
    RemoteSchema,
    RemoteTags,
    RemoteTarget,
    filter_members,
    members,
    prefer_wait,
    target_name,
)
from omnigraph.service.client.transport import RemoteCall, Transport
from omnigraph.service.client.uploads import Upload, plain_value, to_upload
from omnigraph.service.operations.branches import merge_branches
from omnigraph.service.operations.changes import diff
from omnigraph.service.operations.entity_history import blame, history
from omnigraph.service.operations.explore import neighbours, subgraph
from omnigraph.service.operations.maintenance import list_recoveries
from omnigraph.service.operations.mutations import (
    cherry_pick,
    load,
    load_lines,
    mutate,
    mutate_if,
    revert,
)
from omnigraph.service.operations.queries import entity, explain, export, query
from omnigraph.service.operations.review import run_stored_checks
from omnigraph.service.operations.running import cancel_running, list_running
from omnigraph.service.operations.stored import invoke, invoke_if, list_queries
from omnigraph.types import Scalar
from omnigraph.write.load import LoadOptions, LoadResult, WriteMode
from omnigraph.write.mutation import MutationResult
from omnigraph.write.violations import ValidationFailed

ARROW_STREAM = "application/vnd.apache.arrow.stream"
NDJSON = "application/x-ndjson"


def _unsupported_remotely(name: str) -> Callable[..., NoReturn]:
    """Return a method that raises: a server does not offer this."""

    def refuse(_: RemoteGraph, *__: object, **___: object) -> NoReturn:
        message = f"`{name}` needs the graph itself: open it where it is stored"
        raise InvalidInput(message, code="remote_unsupported")

    return refuse


class RemoteGraph(GraphApi[RemoteAddress, RemoteTarget]):
    """A graph behind a server, with the methods and answers of an embedded one.

    `branch_name` is the branch it reads and writes by default. The server identifies the actor by
    the token alone.
    """

    mode: OpenMode = "rw"
    actor: str | None = None
    """Unknown here: the server identifies the actor by the token."""

    def __init__(self, context: RemoteAddress) -> None:
        super().__init__(context)
        self.branches: RemoteBranches = RemoteBranches(context)
        self.tags: RemoteTags = RemoteTags(context)
        self.commits: RemoteCommits = RemoteCommits(context)
        self.changes: RemoteChanges = RemoteChanges(context)
        self.schema: RemoteSchema = RemoteSchema(context)
        self.proposals: RemoteProposals = RemoteProposals(context)
        self.protection: RemoteProtection = RemoteProtection(context)

    @property
    def uri(self) -> str:
        return self._context.uri

    def close(self) -> None:
        """Close all connections; those of graphs that were bound from this one are the same."""
        self._context.transport.close()

    def _release(self) -> None:
        if self.branch_name == MAIN:
            self.close()

    # --- reading

    def snapshot(self, at: RemoteTarget | None = None) -> RemoteSnapshot:
        return self.schema.snapshot(at)

    def _diff(self, a: RemoteTarget, b: RemoteTarget, scope: ChangeFilter) -> Iterator[Change]:
        request = wire.DiffRequest(from_=target_name(a), to=target_name(b), **filter_members(scope))
        lines = self._context.lines(diff, request)
        return (read_change(msgspec.json.decode(line)) for line in lines)

    def entity_at(
        self, type_name: str, id: str, at: RemoteTarget | None = None
    ) -> dict[str, Any] | None:
        request = wire.EntityQuery(type=type_name, id=id, **self._context.state(at))
        properties: dict[str, Any] | None = self._context.call(entity, request).entity
        return properties

    def history(
        self, type_name: str, id: str, at: RemoteTarget | None = None, *, limit: int | None = None
    ) -> EntityHistory:
        state = self._context.state(at)
        request = wire.EntityHistoryQuery(type=type_name, id=id, limit=limit, **state)
        return read_history(members(self._context.call(history, request)))

    def blame(
        self, type_name: str, id: str, at: RemoteTarget | None = None
    ) -> Mapping[str, ValueOrigin]:
        request = wire.EntityQuery(type=type_name, id=id, **self._context.state(at))
        return read_origins(members(self._context.call(blame, request)))

    def run_checks(self, *, at: RemoteTarget | None = None) -> list[CheckResult]:
        request = wire.ChecksQuery(**self._context.state(at))
        facts = members(self._context.call(run_stored_checks, request))
        return CheckResults(CheckResult.from_json(one) for one in facts["checks"])

    def blob(self, type_name: str, id: str, property: str, at: RemoteTarget | None = None) -> Blob:
        snapshot = self.snapshot(at)
        word, colon, name = type_name.partition(":")
        if not colon:
            word = "node" if type_name in snapshot.catalog.nodes else "edge"
            name = type_name
        selector = {"type": name, "id": id, "property": property}
        return find_blob(self._context, word, selector, snapshot.commit_id)

    def neighbours(
        self, type_name: str, id: str, at: RemoteTarget | None = None, *, limit: int | None = None
    ) -> Neighbours:
        state = self._context.state(at)
        request = wire.NeighboursQuery(type=type_name, id=id, limit=limit, **state)
        return read_neighbours(members(self._context.call(neighbours, request)))

    def _subgraph(self, call: QueryCall[RemoteTarget], limit: int | None) -> Subgraph:
        request = wire.SubgraphRequest(limit=limit, **self._query_members(call))
        answer = self._context.call(subgraph, request, text=call.source)
        return read_subgraph(members(answer))

    def _query(self, call: QueryCall[RemoteTarget], engine: EngineName) -> Result:
        request = self._query_call(call, engine)
        transport = self._context.transport
        return _read_result(transport, request, transport.send(request))

    def _stream(self, call: QueryCall[RemoteTarget], engine: EngineName) -> ResultStream:
        batches = _ResponseBatches(self._context, self._query_call(call, engine))
        return ResultStream(*batches.head(), batches.tables())

    def _query_call(self, call: QueryCall[RemoteTarget], engine: EngineName) -> RemoteCall:
        _check_engine(engine)
        request = wire.QueryRequest(**self._query_members(call))
        headers = {"Accept": ARROW_STREAM}
        return self._context.request(query, request, text=call.source, headers=headers)

    def _query_members(self, call: QueryCall[RemoteTarget]) -> dict[str, Any]:
        return {
            "query": call.source,
            "name": call.name,
            "params": _parameters(call.params),
            "timeout_seconds": call.timeout,
            "memory_bytes": call.memory,
            **self._context.state(call.at),
        }

    def _explain(self, call: QueryCall[RemoteTarget], *, analyze: bool) -> Explanation:
        request = wire.ExplainRequest(analyze=analyze, **self._query_members(call))
        return read_explanation(members(self._context.call(explain, request, text=call.source)))

    def export(self, at: RemoteTarget | None = None, *, types: Sequence[str] = ()) -> Iterator[str]:
        request = wire.ExportRequest(type_names=list(types), **self._context.state(at))
        return (line.decode() for line in self._context.lines(export, request))

    # --- stored queries

    def queries(self) -> list[dict[str, Any]]:
        """Return the stored queries of the graph: names, parameters, what they are for."""
        answer = self._context.call(list_queries, wire.NoRequest())
        return [members(entry) for entry in answer.queries]

    @overload
    def invoke(
        self,
        name: str,
        params: Mapping[str, Any] | None = None,
        *,
        at: RemoteTarget | None = None,
        branch: str | None = None,
        expect_mutation: Literal[False],
        if_commit: str | None = None,
    ) -> Result: ...

    @overload
    def invoke(
        self,
        name: str,
        params: Mapping[str, Any] | None = None,
        *,
        at: RemoteTarget | None = None,
        branch: str | None = None,
        expect_mutation: Literal[True],
        if_commit: str | None = None,
    ) -> MutationResult: ...

    @overload
    def invoke(
        self,
        name: str,
        params: Mapping[str, Any] | None = None,
        *,
        at: RemoteTarget | None = None,
        branch: str | None = None,
        expect_mutation: bool | None = None,
        if_commit: str | None = None,
    ) -> Any: ...  # noqa: ANN401 - depends on the stored query

    def invoke(
        self,
        name: str,
        params: Mapping[str, Any] | None = None,
        *,
        at: RemoteTarget | None = None,
        branch: str | None = None,
        expect_mutation: bool | None = None,
        if_commit: str | None = None,
    ) -> Any:
        """Run a stored query by name: a `Result` if it reads, a `MutationResult` if it changes.

        A query reads `at` a state or the head of `branch`, a mutation changes `branch`; by default
        both use the branch this graph is bound to. `expect_mutation` refuses the other kind.
        """
        state = self._context.state(at) if branch is None else {"branch": branch}
        body = wire.InvokeStoredQueryRequest(
            params=_parameters(params), expect_mutation=expect_mutation, **state
        )
        headers = {"Accept": f"{ARROW_STREAM}, application/json"}
        if if_commit is None:
            request = wire.StoredQueryQuery(name=name, body=body)
            call = self._context.request(invoke, request, headers=headers)
        else:
            conditional = wire.ConditionalStoredQueryQuery(
                name=name, body=body, if_commit=if_commit
            )
            call = self._context.request(invoke_if, conditional, headers=headers)
        call = replace(call, reads=expect_mutation is False)
        response = self._context.transport.send(call)
        if response.headers["Content-Type"].startswith(ARROW_STREAM):
            return _read_result(self._context.transport, call, response)
        facts = msgspec.json.decode(response.content)
        if "affected_nodes" not in facts:
            message = (
                f"{self._context.transport.base} does not send rows of stored queries as Arrow"
            )
            raise StorageUnavailable(message, code="server_unknown")
        return read_mutation(facts)

    # --- writing

    def _mutate(self, call: QueryCall[RemoteTarget], target: CommitOptions) -> MutationResult:
        request = wire.ChangeRequest(
            query=call.source,
            name=call.name,
            params=_parameters(call.params),
            branch=self._branch(target.branch),
            message=target.message,
        )
        text, headers = call.source, prefer_wait(target)
        if target.if_commit is None:
            answer = self._context.call(mutate, request, text=text, headers=headers)
        else:
            conditional = wire.ConditionalChangeQuery(if_commit=target.if_commit, body=request)
            answer = self._context.call(mutate_if, conditional, text=text, headers=headers)
        return read_mutation(members(answer))

    def _set_blob(
        self, selector: tuple[str, str, str], data: bytes | None, target: CommitOptions
    ) -> Commit | None:
        type_name, id_, property_ = selector
        kind, _, bare = type_name.rpartition(":")
        branch = self._branch(target.branch)
        entity = self.entity_at(type_name, id_, branch)
        catalog = self.snapshot(branch).catalog
        is_node = kind == "node" or (not kind and bare in catalog.nodes)
        type_ = catalog.nodes[bare] if is_node else catalog.edges[bare]
        declared = type_.properties.get(property_)
        if declared is None or declared.type.scalar is not Scalar.BLOB:
            word = "node" if is_node else "edge"
            message = f"{word} type {bare} has no Blob property '{property_}'"
            raise InvalidInput(message, code="not_a_blob", type=bare)
        source = (
            "query put($id: String, $data: String?) "
            f"{{ update {bare} set {{ {property_}: $data }} where id = $id }}"
        )
        params = {"id": id_, "data": data}
        done = None if entity is None else self._mutate(QueryCall(source, params), target)
        if done is None or not (done.affected_nodes or done.affected_edges):
            raise NotFound(f"{bare} '{id_}' does not exist", code="entity_not_found", type=bare)
        return done.commit

    def recoveries(self) -> list[dict[str, Any]]:
        answer = self._context.call(list_recoveries, wire.NoRequest())
        return [
            {**members(row), "created_at": read_instant(row.created_at)}
            for row in answer.recoveries
        ]

    def running_queries(self) -> list[RunningQuery]:
        answer = self._context.call(list_running, wire.NoRequest())
        running = (read_running_query(members(query), self.uri) for query in answer.queries)
        return ReportList("Running queries", running)

    def cancel_query(self, id: str) -> None:
        self._context.call(cancel_running, wire.RunningQueryQuery(query_id=id))

    def _load(
        self,
        data: Any,  # noqa: ANN401 - a path, a file, bytes, or tables by type
        options: LoadOptions,
        target: CommitOptions,
        vectors_from: VectorsFrom,
        engine: EngineName,
    ) -> LoadResult:
        _check_engine(engine)
        branch, from_ = self._branch(target.branch), options.from_
        mode = wire.LoadMode(options.mode)
        upload = self._upload(data, branch, from_, options.encoding)
        if upload.empty and options.mode is WriteMode.OVERWRITE:
            message = (
                f"a server cannot overwrite {', '.join(upload.empty)} without any row: "
                "delete the entities by a mutation"
            )
            raise InvalidInput(message, code="remote_unsupported")
        if not options.strict:
            if options.partial:
                message = "a load of the older grammar takes whole entities"
                raise InvalidInput(message, code="remote_unsupported")
            if vectors_from is not None:
                message = "a load of the older grammar cannot name the model of vectors"
                raise InvalidInput(message, code="remote_unsupported")
            try:
                text = upload.content.decode("utf-8")
            except UnicodeDecodeError as error:
                message = f"the data is not UTF-8 text: byte {error.start} is not"
                raise InvalidInput(message, code="body_malformed") from error
            ingest = wire.IngestRequest(data=text, branch=branch, from_=from_, mode=mode)
            answer = self._context.call(load, ingest, headers=prefer_wait(target))
            return read_load(members(answer))
        if not isinstance(vectors_from, str | None):
            message = "a remote load names one model for all vectors (`vectors_from`)"
            raise InvalidInput(message, code="remote_unsupported")
        request = wire.LoadLinesQuery(
            data=upload.content,
            branch=branch,
            from_=from_,
            mode=mode,
            message=target.message,
            partial=options.partial,
            vectors_from=vectors_from,
        )
        try:
            headers = {"Content-Type": NDJSON, **prefer_wait(target)}
            return read_load(members(self._context.call(load_lines, request, headers=headers)))
        except ValidationFailed as error:
            raise upload.placed(error) from error

    def _upload(
        self,
        data: Any,  # noqa: ANN401 - what a load takes
        branch: str,
        from_: str | None,
        encoding: str | None,
    ) -> Upload:
        """Return lines of JSON; only tables need the schema to become such."""
        if not isinstance(data, Mapping):
            return to_upload(data, Catalog(), encoding)
        at = branch if from_ is None or branch in self.branches.list() else from_
        return to_upload(data, self.snapshot(at).catalog)

    def _merge(self, source: str, target: CommitOptions, call: MergeCall) -> MergeResult:
        request = wire.BranchMergeRequest(
            source=source,
            target=self._branch(target.branch),
            message=target.message,
            **asdict(call),
        )
        answer = self._context.call(merge_branches, request, headers=prefer_wait(target))
        return read_merge(members(answer))

    def _apply_commit(
        self,
        operation: Literal["revert", "cherry_pick"],
        commit: str,
        target: CommitOptions,
        call: MergeCall,
    ) -> MergeResult:
        request = wire.PickRequest(
            commit_id=commit,
            branch=self._branch(target.branch),
            dry_run=call.dry_run,
            resolve=call.resolve,
            message=target.message,
        )
        apply = revert if operation == "revert" else cherry_pick
        return read_merge(members(self._context.call(apply, request)))

    # --- what needs the graph itself

    analyze = _unsupported_remotely("analyze")
    cleanup = _unsupported_remotely("cleanup")
    embed = _unsupported_remotely("embed")
    export_archive = _unsupported_remotely("export_archive")
    export_parquet = _unsupported_remotely("export_parquet")
    export_parts = _unsupported_remotely("export_parts")
    indexes = property(_unsupported_remotely("indexes"))
    maintenance = property(_unsupported_remotely("maintenance"))
    optimize = _unsupported_remotely("optimize")
    pipeline = property(_unsupported_remotely("pipeline"))
    recover = _unsupported_remotely("recover")
    repair = _unsupported_remotely("repair")
    verify = _unsupported_remotely("verify")


def _check_engine(engine: str) -> None:
    """Refuse jobs on Spark: they run where the storage is, not at a server."""
    if is_spark_engine(engine):
        message = (
            "a served graph cannot be queried by Spark: open the graph where it is stored, "
            "or use engine 'local'"
        )
        raise InvalidInput(message, code="remote_unsupported", engine=engine)


def _read_result(transport: Transport, call: RemoteCall, response: httpx.Response) -> Result:
    """Read the rows of an answer."""
    headers = response.headers
    with (
        _report_truncation(transport, call),
        pa.ipc.open_stream(BytesIO(response.content)) as reader,
    ):
        types = column_types(reader.schema)
        rows = to_stored_types(reader.read_all(), types)
    if rows.num_rows != int(headers.get("Omnigraph-Row-Count", rows.num_rows)):
        raise transport.response_lost(call)
    return Result(headers["Omnigraph-Query-Name"], rows, types, headers["Omnigraph-Graph-Commit"])


@contextmanager
def _report_truncation(transport: Transport, call: RemoteCall) -> Iterator[None]:
    """Raise StorageUnavailable where an Arrow stream ends too early."""
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        raise transport.response_lost(call) from error


def _parameters(params: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if params is None:
        return None
    return {name: plain_value(value) for name, value in params.items()}


class _ResponseBatches:
    """The rows of an answer, batch by batch; the connection is held until the last was taken."""

    def __init__(self, address: RemoteAddress, call: RemoteCall) -> None:
        self._transport, self._call = address.transport, call
        with ExitStack() as opened:
            self._response = opened.enter_context(self._transport.stream(call))
            opened.enter_context(_report_truncation(self._transport, call))
            self._reader = pa.ipc.open_stream(_IteratorFile(self._response.iter_bytes()))
            self._types = column_types(self._reader.schema)
            self._opened = opened.pop_all()

    def head(self) -> tuple[str, Any, str, int]:
        """Return what is known before any row."""
        headers = self._response.headers
        return (
            headers["Omnigraph-Query-Name"],
            self._types,
            headers["Omnigraph-Graph-Commit"],
            int(headers["Omnigraph-Row-Count"]),
        )

    def tables(self) -> Iterator[pa.Table]:
        """Yield the rows; the first table may be empty, so that there is always one."""
        count, expected = 0, self.head()[-1]
        with self._opened:
            empty = self._reader.schema.empty_table()
            yield to_stored_types(empty, self._types)
            for batch in self._reader:
                count += batch.num_rows
                yield to_stored_types(pa.Table.from_batches([batch]), self._types)
            if count != expected:
                raise self._transport.response_lost(self._call)


class _IteratorFile:
    """An iterator of bytes as a file that is read once."""

    closed = False

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._rest = b""

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes, fewer only at the end."""
        while size < 0 or len(self._rest) < size:
            chunk = next(self._chunks, None)
            if chunk is None:
                break
            self._rest += chunk
        taken, self._rest = (
            (self._rest, b"") if size < 0 else (self._rest[:size], self._rest[size:])
        )
        return taken

    def readable(self) -> bool:
        """Return True: this can be read."""
        return True

    def close(self) -> None:
        """Do nothing: the connection is closed where it was opened."""
