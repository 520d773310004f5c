"""Write a graph to an archive file, and create a graph from an archive.

Without history the file holds the schema and the entities of one snapshot. With history it holds
every object of the graph: all branches, tags, commits and their data. Derived files are excluded.
"""

from __future__ import annotations

import io
import json
import tarfile
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Literal

from omnigraph.commit.graph_creation import create_graph, open_graph
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.model import MAIN, Snapshot
from omnigraph.dataset_view import DatasetView
from omnigraph.errors import (
    AlreadyExists,
    GraphCorrupt,
    InvalidInput,
    NotFound,
    translate_disk_errors,
)
from omnigraph.maintain.export import export_lines
from omnigraph.maintain.verify import verify
from omnigraph.notebook.display import ReportDisplay
from omnigraph.storage import ObjectStore
from omnigraph.storage.layout import BRANCHES, MANIFEST, PROPOSALS, version_hint
from omnigraph.version import __version__
from omnigraph.write.inputs.byte_streams import chunks_as_file
from omnigraph.write.load import LoadOptions, WriteMode, load
from omnigraph.write.request import WriteRequest

ARCHIVE_FORMAT = 1
ABOUT, SCHEMA, DATA, GRAPH = "omnigraph.json", "schema.pg", "data.ndjson", "graph/"
_FOLDERS = ("nodes", "edges", BRANCHES, PROPOSALS, MANIFEST)
_VERSIONS_FOLDER = "_versions/"


@dataclass(frozen=True, slots=True)
class ArchiveReport(ReportDisplay):
    """The content of an archive."""

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
    """Write a graph, or one snapshot of it, to a new file; the suffix `.gz` compresses it."""
    if path.exists():
        raise AlreadyExists(f"{path} already exists", code="archive_exists", path=str(path))
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
            mode: Literal["w|gz", "w|"] = "w|gz" if path.suffix == ".gz" else "w|"
            with tarfile.open(str(partial), mode) as archive:
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


def _write_objects(objects: ObjectStore, archive: tarfile.TarFile) -> None:
    """Write all objects; files are listed after the versions that refer to them."""
    versions = [
        info
        for folder in (BRANCHES, PROPOSALS, MANIFEST)
        for info in objects.list(folder)
        # A hint may name a version that is newer than those listed.
        if _VERSIONS_FOLDER in info.path and not info.path.endswith(version_hint(""))
    ]
    others = [
        info
        for folder in _FOLDERS
        for info in objects.list(folder)
        if folder in ("nodes", "edges") or _VERSIONS_FOLDER not in info.path
    ]
    # A graph exists once a version of main exists, so they are written last, the newest first.
    versions.sort(key=lambda info: (info.path.startswith(f"{MANIFEST}/"), info.path))
    for info in (*others, *versions):
        content = objects.open(info.path)
        if content is None:
            continue  # removed by maintenance: no listed version needs it
        size, chunks = content
        header = tarfile.TarInfo(GRAPH + info.path)
        header.size = size
        archive.addfile(header, chunks_as_file(chunks))


def _embedding_models(manifest: Manifest, snapshot: Snapshot) -> dict[str, str]:
    """Return the recorded models of vectors by `Type.property`."""
    return {
        f"{type_.name}.{name}": model
        for type_ in snapshot.types()
        for name, model in DatasetView.of(manifest, snapshot, type_).embedding_models().items()
        if model is not None
    }


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


def read_archive(manifest: Manifest, path: Path, *, actor: str | None = None) -> ArchiveReport:
    """Create a graph from an archive and verify it; there must be no graph at its URI."""
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
            manifest.objects.files.sync_tree(Path(manifest.location.uri))
    except (tarfile.TarError, EOFError, OSError) as error:
        raise _unreadable_error(path, str(error)) from error
    report = verify(manifest)
    if not report.ok:
        problem = next(p for p in report.problems if not p.harmless)
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
    schema, files_end = "", False
    entities: int | None = None
    for name, file in _members(archive):
        if about["history"] and name.startswith(GRAPH):
            path = name.removeprefix(GRAPH)
            if not path.startswith(f"{MANIFEST}/{_VERSIONS_FOLDER}"):
                manifest.objects.put_file(path, file)
                continue
            if not files_end:
                manifest.objects.files.sync_tree(Path(manifest.location.uri))
                files_end = True
            manifest.objects.put(path, file.read())
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
                entities = load(manifest, request, lines.name, options).total
    return entities


def _members(archive: tarfile.TarFile) -> Iterator[tuple[str, BinaryIO]]:
    while (member := archive.next()) is not None:
        file = archive.extractfile(member)
        if file is not None and ".." not in Path(member.name).parts:
            yield member.name, file  # type: ignore[misc]


def _unreadable_error(path: Path, why: str) -> InvalidInput:
    message = f"{path} is not a graph archive: {why}"
    return InvalidInput(message, code="archive_unreadable", path=str(path))
