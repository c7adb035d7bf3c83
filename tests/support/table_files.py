"""Data files, manifests and manifest lists of tables in a store, as engines write them."""

from collections.abc import Sequence

from arco_catalog.iceberg.json import JsonObject, loads
from arco_catalog.planning.answers import TableState
from storage_backends import ANY, ObjectStore
from tools.support.catalog_fixture import CatalogFixture
from tools.support.manifests import manifest, manifest_list


def key_of(location: str) -> str:
    """The key of a file in a store in memory."""
    return location.removeprefix("memory:///")


async def write(store: ObjectStore, location: str, body: bytes = b"0123456789") -> str:
    """Puts a file there. Returns its location."""
    await store.put(key_of(location), body, ANY)
    return location


async def append(
    fixture: CatalogFixture, table: TableState, *names: str, folder: str | None = None, name: str = "t"
) -> TableState:
    """Commits a snapshot with one manifest, which names data files of these names in a folder, the table's by default.
    All of them are written."""
    store = fixture.catalog.store
    document = loads(table.metadata)
    assert isinstance(document, dict)
    place = str(document["location"])
    files = [await write(store, f"{folder or f'{place}/data'}/{each}") for each in names]
    return await commit_files(fixture, table, files, name=name)


async def commit_files(
    fixture: CatalogFixture, table: TableState, files: Sequence[str], *, name: str = "t", operation: str = "append"
) -> TableState:
    """Commits a snapshot with one manifest, which names these files."""
    store, runtime = fixture.catalog.store, fixture.runtime
    document = loads(table.metadata)
    assert isinstance(document, dict)
    place, sequence = str(document["location"]), int(str(document["last-sequence-number"])) + 1
    made = await write(store, f"{place}/metadata/{runtime.uuid()}-m0.avro", manifest(files))
    earlier = document["snapshots"]
    assert isinstance(earlier, list)
    listed = await write(store, f"{place}/metadata/snap-{runtime.uuid()}.avro", manifest_list([made]))
    snapshot: JsonObject = {
        "snapshot-id": sequence,
        "sequence-number": sequence,
        "timestamp-ms": runtime.now_ms(),
        "manifest-list": listed,
        "summary": {"operation": operation},
        "schema-id": 0,
    }
    if earlier:
        snapshot["parent-snapshot-id"] = document["current-snapshot-id"]
    return await fixture.commit(
        {
            "requirements": [],
            "updates": [
                {"action": "add-snapshot", "snapshot": snapshot},
                {"action": "set-snapshot-ref", "ref-name": "main", "snapshot-id": sequence, "type": "branch"},
            ],
        },
        name,
    )
