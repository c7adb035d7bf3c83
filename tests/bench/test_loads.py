"""What `make bench-loads` measures, of few loads."""

import asyncio

import pytest

from tools.bench.loads import STORES, load, measure, prepared, store_at


@pytest.mark.parametrize("kind", STORES)
async def test_a_load_is_measured_over_each_store(kind: str) -> None:
    assert await asyncio.wait_for(measure(kind, 2), 60) > 10


async def test_a_load_that_fails_is_no_measurement() -> None:
    store, url = store_at("memory", "")
    app = await prepared(store, url)
    for key in [each.key for each in (await store.list("main/")).entries]:
        await store.delete(key)

    with pytest.raises(AssertionError):
        await load(app, 1)
