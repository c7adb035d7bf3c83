"""Measures the console in Chromium on a catalog of 10,000 tables, one of them with 10,000 snapshots, and prints the
medians: `python -m tests.console.measure`. In milliseconds: `first` is until the first paint of content, `whole` until
all of the page is there, `task` the longest task of its scripts, `interaction` until a page has changed after a
click."""

import asyncio
import json
import os
import subprocess
import tempfile

from arco_catalog.operations.open import build_catalog
from arco_catalog.protocol.access import ALLOW_ALL
from arco_catalog.protocol.catalog import Settings
from arco_catalog.protocol.operation_request import OperationRequest
from arco_catalog.state.runtime import SystemRuntime
from storage_backends.open import open_store
from tests.cli.process import serving
from tests.support.registry_builder import RegistryBuilder
from tools.support.environment import PROJECT
from tools.support.many_snapshots import table
from tools.support.request_bodies import set_property

TABLES = 10_000
SNAPSHOTS = 10_000
VERSIONS = 40


async def fill(store_url: str) -> None:
    """Writes a catalog of many tables in two large and many small namespaces, of which one can be opened."""
    runtime, settings = SystemRuntime(), Settings("arco")
    store = open_store(store_url, {})
    catalog = build_catalog(settings, store, store_url, (), runtime)
    builder = RegistryBuilder(catalog.mounts[0].root, catalog.paths, runtime, settings.spill)
    objects: dict[str, bytes] = {}
    small = [f"team_{number:02}" for number in range(100)]
    for name in ("many", "long", *small):
        objects |= builder.namespace(name)
    for number in range(TABLES):
        builder.table("many" if number % 2 else small[number % 100], f"table_{number:05}")
    entity, home = builder.table("long", "history")
    objects |= builder.state_of(entity, home.below("metadata"), table(SNAPSHOTS, home.uri))
    request = OperationRequest("POST", "", "", None, "operator", {}, runtime.now_ms() + 600_000)
    state = catalog.session(request, ALLOW_ALL).state
    for key, body in (objects | dict(builder.registry())).items():
        await state.create(key, body)
    await catalog.close()


async def measure() -> None:
    """Prints the measurements."""
    with tempfile.TemporaryDirectory(prefix="arco-large-") as scratch:
        store = f"file:{scratch}"
        await fill(store)
        async with serving(store) as server:
            for number in range(VERSIONS):
                answer = await server.call(
                    "POST", "/v1/arco/namespaces/long/tables/history", set_property("a", str(number))
                )
                assert answer[0] == 200, answer
            given = dict.fromkeys(("ARCO_ROOT", "ARCO_ADA", "ARCO_HOSTILE"), "[]")
            environment = {**os.environ, **given, "ARCO_URI": server.uri, "ARCO_PLAIN_URI": server.uri}
            command = ["node", "browser/measure.mjs"]
            ended = await asyncio.to_thread(
                subprocess.run, command, cwd=PROJECT / "console", env=environment, check=True, stdout=subprocess.PIPE
            )
    for line in ended.stdout.splitlines():
        found = json.loads(line)
        numbers = "  ".join(f"{kind} {ms:6.0f}" for kind, ms in found.items() if kind != "name")
        print(f"{found['name']:40}  {numbers}")


if __name__ == "__main__":
    asyncio.run(measure())
