"""This module is a graph that a server serves: what the embedded one does, by HTTP."""

from __future__ import annotations

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
from omnigraph.merge.model import MergeResult
from omnigraph.query.explain import Explanation
from omnigraph.query.limits import LOCAL_ENGINE, is_spark_engine
from omnigraph.query.result import Result, ResultStream, column_types, to_stored_types
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
    filter_body,
    target_name,
)
from omnigraph.service.client.transport import RemoteCall
from omnigraph.service.client.uploads import Upload, plain_value, to_upload
from omnigraph.write.load import LoadResult, parse_load_mode
from omnigraph.write.mutation import MutationResult
from omnigraph.write.progress import ProgressListener
from omnigraph.write.violations import ValidationFailed

ARROW_STREAM = "application/vnd.apache.arrow.stream"
NDJSON = "application/x-ndjson"
IF_COMMIT_HEADER = "Omnigraph-If-Graph-Commit"


def _unsupported_remotely(name: str) -> Callable[..., NoReturn]:
    """Return a method that tells that a server does not do this."""

    def refuse(_: RemoteGraph, *__: object, **___: object) -> NoReturn:
        message = f"`{name}` needs the graph itself: open it where it is stored"
        raise InvalidInput(message, code="remote_unsupported")

    return refuse


class RemoteGraph:
    """A graph behind a server, with the methods and answers of an embedded one.

    `on` is the branch it reads and writes unless told otherwise. Who acts is known from the token,
    and from nothing else.
    """

    mode = "rw"
    actor: str | None = None
    """Who acts is for the server to say, by the token."""

    def __init__(self, address: RemoteAddress) -> None:
        self._address = address
        self._merge_into: str | None = None
        self.on = address.on
        self.branches = RemoteBranches(address)
        self.tags = RemoteTags(address)
        self.commits = RemoteCommits(address)
        self.changes = RemoteChanges(address)
        self.schema = RemoteSchema(address)

    @property
    def uri(self) -> str:
        """The address of the graph."""
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
        """Return the same graph bound to an existing branch; `create` or `from_` creates it."""
        name = name.strip()
        known = self.branches.list()
        if name not in known:
            if from_ is None and not create:
                raise unknown_branch_error(name, known)
            self.branches.create(name, from_=from_)
        bound = RemoteGraph(replace(self._address, on=name))
        bound._merge_into = merge_into
        return bound

    def __enter__(self) -> RemoteGraph:
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        """Merge a bound branch if that was asked for and all went well; else close connections."""
        if self._merge_into is not None:
            if error is None:
                self.merge(self.on, into=self._merge_into)
        elif self.on == MAIN:
            self.close()

    # --- reading

    def snapshot(self, at: RemoteTarget | None = None) -> RemoteSnapshot:
        """Return the state a branch, tag, commit id or time names."""
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
        """Yield what became of each entity from one state to another."""
        body = {"from": target_name(a), "to": target_name(b), **filter_body(kinds, types, ops)}
        lines = self._address.lines("diff", body=body)
        return (read_change(msgspec.json.decode(line)) for line in lines)

    def entity_at(
        self, type_name: str, id: str, at: RemoteTarget | None = None
    ) -> dict[str, Any] | None:
        """Return one entity as it was, or None when it was not there."""
        query = [("type", type_name), ("id", id), *self._address.state(at).items()]
        found: dict[str, Any] | None = self._address.get("entity", query=query)["entity"]
        return found

    def blob(
        self, type_name: str, id: str, property: str, at: RemoteTarget | None = None
    ) -> RemoteBlob:
        """Return a blob of an entity, to be read in ranges."""
        snapshot = self.snapshot(at)
        word, colon, name = type_name.partition(":")
        if not colon:
            word = "node" if type_name in snapshot.catalog.nodes else "edge"
            name = type_name
        selector = {"type": name, "id": id, "property": property}
        return find_blob(self._address, word, selector, snapshot.commit_id)

    def query(  # noqa: PLR0913 - everything a query can be told
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
        """Answer a query on the state a branch, tag, commit id or time names."""
        _check_engine(engine)
        call = self._asking(source, params, name, at, {"timeout": timeout, "memory": memory})
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
        """Answer a query whose rows are read as somebody takes them."""
        _check_engine(engine)
        call = self._asking(source, params, name, at, {"timeout": timeout, "memory": memory})
        parts = _ResponseBatches(self._address, call)
        return ResultStream(*parts.head(), parts.tables())

    def _asking(
        self,
        source: str,
        params: Mapping[str, Any] | None,
        name: str | None,
        at: RemoteTarget | None,
        limits: Mapping[str, float | None],
    ) -> RemoteCall:
        body = {
            "query": source,
            "name": name,
            "params": _parameters(params),
            **self._address.state(at),
            "timeout_seconds": limits.get("timeout"),
            "memory_bytes": limits.get("memory"),
        }
        return RemoteCall(
            method="POST",
            path=self._address.path("query"),
            json=body,
            headers={"Accept": ARROW_STREAM},
            reads=True,
            text=source,
        )

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
        """Show how a query would be answered; with `analyze`, run it and tell what happened."""
        body = {
            "query": source,
            "name": name,
            "params": _parameters(params),
            "analyze": analyze,
            "timeout_seconds": timeout,
            "memory_bytes": memory,
            **self._address.state(at),
        }
        return read_explanation(self._address.post("explain", body=body, reads=True, text=source))

    def export(self, at: RemoteTarget | None = None, *, types: Sequence[str] = ()) -> Iterator[str]:
        """Yield every entity as one line of JSON, which `load` reads back."""
        body = {**self._address.state(at), "type_names": list(types)}
        return (line.decode() for line in self._address.lines("export", body=body))

    # --- stored queries

    def queries(self) -> list[dict[str, Any]]:
        """Return the stored queries of the graph: names, parameters, what they are for."""
        found: list[dict[str, Any]] = self._address.get("queries")["queries"]
        return found

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
        condition = () if if_commit is None else ("if-graph-commit",)
        headers = {} if if_commit is None else {IF_COMMIT_HEADER: if_commit}
        call = RemoteCall(
            method="POST",
            path=self._address.path("queries", name, *condition),
            json={"params": _parameters(params), "expect_mutation": expect_mutation, **state},
            headers={"Accept": f"{ARROW_STREAM}, application/json", **headers},
            reads=expect_mutation is False,
        )
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
        """Run a mutation as one commit; `if_commit` refuses when the branch is not at that one."""
        body = {
            "query": source,
            "name": name,
            "params": _parameters(params),
            "branch": branch or self.on,
            "message": message,
        }
        path = ("mutate",) if if_commit is None else ("mutate", "if-graph-commit")
        headers = None if if_commit is None else {IF_COMMIT_HEADER: if_commit}
        return read_mutation(self._address.post(*path, body=body, text=source, headers=headers))

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
        """Set a blob of an existing entity, as one commit; None if it has these bytes already."""
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
        """Set an optional blob of an existing entity to null, as one commit; None if it is."""
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
        if self.entity_at(type_name, id_, branch or self.on) is None:
            raise NotFound(f"{bare} '{id_}' does not exist", code="entity_not_found", type=bare)
        source = (
            "query put($id: String, $data: String?) "
            f"{{ update {bare} set {{ {property_}: $data }} where id = $id }}"
        )
        params = {"id": id_, "data": data}
        return self.mutate(source, params, branch=branch, message=message).commit

    def recoveries(self) -> list[dict[str, Any]]:
        """Return the audit of everything recovery ever did, oldest first."""
        rows: list[dict[str, Any]] = self._address.get("recoveries")["recoveries"]
        return [{**row, "created_at": read_instant(row["created_at"])} for row in rows]

    def load(  # noqa: PLR0913 - everything a load can be told
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
        """Load data as one commit; see the embedded graph for what it may be."""
        _check_engine(engine)
        where = branch or self.on
        facts = {
            "branch": where,
            "mode": str(parse_load_mode(mode)),
            "from": from_,
            "message": message,
        }
        given = {name: value for name, value in facts.items() if value is not None}
        upload = self._upload(data, where, from_, encoding)
        if not strict:
            if partial:
                message_ = "a load of the older grammar takes whole entities"
                raise InvalidInput(message_, code="remote_unsupported")
            if vectors_from is not None:
                message_ = "a load of the older grammar cannot name the model of vectors"
                raise InvalidInput(message_, code="remote_unsupported")
            body = {**given, "data": upload.content.decode("utf-8")}
            return read_load(self._address.post("load", body=body))
        more = {"partial": "true" if partial else None, "vectors_from": vectors_from}
        query = (*given.items(), *((n, value) for n, value in more.items() if value is not None))
        call = RemoteCall(
            method="POST",
            path=self._address.path("load", "ndjson"),
            query=query,
            content=upload.content,
            headers={"Content-Type": NDJSON},
        )
        try:
            return read_load(self._address.transport.json(call))
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
        """Load rows of one type as one commit."""
        rows_by_type = {type_name: rows}
        return self.load(
            rows_by_type, mode=mode, branch=branch, message=message, vectors_from=vectors_from
        )

    def merge(  # noqa: PLR0913 - everything a merge can be told
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
        """Merge a branch into another, which then has its history; conflicts change nothing."""
        body = {
            "source": source,
            "target": into or self.on,
            "delete_branch": delete_branch,
            "dry_run": dry_run,
            "strict": strict,
            "resolve": resolve,
            "message": message,
        }
        return read_merge(self._address.post("branches", "merge", body=body))

    def revert(
        self,
        commit: str,
        *,
        branch: str | None = None,
        dry_run: bool = False,
        resolve: str | Mapping[str, Any] | None = None,
        message: str | None = None,
    ) -> MergeResult:
        """Undo what a commit did, as a commit; what others did to the same since is a conflict."""
        return self._picked("revert", commit, branch, (dry_run, resolve, message))

    def cherry_pick(
        self,
        commit: str,
        *,
        branch: str | None = None,
        dry_run: bool = False,
        resolve: str | Mapping[str, Any] | None = None,
        message: str | None = None,
    ) -> MergeResult:
        """Do on a branch what a commit did elsewhere, as a commit."""
        return self._picked("cherry-pick", commit, branch, (dry_run, resolve, message))

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

    def _picked(
        self, route: str, commit: str, branch: str | None, how: tuple[bool, Any, str | None]
    ) -> MergeResult:
        names = ("dry_run", "resolve", "message")
        body = {
            "commit_id": commit,
            "branch": branch or self.on,
            **dict(zip(names, how, strict=True)),
        }
        return read_merge(self._address.post(route, body=body))


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
        """Tell that this can be read."""
        return True

    def close(self) -> None:
        """Do nothing: the connection is closed by whoever opened it."""
