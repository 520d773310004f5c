"""Check a pipeline against the types of a graph, before Spark is started."""

from __future__ import annotations

from collections.abc import Mapping

from omnigraph.catalog import Catalog, EdgeType, NodeType, TypeKind
from omnigraph.lang import Code, DiagnosticReport, did_you_mean
from omnigraph.pipeline.config.check_rules import resolve_checks
from omnigraph.pipeline.config.document import LocatedText
from omnigraph.pipeline.config.spec import EdgeEndpoint, Pipeline, PipelineError, TypeSpec


def check_types(pipeline: Pipeline, catalog: Catalog) -> None:
    """Raise PipelineError with everything that does not fit the types of a graph."""
    report_types(pipeline, catalog)
    if pipeline.report.errors:
        raise PipelineError(pipeline.report.sorted())


def report_types(pipeline: Pipeline, catalog: Catalog) -> None:
    """Add to the report of a pipeline what does not fit the types of a graph."""
    report = pipeline.report
    for spec in pipeline.types:
        type_ = type_of(spec, catalog)
        if type_ is None:
            message = f"the graph has no {spec.kind} type `{spec.name}`"
            hint = _type_hint(spec, catalog)
            report.add(Code.PIPELINE_UNKNOWN_TYPE, message, spec.name.span, hint=hint)
            continue
        _check_properties(report, spec, type_, partial=pipeline.partial)
        _check_id(report, spec, type_)
        _check_embed(report, spec, type_)
        _check_identity(report, spec, type_)
        if isinstance(type_, EdgeType):
            for word, end, name in (("from", spec.src, type_.src), ("to", spec.dst, type_.dst)):
                _check_endpoint(report, end, catalog.nodes[name], f"{word} of edge `{spec.name}`")
    resolve_checks(pipeline, catalog)


def type_of(spec: TypeSpec, catalog: Catalog) -> NodeType | EdgeType | None:
    """Return the type of a graph that a pipeline names."""
    if spec.kind is TypeKind.NODE:
        return catalog.nodes.get(spec.name.value)
    return catalog.edges.get(spec.name.value)


def _type_hint(spec: TypeSpec, catalog: Catalog) -> str | None:
    is_node = spec.kind is TypeKind.NODE
    known = list(catalog.nodes if is_node else catalog.edges)
    others = catalog.edges if is_node else catalog.nodes
    if spec.name.value in others:
        kind, place = ("an edge", "edges") if is_node else ("a node", "nodes")
        return f"it is {kind} type: declare it under `{place}`"
    return did_you_mean(spec.name.value, known)


def _check_properties(
    report: DiagnosticReport, spec: TypeSpec, type_: NodeType | EdgeType, *, partial: bool
) -> None:
    if spec.properties is None:
        return
    for name, _ in spec.properties.values():
        if name.value not in type_.properties:
            _unknown(report, name, spec, type_)
    key = type_.key
    for property_ in type_.properties.values():
        needed = property_.name in key or not (
            partial or property_.type.nullable or property_.embed is not None
        )
        if needed and property_.name not in spec.properties:
            why = "part of the key" if property_.name in key else "not nullable"
            message = f"{spec.kind} `{spec.name}`: `{property_.name}` is {why} and has no value"
            hint = f"add `{property_.name}: EXPRESSION` to `properties`"
            report.add(Code.PIPELINE_PROPERTY_MISSING, message, spec.name.span, hint=hint)


def _unknown(
    report: DiagnosticReport, name: LocatedText, spec: TypeSpec, type_: NodeType | EdgeType
) -> None:
    hint = did_you_mean(name.value, type_.properties)
    if name.value in ("from", "to", "src", "dst") and spec.kind is TypeKind.EDGE:
        word = {"src": "from", "dst": "to"}.get(name.value, name.value)
        hint = f"give `{word}` next to `properties`"
    elif name.value == "id":
        hint = "give `id` next to `properties`"
    message = f"{spec.kind} type `{spec.name}` has no property `{name}`"
    report.add(Code.PIPELINE_UNKNOWN_PROPERTY, message, name.span, hint=hint)


def _check_id(report: DiagnosticReport, spec: TypeSpec, type_: NodeType | EdgeType) -> None:
    key = type_.key
    if spec.id is not None and key:
        message = f"the id of {spec.kind} `{spec.name}` is derived from its key ({', '.join(key)})"
        hint = "remove `id`"
        report.add(Code.PIPELINE_ID_MISUSED, message, spec.id.span, hint=hint)


def _check_identity(report: DiagnosticReport, spec: TypeSpec, type_: NodeType | EdgeType) -> None:
    """Report deletes of entities that rows cannot name."""
    if type_.key or spec.id is not None or not (spec.operation or spec.delete_missing):
        return
    word = "operation" if spec.operation else "delete_missing"
    message = f"`{word}` of {spec.kind} `{spec.name}` needs a key or an id to find what to delete"
    hint = "declare a `@key` in the schema, or give `id: EXPRESSION`"
    report.add(Code.PIPELINE_ID_MISUSED, message, spec.name.span, hint=hint)


def _check_embed(report: DiagnosticReport, spec: TypeSpec, type_: NodeType | EdgeType) -> None:
    made = [name for name, p in type_.properties.items() if p.embed is not None]
    for name in spec.embed:
        if name.value not in type_.properties:
            _unknown(report, name, spec, type_)
        elif name.value not in made:
            message = f"`{name}` of {spec.kind} `{spec.name}` has no @embed: it cannot be embedded"
            hint = did_you_mean(name.value, made)
            report.add(Code.PIPELINE_EMBED_INVALID, message, name.span, hint=hint)


def _check_endpoint(report: DiagnosticReport, end: EdgeEndpoint, node: NodeType, what: str) -> None:
    if not isinstance(end, Mapping):
        return
    key = node.key
    for name, _ in end.values():
        if name.value not in key:
            message = f"`{what}`: `{name}` is not in the key of node `{node.name}`"
            hint = did_you_mean(name.value, key) if key else f"`{node.name}` has no key; give an id"
            report.add(Code.PIPELINE_ENDPOINT_INVALID, message, name.span, hint=hint)
    missing = [name for name in key if name not in end]
    if missing and end:
        message = f"`{what}` does not give {', '.join(missing)} of the key of node `{node.name}`"
        first = next(iter(end.values()))[0]
        report.add(Code.PIPELINE_ENDPOINT_INVALID, message, first.span)
