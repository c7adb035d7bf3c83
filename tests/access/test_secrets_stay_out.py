"""After sessions in which much was vended and signed, no part of it is in the store, in the log or in the telemetry
of requests, for any request and any outcome."""

import json
import logging
from pathlib import Path
from typing import cast

import pytest

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.telemetry.setup import server_telemetry
from arco_catalog.vending.service import Issuers, Vending
from arco_catalog.vending.static_keys import StaticIssuer
from arco_catalog.vending.storage_policy import StoragePolicy
from tests.access.test_delegation import ENDPOINT, SIGNED, VENDED, Fixture, T, credentials_of, lake, to_sign
from tests.support.realm_service import on_table, table_request
from tests.vending.fake_clouds import text
from tests.vending.test_sts import refusal
from tools.support.asgi_client import Answer

OWN = "own-secret", "own-token"
STS = "vended/secret", "vended-token"
STATIC = "static-reader-secret", "static-writer-secret"
TABLES = "/v1/lake/namespaces/db/tables"


async def session(it: Fixture) -> list[Answer]:
    """What engines ask for, one thing after another; some of it is refused."""
    grant = on_table("TABLE_READ_DATA", "db", "t")
    reader, stranger = await it.app.principal("reader", grant), await it.app.principal("stranger")
    file = str((await it.owner.get(T)).json["metadata-location"]).removeprefix("s3://")
    key, staged = it.app.key(), {**table_request("staged"), "stage-create": True}
    update: JsonObject = {"action": "set-properties", "updates": {"a": "b"}}
    change: JsonObject = {"requirements": [], "updates": [update]}
    table: JsonObject = {"identifier": {"namespace": ["db"], "name": "t"}, **change}
    answers = [
        await it.owner.get(T, **VENDED),
        await reader.get(T, **VENDED),
        await reader.get(f"{T}/credentials"),
        await stranger.get(f"{T}/credentials"),
        await reader.post(f"{T}/sign", to_sign("GET", file)),
        await reader.post(f"{T}/sign", to_sign("PUT", file)),
        await it.owner.post(f"{T}/sign", to_sign("GET", file)),
        await it.owner.post(TABLES, table_request("u"), **VENDED, idempotency_key=key),
        await it.owner.post(TABLES, table_request("u"), **VENDED, idempotency_key=key),
        await it.owner.post(TABLES, staged, **VENDED, idempotency_key=it.app.key()),
        await it.owner.post(T, change, **VENDED, idempotency_key=it.app.key()),
        await it.owner.get(T, **SIGNED),
    ]
    transaction: JsonObject = {"table-changes": [table]}
    assert (await it.owner.post("/v1/lake/transactions/commit", transaction, **VENDED)).status == 204
    assert (await it.owner.delete(f"{TABLES}/u")).status == 204
    unregistered = await it.owner.post(f"{T}/unregister", {})
    registered: JsonObject = {"name": "t", "metadata-location": unregistered.json["metadata-location"]}
    answers += [await it.owner.post("/v1/lake/namespaces/db/register", registered, **VENDED)]
    await it.app.clock.sleep(3_600)
    it.sts.answers[:] = [text(refusal("AccessDenied"), 403)]
    answers += [await it.owner.get(T, **VENDED)]
    return answers


async def emitted(it: Fixture, caplog: pytest.LogCaptureFixture) -> tuple[list[Answer], str]:
    """The answers of a session, and everything that is left of it."""
    lines: list[str] = []
    it.app.telemetry = server_telemetry({}, it.app.clock, json=lines.append, text=lines.append, namespace="Lake")
    it.owner = it.app.client("owner", app=it.app.serve())
    it.app.app = it.app.serve()
    with caplog.at_level(logging.DEBUG):
        answers = await session(it)
    assert len(lines) >= len(answers)
    return answers, "\n".join([caplog.text, *lines, (await it.stored()).decode()])


def signatures(answers: list[Answer]) -> list[str]:
    """What was signed for clients."""
    signed = [cast(dict[str, list[str]], answer.json["headers"]) for answer in answers if "headers" in answer.json]
    return [headers["authorization"][0].rpartition("=")[2] for headers in signed]


async def test_keys_of_sts_and_signatures_are_in_answers_alone(caplog: pytest.LogCaptureFixture) -> None:
    async with lake() as it:
        answers, left = await emitted(it, caplog)

        assert [answer.status for answer in answers if answer.status >= 400] == [404, 403, 500]
        assert sum(bool(credentials_of(answer)) for answer in answers) == 7
        assert len(signatures(answers)) == 2
        for secret in (*STS, *OWN, *signatures(answers)):
            assert secret not in left
        for answer in answers:
            assert not any(secret in answer.body.decode() for secret in OWN)


async def test_keys_of_stores_without_sts_are_in_answers_alone(
    caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    async with lake(stsUnavailable=True) as it:
        file = tmp_path / "keys.json"
        keys = {
            right: {"access-key-id": right, "secret-access-key": f"static-{right}-secret"}
            for right in ("reader", "writer")
        }
        file.write_text(json.dumps([{"prefix": "s3://bucket/lake", "opens-whole-prefix": True, **keys}]))
        static = StaticIssuer(str(file), it.app.clock.now_ms, 3_600)
        issuers = Issuers(static=static, signer=it.issuers.signer)
        policy = StoragePolicy.of([ENDPOINT, it.sts.uri])
        vending = Vending(issuers, it.app.clock.now_ms, it.outcomes.append, policy=policy)
        it.app.vending = lambda: vending

        answers, left = await emitted(it, caplog)

        given = [str(credentials_of(answer)) for answer in answers if credentials_of(answer)]
        assert [sum(secret in each for each in given) for secret in STATIC] == [2, 6]
        for secret in (*STATIC, *OWN, *signatures(answers)):
            assert secret not in left
        assert it.sts.asked == []
