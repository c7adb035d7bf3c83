"""What the worker and Java make of the same table: the metadata behind the expiry, and the files that are deleted."""

import asyncio
import json
import re
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.load import load_table
from arco_catalog.operations.register import register_table
from arco_catalog.planning.upkeep_settings import PurgeSettings
from arco_catalog.protocol.catalog import Settings
from arco_catalog.protocol.lookup import relation_entry
from arco_catalog.state.task import TABLE_EXPIRY
from arco_catalog.state.worker_threads import wait_for_threads
from arco_catalog.upkeep.expiry.executor import FILES_AGE_MS
from arco_catalog.upkeep.expiry.tables import LiveTable, submit, table_payload, task_id
from arco_catalog.upkeep.purge.worker import task_worker
from storage_backends import ANY
from tests.engines.expiry.drawn_tables import NOW_MS, drawn_steps, set_back
from tests.support.fake_runtime import FakeRuntime
from tests.support.scripted_store import ScriptedStore
from tools.support.catalog_fixture import NS, CatalogFixture
from tools.support.java_programs import JavaProgram

UNLIKE = ("last-updated-ms", "metadata-log")
"""What differs in the metadata of two programs that make the same commit."""
SHARED = "data/shared.stats"
CHECKSUM = ".crc"
"""What Hadoop adds to the name of a file for a checksum beside it: its file system deletes both, and so does the
worker."""


class StillRuntime(FakeRuntime):
    """A clock that sleeping does not move, so that snapshots expire at the very millisecond at which they do in
    Java."""

    def __init__(self) -> None:
        super().__init__()
        self.ms = NOW_MS

    async def sleep(self, seconds: float) -> None:
        await wait_for_threads()
        await asyncio.sleep(0)


@dataclass(frozen=True)
class Case:
    """A table of a warehouse in files, `there`, by their keys; its metadata file; and what Java makes of its expiry:
    the metadata behind it, and the files that it deletes, by the rule of reachable files and as it chooses."""

    name: str
    warehouse: str
    there: dict[str, bytes]
    metadata: str
    after: dict[str, Any]
    deleted: frozenset[str]
    deleted_by_choice: frozenset[str]


def drawn_case(java: JavaProgram, seed: int, folder: Path, request: JsonObject | None = None) -> Case:
    """The table of a seed, or of a request, made in this folder, with times by the seed."""
    random, name = Random(seed), f"t{seed}"
    place = folder / "wh" / "warehouse" / name
    made = java.answer({**(request or drawn_steps(random)), "folder": f"file://{place}"})
    assert "error" not in made, made
    for each in (*made["named"], f"file://{place}/{SHARED}"):
        path = Path(each.removeprefix("file://"))
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"0123456789")
    metadata = set_back(random, json.loads(Path(made["metadata"].removeprefix("file://")).read_bytes()))
    return case_of(java, name, "wh", metadata, folder)


def case_of(java: JavaProgram, name: str, warehouse: str, metadata: dict[str, Any], folder: Path) -> Case:
    """A table of a warehouse in this folder, of which this is the metadata."""
    place = Path(str(metadata["location"]).removeprefix("file://"))
    file = place / "metadata" / "50000-00000000-0000-0000-0000-000000000000.metadata.json"
    file.write_text(json.dumps(metadata))
    paths = [each for each in place.rglob("*") if each.is_file() and each.suffix != CHECKSUM]
    there = {str(each.relative_to(folder)): each.read_bytes() for each in paths}
    expire: JsonObject = {"op": "expire", "folder": f"file://{place}", "metadata": f"file://{file}", "now": NOW_MS}
    reachable, chosen = (java.answer({**expire, "reachable": each}) for each in (True, False))
    assert "error" not in {*reachable, *chosen}, (name, reachable, chosen)
    keys = [frozenset(key_below(folder, each) for each in it["deleted"]) for it in (reachable, chosen)]
    return Case(name, warehouse, there, f"file://{file}", reachable["after"], *keys)


def key_below(folder: Path, location: str) -> str:
    """The key of a file, which Hadoop spells with one slash before its path."""
    return re.sub("^file:(//)?", "", location).removeprefix(f"{folder}/")


@dataclass(frozen=True)
class ExpiryByWorker:
    """What the worker makes of a table: the metadata behind the expiry, and the files that it deletes, `early` those
    that it deletes at once."""

    after: dict[str, Any]
    early: frozenset[str]
    deleted: frozenset[str]


async def expired_by_worker(case: Case, folder: Path) -> ExpiryByWorker:
    """Lets the worker expire a copy of the table in memory. Two days pass."""
    runtime = StillRuntime()
    store = ScriptedStore(runtime.now_ms)
    for key, body in case.there.items():
        await store.put(key, body, ANY)
    settings = Settings(case.warehouse, purge=PurgeSettings(trust_locations=True))
    fixture = CatalogFixture(store, runtime, settings, url=f"file://{folder}")
    await fixture.namespace()
    await register_table(fixture.session(), NS, case.name, case.metadata, False)
    session = fixture.session()
    entry = await relation_entry(session.state, (await session.state.head()).index, NS, case.name)
    assert entry is not None
    task = task_id(TABLE_EXPIRY, entry.entity)
    await submit(session, task, TABLE_EXPIRY, table_payload(LiveTable(NS, case.name, entry), {"requested": True}))
    await task_worker(fixture.another().catalog).run_due(lambda: False)
    after = json.loads((await load_table(fixture.another().session(), NS, case.name)).metadata)
    early = {*case.there} - {*store.keys("")}
    runtime.ms += FILES_AGE_MS + 60_000
    await task_worker(fixture.another().catalog).run_due(lambda: False)
    return ExpiryByWorker(after, frozenset(early), frozenset({*case.there} - {*store.keys("")}))


async def faults(case: Case, folder: Path) -> list[str]:
    """In what the worker departs from Java."""
    return departures(case, await expired_by_worker(case, folder))


def departures(case: Case, ours: ExpiryByWorker) -> list[str]:
    """In what an expiry by the worker departs from that by Java."""
    after, wanted = ours.after, case.deleted & case.there.keys()
    found = [
        f"{case.name}: {name} is {after.get(name)}, and of Java {case.after.get(name)}"
        for name in sorted({*after, *case.after} - {*UNLIKE})
        if _sorted(after.get(name)) != _sorted(case.after.get(name))
    ]
    found += [f"{case.name}: {key} is deleted at once" for key in sorted(ours.early)]
    found += [f"{case.name}: {key} is deleted, and not by Java" for key in sorted(ours.deleted - wanted - ours.early)]
    return found + [f"{case.name}: {key} is not deleted, and by Java" for key in sorted(wanted - ours.deleted)]


def _sorted(value: Any) -> Any:
    """Lists of the metadata but for the snapshot log have no order."""
    if isinstance(value, list) and all("timestamp-ms" not in each or "manifest-list" in each for each in value):
        return sorted(value, key=lambda each: json.dumps(each, sort_keys=True))
    return value
