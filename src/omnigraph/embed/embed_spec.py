"""Read the inputs of `omnigraph embed` for files: specs, manifests and selectors."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import yaml

from omnigraph.errors import InvalidInput, NotFound

DEFAULT_OUTPUT = "./build/seed.embedded.jsonl"


class EmbedFileMode(StrEnum):
    """Which vectors are computed or removed."""

    FILL = "fill_missing"
    SELECTED = "reembed_selected"
    ALL = "reembed_all"
    CLEAN = "clean"


@dataclass(frozen=True, slots=True)
class EmbedTarget:
    """The vector property of a type, and the properties that its text is built from."""

    property: str
    fields: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EmbedSpec:
    """The dimension and the targets of the vectors of a file."""

    dimension: int
    types: Mapping[str, EmbedTarget]


@dataclass(frozen=True, slots=True)
class RecordSelector:
    """Selects records by the value of a property, of one type or of any."""

    type: str | None
    field: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbedFileJob:
    """One file to embed."""

    input: Path
    output: Path
    spec: EmbedSpec
    mode: EmbedFileMode
    types: frozenset[str] = frozenset()
    selectors: tuple[RecordSelector, ...] = ()

    def __post_init__(self) -> None:
        unknown = sorted(
            {*self.types, *(s.type for s in self.selectors if s.type)} - set(self.spec.types)
        )
        if unknown:
            names = ", ".join(self.spec.types)
            message = f"type '{unknown[0]}' is not in the embedding spec, which has {names}"
            raise InvalidInput(message, code="embed_type_unknown", type=unknown[0])


def read_spec(path: Path) -> EmbedSpec:
    """Read a spec from a JSON file."""
    try:
        value = json.loads(read_text_file(path))
    except ValueError as error:
        raise _bad_spec(f"{path} is not valid JSON: {error}") from error
    return parse_spec(value, str(path))


def parse_spec(value: Any, where: str) -> EmbedSpec:  # noqa: ANN401 - parsed JSON or YAML
    """Return the spec of a parsed value; unknown keys are errors."""
    facts = _check_fields(value, where, ("dimension", "types"))
    dimension = facts.get("dimension")
    if not isinstance(dimension, int) or isinstance(dimension, bool) or dimension < 1:
        raise _bad_spec(f"{where}: `dimension` must be a whole number of at least 1")
    types = facts.get("types")
    if not isinstance(types, dict) or not types:
        raise _bad_spec(f"{where}: `types` must map each type to its `target` and `fields`")
    return EmbedSpec(
        dimension, {str(name): _parse_target(types[name], where, name) for name in types}
    )


def _parse_target(value: Any, where: str, name: str) -> EmbedTarget:  # noqa: ANN401 - as above
    place = f"{where}, type {name}"
    facts = _check_fields(value, place, ("target", "fields"))
    target, fields = facts.get("target"), facts.get("fields")
    if not isinstance(target, str) or not target:
        raise _bad_spec(f"{place}: `target` must be the name of the vector property")
    if not isinstance(fields, list) or not fields or not all(isinstance(f, str) for f in fields):
        raise _bad_spec(f"{place}: `fields` must list the properties that the text is built from")
    return EmbedTarget(target, tuple(fields))


def read_manifest(path: Path) -> tuple[Path, Path, EmbedSpec]:
    """Read input, output and spec from a YAML file; its paths are relative to its folder."""
    try:
        value = yaml.safe_load(read_text_file(path))
    except yaml.YAMLError as error:
        raise _bad_manifest(f"{path} is not valid YAML: {error}") from error
    if not isinstance(value, dict):
        raise _bad_manifest(f"{path} has no `sources`, `artifacts` and `embeddings`")
    source = _manifest_entry(value, "sources", "raw_seed") or _manifest_entry(value, "seed", "data")
    if source is None:
        raise _bad_manifest(f"{path} has no input: set `sources.raw_seed`")
    if "embeddings" not in value:
        raise _bad_manifest(f"{path} has no embedding spec: set `embeddings`")
    output = _manifest_entry(value, "artifacts", "embedded_seed") or DEFAULT_OUTPUT
    spec = parse_spec(value["embeddings"], f"{path}, embeddings")
    return path.parent / source, path.parent / output, spec


def _manifest_entry(value: Mapping[str, Any], section: str, name: str) -> str | None:
    members = value.get(section)
    entry = members.get(name) if isinstance(members, dict) else None
    return entry if isinstance(entry, str) and entry else None


def read_selector(text: str) -> RecordSelector:
    """Read `field=value` or `Type:field=value`."""
    place, equals, value = text.partition("=")
    type_, colon, field = place.rpartition(":")
    if not equals or not field or (colon and not type_):
        message = f"invalid --select '{text}': expected field=value or Type:field=value"
        raise InvalidInput(message, code="embed_selector_invalid")
    return RecordSelector(type_ or None, field, value)


def read_text_file(path: Path) -> str:
    """Return the text of a file."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise unreadable_file_error(path, error) from error


def unreadable_file_error(path: Path, error: Exception) -> NotFound | InvalidInput:
    """Return the error for a file that cannot be read or written."""
    reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
    message = f"cannot use {path}: {reason}"
    if isinstance(error, FileNotFoundError):
        return NotFound(message, code="file_not_found", path=str(path))
    return InvalidInput(message, code="file_unreadable", path=str(path))


def _check_fields(value: Any, where: str, known: tuple[str, ...]) -> Mapping[str, Any]:  # noqa: ANN401
    if not isinstance(value, dict):
        raise _bad_spec(f"{where} has no {' and '.join(f'`{name}`' for name in known)}")
    unknown = [str(name) for name in value if name not in known]
    if unknown:
        raise _bad_spec(f"{where}: unknown key `{unknown[0]}`; use {' and '.join(known)}")
    return value


def _bad_spec(message: str) -> InvalidInput:
    return InvalidInput(message, code="embed_spec_invalid")


def _bad_manifest(message: str) -> InvalidInput:
    return InvalidInput(message, code="embed_manifest_invalid")
