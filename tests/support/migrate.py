"""A second opinion on migrations: applies wire steps to the shape of a schema.

It knows nothing of the planner. What a step's wire form leaves out (the definition of a new type or
property) is taken from the target's shape.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from copy import deepcopy
from typing import Any

Json = dict[str, Any]

_SECTIONS = {"interface": "interfaces", "node": "nodes", "edge": "edges"}


def migrate(shape: Json, steps: Iterable[Json], target: Json) -> Json:
    """Return the shape after the steps."""
    migration = _Migration(deepcopy(shape), target)
    for step in steps:
        apply: Callable[[Json], None] = getattr(migration, step["kind"])
        apply(step)
    return migration.result()


class _Migration:
    def __init__(self, shape: Json, target: Json) -> None:
        self.shape = shape
        self.target = target
        self.dropped: set[tuple[str, str, str]] = set()

    def result(self) -> Json:
        for section in self.shape.values():
            section.sort(key=_name)
            for type_ in section:
                type_["properties"].sort(key=_name)
        return self.shape

    def type(self, step: Json, shape: Json | None = None) -> Json:
        section = (shape or self.shape)[_SECTIONS[step["type_kind"]]]
        return _named(section, step["type_name"])

    def property(self, step: Json) -> Json:
        return _named(self.type(step)["properties"], step["property_name"])

    # --- one method per kind of step -----------------------------------------------------------

    def add_type(self, step: Json) -> None:
        section = _SECTIONS[step["type_kind"]]
        self.shape[section].append(deepcopy(_named(self.target[section], step["name"])))

    def rename_type(self, step: Json) -> None:
        type_ = _named(self.shape[_SECTIONS[step["type_kind"]]], step["from"])
        type_["name"] = step["to"]
        if step["type_kind"] == "node":
            for edge in self.shape["edges"]:
                for end in ("src", "dst"):
                    if edge[end] == step["from"]:
                        edge[end] = step["to"]

    def drop_type(self, step: Json) -> None:
        section = self.shape[_SECTIONS[step["type_kind"]]]
        section.remove(_named(section, step["name"]))

    def add_property(self, step: Json) -> None:
        new = _named(self.type(step, self.target)["properties"], step["property_name"])
        assert new["type"] == step["property_type"]
        # Constraints come by steps of their own.
        self.type(step)["properties"].append({**deepcopy(new), "constraints": []})

    def rename_property(self, step: Json) -> None:
        type_ = self.type(step)
        old, new = step["from"], step["to"]
        _named(type_["properties"], old)["name"] = new
        for property_ in type_["properties"]:
            if property_["embed"] is not None and property_["embed"]["source"] == old:
                property_["embed"]["source"] = new
        if "constraints" in type_:
            renamed = [_renamed(c, old, new) for c in type_["constraints"]]
            type_["constraints"] = _canonical(renamed)

    def drop_property(self, step: Json) -> None:
        type_ = self.type(step)
        type_["properties"].remove(self.property(step))
        place = step["type_kind"], step["type_name"]
        self.dropped.add((*place, step["property_name"]))
        type_["constraints"] = [
            c
            for c in type_.get("constraints", [])
            if not all((*place, name) in self.dropped for name in _columns(c))
        ]
        if step["type_kind"] == "interface":
            del type_["constraints"]

    def extend_enum(self, step: Json) -> None:
        type_ = self.property(step)["type"]
        assert not set(type_["enum_values"]) & set(step["added_values"])
        type_["enum_values"] = sorted([*type_["enum_values"], *step["added_values"]])

    def add_constraint(self, step: Json) -> None:
        type_ = self.type(step)
        if step["type_kind"] == "interface":
            ((word, (name,)),) = step["constraint"].items()
            words = _named(type_["properties"], name)["constraints"]
            words.append(word.lower())
            words.sort()
        else:
            type_["constraints"] = _canonical([*type_["constraints"], step["constraint"]])

    def remove_constraint(self, step: Json) -> None:
        type_ = self.type(step)
        if step["type_kind"] == "interface":
            ((word, (name,)),) = step["constraint"].items()
            _named(type_["properties"], name)["constraints"].remove(word.lower())
        else:
            type_["constraints"].remove(step["constraint"])

    def change_cardinality(self, step: Json) -> None:
        type_ = self.type(step)
        assert _limits(step["from"]) == type_["cardinality"]
        type_["cardinality"] = _limits(step["to"])

    def change_key(self, step: Json) -> None:
        type_ = self.type(step)
        kept = [c for c in type_["constraints"] if "Key" not in c]
        assert [c for c in type_["constraints"] if "Key" in c] == [
            key for key in (step.get("from"),) if key is not None
        ]
        type_["constraints"] = _canonical([*kept, step["to"]])

    def widen_property(self, step: Json) -> None:
        property_ = self.property(step)
        nullable = property_["type"]["nullable"]
        assert property_["type"] == {**step["from"], "nullable": nullable}
        property_["type"] = {**step["to"], "nullable": nullable}

    def make_optional(self, step: Json) -> None:
        assert not self.property(step)["type"]["nullable"]
        self.property(step)["type"]["nullable"] = True

    def make_required(self, step: Json) -> None:
        assert self.property(step)["type"]["nullable"]
        self.property(step)["type"]["nullable"] = False

    def update_type_metadata(self, step: Json) -> None:
        type_ = self.type({**step, "type_name": step["name"]})
        type_["annotations"] = _canonical(step["annotations"])

    def update_property_metadata(self, step: Json) -> None:
        self.property(step)["annotations"] = _canonical(step["annotations"])


def _limits(text: str) -> Json:
    low, _, high = text.partition("..")
    return {"min": int(low), "max": int(high) if high else None}


def _name(thing: Json) -> str:
    return str(thing["name"])


def _named(things: Iterable[Json], name: str) -> Json:
    (found,) = (thing for thing in things if thing["name"] == name)
    return found


def _columns(constraint: Json) -> list[str]:
    ((_, body),) = constraint.items()
    if isinstance(body, dict):
        return [body["property"]] if "property" in body else list(body["properties"])
    return list(body)


def _renamed(constraint: Json, old: str, new: str) -> Json:
    ((word, body),) = constraint.items()
    columns = sorted(new if name == old else name for name in _columns(constraint))
    if word == "Key" and _columns(constraint)[:2] == ["src", "dst"]:
        columns = ["src", "dst", *(name for name in columns if name not in ("src", "dst"))]
    if not isinstance(body, dict):
        return {word: columns}
    if "property" in body:
        return {word: {**body, "property": columns[0]}}
    return {word: {**body, "properties": columns}}


def _canonical(items: Iterable[Json]) -> list[Json]:
    return sorted(items, key=lambda item: json.dumps(item, sort_keys=True))
