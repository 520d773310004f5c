"""Read checks from query files without a server: queries with `@check` must return no rows."""

from __future__ import annotations

import os
from pathlib import Path

from omnigraph.errors import InvalidInput
from omnigraph.lang import Code, QueryError, report_for_text
from omnigraph.lang.query_parser import read_named_queries
from omnigraph.query.checks import QueryCheck, StateCheck
from omnigraph.service.stored_queries import StoredQueryFile, read_query_files


def read_checks(path: str | os.PathLike[str]) -> tuple[StateCheck, ...]:
    """Return the checks in a `.gq` file, or in the files of a folder.

    Raises:
        QueryError: a file cannot be read as queries.
        InvalidInput: two checks have one name, or the path does not exist.
    """
    checks: dict[str, StateCheck] = {}
    for file in _files(Path(path)):
        report = report_for_text(file.text, file.label, Code.QUERY_UNREADABLE)
        tree = read_named_queries(report)
        if report.errors:
            raise QueryError(report.sorted())
        for query in tree.queries:
            texts = [a.text for a in query.annotations if a.name.text == "check"]
            name = query.name.text
            if texts and name in checks:
                message = f"{file.label}: another check is called '{name}'"
                raise InvalidInput(message, code="stored_queries_invalid", problems=[message])
            if texts:
                checks[name] = StateCheck(name, QueryCheck(file.text, name, texts[0]))
    return tuple(checks.values())


def _files(path: Path) -> list[StoredQueryFile]:
    if path.is_dir() or not path.suffix:
        return read_query_files(path)
    try:
        return [StoredQueryFile(path.name, path.read_text(encoding="utf-8"))]
    except (OSError, UnicodeDecodeError) as error:
        message = f"cannot read the checks in {path}: {error}"
        raise InvalidInput(message, code="stored_queries_unreadable") from error
