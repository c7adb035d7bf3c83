"""Clients that only look: what they are shown is noted, with the time in which it must have been so."""

from arco_catalog.iceberg.errors import NoSuchView, Refusal, Unavailable
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.generic_tables import load_generic_table
from arco_catalog.operations.governance import relation_governance
from arco_catalog.operations.listing import Paging, list_relations
from arco_catalog.operations.load import load_table, load_view, require_table
from arco_catalog.operations.namespaces import load_namespace
from arco_catalog.operations.semantic_models import load_semantic_model
from arco_catalog.protocol.catalog import Session
from storage_backends import StoreError
from tests.simulation.programs.history import Shown
from tests.simulation.programs.requests import Request, Sending
from tests.simulation.programs.servers import Servers
from tests.simulation.world import Died

PAGES = 20

Told = tuple[str, str] | frozenset[str] | JsonObject | Refusal | None


async def read(player: Servers, sending: Sending) -> None:
    """Asks once, and notes the answer if there is one."""
    process, request = player.process(sending.process), sending.request
    fixture = player.fixture(process)
    since = player.world.loop.time()
    told: Told | Died
    try:
        if request.kind == "list":
            await _list(player, sending)
            return
        told = await process.run(_one(player, fixture.session(), request, process.name, since))
    except NoSuchView as refusal:
        told = refusal
    except Refusal as refusal:
        told = refusal
    except (StoreError, Unavailable):
        return
    if not isinstance(told, Died):
        player.history.shown.append(Shown(request, process.name, since, player.world.loop.time(), told))


async def _one(player: Servers, session: Session, request: Request, process: str, since: float) -> Told:
    match request.kind:
        case "load-namespace":
            properties = (await load_namespace(session, request.namespace))["properties"]
            assert isinstance(properties, dict)
            return properties
        case "exists":
            await require_table(session, *request.names[0])
            return None
        case "load-governance":
            return await relation_governance(session, *request.names[0], "table")
        case "load-model":
            await load_semantic_model(session, *request.names[0])
            return None
        case "load-generic":
            await load_generic_table(session, *request.names[0])
            return None
        case _:
            load = load_view if request.kind == "load-view" else load_table
            state = await load(session, *request.names[0])
            if request.kind == "load":  # whose labels must be true as well
                labels, until = Request("load-governance", request.names), player.world.loop.time()
                player.history.shown.append(Shown(labels, process, since, until, {**state.governance}))
            return state.entity, state.metadata_location


async def _list(player: Servers, sending: Sending) -> None:
    """All pages of one listing; each may be answered by another process. They must show what was so at one instant of
    the first."""
    request, places = sending.request, [sending.process, *sending.others]
    names: set[str] = set()
    token = "" if request.choice else None
    since = player.world.loop.time()
    until = None
    for number in range(PAGES):
        process = player.process(places[number % len(places)])
        paging = Paging(token, request.choice or None)
        page = await process.run(list_relations(player.fixture(process).session(), request.namespace, "table", paging))
        if isinstance(page, Died):
            return
        until = player.world.loop.time() if until is None else until
        names |= {str(item["name"]) for item in page.items if isinstance(item, dict)}
        token = page.next_page_token
        if token is None:
            player.history.shown.append(Shown(request, process.name, since, until, frozenset(names)))
            return
        await player.world.runtime.sleep(player.world.runtime.random())
