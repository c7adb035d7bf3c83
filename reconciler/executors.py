"""Runs the parts of a job on the executors of Spark or, for tests and small catalogs, in this process."""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from pyspark import SparkContext

Item = TypeVar("Item")
Result = TypeVar("Result")


class Executors(Protocol):
    """The interface of what runs the parts of a job: on Spark or in this process."""

    parallelism: int
    """About how many parts run concurrently."""

    def run(self, name: str, work: Callable[[Item], Result], parts: Sequence[Item]) -> list[Result]:
        """Calls `work` with each part, possibly at the same time on several executors, and returns the results in the
        order of the parts. `name` describes the job in Spark's interface. `work`, parts and results must survive
        pickling. If `work` fails, this raises: in this process the exception of `work`, on Spark a
        `Py4JJavaError` with the text of it, after Spark has tried the part again as it is configured."""
        ...


class LocalExecutor:
    """Runs the parts of a job one after the other in this process."""

    parallelism = 1

    def run(self, name: str, work: Callable[[Item], Result], parts: Sequence[Item]) -> list[Result]:
        """Calls `work` with one part after the other in this process, and returns the results in this order. Ignores
        `name`. An exception of `work` is raised as it is, and the rest of the parts is not done."""
        return [work(part) for part in parts]


class SparkExecutors:
    """Runs the parts of a job on Spark, each as one task of a Spark job."""

    def __init__(self, spark: SparkContext) -> None:
        self._spark = spark
        self.parallelism = max(1, spark.defaultParallelism)

    def run(self, name: str, work: Callable[[Item], Result], parts: Sequence[Item]) -> list[Result]:
        """Calls `work` with the parts, one Spark task for a part, and returns the results in the order of the parts;
        starts no job without parts. Raises `Py4JJavaError`, with the text of the exception of `work`, after Spark has
        tried the part as often as it is configured."""
        if not parts:
            return []
        self._spark.setJobDescription(name)
        return self._spark.parallelize(parts, len(parts)).map(work).collect()


def cut(items: Sequence[Item], parallelism: int, min_size: int, max_size: int) -> list[Sequence[Item]]:
    """Cuts items into at most `parallelism` parts of equal size: into more if a part would have more than `max_size`
    items, and into fewer if a part would have fewer than `min_size`. The last part may be smaller."""
    size = min(max_size, max(min_size, -(-len(items) // parallelism)))
    return [items[start : start + size] for start in range(0, len(items), size)]
