"""Checks of a snapshot, which may be one that is staged and not visible yet.

A check finds what should not be: rows of a query, a number of entities out of its bounds, data that
is too old, values that are not accepted. Pipelines run checks before they publish.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from itertools import chain, islice
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog import TypeKind
from omnigraph.commit.model import Snapshot
from omnigraph.dataset_view.version_reader import DatasetView
from omnigraph.errors import Category, NotFound, OmniError
from omnigraph.notebook.reviews import checks_html
from omnigraph.plan import ReadPlan
from omnigraph.plan.describe import describe_operation
from omnigraph.plan.expressions import Binding, PropertyRef
from omnigraph.plan.operators import AntiJoin, PlanOperator, operator_inputs
from omnigraph.query.engine import Engine, QuerySettings
from omnigraph.types import PropertyType, Scalar
from omnigraph.types.arrow import to_json, to_values
from omnigraph.types.duration import format_duration

MAX_FINDINGS = 20
"""Rows of one check that are kept; all are counted."""


class CheckSeverity(StrEnum):
    """What a finding means: a note, or that the state must not become visible."""

    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class QueryCheck:
    """A query that must return no rows."""

    text: str
    query: str | None = None
    message: str | None = None
    """What a finding means."""


@dataclass(frozen=True, slots=True)
class RowCountCheck:
    """A type, `node:T` or `edge:E`, must have a number of entities."""

    table_key: str
    minimum: int | None = None
    maximum: int | None = None


@dataclass(frozen=True, slots=True)
class FreshnessCheck:
    """The newest value of a Date or DateTime property must not be older than a duration."""

    table_key: str
    property: str
    within: timedelta


@dataclass(frozen=True, slots=True)
class AcceptedValuesCheck:
    """Every value of a property must be one of some; null is accepted."""

    table_key: str
    property: str
    values: pa.Array


CheckRule: TypeAlias = QueryCheck | RowCountCheck | FreshnessCheck | AcceptedValuesCheck


@dataclass(frozen=True, slots=True)
class StateCheck:
    """A named check and what its findings mean."""

    name: str
    rule: CheckRule
    severity: CheckSeverity = CheckSeverity.FAIL


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """What a check found: how many rows, the first of them, and their entities."""

    name: str
    severity: CheckSeverity
    message: str
    count: int = 0
    rows: Sequence[Mapping[str, Any]] = ()
    entities: Sequence[Mapping[str, str]] = ()
    """Each with `kind`, `type` and `id`, in the order of the rows."""
    row_entities: Sequence[Sequence[Mapping[str, str]]] = field(
        default=(), repr=False, compare=False
    )
    """The entities of each row, not part of the wire form: an optional one may be missing."""

    @property
    def is_passed(self) -> bool:
        """Whether nothing was found."""
        return not self.count

    @property
    def is_failed(self) -> bool:
        """Whether what was found must not become visible."""
        return bool(self.count) and self.severity is CheckSeverity.FAIL

    @classmethod
    def from_json(cls, facts: Mapping[str, Any]) -> CheckResult:
        """Read the wire form."""
        members = {name: value for name, value in facts.items() if name != "passed"}
        return cls(**{**members, "severity": CheckSeverity(facts["severity"])})

    def to_json(self) -> dict[str, Any]:
        """Return the wire form."""
        return {
            "name": self.name,
            "severity": str(self.severity),
            "passed": self.is_passed,
            "message": self.message,
            "count": self.count,
            "rows": [dict(row) for row in self.rows],
            "entities": [dict(entity) for entity in self.entities],
        }

    def _repr_html_(self) -> str:
        return checks_html([self.to_json()])


class ChecksFailed(OmniError):
    """Checks found what must not become visible; nothing was published."""

    def __init__(self, results: Sequence[CheckResult]) -> None:
        failed = [result for result in results if result.is_failed]
        lines = "; ".join(f"{result.name}: {result.message}" for result in failed)
        verb = "check failed" if len(failed) == 1 else "checks failed"
        super().__init__(
            f"{len(failed)} {verb}, nothing was published: {lines}",
            code="checks_failed",
            category=Category.INVALID,
            details={"checks": [result.to_json() for result in results]},
        )


def run_checks(
    engine: Engine,
    snapshot: Snapshot,
    checks: Iterable[StateCheck],
    now: datetime | None = None,
    timeout: float | None = None,
) -> list[CheckResult]:
    """Return the result of each check on a snapshot; `now` is what freshness is measured by.

    A query may take `timeout` seconds.
    """
    moment, settings = now or datetime.now(UTC), QuerySettings(timeout=timeout)
    return [_run(engine, snapshot, check, moment, settings) for check in checks]


def run_every_check(
    engine: Engine, snapshot: Snapshot, checks: Iterable[StateCheck]
) -> list[CheckResult]:
    """Return the result of each check on a snapshot; one that cannot run fails, with the reason."""
    results = list[CheckResult]()
    for check in checks:
        try:
            results += run_checks(engine, snapshot, [check])
        except OmniError as error:
            results.append(error_result(check, error))
    return results


COULD_NOT_RUN = "the check could not run: "


def error_result(check: StateCheck, error: OmniError) -> CheckResult:
    """Return the result of a check that cannot run: it fails, whatever its severity.

    Raises:
        OmniError: the storage or the caller is the reason, not the check.
    """
    if error.category in (Category.UNAVAILABLE, Category.INTERNAL):
        raise error
    message = f"{COULD_NOT_RUN}{error.message}"
    return CheckResult(name=check.name, severity=CheckSeverity.FAIL, message=message, count=1)


def types_read(engine: Engine, snapshot: Snapshot, check: StateCheck) -> tuple[str, ...]:
    """Return the types that a check reads, as `node:T` or `edge:E`; if unclear, all of them."""
    if not isinstance(check.rule, QueryCheck):
        return (check.rule.table_key,)
    plan = engine.plan(snapshot, check.rule.text, check.rule.query)
    described = describe_operation(plan, snapshot.catalog)["reads"]
    read = {f"{one['kind']}:{one['type_name']}" for one in described}
    known = set(snapshot.entries())
    return tuple(sorted(read if read <= known else known))


def _run(
    engine: Engine, snapshot: Snapshot, check: StateCheck, now: datetime, settings: QuerySettings
) -> CheckResult:
    match check.rule:
        case QueryCheck() as rule:
            return _run_query(engine, snapshot, check, rule, settings)
        case RowCountCheck() as rule:
            return _run_row_count(snapshot, check, rule)
        case FreshnessCheck() as rule:
            return _run_freshness(engine, snapshot, check, rule, now)
        case AcceptedValuesCheck() as rule:
            return _run_accepted_values(engine, snapshot, check, rule)


def _result(
    check: StateCheck,
    message: str,
    count: int,
    rows: Sequence[Mapping[str, Any]] = (),
    entities: Sequence[Sequence[Mapping[str, str]]] = (),
) -> CheckResult:
    """Return what a check found, with the entities of each row."""
    return CheckResult(
        name=check.name,
        severity=check.severity,
        message=message,
        count=count,
        rows=rows,
        entities=list(chain.from_iterable(entities)),
        row_entities=entities,
    )


# --- queries -----------------------------------------------------------------------------------


def _run_query(
    engine: Engine,
    snapshot: Snapshot,
    check: StateCheck,
    rule: QueryCheck,
    settings: QuerySettings,
) -> CheckResult:
    stream = engine.stream(snapshot, rule.text, None, rule.query, settings)
    rows = list(islice(stream, MAX_FINDINGS)) if stream.row_count else []
    columns = _entity_columns(engine.plan(snapshot, rule.text, rule.query))
    entities = [
        [
            {"kind": str(binding.kind), "type": binding.type_name, "id": row[name]}
            for name, bindings in columns.items()
            if row[name] is not None
            and (binding := _binding_of(engine, snapshot, bindings, row[name])) is not None
        ]
        for row in rows
    ]
    count = stream.row_count
    what = "returned no rows" if not count else f"returned {_rows_text(count)}"
    message = rule.message if rule.message and count else f"query '{stream.name}' {what}"
    return _result(check, message, count, rows=rows, entities=entities)


def _entity_columns(plan: ReadPlan) -> dict[str, set[Binding]]:
    """Return the columns of a result that are ids of entities, with the types these may have."""
    bindings: dict[str, set[Binding]] = {}
    for name, binding in _bindings(plan.root):
        bindings.setdefault(name, set()).add(binding)
    return {
        column.name: bindings[column.expression.variable]
        for column in plan.columns
        if isinstance(column.expression, PropertyRef)
        and column.expression.property == "id"
        and column.expression.variable in bindings
    }


def _binding_of(
    engine: Engine, snapshot: Snapshot, bindings: set[Binding], id_: str
) -> Binding | None:
    """Return the binding with the type of an entity; None if nodes of several types have its id."""
    if len(bindings) > 1:
        tables = (
            (b, engine.store.table(snapshot, TypeKind(b.kind), b.type_name)) for b in bindings
        )
        bindings = {binding for binding, table in tables if len(table.position_of(id_))}
    return next(iter(bindings)) if len(bindings) == 1 else None


def _bindings(operator: PlanOperator) -> Iterable[tuple[str, Binding]]:
    """Yield the variables of a plan; those of a negation are not part of its rows."""
    variables: Mapping[str, Binding] = getattr(operator, "variables", {})
    yield from variables.items()
    inputs = operator_inputs(operator)
    for source in inputs[:1] if isinstance(operator, AntiJoin) else inputs:
        yield from _bindings(source)


# --- types -------------------------------------------------------------------------------------


def _run_row_count(snapshot: Snapshot, check: StateCheck, rule: RowCountCheck) -> CheckResult:
    count = snapshot.entry(rule.table_key).rows
    low, high = rule.minimum, rule.maximum
    is_low, is_high = low is not None and count < low, high is not None and count > high
    message = f"{_type_name(rule.table_key)} has {_rows_text(count, 'entity', 'entities')}"
    if is_low:
        message += f", fewer than {low:,}"
    if is_high:
        message += f", more than {high:,}"
    found = is_low or is_high
    return _result(check, message, int(found), rows=[{"entities": count}] if found else ())


def _run_freshness(
    engine: Engine, snapshot: Snapshot, check: StateCheck, rule: FreshnessCheck, now: datetime
) -> CheckResult:
    view, type_ = _view(engine, snapshot, rule)
    newest = None
    for batch in view.scan([rule.property]):
        largest = pc.max(batch.column(0))
        [value] = to_values(pa.array([largest], largest.type), type_)
        newest = value if newest is None or (value is not None and value > newest) else newest
    where = f"{_type_name(rule.table_key)}.{rule.property}"
    within = format_duration(rule.within)
    if newest is None:
        return _result(check, f"{where} has no value", 1, rows=[{"newest": None}])
    is_date = not isinstance(newest, datetime)
    moment = datetime(newest.year, newest.month, newest.day, tzinfo=UTC) if is_date else newest
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    text = newest.isoformat()
    is_old = moment < now - rule.within
    message = f"the newest {where} is {text}" + (f", older than {within}" if is_old else "")
    return _result(check, message, int(is_old), rows=[{"newest": text}] if is_old else ())


def _run_accepted_values(
    engine: Engine, snapshot: Snapshot, check: StateCheck, rule: AcceptedValuesCheck
) -> CheckResult:
    view, type_ = _view(engine, snapshot, rule)
    kind, _, name = rule.table_key.partition(":")
    count, rows, entities = 0, list[dict[str, Any]](), list[list[dict[str, str]]]()
    for batch in view.scan(["id", rule.property]):
        values = batch.column(1).cast(rule.values.type)
        is_other = pc.and_(pc.is_valid(values), pc.invert(pc.is_in(values, value_set=rule.values)))
        found = batch.select([0, 1]).filter(is_other)
        count += found.num_rows
        few = found.slice(0, MAX_FINDINGS - len(rows))
        for id_, value in zip(
            few.column(0).to_pylist(), to_json(few.column(1), type_), strict=True
        ):
            rows.append({"id": id_, rule.property: value})
            entities.append([{"kind": kind, "type": name, "id": id_}])
    where = f"{name}.{rule.property}"
    message = f"{where}: {_rows_text(count, 'value')} not accepted"
    return _result(check, message, count, rows=rows, entities=entities)


def _view(
    engine: Engine, snapshot: Snapshot, rule: FreshnessCheck | AcceptedValuesCheck
) -> tuple[DatasetView, PropertyType]:
    """Return a type and the type of its property; raise NotFound for what is not visible."""
    entry = snapshot.entry(rule.table_key)
    type_ = snapshot.type_of(rule.table_key)
    property_ = type_.definition.properties.get(rule.property)
    if property_ is None:
        message = f"{_type_name(rule.table_key)} has no property `{rule.property}`"
        raise NotFound(message, code="unknown_property", property=rule.property)
    return DatasetView(engine.manifest, type_, entry), property_.type


def _type_name(table_key: str) -> str:
    return table_key.partition(":")[2]


def _rows_text(count: int, noun: str = "row", plural: str | None = None) -> str:
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


FRESHNESS_SCALARS = (Scalar.DATE, Scalar.DATE_TIME)
"""The types of properties whose newest value says how fresh data is."""
