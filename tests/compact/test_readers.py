"""`readers` says what grants come to with each batch, in one commit if that is anything else by now
(docs/design/pipeline.md#rule-16)."""

import argparse
import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from pyiceberg.table import Table

from arco_catalog.state.runtime import SystemRuntime
from reconciler.catalog_config import CatalogConfig
from reconciler.compact.driver import compact
from reconciler.compact.stats import CompactStats
from reconciler.executors import LocalExecutor
from reconciler.system import connection, questions, visible
from reconciler.system.opened import SystemTables
from reconciler.system.views import RUN_AS_OWNER, write_views
from tests.compact.lake import Killed, Mortal, in_another_thread
from tests.engines.principals import Principals
from tests.engines.realm import realm_served
from tests.support.realm_service import on_catalog, on_namespace, on_table
from tools.demo.server import WAREHOUSE

ROW = pa.table({"a": pa.array([1], pa.int64())})
READS_SALES = on_namespace("TABLE_READ_DATA", "sales")
NEW_GRANT = 2
"""Commits of a run after a grant: the registry's, told in `catalog_events`, and what it comes to."""


@dataclass
class Told:
    """A realm with a table of sales, and its pipeline."""

    principals: Principals
    pipeline: str

    def mortal(self) -> Mortal:
        """A connection of the pipeline's."""
        login = self.principals.login(self.pipeline)
        return Mortal({**login, "uri": self.principals.uri, "warehouse": WAREHOUSE}, SystemRuntime(), lambda _: None)

    async def compact(self, catalog: Mortal | None = None) -> CompactStats:
        config = CatalogConfig(self.principals.realm.owner.server.store, WAREHOUSE)
        return await compact(SystemTables(catalog or self.mortal(), None), config, LocalExecutor())

    @property
    def table(self) -> Table:
        found: Table = self.mortal().load_table(("system", "readers"))
        return found

    def of(self, principal: str) -> list[tuple[object, ...]]:
        """What it may load."""
        rows = self.table.scan().to_arrow().to_pylist()
        return [tuple(row.values())[1:] for row in rows if row["principal"] == principal]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Told]:
    with realm_served(tmp_path_factory.mktemp("realm"), lifetime_s="600") as realm:
        principals = Principals(realm)
        pipeline = principals.make("pipeline", on_catalog("CATALOG_MANAGE_CONTENT"), **{"arco.pipeline": "true"})
        client = principals.catalog(pipeline)
        client.create_namespace("sales")
        client.create_table("sales.t", ROW.schema).append(ROW)
        made = Told(principals, pipeline)
        asyncio.run(made.compact())
        yield made


async def test_a_realm_that_has_not_changed_is_told_by_no_commit(told: Told) -> None:
    again = await told.compact()
    assert (again.rows, again.commits, again.read) == ({}, 0, 0)


async def test_a_grant_is_told_by_one_commit_and_a_revocation_by_another(told: Told) -> None:
    told.principals.make("alice", READS_SALES)
    stats = await told.compact()
    assert told.of("alice") == [("table", "sales", None)]
    before = len(told.table.metadata.snapshots)

    told.principals.grant("alice", on_table("TABLE_READ_DATA", "sales", "t"))
    stats = await told.compact()
    assert (stats.commits, len(told.table.metadata.snapshots)) == (NEW_GRANT, before + 1)
    assert len(told.of("alice")) == 2

    told.principals.revoke("alice", READS_SALES)
    await told.compact()
    [(kind, namespace, entity)] = told.of("alice")
    assert (kind, namespace, entity is not None) == ("table", None, True)
    assert len(told.table.inspect.data_files()) == 1, "files of earlier rows are not left in the table"


async def test_a_grant_that_lets_nobody_load_anything_more_is_told_by_no_commit(told: Told) -> None:
    told.principals.make("dropper", READS_SALES)
    await told.compact()
    before = told.table.metadata_location

    told.principals.grant("dropper", on_namespace("TABLE_DROP", "sales"))
    stats = await told.compact()

    assert (stats.rows, told.table.metadata_location) == ({"catalog_events": 1}, before)


@pytest.mark.parametrize("beside", [False, True], ids=["as it was", "anything else"])
async def test_a_run_that_read_grants_before_a_revocation_does_not_bring_them_back(told: Told, beside: bool) -> None:
    """Another run, that begins after the revocation, finds the table `as it was` and commits nothing, or commits."""
    name = f"bob-{beside}"
    told.principals.make(name, READS_SALES)
    told.principals.make(f"beside-{name}")
    slower = told.mortal()

    def overtake(table: Table) -> None:
        slower.beforehand = None
        told.principals.revoke(name, READS_SALES)
        if beside:
            told.principals.grant(f"beside-{name}", READS_SALES)
        in_another_thread(lambda: asyncio.run(told.compact()))

    slower.beforehand = overtake
    stats = await told.compact(slower)

    assert (stats.overtaken, told.of(name)) == (int(beside), [])
    assert bool(told.of(f"beside-{name}")) is beside


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
async def test_a_run_that_dies_at_its_commit_leaves_what_the_next_one_tells(told: Told, after: bool) -> None:
    name = f"carol-{after}"
    told.principals.make(name, READS_SALES)
    dying = told.mortal()
    dying.dies_at, dying.after = 1, after
    with pytest.raises(Killed):
        await told.compact(dying)
    assert bool(told.of(name)) is after

    await told.compact()

    assert told.of(name) == [("table", "sales", None)]


def test_the_job_is_told_as_whom_views_run(told: Told, tmp_path: Path) -> None:
    parser, credential = argparse.ArgumentParser(), tmp_path / "credential"
    parser.add_argument("--warehouse")
    connection.add_arguments(parser)
    credential.write_text(told.pipeline)
    said = ["--uri", told.principals.uri, "--warehouse", WAREHOUSE, "--credential-file", str(credential)]
    said += ["--property", f"oauth2-server-uri={told.principals.uri}/v1/oauth/tokens"]
    for owner in (None, "wall"):
        parsed = parser.parse_args([*said, *([] if owner is None else ["--trino-owner", owner])])
        assert connection.system_tables(parsed, SystemRuntime()).trino_owner == owner


def test_views_that_hide_rows_run_as_the_user_of_trino_s_who_is_named(told: Told) -> None:
    catalog, hiding = told.mortal(), {question.name for question in visible.ALL}
    wanted = (*questions.ALL, *visible.ALL)

    def owners() -> dict[str, str | None]:
        views = {name: catalog.load_view((*space, name)) for *space, name in catalog.list_views("system")}
        return {name: view.properties.get(RUN_AS_OWNER) for name, view in views.items()}

    assert owners() == {question.name: None for question in wanted}
    for said, owner in (("wall", "wall"), (None, "wall"), ("other", "other")):
        write_views(catalog, None, wanted, said)
        assert owners() == {question.name: owner if question.name in hiding else None for question in wanted}
    versions = len(catalog.load_view(("system", "visible_commits")).versions)
    write_views(catalog, None, wanted, "other")
    assert len(catalog.load_view(("system", "visible_commits")).versions) == versions
