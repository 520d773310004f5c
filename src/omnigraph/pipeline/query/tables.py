"""The entities of a snapshot as data frames."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from pyspark.sql import DataFrame

from omnigraph.catalog import TypeKind
from omnigraph.pipeline.connector.filters import FilterCondition

TableReader: TypeAlias = Callable[
    [TypeKind, str, Sequence[str], Sequence[FilterCondition]], DataFrame
]
"""Reads columns of a type: `id`, of an edge `from` and `to`, and properties by name.

Rows for which the conditions do not hold may be left out.
"""


@dataclass(frozen=True, slots=True)
class SnapshotTables:
    """The entities a query reads, all of one snapshot."""

    read: TableReader

    def frame(
        self,
        kind: TypeKind,
        name: str,
        columns: Mapping[str, str],
        where: Iterable[FilterCondition] = (),
    ) -> DataFrame:
        """Return columns of all entities of a type under other names.

        Columns are renamed by position: Spark does not distinguish a property `age` from `aGe`.
        """
        return self.read(kind, name, tuple(columns), tuple(where)).toDF(*columns.values())
