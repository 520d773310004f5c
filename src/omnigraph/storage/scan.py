"""Read rows and blobs of a version of a dataset."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from lance import LanceDataset

from omnigraph.errors import GraphCorrupt
from omnigraph.storage.error_translation import translate_errors
from omnigraph.storage.layout import is_blob
from omnigraph.storage.row_lookup import ROW_ADDRESS, sql_text

BLOB_BATCH = 64
EXTERNAL_BLOB = 3
"""The Lance kind of a blob that is stored as a URI only."""


def find_row(handle: LanceDataset, id_: str, columns: Sequence[str]) -> pa.Table:
    """Return the row of an ID with its address, or no row; blobs are descriptors."""
    with translate_errors("reading an entity"):
        return handle.to_table(
            columns=list(columns), filter=f"id = {sql_text(id_)}", with_row_address=True
        )


def scan(
    handle: LanceDataset,
    columns: Sequence[str],
    *,
    by_id: bool = False,
    where: str | None = None,
    fragments: Sequence[int] | None = None,
    batch_rows: int | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield rows with their addresses, optionally sorted by ID; blobs are descriptors.

    `where` is a filter and `fragments` are the fragments to read; by default all rows.
    """
    with translate_errors("reading a dataset"):
        chosen = [f for f in handle.get_fragments() if f.fragment_id in (fragments or ())]
        scanner = handle.scanner(
            columns=list(columns),
            blob_handling="blobs_descriptions",
            filter=where,
            fragments=None if fragments is None else chosen,
            order_by=["id"] if by_id else None,
            with_row_address=True,
            batch_size=batch_rows,
        )
        yield from scanner.to_batches()


def decode_rows(handle: LanceDataset, fragment: int) -> Iterator[None]:
    """Decode every value of one fragment, including blobs; yield after each batch."""
    blobs = [field.name for field in handle.schema if is_blob(field)]
    for batch in scan(handle, handle.schema.names, fragments=[fragment]):
        with translate_errors("reading a dataset"):
            batch.validate(full=True)
        for column in blobs:
            for _ in read_blobs(handle, column, batch):
                pass
        yield


def fragment_rows(handle: LanceDataset) -> dict[int, int]:
    """Return the number of live rows of each fragment, by fragment number."""
    with translate_errors("reading a dataset"):
        return {fragment.fragment_id: fragment.count_rows() for fragment in handle.get_fragments()}


def group_fragments(rows: Mapping[int, int], at_least: int) -> list[list[int]]:
    """Group fragments so that every group except the last has at least `at_least` rows.

    >>> group_fragments({0: 10, 1: 500, 2: 7, 3: 8, 4: 1}, 15)
    [[0, 1], [2, 3], [4]]
    """
    groups: list[list[int]] = []
    missing = 0
    for fragment, count in rows.items():
        if missing <= 0:
            groups.append([])
            missing = at_least
        groups[-1].append(fragment)
        missing -= count
    return groups


def count_ids(handle: LanceDataset) -> tuple[int, int]:
    """Read every ID; return the number of rows and of distinct IDs."""
    with translate_errors("reading ids"):
        ids = handle.to_table(columns=["id"])["id"]
    return len(ids), int(pc.count_distinct(ids).as_py())


def read_fragment_ids(handle: LanceDataset, fragment: int) -> Iterator[pa.Array]:
    """Yield the IDs of one fragment in batches."""
    with translate_errors("reading ids"):
        chosen = [f for f in handle.get_fragments() if f.fragment_id == fragment]
        for batch in handle.scanner(columns=["id"], fragments=chosen).to_batches():
            yield batch.column(0)


@dataclass(frozen=True, slots=True)
class BlobCell:
    """The location of a blob: `size` bytes in the dataset, or a URI."""

    size: int
    uri: str | None
    address: int


def blob_cell(rows: pa.Table, column: str) -> BlobCell | None:
    """Return the blob in the row that `find_row` returned, or None if it is null."""
    cell = rows[column][0].as_py()
    address = rows[ROW_ADDRESS][0].as_py()
    if cell is None:
        return None
    uri = cell["blob_uri"] if cell["kind"] == EXTERNAL_BLOB else None
    return BlobCell(size=cell["size"], uri=uri, address=address)


def read_blobs(
    handle: LanceDataset, column: str, rows: pa.RecordBatch
) -> Iterator[bytes | str | None]:
    """Yield the blobs of scanned rows: stored bytes, the URI of external ones, None for null."""
    cells, addresses = rows[column].to_pylist(), rows[ROW_ADDRESS].to_pylist()
    for start in range(0, len(cells), BLOB_BATCH):
        part = list(zip(cells, addresses, strict=True))[start : start + BLOB_BATCH]
        stored = [
            address for cell, address in part if cell is not None and cell["kind"] != EXTERNAL_BLOB
        ]
        with translate_errors("reading blobs"):
            contents = dict(handle.read_blobs(column, addresses=stored) if stored else [])
        for cell, address in part:
            is_external = cell is not None and cell["kind"] == EXTERNAL_BLOB
            yield cell["blob_uri"] if is_external else contents.get(address)


def read_blob(handle: LanceDataset, column: str, cell: BlobCell, start: int, length: int) -> bytes:
    """Return a byte range of a stored blob."""
    if not length:
        return b""
    with translate_errors("reading a blob"):
        [(_, _, data)] = handle.read_blob_ranges(
            column, [(cell.address, start, length)], selector="addresses"
        )
    if data is None or len(data) != length:
        raise GraphCorrupt(f"a blob is shorter than its {cell.size} bytes")
    return bytes(data)
