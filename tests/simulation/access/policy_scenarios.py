"""What requests may do while a policy outside of the catalog changes its mind, or does not answer."""

from collections.abc import Awaitable, Callable, Sequence

from tests.simulation.access.policy import ChangingPolicy
from tests.simulation.access.scenarios import COMMIT, CONTENT, later, together, worker
from tests.simulation.access.servers import Servers
from tests.simulation.explore import Scenario
from tests.simulation.world import World


def policed(
    *tables: str,
) -> Callable[[Callable[[Servers, ChangingPolicy], Awaitable[Sequence[Awaitable[object]]]]], Scenario]:
    """Does at once what the decorated function lists, at servers that query a policy."""

    def decorate(requests: Callable[[Servers, ChangingPolicy], Awaitable[Sequence[Awaitable[object]]]]) -> Scenario:
        async def run(world: World) -> None:
            policy = ChangingPolicy(world)
            servers = await Servers(world, policy=policy).start(*tables)
            await together(*await requests(servers, policy))
            await servers.close()

        run.__qualname__ = getattr(requests, "__name__", "policed")
        return run

    return decorate


@policed("t")
async def a_policy_that_changes_beside_commits(servers: Servers, policy: ChangingPolicy) -> Sequence[Awaitable[object]]:
    await worker(servers, COMMIT)
    for process in ("p1", "p2"):
        await servers.warm(process, "worker", "t")
    denied = servers.identity("worker")
    return [
        servers.ask(servers.commit("k", "worker"), "p1", "p2"),
        servers.ask(servers.commit("l", "worker"), "p2", key=False),
        later(
            servers,
            0.5,
            lambda: policy.deny(denied),
            lambda: servers.ask(servers.commit("m", "worker"), "p1", "p2"),
            lambda: servers.ask(servers.load("n", "worker"), "p1"),
            policy.deny,
            lambda: servers.ask(servers.commit("o", "worker"), "p1"),
            lambda: policy.deny(denied),
            lambda: servers.world.runtime.sleep(6.0),
            lambda: servers.ask(servers.load("p", "worker"), "p1"),
            lambda: servers.ask(servers.commit("q", "worker"), "p1", "p2"),
            policy.deny,
            lambda: servers.ask(servers.load("r", "worker"), "p1"),
            lambda: servers.ask(servers.commit("s", "worker"), "p2"),
        ),
    ]


@policed("t")
async def a_policy_that_changes_beside_shared_commits(
    servers: Servers, policy: ChangingPolicy
) -> Sequence[Awaitable[object]]:
    await worker(servers, CONTENT)
    await servers.setup.principal("another", CONTENT)
    await servers.warm("p1", "worker", "t")
    await servers.warm("p1", "another", "t")
    denied = servers.identity("worker")
    return [
        *(servers.ask(servers.create(f"a{n}", "another", f"a{n}"), "p1", key=n % 2 == 0) for n in range(4)),
        *(servers.ask(servers.create(f"w{n}", "worker", f"w{n}"), "p1", key=n % 2 == 0) for n in range(4)),
        servers.ask(servers.rename("r", "worker", "t", "v"), "p1"),
        later(
            servers,
            0.1,
            lambda: policy.deny(denied),
            lambda: servers.world.runtime.sleep(5.5),
            lambda: servers.ask(servers.create("x", "worker", "x"), "p1"),
            lambda: servers.ask(servers.create("y", "another", "y"), "p1"),
        ),
    ]


@policed("t")
async def a_policy_that_is_down_beside_commits(servers: Servers, policy: ChangingPolicy) -> Sequence[Awaitable[object]]:
    await worker(servers, COMMIT)
    await servers.warm("p1", "worker", "t")
    return [
        servers.ask(servers.commit("k", "worker"), "p1", "p2"),
        later(servers, 0.3, lambda: policy.fail(8.0), lambda: servers.ask(servers.commit("m", "worker"), "p1")),
        later(
            servers,
            2.0,
            lambda: servers.world.runtime.sleep(5.5),
            lambda: servers.ask(servers.commit("l", "worker"), "p1"),
            lambda: servers.ask(servers.load("n", "worker"), "p1", key=False),
        ),
    ]


SCENARIOS: tuple[Scenario, ...] = (
    a_policy_that_changes_beside_commits,
    a_policy_that_changes_beside_shared_commits,
    a_policy_that_is_down_beside_commits,
)
