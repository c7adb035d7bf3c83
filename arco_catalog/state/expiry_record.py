"""The record of the snapshots that an expiry removes, written before the commit that removes them. The later deletion
of files begins with it (docs/design/expiry.md#rule-4)."""

from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing
from typing import Self

from arco_catalog.iceberg.json import JsonObject, dumps
from arco_catalog.iceberg.snapshots import Snapshot, StatisticsFile
from arco_catalog.state.access import State
from arco_catalog.state.fields import integer, parse_record, texts
from arco_catalog.state.listing import list_pages
from storage_backends.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class ExpiryRecord:
    """The files that removed snapshots name: the manifest lists, of v1 snapshots without a list the manifests, and the
    files of statistics. `snapshots` is the number of the snapshots."""

    snapshots: int
    lists: tuple[str, ...] = ()
    manifests: tuple[str, ...] = ()
    statistics: tuple[str, ...] = ()

    @classmethod
    def of(cls, snapshots: Sequence[Snapshot], statistics: Iterable[StatisticsFile]) -> Self:
        """Returns the record of these removed snapshots: their number, and the files that they name, each once.
        `statistics` has the files of all snapshots of the table, of which those of the removed ones are taken.
        Manifests are taken of snapshots without a manifest list."""
        removed = {snapshot["snapshot-id"] for snapshot in snapshots}
        lists = dict.fromkeys(each["manifest-list"] for each in snapshots if "manifest-list" in each)
        direct = [each.get("manifests", []) for each in snapshots if "manifest-list" not in each]
        files = dict.fromkeys(each["statistics-path"] for each in statistics if each["snapshot-id"] in removed)
        return cls(len(snapshots), (*lists,), (*dict.fromkeys(name for names in direct for name in names),), (*files,))

    @classmethod
    def parse(cls, body: bytes, key: str) -> Self:
        """Reads the record of the snapshots that an expiry removes, which is stored under `key`. Raises
        `InternalError`."""
        stored = parse_record(body, key)
        return cls(
            integer(stored, "snapshots"),
            texts(stored, "lists"),
            texts(stored, "manifests"),
            texts(stored, "statistics"),
        )

    @property
    def body(self) -> bytes:
        """The bytes by which the record of the snapshots that an expiry removes is stored."""
        stored: JsonObject = {
            "version": 1,
            "snapshots": self.snapshots,
            "lists": [*self.lists],
            "manifests": [*self.manifests],
            "statistics": [*self.statistics],
        }
        return dumps(stored)


@dataclass(frozen=True, slots=True)
class StoredRecord:
    """A stored record of an expiry with its key, the id of the task of that expiry, and the age of the record in
    milliseconds by the store's clock."""

    key: str
    task: str
    record: ExpiryRecord
    age_ms: int


async def read_expiry_records(state: State, entity: str) -> AsyncGenerator[StoredRecord, None]:
    """Yields the records of the snapshots that expiries of a table remove, of all tasks, one for each attempt at a
    commit, also if that did not apply. A record that is deleted after the listing is left out. Raises `StoreError`, and
    `InternalError` for a corrupt record."""
    prefix = state.paths.expiry_records(entity)
    async with aclosing(list_pages(state, prefix)) as pages:
        async for page in pages:
            for listed in page.entries:
                found = await state.read(listed.key)
                if found is not None:
                    task = listed.key.removeprefix(prefix).partition("/")[0]
                    record = ExpiryRecord.parse(found.body, listed.key)
                    yield StoredRecord(listed.key, task, record, found.now_ms - found.written_ms)
