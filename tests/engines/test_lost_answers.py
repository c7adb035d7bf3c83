"""Iceberg's Java client and Spark, behind a proxy that applies their requests and loses the answers."""

import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.table import Table

from tests.engines.java_client import GIVES_UP, RETRIES, run, work
from tests.support.dropping_proxy import DroppingProxy, Exchange, Fate, Judge, always, first_time
from tools.demo.engines import pyiceberg_catalog
from tools.demo.receipts import compare, stored_receipts
from tools.demo.server import WAREHOUSE, Server, serving
from tools.support.java_programs import runtime_jar

EVERYTHING = (
    "namespace:db",
    "describe:db:owner:arco",
    "create:db.t",
    "append:db.t:a",
    "property:db.t:step:2",
    "column:db.t:name",
    "branch:db.t:audit",
    "transaction:db.t:b",
    "create-with:db.u:c",
    "replace-with:db.u:d",
    "append-both:db.t:db.u:e",
    "rename:db.t:db.v",
    "append:db.v:f",
    "view:db.w",
    "create:db.gone",
    "drop:db.gone",
)
COMMITS = (
    "namespace:db",
    "create:db.t",
    "append:db.t:a",
    "property:db.t:step:2",
    "transaction:db.t:b",
    "create:db.u",
    "append-both:db.t:db.u:c",
)

NO_ANSWER = "RESTException"
"""What the client raises without an answer. It takes it for no refusal, so it deletes no files."""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with serving(f"file:{tmp_path / 'store'}", tmp_path / "server.log") as running:
        yield running


@pytest.fixture
def catalog(server: Server) -> Catalog:
    """The catalog as a client sees it that nobody disturbs."""
    return pyiceberg_catalog(server.uri, WAREHOUSE, {})


async def disturbed(
    server: Server, judge: Judge, version: str, steps: tuple[str, ...], scratch: Path
) -> tuple[dict[str, str], list[Exchange]]:
    """What the Java client says of its steps, and the mutations that it sent."""
    proxy = DroppingProxy(server.uri, judge)
    async with proxy.listening() as uri:
        said = await work(version, uri, steps, scratch)
    return said, [exchange for exchange in proxy.exchanges if exchange.request.mutates]


def files_of(table: Table) -> Counter[str]:
    """The names of the live data files, found by reading every manifest."""
    return Counter(Path(task.file.file_path).stem for task in table.scan().plan_files())


def statuses(exchanges: list[Exchange]) -> dict[str, list[int]]:
    """Every idempotency key's answers."""
    answers: dict[str, list[int]] = {}
    for exchange in exchanges:
        assert exchange.request.key is not None
        answers.setdefault(exchange.request.key, []).append(exchange.status)
    return answers


async def assert_receipts_agree(server: Server, *tables: Table) -> None:
    """Each metadata file that was ever current has one committed receipt, and no other file has any."""
    for table in tables:
        current = [*(entry.metadata_file for entry in table.metadata.metadata_log), table.metadata_location]
        receipts = json.loads(server.receipts(".".join(table.name())))
        entity = receipts[0]["entity"]
        stored = await stored_receipts(server.store, {entity: len(current)})
        compare(f"receipts of {table.name()}", stored[entity], current)
        assert len(receipts) == len(current)


@pytest.mark.parametrize("fate", [Fate.DROPPED, Fate.ABANDONED])
async def test_a_client_that_retries_loses_and_doubles_nothing(
    server: Server, catalog: Catalog, tmp_path: Path, fate: Fate
) -> None:
    said, exchanges = await disturbed(server, first_time(fate), RETRIES, EVERYTHING, tmp_path)

    assert said == dict.fromkeys(EVERYTHING, "done")
    answers = statuses(exchanges)
    assert len(answers) == len(EVERYTHING) + 1  # `create-with` stages the table first
    assert all(len(each) >= 2 and len({*each} - {503}) == 1 for each in answers.values()), answers

    assert sorted(catalog.list_tables("db")) == [("db", "u"), ("db", "v")]
    assert catalog.list_views("db") == [("db", "w")]
    assert catalog.load_namespace_properties("db")["owner"] == "arco"
    t, u = catalog.load_table("db.v"), catalog.load_table("db.u")
    assert files_of(t) == Counter("abef")
    assert files_of(u) == Counter("de")
    assert t.properties["step"] == "2"
    assert t.schema().column_names == ["id", "name"]
    assert sorted(t.metadata.refs) == ["audit", "main"]
    assert (len(t.metadata.snapshots), len(t.metadata.metadata_log)) == (4, 7)
    assert (len(u.metadata.snapshots), len(u.metadata.metadata_log)) == (3, 2)
    await assert_receipts_agree(server, t, u)


@pytest.mark.slow  # compact/test_exactly_once.py has each of these fates each time
async def test_a_gateway_that_times_out_after_the_commit_is_retried_too(
    server: Server, catalog: Catalog, tmp_path: Path
) -> None:
    said, exchanges = await disturbed(server, first_time(Fate.TIMED_OUT), RETRIES, COMMITS, tmp_path)

    assert said == dict.fromkeys(COMMITS, "done")
    assert all(len(each) == 2 and len({*each}) == 1 for each in statuses(exchanges).values())
    await assert_every_commit_once(server, catalog)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("judge", "version"),
    [
        pytest.param(first_time(Fate.DROPPED), GIVES_UP, id="a client that never repeats a POST"),
        pytest.param(always(Fate.DROPPED), RETRIES, id="a client that repeats in vain"),
    ],
)
async def test_a_client_that_gets_no_answer_knows_nothing_and_its_commits_stand(
    server: Server, catalog: Catalog, tmp_path: Path, judge: Judge, version: str
) -> None:
    said, _ = await disturbed(server, judge, version, COMMITS, tmp_path)

    assert said == dict.fromkeys(COMMITS, NO_ANSWER)
    await assert_every_commit_once(server, catalog)


@pytest.mark.slow
async def test_an_answer_that_has_begun_is_not_asked_for_again(
    server: Server, catalog: Catalog, tmp_path: Path
) -> None:
    said, exchanges = await disturbed(server, first_time(Fate.CUT_SHORT), RETRIES, COMMITS, tmp_path)

    # The answer to a transaction is a status and no body: half of it says everything.
    assert said == {**dict.fromkeys(COMMITS, NO_ANSWER), COMMITS[-1]: "done"}
    assert all(len(each) == 1 for each in statuses(exchanges).values())
    await assert_every_commit_once(server, catalog)


async def assert_every_commit_once(server: Server, catalog: Catalog) -> None:
    """What COMMITS leave when each is applied once."""
    t, u = catalog.load_table("db.t"), catalog.load_table("db.u")
    assert files_of(t) == Counter("abc")
    assert files_of(u) == Counter("c")
    assert t.properties["step"] == "2"
    assert (len(t.metadata.snapshots), len(t.metadata.metadata_log)) == (3, 4)
    assert (len(u.metadata.snapshots), len(u.metadata.metadata_log)) == (1, 1)
    await assert_receipts_agree(server, t, u)


async def test_without_the_key_the_same_retry_destroys_a_table(
    server: Server, catalog: Catalog, tmp_path: Path
) -> None:
    """The negative control: told that its own snapshot exists already, the client deletes that live one's manifests."""
    proxy = DroppingProxy(server.uri, first_time(Fate.DROPPED), strip_keys=True)
    async with proxy.listening() as uri:
        said = await work(RETRIES, uri, ["namespace:db", "create:db.t", "replace-with:db.t:a"], tmp_path)

    assert said["replace-with:db.t:a"] == "BadRequestException"
    with pytest.raises(FileNotFoundError):
        files_of(catalog.load_table("db.t"))


@pytest.mark.slow  # its client is the one above, which is tried each time
async def test_a_spark_job_finishes_though_every_answer_is_lost_once(
    server: Server, catalog: Catalog, tmp_path: Path
) -> None:
    proxy = DroppingProxy(server.uri, first_time(Fate.DROPPED))
    async with proxy.listening() as uri:
        job = [sys.executable, "-m", "tests.engines.spark_job", uri, WAREHOUSE, str(runtime_jar(RETRIES))]
        rows = json.loads(await run(job, tmp_path))

    assert rows == {
        "orders": [[1, 11, None], [3, 30, "seen"], [4, 40, None], [5, 50, "new"]],
        "ids": [[4], [5]],
    }
    mutations = statuses([exchange for exchange in proxy.exchanges if exchange.request.mutates])
    assert len(mutations) >= 13
    assert all(len(each) == 2 and len({*each}) == 1 for each in mutations.values()), mutations
    orders, ids = catalog.load_table("shop.orders"), catalog.load_table("shop.ids")
    assert sorted(catalog.list_tables("shop")) == [("shop", "ids"), ("shop", "orders")]
    assert (len(orders.metadata.snapshots), len(orders.metadata.metadata_log)) == (5, 6)
    assert (len(ids.metadata.snapshots), len(ids.metadata.metadata_log)) == (2, 1)
    await assert_receipts_agree(server, orders, ids)
