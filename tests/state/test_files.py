"""Metadata files are read and unpacked up to a limit, and never allocated beyond it."""

import gzip
import tracemalloc
import zlib
from asyncio import TaskGroup, timeout
from random import Random
from threading import get_ident
from traceback import walk_tb

import pytest

from arco_catalog.iceberg.errors import BadRequest, MetadataTooLarge, NotFound
from arco_catalog.iceberg.json import JsonObject, JsonValue, count_values, dumps
from arco_catalog.iceberg.parsing import UnreadableMetadata
from arco_catalog.state import files as module
from arco_catalog.state.access import Caches, State
from arco_catalog.state.cache import ByteCache
from arco_catalog.state.files import (
    FIRST_BYTES,
    MAX_MEMBERS,
    PACKED_PART_BYTES,
    UNPACKED_PART_BYTES,
    Files,
    Mount,
    unpack,
)
from arco_catalog.state.locations import Location
from arco_catalog.state.memory import (
    FILE_WEIGHT,
    MAX_METADATA_BYTES,
    PARSED_WEIGHT,
    VALUE_BYTES,
    VALUES_COUNTED_FROM_BYTES,
    Memory,
    OutOfMemory,
    background_memory,
)
from arco_catalog.state.paths import Paths
from storage_backends import ABSENT
from storage_backends.memory import MemoryStore
from tests.support.fake_runtime import FakeRuntime

MB = 1 << 20
MAX_BYTES = 4 * MB
CONFIRMED_MS = 60_000
FILE = "memory:///t/1.metadata.json"


class Shelf:
    """Files of one request after the other over one store."""

    def __init__(self, limit: int = 256 * MB, root: str = "memory:///") -> None:
        self.root = root
        self.runtime = FakeRuntime()
        self.store = MemoryStore()
        self.memory = Memory(limit, timeout_seconds=0)
        self.hold = self.memory.hold()
        self.cache: ByteCache[str, object] = ByteCache(100 * MB)

    async def put(self, body: bytes) -> None:
        await self.store.put("t/1.metadata.json", body, ABSENT)

    def files(self) -> Files:
        self.hold.close()
        self.hold = self.memory.hold()
        state = State(self.store, Paths("wh"), Caches.of(MB), self.runtime)
        mounts = [Mount(Location.parse(self.root), self.store)]
        return Files(mounts, self.cache, state, self.runtime, MAX_BYTES, self.hold, CONFIRMED_MS)  # type: ignore[arg-type]


def zeros_packed(megabytes: int) -> bytes:
    packer = zlib.compressobj(wbits=31)
    return b"".join(packer.compress(bytes(MB)) for _ in range(megabytes)) + packer.flush()


@pytest.mark.parametrize("size", [0, 10, FIRST_BYTES, FIRST_BYTES + 1, MAX_BYTES])
@pytest.mark.parametrize("packed", [False, True])
async def test_a_file_up_to_the_limit_is_read(size: int, packed: bool) -> None:
    shelf = Shelf()
    body = b"x" * size
    await shelf.put(gzip.compress(body) if packed else body)

    assert await shelf.files().read(FILE) == body
    assert shelf.memory.used == FILE_WEIGHT * size
    assert await shelf.files().read(FILE) == body
    assert shelf.memory.used == FILE_WEIGHT * size
    shelf.hold.close()
    assert shelf.memory.used == 0


@pytest.mark.parametrize("packed", [False, True])
async def test_a_file_beyond_the_limit_is_refused_with_its_name_and_the_limit(packed: bool) -> None:
    shelf = Shelf()
    body = b"x" * (MAX_BYTES + 1)
    await shelf.put(gzip.compress(body) if packed else body)

    with pytest.raises(MetadataTooLarge) as refused:
        await shelf.files().read(FILE)
    assert FILE in refused.value.message
    assert f"{MAX_BYTES:,} bytes" in refused.value.message


async def test_a_file_whose_end_lies_about_its_size_is_refused_too() -> None:
    shelf = Shelf()
    await shelf.put(gzip.compress(bytes(MAX_BYTES + 1)) + gzip.compress(b"x"))

    with pytest.raises(MetadataTooLarge):
        await shelf.files().read(FILE)


async def test_a_file_in_several_members_is_one() -> None:
    shelf = Shelf()
    await shelf.put(gzip.compress(b"a" * 3 * MB) + gzip.compress(b"b") + bytes(512))

    assert await shelf.files().read(FILE) == b"a" * 3 * MB + b"b"


@pytest.mark.parametrize("spoil", [lambda packed: packed[:-5], lambda packed: packed[:20] + b"\xff" * 9 + packed[29:]])
async def test_a_spoilt_file_can_not_be_read(spoil: object) -> None:
    assert callable(spoil)
    shelf = Shelf()
    await shelf.put(spoil(gzip.compress(bytes(range(256)) * 100)))

    with pytest.raises(UnreadableMetadata, match="can't be unpacked"):
        await shelf.files().read(FILE)


async def test_a_file_of_many_members_is_refused_before_it_takes_long() -> None:
    """What lies behind a member is copied: the time for all members would grow with the square of their number."""
    member = gzip.compress(b"", mtime=0)
    shelf = Shelf()
    await shelf.put(member * (MAX_MEMBERS - 1) + gzip.compress(b"a") + bytes(512))
    assert await shelf.files().read(FILE) == b"a"

    shelf = Shelf()
    await shelf.put(member * 20 * MAX_MEMBERS)
    with pytest.raises(UnreadableMetadata, match="more than 1,000 gzip members"):
        await shelf.files().read(FILE)


PARTS = UNPACKED_PART_BYTES, PACKED_PART_BYTES


@pytest.mark.parametrize("size", [0, 1, *PARTS, *(part + 1 for part in PARTS), 3 * UNPACKED_PART_BYTES])
@pytest.mark.parametrize("unit", [b"a", Random(1).randbytes(PACKED_PART_BYTES + 1)], ids=["dense", "random"])
def test_a_file_is_unpacked_part_by_part(size: int, unit: bytes) -> None:
    body = (unit * (size // len(unit) + 1))[:size]
    raw = gzip.compress(body) + gzip.compress(unit) + bytes(9)

    assert unpack(raw, size + len(unit)) == body + unit
    assert unpack(raw, size + len(unit) - 1) is None
    for end in {1, 9, len(raw) // 3, len(raw) // 2} - {len(gzip.compress(body))}:
        with pytest.raises(EOFError):
            unpack(raw[:end], 10 * MB)


def test_no_step_of_unpacking_makes_more_than_a_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """zlib copies what it has unpacked under the interpreter lock, so a large part would make the event loop wait."""
    sizes: list[int] = []

    class Member:
        def __init__(self, wbits: int) -> None:
            self._real = decompressobj(wbits=wbits)

        def decompress(self, part: bytes, limit: int) -> bytes:
            unpacked = self._real.decompress(part, limit)
            sizes.append(max(len(part), len(unpacked)))
            return unpacked

        def __getattr__(self, name: str) -> object:
            return getattr(self._real, name)

    decompressobj = zlib.decompressobj
    monkeypatch.setattr(zlib, "decompressobj", Member)

    assert unpack(gzip.compress(bytes(20 * MB)), 20 * MB) == bytes(20 * MB)
    assert max(sizes) <= UNPACKED_PART_BYTES


def test_unpacking_stops_at_the_limit() -> None:
    raw = zeros_packed(64)
    tracemalloc.start()
    try:
        assert unpack(raw, MAX_BYTES) is None
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 3 * MAX_BYTES


async def test_a_file_for_which_there_is_no_memory_is_not_read() -> None:
    shelf = Shelf(16 * MB)
    await shelf.put(b"x" * MAX_BYTES)
    files = shelf.files()
    await shelf.hold.take(5 * MB)
    other = shelf.memory.hold()
    await other.take(5 * MB)

    with pytest.raises(OutOfMemory):
        await files.read(FILE)
    other.close()
    assert len(await files.read(FILE)) == MAX_BYTES


@pytest.mark.parametrize("location", ["memory:///t//1.metadata.json", f"{FILE}/"])
async def test_no_file_is_found_by_a_name_with_another_level(location: str) -> None:
    shelf = Shelf()
    await shelf.put(b"{}")
    file = Location.of_file(location)
    assert file is not None
    files = shelf.files()
    calls = [
        files.read(location),
        files.exists(location),
        files.begin_of(location, 1),
        files.has_size(file, 2),
        files.read_range(location, 0, 1),
        files.create(location, b"", packed=False),
        files.remove(location),
        files.remove_many([file]),
    ]
    for call in calls:
        with pytest.raises(BadRequest):
            await call
    assert await files.exists(FILE)


async def test_a_current_file_of_an_earlier_version_is_read_at_the_collapsed_key() -> None:
    shelf = Shelf()
    await shelf.put(b"{}")
    assert await shelf.files().read_current("memory:///t//1.metadata.json") == b"{}"


def snapshots(count: int) -> bytes:
    """Metadata of that many small snapshots."""
    return dumps({"snapshots": [{"snapshot-id": number} for number in range(count)], "properties": {"a": "b"}})


@pytest.mark.parametrize("packed", [False, True])
async def test_a_long_document_is_parsed_and_used_by_a_worker_thread(packed: bool) -> None:
    shelf = Shelf()
    body = snapshots(20_000)
    assert len(body) > VALUES_COUNTED_FROM_BYTES
    await shelf.put(gzip.compress(body) if packed else body)

    def use(document: JsonObject) -> tuple[int, JsonValue]:
        return get_ident(), document["properties"]

    thread, properties = await shelf.files().extract(FILE, use)

    assert thread != get_ident()
    assert properties == {"a": "b"}


@pytest.mark.parametrize(("size", "in_a_thread"), [(2 * VALUES_COUNTED_FROM_BYTES, False), (2 << 20, True)])
async def test_values_of_a_large_file_are_counted_in_the_event_loop_and_of_a_very_large_one_by_a_thread(
    size: int, in_a_thread: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted_in: list[int] = []

    def count(body: bytes) -> int:
        counted_in.append(get_ident())
        return count_values(body)

    monkeypatch.setattr(module, "count_values", count)

    await Shelf().files().parsed_bytes(FILE, b"[" * size)

    assert [each != get_ident() for each in counted_in] == [in_a_thread]


async def test_memory_of_a_document_is_taken_of_its_request_by_values() -> None:
    shelf = Shelf()
    body = b'{"x":[' + b"[]," * 100_000 + b"1]}"
    await shelf.put(body)
    files = shelf.files()

    used = await files.extract(FILE, lambda _: shelf.memory.used)

    assert used == FILE_WEIGHT * len(body) + VALUE_BYTES * count_values(body)
    assert used > PARSED_WEIGHT * len(body)
    assert background_memory().used == 0


async def test_memory_of_a_document_is_taken_of_all_background_work_where_there_is_no_request() -> None:
    shelf = Shelf()
    body = snapshots(20_000)
    await shelf.put(body)
    files = shelf.files()
    shelf.hold.close()
    memory = background_memory()

    assert await files.extract(FILE, lambda _: memory.used) >= PARSED_WEIGHT * len(body)
    assert memory.used == 0


async def test_values_of_a_cached_file_are_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    shelf = Shelf()
    body = snapshots(20_000)
    await shelf.put(body)
    counted: list[int] = []

    def count(data: bytes) -> int:
        counted.append(len(data))
        return count_values(data)

    monkeypatch.setattr(module, "count_values", count)
    for _ in range(3):
        files = shelf.files()
        read = await files.read(FILE)
        assert await files.parsed_bytes(FILE, read) == VALUE_BYTES * count_values(body)
    assert counted == [len(body)]


@pytest.mark.parametrize("packed", [False, True])
async def test_a_refusal_does_not_keep_the_file(packed: bool) -> None:
    """A refusal may live on in a cycle with its traceback, until the garbage collector runs."""
    shelf = Shelf()
    body = b'{"x":[' + b"[]," * 1_000_000 + b"1]}"
    await shelf.put(gzip.compress(body) if packed else body)

    with pytest.raises(MetadataTooLarge, match="values") as refused:
        await shelf.files().read(FILE)

    error: BaseException | None = refused.value
    while error is not None:
        for frame, _ in walk_tb(error.__traceback__):
            if "shelf" not in frame.f_locals:  # all but the test's own
                assert not [value for value in frame.f_locals.values() if isinstance(value, bytes) and len(value) > MB]
        error = error.__cause__ or error.__context__


async def test_a_file_that_the_catalog_wrote_is_read_from_memory_until_its_confirmation_is_too_old() -> None:
    shelf = Shelf()
    await shelf.put(b"{}")
    await shelf.files().read_written(FILE)
    await shelf.store.delete("t/1.metadata.json")
    shelf.runtime.ms += CONFIRMED_MS - 1
    assert await shelf.files().read_written(FILE) == b"{}"

    shelf.runtime.ms += 1
    with pytest.raises(NotFound):
        await shelf.files().read_written(FILE)


async def test_each_confirmation_counts_from_when_it_was_requested() -> None:
    shelf = Shelf()
    await shelf.put(b"{}")
    for _ in range(2):
        await shelf.files().read(FILE)
        shelf.runtime.ms += CONFIRMED_MS - 1
    await shelf.store.delete("t/1.metadata.json")
    assert await shelf.files().read_written(FILE) == b"{}"


async def test_a_file_of_others_is_confirmed_each_time() -> None:
    shelf = Shelf()
    await shelf.put(b"{}")
    await shelf.files().read_current(FILE)
    await shelf.store.delete("t/1.metadata.json")
    with pytest.raises(NotFound):
        await shelf.files().read_current(FILE)


async def test_a_local_file_is_confirmed_each_time() -> None:
    shelf = Shelf(root="file:///")
    await shelf.put(b"{}")
    await shelf.files().read_written("file:///t/1.metadata.json")
    await shelf.store.delete("t/1.metadata.json")
    with pytest.raises(NotFound):
        await shelf.files().read_written("file:///t/1.metadata.json")


class TwoClocks(FakeRuntime):
    """A machine whose clock since boot differs from its wall clock by `behind_ms`."""

    behind_ms = 0

    def boot_ms(self) -> int:
        return self.ms - self.behind_ms


@pytest.mark.parametrize(
    ("passed_ms", "boot_passed_ms", "is_confirmed"),
    [(CONFIRMED_MS, 0, False), (0, CONFIRMED_MS, False), (-1, 1, False), (1, 1, True)],
    ids=["a frozen function", "a wall clock set back as far as time went on", "a wall clock set back", "neither"],
)
async def test_a_confirmation_is_young_by_both_clocks(passed_ms: int, boot_passed_ms: int, is_confirmed: bool) -> None:
    shelf = Shelf()
    shelf.runtime = clocks = TwoClocks()
    await shelf.put(b"{}")
    await shelf.files().read_written(FILE)
    await shelf.store.delete("t/1.metadata.json")
    clocks.ms += passed_ms
    clocks.behind_ms = passed_ms - boot_passed_ms
    if is_confirmed:
        assert await shelf.files().read_written(FILE) == b"{}"
        return
    with pytest.raises(NotFound):
        await shelf.files().read_written(FILE)


async def test_large_files_of_tasks_do_not_wait_for_each_other_in_vain() -> None:
    """Each is read with as much memory as there is, and keeps what its bytes take while its document is parsed."""
    shelf = Shelf()
    document: JsonObject = {"last-updated-ms": 1, "x": "y" * (2 * MB)}
    names = [f"t/{number}.metadata.json" for number in range(8)]
    for name in names:
        await shelf.store.put(name, dumps(document), ABSENT)
    state = State(shelf.store, Paths("wh"), Caches.of(MB), shelf.runtime)
    mounts = [Mount(Location.parse(shelf.root), shelf.store)]
    for cached in (False, True):
        async with timeout(20), TaskGroup() as group:
            for name in names:
                files = Files(mounts, shelf.cache, state, shelf.runtime, MAX_METADATA_BYTES)  # type: ignore[arg-type]
                group.create_task(files.extract(f"memory:///{name}", lambda found: found["last-updated-ms"]))
        assert background_memory().used == 0, cached
