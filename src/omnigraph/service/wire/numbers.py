"""This module names the numbers of the wire: none of them is negative."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

Count = Annotated[int, Meta(ge=0)]
Long = Annotated[int, Meta(ge=0, extra_json_schema={"format": "int64"})]
Short = Annotated[int, Meta(ge=0, extra_json_schema={"format": "int32"})]
Micros = Annotated[int, Meta(extra_json_schema={"format": "int64"})]
"""Microseconds since 1970."""
