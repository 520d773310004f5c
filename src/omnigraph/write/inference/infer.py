"""Infer the types of a graph from tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from omnigraph.errors import InvalidInput
from omnigraph.write.inference.column_profile import rows_text, shown
from omnigraph.write.inference.input_tables import InputFile
from omnigraph.write.inference.model import (
    InferredEdge,
    InferredEndpoint,
    InferredNode,
    InferredProperty,
    InferredSchema,
    UndecidedTable,
)
from omnigraph.write.inference.names import (
    ID_COLUMN,
    property_name,
    reference_words,
    split_words,
    type_name,
)
from omnigraph.write.inference.references import (
    Reference,
    References,
    chosen_keys,
    find_references,
)
from omnigraph.write.inference.tables import (
    Table,
    find_keys,
    pairs_repeat,
    read_table,
    unused_type_names,
)
from omnigraph.write.inference.value_sets import ValueSets, value_sets

_RESERVED = {"node": {"id"}, "edge": {"id", "src", "dst", "from", "to"}}
"""Names that a property may not have: those of the id and the ends."""


def infer_schema(files: Sequence[InputFile]) -> InferredSchema:
    """Return the types that tables have; the same files give the same types.

    Raises:
        InvalidInput: lists the files that cannot be read, or why there is no type at all.
    """
    tables = _read_tables(files)
    with value_sets() as sets:
        for table in tables:
            find_keys(table, sets)
        found = find_references(tables, sets)
        schema = _Proposal(found, chosen_keys(found), sets).schema()
    if not schema.types:
        raise InvalidInput("; ".join(schema.warnings), code="inference_undecided")
    return schema


def _read_tables(files: Sequence[InputFile]) -> list[Table]:
    tables, problems = [], []
    for file in files:
        try:
            tables.append(read_table(file))
        except InvalidInput as error:
            problems.append(error.message)
    names = [file.named for file in files if file.named is not None]
    problems += [
        f"two inputs are given the type {name}"
        for name in sorted(set(names))
        if names.count(name) > 1
    ]
    if problems:
        raise InvalidInput("; ".join(problems), code="input_unreadable")
    return tables


class _Proposal:
    """Builds the types of tables whose references and keys are known."""

    def __init__(self, found: References, keys: Mapping[int, str], sets: ValueSets) -> None:
        self._found, self._keys, self._sets = found, keys, sets
        self._refuse_other_keys()
        wanted = [self._wanted_name(number) for number in range(len(found.tables))]
        references = [
            (number, one)
            for number, references in sorted(found.named.items())
            if number in keys and number in found.nodes
            for one in references
            if self._keys.get(one.target) == one.key
        ]
        for number, named in found.named.items():
            for one in named:
                if (number, one) not in references:
                    where = f"`{one.key}` of {found.tables[one.target].file.label}"
                    note = f"all values are in {where}; an edge needs keys of both types"
                    found.tables[number].notes[one.column].append(note)
        names = unused_type_names(
            [*wanted, *(self._reference_name(wanted[n], one) for n, one in references)]
        )
        self._names = names[: len(wanted)]
        self._references = [
            (number, one, name)
            for (number, one), name in zip(references, names[len(wanted) :], strict=True)
        ]

    def _refuse_other_keys(self) -> None:
        """Leave edges undecided that refer to another column than the key of their nodes."""
        for number, ends in list(self._found.ends.items()):
            reasons = [
                f"`{end.column}` refers to `{end.key}` of {table.file.label}, whose key is `{key}`"
                for end in ends
                for table in [self._found.tables[end.target]]
                for key in [self._keys.get(end.target)]
                if key != end.key
            ]
            if reasons:
                del self._found.ends[number]
                self._found.undecided[number] = reasons

    def _wanted_name(self, number: int) -> str:
        table = self._found.tables[number]
        if table.file.named is not None:
            return table.file.named
        is_node = number in self._found.nodes
        return type_name(table.words if is_node else split_words(table.file.stem) or table.words)

    def _reference_name(self, owner: str, reference: Reference) -> str:
        return type_name([owner, *reference_words(reference.column)])

    def schema(self) -> InferredSchema:
        """Return all types."""
        found = self._found
        edges = [self._edge(number) for number in sorted(found.ends)]
        edges += [self._reference_edge(*reference) for reference in self._references]
        return InferredSchema(
            nodes=tuple(self._node(number) for number in found.nodes),
            edges=tuple(edges),
            undecided=tuple(
                UndecidedTable(
                    name=self._names[number],
                    table=found.tables[number].file,
                    reasons=tuple(reasons),
                )
                for number, reasons in sorted(found.undecided.items())
            ),
        )

    def _node(self, number: int) -> InferredNode:
        table, key = self._found.tables[number], self._keys.get(number)
        is_id = key is not None and split_words(key) == [ID_COLUMN]
        references = [one.column for n, one, _ in self._references if n == number]
        properties, left_out = self._properties(
            table, "node", without=[*references, *([key] if is_id and key else [])], key=key
        )
        return InferredNode(
            name=self._names[number],
            table=table.file,
            properties=properties,
            id_column=key if is_id else None,
            evidence=tuple(_key_evidence(table, key, is_id=is_id)),
            left_out=left_out,
        )

    def _edge(self, number: int) -> InferredEdge:
        table, ends = self._found.tables[number], self._found.ends[number]
        pair = (ends[0].column, ends[1].column)
        id_column = next((name for name in table.keys if split_words(name) == [ID_COLUMN]), None)
        repeated = None if id_column else pairs_repeat(table, pair, self._sets)
        without = [*pair, *([id_column] if id_column else [])]
        properties, left_out = self._properties(table, "edge", without=without)
        evidence = []
        if id_column is not None:
            evidence.append(
                f"ids are the values of `{id_column}`, unique in {rows_text(table.rows)}"
            )
        elif repeated is None:
            evidence.append(f"no two of {rows_text(table.rows)} have the same ends")
        else:
            evidence.append(
                f"several rows have the ends {shown(repeated)}, so ids are generated and a "
                "repeated load adds the edges again"
            )
        return InferredEdge(
            name=self._names[number],
            table=table.file,
            src=self._endpoint(ends[0]),
            dst=self._endpoint(ends[1]),
            properties=properties,
            id_column=id_column,
            is_keyed=id_column is None and repeated is None,
            evidence=tuple(evidence),
            left_out=left_out,
        )

    def _reference_edge(self, number: int, reference: Reference, name: str) -> InferredEdge:
        table = self._found.tables[number]
        own = self._keys[number]
        nulls = table.columns[reference.column].nulls
        return InferredEdge(
            name=name,
            table=table.file,
            src=InferredEndpoint(column=own, node=self._names[number], evidence="its key"),
            dst=self._endpoint(reference),
            is_keyed=True,
            is_reference=True,
            evidence=(f"null in {rows_text(nulls)} without an edge",) if nulls else (),
        )

    def _endpoint(self, reference: Reference) -> InferredEndpoint:
        node = self._names[reference.target]
        return InferredEndpoint(column=reference.column, node=node, evidence=reference.evidence)

    def _properties(
        self, table: Table, kind: str, *, without: Sequence[str], key: str | None = None
    ) -> tuple[tuple[InferredProperty, ...], tuple[str, ...]]:
        taken = set(_RESERVED[kind])
        properties, left_out = [], []
        for number, (column, type_) in enumerate(table.types.items(), start=1):
            notes = table.notes[column]
            if column in without:
                continue
            if type_ is None:
                left_out.append(f"column `{column}` is left out: {'; '.join(notes)}")
                continue
            name = property_name(column, taken, number)
            taken.add(name)
            if name != column:
                notes = [f"column {shown(column)}", *notes]
            if column in table.keys and column != key and table.is_named_key(column):
                notes = [*notes, f"unique in {rows_text(table.rows)}"]
            properties.append(
                InferredProperty(
                    name=name,
                    column=column,
                    type=type_,
                    evidence=tuple(notes),
                    is_key=column == key,
                )
            )
        return tuple(properties), tuple(left_out)


def _key_evidence(table: Table, key: str | None, *, is_id: bool) -> list[str]:
    if key is not None:
        what = "ids are the values of" if is_id else "the key is"
        return [f"{what} `{key}`, unique and never null in {rows_text(table.rows)}"]
    unnamed = ", ".join(f"`{name}`" for name in table.keys)
    hint = f"; unique, but not named like a key: {unnamed}" if unnamed else ""
    return [f"no key, so ids are generated and a repeated load adds the nodes again{hint}"]
