"""This module sets aside rows of files that cannot be read, and shows what was set aside.

Rows that break a rule of the schema are set aside where they are validated; both end in one folder,
a JSON object a line.
"""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from pyspark.sql import functions as F

from omnigraph.errors import writing_file
from omnigraph.pipeline.extract import Extracted, quoted
from omnigraph.pipeline.model import FILE, ROW
from omnigraph.pipeline.prepare import Prepared
from omnigraph.pipeline.text_files import CORRUPT, REASON
from omnigraph.storage import Objects
from omnigraph.storage.location import locate
from omnigraph.write.rejected import json_line
from omnigraph.write.violations import (
    MAX_LISTED,
    Place,
    Rule,
    ValidationFailed,
    Violation,
    shown_value,
)

_MAX_LINE = 1024 * 1024
_UNREADABLE = "unreadable-"
_FOLDED = 64 * 1024 * 1024


def refuse_unreadable(ready: Prepared) -> None:
    """Raise ValidationFailed when files have rows that cannot be read."""
    if not ready.broken:
        return
    found = (
        violation
        for source in ready.opened
        if source.broken
        for violation, _ in _unreadable(ready, source, MAX_LISTED)
    )
    raise ValidationFailed(list(islice(found, MAX_LISTED)), Counter({Rule.SYNTAX: ready.broken}))


def keep_unreadable(ready: Prepared, folder: str, options: Mapping[str, str]) -> None:
    """Write rows that cannot be read into the folder of rejects; `options` reach its storage."""
    objects = Objects(locate(folder, options))
    for source in ready.opened:
        if not source.broken:
            continue
        with tempfile.SpooledTemporaryFile(max_size=_FOLDED) as file:
            for violation, text in _unreadable(ready, source):
                with writing_file(tempfile.gettempdir()):
                    file.write(json_line({**violation.to_json(), "row": text}))
            file.seek(0)
            objects.put_file(f"{_UNREADABLE}{source.spec.name}.ndjson", file)


def clear_unreadable(folder: str, options: Mapping[str, str]) -> None:
    """Remove the unreadable rows that an earlier attempt of the same run wrote."""
    objects = Objects(locate(folder, options))
    found = [info.path for info in objects.list("")]
    objects.delete([path for path in found if path.startswith(_UNREADABLE)])


def _unreadable(
    ready: Prepared, source: Extracted, limit: int | None = None
) -> Iterator[tuple[Violation, str]]:
    broken = source.frame.where(F.col(quoted(CORRUPT)).isNotNull())
    rows = broken.select(*map(quoted, (CORRUPT, REASON, FILE, ROW)))
    rows = rows.sort(quoted(FILE), quoted(ROW))
    for text, reason, file, number in (
        rows if limit is None else rows.limit(limit)
    ).toLocalIterator():
        name, unit = ready.sources.files[file]
        place = Place(name, number, unit)
        violation = Violation(
            rule=Rule.SYNTAX, message=reason, value=shown_value(text), source=place
        )
        yield violation, text


def examples(
    folder: str | None, limit: int, options: Mapping[str, str]
) -> Sequence[dict[str, Any]]:
    """Return the first of the rows that were set aside; `options` reach their storage."""
    if folder is None:
        return []
    objects = Objects(locate(folder, options))
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
