"""The scheduled reconciler's handler, imported by path: `lambda` is a keyword."""

import asyncio
import importlib
import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest

from arco_catalog.iceberg.json import JsonObject
from storage_backends.local.store import LocalStore
from tools.support.catalog_fixture import CatalogFixture
from tools.support.request_bodies import set_property

Handler = Callable[[object, "Invocation"], JsonObject]


class Invocation:
    """An invocation that reports these milliseconds as its time left, one value a call, and the last one again."""

    def __init__(self, *left_ms: int) -> None:
        self._left_ms = itertools.chain(left_ms, itertools.repeat(left_ms[-1]))

    def get_remaining_time_in_millis(self) -> int:
        return next(self._left_ms)


@pytest.fixture
def handler() -> Handler:
    return cast(Handler, importlib.import_module("lambda.reconcile").handler)


@pytest.fixture
def committed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The committed receipts of three tables in a folder. The handler's environment names the folder."""

    async def fill() -> None:
        fixture = CatalogFixture(LocalStore(tmp_path), url=f"file://{tmp_path}")
        await fixture.namespace("db")
        for name in "abc":
            await fixture.table(name)
            await fixture.commit(set_property("p", "1"), name)

    asyncio.run(fill())
    monkeypatch.setenv("ARCO_STORE", f"file:{tmp_path}")
    monkeypatch.setenv("ARCO_WAREHOUSE", "wh")
    return sorted((tmp_path / "wh/_catalog/events").glob("*/iceberg/committed/*.json"))


def test_a_run_puts_its_metrics_on_stdout(
    handler: Handler, committed: list[Path], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    committed[0].unlink()
    handler({}, Invocation(60_000, 5_000))
    handler({}, Invocation(60_000))
    monkeypatch.setenv("ARCO_METRICS_NAMESPACE", "")
    handler({}, Invocation(60_000))

    stopped, done, silent = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    [directive] = done["_aws"]["CloudWatchMetrics"]
    assert (directive["Namespace"], directive["Dimensions"]) == ("ArcoCatalog", [["Warehouse"]])
    assert {metric["Name"] for metric in directive["Metrics"]} >= {"ReconcileCompleted", "ReceiptsWritten"}
    assert [(line["ReconcileCompleted"], line["ReceiptsWritten"]) for line in (stopped, done)] == [(0, 0), (1, 1)]
    assert {line["Warehouse"] for line in (stopped, done, silent)} == {"wh"}
    assert "_aws" not in silent


def test_a_run_writes_what_a_dead_writer_owed(handler: Handler, committed: list[Path]) -> None:
    lost = {path: path.read_bytes() for path in committed[::2]}
    for path in lost:
        path.unlink()
    counts = handler({}, Invocation(60_000))
    assert (counts["written"], counts["walked"], counts["stopped"]) == (len(lost), 3, False)
    assert {path: path.read_bytes() for path in lost} == lost
    assert handler({}, Invocation(60_000))["unchanged"] == 3


def test_a_run_stops_in_time_and_the_next_goes_on(handler: Handler, committed: list[Path]) -> None:
    committed[0].unlink()
    assert handler({}, Invocation(60_000, 5_000))["stopped"] is True
    assert not committed[0].exists()
    assert handler({}, Invocation(60_000))["written"] == 1
