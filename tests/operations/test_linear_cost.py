"""What operations do besides a table's own updates costs what the request is long; long work ends with its deadline."""

import asyncio
import gc
from collections.abc import Sequence
from functools import partial
from threading import get_ident

import pytest

from arco_catalog.http.names import decode_namespace
from arco_catalog.http.options import UNIT_SEPARATOR
from arco_catalog.http.query import Query
from arco_catalog.http.requests import Request
from arco_catalog.iceberg.errors import BadRequest, Unavailable
from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.operations.commit import commit_table
from arco_catalog.operations.create import create_table
from arco_catalog.operations.transaction import TableChange, commit_transaction
from arco_catalog.planning.reserved_locations import MAX_NAMED
from arco_catalog.protocol.catalog import Settings
from arco_catalog.state import worker_threads
from arco_catalog.state.memory import Hold
from tests.iceberg.counted import Text, assert_linear, steps_of
from tools.support.catalog_fixture import NS, CatalogFixture
from tools.support.request_bodies import schema, set_property

SIZES = (100, 200, 400)


def in_a_loop(fixture: CatalogFixture, changes: Sequence[TableChange]) -> None:
    async def work() -> None:
        with pytest.raises(BadRequest, match="only once"):
            await commit_transaction(fixture.session(), changes)

    asyncio.run(work())


def test_a_transaction_looks_for_tables_that_are_named_twice_once() -> None:
    costs = []
    for size in SIZES:
        fixture = CatalogFixture(settings=Settings("wh", max_transaction_tables=size))
        names = [Text(f"t{number % (size - 1)}") for number in range(size)]
        costs.append(steps_of(partial(in_a_loop, fixture, [(NS, name, {}) for name in names])))
    assert_linear(costs, "tables of a transaction")


async def test_more_tables_than_a_transaction_may_name_are_not_read(fixture: CatalogFixture) -> None:
    with pytest.raises(BadRequest, match="at most 100 tables, not 101"):
        await commit_transaction(fixture.session(), [(NS, "t", {})] * 101)


def headers(number: int) -> None:
    scope = {
        "type": "http",
        "method": "GET",
        "raw_path": b"/",
        "headers": [(b"x-many" if each % 2 else b"x-%d" % each, b"v") for each in range(number)],
    }
    request = Request.of(scope, None, None, Hold())  # type: ignore[arg-type]
    assert len(request.headers["x-many"].split(", ")) == number // 2


@pytest.mark.parametrize(
    "work",
    [
        headers,
        lambda number: Query.parse(b"&".join(b"a%d=%%20" % each for each in range(number))).one("a1"),
        lambda number: Query.parse(b"&".join(b"a=%d" % each for each in range(number))).all("a"),
    ],
    ids=["headers", "parameters", "values of one parameter"],
)
def test_heads_of_requests_cost_what_they_are_long(work: object) -> None:
    assert callable(work)
    work(2)  # patterns are compiled when they are first used
    assert_linear([steps_of(partial(work, size)) for size in SIZES], "a head")


def test_a_namespace_of_too_many_levels_is_refused_before_any_is_read() -> None:
    def decode(levels: int) -> None:
        with pytest.raises(BadRequest, match="1 to 16 levels"):
            decode_namespace(UNIT_SEPARATOR.join("a" * levels), UNIT_SEPARATOR)

    few, many = (steps_of(partial(decode, levels)) for levels in (100, 10_000))
    assert many < few + 200


def named(number: int) -> JsonObject:
    """A commit that creates a table and names so many locations."""
    moves: list[JsonValue] = [
        {"action": "set-location", "location": f"memory:///wh/warehouse/x/{each}"} for each in range(number)
    ]
    return {
        "requirements": [{"type": "assert-create"}],
        "updates": [
            {"action": "add-schema", "schema": schema("x")},
            {"action": "set-current-schema", "schema-id": -1},
            {"action": "add-spec", "spec": {"fields": []}},
            {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
            *moves,
        ],
    }


async def test_a_commit_that_creates_a_table_names_as_many_locations_as_any_other(fixture: CatalogFixture) -> None:
    """Each is compared with all others: a body may name a hundred thousand."""
    with pytest.raises(BadRequest, match=f"at most {MAX_NAMED} locations, not {MAX_NAMED + 1}"):
        await commit_table(fixture.session(), NS, "t", named(MAX_NAMED + 1))
    await commit_table(fixture.session(), NS, "t", named(MAX_NAMED))


async def test_long_work_ends_with_its_deadline_and_nothing_was_done(fixture: CatalogFixture) -> None:
    table = await fixture.table()
    with pytest.raises(Unavailable, match="deadline"):
        await commit_table(fixture.session({}, deadline_ms=0), NS, "t", set_property("a", "b"))
    body: JsonObject = {"name": "u", "schema": schema("x")}
    with pytest.raises(Unavailable, match="deadline"):
        await create_table(fixture.session(body, deadline_ms=0), NS, body)
    assert (await fixture.commit(set_property("c", "d"))).entity == table.entity


async def test_long_work_is_done_by_another_thread_and_short_work_in_place() -> None:
    here = get_ident()
    assert await worker_threads.off_loop(worker_threads.SMALL_BYTES - 1, get_ident) == here
    assert await worker_threads.off_loop(worker_threads.SMALL_BYTES, get_ident) != here


async def test_the_garbage_collector_stays_away_from_long_work_alone() -> None:
    assert not await worker_threads.off_loop(worker_threads.SMALL_BYTES, gc.isenabled)
    assert gc.isenabled()
    with pytest.raises(ZeroDivisionError):
        await worker_threads.off_loop(worker_threads.SMALL_BYTES, lambda: 1 // 0)
    assert gc.isenabled()
