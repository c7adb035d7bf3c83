"""Counts the bytes that a create of a table writes to the registry: `python -m tests.operations.registry_bytes`.

For each number of tables, in a registry of version 1 and of version 2: the mean of many creates, of which each makes a
registry commit of its own, by what they are written for.
"""

import asyncio
import random
import sys
from collections.abc import Mapping

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.create import create_table
from storage_backends import ABSENT
from storage_backends.memory import MemoryStore
from tests.support.fake_runtime import FakeRuntime
from tests.support.registry_builder import RegistryBuilder, spread
from tests.support.registry_versions import raise_version
from tools.support.catalog_fixture import CountingFixture
from tools.support.request_bodies import schema
from tools.support.wrapped_stores import CountingStore

CREATES = 128
EACH = 1_000
"""Tables in a namespace."""
LATER = 400
"""Creates that fill the edits of HEAD before."""
PARTS = {"core/manifest.json": "HEAD", "core/commits/": "commit objects", "core/index/": "segments"}


async def registry_of(tables: int) -> tuple[CountingFixture, list[str]]:
    """A registry of so many tables, and its namespaces. The last tables are made in namespaces by chance."""
    clock = FakeRuntime()
    fixture = CountingFixture(CountingStore(MemoryStore(now_ms=clock.now_ms)), clock)
    builder = RegistryBuilder(fixture.catalog.mounts[0].root, fixture.catalog.paths, clock, fixture.settings.spill)
    names = spread(tables, EACH)
    namespaces = sorted({namespace for namespace, _ in names})
    for namespace in namespaces:
        for key, body in builder.namespace(namespace):
            await fixture.store.put(key, body, ABSENT)
    later = tables * LATER // (tables + LATER)
    for namespace, name in names[: tables - later]:
        builder.table(namespace, name)
    chance = random.Random(7)
    last = [(chance.choice(namespaces), f"later-{number}") for number in range(later)]
    for key, body in builder.registry(last):
        await fixture.store.put(key, body, ABSENT)
    return fixture, namespaces


async def bytes_of_a_create(tables: int, version: int) -> Mapping[str, float]:
    """The bytes that a create writes to the registry, on average, by what they are written for."""
    fixture, namespaces = await registry_of(tables)
    if version > 1:
        await raise_version(fixture.session().state)
    chance, written = random.Random(8), dict.fromkeys(PARTS.values(), 0)
    for number in range(CREATES):
        namespace = chance.choice(namespaces)
        body: JsonObject = {"name": f"new-{number}", "schema": schema("x")}
        with fixture.store.measure() as measured:
            await create_table(fixture.session(body), (namespace,), body)
        for call in measured.trace:
            for place, part in PARTS.items():
                written[part] += call.written if place in call.key else 0
    return {part: size / CREATES for part, size in written.items()}


def main() -> None:
    """Prints a line for each number of tables and version."""
    for tables in map(int, sys.argv[1:] or ["100", "100000"]):
        for version in (1, 2):
            sizes = asyncio.run(bytes_of_a_create(tables, version))
            parts = ", ".join(f"{part} {size:,.0f}" for part, size in sizes.items())
            without = sizes["HEAD"] + sizes["commit objects"]
            print(f"{tables:,} tables, version {version}: {without:,.0f} bytes a create without segments ({parts})")


if __name__ == "__main__":
    main()
