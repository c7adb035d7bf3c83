"""`make test-prove`: nothing is found at this catalog in any shape that it is run in."""

import asyncio
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from arco_catalog.http.lambda_adapter import Endpoint
from arco_catalog.prove.campaign import Campaign, CampaignOptions, CampaignReport, open_campaign
from arco_catalog.prove.replay_file import encode
from tests.prove.restart_server import restart_command
from tools.bench.peers.servers import arco
from tools.gateway.running import running
from tools.support.arco_server import WAREHOUSE
from tools.support.azurite import azurite
from tools.support.gcs_servers import fake_gcs_server
from tools.support.s3_servers import S3Server, versitygw

pytestmark = pytest.mark.slow
SECONDS = float(os.environ.get("ARCO_PROVE_SECONDS", "600"))
OPERATIONS = 1_000_000
"""More than are reached, so that each shape is tested for `SECONDS`: in 600, more than 50,000 operations."""


@dataclass(frozen=True)
class Shape:
    """Servers of one catalog, and the command that restarts them."""

    servers: list[str]
    restart: list[str]
    warehouse: str | None = WAREHOUSE


@contextmanager
def workers(folder: Path) -> Iterator[Shape]:
    with arco(f"file:{folder}/store", folder, {}, ["--workers", "3"]) as server:
        yield Shape([server.uri], [])


@contextmanager
def killed(folder: Path) -> Iterator[Shape]:
    files, ports, command = restart_command(folder, 2)
    subprocess.run(command, check=True, timeout=120)
    try:
        yield Shape([f"http://127.0.0.1:{port}" for port in ports], command, None)
    finally:
        for file in files:
            os.kill(int(file.read_text()), signal.SIGKILL)


@contextmanager
def on_files(folder: Path) -> Iterator[Shape]:
    with two_servers(folder, f"file:{folder}/store", {}) as shape:
        yield shape


@contextmanager
def on_s3(folder: Path) -> Iterator[Shape]:
    with versitygw() as store, two_servers(folder, "s3://prove/catalog", bucket(store)) as shape:
        yield shape


def bucket(store: S3Server) -> dict[str, str]:
    store.make_bucket("prove")
    return store.environment


@contextmanager
def two_servers(folder: Path, store: str, environment: dict[str, str]) -> Iterator[Shape]:
    (folder / "second").mkdir()
    with arco(store, folder, environment) as one, arco(store, folder / "second", environment) as two:
        yield Shape([one.uri, two.uri], [])


@contextmanager
def on_gcs(folder: Path) -> Iterator[Shape]:
    with fake_gcs_server() as store:
        store.make_bucket("prove")
        with two_servers(folder, "gs://prove/catalog", dict(store.environment)) as shape:
            yield shape


@contextmanager
def on_azure(folder: Path) -> Iterator[Shape]:
    with azurite(on_disk=True) as store:
        store.make_container("prove")
        with two_servers(folder, "az://prove/catalog", dict(store.environment)) as shape:
            yield shape


@pytest.mark.parametrize("shape", [workers, on_files, killed, on_s3, on_gcs, on_azure])
def test_nothing_is_found_at_this_catalog(
    tmp_path: Path, shape: Callable[[Path], AbstractContextManager[Shape]]
) -> None:
    with shape(tmp_path) as running_shape:
        report = campaign(running_shape)
    print(f"{shape.__name__}: {summary(report)}")
    assert not report.findings
    assert (report.undecided, report.foreign) == (0, 0)
    assert report.kills > 0 or shape is not killed


def test_nothing_is_found_at_functions(archive: Path, tmp_path: Path) -> None:
    with versitygw() as store:
        variables = {**bucket(store), "ARCO_STORE": "s3://prove/catalog", "ARCO_WAREHOUSE": WAREHOUSE}
        with running(archive, Endpoint.HTTP_API, tmp_path / "log", variables) as uri:
            report = campaign(Shape([uri], []))
    print(f"functions: {summary(report)}")
    assert not report.findings
    assert (report.undecided, report.foreign) == (0, 0)


def campaign(shape: Shape) -> CampaignReport:
    """Tests the catalog; prints a replay of what is found."""
    reports: list[CampaignReport] = []

    async def use(found: Campaign) -> None:
        report = await found.run(lambda _: None)
        reports.append(report)
        if report.program is not None:
            print(encode(await found.make_replay(report.program, report.findings[0].breaks, 120)))

    options = CampaignOptions(
        shape.servers,
        warehouse=shape.warehouse,
        seconds=SECONDS,
        operations=OPERATIONS,
        restart=shape.restart,
        linearizable=True,
    )
    asyncio.run(open_campaign(options, use))
    return reports[0]


def summary(report: CampaignReport) -> str:
    """The counts of a report, and its findings."""
    unknown = sum(count for outcome, count in report.outcomes.items() if outcome.endswith("unknown"))
    counts = f"{report.operations:,} operations in {report.programs:,} programs and {report.seconds:,.0f} s"
    more = f"{unknown:,} unknown, {report.kills:,} kills, {report.repeated:,} repeated, {report.undecided} undecided"
    return "\n  ".join((f"{counts}, {more}", *map(str, report.findings[:5])))
