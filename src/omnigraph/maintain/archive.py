"""This module puts a whole graph into one file, and makes a graph of such a file.

Without history the file holds the schema and the entities of one state. With history it holds every
object of the graph: all branches, tags, commits and what they show. Derived files are left out.
"""

from __future__ import annotations

import io
import json
import tarfile
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from omnigraph.catalog import TypeKind
from omnigraph.commit.graph_creation import create_graph, open_graph
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.model import MAIN, Snapshot
from omnigraph.errors import (
    AlreadyExists,
    GraphCorrupt,
    InvalidInput,
    NotFound,
    translate_disk_errors,
)
from omnigraph.maintain.export import export_lines
from omnigraph.maintain.verify import verify
from omnigraph.storage import ObjectStore
from omnigraph.storage.layout import BRANCHES, MANIFEST
from omnigraph.version import __version__
from omnigraph.write.committed_state import CommittedState
from omnigraph.write.embedding_models import vector_properties
from omnigraph.write.load import LoadOptions, WriteMode, load
from omnigraph.write.request import WriteRequest

ARCHIVE_FORMAT = 1
ABOUT, SCHEMA, DATA, GRAPH = "omnigraph.json", "schema.pg", "data.ndjson", "graph/"
_FOLDERS = ("nodes", "edges", BRANCHES, MANIFEST)
_VERSIONS_FOLDER = "_versions/"


@dataclass(frozen=True, slots=True)
class ArchiveReport:
    """What an archive holds."""

    path: str
    history: bool
    commit_id: str
    bytes: int
    entities: int | None = None

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {
            "path": self.path,
            "history": self.history,
            "graph_commit_id": self.commit_id,
            "bytes": self.bytes,
            "entities": self.entities,
        }


def write_archive(
    manifest: Manifest, snapshot: Snapshot, path: Path, *, history: bool
) -> ArchiveReport:
    """Write a graph, or one state of it, into a new file; `.gz` at its end compresses it."""
    if path.exists():
        raise AlreadyExists(f"{path} exists already", code="archive_exists", path=str(path))
    about = {
        "format": ARCHIVE_FORMAT,
        "history": history,
        "graph_commit_id": snapshot.commit_id,
        "omnigraph": __version__,
        "embedding_models": {} if history else _embedding_models(manifest, snapshot),
    }
    partial = path.with_name(f".{path.name}.tmp")
    try:
        entities: int | None = None
        with translate_disk_errors(path):
            with _open_archive(partial, compressed=path.suffix == ".gz") as archive:
                _add_member(archive, ABOUT, json.dumps(about).encode())
                if history:
                    _write_objects(manifest.objects, archive)
                else:
                    entities = _write_state(manifest, snapshot, archive)
            partial.rename(path)
    finally:
        partial.unlink(missing_ok=True)
    size = path.stat().st_size
    return ArchiveReport(str(path), history, snapshot.commit_id, size, entities)


def _open_archive(path: Path, *, compressed: bool) -> tarfile.TarFile:
    return tarfile.open(str(path), "w|gz") if compressed else tarfile.open(str(path), "w|")


def _write_objects(objects: ObjectStore, archive: tarfile.TarFile) -> None:
    """Write all objects; what a version refers to is listed after the version, so it is there."""
    versions = [
        i for f in (BRANCHES, MANIFEST) for i in objects.list(f) if _VERSIONS_FOLDER in i.path
    ]
    others = [
        info
        for folder in _FOLDERS
        for info in objects.list(folder)
        if folder in ("nodes", "edges") or _VERSIONS_FOLDER not in info.path
    ]
    # The graph is there once main's versions are, so they come last.
    versions.sort(key=lambda info: info.path.startswith(f"{MANIFEST}/"))
    for info in (*others, *versions):
        found = objects.open(info.path)
        if found is None:
            continue  # removed by upkeep: nothing that is listed needs it any more
        size, chunks = found
        header = tarfile.TarInfo(GRAPH + info.path)
        header.size = size
        archive.addfile(header, _ArchiveMemberReader(chunks))


def _embedding_models(manifest: Manifest, snapshot: Snapshot) -> dict[str, str]:
    """Return the recorded models of vectors by `Type.property`."""
    committed, found = CommittedState(manifest, snapshot), {}
    for kind in (TypeKind.NODE, TypeKind.EDGE):
        for type_ in snapshot.schema.of_kind(kind):
            shape = committed.row_schema(kind, type_.name)
            for property_ in vector_properties(shape):
                model = committed.view(shape).embedding_model(property_.name)
                if model is not None:
                    found[f"{type_.name}.{property_.name}"] = model
    return found


def _write_state(manifest: Manifest, snapshot: Snapshot, archive: tarfile.TarFile) -> int:
    _add_member(archive, SCHEMA, snapshot.schema_source.encode())
    count = 0
    with translate_disk_errors(tempfile.gettempdir()), tempfile.TemporaryFile() as lines:
        for line in export_lines(manifest, snapshot):
            lines.write(line.encode() + b"\n")
            count += 1
        header = tarfile.TarInfo(DATA)
        header.size = lines.tell()
        lines.seek(0)
        archive.addfile(header, lines)
    return count


def _add_member(archive: tarfile.TarFile, name: str, data: bytes) -> None:
    header = tarfile.TarInfo(name)
    header.size = len(data)
    archive.addfile(header, io.BytesIO(data))


class _ArchiveMemberReader(io.RawIOBase):
    """Bytes that come in pieces, as a file to be read once."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = iter(chunks)
        self._left = b""

    def read(self, size: int = -1) -> bytes:
        """Return exactly so many bytes, fewer only at the end."""
        parts, wanted = [self._left], size - len(self._left)
        while wanted > 0 or size < 0:
            chunk = next(self._chunks, None)
            if chunk is None:
                break
            parts.append(chunk)
            wanted -= len(chunk)
        data = b"".join(parts)
        self._left = data[size:] if size >= 0 else b""
        return data[:size] if size >= 0 else data


def read_archive(manifest: Manifest, path: Path, *, actor: str | None = None) -> ArchiveReport:
    """Make a graph of an archive at an address that has none, and verify it."""
    try:
        open_graph(manifest)
    except NotFound:
        pass
    else:
        message = f"a graph already exists at {manifest.location}"
        raise AlreadyExists(message, code="already_initialized")
    try:
        with tarfile.open(str(path), "r|*") as archive:
            about = _read_about(archive, path)
            entities = _restore(manifest, archive, about, actor)
    except (tarfile.TarError, EOFError, OSError) as error:
        raise _unreadable_error(path, str(error)) from error
    found = verify(manifest)
    if not found.ok:
        problem = next(p for p in found.problems if not p.harmless)
        raise GraphCorrupt(f"the imported graph is damaged: {problem.where}: {problem.message}")
    commit_id = manifest.main.state().head.commit_id
    return ArchiveReport(str(path), about["history"], commit_id, path.stat().st_size, entities)


def _read_about(archive: tarfile.TarFile, path: Path) -> dict[str, Any]:
    first = archive.next()
    file = archive.extractfile(first) if first is not None and first.name == ABOUT else None
    if file is None:
        raise _unreadable_error(path, "it does not begin with omnigraph.json")
    about: dict[str, Any] = json.loads(file.read())
    if about.get("format") != ARCHIVE_FORMAT:
        raise _unreadable_error(
            path, f"its format is {about.get('format')}, this version reads {ARCHIVE_FORMAT}"
        )
    return about


def _restore(
    manifest: Manifest, archive: tarfile.TarFile, about: dict[str, Any], actor: str | None
) -> int | None:
    schema = ""
    entities: int | None = None
    for name, file in _members(archive):
        if about["history"] and name.startswith(GRAPH):
            manifest.objects.put_file(name.removeprefix(GRAPH), file)
        elif name == SCHEMA:
            schema = file.read().decode()
            create_graph(manifest, schema, actor=actor)
        elif name == DATA:
            models = about.get("embedding_models")
            request = WriteRequest(
                branch=MAIN, operation="load", actor=actor, message="import", vectors_from=models
            )
            with tempfile.NamedTemporaryFile(suffix=".ndjson") as lines:
                while block := file.read(1 << 20):
                    with translate_disk_errors(lines.name):
                        lines.write(block)
                with translate_disk_errors(lines.name):
                    lines.flush()
                options = LoadOptions(mode=WriteMode.APPEND)
                made = load(manifest, request, lines.name, options)
                entities = made.total
    return entities


def _members(archive: tarfile.TarFile) -> Iterator[tuple[str, BinaryIO]]:
    while (member := archive.next()) is not None:
        file = archive.extractfile(member)
        if file is not None and ".." not in Path(member.name).parts:
            yield member.name, file  # type: ignore[misc]


def _unreadable_error(path: Path, why: str) -> InvalidInput:
    message = f"{path} is no archive of a graph: {why}"
    return InvalidInput(message, code="archive_unreadable", path=str(path))
