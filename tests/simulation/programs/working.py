"""What runs beside requests: the reconciler with much or little time, queued work, and workers on tasks."""

from arco_catalog.iceberg.errors import CatalogError
from arco_catalog.iceberg.json import dumps
from arco_catalog.operations.catalogs import Inventory
from arco_catalog.planning.upkeep_policy import SnapshotExpiry
from arco_catalog.protocol.key_resolution import set_key_policy
from arco_catalog.tasks.retry import TaskPolicies
from arco_catalog.upkeep.collection.collect import collect
from arco_catalog.upkeep.expiry.executor import FILES_AGE_MS
from arco_catalog.upkeep.expiry.requests import request_expiry
from arco_catalog.upkeep.jobs import Workplace, run_job
from arco_catalog.upkeep.purge.worker import task_worker
from arco_catalog.upkeep.reconcile import reconcile
from storage_backends import StoreError
from tests.simulation.collecting import RUN_MS
from tests.simulation.programs.keys import POLICIES as POLICIES_OF_KEYS
from tests.simulation.programs.requests import Sending
from tests.simulation.programs.servers import Servers

POLICIES = TaskPolicies.parse(
    {"delegation.task.lease.lost-timeout-duration": "20s", "delegation.retry.TABLE_PURGE.max-attempts": "100"}
)
OF_NO_AGE = SnapshotExpiry(0, 1)
"""Removes all snapshots but those of branches and tags."""
LOOKS = 200
"""How often the last worker looks for tasks: each is due again within minutes, or, if it is an expiry, within days."""


async def finish_tasks(player: Servers) -> bool:
    """Works on tasks until there are none. Returns whether that was reached."""
    last = player.process("last worker")
    worker = task_worker(player.fixture(last).catalog, POLICIES)
    for look in range(LOOKS):
        await last.run(worker.run_due(lambda: False))
        if not player.world.keys(player.paths.open_tasks):
            return True
        waits = player.program.conditions.expires and look % 10 == 9
        await player.world.runtime.sleep(FILES_AGE_MS / 1000 if waits else 40)
    return False


async def work(player: Servers, sending: Sending) -> None:
    """Does it once; whatever it meets, it must do no harm."""
    process, request = player.process(sending.process), sending.request
    fixture = player.fixture(process)
    try:
        if request.kind == "reconcile":
            budget = request.choice * 200 if request.choice else None
            ends = process.runtime.now_ms() + (budget or 60_000)
            session = fixture.session(deadline_ms=budget or 60_000)
            await process.run(
                reconcile(session, concurrency=4, should_stop=lambda: process.runtime.now_ms() > ends - 100)
            )
            return
        if request.kind in ("collect", "purge") and request.choice:
            await _work_shortly(player, sending)
            return
        if request.kind == "collect":
            await process.run(collect(fixture.session(deadline_ms=RUN_MS), delete=True))
            return
        if request.kind == "request-expiry":
            await process.run(request_expiry(fixture.session(), *request.names[0], OF_NO_AGE))
            return
        if request.kind == "set-keys":
            await process.run(set_key_policy(fixture.session(), POLICIES_OF_KEYS[request.choice]))
            return
        if request.kind == "purge":
            await process.run(task_worker(fixture.catalog, POLICIES).run_due(lambda: False))
            return
        pointers = sorted(player.world.keys(player.paths.pointers))
        if not pointers:
            return
        entity = pointers[-1 - request.choice % len(pointers)].removeprefix(player.paths.pointers).removesuffix(".json")
        message = dumps({"version": 1, "work": "reconcile", "entity": entity}).decode()
        session = fixture.session()
        inventory = Inventory.of_one(session.catalog)
        await process.run(run_job(message, Workplace(inventory, session.request, process.runtime, lambda: False)))
    except (CatalogError, StoreError):
        return  # it is tried again by whoever sent it; what it left undone, the last walk does


async def _work_shortly(player: Servers, sending: Sending) -> None:
    """Does it in a process of its own, which is killed after some seconds."""
    process, request = player.process(f"{sending.process}-worker"), sending.request
    fixture = player.fixture(process)
    ends = player.world.loop.call_later(request.choice, process.crash)
    try:
        if request.kind == "collect":
            await process.run(collect(fixture.session(deadline_ms=RUN_MS), delete=True))
        else:
            await process.run(task_worker(fixture.catalog, POLICIES).run_due(lambda: False))
    finally:
        ends.cancel()
