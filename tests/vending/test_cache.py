"""What was vended is remembered for half of its lifetime, in memory, and asked for once."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arco_catalog.vending.cache import CredentialCache, Credentials
from arco_catalog.vending.credential import StorageCredential
from tests.support.fake_runtime import FakeRuntime

LIFETIME_MS = 3_600_000


class Issuer:
    """Issues a new credential for each call, after it was let."""

    def __init__(self, runtime: FakeRuntime) -> None:
        self.runtime = runtime
        self.calls = 0
        self.failure: Exception | None = None
        self.let = asyncio.Event()
        self.let.set()

    async def issue(self) -> Credentials:
        self.calls += 1
        await self.let.wait()
        if self.failure is not None:
            raise self.failure
        secret = {"s3.session-token": f"token-{self.calls}"}
        return (StorageCredential("s3://b/t", secret, self.runtime.ms + LIFETIME_MS, "refresh"),)


async def token(cache: CredentialCache, issuer: Issuer, key: object = "k") -> str:
    return (await cache.get(key, issuer.issue))[0].config["s3.session-token"]


@given(ages=st.lists(st.integers(0, LIFETIME_MS), min_size=1, max_size=20))
async def test_nothing_is_handed_out_in_the_second_half_of_its_life(ages: list[int]) -> None:
    runtime = FakeRuntime()
    issuer, cache = Issuer(runtime), CredentialCache(runtime.now_ms)
    for age in ages:
        runtime.ms += age
        (credential,) = await cache.get("k", issuer.issue)
        assert (
            credential.expires_ms - runtime.ms > LIFETIME_MS // 2 or credential.expires_ms == runtime.ms + LIFETIME_MS
        )
    assert issuer.calls <= 1 + sum(ages) // (LIFETIME_MS // 2)


async def test_it_is_used_until_half_of_its_life_is_gone() -> None:
    runtime = FakeRuntime()
    issuer, cache = Issuer(runtime), CredentialCache(runtime.now_ms)

    assert await token(cache, issuer) == "token-1"
    runtime.ms += LIFETIME_MS // 2 - 1
    assert await token(cache, issuer) == "token-1"
    runtime.ms += 1
    assert await token(cache, issuer) == "token-2"


async def test_requests_at_the_same_time_share_one_look_up() -> None:
    runtime = FakeRuntime()
    issuer, cache = Issuer(runtime), CredentialCache(runtime.now_ms)
    issuer.let.clear()
    asked = [asyncio.create_task(token(cache, issuer)) for _ in range(50)]
    await asyncio.sleep(0)
    issuer.let.set()

    assert {*await asyncio.gather(*asked)} == {"token-1"}
    assert issuer.calls == 1


async def test_one_who_gives_up_takes_nothing_from_the_others() -> None:
    runtime = FakeRuntime()
    issuer, cache = Issuer(runtime), CredentialCache(runtime.now_ms)
    issuer.let.clear()
    first, second = (asyncio.create_task(token(cache, issuer)) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    issuer.let.set()

    assert await second == "token-1"
    with pytest.raises(asyncio.CancelledError):
        await first


async def test_a_failure_is_told_to_all_who_wait_and_not_remembered() -> None:
    runtime = FakeRuntime()
    issuer, cache = Issuer(runtime), CredentialCache(runtime.now_ms)
    issuer.failure = RuntimeError("refused")
    told = await asyncio.gather(*(token(cache, issuer) for _ in range(3)), return_exceptions=True)
    issuer.failure = None

    assert [str(error) for error in told] == ["refused"] * 3
    assert await token(cache, issuer) == "token-2"


async def test_it_holds_a_bounded_number_and_drops_the_one_used_longest_ago() -> None:
    runtime = FakeRuntime()
    issuer, cache = Issuer(runtime), CredentialCache(runtime.now_ms, size=2)
    for key in ("a", "b", "a", "c"):
        await token(cache, issuer, key)

    assert [await token(cache, issuer, key) for key in ("a", "c")] == ["token-1", "token-3"]
    assert await token(cache, issuer, "b") == "token-4"


async def test_that_there_are_none_is_remembered_for_a_minute() -> None:
    runtime = FakeRuntime()
    cache, calls = CredentialCache(runtime.now_ms), []

    async def none() -> Credentials:
        calls.append(1)
        return ()

    for later_ms in (0, 59_999, 1):
        runtime.ms += later_ms
        assert await cache.get("k", none) == ()
    assert len(calls) == 2


def test_a_look_up_that_another_event_loop_left_is_begun_again() -> None:
    runtime = FakeRuntime()
    cache = CredentialCache(runtime.now_ms)

    async def never() -> Credentials:
        await asyncio.Event().wait()
        return ()

    async def give_up() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(cache.get("k", never), 0.01)

    asyncio.run(give_up())
    assert asyncio.run(token(cache, Issuer(runtime))) == "token-1"
