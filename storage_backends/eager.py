"""Continues a coroutine that a caller has run by hand (`coroutine.send(None)`), without the event loop, up to where it
first waits.

A call of a store that has its result at hand needs no task, no timeout and no turn of the event loop: `send` raises
`StopIteration` with the result. A coroutine that does wait becomes a `Waiting`, which goes on from where it stopped.
"""

from collections.abc import Coroutine, Generator
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Waiting(Generic[T]):
    """A coroutine that has begun, and the future for which it waits. To await this object is to let the coroutine go on
    to its end."""

    __slots__ = ("_coroutine", "_future")

    def __init__(self, coroutine: Coroutine[Any, Any, T], future: object) -> None:
        self._coroutine = coroutine
        self._future = future

    def __await__(self) -> Generator[Any, Any, T]:
        future = self._future
        while True:
            try:
                sent = yield future
            except GeneratorExit:  # nothing awaits this any more, and the coroutine may be closed already
                self._coroutine.close()
                raise
            except BaseException as error:  # a cancellation, mostly: it is the coroutine's to take
                try:
                    future = self._coroutine.throw(error)
                except StopIteration as end:
                    result: T = end.value
                    return result
            else:
                try:
                    future = self._coroutine.send(sent)
                except StopIteration as end:
                    result = end.value
                    return result
