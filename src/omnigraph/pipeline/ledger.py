"""This module looks at everything that is staged at once: one ledger of ids per type.

Whoever mentions an id adds to its line: rows of the load, committed rows, ends of edges. Summed up,
the line says whether the id is repeated, exists, is missing, or has too many edges. So each id is
shuffled once, whatever rules there are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from omnigraph.catalog.model import Cardinality, EdgeType
from omnigraph.pipeline.scan import Rows, Wanted, rows_frame, tally_frame
from omnigraph.pipeline.staged import StagedType
from omnigraph.write.checks.unique import unique_groups
from omnigraph.write.shape import Shape

ENDS = ("src", "dst")
_MATCHED = "(s > 0 AND c > 0)"


@dataclass(frozen=True)
class Target:
    """One type of a load: what is staged of it, in the version that shows it, and what was there.

    `strict` refuses ids that exist; `replace` makes the rows all that the type has.
    """

    shape: Shape
    staged: StagedType
    new: Rows
    old: Rows
    strict: bool
    replace: bool

    @property
    def counts_edges(self) -> bool:
        """Tell whether the number of its edges is limited."""
        definition = self.shape.definition
        return isinstance(definition, EdgeType) and definition.cardinality != Cardinality()

    @property
    def may_match(self) -> bool:
        """Tell whether rows may have ids that are committed."""
        return bool(self.old.sizes) and not self.staged.fresh


@dataclass(frozen=True)
class Ledger:
    """The lines of one type, and the numbers that say whether something is wrong.

    `frame` has a line for each id that matters, with `s` staged and `c` committed rows, and `addr`,
    the address of the committed one. `flags` are what to sum over all lines, in SQL, by name.
    """

    frame: DataFrame
    flags: Mapping[str, str]

    def where(self, flag: str) -> DataFrame:
        """Return the lines that a flag is about."""
        return self.frame.where(f"({self.flags[flag]}) > 0")


def id_ledger(
    spark: SparkSession,
    target: Target | None,
    committed: Rows,
    edges: Sequence[tuple[Target, str]],
) -> Ledger | None:
    """Return the ledger of the ids of a type; None when nothing can be wrong with them.

    `target` is the type if it is loaded, `edges` the loaded edge types and ends that refer to it.
    """
    replace = target is not None and target.replace
    if not edges and (target is None or (target.staged.fresh and not replace)):
        return None
    counted = [edge for edge, end in edges if end == "src" and edge.counts_edges]
    names = ["s", "c", "addr", *(missing_flag(edge, end) for edge, end in edges)]
    names += [name for edge in counted for name in _counted(edge)]
    lines = _Lines(names)
    if target is not None:
        lines.add(rows_frame(spark, target.new, Wanted(("id",))), s="1")
    if edges or replace or (target is not None and target.may_match):
        lines.add(rows_frame(spark, committed, Wanted(("id",), address=True)), c="1", addr="addr")
    for edge, end in edges:
        _add_ends(spark, lines, edge, end)
    gone = "(c > 0 AND s = 0)" if replace else "false"
    is_there = "s" if replace else "s + c"
    flags = {
        "repeated": "IF(s > 1, s - 1, 0)",
        "existing": f"IF({_MATCHED}, 1, 0)",
        "removed": f"IF({gone}, 1, 0)",
    }
    for edge, end in edges:
        name = missing_flag(edge, end)
        flags[name] = f"IF({is_there} = 0, `{name}`, 0)"
    for edge in counted:
        flags[count_flag(edge)] = f"IF({_is_miscounted(edge)} AND NOT {gone}, 1, 0)"
    return Ledger(_interesting(lines.frame(), flags), flags)


def _add_ends(spark: SparkSession, lines: _Lines, edge: Target, end: str) -> None:
    """Note which nodes edges refer to, and how many edges nodes have."""
    tally = tally_frame(spark, edge.new, end)
    if end != "src" or not edge.counts_edges:
        lines.add(tally, **{missing_flag(edge, end): "n"})
        return
    number, touched = _counted(edge)
    lines.add(tally, **{missing_flag(edge, end): "n", number: "n", touched: "1"})
    if not edge.old.sizes:
        return
    before = tally_frame(spark, edge.old, "src")
    if edge.replace:
        lines.add(before, **{touched: "1"})
        return
    lines.add(before, **{number: "n"})
    if edge.may_match:
        given = rows_frame(spark, edge.new, Wanted(("id",))).distinct()
        moved = rows_frame(spark, edge.old, Wanted(("id", "src"))).join(given, "id", "left_semi")
        lines.add(moved.selectExpr("src AS id"), **{number: "-1", touched: "1"})


class _Lines:
    """Contributions to a ledger, all with the same columns."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._parts: list[DataFrame] = []

    def add(self, frame: DataFrame, **numbers: str) -> None:
        columns = [f"CAST({numbers.get(name, '0')} AS long) AS `{name}`" for name in self._names]
        self._parts.append(frame.selectExpr("id", *columns))

    def frame(self) -> DataFrame:
        every = reduce(DataFrame.unionAll, self._parts).groupBy("id")
        return every.agg(dict.fromkeys(self._names, "sum")).selectExpr(
            "id", *(f"`sum({name})` AS `{name}`" for name in self._names)
        )


def _interesting(frame: DataFrame, flags: Mapping[str, str]) -> DataFrame:
    return frame.where(" OR ".join(f"({flag}) > 0" for flag in flags.values()))


def missing_flag(edge: Target, end: str) -> str:
    """Return the flag that counts the edges without a node at one end."""
    return f"missing_{edge.shape.name}_{end}"


def count_flag(edge: Target) -> str:
    """Return the flag that counts the sources with too few or too many edges."""
    return f"miscounted_{edge.shape.name}"


def _counted(edge: Target) -> tuple[str, str]:
    return f"number_{edge.shape.name}", f"touched_{edge.shape.name}"


def _is_miscounted(edge: Target) -> str:
    definition = edge.shape.definition
    assert isinstance(definition, EdgeType), "only edges are counted"
    limits = definition.cardinality
    number, touched = (f"`{name}`" for name in _counted(edge))
    outside = f"{number} < {limits.minimum}"
    if limits.maximum is not None:
        outside += f" OR {number} > {limits.maximum}"
    return f"({touched} > 0 AND ({outside}))"


def miscounted(ledger: Ledger, edge: Target) -> DataFrame:
    """Return sources with too few or too many edges as `id`, and how many they have as `n`."""
    number, _ = _counted(edge)
    return ledger.where(count_flag(edge)).selectExpr("id", f"`{number}` AS n")


# --- unique tuples -----------------------------------------------------------------------------


def key_names(columns: Sequence[str]) -> list[str]:
    """Return what the texts of a tuple are called in a frame."""
    return [f"k{number}" for number in range(len(columns))]


def tuple_ledger(spark: SparkSession, target: Target, columns: tuple[str, ...]) -> Ledger:
    """Return the ledger of a unique tuple: `s` rows of the load hold it, and `c` committed ones."""
    names = key_names(columns)
    wanted = Wanted(("id",), key=columns)
    new = rows_frame(spark, target.new, wanted).dropna(subset=names)
    parts = [new.selectExpr(*names, "id AS sid", "CAST(NULL AS string) AS cid")]
    if target.old.sizes and not target.replace:
        old = rows_frame(spark, target.old, wanted).dropna(subset=names)
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
    flags = {
        "repeated": "IF(s > 1, s - 1, 0)",
        "held": f"IF({_MATCHED} AND NOT (s = 1 AND c = 1 AND sid = cid), 1, 0)",
    }
    return Ledger(_interesting(lines, flags), flags)


def tuples(target: Target) -> list[tuple[str, ...]]:
    """Return the unique tuples of a type that has rows."""
    return unique_groups(target.shape) if target.new.sizes else []


# --- all together ------------------------------------------------------------------------------


def sums(ledgers: Mapping[str, Ledger]) -> dict[str, dict[str, int]]:
    """Return the flags of all ledgers by name, in one action."""
    found: dict[str, dict[str, int]] = {}
    frames = []
    for number, (key, ledger) in enumerate(ledgers.items()):
        found[key] = dict.fromkeys(ledger.flags, 0)
        totals = ", ".join(f"SUM({flag})" for flag in ledger.flags.values())
        frames.append(
            ledger.frame.agg(f.expr(f"array({totals})").alias("n")).selectExpr(
                f"{number} AS ledger", "n"
            )
        )
    keys = list(ledgers)
    for row in reduce(DataFrame.unionAll, frames).collect() if frames else []:
        key = keys[row["ledger"]]
        found[key] = {name: n or 0 for name, n in zip(found[key], row["n"], strict=True)}
    return found
