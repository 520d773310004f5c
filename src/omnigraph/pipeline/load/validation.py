"""Validate staged rows against each other and against committed rows, on Spark.

Sums show whether any rule is broken; only then the rows are located. Rules, their order and their
messages are those of the validator (write/validator.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from omnigraph.catalog import AcceptedSchema, TypeKind
from omnigraph.catalog.model import EdgeType
from omnigraph.pipeline.load.fragment_scan import DatasetFragments, ScanProjection, scan_frame
from omnigraph.pipeline.load.key_counts import (
    ENDS,
    LoadTarget,
    count_flag,
    count_tuples,
    endpoint_shape,
    id_aggregation,
    key_names,
    miscounted_sources,
    missing_flag,
    tuple_counts_frame,
    unique_tuples,
)
from omnigraph.pipeline.load.key_shuffle import KeyAggregation, KeyShuffle
from omnigraph.pipeline.load.row_checks import FaultyRow, RowCheck, RowFault
from omnigraph.write.change_set import ChangeSet, RowSchema, find_row_schema, locate_position
from omnigraph.write.checks.edges import report_edge_counts, report_missing_endpoints
from omnigraph.write.checks.reporter import ViolationReporter
from omnigraph.write.checks.unique import repeated_rule
from omnigraph.write.violations import ViolationCollector, ViolationRule

_FAULT_COLUMNS = ("addr", "at", "other")
_ROW_SCAN = ScanProjection(("id",), address=True, place=True)


@dataclass(frozen=True)
class FailedCheck:
    """Rows that do not pass a check: a frame of `addr`, `at` and `other`, and how many there are.

    Without a total, the frame has to be counted.
    """

    check: RowCheck
    rule: ViolationRule
    frame: DataFrame
    total: int | None = None


class StagedValidation:
    """Validation of everything that is staged.

    `committed` gives the committed rows of any type; `consulted` are the types it was asked for.
    """

    def __init__(
        self,
        spark: SparkSession,
        schema: AcceptedSchema,
        targets: Mapping[str, LoadTarget],
        committed: Callable[[RowSchema], DatasetFragments],
    ) -> None:
        self._spark = spark
        self._schema = schema
        self._targets = targets
        self._committed = committed
        self.consulted: set[str] = set()
        self._shuffle = KeyShuffle(spark)
        self._counts = self._shuffle.aggregate(self._aggregations())
        self._tuples = {
            f"{target.shape.table_key} {columns}": (target, columns)
            for target in targets.values()
            for columns in unique_tuples(target)
        }
        self._counts |= count_tuples(
            {key: tuple_counts_frame(spark, *found) for key, found in self._tuples.items()}
        )

    def close(self) -> None:
        """Release what Spark keeps."""
        self._shuffle.close()

    def _aggregations(self) -> dict[str, KeyAggregation]:
        ends: dict[str, dict[str, tuple[str, ...]]] = {}
        for target in self._targets.values():
            if target.shape.kind is TypeKind.EDGE:
                for end in ENDS:
                    node = endpoint_shape(self._schema, target.shape, end)
                    known = ends.setdefault(node.table_key, {})
                    known[target.shape.table_key] = (*known.get(target.shape.table_key, ()), end)
        aggregations = {}
        for key in dict.fromkeys([*self._targets, *ends]):
            loaded = self._targets.get(key)
            old = loaded.old if loaded is not None else self._consult(key)
            edges = [(self._targets[edge], found) for edge, found in ends.get(key, {}).items()]
            aggregation = id_aggregation(self._spark, loaded, old, edges)
            if aggregation is not None:
                aggregations[key] = aggregation
        return aggregations

    def _consult(self, key: str) -> DatasetFragments:
        self.consulted.add(key)
        kind, _, name = key.partition(":")
        return self._committed(find_row_schema(self._schema, TypeKind(kind), name))

    def count(self, key: str, flag: str) -> int:
        """Return the sum of a flag."""
        counts = self._counts.get(key)
        return 0 if counts is None else counts.totals.get(flag, 0)

    # --- rows that replace others --------------------------------------------------------------

    def matched(self, target: LoadTarget) -> DataFrame:
        """Return committed rows with the ids of staged ones: both addresses, `addr` and `new`."""
        return self._counts[target.shape.table_key].where("existing").select("addr", "new")

    def superseded(self) -> dict[str, DataFrame]:
        """Return the rows, by type, that later rows with the same id take the place of."""
        found = {}
        for key, target in self._targets.items():
            if self.count(key, "repeated") and not self._must_differ(target):
                rows = self._repeated_rows(target)
                last = rows.groupBy("id").agg(f.max("at").alias("last"))
                found[key] = rows.join(last, "id").where("at < last").select("addr")
        return found

    @staticmethod
    def _must_differ(target: LoadTarget) -> bool:
        return bool(target.shape.key or target.strict or target.replace)

    def _repeated_rows(self, target: LoadTarget) -> DataFrame:
        ids = self._counts[target.shape.table_key].where("repeated").select("id")
        return scan_frame(self._spark, target.new, _ROW_SCAN).join(ids, "id", "left_semi")

    # --- invalid rows --------------------------------------------------------------------------

    def faults(self) -> list[FailedCheck]:
        """Return the failed checks, in the order in which they are reported."""
        found: list[FailedCheck] = []
        for target in self._targets.values():
            found += self._existing(target)
            found += self._repeated_ids(target)
            for key, (owner, columns) in self._tuples.items():
                if owner is target:
                    found += self._tuple(key, target, columns)
        for target in self._targets.values():
            if target.shape.kind is TypeKind.EDGE:
                for end in ENDS:
                    found += self._missing(target, end)
        return found

    def _existing(self, target: LoadTarget) -> list[FailedCheck]:
        key = target.shape.table_key
        total = self.count(key, "existing")
        if not (target.strict and total):
            return []
        ids = self._counts[key].where("existing").select("id")
        rows = scan_frame(self._spark, target.new, _ROW_SCAN).join(ids, "id", "left_semi")
        last = rows.groupBy("id").agg(f.max("at").alias("at"), f.max_by("addr", "at").alias("addr"))
        frame = last.selectExpr("addr", "at", "'' AS other")
        return [
            FailedCheck(
                RowCheck(RowFault.EXISTING, target.shape), ViolationRule.KEY_CONFLICT, frame, total
            )
        ]

    def _repeated_ids(self, target: LoadTarget) -> list[FailedCheck]:
        total = self.count(target.shape.table_key, "repeated")
        if not (total and self._must_differ(target)):
            return []
        rows = self._repeated_rows(target)
        first = rows.groupBy("id").agg(f.min("at").alias("first"))
        later = rows.join(first, "id").where("at > first")
        frame = later.selectExpr("addr", "at", "CAST(first AS string) AS other")
        check = RowCheck(RowFault.REPEATED_ID, target.shape)
        return [FailedCheck(check, repeated_rule(target.shape), frame, total)]

    def _tuple(self, key: str, target: LoadTarget, columns: tuple[str, ...]) -> list[FailedCheck]:
        check, names = RowCheck(RowFault.HELD, target.shape, columns), key_names(columns)
        wanted = ScanProjection(("id",), key=columns, address=True, place=True)
        total = self.count(key, "repeated")
        flag = "repeated" if total else "held"
        if not self.count(key, flag):
            return []
        suspects = self._counts[key].where(flag).select(*names)
        rows = scan_frame(self._spark, target.new, wanted).join(suspects, names, "left_semi")
        if total:
            first = rows.groupBy(*names).agg(
                f.min("at").alias("first"), f.min_by("id", "at").alias("other")
            )
            frame = rows.join(first, names).where("at > first").select(*_FAULT_COLUMNS)
            return [FailedCheck(check, ViolationRule.UNIQUE, frame, total)]
        holders = scan_frame(self._spark, target.old, ScanProjection(("id",), key=columns))
        holders = holders.join(suspects, names, "left_semi").withColumnRenamed("id", "other")
        ours = scan_frame(self._spark, target.new, ScanProjection(("id",))).withColumnRenamed(
            "id", "other"
        )
        frame = rows.join(holders.join(ours, "other", "left_anti"), names).select(*_FAULT_COLUMNS)
        return [FailedCheck(check, ViolationRule.UNIQUE, frame)]

    def _missing(self, edge: LoadTarget, end: str) -> list[FailedCheck]:
        node = endpoint_shape(self._schema, edge.shape, end)
        flag = missing_flag(edge)
        if not self.count(node.table_key, flag):
            return []
        ids = self._counts[node.table_key].where(flag).selectExpr(f"id AS {end}")
        wanted = ScanProjection((end,), address=True, place=True)
        rows = scan_frame(self._spark, edge.new, wanted).join(ids, end, "left_semi")
        check = RowCheck(RowFault.MISSING_END, edge.shape, (end,), node)
        return [
            FailedCheck(check, ViolationRule.ENDPOINT, rows.selectExpr("addr", "at", "'' AS other"))
        ]

    def miscounted_rows(self) -> list[FailedCheck]:
        """Return the rows of sources that have too few or too many edges because of the load."""
        found = []
        for edge, counts, total in self._miscounted():
            wanted = ScanProjection(("id", "src"), address=True, place=True)
            wrong = counts.selectExpr("id AS src", "CAST(n AS string) AS other")
            rows = scan_frame(self._spark, edge.new, wanted)
            frame = rows.join(wrong, "src").select(*_FAULT_COLUMNS)
            if edge.may_match and not edge.replace:
                old = scan_frame(self._spark, edge.old, ScanProjection(("id", "src")))
                moved = old.join(wrong, "src").select("id", "other")
                frame = frame.unionAll(rows.join(moved, "id").select(*_FAULT_COLUMNS)).distinct()
            check = RowCheck(RowFault.MISCOUNTED, edge.shape)
            found.append(FailedCheck(check, ViolationRule.CARDINALITY, frame, total))
        return found

    def _miscounted(self) -> list[tuple[LoadTarget, DataFrame, int]]:
        found = []
        for edge in self._targets.values():
            if edge.counts_edges:
                key = endpoint_shape(self._schema, edge.shape, "src").table_key
                total = self.count(key, count_flag(edge))
                if total:
                    found.append((edge, miscounted_sources(self._counts[key], edge), total))
        return found

    # --- violations that rejecting rows does not resolve ---------------------------------------

    def report_dangling(self, changes: ChangeSet) -> None:
        """Report committed edges that lose a node because its type is replaced."""
        for edge, end, node in self._losing():
            gone = self._counts[node.table_key].where("removed").selectExpr(f"id AS {end}")
            wanted = ScanProjection(("id", end), address=True)
            old = self._committed(edge)
            left = scan_frame(self._spark, old, wanted).join(gone, end, "left_semi")
            total = left.count()
            limit = changes.findings.reserve(ViolationRule.ENDPOINT, total)
            listed = left.orderBy("id").limit(limit).collect() if limit else []
            if listed:
                rows = pa.table({name: [row[name] for row in listed] for name in ("id", end)})
                everywhere = pa.array([True] * len(listed), pa.bool_())
                report_missing_endpoints(
                    ViolationReporter(changes, edge, rows), everywhere, end, node
                )

    def _losing(self) -> list[tuple[RowSchema, str, RowSchema]]:
        losing = [key for key in self._targets if self.count(key, "removed")]
        nodes = [key.partition(":")[2] for key in losing if key.startswith("node:")]
        catalog = self._schema.catalog
        edges = sorted({edge.name for name in nodes for edge in catalog.incident_edges(name)})
        found = []
        for name in edges:
            edge = find_row_schema(self._schema, TypeKind.EDGE, name)
            if edge.table_key in self._targets:
                continue
            self.consulted.add(edge.table_key)
            for end in ENDS:
                node = endpoint_shape(self._schema, edge, end)
                if node.table_key in losing:
                    found.append((edge, end, node))
        return found

    def report_miscounted(self, changes: ChangeSet) -> None:
        """Report sources with too few or too many edges."""
        for edge, counts, total in self._miscounted():
            limit = changes.findings.reserve(ViolationRule.CARDINALITY, total)
            listed = counts.orderBy("id").limit(limit).collect() if limit else []
            if not listed:
                continue
            sources = counts.orderBy("id").limit(limit).selectExpr("id AS src")
            rows = scan_frame(self._spark, edge.new, ScanProjection(("src",), place=True))
            lasts = rows.join(sources, "src", "left_semi").groupBy("src").agg(f.max("at"))
            places = {row[0]: locate_position(changes.files, row[1]) for row in lasts.collect()}
            wrong = pa.table(
                {"src": [row["id"] for row in listed], "count": [row["n"] for row in listed]}
            )
            definition = edge.shape.definition
            assert isinstance(definition, EdgeType), "only edges are counted"
            report_edge_counts(changes, definition, wrong, places.get)

    @cached_property
    def is_clean(self) -> bool:
        """Return whether no check can fail."""
        return not any(self._suspicious())

    def _suspicious(self) -> Sequence[bool]:
        return [
            bool(count)
            for key, counts in self._counts.items()
            for flag, count in counts.totals.items()
            if not self._is_harmless(key, flag)
        ]

    def _is_harmless(self, key: str, flag: str) -> bool:
        target = self._targets.get(key)
        if flag == "existing":
            return target is None or not target.strict
        return flag == "repeated" and target is not None and not self._must_differ(target)


def report_failures(
    faulty: FailedCheck,
    rows: DatasetFragments,
    files: Sequence[tuple[str, str]],
    findings: ViolationCollector,
) -> None:
    """Report the rows that do not pass a check, up to the limit of listed violations."""
    total = faulty.frame.count() if faulty.total is None else faulty.total
    limit = findings.reserve(faulty.rule, total)
    listed = faulty.frame.orderBy("at", "other").limit(limit).collect() if limit and total else []
    if listed:
        wrong = [FaultyRow(row["addr"], row["at"], row["other"]) for row in listed]
        for violation in faulty.check.report(files, rows, wrong):
            findings.add(violation)


def union_failures(found: Sequence[FailedCheck]) -> DataFrame:
    """Return the rows of several checks of one type as one frame, numbered by check."""
    frames = [
        faulty.frame.selectExpr(f"{number} AS check", *_FAULT_COLUMNS)
        for number, faulty in enumerate(found)
    ]
    return reduce(DataFrame.unionAll, frames)
