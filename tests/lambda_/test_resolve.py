"""A function loads several tables in one request, also as they are at one instant, and sends what its host carries."""

from collections.abc import Callable

from arco_catalog.http.lambda_adapter import Endpoint
from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.state.fields import mapping, objects
from tests.lambda_.conftest import WAREHOUSE, Caller
from tools.support.request_bodies import schema, set_property

NAMESPACES = f"/v1/{WAREHOUSE}/namespaces"
LARGE = "x" * 1_200_000


def test_a_function_resolves_what_fits_and_lists_the_rest(behind: Callable[[Endpoint], Caller]) -> None:
    api = behind(Endpoint.HTTP_API)
    api.post(NAMESPACES, {"namespace": ["resolved"]})
    names = [f"t{number}" for number in range(7)]
    for name in names:
        assert api.post(f"{NAMESPACES}/resolved/tables", {"name": name, "schema": schema("x")}).status == 200
        assert api.post(f"{NAMESPACES}/resolved/tables/{name}", set_property("a", LARGE)).status == 200
    wanted: list[JsonValue] = [{"identifier": ["resolved", name]} for name in names]
    body: JsonObject = {"relations": wanted}

    first = api.post(f"/v1/{WAREHOUSE}/resolve", body)
    left = objects(mapping(first.json, "unprocessed"), "relations")
    second = api.post(f"/v1/{WAREHOUSE}/resolve", {"relations": [*left]})

    found = [*objects(first.json, "relations"), *objects(second.json, "relations")]
    assert [each["status"] for each in found] == ["loaded"] * len(names)
    known: list[JsonValue] = [{"identifier": each["identifier"], "etag": each["etag"]} for each in found]
    assert api.post(f"/v1/{WAREHOUSE}/resolve", {**body, "consistent": True}).error_type == "AnswerTooLargeException"
    cut = api.post(f"/v1/{WAREHOUSE}/resolve", {"relations": known, "consistent": True})
    assert cut.json["consistent"] is True
    assert {each["status"] for each in objects(cut.json, "relations")} == {"not-modified"}
