"""How many objects a store holds after many days of commits, each with a collection."""

from arco_catalog.planning.upkeep_settings import DAY_MS
from tests.upkeep.collection.month import AFTERWARDS, Month


def objects(month: Month) -> int:
    """The number of objects of all kinds."""
    return sum(count for count, _ in month.sizes().values())


async def test_a_store_that_is_collected_every_day_stops_growing() -> None:
    month = Month(7 * DAY_MS)
    await month.begin()
    held = []
    for _ in range(24):
        await month.day(commits=4)
        held.append(objects(month))
    assert held[0] < held[5] < held[8]
    assert max(held[10:17]) == max(held[17:])


async def test_a_store_of_many_requests_shrinks_to_what_is_live_and_kept() -> None:
    month = Month(90 * DAY_MS)
    await month.begin()
    requests = 150
    await month.burst(requests)
    assert objects(month) > 5 * requests
    for days in AFTERWARDS:
        await month.pass_days(days)
    sizes = month.sizes()
    assert sizes["metadata"][0] == 11  # the current file, and the ten that its log keeps
    assert sizes["receipt"][0] == 1
    assert objects(month) < 30
