"""Clocks a test controls: of commits made in this process, and of whole child processes."""

from __future__ import annotations

import datetime as standard
import sys
import time
from collections.abc import Callable
from datetime import datetime, timedelta, tzinfo
from multiprocessing.connection import Connection
from typing import Any

from omnigraph.commit import graph_creation, publish
from omnigraph.errors import OmniError
from tests.support.children import TIMEOUT, Place, finish, start


class Clock:
    """Stands for `datetime` where commits take their time from; it is set by the test."""

    def __init__(self, monkeypatch: Any, start: datetime) -> None:
        self.instant = start
        for module in (graph_creation, publish):
            monkeypatch.setattr(module, "datetime", self)

    def now(self, zone: tzinfo | None = None) -> datetime:
        """Return the time a test has set."""
        return self.instant.astimezone(zone)


# --- skewed processes --------------------------------------------------------------------------


class SkewedProcess:
    """A child process with its own clock; `call` runs a function of this process in it.

    The function gets the graph, opened in the child, and a dict that lives as long as the child.
    """

    def __init__(self, place: Place, skew: timedelta) -> None:
        self._process, self._connection = start(_serve, place, skew)

    def __enter__(self) -> SkewedProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.send(None)
        assert finish(self._process) == 0
        self._connection.close()

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Run a function in the child; return its result, or the code of its error."""
        self._connection.send((function, arguments))
        assert self._connection.poll(TIMEOUT), "the child does not answer"
        return self._connection.recv()


def _serve(connection: Connection, place: Place, skew: timedelta) -> None:
    shift_clock(skew)
    graph, kept = place.open(), dict[str, Any]()
    while (order := connection.recv()) is not None:
        function, arguments = order
        try:
            connection.send(function(graph, kept, *arguments))
        except OmniError as error:
            connection.send(error.code)


def shift_clock(skew: timedelta) -> None:
    """Shift every wall clock this process reads; the store's and monotonic clocks stay right."""
    seconds, true_time, true_ns = skew.total_seconds(), time.time, time.time_ns
    time.time = lambda: true_time() + seconds
    time.time_ns = lambda: true_ns() + int(seconds * 1e9)

    class Kind(type):
        def __instancecheck__(cls, value: object) -> bool:
            return isinstance(value, standard.datetime)

    class Shifted(standard.datetime, metaclass=Kind):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> standard.datetime:  # type: ignore[override]
            return standard.datetime.now(tz) + skew

    for name, module in list(sys.modules.items()):
        if name.startswith("omnigraph") and vars(module).get("datetime") is standard.datetime:
            module.datetime = Shifted  # type: ignore[attr-defined]
