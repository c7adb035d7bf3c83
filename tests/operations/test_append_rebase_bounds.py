"""How much memory a rebased append may take: that of hostile manifest lists is bounded, and concurrent rebases of long
lists do not starve each other (docs/bounds.md)."""

import asyncio
import random
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest

from arco_catalog.iceberg.errors import CommitFailed
from arco_catalog.iceberg.json import JsonObject, dumps, loads
from arco_catalog.operations.commit import commit_table
from arco_catalog.operations.load import load_table
from arco_catalog.protocol.access import ALLOW_ALL
from arco_catalog.protocol.advisory_locks import AdvisoryLocks
from arco_catalog.protocol.manifest_reader import ManifestReader
from arco_catalog.state.memory import REQUEST_MEMORY_BYTES, Memory
from storage_backends import ANY
from tools.support.appended_files import ALLOWED, Entry, Lake, list_schema, manifest_metadata
from tools.support.avro_files import avro_file, varint
from tools.support.catalog_fixture import NS, CatalogFixture
from tools.support.manifests import avro

Change = Callable[[Entry], bytes]
SUMMARY = {"contains_null": True, "contains_nan": None, "lower_bound": None, "upper_bound": None}
RECORD_BYTES = 64 << 10


async def document(fixture: CatalogFixture) -> Any:
    return loads((await load_table(fixture.session(), NS, "t")).metadata)


async def write(fixture: CatalogFixture, location: str, body: bytes) -> None:
    await fixture.store.put(location.removeprefix("memory:///"), body, ANY)


def declared(name: str, type_: object) -> Any:
    """The schema of a list whose field has another type than the specification's."""
    schema: Any = list_schema(2)
    for each in schema["fields"]:
        if each["name"] == name:
            each["type"] = type_
            each.pop("default", None)
    return schema


def repeated(type_: object, entry: Entry, name: str, value: bytes) -> bytes:
    """A list of one entry, in which a field has such an array of a million values."""
    schema = declared(name, {"type": "array", "items": type_})
    before = {each["name"]: each["type"] for each in _fields(schema)}
    data = b""
    for field, kind in before.items():
        if field == name:
            data += varint(1_000_000) + value * 1_000_000 + b"\0"
        elif kind == "string":
            text = str(entry[field]).encode()
            data += varint(len(text)) + text
        elif isinstance(kind, list):
            data += b"\0"
        else:
            data += varint(entry[field])
    return avro_file(schema, [(1, data)])


def with_summaries(entry: Entry, count: int) -> Entry:
    """An entry of a list with summaries that can't be compressed much."""
    bounds = random.Random(1)
    return {**entry, "partitions": [{**SUMMARY, "lower_bound": bounds.randbytes(4)} for _ in range(count)]}


def _fields(schema: Any) -> Any:
    return schema["fields"]


BOOLEAN: JsonObject = {"type": "record", "name": "r508", "fields": [{"name": "contains_null", "type": "boolean"}]}
HOSTILE: dict[str, tuple[Change, str]] = {
    "a million booleans as partitions": (
        lambda entry: repeated("boolean", entry, "partitions", b"\1"),
        "the field partitions of the Avro schema is not an array of records",
    ),
    "a million summaries in an entry": (
        lambda entry: repeated(BOOLEAN, entry, "partitions", b"\1"),
        "has more than 100,000 items",
    ),
    "a million empty arrays as a number": (
        lambda entry: repeated({"type": "array", "items": "int"}, entry, "content", b"\0"),
        "the field content of the Avro schema is not a single value",
    ),
    "a map as a number": (
        lambda entry: avro(declared("content", {"type": "map", "values": "int"}), [{**entry, "content": {"a": 1}}]),
        "the field content of the Avro schema is not a single value",
    ),
    "summaries of arrays": (
        lambda entry: avro(
            declared(
                "partitions",
                {
                    "type": "array",
                    "items": {
                        "type": "record",
                        "name": "s",
                        "fields": [{"name": "contains_null", "type": {"type": "array", "items": "boolean"}}],
                    },
                },
            ),
            [{**entry, "partitions": [{"contains_null": [True]}]}],
        ),
        "the field partitions of the Avro schema is not an array of records",
    ),
    "1,001 summaries in an entry": (
        lambda entry: avro(list_schema(2), [{**entry, "partitions": [SUMMARY] * 1_001}]),
        "more than 1,000 summaries",
    ),
    "50,001 summaries in a list": (
        lambda entry: avro(list_schema(2), [with_summaries(entry, count) for count in (*([1_000] * 50), 1)]),
        "more than 50,000 summaries",
    ),
    "an entry of more than 64 KiB": (
        lambda entry: avro(list_schema(2), [{**entry, "manifest_path": "x" * RECORD_BYTES}]),
        "has more than 65,536 bytes",
    ),
    "a list that unpacks to more than 4 MiB": (
        lambda entry: avro(list_schema(2), [{**entry, "key_metadata": random.Random(1).randbytes(3_000) * 20}] * 200),
        "unpacks to more than|bytes of records",
    ),
}


@pytest.mark.parametrize(("change", "why"), HOSTILE.values(), ids=HOSTILE)
async def test_a_list_beyond_its_bounds_is_refused_in_little_memory(
    fixture: CatalogFixture, change: Change, why: str
) -> None:
    await fixture.table(properties={**ALLOWED})
    lake = Lake(fixture.store)
    late = await lake.append(await document(fixture), 9)
    location = late["updates"][0]["snapshot"]["manifest-list"]
    body = change((await lake.records(location))[0])
    await write(fixture, location, body)
    await fixture.commit(await lake.append(await document(fixture), 2))
    tracemalloc.start()
    try:
        with pytest.raises(CommitFailed, match=f"not rebased: .*({why})"):
            await fixture.commit(late)
        assert tracemalloc.get_traced_memory()[1] < (40 << 20)
    finally:
        tracemalloc.stop()


async def test_a_manifest_with_a_long_schema_is_refused(fixture: CatalogFixture) -> None:
    await fixture.table(properties={**ALLOWED})
    lake = Lake(fixture.store)
    long = {"schema": dumps({"schema-id": 0, "doc": "x" * (512 << 10)}).decode()}
    late = await lake.append(await document(fixture), 9, metadata={**manifest_metadata(), **long})
    await fixture.commit(await lake.append(await document(fixture), 2))
    with pytest.raises(CommitFailed, match=r"not rebased: the manifest .* has a schema of more than 524,288 bytes"):
        await fixture.commit(late)


def many_values() -> list[Entry]:
    """Entries of the most summaries that a list may have."""
    return [{**entry_of(number), "partitions": with_summaries({}, 10)["partitions"]} for number in range(5_000)]


def longest_text() -> list[Entry]:
    """Entries with text of which each letter takes four bytes in memory."""
    text = random.Random(1)
    return [{**entry_of(number), "manifest_path": "\U0001f600" + text.randbytes(15_000).hex()} for number in range(100)]


def entry_of(number: int) -> Entry:
    """An entry of a list."""
    numbers = [each["name"] for each in _fields(list_schema(2)) if each["type"] in ("int", "long")]
    return {**dict.fromkeys(numbers, 1), "manifest_path": f"{number}", "partitions": None, "key_metadata": None}


@pytest.mark.parametrize("entries", [many_values, longest_text])
async def test_the_memory_that_is_taken_for_a_list_is_enough(
    fixture: CatalogFixture, entries: Callable[[], list[Entry]]
) -> None:
    await write(fixture, "memory:///list.avro", avro(list_schema(2), entries()))
    reader = ManifestReader(fixture.session())
    file = await reader.read_list("memory:///list.avro")
    tracemalloc.start()
    try:
        assert len(await reader.entries(file)) >= 100
        assert tracemalloc.get_traced_memory()[1] < file.decoded_bytes()
    finally:
        tracemalloc.stop()


LISTED = 4_500
WRITERS = 6
"""Six of these would take more than a process has for all requests, if each kept what it has decoded."""


async def long_table(fixture: CatalogFixture, lake: Lake) -> None:
    """A table whose snapshot 1 has a list of thousands of manifests."""
    await fixture.table(properties={**ALLOWED})
    first = await lake.append(await document(fixture), 1)
    location = first["updates"][0]["snapshot"]["manifest-list"]
    [entry] = await lake.records(location)
    summaries = [{**SUMMARY, "lower_bound": bytes(8), "upper_bound": bytes(8)}] * 3
    others = [
        {**entry, "manifest_path": f"{entry['manifest_path']}-{uuid4()}", "partitions": summaries}
        for _ in range(LISTED)
    ]
    await write(fixture, location, avro(list_schema(2), [entry, *others]))
    await fixture.commit(first)


async def test_concurrent_rebases_of_long_lists_do_not_starve_each_other(fixture: CatalogFixture) -> None:
    fixture.catalog = replace(fixture.catalog, table_locks=AdvisoryLocks(timeout_seconds=60))
    lake, memory = Lake(fixture.store), Memory(REQUEST_MEMORY_BYTES, timeout_seconds=0.5)
    await long_table(fixture, lake)
    built_on = await document(fixture)
    bodies = [await lake.append(built_on, number) for number in range(10, 10 + WRITERS)]
    await fixture.commit(await lake.append(built_on, 2))
    kept: list[int] = []

    async def commit(body: JsonObject) -> None:
        session = fixture.session(body, key=fixture.key(), deadline_ms=100_000)
        with memory.hold() as hold:
            await commit_table(fixture.catalog.session(replace(session.request, hold=hold), ALLOW_ALL), NS, "t", body)
            kept.append(sum(each.size for each in hold._taken))

    async with asyncio.TaskGroup() as group:
        for body in bodies:
            group.create_task(commit(body))
    assert len((await document(fixture))["snapshots"]) == WRITERS + 2
    assert max(kept) < (4 << 20)
    assert memory.used == 0
