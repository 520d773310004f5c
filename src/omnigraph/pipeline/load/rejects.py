"""Write rows of files that cannot be read to the rejects folder, and show rejected rows.

Rows that break a rule of the schema are rejected where they are validated; both are written to one
folder, as one JSON object per line.
"""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from pyspark.sql import functions as F

from omnigraph.errors import translate_disk_errors
from omnigraph.pipeline.load.model import FILE, ROW
from omnigraph.pipeline.sources.extract import SourceFrame, quote_identifier
from omnigraph.pipeline.sources.prepare import PreparedPipeline
from omnigraph.pipeline.sources.text_files import CORRUPT, REASON
from omnigraph.storage import ObjectStore
from omnigraph.storage.location import locate
from omnigraph.write.rejected_rows import to_json_line
from omnigraph.write.violations import (
    MAX_LISTED,
    InputLocation,
    ValidationFailed,
    Violation,
    ViolationRule,
    abbreviate_value,
)

_MAX_LINE = 1024 * 1024
_UNREADABLE = "unreadable-"
_FOLDED = 64 * 1024 * 1024


def refuse_unreadable(ready: PreparedPipeline) -> None:
    """Raise ValidationFailed when files have rows that cannot be read."""
    if not ready.broken:
        return
    found = (
        violation
        for source in ready.opened
        if source.broken
        for violation, _ in _unreadable(ready, source, MAX_LISTED)
    )
    raise ValidationFailed(
        list(islice(found, MAX_LISTED)), Counter({ViolationRule.SYNTAX: ready.broken})
    )


def keep_unreadable(ready: PreparedPipeline, folder: str, options: Mapping[str, str]) -> None:
    """Write rows that cannot be read into the folder of rejects; `options` reach its storage."""
    objects = ObjectStore(locate(folder, options))
    for source in ready.opened:
        if not source.broken:
            continue
        with tempfile.SpooledTemporaryFile(max_size=_FOLDED) as file:
            for violation, text in _unreadable(ready, source):
                with translate_disk_errors(tempfile.gettempdir()):
                    file.write(to_json_line({**violation.to_json(), "row": text}))
            file.seek(0)
            objects.put_file(f"{_UNREADABLE}{source.spec.name}.ndjson", file)


def clear_unreadable(folder: str, options: Mapping[str, str]) -> None:
    """Remove the unreadable rows that an earlier attempt of the same run wrote."""
    objects = ObjectStore(locate(folder, options))
    found = [info.path for info in objects.list("")]
    objects.delete([path for path in found if path.startswith(_UNREADABLE)])


def _unreadable(
    ready: PreparedPipeline, source: SourceFrame, limit: int | None = None
) -> Iterator[tuple[Violation, str]]:
    broken = source.frame.where(F.col(quote_identifier(CORRUPT)).isNotNull())
    rows = broken.select(*map(quote_identifier, (CORRUPT, REASON, FILE, ROW)))
    rows = rows.sort(quote_identifier(FILE), quote_identifier(ROW))
    for text, reason, file, number in (
        rows if limit is None else rows.limit(limit)
    ).toLocalIterator():
        name, unit = ready.sources.files[file]
        place = InputLocation(name, number, unit)
        violation = Violation(
            rule=ViolationRule.SYNTAX, message=reason, value=abbreviate_value(text), source=place
        )
        yield violation, text


def reject_examples(
    folder: str | None, limit: int, options: Mapping[str, str]
) -> Sequence[dict[str, Any]]:
    """Return the first of the rows that were set aside; `options` reach their storage."""
    if folder is None:
        return []
    objects = ObjectStore(locate(folder, options))
    found: list[dict[str, Any]] = []
    for info in sorted(objects.list(""), key=lambda info: info.path):
        opened = objects.open(info.path) if info.path.endswith(".ndjson") else None
        if opened is not None:
            found += (json.loads(line) for line in islice(_lines(opened[1]), limit - len(found)))
        if len(found) >= limit:
            break
    return found


def _lines(pieces: Iterator[bytes]) -> Iterator[bytes]:
    rest = b""
    for piece in pieces:
        *whole, rest = (rest + piece).split(b"\n")
        yield from filter(None, whole)
        if len(rest) > _MAX_LINE:
            return
    if rest:
        yield rest
