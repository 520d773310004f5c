"""A graph that is nothing but dictionaries, with every rule of a write in its plainest form.

It is slow and knows no storage. What it says of a change, each surface must say as well.
"""

from __future__ import annotations

import json
import operator
import re
import struct
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np

from omnigraph.catalog import Catalog
from omnigraph.catalog.model import Check, EdgeType, Range, Unique
from omnigraph.types import PropertyType, Scalar
from tests.support.changes import (
    Delete,
    Put,
    Reported,
    Set,
    State,
    Step,
    Values,
    Where,
    definition,
    is_edge,
    is_generated,
    key_of,
    property_type,
)
from tests.support.embedding import mock_vector

Row: TypeAlias = dict[str, Any]
"""One entity: id, endpoints, properties."""

_EPOCH = date(1970, 1, 1)
_COMPARE: Mapping[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@dataclass
class Change:
    """What a write wants, per type: batches of rows in order, ids to delete."""

    batches: dict[str, list[list[Row]]] = field(default_factory=lambda: defaultdict(list))
    deleted: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    reported: Counter[Reported] = field(default_factory=Counter)

    def final(self, name: str) -> dict[str, Row]:
        """Return the last row of each id, in the order in which they stand."""
        rows: dict[str, Row] = {}
        for batch in self.batches[name]:
            for row in batch:
                rows.pop(row["id"], None)
                rows[row["id"]] = row
        return rows


class Model:
    """The entities of one branch."""

    def __init__(self, catalog: Catalog, state: State | None = None) -> None:
        self.catalog = catalog
        self.names = [*catalog.nodes, *catalog.edges]
        self.state: State = state or {name: {} for name in self.names}
        self._made = 0

    def copy(self) -> Model:
        """Return a branch of this model."""
        state = {
            name: {i: dict(row) for i, row in rows.items()} for name, rows in self.state.items()
        }
        return Model(self.catalog, state)

    # --- writes --------------------------------------------------------------------------------

    def load(
        self, puts: Sequence[Put], mode: str = "merge", *, partial: bool = False
    ) -> Counter[Reported]:
        """Load entities; return what is wrong with them, and change nothing if anything is."""
        wanted = Change()
        rows: dict[str, list[Row]] = defaultdict(list)
        for put in puts:
            row = self._row(put, wanted, keep=partial)
            if row is not None:
                rows[put.type].append(row)
        for name, batch in rows.items():
            wanted.batches[name] = [batch]
        return self._write(wanted, mode)

    def mutate(self, steps: Sequence[Step]) -> tuple[Counter[Reported], int, int]:
        """Run statements; return what is wrong with them, and how many nodes and edges they hit."""
        wanted, nodes, edges = Change(), 0, 0
        for step in steps:
            match step:
                case Put():
                    row = self._row(step, wanted)
                    if row is not None:
                        wanted.batches[step.type].append([row])
                    hit = (0, 1) if is_edge(self.catalog, step.type) else (1, 0)
                case Set():
                    hit = self._set(step, wanted)
                case Delete():
                    hit = self._delete(step, wanted)
            nodes, edges = nodes + hit[0], edges + hit[1]
        return self._write(wanted, "merge"), nodes, edges

    def _row(self, put: Put, wanted: Change, *, keep: bool = False) -> Row | None:
        """Return a whole row, or None when it has no id."""
        name, given = put.type, self._stored(put.type, put.values)
        key = key_of(self.catalog, name)
        if key and any(given.get(member) is None for member in key):
            wanted.reported.update(
                ("required", name, None, member) for member in key if given.get(member) is None
            )
            return None
        if key:
            id_ = entity_id([(given[m], property_type(self.catalog, name, m)) for m in key])
        else:
            id_ = given.get("id") or self._fresh_id()
        kept = self.state[name].get(id_, {}) if keep else {}
        ends = ("src", "dst") if is_edge(self.catalog, name) else ()
        columns = [*ends, *definition(self.catalog, name).properties]
        row = {c: given[c] if c in given else kept.get(c) for c in columns}
        if kept:
            row |= self._stale(name, kept, given)
        return {
            "id": id_,
            **self._defaults(name),
            **{c: v for c, v in row.items() if v is not None},
        }

    def _defaults(self, name: str) -> Row:
        """Return what an entity has where nothing is given."""
        found: Row = {"src": None, "dst": None} if is_edge(self.catalog, name) else {}
        for property_ in definition(self.catalog, name).properties.values():
            texts = [a.value for a in property_.annotations if a.name == "default"]
            value: Any = texts[0] if texts and not property_.type.nullable else None
            if value is not None and (property_.type.numeric or value in ("true", "false")):
                value = json.loads(value)
            found[property_.name] = stored(value, property_.type)
        return found

    def _fresh_id(self) -> str:
        self._made += 1
        return f"{self._made:026d}".replace("0", "A")

    def _set(self, step: Set, wanted: Change) -> tuple[int, int]:
        seen = {id_: {"id": id_, **row} for id_, row in self.state[step.type].items()}
        seen |= wanted.final(step.type)
        new = self._stored(step.type, step.values)
        hits = [
            {**row, **new, **self._stale(step.type, row, new)}
            for _, row in sorted(seen.items())
            if self._passes(step.type, row, step.tests)
        ]
        if hits:
            wanted.batches[step.type].append(hits)
        return (0, len(hits)) if is_edge(self.catalog, step.type) else (len(hits), 0)

    def _stale(self, name: str, before: Row, given: Row) -> Row:
        """Return nulls for the vectors whose text is given anew without them."""
        return {
            p.name: None
            for p in definition(self.catalog, name).properties.values()
            if p.embed is not None
            and p.name not in given
            and p.embed.source in given
            and given[p.embed.source] != before[p.embed.source]
        }

    def _delete(self, step: Delete, wanted: Change) -> tuple[int, int]:
        hits = {
            id_
            for id_, row in self.state[step.type].items()
            if self._passes(step.type, {"id": id_, **row}, step.tests)
        } - wanted.deleted[step.type]
        wanted.deleted[step.type] |= hits
        if is_edge(self.catalog, step.type):
            return 0, len(hits)
        edges = 0
        for edge in self.catalog.incident_edges(step.type):
            ends = [e for e, node in (("src", edge.src), ("dst", edge.dst)) if node == step.type]
            incident = {
                id_
                for id_, row in self.state[edge.name].items()
                if any(row[end] in hits for end in ends)
            } - wanted.deleted[edge.name]
            wanted.deleted[edge.name] |= incident
            edges += len(incident)
        return len(hits), edges

    def _stored(self, name: str, values: Values) -> Row:
        return {c: stored(v, property_type(self.catalog, name, c)) for c, v in values.items()}

    def _passes(self, name: str, row: Row, tests: Iterable[Where]) -> bool:
        for test in tests:
            column = {"from": "src", "to": "dst"}.get(test.property, test.property)
            type_ = property_type(self.catalog, name, column)
            value, wanted = row[column], test.value
            if value is None or wanted is None:
                return False
            if not (type_.spec.integer and isinstance(wanted, float)):
                wanted = stored(wanted, type_)
            if not _COMPARE[test.operator](value, wanted):
                return False
        return True

    def _write(self, wanted: Change, mode: str) -> Counter[Reported]:
        touched = [name for name in self.names if wanted.batches[name]]
        if mode == "overwrite":
            for name in touched:
                wanted.deleted[name] = set(self.state[name]) - set(wanted.final(name))
        problems = wanted.reported + _Judge(self, wanted, mode).reported()
        if not problems:
            for name in self.names:
                for id_ in wanted.deleted[name]:
                    del self.state[name][id_]
                for id_, row in wanted.final(name).items():
                    whole = self._embedded(name, row)
                    self.state[name][id_] = {c: v for c, v in whole.items() if c != "id"}
        return Counter(map(_anonymous, problems.elements()))

    def _embedded(self, name: str, row: Row) -> Row:
        """Return a row with the vectors that must be there, made from their texts."""
        properties = definition(self.catalog, name).properties.values()
        made = {
            p.name: mock_vector(row[p.embed.source], p.type.dimension or 0)
            for p in properties
            if p.embed is not None and not p.type.nullable and row[p.name] is None
        }
        return {**row, **made}

    # --- generated ids -------------------------------------------------------------------------

    def adopt(self, found: State) -> None:
        """Take over the ids a graph generated for the entities this model has just made."""
        for name, rows in self.state.items():
            ours = [id_ for id_ in rows if is_generated(id_) and id_ not in found[name]]
            theirs = [id_ for id_ in found[name] if id_ not in rows]
            for old in ours:
                new = next((id_ for id_ in theirs if found[name][id_] == rows[old]), None)
                if new is not None:
                    theirs.remove(new)
                    rows[new] = rows.pop(old)


def _anonymous(reported: Reported) -> Reported:
    rule, name, id_, property_ = reported
    return rule, name, None if is_generated(id_) else id_, property_


class _Judge:
    """Every rule, for one change."""

    def __init__(self, model: Model, wanted: Change, mode: str) -> None:
        self.catalog = model.catalog
        self.before = model.state
        self.wanted = wanted
        self.mode = mode
        self.problems: Counter[Reported] = Counter()
        self.final = {name: wanted.final(name) for name in model.names}
        self.after = {
            name: {
                **{i: r for i, r in rows.items() if i not in wanted.deleted[name]},
                **self.final[name],
            }
            for name, rows in self.before.items()
        }

    def reported(self) -> Counter[Reported]:
        for name in self.before:
            for batch in self.wanted.batches[name]:
                for row in batch:
                    self._values(name, row)
            self._ids(name)
            constraints = definition(self.catalog, name).constraints
            for rule in (c for c in constraints if isinstance(c, Unique)):
                if set(rule.columns) != set(key_of(self.catalog, name)):
                    self._unique(name, rule.columns)
        for edge in self.catalog.edges.values():
            self._endpoints(edge)
            self._cardinality(edge)
        return self.problems

    def _tell(self, rule: str, name: str, id_: str | None, property_: str | None = None) -> None:
        self.problems[rule, name, id_, property_] += 1

    def _values(self, name: str, row: Row) -> None:
        type_ = definition(self.catalog, name)
        for property_ in type_.properties.values():
            value, wants = row[property_.name], property_.type
            if value is None:
                embed = property_.embed
                made = embed is not None and (row[embed.source] or "").strip() != ""
                if not wants.nullable and not made:
                    self._tell("required", name, row["id"], property_.name)
            elif wants.enum_values is not None and value not in wants.enum_values:
                self._tell("enum", name, row["id"], property_.name)
        for rule in type_.constraints:
            if isinstance(rule, Range) and row[rule.property] is not None:
                low, high, value = rule.minimum, rule.maximum, row[rule.property]
                if (low is not None and value < low) or (high is not None and value > high):
                    self._tell("range", name, row["id"], rule.property)
            if isinstance(rule, Check) and row[rule.property] is not None:
                matches = re.search(rule.pattern, row[rule.property]) is not None
                if not matches:
                    self._tell("check", name, row["id"], rule.property)

    def _ids(self, name: str) -> None:
        if self.mode == "append":
            for id_ in self.final[name]:
                if id_ in self.before[name]:
                    self._tell("key_conflict", name, id_)
        keyed = bool(key_of(self.catalog, name))
        for batch in self.wanted.batches[name]:
            for id_, count in Counter(row["id"] for row in batch).items():
                for _ in range(count - 1):
                    if keyed:
                        self._tell("unique", name, id_)
                    elif self.mode in ("append", "overwrite"):
                        self._tell("key_conflict", name, id_)

    def _unique(self, name: str, columns: Sequence[str]) -> None:
        types = [property_type(self.catalog, name, column) for column in columns]

        def tuple_of(id_: str, row: Row) -> tuple[str, ...] | None:
            values = [id_ if column == "id" else row[column] for column in columns]
            if any(value is None for value in values):
                return None
            return tuple(key_text(v, t) for v, t in zip(values, types, strict=True))

        def repeats(rows: Iterable[Row]) -> list[str]:
            seen, found = set(), []
            for row in rows:
                key = tuple_of(row["id"], row)
                if key is not None and key in seen:
                    found.append(row["id"])
                seen.add(key)
            return found

        found = [id_ for batch in self.wanted.batches[name] for id_ in repeats(batch)]
        found = found or repeats(self.final[name].values())
        if not found and self.mode != "overwrite":
            for id_, row in self.final[name].items():
                key = tuple_of(id_, row)
                for other, held in self.before[name].items():
                    gone = other in self.final[name] or other in self.wanted.deleted[name]
                    if key is not None and not gone and tuple_of(other, held) == key:
                        found.append(id_)
        for id_ in found:
            property_ = columns[0] if columns[0] not in ("id", "src", "dst") else None
            self._tell("unique", name, id_, property_)

    def _endpoints(self, edge: EdgeType) -> None:
        for end, node in (("src", edge.src), ("dst", edge.dst)):
            lost = self.before[node].keys() - self.after[node].keys()
            for id_, row in self.after[edge.name].items():
                is_new = id_ in self.final[edge.name]
                if row[end] not in self.after[node] and (is_new or row[end] in lost):
                    self._tell("endpoint", edge.name, id_)

    def _cardinality(self, edge: EdgeType) -> None:
        limits, name = edge.cardinality, edge.name
        before, final = self.before[name], self.final[name]
        touched = {row["src"] for row in final.values()}
        gone = self.wanted.deleted[name]
        touched |= {row["src"] for id_, row in before.items() if id_ in final or id_ in gone}
        if self.mode == "overwrite" and self.wanted.batches[name]:
            touched |= {row["src"] for row in before.values()}
        counts = Counter(row["src"] for row in self.after[name].values())
        for source in touched - self.wanted.deleted[edge.src]:
            count = counts[source]
            if count < limits.minimum or (limits.maximum is not None and count > limits.maximum):
                self._tell("cardinality", name, source)


# --- values ------------------------------------------------------------------------------------


def stored(value: Any, type_: PropertyType) -> Any:
    """Return the JSON of a value as the graph keeps it."""
    if value is None:
        return None
    if type_.is_list:
        return [stored(item, type_.element) for item in value]
    match type_.scalar:
        case Scalar.VECTOR:
            return [_f32(item) for item in value]
        case Scalar.F32:
            return _f32(value)
        case Scalar.F64:
            return float(value)
        case Scalar.DATE if isinstance(value, int):
            return (_EPOCH + timedelta(days=value)).isoformat()
        case Scalar.DATE_TIME:
            instant = _instant(value)
            return f"{instant:%Y-%m-%dT%H:%M:%S}.{instant.microsecond // 1000:03d}Z"
        case _:
            return value


def _f32(value: float) -> float:
    number: float = struct.unpack("<f", struct.pack("<f", value))[0]
    return number


def _instant(value: str | int) -> datetime:
    if isinstance(value, int):
        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=value)
    found = datetime.fromisoformat(value)
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)


def key_text(value: Any, type_: PropertyType) -> str:
    """Return the text by which values are compared and ids are made."""
    match type_.scalar:
        case Scalar.BOOL:
            return "true" if value else "false"
        case Scalar.DATE:
            return str((date.fromisoformat(value) - _EPOCH).days)
        case Scalar.DATE_TIME:
            since = _instant(value) - datetime(1970, 1, 1, tzinfo=UTC)
            return str(since // timedelta(milliseconds=1))
        case Scalar.F32:
            return "0" if value == 0 else np.format_float_positional(np.float32(value), trim="-")
        case Scalar.F64:
            text = format(Decimal(repr(value)), "f")
            text = text.rstrip("0").rstrip(".") if "." in text else text
            return "0" if value == 0 else text
        case _:
            return str(value)


def entity_id(members: Sequence[tuple[Any, PropertyType]]) -> str:
    """Return the id that key values make."""
    texts = [key_text(value, type_) for value, type_ in members]
    return (
        texts[0]
        if len(texts) == 1
        else json.dumps(texts, ensure_ascii=False, separators=(",", ":"))
    )
