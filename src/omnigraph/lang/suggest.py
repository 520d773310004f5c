"""This module finds the name somebody probably meant."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

_MAX_NAME = 64
_CUTOFF = 0.7


def nearest_name(wrong: str, known: Iterable[str]) -> str | None:
    """Return the known name closest to `wrong`, or None when nothing is close."""
    if len(wrong) > _MAX_NAME:
        return None
    by_folded: dict[str, str] = {}
    for name in sorted(known):
        by_folded.setdefault(name.lower(), name)
    close = get_close_matches(wrong.lower(), by_folded, n=1, cutoff=_CUTOFF)
    return by_folded[close[0]] if close else None


def did_you_mean(wrong: str, known: Iterable[str], *, prefix: str = "") -> str | None:
    """Return a hint that names the nearest known name, or lists a few when none is near."""
    names = sorted(known)
    nearest = nearest_name(wrong, names)
    if nearest is not None:
        return f"did you mean `{prefix}{nearest}`?"
    if not names:
        return None
    shown = ", ".join(f"`{prefix}{name}`" for name in names[:6])
    return f"known names: {shown}" + (f" and {len(names) - 6} more" if len(names) > 6 else "")
