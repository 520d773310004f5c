"""Coroutines made of the blocking methods of the remote client, with the same signatures."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from functools import partial, wraps
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

from omnigraph.service.client.event_loop import EventLoopTransport

_PartT = TypeVar("_PartT")
_PartT_co = TypeVar("_PartT_co", covariant=True)
_T = TypeVar("_T")
_WrappedT = TypeVar("_WrappedT")
_P = ParamSpec("_P")


class AsyncPart(Generic[_PartT_co]):
    """Something of a remote graph, whose methods are coroutines."""

    def __init__(self, part: _PartT_co, loop: EventLoopTransport) -> None:
        self._part = part
        self._loop = loop


def awaited(
    method: Callable[Concatenate[_PartT, _P], _T],
) -> Callable[Concatenate[AsyncPart[_PartT], _P], Coroutine[Any, Any, _T]]:
    """Return a method as a coroutine."""

    @wraps(method)
    async def call(self: AsyncPart[_PartT], /, *args: _P.args, **kwargs: _P.kwargs) -> _T:
        return await self._loop.run(partial(method, self._part, *args, **kwargs))

    return call


def awaited_as(
    method: Callable[Concatenate[_PartT, _P], _T],
    wrap: Callable[[_T, EventLoopTransport], _WrappedT],
) -> Callable[Concatenate[AsyncPart[_PartT], _P], Coroutine[Any, Any, _WrappedT]]:
    """Return a method as a coroutine whose outcome has coroutines of its own."""

    @wraps(method)
    async def call(self: AsyncPart[_PartT], /, *args: _P.args, **kwargs: _P.kwargs) -> _WrappedT:
        answer = await self._loop.run(partial(method, self._part, *args, **kwargs))
        return wrap(answer, self._loop)

    return call


def iterated(
    method: Callable[Concatenate[_PartT, _P], Iterator[_T]],
) -> Callable[Concatenate[AsyncPart[_PartT], _P], AsyncIterator[_T]]:
    """Return a method that gives an iterator as one that gives an asynchronous iterator."""

    @wraps(method)
    def call(self: AsyncPart[_PartT], /, *args: _P.args, **kwargs: _P.kwargs) -> AsyncIterator[_T]:
        return self._loop.iterate(partial(method, self._part, *args, **kwargs))

    return call
