"""The local store on a file system that refuses, that fails half-way, and under writers that are killed."""

import asyncio
import errno
import os
import random
import signal
import stat
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from threading import Event
from typing import TypeAlias

import pytest

from storage_backends import (
    ABSENT,
    ANY,
    Applied,
    Found,
    InvalidKey,
    Matches,
    Missing,
    PreconditionFailed,
    StoreDenied,
    StoreUnavailable,
    Unknown,
)
from storage_backends.local.store import PRIVATE_FOLDER, LocalStore
from tests.storage_backends.contract import applied, found
from tests.storage_backends.processes import workers
from tests.storage_backends.worker import sealed, unsealed

Fail: TypeAlias = Callable[..., None]


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[LocalStore]:
    store = LocalStore(tmp_path)
    await store.put("here", b"", ABSENT)
    yield store
    await store.close()


@pytest.fixture
def fail(monkeypatch: pytest.MonkeyPatch) -> Fail:
    """Makes a call to the operating system fail: `fsync` of what is no folder, `fsync_folder` only of folders."""

    def plant(name: str, number: int) -> None:
        real_name = name.removesuffix("_folder")
        real = getattr(os, real_name)

        def fails(*arguments: object, **options: object) -> object:
            if real_name == "fsync":
                descriptor = arguments[0]
                assert isinstance(descriptor, int)
                if stat.S_ISDIR(os.fstat(descriptor).st_mode) != name.endswith("_folder"):
                    return real(*arguments, **options)
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr(os, real_name, fails)

    return plant


def files(root: Path) -> set[str]:
    """Every file but locks, temporary ones included."""
    return {path.name for path in root.rglob("*") if path.is_file() and path.parent.name != "locks"}


CALLS: dict[str, Callable[[LocalStore], Awaitable[object]]] = {
    "link": lambda store: store.put("key", b"", ABSENT),
    "replace": lambda store: store.put("key", b"", ANY),
    "unlink": lambda store: store.delete("here"),
    "open": lambda store: store.get("here"),
}


async def test_a_body_that_the_system_takes_in_pieces_is_written_whole(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, body: write(descriptor, body[:3]))
    await store.put("key", b"ten bytes.", ABSENT)
    assert (await found(store, "key")).body == b"ten bytes."


@pytest.mark.parametrize("call", ["fsync", "link", "mkdir"])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EMFILE])
async def test_a_create_that_finds_no_room_leaves_nothing(
    store: LocalStore, tmp_path: Path, fail: Fail, call: str, number: int
) -> None:
    fail(call, number)
    with pytest.raises(StoreUnavailable, match=os.strerror(number)):
        await store.put("new/key", b"body", ABSENT)
    assert files(tmp_path) == {"here"}


@pytest.mark.parametrize("call", ["fsync", "replace"])
async def test_a_replacement_that_finds_no_room_leaves_the_old(
    store: LocalStore, tmp_path: Path, fail: Fail, call: str
) -> None:
    version = applied(await store.put("key", b"old", ABSENT))
    fail(call, errno.ENOSPC)
    with pytest.raises(StoreUnavailable):
        await store.put("key", b"new", Matches(version))
    assert files(tmp_path) == {"here", "key"}
    assert (await found(store, "key")).version == version


@pytest.mark.parametrize("number", [errno.EACCES, errno.EPERM, errno.EROFS])
@pytest.mark.parametrize("call", CALLS)
async def test_what_is_not_allowed_is_denied(store: LocalStore, fail: Fail, call: str, number: int) -> None:
    fail(call, number)
    with pytest.raises(StoreDenied):
        await CALLS[call](store)


@pytest.mark.parametrize("call", ["link", "replace", "unlink"])
async def test_a_change_on_a_failing_disk_is_unknown(store: LocalStore, fail: Fail, call: str) -> None:
    fail(call, errno.EIO)
    assert isinstance(await CALLS[call](store), Unknown)


@pytest.mark.parametrize(
    "change",
    [
        lambda store: store.put("created", b"", ABSENT),
        lambda store: store.put("here", b"new", ANY),
        lambda store: store.delete("here"),
    ],
)
async def test_a_change_that_is_visible_but_may_not_last_is_unknown(
    store: LocalStore, fail: Fail, change: Callable[[LocalStore], Awaitable[object]]
) -> None:
    fail("fsync_folder", errno.EIO)

    assert isinstance(await change(store), Unknown)


async def test_of_many_deletions_those_on_a_failing_disk_are_unknown(store: LocalStore, fail: Fail) -> None:
    await store.put("folder/there", b"", ABSENT)
    fail("unlink", errno.EIO)

    deleted = await store.delete_many(["here", "folder/there", "folder/nothing"])

    assert {key: type(reason) for key, reason in deleted.left.items()} == {"here": Unknown, "folder/there": Unknown}


async def test_many_deletions_that_may_not_last_are_unknown(store: LocalStore, fail: Fail) -> None:
    fail("fsync_folder", errno.EIO)

    assert isinstance((await store.delete_many(["here"])).left["here"], Unknown)


async def test_many_deletions_below_a_file_fail_for_their_keys_alone(store: LocalStore) -> None:
    (Path(store._root) / "link").symlink_to("/")

    deleted = await store.delete_many(["here", "link/tmp"])

    assert {key: type(reason) for key, reason in deleted.left.items()} == {"link/tmp": InvalidKey}
    assert isinstance(await store.get("here"), Missing)


async def test_a_folder_is_written_to_disk_once_for_all_that_went(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = [f"folder/{number}" for number in range(20)]
    for key in keys:
        await store.put(key, b"", ABSENT)
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)

    assert (await store.delete_many([*keys, "here"])).left == {}
    assert len(synced) == 2


async def test_many_deletions_end_when_their_task_is_cancelled(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who waits for them no longer may have lost a lease."""
    keys = [f"folder/{number}" for number in range(20)]
    for key in keys:
        await store.put(key, b"", ABSENT)
    loop, unlink = asyncio.get_running_loop(), os.unlink
    at_first, goes_on, gone = asyncio.Event(), Event(), list[str]()

    def unlinks(name: str, *, dir_fd: int) -> None:
        loop.call_soon_threadsafe(at_first.set)
        goes_on.wait(30)
        unlink(name, dir_fd=dir_fd)
        gone.append(name)

    monkeypatch.setattr(os, "unlink", unlinks)
    deleting = asyncio.create_task(store.delete_many(keys))
    await at_first.wait()

    deleting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await deleting
    goes_on.set()
    await store.close()

    assert gone == ["0"]


async def test_a_change_that_may_not_last_is_no_evidence_until_it_is_durable(
    store: LocalStore, fail: Fail, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store.put("elsewhere/key", b"", ABSENT)
    fail("fsync_folder", errno.EIO)
    assert isinstance(await store.put("here", b"new", ANY), Unknown)

    with pytest.raises(StoreUnavailable):
        await store.get("here")
    with pytest.raises(StoreUnavailable):
        await store.get_range("here", 0, 1)
    with pytest.raises(StoreUnavailable):
        await store.put("here", b"another", ABSENT)
    with pytest.raises(StoreUnavailable):
        await store.delete("here")
    assert isinstance(await store.get("elsewhere/key"), Found)

    monkeypatch.undo()
    assert (await found(store, "here")).body == b"new"
    assert isinstance(await store.put("here", b"another", ABSENT), PreconditionFailed)


async def test_a_temporary_file_that_stays_does_not_deny_the_write(store: LocalStore, fail: Fail) -> None:
    fail("unlink", errno.EACCES)

    assert isinstance(await store.put("key", b"", ABSENT), Applied)
    assert isinstance(await store.get("key"), Found)


async def test_a_read_that_fails_is_unavailable(store: LocalStore, fail: Fail) -> None:
    fail("open", errno.EIO)
    with pytest.raises(StoreUnavailable):
        await store.get("here")
    with pytest.raises(StoreUnavailable):
        await store.list("")


async def test_a_root_that_went_away_is_unavailable(store: LocalStore, tmp_path: Path) -> None:
    os.rename(tmp_path, f"{tmp_path}-elsewhere")
    with pytest.raises(StoreUnavailable):
        await store.get("here")
    with pytest.raises(StoreUnavailable):
        await store.put("key", b"", ABSENT)
    os.rename(f"{tmp_path}-elsewhere", tmp_path)
    assert isinstance(await store.get("here"), Found)


async def test_a_write_is_acknowledged_after_all_of_it_was_made_to_last(
    store: LocalStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []

    def trace(name: str) -> None:
        call = getattr(os, name)

        def traced(*arguments: object, **options: object) -> object:
            steps.append(f"{name} {name_of(arguments[0])}" if name == "fsync" else name)
            return call(*arguments, **options)

        monkeypatch.setattr(os, name, traced)

    def name_of(descriptor: object) -> str:
        path = os.path.relpath(os.readlink(f"/proc/self/fd/{descriptor}"), tmp_path)
        return "temporary" if path.startswith(PRIVATE_FOLDER) else path

    for name in ("fsync", "link", "replace", "unlink"):
        trace(name)
    await store.put("a/b/key", b"", ABSENT)
    await store.put("a/b/key", b"", ANY)
    await store.delete("a/b/key")

    parents = ["fsync .", "fsync a"]
    created = ["fsync temporary", "link", "fsync a/b", "unlink"]
    replaced = ["fsync temporary", "replace", "fsync a/b"]
    assert steps == [*parents, *created, *replaced, "unlink", "fsync a/b"]


POINTS = [
    ("fsync", 1),  # of the file that replaces
    ("utime", 1),
    ("replace", 1),
    ("fsync", 2),  # of its folder
    ("fsync", 3),  # of the file that is created
    ("utime", 2),
    ("link", 1),
    ("fsync", 4),
    ("unlink", 1),  # of its temporary name
    ("pwrite", 1),  # of the high-water mark that a deletion leaves
    ("unlink", 2),
    ("fsync", 5),
]


@pytest.mark.parametrize(("point", "count"), POINTS)
async def test_a_kill_at_any_point_leaves_whole_objects_and_free_locks(
    store: LocalStore, tmp_path: Path, point: str, count: int
) -> None:
    with workers(1, "fatal_write", f"file:{tmp_path}", "key", point, str(count)) as [worker]:
        worker.begin()
        assert worker.results() == [1]
        assert worker.process.wait(timeout=30) == -signal.SIGKILL

    old = await found(store, "key")
    assert unsealed(old.body) in (1, 2)
    created = await store.get("key.new")
    assert isinstance(created, Missing) or unsealed(created.body) == 3  # type: ignore[union-attr]
    assert isinstance(await store.put("key", sealed(4, 10), Matches(old.version)), Applied)
    assert isinstance(await store.put("key.new", b"", ANY), Applied)


async def test_what_was_acknowledged_to_killed_writers_is_there_and_whole(store: LocalStore, tmp_path: Path) -> None:
    for round_ in range(3):
        key = f"folder/{round_}"
        with workers(2, "endless_writes", f"file:{tmp_path}", key) as started:
            for worker in started:
                worker.begin()
            results = {worker: [worker.next_result()] for worker in started}
            for _ in range(random.randrange(20)):
                for worker in started:
                    results[worker].append(worker.next_result())
            for worker in started:
                worker.process.send_signal(signal.SIGKILL)
            last_results = [max(filter(None, [*results[worker], *worker.results()])) for worker in started]

        answer = await found(store, key)
        # The last word of either, or what it was killed over before it could say so.
        assert unsealed(answer.body) in {number + late for number in last_results for late in (0, 1)}
        assert isinstance(await store.put(key, b"", Matches(answer.version)), Applied)
