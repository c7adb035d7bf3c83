"""The worst documents of each format, in memory: each has its answer, and the memory taken for it is given back.
`make bench-hostile` sends them to a real server, and measures."""

from collections.abc import Iterator, Mapping

import pytest

from arco_catalog.iceberg.json import dumps
from arco_catalog.protocol.catalog import Settings
from arco_catalog.state.memory import Hold, Memory
from storage_backends import ABSENT
from tests.support.http_service import HttpService
from tools.support import worst_callers
from tools.support import worst_documents as worst
from tools.support.request_bodies import set_property

DB = "/v1/wh/namespaces/db"
TABLE = f"{DB}/tables/t"
MAX_METADATA = 4 << 20
OK = frozenset({200, 201})
REFUSED = frozenset({400, 404, 409, 413})
BODIES: Mapping[str, frozenset[int]] = {
    "more values than a body may have": frozenset({413}),
    "brackets that never close": frozenset({400}),
}


@pytest.fixture(autouse=True)
def memory(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Each account is empty after each test."""
    accounts: set[Memory] = set()
    hold = Memory.hold

    def noted(account: Memory) -> Hold:
        accounts.add(account)
        return hold(account)

    monkeypatch.setattr(Memory, "hold", noted)
    yield
    assert accounts
    assert {account.used for account in accounts} == {0}


@pytest.fixture
async def site() -> HttpService:
    service = HttpService(settings=Settings("wh", max_metadata_bytes=MAX_METADATA))
    await service.namespace("db", "db")
    await service.table("t")
    return service


async def send(site: HttpService, method: str, path: str, body: bytes) -> int:
    answer = await site.client.send(method, path, body, {})
    assert answer.status < 500, answer.body[:500]
    if answer.status >= 400:
        assert len(answer.message) < 10_000
    return answer.status


@pytest.mark.parametrize("name", worst.BODIES)
async def test_bodies_are_carried_out_or_refused(service: HttpService, name: str) -> None:
    assert await send(service, "POST", TABLE, worst.BODIES[name]()) in BODIES.get(name, OK)


async def test_events_and_policies_are_carried_out(service: HttpService) -> None:
    statuses = [
        await send(service, "POST", "/api/v1/wh/lineage", worst.event()),
        await send(service, "POST", "/api/v1/wh/lineage", worst.event_of_names()),
        await send(service, "POST", f"/polaris{DB}/policies", worst.policy()),
    ]
    assert statuses == [201, 201, 200]


@pytest.mark.parametrize("name", worst.SEMANTIC_MODELS)
async def test_semantic_models_are_kept_or_refused(service: HttpService, name: str) -> None:
    body = worst.SEMANTIC_MODELS[name]()
    assert await send(service, "POST", f"/polaris{DB}/semantic-models", body) in OK | REFUSED


@pytest.mark.parametrize("name", worst.GOVERNANCE)
async def test_changes_of_governance_are_made_or_refused(service: HttpService, name: str) -> None:
    expected = 200 if name == "as many changes as a request may have" else 400
    assert await send(service, "POST", f"{TABLE}/governance", worst.GOVERNANCE[name]()) == expected


@pytest.mark.parametrize("name", worst_callers.heads())
async def test_long_heads_are_read(service: HttpService, name: str) -> None:
    headers = {header.lower(): value for header, value in worst_callers.heads()[name].items()}
    assert (await service.client.send("GET", TABLE, b"", headers)).status in (200, 304, 400)


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
@pytest.mark.parametrize("name", worst.METADATA)
async def test_metadata_files_are_loaded_and_changed_or_refused(site: HttpService, name: str, packed: bool) -> None:
    """Files of a smaller limit: what is beyond it is refused by its values or its bytes."""
    [key] = [key for key in site.store.keys("wh/warehouse/db/t-") if key.endswith(".metadata.json")]
    found = await site.store.get(key)
    document = worst.METADATA[name](found.body, MAX_METADATA)  # type: ignore[union-attr]
    await site.store.delete(key)
    await site.store.put(key, worst.packed(document) if packed else document, ABSENT)
    fresh = HttpService(site.clock, site.options, site.settings)
    fresh.store = site.store
    client = fresh.serve()

    loaded = await client.get(TABLE)
    changed = await client.send("POST", TABLE, dumps(set_property("a", "b")), {})

    if name == "45 MB of empty arrays":
        assert (loaded.status, changed.status) == (400, 400)
        assert "is larger than" in loaded.message
    elif "string" in name and name != "short strings":  # with one property more it has more bytes than it may
        assert (loaded.status, changed.status) == (200, 400)
        assert "more than this catalog accepts" in changed.message
    else:
        assert (loaded.status, changed.status) == (200, 200), changed.body[:300]
