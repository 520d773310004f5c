"""The text of an inferred schema, with the evidence for every type and property as comments."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from omnigraph.lang.format import format_schema
from omnigraph.write.inference.model import (
    InferredEdge,
    InferredNode,
    InferredProperty,
    InferredSchema,
    InferredType,
    UndecidedTable,
)

_HEAD = "// Inferred from data: check each comment, which says what a choice is based on."


def schema_text(schema: InferredSchema) -> str:
    """Return a schema in the canonical layout of `omnigraph fmt`."""
    lines = [_HEAD]
    for type_ in schema.types:
        lines += ["", *_type_lines(type_)]
    for table in schema.undecided:
        lines += ["", *_undecided_lines(table)]
    return format_schema("\n".join(lines) + "\n")


def _type_lines(type_: InferredType) -> Iterator[str]:
    yield from _comments([f"from {type_.table.label}", *type_.evidence, *type_.left_out])
    match type_:
        case InferredNode():
            yield f"node {type_.name} {{"
        case InferredEdge():
            for word, end in (("from", type_.src), ("to", type_.dst)):
                yield from _comments([f"{word} `{end.column}`: {end.evidence}"])
            key = " @key(src, dst)" if type_.is_keyed else ""
            yield f"edge {type_.name}: {type_.src.node} -> {type_.dst.node}{key} {{"
    for property_ in type_.properties:
        yield _property_line(property_)
    yield "}"


def _property_line(property_: InferredProperty) -> str:
    key = " @key" if property_.is_key else ""
    evidence = "; ".join(property_.evidence)
    comment = f" // {_one_line(evidence)}" if evidence else ""
    return f"  {property_.name}: {property_.type}{key}{comment}"


def _undecided_lines(table: UndecidedTable) -> Iterator[str]:
    yield from _comments([f"from {table.table.label}: the ends are not decided", *table.reasons])
    yield f"// edge {table.name}: FROM -> TO"


def _comments(texts: Iterable[str]) -> Iterator[str]:
    yield from (f"// {_one_line(text)}" for text in texts)


def _one_line(text: str) -> str:
    return " ".join(text.split())
