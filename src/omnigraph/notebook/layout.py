"""Place nodes by forces: connected ones near each other, all apart; equal input, equal places."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

_GOLDEN_ANGLE = math.pi * (3 - math.sqrt(5))
_TICKS = 140


@dataclass(slots=True)
class Place:
    """The middle of a node."""

    x: float
    y: float


def lay_out(
    widths: Sequence[float], links: Sequence[tuple[int, int]], *, height: float, distance: float
) -> list[Place]:
    """Return the places of boxes of a height and of widths; links pull their ends together."""
    places = [
        Place(
            math.cos(n * _GOLDEN_ANGLE) * distance * math.sqrt(n + 0.5),
            math.sin(n * _GOLDEN_ANGLE) * distance * 0.6 * math.sqrt(n + 0.5),
        )
        for n in range(len(widths))
    ]
    pulls = [(a, b) for a, b in dict.fromkeys(links) if a != b]
    for tick in range(_TICKS):
        _move(places, pulls, distance, distance * 0.5 * (1 - tick / _TICKS))
        _separate(places, widths, height)
    return places


def _move(
    places: list[Place], pulls: Sequence[tuple[int, int]], distance: float, reach: float
) -> None:
    """Move every node by the forces on it, at most so far."""
    forces = [Place(-one.x * 0.06, -one.y * 0.12) for one in places]
    for a, one in enumerate(places):
        for b in range(a):
            other = places[b]
            dx, dy = one.x - other.x, one.y - other.y
            push = distance**2 / max(dx * dx + dy * dy, 1.0) * 0.9
            forces[a].x += dx * push
            forces[a].y += dy * push
            forces[b].x -= dx * push
            forces[b].y -= dy * push
    for a, b in pulls:
        dx, dy = places[b].x - places[a].x, places[b].y - places[a].y
        length = math.hypot(dx, dy) or 1.0
        pull = (length - distance) / length * 0.5
        forces[a].x += dx * pull
        forces[a].y += dy * pull
        forces[b].x -= dx * pull
        forces[b].y -= dy * pull
    for place, force in zip(places, forces, strict=True):
        scale = min(1.0, reach / (math.hypot(force.x, force.y) or 1.0))
        place.x += force.x * scale
        place.y += force.y * scale


def _separate(places: list[Place], widths: Sequence[float], height: float) -> None:
    """Push overlapping boxes apart, along the axis on which they overlap less."""
    for a, one in enumerate(places):
        for b in range(a):
            other = places[b]
            dx, dy = one.x - other.x, one.y - other.y
            across = (widths[a] + widths[b]) / 2 - abs(dx)
            down = height - abs(dy)
            if across <= 0 or down <= 0:
                continue
            if across < down:
                shift = math.copysign(across / 2, dx or 1.0)
                one.x += shift
                other.x -= shift
            else:
                shift = math.copysign(down / 2, dy or 1.0)
                one.y += shift
                other.y -= shift
