"""Programs drawn from a seed: several principals ask for whatever there is to ask for, while root changes what they may
do. A run is decided by its seed and its faults alone."""

import asyncio
import random
from collections.abc import Awaitable, Callable

from arco_catalog.iceberg.json import JsonObject
from tests.simulation.access.judge import Ask
from tests.simulation.access.scenarios import CONTENT, spilled_too, together
from tests.simulation.access.servers import Servers
from tests.support.realm_service import on_catalog, on_namespace, on_table

PRINCIPALS = ("ann", "bob", "cyd")
TABLES = ("a", "b", "c")
PROCESSES = ("p1", "p2", "p3")
REQUESTS = 4
"""Of each principal."""
CHANGES = 6
"""By root."""

Change = Callable[[], Awaitable[object]]


@spilled_too("a", "b")
async def a_drawn_program(servers: Servers) -> None:
    """What three principals ask for beside what root does."""
    chance = servers.world.loop.stream("program")
    program = Program(servers, chance)
    for name in PRINCIPALS:
        await servers.setup.principal(name, *program.grants())
        await servers.warm(chance.choice(PROCESSES), name, *chance.sample(("a", "b"), chance.randint(0, 2)))
    await together(*(program.requests(name) for name in PRINCIPALS), program.changes())


class Program:
    """One program, drawn as it is played."""

    def __init__(self, servers: Servers, chance: random.Random) -> None:
        self.servers = servers
        self.chance = chance
        self.numbers = iter(range(1_000))

    def grants(self) -> list[JsonObject]:
        """Some grants."""
        table = self.chance.choice(TABLES[:2])
        all_of_them = (CONTENT, on_catalog("TABLE_WRITE_DATA"), on_table("TABLE_WRITE_DATA", "db", table))
        return self.chance.sample(all_of_them, self.chance.randint(1, 2))

    async def pause(self) -> None:
        """Some of the time that a request takes, or none."""
        await asyncio.sleep(self.chance.choice((0.0, 0.01, 0.1, 0.5)) * self.chance.random())

    async def requests(self, principal: str) -> None:
        """What one principal asks for, some of it at once."""
        asked = []
        for number in range(REQUESTS):
            ask = self.request(f"{principal}{number}", principal)
            keyed = not ask.reads and self.chance.random() < 0.7
            processes = self.chance.sample(PROCESSES, self.chance.choice((1, 1, 2)) if keyed else 1)
            sent = self.servers.ask(ask, *processes, key=keyed)
            if self.chance.random() < 0.5:
                asked.append(asyncio.ensure_future(sent))
            else:
                await sent
            await self.pause()
        await asyncio.gather(*asked)

    def request(self, name: str, principal: str) -> Ask:
        """Any request."""
        servers, chance = self.servers, self.chance
        one, other = chance.sample(TABLES, 2)
        match chance.randrange(11):
            case 0 | 1 | 2 | 3:
                return servers.commit(name, principal, one)
            case 4:
                return servers.transact(name, principal, one, other)
            case 5:
                return servers.create(name, principal, one)
            case 6:
                return servers.drop(name, principal, one)
            case 7:
                return servers.rename(name, principal, one, other)
            case 8:
                return servers.list(name, principal)
            case 9:
                return servers.undrop_of(name, principal, one)
            case _:
                return servers.load(name, principal, one)

    async def changes(self) -> None:
        """What root does, one after the other."""
        for _ in range(CHANGES):
            await self.pause()
            await self.change(self.chance.choice(PRINCIPALS), self.chance.choice(("root", *PROCESSES)))

    async def change(self, name: str, process: str) -> None:
        """Any change of what a principal may do."""
        servers, chance = self.servers, self.chance
        catalog_role: JsonObject = {"catalogRole": {"name": f"{name}-in-lake"}}
        principal_role: JsonObject = {"principalRole": {"name": f"{name}-role"}}
        used = f"principal-roles/{name}-role/catalog-roles/lake"
        match chance.randrange(10):
            case 0 | 1:
                await servers.revoke(process, f"{name}-in-lake", *self.grants())
            case 2 | 3:
                await servers.grant(process, f"{name}-in-lake", *self.grants())
            case 4:
                await servers.manage(process, "DELETE", f"principals/{name}/principal-roles/{name}-role")
                await servers.manage(process, "PUT", f"principals/{name}/principal-roles", principal_role)
            case 5:
                await servers.manage(process, "DELETE", f"principals/{name}")
                await servers.remake(process, name)
                await servers.manage(process, "PUT", f"principals/{name}/principal-roles", principal_role)
            case 6:
                await servers.manage(process, "DELETE", f"catalogs/lake/catalog-roles/{name}-in-lake")
                await servers.manage(process, "POST", "catalogs/lake/catalog-roles", catalog_role)
                await servers.manage(process, "PUT", used, catalog_role)
            case 7:
                await servers.manage(process, "DELETE", f"{used}/{name}-in-lake")
                await servers.manage(process, "PUT", used, catalog_role)
            case 8:
                await servers.remake_namespace(process, *TABLES)
                await servers.grant(process, f"{name}-in-lake", *self.grants(), on_namespace("TABLE_DROP", "db"))
            case _:
                await servers.undrop(process, chance.choice(TABLES))
