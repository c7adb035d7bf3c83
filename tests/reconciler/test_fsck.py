"""The check of tables' files, dealt out (docs/fsck.md#on-spark). What it finds is tested where it is written; here it
is what `arco fsck --data` finds of the same store, whatever happens to executors."""

import asyncio
from pathlib import Path

import pytest
from pyspark import SparkContext

from arco_catalog.iceberg.errors import NoSuchTable, NotFound
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.upkeep.fsck.files import Scope
from arco_catalog.upkeep.fsck.findings import Finding
from arco_catalog.upkeep.fsck.report import Report
from reconciler import parts
from reconciler.catalog_config import CatalogConfig
from reconciler.fsck import FsckProgress, Task, fsck
from tests.reconciler.clusters import Cluster
from tests.reconciler.damaged import TABLES, DamagedLake
from tests.reconciler.lakes import failing
from tests.support.served_realms import bootstrapped

# PySpark leaves the sockets to its JVM for the garbage collector to close.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")

KINDS = {
    *("data-file-missing", "data-file-foreign", "manifest-file-missing", "manifest-file-unreadable"),
    *("manifest-list-missing", "logged-file-missing", "pointer-missing"),
}


@pytest.fixture
async def lake(tmp_path_factory: pytest.TempPathFactory) -> DamagedLake:
    made = DamagedLake(tmp_path_factory.mktemp("lake"))
    await made.make()
    return made


def as_printed(report: Report) -> JsonObject:
    """The JSON that the command prints, with the exit status as `code`."""
    return {**report.to_json(), "code": 0 if report.ok else 1}


def codes(report: Report) -> set[str]:
    return {finding.code.value for finding in report.found}


def about(name: str, document: JsonObject, *, others: bool = False) -> list[JsonObject]:
    """The findings of a document that tell of a table, or the others."""
    found = document["findings"]
    assert isinstance(found, list)
    return [each for each in found if isinstance(each, dict) and (f"table {name}" in str(each["found"])) is not others]


async def test_executors_find_what_the_command_finds(spark: SparkContext, lake: DamagedLake) -> None:
    lake.damage()

    report = await fsck(spark, lake.config, Scope(), part=3)

    assert codes(report) == KINDS
    assert as_printed(report) == await lake.checked_here()


async def test_a_table_that_kills_its_executor_is_told_and_costs_no_other_its_check(
    spark: SparkContext, lake: DamagedLake
) -> None:
    lake.damage()
    here = await lake.checked_here()
    deadly = failing(lake.config, f"iceberg_pointers/{lake.entity('t6')}", "killed")

    document = as_printed(await fsck(spark, deadly, Scope(), part=2))

    assert document["code"] == 1
    [unchecked] = about("db.t6", document)
    assert (unchecked["code"], unchecked["where"]) == ("files-unchecked", "db.t6")
    assert about("db.t6", document, others=True) == about("db.t6", here, others=True) != []


async def test_a_catalog_of_a_realm_is_checked(spark: SparkContext, tmp_path: Path) -> None:
    lake = DamagedLake(tmp_path / "realm", "arco")
    await bootstrapped(lake.store)
    await lake.make(2, 1)
    lake.files(".parquet")[0].unlink()

    report = await fsck(spark, lake.config, Scope())

    assert codes(report) == {"data-file-missing"}
    assert as_printed(report) == await lake.checked_here()


async def test_nothing_is_wrong_with_sound_files(lake: DamagedLake) -> None:
    report = await fsck(Cluster[Task]().spark, lake.config, Scope(), manifests=1)

    assert as_printed(report) == await lake.checked_here()
    assert (report.found, report.ok) == ([], True)


async def test_the_manifests_of_a_table_are_dealt_out_and_each_finding_is_told_as_it_comes(lake: DamagedLake) -> None:
    lake.damage()
    heard: list[Finding] = []

    report = await fsck(Cluster[Task]().spark, lake.config, Scope(), manifests=1, on_finding=heard.append)

    assert as_printed(report) == await lake.checked_here()
    assert sorted(map(str, heard)) == sorted(map(str, report.found))


async def test_a_manifest_that_kills_its_executor_is_told_of_its_table_once(lake: DamagedLake) -> None:
    lake.damage()
    here = await lake.checked_here()
    deadly = {str(file) for file in lake.files("/t5-") if file.name.endswith("-m0.avro")}

    def dies(task: Task) -> bool:
        return any(each.path.removeprefix("file://") in deadly for each in task.manifests)

    document = as_printed(await fsck(Cluster(dies).spark, lake.config, Scope(), manifests=2))

    unchecked = [
        each for each in about("db.t5", document) if isinstance(each, dict) and each["code"] == "files-unchecked"
    ]
    assert len(unchecked) == 1
    assert "Lost task" in str(unchecked[0]["found"])
    assert about("db.t5", document, others=True) == about("db.t5", here, others=True)


async def test_a_table_that_is_changed_while_its_parts_are_looked_at_is_looked_at_again(lake: DamagedLake) -> None:
    """An expiry of snapshots beside the check: what it removed is no finding."""
    lake.lose_data_of("t0")
    expired: list[str] = []

    def expire(task: Task) -> bool:
        if task.manifests and not expired:
            expired.append(task.relation.name)
            asyncio.run(lake.expire("t0"))
        return False

    report = await asyncio.to_thread(
        lambda: asyncio.run(fsck(Cluster(expire).spark, lake.config, Scope(frozenset({"db.t0"})), manifests=1))
    )

    assert expired == ["db.t0"]
    assert report.found == []


async def test_a_run_that_was_cut_goes_on_behind_the_tables_that_it_has_done(
    lake: DamagedLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "MAX_JOBS_IN_FLIGHT", 2)
    lake.damage()
    here = await lake.checked_here()
    done: list[str] = []

    class Killed(Exception):
        pass

    def progress(now: FsckProgress) -> None:
        if now.up_to >= "db.t2":
            done.append(now.up_to)
            raise Killed

    first: list[Finding] = []
    with pytest.raises(Killed):
        await fsck(Cluster[Task]().spark, lake.config, Scope(), part=1, progress=progress, on_finding=first.append)
    rest = await fsck(Cluster[Task]().spark, lake.config, Scope(after=done[0]), part=1)

    assert "db.t2" <= done[0] < f"db.t{TABLES - 1}"
    both = {(str(finding.code), finding.where) for finding in (*first, *rest.found)}
    assert both == {(str(each["code"]), each["where"]) for each in about("", here)}


async def test_what_is_not_there_is_told_and_a_cluster_that_loses_every_part_ends_the_run(
    lake: DamagedLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(NoSuchTable, match=r"Table does not exist: db\.x"):
        await fsck(Cluster[Task]().spark, lake.config, Scope(frozenset({"db.x"})))
    with pytest.raises(NotFound, match="no catalog 'none'"):
        await fsck(Cluster[Task]().spark, CatalogConfig(lake.store, "none"), Scope())
    monkeypatch.setattr(parts, "MAX_LOST_PARTS", 3)
    with pytest.raises(RuntimeError, match="Job aborted"):
        await fsck(Cluster[Task](lambda task: True).spark, lake.config, Scope(), part=2)
