"""The client of Open Policy Agent: what it sends, what it believes, and for how long."""

import asyncio
import ssl
from pathlib import Path

import pytest
from aiohttp import web

from arco_catalog.authentication import opa
from arco_catalog.authentication.opa import WireSend, load_policy_agent
from arco_catalog.iceberg.errors import Unavailable
from arco_catalog.planning.policy_questions import Actor, Question, system_question
from storage_backends import StoreError
from tests.support.certificates import write_certificate
from tests.support.fake_runtime import FakeRuntime
from tests.support.policy_stub import PolicyStub
from tests.support.stub_server import stub_server

ANN = Actor("ann", "1", ("analyst",), "r")


def question(name: str) -> Question:
    return Question("TABLE_LIST", "TABLE", "lake", ("db",), name)


async def test_more_than_a_thousand_questions_are_queried_in_batches() -> None:
    stub = PolicyStub(lambda principal, action, kind, name: name.endswith("7"))

    answers = await stub.agent(lambda: 5).decide(ANN, [question(str(number)) for number in range(2_500)])

    assert [place for place, queried_ms in enumerate(answers) if queried_ms == 5] == [*range(7, 2_500, 10)]
    assert [len(given["requests"]) for _, given in stub.calls] == [1_000, 1_000, 500]


async def test_without_a_rule_for_batches_each_question_is_queried_by_itself() -> None:
    stub = PolicyStub(lambda principal, action, kind, name: name == "db.1")

    answers = await stub.agent(lambda: 0, batch=False).decide(ANN, [question("0"), question("1")])

    assert [*answers] == [None, 0]
    assert len(stub.calls) == 2


async def test_the_pipeline_s_namespace_is_queried_about_by_the_rule_for_batches_alone() -> None:
    stub = PolicyStub()

    assert [*(await stub.agent(lambda: 0).decide(ANN, [system_question("lake")]))] == [0]
    assert [*(await stub.agent(lambda: 0, batch=False).decide(ANN, [system_question("lake")]))] == [None]
    assert [url.rpartition("/")[2] for url, _ in stub.calls] == ["batch"]


async def test_a_consent_counts_from_when_it_was_queried_for() -> None:
    clock, stub = FakeRuntime(), PolicyStub()
    agent = stub.agent(clock.now_ms, cache_ms=5_000)
    began = clock.now_ms()

    def slow(*_: str) -> bool:
        clock.ms += 4_000
        return True

    stub.allows = slow
    assert [*(await agent.decide(ANN, [question("t")]))] == [began]
    clock.ms += 999
    await agent.decide(ANN, [question("t")])
    assert len(stub.calls) == 1
    clock.ms += 1
    await agent.decide(ANN, [question("t")])
    assert len(stub.calls) == 2


async def test_a_clock_that_is_set_back_ends_what_is_remembered() -> None:
    clock, stub = FakeRuntime(), PolicyStub()
    agent = stub.agent(clock.now_ms, cache_ms=5_000)
    await agent.decide(ANN, [question("t")])

    clock.ms -= 1
    await agent.decide(ANN, [question("t")])

    assert len(stub.calls) == 2


async def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opa, "MAX_CACHED", 3)
    stub = PolicyStub()
    agent = stub.agent(lambda: 0, cache_ms=5_000)

    await agent.decide(ANN, [question(str(number)) for number in range(5)])
    await agent.decide(ANN, [question("4"), question("0")])

    assert stub.actions[5:] == ["TABLE_LIST 0"]


async def test_other_roles_are_another_actor() -> None:
    stub = PolicyStub()
    agent = stub.agent(lambda: 0, cache_ms=5_000)

    await agent.decide(ANN, [question("t")])
    await agent.decide(Actor("ann", "1", (), "r"), [question("t")])

    assert len(stub.calls) == 2


async def test_questions_go_over_one_connection_with_the_token() -> None:
    seen: list[tuple[object, str | None]] = []

    async def answer(request: web.BaseRequest) -> web.Response:
        assert request.transport is not None
        seen.append((request.transport.get_extra_info("peername"), request.headers.get("authorization")))
        return web.json_response({"result": True, "decision_id": "x"})

    async with stub_server(answer) as server:
        send = WireSend(2.0, "secret")
        for _ in range(2):
            assert (await send.send(f"{server.uri}/v1/data/a/allow?x=1", b"{}")).body.startswith(b'{"result"')
        await send.close()

    assert len({peer for peer, _ in seen}) == 1
    assert {token for _, token in seen} == {"Bearer secret"}


@pytest.mark.parametrize("drip", [False, True])
async def test_an_answer_that_takes_too_long_is_none(drip: bool) -> None:
    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for _ in range(1_000):
            if drip:
                await response.write(b" ")
            await asyncio.sleep(0.02)
        return response

    async with stub_server(answer) as server:
        send = WireSend(0.2)
        with pytest.raises(StoreError, match=r"did not answer within 0\.2 s"):
            await send.send(server.uri, b"{}")
        await send.close()


async def test_an_answer_that_is_too_long_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opa, "MAX_ANSWER_BYTES", 1_000)

    async def answer(_: web.BaseRequest) -> web.Response:
        return web.Response(body=b" " * 1_001)

    async with stub_server(answer) as server:
        send = WireSend(2.0)
        with pytest.raises(StoreError):
            await send.send(server.uri, b"{}")
        await send.close()


async def test_a_question_is_sent_again_over_another_connection() -> None:
    queried = 0

    async def answer(request: web.BaseRequest) -> web.Response:
        nonlocal queried
        queried += 1
        if queried == 1:
            assert request.transport is not None
            request.transport.abort()
        return web.json_response({"result": True})

    async with stub_server(answer) as server:
        send = WireSend(2.0)
        assert (await send.send(server.uri, b"{}")).status == 200
        await send.close()

    assert queried == 2


async def test_where_nothing_listens_there_is_no_answer() -> None:
    async with stub_server(PolicyStub().handle) as server:
        pass
    agent, send = load_policy_agent({"ARCO_OPA_URL": f"{server.uri}/v1/data/a/allow"}, FakeRuntime())

    with pytest.raises(Unavailable, match="since it could not be queried"):
        await agent.decide(ANN, [question("t")])
    await send.close()


async def test_an_authority_of_one_s_own_may_sign_the_certificate(tmp_path: Path) -> None:
    certificate, key = tmp_path / "certificate", tmp_path / "key"
    write_certificate(certificate, key, "127.0.0.1")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    async with stub_server(PolicyStub().handle, context) as server:
        trusting, untrusting = WireSend(2.0, ca_bundle=str(certificate)), WireSend(2.0)
        body = b'{"input": {"actor": {"principal": "a", "id": "1"}, "requests": []}}'
        assert (await trusting.send(server.uri, body)).body == b'{"result":[]}'
        with pytest.raises(StoreError):
            await untrusting.send(server.uri, body)
        await trusting.close()
        await untrusting.close()


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"ARCO_OPA_BATCH_URL": "https://opa/batch"}, "ARCO_OPA_BATCH_URL is set, and ARCO_OPA_URL is not"),
        ({"ARCO_OPA_URL": "http://opa.example.com/v1"}, "ARCO_OPA_URL: 'http://opa.example.com/v1' must be an https"),
        ({"ARCO_OPA_URL": "https://u:p@opa.example.com/"}, "ARCO_OPA_URL: .* must be a plain URL"),
        ({"ARCO_OPA_URL": "https://opa/", "ARCO_OPA_CACHE": "6"}, "ARCO_OPA_CACHE: .*from 0 to 5"),
        ({"ARCO_OPA_URL": "https://opa/", "ARCO_OPA_TIMEOUT": "0"}, "ARCO_OPA_TIMEOUT: .*from 1 to 10"),
        ({"ARCO_OPA_URL": "https://opa/", "ARCO_OPA_TOKEN_FILE": "/nowhere/x"}, "ARCO_OPA_TOKEN_FILE: .*No such file"),
    ],
)
def test_an_invalid_setting_is_refused(variables: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load_policy_agent(variables, FakeRuntime())


@pytest.mark.parametrize("text", ["", "two words", "line\nline", "ä"])
def test_a_file_without_a_token_is_refused(text: str, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(text)

    with pytest.raises(ValueError, match="holds no token"):
        load_policy_agent({"ARCO_OPA_URL": "https://opa/", "ARCO_OPA_TOKEN_FILE": str(file)}, FakeRuntime())
