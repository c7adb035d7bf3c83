"""Runs the batches of a collection: in the process that lists the objects, or in others (docs/design/collection.md).

The listing of a kind of objects yields batches. A batch is decided and deleted without the others: it rereads the
objects, sets the fences that they need, and keeps the order of the rules, like a small collection. A decision that
needs more than one batch is made in the process that lists.
"""

from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from arco_catalog.planning.collection import Kind
from arco_catalog.upkeep.collection.entities import Entities
from arco_catalog.upkeep.collection.run import Run
from storage_backends import Listed

T = TypeVar("T")
R = TypeVar("R")

Work = Callable[[Run, Entities, Sequence[T]], Coroutine[None, None, R]]
"""Decides which listed objects may be deleted, and deletes them. Pickle must be able to copy it, its arguments and its
result."""


@dataclass(frozen=True, slots=True)
class Batch(Generic[T, R]):
    """Some objects of one kind in a collection, and the function that decides about them and deletes them."""

    work: Work[T, R]
    items: Sequence[T]


class BatchRunner(Protocol):
    """Runs the batches of a collection, in this process or in others."""

    def run_batches(
        self, run: Run, entities: Entities, batches: AsyncGenerator[Batch[T, R], None]
    ) -> AsyncGenerator[tuple[Batch[T, R], R | None], None]:
        """Yields each batch with its result, in any order, after its collected objects are counted in the run. None is
        the result of a batch whose outcome is unknown: all its objects count as kept. Raises what the work raises, and
        `Stopped`."""
        ...


class LocalRunner:
    """Runs the batches of a collection in this process, one after the other, as they are listed."""

    async def run_batches(
        self, run: Run, entities: Entities, batches: AsyncGenerator[Batch[T, R], None]
    ) -> AsyncGenerator[tuple[Batch[T, R], R | None], None]:
        """Does the work of one batch after the other in this process, in order, and yields the batch with the result of
        it. Closes `batches` at the end. Raises what the work raises."""
        async with aclosing(batches):
            async for batch in batches:
                yield batch, await batch.work(run, entities, batch.items)


async def run_all(
    runner: BatchRunner, run: Run, entities: Entities, batches: AsyncGenerator[Batch[T, None], None]
) -> None:
    """Runs all batches of a collection with `runner`, for work that returns no result."""
    async with aclosing(runner.run_batches(run, entities, batches)) as done:
        async for _ in done:
            pass


async def run_older(
    runner: BatchRunner, run: Run, entities: Entities, prefix: str, limit_ms: int, work: Work[Listed, None]
) -> None:
    """Runs `work` with `runner`, batch by batch, on all objects under a prefix that the store wrote at least `limit_ms`
    milliseconds ago."""

    async def listed() -> AsyncGenerator[Batch[Listed, None], None]:
        async with aclosing(run.older(prefix, limit_ms)) as batches:
            async for batch in batches:
                yield Batch(work, batch)

    await run_all(runner, run, entities, listed())


async def delete_all(run: Run, entities: Entities, items: Sequence[Listed], *, kind: Kind) -> None:
    """Deletes all of these objects without reading them, and counts them under `kind`: for this kind age is the only
    criterion, and the caller has compared it. A dry run only counts them. `entities` is not used."""
    await run.collect(kind, items)
