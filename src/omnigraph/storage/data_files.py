"""Read single data files of a dataset, without a version that refers to them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from lance.file import LanceFileReader

from omnigraph.errors import GraphCorrupt
from omnigraph.storage.checksums import file_checksum, stated_checksum
from omnigraph.storage.error_translation import translate_errors
from omnigraph.storage.location import Location


def read_data_file(location: Location, path: str) -> pa.Table:
    """Return the rows of a data file, deleted ones included.

    Raise GraphCorrupt if it does not match the checksum in its name.
    """
    uri, stated = location.child(path), stated_checksum(path)
    with translate_errors(f"reading {path}"):
        if stated is not None and location.is_local and file_checksum(Path(uri)) != stated:
            raise GraphCorrupt(f"{path} is damaged: it does not match its checksum", file=path)
        options = None if location.is_local else dict(location.options)
        return LanceFileReader(uri, storage_options=options).read_all().to_table()
