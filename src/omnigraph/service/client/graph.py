"""A graph behind a server, by HTTP."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from io import BytesIO
from typing import Any, Literal, NoReturn, overload

import httpx
import msgspec
import pyarrow as pa

from omnigraph.catalog import Catalog
from omnigraph.changes.model import Change
from omnigraph.commit.manifest import unknown_branch_error
from omnigraph.commit.model import MAIN, Commit
from omnigraph.errors import InvalidInput, NotFound, StorageUnavailable
from omnigraph.graph.protocol import GraphProtocol, documented_by
from omnigraph.merge.model import MergeResult
from omnigraph.query.explain import Explanation
from omnigraph.query.limits import LOCAL_ENGINE, is_spark_engine
from omnigraph.query.result import Result, ResultStream, column_types, to_stored_types
from omnigraph.service import wire
from omnigraph.service.client.blobs import RemoteBlob, find_blob
from omnigraph.service.client.decode import (
    RemoteSnapshot,
    read_change,
    read_explanation,
    read_instant,
    read_load,
    read_merge,
    read_mutation,
)
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
    target_name,
)
from omnigraph.service.client.transport import RemoteCall
from omnigraph.service.client.uploads import Upload, plain_value, to_upload
from omnigraph.service.operations.branches import merge_branches
from omnigraph.service.operations.changes import diff
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
from omnigraph.service.operations.stored import invoke, invoke_if, list_queries
from omnigraph.write.load import LoadResult, parse_load_mode
from omnigraph.write.mutation import MutationResult
from omnigraph.write.progress import ProgressListener
from omnigraph.write.violations import ValidationFailed

ARROW_STREAM = "application/vnd.apache.arrow.stream"
NDJSON = "application/x-ndjson"


def _unsupported_remotely(name: str) -> Callable[..., NoReturn]:
    """Return a method that raises: a server does not offer this."""

    def refuse(_: RemoteGraph, *__: object, **___: object) -> NoReturn:
        message = f"`{name}` needs the graph itself: open it where it is stored"
        raise InvalidInput(message, code="remote_unsupported")

    return refuse


@documented_by(GraphProtocol)
class RemoteGraph:
    """A graph behind a server, with the methods and answers of an embedded one.

    `branch_name` is the branch it reads and writes by default. The server identifies the actor by
    the token alone.
    """

    mode = "rw"
    actor: str | None = None
    """Unknown here: the server identifies the actor by the token."""

    def __init__(self, address: RemoteAddress) -> None:
        self._address = address
        self._merge_into: str | None = None
        self.branch_name = address.branch
        self.branches = RemoteBranches(address)
        self.tags = RemoteTags(address)
        self.commits = RemoteCommits(address)
        self.changes = RemoteChanges(address)
        self.schema = RemoteSchema(address)

    @property
    def on(self) -> str:
        """Deprecated name of `branch_name`."""
        warnings.warn("`on` is deprecated: use `branch_name`", DeprecationWarning, stacklevel=2)
        return self.branch_name

    @property
    def uri(self) -> str:
        return self._address.uri

    def close(self) -> None:
        """Close all connections; those of graphs that were bound from this one are the same."""
        self._address.transport.close()

    def branch(
        self,
        name: str,
        from_: RemoteTarget | None = None,
        *,
        create: bool = False,
        merge_into: str | None = None,
    ) -> RemoteGraph:
        name = name.strip()
        known = self.branches.list()
        if name not in known:
            if from_ is None and not create:
                raise unknown_branch_error(name, known)
            self.branches.create(name, from_=from_)
        bound = RemoteGraph(replace(self._address, branch=name))
        bound._merge_into = merge_into
        return bound

    def __enter__(self) -> RemoteGraph:
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        """Merge a bound branch if that was asked for and all went well; else close connections."""
        if self._merge_into is not None:
            if error is None:
                self.merge(self.branch_name, into=self._merge_into)
        elif self.branch_name == MAIN:
            self.close()

    # --- reading

    def snapshot(self, at: RemoteTarget | None = None) -> RemoteSnapshot:
        return self.schema.snapshot(at)

    def diff(
        self,
        a: RemoteTarget,
        b: RemoteTarget,
        *,
        kinds: Sequence[str] | None = None,
        types: Sequence[str] | None = None,
        ops: Sequence[str] | None = None,
    ) -> Iterator[Change]:
        request = wire.DiffRequest(
            from_=target_name(a), to=target_name(b), **filter_members(kinds, types, ops)
        )
        lines = self._address.lines(diff, request)
        return (read_change(msgspec.json.decode(line)) for line in lines)

    def entity_at(
        self, type_name: str, id: str, at: RemoteTarget | None = None
    ) -> dict[str, Any] | None:
        request = wire.EntityQuery(type=type_name, id=id, **self._address.state(at))
        properties: dict[str, Any] | None = self._address.call(entity, request).entity
        return properties

    def blob(
        self, type_name: str, id: str, property: str, at: RemoteTarget | None = None
    ) -> RemoteBlob:
        snapshot = self.snapshot(at)
        word, colon, name = type_name.partition(":")
        if not colon:
            word = "node" if type_name in snapshot.catalog.nodes else "edge"
            name = type_name
        selector = {"type": name, "id": id, "property": property}
        return find_blob(self._address, word, selector, snapshot.commit_id)

    def query(  # noqa: PLR0913 - the arguments of a query
        self,
        source: str,
        params: Mapping[str, Any] | None = None,
        *,
        name: str | None = None,
        at: RemoteTarget | None = None,
        timeout: float | None = None,
        memory: int | None = None,
        engine: str = LOCAL_ENGINE,
    ) -> Result:
        _check_engine(engine)
        call = self._query_call(source, params, name, at, timeout, memory)
        return _read_result(self._address.transport.send(call))

    def stream(  # noqa: PLR0913 - as above
        self,
        source: str,
        params: Mapping[str, Any] | None = None,
        *,
        name: str | None = None,
        at: RemoteTarget | None = None,
        timeout: float | None = None,
        memory: int | None = None,
        engine: str = LOCAL_ENGINE,
    ) -> ResultStream:
        _check_engine(engine)
        call = self._query_call(source, params, name, at, timeout, memory)
        parts = _ResponseBatches(self._address, call)
        return ResultStream(*parts.head(), parts.tables())

    def _query_call(
        self,
        source: str,
        params: Mapping[str, Any] | None,
        name: str | None,
        at: RemoteTarget | None,
        timeout: float | None,
        memory: int | None,
    ) -> RemoteCall:
        request = wire.QueryRequest(
            query=source,
            name=name,
            params=_parameters(params),
            timeout_seconds=timeout,
            memory_bytes=memory,
            **self._address.state(at),
        )
        headers = {"Accept": ARROW_STREAM}
        return self._address.request(query, request, text=source, headers=headers)

    def explain(  # noqa: PLR0913 - as above
        self,
        source: str,
        params: Mapping[str, Any] | None = None,
        *,
        name: str | None = None,
        at: RemoteTarget | None = None,
        analyze: bool = False,
        timeout: float | None = None,
        memory: int | None = None,
    ) -> Explanation:
        request = wire.ExplainRequest(
            query=source,
            name=name,
            params=_parameters(params),
            analyze=analyze,
            timeout_seconds=timeout,
            memory_bytes=memory,
            **self._address.state(at),
        )
        return read_explanation(members(self._address.call(explain, request, text=source)))

    def export(self, at: RemoteTarget | None = None, *, types: Sequence[str] = ()) -> Iterator[str]:
        request = wire.ExportRequest(type_names=list(types), **self._address.state(at))
        return (line.decode() for line in self._address.lines(export, request))

    # --- stored queries

    def queries(self) -> list[dict[str, Any]]:
        """Return the stored queries of the graph: names, parameters, what they are for."""
        answer = self._address.call(list_queries, wire.NoRequest())
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
        state = self._address.state(at) if branch is None else {"branch": branch}
        body = wire.InvokeStoredQueryRequest(
            params=_parameters(params), expect_mutation=expect_mutation, **state
        )
        headers = {"Accept": f"{ARROW_STREAM}, application/json"}
        if if_commit is None:
            request = wire.StoredQueryQuery(name=name, body=body)
            call = self._address.request(invoke, request, headers=headers)
        else:
            conditional = wire.ConditionalStoredQueryQuery(
                name=name, body=body, if_commit=if_commit
            )
            call = self._address.request(invoke_if, conditional, headers=headers)
        call = replace(call, reads=expect_mutation is False)
        response = self._address.transport.send(call)
        if response.headers["Content-Type"].startswith(ARROW_STREAM):
            return _read_result(response)
        facts = msgspec.json.decode(response.content)
        if "affected_nodes" not in facts:
            message = (
                f"{self._address.transport.base} does not send rows of stored queries as Arrow"
            )
            raise StorageUnavailable(message, code="server_unknown")
        return read_mutation(facts)

    # --- writing

    def mutate(
        self,
        source: str,
        params: Mapping[str, Any] | None = None,
        *,
        name: str | None = None,
        branch: str | None = None,
        if_commit: str | None = None,
        message: str | None = None,
    ) -> MutationResult:
        request = wire.ChangeRequest(
            query=source,
            name=name,
            params=_parameters(params),
            branch=branch or self.branch_name,
            message=message,
        )
        if if_commit is None:
            return read_mutation(members(self._address.call(mutate, request, text=source)))
        conditional = wire.ConditionalChangeQuery(if_commit=if_commit, body=request)
        return read_mutation(members(self._address.call(mutate_if, conditional, text=source)))

    def put_blob(
        self,
        type_name: str,
        id: str,
        property: str,
        data: bytes,
        *,
        branch: str | None = None,
        message: str | None = None,
    ) -> Commit | None:
        return self._set_blob((type_name, id, property), data, branch, message)

    def clear_blob(
        self,
        type_name: str,
        id: str,
        property: str,
        *,
        branch: str | None = None,
        message: str | None = None,
    ) -> Commit | None:
        return self._set_blob((type_name, id, property), None, branch, message)

    def _set_blob(
        self,
        selector: tuple[str, str, str],
        data: bytes | None,
        branch: str | None,
        message: str | None,
    ) -> Commit | None:
        type_name, id_, property_ = selector
        bare = type_name.partition(":")[2] or type_name
        if self.entity_at(type_name, id_, branch or self.branch_name) is None:
            raise NotFound(f"{bare} '{id_}' does not exist", code="entity_not_found", type=bare)
        source = (
            "query put($id: String, $data: String?) "
            f"{{ update {bare} set {{ {property_}: $data }} where id = $id }}"
        )
        params = {"id": id_, "data": data}
        return self.mutate(source, params, branch=branch, message=message).commit

    def recoveries(self) -> list[dict[str, Any]]:
        answer = self._address.call(list_recoveries, wire.NoRequest())
        return [
            {**members(row), "created_at": read_instant(row.created_at)}
            for row in answer.recoveries
        ]

    def load(  # noqa: PLR0913 - the arguments of a load
        self,
        data: Any,  # noqa: ANN401 - a path, a file, bytes, or tables by type
        *,
        mode: str = "merge",
        branch: str | None = None,
        from_: str | None = None,
        message: str | None = None,
        partial: bool = False,
        strict: bool = True,
        vectors_from: str | None = None,
        progress: ProgressListener | None = None,
        engine: str = LOCAL_ENGINE,
        encoding: str | None = None,
    ) -> LoadResult:
        _check_engine(engine)
        name = branch or self.branch_name
        load_mode = wire.LoadMode(parse_load_mode(mode))
        upload = self._upload(data, name, from_, encoding)
        if not strict:
            if partial:
                message_ = "a load of the older grammar takes whole entities"
                raise InvalidInput(message_, code="remote_unsupported")
            if vectors_from is not None:
                message_ = "a load of the older grammar cannot name the model of vectors"
                raise InvalidInput(message_, code="remote_unsupported")
            text = upload.content.decode("utf-8")
            ingest = wire.IngestRequest(data=text, branch=name, from_=from_, mode=load_mode)
            return read_load(members(self._address.call(load, ingest)))
        request = wire.LoadLinesQuery(
            data=upload.content,
            branch=name,
            from_=from_,
            mode=load_mode,
            message=message,
            partial=partial,
            vectors_from=vectors_from,
        )
        try:
            headers = {"Content-Type": NDJSON}
            return read_load(members(self._address.call(load_lines, request, headers=headers)))
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

    def insert(
        self,
        type_name: str,
        rows: Any,  # noqa: ANN401 - a table, a data frame, dictionaries, or a path
        *,
        mode: str = "append",
        branch: str | None = None,
        message: str | None = None,
        vectors_from: str | None = None,
    ) -> LoadResult:
        rows_by_type = {type_name: rows}
        return self.load(
            rows_by_type, mode=mode, branch=branch, message=message, vectors_from=vectors_from
        )

    def merge(  # noqa: PLR0913 - the arguments of a merge
        self,
        source: str,
        into: str | None = None,
        *,
        dry_run: bool = False,
        strict: bool = False,
        resolve: str | Mapping[str, Any] | None = None,
        delete_branch: bool = False,
        message: str | None = None,
    ) -> MergeResult:
        request = wire.BranchMergeRequest(
            source=source,
            target=into or self.branch_name,
            delete_branch=delete_branch,
            dry_run=dry_run,
            strict=strict,
            resolve=resolve,
            message=message,
        )
        return read_merge(members(self._address.call(merge_branches, request)))

    def revert(
        self,
        commit: str,
        *,
        branch: str | None = None,
        dry_run: bool = False,
        resolve: str | Mapping[str, Any] | None = None,
        message: str | None = None,
    ) -> MergeResult:
        request = wire.PickRequest(
            commit_id=commit,
            branch=branch or self.branch_name,
            dry_run=dry_run,
            resolve=resolve,
            message=message,
        )
        return read_merge(members(self._address.call(revert, request)))

    def cherry_pick(
        self,
        commit: str,
        *,
        branch: str | None = None,
        dry_run: bool = False,
        resolve: str | Mapping[str, Any] | None = None,
        message: str | None = None,
    ) -> MergeResult:
        request = wire.PickRequest(
            commit_id=commit,
            branch=branch or self.branch_name,
            dry_run=dry_run,
            resolve=resolve,
            message=message,
        )
        return read_merge(members(self._address.call(cherry_pick, request)))

    # --- what needs the graph itself

    cleanup = _unsupported_remotely("cleanup")
    embed = _unsupported_remotely("embed")
    export_archive = _unsupported_remotely("export_archive")
    export_parquet = _unsupported_remotely("export_parquet")
    export_parts = _unsupported_remotely("export_parts")
    indexes = property(_unsupported_remotely("indexes"))
    optimize = _unsupported_remotely("optimize")
    pipeline = property(_unsupported_remotely("pipeline"))
    recover = _unsupported_remotely("recover")
    repair = _unsupported_remotely("repair")
    verify = _unsupported_remotely("verify")


def _check_engine(engine: str) -> None:
    """Refuse jobs on Spark: they run where the storage is, not at a server."""
    if is_spark_engine(engine):
        message = (
            "a served graph is not asked through Spark: open the graph where it is stored, "
            "or use engine 'local'"
        )
        raise InvalidInput(message, code="remote_unsupported", engine=engine)


def _read_result(response: httpx.Response) -> Result:
    """Read the rows of an answer."""
    with pa.ipc.open_stream(BytesIO(response.content)) as reader:
        types = column_types(reader.schema)
        rows = to_stored_types(reader.read_all(), types)
    headers = response.headers
    return Result(headers["Omnigraph-Query-Name"], rows, types, headers["Omnigraph-Graph-Commit"])


def _parameters(params: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if params is None:
        return None
    return {name: plain_value(value) for name, value in params.items()}


class _ResponseBatches:
    """The rows of an answer, batch by batch; the connection is held until the last was taken."""

    def __init__(self, address: RemoteAddress, call: RemoteCall) -> None:
        self._opened = address.transport.stream(call)
        self._response = self._opened.__enter__()
        self._reader = pa.ipc.open_stream(_IteratorFile(self._response.iter_bytes()))
        self._types = column_types(self._reader.schema)

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
        try:
            empty = self._reader.schema.empty_table()
            yield to_stored_types(empty, self._types)
            for batch in self._reader:
                yield to_stored_types(pa.Table.from_batches([batch]), self._types)
        finally:
            self._opened.__exit__(None, None, None)


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
