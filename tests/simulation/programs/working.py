"""What runs beside requests: the reconciler with much or little time, and queued work."""

from typing import TYPE_CHECKING

from arco_catalog.iceberg.errors import CatalogError
from arco_catalog.iceberg.json import dumps
from arco_catalog.operations.catalogs import DeployedCatalog
from arco_catalog.operations.jobs import Workplace, run_job
from arco_catalog.operations.reconcile import reconcile
from storage_backends import StoreError
from tests.simulation.programs.recorder import PATHS
from tests.simulation.programs.requests import Sending

if TYPE_CHECKING:
    from tests.simulation.programs.player import Player


async def work(player: "Player", sending: Sending) -> None:
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
        pointers = sorted(player.world.keys(PATHS.pointers))
        if not pointers:
            return
        entity = pointers[-1 - request.choice % len(pointers)].removeprefix(PATHS.pointers).removesuffix(".json")
        message = dumps({"version": 1, "work": "reconcile", "entity": entity}).decode()
        session = fixture.session()
        catalogs = [DeployedCatalog(session.settings.warehouse, lambda: session.catalog)]
        await process.run(run_job(message, Workplace(catalogs, session.request, process.runtime, lambda: False)))
    except (CatalogError, StoreError):
        return  # it is tried again by whoever sent it; what it left undone, the last walk does
