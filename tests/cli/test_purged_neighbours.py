"""Purges through a real server, also of tables whose files others have: PyIceberg's, on local files and on S3, each
with a leak audit of the whole store (docs/design/purge.md#who-else-reads-the-files)."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest
import requests
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.table import Table
from pyiceberg.table.statistics import StatisticsFile

from tests.support.purges import Purges
from tools.support.arco_server import WAREHOUSE, ArcoServer
from tools.support.s3_servers import S3Server

ROWS = pa.table({"id": pa.array(range(20), pa.int64())})


@dataclass
class Site:
    """A served catalog, and its purges, which a test starts."""

    catalog: Catalog
    purges: Purges
    uri: str

    @property
    def tables(self) -> str:
        """The route of the tables."""
        return f"{self.uri}/v1/{WAREHOUSE}/namespaces/db/tables"

    def table(self, name: str, appends: int = 2) -> Table:
        """A table with rows."""
        made = self.catalog.create_table(f"db.{name}", schema=ROWS.schema)
        for _ in range(appends):
            made.append(ROWS)
        return made

    def count(self, name: str) -> int:
        """How many rows are read from a table now."""
        return int(self.catalog.load_table(f"db.{name}").scan().to_arrow().num_rows)

    def own(self, table: Table) -> frozenset[str]:
        """The keys at a table's location."""
        root = self.purges.store.replace("file:/", "file:///")
        place = table.location().removeprefix(root).strip("/")
        return frozenset(key for key in self.purges.files() if key.startswith(f"{place}/"))


@contextmanager
def site_on(store: str, folder: Path, s3: S3Server | None = None) -> Iterator[Site]:
    """A site whose tables may overlap. The environment leads to the S3 where there is one."""
    files = (
        {}
        if s3 is None
        else {
            "s3.endpoint": s3.endpoint,
            "s3.access-key-id": s3.access_key,
            "s3.secret-access-key": s3.secret_key,
            "s3.region": "us-east-1",
        }
    )
    options = ("--purge-undrop-window", "PT1S", "--tasks", "false", "--allow-location-overlap")
    with ArcoServer(store, folder / "log", *options) as server:
        catalog = load_catalog("arco", type="rest", uri=server.uri, **files)
        catalog.create_namespace("db")
        yield Site(catalog, Purges(store, WAREHOUSE), server.uri)


@pytest.fixture(params=["local files", "S3"])
def site(request: pytest.FixtureRequest, tmp_path: Path, s3_server: S3Server, s3_bucket: str) -> Iterator[Site]:
    local = request.param == "local files"
    store = f"file:{tmp_path}/store" if local else f"s3://{s3_bucket}/lake"
    with site_on(store, tmp_path, None if local else s3_server) as made:
        yield made


def test_a_table_with_branches_tags_and_statistics_is_restored_and_then_gone(site: Site) -> None:
    table, neighbour = site.table("t"), site.table("t2")
    table.delete("id < 5")
    snapshot = table.current_snapshot()
    assert snapshot is not None
    with table.manage_snapshots() as refs:
        refs.create_branch(snapshot.snapshot_id, "side").create_tag(snapshot.snapshot_id, "kept")
    table.append(ROWS, branch="side")
    place = f"{table.location()}/metadata/some.stats"
    with table.io.new_output(place).create() as out:
        out.write(b"PFA1")
    statistics = StatisticsFile.model_validate(
        {
            "snapshot-id": snapshot.snapshot_id,
            "statistics-path": place,
            "file-size-in-bytes": 4,
            "file-footer-size-in-bytes": 4,
            "blob-metadata": [],
        }
    )
    with table.update_statistics() as update:
        update.set_statistics(statistics)
    before, own, rows = site.purges.files(), site.own(table), site.count("t")

    site.catalog.purge_table("db.t")
    site.purges.undrop("db.t")
    assert site.count("t") == rows
    assert site.catalog.load_table("db.t").scan().use_ref("side").to_arrow().num_rows == rows + 20

    site.catalog.purge_table("db.t")
    report = site.purges.purged("db.t")

    assert site.purges.files() == before - own
    assert (report["files_deleted"], report["outside"]) == (len(own), 0)
    assert site.count("t2") == 40
    assert site.own(neighbour)


def test_a_table_that_was_registered_a_second_time_keeps_its_files(site: Site) -> None:
    table = site.table("t")
    copy = f"{table.location()}-copy/metadata/00000-7a1f3f6e-0000-4000-8000-000000000000.metadata.json"
    with table.io.new_input(table.metadata_location).open() as source, table.io.new_output(copy).create() as out:
        out.write(source.read())
    site.catalog.register_table("db.copy", copy)
    before = site.purges.files()

    site.catalog.purge_table("db.t")
    ended = site.purges.finish("db.t")

    assert ended["status"] == "FAILURE"
    assert "each would prevent the purge of the other" in str(ended["result_summary"])
    assert site.purges.files() == before
    assert site.count("copy") == 40
    assert requests.post(f"{site.tables}/t/undrop", timeout=60).status_code == 204
    assert site.count("t") == 40


def test_a_table_whose_file_another_has_taken_keeps_its_files(site: Site) -> None:
    table, taker = site.table("t"), site.table("taker")
    [first, *_] = table.inspect.files()["file_path"].to_pylist()
    taker.add_files([first])
    before = site.purges.files()

    site.catalog.purge_table("db.t")
    ended = site.purges.finish("db.t")

    assert ended["status"] == "FAILURE"
    assert first in str(ended["result_summary"])
    assert site.purges.files() == before
    assert site.count("taker") == 60


def test_files_that_lie_elsewhere_stay(site: Site) -> None:
    table = site.table("t")
    elsewhere = f"{table.location().rpartition('/')[0]}/loose/rows.parquet"
    with table.io.new_output(elsewhere).create() as out:
        pq.write_table(ROWS, out)
    table.add_files([elsewhere])
    before, own = site.purges.files(), site.own(table)

    site.catalog.purge_table("db.t")
    report = site.purges.purged("db.t")

    assert report["outside"] == 1
    assert site.purges.files() == before - own
    assert any(key.endswith("/loose/rows.parquet") for key in site.purges.files())
