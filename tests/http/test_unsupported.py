"""Endpoints of the specification that this catalog does not support."""

import pytest

from tools.support.asgi_client import Client

TABLE = "/v1/wh/namespaces/db/tables/t"


async def test_no_namespace_has_functions(client: Client) -> None:
    assert (await client.get("/v1/wh/namespaces/db/functions")).json == {"identifiers": [], "next-page-token": None}
    assert (await client.get("/v1/wh/namespaces/no/functions")).error_type == "NoSuchNamespaceException"
    missing = await client.get("/v1/wh/namespaces/db/functions/f%2Fg")
    assert missing.error_type == "NoSuchFunctionException"
    assert missing.message == "Function does not exist: db.f/g: no namespace of this catalog has functions"


@pytest.mark.parametrize(("method", "path"), [("GET", f"{TABLE}/credentials"), ("POST", f"{TABLE}/sign")])
async def test_clients_bring_their_own_access(client: Client, method: str, path: str) -> None:
    answer = await client.send(method, path, b"{}")

    assert (answer.status, answer.error_type) == (406, "UnsupportedOperationException")
    assert "configure the client with its own access" in answer.message


async def test_tokens_are_issued_elsewhere_in_the_words_of_oauth2(client: Client) -> None:
    answer = await client.send("POST", "/v1/oauth/tokens", b"grant_type=client_credentials&client_secret=hunter2")

    assert answer.status == 400
    assert answer.json["error"] == "unsupported_grant_type"
    assert "oauth2-server-uri" in str(answer.json["error_description"])
    assert b"hunter2" not in answer.body


async def test_the_answer_to_unregister_has_the_metadata_location(client: Client) -> None:
    loaded = await client.get(TABLE)

    answer = await client.post(f"{TABLE}/unregister", {})

    assert [*answer.json] == ["metadata-location", "metadata"]
    assert answer.json["metadata"] == loaded.json["metadata"]
    assert (await client.head(TABLE)).status == 404
    again = {"name": "t", "metadata-location": answer.json["metadata-location"]}
    assert (await client.post("/v1/wh/namespaces/db/register", again)).status == 200
