"""Run queries: one snapshot, one plan, one result."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.commit.manifest import Manifest
from omnigraph.commit.model import Snapshot
from omnigraph.embed import Embedder
from omnigraph.errors import InvalidInput
from omnigraph.plan import ReadPlan, bind_parameters, compile_query
from omnigraph.plan import operators as op
from omnigraph.plan.cardinality import Estimator
from omnigraph.plan.explain import explain
from omnigraph.plan.expressions import (
    FunctionCall,
    is_call,
    is_row_value,
    property_refs,
)
from omnigraph.plan.functions import FunctionKind
from omnigraph.plan.planner import plan_by_cost
from omnigraph.policy.permissions import TypeScope
from omnigraph.query.aggregation import (
    compute_aggregates,
    counts_rows,
    group_rows,
    supports_row_weights,
)
from omnigraph.query.column_cache import ColumnCache, TypeTable
from omnigraph.query.executor import STEP_ROWS, Execution, max_result_rows, slice_bounds
from omnigraph.query.expansion import ExpandMode
from omnigraph.query.explain import Explanation, explain_plan
from omnigraph.query.expressions import Evaluator
from omnigraph.query.frame import Frame
from omnigraph.query.limits import (
    DEFAULT_MEMORY_BYTES,
    MEMORY_CODE,
    PROCESS_DISK,
    PROCESS_MEMORY,
    MemoryPool,
    QueryBudget,
    QueryLimit,
    chunk_slices,
    run_large,
)
from omnigraph.query.result import Result, ResultStream
from omnigraph.query.result_batches import ResultBatches, runs_in_batches
from omnigraph.query.row_batches import RowBatches, batches_of_rows
from omnigraph.query.running import RUNNING_QUERIES, QueryRecord
from omnigraph.query.search import ROW_BY_ROW_LIMIT, SearchEvaluator, is_fusion
from omnigraph.query.shortest_paths import ShortestPaths
from omnigraph.query.sorting import Sorter, column_values
from omnigraph.query.statistics import PlanNeeds, StatisticsBasis, StatisticsCache
from omnigraph.query.text_index_cache import TextIndexCache
from omnigraph.query.topology import TopologyCache
from omnigraph.query.vector_search import QueryEmbeddings
from omnigraph.storage.lru_cache import LruCache

STREAM_BATCH_ROWS = 65_536
"""Rows of a result that are made at once when it is streamed."""
MAX_CACHED_PLANS, MAX_CACHED_PLAN_TEXT = 512, 65_536
"""Plans that are kept, and the longest text of which they are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuerySettings:
    """How a query may be executed."""

    timeout: float | None = None
    memory: int = DEFAULT_MEMORY_BYTES
    """Bytes its rows may take."""
    pool: MemoryPool = PROCESS_MEMORY
    """Memory it shares with other queries."""
    disk: MemoryPool = PROCESS_DISK
    """Space for temporary files it shares with other queries."""
    expand: ExpandMode = ExpandMode.AUTO
    few: int = ROW_BY_ROW_LIMIT
    actor: str | None = None
    """Whose query it is."""


class Engine:
    """Answers queries on one graph; what it reads once it keeps."""

    def __init__(
        self, manifest: Manifest, *, may_write: bool, embedder: Embedder | None = None
    ) -> None:
        self.manifest = manifest
        self.store = ColumnCache(manifest)
        self._plans: LruCache[tuple[str, TypeScope, str, str | None], _CachedPlan] = LruCache(
            MAX_CACHED_PLANS
        )
        self.embedder = embedder or Embedder()
        self.words = TextIndexCache(self.store, may_write=may_write)
        self.topologies = TopologyCache(manifest.location, may_write=may_write)
        self.statistics = StatisticsCache(
            self.store, self.topologies, manifest.location, may_write=may_write
        )

    def run(
        self,
        snapshot: Snapshot,
        source: str,
        parameters: Mapping[str, Any] | None,
        name: str | None = None,
        settings: QuerySettings | None = None,
    ) -> Result:
        """Run one read query of a text on a snapshot."""
        plan, execution = self._prepare(snapshot, source, parameters, name, settings)
        types = {column.name: column.type for column in plan.columns}
        with execution.budget.kept():
            table = _result_table(execution, plan.root).select(list(types))
        return Result(plan.name, table, types, snapshot.commit_id)

    def stream(
        self,
        snapshot: Snapshot,
        source: str,
        parameters: Mapping[str, Any] | None,
        name: str | None = None,
        settings: QuerySettings | None = None,
    ) -> ResultStream:
        """Run one read query; which rows there are is known at once, values are read as they go.

        Groups and different rows have to be made first; everything else takes little memory.
        What does not fit memory waits in a temporary file until it is read.
        """
        plan, execution = self._prepare(snapshot, source, parameters, name, settings)
        with execution.budget.kept(streams=True):
            rows, batches = _result_parts(execution, plan.root)
        parts = _StreamedParts(batches, execution.budget)
        types = {column.name: column.type for column in plan.columns}
        tables = (pa.table({name: part[name] for name in types}) for part in parts)
        return ResultStream(plan.name, types, snapshot.commit_id, rows, tables)

    def explain(self, snapshot: Snapshot, source: str, name: str | None = None) -> Explanation:
        """Show how a query would be answered."""
        plan = self.plan(snapshot, source, name)
        return explain_plan(plan, snapshot, self.store, self._estimator(snapshot, plan))

    def analyze(
        self,
        snapshot: Snapshot,
        source: str,
        parameters: Mapping[str, Any] | None = None,
        name: str | None = None,
        settings: QuerySettings | None = None,
    ) -> Explanation:
        """Run a query and return measurements."""
        plan, execution = self._prepare(snapshot, source, parameters, name, settings)
        execution.trace = {}
        with execution.budget.kept():
            _result_table(execution, plan.root)
            spilled = execution.budget.spilled_bytes
        estimator = self._estimator(snapshot, plan)
        return explain_plan(plan, snapshot, self.store, estimator, execution.trace, spilled)

    def _estimator(self, snapshot: Snapshot, plan: ReadPlan) -> Estimator:
        return Estimator(self.statistics.basis(snapshot, PlanNeeds.of(plan)).statistics)

    def _prepare(
        self,
        snapshot: Snapshot,
        source: str,
        parameters: Mapping[str, Any] | None,
        name: str | None,
        settings: QuerySettings | None,
    ) -> tuple[ReadPlan, Execution]:
        plan = self.plan(snapshot, source, name)
        values, settings = bind_parameters(plan.parameters, parameters), settings or QuerySettings()
        tables: dict[str, TypeTable] = {}
        embed = QueryEmbeddings(self.embedder).of
        search = SearchEvaluator(self.store, None, embed, self.words, settings.few)
        evaluator = Evaluator(values, datetime.now(UTC), tables, search)
        evaluator.memory = min(settings.memory, settings.pool.limit)
        search.depth = max_result_rows(plan.root, evaluator)
        execution = Execution(
            snapshot=snapshot,
            store=self.store,
            topologies=self.topologies,
            evaluator=evaluator,
            budget=self.budget(snapshot, settings, plan.name, source, lambda: explain(plan)),
            batches=batches_of_rows,
            mode=settings.expand,
            tables=tables,
        )
        evaluator.check = partial(execution.budget.check, "Search")
        evaluator.paths = ShortestPaths(execution.expansion, tables, execution.budget)
        return plan, execution

    def budget(
        self,
        snapshot: Snapshot,
        settings: QuerySettings,
        name: str,
        text: str,
        plan: Callable[[], str],
    ) -> QueryBudget:
        """Return the limits of a query, which is listed while it runs within them."""
        record = QueryRecord(
            registry=RUNNING_QUERIES,
            graph=self.store.manifest.location.uri,
            actor=settings.actor,
            name=name,
            text=text,
            commit_id=snapshot.commit_id,
            plan=plan,
        )
        return QueryBudget(settings.timeout, settings.memory, settings.pool, record, settings.disk)

    def plan(self, snapshot: Snapshot, source: str, name: str | None) -> ReadPlan:
        """Return the plan of a query; one made for the same schema and scope is made no more.

        It is ordered by cost again when what it is based on has changed much.
        """
        key = (snapshot.head.schema_hash, snapshot.scope, source, name)
        cached = self._plans.get(key)
        if cached is not None and self.statistics.is_current(cached.basis, snapshot):
            return cached.plan
        written = cached.written if cached else self._compiled(snapshot, source, name)
        needs = cached.basis.needs if cached else PlanNeeds.of(written)
        basis = self.statistics.basis(snapshot, needs)
        made = _CachedPlan(written, plan_by_cost(written, basis.statistics), basis)
        if len(source) <= MAX_CACHED_PLAN_TEXT:
            self._plans.put(key, made)
        return made.plan

    @staticmethod
    def _compiled(snapshot: Snapshot, source: str, name: str | None) -> ReadPlan:
        plan = compile_query(snapshot.catalog, source, name)
        if not isinstance(plan, ReadPlan):
            message = f"query '{plan.name}' changes data; run it as a mutation"
            raise InvalidInput(message, code="query_not_a_read", query=plan.name)
        return plan


@dataclass(frozen=True, slots=True)
class _CachedPlan:
    """A plan in its written order, ordered by cost, and the statistics that decided."""

    written: ReadPlan
    plan: ReadPlan
    basis: StatisticsBasis


class _StreamedParts:
    """The parts of a stream; what it holds is given back at its end, or when nothing reads on."""

    def __init__(self, parts: Iterator[dict[str, pa.Array]], budget: QueryBudget) -> None:
        self._parts, self._budget = parts, budget

    def __iter__(self) -> Iterator[dict[str, pa.Array]]:
        return self

    def __next__(self) -> dict[str, pa.Array]:
        try:
            self._budget.check_cancelled("Stream")
            return next(self._parts)
        except BaseException:
            self._budget.release()
            raise

    def __del__(self) -> None:
        self._budget.release()


def _result_table(execution: Execution, root: op.ResultOperator) -> pa.Table:
    """Return the result of a plan, computed in batches if it does not fit memory otherwise."""
    try:
        return pa.table(_ResultColumns(execution).of(root))
    except QueryLimit as refused:
        with _batches_after(refused, execution, root) as batches:
            return batches.table(root)


def _result_parts(
    execution: Execution, root: op.ResultOperator
) -> tuple[int, Iterator[dict[str, pa.Array]]]:
    """Return how many rows a result has, and its columns, some rows at a time."""
    try:
        return _ResultColumns(execution).parts(root)
    except QueryLimit as refused:
        with _batches_after(refused, execution, root) as batches:
            schema, places = batches.spilled(root)
    nothing = pa.RecordBatch.from_pylist([], schema)
    parts = (place.read() for place in places) if places else iter([nothing])
    columns = (dict(zip(schema.names, part.columns, strict=True)) for part in parts)
    return sum(place.rows for place in places), columns


@contextmanager
def _batches_after(
    refused: QueryLimit, execution: Execution, root: op.ResultOperator
) -> Iterator[ResultBatches]:
    """Give what computes a result in batches after it did not fit memory, if anything can."""
    if refused.code != MEMORY_CODE or not runs_in_batches(root):
        raise refused
    execution.begin_batches()
    try:
        yield ResultBatches(execution)
    except QueryLimit as error:
        # Not even batches fit: what did not fit at first says more.
        raise refused if error.code == MEMORY_CODE else error from error


@dataclass(frozen=True, slots=True)
class _ResultColumns:
    """Computes result columns."""

    execution: Execution

    def of(self, operator: op.ResultOperator, *, distinct: bool = False) -> dict[str, pa.Array]:
        """Return the columns of an operator by name; `distinct` rows may be left out elsewhere."""
        begun = self.execution.now()
        columns = self._of(operator, distinct=distinct)
        self.execution.note(operator, _column_length(columns), begun)
        return columns

    def _of(self, operator: op.ResultOperator, *, distinct: bool) -> dict[str, pa.Array]:
        evaluator = self.execution.evaluator
        match operator:
            case op.Project(input=rows, columns=columns):
                self._fuse(rows, columns)
                weigh = distinct and all(is_row_value(column.expression) for column in columns)
                frame = self.execution.rows(rows, _variables(columns), weigh=weigh)
                self._check_size("Project", columns, frame)
                return self._project(columns, frame) if distinct else self._chunks(columns, frame)
            case op.Aggregate(input=rows, keys=keys, measures=measures):
                looked_at = tuple(m for m in measures if not counts_rows(m.expression))
                weigh = all(supports_row_weights(measure.expression) for measure in measures)
                frame = self.execution.rows(rows, _variables((*keys, *looked_at)), weigh=weigh)
                self._check_size("Aggregate", (*keys, *map(_argument, looked_at)), frame)
                return run_large(
                    "Aggregate",
                    frame.rows,
                    lambda: compute_aggregates(operator, frame, evaluator),
                )
            case op.Distinct(input=source):
                result = self.of(source, distinct=True)
                count = _column_length(result)
                _, first = run_large("Distinct", count, lambda: group_rows(result.values(), count))
                return _take_rows(result, first)
            case op.SortColumns(input=source, keys=keys, tie_break=ties):
                result = self.of(source)
                directions = [(key.name, key.descending) for key in keys]
                directions += [(name, False) for name in ties]
                sort_keys = run_large(
                    "Sort",
                    _column_length(result),
                    lambda: [(column_values(result[name]), down) for name, down in directions],
                )
                order = Sorter(sort_keys, self.execution.tick).order(
                    np.arange(_column_length(result))
                )
                for name in {key.name for key in keys} & _ranking_columns(source):
                    order = order[np.asarray(result[name].is_valid())[order]]
                return _take_rows(result, order)
            case op.SliceColumns(input=source):
                result = self._some(operator, source)
                start, stop = slice_bounds(operator, _column_length(result), evaluator)
                return _take_rows(result, np.arange(start, stop))

    def _some(self, cut: op.SliceColumns, source: op.ResultOperator) -> dict[str, pa.Array]:
        """Return the rows that a limit is taken of; no more of different ones than are needed."""
        most = max_result_rows(cut, self.execution.evaluator)
        project = source.input if isinstance(source, op.Distinct) else None
        if (
            most is None
            or most > STREAM_BATCH_ROWS
            or not isinstance(project, op.Project)
            or isinstance(project.input, op.SortRows | op.SliceRows)
            or _ranking_columns(source)
        ):
            return self.of(source)
        begun, result = self.execution.now(), dict[str, pa.Array]()
        weigh = all(is_row_value(column.expression) for column in project.columns)
        batches = RowBatches(self.execution, weigh)
        for frame in batches.of(project.input, _variables(project.columns)):
            new = self._project(project.columns, frame)
            both = {name: [result[name], new[name]] if result else [new[name]] for name in new}
            columns = {name: pa.concat_arrays(parts) for name, parts in both.items()}
            count = _column_length(columns)
            result = _take_rows(columns, group_rows(columns.values(), count)[1])
            if _column_length(result) >= most:
                break
        self.execution.note(source, _column_length(result), begun)
        return result

    def parts(self, root: op.ResultOperator) -> tuple[int, Iterator[dict[str, pa.Array]]]:
        """Return how many rows there are, and their columns, some rows at a time."""
        if not isinstance(root, op.Project):
            columns = self.of(root)
            return _column_length(columns), (
                {name: column.slice(at, STREAM_BATCH_ROWS) for name, column in columns.items()}
                for at in _batch_starts(_column_length(columns))
            )
        self._fuse(root.input, root.columns)
        frame = self.execution.rows(root.input, _variables(root.columns))
        some = (
            frame.take(np.arange(at, min(at + STREAM_BATCH_ROWS, frame.rows)))
            for at in _batch_starts(frame.rows)
        )
        return frame.rows, (self._project(root.columns, part) for part in some)

    def _project(self, columns: tuple[op.OutputColumn, ...], frame: Frame) -> dict[str, pa.Array]:
        evaluator = self.execution.evaluator
        evaluator.fetch((column.expression for column in columns), frame)
        return {c.name: evaluator.column(c.expression, frame) for c in columns}

    def _chunks(self, columns: tuple[op.OutputColumn, ...], frame: Frame) -> dict[str, pa.Array]:
        """Return columns that nothing looks at any more, made in steps where they are long."""
        references = [ref for column in columns for ref in property_refs(column.expression)]
        is_plain = all(is_row_value(column.expression) for column in columns)
        rows_at_once = self.execution.evaluator.rows_at_once(references, STEP_ROWS)
        if (
            frame.rows <= rows_at_once
            or not is_plain
            or not self.execution.evaluator.is_at_hand(references)
        ):
            return self._project(columns, frame)
        chunks_by_name: dict[str, list[pa.Array]] = {column.name: [] for column in columns}
        for part in chunk_slices(frame.rows, rows_at_once):
            self.execution.budget.check("Project")
            for name, column in self._project(columns, frame.take(part)).items():
                chunks_by_name[name].append(column)
        return {name: pa.chunked_array(chunks) for name, chunks in chunks_by_name.items()}

    def _check_size(
        self, operator: str, columns: tuple[op.OutputColumn, ...], frame: Frame
    ) -> None:
        """Refuse values that would not fit, judging by those of the first rows."""
        expressions = [column.expression for column in columns]
        self.execution.check_values(operator, expressions, frame)

    def _fuse(self, rows: op.RowOperator, columns: tuple[op.OutputColumn, ...]) -> None:
        """Let fusions that are shown rank all rows of the match, before order and limit."""
        calls = [c.expression for c in columns if is_fusion(c.expression)]
        while calls and isinstance(rows, op.SortRows | op.SliceRows):
            if isinstance(rows, op.SortRows):
                ordered = [key.expression for key in rows.keys]
                calls = [call for call in calls if call not in ordered]
            rows = rows.input
        if calls:
            frame = self.execution.rows(rows, set(rows.variables))
            for call in calls:
                self.execution.evaluator.column(call, frame)


def _ranking_columns(operator: op.ResultOperator) -> set[str]:
    """Return the columns that are rankings; rows they give no score are left out by an order."""
    if not isinstance(operator, op.Distinct) or not isinstance(operator.input, op.Project):
        return set()
    columns = operator.input.columns
    return {c.name for c in columns if is_call(c.expression, FunctionKind.RANK)}


def _argument(measure: op.OutputColumn) -> op.OutputColumn:
    """Return the values a measure is computed of."""
    assert isinstance(measure.expression, FunctionCall), "a measure is a call"
    return op.OutputColumn(measure.name, measure.expression.arguments[0])


def _variables(columns: tuple[op.OutputColumn, ...]) -> set[str]:
    return {ref.variable for column in columns for ref in property_refs(column.expression)}


def _column_length(columns: Mapping[str, pa.Array]) -> int:
    return len(next(iter(columns.values())))


def _take_rows(columns: Mapping[str, pa.Array], order: np.ndarray) -> dict[str, pa.Array]:
    return {name: column.take(pa.array(order)) for name, column in columns.items()}


def _batch_starts(rows: int) -> range:
    """Return where parts begin; no rows are one part, which has the types."""
    return range(0, max(rows, 1), STREAM_BATCH_ROWS)
