"""Types of properties, parameters and expressions."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from omnigraph.types.scalar import SCALARS, Scalar, ScalarSpec, json_kind

MAX_VECTOR_DIMENSION = 2_147_483_647


@dataclass(frozen=True, slots=True)
class PropertyType:
    """A scalar, possibly a list of it, possibly nullable, possibly limited to enum values."""

    scalar: Scalar
    nullable: bool = False
    is_list: bool = False
    enum_values: tuple[str, ...] | None = None
    dimension: int | None = None

    def __post_init__(self) -> None:
        if (self.scalar is Scalar.VECTOR) != (self.dimension is not None):
            raise ValueError("a Vector has a dimension, nothing else does")
        if self.dimension is not None and not 1 <= self.dimension <= MAX_VECTOR_DIMENSION:
            raise ValueError(f"vector dimension must be 1..{MAX_VECTOR_DIMENSION}")
        if self.is_list and self.scalar in (Scalar.VECTOR, Scalar.BLOB):
            raise ValueError(f"list of {self.scalar} is not supported")
        if self.enum_values is not None:
            if self.scalar is not Scalar.STRING or self.is_list:
                raise ValueError("only a plain String can be an enum")
            if not self.enum_values:
                raise ValueError("an enum needs at least one value")
            object.__setattr__(self, "enum_values", tuple(sorted(set(self.enum_values))))

    def __str__(self) -> str:
        return self.base_text + ("?" if self.nullable else "")

    @property
    def base_text(self) -> str:
        """The spelling without the nullability mark."""
        if self.enum_values is not None:
            return f"enum({', '.join(self.enum_values)})"
        name = f"Vector({self.dimension})" if self.dimension is not None else str(self.scalar)
        return f"[{name}]" if self.is_list else name

    @property
    def spec(self) -> ScalarSpec:
        """The registry row of the scalar."""
        return SCALARS[self.scalar]

    @property
    def numeric(self) -> bool:
        """Whether one value is a number."""
        return self.spec.numeric and not self.is_list

    @property
    def text(self) -> bool:
        """Whether one value is a String (an enum is one)."""
        return self.scalar is Scalar.STRING and not self.is_list

    @property
    def orderable(self) -> bool:
        """Whether values have an order."""
        return self.spec.orderable and not self.is_list

    @property
    def keyable(self) -> bool:
        """Whether values can identify an entity."""
        return self.spec.key_text is not None and not self.is_list

    @property
    def element(self) -> PropertyType:
        """The type of one element of a list."""
        return replace(self, is_list=False, nullable=False)

    def as_nullable(self, nullable: bool = True) -> PropertyType:
        """Return the same type with the given nullability."""
        return replace(self, nullable=nullable)

    def comparable_with(self, other: PropertyType) -> bool:
        """Return whether the two may be compared: same list-ness, same scalar or both numbers."""
        if self.is_list != other.is_list:
            return False
        if self.scalar == other.scalar:
            return self.dimension == other.dimension
        return self.spec.numeric and other.spec.numeric

    def from_json(self, value: Any) -> Any:
        """Turn a decoded JSON value into ours, or raise ValueError saying what was expected."""
        if value is None:
            if self.nullable:
                return None
            raise ValueError(f"expected {self}, got null")
        return self.convert(value, self.spec.from_json)

    def convert(self, value: Any, convert: Callable[[Any], Any]) -> Any:
        """Convert a value, or each of a list, which contains no null; check the dimension."""
        if self.is_list:
            return self._convert_list(value, convert)
        converted = convert(value)
        if self.dimension is not None and len(converted) != self.dimension:
            raise ValueError(f"expected {self.dimension} values, got {len(converted)}")
        return converted

    def _convert_list(self, value: Any, convert: Callable[[Any], Any]) -> list[Any]:
        if not isinstance(value, list | tuple):
            raise ValueError(f"expected array, got {json_kind(value)}")
        items = []
        for index, item in enumerate(value):
            if item is None:
                raise ValueError(f"element {index}: expected {self.element}, got null")
            try:
                items.append(convert(item))
            except ValueError as error:
                raise ValueError(f"element {index}: {error}") from error
        return items

    def to_json(self) -> dict[str, Any]:
        """Return the wire form used in migration steps and the accepted schema."""
        scalar: Any = {"Vector": self.dimension} if self.dimension else str(self.scalar)
        values = list(self.enum_values) if self.enum_values is not None else None
        return {
            "scalar": scalar,
            "nullable": self.nullable,
            "list": self.is_list,
            "enum_values": values,
        }

    @classmethod
    def from_wire(cls, wire: Mapping[str, Any]) -> PropertyType:
        """Read the form `to_json` writes."""
        scalar = wire["scalar"]
        dimension = scalar["Vector"] if isinstance(scalar, Mapping) else None
        values = wire["enum_values"]
        return cls(
            Scalar.VECTOR if dimension else Scalar(scalar),
            nullable=wire["nullable"],
            is_list=wire["list"],
            enum_values=tuple(values) if values is not None else None,
            dimension=dimension,
        )


# ----------------------------------------------------------------------
# Ids from key values


def key_text(value: Any, type_: PropertyType) -> str:
    """Render one stored value as canonical scalar text; raise ValueError if it has none."""
    if value is None:
        raise ValueError("null cannot identify an entity")
    render = type_.spec.key_text
    if render is None or type_.is_list:
        raise ValueError(f"a {type_} value cannot identify an entity")
    return render(value)


def entity_id(members: Sequence[tuple[Any, PropertyType]]) -> str:
    """Return the id made of key members, which must be ordered by stable property id.

    >>> from omnigraph.types import PropertyType, Scalar
    >>> entity_id([(42, PropertyType(Scalar.I64))])
    '42'
    >>> entity_id([(42, PropertyType(Scalar.I64)), (True, PropertyType(Scalar.BOOL))])
    '["42","true"]'
    """
    if not members:
        raise ValueError("a key has at least one member")
    texts = [key_text(value, type_) for value, type_ in members]
    if len(texts) == 1:
        return texts[0]
    return json.dumps(texts, ensure_ascii=False, separators=(",", ":"))


# ----------------------------------------------------------------------
# Patterns of `@check`: valid are those that the validator can run.
#
# The validator matches with RE2 through Arrow, so RE2 checks patterns, not Python's `re`.


@lru_cache(maxsize=1024)
def pattern_problem(pattern: str) -> str | None:
    """Return why `pattern` is not a regular expression, or None when it is one."""
    # Arrow costs a tenth of a second to import; only schemas with @check pay for it.
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.compute as pc  # noqa: PLC0415

    try:
        pc.match_substring_regex(pa.array([""]), pattern)
    except pa.ArrowInvalid as error:
        return str(error).removeprefix("Invalid regular expression: ")
    return None
