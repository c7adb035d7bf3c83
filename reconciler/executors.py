"""Who does the parts of a job: Spark's executors, or, for tests and small catalogs, this process."""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from pyspark import SparkContext

Item = TypeVar("Item")
Result = TypeVar("Result")


class Executors(Protocol):
    """Runs parts of a job, and returns what came of each, in order. What one raises is raised."""

    parallelism: int
    """How many parts are done beside each other, roughly."""

    def run(self, name: str, work: Callable[[Item], Result], parts: Sequence[Item]) -> list[Result]:
        """`name` is what is shown of it. `work` and parts must survive pickling."""
        ...


class Here:
    """This process, one part after the other."""

    parallelism = 1

    def run(self, name: str, work: Callable[[Item], Result], parts: Sequence[Item]) -> list[Result]:
        return [work(part) for part in parts]


class OnSpark:
    """The executors of a Spark application: one task for each part."""

    def __init__(self, spark: SparkContext) -> None:
        self._spark = spark
        self.parallelism = max(1, spark.defaultParallelism)

    def run(self, name: str, work: Callable[[Item], Result], parts: Sequence[Item]) -> list[Result]:
        if not parts:
            return []
        self._spark.setJobDescription(name)
        return self._spark.parallelize(parts, len(parts)).map(work).collect()


def cut(items: Sequence[Item], parallelism: int, least: int, most: int) -> list[Sequence[Item]]:
    """Parts of equal size: enough of them for every executor, none so small that starting it costs more than its work,
    none so large that its results fill an executor's memory."""
    size = min(most, max(least, -(-len(items) // parallelism)))
    return [items[start : start + size] for start in range(0, len(items), size)]
