"""The truth table of a three-way merge of one entity.

An entity may be in the base, in the source and in the target. What only one side changed is taken
from it; what both changed alike is fine; anything else is a conflict.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

Mask = npt.NDArray[np.bool_]


class MergeVerdict(IntEnum):
    """What becomes of one entity."""

    KEEP_TARGET = 0
    TAKE_SOURCE = 1
    DIVERGENT_INSERT = 2
    DIVERGENT_UPDATE = 3
    DELETE_VS_UPDATE = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreeWayComparison:
    """For each entity: where it is, and which sides hold the same.

    Two sides that lack an entity hold the same.
    """

    in_base: Mask
    in_source: Mask
    in_target: Mask
    source_is_base: Mask
    target_is_base: Mask
    source_is_target: Mask


def classify_rows(sides: ThreeWayComparison) -> npt.NDArray[np.int8]:
    """Return the verdict on each entity."""
    both_there = sides.in_source & sides.in_target
    return np.select(
        [
            sides.source_is_target | sides.source_is_base,
            sides.target_is_base,
            both_there & sides.in_base,
            both_there,
        ],
        [
            MergeVerdict.KEEP_TARGET,
            MergeVerdict.TAKE_SOURCE,
            MergeVerdict.DIVERGENT_UPDATE,
            MergeVerdict.DIVERGENT_INSERT,
        ],
        MergeVerdict.DELETE_VS_UPDATE,
    ).astype(np.int8)
