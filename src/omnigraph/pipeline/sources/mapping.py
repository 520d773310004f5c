"""Map the rows of a source to rows of a type, by the expressions of a pipeline.

Only the DataFrame API is used, which works on any kind of Spark. An expression that Spark rejects
is reported with its location in the pipeline file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from operator import or_
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    NullType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from omnigraph.catalog import AcceptedSchema, EdgeType, NodeType, TypeKind
from omnigraph.lang import Code, DiagnosticReport, TextSpan, did_you_mean
from omnigraph.pipeline.config.document import LocatedText
from omnigraph.pipeline.config.resolve import type_of
from omnigraph.pipeline.config.spec import FILE_KINDS, DedupeSpec, EdgeEndpoint, TypeSpec
from omnigraph.pipeline.load.model import FAULTY, FILE, ROW, TypeFrame
from omnigraph.pipeline.sessions.spark_errors import error_summary, unknown_column
from omnigraph.pipeline.sources.analysis import Analysis, analyse_expressions
from omnigraph.pipeline.sources.extract import SourceFrame, quote_identifier, readable_rows
from omnigraph.pipeline.sources.guards import (
    FAULT_COLUMN,
    failure_reason,
    failure_test,
    first_reason,
    plain_reason,
    wrong_kind_reason,
)
from omnigraph.types import PropertyType, Scalar, entity_id
from omnigraph.write.coercion import coerce_value, parse_text_value
from omnigraph.write.inputs.table_reader import can_hold

_TEXT = PropertyType(Scalar.STRING)
_ENDS = {"from": ("from", "src"), "to": ("to", "dst")}
_END_WORDS = {"src": "from", "dst": "to"}
_NUMBERS = (Scalar.I32, Scalar.I64, Scalar.U32, Scalar.U64, Scalar.F32, Scalar.F64)
_KINDS: dict[Scalar, tuple[str, ...]] = {
    **dict.fromkeys(Scalar, ("string",)),
    **dict.fromkeys(_NUMBERS, ("integer", "number")),
    Scalar.BOOL: ("boolean",),
    Scalar.DATE: ("string", "integer"),
    Scalar.DATE_TIME: ("string", "integer"),
}
"""The kinds of JSON values that values of a type are given as."""
_OPERATION = "@operation"
_DELETE, _UPSERT = "delete", "upsert"
_OPERATIONS = {
    **dict.fromkeys(("delete", "d"), _DELETE),
    **dict.fromkeys(("insert", "i", "create", "c", "read", "r", "update", "u"), _UPSERT),
}
_FAULT = quote_identifier(FAULT_COLUMN)


@dataclass(frozen=True, slots=True, kw_only=True)
class MappedType:
    """The rows of a type, and what each of its columns is made from."""

    input: TypeFrame
    columns: Mapping[str, tuple[str, str]]
    """By name: the expression, and the Spark type it gives."""


class RowMapper:
    """Maps the rows of one source to one type."""

    def __init__(
        self, spec: TypeSpec, source: SourceFrame, schema: AcceptedSchema, report: DiagnosticReport
    ) -> None:
        type_ = type_of(spec, schema.catalog)
        assert type_ is not None, "the pipeline was checked against the catalog before"
        self._spec, self._source, self._report = spec, source, report
        self._type: NodeType | EdgeType = type_
        self._schema = schema
        self._frame = readable_rows(source)
        self._found_errors = False
        self._analysed: dict[str, Analysis] = {}
        self._rule = spec.dedupe
        if spec.operation is not None and spec.dedupe is None:
            self._rule = DedupeSpec(span=spec.operation.span)

    def map(self, unreadable: int = 0) -> MappedType | None:
        """Return the rows of the type; None when something was reported.

        Rows of the source that could not be read are not among them: `unreadable` many.
        """
        if self._source.is_empty:
            return self._nothing(unreadable)
        wanted = self._wanted()
        parts = [text for texts in wanted.values() for text, _ in texts]
        texts = [text.value for text in (*parts, *(text for _, text in self._rules()))]
        self._analysed = analyse_expressions(self._frame, texts)
        self._check(wanted)
        if self._spec.where is not None:
            self._accepts(self._spec.where)
        if not self._found_errors:
            if self._spec.where is not None:
                self._frame = self._frame.where(self._chosen(self._spec.where))
            self._guard(wanted)
        self._dedupe(wanted)
        return None if self._found_errors else self._selected(wanted, unreadable)

    def _nothing(self, unreadable: int) -> MappedType:
        """Return no row, of a source whose columns are not known because it has none."""
        names = [*self._type.properties, *(("from", "to") if self._is_edge else ())]
        schema = ", ".join(f"{quote_identifier(name)} string" for name in names)
        spark = self._frame.sparkSession
        present = spark.createDataFrame([], "id string") if self._spec.delete_missing else None
        given = TypeFrame(
            self._spec.table_key,
            spark.createDataFrame([], schema),
            text=True,
            present=present,
            unreadable=unreadable if self._spec.delete_missing else 0,
        )
        return MappedType(input=given, columns={})

    @property
    def _is_edge(self) -> bool:
        return isinstance(self._type, EdgeType)

    # --- columns of the type -------------------------------------------------------------------

    def _wanted(self) -> dict[str, list[tuple[LocatedText, PropertyType]]]:
        """Return by column the expressions it is made from; more than one only for endpoints."""
        found: dict[str, list[tuple[LocatedText, PropertyType]]] = {}
        for name, text in self._properties().items():
            found[name] = [(text, self._type.properties[name].type)]
        if self._spec.id is not None:
            found["id"] = [(self._spec.id, _TEXT)]
        elif self._spec.properties is None and self._has("id") and not self._key():
            found["id"] = [(self._column("id"), _TEXT)]
        if isinstance(self._type, EdgeType):
            ends = (
                ("from", self._spec.src, self._type.src),
                ("to", self._spec.dst, self._type.dst),
            )
            for word, given, node in ends:
                found[word] = self._endpoint(word, given, self._schema.catalog.nodes[node])
        return found

    def _properties(self) -> dict[str, LocatedText]:
        if self._spec.properties is not None:
            return {name: text for name, (_, text) in self._spec.properties.items()}
        found = {name: self._column(name) for name in self._type.properties if self._has(name)}
        for property_ in self._type.properties.values():
            needed = not property_.type.nullable and property_.embed is None
            if needed and property_.name not in found:
                message = (
                    f"{self._spec.kind} `{self._spec.name}`: source `{self._source.spec.name}` has "
                    f"no column `{property_.name}`"
                )
                near = did_you_mean(property_.name, self._source.columns)
                self._report_error(
                    Code.PIPELINE_PROPERTY_MISSING, message, self._spec.source.span, near
                )
        return found

    def _endpoint(
        self, word: str, given: EdgeEndpoint, node: NodeType
    ) -> list[tuple[LocatedText, PropertyType]]:
        if isinstance(given, Mapping):
            order = self._schema.key_order(TypeKind.NODE, node.name)
            return [(given[name][1], node.properties[name].type) for name in order]
        if isinstance(given, LocatedText):
            return [(given, _TEXT)]
        column = next((name for name in _ENDS[word] if self._has(name)), None)
        if column is not None:
            return [(self._column(column), _TEXT)]
        message = f"edge `{self._spec.name}` has no `{word}`, and its source has no such column"
        hint = f"name the column with the id of the {node.name}: `{word}: EXPRESSION`"
        self._report_error(Code.PIPELINE_ENDPOINT_INVALID, message, self._spec.name.span, hint)
        return []

    def _key(self) -> tuple[str, ...]:
        return self._type.key

    def _has(self, name: str) -> bool:
        return name in self._source.columns

    def _column(self, name: str) -> LocatedText:
        return LocatedText(quote_identifier(name), self._spec.source.span)

    # --- expressions ---------------------------------------------------------------------------

    def _check(self, wanted: Mapping[str, list[tuple[LocatedText, PropertyType]]]) -> None:
        """Report each expression that Spark does not accept, and each type that cannot fit."""
        for name, parts in wanted.items():
            for text, type_ in parts:
                if self._accepts(text) and len(parts) == 1:
                    self._check_type(name, text, type_)
        if self._spec.operation is not None:
            self._accepts(self._spec.operation)

    def _check_type(self, name: str, text: LocatedText, type_: PropertyType) -> None:
        given = self._type_of(text)
        is_mixed = self._bare(text) in self._source.mixed
        if name in ("id", "from", "to") or is_mixed or self._fits(given, type_):
            return
        message = (
            f"`{text.value}` has type {given.simpleString()}, "
            f"but {self._spec.name}.{name} is {type_}"
        )
        self._report_error(
            Code.PIPELINE_EXPRESSION, message, text.span, "cast it, or use another column"
        )

    def _fits(self, given: DataType, type_: PropertyType) -> bool:
        if self._source.is_text and isinstance(given, StringType):
            return True
        if isinstance(given, NullType):
            return True
        return can_hold(to_arrow_type(given, timezone="UTC"), type_)

    def _accepts(self, text: LocatedText) -> bool:
        try:
            self._type_of(text)
        except PySparkException as error:
            column = unknown_column(error)
            if column is not None:
                message = f"source `{self._source.spec.name}` has no column `{column}`"
                hint = did_you_mean(column, self._source.columns)
            else:
                message, hint = (
                    f"Spark rejected `{text.value}`: {error_summary(error)}",
                    None,
                )
            self._report_error(Code.PIPELINE_EXPRESSION, message, text.span, hint)
            return False
        return True

    def _type_of(self, text: LocatedText) -> DataType:
        found = self._analysed[text.value]
        if isinstance(found, PySparkException):
            raise found
        return found

    def _rules(self) -> list[tuple[str, LocatedText]]:
        """Return the expressions that choose rows, and where each is."""
        found = [("where", self._spec.where), ("operation", self._spec.operation)]
        if self._rule is not None:
            found += [("dedupe", text) for text in (*self._rule.by, self._rule.keep.expression)]
        return [(name, text) for name, text in found if text is not None]

    def _report_error(
        self, code: Code, message: str, span: TextSpan, hint: str | None = None
    ) -> None:
        self._found_errors = True
        self._report.add(code, message, span, hint=hint)

    # --- rows for which an expression fails ----------------------------------------------------

    def _guard(self, wanted: Mapping[str, list[tuple[LocatedText, PropertyType]]]) -> None:
        """Note in a column of the frame for which rows an expression fails."""
        given = [(name, part) for name, parts in wanted.items() for part in parts]
        faults = [self._mixed_fault(name, *part) for name, part in given]
        texts = [*((name, text) for name, (text, _) in given), *self._rules()]
        computed = [(name, text) for name, text in texts if self._bare(text) is None]
        tests = {text.value: failure_test(text.value) for _, text in computed}
        # Expressions such as `explode` cannot stand inside of another.
        analysed = analyse_expressions(self._frame, list(tests.values()))
        for name, text in computed:
            test = tests[text.value]
            if not isinstance(analysed[test], PySparkException):
                is_property = name not in ("where", "dedupe", "operation")
                where = f"{self._spec.name}.{name}" if is_property else name
                message = f"{where}: `{text.value}` cannot be computed for this row"
                faults.append(failure_reason(self._frame, text.value, name, message))
        found = first_reason(fault for fault in faults if fault is not None)
        self._frame = self._frame.withColumn(FAULT_COLUMN, found)

    def _chosen(self, where: LocatedText) -> Column:
        """Return which rows `where` takes, and those for which it fails, which are rejected.

        A comparison that cannot fail stands alone, so that the source can prune partitions and
        skip row groups by it.
        """
        if _is_total(where.value, self._frame.schema):
            return F.expr(where.value)
        test = failure_test(where.value)
        if isinstance(analyse_expressions(self._frame, [test])[test], PySparkException):
            return F.expr(where.value)
        return F.when(F.expr(test), F.lit(True)).otherwise(F.expr(where.value))

    def _mixed_fault(self, name: str, text: LocatedText, type_: PropertyType) -> Column | None:
        """Return for which rows a column of JSON has a value of another kind than is meant."""
        column = self._bare(text)
        if column is None or column not in self._source.mixed:
            return None
        kinds = ("array",) if type_.is_list or type_.dimension is not None else _KINDS[type_.scalar]
        message = f"{self._spec.name}.{name}: expected {' or '.join(kinds)}"
        return wrong_kind_reason(column, kinds, name, message)

    def _bare(self, text: LocatedText) -> str | None:
        """Return the column name if an expression is a plain column."""
        plain = text.value.strip()
        name = plain[1:-1].replace("``", "`") if plain.startswith("`") else plain
        return name if self._has(name) else None

    def _sound(self, text: LocatedText) -> Column:
        """Return the value of an expression where no expression fails, otherwise null."""
        if self._bare(text) is not None:
            return F.expr(text.value)
        return F.when(F.col(quote_identifier(FAULT_COLUMN)).isNull(), F.expr(text.value))

    # --- deduplication -------------------------------------------------------------------------

    def _dedupe(self, wanted: Mapping[str, list[tuple[LocatedText, PropertyType]]]) -> None:
        rule = self._rule
        if rule is None:
            return
        key = self._key_parts(wanted)
        accepted = [self._accepts(text) for text in rule.by]
        if rule.keep.expression is not None:
            accepted.append(self._accepts(rule.keep.expression))
        elif not self._source.is_placed:
            message = (
                f"`{rule.keep.way}` needs the position of rows, which source "
                f"`{self._source.spec.name}` does not have"
            )
            hint = "choose the row by a value: `keep: max(updated_at)`"
            self._report_error(Code.PIPELINE_CONTRADICTION, message, rule.span, hint)
        if not (rule.by or key):
            message = f"`dedupe` of {self._spec.kind} `{self._spec.name}` needs `by`: it has no key"
            self._report_error(Code.PIPELINE_FIELD_MISSING, message, rule.span)
        if self._found_errors:
            return
        alike = [self._sound(text) for text in rule.by] or [self._key_value(*part) for part in key]
        window = Window.partitionBy(F.col(quote_identifier(FAULT_COLUMN)).isNull(), *alike).orderBy(
            *self._order()
        )
        numbered = self._frame.withColumn("@best", F.row_number().over(window))
        is_kept = (F.col("`@best`") == 1) | F.col(_FAULT).isNotNull()
        if not rule.by:  # rows without a key are invalid, not alike
            is_kept |= reduce(or_, (value.isNull() for value in alike))
        self._frame = numbered.where(is_kept).drop("@best")

    def _key_parts(
        self, wanted: Mapping[str, list[tuple[LocatedText, PropertyType]]]
    ) -> list[tuple[LocatedText, PropertyType]]:
        """Return what identifies an entity: the members of the key, the id, or both ends."""
        key = [_END_WORDS.get(name, name) for name in self._key()]
        key = key or [name for name in ("id",) if name in wanted]
        names = key or [name for name in ("from", "to") if name in wanted]
        return [part for name in names for part in wanted.get(name, ())]

    def _key_value(self, text: LocatedText, type_: PropertyType) -> Column:
        """Return the value of a key; texts of the same value are equal."""
        value = self._sound(text)
        if not isinstance(self._type_of(text), StringType):
            return value
        if type_.spec.integer:
            is_number = value.rlike("^[+-]?[0-9]{1,38}$")
            same = F.when(is_number, value.try_cast("decimal(38,0)")).cast("string")
        elif type_.scalar is Scalar.BOOL:
            same = F.lower(value)
        elif type_.scalar is Scalar.DATE_TIME:
            has_zone = value.rlike("(Z|[+-][0-9]{2}:?[0-9]{2})$")
            same = F.unix_micros(F.when(has_zone, value.try_cast("timestamp"))).cast("string")
        else:
            return value
        return F.coalesce(same, value)

    def _order(self) -> list[Column]:
        assert self._rule is not None, "only then is there an order"
        keep = self._rule.keep
        places = (
            [F.col(quote_identifier(FILE)), F.col(quote_identifier(ROW))]
            if self._source.is_placed
            else []
        )
        if keep.way == "first":
            return [place.asc() for place in places]
        last = [place.desc() for place in places]
        if keep.expression is None:
            return last
        value = self._sound(keep.expression)
        best = value.desc_nulls_last() if keep.way == "max" else value.asc_nulls_last()
        return [best, *last]

    # --- rows of the type ----------------------------------------------------------------------

    def _selected(
        self, wanted: Mapping[str, list[tuple[LocatedText, PropertyType]]], unreadable: int
    ) -> MappedType:
        columns: list[Column] = []
        keyed: dict[str, list[tuple[str, PropertyType]]] = {}
        described: dict[str, tuple[str, str]] = {}
        types = {
            name: self._type_of(parts[0][0]) for name, parts in wanted.items() if len(parts) == 1
        }
        is_text = self._needs_text(wanted, types)
        for name, parts in wanted.items():
            if name in ("from", "to") and self._by_key(name):
                keyed[name] = []
                for number, (text, type_) in enumerate(parts):
                    part = f"@{name}{number}"
                    keyed[name].append((part, type_))
                    columns.append(self._sound(text).alias(part))
                described[name] = (", ".join(text.value for text, _ in parts), "key")
                continue
            [(text, _)] = parts
            column = self._sound(text)
            described[name] = (text.value, types[name].simpleString())
            if name in ("id", "from", "to"):
                column = _id_text(column, types[name])
            elif is_text:
                column = _as_text(column, types[name])
            columns.append(column.alias(name))
        places = [FILE, ROW] if self._source.is_placed else []
        kept = [F.col(quote_identifier(name)) for name in (FAULT_COLUMN, *places)]
        if self._spec.operation is not None:
            kept.append(_operation(self._sound(self._spec.operation)).alias(_OPERATION))
        frame = self._frame.select(*columns, *kept)
        if keyed:
            frame = _with_ids(frame, keyed)
        spec = self._source.spec
        is_read = spec.kind in FILE_KINDS and spec.incremental is None and self._rule is None
        given = TypeFrame(self._spec.table_key, frame, text=is_text, stable=is_read)
        if self._spec.operation is not None:
            given = self._split(given, self._spec.operation)
        elif self._spec.delete_missing:
            present = self._ids(frame.withColumn(FAULTY, F.col(_FAULT).isNotNull()), FAULTY)
            given = replace(given, present=present, unreadable=unreadable)
        return MappedType(input=given, columns=described)

    # --- deletes -------------------------------------------------------------------------------

    def _split(self, given: TypeFrame, text: LocatedText) -> TypeFrame:
        """Take the rows that delete out of a frame; those with an unknown operation are faulty."""
        operation = F.col(quote_identifier(_OPERATION))
        message = f"{self._spec.name}: `{text.value}` must be insert, update or delete"
        unknown = operation.isNull() | ~operation.isin(_DELETE, _UPSERT)
        names = [F.col(quote_identifier(name)) for name, _ in self._members()]
        unnamed = reduce(or_, (name.isNull() for name in names))
        fault = F.coalesce(
            F.col(_FAULT),
            F.when(unknown, plain_reason("operation", message, operation)),
            F.when(
                (operation == _DELETE) & unnamed,
                plain_reason("operation", f"{self._spec.name}: a delete without key", operation),
            ),
        )
        frame = given.frame.withColumn(FAULT_COLUMN, fault)
        deletes = (operation == _DELETE) & F.col(_FAULT).isNull()
        return replace(
            given,
            frame=frame.where(~deletes | deletes.isNull()).drop(_OPERATION),
            deleted=self._ids(frame.where(deletes)),
        )

    def _members(self) -> list[tuple[str, PropertyType]]:
        """Return the columns that name an entity: those of the key, or the id."""
        kind, name = self._spec.kind, self._spec.name.value
        order = [_END_WORDS.get(one, one) for one in self._schema.key_order(kind, name)]
        types = {one: property_.type for one, property_ in self._type.properties.items()}
        return [(one, types.get(one, _TEXT)) for one in order or ["id"]]

    def _ids(self, frame: DataFrame, *more: str) -> DataFrame:
        """Return the ids of rows."""
        members = self._members()
        names = [name for name, _ in members]
        if names == ["id"] and not self._key():
            return frame.select("id", *more)
        keyed = frame.select(*map(quote_identifier, [*names, *more]))
        return _with_ids(keyed, {"id": members}, is_lenient=FAULTY not in more)

    def _by_key(self, name: str) -> bool:
        given = self._spec.src if name == "from" else self._spec.dst
        return isinstance(given, Mapping)

    def _needs_text(
        self,
        wanted: Mapping[str, list[tuple[LocatedText, PropertyType]]],
        types: Mapping[str, DataType],
    ) -> bool:
        """Return whether cells of text are to become values of other types."""
        return any(
            (self._source.is_text or self._bare(wanted[name][0][0]) in self._source.mixed)
            and isinstance(types[name], StringType)
            and not can_hold(pa.string(), wanted[name][0][1])
            for name in types
            if name not in ("id", "from", "to")
        )


_COMPARISON = re.compile(
    r"\s*`?(\w+)`?\s*(?:=|==|<=>|!=|<>|<=?|>=?)\s*"
    r"(?:(?P<text>'[^'\\]*')|(?P<number>-?\d{1,9})|(?P<day>date\s*'\d{4}-\d\d-\d\d'))\s*",
    re.IGNORECASE,
)
_COMPARED = {
    "text": (StringType,),
    "number": (ByteType, ShortType, IntegerType, LongType, DecimalType, FloatType, DoubleType),
    "day": (DateType, TimestampType, TimestampNTZType),
}


def _is_total(text: str, schema: StructType) -> bool:
    """Return whether a condition only compares columns with literals of their types."""
    columns = {one.name.lower(): one.dataType for one in schema}
    for part in re.split(r"\band\b", text, flags=re.IGNORECASE):
        match = _COMPARISON.fullmatch(part)
        if match is None or not isinstance(
            columns.get(match[1].lower()), _COMPARED[match.lastgroup or "text"]
        ):
            return False
    return True


def _operation(column: Column) -> Column:
    """Return what the name of an operation means; other names are as they are."""
    word = F.lower(F.trim(column.cast("string")))
    found = F.when(F.lit(False), F.lit(""))
    for name, meaning in _OPERATIONS.items():
        found = found.when(word == name, F.lit(meaning))
    return found.otherwise(word)


def _id_text(column: Column, type_: DataType) -> Column:
    return column if isinstance(type_, StringType) else column.cast("string")


def _as_text(column: Column, type_: DataType) -> Column:
    """Return a column as the cells of a text file would have it."""
    if isinstance(type_, StringType):
        return column
    if isinstance(type_, ArrayType | StructType | MapType):
        return F.to_json(column)
    if isinstance(type_, TimestampType):
        since = F.unix_micros(column) * F.expr("INTERVAL '0.000001' SECOND")
        return _utc_text(F.expr("TIMESTAMP_NTZ '1970-01-01 00:00:00'") + since)
    if isinstance(type_, TimestampNTZType):
        return _utc_text(column)
    if isinstance(type_, BinaryType):
        return F.concat(F.lit("base64:"), F.base64(column))
    return column.cast("string")


def _utc_text(moment: Column) -> Column:
    """Return a time without a zone as text in UTC; no zone of the session skips or repeats it."""
    text = F.regexp_replace(moment.cast("string"), " ", "T")
    return F.concat(
        F.rpad(F.concat(text, F.when(~text.contains("."), ".").otherwise("")), 26, "0"), F.lit("Z")
    )


def _with_ids(
    frame: DataFrame,
    keyed: Mapping[str, list[tuple[str, PropertyType]]],
    *,
    is_lenient: bool = True,
) -> DataFrame:
    """Return a frame in which values of key properties became the ids made from them.

    Values that no key can have give a text that names no entity, or null unless it `is_lenient`.
    """
    parts = {part for members in keyed.values() for part, _ in members}
    plain = [field for field in frame.schema if field.name not in parts]
    schema = StructType([*plain, *(StructField(name, StringType()) for name in keyed)])
    kept = [field.name for field in plain]

    def make(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            ids = [_ids(batch, members, is_lenient=is_lenient) for members in keyed.values()]
            arrays = [*(batch.column(name) for name in kept), *ids]
            yield pa.RecordBatch.from_arrays(arrays, names=[*kept, *keyed])

    return frame.mapInArrow(make, schema)


def _ids(
    batch: pa.RecordBatch, members: list[tuple[str, PropertyType]], *, is_lenient: bool
) -> pa.Array:
    columns = [batch.column(name).to_pylist() for name, _ in members]
    types = [type_ for _, type_ in members]
    rows = zip(*columns, strict=True)
    ids = [_one_id(list(zip(row, types, strict=True)), is_lenient=is_lenient) for row in rows]
    return pa.array(ids, pa.string())


def _one_id(members: list[tuple[Any, PropertyType]], *, is_lenient: bool) -> str | None:
    """Return an id; of values that no key can have a text that names no entity, or null."""
    if any(value is None for value, _ in members):
        return None
    try:
        return entity_id([(_value(value, type_), type_) for value, type_ in members])
    except ValueError:
        return ", ".join(str(value) for value, _ in members) if is_lenient else None


def _value(value: Any, type_: PropertyType) -> Any:  # noqa: ANN401 - any value
    return coerce_value(type_, parse_text_value(type_, value) if isinstance(value, str) else value)
