"""A store in which tables have manifests that are made when they are read: a catalog of a million manifests takes no
memory for them."""

import asyncio
from collections.abc import Sequence

from arco_catalog.iceberg.json import JsonObject
from storage_backends import Cursor, Deleted, Found, Missing, ObjectStore, Outcome, Page, Unchanged, Version, When
from storage_backends.base import ANY
from tools.support.catalog_fixture import CatalogFixture
from tools.support.manifests import ENTRY_SCHEMA, LIST_SCHEMA, avro
from tools.support.request_bodies import append_snapshot
from tools.support.synthetic_table import location_of

LIST = "metadata/snap-1.avro"
"""The manifest list of each table, below its location."""


class GeneratedFiles:
    """A store that passes calls on to another one, except reads of the manifest lists and manifests of its tables: it
    makes these files from a template. All locations of the tables have the same length, so one template fits all of
    them."""

    def __init__(self, inner: ObjectStore, manifests: int) -> None:
        self._inner = inner
        self._manifests = manifests
        self._tables: set[str] = set()
        self._place = ""
        self._list = self._manifest = b""

    async def add(self, fixture: CatalogFixture, name: str) -> None:
        """Makes a table in `db`, and commits a snapshot of so many manifests, each with a data file."""
        await fixture.table(name)
        location = await location_of(fixture, name)
        if not self._place:
            self._make_templates("x" * len(location))
        assert len(location) == len(self._place)
        self._tables.add(location.removeprefix("memory:///"))
        await fixture.commit(append_snapshot(1, fixture.runtime.now_ms(), f"{location}/{LIST}"), name)

    def _make_templates(self, place: str) -> None:
        self._place = place
        listed = [
            {
                "manifest_path": f"{place}/metadata/{number}-m0.avro",
                "manifest_length": 99,
                "partition_spec_id": 0,
                "content": 0,
            }
            for number in range(self._manifests)
        ]
        self._list = avro(LIST_SCHEMA, listed, codec="null")
        file: JsonObject = {
            "content": 0,
            "file_path": f"{place}/data/0-0123456789abcdef.parquet",
            "partition": {},
            "file_size_in_bytes": 10,
        }
        self._manifest = avro(ENTRY_SCHEMA, [{"status": 1, "snapshot_id": 7, "data_file": file}], codec="null")

    def _body(self, key: str) -> bytes | None:
        """The file with this key; None if it is none that is made of a template."""
        table, _, name = key.rpartition("/metadata/")
        if table not in self._tables or not name.endswith(".avro"):
            return None
        template = self._list if f"metadata/{name}" == LIST else self._manifest
        return template.replace(self._place.encode(), f"memory:///{table}".encode())

    async def get(self, key: str, if_changed_from: Version | None = None) -> Found | Unchanged | Missing:
        """See `ObjectStore.get`."""
        await _wait()
        return await self._inner.get(key, if_changed_from)

    async def get_range(self, key: str, start: int, length: int) -> Found | Missing:
        """See `ObjectStore.get_range`."""
        await _wait()
        body = self._body(key)
        if body is None:
            return await self._inner.get_range(key, start, length)
        return Found(body[start : start + length], Version("1"), 0, 0)

    async def put(self, key: str, body: bytes, when: When) -> Outcome:
        """See `ObjectStore.put`."""
        await _wait()
        return await self._inner.put(key, body, when)

    async def delete(self, key: str, when: When = ANY) -> Outcome:
        """See `ObjectStore.delete`."""
        await _wait()
        return await self._inner.delete(key, when)

    async def delete_many(self, keys: Sequence[str]) -> Deleted:
        """See `ObjectStore.delete_many`."""
        await _wait()
        return await self._inner.delete_many(keys)

    async def list(self, prefix: str, after: Cursor | None = None) -> Page:
        """See `ObjectStore.list`."""
        await _wait()
        return await self._inner.list(prefix, after)

    async def close(self) -> None:
        """Closes the store inside."""
        await self._inner.close()


async def _wait() -> None:
    """Has other steps go on first, as a store does that has its caller wait: a store in memory answers at once."""
    await asyncio.sleep(0)
