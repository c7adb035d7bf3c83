"""What the host cannot carry: refused before a change is made, an error with a way out where it is read, and never a
truncated body."""

import base64
import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.planning.answer_limit import ENVELOPE_BYTES, AnswerLimit, pack
from tests.support.http_service import HttpService
from tools.support.request_bodies import schema, set_property

TABLE = "/v1/wh/namespaces/db/tables/t"
LIMIT = ENVELOPE_BYTES + 100_000
LARGE = "x" * 200_000


def noise(characters: int) -> str:
    """Text that gzip can make little of: the digits of a power of three, in base 85."""
    number = 3 ** (5 * characters)
    return base64.b85encode(number.to_bytes((number.bit_length() + 7) // 8)).decode()[:characters]


@pytest.fixture
async def service(service_with: Callable[..., HttpService]) -> HttpService:
    """A service behind a host with a small response limit, with the table `db.t`."""
    service = service_with(payload_bytes=LIMIT, gzip=True)
    await service.namespace("db", "db")
    await service.table("t")
    return service


@given(st.text(), st.integers(0, 2_000))
def test_text_is_measured_as_the_host_will_write_it(text: str, limit: int) -> None:
    body = json.dumps({"a": text}, ensure_ascii=False, indent=1).encode("utf-8", "replace")
    written = len(json.dumps(body.decode(), ensure_ascii=False).encode()) - 2

    carried = AnswerLimit(limit + ENVELOPE_BYTES, gzipped=False).carries(body, text=True)

    assert carried == (written <= limit) or b"\x7f" in body


@given(st.binary(), st.integers(-5, 5))
def test_what_is_no_text_is_measured_as_base64(body: bytes, room: int) -> None:
    limit = len(base64.b64encode(body)) + room

    carried = AnswerLimit(limit + ENVELOPE_BYTES, gzipped=True).carries(body, text=False)

    assert carried or room < 2  # it may be counted two bytes too large
    assert not carried or room >= 0


async def test_a_commit_that_could_not_be_answered_is_refused_before_it_is_made(service: HttpService) -> None:
    before = await service.client.get(TABLE)

    answer = await service.client.post(TABLE, set_property("a", LARGE))

    assert answer.status == 400
    assert answer.error_type == "AnswerTooLargeException"
    assert "expire snapshots" in answer.message
    assert (await service.client.get(TABLE)).body == before.body


async def test_the_same_commit_goes_through_for_a_client_that_accepts_gzip(service: HttpService) -> None:
    answer = await service.client.post(TABLE, set_property("a", LARGE), accept_encoding="gzip")

    assert answer.status == 200
    assert answer.headers["Content-Encoding"] == "gzip"
    assert len(answer.body) < LIMIT


async def test_what_gzip_cannot_make_fit_is_refused_all_the_same(service: HttpService) -> None:
    answer = await service.client.post(TABLE, set_property("a", noise(130_000)), accept_encoding="gzip")

    assert answer.status == 400
    assert answer.error_type == "AnswerTooLargeException"


@pytest.mark.parametrize("accepted", ["identity", "gzip"])
async def test_a_table_that_grows_to_the_limit_is_refused_before_an_answer_about_it_is(
    service: HttpService, accepted: str
) -> None:
    """What an answer holds beside the metadata counts too: no commit is made that can't be answered."""
    await service.client.post(TABLE, set_property("write.metadata.previous-versions-max", "1"))
    text = noise(140_000) if accepted == "gzip" else LARGE
    fits, too_many = 0, len(text)
    while too_many - fits > 1:  # the limit lies between them
        characters = (fits + too_many) // 2
        answer = await service.client.post(TABLE, set_property("a", text[:characters]), accept_encoding=accepted)
        assert answer.status == 200 or answer.error_type == "AnswerTooLargeException"
        fits, too_many = (characters, too_many) if answer.status == 200 else (fits, characters)
        assert (await service.client.get(TABLE, accept_encoding=accepted)).status == 200


async def test_a_part_of_a_transaction_that_could_not_be_loaded_is_refused_with_all_of_it(service: HttpService) -> None:
    await service.table("u")
    changes: list[JsonValue] = [
        {"identifier": {"namespace": ["db"], "name": name}, **set_property("a", text)}
        for name, text in (("t", "small"), ("u", LARGE))
    ]

    answer = await service.client.post("/v1/wh/transactions/commit", {"table-changes": changes})

    assert (answer.status, answer.error_type) == (400, "AnswerTooLargeException")
    loaded = (await service.client.get(TABLE)).json["metadata"]
    assert isinstance(loaded, dict)
    assert "a" not in loaded.get("properties", {})  # type: ignore[operator]


async def test_a_create_that_could_not_be_answered_makes_nothing(service: HttpService) -> None:
    wanted: JsonObject = {"name": "u", "schema": schema("x"), "properties": {"a": LARGE}}

    answer = await service.client.post("/v1/wh/namespaces/db/tables", wanted)

    assert (answer.status, answer.error_type) == (400, "AnswerTooLargeException")
    assert (await service.client.get("/v1/wh/namespaces/db/tables/u")).status == 404


async def test_a_register_that_could_not_be_answered_makes_nothing(service: HttpService) -> None:
    file = await service.keep_metadata("elsewhere", properties={"a": LARGE})

    answer = await service.client.post("/v1/wh/namespaces/db/register", {"name": "u", "metadata-location": file})

    assert (answer.status, answer.error_type) == (400, "AnswerTooLargeException")
    assert (await service.client.get("/v1/wh/namespaces/db/tables/u")).status == 404


async def test_a_load_that_does_not_fit_is_an_error_that_names_the_ways_out(service: HttpService) -> None:
    await service.client.post(TABLE, set_property("a", LARGE), accept_encoding="gzip")

    answer = await service.client.get(TABLE)

    assert (answer.status, answer.error_type) == (400, "AnswerTooLargeException")
    assert all(way in answer.message for way in ("accept gzip", "snapshots=refs", "expire"))
    assert (await service.client.get(TABLE, accept_encoding="gzip")).status == 200


async def test_a_change_that_was_made_is_never_answered_as_refused(service: HttpService) -> None:
    key = service.key()
    await service.client.post(TABLE, set_property("a", LARGE), accept_encoding="gzip", idempotency_key=key)

    answer = await service.client.post(TABLE, set_property("a", LARGE), idempotency_key=key)

    assert (answer.status, answer.error_type) == (500, "CommitStateUnknownException")


async def test_the_refusal_of_a_list_that_does_not_fit_suggests_pages(service: HttpService) -> None:
    parent = ["n" * 250 for _ in range(5)]
    for levels in range(1, 6):
        await service.client.post("/v1/wh/namespaces", {"namespace": parent[:levels]})
    for number in range(80):
        await service.client.post("/v1/wh/namespaces", {"namespace": [*parent, str(number)]})
    children = f"/v1/wh/namespaces?parent={'%1F'.join(parent)}"

    answer = await service.client.get(children)

    assert (answer.status, answer.error_type) == (400, "AnswerTooLargeException")
    assert "pageToken" in answer.message
    assert (await service.client.get(f"{children}&pageToken=&pageSize=50")).status == 200


async def test_properties_of_a_namespace_that_could_not_be_read_back_are_refused(service: HttpService) -> None:
    properties: JsonObject = dict.fromkeys("abc", LARGE[:60000])  # as long as a namespace's may be

    made = await service.client.post("/v1/wh/namespaces", {"namespace": ["other"], "properties": properties})
    changed = await service.client.post("/v1/wh/namespaces/db/properties", {"updates": properties, "removals": []})

    for answer in (made, changed):
        assert (answer.status, answer.error_type) == (400, "AnswerTooLargeException")
        assert "fewer or shorter" in answer.message
    assert (await service.client.get("/v1/wh/namespaces/other")).status == 404
    assert (await service.client.get("/v1/wh/namespaces/db")).status == 200


async def test_no_limit_is_the_rule(service_with: Callable[..., HttpService]) -> None:
    service = service_with()
    await service.namespace("db", "db")
    await service.table("t")

    assert (await service.client.post(TABLE, set_property("a", "x" * 7_000_000))).status == 200
    assert len((await service.client.get(TABLE)).body) > 7_000_000


def test_packing_the_same_body_gives_the_same_bytes() -> None:
    assert pack(b"a" * 1000) == pack(b"a" * 1000)


@pytest.mark.parametrize("body", ['"', "\\", "\n", "x", "\u8868"])
def test_a_body_counts_as_the_string_that_it_becomes_in_the_hosts_json(body: str) -> None:
    text = body * 1_000
    carried = len(json.dumps(text, ensure_ascii=False).encode()) - len('""') + ENVELOPE_BYTES

    assert AnswerLimit(carried, gzipped=False).carries(text.encode(), text=True)
    assert not AnswerLimit(carried - 1, gzipped=False).carries(text.encode(), text=True)


async def test_labels_are_left_out_where_the_host_could_not_carry_them(service: HttpService) -> None:
    tags: JsonObject = {f"arco.tag.{number}": noise(1_000) for number in range(15)}
    assert (await service.client.post(f"{TABLE}/governance", tags)).status == 200
    small = await service.client.get(TABLE)
    assert (await service.client.post(TABLE, set_property("a", noise(90_000)))).status == 200

    large = await service.client.get(TABLE)

    assert (small.status, "labels" in small.json) == (200, True)
    assert (large.status, "labels" in large.json) == (200, False)
