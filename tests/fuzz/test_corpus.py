"""Every hostile request of the corpus, at a catalog in memory and at a server."""

from collections.abc import Callable

import pytest

from tests.fuzz.campaign import Tally, exchange, in_memory
from tests.fuzz.checks import audit
from tests.fuzz.corpus import Entry, entries
from tests.fuzz.services import FuzzedService, InMemoryService, Request

ENTRIES = [*entries()]


@pytest.fixture(scope="module")
def fresh() -> Callable[[], InMemoryService]:
    """Catalogs with tables, views and namespaces in them."""
    return in_memory()


async def page_token(service: FuzzedService) -> str:
    """A token of the tables in `db`."""
    first = await service.send(Request("", "GET", f"{service.address.namespaces}/db/tables?pageSize=1&pageToken="))
    token = first.json["next-page-token"]
    assert isinstance(token, str)
    return token


def test_entries_are_named_and_say_why() -> None:
    assert len({entry.name for entry in ENTRIES}) == len(ENTRIES)
    assert all(entry.why and entry.statuses for entry in ENTRIES)
    failed = {entry.name for entry in ENTRIES if any(status >= 500 for status in entry.statuses)}
    assert failed == {"headers: an idempotency key of 1970 on something new"}, "the outcome of that one is unknown"


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
async def test_a_hostile_request_is_answered_as_it_should(entry: Entry, fresh: Callable[[], InMemoryService]) -> None:
    service = fresh()
    request = entry.request(service.address, await page_token(service))

    answer, changed = await exchange(service, request, Tally())

    assert answer.status in entry.statuses, (entry.why, answer.body[:500])
    if changed:
        await audit(service)
