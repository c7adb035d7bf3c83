"""What requests may do while what they may do is changed."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from arco_catalog.iceberg.json import JsonObject
from tests.simulation.access.servers import Servers
from tests.simulation.explore import Scenario
from tests.simulation.history import Event
from tests.simulation.world import World
from tests.support.realm_service import on_catalog, on_namespace, on_table

Play = Callable[[Servers], Awaitable[None]]
Requests = Callable[[Servers], Awaitable[Sequence[Awaitable[object]]]]

COMMIT = on_catalog("TABLE_WRITE_DATA")
CONTENT = on_catalog("CATALOG_MANAGE_CONTENT")
READ_T = on_table("TABLE_READ_DATA", "db", "t")
WRITE_T = on_table("TABLE_WRITE_DATA", "db", "t")


def spilled_too(*tables: str) -> Callable[[Play], Scenario]:
    """Sets up, and plays the decorated function; also with indexes that are spilled from the first commit on."""

    def decorate(play: Play) -> Scenario:
        def played(name: str, spilled: bool) -> Scenario:
            async def run(world: World) -> None:
                servers = await Servers(world, spilled=spilled).start(*tables)
                await play(servers)
                await servers.close()

            run.__qualname__ = name
            return run

        run = played(play.__name__, spilled=False)
        _SPILLED[run] = played(f"{play.__name__}, spilled", spilled=True)
        return run

    return decorate


def scenario(*tables: str) -> Callable[[Requests], Scenario]:
    """Does at once what the decorated function lists."""

    def decorate(requests: Requests) -> Scenario:
        async def play(servers: Servers) -> None:
            await together(*await requests(servers))

        play.__name__ = requests.__name__
        return spilled_too(*tables)(play)

    return decorate


_SPILLED: dict[Scenario, Scenario] = {}


def spilled(scenario: Scenario) -> Scenario:
    """The same over spilled indexes."""
    return _SPILLED[scenario]


async def together(*requests: Awaitable[object]) -> None:
    """All at once."""
    async with asyncio.TaskGroup() as group:
        for request in requests:
            group.create_task(_as_task(request))


async def _as_task(request: Awaitable[object]) -> None:
    await request


async def later(servers: Servers, seconds: float, *requests: Callable[[], Awaitable[object]]) -> None:
    """One after the other, the first after a while."""
    await servers.world.runtime.sleep(seconds * servers.world.runtime.random())
    for request in requests:
        await request()


async def worker(servers: Servers, *grants: JsonObject, name: str = "worker") -> None:
    """A principal that everything so far knows."""
    await servers.setup.principal(name, *(grants or [COMMIT]))


@scenario("t")
async def a_grant_revoked_beside_commits(servers: Servers) -> Sequence[Awaitable[object]]:
    await worker(servers)
    for process in ("p1", "p2"):
        await servers.warm(process, "worker", "t")
    return [
        servers.ask(servers.commit("k", "worker"), "p1", "p2"),
        servers.ask(servers.commit("l", "worker"), "p2", key=False),
        later(
            servers,
            0.5,
            lambda: servers.revoke("root", "worker-in-lake", COMMIT),
            lambda: servers.ask(servers.commit("m", "worker"), "p1", "p3"),
            lambda: servers.ask(servers.commit("n", "worker"), "p2", key=False),
            lambda: servers.ask(servers.load("o", "worker"), "p1"),
            lambda: servers.grant("root", "worker-in-lake", READ_T),
            lambda: servers.ask(servers.load("p", "worker"), "p2"),
        ),
    ]


@scenario("t")
async def a_role_taken_from_a_principal_beside_commits(servers: Servers) -> Sequence[Awaitable[object]]:
    await worker(servers)
    for process in ("p1", "p2"):
        await servers.warm(process, "worker", "t")
    role: JsonObject = {"principalRole": {"name": "worker-role"}}
    return [
        servers.ask(servers.commit("k", "worker"), "p1", "p2"),
        later(
            servers,
            0.5,
            lambda: servers.manage("root", "DELETE", "principals/worker/principal-roles/worker-role"),
            lambda: servers.ask(servers.commit("m", "worker"), "p1"),
            lambda: servers.ask(servers.commit("n", "worker"), "p2", key=False),
            lambda: servers.ask(servers.load("o", "worker"), "p1"),
            lambda: servers.manage("root", "PUT", "principals/worker/principal-roles", role),
            lambda: servers.ask(servers.commit("p", "worker"), "p2"),
        ),
    ]


@scenario("t")
async def a_principal_dropped_and_made_again(servers: Servers) -> Sequence[Awaitable[object]]:
    await worker(servers)
    for process in ("p1", "p2"):
        await servers.warm(process, "worker", "t")
    of_old = {name: servers.commit(name, "worker") for name in ("k", "m", "n")}
    role: JsonObject = {"principalRole": {"name": "worker-role"}}
    return [
        servers.ask(of_old["k"], "p1", "p2"),
        later(
            servers,
            0.5,
            lambda: servers.manage("root", "DELETE", "principals/worker"),
            lambda: servers.remake("root", "worker"),
            lambda: together(servers.ask(of_old["m"], "p1"), later(servers, 0.0, lambda: new_one(servers, "p", "p2"))),
            lambda: servers.manage("root", "PUT", "principals/worker/principal-roles", role),
            lambda: together(
                servers.ask(of_old["n"], "p2", key=False), later(servers, 0.0, lambda: new_one(servers, "q", "p1"))
            ),
        ),
    ]


async def new_one(servers: Servers, name: str, process: str) -> None:
    """A commit of the principal that has the name now."""
    await servers.ask(servers.commit(name, "worker"), process)


@scenario("t")
async def roles_dropped_and_made_again(servers: Servers) -> Sequence[Awaitable[object]]:
    await worker(servers, WRITE_T)
    await servers.warm("p1", "worker", "t")
    catalog_role: JsonObject = {"catalogRole": {"name": "worker-in-lake"}}
    principal_role: JsonObject = {"principalRole": {"name": "worker-role"}}
    used = "principal-roles/worker-role/catalog-roles/lake"
    return [
        servers.ask(servers.commit("k", "worker"), "p1"),
        later(
            servers,
            0.5,
            lambda: servers.manage("root", "DELETE", "catalogs/lake/catalog-roles/worker-in-lake"),
            lambda: servers.manage("root", "POST", "catalogs/lake/catalog-roles", catalog_role),
            lambda: servers.ask(servers.commit("l", "worker"), "p1"),
            lambda: servers.manage("root", "PUT", used, catalog_role),
            lambda: servers.ask(servers.load("m", "worker"), "p1"),
            lambda: servers.grant("root", "worker-in-lake", WRITE_T),
            lambda: servers.manage("root", "DELETE", "principal-roles/worker-role"),
            lambda: servers.manage("root", "POST", "principal-roles", principal_role),
            lambda: servers.manage("root", "PUT", "principals/worker/principal-roles", principal_role),
            lambda: servers.ask(servers.commit("n", "worker"), "p2"),
        ),
    ]


@scenario("t", "u")
async def a_table_dropped_made_again_and_brought_back(servers: Servers) -> Sequence[Awaitable[object]]:
    await worker(servers, WRITE_T)
    await servers.setup.principal("owner", CONTENT)
    await servers.warm("p1", "worker", "t")
    return [
        servers.ask(servers.commit("k", "worker"), "p1"),
        later(
            servers,
            0.5,
            lambda: servers.ask(servers.drop("d", "owner", "t"), "p3"),
            lambda: servers.ask(servers.commit("l", "worker"), "p1"),
            lambda: servers.ask(servers.create("c", "owner", "t"), "p3"),
            lambda: servers.ask(servers.commit("m", "worker"), "p1", "p2"),
            lambda: servers.ask(servers.load("n", "worker"), "p1"),
            lambda: servers.ask(servers.rename("r", "owner", "t", "v"), "p3"),
            lambda: servers.undrop("operator", "t"),
            lambda: servers.ask(servers.commit("o", "worker"), "p1"),
            lambda: servers.ask(servers.rename("s", "owner", "t", "w"), "p3"),
            lambda: servers.ask(servers.rename("x", "owner", "u", "t"), "p3"),
            lambda: servers.ask(servers.load("y", "worker", "w"), "p2"),
            lambda: servers.ask(servers.load("z", "worker", "t"), "p1"),
        ),
        later(servers, 2.0, lambda: servers.grant("root", "worker-in-lake", READ_T)),
    ]


@scenario("t")
async def a_namespace_dropped_and_made_again_beside_undrops(servers: Servers) -> Sequence[Awaitable[object]]:
    rights = [on_namespace(privilege, "db") for privilege in ("TABLE_FULL_METADATA", "TABLE_READ_DATA")]
    await worker(servers, *rights)
    await servers.warm("p1", "worker", "t")
    return [
        servers.ask(servers.drop("d", "worker", "t"), "p2"),
        later(servers, 0.3, lambda: servers.ask(servers.undrop_of("k", "worker"), "p1", "p2")),
        later(
            servers,
            0.5,
            lambda: servers.remake_namespace("p3", "t"),
            lambda: servers.ask(servers.undrop_of("l", "worker"), "p2"),
            lambda: servers.grant("root", "worker-in-lake", *rights),
            lambda: servers.ask(servers.undrop_of("m", "worker"), "p1"),
            lambda: servers.ask(servers.create("c", "worker", "t"), "p2"),
            lambda: servers.ask(servers.drop("e", "worker", "t"), "p1"),
            lambda: servers.ask(servers.undrop_of("n", "worker"), "p2"),
            lambda: servers.ask(servers.rename("r", "worker", "t", "v"), "p1"),
            lambda: servers.ask(servers.undrop_of("o", "worker"), "p1", key=False),
        ),
    ]


@scenario("t")
async def requests_that_share_commits_beside_revocations(servers: Servers) -> Sequence[Awaitable[object]]:
    await worker(servers, CONTENT)
    await servers.setup.principal("another", CONTENT)
    await servers.warm("p1", "worker", "t")
    await servers.warm("p1", "another", "t")
    return [
        *(servers.ask(servers.create(f"a{n}", "another", f"a{n}"), "p1", key=n % 2 == 0) for n in range(4)),
        *(servers.ask(servers.create(f"w{n}", "worker", f"w{n}"), "p1", key=n % 2 == 0) for n in range(4)),
        servers.ask(servers.rename("r", "worker", "t", "v"), "p1"),
        later(
            servers,
            0.1,
            lambda: servers.revoke("p1" if servers.world.seed % 2 else "root", "worker-in-lake", CONTENT),
            lambda: servers.ask(servers.create("x", "worker", "x"), "p1"),
            lambda: servers.ask(servers.create("y", "another", "y"), "p1"),
        ),
    ]


@scenario("a", "b")
async def transactions_beside_revocations(servers: Servers) -> Sequence[Awaitable[object]]:
    writes = [on_table("TABLE_WRITE_DATA", "db", name) for name in ("a", "b")]
    await worker(servers, *writes)
    await servers.warm("p1", "worker", "a", "b")
    await servers.warm("p2", "worker", "a", "b")
    return [
        servers.ask(servers.transact("k", "worker", "a", "b"), "p1", "p2"),
        servers.ask(servers.transact("l", "worker", "b", "a"), "p2", key=False),
        later(
            servers,
            0.5,
            lambda: servers.revoke("root", "worker-in-lake", writes[1]),
            lambda: servers.ask(servers.transact("m", "worker", "a", "b"), "p1"),
            lambda: servers.ask(servers.transact("n", "worker", "a", "b"), "p2", key=False),
            lambda: servers.ask(servers.commit("o", "worker", "a"), "p1"),
        ),
    ]


@scenario("t")
async def a_key_that_another_principal_has_learnt(servers: Servers) -> Sequence[Awaitable[object]]:
    await worker(servers)
    await servers.setup.principal("thief", READ_T)
    await servers.setup.principal("peer", COMMIT)
    key = servers.key()
    return [
        servers.ask(servers.commit("k", "worker", by="k"), "p1", as_key=key),
        later(servers, 1.0, lambda: servers.ask(servers.commit("thief", "thief", by="k"), "p2", as_key=key)),
        later(servers, 1.0, lambda: servers.ask(servers.commit("peer", "peer", by="k"), "p3", as_key=key)),
    ]


@scenario("t")
async def a_takeover_after_a_revocation(servers: Servers) -> Sequence[Awaitable[object]]:
    """A process dies once it has claimed its slot. The next one remembers the rights that were, finds the slot while it
    reads the realm again, and takes over."""
    await worker(servers)
    for process in ("p1", "p1+"):
        await servers.warm(process, "worker", "t")

    def kill(event: Event) -> None:
        if event.process == "p1" and event.kind == "put" and "/iceberg_idempotency/" in event.key:
            servers.world.process("p1").crash()

    servers.world.observe(kill)
    return [
        servers.ask(servers.commit("k", "worker"), "p1"),
        servers.manage("root", "DELETE", "principals/worker/principal-roles/worker-role"),
    ]


@scenario("t")
async def a_catalog_changed_beside_commits(servers: Servers) -> Sequence[Awaitable[object]]:
    await worker(servers)
    for process in ("p1", "p2"):
        await servers.warm(process, "worker", "t")

    async def change() -> None:
        found = (await servers.manage("root", "GET", "catalogs/lake")).json
        body: JsonObject = {"currentEntityVersion": found["entityVersion"], "properties": found["properties"]}
        await servers.manage("root", "PUT", "catalogs/lake", body)

    return [
        servers.ask(servers.commit("k", "worker"), "p1", "p2"),
        later(
            servers,
            0.3,
            change,
            lambda: servers.ask(servers.commit("l", "worker"), "p1"),
            lambda: servers.ask(servers.commit("m", "worker"), "p2", key=False),
            change,
            lambda: servers.revoke("root", "worker-in-lake", COMMIT),
            lambda: servers.ask(servers.commit("n", "worker"), "p2"),
        ),
    ]


SCENARIOS: tuple[Scenario, ...] = (
    a_grant_revoked_beside_commits,
    a_role_taken_from_a_principal_beside_commits,
    a_principal_dropped_and_made_again,
    roles_dropped_and_made_again,
    a_table_dropped_made_again_and_brought_back,
    a_namespace_dropped_and_made_again_beside_undrops,
    requests_that_share_commits_beside_revocations,
    transactions_beside_revocations,
    a_key_that_another_principal_has_learnt,
    a_takeover_after_a_revocation,
    a_catalog_changed_beside_commits,
)
