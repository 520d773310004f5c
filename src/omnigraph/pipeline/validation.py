"""This module examines staged rows beside each other and beside committed ones, on Spark.

Sums tell whether anything is wrong; only then are the rows looked for. Rules, their order
and their words are those of the validator (write/validate.py).
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
from omnigraph.pipeline.buckets import Account, Place, Sums
from omnigraph.pipeline.checks import Check, Fault, Wrong
from omnigraph.pipeline.ledger import (
    ENDS,
    Ledger,
    Target,
    count_flag,
    end_of,
    id_ledger,
    key_names,
    miscounted,
    missing_flag,
    tuple_ledgers,
    tuple_lines,
    tuples,
)
from omnigraph.pipeline.scan import Rows, Wanted, rows_frame
from omnigraph.write.change_set import ChangeSet, place_of
from omnigraph.write.checks.cardinality import tell_counts
from omnigraph.write.checks.endpoints import tell_missing
from omnigraph.write.checks.report import Reporter
from omnigraph.write.checks.unique import repeated_rule
from omnigraph.write.shape import Shape, find_shape
from omnigraph.write.violations import Findings, Rule

_FOUND = ("addr", "at", "other")
_WHOLE = Wanted(("id",), address=True, place=True)


@dataclass(frozen=True)
class Faulty:
    """Rows that do not pass a check: a frame of `addr`, `at` and `other`, and how many there are.

    Without a number, only the frame itself can tell.
    """

    check: Check
    rule: Rule
    frame: DataFrame
    total: int | None = None


class Examination:
    """One look at all that is staged.

    `committed` gives the committed rows of any type; `consulted` are the types it was asked for.
    `place` is where workers put things down for each other.
    """

    def __init__(
        self,
        spark: SparkSession,
        schema: AcceptedSchema,
        targets: Mapping[str, Target],
        committed: Callable[[Shape], Rows],
        place: Place,
    ) -> None:
        self._spark = spark
        self._schema = schema
        self._targets = targets
        self._committed = committed
        self.consulted: set[str] = set()
        self._sums = Sums(spark, place)
        self._ledgers = {
            key: Ledger(lines.frame(spark), lines.sums)
            for key, lines in self._sums.of(self._accounts()).items()
        }
        self._tuples = {
            f"{target.shape.table_key} {columns}": (target, columns)
            for target in targets.values()
            for columns in tuples(target)
        }
        self._ledgers |= tuple_ledgers(
            {key: tuple_lines(spark, *found) for key, found in self._tuples.items()}
        )

    def close(self) -> None:
        """Remove what workers put down for each other."""
        self._sums.close()

    def _accounts(self) -> dict[str, Account]:
        ends: dict[str, dict[str, tuple[str, ...]]] = {}
        for target in self._targets.values():
            if target.shape.kind is TypeKind.EDGE:
                for end in ENDS:
                    node = end_of(self._schema, target.shape, end)
                    known = ends.setdefault(node.table_key, {})
                    known[target.shape.table_key] = (*known.get(target.shape.table_key, ()), end)
        made = {}
        for key in dict.fromkeys([*self._targets, *ends]):
            loaded = self._targets.get(key)
            old = loaded.old if loaded is not None else self._consult(key)
            edges = [(self._targets[edge], found) for edge, found in ends.get(key, {}).items()]
            account = id_ledger(self._spark, loaded, old, edges)
            if account is not None:
                made[key] = account
        return made

    def _consult(self, key: str) -> Rows:
        self.consulted.add(key)
        kind, _, name = key.partition(":")
        return self._committed(find_shape(self._schema, TypeKind(kind), name))

    def count(self, key: str, flag: str) -> int:
        """Return the sum of a flag."""
        ledger = self._ledgers.get(key)
        return 0 if ledger is None else ledger.sums.get(flag, 0)

    # --- what is not wrong ---------------------------------------------------------------------

    def matched(self, target: Target) -> DataFrame:
        """Return committed rows with the ids of staged ones: both addresses, `addr` and `new`."""
        return self._ledgers[target.shape.table_key].where("existing").select("addr", "new")

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
    def _must_differ(target: Target) -> bool:
        return bool(target.shape.key or target.strict or target.replace)

    def _repeated_rows(self, target: Target) -> DataFrame:
        ids = self._ledgers[target.shape.table_key].where("repeated").select("id")
        return rows_frame(self._spark, target.new, _WHOLE).join(ids, "id", "left_semi")

    # --- rows that are wrong -------------------------------------------------------------------

    def faults(self) -> list[Faulty]:
        """Return what is wrong with rows beside others, in the order in which it is told."""
        found: list[Faulty] = []
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

    def _existing(self, target: Target) -> list[Faulty]:
        key = target.shape.table_key
        total = self.count(key, "existing")
        if not (target.strict and total):
            return []
        ids = self._ledgers[key].where("existing").select("id")
        rows = rows_frame(self._spark, target.new, _WHOLE).join(ids, "id", "left_semi")
        last = rows.groupBy("id").agg(f.max("at").alias("at"), f.max_by("addr", "at").alias("addr"))
        frame = last.selectExpr("addr", "at", "'' AS other")
        return [Faulty(Check(Fault.EXISTING, target.shape), Rule.KEY_CONFLICT, frame, total)]

    def _repeated_ids(self, target: Target) -> list[Faulty]:
        total = self.count(target.shape.table_key, "repeated")
        if not (total and self._must_differ(target)):
            return []
        rows = self._repeated_rows(target)
        first = rows.groupBy("id").agg(f.min("at").alias("first"))
        later = rows.join(first, "id").where("at > first")
        frame = later.selectExpr("addr", "at", "CAST(first AS string) AS other")
        check = Check(Fault.REPEATED_ID, target.shape)
        return [Faulty(check, repeated_rule(target.shape), frame, total)]

    def _tuple(self, key: str, target: Target, columns: tuple[str, ...]) -> list[Faulty]:
        check, names = Check(Fault.HELD, target.shape, columns), key_names(columns)
        wanted = Wanted(("id",), key=columns, address=True, place=True)
        total = self.count(key, "repeated")
        flag = "repeated" if total else "held"
        if not self.count(key, flag):
            return []
        suspects = self._ledgers[key].where(flag).select(*names)
        rows = rows_frame(self._spark, target.new, wanted).join(suspects, names, "left_semi")
        if total:
            first = rows.groupBy(*names).agg(
                f.min("at").alias("first"), f.min_by("id", "at").alias("other")
            )
            frame = rows.join(first, names).where("at > first").select(*_FOUND)
            return [Faulty(check, Rule.UNIQUE, frame, total)]
        holders = rows_frame(self._spark, target.old, Wanted(("id",), key=columns))
        holders = holders.join(suspects, names, "left_semi").withColumnRenamed("id", "other")
        ours = rows_frame(self._spark, target.new, Wanted(("id",))).withColumnRenamed("id", "other")
        frame = rows.join(holders.join(ours, "other", "left_anti"), names).select(*_FOUND)
        return [Faulty(check, Rule.UNIQUE, frame)]

    def _missing(self, edge: Target, end: str) -> list[Faulty]:
        node = end_of(self._schema, edge.shape, end)
        flag = missing_flag(edge)
        if not self.count(node.table_key, flag):
            return []
        ids = self._ledgers[node.table_key].where(flag).selectExpr(f"id AS {end}")
        wanted = Wanted((end,), address=True, place=True)
        rows = rows_frame(self._spark, edge.new, wanted).join(ids, end, "left_semi")
        check = Check(Fault.MISSING_END, edge.shape, (end,), node)
        return [Faulty(check, Rule.ENDPOINT, rows.selectExpr("addr", "at", "'' AS other"))]

    def miscounted_rows(self) -> list[Faulty]:
        """Return the rows of sources that have too few or too many edges because of the load."""
        found = []
        for edge, counts, total in self._miscounted():
            wanted = Wanted(("id", "src"), address=True, place=True)
            wrong = counts.selectExpr("id AS src", "CAST(n AS string) AS other")
            rows = rows_frame(self._spark, edge.new, wanted)
            frame = rows.join(wrong, "src").select(*_FOUND)
            if edge.may_match and not edge.replace:
                old = rows_frame(self._spark, edge.old, Wanted(("id", "src")))
                moved = old.join(wrong, "src").select("id", "other")
                frame = frame.unionAll(rows.join(moved, "id").select(*_FOUND)).distinct()
            check = Check(Fault.MISCOUNTED, edge.shape)
            found.append(Faulty(check, Rule.CARDINALITY, frame, total))
        return found

    def _miscounted(self) -> list[tuple[Target, DataFrame, int]]:
        found = []
        for edge in self._targets.values():
            if edge.counts_edges:
                key = end_of(self._schema, edge.shape, "src").table_key
                total = self.count(key, count_flag(edge))
                if total:
                    found.append((edge, miscounted(self._ledgers[key], edge), total))
        return found

    # --- what cannot be mended by leaving rows out ---------------------------------------------

    def tell_dangling(self, changes: ChangeSet) -> None:
        """Report committed edges that lose a node because its type is replaced."""
        for edge, end, node in self._losing():
            gone = self._ledgers[node.table_key].where("removed").selectExpr(f"id AS {end}")
            wanted = Wanted(("id", end), address=True)
            old = self._committed(edge)
            left = rows_frame(self._spark, old, wanted).join(gone, end, "left_semi")
            total = left.count()
            room = changes.findings.make_room(Rule.ENDPOINT, total)
            listed = left.orderBy("id").limit(room).collect() if room else []
            if listed:
                rows = pa.table({name: [row[name] for row in listed] for name in ("id", end)})
                everywhere = pa.array([True] * len(listed), pa.bool_())
                tell_missing(Reporter(changes, edge, rows), everywhere, end, node)

    def _losing(self) -> list[tuple[Shape, str, Shape]]:
        losing = [key for key in self._targets if self.count(key, "removed")]
        nodes = [key.partition(":")[2] for key in losing if key.startswith("node:")]
        catalog = self._schema.catalog
        edges = sorted({edge.name for name in nodes for edge in catalog.incident_edges(name)})
        found = []
        for name in edges:
            edge = find_shape(self._schema, TypeKind.EDGE, name)
            if edge.table_key in self._targets:
                continue
            self.consulted.add(edge.table_key)
            for end in ENDS:
                node = end_of(self._schema, edge, end)
                if node.table_key in losing:
                    found.append((edge, end, node))
        return found

    def tell_miscounted(self, changes: ChangeSet) -> None:
        """Report sources with too few or too many edges."""
        for edge, counts, total in self._miscounted():
            room = changes.findings.make_room(Rule.CARDINALITY, total)
            listed = counts.orderBy("id").limit(room).collect() if room else []
            if not listed:
                continue
            sources = counts.orderBy("id").limit(room).selectExpr("id AS src")
            rows = rows_frame(self._spark, edge.new, Wanted(("src",), place=True))
            lasts = rows.join(sources, "src", "left_semi").groupBy("src").agg(f.max("at"))
            places = {row[0]: place_of(changes.files, row[1]) for row in lasts.collect()}
            wrong = pa.table(
                {"src": [row["id"] for row in listed], "count": [row["n"] for row in listed]}
            )
            definition = edge.shape.definition
            assert isinstance(definition, EdgeType), "only edges are counted"
            tell_counts(changes, definition, wrong, places.get)

    @cached_property
    def is_clean(self) -> bool:
        """Tell whether nothing can be wrong."""
        return not any(self._suspicious())

    def _suspicious(self) -> Sequence[bool]:
        return [
            bool(count)
            for key, ledger in self._ledgers.items()
            for flag, count in ledger.sums.items()
            if not self._is_harmless(key, flag)
        ]

    def _is_harmless(self, key: str, flag: str) -> bool:
        target = self._targets.get(key)
        if flag == "existing":
            return target is None or not target.strict
        return flag == "repeated" and target is not None and not self._must_differ(target)


def tell(faulty: Faulty, rows: Rows, files: Sequence[tuple[str, str]], findings: Findings) -> None:
    """Report the rows that do not pass a check, as many as there is room for."""
    total = faulty.frame.count() if faulty.total is None else faulty.total
    room = findings.make_room(faulty.rule, total)
    listed = faulty.frame.orderBy("at", "other").limit(room).collect() if room and total else []
    if listed:
        wrong = [Wrong(row["addr"], row["at"], row["other"]) for row in listed]
        for violation in faulty.check.tell(files, rows, wrong):
            findings.add(violation)


def all_faulty(found: Sequence[Faulty]) -> DataFrame:
    """Return the rows of several checks of one type as one frame, numbered by check."""
    frames = [
        faulty.frame.selectExpr(f"{number} AS check", *_FOUND)
        for number, faulty in enumerate(found)
    ]
    return reduce(DataFrame.unionAll, frames)
