import asyncio
import errno
import fcntl
import os
import stat
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import Mock

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
    StoreError,
    StoreUnavailable,
    Unchanged,
    Version,
)
from storage_backends.local import files
from storage_backends.local.config import LocalConfig
from storage_backends.local.files import make_folder, prune_empty
from storage_backends.local.open_nofollow import open_nofollow
from storage_backends.local.store import AT_ONCE_IN_A_ROW, PRIVATE_FOLDER, LocalStore
from storage_backends.probe import honours_conditions
from storage_backends.validation import PAGE_SIZE
from tests.storage_backends.contract import EveryVersionIsNew, StoreContract, applied, found, listed


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "new" / "root"


@pytest.fixture
def made_root(root: Path) -> Path:
    root.mkdir(parents=True)
    return root


@pytest.fixture
async def store(root: Path) -> AsyncIterator[LocalStore]:
    store = LocalStore(root)
    yield store
    await store.close()


class TestLocalStore(StoreContract, EveryVersionIsNew):
    @pytest.fixture
    def store(self, store: LocalStore) -> LocalStore:
        return store


def paths_below(folder: Path) -> set[Path]:
    return set(folder.rglob("*"))


def top(root: Path) -> set[str]:
    return {path.name for path in root.iterdir()}


def visible(root: Path) -> set[str]:
    """What a program other than ours sees, our own folder aside."""
    files = {path.relative_to(root).as_posix() for path in root.rglob("*") if not path.is_dir()}
    return {file for file in files if not file.startswith(PRIVATE_FOLDER)}


def temporaries(root: Path) -> list[Path]:
    return list((root / PRIVATE_FOLDER / "tmp").iterdir())


class TestFiles:
    async def test_probes_leave_nothing_behind(self, store: LocalStore, root: Path) -> None:
        for nonce in ("first", "second"):
            assert await honours_conditions(store, nonce)
        assert top(root) == {PRIVATE_FOLDER}

    @pytest.mark.parametrize("many", [False, True])
    async def test_a_deletion_removes_the_folders_that_it_leaves_empty(
        self, store: LocalStore, root: Path, many: bool
    ) -> None:
        for key in ("db/t/data/a", "db/t/data/b", "db/t/metadata/c", "db/u/d"):
            await store.put(key, b"", ABSENT)

        async def delete(*keys: str) -> None:
            if many:
                assert not (await store.delete_many(keys)).left
            else:
                for key in keys:
                    applied(await store.delete(key))

        await delete("db/t/data/a")
        assert (root / "db/t/data").is_dir()
        await delete("db/t/data/b", "db/t/metadata/c")
        assert paths_below(root / "db") == {root / "db/u", root / "db/u/d"}
        await delete("db/u/d")
        assert top(root) == {PRIVATE_FOLDER}

    async def test_a_folder_with_a_file_that_is_no_object_stays(self, store: LocalStore, root: Path) -> None:
        await store.put("db/t/a", b"", ABSENT)
        (root / "db/t/no\nkey").write_bytes(b"")
        await store.delete("db/t/a")
        assert (root / "db/t/no\nkey").exists()

    async def test_a_write_whose_folder_is_removed_at_each_point_makes_it_again(
        self, store: LocalStore, root: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Before each call of the operating system that the write makes in turn, until it makes no more."""
        calls = ("mkdir", "open", "fsync", "stat", "link", "replace")
        for condition in (ABSENT, ANY):
            number, left = 0, 0
            while left <= 0:
                number += 1
                left = number
                with monkeypatch.context() as patch:
                    for name in calls:
                        real = getattr(os, name)

                        def removing(*arguments: Any, real: Any = real, **more: Any) -> Any:
                            nonlocal left
                            left -= 1
                            if left == 0:
                                prune_empty(str(root), ("a", "b"))
                            return real(*arguments, **more)

                        patch.setattr(os, name, removing)
                    assert isinstance(await store.put("a/b/key", b"x", condition), Applied)
                assert (root / "a/b/key").read_bytes() == b"x"
                await store.delete("a/b/key")
            assert number > 8

    async def test_folders_that_come_and_go_in_threads_of_several_stores_lose_nothing(self, root: Path) -> None:
        stores = [LocalStore(root) for _ in range(4)]

        async def come_and_go(store: LocalStore, name: str) -> None:
            for _ in range(100):
                version = applied(await store.put(f"a/b/c/{name}", b"1", ABSENT))
                version = applied(await store.put(f"a/b/c/{name}", b"2", Matches(version)))
                assert (await found(store, f"a/b/c/{name}")).version == version
                applied(await store.delete(f"a/b/c/{name}", Matches(version)))

        await asyncio.gather(
            *(come_and_go(store, f"{number}{name}") for number, store in enumerate(stores) for name in "xy")
        )
        assert top(root) == {PRIVATE_FOLDER}
        for store in stores:
            await store.close()

    async def test_an_object_is_the_plain_file_that_its_key_names(self, store: LocalStore, root: Path) -> None:
        await store.put("warehouse/a table/metadata.json", b"{}", ABSENT)

        assert (root / "warehouse/a table/metadata.json").read_bytes() == b"{}"
        assert visible(root) == {"warehouse/a table/metadata.json"}

    async def test_other_users_may_read_what_the_umask_lets_them(self, store: LocalStore, root: Path) -> None:
        before = os.umask(0o022)
        try:
            await store.put("key", b"", ABSENT)
        finally:
            os.umask(before)

        assert stat.S_IMODE((root / "key").stat().st_mode) == 0o644

    async def test_what_engines_write_is_read_and_listed(self, store: LocalStore, root: Path) -> None:
        (root / "data").mkdir(parents=True)
        (root / "data/file.parquet").write_bytes(b"PAR1")

        answer = await found(store, "data/file.parquet")

        assert answer.body == b"PAR1"
        assert [(entry.key, entry.version) for entry in await listed(store)] == [("data/file.parquet", answer.version)]
        assert isinstance(await store.put("data/file.parquet", b"", Matches(answer.version)), Applied)

    async def test_nothing_of_the_stores_own_is_an_object(self, store: LocalStore) -> None:
        await store.put("key", b"", ABSENT)

        assert [entry.key for entry in await listed(store)] == ["key"]
        assert await listed(store, PRIVATE_FOLDER) == []
        assert await listed(store, f"{PRIVATE_FOLDER}/") == []
        with pytest.raises(InvalidKey, match="own"):
            await store.get(f"{PRIVATE_FOLDER}/locks/00")
        with pytest.raises(InvalidKey, match="own"):
            await store.put(f"{PRIVATE_FOLDER}/key", b"", ANY)
        assert isinstance(await store.put(f"folder/{PRIVATE_FOLDER}/key", b"", ABSENT), Applied)

    async def test_no_temporary_file_is_left(self, store: LocalStore, root: Path) -> None:
        version = applied(await store.put("key", b"one", ABSENT))
        await store.put("key", b"two", Matches(version))
        await store.put("key", b"three", Matches(version))
        await store.put("key", b"four", ABSENT)

        assert temporaries(root) == []

    async def test_stale_temporary_files_are_removed_at_the_first_write(self, root: Path) -> None:
        folder = root / PRIVATE_FOLDER / "tmp"
        folder.mkdir(parents=True)
        stale_ms = LocalConfig().stale_after_ms
        now_ms = 2 * stale_ms
        for name, age_ms in (("fresh", stale_ms - 1_000), ("stale", stale_ms + 1_000)):
            (folder / name).write_bytes(b"")
            os.utime(folder / name, ns=(0, (now_ms - age_ms) * 1_000_000))
        store = LocalStore(root, lambda: now_ms)

        await store.put("key", b"", ABSENT)
        await store.close()

        assert [path.name for path in temporaries(root)] == ["fresh"]

    async def test_reads_make_nothing(self, store: LocalStore, root: Path) -> None:
        for _ in range(2):
            assert isinstance(await store.get("key"), Missing)
            assert isinstance(await store.get_range("key", 0, 1), Missing)
            assert (await store.list("")).entries == ()
            assert paths_below(root.parent.parent) == set()

    def test_a_root_is_absolute(self) -> None:
        with pytest.raises(ValueError, match="absolute"):
            LocalStore("relative/path")


class TestReads:
    async def test_what_is_in_memory_is_read_without_a_thread(
        self, store: LocalStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        version = applied(await store.put("folder/key", b"body", ABSENT))
        monkeypatch.setattr(store, "_in_thread", None)

        assert (await found(store, "folder/key")).body == b"body"
        assert isinstance(await store.get("folder/key", version), Unchanged)
        assert isinstance(await store.get("folder/nothing"), Missing)

    @pytest.mark.parametrize("key", ["key", "nothing"])
    async def test_a_task_that_reads_again_and_again_lets_others_run(self, store: LocalStore, key: str) -> None:
        await store.put("key", b"body", ABSENT)
        turns = 0

        async def others() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        running = asyncio.create_task(others())
        for _ in range(1_000):
            await store.get(key)
            await store.get_range(key, 0, 1)
        running.cancel()
        assert turns >= 2_000 // AT_ONCE_IN_A_ROW

    @pytest.mark.parametrize("read", [b"bo", OSError(errno.EAGAIN, ""), OSError(errno.EOPNOTSUPP, "")])
    async def test_what_is_not_in_memory_is_read_in_a_thread(
        self, store: LocalStore, monkeypatch: pytest.MonkeyPatch, read: bytes | OSError
    ) -> None:
        await store.put("key", b"body", ABSENT)

        def preadv(descriptor: int, buffers: list[bytearray], offset: int, flags: int) -> int:
            if isinstance(read, OSError):
                raise read
            buffers[0][: len(read)] = read
            return len(read)

        monkeypatch.setattr(os, "preadv", preadv)

        assert (await found(store, "key")).body == b"body"

    async def test_a_large_object_is_read_in_a_thread(self, store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
        body = bytes(LocalConfig().read_at_once + 1)
        await store.put("key", body, ABSENT)
        monkeypatch.delattr(os, "preadv")

        assert (await found(store, "key")).body == body

    @pytest.mark.parametrize("key", ["folder/nothing", "nothing/nothing"])
    async def test_a_missing_object_takes_as_few_calls_of_the_system_as_one_that_is_there(
        self, store: LocalStore, key: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """After each of them the event loop may wait for another thread."""
        await store.put("folder/key", b"body", ABSENT)
        await found(store, "folder/key")
        there = await _opens(store, "folder/key", monkeypatch)

        assert await _opens(store, key, monkeypatch) == there

    async def test_a_kernel_that_opens_no_path_in_one_step_is_as_good(
        self, store: LocalStore, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(files, "open_nofollow", lambda *_: None)
        version = applied(await store.put("a/b/key", b"one", ABSENT))

        assert (await found(store, "a/b/key")).body == b"one"
        assert isinstance(await store.put("a/b/key", b"two", Matches(version)), Applied)
        assert isinstance(await store.get("a/c/key"), Missing)
        (root / "link").symlink_to(tmp_path)
        with pytest.raises(InvalidKey, match="link"):
            await store.get("link/key")


async def _opens(store: LocalStore, key: str, monkeypatch: pytest.MonkeyPatch) -> tuple[int, int]:
    """Returns how many files and folders a read opens, and how many paths in one step."""
    opened, walked = Mock(side_effect=os.open), Mock(side_effect=open_nofollow)
    with monkeypatch.context() as patches:
        patches.setattr(os, "open", opened)
        patches.setattr(files, "open_nofollow", walked)
        await store.get(key)
    return opened.call_count, walked.call_count


class TestPaths:
    async def test_an_object_cannot_be_below_another(self, store: LocalStore) -> None:
        await store.put("a", b"", ABSENT)

        for when in (ABSENT, ANY):
            with pytest.raises(InvalidKey, match="'a' is an object already"):
                await store.put("a/b/c", b"", when)
        assert isinstance(await store.put("a/b/c", b"", Matches(Version("1-1"))), PreconditionFailed)
        assert isinstance(await store.get("a/b"), Missing)
        assert isinstance(await store.delete("a/b"), Applied)
        assert await listed(store, "a/b") == []

    async def test_an_object_cannot_be_where_others_are_below(self, store: LocalStore) -> None:
        await store.put("a/b", b"", ABSENT)

        for when in (ABSENT, ANY):
            with pytest.raises(InvalidKey, match="folder"):
                await store.put("a", b"", when)
        assert isinstance(await store.put("a", b"", Matches(Version("1-1"))), PreconditionFailed)
        assert isinstance(await store.get("a"), Missing)
        assert isinstance(await store.delete("a"), Applied)
        assert isinstance(await store.get("a/b"), Found)

    async def test_a_segment_has_at_most_255_bytes(self, store: LocalStore) -> None:
        assert isinstance(await store.put("é" * 127 + "e/key", b"", ABSENT), Applied)
        with pytest.raises(InvalidKey, match="255"):
            await store.put("é" * 128 + "/key", b"", ABSENT)

    async def test_no_link_leads_out_of_the_root(self, store: LocalStore, made_root: Path, tmp_path: Path) -> None:
        outside = tmp_path / "outside"
        outside.mkdir()
        (outside / "secret").write_bytes(b"secret")
        (made_root / "folder").symlink_to(outside)
        (made_root / "file").symlink_to(outside / "secret")

        for key in ("folder/secret", "folder/new", "folder/new/key", "file"):
            with pytest.raises(InvalidKey, match="link"):
                await store.put(key, b"ours", ABSENT)
        for key in ("folder/secret", "file"):
            with pytest.raises(InvalidKey):
                await store.get(key)
        with pytest.raises(InvalidKey, match="link"):
            await store.delete("folder/secret")
        assert await listed(store) == []
        assert await listed(store, "folder/") == []
        assert [path.name for path in outside.iterdir()] == ["secret"]
        assert (outside / "secret").read_bytes() == b"secret"

    async def test_replacing_a_link_replaces_the_link(self, store: LocalStore, made_root: Path, tmp_path: Path) -> None:
        (tmp_path / "outside").write_bytes(b"theirs")
        (made_root / "key").symlink_to(tmp_path / "outside")

        await store.put("key", b"ours", ANY)

        assert (tmp_path / "outside").read_bytes() == b"theirs"
        assert (await found(store, "key")).body == b"ours"

    async def test_the_root_itself_may_be_a_link(self, tmp_path: Path) -> None:
        (tmp_path / "real").mkdir()
        (tmp_path / "link").symlink_to(tmp_path / "real")
        store = LocalStore(tmp_path / "link")

        await store.put("folder/key", b"body", ABSENT)
        await store.close()

        assert (tmp_path / "real/folder/key").read_bytes() == b"body"

    async def test_a_pipe_is_no_object(self, store: LocalStore, made_root: Path) -> None:
        os.mkfifo(made_root / "pipe")

        assert isinstance(await store.get("pipe"), Missing)
        assert await listed(store) == []
        assert (await store.list("")).others == ("pipe",)

    async def test_what_is_no_object_is_named_in_listings(self, store: LocalStore, made_root: Path) -> None:
        (made_root / "a").mkdir()
        (made_root / "a/control\x01").write_bytes(b"")
        (made_root / os.fsdecode(b"a/not-utf8-\xff")).write_bytes(b"")
        (made_root / "a/link").symlink_to(made_root / "nowhere")
        (made_root / "a/no\nkey").mkdir()
        (made_root / "a/no\nkey/file").write_bytes(b"")
        (made_root / "b").write_bytes(b"")

        assert await listed(store, "a/") == []
        assert (await store.list("a/")).others == ("a/control\x01", "a/link", "a/no\nkey/", "a/not-utf8-\\udcff")
        assert [entry.key for entry in await listed(store)] == ["b"]

    async def test_pages_go_on_behind_what_is_no_object(self, store: LocalStore, made_root: Path) -> None:
        (made_root / "a").mkdir()
        for number in range(PAGE_SIZE + 1):
            (made_root / f"a/{number:05}\x01").write_bytes(b"")
        (made_root / "b").write_bytes(b"")
        first = await store.list("")
        second = await store.list("", first.after)
        assert (len(first.entries), len(first.others), len(second.others)) == (0, PAGE_SIZE, 1)
        assert [entry.key for entry in second.entries] == ["b"]


class TestVersions:
    async def test_a_clock_that_stands_still_or_goes_back_makes_new_versions_all_the_same(self, root: Path) -> None:
        now_ms = 1_000_000
        store = LocalStore(root, lambda: now_ms)
        versions = []
        for step in (0, 0, -500, -500, 0):
            now_ms += step
            versions.append(applied(await store.put("key", b"same", ABSENT)))
            versions.append(applied(await store.put("key", b"same", Matches(versions[-1]))))
            versions.append(applied(await store.put("key", b"same", ANY)))
            assert applied(await store.delete("key", Matches(versions[-1]))) == versions[-1]
        await store.close()

        times = [int(version.split("-")[0], 16) for version in versions]
        assert times == sorted(set(times))

    async def test_the_time_of_a_write_is_the_callers_clock(self, root: Path) -> None:
        store = LocalStore(root, lambda: 1_234_567)

        await store.put("key", b"", ABSENT)
        answer = await found(store, "key")
        await store.close()

        assert (answer.written_ms, answer.now_ms) == (1_234_567, 1_234_567)
        assert (root / "key").stat().st_mtime == 1_234.567

    async def test_a_file_system_without_fine_times_is_reported(
        self, store: LocalStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        set_times = os.utime

        def coarse(path: str, ns: tuple[int, int]) -> None:
            set_times(path, (ns[0] // 10**12 * 1_000, ns[1] // 10**12 * 1_000))

        version = applied(await store.put("key", b"one", ABSENT))
        monkeypatch.setattr(os, "utime", coarse)

        with pytest.raises(StoreError, match="too coarsely"):
            await store.put("key", b"two", Matches(version))
        assert (await found(store, "key")).body == b"one"


@contextmanager
def all_held(locks: Path) -> Iterator[None]:
    """Another process holds every lock file."""
    holder = (
        "import fcntl, os, sys\n"
        "for name in os.listdir(sys.argv[1]): fcntl.flock(os.open(os.path.join(sys.argv[1], name), os.O_RDWR), 2)\n"
        "print('held', flush=True)\n"
        "sys.stdin.read()"
    )
    command = [sys.executable, "-c", holder, str(locks)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "held\n"
            yield
        finally:
            process.kill()


class TestLocks:
    async def test_a_lock_that_is_never_released_makes_writes_unavailable(self, root: Path) -> None:
        store = LocalStore(root, config=LocalConfig(lock_timeout_s=0.05))
        version = applied(await store.put("key", b"one", ABSENT))
        with all_held(root / PRIVATE_FOLDER / "locks"):
            async with asyncio.timeout(10):  # a writer that has no patience at all ends with its holder
                with pytest.raises(StoreUnavailable, match="held"):
                    await store.put("key", b"two", Matches(version))
            assert isinstance(await store.get("key"), Found)

        assert isinstance(await store.put("key", b"two", Matches(version)), Applied)
        assert temporaries(root) == []

    async def test_a_write_waits_for_the_lock(self, store: LocalStore, root: Path) -> None:
        version = applied(await store.put("key", b"one", ABSENT))
        [lock] = (root / PRIVATE_FOLDER / "locks").iterdir()
        with lock.open("r+") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            writes = [asyncio.create_task(store.put("key", b"%d" % n, Matches(version))) for n in range(40)]
            await store.get("key")
            assert not any(write.done() for write in writes)

        outcomes = await asyncio.gather(*writes)

        assert sum(isinstance(outcome, Applied) for outcome in outcomes) == 1

    async def test_two_stores_of_one_process_exclude_each_other(self, store: LocalStore, root: Path) -> None:
        other = LocalStore(root)
        version = applied(await store.put("key", b"0", ABSENT))

        outcomes = await asyncio.gather(
            *(writer.put("key", b"1", Matches(version)) for _ in range(20) for writer in (store, other))
        )
        await other.close()

        assert sum(isinstance(outcome, Applied) for outcome in outcomes) == 1


def test_a_file_in_place_of_a_folder_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(NotADirectoryError):
        make_folder(f"{tmp_path}/file")
    make_folder(f"{tmp_path}/new/one")
    make_folder(f"{tmp_path}/new/one")
    assert (tmp_path / "new" / "one").is_dir()
