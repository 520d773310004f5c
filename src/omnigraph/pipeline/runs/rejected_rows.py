"""Read the rejected rows of a run, without Spark."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from omnigraph.commit.manifest import Manifest
from omnigraph.errors import GraphCorrupt, NotFound
from omnigraph.pipeline.runs.report import RunReport

_SUFFIX = ".ndjson"


def read_rejects(manifest: Manifest, folder: str, report: RunReport) -> Iterator[dict[str, Any]]:
    """Return the rejected rows of a run from `folder`, the folder of the graph for them.

    A folder that a pipeline file names is not read: the record of a run would decide which files
    a server opens.
    """
    if report.rejects is None:
        return iter(())
    if not report.rejects.endswith(f"/{folder}"):
        message = (
            f"the rejected rows of run {report.run} are not stored in the graph, but in "
            f"{report.rejects}: read them there"
        )
        raise NotFound(message, code="rejects_not_found", run=report.run)
    return _rows(manifest, folder)


def _rows(manifest: Manifest, folder: str) -> Iterator[dict[str, Any]]:
    names = sorted(info.path for info in manifest.objects.list(folder))
    for name in names:
        opened = manifest.objects.open(name) if name.endswith(_SUFFIX) else None
        if opened is not None:
            for line in _lines(opened[1]):
                yield _row(line, name)


def _lines(chunks: Iterator[bytes]) -> Iterator[bytes]:
    rest = b""
    for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        yield from filter(None, whole)
    if rest:
        yield rest


def _row(line: bytes, name: str) -> dict[str, Any]:
    try:
        row: dict[str, Any] = json.loads(line)
    except ValueError as error:
        raise GraphCorrupt(f"{name} has a line that is not JSON", cause=str(error)) from error
    return row
