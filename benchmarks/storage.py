"""Benchmarks of the storage core, each against the bare Lance work it contains, in one run.

Graphs live in a temporary folder. A ratio is taken per round, so that a busy machine slows both
sides of it.
"""

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import lance
import pyarrow as pa
from lance.fragment import write_fragments

import omnigraph.graph as og
from omnigraph.commit.lineage_maintenance import VERSIONS_KEPT, VERSIONS_PER_REMOVAL
from omnigraph.commit.publish import publish
from omnigraph.commit.staged_commit import StagedCommit, StagedDataset, new_commit_id
from omnigraph.storage.file_sync import fsync_path
from omnigraph.storage.layout import dataset_path, version_file
from tests.support import staging
from tests.support.history import grow

ROUNDS = 5
SCHEMA = "node Note { text: String }"
NOTE = "node:Note"
COMMITS = 10_000


def commits_of_one_row() -> Iterator[dict[str, object]]:
    """Stage and publish one row, maintenance included, against bare staging and a bare commit.

    Without syncs, and with them: then the bare commit syncs as many new files and folders.
    """
    yield _commit_of_one_row("commit of one row / bare Lance", "relaxed", _no_syncs)
    name = "durable commit of one row / bare Lance with the same syncs"
    yield _commit_of_one_row(name, "full", _sync_like_a_commit)


def _commit_of_one_row(
    name: str, durability: str, sync: Callable[[Path, str], None]
) -> dict[str, object]:
    with temporary_folder() as folder:
        graph = og.init(folder / "graph", SCHEMA, durability=durability)
        row = _rows(graph)
        bare = [lance.write_dataset(row.schema.empty_table(), folder / "bare")]

        def ours() -> None:
            _append(graph, row)

        def theirs() -> None:
            staged = write_fragments(row, bare[0], mode="append", return_transaction=True)
            bare[0] = lance.LanceDataset.commit(bare[0], staged)
            [fragment] = staged.operation.fragments
            sync(folder / "bare", f"data/{fragment.files[0].path}")
            sync(folder / "bare", version_file(bare[0].version))

        # Three rounds of maintenance, each due every 16th commit or so.
        return _ratio(name, ours, theirs, 48, 1.6)


def _no_syncs(_dataset: Path, _name: str) -> None:
    """Leave the files to the operating system, as Lance does."""


def _sync_like_a_commit(dataset: Path, name: str) -> None:
    """Sync a new file and its folder, and a small one in place of a file of the manifest."""
    file = dataset / name
    beside = dataset.with_name(f"beside-{file.parent.name}") / file.name
    beside.parent.mkdir(exist_ok=True)
    beside.write_bytes(bytes(range(256)) * 12)
    for path in (file, file.parent, beside, beside.parent):
        fsync_path(path)


def open_of_100_types() -> dict[str, object]:
    """Open a graph of 100 types against opening one dataset, both knowing nothing yet."""
    nodes = [f"node N{i} {{ name: String  size: I32? }}" for i in range(60)]
    edges = [f"edge E{i}: N{i} -> N{i + 1} {{ weight: F64? }}" for i in range(40)]
    with temporary_folder() as folder:
        og.init(folder / "graph", "\n".join([*nodes, *edges]))
        lance.write_dataset(pa.table({"id": ["a"], "text": ["x"]}), folder / "bare")

        def ours() -> None:
            og.open(folder / "graph", "ro")

        def theirs() -> None:
            lance.dataset(folder / "bare", session=lance.Session())

        return _ratio("open of 100 types / of one dataset", ours, theirs, 40, 5.0)


def branch_of_a_long_history() -> dict[str, object]:
    """Create a branch at 10,000 commits against one at one commit.

    The long history has the rows of 10,000 commits, but as many manifest versions as publishers
    leave at most, once those of the last minute are old: they forget the others.
    """
    with temporary_folder() as folder:
        short, long = (og.init(folder / name, SCHEMA) for name in ("short", "long"))
        grow(long, NOTE, COMMITS, versions=VERSIONS_KEPT + VERSIONS_PER_REMOVAL)
        _append(long, _rows(long))  # the newest fragment is a small one, as after any commit
        names = count()

        def branch(graph: og.Graph) -> Callable[[], None]:
            return lambda: graph.branches.create(f"b{next(names)}") and None

        name = f"branch at {COMMITS:,} commits / at one"
        return _ratio(name, branch(long), branch(short), 8, 1.0)


def _rows(graph: og.Graph) -> pa.Table:
    """Return one row to append, whose ID is not checked."""
    with graph._manifest.reading(NOTE, graph.snapshot().entry(NOTE)) as handle:
        return pa.table([["n"], ["text"]], schema=handle.schema)


def _append(graph: og.Graph, rows: pa.Table) -> None:
    manifest, snapshot = graph._manifest, graph.snapshot()
    entry = snapshot.entry(NOTE)
    with manifest.reading(NOTE, entry) as base:
        made = staging.append(base, rows)
    manifest.datasets.keep(dataset_path("node", *entry.key), made)
    physical = int(made.version)
    change = StagedDataset(NOTE, *entry.key, entry.physical, physical, entry.rows + len(rows))
    staged = StagedCommit(
        id=new_commit_id(),
        operation="load",
        datasets=(change,),
        read_schema=snapshot.head.schema_hash,
    )
    publish(manifest.main, "main", staged)


def _ratio(
    name: str, ours: Callable[[], None], theirs: Callable[[], None], times: int, budget: float
) -> dict[str, object]:
    """Do both in turn; take the ratio of what each needed altogether, round by round."""
    ratios = []
    for _ in range(ROUNDS + 1):
        spent = [0.0, 0.0]
        for _ in range(times):
            for side, work in enumerate((ours, theirs)):
                before = time.perf_counter()
                work()
                spent[side] += time.perf_counter() - before
        ratios.append(spent[0] / spent[1])
    del ratios[0]  # the first round warms up
    best, median = round(min(ratios), 2), round(statistics.median(ratios), 2)
    return {"name": name, "best": best, "median": median, "unit": "times", "budget": budget}


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Give a folder that goes away again."""
    with tempfile.TemporaryDirectory(prefix="omnigraph-bench-") as name:
        yield Path(name)
