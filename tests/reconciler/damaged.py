"""A catalog in a folder whose tables have files, of which some are lost."""

from dataclasses import replace
from io import BytesIO
from pathlib import Path

import fastavro

from arco_catalog.iceberg.json import JsonObject, JsonValue, loads
from reconciler.catalog_config import CatalogConfig
from storage_backends import ObjectStore, Outcome, When
from storage_backends.local.store import LocalStore
from tests.cli.in_process import arco
from tests.reconciler.lakes import WAREHOUSE
from tests.support.table_files import append
from tools.support.catalog_fixture import CatalogFixture
from tools.support.manifests import LIST_SCHEMA, avro

TABLES = 8
SNAPSHOTS = 4


class _ByLocation(LocalStore):
    """A store that also takes locations for keys, as who writes tables' files in memory does."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._url = f"{folder.as_uri()}/"

    async def put(self, key: str, body: bytes, when: When) -> Outcome:
        return await super().put(key.removeprefix(self._url), body, when)


def _by_location(url: str) -> ObjectStore:
    return _ByLocation(Path(url.removeprefix("file:").removeprefix("//")))


class DamagedLake:
    """Tables `db.t0` and so on, of some snapshots with two data files each."""

    def __init__(self, folder: Path, warehouse: str = WAREHOUSE) -> None:
        self.folder = folder
        self.warehouse = warehouse
        self.store = f"file:{folder}"
        self.config = CatalogConfig(self.store, warehouse)

    async def make(self, tables: int = TABLES, snapshots: int = SNAPSHOTS) -> None:
        """Makes them, sound."""
        fixture = CatalogFixture()
        async with replace(self.config, opens=_by_location).catalog() as fixture.catalog:
            await fixture.namespace("db")
            for number in range(tables):
                name = f"t{number}"
                state = await fixture.table(name)
                for snapshot in range(snapshots):
                    state = await append(fixture, state, f"{snapshot}-a.parquet", f"{snapshot}-b.parquet", name=name)
        self._tell_lengths()

    def _tell_lengths(self) -> None:
        """Makes each manifest list say how long its manifests are."""
        for listed in self.files("/snap-"):
            records = [*fastavro.reader(BytesIO(listed.read_bytes()))]
            for record in records:
                assert isinstance(record, dict)
                record["manifest_length"] = Path(str(record["manifest_path"]).removeprefix("file://")).stat().st_size
            listed.write_bytes(avro(LIST_SCHEMA, records))

    def files(self, part: str) -> list[Path]:
        """Files of tables whose paths contain this, in order."""
        return sorted(file for file in self.folder.rglob("*") if file.is_file() and part in str(file))

    def entity(self, name: str) -> str:
        """Of a table."""
        [pointer] = [file for file in self.files("/iceberg_pointers/") if f"/{name}-" in file.read_text()]
        return pointer.stem

    async def checked_here(self, *options: str) -> JsonObject:
        """Run `arco fsck --data --json`, and return its JSON with the exit status as `code`."""
        ended = await arco("fsck", "--data", "--json", "--store", self.store, "--warehouse", self.warehouse, *options)
        document = loads(ended.out.encode())
        assert isinstance(document, dict), ended.err
        return {**document, "code": ended.code}

    def damage(self) -> None:
        """Loses and cuts files of every kind, in several tables, and a pointer."""
        data, manifests, lists = self.files(".parquet"), self.files("-m0.avro"), self.files("/snap-")
        self.files(f"/iceberg_pointers/{self.entity('t7')}")[0].unlink()
        for file in data[::5]:
            file.unlink()
        data[26].write_bytes(b"cut")  # of another table than the manifests below, whose order is by chance
        manifests[2].unlink()
        manifests[7].write_bytes(manifests[7].read_bytes()[:40])
        lists[9].unlink()
        self.files("00001-")[0].unlink()

    def lose_data_of(self, name: str) -> None:
        """Loses the data files of a table that its earlier snapshots name."""
        for file in self.files(f"/{name}-"):
            if file.suffix == ".parquet" and not file.name.startswith(f"{SNAPSHOTS - 1}-"):
                file.unlink()

    async def expire(self, name: str) -> None:
        """Has a table forget all snapshots but the last."""
        fixture = CatalogFixture()
        async with self.config.catalog() as fixture.catalog:
            earlier: list[JsonValue] = [*range(1, SNAPSHOTS)]
            removed: JsonObject = {"action": "remove-snapshots", "snapshot-ids": earlier}
            await fixture.commit({"requirements": [], "updates": [removed]}, name)
