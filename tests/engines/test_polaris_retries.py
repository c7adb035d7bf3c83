"""The client of Polaris's proposal of idempotency keys, in Java, behind a proxy that loses the answers."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.engines.java_client import run
from tests.support.dropping_proxy import DroppingProxy, Fate, first_time
from tools.demo.engines import PROJECT, pyiceberg_catalog
from tools.demo.java import java_home
from tools.demo.server import WAREHOUSE, Server, serving
from tools.support.request_bodies import renaming, schema, set_property

PROGRAM = PROJECT / "tools/javaclient/PolarisRetries.java"
NAMESPACES = f"/v1/{WAREHOUSE}/namespaces"
TABLE = f"{NAMESPACES}/db/tables/t"
REQUESTS = (
    (NAMESPACES, {"namespace": ["db"]}),
    (f"{NAMESPACES}/db/tables", {"name": "t", "schema": schema("x")}),
    (TABLE, set_property("step", "1")),
    (f"{NAMESPACES}/db/properties", {"updates": {"owner": "arco"}}),
    (f"/polaris{NAMESPACES}/db/generic-tables", {"name": "g", "format": "delta"}),
    (f"/v1/{WAREHOUSE}/tables/rename", renaming("t", "u")),
)


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("ARCO_IDEMPOTENCY_DIALECT", "polaris")
    with serving(f"file:{tmp_path / 'store'}", tmp_path / "server.log") as running:
        yield running


async def sent(uri: str, scratch: Path) -> Sequence[tuple[int, object, int]]:
    """Of each request: the status of its answer, the answer, and how often it was sent."""
    arguments = [part for path, body in REQUESTS for part in (path, json.dumps(body))]
    command = [str(java_home() / "bin" / "java"), "-Xmx256m", str(PROGRAM), uri, *arguments]
    lines = [line.split("\t") for line in (await run(command, scratch)).splitlines()]
    return [(int(status), json.loads(body or "null"), int(attempts)) for status, body, attempts in lines]


async def test_each_request_is_answered_by_replay_and_applied_once(server: Server, tmp_path: Path) -> None:
    proxy = DroppingProxy(server.uri, first_time(Fate.TIMED_OUT))
    async with proxy.listening() as uri:
        answers = await sent(uri, tmp_path)

    assert [status for status, _, _ in answers] == [200, 200, 200, 200, 200, 204]
    assert [attempts for _, _, attempts in answers] == [2] * len(REQUESTS)
    mutations = [exchange for exchange in proxy.exchanges if exchange.request.mutates]
    assert [exchange.fate for exchange in mutations] == [Fate.TIMED_OUT, Fate.DELIVERED] * len(REQUESTS)
    assert [each.status for each in mutations[::2]] == [each.status for each in mutations[1::2]]  # by the server
    keys = [exchange.request.key for exchange in mutations]
    assert keys[::2] == keys[1::2]
    assert {str(key)[14] for key in keys} == {"4"}  # random UUIDs, which the other dialect refuses
    table = pyiceberg_catalog(server.uri, WAREHOUSE, {}).load_table("db.u")
    assert table.properties["step"] == "1"
    assert len(table.metadata.metadata_log) == 1
    assert answers[2][1]["metadata-location"] == table.metadata_location  # type: ignore[index]
