"""Dataclasses that get their methods with the first instance.

`dataclasses.dataclass` compiles the methods of a class when its module is imported, which takes half a millisecond. A
cold start imports 150 such classes, and needs instances of a third of them (docs/decisions/0012-cold-start.md).
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import KW_ONLY, MISSING, Field, InitVar, fields
from dataclasses import dataclass as complete_dataclass
from operator import eq, ge, gt, le, lt
from threading import RLock
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar

T = TypeVar("T")

_LOCK = RLock()  # two threads may make the first instances of a class at once; a class may have to complete its bases
_LAST = ("__init__", "__dataclass_fields__")
"""What completes a class: from its constructor on, other threads make instances, which need all before it, and its
fields show that it is complete."""


class _Fields:
    """Stands in for `__dataclass_fields__` of a class that is not complete, and completes it when it is read: by
    `dataclasses.replace` and `fields`, by subclasses, and by methods that stand in for others."""

    def __init__(self, complete: Callable[[], None]) -> None:
        self._complete = complete

    def __get__(self, instance: object, owner: type) -> object:
        self._complete()
        return owner.__dataclass_fields__  # type: ignore[attr-defined]


def lazy_dataclass(
    plain: type[T] | None = None, /, *, slots: bool = False, **options: bool
) -> type[T] | Callable[[type[T]], type[T]]:
    """Makes a class a dataclass, with the `options` of `dataclasses.dataclass`. As in any dataclass with slots, its
    methods can't use `super()` without arguments. Raises `TypeError` for a base that acts when it gets a subclass,
    which would happen twice, and for a field with a slot whose default the constructor would have to set without an
    argument."""
    if plain is None:
        return lambda plain: _lazy(plain, slots, options)
    return _lazy(plain, slots, options)


def _lazy(plain: type[T], slots: bool, options: Mapping[str, bool]) -> type[T]:
    """Returns a class like `plain` without the methods of a dataclass, to which its first instance adds them: those
    that `dataclasses.dataclass` adds to `plain`."""
    before, names = {**vars(plain)}, [name for name, kind in plain.__annotations__.items() if not _is_no_field(kind)]
    metaclass: Callable[..., type[T]] = type(plain)
    _refuse(plain, names if slots else ())
    begun = False

    def complete() -> None:
        nonlocal begun
        with _LOCK:
            if not isinstance(vars(lazy)["__dataclass_fields__"], _Fields):
                return
            # An interrupt may have left the first class incomplete.
            source = metaclass(plain.__name__, plain.__bases__, _without_fields(before, ())) if begun else plain
            begun = True
            after = _without_fields(vars(complete_dataclass(**options)(source)), names)
            for name in sorted(after, key=lambda each: _LAST.index(each) + 1 if each in _LAST else 0):
                if after[name] is not before.get(name, MISSING):  # `__hash__` may become None
                    setattr(lazy, name, after[name])

    def initialize(self: T, *args: object, **kwargs: object) -> None:
        complete()
        lazy.__init__(self, *args, **kwargs)

    body: dict[str, object] = {**_stand_ins(options), **_without_fields(before, names if slots else ())}
    if slots:
        body["__slots__"] = tuple(names)
        if not issubclass(plain, BaseException):  # an exception is recreated from its arguments
            body = {"__getstate__": _state_of, "__setstate__": _set_state, **body}
    else:
        body |= {name: each.default for name, each in body.items() if isinstance(each, Field)}
    body |= {"__init__": initialize, "__dataclass_fields__": _Fields(complete)}
    lazy = metaclass(
        plain.__name__, plain.__bases__, {name: each for name, each in body.items() if each is not MISSING}
    )
    lazy.__qualname__ = plain.__qualname__
    return lazy


def _is_no_field(kind: object) -> bool:
    """Whether an annotation is one of those by which `dataclasses.dataclass` makes no field of an instance."""
    if isinstance(kind, str):
        return kind.removeprefix("typing.").removeprefix("dataclasses.").startswith(("ClassVar", "InitVar", "KW_ONLY"))
    return (
        kind in (ClassVar, KW_ONLY, InitVar)
        or getattr(kind, "__origin__", None) is ClassVar
        or isinstance(kind, InitVar)
    )


def _refuse(plain: type, slots: Collection[str]) -> None:
    """Raises `TypeError` as `lazy_dataclass` does."""
    for base in plain.__mro__[1:]:
        if "__init_subclass__" in vars(base) and base not in (object, Generic):
            raise TypeError(
                f"{plain.__qualname__} can't be a lazy dataclass: {base.__qualname__} acts for each subclass"
            )
    for name in slots:
        each = vars(plain).get(name)
        if isinstance(each, Field) and not each.init and each.default is not MISSING:
            raise TypeError(
                f"{plain.__qualname__} can't be a lazy dataclass: its constructor leaves the slot {name} empty"
            )


def _without_fields(attributes: Mapping[str, object], names: Collection[str]) -> dict[str, object]:
    """Returns the attributes of which a class can be recreated, without the fields with these names."""
    return {name: each for name, each in attributes.items() if name not in {*names, "__dict__", "__weakref__"}}


def _stand_in(call: Callable[..., object]) -> Callable[..., object]:
    """Returns the method that stands in for the one that `call` calls: it completes the class of an instance that
    skipped the constructor."""

    def complete_and_call(self: object, *args: object) -> object:
        fields(self)  # type: ignore[arg-type]
        return call(self, *args)

    return complete_and_call


_REPR, _EQUAL = {"__repr__": _stand_in(repr)}, {"__eq__": _stand_in(eq)}
_ORDER = {f"__{each.__name__}__": _stand_in(each) for each in (lt, le, gt, ge)}
_FROZEN = {"__setattr__": _stand_in(setattr), "__delattr__": _stand_in(delattr)}
_HASH = {"__hash__": _stand_in(hash)}


def _stand_ins(options: Mapping[str, bool]) -> Mapping[str, object]:
    """Returns what stands in for the methods that these options add to a class until it is complete."""
    has_equal, is_frozen = options.get("eq", True), options.get("frozen", False)
    has_hash = options.get("unsafe_hash", False) or (has_equal and is_frozen)
    return {
        **(_REPR if options.get("repr", True) else {}),
        **(_EQUAL if has_equal else {}),
        **(_ORDER if options.get("order", False) else {}),
        **(_FROZEN if is_frozen else {}),
        **(_HASH if has_hash else {}),
    }


def _state_of(instance: object) -> Sequence[object]:
    """Returns the values of a dataclass's fields, to pickle it."""
    return [getattr(instance, field.name) for field in fields(instance)]  # type: ignore[arg-type]


def _set_state(instance: object, state: Sequence[object]) -> None:
    """Sets the fields of an unpickled dataclass."""
    for field, value in zip(fields(instance), state, strict=True):  # type: ignore[arg-type]
        object.__setattr__(instance, field.name, value)  # a frozen instance allows no other way


if TYPE_CHECKING:  # type checkers know these classes as the standard library's
    from dataclasses import dataclass as dataclass
else:
    dataclass = lazy_dataclass
