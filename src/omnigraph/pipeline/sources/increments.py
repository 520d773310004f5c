"""Read what is new in incremental sources: rows above a cursor, or files not read before."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import unquote

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    DataType,
    DateType,
    DoubleType,
    FloatType,
    NumericType,
    StringType,
    TimestampNTZType,
    TimestampType,
)

from omnigraph.errors import InvalidInput
from omnigraph.pipeline.config.spec import Pipeline, SourceSpec, referenced_sources
from omnigraph.pipeline.runs.watermarks import FILE_DIGEST_BYTES, Watermark, pack_digests
from omnigraph.write.inputs.byte_streams import UnreadableInput

_KINDS = (DateType, NumericType, StringType, TimestampNTZType, TimestampType)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def incremental_names(pipeline: Pipeline) -> list[str]:
    """Return the names of the watermarks of a pipeline."""
    return [_name(pipeline, spec) for spec in pipeline.sources.values() if spec.incremental]


def _name(pipeline: Pipeline, spec: SourceSpec) -> str:
    return f"{pipeline.name}/{spec.name}"


@dataclass(slots=True)
class Increments:
    """The incremental sources of one run: where they begin, and how far they were read."""

    pipeline: Pipeline
    spark: SparkSession
    before: Mapping[str, Watermark]
    full_refresh: bool = False
    made: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The watermarks of the sources that were opened."""
    _unchanged: set[str] = field(default_factory=set)
    """Sources in which nothing is new."""

    def recorded(self) -> dict[str, dict[str, Any]]:
        """Return the watermarks for the commit of the run.

        A source in which nothing is new has none: it would hide how far another run got meanwhile.
        """
        found = {name: mark for name, mark in self.made.items() if name not in self._unchanged}
        return {_name(self.pipeline, self.pipeline.sources[n]): m for n, m in found.items()}

    def facts(self, name: str) -> dict[str, Any]:
        """Return from where to where an incremental source is read, for reports."""
        if name not in self.made:
            return {}
        before = self.before.get(f"{self.pipeline.name}/{name}")
        if "cursor" not in self.made[name]:
            return {"incremental": {"files": "new"}}
        after = None if before is None or self.full_refresh else before.value
        bounds = {"after": after, "to": self.made[name].get("value")}
        return {"incremental": {"cursor": self.made[name]["cursor"], **bounds}}

    def _begin(self, spec: SourceSpec) -> Watermark | None:
        """Return the watermark to continue; raise if it is one of other rows or types."""
        assert spec.incremental is not None, "only incremental sources have a watermark"
        before = self.before.get(_name(self.pipeline, spec))
        types = _types_made_from(self.pipeline, spec)
        cursor = None if spec.incremental.cursor is None else spec.incremental.cursor.value.strip()
        self.made[spec.name.value] = {
            "after": None if before is None else before.commit,
            "types": types,
            **({} if cursor is None else {"cursor": cursor}),
        }
        if before is None or self.full_refresh:
            return None
        new = sorted(set(types) - set(before.types))
        if new:
            what = f"{', '.join(new)} was not loaded by earlier runs"
        elif set(before.types) - set(types):
            what = f"earlier runs also loaded {', '.join(sorted(set(before.types) - set(types)))}"
        elif before.cursor != cursor:
            what = f"earlier runs used `{before.cursor or 'files: new'}`"
        else:
            return before
        raise _mismatch(spec, f"{what}: load the same types, or")

    # --- rows ----------------------------------------------------------------------------------

    def new_rows(self, spec: SourceSpec, frame: DataFrame) -> tuple[DataFrame, int]:
        """Return the rows above the watermark up to the greatest cursor there is, and their number.

        Rows that a source gets meanwhile are above that, and left for the next run.
        """
        assert spec.incremental is not None, "the caller found a cursor"
        assert spec.incremental.cursor is not None, "the caller found a cursor"
        before = self._begin(spec)
        cursor = F.expr(spec.incremental.cursor.value)
        kind = frame.select(cursor).schema[0].dataType
        if not isinstance(kind, _KINDS):
            message = f"the cursor has type {kind.simpleString()}, which has no greatest value"
            raise UnreadableInput(message)
        if isinstance(kind, DoubleType | FloatType):
            cursor = F.when(~F.isnan(cursor), cursor)
        is_new = F.lit(True)
        if before is not None and before.value is not None:
            type_ = before.type or kind.simpleString()
            if _family(type_) == _family(kind.simpleString()):
                is_new = cursor > _literal(before.value, type_)
            elif not frame.where(cursor.isNotNull()).isEmpty():
                what = f"the cursor of earlier runs was {type_}, not {kind.simpleString()}"
                raise _mismatch(spec, f"{what}: cast it, or")
        frame = frame.where(is_new | cursor.isNull())
        row = frame.agg(_text(F.max(cursor), kind), F.count(F.lit(1))).collect()[0]
        newest, count = _readable(row[0], kind), int(row[1])
        made_of: str | None = kind.simpleString()
        if newest is not None:
            frame = frame.where((cursor <= _literal(newest, kind.simpleString())) | cursor.isNull())
        elif before is not None:
            newest, made_of = before.value, before.type
            self._unchanged.add(spec.name.value)
        self.made[spec.name.value] |= {"type": made_of, "value": newest}
        return frame, count

    # --- files ---------------------------------------------------------------------------------

    def new_files(
        self, spec: SourceSpec, paths: Sequence[str], listing: Mapping[str, str], names: list[str]
    ) -> list[str]:
        """Return the files of a source that were not read before, by name, size and time."""
        if spec.incremental is None or spec.incremental.cursor is not None:
            return names
        before = self._begin(spec)
        seen = frozenset[bytes]() if before is None else before.files
        listed = self.spark.read.format("binaryFile").options(**listing).load([*paths])
        facts = listed.select("path", "length", "modificationTime").collect()
        digests = {re.sub("^file:/+", "/", row[0]): self._digest(row) for row in facts}
        found = {name: digests.get(name) or digests[unquote(name)] for name in names}
        new = {name: digest for name, digest in found.items() if digest not in seen}
        self.made[spec.name.value] |= {"files": pack_digests(set(new.values()))}
        if before is not None and not new:
            self._unchanged.add(spec.name.value)
        return list(new)

    def _digest(self, row: Sequence[Any]) -> bytes:
        path, length, modified = row
        name = re.sub("^file:/+", "/", path).removeprefix(f"{self.pipeline.folder}/")
        moment = modified.astimezone(UTC).isoformat()
        text = f"{name}\0{length}\0{moment}"
        return hashlib.blake2b(text.encode(), digest_size=FILE_DIGEST_BYTES).digest()


def _mismatch(spec: SourceSpec, what: str) -> InvalidInput:
    """Return the error of a watermark that cannot be continued."""
    message = (
        f"source `{spec.name}` is incremental, and {what} read all rows again with --full-refresh"
    )
    return InvalidInput(message, code="watermark_mismatch", source=spec.name.value)


def _types_made_from(pipeline: Pipeline, spec: SourceSpec) -> list[str]:
    """Return the types whose rows come from a source, also by way of queries."""
    names, size = {spec.name.value}, 0
    while size < len(names):
        size = len(names)
        for name, source in pipeline.sources.items():
            if names & set(referenced_sources(source, pipeline.sources)):
                names.add(name)
    return sorted(type_.table_key for type_ in pipeline.types if type_.source.value in names)


def _text(value: Column, kind: DataType) -> Column:
    """Return a value as text that reads back as the same value in any time zone."""
    return (F.unix_micros(value) if isinstance(kind, TimestampType) else value).cast("string")


def _readable(text: str | None, kind: DataType) -> str | None:
    """Return the text of a value for people; `_literal` reads it."""
    if text is None or not isinstance(kind, TimestampType):
        return text
    return (_EPOCH + timedelta(microseconds=int(text))).isoformat(timespec="microseconds")


def _literal(text: str, type_: str) -> Column:
    """Return the value of a text that `_readable` made of a value of a Spark type."""
    if type_ == "timestamp":
        micros = (datetime.fromisoformat(text) - _EPOCH) // timedelta(microseconds=1)
        return F.timestamp_micros(F.lit(micros))
    return F.lit(text).cast(type_)


def _family(type_: str) -> str:
    """Return the kind of a Spark type: values of one kind can be compared."""
    if type_.startswith(("string", "char", "varchar")):
        return "text"
    return "time" if type_ in ("date", "timestamp", "timestamp_ntz") else "number"
