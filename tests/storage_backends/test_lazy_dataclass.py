"""Lazy dataclasses are dataclasses, only later."""

import ast
import copy
import dataclasses
import pickle
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import FrozenInstanceError, InitVar, field, fields, replace
from functools import cached_property
from pathlib import Path
from threading import Barrier
from typing import Any, ClassVar

import pytest

from storage_backends import lazy_dataclass
from storage_backends.lazy_dataclass import dataclass
from tools.support.environment import PROJECT

COMPLETE = ("storage_backends/lazy_dataclass.py",)
SERVE_NO_REQUESTS = ("arco_catalog/cli", "arco_catalog/cuts.py", "arco_catalog/prove", "arco_catalog/upkeep")


@dataclass(frozen=True, slots=True)
class Point:
    """With defaults."""

    x: int
    y: int = 2
    tags: list[str] = field(default_factory=list, compare=False, repr=False)


@dataclasses.dataclass(frozen=True, slots=True)
class Complete:
    """A class like `Point`, by the standard library alone."""

    x: int
    y: int = 2
    tags: list[str] = field(default_factory=list, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Label(Point):
    """A subclass of a class that may have no instance yet."""

    name: str = "n"


@dataclass(frozen=True)
class Square:
    """Without slots."""

    x: int

    @cached_property
    def double(self) -> int:
        return 2 * self.x


@dataclass
class Mutable:
    """Without options."""

    x: int = 1


@dataclass(slots=True)
class Number:
    """Has no instance before it is unpickled."""

    x: int


def test_each_method_is_made_when_it_is_first_called() -> None:
    @dataclass(frozen=True, slots=True)
    class Fresh:
        """Has no instance."""

        x: int = 0

    before = {name: vars(Fresh)[name] for name in ("__eq__", "__hash__", "__repr__", "__setattr__", "__init__")}
    fresh = Fresh()
    assert [name for name, method in before.items() if vars(Fresh)[name] is not method] == ["__init__"]
    match fresh:
        case Fresh(x):
            assert x == 0
    hash(fresh)
    assert all(vars(Fresh)[name] is not method for name, method in before.items())


def test_instances_are_those_of_a_dataclass() -> None:
    lazy, complete = Point(1), Complete(1)
    other: object = complete
    assert (lazy.x, lazy.y, lazy.tags) == (complete.x, complete.y, complete.tags)
    assert lazy == Point(1, 2, ["not compared"])
    assert lazy != Point(1, 3)
    assert lazy != other
    assert hash(lazy) == hash(complete)
    assert repr(lazy) == repr(complete).replace("Complete", "Point")
    assert replace(lazy, y=3) == Point(1, 3)
    assert [each.name for each in fields(Point)] == [each.name for each in fields(Complete)]
    assert Point.__match_args__ == Complete.__match_args__
    assert Point.__slots__ == Complete.__slots__
    assert lazy.tags is not Point(1).tags
    match lazy:
        case Point(x, y):
            assert (x, y) == (1, 2)


def test_errors_are_those_of_a_dataclass() -> None:
    with pytest.raises(FrozenInstanceError):
        Point(1).x = 2  # type: ignore[misc]
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'x'"):
        Point()  # type: ignore[call-arg]
    with pytest.raises(AttributeError):
        Number(1).y = 1  # type: ignore[attr-defined]


@pytest.mark.parametrize("slots", [True, False])
@pytest.mark.parametrize("frozen", [True, False])
def test_constructors_are_as_those_of_the_library(slots: bool, frozen: bool) -> None:
    def shape() -> type:
        class Shape:
            """With all forms of fields."""

            x: int
            y: int = 2
            parts: list[int] = field(default_factory=list)
            name: str = field(default="n", kw_only=True)
            made: list[int] = field(default_factory=list, init=False)

            def __post_init__(self) -> None:
                self.made.append(self.y)

        return Shape

    lazy: type = dataclass(frozen=frozen, slots=slots)(shape())
    complete: type = dataclasses.dataclass(frozen=frozen, slots=slots)(shape())
    for arguments, named in (
        ((1,), {}),
        ((1, 3, [4]), {"name": "m"}),
        ((), {"x": 1, "parts": [5]}),
        ((), {}),
        ((1, 2, [], "m"), {}),
        ((1,), {"z": 1}),
        ((1,), {"made": []}),
    ):
        assert _made(lazy, arguments, named) == _made(complete, arguments, named)


def _made(shape: type, arguments: Sequence[object], named: Mapping[str, object]) -> object:
    """Returns the fields of an instance with these arguments, or the error of the constructor."""
    try:
        instance = shape(*arguments, **named)
    except TypeError as error:
        return str(error)
    return {name: getattr(instance, name) for name in ("x", "y", "parts", "name", "made")}


def test_a_subclass_completes_its_base() -> None:
    assert Label(1, name="a") == Label(1, 2, name="a")
    assert repr(Label(1)) == f"{Label.__qualname__}(x=1, y=2, name='n')"


def test_a_subclass_may_take_over_methods_that_are_not_made_yet() -> None:
    @dataclass(frozen=True)
    class Base:
        """Has no instance before its methods are taken."""

        x: int

    class Same(Base):
        """Defines equality, and so has to name the hash, too."""

        __hash__ = Base.__hash__
        __repr__ = Base.__repr__
        __setattr__ = Base.__setattr__

        def __eq__(self, other: object) -> bool:
            return super().__eq__(other)

    same = Same(1)
    assert hash(same) == hash(Base(1))
    assert repr(same).endswith("Same(x=1)")
    assert same == Same(1)
    assert same != Same(2)
    with pytest.raises(FrozenInstanceError):
        same.x = 2  # type: ignore[misc]


def test_classes_without_slots_cache_properties() -> None:
    cached = Square(2)
    assert cached.double == 4
    assert cached == Square(2)
    mutable = Mutable()
    mutable.x = 5
    assert mutable == Mutable(5)


def test_a_class_without_an_instance_is_unpickled_whole() -> None:
    empty = Number.__new__(Number)
    empty.__setstate__([3])  # type: ignore[attr-defined]
    assert repr(empty) == "Number(x=3)"
    assert empty == Number(3)
    assert pickle.loads(pickle.dumps(Label(1, name="a"))) == Label(1, name="a")


def test_first_instances_of_many_threads_are_whole() -> None:
    threads = 8
    with ThreadPoolExecutor(threads) as pool:
        for _ in range(20):

            @dataclass(frozen=True, slots=True)
            class Pair:
                """Its first instances are made at once."""

                x: int
                y: list[int] = field(default_factory=list)

            barrier = Barrier(threads)

            def make(kind: type[Pair] = Pair, barrier: Barrier = barrier) -> Pair:
                barrier.wait(10)
                return kind(1)

            made = [each.result() for each in [pool.submit(make) for _ in range(threads)]]
            assert made == [Pair(1)] * threads


@pytest.mark.parametrize("package", ["arco_catalog", "storage_backends"])
def test_modules_that_requests_import_have_no_other_dataclasses(package: str) -> None:
    modules = [file.relative_to(PROJECT).as_posix() for file in (PROJECT / package).rglob("*.py")]
    others = [module for module in modules if module not in COMPLETE and not module.startswith(SERVE_NO_REQUESTS)]
    assert [module for module in others if imports_the_decorator(PROJECT / module)] == []


def imports_the_decorator(file: Path) -> bool:
    """Whether a module imports the decorator of the standard library."""
    imports = [node for node in ast.walk(ast.parse(file.read_bytes())) if isinstance(node, ast.ImportFrom)]
    return any(node.module == "dataclasses" and "dataclass" in [each.name for each in node.names] for node in imports)


def test_an_instance_that_may_change_has_no_hash() -> None:
    with pytest.raises(TypeError, match="unhashable"):
        hash(Mutable())


# Interrupts.


@pytest.mark.parametrize("step", range(12))
def test_an_interrupt_leaves_no_class_half_made(step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """At each attribute that is added with the methods."""

    @dataclass(frozen=True, slots=True, order=True)
    class Fresh:
        """Has no instance."""

        x: int
        tags: list[str] = field(default_factory=list)
        y: int = 2

    countdown = step

    def set_some(*args: object) -> None:
        nonlocal countdown
        countdown -= 1
        if countdown < 0:
            raise KeyboardInterrupt
        setattr(*args)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(lazy_dataclass, "setattr", set_some, raising=False)
        with pytest.raises(KeyboardInterrupt):
            fields(Fresh)
    assert [each.name for each in fields(Fresh)] == ["x", "tags", "y"]
    whole = Fresh(1)
    assert repr(whole) == f"{Fresh.__qualname__}(x=1, tags=[], y=2)"
    assert whole == Fresh(1)
    assert whole < Fresh(2)
    with pytest.raises(FrozenInstanceError):
        whole.x = 2  # type: ignore[misc]


def test_an_interrupt_in_the_decorator_of_the_library_leaves_no_class_half_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def interrupted(**options: bool) -> Callable[[type], type]:
        def decorate(plain: type) -> type:
            dataclasses.dataclass(**options)(plain)
            raise KeyboardInterrupt

        return decorate

    @dataclass(frozen=True, slots=True)
    class Fresh:
        """Has no instance."""

        tags: list[str] = field(default_factory=list)

    with monkeypatch.context() as patch:
        patch.setattr(lazy_dataclass, "complete_dataclass", interrupted)
        with pytest.raises(KeyboardInterrupt):
            Fresh()
    assert Fresh() == Fresh([])


# Rare forms: as the standard library's, or refused.


@dataclass(slots=True)
class Counter:
    """With values of the class itself."""

    x: int = 0
    all_made: ClassVar[list[int]] = []
    limit: "ClassVar[int]" = 7
    start: InitVar[int] = 5

    def __post_init__(self, start: int) -> None:
        self.x += start


@dataclass
class Open:
    """With fields that the constructor does not take."""

    x: int
    size: int = field(init=False, default=3)
    parts: list[int] = field(init=False, default_factory=list)
    later: int = field(init=False)


@dataclass(slots=True)
class Refusal(Exception):
    """An exception."""

    reason: str
    status: int = 400


@dataclass
class Failure(Exception):
    """An exception without slots."""

    reason: str


def test_values_of_the_class_are_no_fields() -> None:
    assert (Counter.all_made, Counter.limit) == ([], 7)
    assert [each.name for each in fields(Counter)] == ["x"]
    assert (Counter(1).x, Counter(1, 2).x, Counter().limit) == (6, 3, 7)
    assert "limit" not in Counter.__slots__


def test_fields_that_the_constructor_does_not_take() -> None:
    made = Open(1)
    assert (made.x, made.size, made.parts, Open.size) == (1, 3, [], 3)
    assert not hasattr(made, "later")
    assert pickle.loads(pickle.dumps(made)).size == 3


def test_exceptions_are_pickled_by_their_arguments() -> None:
    for error in (Refusal("no", 404), Failure("why")):
        error.__cause__ = None
        again = pickle.loads(pickle.dumps(error))
        assert (type(again), again.args, again.reason) == (type(error), error.args, error.reason)


METHODS: dict[str, Callable[[type], object]] = {
    "repr": lambda kind: repr(filled(kind, 1)),
    "eq": lambda kind: filled(kind, 1) == filled(kind, 1),
    "hash": lambda kind: hash(filled(kind, 1)),
    "order": lambda kind: filled(kind, 1) < filled(kind, 2),
    "copy": lambda kind: repr(copy.copy(filled(kind, 1))),
}


def filled(kind: type, x: int) -> Any:
    """An instance that no constructor made."""
    made: object = object.__new__(kind)
    object.__setattr__(made, "x", x)
    return made


@pytest.mark.parametrize("slots", [True, False])
@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_an_instance_without_the_constructor_is_whole(method: Callable[[type], object], slots: bool) -> None:
    def make(decorator: Callable[..., Callable[[type], type]]) -> type:
        @decorator(frozen=True, order=True, slots=slots)
        class Bare:
            """Has no instance that its constructor made."""

            x: int

        return Bare

    assert method(make(dataclass)) == method(make(dataclasses.dataclass))
    frozen = filled(make(dataclass), 1)
    with pytest.raises(FrozenInstanceError):
        frozen.x = 2


class Registering:
    """Acts for each subclass."""

    found: ClassVar[list[str]] = []

    def __init_subclass__(cls) -> None:
        cls.found.append(cls.__name__)


def test_a_base_that_acts_for_each_subclass_is_refused() -> None:
    with pytest.raises(TypeError, match="Registering acts for each subclass"):

        @dataclass
        class Twice(Registering):
            """Would be registered twice."""

            x: int


def test_a_slot_that_would_stay_empty_is_refused() -> None:
    with pytest.raises(TypeError, match="leaves the slot x empty"):

        @dataclass(slots=True)
        class Empty:
            """Its default is that of the class, which can't have one beside a slot."""

            x: int = field(init=False, default=3)
