"""What `make bench-peers`, `bench-transports` and `bench-cold` measure over each cloud, once and without delay."""

import asyncio
import os
from pathlib import Path

import pytest

from arco_catalog.cli.clients import clients_of
from storage_backends import ABSENT, Applied, Found
from storage_backends.gcs.config import GcsClient
from storage_backends.gcs.store import GcsStore
from tools.bench import calls, cold_serve
from tools.bench.clouds import Place
from tools.bench.peers.__main__ import Line, loads
from tools.bench.peers.generator import Score
from tools.bench.peers.places import relayed
from tools.bench.transports import Rate, measure
from tools.support.gcs_servers import GcsServer, gcs_protocol_fake


async def test_a_relay_changes_nothing_of_requests_and_answers(tmp_path: Path) -> None:
    body = os.urandom(300_000)
    with gcs_protocol_fake() as near, relayed(near.endpoint, tmp_path, delay_ms=1) as far:
        near.make_bucket("lake")
        store = GcsStore("lake", config=GcsServer(far).config(GcsClient.WIRE))
        try:
            assert isinstance(await store.put("key", body, ABSENT), Applied)
            found = await store.get("key")
        finally:
            await store.close()
    assert isinstance(found, Found)
    assert found.body == body


def test_what_is_measured_of_a_client_is_told_for_one_request() -> None:
    rate = Rate(requests=200, seconds=2.0, cpu_seconds=0.5)
    assert (rate.a_cpu_second, rate.cpu_ms) == (400, 2.5)


async def test_loads_and_commits_are_measured_in_a_place(tmp_path: Path) -> None:
    [client] = clients_of("file:/")
    loads, commits = await measure(Place(f"file:{tmp_path}/store", {}), client, 0.1)
    assert loads.requests > 0
    assert commits.requests > 0


def test_a_server_is_started_over_a_place_until_its_first_load(tmp_path: Path) -> None:
    place = Place(f"file:{tmp_path}", {})
    asyncio.run(cold_serve.prepare(place))

    listening, loaded, cpu = cold_serve.serve_once(place)

    assert 0 < listening < loaded
    assert cpu > 0


def test_a_first_call_is_measured_in_a_process_of_its_own(tmp_path: Path) -> None:
    [client] = clients_of("file:/")
    said = cold_serve.first_call(Place(f"file:{tmp_path}", dict(os.environ)), client)
    assert set(said) == {"app", "first", "second", "modules", "rss"}


def test_the_peer_that_cannot_reach_a_store_has_no_figures() -> None:
    line = Line("load", loads, 8)
    line.ours.append(Score(1.0, 0.1, {"200": 100}, 20.0, 30.0))
    assert line.told() == "| load | 8 | 100 | | | 20.0 / 30.0 | | - | |"


@pytest.mark.parametrize("kind", ["gs", pytest.param("azure", marks=pytest.mark.needs("node", "npm"))])
def test_every_operation_keeps_its_budget_on_every_cloud(
    kind: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(calls, "RUNS", 1)
    monkeypatch.setattr(calls, "BUDGETS", calls.BUDGETS[:3])
    assert calls.main(["--store", kind]) == 0, capsys.readouterr().out
