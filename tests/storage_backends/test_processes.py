"""Several processes on one store lose nothing and agree on who won."""

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from storage_backends import ABSENT, ObjectStore
from storage_backends.open import open_store
from tests.storage_backends.contract import found, listed
from tests.storage_backends.processes import workers

PROCESSES = 2


@pytest.fixture(params=["local", "s3"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "local":
        return f"file:{tmp_path}/root"
    return f"s3://{request.getfixturevalue('s3_bucket')}/prefix"


@pytest.fixture
async def store(url: str) -> AsyncIterator[ObjectStore]:
    store = open_store(url, os.environ)
    yield store
    await store.close()


async def test_increments_of_several_processes_add_up(store: ObjectStore, url: str) -> None:
    await store.put("folder/counter", b"0", ABSENT)

    with workers(PROCESSES, "increments", url, "folder/counter", "30") as started:
        for worker in started:
            worker.begin()
        assert [worker.results() for worker in started] == [[30]] * PROCESSES
        assert all(worker.ended_well() for worker in started)

    assert (await found(store, "folder/counter")).body == b"%d" % (30 * PROCESSES)


async def test_of_creators_in_several_processes_one_wins(store: ObjectStore, url: str) -> None:
    with workers(PROCESSES, "creations", url, "new/folder", "50") as started:
        for worker in started:
            worker.begin()
        won = {worker.process.pid: worker.results() for worker in started}
        assert all(worker.ended_well() for worker in started)

    assert sorted(number for numbers in won.values() for number in numbers) == list(range(50))
    for pid, numbers in won.items():
        for number in numbers:
            assert (await found(store, f"new/folder/{number}")).body == b"%d" % pid
    assert len(await listed(store)) == 50
