"""Decisions of a reviewer about conflicts: which side wins, or which values to set."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from omnigraph.errors import InvalidInput


class WinningSide(StrEnum):
    """The side that is taken."""

    SOURCE = "source"
    TARGET = "target"


@dataclass(frozen=True, slots=True)
class ConflictDecision:
    """What to do about one entity: `take` a side, `properties` by name, `values` to set."""

    take: WinningSide | None = None
    properties: Mapping[str, WinningSide] = field(default_factory=dict)
    values: Mapping[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class ConflictDecisions:
    """Decisions by entity, by type, and for everything else; entities that were requested."""

    default: WinningSide | None = None
    types: Mapping[str, WinningSide] = field(default_factory=dict)
    entities: Mapping[tuple[str, str], ConflictDecision] = field(default_factory=dict)
    used: set[tuple[str, str]] = field(default_factory=set)

    def about(self, kind: str, type_name: str, id_: str) -> ConflictDecision | None:
        """Return the decision about a conflict, or None when there is none.

        `node:T` and `edge:T` decide about one of two types that share a name.
        """
        names = (f"{kind}:{type_name}", type_name)
        for name in names:
            if (name, id_) in self.entities:
                self.used.add((name, id_))
                return self.entities[name, id_]
        winner = next((self.types[name] for name in names if name in self.types), self.default)
        return None if winner is None else ConflictDecision(winner)

    @property
    def sets_values(self) -> bool:
        """Whether a decision sets values that neither side has."""
        return any(decision.values for decision in self.entities.values())

    def check_used(self) -> None:
        """Raise InvalidInput when there are decisions about entities without a conflict."""
        unused = [f"{type_} '{id_}'" for type_, id_ in sorted(set(self.entities) - self.used)]
        if unused:
            shown = ", ".join(unused[:3]) + (f" and {len(unused) - 3} more" if unused[3:] else "")
            message = f"there is no conflict to decide about {shown}"
            raise InvalidInput(message, code="decision_unused", entities=unused)


def parse_decisions(decisions: str | Mapping[str, Any] | None) -> ConflictDecisions:
    """Read decisions: `source`, `target`, JSON text, or its values.

    The document has `default`, `types` by name, and `entities`: a list of `type`, `id`, and `take`
    (a side, or sides by property) or `set` (values by property), or both.
    """
    if decisions is None:
        return ConflictDecisions()
    if isinstance(decisions, str) and decisions in list(WinningSide):
        return ConflictDecisions(default=WinningSide(decisions))
    document = _parse_json(decisions) if isinstance(decisions, str) else decisions
    problems: list[str] = []
    if not isinstance(document, Mapping):
        raise _invalid_decision(["expected a JSON object"])
    problems += [
        f"unknown key `{k}`" for k in document if k not in ("default", "types", "entities")
    ]
    default = None
    if document.get("default") is not None:
        default = _parse_winner(document["default"], "default", problems)
    types = _parse_object(document.get("types"), "types", problems)
    winners = {name: _parse_winner(side, f"types.{name}", problems) for name, side in types.items()}
    entities: dict[tuple[str, str], ConflictDecision] = {}
    listed = document.get("entities") or []
    if not isinstance(listed, list):
        problems.append("`entities` must be a list")
        listed = []
    for number, entry in enumerate(listed):
        parsed = _parse_entity(entry, f"entities[{number}]", problems)
        if parsed is not None:
            entities[parsed[0]] = parsed[1]
    if problems:
        raise _invalid_decision(problems)
    return ConflictDecisions(default, {n: w for n, w in winners.items() if w is not None}, entities)


def _parse_entity(
    entry: object, where: str, problems: list[str]
) -> tuple[tuple[str, str], ConflictDecision] | None:
    if not isinstance(entry, Mapping):
        problems.append(f"{where} must be a JSON object")
        return None
    problems += [
        f"{where} has unknown key `{k}`" for k in entry if k not in ("type", "id", "take", "set")
    ]
    type_name, id_ = entry.get("type"), entry.get("id")
    if not isinstance(type_name, str) or not isinstance(id_, str):
        problems.append(f"{where} needs `type` and `id`")
        return None
    take, values = entry.get("take"), _parse_object(entry.get("set"), f"{where}.set", problems)
    if take is None and not values:
        problems.append(f"{where} needs `take` or `set`")
    properties: dict[str, WinningSide] = {}
    winner = None
    if isinstance(take, Mapping):
        for name, side in take.items():
            property_winner = _parse_winner(side, f"{where}.take.{name}", problems)
            if property_winner is not None:
                properties[name] = property_winner
    elif take is not None:
        winner = _parse_winner(take, f"{where}.take", problems)
    return (type_name, id_), ConflictDecision(winner, properties, values)


def _parse_winner(side: object, where: str, problems: list[str]) -> WinningSide | None:
    if side in list(WinningSide):
        return WinningSide(str(side))
    problems.append(f"`{where}` is `source` or `target`, not {json.dumps(side)}")
    return None


def _parse_object(value: object, where: str, problems: list[str]) -> Mapping[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        problems.append(f"`{where}` must be a JSON object")
        return {}
    return value


def _parse_json(text: str) -> Any:  # noqa: ANN401 - any JSON value
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _invalid_decision([f"it is neither `source`, `target` nor JSON: {error}"]) from error


def _invalid_decision(problems: list[str]) -> InvalidInput:
    message = f"the decisions cannot be read: {'; '.join(problems)}"
    return InvalidInput(message, code="decisions_invalid", problems=problems)
