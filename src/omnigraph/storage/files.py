"""This module says which files a version of a dataset is made of."""

from __future__ import annotations

from lance import LanceDataset

from omnigraph.storage.faults import translated

_DETACHED = 1 << 63
_LATEST_FIRST = (1 << 64) - 1


def version_file(version: int) -> str:
    """Return the path of a version's manifest below its dataset."""
    if version >= _DETACHED:
        return f"_versions/d{version}.manifest"
    return f"_versions/{_LATEST_FIRST - version:020d}.manifest"


def version_of(path: str) -> int | None:
    """Return the version a path below a dataset is the manifest of, None when it is another file.

    Detached versions, which have no order, count as other files.
    """
    name = path.removeprefix("_versions/").removesuffix(".manifest")
    if not name.isdigit() or version_file(_LATEST_FIRST - int(name)) != path:
        return None
    return _LATEST_FIRST - int(name)


def referenced_files(handle: LanceDataset) -> set[str]:
    """Return the data and deletion files of a version, below its dataset."""
    with translated("listing the files of a version"):
        found = {version_file(int(handle.version))}
        for fragment in handle.get_fragments():
            found |= {f"data/{file.path}" for file in fragment.metadata.files}
            deletions = fragment.deletion_file()
            if deletions is not None:
                found.add(deletions)
        return found


def shows_same(one: LanceDataset, other: LanceDataset) -> bool:
    """Tell whether two versions are made of the same data and deletion files."""
    files = [referenced_files(h) - {version_file(int(h.version))} for h in (one, other)]
    return files[0] == files[1]


def referenced_folders(handle: LanceDataset) -> set[str]:
    """Return the folders a version needs whole, below its dataset: indexes and large blobs.

    Blobs too large for a data file stand in a folder of their own, named like the data file.
    """
    with translated("listing the folders of a version"):
        segments = [segment for index in handle.describe_indices() for segment in index.segments]
        indexes = {f"_indices/{segment.uuid}/" for segment in segments}
        files = [file.path for f in handle.get_fragments() for file in f.metadata.files]
        return indexes | {f"data/{path.removesuffix('.lance')}/" for path in files}
