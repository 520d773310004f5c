"""Find which columns refer to which nodes: by their names, and by exact containment of values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from omnigraph.write.inference.column_profile import holds_id_values, rows_text, shown
from omnigraph.write.inference.names import (
    OWN_KEY_RANK,
    endpoint_pair,
    has_reference_suffix,
    key_rank,
    names_type,
    split_words,
)
from omnigraph.write.inference.tables import Table, collect_values
from omnigraph.write.inference.value_sets import Missing, ValueSet, ValueSets

COLUMNS_AT_A_TIME = 64
"""Columns of one table that are compared with keys in one reading of it: each has an open file."""

_STRONG_ENDS = (["from"], ["src"])


@dataclass(frozen=True, slots=True)
class Reference:
    """A column all of whose values are values of a key column of a table."""

    column: str
    target: int
    key: str
    evidence: str


@dataclass(slots=True)
class References:
    """What was found about the tables of an inference, by their number."""

    tables: Sequence[Table]
    pairs: dict[int, tuple[str, str]] = field(default_factory=dict)
    """The columns that are named as the ends of an edge."""
    named: dict[int, list[Reference]] = field(default_factory=dict)
    """Columns that are named as references, and are such."""
    ends: dict[int, tuple[Reference, Reference]] = field(default_factory=dict)
    """The tables of edges: their ends."""
    undecided: dict[int, list[str]] = field(default_factory=dict)

    @property
    def nodes(self) -> list[int]:
        """The tables of nodes."""
        others = {*self.ends, *self.undecided}
        return [number for number in range(len(self.tables)) if number not in others]


def find_references(tables: Sequence[Table], sets: ValueSets) -> References:
    """Return which tables are edges, and which columns refer to nodes."""
    found = References(tables)
    for number, table in enumerate(tables):
        pair = endpoint_pair(name for name, type_ in table.types.items() if holds_id_values(type_))
        if pair is not None:
            found.pairs[number] = pair
    _find_named(found, sets)
    for number, references in found.named.items():
        table = tables[number]
        has_own_key = any(table.rank(name) <= OWN_KEY_RANK for name in table.keys)
        if len(references) == 2 and not has_own_key and not _has_nulls(table, references):
            found.ends[number] = (references[0], references[1])
    for number in list(found.ends):
        found.named.pop(number)
    for number, references in found.named.items():
        for reference in references:
            tables[number].keys.pop(reference.column, None)
    _resolve_pairs(found, sets)
    return found


def _has_nulls(table: Table, references: Sequence[Reference]) -> bool:
    return any(table.columns[one.column].nulls for one in references)


# --- columns named as references ---------------------------------------------------------------


def _find_named(found: References, sets: ValueSets) -> None:
    """Find references by name; those that only look like one get a note."""
    tables = found.tables
    nodes = {
        number: (table.words, [split_words(key) for key in table.keys])
        for number, table in enumerate(tables)
        if number not in found.pairs and table.keys
    }
    for number, table in enumerate(tables):
        if number in found.pairs:
            continue
        columns = [
            name
            for name in table.id_columns
            if table.rank(name) > OWN_KEY_RANK
            and (
                names_type(name, nodes)
                or has_reference_suffix(name)
                or _owner(name, found, number) is not None
            )
        ]
        for start in range(0, len(columns), COLUMNS_AT_A_TIME):
            part = columns[start : start + COLUMNS_AT_A_TIME]
            for column, values in collect_values(table, part, sets).items():
                targets = names_type(column, nodes)
                owner = None if targets else _owner(column, found, number)
                targets += [] if owner is None else [owner]
                _add_named(found, number, column, values, targets)


def _owner(column: str, found: References, number: int) -> int | None:
    """Return the only other table with a key of the same name, if the name is not a common one."""
    if len(split_words(column)) == 1 and key_rank(column, []) is not None:
        return None
    owners = [
        other
        for other, table in enumerate(found.tables)
        if other not in (number, *found.pairs) and column in table.keys
    ]
    return owners[0] if len(owners) == 1 and column not in found.tables[number].keys else None


def _add_named(
    found: References, number: int, column: str, values: ValueSet, targets: Sequence[int]
) -> None:
    table = found.tables[number]
    if not targets:
        options = _containers(found, values, [n for n in range(len(found.tables)) if n != number])
        options += [
            (number, key) for key in table.keys if key != column and _is_in(values, table.keys[key])
        ]
        for target, key in options[:1]:
            where = f"`{key}` of {found.tables[target].file.label}"
            table.notes[column].append(f"all values are values of {where}: it may refer to them")
        return
    contained = [
        (target, key)
        for target in targets
        for key, others in found.tables[target].keys.items()
        if (target, key) != (number, column) and _is_in(values, others)
    ]
    if len({target for target, _ in contained}) == 1:
        target, key = contained[0]
        reference = Reference(column, target, key, _evidence(found, values, target, key))
        found.named.setdefault(number, []).append(reference)
        return
    if contained:
        names = " and of ".join(found.tables[target].file.label for target, _ in contained)
        table.notes[column].append(f"its values are those of {names}: not decided")
        return
    target = targets[0]
    for key, others in list(found.tables[target].keys.items())[:1]:
        note = _partial(values.missing_from(others), key, found.tables[target])
        table.notes[column].append(f"named as a reference, but {note}")


def _is_in(values: ValueSet, others: ValueSet) -> bool:
    return values.missing_from(others, at_most=0).count == 0


def _containers(
    found: References, values: ValueSet, targets: Sequence[int]
) -> list[tuple[int, str]]:
    """Return the keys that have all values; those named like keys, if there are such."""
    options = [
        (target, key)
        for target in targets
        for key, others in found.tables[target].keys.items()
        if _is_in(values, others)
    ]
    named = [(t, key) for t, key in options if found.tables[t].is_named_key(key)]
    return named or options


def _evidence(found: References, values: ValueSet, target: int, key: str) -> str:
    count = values.missing_from(found.tables[target].keys[key]).of
    return f"all {count:,} different values are in `{key}` of {found.tables[target].file.label}"


def _partial(missing: Missing, key: str, target: Table) -> str:
    return (
        f"{missing.count:,} of {missing.of:,} different values are not in `{key}` of "
        f"{target.file.label}, for example {shown(missing.example or '')}"
    )


# --- tables with two ends ----------------------------------------------------------------------


def _resolve_pairs(found: References, sets: ValueSets) -> None:
    for number, pair in found.pairs.items():
        table = found.tables[number]
        values = collect_values(table, pair, sets)
        targets = [n for n in found.nodes if n not in found.pairs]
        reasons: list[str] = []
        ends = [
            _resolve_end(found, table, column, values[column], targets, reasons) for column in pair
        ]
        if ends[0] is not None and ends[1] is not None:
            found.ends[number] = (ends[0], ends[1])
        elif any(split_words(pair[0]) == words for words in _STRONG_ENDS):
            found.undecided[number] = reasons
        else:
            for column, reason in zip(pair, reasons, strict=False):
                table.notes[column].append(f"not an end of an edge: {reason}")


def _resolve_end(
    found: References,
    table: Table,
    column: str,
    values: ValueSet,
    targets: Sequence[int],
    reasons: list[str],
) -> Reference | None:
    """Return what an end refers to, or None and the reason."""
    if table.columns[column].nulls:
        reasons.append(f"`{column}` is null in {rows_text(table.columns[column].nulls)}")
        return None
    options = _containers(found, values, targets)
    if len({target for target, _ in options}) == 1:
        target, key = options[0]
        return Reference(column, target, key, _evidence(found, values, target, key))
    if options:
        places = dict.fromkeys(f"`{key}` of {found.tables[t].file.label}" for t, key in options)
        reasons.append(f"the values of `{column}` are in {' and in '.join(places)}")
        return None
    closest = _closest(found.tables, values, targets)
    reasons.append(f"`{column}`: {closest or 'no other input has nodes with a key'}")
    return None


def _closest(tables: Sequence[Table], values: ValueSet, targets: Sequence[int]) -> str | None:
    """Say how many values are not in the key that has most of them."""
    options = [
        (values.missing_from(others), key, tables[target])
        for target in targets
        for key, others in tables[target].keys.items()
    ]
    best = min(options, key=lambda option: option[0].count, default=None)
    return None if best is None else _partial(*best)


def chosen_keys(found: References) -> Mapping[int, str]:
    """Return the key of each table of nodes: what edges refer to, else what is named like one."""
    votes: dict[tuple[int, str], int] = {}
    ends = [end for pair in found.ends.values() for end in pair]
    named = [one for references in found.named.values() for one in references]
    for reference in (*ends, *named):
        at = (reference.target, reference.key)
        votes[at] = votes.get(at, 0) + 1
    keys: dict[int, str] = {}
    for number in found.nodes:
        table = found.tables[number]
        options = [
            name for name in table.keys if table.is_named_key(name) or (number, name) in votes
        ]
        if options:
            keys[number] = min(
                options, key=lambda name: (-votes.get((number, name), 0), table.rank(name))
            )
    return keys
