"""Write a pipeline file for an inferred schema."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from omnigraph.errors import InvalidInput
from omnigraph.write.inference import (
    InferredEdge,
    InferredProperty,
    InferredSchema,
    InferredType,
    InputFile,
    UndecidedTable,
)
from omnigraph.write.inference.names import split_words, unused_name

_PLAIN = re.compile(r"[A-Za-z_./][A-Za-z0-9_./-]*")
_YAML_WORDS = frozenset({"true", "false", "yes", "no", "on", "off", "null", "y", "n"})
_COLUMN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SQL_WORD_TEXT = """
all alter analyze and anti any array as asc at authorization between both by case cast check
collate column commit constraint create cross cube current current_catalog current_database
current_date current_schema current_time current_timestamp current_user date day default delete
desc describe distinct div drop else end escape except exists extract false fetch filter for
foreign from full function global grant group grouping having hour if in inner insert intersect
interval into is join lateral leading left like limit local localtimestamp map minus minute
month natural no not null of offset on only or order outer overlaps partition percent position
primary range references revoke right rlike row rows second select semi session_user set some
start struct table then time timestamp to trailing true truncate union unique unknown update
user using values when where window with within year
"""
_SQL_WORDS = frozenset(_SQL_WORD_TEXT.split())
"""Words that are quoted as columns: SQL reads them, or some of them, as something else."""


def pipeline_text(schema: InferredSchema, folder: Path, name: str) -> str:
    """Return a pipeline file, meant for a folder, that loads the tables of a schema.

    Raises:
        InvalidInput: a table is a file that pipelines do not read.
    """
    sources = _source_names(schema)
    lines = [
        "# Proposed from data; schema.pg has the types and the evidence for them.",
        "version: 1",
        f"name: {_yaml(name)}",
        "# graph: ./my-graph",
        "",
        "sources:",
        *(line for table, source in sources for line in _source_lines(table, source, folder)),
    ]
    by_label = {table.label: source for table, source in sources}
    for word, types in (("nodes", schema.nodes), ("edges", schema.edges)):
        if types:
            lines += ["", f"{word}:"]
        lines += [line for type_ in types for line in _type_lines(type_, by_label)]
    for table in schema.undecided:
        lines += ["", *_undecided_lines(table, folder)]
    lines += ["", "mode: merge", "on_violation: fail"]
    return "\n".join(lines) + "\n"


def _source_names(schema: InferredSchema) -> list[tuple[InputFile, str]]:
    found: dict[str, tuple[InputFile, str]] = {}
    for type_ in schema.types:
        table = type_.table
        if table.label not in found:
            words = "_".join(split_words(table.stem)) or "rows"
            name = f"_{words}" if words[0].isdigit() else words
            found[table.label] = (table, unused_name(name, {n for _, n in found.values()}))
    return list(found.values())


def _source_lines(table: InputFile, name: str, folder: Path) -> Iterator[str]:
    if table.kind in ("arrow", "memory"):
        message = f"pipelines do not read {table.label}: write it as Parquet"
        raise InvalidInput(message, code="input_unknown", file=table.label)
    yield f"  {name}:"
    yield f"    {table.kind}: {_yaml(_relative(table.label, folder))}"
    if table.delimiter != ",":
        yield f"    options: {{delimiter: {_yaml(table.delimiter)}}}"
    if table.encoding is not None:
        yield f"    encoding: {_yaml(table.encoding)}"


def _relative(address: str, folder: Path) -> str:
    """Return a path as it is meant from a folder."""
    if os.path.isabs(address):
        return address
    return Path(os.path.relpath(os.path.abspath(address), folder.resolve())).as_posix()


def _type_lines(type_: InferredType, sources: dict[str, str]) -> Iterator[str]:
    yield f"  {type_.name}:"
    for text in type_.left_out:
        yield f"    # {' '.join(text.split())}"
    yield f"    source: {sources[type_.table.label]}"
    if type_.id_column is not None:
        yield f"    id: {_expression(type_.id_column)}"
    if isinstance(type_, InferredEdge):
        yield f"    from: {_expression(type_.src.column)}"
        yield f"    to: {_expression(type_.dst.column)}"
        if type_.is_reference:
            yield f"    where: {_yaml(f'{_sql_name(type_.dst.column)} is not null')}"
    yield from _property_lines(type_.properties)


def _property_lines(properties: Sequence[InferredProperty]) -> Iterator[str]:
    if not properties:
        yield "    properties: {}"
        return
    yield "    properties:"
    for property_ in properties:
        yield f"      {_yaml(property_.name)}: {_expression(property_.column)}"


def _undecided_lines(table: UndecidedTable, folder: Path) -> Iterator[str]:
    file = _relative(table.table.label, folder)
    yield f"# {file} is not loaded; declare edge {table.name} first:"
    yield from (f"#   {' '.join(reason.split())}" for reason in table.reasons)


def _expression(column: str) -> str:
    return _yaml(_sql_name(column))


def _sql_name(column: str) -> str:
    if _COLUMN.fullmatch(column) and column.lower() not in _SQL_WORDS:
        return column
    return "`" + column.replace("`", "``") + "`"


def _yaml(text: str) -> str:
    """Return text as a YAML value of one line that no variable is put into."""
    if _PLAIN.fullmatch(text) and text.lower() not in _YAML_WORDS:
        return text
    return json.dumps(text.replace("${", "$${"), ensure_ascii=False)
