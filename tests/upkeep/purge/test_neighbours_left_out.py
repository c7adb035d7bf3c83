"""The rules of how a purge reads the other tables left out, one at a time: each must make a test fail."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import replace
from functools import partial

import pytest

from arco_catalog.planning import purge
from arco_catalog.state.borrowed import borrowed_key
from arco_catalog.state.file_directories import FileDirectories, UnreadFile
from arco_catalog.state.index import Index
from arco_catalog.state.locations import Location
from arco_catalog.state.needs import Needs, Scan, Steps
from arco_catalog.tasks.execution import Sessions
from arco_catalog.upkeep.purge import corruption, other_table, sharing
from arco_catalog.upkeep.purge.corruption import CorruptFile, Corruption
from arco_catalog.upkeep.purge.known_directories import KnownDirectories
from arco_catalog.upkeep.purge.sharing import NeighbourCheck
from arco_catalog.upkeep.purge.table_files import ReadPosition, files_of
from tests.support.table_files import append, commit_files
from tests.upkeep.purge import test_asking_others as asking
from tests.upkeep.purge import test_borrowed as borrowed
from tests.upkeep.purge import test_known_directories as known
from tests.upkeep.purge.conftest import Purges

Mutation = Callable[[pytest.MonkeyPatch], None]
Test = Callable[[], Awaitable[None]]


def a_first_round_of_several_leases_that_is_enough(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(NeighbourCheck, "is_enough", lambda self, lease, beginning: True)


def an_entry_that_is_believed_at_any_version(patch: pytest.MonkeyPatch) -> None:
    def is_elsewhere(self: KnownDirectories, entry: FileDirectories, locations: object, version: object) -> bool:
        return not entry.may_reach(self._places)

    patch.setattr(KnownDirectories, "_is_elsewhere", is_elsewhere)


def an_entry_without_directories(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(FileDirectories, "may_reach", lambda self, places: False)


def an_entry_that_is_believed_at_other_locations(patch: pytest.MonkeyPatch) -> None:
    def is_elsewhere(self: KnownDirectories, entry: FileDirectories, locations: object, version: str | None) -> bool:
        return entry.version == version and not entry.may_reach(self._places)

    patch.setattr(KnownDirectories, "_is_elsewhere", is_elsewhere)


def a_damaged_table_that_is_recorded(patch: pytest.MonkeyPatch) -> None:
    """As one all of whose files were read."""

    async def find_versions(*_: object) -> tuple[UnreadFile, ...]:
        return ()

    patch.setattr(other_table, "find_versions", find_versions)


def unread_files_whose_versions_are_not_compared(patch: pytest.MonkeyPatch) -> None:
    async def are_unchanged(*_: object) -> bool:
        return True

    patch.setattr(other_table, "are_unchanged", are_unchanged)


def a_version_that_is_recorded_of_a_file_that_was_restored_meanwhile(patch: pytest.MonkeyPatch) -> None:
    async def not_again() -> None:
        raise CorruptFile("not read again")

    confirmed = corruption._corrupt_version

    async def unconfirmed(sessions: Sessions, file: Corruption) -> str | None:
        return await confirmed(sessions, replace(file, read=not_again))

    patch.setattr(corruption, "_corrupt_version", unconfirmed)


def a_damaged_table_of_which_nothing_else_is_read(patch: pytest.MonkeyPatch) -> None:
    async def until_damage(
        execution: Sessions,
        metadata: Sequence[str],
        gone: list[str],
        corrupt: list[Corruption],
        position: ReadPosition,
    ) -> AsyncGenerator[str, None]:
        found: list[str] = []
        async with aclosing(files_of(execution, metadata, gone, corrupt, position)) as files:
            async for file in files:
                found.append(file)
        for file in [] if corrupt else found:
            yield file

    patch.setattr(other_table, "files_of", until_damage)


def a_borrowed_folder_that_only_the_same_location_meets(patch: pytest.MonkeyPatch) -> None:
    def borrower_of(index: Index, location: Location, entity: str) -> Steps[str | None]:
        prefix = borrowed_key(location.normal, "")
        yield Needs(scans=[Scan(prefix)])
        return next((str(hold["entity"]) for _, hold in index.scan(prefix) if hold["entity"] != entity), None)

    patch.setattr(purge, "borrower_of", borrower_of)


async def in_a_catalog(test: Callable[[Purges], Awaitable[None]]) -> None:
    purges = Purges()
    await purges.fixture.namespace("db")
    await test(purges)


async def beside_many(test: Callable[[Purges], Awaitable[None]]) -> None:
    purges = Purges()
    await purges.fixture.namespace("db")
    await append(purges.fixture, await purges.table(), "a.parquet")
    for number in range(asking.OTHERS):
        await append(purges.fixture, await purges.table(f"n{number}"), "b.parquet", name=f"n{number}")
    await test(purges)


async def beside_one(test: Callable[[Purges], Awaitable[None]]) -> None:
    purges = Purges()
    await purges.fixture.namespace("db")
    await append(purges.fixture, await purges.table(), "a.parquet")
    await commit_files(purges.fixture, await purges.table("n"), [asking.taken(purges)], name="n")
    await test(purges)


RESTORED = known.test_a_damaged_table_is_read_again_when_its_file_is_restored
LEFT_OUT: list[tuple[Mutation, Test]] = [
    (
        a_first_round_of_several_leases_that_is_enough,
        partial(beside_many, asking.test_what_took_a_file_behind_a_round_of_several_workers_is_found_by_the_next),
    ),
    (
        an_entry_that_is_believed_at_any_version,
        partial(in_a_catalog, known.test_a_table_that_has_taken_a_file_since_it_was_recorded_prevents_the_purge),
    ),
    (
        an_entry_without_directories,
        partial(in_a_catalog, known.test_a_table_that_had_taken_a_file_when_it_was_recorded_prevents_the_purge),
    ),
    (
        an_entry_that_is_believed_at_other_locations,
        partial(in_a_catalog, known.test_a_table_that_has_other_locations_than_when_it_was_recorded_is_read),
    ),
    (
        a_damaged_table_that_is_recorded,
        partial(
            in_a_catalog, partial(known.test_a_damaged_table_is_read_again_when_its_file_is_restored, kind="/snap-")
        ),
    ),
    (
        unread_files_whose_versions_are_not_compared,
        partial(
            in_a_catalog, partial(known.test_a_damaged_table_is_read_again_when_its_file_is_restored, kind="-m0.avro")
        ),
    ),
    (
        a_version_that_is_recorded_of_a_file_that_was_restored_meanwhile,
        partial(in_a_catalog, known.test_a_file_that_is_restored_while_its_table_is_read_is_not_recorded_as_damaged),
    ),
    (
        a_damaged_table_of_which_nothing_else_is_read,
        partial(beside_one, asking.test_of_a_damaged_neighbour_all_else_is_read),
    ),
    (
        a_borrowed_folder_that_only_the_same_location_meets,
        partial(in_a_catalog, borrowed.test_a_commit_that_takes_a_manifest_list_from_elsewhere_stands_in_the_way),
    ),
]


@pytest.mark.parametrize(("left_out", "test"), LEFT_OUT, ids=[left_out.__name__ for left_out, _ in LEFT_OUT])
async def test_a_rule_that_is_left_out_is_found(
    left_out: Mutation, test: Test, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sharing, "READ_AT_ONCE", 1)
    await test()
    left_out(monkeypatch)
    with pytest.raises(AssertionError):
        await test()
