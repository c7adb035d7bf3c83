"""Makes tables of many files that no engine wrote: empty data files, and manifests with the fields that engines
write."""

from collections.abc import Iterator
from dataclasses import dataclass

from arco_catalog.iceberg.json import loads
from tools.support.catalog_fixture import CatalogFixture
from tools.support.manifests import manifest, manifest_list
from tools.support.request_bodies import append_snapshot


@dataclass(frozen=True)
class Shape:
    """The shape of a synthetic table: `manifests`, all with as many data files, which lie in so many folders. Each
    snapshot has the manifests of the one before, too."""

    manifests: int
    files_each: int
    snapshots: int = 1
    folders: int = 1

    def objects(self, location: str) -> Iterator[tuple[str, bytes]]:
        """All that the snapshots lead to: names below the location, and bodies."""
        manifests = [f"{location}/metadata/{number}-m0.avro" for number in range(self.manifests)]
        for number, place in enumerate(manifests):
            folder = f"data/part={number % self.folders}"
            names = [f"{folder}/{number}-{each:05}-0123456789abcdef.parquet" for each in range(self.files_each)]
            yield from ((name, b"") for name in names)
            yield place.removeprefix(f"{location}/"), manifest([f"{location}/{name}" for name in names])
        for number in range(1, self.snapshots + 1):
            yield f"metadata/snap-{number}.avro", manifest_list(manifests[: self.manifests * number // self.snapshots])

    async def commit(self, fixture: CatalogFixture, name: str) -> None:
        """Commits the snapshots to a table in `db`."""
        location = await location_of(fixture, name)
        for number in range(1, self.snapshots + 1):
            place = f"{location}/metadata/snap-{number}.avro"
            await fixture.commit(append_snapshot(number, fixture.runtime.now_ms(), place), name)


async def location_of(fixture: CatalogFixture, name: str) -> str:
    """Where a table in `db` lies."""
    document = loads((await fixture.commit({"requirements": [], "updates": []}, name)).metadata)
    assert isinstance(document, dict)
    return str(document["location"])


def key_prefix(fixture: CatalogFixture, location: str) -> str:
    """What the keys of a location's objects begin with, in the catalog's store."""
    return f"{location.removeprefix(fixture.catalog.mounts[0].root.uri.rstrip('/') + '/')}/"
