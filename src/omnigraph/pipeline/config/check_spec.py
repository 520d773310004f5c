"""Read the checks of a pipeline file."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta

from omnigraph.lang import Code
from omnigraph.pipeline.config.document import LocatedText, PipelineFileReader, PipelineSection
from omnigraph.pipeline.config.fields import CHECK_KINDS
from omnigraph.query.checks import CheckSeverity
from omnigraph.types.duration import parse_duration

_COMPANIONS = {
    "query": ("name",),
    "row_count": ("min", "max"),
    "freshness": ("within",),
    "accepted_values": ("values",),
}
"""The fields that belong to each kind of check."""
_NEEDED = {"row_count": "`min` or `max`", "freshness": "`within`", "accepted_values": "`values`"}


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckSpec:
    """A check as the file has it; `kind` is the field that says what it is, `given` its value."""

    name: LocatedText
    kind: str
    given: LocatedText
    severity: CheckSeverity = CheckSeverity.FAIL
    query: LocatedText | None = None
    minimum: int | None = None
    maximum: int | None = None
    within: timedelta | None = None
    values: tuple[LocatedText, ...] = ()


def read_checks(
    reader: PipelineFileReader, sections: Iterable[tuple[LocatedText, PipelineSection]]
) -> tuple[CheckSpec, ...]:
    """Return the checks of a file, as far as they are valid."""
    found = (_read_check(reader, name, section) for name, section in sections)
    return tuple(check for check in found if check is not None)


def _read_check(
    reader: PipelineFileReader, name: LocatedText, section: PipelineSection
) -> CheckSpec | None:
    kinds = [kind for kind in CHECK_KINDS if kind in section.values]
    if len(kinds) != 1:
        words = ", ".join(f"`{kind}`" for kind in CHECK_KINDS)
        code = Code.PIPELINE_CONTRADICTION if kinds else Code.PIPELINE_FIELD_MISSING
        reader.report(code, f"check `{name}` needs exactly one of {words}", name.span)
        return None
    [kind] = kinds
    for owner, words_ in _COMPANIONS.items():
        for word in words_:
            if word in section.values and owner != kind:
                message = (
                    f"check `{name}`: `{word}` is valid with `{owner}` only, not with `{kind}`"
                )
                reader.report(Code.PIPELINE_CONTRADICTION, message, section.places[word])
    if kind in _NEEDED and not any(word in section.values for word in _COMPANIONS[kind]):
        message = f"check `{name}`: `{kind}` needs {_NEEDED[kind]}"
        reader.report(Code.PIPELINE_FIELD_MISSING, message, name.span)
    given = section.get(kind)
    within = _duration(reader, name, section.get("within"))
    is_useless = kind == "freshness" and within is None
    if given is None or is_useless:
        return None  # it was reported
    return CheckSpec(
        name=name,
        kind=kind,
        given=given,
        severity=CheckSeverity(section.get("severity") or CheckSeverity.FAIL),
        query=section.get("name"),
        minimum=_count(reader, name, section.get("min"), "min"),
        maximum=_count(reader, name, section.get("max"), "max"),
        within=within,
        values=section.get("values") or (),
    )


def _count(
    reader: PipelineFileReader, name: LocatedText, text: LocatedText | None, word: str
) -> int | None:
    if text is None:
        return None
    if text.value.isascii() and text.value.isdigit():
        return int(text.value)
    message = f"check `{name}`: `{word}` must be a number of entities, got '{text}'"
    reader.report(Code.PIPELINE_VALUE, message, text.span)
    return None


def _duration(
    reader: PipelineFileReader, name: LocatedText, text: LocatedText | None
) -> timedelta | None:
    if text is None:
        return None
    try:
        return parse_duration(text.value)
    except ValueError as error:
        reader.report(Code.PIPELINE_VALUE, f"check `{name}`: {error}", text.span)
        return None
