"""A cluster without a Spark: each part runs where it is collected."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Generic, TypeVar, cast

from pyspark import SparkContext

Item = TypeVar("Item")


class Partition(Generic[Item]):
    """An RDD of one partition."""

    def __init__(self, part: Sequence[Item]) -> None:
        self._part = part
        self._work: Callable[[Iterable[Item]], Iterator[object]] | None = None

    def mapPartitions(self, work: Callable[[Iterable[Item]], Iterator[object]]) -> "Partition[Item]":  # noqa: N802
        self._work = work
        return self

    def collect(self) -> list[object]:
        assert self._work is not None
        return list(self._work(iter(self._part)))


class Cluster(Generic[Item]):
    """Runs each part, unless executors die of something in it. `before` is called before a part runs."""

    def __init__(
        self, deadly: Callable[[Item], bool] = lambda item: False, before: Callable[[], None] = lambda: None
    ) -> None:
        self._deadly = deadly
        self._before = before

    @property
    def spark(self) -> SparkContext:
        """Itself, for who knows only Spark."""
        return cast(SparkContext, self)

    def parallelize(self, part: Sequence[Item], slices: int) -> Partition[Item]:
        assert slices == 1
        if any(map(self._deadly, part)):
            raise RuntimeError("Job aborted\nLost task 0.0")
        self._before()
        return Partition(part)

    def setJobGroup(self, group: str, described: str) -> None:  # noqa: N802
        pass

    def cancelJobGroup(self, group: str) -> None:  # noqa: N802
        pass
