"""What executors do of a purge, without Spark: what they read of others, and when they delete
(docs/design/purge.md#rule-19)."""

import asyncio
from collections.abc import Iterable
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path

import pytest

from arco_catalog.state.fields import text
from arco_catalog.state.purge_progress import Progress
from arco_catalog.state.task_log import append_task, read_task
from arco_catalog.tasks.lease import LeaseLost
from arco_catalog.upkeep.purge.sharing import other_relations
from reconciler.catalog_config import CatalogConfig
from reconciler.purge_parts import (
    NO_POINTER,
    DamagedFile,
    Fact,
    Facts,
    Manifest,
    MissingFile,
    MissingManifest,
    OutsideFiles,
    Owner,
    OwnFile,
    PurgeJob,
    Reading,
    SharedFile,
    UnchangedTable,
    delete_part,
    read_manifests,
    read_manifests_of_others,
    read_others,
    sum_counts,
)
from tests.reconciler.dropped_table import WAREHOUSE, PurgedLake, drop_shared_table
from tools.support.manifests import manifest
from tools.support.synthetic_table import Shape

SHAPE = Shape(manifests=2, files_each=3, snapshots=2)
"""A neighbour leads to the first manifest, by the first list."""


@dataclass(frozen=True)
class DroppedTable:
    """A dropped table, whose purge has a lease, and its neighbour."""

    folder: Path
    place: str
    job: PurgeJob
    neighbour: Owner

    def path(self, name: str) -> Path:
        return Path(f"{self.place}/{name}".removeprefix("file://"))

    def others(self) -> list[tuple[str, Fact]]:
        """The rows of all files that the neighbour refers to."""
        rows = [*read_others(self.job, [self.neighbour])]
        manifests = [(key, [fact]) for key, fact in rows if isinstance(fact, Manifest)]
        return [row for row in rows if not isinstance(row[1], Manifest)] + [
            *read_manifests_of_others(self.job, manifests)
        ]

    def own(self, *names: str) -> list[Facts]:
        return [(f"{self.place}/{name}", [OwnFile(f"{self.place}/{name}", 1)]) for name in names]


@pytest.fixture
def dropped(tmp_path: Path) -> DroppedTable:
    return asyncio.run(made(tmp_path))


async def made(folder: Path) -> DroppedTable:
    lake = PurgedLake(f"file:{folder}/store", {})
    task = await drop_shared_table(lake, SHAPE)
    async with lake.opened() as fixture:
        session = fixture.session()
        stored = await read_task(session.state, task)
        assert stored is not None
        leased = stored.task.leased(record="lease", at_ms=stored.now_ms, lease_ms=300_000)
        assert await append_task(session.state, leased) is not None
        async with aclosing(other_relations(Reading(fixture.catalog, task), "")) as relations:
            entities = {name: entry async for name, entry in relations}
    [place] = {file.parents[1] for file in (folder / "store" / WAREHOUSE).rglob("snap-1.avro")}
    job = PurgeJob(CatalogConfig(lake.url, WAREHOUSE), task, "lease", (f"file://{place}",))
    return DroppedTable(
        folder, f"file://{place}", job, Owner("db.neighbour", text(entities["db.neighbour"], "entity"), 0)
    )


def test_what_a_neighbour_leads_to_is_told_by_its_place_in_the_table(dropped: DroppedTable) -> None:
    data = {f"data/part=0/0-{number:05}-0123456789abcdef.parquet" for number in range(3)}
    assert {
        key.removeprefix(f"{dropped.place}/") for key, fact in dropped.others() if fact == SharedFile("db.neighbour")
    } == {
        "metadata/snap-1.avro",
        "metadata/0-m0.avro",
        *data,
    }


def test_a_table_whose_pointer_has_not_moved_is_not_read_again(dropped: DroppedTable) -> None:
    [owner] = {fact.owner for _, fact in read_others(dropped.job, [dropped.neighbour]) if isinstance(fact, Manifest)}
    assert owner.sequence > 0
    assert [*read_others(dropped.job, [owner])] == [("", UnchangedTable(owner))]


@pytest.mark.parametrize("name", ["snap-1.avro", "0-m0.avro"])
def test_what_is_gone_is_told(dropped: DroppedTable, name: str) -> None:
    dropped.path(f"metadata/{name}").unlink()
    [gone] = [fact for _, fact in dropped.others() if isinstance(fact, MissingFile)]
    assert (gone.owner.entity, gone.file, gone.present) == (
        dropped.neighbour.entity,
        f"{dropped.place}/metadata/{name}",
        True,
    )


def test_a_pointer_that_is_gone_is_told_and_then_that_nothing_has_changed(dropped: DroppedTable) -> None:
    [pointer] = (dropped.folder / "store").rglob(f"{dropped.neighbour.entity}.json")
    pointer.unlink()
    [(_, gone)] = read_others(dropped.job, [dropped.neighbour])
    assert isinstance(gone, MissingFile)
    assert (gone.owner.sequence, gone.present) == (NO_POINTER, True)
    assert [*read_others(dropped.job, [gone.owner])] == [("", UnchangedTable(gone.owner))]


def test_a_manifest_of_an_earlier_state_alone_is_told_as_one(dropped: DroppedTable) -> None:
    dropped.path("metadata/0-m0.avro").unlink()
    [owner] = {fact.owner for _, fact in read_others(dropped.job, [dropped.neighbour]) if isinstance(fact, Manifest)}
    gone = f"{dropped.place}/metadata/0-m0.avro"
    for facts, present in (([Manifest(owner, False)], False), ([Manifest(owner, False), Manifest(owner)], True)):
        rows = read_manifests_of_others(dropped.job, [(gone, facts)])
        assert [fact for _, fact in rows if isinstance(fact, MissingFile)] == [MissingFile(owner, gone, present)]


@pytest.mark.parametrize("name", ["snap-1.avro", "0-m0.avro"])
def test_what_cannot_be_read_is_told(dropped: DroppedTable, name: str) -> None:
    dropped.path(f"metadata/{name}").write_bytes(b"damaged")
    facts = [fact for _, fact in dropped.others()]
    [damaged] = [fact for fact in facts if isinstance(fact, DamagedFile)]
    assert name in damaged.why
    assert damaged.name == dropped.neighbour.name
    assert any(isinstance(fact, SharedFile | Manifest) for fact in facts), "all else of the table is read"


def test_another_spelling_of_a_place_is_the_same_file(dropped: DroppedTable) -> None:
    spelled = f"{dropped.place}/data/part%3D0/0-00001-0123456789abcdef.parquet"
    dropped.path("metadata/0-m0.avro").write_bytes(manifest([spelled]))
    keys = {key for key, fact in dropped.others() if isinstance(fact, SharedFile)}
    assert f"{dropped.place}/data/part=0/0-00001-0123456789abcdef.parquet" in keys


def test_files_of_a_neighbour_that_lie_elsewhere_make_no_rows(dropped: DroppedTable) -> None:
    """A row each would be as many as all other tables have files, in one group, and count as files that are shared."""
    inside, outside = f"{dropped.place}/data/a.parquet", f"{dropped.place}-not/data/a.parquet"
    dropped.path("metadata/0-m0.avro").write_bytes(manifest([inside, outside]))
    rows = [(key, fact) for key, fact in dropped.others() if isinstance(fact, SharedFile)]
    assert inside in {key for key, _ in rows}
    assert "" not in {key for key, _ in rows}


def test_own_files_are_told_and_those_elsewhere_are_counted(dropped: DroppedTable) -> None:
    inside, outside = f"{dropped.place}/data/a.parquet", f"{dropped.place}-not/data/a.parquet"
    dropped.path("metadata/1-m0.avro").write_bytes(manifest([inside, outside, "no uri"]))
    assert [*read_manifests(dropped.job, [f"{dropped.place}/metadata/1-m0.avro"])] == [
        (inside, OwnFile(inside, 10)),
        ("", OutsideFiles(2)),
    ]


def test_a_manifest_of_the_table_that_is_gone_is_told(dropped: DroppedTable) -> None:
    manifest = f"{dropped.place}/metadata/1-m0.avro"
    dropped.path("metadata/1-m0.avro").unlink()
    assert [*read_manifests(dropped.job, [manifest])] == [("", MissingManifest(manifest))]


def test_what_nobody_else_leads_to_is_deleted(dropped: DroppedTable) -> None:
    mine, ours = "metadata/snap-2.avro", "metadata/snap-1.avro"
    facts: Iterable[Facts] = [
        *dropped.own(mine),
        (f"{dropped.place}/{ours}", [SharedFile("n"), OwnFile(f"{dropped.place}/{ours}", 1)]),
    ]
    nobodys: Facts = (f"{dropped.place}/metadata/1-m0.avro", [SharedFile("n")])

    [done] = delete_part(dropped.job, [*facts, nobodys])

    assert (done.files, done.bytes, done.kept, done.kept_for) == (1, 1, 1, {"n": 1})
    assert [dropped.path(name).exists() for name in (mine, ours, "metadata/1-m0.avro")] == [False, True, True]


def test_nothing_is_deleted_without_the_lease(dropped: DroppedTable) -> None:
    before = PurgeJob(dropped.job.config, dropped.job.task, "the lease before", dropped.job.locations)
    with pytest.raises(LeaseLost):
        list(delete_part(before, dropped.own("metadata/snap-2.avro")))
    assert dropped.path("metadata/snap-2.avro").exists()


def test_what_executors_could_not_address_is_counted_and_some_of_it_named() -> None:
    parts = [Progress(files=1, unaddressable=4, unaddressable_examples=("a", "b", "c", "d"))] * 2
    total = sum_counts(parts)
    assert (total.files, total.unaddressable, total.unaddressable_examples) == (2, 8, ("a", "b", "c", "d", "a"))


def test_a_file_whose_name_is_too_long_for_a_key_counts_as_outside(dropped: DroppedTable) -> None:
    long = f"data/{'x' * 2_000}.parquet"
    [done] = delete_part(dropped.job, dropped.own("metadata/snap-2.avro", long))
    total = sum_counts([done, Progress(outside=2)])
    assert (total.files, total.outside) == (1, 3)
