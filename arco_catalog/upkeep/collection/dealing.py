"""Who judges and deletes what a collection has listed: the process that lists, or others (docs/design/collection.md).

A kind of objects is listed in batches. To judge one of a batch, and to delete it, needs nothing of the other batches:
each looks again, fences for itself, and is done in the order that the rules state, as by a run that is cut after it.
What goes by more than a batch, a kind keeps to the process that lists.
"""

from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from typing import Generic, Protocol, TypeVar

from arco_catalog.planning.collection import Kind
from arco_catalog.upkeep.collection.entities import Entities
from arco_catalog.upkeep.collection.run import Run
from storage_backends import Listed

T = TypeVar("T")
R = TypeVar("R")

Work = Callable[[Run, Entities, Sequence[T]], Coroutine[None, None, R]]
"""Judges what was listed, and deletes what may go. It must survive pickling, and so must what it is given and tells."""


@dataclass(frozen=True, slots=True)
class Batch(Generic[T, R]):
    """What was listed, and what is to be done with it."""

    work: Work[T, R]
    items: Sequence[T]


class Dealer(Protocol):
    """Has batches done."""

    def deal(
        self, run: Run, entities: Entities, batches: AsyncGenerator[Batch[T, R], None]
    ) -> AsyncGenerator[tuple[Batch[T, R], R | None], None]:
        """Each batch with what came of it, in any order; None where that is not known: then all of it counts as kept.
        What was collected is counted in the run by then. Raises what the work does, and `Stopped`."""
        ...


class Here:
    """This process, one batch after the other, as they are listed."""

    async def deal(
        self, run: Run, entities: Entities, batches: AsyncGenerator[Batch[T, R], None]
    ) -> AsyncGenerator[tuple[Batch[T, R], R | None], None]:
        async with aclosing(batches):
            async for batch in batches:
                yield batch, await batch.work(run, entities, batch.items)


async def deal_out(dealer: Dealer, run: Run, entities: Entities, batches: AsyncGenerator[Batch[T, None], None]) -> None:
    """Has all batches done, of which nothing is to be known but what was collected."""
    async with aclosing(dealer.deal(run, entities, batches)) as done:
        async for _ in done:
            pass


def all_of(kind: Kind, items: Sequence[Listed]) -> Batch[Listed, None]:
    """What goes by its age alone."""
    return Batch(partial(_collect_all, kind=kind), items)


async def _collect_all(run: Run, entities: Entities, items: Sequence[Listed], *, kind: Kind) -> None:
    await run.collect(kind, items)
