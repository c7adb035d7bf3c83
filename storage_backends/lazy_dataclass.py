"""Dataclasses that get their methods with the first instance.

`dataclasses.dataclass` compiles the methods of a class when its module is imported, which takes half a millisecond. A
cold start imports 150 such classes, and needs instances of a third of them (docs/decisions/0012-cold-start.md).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass as complete_dataclass
from dataclasses import fields
from threading import RLock
from typing import TYPE_CHECKING, TypeVar

T = TypeVar("T")

_MISSING = object()
_LOCK = RLock()  # two threads may make the first instances of a class at once; a class may have to complete its bases


class _Fields:
    """Stands in for `__dataclass_fields__` of a class that is not complete, and completes it when it is read: by
    `dataclasses.replace` and `fields`, and by subclasses."""

    def __init__(self, complete: Callable[[], None]) -> None:
        self._complete = complete

    def __get__(self, instance: object, owner: type) -> object:
        self._complete()
        return owner.__dataclass_fields__  # type: ignore[attr-defined]


def lazy_dataclass(
    plain: type[T] | None = None, /, *, slots: bool = False, **options: bool
) -> type[T] | Callable[[type[T]], type[T]]:
    """Makes a class a dataclass, with the `options` of `dataclasses.dataclass`. As in any dataclass with slots, its
    methods can't use `super()` without arguments."""
    if plain is None:
        return lambda plain: _lazy(plain, slots, options)
    return _lazy(plain, slots, options)


def _lazy(plain: type[T], slots: bool, options: Mapping[str, bool]) -> type[T]:
    """Returns a class like `plain` without the methods of a dataclass, to which its first instance adds them: those
    that `dataclasses.dataclass` adds to `plain`."""
    before, names = {**vars(plain)}, tuple(plain.__annotations__)

    def complete() -> None:
        with _LOCK:
            if not isinstance(vars(lazy)["__dataclass_fields__"], _Fields):
                return
            after = vars(complete_dataclass(**options)(plain))
            # The constructor comes last: from then on other threads make instances, which need all the rest.
            for name in sorted(after.keys() - names, key="__init__".__eq__):
                if after[name] is not before.get(name, _MISSING):  # `__hash__` may become None
                    setattr(lazy, name, after[name])

    def initialize(self: T, *args: object, **kwargs: object) -> None:
        complete()
        lazy.__init__(self, *args, **kwargs)

    own = {name: value for name, value in before.items() if name not in {*names, "__dict__", "__weakref__"}}
    body = {"__getstate__": _state_of, "__setstate__": _set_state, **own, **({"__slots__": names} if slots else {})}
    metaclass: Callable[..., type[T]] = type(plain)
    body |= {"__init__": initialize, "__dataclass_fields__": _Fields(complete)}
    lazy = metaclass(plain.__name__, plain.__bases__, body)
    lazy.__qualname__ = plain.__qualname__
    return lazy


def _state_of(instance: object) -> Sequence[object]:
    return [getattr(instance, field.name) for field in fields(instance)]  # type: ignore[arg-type]


def _set_state(instance: object, state: Sequence[object]) -> None:
    for field, value in zip(fields(instance), state, strict=True):  # type: ignore[arg-type]
        object.__setattr__(instance, field.name, value)  # a frozen instance allows no other way


if TYPE_CHECKING:  # type checkers know these classes as the standard library's
    from dataclasses import dataclass as dataclass
else:
    dataclass = lazy_dataclass
