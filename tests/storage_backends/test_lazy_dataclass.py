"""Lazy dataclasses are dataclasses, only later."""

import ast
import dataclasses
import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import FrozenInstanceError, field, fields, replace
from functools import cached_property
from pathlib import Path
from threading import Barrier

import pytest

from storage_backends.lazy_dataclass import dataclass
from tools.support.environment import PROJECT

COMPLETE = ("storage_backends/lazy_dataclass.py",)
SERVE_NO_REQUESTS = ("arco_catalog/cli", "arco_catalog/upkeep")


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


def test_methods_are_made_with_the_first_instance() -> None:
    @dataclass(frozen=True, slots=True)
    class Fresh:
        """Has no instance."""

        x: int = 0

    compiled = {"__eq__", "__hash__", "__repr__", "__setattr__"}
    assert compiled & vars(Fresh).keys() == set()
    Fresh()
    assert compiled <= vars(Fresh).keys()


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


def test_a_subclass_completes_its_base() -> None:
    assert Label(1, name="a") == Label(1, 2, name="a")
    assert repr(Label(1)) == f"{Label.__qualname__}(x=1, y=2, name='n')"


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
