"""Deletes decisions of transactions that no marker or intent needs any more (docs/design/collection.md#rule-7)."""

from collections.abc import Sequence
from functools import partial

from arco_catalog.planning.collection import Kind, is_outlived
from arco_catalog.planning.name_intents import pending_transactions
from arco_catalog.protocol.decisions import abort_if_undecided
from arco_catalog.protocol.lapsed import settle_lapsed
from arco_catalog.state.fields import objects, text
from arco_catalog.state.transaction import Decision
from arco_catalog.upkeep.collection.batch_runner import BatchRunner, run_older
from arco_catalog.upkeep.collection.entities import Entities
from arco_catalog.upkeep.collection.run import Run
from storage_backends import Applied, Listed


async def collect_transactions(run: Run, entities: Entities, runner: BatchRunner, oldest_slot_ms: int | None) -> None:
    """Deletes the decisions of transactions that are older than the retention of decisions and than every remaining
    marker slot, and to which no name in HEAD refers; `oldest_slot_ms` is the time of the oldest slot, None if none
    remains. Settles the intents of committed transactions first. Aborts pending transactions, and keeps their
    decisions. A dry run only counts the decisions."""
    if run.delete:
        await settle_lapsed(run.session, should_stop=run.should_stop)
    work = partial(_collect, oldest_slot_ms=oldest_slot_ms)
    await run_older(runner, run, entities, run.paths.transactions, run.retention.decisions_ms, work)


async def _collect(run: Run, entities: Entities, batch: Sequence[Listed], *, oldest_slot_ms: int | None) -> None:
    """Deletes the decisions in this batch that are older than every remaining marker slot and to whose transaction no
    name in HEAD refers, after it has settled the intents on pointers. One that can't be read, or was pending until
    now, is kept. A dry run only counts these."""
    session = run.session
    unsettled = {*pending_transactions((await session.state.head()).index)}
    now_ms = session.now_ms()

    async def look(each: Listed) -> bool:
        transaction = each.key.removeprefix(run.paths.transactions).removesuffix(".json")
        if transaction in unsettled or not is_outlived(each.written_ms, now_ms, oldest_slot_ms, run.retention):
            return False
        return await run.unless_unreadable(each.key, _settle_intents(run, each.key, transaction)) is True

    done = await run.each(batch, look)
    await run.collect(Kind.TRANSACTION, [each for each, yes in zip(batch, done, strict=True) if yes])


async def _settle_intents(run: Run, key: str, transaction: str) -> bool:
    """Settles the intents of a committed transaction on pointers; those of an aborted one need no decision. Aborts an
    undecided one. A dry run writes nothing. Returns true if no intent needs the decision at this key any more; false if
    the decision does not exist, or was pending: the one to abort is too young to be deleted."""
    found = await run.read(key)
    if found is None:
        return False
    decision = Decision.parse(found, key)
    if decision.status == "pending":
        if run.delete:
            await abort_if_undecided(run.session.state, run.session.runtime, transaction)
        return False  # the decision to abort is too young to be collected
    if decision.status == "committed" and run.delete:
        for member in objects(decision.document, "tables"):
            await _settle(run, text(member, "entity"), transaction)
    return True


async def _settle(run: Run, entity: str, transaction: str) -> None:
    """Settles the intent of a committed transaction in a pointer, if it is still there, and repeats that until it
    applies. Raises `Stopped`, and `StoreError`."""
    state = run.session.state
    while True:
        pointer = await state.pointer(entity)
        if pointer is None or pointer.intent != transaction:
            return
        settled = pointer.settled(run.session.runtime.ulid(), committed=True)
        if isinstance(await state.move_pointer(settled, pointer.version), Applied):
            return
        run.check_may_continue()
        await state.pause()
