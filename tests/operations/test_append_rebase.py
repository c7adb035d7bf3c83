"""Appends that lost the requirement on their branch are rebased where table and commit ask for it, and refused in all
other cases (docs/design/appends.md)."""

from collections.abc import Callable, Coroutine, Mapping
from typing import Any

import pytest

from arco_catalog.iceberg.errors import BadRequest, CommitFailed
from arco_catalog.iceberg.json import loads
from arco_catalog.operations.load import load_table
from storage_backends import ANY
from tools.support.appended_files import ALLOWED, REBASE, Lake, commit_of, list_schema, new_file
from tools.support.catalog_fixture import NS, CatalogFixture
from tools.support.manifests import avro
from tools.support.request_bodies import schema, set_property

BRANCH_CHANGED = "Requirement failed: branch main has changed: expected id"


class Table:
    """A table that allows rebases, with a snapshot 1, on which a client has built an append 9 that it has not sent
    when snapshot 2 is committed."""

    def __init__(self, fixture: CatalogFixture) -> None:
        self.fixture = fixture
        self.lake = Lake(fixture.store)

    async def document(self) -> Any:
        return loads((await load_table(self.fixture.session(), NS, "t")).metadata)

    async def append(self, snapshot_id: int, **how: Any) -> Any:
        return await self.lake.append(await self.document(), snapshot_id, **how)

    async def commit(self, body: Any, key: str | None = None) -> None:
        await self.fixture.commit(body, key=key)

    async def rows(self) -> Mapping[str, int]:
        return await self.lake.rows(await self.document())


Made = Callable[..., Coroutine[Any, Any, Table]]


@pytest.fixture
def made(fixture: CatalogFixture) -> Made:
    async def make(properties: Mapping[str, str] = ALLOWED, version: int = 2, **more: Any) -> Table:
        await fixture.table(properties={**properties, "format-version": str(version)}, **more)
        table = Table(fixture)
        await table.commit(await table.append(1))
        return table

    return make


ALL = {f"{number}.parquet": 1 for number in (1, 2, 9)}


async def test_an_append_that_lost_its_branch_is_rebased(made: Made) -> None:
    table = await made()
    late = await table.append(9)
    await table.commit(await table.append(2))
    await table.commit(late)
    assert await table.rows() == ALL
    document = await table.document()
    first, second, third = document["snapshots"]
    assert (third["snapshot-id"], third["parent-snapshot-id"], third["schema-id"]) == (9, 2, 0)
    assert [each["sequence-number"] for each in (first, second, third)] == [1, 2, 3]
    assert document["last-sequence-number"] == 3
    assert third["timestamp-ms"] > second["timestamp-ms"]
    assert third["summary"]["total-records"] == "3"
    assert third["summary"]["added-records"] == "1"
    assert document["refs"]["main"]["snapshot-id"] == 9
    entries = await table.lake.manifests(third)
    assert [(each["added_snapshot_id"], each["sequence_number"]) for each in entries] == [(9, 3), (2, 2), (1, 1)]


async def test_an_append_without_the_key_in_its_summary_is_refused(made: Made) -> None:
    """Such is a MERGE that matched nothing beside an insert: its body is that of an append."""
    table = await made()
    late = await table.append(9, summary={})
    await table.commit(await table.append(2))
    with pytest.raises(CommitFailed, match=BRANCH_CHANGED):
        await table.commit(late)


async def test_rebase_is_only_tried_after_a_lost_requirement(made: Made) -> None:
    table = await made()
    body = await table.append(2)
    await table.commit(body)
    newest = (await table.document())["snapshots"][-1]
    assert newest["manifest-list"] == body["updates"][0]["snapshot"]["manifest-list"]
