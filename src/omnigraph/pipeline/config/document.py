"""Read the YAML of a pipeline file into values with source locations.

The registry in `fields` defines which fields are valid where. Every problem is added to a report;
an invalid value is left out, so that one mistake is reported once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from omnigraph.lang import Code, DiagnosticReport, TextSpan, did_you_mean
from omnigraph.lang.diagnostics import nearest_name
from omnigraph.pipeline.config.fields import VERSION, FieldKind, PipelineField, by_name

_NULL, _BOOL, _INT = (f"tag:yaml.org,2002:{word}" for word in ("null", "bool", "int"))
_KEEP = re.compile(r"(?P<way>first|last)|(?P<best>max|min)\s*\((?P<expression>.+)\)", re.DOTALL)
_LIMIT = re.compile(r"(?P<count>\d{1,18})|(?P<share>\d{1,3}(?:\.\d{1,6})?)\s*%")
_VARIABLE = re.compile(r"\$\$\{|\$\{(?P<name>[^}]*)\}")


@dataclass(frozen=True, slots=True)
class LocatedText:
    """Text and its location."""

    value: str
    span: TextSpan

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True, slots=True)
class KeepRule:
    """Which of several rows to keep: the `first`, the `last`, or the one with `max` or `min`."""

    way: str = "last"
    expression: LocatedText | None = None


@dataclass(frozen=True, slots=True)
class RejectLimit:
    """How many rows may be rejected, or which share of them."""

    count: int | None = None
    share: float | None = None

    def __str__(self) -> str:
        return f"{self.count:,}" if self.share is None else f"{self.share * 100:g}%"


@dataclass(frozen=True, slots=True)
class PipelineSection:
    """A mapping whose fields were read; invalid values are None."""

    span: TextSpan
    values: Mapping[str, Any]
    places: Mapping[str, TextSpan]

    def get(self, name: str) -> Any:  # noqa: ANN401 - as its kind says
        """Return the value of a field, None when there is none."""
        return self.values.get(name)


def compose_yaml(report: DiagnosticReport) -> MappingNode | None:
    """Return the tree of a file; None and a diagnostic when it is not a YAML mapping."""
    text = report.source.text
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        at = min(mark.index, len(text)) if mark is not None else 0
        problem = error.problem or error.context or "it cannot be read"
        report.add(Code.PIPELINE_SYNTAX, f"invalid YAML: {problem}", TextSpan(at, at + 1))
        return None
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        reason = "it is too deeply nested" if isinstance(error, RecursionError) else str(error)
        message = f"invalid YAML: {reason.splitlines()[0]}"
        report.add(Code.PIPELINE_SYNTAX, message, TextSpan(0, 1))
        return None
    if not isinstance(root, MappingNode):
        message = "a pipeline file must be a mapping that begins with `version: 1`"
        report.add(Code.PIPELINE_SYNTAX, message, TextSpan(0, 1))
        return None
    return root


class PipelineFileReader:
    """Reads the nodes of one file."""

    def __init__(
        self,
        report: DiagnosticReport,
        variables: Mapping[str, str | None],
        target: str | None = None,
    ) -> None:
        self._report = report
        self._variables = variables
        self._target = target

    def report(self, code: Code, message: str, span: TextSpan, hint: str | None = None) -> None:
        """Report a problem."""
        self._report.add(code, message, span, hint=hint)

    def section(self, node: Node, name: str, what: str) -> PipelineSection | None:
        """Read a mapping with the fields of a section."""
        entries = self.entries(node, what)
        if entries is None:
            return None
        fields = by_name(name)
        values: dict[str, Any] = {}
        places = {key.value: key.span for key, _ in entries}
        for key, value in entries:
            field = fields.get(key.value)
            if field is None:
                hint = did_you_mean(key.value, fields)
                message = f"{what} has no field `{key}`"
                self.report(Code.PIPELINE_UNKNOWN_FIELD, message, key.span, hint)
            else:
                found = self._value(value, field, f"`{key}`")
                # An invalid value counts as present: it is not also reported as missing.
                values[key.value] = found
        for field in fields.values():
            if field.required and field.name not in values:
                hint = f"for example `{field.name}: {field.example}`" if field.example else None
                message = f"{what} needs `{field.name}`: {field.about}"
                span = self._head(node)
                self.report(Code.PIPELINE_FIELD_MISSING, message, span, hint)
        return PipelineSection(span_of(node), values, places)

    def entries(self, node: Node, what: str) -> list[tuple[LocatedText, Node]] | None:
        """Return the members of a mapping by name; duplicates are reported."""
        if not isinstance(node, MappingNode):
            message = f"{what} must be a mapping of names to values, got {_kind_of(node)}"
            self.report(Code.PIPELINE_VALUE, message, span_of(node))
            return None
        found: dict[str, tuple[LocatedText, Node]] = {}
        for key, value in node.value:
            if not isinstance(key, ScalarNode):
                message = f"a name in {what} must be plain text"
                self.report(Code.PIPELINE_VALUE, message, span_of(key))
                continue
            name = LocatedText(key.value, span_of(key))
            if key.value == "<<":
                message = "YAML merge keys (`<<`) are not supported: write the fields out"
                self.report(Code.PIPELINE_SYNTAX, message, name.span)
            elif key.value in found:
                message = f"`{key.value}` is given twice in {what}"
                self.report(Code.PIPELINE_FIELD_TWICE, message, name.span)
            else:
                found[key.value] = (name, value)
        return list(found.values())

    def _value(self, node: Node, field: PipelineField, what: str) -> Any:  # noqa: ANN401 - by kind
        match field.kind:
            case FieldKind.VERSION:
                return self._version(node)
            case FieldKind.TEXT | FieldKind.EXPRESSION | FieldKind.SQL:
                return self._text(node, what, field)
            case FieldKind.TEXTS | FieldKind.EXPRESSIONS:
                return self._texts(node, what, field)
            case FieldKind.CHOICE:
                return self._choice(node, what, field)
            case FieldKind.LIMIT:
                return self._limit(node, what)
            case FieldKind.KEEP:
                return self._keep(node, what)
            case FieldKind.BOOL:
                return self._bool(node, what)
            case FieldKind.SCALARS:
                return self._scalars(node, what)
            case FieldKind.EXPRESSION_MAP:
                return self._expressions(node, what, field)
            case FieldKind.ENDPOINT:
                if isinstance(node, MappingNode):
                    return self._expressions(node, what, field)
                return self._text(node, what, field)
            case FieldKind.SECTION:
                return self.section(node, field.section, what)
            case FieldKind.SECTIONS:
                return self._sections(node, what, field)

    def _sections(
        self, node: Node, what: str, field: PipelineField
    ) -> list[tuple[LocatedText, PipelineSection]]:
        found = []
        for name, value in self.entries(node, what) or ():
            is_other = field.section == "target" and name.value != self._target
            reader = self._without_values() if is_other else self
            section = reader.section(value, field.section, f"{field.section} `{name}`")
            if section is not None:
                found.append((name, section))
        return found

    def _without_values(self) -> PipelineFileReader:
        """Return a reader of a target that was not chosen: variables need no value there."""
        values = {name: value or "0" for name, value in self._variables.items()}
        return PipelineFileReader(self._report, values)

    def _version(self, node: Node) -> int | None:
        if _tag(node) == _INT and node.value == str(VERSION):
            return VERSION
        message = f"`version` must be {VERSION}, the only supported version"
        self.report(Code.PIPELINE_VALUE, message, span_of(node))
        return None

    def _text(self, node: Node, what: str, field: PipelineField) -> LocatedText | None:
        if not isinstance(node, ScalarNode) or (node.tag == _NULL and node.style is None):
            self._refuse(node, what, f"{_article(field.kind)}", field)
            return None
        text = self._filled(node)
        if text is not None and not text.strip():
            self._refuse(node, what, f"{_article(field.kind)}", field)
            return None
        return None if text is None else LocatedText(text, span_of(node))

    def _texts(self, node: Node, what: str, field: PipelineField) -> tuple[LocatedText, ...] | None:
        if not isinstance(node, SequenceNode):
            found = self._text(node, what, field)
            return None if found is None else (found,)
        if not node.value:
            self._refuse(node, what, f"{_article(field.kind)}", field)
        texts = [self._text(item, f"an item of {what}", field) for item in node.value]
        return tuple(text for text in texts if text is not None)

    def _choice(self, node: Node, what: str, field: PipelineField) -> str | None:
        text = self._text(node, what, field)
        if text is None or text.value in field.choices:
            return None if text is None else text.value
        choices = ", ".join(f"`{choice}`" for choice in field.choices)
        message = f"{what} must be one of {choices}, got `{text}`"
        near = nearest_name(text.value, field.choices)
        hint = None if near is None else f"did you mean `{near}`?"
        self.report(Code.PIPELINE_VALUE, message, text.span, hint)
        return None

    def _limit(self, node: Node, what: str) -> RejectLimit | None:
        text = self._filled(node) if isinstance(node, ScalarNode) else None
        match = _LIMIT.fullmatch(text.strip()) if text is not None else None
        if match is not None and match["count"] is not None:
            return RejectLimit(count=int(match["count"]))
        if match is not None and float(match["share"]) <= 100:
            return RejectLimit(share=float(match["share"]) / 100)
        message = f"{what} must be a number of rows or a percentage up to 100%"
        hint = "for example `max_rejects: 100` or `max_rejects: 1%`"
        self.report(Code.PIPELINE_VALUE, message, span_of(node), hint)
        return None

    def _keep(self, node: Node, what: str) -> KeepRule | None:
        text = self._filled(node) if isinstance(node, ScalarNode) else None
        match = _KEEP.fullmatch(text.strip()) if text is not None else None
        if match is None:
            message = f"{what} must be {FieldKind.KEEP}"
            self.report(
                Code.PIPELINE_VALUE, message, span_of(node), "for example `max(updated_at)`"
            )
            return None
        if match["way"] is not None:
            return KeepRule(match["way"])
        return KeepRule(match["best"], LocatedText(match["expression"].strip(), span_of(node)))

    def _bool(self, node: Node, what: str) -> bool | None:
        if _tag(node) == _BOOL:
            return bool(node.value.lower() in ("true", "yes", "on"))
        self.report(Code.PIPELINE_VALUE, f"{what} must be {FieldKind.BOOL}", span_of(node))
        return None

    def _scalars(self, node: Node, what: str) -> dict[str, LocatedText | None]:
        found: dict[str, LocatedText | None] = {}
        for name, value in self.entries(node, what) or ():
            if not isinstance(value, ScalarNode):
                message = f"`{name}` in {what} must be a single value, got {_kind_of(value)}"
                self.report(Code.PIPELINE_VALUE, message, span_of(value))
            elif value.tag == _NULL and value.style is None:
                found[name.value] = None
            else:
                text = self._filled(value)
                if text is not None:
                    found[name.value] = LocatedText(text, span_of(value))
        return found

    def _expressions(
        self, node: Node, what: str, field: PipelineField
    ) -> dict[str, tuple[LocatedText, LocatedText]]:
        """Return expressions by name, each with the name as it stands in the file."""
        found = {}
        for name, value in self.entries(node, what) or ():
            text = self._text(value, f"`{name}`", field)
            if text is not None:
                found[name.value] = (name, text)
        return found

    def _filled(self, node: ScalarNode) -> str | None:
        """Return the text of a scalar with variables put in; None when one has no value."""
        text: str = node.value
        missing = False

        def value_of(match: re.Match[str]) -> str:
            nonlocal missing
            name = match["name"]
            if name is None:
                return "${"
            value = self._variables.get(name)
            if value is None:
                missing = True
                self._no_variable(name, node)
            return value or ""

        filled = _VARIABLE.sub(value_of, text)
        return None if missing else filled

    def _no_variable(self, name: str, node: Node) -> None:
        span = span_of(node)
        at = self._report.source.text.find(f"${{{name}}}", span.start, span.end)
        place = span if at < 0 else TextSpan(at, at + len(name) + 3)
        if name in self._variables:
            message = f"variable `{name}` has no value"
            hint = f"set it with --set {name}=VALUE or in the environment"
        else:
            message = f"variable `{name}` is not declared"
            near = did_you_mean(name, self._variables)
            hint = near or f"declare it: `variables: {{{name or 'NAME'}: VALUE}}`"
        self.report(Code.PIPELINE_VARIABLE, message, place, hint)

    def _refuse(self, node: Node, what: str, expected: str, field: PipelineField) -> None:
        hint = f"for example `{field.name}: {field.example}`" if field.example else None
        message = f"{what} must be {expected}, got {_kind_of(node)}"
        self.report(Code.PIPELINE_VALUE, message, span_of(node), hint)

    def _head(self, node: Node) -> TextSpan:
        """Return the first line of a node: a snippet of a whole section would not help."""
        span = span_of(node)
        end = self._report.source.text.find("\n", span.start)
        return TextSpan(span.start, span.end if end < 0 else min(span.end, end))


def span_of(node: Node) -> TextSpan:
    """Return the location of a node, without trailing line breaks."""
    start, end = node.start_mark, node.end_mark
    text = start.buffer
    if text is None:
        return TextSpan(start.index, max(end.index, start.index + 1))
    stop = end.index
    while stop > start.index + 1 and text[stop - 1].isspace():
        stop -= 1
    return TextSpan(start.index, stop)


def plain_entries(root: MappingNode, *path: str) -> Iterator[tuple[str, str | None]]:
    """Yield names and plain values of the mapping at a path, as far as they are valid."""
    node: Node | None = root
    for name in path:
        entries = node.value if isinstance(node, MappingNode) else ()
        node = next((value for key, value in entries if key.value == name), None)
    for inner, scalar in node.value if isinstance(node, MappingNode) else ():
        if isinstance(inner, ScalarNode) and isinstance(scalar, ScalarNode):
            is_null = scalar.tag == _NULL and scalar.style is None
            yield inner.value, None if is_null else scalar.value


def _tag(node: Node) -> str | None:
    return str(node.tag) if isinstance(node, ScalarNode) else None


def _article(kind: FieldKind) -> str:
    match kind:
        case (
            FieldKind.EXPRESSION
            | FieldKind.EXPRESSION_MAP
            | FieldKind.EXPRESSIONS
            | FieldKind.ENDPOINT
        ):
            return "an SQL expression"
        case FieldKind.SQL:
            return "an SQL query"
        case FieldKind.CHOICE:
            return "a word"
    return "text"


def _kind_of(node: Node) -> str:
    if isinstance(node, MappingNode):
        return "a mapping"
    if isinstance(node, SequenceNode):
        return "a list" if node.value else "an empty list"
    if node.tag == _NULL or not node.value.strip():
        return "no value"
    return "a single value"
