"""A catalog in a folder with tables, and much that nothing leads to any more, all of it a hundred days old."""

import os
from pathlib import Path

from arco_catalog.iceberg.json import JsonObject, JsonValue, loads
from arco_catalog.operations.drop import drop_table
from arco_catalog.operations.load import load_table
from arco_catalog.planning.answers import TableState
from arco_catalog.planning.upkeep_settings import DAY_MS
from arco_catalog.state.runtime import SystemRuntime
from reconciler.catalog_config import CatalogConfig
from tests.cli.in_process import arco
from tests.reconciler.lakes import WAREHOUSE
from tests.reconciler.orphans import orphans
from tools.support.catalog_fixture import NS, CatalogFixture, state
from tools.support.request_bodies import set_property

TABLES = 4
COMMITS = 3
AGE_S = 100 * DAY_MS / 1000


class LitteredLake:
    """Tables `db.t0` and so on, of some commits under keys, a dropped one, and orphans of all kinds."""

    def __init__(self, folder: Path, warehouse: str = WAREHOUSE) -> None:
        self.folder = folder
        self.warehouse = warehouse
        self.store = f"file:{folder}"
        self.environment = {"ARCO_STORE": self.store, "ARCO_WAREHOUSE": warehouse}
        self.config = CatalogConfig(self.store, warehouse)

    async def make(self, litter: int = 300) -> None:
        """Makes it."""
        fixture = CatalogFixture()
        async with self.config.catalog() as fixture.catalog:
            await fixture.namespace("db")
            made: list[TableState] = []
            for number in range(TABLES):
                name = f"t{number}"
                await fixture.table(name, key=fixture.key())
                for commit in range(COMMITS):
                    last = await fixture.commit(set_property("n", str(commit)), name, key=fixture.key())
                made.append(last)
            await fixture.table("gone")
            await drop_table(fixture.session(path="/drop"), NS, "gone", purge=False)
        tables = [(each.entity, each.metadata_location.rpartition("/")[0]) for each in made]
        for key, body in orphans(litter, tables, SystemRuntime()):
            self._write(key, body)
        for file in self.folder.rglob("*"):
            if file.is_file():
                old = file.stat().st_mtime - AGE_S
                os.utime(file, (old, old))

    def _write(self, key: str, body: bytes) -> None:
        """Objects of state are named by the catalog's usual root, files by their locations."""
        [state_folder] = [each for each in self.folder.rglob("_catalog") if (each / "core").is_dir()]
        own = key.removeprefix(f"{WAREHOUSE}/_catalog/")
        file = Path(key.removeprefix("file://")) if own == key else state_folder / own
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(body)

    def there(self) -> set[str]:
        """What is there, without what the store keeps for itself."""
        files = (file.relative_to(self.folder) for file in self.folder.rglob("*") if file.is_file())
        return {file.as_posix() for file in files if not file.parts[0].startswith(".")}

    async def commit(self, name: str, value: str) -> str:
        """One more commit; the file that is current then."""
        fixture = CatalogFixture()
        async with self.config.catalog() as fixture.catalog:
            return (await fixture.commit(set_property("live", value), name)).metadata_location

    async def current(self, name: str) -> str:
        """The current metadata file of a table."""
        fixture = CatalogFixture()
        async with self.config.catalog() as fixture.catalog:
            return state(await load_table(fixture.session(), NS, name)).metadata_location

    async def collected_here(self, *options: str) -> JsonObject:
        """Run `arco gc --json`, and return its JSON with the exit status as `code`."""
        ended = await arco("gc", "--json", "--store", self.store, "--warehouse", self.warehouse, *options)
        document = loads(ended.out.encode())
        assert isinstance(document, dict), ended.err
        plain = _without_words({**document, "code": ended.code})
        assert isinstance(plain, dict)
        return plain


def _without_words(value: JsonValue) -> JsonValue:
    """Without what the command adds for people: times in words."""
    if isinstance(value, list):
        return [_without_words(each) for each in value]
    if isinstance(value, dict):
        return {name: _without_words(each) for name, each in value.items() if name != "oldest_time"}
    return value
