"""Dataclasses that get their methods when one is first called.

`dataclasses.dataclass` compiles the methods of a class when its module is imported, which takes half a millisecond. A
cold start imports 150 such classes, needs instances of a third of them, and compares or prints hardly any
(docs/decisions/0012-cold-start.md). So the first instance compiles the constructor alone, and the first call of any
other method compiles all of them. Where a base is a dataclass, or a field is an `InitVar`, the first instance compiles
all.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import KW_ONLY, MISSING, Field, InitVar, fields
from dataclasses import dataclass as complete_dataclass
from threading import RLock
from types import MemberDescriptorType
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar, cast

T = TypeVar("T")

_LOCK = RLock()  # two threads may make the first instances of a class at once; a class may have to complete its bases
_LAST = "__dataclass_fields__"
"""What completes a class: its fields show that it has all methods."""


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
    """Returns a new class like `plain` that is a dataclass, with the `options` of `dataclasses.dataclass`, and gets the
    methods of one at first use; without a class, returns the decorator that does. Its methods can't use `super()`
    without arguments. Raises `TypeError` for a base that acts when it gets a subclass, which would happen twice, and,
    with slots, for a field that has a default and is no argument of the constructor (`init` False)."""
    if plain is None:
        return lambda plain: _lazy(plain, slots, options)
    return _lazy(plain, slots, options)


def _lazy(plain: type[T], slots: bool, options: Mapping[str, bool]) -> type[T]:
    """Returns a class like `plain` without the methods that `dataclasses.dataclass` adds to `plain`. The first instance
    adds the constructor, and the first use of another method or of the fields adds all of them; so does the first
    instance if a base is a dataclass or a field is an `InitVar`. Not for a class that defines `__init__`, or for the
    option `init` False."""
    before, forms = {**vars(plain)}, {name: _special_form(kind) for name, kind in plain.__annotations__.items()}
    names = [name for name, form in forms.items() if form is None]
    metaclass: Callable[..., type[T]] = type(plain)
    _refuse(plain, names if slots else ())
    has_init_var = "InitVar" in forms.values()
    is_simple = options.get("init", True) and not has_init_var and not _has_dataclass_base(plain)

    def copied() -> type[T]:
        """Returns a new copy of the class as it was before it became lazy: the library's decorator changes a class, and
        may be interrupted."""
        return metaclass(plain.__name__, plain.__bases__, _without_fields(before, ()))

    def complete() -> None:
        with _LOCK:
            if not isinstance(vars(lazy)["__dataclass_fields__"], _Fields):
                return
            after = _without_fields(vars(complete_dataclass(**options)(copied())), names)
            if is_simple:
                del after["__init__"]
            for name in sorted(after, key=lambda each: each == _LAST):
                if after[name] is not before.get(name, MISSING):  # `__hash__` may become None
                    setattr(lazy, name, after[name])

    def add_constructor() -> None:
        shape = copied()
        constructor = _constructor(shape, lazy, options)
        lazy.__match_args__ = shape.__match_args__  # type: ignore[attr-defined, misc]
        lazy.__init__ = constructor  # type: ignore[method-assign]

    def initialize(self: T, *args: object, **kwargs: object) -> None:
        with _LOCK:
            if vars(lazy)["__init__"] is initialize:
                (add_constructor if is_simple else complete)()
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


def _has_dataclass_base(plain: type) -> bool:
    """Whether a base of a class is a dataclass, lazy or not; completes none."""
    return any("__dataclass_fields__" in vars(base) for base in plain.__mro__[1:])


def _constructor(copied: type, lazy: type, options: Mapping[str, bool]) -> Callable[..., None]:
    """Returns the constructor of a dataclass, by its fields, which the library finds in a copy of the class. The
    library's own constructor of a frozen class takes three times as long to compile, because two other methods come
    with it."""
    found = fields(complete_dataclass(init=False, repr=False, eq=False, kw_only=options.get("kw_only", False))(copied))
    known: dict[str, object] = {"_MISSING": MISSING, "_set": object.__setattr__}
    positional, named, lines = ["_self"], ["*"], []
    for each in found:
        name, value, default = each.name, each.name, ""
        if each.default_factory is not MISSING:
            known[f"_make_{name}"], default = each.default_factory, "=_MISSING"
            value = f"_make_{name}() if {name} is _MISSING else {name}" if each.init else f"_make_{name}()"
        elif each.default is not MISSING:
            known[f"_default_{name}"], default = each.default, f"=_default_{name}"
        if each.init:
            (named if each.kw_only else positional).append(f"{name}{default}")
        elif each.default_factory is MISSING:
            continue
        slot = getattr(lazy, name, None)
        if not options.get("frozen", False):
            lines.append(f"_self.{name} = {value}")
        elif isinstance(slot, MemberDescriptorType):
            known[f"_set_{name}"] = slot.__set__
            lines.append(f"_set_{name}(_self, {value})")
        else:
            lines.append(f"_set(_self, {name!r}, {value})")
    if hasattr(copied, "__post_init__"):
        lines.append("_self.__post_init__()")
    arguments = ", ".join([*positional, *(named if len(named) > 1 else ())])
    exec(f"def __init__({arguments}):\n " + "\n ".join(lines or ["pass"]), known)
    constructor = cast(Callable[..., None], known["__init__"])
    constructor.__qualname__ = f"{lazy.__qualname__}.__init__"
    return constructor


def _special_form(kind: object) -> str | None:
    """Returns the name of the form of an annotation, `ClassVar`, `InitVar` or `KW_ONLY`, by which
    `dataclasses.dataclass` makes no field of an instance; None for that of a field."""
    if isinstance(kind, str):
        name = kind.partition("[")[0].rpartition(".")[2]
        return name if name in ("ClassVar", "InitVar", "KW_ONLY") else None
    if kind is InitVar or isinstance(kind, InitVar):
        return "InitVar"
    if kind is ClassVar or getattr(kind, "__origin__", None) is ClassVar:
        return "ClassVar"
    return "KW_ONLY" if kind is KW_ONLY else None


def _refuse(plain: type, slots: Collection[str]) -> None:
    """Raises `TypeError` if a class can't be a lazy dataclass: a base acts when it gets a subclass, or one of the
    fields with `slots` has a default that the constructor would not set."""
    for base in plain.__mro__[1:]:
        if "__init_subclass__" in vars(base) and base not in (object, Generic):
            raise TypeError(
                f"{plain.__qualname__} can't be a lazy dataclass: {base.__qualname__} acts for each subclass"
            )
    for name in slots:
        each = vars(plain).get(name)
        if isinstance(each, Field) and not each.init and each.default is not MISSING:
            raise TypeError(
                f"{plain.__qualname__} can't be a lazy dataclass: the field {name} has init=False and a default, so "
                f"its constructor leaves the slot {name} empty: use a default_factory, or no slots"
            )


def _without_fields(attributes: Mapping[str, object], names: Collection[str]) -> dict[str, object]:
    """Returns the attributes of which a class can be recreated, without the fields with these names."""
    return {name: each for name, each in attributes.items() if name not in {*names, "__dict__", "__weakref__"}}


def _stand_in(name: str) -> Callable[..., object]:
    """Returns the function that stands in for the method with this name in a lazy dataclass: it completes the class,
    and then calls the method that the class has by then."""

    def complete_and_call(self: object, *args: object) -> object:
        fields(self)  # type: ignore[arg-type]
        # A subclass may have taken this function for the method itself (`__hash__ = Base.__hash__`).
        found = (vars(base)[name] for base in type(self).__mro__ if name in vars(base))
        method: Callable[..., object] = next(each for each in found if each is not complete_and_call)
        return method(self, *args)

    return complete_and_call


_REPR, _EQUAL, _HASH = ({name: _stand_in(name)} for name in ("__repr__", "__eq__", "__hash__"))
_ORDER = {name: _stand_in(name) for name in ("__lt__", "__le__", "__gt__", "__ge__")}
_FROZEN = {name: _stand_in(name) for name in ("__setattr__", "__delattr__")}


def _stand_ins(options: Mapping[str, bool]) -> Mapping[str, object]:
    """Returns what stands in for the methods, except the constructor, that these options add to a class until it is
    complete."""
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
