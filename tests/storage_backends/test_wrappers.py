import asyncio
from collections.abc import Callable, Sequence

import pytest

from storage_backends import (
    ABSENT,
    ANY,
    Applied,
    Cursor,
    Deleted,
    Found,
    Matches,
    Missing,
    ObjectStore,
    Outcome,
    Page,
    StoreError,
    StoreUnavailable,
    Unchanged,
    Unknown,
    Version,
    When,
)
from storage_backends.memory import MemoryStore
from storage_backends.wrappers.measuring import Measurement
from storage_backends.wrappers.request import ObservedClock, RequestStore
from tests.storage_backends.contract import EveryVersionIsNew, StoreContract
from tools.support.wrapped_stores import CountingStore, DelayingStore


class TestCountingStore(StoreContract, EveryVersionIsNew):
    @pytest.fixture
    def store(self) -> CountingStore:
        return CountingStore(MemoryStore())


class TestDelayingStore(StoreContract, EveryVersionIsNew):
    @pytest.fixture
    def store(self) -> DelayingStore:
        return DelayingStore(MemoryStore(), 0.0001)


class TestRequestStore(StoreContract, EveryVersionIsNew):
    @pytest.fixture
    def store(self) -> RequestStore:
        return RequestStore(MemoryStore(), lambda: 60_000)


class TestRequestStoreWithAll(StoreContract, EveryVersionIsNew):
    @pytest.fixture
    def store(self) -> RequestStore:
        report: list[tuple[int, int, int]] = []
        return RequestStore(
            MemoryStore(),
            lambda: 60_000,
            clock=ObservedClock(lambda: 0, lambda *times: report.append(times)),
            measurement=Measurement(),
        )


class TestTimekeeping:
    async def test_every_answer_has_the_time_and_a_timeout_has_none(self) -> None:
        class Silent(MemoryStore):
            async def put(self, key: str, body: bytes, when: When) -> Outcome:
                return Unknown("silence") if key == "silent" else await super().put(key, body, when)

        machine_ms = iter(range(100))
        report: list[tuple[int, int, int]] = []
        store = RequestStore(
            Silent(lambda: 5_000),
            lambda: 1_000,
            clock=ObservedClock(lambda: next(machine_ms), lambda *times: report.append(times)),
        )
        await store.put("a", b"1", ABSENT)
        await store.put("a", b"1", ABSENT)
        await store.get("a")
        await store.get_range("a", 0, 1)
        await store.list("")
        await store.delete("a")
        await store.get("a")
        await store.put("silent", b"1", ANY)

        assert report == [(sent, sent + 1, 5_000) for sent in range(0, 14, 2)]


class TestCounting:
    @pytest.fixture
    def store(self) -> CountingStore:
        return CountingStore(MemoryStore())

    async def test_calls_and_bytes_are_counted_by_kind(self, store: CountingStore) -> None:
        with store.measure() as measured:
            await store.put("a", b"12345", ABSENT)
            await store.put("a", b"refused", ABSENT)
            await store.get("a")
            await store.get_range("a", 1, 2)
            await store.get("b")
            await store.list("prefix/")
            await store.delete("a")

        assert measured.log == [
            ("put", "a"),
            ("put", "a"),
            ("get", "a"),
            ("get", "a"),
            ("get", "b"),
            ("list", "prefix/"),
            ("delete", "a"),
        ]
        assert measured.by_kind == {"put": 2, "get": 3, "list": 1, "delete": 1}
        assert (measured.calls, measured.depth) == (7, 7)
        assert (measured.bytes_written, measured.bytes_read) == (12, 7)

    async def test_nothing_is_counted_outside(self, store: CountingStore) -> None:
        await store.get("a")
        with store.measure() as measured:
            pass
        await store.get("a")

        assert (measured.calls, measured.depth) == (0, 0)

    async def test_calls_beside_each_other_share_a_depth(self, store: CountingStore) -> None:
        with store.measure() as measured:
            await store.get("before")
            async with asyncio.TaskGroup() as beside:
                for number in range(5):
                    beside.create_task(store.put(f"{number}", b"", ABSENT))
            await asyncio.gather(store.get("after"), store.list(""))

        assert (measured.calls, measured.depth) == (8, 3)

    async def test_the_longest_chain_counts(self, store: CountingStore) -> None:
        async def chain(length: int) -> None:
            for number in range(length):
                await store.get(f"{length}/{number}")

        with store.measure() as measured:
            async with asyncio.TaskGroup() as beside:
                beside.create_task(chain(1))
                beside.create_task(chain(4))
                beside.create_task(chain(2))
            await store.get("after")

        assert (measured.calls, measured.depth) == (8, 5)

    async def test_a_call_that_ends_late_hides_no_chain(self) -> None:
        held = asyncio.Event()

        class Holding(MemoryStore):
            async def list(self, prefix: str, after: Cursor | None = None) -> Page:
                await held.wait()
                return await super().list(prefix, after)

        store = CountingStore(Holding())
        with store.measure() as measured:
            late = asyncio.create_task(store.list(""))
            for _ in range(3):
                await store.get("chain")
            held.set()
            await late
            await store.get("after")

        assert (measured.calls, measured.depth) == (5, 4)

    async def test_operations_beside_each_other_are_measured_apart(self, store: CountingStore) -> None:
        async def operation(calls: int) -> tuple[int, int, set[str]]:
            with store.measure() as measured:
                for _ in range(calls):
                    await asyncio.gather(*(store.get(f"of {calls}") for _ in range(3)))
            return measured.calls, measured.depth, {key for _, key in measured.log}

        assert await asyncio.gather(*(operation(calls) for calls in (1, 2, 3))) == [
            (3, 1, {"of 1"}),
            (6, 2, {"of 2"}),
            (9, 3, {"of 3"}),
        ]

    async def test_a_measurement_may_be_inside_another(self, store: CountingStore) -> None:
        with store.measure() as outer:
            await store.get("a")
            with store.measure() as inner:
                await store.get("b")

        assert (outer.calls, outer.depth) == (2, 2)
        assert (inner.calls, inner.depth) == (1, 1)

    async def test_each_store_counts_its_own(self, store: CountingStore) -> None:
        other = CountingStore(MemoryStore())
        with store.measure() as measured, other.measure() as others:
            await store.get("a")
            await other.get("b")
            await other.get("c")

        assert measured.log == [("get", "a")]
        assert others.log == [("get", "b"), ("get", "c")]

    async def test_failed_calls_count(self, store: CountingStore) -> None:
        with store.measure() as measured:
            for _ in range(2):
                with pytest.raises(StoreError):
                    await store.get("")

        assert (measured.calls, measured.depth) == (2, 2)


class Stuck(MemoryStore):
    """Carries out the call, and then never answers."""

    async def get(self, key: str, if_changed_from: Version | None = None) -> Found | Unchanged | Missing:
        answer = await super().get(key, if_changed_from)
        await asyncio.Event().wait()
        return answer

    async def put(self, key: str, body: bytes, when: When) -> Outcome:
        outcome = await super().put(key, body, when)
        await asyncio.Event().wait()
        return outcome

    async def delete_many(self, keys: Sequence[str]) -> Deleted:
        deleted = await super().delete_many(keys)
        await asyncio.Event().wait()
        return deleted


class Failing(MemoryStore):
    """Fails with a TimeoutError of its own."""

    async def get(self, key: str, if_changed_from: Version | None = None) -> Found:
        raise TimeoutError("not the deadline's")

    async def put(self, key: str, body: bytes, when: When) -> Outcome:
        raise TimeoutError("not the deadline's")


class TestDeadline:
    """The deadline is in 20 ms where it is to pass: `asyncio.timeout` knows no other clock than the real one."""

    @pytest.fixture
    def stuck(self) -> Stuck:
        return Stuck()

    @pytest.mark.parametrize(
        "call",
        [
            lambda store: store.get("key"),
            lambda store: store.get_range("key", 0, 1),
            lambda store: store.put("key", b"", ANY),
            lambda store: store.delete("key"),
            lambda store: store.delete_many(["key"]),
            lambda store: store.list(""),
        ],
    )
    @pytest.mark.parametrize("late_ms", [0, 1, 10**9])
    async def test_nothing_begins_after_the_deadline(self, call: Callable[[ObjectStore], object], late_ms: int) -> None:
        counting = CountingStore(MemoryStore())
        with counting.measure() as measured, pytest.raises(StoreUnavailable, match="deadline"):
            await call(RequestStore(counting, lambda: -late_ms))  # type: ignore[misc]

        assert measured.calls == 0

    async def test_a_read_that_takes_longer_is_unavailable(self, stuck: Stuck) -> None:
        with pytest.raises(StoreUnavailable, match="deadline"):
            await RequestStore(stuck, lambda: 20).get("key")

    async def test_a_write_that_takes_longer_is_unknown_for_it_may_have_landed(self, stuck: Stuck) -> None:
        outcome = await RequestStore(stuck, lambda: 20).put("key", b"", ABSENT)

        assert outcome == Unknown("the request's deadline has passed")
        assert stuck.keys() == ["key"]

    async def test_of_a_deletion_of_many_that_takes_longer_each_key_is_unknown(self, stuck: Stuck) -> None:
        deleted = await RequestStore(stuck, lambda: 20).delete_many(["a", "b"])

        assert deleted == Deleted(dict.fromkeys(["a", "b"], Unknown("the request's deadline has passed")), None)

    async def test_a_call_that_was_cut_off_is_measured_as_cancelled_and_others_by_their_answers(
        self, stuck: Stuck
    ) -> None:
        measurement = Measurement()
        with pytest.raises(StoreUnavailable, match="deadline"):
            await RequestStore(stuck, lambda: 20, measurement=measurement).get("key")
        store = RequestStore(MemoryStore(), lambda: 60_000, measurement=measurement)
        await store.put("key", b"12", ABSENT)
        await store.get("key")
        with pytest.raises(TimeoutError):
            await RequestStore(Failing(), lambda: 60_000, measurement=measurement).get("key")

        outcomes = [call.outcome for call in measurement.trace]
        assert outcomes == ["CallTimedOut", "Applied", "Found", "TimeoutError"]
        assert (measurement.bytes_written, measurement.bytes_read) == (2, 2)

    async def test_the_time_that_is_left_is_read_before_every_call(self) -> None:
        left_ms = 1_000
        store = RequestStore(MemoryStore(), lambda: left_ms)
        version = await store.put("key", b"", ABSENT)
        assert isinstance(version, Applied)
        left_ms = -10_000_000  # the machine slept

        with pytest.raises(StoreUnavailable, match="deadline"):
            await store.put("key", b"late", Matches(version.version))

    async def test_another_timeout_is_not_taken_for_the_deadline(self) -> None:
        store = RequestStore(Failing(), lambda: 60_000)
        with pytest.raises(TimeoutError, match="not the deadline's"):
            await store.get("key")
        with pytest.raises(TimeoutError, match="not the deadline's"):
            await store.put("key", b"", ANY)

    async def test_cancelling_is_not_taken_for_the_deadline(self, stuck: Stuck) -> None:
        call = asyncio.create_task(RequestStore(stuck, lambda: 60_000).get("key"))
        await asyncio.sleep(0)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

    async def test_a_request_does_not_close_the_store(self) -> None:
        class ClosedStore(MemoryStore):
            async def close(self) -> None:
                raise AssertionError("the store outlives the request")

        await RequestStore(ClosedStore(), lambda: 1).close()


async def test_a_delay_comes_before_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    delays: list[float] = []

    async def sleep(seconds: float) -> None:
        delays.append(seconds)

    inner = CountingStore(MemoryStore())
    monkeypatch.setattr("tools.support.wrapped_stores.asyncio.sleep", sleep)
    store = DelayingStore(inner, 0.5)
    await store.get("key")

    assert delays[0] == 0.5
