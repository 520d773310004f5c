"""Compile row operators to data frames.

A frame has a column for the id of each variable and for each property that is used; Spark drops
columns that are no longer used.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from typing import assert_never

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from omnigraph.catalog import Catalog, TypeKind
from omnigraph.pipeline.query.expansion import FAR, NEAR, EdgeTraversal
from omnigraph.pipeline.query.expressions import ExpressionCompiler
from omnigraph.pipeline.query.pushdown import pushdown_conditions
from omnigraph.pipeline.query.tables import SnapshotTables
from omnigraph.plan import operators as op
from omnigraph.plan.expressions import (
    Binding,
    Direction,
    FunctionCall,
    Predicate,
    is_call,
    predicate_refs,
    property_refs,
)
from omnigraph.plan.functions import FunctionKind

MAX_COUNT = 2**31 - 1
"""The largest sum of offset and limit in Spark; it does not collect more rows."""


@dataclass(frozen=True, slots=True)
class RowCompiler:
    """Makes the frames of one query; `outer` are the outer rows of a block."""

    tables: SnapshotTables
    catalog: Catalog
    expressions: ExpressionCompiler
    needed: Mapping[str, frozenset[str]]
    """The properties that are looked at, by variable."""
    outer: DataFrame | None = None

    def of(self, operator: op.RowOperator) -> DataFrame:
        """Return the rows of an operator."""
        match operator:
            case op.Scan(binding=binding, predicates=predicates):
                return self._where(self._entities(binding, predicates), predicates)
            case op.OuterRow():
                assert self.outer is not None, "a block starts from its outer rows"
                return self.outer
            case op.Expand():
                return self._expand(operator)
            case op.SemiJoin():
                return self._close(operator)
            case op.Union():
                return self._union(operator)
            case op.Cross(left=left, right=right):
                return self.of(left).crossJoin(self.of(right))
            case op.Filter(input=source, predicate=predicate):
                return self._where(self.of(source), (predicate,))
            case op.AntiJoin() | op.ExistsJoin() | op.OptionalJoin():
                return self._pattern_join(operator)
            case op.SortRows():
                return self._sort(operator)
            case op.SliceRows(input=source):
                return self.cut(self.of(source), operator)
            case _ as unreachable:
                assert_never(unreachable)

    def cut(self, frame: DataFrame, cut: op.SliceRows | op.SliceColumns) -> DataFrame:
        """Skip and keep as many rows as an operator says."""
        constants = self.expressions.constants
        offset, limit = constants.count(cut.offset, "offset"), constants.count(cut.limit, "limit")
        if offset:
            frame = frame.offset(min(offset, MAX_COUNT))
        if limit is None or limit + (offset or 0) > MAX_COUNT:
            return frame
        return frame.limit(limit)

    # --- entities ------------------------------------------------------------------------------

    def _name(self, variable: str, property_: str = "id") -> str:
        return self.expressions.names.of(variable, property_)

    def _properties(self, binding: Binding) -> list[str]:
        """Return the properties of a variable that are looked at, `id` first."""
        types = self.catalog.nodes if binding.kind == "node" else self.catalog.edges
        known = types[binding.type_name]
        # Variables of two blocks may share a name, and not a type.
        wanted = (name for name in sorted(self.needed.get(binding.name, ())) if name != "id")
        return ["id", *(name for name in wanted if known.lookup(name) is not None)]

    def _named(self, binding: Binding) -> dict[str, str]:
        """Return the columns of a variable that are looked at, and what they are called here."""
        return {name: self._name(binding.name, name) for name in self._properties(binding)}

    def _entities(self, binding: Binding, predicates: Iterable[Predicate]) -> DataFrame:
        kind, columns = TypeKind(binding.kind), self._named(binding)
        where = pushdown_conditions(predicates, binding.name, self.expressions.constants)
        return self.tables.frame(kind, binding.type_name, columns, where)

    def _where(self, frame: DataFrame, predicates: Iterable[Predicate]) -> DataFrame:
        for predicate in predicates:
            frame = frame.where(self.expressions.holds(predicate))
        return frame

    # --- edges ---------------------------------------------------------------------------------

    def _traversal(self, edge: str, direction: Direction) -> EdgeTraversal:
        return EdgeTraversal(self.tables, self.catalog, edge, direction)

    def _bound_edges(self, step: op.Expand | op.SemiJoin, binding: Binding) -> DataFrame:
        """Return every edge of a step with the columns of its variable."""
        return self._traversal(step.edge, step.direction).edges(self._named(binding))

    def _expand(self, expand: op.Expand) -> DataFrame:
        source, start = self.of(expand.input), F.col(self._name(expand.src))
        if expand.edge_binding is not None:
            found = self._bound_edges(expand, expand.edge_binding)
        else:
            traversal = self._traversal(expand.edge, expand.direction)
            starts = source.select(start.alias(NEAR))
            found = traversal.reach(starts, expand.hops, is_reversed=expand.is_reversed)
        rows = source.join(found, start == F.col(NEAR)).drop(NEAR)
        dst = self._name(expand.dst.name)
        if self._properties(expand.dst) == ["id"]:
            rows = rows.withColumnRenamed(FAR, dst)
        else:
            found = self._entities(expand.dst, expand.predicates)
            rows = rows.join(found, F.col(FAR) == F.col(dst)).drop(FAR)
        return self._where(rows, expand.predicates)

    def _close(self, close: op.SemiJoin) -> DataFrame:
        source = self.of(close.input)
        here, there = (F.col(self._name(name)) for name in (close.src, close.dst))
        ends = (here == F.col(NEAR)) & (there == F.col(FAR))
        if close.edge_binding is not None:
            found = self._bound_edges(close, close.edge_binding)
            return source.join(found, ends).drop(NEAR, FAR)
        traversal = self._traversal(close.edge, close.direction)
        found = traversal.reach(source.select(here.alias(NEAR)), close.hops)
        return source.join(found, ends, "left_semi")

    def _union(self, union: op.Union) -> DataFrame:
        """Return the rows of all inputs, with what is looked at of their variables."""
        columns = [
            self._name(name, property_)
            for name in union.variables
            for property_ in self._properties(union.inputs[0].variables[name])
            if all(property_ in self._properties(s.variables[name]) for s in union.inputs)
        ]
        frames = (self.of(source).select(*columns) for source in union.inputs)
        return reduce(lambda one, other: one.unionAll(other), frames)

    # --- blocks --------------------------------------------------------------------------------

    def _pattern_join(self, join: op.AntiJoin | op.ExistsJoin | op.OptionalJoin) -> DataFrame:
        """Evaluate a block once for each distinct combination of its outer variables."""
        source, new = self.of(join.input), list[str]()
        if isinstance(join, op.OptionalJoin):
            new = [name for b in join.new_bindings for name in self._named(b).values()]
        used = sorted(used_variables(join.inner) & set(join.input.variables))
        asked = [join.input.variables[name] for name in used]
        if not asked:
            found = replace(self, outer=source.select(F.lit(True)).limit(1)).of(join.inner)
            found = found.select(*new) if new else found.select(F.lit(True)).limit(1)
            return source.join(found, F.lit(True), _JOINS[type(join)])
        ids = [self._name(binding.name) for binding in asked]
        carried = [self._name(b.name, name) for b in asked for name in self._properties(b)]
        outer = source.select(*carried).dropDuplicates(ids)
        found = replace(self, outer=outer).of(join.inner)
        asked_ids = [f"{name}_asked" for name in ids]
        keys = (F.col(name).alias(alias) for name, alias in zip(ids, asked_ids, strict=True))
        # A block may find something for a row without an optional entity, too.
        matches = [F.col(a).eqNullSafe(F.col(b)) for a, b in zip(ids, asked_ids, strict=True)]
        condition = reduce(lambda a, b: a & b, matches)
        joined = source.join(found.select(*keys, *new), condition, _JOINS[type(join)])
        return joined.drop(*asked_ids)

    # --- order ---------------------------------------------------------------------------------

    def _sort(self, sort: op.SortRows) -> DataFrame:
        """Order rows; a ranking puts the best first and leaves out rows it gives no score."""
        rows, keys = self.of(sort.input), list[Column]()
        for key in sort.keys:
            column = self.expressions.column(key.expression)
            if is_call(key.expression, FunctionKind.RANK):
                assert isinstance(key.expression, FunctionCall), "a ranking is a call"
                rows = rows.where(column.isNotNull())
                keys.append(sort_column(column, descending=key.expression.function.best_is_highest))
            else:
                keys.append(sort_column(column, descending=key.descending))
        ties = (F.col(self._name(name)) for name in sort.tie_break)
        return rows.orderBy(*keys, *(sort_column(tie, descending=False) for tie in ties))


_JOINS: Mapping[type[op.RowOperator], str] = {
    op.AntiJoin: "left_anti",
    op.ExistsJoin: "left_semi",
    op.OptionalJoin: "left",
}


def sort_column(column: Column, *, descending: bool) -> Column:
    """Return a column to order by; null is lower than every value."""
    return column.desc_nulls_last() if descending else column.asc_nulls_first()


def needed_properties(root: op.PlanOperator) -> dict[str, frozenset[str]]:
    """Return the properties a plan looks at, by variable, besides ids."""
    found: dict[str, set[str]] = {}
    for _, operator in op.walk_operators(root):
        refs = [
            ref
            for expression in op.operator_expressions(operator)
            for ref in property_refs(expression)
        ]
        for predicate in predicates_of(operator):
            refs += predicate_refs(predicate)
        for ref in refs:
            found.setdefault(ref.variable, set()).add(ref.property)
    return {name: frozenset(properties) for name, properties in found.items()}


def predicates_of(operator: op.PlanOperator) -> tuple[Predicate, ...]:
    """Return what an operator tests rows for."""
    match operator:
        case op.Scan(predicates=predicates) | op.Expand(predicates=predicates):
            return predicates
        case op.Filter(predicate=predicate):
            return (predicate,)
        case _:
            return ()


def used_variables(operator: op.PlanOperator) -> set[str]:
    """Return every variable an operator or one below it looks at."""
    found: set[str] = set()
    for _, below in op.walk_operators(operator):
        match below:
            case op.Expand(src=src):
                found.add(src)
            case op.SemiJoin(src=src, dst=dst):
                found |= {src, dst}
            case _:
                pass
        for predicate in predicates_of(below):
            found |= {ref.variable for ref in predicate_refs(predicate)}
    return found
