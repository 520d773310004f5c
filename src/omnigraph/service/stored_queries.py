"""Stored queries: named queries of `.gq` files, typed against a schema."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
from msgspec import UNSET

from omnigraph.catalog import Catalog
from omnigraph.errors import InvalidInput, NotFound, OmniError
from omnigraph.lang import Code, QueryError, report_for_text
from omnigraph.lang.query_parser import read_named_queries
from omnigraph.plan import MutationPlan, compile_query
from omnigraph.plan.query_plan import QueryPlan
from omnigraph.query.checks import CheckSeverity, QueryCheck, StateCheck
from omnigraph.service import wire


@dataclass(frozen=True, slots=True)
class StoredQueryFile:
    """A text with queries, its label in messages, and the name of one query if not all are used."""

    label: str
    text: str
    name: str | None = None


@dataclass(frozen=True, slots=True)
class StoredQuery:
    """A query that can be run by its name."""

    name: str
    source: str
    plan: QueryPlan

    @property
    def is_mutation(self) -> bool:
        """Return whether it changes data."""
        return isinstance(self.plan, MutationPlan)

    def entry(self) -> wire.QueryCatalogEntry:
        """Return its line of the catalog."""
        facts = [parameter.to_json() for parameter in self.plan.parameters]
        return wire.QueryCatalogEntry(
            name=self.name,
            tool_name=self.name,
            description=self.plan.description or UNSET,
            instruction=self.plan.instruction or UNSET,
            mutation=self.is_mutation,
            params=msgspec.convert(facts, list[wire.ParamDescriptor]),
        )


@dataclass(frozen=True, slots=True)
class StoredQueries:
    """The stored queries of a graph, by name."""

    queries: Mapping[str, StoredQuery] = field(default_factory=dict)
    declared: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Checks of a cluster file, each with its severity and perhaps its message."""

    def get(self, name: str) -> StoredQuery:
        """Return a query by name."""
        if name not in self.queries:
            raise unknown_query()
        return self.queries[name]

    @property
    def checks(self) -> tuple[StateCheck, ...]:
        """The queries with `@check`, and those a cluster file lists: they must return no rows."""
        return tuple(
            self._check(stored)
            for name, stored in sorted(self.queries.items())
            if (stored.plan.check is not None or name in self.declared) and not stored.is_mutation
        )

    def _check(self, stored: StoredQuery) -> StateCheck:
        facts = self.declared.get(stored.name, {})
        rule = QueryCheck(stored.source, stored.name, facts.get("message", stored.plan.check))
        return StateCheck(stored.name, rule, CheckSeverity(facts.get("severity", "fail")))


class StoredQueriesInvalid(InvalidInput):
    """Stored queries were refused; the message lists every reason."""

    def __init__(self, problems: list[str]) -> None:
        message = "\n".join(["stored queries are refused:", *(f"  {p}" for p in problems)])
        super().__init__(message, code="stored_queries_invalid", problems=problems)


def unknown_query() -> NotFound:
    """Return the error for a query that does not exist, or that the caller may not run."""
    return NotFound("stored query not found", code="stored_query_not_found")


def compile_stored_queries(
    texts: Iterable[StoredQueryFile],
    catalog: Catalog,
    checks: Mapping[str, Mapping[str, str]] | None = None,
) -> StoredQueries:
    """Type every query against a schema; raise with every error of any of them.

    `checks` are those of a cluster file, by the name of their query.
    """
    stored: dict[str, StoredQuery] = {}
    problems: list[str] = []
    for text in texts:
        try:
            names = [text.name] if text.name is not None else _query_names(text)
        except OmniError as error:
            problems.append(f"{text.label}: {error.message}")
            continue
        for name in names:
            if name in stored:
                problems.append(f"{text.label}: another stored query is called '{name}'")
                continue
            try:
                plan = compile_query(catalog, text.text, name, source_name=text.label)
                is_check = plan.check is not None or name in (checks or {})
                problem = why_not_a_check(plan) if is_check else None
                if problem is not None:
                    problems.append(f"{text.label}: {problem}")
                stored[name] = StoredQuery(name, text.text, plan)
            except OmniError as error:
                problems.append(f"{text.label}: {error.message}")
    if problems:
        raise StoredQueriesInvalid(problems)
    return StoredQueries(stored, checks or {})


def why_not_a_check(plan: QueryPlan) -> str | None:
    """Return why a query cannot be a check, None if it can."""
    if isinstance(plan, MutationPlan):
        return f"`{plan.name}` cannot be a check: it changes data"
    if any(not parameter.type.nullable for parameter in plan.parameters):
        return f"`{plan.name}` cannot be a check: it has a parameter that must be given"
    return None


def read_query_files(folder: Path) -> list[StoredQueryFile]:
    """Return the `.gq` files of a folder, by name."""
    if not folder.is_dir():
        message = f"there is no folder {folder} with stored queries"
        raise InvalidInput(message, code="stored_queries_missing")
    try:
        files = sorted(folder.glob("*.gq"))
        return [StoredQueryFile(path.name, path.read_text(encoding="utf-8")) for path in files]
    except (OSError, UnicodeDecodeError) as error:
        message = f"cannot read the stored queries in {folder}: {error}"
        raise InvalidInput(message, code="stored_queries_unreadable") from error


def _query_names(text: StoredQueryFile) -> list[str]:
    report = report_for_text(text.text, text.label, Code.QUERY_UNREADABLE)
    tree = read_named_queries(report)
    if report.errors:
        raise QueryError(report.sorted())
    return [query.name.text for query in tree.queries]
