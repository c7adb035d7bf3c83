"""What every store must do. A backend's test subclasses `StoreContract` and gives a `store` fixture.

`ConditionalContract` and `ConditionalDeleteContract` are the parts that a store which ignores conditions fails, test by
test: `test_negative_control.py` runs each of them on such stores and expects each to fail. A server without conditional
DELETE, which no protocol needs, passes `WriteContract`.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence

import pytest

from storage_backends import (
    ABSENT,
    ANY,
    MAX_DELETED,
    Applied,
    Cursor,
    Found,
    InvalidKey,
    Listed,
    Matches,
    Missing,
    ObjectStore,
    Outcome,
    PreconditionFailed,
    Unchanged,
    Version,
)
from storage_backends.conformance.check import Grade
from storage_backends.conformance.examine import examine
from storage_backends.validation import PAGE_SIZE
from tests.storage_backends.counter import increment

ODD_KEYS = [
    "a key with spaces",
    "100%",
    "%2F/%20",
    "a+b",
    "#fragment?query=1&more",
    "naïve/日本語/🧊.json",
    "quote'and\"double",
    "back\\slash",
    "semi;colon=equals,comma@at:colon",
    "tilde~.-_!*()",
    "...",
    "e\u0301",
    "<angle>",
]
INVALID_KEYS = [
    "",
    "/",
    "/a",
    "a/",
    "a//b",
    ".",
    "..",
    "a/../b",
    "./a",
    "a/.",
    "a\x00b",
    "a\nb",
    "a\x7f",
    "\udcff",
    "k" * 1025,
]
SHORT_PAGE = 50
"""Of a listing, where whole pages are tried by another client of the same server, or the server is a fake."""
NEVER = Version('"00000000000000000000000000000000"')


def applied(outcome: Outcome) -> Version:
    """The version that a write made, which must have been applied."""
    assert isinstance(outcome, Applied)
    return outcome.version


async def found(store: ObjectStore, key: str) -> Found:
    """The object, which must be there."""
    answer = await store.get(key)
    assert isinstance(answer, Found)
    return answer


async def pages(store: ObjectStore, prefix: str) -> AsyncIterator[list[Listed]]:
    """The pages of a listing, at most 100 of them. One that says so is in the order of keys."""
    after: Cursor | None = None
    last = ""
    for _ in range(100):
        page = await store.list(prefix, after)
        keys = [last, *(entry.key for entry in page.entries)]
        assert not page.in_order or keys == sorted(keys)
        last = keys[-1]
        yield list(page.entries)
        after = page.after
        if after is None:
            return
    raise AssertionError("the listing does not end")


async def listed(store: ObjectStore, prefix: str = "") -> list[Listed]:
    """The whole listing."""
    return [entry async for page in pages(store, prefix) for entry in page]


class ConditionalContract:
    """Create-only, compare-and-swap and what follows from them."""

    async def test_a_second_create_is_refused(self, store: ObjectStore) -> None:
        first = applied(await store.put("key", b"first", ABSENT))

        second = await store.put("key", b"second", ABSENT)

        assert isinstance(second, PreconditionFailed)
        assert second.version in (None, first)
        assert (await found(store, "key")).body == b"first"

    async def test_a_write_on_a_stale_version_is_refused(self, store: ObjectStore) -> None:
        stale = applied(await store.put("key", b"one", ABSENT))
        current = applied(await store.put("key", b"two", Matches(stale)))

        refused = await store.put("key", b"three", Matches(stale))

        assert isinstance(refused, PreconditionFailed)
        assert refused.version in (None, current)
        assert (await found(store, "key")).body == b"two"

    async def test_a_write_that_must_match_does_not_create(self, store: ObjectStore) -> None:
        refused = await store.put("folder/key", b"body", Matches(NEVER))

        assert isinstance(refused, PreconditionFailed)
        assert refused.version is None
        assert isinstance(await store.get("folder/key"), Missing)

    async def test_a_get_of_what_one_holds_is_unchanged(self, store: ObjectStore) -> None:
        version = applied(await store.put("key", b"one", ABSENT))

        assert isinstance(await store.get("key", version), Unchanged)

    async def test_a_deleted_version_never_matches_again(self, store: ObjectStore) -> None:
        version = applied(await store.put("key", b"one", ABSENT))
        applied(await store.delete("key", Matches(version)))
        applied(await store.put("key", b"another", ABSENT))

        assert isinstance(await store.put("key", b"late", Matches(version)), PreconditionFailed)
        assert isinstance(await store.get("key", version), Found)
        assert (await found(store, "key")).body == b"another"

    async def test_of_many_creators_one_wins(self, store: ObjectStore) -> None:
        for round_ in range(5):
            key = f"race/{round_}"
            outcomes = await asyncio.gather(*(store.put(key, b"%d" % writer, ABSENT) for writer in range(16)))

            winners = [writer for writer, outcome in enumerate(outcomes) if isinstance(outcome, Applied)]
            assert len(winners) == 1
            assert sum(isinstance(outcome, PreconditionFailed) for outcome in outcomes) == 15
            assert (await found(store, key)).body == b"%d" % winners[0]

    async def test_racing_increments_lose_nothing(self, store: ObjectStore) -> None:
        applied(await store.put("counter", b"0", ABSENT))

        async def work() -> None:
            for _ in range(10):
                await increment(store, "counter")

        async with asyncio.TaskGroup() as workers:
            for _ in range(6):
                workers.create_task(work())

        assert (await found(store, "counter")).body == b"60"


class ConditionalDeleteContract:
    """Deletions under a condition: a capability, which some servers lack (`Verdict.conditional_delete`)."""

    async def test_a_delete_on_a_stale_version_is_refused(self, store: ObjectStore) -> None:
        stale = applied(await store.put("key", b"one", ABSENT))
        applied(await store.put("key", b"two", ANY))

        assert isinstance(await store.delete("key", Matches(stale)), PreconditionFailed)
        assert (await found(store, "key")).body == b"two"

    async def test_a_delete_that_must_match_is_refused_where_nothing_is(self, store: ObjectStore) -> None:
        refused = await store.delete("folder/key", Matches(NEVER))

        assert isinstance(refused, PreconditionFailed)
        assert refused.version is None

    async def test_a_deleted_version_is_not_deleted_again(self, store: ObjectStore) -> None:
        version = applied(await store.put("key", b"one", ABSENT))
        applied(await store.delete("key", Matches(version)))
        applied(await store.put("key", b"another", ABSENT))

        assert isinstance(await store.delete("key", Matches(version)), PreconditionFailed)
        assert (await found(store, "key")).body == b"another"

    async def test_of_a_replacement_and_a_deletion_one_wins(self, store: ObjectStore) -> None:
        for round_ in range(5):
            key = f"race/{round_}"
            version = applied(await store.put(key, b"old", ABSENT))

            replaced, deleted = await asyncio.gather(
                store.put(key, b"new", Matches(version)), store.delete(key, Matches(version))
            )

            assert {type(replaced), type(deleted)} == {Applied, PreconditionFailed}
            assert isinstance(await store.get(key), Found) == isinstance(replaced, Applied)


class WriteContract(ConditionalContract):
    """All that the catalog rests on."""

    EARLY_MS = 1_000
    """By how much an answer's time may seem early: one second for a store with a clock of seconds. The clocks here are
    one."""
    faults: Sequence[str] = ()
    """Checks of `arco doctor` that such a store cannot pass."""

    async def test_what_was_never_written_is_missing(self, store: ObjectStore) -> None:
        assert isinstance(await store.get("nothing/here"), Missing)
        assert isinstance(await store.get("nothing/here", NEVER), Missing)
        assert isinstance(await store.get_range("nothing/here", 0, 1), Missing)
        assert await listed(store) == []
        assert await listed(store, "nothing/") == []

    async def test_what_was_written_is_read_and_listed(self, store: ObjectStore) -> None:
        version = applied(await store.put("folder/key", b"body", ABSENT))

        answer = await found(store, "folder/key")
        [entry] = await listed(store)

        assert (answer.body, answer.version) == (b"body", version)
        assert (entry.key, entry.version, entry.size) == ("folder/key", version, 4)
        assert abs(entry.written_ms - answer.written_ms) < 1_000

    async def test_a_matching_write_replaces(self, store: ObjectStore) -> None:
        first = applied(await store.put("key", b"one", ABSENT))
        second = applied(await store.put("key", b"two", Matches(first)))

        answer = await found(store, "key")

        assert second != first
        assert (answer.body, answer.version) == (b"two", second)

    async def test_an_unconditional_write_creates_and_replaces(self, store: ObjectStore) -> None:
        first = applied(await store.put("key", b"one", ANY))
        second = applied(await store.put("key", b"two", ANY))

        assert first != second
        assert (await found(store, "key")).body == b"two"

    async def test_a_get_sees_what_has_changed(self, store: ObjectStore) -> None:
        first = applied(await store.put("key", b"one", ABSENT))
        second = applied(await store.put("key", b"two", Matches(first)))

        answer = await store.get("key", first)

        assert isinstance(answer, Found)
        assert (answer.body, answer.version) == (b"two", second)

    async def test_a_deletion_makes_room(self, store: ObjectStore) -> None:
        version = applied(await store.put("folder/key", b"one", ABSENT))

        assert applied(await store.delete("folder/key", Matches(version))) in ("", version)
        assert isinstance(await store.get("folder/key"), Missing)
        assert await listed(store) == []
        applied(await store.put("folder/key", b"two", ABSENT))
        assert (await found(store, "folder/key")).body == b"two"

    async def test_an_unconditional_deletion_may_find_nothing(self, store: ObjectStore) -> None:
        applied(await store.put("key", b"one", ABSENT))

        applied(await store.delete("key"))
        applied(await store.delete("key"))
        applied(await store.delete("nothing/here"))

        assert isinstance(await store.get("key"), Missing)

    async def test_a_create_beside_a_deletion_of_all_that_is_beside_it_is_there(self, store: ObjectStore) -> None:
        """On a store of files the deletion leaves an empty folder."""

        async def come_and_go(name: str) -> None:
            for number in range(20):
                key = f"a/b/{number}/{name}"
                applied(await store.put(key, name.encode(), ABSENT))
                assert (await found(store, key)).body == name.encode()
                if name == "many":
                    assert not (await store.delete_many([key])).left
                else:
                    applied(await store.delete(key, ANY))

        await asyncio.gather(*(come_and_go(name) for name in ("one", "two", "three", "many")))
        assert await listed(store, "a/") == []

    async def test_a_deletion_cannot_ask_for_absence(self, store: ObjectStore) -> None:
        with pytest.raises(ValueError, match="ABSENT"):
            await store.delete("key", ABSENT)

    async def test_many_are_deleted_at_once_also_what_is_missing(self, store: ObjectStore) -> None:
        kept = {"many/kept", "many-kept"}
        names = [key for key in ODD_KEYS if "\\" not in key]  # which Azure takes for slashes
        keys = [*(f"many/{number % 3}/{number}" for number in range(270)), *(f"many/{name}" for name in names)]
        limit = asyncio.Semaphore(32)

        async def create(key: str) -> None:
            async with limit:
                applied(await store.put(key, key.encode(), ABSENT))

        async with asyncio.TaskGroup() as writers:
            for key in (*keys, *kept):
                writers.create_task(create(key))

        first = await store.delete_many([*keys[:140], "many/nothing", "nothing/here"])
        second = await store.delete_many(keys)

        assert (first.left, second.left) == ({}, {})
        assert first.now_ms is not None
        assert {entry.key for entry in await listed(store)} == kept

    async def test_a_deletion_of_many_has_bounds(self, store: ObjectStore) -> None:
        applied(await store.put("key", b"", ABSENT))

        with pytest.raises(ValueError, match="1000"):
            await store.delete_many([f"{number}" for number in range(MAX_DELETED + 1)])
        with pytest.raises(InvalidKey):
            await store.delete_many(["key", "a//b"])

        assert (await store.delete_many([])).left == {}
        assert isinstance(await store.get("key"), Found)

    async def test_with_bodies_that_differ_no_version_repeats(self, store: ObjectStore) -> None:
        versions = []
        for round_ in range(5):
            versions.append(applied(await store.put("key", b"created %d" % round_, ABSENT)))
            versions.append(applied(await store.put("key", b"replaced %d" % round_, Matches(versions[-1]))))
            versions.append(applied(await store.put("key", b"overwritten %d" % round_, ANY)))
            applied(await store.delete("key", Matches(versions[-1])))

        assert len(set(versions)) == len(versions)

    async def test_ranges_are_cut_at_the_end(self, store: ObjectStore) -> None:
        version = applied(await store.put("key", b"0123456789", ABSENT))

        async def cut(start: int, length: int) -> bytes:
            answer = await store.get_range("key", start, length)
            assert isinstance(answer, Found)
            assert answer.version == version
            return answer.body

        assert await cut(0, 10) == b"0123456789"
        assert await cut(3, 4) == b"3456"
        assert await cut(8, 100) == b"89"
        assert await cut(10, 1) == b""
        assert await cut(99, 5) == b""

    async def test_a_range_has_a_place_and_a_length(self, store: ObjectStore) -> None:
        with pytest.raises(ValueError, match="range"):
            await store.get_range("key", -1, 5)
        with pytest.raises(ValueError, match="range"):
            await store.get_range("key", 0, 0)

    @pytest.mark.parametrize("key", ODD_KEYS)
    async def test_odd_keys_are_keys(self, store: ObjectStore, key: str) -> None:
        version = applied(await store.put(key, b"one", ABSENT))

        assert isinstance(await store.put(key, b"two", ABSENT), PreconditionFailed)
        assert (await found(store, key)).body == b"one"
        assert [entry.key for entry in await listed(store)] == [key]
        assert [entry.key for entry in await listed(store, key)] == [key]
        applied(await store.delete(key, Matches(version)))
        assert await listed(store) == []

    @pytest.mark.parametrize("key", INVALID_KEYS)
    async def test_what_cannot_be_a_key_is_refused(self, store: ObjectStore, key: str) -> None:
        with pytest.raises(InvalidKey):
            await store.get(key)
        with pytest.raises(InvalidKey):
            await store.get_range(key, 0, 1)
        with pytest.raises(InvalidKey):
            await store.put(key, b"body", ANY)
        with pytest.raises(InvalidKey):
            await store.delete(key)

    async def test_a_prefix_may_end_anywhere(self, store: ObjectStore) -> None:
        for key in ("a/b/1", "a/b/2", "a/bc", "a.b", "ab/c", "b"):
            applied(await store.put(key, b"", ABSENT))

        async def keys(prefix: str) -> list[str]:
            return sorted(entry.key for entry in await listed(store, prefix))

        assert await keys("") == ["a.b", "a/b/1", "a/b/2", "a/bc", "ab/c", "b"]
        assert await keys("a") == ["a.b", "a/b/1", "a/b/2", "a/bc", "ab/c"]
        assert await keys("a/") == ["a/b/1", "a/b/2", "a/bc"]
        assert await keys("a/b") == ["a/b/1", "a/b/2", "a/bc"]
        assert await keys("a/b/") == ["a/b/1", "a/b/2"]
        assert await keys("a/b/1") == ["a/b/1"]
        assert await keys("a/b/1/") == []
        assert await keys("/") == []

    async def test_nothing_is_below_a_prefix_that_no_key_has(self, store: ObjectStore) -> None:
        applied(await store.put("a/b", b"", ABSENT))

        assert await listed(store, "../") == []

    async def test_a_long_listing_comes_in_pages(self, store: ObjectStore) -> None:
        page_size: int = getattr(store, "page_size", PAGE_SIZE)
        keys = {f"many/{number % 7}/{number}" for number in range(page_size + 3)}
        limit = asyncio.Semaphore(32)

        async def create(key: str) -> None:
            async with limit:
                applied(await store.put(key, key.encode(), ABSENT))

        async with asyncio.TaskGroup() as writers:
            for key in keys:
                writers.create_task(create(key))
        applied(await store.put("other", b"", ABSENT))

        sizes, entries = [], []
        async for page in pages(store, "many/"):
            sizes.append(len(page))
            entries += page

        assert len(entries) == len(keys)
        assert {entry.key for entry in entries} == keys
        assert max(sizes) <= page_size
        assert len(sizes) > 1
        assert all(entry.size == len(entry.key) for entry in entries)

    async def test_an_empty_body_is_a_body(self, store: ObjectStore) -> None:
        version = applied(await store.put("key", b"", ABSENT))

        answer = await found(store, "key")

        assert (answer.body, answer.version) == (b"", version)
        assert isinstance(await store.put("key", b"", ABSENT), PreconditionFailed)

    async def test_a_large_body_stays_whole(self, store: ObjectStore) -> None:
        body = bytes(range(256)) * (8 * 1024 * 4)

        version = applied(await store.put("key", body, ABSENT))

        answer = await found(store, "key")
        assert answer.body == body
        assert answer.version == version
        part = await store.get_range("key", len(body) - 256, 1_000)
        assert isinstance(part, Found)
        assert part.body == bytes(range(256))

    async def test_every_answer_has_the_time(self, store: ObjectStore) -> None:
        before_ms = time.time_ns() // 1_000_000 - self.EARLY_MS
        version = applied(await store.put("key", b"one", ABSENT))

        answers = [
            await store.put("key", b"two", ABSENT),
            await store.get("key"),
            await store.get("key", version),
            await store.get_range("key", 0, 1),
            await store.list(""),
            await store.delete("key", Matches(NEVER)),
            await store.delete("key"),
            await store.get("key"),
        ]

        after_ms = time.time_ns() // 1_000_000
        for answer in answers:
            assert not hasattr(answer, "reason")
            assert before_ms <= answer.now_ms <= after_ms
            if isinstance(answer, Found):
                assert before_ms <= answer.written_ms <= after_ms

    async def test_a_cancelled_write_leaves_the_old_or_the_new(self, store: ObjectStore) -> None:
        old, new = b"old" * 100_000, b"new" * 100_000
        for ticks in range(12):
            applied(await store.put("key", old, ANY))
            write = asyncio.create_task(store.put("key", new, ANY))
            for _ in range(ticks):
                await asyncio.sleep(0)
            write.cancel()
            await asyncio.wait([write])

            assert (await found(store, "key")).body in (old, new)

    async def test_many_calls_beside_each_other_are_all_answered(self, store: ObjectStore) -> None:
        keys = [f"folder {number % 5}/{number}" for number in range(100)]

        await asyncio.gather(*(store.put(key, key.encode(), ABSENT) for key in keys))
        answers = await asyncio.gather(*(found(store, key) for key in keys))

        assert [answer.body for answer in answers] == [key.encode() for key in keys]

    async def test_the_checks_of_arco_doctor_find_no_fault(self, store: ObjectStore) -> None:
        examined = await examine(store, "_probe/contract")

        faults = [name for name, finding in examined.findings.items() if finding.grade is Grade.FAILED]
        assert faults == [*self.faults]
        assert examined.left_behind == []
        assert await listed(store) == []

    async def test_closing_twice_is_closing(self, store: ObjectStore) -> None:
        applied(await store.put("key", b"", ABSENT))

        await store.close()
        await store.close()


class StoreContract(WriteContract, ConditionalDeleteContract):
    """All of it."""


class EveryVersionIsNew:
    """For stores whose versions do not come from the body: not even equal bytes bring one back."""

    async def test_equal_bytes_get_another_version(self, store: ObjectStore) -> None:
        versions = []
        for _ in range(20):
            versions.append(applied(await store.put("key", b"same", ABSENT)))
            versions.append(applied(await store.put("key", b"same", Matches(versions[-1]))))
            versions.append(applied(await store.put("key", b"same", ANY)))
            applied(await store.delete("key", Matches(versions[-1])))

        assert len(set(versions)) == len(versions)

    async def test_equal_bytes_do_not_revive_a_version(self, store: ObjectStore) -> None:
        first = applied(await store.put("key", b"same", ABSENT))
        second = applied(await store.put("key", b"other", Matches(first)))
        applied(await store.put("key", b"same", Matches(second)))

        assert isinstance(await store.put("key", b"late", Matches(first)), PreconditionFailed)
        assert isinstance(await store.get("key", first), Found)
