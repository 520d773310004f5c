"""Remove rows from staged versions, fragment by fragment, on workers."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from omnigraph.pipeline.load.fragment_scan import DatasetFragments, take_rows
from omnigraph.pipeline.load.row_checks import FaultyRow, RowCheck
from omnigraph.pipeline.load.staging import (
    RULE_REJECTS,
    StagingJob,
    first_by_position,
    rejected_by_type,
    write_rejects,
)
from omnigraph.storage.staged_writes import fragment_from_json, fragment_to_json, replace_fragments
from omnigraph.write.rejected_rows import readable_columns, records_by_position
from omnigraph.write.violations import Violation

_REMOVED_SCHEMA = "fragment long, remaining string, gone long, rejected string"
_OFFSET = 0xFFFF_FFFF


@dataclass(slots=True)
class RemovedRows:
    """Rows removed from a version: fragments that became empty, and the remaining ones."""

    emptied: list[int] = field(default_factory=list)
    left: list[Any] = field(default_factory=list)
    rows: int = 0
    gone: dict[int, int] = field(default_factory=dict)
    """How many rows were taken out of each fragment."""
    rejected: list[Mapping[str, Mapping[str, int]]] = field(default_factory=list)


def remove_rows(frame: DataFrame, rows: DatasetFragments) -> RemovedRows:
    """Take the rows at the addresses of a frame out of their fragments."""

    def run(group: pa.Table) -> pa.Table:
        return _remove_from_fragment(rows, group["addr"], {})

    removed = _by_fragment(frame).applyInArrow(run, _REMOVED_SCHEMA).collect()
    return _collect_removed(row.asDict() for row in removed)


def remove_addresses(addresses: npt.NDArray[np.int64], rows: DatasetFragments) -> RemovedRows:
    """Take rows out of their fragments in this process."""
    numbers = addresses >> 32
    groups = (addresses[numbers == number] for number in np.unique(numbers))
    made = (
        _remove_from_fragment(rows, pa.chunked_array([group]), {}).to_pylist() for group in groups
    )
    return _collect_removed(row for [row] in made)


def reject_rows(
    frame: DataFrame, rows: DatasetFragments, checks: Sequence[RowCheck], job: StagingJob
) -> RemovedRows:
    """Remove rows and write them to the rejects; `check` is the number of the failed check."""

    def run(group: pa.Table) -> pa.Table:
        violations: list[Violation] = []
        for place, check in enumerate(checks):
            found = group.filter(pc.equal(group["check"], place)).sort_by("at")
            if found.num_rows:
                names = found.select(["addr", "at", "other"]).to_pylist()
                violations += check.report(job.files, rows, [FaultyRow(**row) for row in names])
        fragment = group["fragment"][0].as_py()
        places = dict(zip(group["at"].to_pylist(), group["addr"].to_pylist(), strict=True))
        whole = take_rows(rows, list(places.values()), readable_columns(rows.shape))
        records = records_by_position(rows.shape, whole, places)
        write_rejects(
            job, RULE_REJECTS, f"{rows.shape.name}-{rows.version}-{fragment}", violations, records
        )
        first = first_by_position(violations)
        return _remove_from_fragment(rows, group["addr"], rejected_by_type(first.values()))

    removed = _by_fragment(frame).applyInArrow(run, _REMOVED_SCHEMA).collect()
    return _collect_removed(row.asDict() for row in removed)


def _by_fragment(frame: DataFrame) -> Any:  # noqa: ANN401 - a grouped frame
    return frame.selectExpr("*", "shiftright(addr, 32) AS fragment").groupBy("fragment")


def _remove_from_fragment(
    rows: DatasetFragments, addresses: pa.ChunkedArray, rejected: Mapping[str, Mapping[str, int]]
) -> pa.Table:
    numbers = addresses.unique().to_pylist()
    number = numbers[0] >> 32
    left = rows.open().get_fragment(number).delete_rows([n & _OFFSET for n in numbers])
    return pa.table(
        {
            "fragment": [number],
            "remaining": pa.array(
                [None if left is None else json.dumps(fragment_to_json(left))], pa.string()
            ),
            "gone": [len(numbers)],
            "rejected": [json.dumps(rejected)],
        }
    )


def _collect_removed(rows: Iterable[Mapping[str, Any]]) -> RemovedRows:
    taken = RemovedRows()
    for row in rows:
        if row["remaining"] is None:
            taken.emptied.append(row["fragment"])
        else:
            taken.left.append(fragment_from_json(json.loads(row["remaining"])))
        taken.rows += row["gone"]
        taken.gone[row["fragment"]] = row["gone"]
        taken.rejected.append(json.loads(row["rejected"]))
    return taken


def rows_after_removal(rows: DatasetFragments, taken: RemovedRows) -> DatasetFragments:
    """Return rows of the version from which some were taken."""
    if not taken.rows:
        return rows
    made = replace_fragments(rows.open(), taken.emptied, taken.left)
    sizes = {number: size for number, size in rows.sizes.items() if number not in taken.emptied}
    return replace(rows, version=int(made.version), sizes=sizes)
