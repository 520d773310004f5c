"""Check ids and unique tuples of everything that is staged, by counting per key.

Every occurrence of an id contributes to its row of counts: rows of the load, committed rows, ends
of edges. The sums show whether the id is repeated, exists, is missing, or has too many edges. So
each id is shuffled once, independent of the number of rules.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
import numpy.typing as npt
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from omnigraph.catalog import AcceptedSchema, TypeKind
from omnigraph.catalog.model import Cardinality, EdgeType
from omnigraph.pipeline.load.fragment_scan import DatasetFragments, ScanProjection, scan_frame
from omnigraph.pipeline.load.key_shuffle import (
    ComputedContribution,
    FlagFunction,
    KeyAggregation,
    KeyContribution,
    KeyCounts,
    SumArray,
)
from omnigraph.pipeline.load.staged_load import StagedType
from omnigraph.write.change_set import RowSchema, find_row_schema
from omnigraph.write.checks.unique import unique_groups

ENDS = ("src", "dst")


@dataclass(frozen=True)
class LoadTarget:
    """One type of a load: its staged rows in their version, and the committed rows.

    `strict` rejects ids that exist; `replace` makes the rows all that the type has.
    """

    shape: RowSchema
    staged: StagedType
    new: DatasetFragments
    old: DatasetFragments
    strict: bool
    replace: bool

    @property
    def counts_edges(self) -> bool:
        """Return whether the number of its edges is limited."""
        definition = self.shape.definition
        return isinstance(definition, EdgeType) and definition.cardinality != Cardinality()

    @property
    def may_match(self) -> bool:
        """Return whether rows may have ids that are committed."""
        return bool(self.old.sizes) and not self.staged.fresh


def endpoint_shape(schema: AcceptedSchema, edge: RowSchema, end: str) -> RowSchema:
    """Return the type of nodes at an end of edges."""
    definition = edge.definition
    assert isinstance(definition, EdgeType), "only edges have ends"
    name = definition.src if end == "src" else definition.dst
    return find_row_schema(schema, TypeKind.NODE, name)


def id_aggregation(
    spark: SparkSession,
    target: LoadTarget | None,
    committed: DatasetFragments,
    edges: Sequence[tuple[LoadTarget, tuple[str, ...]]],
) -> KeyAggregation | None:
    """Return the aggregation by the ids of a type; None when no check needs one.

    `target` is the type if it is loaded, `edges` the loaded edge types and ends that refer to it.
    A row has `s` staged and `c` committed rows, and the address of the committed one as `addr`, of
    the staged one as `new`.
    """
    replace = target is not None and target.replace
    if not edges and (target is None or (target.staged.fresh and not replace)):
        return None
    counted = [edge for edge, ends in edges if "src" in ends and edge.counts_edges]
    found = []
    if target is not None:
        found.append(
            KeyContribution(target.new, ("id",), {"s": 1}, "new" if target.may_match else None)
        )
    if edges or replace or (target is not None and target.may_match):
        found.append(KeyContribution(committed, ("id",), {"c": 1}, "addr"))
    for edge, ends in edges:
        found += _endpoint_contributions(edge, ends)
    flags: dict[str, FlagFunction] = {
        "repeated": lambda n: np.maximum(n["s"] - 1, 0),
        "existing": lambda n: np.where((n["s"] > 0) & (n["c"] > 0), 1, 0),
        "removed": lambda n: np.where(_is_gone(n, replace=replace), 1, 0),
    }
    for edge, _ in edges:
        flags[missing_flag(edge)] = _missing(_referred(edge), replace=replace)
    for edge in counted:
        flags[count_flag(edge)] = _miscounted(edge, replace=replace)
    names = ["s", "c", "addr", "new", *(_referred(edge) for edge, _ in edges)]
    names += [name for edge in counted for name in _counted(edge)]
    moved = [
        _replaced_sources(spark, edge) for edge in counted if edge.may_match and not edge.replace
    ]
    return KeyAggregation(found, names, flags, moved)


def _is_gone(numbers: Mapping[str, SumArray], *, replace: bool) -> npt.NDArray[np.bool_]:
    gone: npt.NDArray[np.bool_] = (numbers["c"] > 0) & (numbers["s"] == 0) & replace
    return gone


def _missing(name: str, *, replace: bool) -> FlagFunction:
    def flag(numbers: Mapping[str, SumArray]) -> SumArray:
        there = numbers["s"] if replace else numbers["s"] + numbers["c"]
        return np.where(there == 0, numbers[name], 0)

    return flag


def _miscounted(edge: LoadTarget, *, replace: bool) -> FlagFunction:
    definition = edge.shape.definition
    assert isinstance(definition, EdgeType), "only edges are counted"
    least, most = definition.cardinality.minimum, definition.cardinality.maximum
    number, touched = _counted(edge)

    def flag(numbers: Mapping[str, SumArray]) -> SumArray:
        outside = numbers[number] < least
        if most is not None:
            outside |= numbers[number] > most
        wrong = (numbers[touched] > 0) & outside & ~_is_gone(numbers, replace=replace)
        return np.where(wrong, 1, 0)

    return flag


def _endpoint_contributions(edge: LoadTarget, ends: tuple[str, ...]) -> list[KeyContribution]:
    """Return which nodes edges refer to, and how many edges nodes have."""
    referred = _referred(edge)
    if "src" not in ends or not edge.counts_edges:
        return [KeyContribution(edge.new, ends, {referred: 1})]
    number, touched = _counted(edge)
    others = [KeyContribution(edge.new, (end,), {referred: 1}) for end in ends if end != "src"]
    return [
        KeyContribution(edge.new, ("src",), {referred: 1, number: 1, touched: 1}),
        KeyContribution(edge.old, ("src",), {touched if edge.replace else number: 1}),
        *others,
    ]


def _replaced_sources(spark: SparkSession, edge: LoadTarget) -> ComputedContribution:
    """Return the sources that committed edges leave which the load replaces."""
    given = scan_frame(spark, edge.new, ScanProjection(("id",))).distinct()
    old = scan_frame(spark, edge.old, ScanProjection(("id", "src"))).join(given, "id", "left_semi")
    number, touched = _counted(edge)
    return ComputedContribution(old.selectExpr("src AS id"), {number: -1, touched: 1})


def missing_flag(edge: LoadTarget) -> str:
    """Return the flag of ids that edges refer to and that are no nodes."""
    return f"missing_{edge.shape.name}"


def count_flag(edge: LoadTarget) -> str:
    """Return the flag that counts the sources with too few or too many edges."""
    return f"miscounted_{edge.shape.name}"


def _referred(edge: LoadTarget) -> str:
    return f"referred_{edge.shape.name}"


def _counted(edge: LoadTarget) -> tuple[str, str]:
    return f"number_{edge.shape.name}", f"touched_{edge.shape.name}"


def miscounted_sources(counts: KeyCounts, edge: LoadTarget) -> DataFrame:
    """Return sources with too few or too many edges as `id`, and how many they have as `n`."""
    number, _ = _counted(edge)
    return counts.where(count_flag(edge)).selectExpr("id", f"`{number}` AS n")


# --- unique tuples -----------------------------------------------------------------------------


def key_names(columns: Sequence[str]) -> list[str]:
    """Return what the texts of a tuple are called in a frame."""
    return [f"k{number}" for number in range(len(columns))]


def tuple_counts_frame(
    spark: SparkSession, target: LoadTarget, columns: tuple[str, ...]
) -> DataFrame:
    """Return the tuples of unique columns that are `repeated` in the load, or `held` by others."""
    names = key_names(columns)
    wanted = ScanProjection(("id",), key=columns)
    new = scan_frame(spark, target.new, wanted).dropna(subset=names)
    parts = [new.selectExpr(*names, "id AS sid", "CAST(NULL AS string) AS cid")]
    if target.old.sizes and not target.replace:
        old = scan_frame(spark, target.old, wanted).dropna(subset=names)
        parts.append(old.selectExpr(*names, "CAST(NULL AS string) AS sid", "id AS cid"))
    every = reduce(DataFrame.unionAll, parts).selectExpr(
        *names, "sid", "cid", "sid IS NOT NULL AS s", "cid IS NOT NULL AS c"
    )
    lines = every.groupBy(*names).agg(
        f.max("sid").alias("sid"),
        f.max("cid").alias("cid"),
        f.count_if("s").alias("s"),
        f.count_if("c").alias("c"),
    )
    alone = "(s = 1 AND c = 1 AND sid = cid)"
    found = lines.selectExpr(
        *names,
        "IF(s > 1, s - 1, 0) AS repeated",
        f"IF(s > 0 AND c > 0 AND NOT {alone}, 1, 0) AS held",
    )
    return found.where("repeated > 0 OR held > 0")


def count_tuples(frames: Mapping[str, DataFrame]) -> dict[str, KeyCounts]:
    """Return the counts of unique tuples, added up in one action."""
    totals = [
        frame.selectExpr("SUM(repeated) AS repeated", "SUM(held) AS held", f"{number} AS part")
        for number, frame in enumerate(frames.values())
    ]
    rows = reduce(DataFrame.unionAll, totals).collect() if totals else []
    sums = {row["part"]: {name: row[name] or 0 for name in ("repeated", "held")} for row in rows}
    return {
        key: KeyCounts(frame, sums[number]) for number, (key, frame) in enumerate(frames.items())
    }


def unique_tuples(target: LoadTarget) -> list[tuple[str, ...]]:
    """Return the unique tuples of a type that has rows."""
    return unique_groups(target.shape) if target.new.sizes else []
