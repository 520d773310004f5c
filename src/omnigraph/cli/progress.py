"""This module shows how far something long is, on a terminal only."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def showing(what: str, *, sized: bool = True) -> Iterator[Callable[[Any], None] | None]:
    """Give a function to tell progress to; None where nobody would see it.

    `sized` tells that bytes are counted too.
    """
    if not sys.stderr.isatty():
        yield None
        return
    # Rich is for terminals only; plain output must not pay for it.
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import (  # noqa: PLC0415
        BarColumn,
        DownloadColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        *([DownloadColumn()] if sized else []),
        TextColumn("{task.fields[rows]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None, rows="")

        def tell(progress: Any) -> None:  # noqa: ANN401 - any report of progress
            rate = progress.rows / max(bar.tasks[0].elapsed or 0.0, 0.001)
            bar.update(
                task,
                description=f"{what}: {progress.phase}",
                completed=progress.bytes,
                total=progress.total_bytes,
                rows=f"{progress.rows:,} rows, {rate:,.0f}/s",
            )

        yield tell
