"""Appends that lost the requirement on their branch are rebased where table and commit ask for it, and refused in all
other cases (docs/design/appends.md)."""

import random
import subprocess
import sys
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

import pytest

from arco_catalog.iceberg.errors import BadRequest, CommitFailed
from arco_catalog.iceberg.json import loads
from arco_catalog.operations.load import load_table
from arco_catalog.operations.transaction import commit_transaction
from storage_backends import ANY
from tests.upkeep.purge.test_avro import HOSTILE
from tools.support.appended_files import ALLOWED, REBASE, Lake, list_schema, new_file
from tools.support.catalog_fixture import NS, CatalogFixture
from tools.support.environment import PROJECT
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


async def refused(table: Table, late: Any, why: str) -> None:
    """Commits snapshot 2, then `late`, which must be refused for this reason and change nothing."""
    await table.commit(await table.append(2))
    before = await table.document()
    with pytest.raises(CommitFailed, match=why) as failed:
        await table.commit(late)
    assert failed.value.message.startswith("Requirement failed: ")
    assert await table.document() == before


async def test_an_append_without_the_key_in_its_summary_is_refused(made: Made) -> None:
    """Such is a MERGE that matched nothing beside an insert: its body is that of an append."""
    table = await made()
    await refused(table, await table.append(9, summary={}), rf"{BRANCH_CHANGED} 1 != 2$")


async def test_an_append_to_a_table_without_the_property_is_refused_as_before(made: Made) -> None:
    table = await made(properties={})
    await refused(table, await table.append(9), rf"{BRANCH_CHANGED} 1 != 2$")


async def test_rebase_is_only_tried_after_a_lost_requirement(made: Made) -> None:
    table = await made()
    body = await table.append(2)
    await table.commit(body)
    newest = (await table.document())["snapshots"][-1]
    assert newest["manifest-list"] == body["updates"][0]["snapshot"]["manifest-list"]


async def test_an_append_is_rebased_again_after_each_loss(made: Made) -> None:
    table = await made()
    late = [await table.append(number) for number in range(10, 15)]
    await table.commit(await table.append(2))
    for each in late:
        await table.commit(each)
    assert await table.rows() == {f"{number}.parquet": 1 for number in (1, 2, *range(10, 15))}


async def test_appends_to_an_empty_table_are_rebased(fixture: CatalogFixture) -> None:
    await fixture.table(properties={**ALLOWED})
    table = Table(fixture)
    late = await table.append(9)
    await table.commit(await table.append(2))
    await table.commit(late)
    assert await table.rows() == {"2.parquet": 1, "9.parquet": 1}


async def test_an_append_to_a_branch_is_rebased(made: Made) -> None:
    table = await made()
    branch = {"action": "set-snapshot-ref", "ref-name": "audit", "type": "branch", "snapshot-id": 1}
    await table.commit({"requirements": [], "updates": [branch]})
    late = await table.append(9, branch="audit")
    await table.commit(await table.append(2, branch="audit"))
    await table.commit(await table.append(3))
    await table.commit(late)
    document = await table.document()
    assert await table.lake.rows(document, "audit") == ALL
    assert await table.rows() == {"1.parquet": 1, "3.parquet": 1}
    assert document["snapshots"][-1]["sequence-number"] == 4


async def test_the_new_list_is_where_the_table_has_its_metadata(made: Made) -> None:
    table = await made()
    elsewhere = f"{(await table.document())['location']}/elsewhere"
    await table.commit(set_property("write.metadata.path", elsewhere))
    late = await table.append(9)
    await table.commit(await table.append(2))
    await table.commit(late)
    assert (await table.document())["snapshots"][-1]["manifest-list"].startswith(f"{elsewhere}/snap-9-0-")
    assert await table.rows() == ALL


async def test_the_rebased_append_is_answered_once_to_all_sendings_of_its_key(made: Made) -> None:
    table = await made()
    late = await table.append(9)
    await table.commit(await table.append(2))
    key = table.fixture.key()
    await table.commit(late, key)
    await table.commit(late, key)
    assert await table.rows() == ALL


async def test_the_time_of_a_rebased_snapshot_is_later_than_that_of_its_parent(made: Made) -> None:
    table = await made()
    late = await table.append(9)
    hour_ahead = (await table.document())["last-updated-ms"] + 50_000
    await table.commit(await table.append(2, more={"timestamp-ms": hour_ahead}))
    await table.commit(late)
    assert [each["timestamp-ms"] for each in (await table.document())["snapshot-log"]][-1] == hour_ahead + 1


async def test_totals_are_left_out_where_the_parent_has_none(made: Made) -> None:
    table = await made()
    late = await table.append(9)
    newest = await table.append(2)
    summary = newest["updates"][0]["snapshot"]["summary"]
    del summary["total-records"]
    await table.commit(newest)
    await table.commit(late)
    found = (await table.document())["snapshots"][-1]["summary"]
    assert "total-records" not in found
    assert (found["total-data-files"], found["added-records"], found["arco.append"]) == ("3", "1", "rebase")


async def test_row_ids_follow_each_other_in_format_version_3(made: Made) -> None:
    table = await made(version=3)
    folder = f"{(await table.document())['location']}/data"
    late = await table.append(9, files=[new_file(f"{folder}/9.parquet", 7), new_file(f"{folder}/10.parquet", 5)])
    await table.commit(await table.append(2, files=[new_file(f"{folder}/2.parquet", 3)]))
    await table.commit(late)
    document = await table.document()
    newest = document["snapshots"][-1]
    assert (newest["first-row-id"], newest["added-rows"], document["next-row-id"]) == (4, 12, 16)
    entries = await table.lake.manifests(newest)
    assert [(each["first_row_id"], each["added_rows_count"]) for each in entries] == [(4, 12), (1, 3), (0, 1)]


# Each condition on the commit.


@pytest.mark.parametrize(
    "field", ["kafka.connect.commit-id", "flink.job-id", "wap.id", "published-wap-id", "source-snapshot-id"]
)
async def test_the_append_of_a_writer_that_relies_on_conflicts_is_refused(made: Made, field: str) -> None:
    """Such are two coordinators of Kafka Connect that commit the same offsets."""
    table = await made()
    await refused(table, await table.append(9, summary={**REBASE, field: "1"}), f"the commit's snapshot has {field}")


async def test_a_snapshot_that_is_no_append_is_refused(made: Made) -> None:
    table = await made()
    await refused(table, await table.append(9, summary={**REBASE, "operation": "overwrite"}), "is no append")


async def test_a_commit_with_another_update_is_refused(made: Made) -> None:
    table = await made()
    late = await table.append(9)
    late["updates"].append({"action": "set-properties", "updates": {"a": "b"}})
    await refused(table, late, f"{BRANCH_CHANGED} 1 != 2$")


async def test_a_commit_of_a_snapshot_and_another_update_is_refused(made: Made) -> None:
    table = await made()
    late = await table.append(9)
    late["updates"][1] = {"action": "set-properties", "updates": {"a": "b"}}
    await refused(table, late, "updates are not one new snapshot")


async def test_a_commit_that_sets_the_branch_to_another_snapshot_is_refused(made: Made) -> None:
    table = await made()
    late = await table.append(9)
    late["updates"][1]["snapshot-id"] = 1
    await refused(table, late, "updates are not one new snapshot")


async def test_a_commit_with_another_requirement_is_refused(made: Made) -> None:
    table = await made()
    late = await table.append(9)
    late["requirements"].append({"type": "assert-current-schema-id", "current-schema-id": 0})
    await refused(table, late, "requirements are not exactly")


async def test_a_commit_that_requires_another_branch_is_refused(made: Made) -> None:
    table = await made()
    late = await table.append(9)
    late["updates"][1]["ref-name"] = "other"
    await refused(table, late, "requirements are not exactly")


async def test_a_commit_with_another_uuid_is_refused(made: Made) -> None:
    table = await made()
    late = await table.append(9)
    late["requirements"][1]["uuid"] = "0190c8de-6a3c-7e55-9cba-3a4b9a2f1c01"
    await refused(table, late, "UUID does not match")


async def test_a_tag_is_refused(made: Made) -> None:
    table = await made()
    late = await table.append(9)
    tag = {"action": "set-snapshot-ref", "ref-name": "x", "type": "tag", "snapshot-id": 1}
    await table.commit({"requirements": [], "updates": [tag]})
    late["requirements"][0] |= {"ref": "x", "snapshot-id": 5}
    late["updates"][1] |= {"ref-name": "x", "type": "tag"}
    with pytest.raises(CommitFailed, match="sets x to be a tag"):
        await table.commit(late)


async def test_an_append_that_creates_a_branch_is_refused(made: Made) -> None:
    table = await made()
    late = await table.append(9, branch="new")
    await table.commit(await table.append(2, branch="new"))
    with pytest.raises(CommitFailed, match="the commit creates the branch new"):
        await table.commit(late)


async def test_an_append_to_a_branch_that_is_gone_is_refused(made: Made) -> None:
    table = await made()
    late = await table.append(9)
    await table.commit({"requirements": [], "updates": [{"action": "remove-snapshot-ref", "ref-name": "main"}]})
    with pytest.raises(CommitFailed, match="the table has no branch main"):
        await table.commit(late)


async def test_an_append_whose_parent_is_not_the_snapshot_that_it_requires_is_refused(made: Made) -> None:
    table = await made()
    await refused(table, await table.append(9, more={"parent-snapshot-id": 5}), "the parent of the commit's snapshot")


async def test_an_encrypted_snapshot_is_refused(made: Made) -> None:
    table = await made()
    await refused(table, await table.append(9, more={"key-id": "k"}), "the snapshot 9 is encrypted")


async def test_an_append_in_a_transaction_over_two_tables_is_refused(made: Made) -> None:
    table = await made()
    await table.fixture.table("u")
    late = await table.append(9)
    await table.commit(await table.append(2))
    before = await table.document()
    with pytest.raises(CommitFailed, match=rf"{BRANCH_CHANGED} 1 != 2$"):
        await commit_transaction(table.fixture.session(late), [(NS, "t", late), (NS, "u", set_property("a", "b"))])
    assert await table.document() == before


# Each condition on the table.


async def test_an_append_to_a_table_of_format_version_1_is_refused(fixture: CatalogFixture) -> None:
    await fixture.table(properties={**ALLOWED, "format-version": "1"})
    table = Table(fixture)
    await table.commit(await table.append(1, more={"sequence-number": 0}))
    late = await table.append(9, more={"sequence-number": 0})
    await table.commit(await table.append(2, more={"sequence-number": 0}))
    with pytest.raises(CommitFailed, match="the table has format version 1"):
        await table.commit(late)


async def test_an_append_to_an_encrypted_table_is_refused(made: Made) -> None:
    table = await made(properties={**ALLOWED, "encryption.key-id": "k"}, version=3)
    await refused(table, await table.append(9), "the table is encrypted")


async def test_an_append_on_an_encrypted_snapshot_is_refused(made: Made) -> None:
    table = await made(version=3)
    late = await table.append(9)
    await table.commit(await table.append(2, more={"key-id": "k"}))
    with pytest.raises(CommitFailed, match="the snapshot 2 is encrypted"):
        await table.commit(late)


async def test_an_append_whose_parent_was_expired_is_refused(made: Made) -> None:
    table = await made()
    late = await table.append(9)
    await table.commit(await table.append(2))
    await table.commit({"requirements": [], "updates": [{"action": "remove-snapshots", "snapshot-ids": [1]}]})
    with pytest.raises(CommitFailed, match="the table lacks the snapshot 1"):
        await table.commit(late)


async def test_an_append_whose_snapshot_the_table_has_is_refused(made: Made) -> None:
    table = await made()
    late = await table.append(9)
    await table.commit(await table.append(2))
    await table.commit(late)
    with pytest.raises(CommitFailed, match="the table has the commit's snapshot"):
        await table.commit(late)
    assert await table.rows() == ALL


MAX_LONG = 2**63 - 1
AUDIT = {"action": "set-snapshot-ref", "ref-name": "audit", "type": "branch", "snapshot-id": 1}


async def test_an_append_that_may_have_been_applied_and_expired_is_refused(fixture: CatalogFixture) -> None:
    """Its answer was lost; a compaction and an expiry came before it was sent again."""
    await fixture.table(properties={**ALLOWED})
    table = Table(fixture)
    sent = await table.append(9)
    await table.commit(sent)
    compaction = await table.append(20)
    snapshot = compaction["updates"][0]["snapshot"]
    snapshot["summary"]["operation"] = "replace"
    entries = await table.lake.records(snapshot["manifest-list"])
    others = [each for each in entries if each["added_snapshot_id"] != 9]
    await write_again(table, snapshot["manifest-list"], avro(list_schema(2), others))
    await table.commit(compaction)
    await table.commit({"requirements": [], "updates": [{"action": "remove-snapshots", "snapshot-ids": [9]}]})
    before = await table.document()
    with pytest.raises(CommitFailed, match="does not lead back to the snapshot that the commit requires"):
        await table.commit(sent)
    assert await table.document() == before


async def test_an_append_to_a_branch_that_was_set_elsewhere_is_refused(made: Made) -> None:
    table = await made()
    await table.commit(await table.append(2))
    late = await table.append(9)
    await table.commit(await table.append(3))
    await table.commit({"requirements": [], "updates": [{**AUDIT, "ref-name": "main"}]})
    with pytest.raises(CommitFailed, match="does not lead back"):
        await table.commit(late)


async def test_an_append_that_does_not_require_the_uuid_is_refused(made: Made) -> None:
    table = await made()
    late = await table.append(9)
    late["requirements"] = [each for each in late["requirements"] if each["type"] != "assert-table-uuid"]
    await refused(table, late, "does not require the table's uuid")


async def test_an_append_after_the_last_sequence_number_is_refused(made: Made) -> None:
    table = await made()
    late = await table.append(9)
    await table.commit(await table.append(2, more={"sequence-number": MAX_LONG}))
    with pytest.raises(CommitFailed, match="the greatest possible sequence number or time"):
        await table.commit(late)


async def test_an_append_after_the_last_time_is_refused(made: Made) -> None:
    table = await made()
    await table.commit({"requirements": [], "updates": [AUDIT]})
    late = await table.append(9, branch="audit")
    await table.commit(await table.append(3, branch="audit", more={"timestamp-ms": MAX_LONG}))
    with pytest.raises(CommitFailed, match="the greatest possible sequence number or time"):
        await table.commit(late)


async def test_an_append_of_more_rows_than_a_table_may_have_is_refused(made: Made) -> None:
    table = await made(version=3)
    file = new_file(f"{(await table.document())['location']}/data/9.parquet", 1)
    file["data_file"]["record_count"] = MAX_LONG
    await refused(table, await table.append(9, files=[file]), "more rows or bytes than a table may have")


async def test_an_append_whose_rebased_commit_is_refused_gets_the_answer_of_a_conflict(made: Made) -> None:
    """The clock of the branch's last writer is far ahead, so a commit behind it is refused as a bad request."""
    table = await made()
    await table.commit({"requirements": [], "updates": [AUDIT]})
    far = (await table.document())["last-updated-ms"] + 10_000_000_000
    await table.commit(await table.append(3, branch="audit", more={"timestamp-ms": far}))
    late = await table.append(9)
    await table.commit({"requirements": [], "updates": [{**AUDIT, "ref-name": "main", "snapshot-id": 3}]})
    with pytest.raises(CommitFailed, match="clock of the snapshot's writer is ahead"):
        await table.commit(late)


async def test_an_append_of_a_schema_that_is_gone_is_refused(made: Made) -> None:
    table = await made()
    late = await table.append(9)
    added = {"action": "add-schema", "schema": schema("x", "y")}
    await table.commit({"requirements": [], "updates": [added, {"action": "set-current-schema", "schema-id": -1}]})
    await table.commit({"requirements": [], "updates": [{"action": "remove-schemas", "schema-ids": [0]}]})
    await refused(table, late, "the commit's snapshot names no schema of the table")


async def test_a_manifest_of_a_schema_that_is_gone_is_refused(made: Made) -> None:
    table = await made()
    gone = '{"type":"struct","schema-id":7,"fields":[]}'
    await refused(table, await table.append(9, metadata={"schema": gone}), "lacks the schema of the manifest")


async def test_a_manifest_of_a_partition_spec_that_is_gone_is_refused(made: Made) -> None:
    table = await made()
    late = await table.append(9, listed={"partition_spec_id": 3}, metadata={"partition-spec-id": "3"})
    await refused(table, late, "the table lacks the partition spec")


async def test_an_append_to_a_branch_whose_retention_has_changed_is_refused(made: Made) -> None:
    table = await made()
    late = await table.append(9)
    kept = {"ref-name": "main", "type": "branch", "snapshot-id": 1, "max-ref-age-ms": 5}
    await table.commit({"requirements": [], "updates": [{"action": "set-snapshot-ref", **kept}]})
    ahead = await table.append(2)
    ahead["updates"][1]["max-ref-age-ms"] = 5
    await table.commit(ahead)
    with pytest.raises(CommitFailed, match="gives the branch main another retention"):
        await table.commit(late)


async def test_an_upgraded_table_without_row_ids_is_refused(made: Made) -> None:
    table = await made()
    await table.commit({"requirements": [], "updates": [{"action": "upgrade-format-version", "format-version": 3}]})
    await refused(table, await table.append(9), "has no first_row_id")


# Each condition on the files.


async def listing(table: Table, change: Callable[[list[dict[str, Any]]], list[dict[str, Any]]], **how: Any) -> Any:
    """An append whose manifest list was changed after it was written."""
    late = await table.append(9, **how)
    location = late["updates"][0]["snapshot"]["manifest-list"]
    entries = change(await table.lake.records(location))
    await write_again(table, location, avro(list_schema(3), entries))
    return late


async def write_again(table: Table, location: str, body: bytes) -> None:
    await table.fixture.store.put(location.removeprefix("memory:///"), body, ANY)


async def test_an_append_that_merged_manifests_is_refused(made: Made) -> None:
    table = await made()
    await refused(table, await listing(table, lambda entries: entries[:1]), "lacks manifests of the parent snapshot")


async def test_an_append_that_changed_an_entry_of_its_parent_is_refused(made: Made) -> None:
    table = await made()
    changed = await listing(table, lambda entries: [entries[0], {**entries[1], "deleted_files_count": 1}])
    await refused(table, changed, "changes the entry")


async def test_an_append_of_nothing_is_refused(made: Made) -> None:
    table = await made()
    await refused(table, await listing(table, lambda entries: entries[1:]), "the commit adds 0 manifests")


async def test_a_manifest_that_is_named_twice_is_refused(made: Made) -> None:
    table = await made()
    await refused(table, await listing(table, lambda entries: [entries[0], *entries]), "a new manifest twice")


async def test_a_manifest_that_the_branch_has_is_refused(made: Made) -> None:
    table = await made()
    late = await table.append(9)
    location = late["updates"][0]["snapshot"]["manifest-list"]
    [entry, *_] = await table.lake.records(location)
    ahead = await table.append(2)
    other = ahead["updates"][0]["snapshot"]["manifest-list"]
    await write_again(table, other, avro(list_schema(2), [entry, *await table.lake.records(other)]))
    await table.commit(ahead)
    with pytest.raises(CommitFailed, match="the branch has one of the commit's manifests"):
        await table.commit(late)


@pytest.mark.parametrize(
    ("listed", "why"),
    [
        ({"content": 1}, "has delete files"),
        ({"added_snapshot_id": 7}, "is of another snapshot"),
        ({"existing_files_count": 1}, "has files that are not new"),
        ({"deleted_files_count": 1}, "has files that are not new"),
        ({"existing_rows_count": 1}, "has rows that are not new"),
        ({"deleted_rows_count": 1}, "has rows that are not new"),
        ({"key_metadata": b"k"}, "is encrypted"),
        ({"added_files_count": 2}, "its list has other numbers"),
        ({"added_rows_count": 2}, "its list has other numbers"),
        ({"manifest_length": 5}, "has more than 5 bytes"),
        ({"manifest_length": 9 << 20}, "has more than 8,388,608 bytes"),
        ({"manifest_length": -1}, "no valid manifest_length"),
        ({"added_files_count": -1}, "no valid added_files_count"),
        ({"added_files_count": 10_001}, "adds more than 10,000 data files"),
        ({"manifest_path": ""}, "has no valid manifest_path"),
        ({"manifest_path": "memory:///wh/warehouse/other/m.avro"}, "outside of the table's locations"),
        ({"partitions": [{"contains_null": True, "lower_bound": None}]}, None),
    ],
)
async def test_what_a_list_states_of_a_new_manifest_is_checked(
    made: Made, listed: Mapping[str, Any], why: str | None
) -> None:
    table = await made()
    late = await table.append(9, listed=listed)
    if why is not None:
        await refused(table, late, why)
        return
    await table.commit(await table.append(2))
    await table.commit(late)
    assert await table.rows() == ALL


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ({"status": 0}, "a file that this commit does not add"),
        ({"status": 2}, "a file that this commit does not add"),
        ({"snapshot_id": 7}, "a file that this commit does not add"),
        ({"snapshot_id": 9}, None),
        ({"sequence_number": 2}, "a sequence number or row id"),
        ({"file_sequence_number": 2}, "a sequence number or row id"),
    ],
)
async def test_each_entry_of_a_new_manifest_is_checked(made: Made, entry: Mapping[str, Any], why: str | None) -> None:
    table = await made()
    path = f"{(await table.document())['location']}/data/9.parquet"
    late = await table.append(9, files=[new_file(path, **entry)])
    if why is not None:
        await refused(table, late, why)
        return
    await table.commit(await table.append(2))
    await table.commit(late)
    assert await table.rows() == ALL


@pytest.mark.parametrize(
    ("file", "why"), [({"content": 1}, "has delete files"), ({"first_row_id": 5}, "a sequence number or row id")]
)
async def test_each_file_of_a_new_manifest_is_checked(made: Made, file: Mapping[str, Any], why: str) -> None:
    table = await made(version=3)
    made_file = new_file(f"{(await table.document())['location']}/data/9.parquet")
    made_file["data_file"] |= file
    await refused(table, await table.append(9, files=[made_file]), why)


@pytest.mark.parametrize(
    ("metadata", "why"),
    [
        ({"content": "deletes"}, "has delete files"),
        ({"format-version": "1"}, "no format version, or one below 2 or above that of the table, 2"),
        ({"format-version": "3"}, "no format version, or one below 2 or above that of the table, 2"),
        ({"format-version": "x"}, "no format version, or one below 2 or above that of the table, 2"),
        ({"partition-spec-id": "1"}, "no partition spec in the header, or another"),
        ({"schema": "{"}, "lacks the schema"),
        ({"schema": "[]"}, "lacks the schema"),
        ({"schema": '{"schema-id": true}'}, "lacks the schema"),
    ],
)
async def test_the_header_of_a_new_manifest_is_checked(made: Made, metadata: Mapping[str, str], why: str) -> None:
    table = await made()
    await refused(table, await table.append(9, metadata=metadata), why)


async def test_files_that_are_missing_or_no_avro_are_refused(made: Made) -> None:
    table = await made()
    missing = await table.append(9, more={"manifest-list": f"{(await table.document())['location']}/metadata/no.avro"})
    await refused(table, missing, "can't be read")
    damaged = await table.append(10)
    await write_again(table, damaged["updates"][0]["snapshot"]["manifest-list"], b"Obj\x01" + b"\xff" * 99)
    damaged["requirements"][0]["snapshot-id"] = damaged["updates"][0]["snapshot"]["parent-snapshot-id"] = 1
    with pytest.raises(CommitFailed, match="can't be read"):
        await table.commit(damaged)


async def test_a_list_outside_of_the_tables_locations_is_refused(made: Made) -> None:
    table = await made()
    late = await table.append(9, more={"manifest-list": "memory:///wh/warehouse/other/metadata/l.avro"})
    await refused(table, late, "outside of the table's locations")


async def test_a_list_with_fields_that_the_catalog_does_not_know_is_refused(made: Made) -> None:
    table = await made()
    late = await table.append(9)
    location = late["updates"][0]["snapshot"]["manifest-list"]
    known: Any = list_schema(2)
    known["fields"].append({"name": "later", "type": ["null", "long"], "default": None})
    await write_again(table, location, avro(known, await table.lake.records(location)))
    await refused(table, late, "fields that the catalog does not know: later")


async def test_a_list_of_too_many_bytes_or_manifests_is_refused(made: Made) -> None:
    table = await made()
    late = await table.append(9)
    location = late["updates"][0]["snapshot"]["manifest-list"]
    [entry, *_] = await table.lake.records(location)
    paths = (
        random.Random(number).randbytes(16).hex() for number in range(5_001)
    )  # equal ones would unpack to too many bytes
    await write_again(table, location, avro(list_schema(2), [{**entry, "manifest_path": path} for path in paths]))
    await refused(table, late, "can't be read: the Avro file has more than 5,000 records")
    await write_again(table, location, bytes(3 << 20))
    with pytest.raises(CommitFailed, match="more than 2,097,152 bytes"):
        await table.commit(late)


@pytest.mark.parametrize("part", ["list", "manifest"])
@pytest.mark.parametrize("body", HOSTILE.values(), ids=HOSTILE)
async def test_hostile_files_are_refused(made: Made, part: str, body: bytes) -> None:
    table = await made()
    late = await table.append(9, listed={"manifest_length": 8 << 20})
    location = late["updates"][0]["snapshot"]["manifest-list"]
    if part == "manifest":
        location = (await table.lake.records(location))[0]["manifest_path"]
    await write_again(table, location, body)
    await refused(table, late, "not rebased")


async def test_damaged_files_are_refused_or_make_no_difference(made: Made) -> None:
    """Bytes of the list or of the manifest are replaced at random. If the append is rebased all the same, the new list
    has what the branch had, and the manifest as the client's list describes it."""
    table = await made()
    built_on = await table.document()
    await table.commit(await table.append(2))
    chance, rebased = random.Random(1), 0
    for number in range(100, 400):
        late = await table.lake.append(built_on, number)
        location = late["updates"][0]["snapshot"]["manifest-list"]
        [entry, *_] = await table.lake.records(location)
        damaged = location if number % 2 else entry["manifest_path"]
        body = bytearray(await table.lake.read(damaged))
        for _ in range(chance.choice((1, 1, 3))):
            body[chance.randrange(len(body))] = chance.randrange(256)
        await write_again(table, damaged, bytes(body))
        before = await table.lake.manifests((await table.document())["snapshots"][-1])
        try:
            await table.commit(late)
        except CommitFailed:
            continue
        rebased += 1
        [added, *present] = await table.lake.manifests((await table.document())["snapshots"][-1])
        assert present == before
        assert (added["manifest_path"], added["added_files_count"]) == (entry["manifest_path"], 1)
    assert 0 < rebased < 300


async def test_an_append_is_refused_where_nothing_writes_avro(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    table = await made()
    late = await table.append(9)
    ahead = await table.append(2)
    monkeypatch.setitem(sys.modules, "fastavro", None)
    await table.commit(ahead)
    with pytest.raises(CommitFailed, match="no manifest list can be written: the package fastavro is not installed"):
        await table.commit(late)


ORDINARY = """
import asyncio, sys
from tools.support.catalog_fixture import CatalogFixture
from tools.support.request_bodies import append, set_property

async def main():
    fixture = CatalogFixture()
    await fixture.namespace()
    made = await fixture.table(properties={"arco.commit.appends": "rebase"})
    await fixture.commit(append(made.metadata_location, 1, None))
    await fixture.commit(append(made.metadata_location, 2, 1))

asyncio.run(main())
print([each for each in sys.modules if "avro" in each or "append" in each or "manifest" in each])
"""


def test_a_process_whose_appends_win_imports_nothing_of_rebases() -> None:
    ended = subprocess.run([sys.executable, "-c", ORDINARY], cwd=PROJECT, capture_output=True, text=True, timeout=60)
    assert (ended.stdout, ended.stderr) == ("[]\n", "")


# The property.


async def test_the_property_has_one_value_and_can_be_removed(fixture: CatalogFixture) -> None:
    with pytest.raises(BadRequest, match=r"arco.commit.appends must be 'rebase', found 'yes'"):
        await fixture.table(properties={"arco.commit.appends": "yes"})
    await fixture.table()
    with pytest.raises(BadRequest, match=r"arco.commit.appends must be 'rebase'"):
        await fixture.commit(set_property("arco.commit.appends", "merge"))
    await fixture.commit(set_property("arco.commit.appends", "rebase"))
    removal: Any = {"action": "remove-properties", "removals": ["arco.commit.appends"]}
    await fixture.commit({"requirements": [], "updates": [removal]})
    with pytest.raises(BadRequest, match=r"reserved: arco\.owner"):
        await fixture.commit(set_property("arco.owner", "me"))
