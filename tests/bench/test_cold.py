"""What a cold start does and does not do, and the arithmetic of `make bench-cold`."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from arco_catalog.http.lambda_adapter import Endpoint
from tools.bench.cold import CONFIG, LOAD, OPERATIONS, Measured, Operation, Starts, ratio, show, start
from tools.bench.cold_folders import BARE, HANDLERS, OURS, STOCK, functions, runtime_client
from tools.gateway.sandbox import Function
from tools.support.environment import PROJECT

ENVIRONMENT = {
    "ARCO_STORE": "s3://bucket/catalog",
    "ARCO_WAREHOUSE": "wh",
    "ARCO_ENDPOINT": Endpoint.HTTP_API,
    "AWS_ACCESS_KEY_ID": "x",
    "AWS_SECRET_ACCESS_KEY": "x",
    "AWS_REGION": "us-east-1",
}

LEFT_OUT = {
    "arco_catalog.planning.context",
    "arco_catalog.planning.held_grants",
    "arco_catalog.planning.judgement",
    "arco_catalog.planning.securables",
    "arco_catalog.protocol.idempotency",
    "arco_catalog.protocol.key_resolution",
    "arco_catalog.protocol.planned_commit",
    "arco_catalog.tasks.retry",
}
"""Modules that a request which reads does not use in a server without a realm."""

DOCUMENT = Operation("document", "/openapi.json")
"""A request that needs no store."""

SPY = """
import datetime, importlib, os, random, secrets, sys, time, uuid

def watch(module, name):
    original = getattr(module, name)
    def watched(*args, **kwargs):
        caller = sys._getframe(1).f_globals["__name__"].partition(".")[0]
        if caller in ("arco_catalog", "storage_backends", "lambda", "planted"):
            sys.exit(f"{caller} takes {name} when it is imported")
        return original(*args, **kwargs)
    setattr(module, name, watched)

for module, names in {
    time: "time time_ns monotonic monotonic_ns perf_counter perf_counter_ns process_time",
    os: "urandom getrandom getpid",
    random: "random randint getrandbits choice uniform",
    uuid: "uuid1 uuid4",
    secrets: "token_bytes token_hex token_urlsafe",
}.items():
    for name in names.split():
        watch(module, name)

class WatchedClock(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        sys.exit("a module calls datetime.now when it is imported")
datetime.datetime = WatchedClock

importlib.import_module(sys.argv[1])
"""


def imported(module: str, *folders: Path) -> subprocess.CompletedProcess[str]:
    """Import a module in a process that ends with an error at a use of the clock or of randomness."""
    path = os.pathsep.join(map(str, folders))
    command = [sys.executable, "-c", SPY, module]
    environment = {**ENVIRONMENT, "PYTHONPATH": path, "AWS_LAMBDA_INITIALIZATION_TYPE": "snap-start"}
    return subprocess.run(command, cwd=PROJECT, env=environment, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("module", ["lambda.api", "lambda.reconcile", "lambda.work"])
def test_nothing_that_snapshots_would_share_is_taken_at_import(module: str) -> None:
    done = imported(module, PROJECT)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "statement",
    [
        "import time; BORN = time.time_ns()",
        "from os import urandom; SEED = urandom(8)",
        "import uuid; ME = uuid.uuid4()",
        "from datetime import datetime; BORN = datetime.now()",
    ],
)
def test_a_planted_look_at_clock_or_dice_is_caught(tmp_path: Path, statement: str) -> None:
    (tmp_path / "planted.py").write_text(statement)
    done = imported("planted", tmp_path)
    assert done.returncode == 1
    assert "when it is imported" in done.stderr


@pytest.mark.parametrize(
    ("kind", "expected"), [("on-demand", "False"), ("provisioned-concurrency", "True"), ("snap-start", "True")]
)
def test_handlers_are_imported_ahead_where_nobody_waits_for_the_start(kind: str, expected: str) -> None:
    load = "import importlib, sys; importlib.import_module('lambda.api')"
    look = f"{load}; print('arco_catalog.http.views' in sys.modules)"
    environment = {**ENVIRONMENT, "AWS_LAMBDA_INITIALIZATION_TYPE": kind}
    command = [sys.executable, "-c", look]
    done = subprocess.run(command, cwd=PROJECT, env=environment, check=True, capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == expected


def test_garbage_is_collected_after_the_start() -> None:
    look = (
        "import gc, importlib; importlib.import_module('lambda.api'); print(gc.isenabled(), gc.get_freeze_count() > 0)"
    )
    command = [sys.executable, "-c", look]
    done = subprocess.run(command, cwd=PROJECT, env=ENVIRONMENT, check=True, capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == ["True", "True"]


def test_a_start_imports_nothing_that_plans_commits() -> None:
    look = "import importlib, sys; importlib.import_module('lambda.api'); print(*sys.modules)"
    command = [sys.executable, "-c", look]
    done = subprocess.run(command, cwd=PROJECT, env=ENVIRONMENT, check=True, capture_output=True, text=True, timeout=60)
    assert LEFT_OUT & {*done.stdout.split()} == set()


async def test_a_start_is_measured_until_its_answer(tmp_path: Path) -> None:
    client = runtime_client(tmp_path / "client")
    folders = functions(tmp_path, compiled=True, names=(OURS, BARE))
    for name in folders:
        environment = {**ENVIRONMENT, "ARCO_AUTHORIZATION": "off"}  # else it would ask the store whether it has a realm
        function = Function(folders[name], HANDLERS[name], environment, tmp_path / "log")
        wall, cpu = await start(function, client, DOCUMENT.event)
        assert wall > 0
        assert cpu > 0


def test_shares_are_of_medians(capsys: pytest.CaptureFixture[str]) -> None:
    walls = {OURS: [130.0, 90.0, 100.0], BARE: [80.0, 81.0, 50.0], STOCK: [400.0, 1000.0, 350.0]}
    measured: Measured = {
        (operation, name): Starts(wall, [10.0]) for operation in OPERATIONS for name, wall in walls.items()
    }
    assert ratio(measured, CONFIG, BARE) == 1.25
    assert ratio(measured, LOAD, STOCK) == 0.25
    show(measured)
    printed = capsys.readouterr().out
    assert "| config | (a) starlette | 50 | 80 | 10 | 1.25 times |" in printed
    assert "Measured: 4.00 times" in printed
