"""The inputs of an inference: their columns, and the sets of values that are compared."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import InvalidInput
from omnigraph.types import PropertyType
from omnigraph.write.inference.column_profile import (
    ColumnProfile,
    column_type,
    holds_id_values,
    key_texts_of,
    profile_table,
)
from omnigraph.write.inference.input_tables import InputFile
from omnigraph.write.inference.names import key_rank, singular, split_words
from omnigraph.write.inference.value_sets import ValueSet, ValueSets

MAX_KEY_CANDIDATES = 16
"""Columns of one table that are checked for uniqueness; those named like a key come first."""
_UNNAMED = 1_000


@dataclass(slots=True)
class Table:
    """One input: its columns with their types, and the columns that could be its key."""

    file: InputFile
    words: list[str]
    columns: dict[str, ColumnProfile]
    types: dict[str, PropertyType | None]
    notes: dict[str, list[str]]
    keys: dict[str, ValueSet] = field(default_factory=dict)
    """Columns that are never null and without repetition, those named like a key first."""

    @property
    def rows(self) -> int:
        """How many rows it has."""
        return max((profile.rows for profile in self.columns.values()), default=0)

    def rank(self, column: str) -> int:
        """Return how much a column is named like the key of this table; less is more."""
        rank = key_rank(column, self.words)
        return _UNNAMED if rank is None else rank

    def is_named_key(self, column: str) -> bool:
        """Return whether a column is named like a key."""
        return self.rank(column) < _UNNAMED

    @property
    def id_columns(self) -> list[str]:
        """The columns whose values may be ids of nodes."""
        return [
            name
            for name, type_ in self.types.items()
            if holds_id_values(type_) and self.columns[name].values
        ]


def read_table(file: InputFile) -> Table:
    """Profile an input."""
    columns = {profile.name: profile for profile in profile_table(file)}
    if not columns:
        message = f"{file.label} has neither columns nor rows"
        raise InvalidInput(message, code="input_unreadable", file=file.label)
    decided = {name: column_type(profile) for name, profile in columns.items()}
    return Table(
        file=file,
        words=singular(split_words(file.named or file.stem)) or ["row"],
        columns=columns,
        types={name: type_ for name, (type_, _) in decided.items()},
        notes={name: notes for name, (_, notes) in decided.items()},
    )


def find_keys(table: Table, sets: ValueSets) -> None:
    """Find the columns that are unique and never null, by comparing all values."""
    candidates = [
        name
        for name in table.id_columns
        if not table.columns[name].nulls and table.columns[name].repeats is None
    ]
    candidates.sort(key=table.rank)
    found = collect_values(table, candidates[:MAX_KEY_CANDIDATES], sets)
    table.keys = {name: values for name, values in found.items() if values.repeated() is None}


def collect_values(table: Table, names: Sequence[str], sets: ValueSets) -> dict[str, ValueSet]:
    """Read some columns of a table once; return the values of each."""
    found = {name: sets.new() for name in names}
    for batch in table.file.batches(names) if names else ():
        for name in batch.schema.names:
            texts = key_texts_of(batch.column(name))
            if texts is not None:
                found[name].add(texts)
    return found


def pairs_repeat(table: Table, pair: tuple[str, str], sets: ValueSets) -> str | None:
    """Return two values that stand beside each other in several rows, None when no two do."""
    values = sets.new()
    for batch in table.file.batches(pair):
        src, dst = (key_texts_of(batch.column(name)) for name in pair)
        if src is not None and dst is not None:
            # The length makes the joined text unambiguous.
            length = pc.cast(pc.binary_length(src), pa.string())
            values.add(pc.binary_join_element_wise(length, src, dst, " "))
    repeated = values.repeated()
    return None if repeated is None else repeated.partition(" ")[2]


def unused_type_names(names: Iterable[str]) -> list[str]:
    """Return names of types; those that differ in nothing but case get a number."""
    found: list[str] = []
    for name in names:
        taken, number, candidate = {one.lower() for one in found}, 2, name
        while candidate.lower() in taken:
            candidate = f"{name}{number}"
            number += 1
        found.append(candidate)
    return found
