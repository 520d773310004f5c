"""Resolve the checks of a pipeline against the types of a graph."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from omnigraph.catalog import Catalog, EdgeType, NodeType, Property, TypeKind
from omnigraph.lang import Code, QueryError, did_you_mean
from omnigraph.pipeline.config.check_spec import CheckSpec
from omnigraph.pipeline.config.spec import Pipeline
from omnigraph.plan import ReadPlan, compile_query
from omnigraph.query.checks import (
    FRESHNESS_SCALARS,
    AcceptedValuesCheck,
    CheckRule,
    FreshnessCheck,
    QueryCheck,
    RowCountCheck,
    StateCheck,
)
from omnigraph.types.arrow import to_column
from omnigraph.write.coercion import CoercionRules, coerce_value

_TEXT = CoercionRules(text=True)


class _Unresolved(Exception):
    """A check that does not fit the graph; the message says why."""


def resolve_checks(pipeline: Pipeline, catalog: Catalog) -> tuple[StateCheck, ...]:
    """Return the checks of a pipeline; what does not fit the graph goes into its report."""
    return tuple(_resolved(pipeline, catalog))


def _resolved(pipeline: Pipeline, catalog: Catalog) -> Iterator[StateCheck]:
    for spec in pipeline.checks:
        try:
            rule = _rule(pipeline, spec, catalog)
        except _Unresolved as error:
            message = f"check `{spec.name}`: {error}"
            pipeline.report.add(Code.PIPELINE_CHECK, message, spec.given.span)
        else:
            yield StateCheck(spec.name.value, rule, spec.severity)


def _rule(pipeline: Pipeline, spec: CheckSpec, catalog: Catalog) -> CheckRule:
    match spec.kind:
        case "query":
            return _query(pipeline, spec, catalog)
        case "row_count":
            return RowCountCheck(_table_key(spec.given.value, catalog), spec.minimum, spec.maximum)
    key, property_ = _property(spec.given.value, catalog)
    where = f"`{spec.given}` is {property_.type}"
    if spec.kind == "freshness":
        if property_.type.scalar not in FRESHNESS_SCALARS or property_.type.is_list:
            raise _Unresolved(f"{where}, not Date or DateTime")
        assert spec.within is not None, "a check without it is not kept"
        return FreshnessCheck(key, property_.name, spec.within)
    return AcceptedValuesCheck(key, property_.name, _values(spec, property_, where))


def _query(pipeline: Pipeline, spec: CheckSpec, catalog: Catalog) -> QueryCheck:
    name = None if spec.query is None else spec.query.value
    try:
        text = Path(pipeline.address(spec.given.value)).read_text(encoding="utf-8")
        plan = compile_query(catalog, text, name, source_name=spec.given.value)
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise _Unresolved(f"cannot read {spec.given}: {reason}") from error
    except QueryError as error:
        raise _Unresolved(f"{spec.given}: {error.diagnostics[0].message}") from error
    if not isinstance(plan, ReadPlan):
        raise _Unresolved(f"query `{plan.name}` changes data")
    if plan.parameters:
        raise _Unresolved(f"query `{plan.name}` has parameters, which a check cannot give")
    return QueryCheck(text, plan.name)


def _values(spec: CheckSpec, property_: Property, where: str) -> pa.Array:
    type_ = property_.type
    if type_.is_list or not type_.orderable:
        raise _Unresolved(f"{where}, whose values cannot be listed")
    values = []
    for text in spec.values:
        try:
            values.append(coerce_value(type_, text.value, _TEXT))
        except ValueError as error:
            raise _Unresolved(f"{where}: {error}") from error
    return to_column(values, type_)


def _table_key(name: str, catalog: Catalog) -> str:
    """Return `node:T` or `edge:E` of a type given so, or by its name."""
    word, colon, rest = name.partition(":")
    known = {
        **{f"{TypeKind.NODE}:{one}": one for one in catalog.nodes},
        **{f"{TypeKind.EDGE}:{one}": one for one in catalog.edges},
    }
    found = [name] if name in known else [key for key, one in known.items() if one == name]
    if len(found) > 1:
        raise _Unresolved(f"`{name}` is a node type and an edge type: write `node:{name}`")
    if not found:
        hint = did_you_mean(rest if colon else word, known.values())
        raise _Unresolved(f"the graph has no type `{name}`: {hint}")
    return found[0]


def _property(text: str, catalog: Catalog) -> tuple[str, Property]:
    name, dot, property_name = text.rpartition(".")
    if not dot:
        raise _Unresolved(f"`{text}` is not a property: write `Type.property`")
    key = _table_key(name, catalog)
    kind, _, bare = key.partition(":")
    types: NodeType | EdgeType = (
        catalog.nodes[bare] if kind == TypeKind.NODE else catalog.edges[bare]
    )
    property_ = types.properties.get(property_name)
    if property_ is None:
        hint = did_you_mean(property_name, types.properties)
        raise _Unresolved(f"{bare} has no property `{property_name}`: {hint}")
    return key, property_
