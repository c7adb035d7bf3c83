"""Page tokens that were tampered with: refused, or good for a page of the same listing, and never a failure."""

import asyncio
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz.campaign import bounds, in_memory
from tests.fuzz.checks import check_answer
from tests.fuzz.corpus import label_of
from tests.fuzz.services import Address, InMemoryService, Request

LISTINGS = ["", "?parent=db", "/db/tables", "/db/views"]


@pytest.fixture(scope="module")
def fresh() -> Callable[[], InMemoryService]:
    """Catalogs with tables, views and namespaces in them."""
    return in_memory()


@st.composite
def tampered(draw: st.DrawFn, token: str) -> str:
    """The token with letters changed, added or cut off."""
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(token)))
        head, tail, letter = token[:at], token[at:], draw(st.sampled_from("ABCXYZabcxyz0189-_=.%+"))
        token = draw(st.sampled_from([head, tail, head + letter + tail[1:], head + letter + tail, tail + head]))
    return token


def page(address: Address, listing: str, token: str) -> Request:
    """One page of a listing."""
    mark = "&" if "?" in listing else "?"
    target = f"{address.namespaces}{listing}{mark}pageSize=1&pageToken={token}"
    return Request(label_of("GET", target), "GET", target)


@pytest.mark.parametrize("listing", LISTINGS)
def test_a_token_that_was_tampered_with_is_good_for_its_own_listing_or_for_none(
    listing: str, fresh: Callable[[], InMemoryService]
) -> None:
    async def visit(service: InMemoryService, data: st.DataObject) -> None:
        first = await service.send(page(service.address, "/db/tables", ""))
        request = page(service.address, listing, data.draw(tampered(str(first.json["next-page-token"]))))
        answer = await service.send(request)
        check_answer(request, answer, 0)
        assert answer.status in (200, 400)
        for each in answer.json.get("identifiers") or []:  # type: ignore[union-attr]
            assert isinstance(each, dict)
            assert each["namespace"] == ["db"]

    @bounds(60)
    @given(data=st.data())
    def tamper(data: st.DataObject) -> None:
        asyncio.run(visit(fresh(), data))

    tamper()
