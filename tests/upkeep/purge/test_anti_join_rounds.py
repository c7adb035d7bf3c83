"""A purge by Spark reads a table with missing files again, for as long as the table changes, a bounded number of
times."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from arco_catalog.tasks.execution import Execution
from reconciler import anti_join
from reconciler.anti_join import SharedFiles
from reconciler.purge_parts import Facts, MissingFile, Owner
from storage_backends import StoreUnavailable

ROUNDS = 3


class Jobs:
    """Spark jobs whose results are known: a table with a missing file, in so many readings of it."""

    def __init__(self, missing: int) -> None:
        self.missing = missing
        self.readings = 0

    async def run(self, collect: Any) -> list[Any]:
        [table] = collect()
        self.readings += 1
        return [MissingFile(table, "m.avro", present=True)] if self.readings <= self.missing else []


async def read(monkeypatch: pytest.MonkeyPatch, missing: int) -> Jobs:
    """Reads a table as a purge does, in `ROUNDS` rounds at most."""
    jobs = Jobs(missing)

    def rows(_: SharedFiles, tables: list[Owner]) -> Any:
        return SimpleNamespace(mapPartitions=lambda _: SimpleNamespace(collect=lambda: tables))

    async def nothing_is_missing(execution: Execution, found: object) -> None:
        assert found == {}

    monkeypatch.setattr(anti_join, "MAX_ROUNDS", ROUNDS)
    monkeypatch.setattr(anti_join, "wait_for_missing", nothing_is_missing)
    monkeypatch.setattr(SharedFiles, "_read", rows)
    settings = SimpleNamespace(purge=SimpleNamespace(trust_locations=False))
    execution = SimpleNamespace(session=lambda: SimpleNamespace(settings=settings))
    shared = SharedFiles(cast(Any, None), cast(Any, jobs), cast(Any, Facts))
    await shared.read(cast(Execution, execution), [Owner("db.t", "entity", 0)])
    return jobs


@pytest.mark.parametrize("missing", range(ROUNDS))
async def test_a_table_that_changes_is_read_until_its_files_are_there(
    monkeypatch: pytest.MonkeyPatch, missing: int
) -> None:
    """Also if they are there in the last reading that it may have."""
    assert (await read(monkeypatch, missing)).readings == missing + 1


async def test_a_table_that_changes_in_each_reading_ends_the_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(StoreUnavailable, match=r"table db\.t changed during each of 3 readings"):
        await read(monkeypatch, ROUNDS)
