"""How often a policy is queried: once for what a request needs, once for each page of a list; and nothing more of the
store."""

import subprocess
import sys

from arco_catalog.iceberg.json import JsonObject
from tests.access.lake import DB, NAMESPACES, T
from tests.access.test_budgets import SET, CountedCatalog
from tests.support.policy_stub import PolicyStub
from tools.support.asgi_client import Client
from tools.support.environment import PROJECT


class CountedPolicy:
    """A counted catalog, and a server of it that queries a policy."""

    def __init__(self, counted: CountedCatalog, cache_ms: int = 0) -> None:
        self.counted, self.stub = counted, PolicyStub()
        counted.app.policy = self.stub.agent(counted.app.clock.now_ms, cache_ms=cache_ms)
        self.client: Client = counted.client()

    async def cost(self, method: str, target: str, body: JsonObject | None = None, key: str = "") -> tuple[int, int]:
        """The calls to the policy, and to the store, of a request."""
        before = len(self.stub.calls)
        _, calls = await self.counted.cost(self.client, method, target, body, key)
        return len(self.stub.calls) - before, calls


async def test_the_store_is_read_no_more_for_a_policy() -> None:
    counted = await CountedCatalog().start()
    plain = counted.client()

    def set_to(value: str) -> JsonObject:
        return {"requirements": [], "updates": [{"action": "set-properties", "updates": {"a": value}}]}

    requests = (("GET", T, None), ("POST", T, set_to("1")), ("GET", f"{DB}/tables", None))
    for method, target, body in requests:
        await counted.cost(plain, method, target, body)
    again = (("GET", T, None), ("POST", T, set_to("2")), ("GET", f"{DB}/tables", None))
    warm = [(await counted.cost(plain, method, target, body))[1] for method, target, body in again]
    policed = CountedPolicy(counted)
    for method, target, body in requests:
        await policed.cost(method, target, body)

    costs = [await policed.cost(method, target, body) for method, target, body in again]

    assert [calls for _, calls in costs] == warm
    assert [queried for queried, _ in costs] == [1, 1, 2]


async def test_what_is_remembered_costs_no_call() -> None:
    policed = CountedPolicy(await CountedCatalog().start(), cache_ms=5_000)
    requests = (("GET", T, None), ("POST", T, SET), ("GET", f"{DB}/tables", None), ("GET", NAMESPACES, None))
    for method, target, body in requests:
        await policed.cost(method, target, body)

    assert [(await policed.cost(method, target, body))[0] for method, target, body in requests] == [0, 0, 0, 0]


async def test_a_commit_queries_about_all_its_updates_at_once() -> None:
    policed = CountedPolicy(await CountedCatalog().start())
    body: JsonObject = {
        "requirements": [],
        "updates": [
            {"action": "set-properties", "updates": {"a": "b"}},
            {"action": "remove-properties", "removals": ["c"]},
        ],
    }

    queried, _ = await policed.cost("POST", T, body, policed.counted.app.key())

    assert queried == 1
    assert len(policed.stub.calls[-1][1]["requests"]) == 2


SERVED = """
import asyncio, sys
from arco_catalog.embed import open_app
from tools.support.asgi_client import Client

async def make() -> int:
    async with open_app("memory:") as app:
        return (await Client(app).post("/v1/arco/namespaces", {"namespace": ["db"]})).status

print(asyncio.run(make()), *sys.modules)
"""
OF_POLICIES = {
    "arco_catalog.authentication.opa",
    "arco_catalog.protocol.policy",
    "arco_catalog.planning.policy_questions",
}


def test_a_server_without_a_policy_imports_nothing_of_it() -> None:
    command = [sys.executable, "-c", SERVED]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=True, timeout=120)
    status, *imported = done.stdout.split()

    assert status == "200"
    assert not OF_POLICIES & {*imported}
