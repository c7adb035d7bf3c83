"""Scans that the catalog plans: whatever parts a plan has, together they are the files of the scan."""

import threading
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from decimal import Decimal
from typing import Any

import pytest

from arco_catalog.iceberg import scan_json
from arco_catalog.iceberg.content_files import ContentFile, Partition
from arco_catalog.iceberg.expressions.filters import SpecFilter
from arco_catalog.iceberg.expressions.partition_fields import PartitionFields
from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.iceberg.manifests import MAX_COUNT
from arco_catalog.iceberg.scan_request import Scan
from arco_catalog.operations.scans import answer as answer_module
from arco_catalog.operations.scans import delete_files, delete_memory, files_memory, manifest_source, planner, plans
from arco_catalog.operations.scans.tokens import LIFETIME_S, WHOLE, Position, Range, Token, pack_scan
from arco_catalog.state import avro, manifest_entries, worker_threads
from arco_catalog.state.compressed_manifests import ManifestList
from arco_catalog.state.manifest_entries import EntrySelection
from storage_backends import Found
from tests.http.logged_service import LoggedService
from tests.support.http_service import HttpService
from tests.support.scanned_tables import Manifest, ScannedTable, commit_of, entry
from tools.support.asgi_client import Answer, Client
from tools.support.request_bodies import schema

TABLES = "/v1/wh/namespaces/db/tables"
TABLE = f"{TABLES}/t"
PLAN = f"{TABLE}/plan"
TASKS = f"{TABLE}/tasks"


@pytest.fixture
async def scanned(service: HttpService) -> ScannedTable:
    """The table `t`, to which tests give snapshots."""
    loaded = await service.client.get(TABLE)
    metadata = loaded.json["metadata"]
    assert isinstance(metadata, dict)
    return ScannedTable(service.store, str(metadata["location"]))


async def commit(client: Client, *snapshots: JsonObject) -> None:
    made = await client.post(TABLE, commit_of(*snapshots))
    assert made.status == 200, made.body


def entries(*names: str, **fields: Any) -> list[dict[str, Any]]:
    return [entry(f"memory:///wh/{name}.parquet", **fields) for name in names]


def numbered(count: int, prefix: str = "f") -> list[str]:
    return [f"{prefix}{number}" for number in range(count)]


def tasks_of(answer: Answer) -> list[dict[str, Any]]:
    assert answer.status == 200, answer.body
    found: Any = answer.json["file-scan-tasks"]
    return list(found)


def plan_tasks_of(answer: Answer) -> list[str]:
    found: Any = answer.json.get("plan-tasks", [])
    return list(found)


def names(tasks: Iterable[dict[str, Any]]) -> list[str]:
    return [task["data-file"]["file-path"].rpartition("/")[2].removesuffix(".parquet") for task in tasks]


async def answers(client: Client, first: Answer) -> AsyncIterator[Answer]:
    """An answer, and those of all its plan tasks."""
    yield first
    for task in plan_tasks_of(first):
        async for answer in answers(client, await client.post(TASKS, {"plan-task": task})):
            yield answer


async def scan(client: Client, body: JsonObject | None = None) -> list[str]:
    """The names of the files of a scan, in their order."""
    first = await client.post(PLAN, body or {})
    return [name async for answer in answers(client, first) for name in names(tasks_of(answer))]


# What a plan has.


async def test_a_table_without_snapshots_has_no_files(client: Client) -> None:
    answer = await client.post(PLAN, {})
    assert answer.status == 200
    assert {**answer.json, "plan-id": ""} == {"status": "completed", "plan-id": "", "file-scan-tasks": []}


async def test_a_task_is_pinned(client: Client, scanned: ScannedTable) -> None:
    await commit(client, await scanned.snapshot(1, [Manifest(entries("a", x=(1, 9)))]))
    filter_: JsonObject = {"type": "lt", "term": "x", "value": 5}
    answer = await client.post(PLAN, {"filter": filter_})
    assert tasks_of(answer) == [
        {
            "data-file": {
                "spec-id": 0,
                "content": "data",
                "file-path": "memory:///wh/a.parquet",
                "file-format": "parquet",
                "partition": [],
                "file-size-in-bytes": 100,
                "record-count": 10,
            },
            "residual-filter": filter_,
        }
    ]


async def test_statistics_are_sent_of_the_requested_columns(client: Client, scanned: ScannedTable) -> None:
    await commit(client, await scanned.snapshot(1, [Manifest(entries("a", x=(1, 258)))]))
    (task,) = tasks_of(await client.post(PLAN, {"stats-fields": ["X"], "case-sensitive": False}))
    assert task["residual-filter"] is True
    assert task["data-file"]["value-counts"] == {"keys": [1], "values": [10]}
    assert task["data-file"]["null-value-counts"] == {"keys": [1], "values": [0]}
    assert task["data-file"]["lower-bounds"] == {"keys": [1], "values": ["0100000000000000"]}
    assert task["data-file"]["upper-bounds"] == {"keys": [1], "values": ["0201000000000000"]}


async def test_deletes_are_sent_once_an_answer(client: Client, scanned: ScannedTable) -> None:
    data = Manifest(entries("a", "b", x=(1, 9)))
    first = await scanned.snapshot(1, [data])
    vector = {
        "content": 1,
        "file_format": "PUFFIN",
        "referenced_data_file": "memory:///wh/a.parquet",
        "content_offset": 4,
        "content_size_in_bytes": 40,
    }
    global_ = {"content": 2, "equality_ids": [1]}
    deletes = [*entries("dv", **vector), *entries("eq", **global_)]
    second = await scanned.snapshot(2, [Manifest(deletes, content=1)], parent=1, operation="delete")
    await commit(client, first, second)
    answer = await client.post(PLAN, {})
    listed: Any = answer.json["delete-files"]
    found = {each["content"]: each for each in listed}
    assert [*sorted(found)] == ["equality-deletes", "position-deletes"]
    assert found["equality-deletes"]["equality-ids"] == [1]
    assert found["position-deletes"]["referenced-data-file"] == "memory:///wh/a.parquet"
    assert (found["position-deletes"]["content-offset"], found["position-deletes"]["content-size-in-bytes"]) == (4, 40)
    of_b = listed.index(found["equality-deletes"])
    assert [sorted(task["delete-file-references"]) for task in tasks_of(answer)] == [[0, 1], [of_b]]


# Which snapshot, and which schema.


@pytest.fixture
async def history(client: Client, scanned: ScannedTable) -> ScannedTable:
    """A table with three appends and an overwrite."""
    snapshots = [await scanned.snapshot(1, [Manifest(entries("a"))])]
    snapshots.append(await scanned.snapshot(2, [Manifest(entries("b"))], parent=1))
    snapshots.append(await scanned.snapshot(3, [Manifest(entries("c"))], parent=2, operation="overwrite"))
    merged = [*entries("a", "b", "c", status=0), *entries("d")]
    snapshots.append(await scanned.snapshot(4, [Manifest(merged)], parent=3, kept=False))
    for each in snapshots:
        await commit(client, each)
    return scanned


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({}, ["a", "b", "c", "d"]),
        ({"snapshot-id": 2}, ["a", "b"]),
        ({"snapshot-id": 2, "use-snapshot-schema": True}, ["a", "b"]),
        ({"start-snapshot-id": 1, "end-snapshot-id": 4}, ["b", "d"]),
        ({"start-snapshot-id": 2, "end-snapshot-id": 3}, []),
        ({"snapshot-id": None, "filter": False}, []),
    ],
)
async def test_a_request_chooses_the_files(
    client: Client, history: ScannedTable, body: JsonObject, expected: list[str]
) -> None:
    assert await scan(client, body) == expected


@pytest.mark.parametrize(
    "body",
    [
        {"snapshot-id": 99},
        {"snapshot-id": "1"},
        {"snapshot-id": 1, "start-snapshot-id": 1, "end-snapshot-id": 2},
        {"start-snapshot-id": 1},
        {"end-snapshot-id": 2},
        {"start-snapshot-id": 4, "end-snapshot-id": 2},
        {"start-snapshot-id": 2, "end-snapshot-id": 2},
        {"start-snapshot-id": 98, "end-snapshot-id": 4},
        {"filter": None},
        {"filter": {"type": "eq", "term": "nowhere", "value": 1}},
        {"filter": {"type": "almost", "term": "x", "value": 1}},
        {"filter": "x = 1"},
        {"filter": {"type": "eq", "term": "x"}},
        {"filter": {"type": "eq", "term": "x", "value": None}},
        {"filter": {"type": "eq", "term": "x", "value": 1, "child": True}},
        {"filter": {"type": "eq", "term": "X", "value": 1}},
        {"filter": {"type": "in", "term": "x", "values": [1, None]}},
        {"filter": {"type": "lt", "term": "x", "value": 2**63}},
        {"filter": {"type": "lt", "term": {"type": "transform", "transform": "weekly", "term": "x"}, "value": 1}},
        {"filter": {"type": "eq", "left": {"type": "reference", "id": 99}, "right": {"type": "literal", "value": 1}}},
        {"filter": {"type": "or", "left": True, "right": {"type": "almost"}}},
        {"filter": {"type": "and", "left": {"type": "is-null", "term": "x"}}},
        {"filter": {"type": "and", "left": False, "right": None}},
        {"stats-fields": ["nowhere"]},
        {"stats-fields": "x"},
        {"case-sensitive": "yes"},
        {"min-rows-requested": -1},
        {"select": [1]},
    ],
)
async def test_what_has_no_meaning_is_a_bad_request(client: Client, history: ScannedTable, body: JsonObject) -> None:
    answer = await client.post(PLAN, body)
    assert answer.status == 400
    assert answer.error_type in ("BadRequestException", "IllegalArgumentException")


async def test_a_filter_means_the_schema_that_is_chosen(client: Client, scanned: ScannedTable) -> None:
    await commit(client, await scanned.snapshot(1, [Manifest(entries("a", x=(1, 9)))]))
    renamed = {**schema("y"), "schema-id": 1}
    updates = [{"action": "add-schema", "schema": renamed}, {"action": "set-current-schema", "schema-id": -1}]
    assert (await client.post(TABLE, {"requirements": [], "updates": updates})).status == 200
    of_old: JsonObject = {"filter": {"type": "not-null", "term": "x"}, "snapshot-id": 1}
    of_new: JsonObject = {"filter": {"type": "not-null", "term": "y"}, "snapshot-id": 1}
    assert (await client.post(PLAN, of_old)).status == 400
    assert await scan(client, {**of_old, "use-snapshot-schema": True}) == ["a"]
    assert await scan(client, of_new) == ["a"]
    assert (await client.post(PLAN, {**of_new, "use-snapshot-schema": True})).status == 400


# Plans in parts.


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers of a few files."""
    monkeypatch.setattr(planner, "PART_WEIGHT", 20)


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("claimed", [None, 0, 500])
async def test_all_parts_together_have_each_file_once(
    client: Client, scanned: ScannedTable, claimed: int | None
) -> None:
    """Also if the manifest list does not tell the truth of how many files a manifest has."""
    sizes = [1, 200, 3, 0, 500, 40, 40, 1]
    manifests = [Manifest(entries(*numbered(size, f"m{place}-")), claimed=claimed) for place, size in enumerate(sizes)]
    manifests = manifests if claimed is None else [Manifest(entries("z")), *manifests]
    await commit(client, await scanned.snapshot(1, manifests))
    expected = [f"m{place}-{number}" for place, size in enumerate(sizes) for number in range(size)]
    found = await scan(client)
    if claimed == 0:  # a manifest without files is not read
        assert found == ["z"]
    else:
        assert [name for name in found if name != "z"] == expected


@pytest.mark.usefixtures("small_parts")
async def test_an_answer_has_64_plan_tasks_or_fewer_and_they_nest(client: Client, scanned: ScannedTable) -> None:
    manifests = [Manifest(entries(*numbered(2, f"m{place}-"))) for place in range(400)]
    await commit(client, await scanned.snapshot(1, manifests))
    first = await client.post(PLAN, {})
    depths: Counter[int] = Counter()

    async def descend(answer: Answer, depth: int) -> int:
        assert len(plan_tasks_of(answer)) <= 64
        depths[depth] += 1
        found = len(tasks_of(answer))
        for task in plan_tasks_of(answer):
            found += await descend(await client.post(TASKS, {"plan-task": task}), depth + 1)
        return found

    assert await descend(first, 0) == 800
    assert depths[0] == 1
    assert depths[2] > 64


async def test_an_answer_is_bounded_in_bytes_and_a_plan_task_has_the_rest(
    client: Client, scanned: ScannedTable
) -> None:
    long = [f"{'x' * 8_000}{number}" for number in range(600)]
    await commit(client, await scanned.snapshot(1, [Manifest(entries(*long))]))
    first = await client.post(PLAN, {})
    assert len(first.body) < 3 << 20
    assert plan_tasks_of(first)
    assert await scan(client) == long


@pytest.mark.parametrize("memory", [20_000, 1], ids=["of_some_files", "less_than_one_file"])
async def test_a_manifest_whose_files_take_much_memory_is_planned_in_parts(
    client: Client, scanned: ScannedTable, monkeypatch: pytest.MonkeyPatch, memory: int
) -> None:
    monkeypatch.setattr(avro, "SLICE_RECORDS", 7)
    monkeypatch.setattr(files_memory, "MAX_FILES_BYTES", memory)
    await commit(client, await scanned.snapshot(1, [Manifest(entries(*numbered(100), x=(0, 6)))]))
    first = await client.post(PLAN, {})
    assert 0 < len(tasks_of(first)) < 40
    assert await scan(client) == numbered(100)


@pytest.mark.parametrize("few_deletes", [True, False])
async def test_manifests_whose_files_take_much_memory_together_are_planned_in_parts(
    client: Client, scanned: ScannedTable, monkeypatch: pytest.MonkeyPatch, few_deletes: bool
) -> None:
    """Also if their writer claims that each has one file, and if many are read for one search of the deletes."""
    monkeypatch.setattr(avro, "SLICE_RECORDS", 7)
    monkeypatch.setattr(files_memory, "MAX_FILES_BYTES", 20_000)
    monkeypatch.setattr(delete_files, "FEW_FILES", 9 if few_deletes else 0)
    sizes = [3, 0, *[20] * 30]
    data = [Manifest(entries(*numbered(size, f"m{place}-")), claimed=1) for place, size in enumerate(sizes)]
    deletes = Manifest(entries("e", content=2, equality_ids=[1]), content=1)
    await commit(client, await scanned.snapshot(1, [*data, deletes]))
    first = await client.post(PLAN, {})
    assert 0 < len(tasks_of(first)) < 120
    assert await scan(client) == [f"m{place}-{number}" for place, size in enumerate(sizes) for number in range(size)]


async def test_an_index_of_many_deletes_changes_no_task(
    client: Client, scanned: ScannedTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = {"content_offset": 4, "content_size_in_bytes": 40, "file_format": "PUFFIN"}
    vectors = [
        entries(f"v{n}", content=1, referenced_data_file=f"memory:///wh/f{n}.parquet", **place) for n in range(9)
    ]
    equality = entries(*numbered(5, "e"), content=2, equality_ids=[1], x=(5, 9))
    data = [Manifest(entries(*numbered(20), x=(0, 6))), Manifest(entries(*numbered(20, "g"), x=(7, 9)))]
    first = await scanned.snapshot(1, data)
    deletes = [Manifest(each, content=1) for each in (*vectors, equality)]
    await commit(client, first, await scanned.snapshot(2, deletes, parent=1, operation="delete"))

    async def deletes_by_file(filter_: JsonValue) -> dict[str, list[str]]:
        found = {}
        async for answer in answers(client, await client.post(PLAN, {"filter": filter_})):
            listed: Any = answer.json.get("delete-files", [])
            for task in tasks_of(answer):
                of_it = [listed[number]["file-path"] for number in task.get("delete-file-references", [])]
                found[task["data-file"]["file-path"]] = sorted(of_it)
        return found

    filters: list[JsonValue] = [True, {"type": "lt", "term": "x", "value": 5}, {"type": "gt", "term": "x", "value": 6}]
    few = [await deletes_by_file(each) for each in filters]
    monkeypatch.setattr(delete_files, "FEW_FILES", 0)
    monkeypatch.setattr(delete_files, "RUN_MANIFESTS", 3)
    assert [await deletes_by_file(each) for each in filters] == few
    assert [sum(map(len, each.values())) for each in few] == [209, 9, 100]


async def test_a_plan_of_files_whose_deletes_take_too_much_memory_together_goes_on_in_plan_tasks(
    client: Client, scanned: ScannedTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only those of one data file make a plan impossible."""
    monkeypatch.setattr(delete_files, "FEW_FILES", 0)
    monkeypatch.setattr(delete_files, "RUN_MANIFESTS", 1)
    monkeypatch.setattr(delete_memory, "MAX_BYTES", 10 * 1_000)
    wanted = numbered(30)
    data = [Manifest(entries(*part, x=(0, 9))) for part in (wanted[:18], wanted[18:])]
    deletes = [
        Manifest(entries(f"p{each}", f"q{each}", content=1, referenced_data_file=f"memory:///wh/{each}.parquet"), 1)
        for each in wanted
    ]
    first = await scanned.snapshot(1, data)
    await commit(client, first, await scanned.snapshot(2, deletes, parent=1, operation="delete"))
    found = []
    async for answer in answers(client, await client.post(PLAN, {})):
        assert answer.status == 200, answer.body
        found += tasks_of(answer)
        assert len(tasks_of(answer)) <= 5
    assert sorted(names(found)) == sorted(wanted)
    assert {len(task["delete-file-references"]) for task in found} == {2}
    monkeypatch.setattr(delete_memory, "MAX_BYTES", 1_000)
    assert (await client.post(PLAN, {})).status == 406


async def test_a_plan_whose_deletes_take_long_to_compare_goes_on_in_plan_tasks(
    client: Client, scanned: ScannedTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Thousands of equality deletes match none of thousands of files: one answer would take longer than a request."""
    monkeypatch.setattr(planner, "MAX_COMPARISONS", 50)
    wanted = numbered(40)
    data = [Manifest(entries(*part, x=(0, 9))) for part in (wanted[:25], wanted[25:])]
    deletes = entries(*numbered(20, "e"), x=(1_000, 1_000), content=2, equality_ids=[1])
    first = await scanned.snapshot(1, data)
    second = await scanned.snapshot(2, [Manifest(deletes, content=1)], parent=1, operation="delete")
    await commit(client, first, second)
    found = [tasks_of(answer) async for answer in answers(client, await client.post(PLAN, {}))]
    assert sorted(name for tasks in found for name in names(tasks)) == sorted(wanted)
    assert not any("delete-file-references" in task for tasks in found for task in tasks)
    assert max(map(len, found)) == 2


@pytest.mark.parametrize(
    ("claimed", "status", "reason"),
    [(None, 200, b""), (600_000, 406, b"rewrite_manifests"), (1, 400, b"more than 12 records")],
    ids=["the_truth", "more_than_can_be_read", "fewer_than_there_are"],
)
async def test_delete_manifests_that_take_longer_than_a_request_are_refused_for_good(
    client: Client,
    scanned: ScannedTable,
    monkeypatch: pytest.MonkeyPatch,
    claimed: int | None,
    status: int,
    reason: bytes,
) -> None:
    """A client would send a request again and again that is refused with 503."""
    monkeypatch.setattr(manifest_source, "SPARE_ENTRIES", 10)
    deletes = entries(*(f"e{number}" for number in range(20)), content=2, equality_ids=[1])
    first = await scanned.snapshot(1, [Manifest(entries("a"))])
    added = Manifest(deletes, content=1, claimed=claimed)
    await commit(client, first, await scanned.snapshot(2, [added], parent=1, operation="delete"))
    answer = await client.post(PLAN, {})
    assert (answer.status, reason in answer.body) == (status, True)


async def test_an_index_of_deletes_is_of_one_reading_of_the_partitions(
    client: Client, scanned: ScannedTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the schema that lacks the partition's column, and of that of the snapshot, which knows its decimals."""
    monkeypatch.setattr(delete_files, "FEW_FILES", 0)
    x: JsonObject = {"id": 1, "name": "x", "type": "long", "required": False}
    d: JsonObject = {"id": 2, "name": "d", "type": "decimal(9, 2)", "required": False}
    by_d: JsonObject = {"fields": [{"source-id": 2, "field-id": 1000, "name": "d", "transform": "identity"}]}

    async def evolve(fields: list[JsonValue], spec: JsonObject) -> None:
        updates: list[JsonValue] = [
            {"action": "add-schema", "schema": {"type": "struct", "schema-id": 0, "fields": fields}},
            {"action": "set-current-schema", "schema-id": -1},
            {"action": "add-spec", "spec": spec},
            {"action": "set-default-spec", "spec-id": -1},
        ]
        made = await client.post(TABLE, {"requirements": [], "updates": updates})
        assert made.status == 200, made.body

    await evolve([x, d], by_d)
    place: dict[str, Any] = {"partition": {"d": Decimal("1.23")}}
    of_d: Any = {"d": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}}
    first = await scanned.snapshot(1, [Manifest(entries("a", **place), spec_id=1, partition=of_d)])
    deletes = Manifest(entries("p", content=1, **place), content=1, spec_id=1, partition=of_d)
    second = await scanned.snapshot(2, [deletes], parent=1, operation="delete")
    await commit(client, first, {**second, "schema-id": 1})
    await evolve([x], {"fields": []})
    for body in ({}, {"snapshot-id": 2, "use-snapshot-schema": True}, {}):
        (task,) = tasks_of(await client.post(PLAN, body))
        assert task["delete-file-references"] == [0]


async def test_a_file_with_too_many_deletes_is_refused(client: Client, scanned: ScannedTable) -> None:
    deletes = [f"{'x' * 8_000}{number}" for number in range(600)]
    first = await scanned.snapshot(1, [Manifest(entries("a", x=(1, 9)))])
    second = await scanned.snapshot(
        2, [Manifest(entries(*deletes, content=2, equality_ids=[1]), content=1)], parent=1, operation="delete"
    )
    await commit(client, first, second)
    answer = await client.post(PLAN, {})
    assert (answer.status, answer.error_type) == (406, "UnsupportedOperationException")
    assert "rewrite_data_files" in answer.message


async def test_no_more_delete_files_are_written_than_an_answer_has_room_for(
    client: Client, scanned: ScannedTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of seventy thousand for one data file the JSON took thirty megabytes, before the file was refused."""
    monkeypatch.setattr(answer_module, "MAX_FILE_BYTES", 2_000)
    written: list[str] = []
    file_json = scan_json.file_json

    def observed(file: ContentFile, *arguments: Any) -> JsonObject:
        written.append(file.path)
        return file_json(file, *arguments)

    monkeypatch.setattr(answer_module, "file_json", observed)
    first = await scanned.snapshot(1, [Manifest(entries("a", x=(1, 9)))])
    deletes = Manifest(entries(*numbered(200, "e"), content=2, equality_ids=[1]), content=1)
    await commit(client, first, await scanned.snapshot(2, [deletes], parent=1, operation="delete"))
    assert (await client.post(PLAN, {})).status == 406
    assert len(written) < 30


def record_threads(monkeypatch: pytest.MonkeyPatch, calls: list[tuple[str, bool]], where: object, name: str) -> None:
    """Adds to `calls` each call of a function of a module or class, with whether it is outside the event loop."""
    work = getattr(where, name)

    def recorded(*arguments: Any) -> Any:
        calls.append((name, threading.current_thread() is not threading.main_thread()))
        return work(*arguments)

    monkeypatch.setattr(where, name, recorded)


@pytest.mark.usefixtures("small_parts")
async def test_a_scan_of_many_manifests_is_divided_outside_the_event_loop(
    client: Client, scanned: ScannedTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And their list is compressed there. Each takes tens of milliseconds for 50,000 manifests."""
    calls: list[tuple[str, bool]] = []
    record_threads(monkeypatch, calls, planner, "split")
    record_threads(monkeypatch, calls, ManifestList, "add")
    monkeypatch.setattr(worker_threads, "SMALL_BYTES", 4_000)
    await commit(client, await scanned.snapshot(1, [Manifest(entries(f"m{number}")) for number in range(60)]))
    assert len(await scan(client)) == 60
    assert calls[:2] == [("add", True), ("split", True)]


@pytest.mark.usefixtures("small_parts")
async def test_a_long_filter_is_compiled_outside_the_event_loop(
    client: Client, history: ScannedTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And packed for its plan tasks, and unpacked from one."""
    calls: list[tuple[str, bool]] = []
    names_ = ("scan_filter", "pack_scan", "unpack_scan")
    for name in names_:
        record_threads(monkeypatch, calls, plans, name)
    for values in ([7], [number * 7919 for number in range(20_000)]):
        answer = await client.post(PLAN, {"filter": {"type": "in", "term": "x", "values": [*values]}})
        assert answer.status == 200, answer.body
        fetched = await client.get(f"{PLAN}/{answer.json['plan-id']}")
        assert fetched.body == answer.body
    assert {*calls[:4]} == {(name, False) for name in names_}
    assert {*calls[4:]} == {(name, True) for name in names_}


async def test_a_filter_is_compiled_for_the_specs_of_the_manifests_outside_the_event_loop(
    client: Client, scanned: ScannedTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As is all that depends on the number of columns and partition fields of the table, which its writers choose."""
    doc = "x" * worker_threads.SMALL_BYTES
    columns: list[JsonValue] = [{"id": 1, "name": "x", "type": "long", "required": False, "doc": doc}]
    by_x: list[JsonObject] = [{"source-id": 1, "name": "b", "transform": f"bucket[{n}]"} for n in (2, 3, 4)]
    specs: list[JsonObject] = [{"action": "add-spec", "spec": {"fields": [each]}} for each in by_x]
    updates: list[JsonValue] = [
        {"action": "add-schema", "schema": {"type": "struct", "schema-id": 0, "fields": columns}},
        *specs,
    ]
    assert (await client.post(TABLE, {"requirements": [], "updates": updates})).status == 200
    calls: list[tuple[str, bool]] = []
    record_threads(monkeypatch, calls, PartitionFields, "__init__")
    record_threads(monkeypatch, calls, SpecFilter, "manifest_may_match")
    deletes = Manifest(entries("e", content=2, equality_ids=[1]), content=1)
    await commit(client, await scanned.snapshot(1, [Manifest(entries("a")), deletes]))
    assert await scan(client, {"filter": {"type": "is-null", "term": "x"}}) == ["a"]
    assert calls == [("__init__", True), ("manifest_may_match", True), ("manifest_may_match", True)]


@pytest.mark.parametrize(
    ("step", "limit"), [("manifest_may_match", manifest_source.CALLS_PER_READING), ("residual_json", 1)]
)
async def test_a_plan_ends_with_its_deadline(
    service: HttpService, scanned: ScannedTable, monkeypatch: pytest.MonkeyPatch, step: str, limit: int
) -> None:
    """Between some manifests and any two partitions: a thread can't be stopped from outside."""
    steps: list[str] = []
    work = getattr(SpecFilter, step)

    def slow(*arguments: Any) -> Any:
        steps.append(step)
        service.clock.ms += 30_000
        return work(*arguments)

    manifests = [
        Manifest(entries(f"a{number}", f"b{number}")) for number in range(3 * manifest_source.CALLS_PER_READING)
    ]
    await commit(service.client, await scanned.snapshot(1, manifests))
    monkeypatch.setattr(SpecFilter, step, slow)
    assert (await service.client.post(PLAN, {})).status == 503
    assert 1 <= len(steps) <= limit


async def test_a_manifest_without_a_matching_file_is_read_until_the_deadline(
    service: HttpService, scanned: ScannedTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(avro, "SLICE_RECORDS", 7)
    judged: list[Partition] = []

    def none_matches(_: SpecFilter, partition: Partition) -> bool:
        judged.append(partition)
        service.clock.ms += 30_000
        return False

    monkeypatch.setattr(manifest_entries, "MAX_JUDGED_BYTES", -1)
    monkeypatch.setattr(SpecFilter, "partition_may_match", none_matches)
    await commit(service.client, await scanned.snapshot(1, [Manifest(entries(*numbered(100)))]))
    assert (await service.client.post(PLAN, {})).status == 503
    assert len(judged) <= 7


async def test_counts_of_files_beyond_all_bounds_are_planned(client: Client, scanned: ScannedTable) -> None:
    first = await scanned.snapshot(1, [Manifest(entries("a"), claimed=MAX_COUNT)])
    (listed,) = scanned.written[1]
    scanned.written[1] = [listed._replace(existing_files_count=MAX_COUNT, deleted_files_count=MAX_COUNT)]
    await commit(client, first, await scanned.snapshot(2, [Manifest(entries("b"))], parent=1))
    assert await scan(client) == ["a", "b"]


@pytest.mark.usefixtures("small_parts")
async def test_the_plan_tasks_of_a_filter_of_a_megabyte_are_read(client: Client, scanned: ScannedTable) -> None:
    text: JsonObject = {"id": 2, "name": "s", "type": "string", "required": False}
    x: JsonObject = {"id": 1, "name": "x", "type": "long", "required": False}
    wider = {"type": "struct", "schema-id": 1, "fields": [x, text]}
    updates = [{"action": "add-schema", "schema": wider}, {"action": "set-current-schema", "schema-id": -1}]
    assert (await client.post(TABLE, {"requirements": [], "updates": updates})).status == 200
    await commit(client, await scanned.snapshot(1, [Manifest(entries(*numbered(12)))]))
    values: list[JsonValue] = [f"{number:070}" for number in range(20_000)]
    body: JsonObject = {"filter": {"type": "in", "term": "s", "values": values}}
    assert plan_tasks_of(await client.post(PLAN, body))
    assert await scan(client, body) == numbered(12)


async def test_an_increment_of_many_appends_is_planned_in_parts(client: Client, scanned: ScannedTable) -> None:
    snapshots = [await scanned.snapshot(1, [])]
    for number in range(2, 60):
        snapshots.append(
            await scanned.snapshot(number, [Manifest(entries(*numbered(number % 5, f"s{number}-")))], parent=number - 1)
        )
    await commit(client, *snapshots)
    body: JsonObject = {"start-snapshot-id": 3, "end-snapshot-id": 59}
    assert await scan(client, body) == [f"s{number}-{each}" for number in range(4, 60) for each in range(number % 5)]
    assert plan_tasks_of(await client.post(PLAN, body))


async def test_an_increment_leaves_out_what_an_entry_states_another_snapshot_to_have_added(
    client: Client, scanned: ScannedTable
) -> None:
    """As Iceberg's Java library does, which a writer may have meant by it."""
    first = await scanned.snapshot(1, [])
    listed = [*entries("a"), *entries("b", added_by=1), *entries("c", added_by=3), *entries("d", added_by=77)]
    second = await scanned.snapshot(2, [Manifest(listed)], parent=1)
    third = await scanned.snapshot(3, [], parent=2)
    await commit(client, first, second, third)
    assert await scan(client, {"start-snapshot-id": 1, "end-snapshot-id": 3}) == ["a", "c"]
    assert await scan(client) == ["a", "b", "c", "d"]


async def test_what_is_left_behind_a_full_answer_is_split_into_parts_that_each_fill_one(
    client: Client, scanned: ScannedTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of its answers had read all entries behind it in vain."""
    await commit(client, await scanned.snapshot(1, [Manifest(entries(*numbered(400)))]))
    read: list[int] = []

    def observed(**fields: Any) -> EntrySelection:
        read.append((400 if fields["end"] is None else fields["end"]) - fields["first"])
        return EntrySelection(**fields)

    monkeypatch.setattr(f"{planner.__name__}.EntrySelection", observed)
    monkeypatch.setattr(answer_module, "MAX_BYTES", 2_000)
    assert await scan(client) == numbered(400)
    assert len(read) > 20
    assert sum(read) < 3 * 400


@pytest.mark.usefixtures("small_parts")
async def test_a_scan_of_few_rows_reads_no_more(client: Client, scanned: ScannedTable) -> None:
    await commit(client, await scanned.snapshot(1, [Manifest(entries(*numbered(500)))]))
    few = await client.post(PLAN, {"min-rows-requested": 25})
    assert not plan_tasks_of(few)
    assert 30 <= 10 * len(tasks_of(few)) <= 2_000
    again = await client.get(f"{PLAN}/{few.json['plan-id']}")
    assert tasks_of(again) == tasks_of(few)
    assert len(await scan(client, {"min-rows-requested": 4_990})) == 500
    unsure: JsonObject = {"min-rows-requested": 25, "filter": {"type": "lt", "term": "x", "value": 5}}
    assert len(await scan(client, unsure)) == 500


@pytest.mark.usefixtures("small_parts")
async def test_a_scan_of_few_rows_that_finds_too_few_leaves_nothing_out(
    client: Client, scanned: ScannedTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if its first answer is full, and the rest has the maximum number of parts."""
    monkeypatch.setattr(answer_module, "MAX_BYTES", 100)
    manifests = [Manifest(entries(*numbered(2, f"m{place}-"))) for place in range(128)]
    await commit(client, await scanned.snapshot(1, manifests))
    body: JsonObject = {"min-rows-requested": 1, "filter": {"type": "is-null", "term": "x"}}
    first = await client.post(PLAN, body)
    assert tasks_of(first)
    assert len(plan_tasks_of(first)) == 64
    assert sorted(await scan(client, body)) == sorted(f"m{place}-{each}" for place in range(128) for each in range(2))


# Tokens.


def task_of(service: HttpService, loaded: Answer, snapshot_id: int, part: Range = WHOLE) -> str:
    """A plan task for a part of a snapshot, by default all of it, of the table that was loaded."""
    entity = str(loaded.json["metadata-location"]).partition("/t-")[2][:26]
    return Token(entity, service.clock.ms // 1000, snapshot_id, pack_scan(Scan(snapshot_id, 0), 1), part).text


async def test_a_plan_is_fetched_as_it_was_answered_and_cancelled(client: Client, history: ScannedTable) -> None:
    planned = await client.post(PLAN, {"filter": {"type": "eq", "term": "x", "value": 7}})
    plan = f"{PLAN}/{planned.json['plan-id']}"
    assert (await client.get(plan)).body == planned.body
    assert (await client.delete(plan)).status == 204
    assert (await client.get(plan)).body == planned.body


async def test_another_process_goes_on_with_a_plan(
    service: HttpService, scanned: ScannedTable, small_parts: None
) -> None:
    values: list[JsonValue] = [number * 7919 % 100_003 for number in range(3_000)]
    filter_: JsonObject = {"type": "or", "left": {"type": "is-null", "term": "x"}, "right": True}
    long: JsonObject = {"type": "not-in", "term": "x", "values": values}
    await commit(service.client, await scanned.snapshot(1, [Manifest(entries(*numbered(300)))]))
    for body in ({"filter": filter_}, {"filter": long}):
        first = await service.client.post(PLAN, body)
        assert len(str(first.json["plan-id"])) <= 512
        found = [
            name
            for task in plan_tasks_of(first)
            for name in names(tasks_of(await service.serve().post(TASKS, {"plan-task": task})))
        ]
        assert found == numbered(300)
        assert (await service.serve().get(f"{PLAN}/{first.json['plan-id']}")).body == first.body


async def test_a_long_request_is_stored_once_a_day(service: HttpService, history: ScannedTable) -> None:
    body: JsonObject = {"filter": {"type": "in", "term": "x", "values": [number * 7919 for number in range(500)]}}
    for _ in range(2):
        assert (await service.client.post(PLAN, body)).status == 200
    (key,) = service.store.keys("wh/_catalog/plans/")
    assert isinstance(await service.store.get(key), Found)
    service.clock.ms += 24 * 3600 * 1000
    assert (await service.client.post(PLAN, body)).status == 200
    assert len(service.store.keys("wh/_catalog/plans/")) == 2


async def test_a_token_of_yesterday_or_of_another_table_is_refused(service: HttpService, history: ScannedTable) -> None:
    client, whole = service.client, task_of(service, await service.client.get(TABLE), 4)
    plan_id = (await client.post(PLAN, {})).json["plan-id"]
    await service.table("u")

    async def refused(table: str) -> list[tuple[int, str]]:
        plan = await client.get(f"{table}/plan/{plan_id}")
        task = await client.post(f"{table}/tasks", {"plan-task": whole})
        return [(each.status, each.error_type) for each in (plan, task) if each.status != 200]

    gone = [(404, "NoSuchPlanIdException"), (404, "NoSuchPlanTaskException")]
    assert await refused(TABLE) == []
    assert await refused(f"{TABLES}/u") == gone
    service.clock.ms += (LIFETIME_S + 1) * 1000
    assert await refused(TABLE) == gone


async def test_a_plan_of_an_expired_snapshot_is_gone(service: HttpService, history: ScannedTable) -> None:
    client, task = service.client, {"plan-task": task_of(service, await service.client.get(TABLE), 2)}
    plan_id = (await client.post(PLAN, {"snapshot-id": 2})).json["plan-id"]
    assert names(tasks_of(await client.post(TASKS, task))) == ["a", "b"]
    removed = {"requirements": [], "updates": [{"action": "remove-snapshots", "snapshot-ids": [2]}]}
    assert (await client.post(TABLE, removed)).status == 200
    assert (await client.get(f"{PLAN}/{plan_id}")).error_type == "NoSuchPlanIdException"
    assert (await client.post(TASKS, task)).error_type == "NoSuchPlanTaskException"
    assert (await client.delete(f"{PLAN}/{plan_id}")).status == 204


async def test_a_plan_goes_on_after_a_commit_and_a_rename(
    client: Client, scanned: ScannedTable, small_parts: None
) -> None:
    await commit(client, await scanned.snapshot(1, [Manifest(entries(*numbered(100)))]))
    first = await client.post(PLAN, {"filter": {"type": "is-null", "term": "x"}})
    await commit(client, await scanned.snapshot(2, [Manifest(entries("new"))], parent=1))
    renamed = {**schema("y"), "schema-id": 1}
    updates = [{"action": "add-schema", "schema": renamed}, {"action": "set-current-schema", "schema-id": -1}]
    assert (await client.post(TABLE, {"requirements": [], "updates": updates})).status == 200
    names_ = {"source": {"namespace": ["db"], "name": "t"}, "destination": {"namespace": ["db"], "name": "r"}}
    assert (await client.post("/v1/wh/tables/rename", names_)).status == 204
    found = [
        name
        for task in plan_tasks_of(first)
        for name in names(tasks_of(await client.post(f"{TABLES}/r/tasks", {"plan-task": task})))
    ]
    assert found == numbered(100)


@pytest.mark.parametrize("text", ["", "x", "a" * 513, "é", "AAAA", "plan/1"])
async def test_another_text_is_no_plan_and_no_plan_task(client: Client, text: str) -> None:
    task = await client.post(TASKS, {"plan-task": text})
    assert (task.status, task.error_type) == (404, "NoSuchPlanTaskException")
    if text.isalnum() and text.isascii():
        for answer in (await client.get(f"{PLAN}/{text}"), await client.delete(f"{PLAN}/{text}")):
            assert (answer.status, answer.error_type) == (404, "NoSuchPlanIdException")


@pytest.mark.parametrize(
    "part",
    [
        Range(Position(1, 0, 0), Position(2, 0, 0)),
        Range(Position(0, 7, 0), Position(0, 8, 0)),
    ],
)
async def test_a_part_that_the_scan_does_not_have_is_refused(
    service: HttpService, history: ScannedTable, part: Range
) -> None:
    loaded = await service.client.get(TABLE)
    answer = await service.client.post(TASKS, {"plan-task": task_of(service, loaded, 4, part)})
    assert answer.error_type == "NoSuchPlanTaskException"
    assert len(tasks_of(await service.client.post(TASKS, {"plan-task": task_of(service, loaded, 4)}))) == 4


async def test_a_key_is_accepted_and_not_recorded(service: HttpService, history: ScannedTable) -> None:
    before = service.store.keys("wh/_catalog/")
    answer = await service.client.post(PLAN, {}, Idempotency_Key=service.key())
    assert answer.status == 200
    assert service.store.keys("wh/_catalog/") == before


@pytest.mark.parametrize("path", [f"{TABLES}/nowhere", "/v1/wh/namespaces/nowhere/tables/t"])
async def test_a_table_that_does_not_exist_is_not_planned(client: Client, path: str) -> None:
    for answer in (
        await client.post(f"{path}/plan", {}),
        await client.get(f"{path}/plan/x"),
        await client.post(f"{path}/tasks", {"plan-task": "x"}),
    ):
        assert answer.error_type in ("NoSuchTableException", "NoSuchNamespaceException")


async def test_a_plan_is_counted_in_the_line_of_its_request() -> None:
    service = LoggedService()
    await service.namespace("db", "db")
    await service.table("t")
    metadata: Any = (await service.client.get(TABLE)).json["metadata"]
    table = ScannedTable(service.store, metadata["location"])
    await commit(service.client, await table.snapshot(1, [Manifest(entries("a", x=(0, 5))), Manifest(entries("b"))]))
    below: JsonObject = {"filter": {"type": "lt", "term": "x", "value": 3}}
    await service.client.post(PLAN, below)
    assert [service.last[f"scan_{what}"] for what in ("files", "manifests", "manifests_pruned")] == [2, 2, 0]
    assert [service.last[f"scan_cache_{what}"] for what in ("hits", "misses")] == [0, 1 + 2 + 2]
    await service.client.post(PLAN, below)  # has the list, and the bytes of the manifests, whose files it packs
    assert [service.last[f"scan_cache_{what}"] for what in ("hits", "misses")] == [1 + 2, 2]
    await service.client.post(PLAN, below)
    assert [service.last[f"scan_cache_{what}"] for what in ("hits", "misses")] == [1 + 2, 0]
    await service.client.get(TABLE)
    assert "scan_files" not in service.last
