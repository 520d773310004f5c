"""This module decides which `@check` patterns are legal: those the validator can run.

The validator matches with RE2 through Arrow, so RE2 is asked, not Python's `re`.
"""

from __future__ import annotations

from functools import lru_cache


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
