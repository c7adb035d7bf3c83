"""What grants cost: the realm's manifest beside the others, and of a spilled registry one object's chain
(docs/design/budgets.md)."""

import pytest

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.relation_history import MAX_RECEIPT_READS
from arco_catalog.protocol.catalog import Settings
from arco_catalog.state.spilling import Limits
from storage_backends.memory import MemoryStore
from tests.access.lake import DB, NAMESPACES, T
from tests.support.realm_service import RealmApp, on_catalog, on_table, table_request
from tools.support.asgi_client import Answer, Client
from tools.support.request_bodies import scan_report
from tools.support.wrapped_stores import CountingStore, DelayingStore

SET: JsonObject = {"requirements": [], "updates": [{"action": "set-properties", "updates": {"a": "b"}}]}


class CountedCatalog:
    """Two tables in a realm's catalog, over a store whose calls all take the same time."""

    def __init__(self, settings: Settings | None = None, seconds: float = 0.004) -> None:
        self.app = RealmApp(settings=settings or Settings("-"))
        self.memory = MemoryStore(now_ms=self.app.clock.now_ms)
        self.store = CountingStore(DelayingStore(self.memory, seconds))

    async def start(self, *grants: JsonObject) -> "CountedCatalog":
        self.app.store = self.memory
        await self.app.start()
        await self.app.catalog()
        self.manager = await self.app.principal("manager", on_catalog("CATALOG_MANAGE_CONTENT"))
        assert (await self.manager.post(NAMESPACES, {"namespace": ["db"]})).status == 200
        for name in ("t", "u"):
            assert (await self.manager.post(f"{DB}/tables", table_request(name))).status == 200
        self.reader = await self.app.principal("reader", *(grants or [on_table("TABLE_READ_DATA", "db", "t")]))
        self.app.store = self.store
        return self

    def client(self, name: str = "manager") -> Client:
        """Of a server that has nothing in memory."""
        return self.app.client(name, app=self.app.serve())

    async def cost(
        self, client: Client, method: str, target: str, body: JsonObject | None = None, key: str = ""
    ) -> tuple[int, int]:
        """(depth, calls) of a request, which must succeed."""
        headers = {"idempotency_key": key} if key else {}
        with self.store.measure() as measured:
            answer: Answer
            if method == "POST":
                answer = await client.post(target, body or {}, **headers)
            else:
                answer = await client.send(method, target)
        assert answer.status < 300, answer.body
        return measured.depth, measured.calls


def within(cost: tuple[int, int], depth: int, calls: int) -> bool:
    return cost[0] <= depth and cost[1] <= calls


@pytest.fixture
async def counted() -> CountedCatalog:
    return await CountedCatalog().start()


async def test_a_warm_load_takes_one_call_more_and_is_no_deeper(counted: CountedCatalog) -> None:
    client = counted.client("reader")
    await counted.cost(client, "GET", T)
    assert await counted.cost(client, "GET", T) == (1, 2 + 1)


async def test_a_cold_load_is_one_deeper_and_reads_the_realm_twice(counted: CountedCatalog) -> None:
    assert await counted.cost(counted.client("reader"), "GET", T) == (3 + 1, 3 + 2)


async def test_a_cold_head_is_one_deeper_and_reads_the_realm_twice(counted: CountedCatalog) -> None:
    assert await counted.cost(counted.client("reader"), "HEAD", T) == (1 + 1, 1 + 2)


async def test_a_cold_commit_is_one_deeper_and_reads_the_realm_twice(counted: CountedCatalog) -> None:
    assert within(await counted.cost(counted.client(), "POST", T, SET), 6 + 1, 8 + 2)
    again: JsonObject = {"requirements": [], "updates": [{"action": "set-properties", "updates": {"a": "c"}}]}
    assert within(await counted.cost(counted.client(), "POST", T, again, counted.app.key()), 6 + 1, 10 + 2)


async def test_a_cold_create_is_one_deeper_and_reads_the_realm_twice(counted: CountedCatalog) -> None:
    tables, key = f"{DB}/tables", counted.app.key()
    assert within(await counted.cost(counted.client(), "POST", tables, table_request("a")), 4 + 1, 7 + 2)
    assert within(await counted.cost(counted.client(), "POST", tables, table_request("b"), key), 4 + 1, 10 + 2)


async def test_a_warm_load_of_a_governed_table_takes_no_more(counted: CountedCatalog) -> None:
    owner = counted.app.client("root")
    client = counted.client("reader")
    patch: JsonObject = {"arco.owner": "ada", "arco.column.1.tag.pii": "none"}
    assert (await owner.post(f"{T}/governance", patch)).status == 200
    assert (await client.get(T)).json["labels"]
    assert await counted.cost(client, "GET", T) == (1, 2 + 1)
    assert await counted.cost(client, "GET", f"{T}/governance") == (1, 1 + 1)


async def test_a_warm_head_takes_one_call_more(counted: CountedCatalog) -> None:
    client = counted.client("reader")
    await counted.cost(client, "HEAD", T)
    assert await counted.cost(client, "HEAD", T) == (1, 1 + 1)


async def test_a_warm_commit_takes_one_call_more(counted: CountedCatalog) -> None:
    client = counted.client()
    await counted.cost(client, "POST", T, SET, counted.app.key())
    assert within(await counted.cost(client, "POST", T, SET, counted.app.key()), 3, 7 + 1)
    assert within(await counted.cost(client, "POST", T, SET), 3, 5 + 1)


async def test_a_warm_create_takes_one_call_more(counted: CountedCatalog) -> None:
    client = counted.client()
    await counted.cost(client, "POST", f"{DB}/tables", table_request("a"))
    assert within(await counted.cost(client, "POST", f"{DB}/tables", table_request("b")), 3, 7 + 1)
    key = counted.app.key()
    assert within(await counted.cost(client, "POST", f"{DB}/tables", table_request("c"), key), 3, 9 + 1)


async def test_a_page_of_a_list_takes_the_two_heads_more(counted: CountedCatalog) -> None:
    client = counted.client()
    first = await client.get(f"{DB}/tables?pageSize=1&pageToken=")
    token = first.json["next-page-token"]
    assert await counted.cost(client, "GET", f"{DB}/tables?pageSize=1&pageToken=") == (1, 1 + 1)
    assert within(await counted.cost(client, "GET", f"{DB}/tables?pageSize=1&pageToken={token}"), 2, 2 + 2)


async def test_a_refusal_on_what_is_cached_is_read_again_once(counted: CountedCatalog) -> None:
    client = counted.client("reader")
    await client.get(T)
    with counted.store.measure() as measured:
        assert (await client.post(T, SET)).status == 403
    assert within((measured.depth, measured.calls), 2, 4)


async def test_handlers_that_look_at_nothing_take_the_two_heads(counted: CountedCatalog) -> None:
    client = counted.client("reader")
    await client.get(T)
    assert await counted.cost(client, "POST", f"{T}/metrics", scan_report()) == (1, 2)


@pytest.mark.parametrize("tables", [20, 200])
async def test_a_check_reads_only_the_chain_of_one_object(tables: int) -> None:
    """However many tables and grants there are, and however finely they are spilled."""
    counted = await CountedCatalog(Settings("-", spill=Limits(embedded=2_000, segment=4_000)), seconds=0.0).start()
    for place in range(tables):
        name = f"t{place:04d}"
        assert (await counted.manager.post(f"{DB}/tables", table_request(name))).status == 200
        await counted.app.ok(
            "PUT",
            "catalogs/lake/catalog-roles/reader-in-lake/grants",
            {"grant": on_table("TABLE_READ_DATA", "db", name)},
        )
    client = counted.client("reader")
    _, calls = await counted.cost(client, "GET", f"{DB}/tables/t0007")
    assert calls <= 16
    assert await counted.cost(client, "GET", f"{DB}/tables/t0007") == (1, 2 + 1)


async def test_a_page_of_a_timeline_takes_within_25_calls() -> None:
    counted = await CountedCatalog().start()
    for number in range(MAX_RECEIPT_READS + 4):
        body: JsonObject = {
            "requirements": [],
            "updates": [{"action": "set-properties", "updates": {"a": str(number)}}],
        }
        assert (await counted.manager.post(T, body)).status == 200
    client = counted.client("reader")

    assert await counted.cost(client, "GET", f"{T}/timeline") == (6, 3 + 3 + MAX_RECEIPT_READS)
    assert await counted.cost(client, "GET", f"{T}/timeline") == (2, 3 + MAX_RECEIPT_READS)
