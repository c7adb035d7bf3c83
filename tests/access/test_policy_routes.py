"""Every route queries the policy about each privilege that it needs, and is refused or fails with it."""

import pytest

from storage_backends.wire.http1 import Response
from tests.access.lake import Lake, is_denied
from tests.access.test_policy import PolicyServer
from tests.access.test_routes import CASES, Case
from tests.support.realm_service import on_catalog
from tools.support.asgi_client import Answer

EVERYTHING = ("CATALOG_MANAGE_CONTENT", "CATALOG_MANAGE_ACCESS", "CATALOG_MANAGE_METADATA")
NEEDY = [case for case in CASES if case.needs]


async def sent(policed: PolicyServer, case: Case) -> Answer:
    """The answer to a principal with all grants."""
    await policed.app.principal("all", *map(on_catalog, EVERYTHING))
    return await case.send(policed.lake, policed.client("all"))


@pytest.mark.parametrize("case", NEEDY, ids=lambda case: case.name)
async def test_a_request_that_the_policy_allows_was_queried_about(case: Case, first: Lake) -> None:
    policed = PolicyServer(first)

    answer = await sent(policed, case)

    assert case.is_allowed(answer), answer.body
    assert {each.value for each in case.needs} <= {each.partition(" ")[0] for each in policed.stub.actions}


@pytest.mark.parametrize("case", NEEDY, ids=lambda case: case.name)
async def test_a_request_that_the_policy_denies_is_refused(case: Case, first: Lake) -> None:
    policed = PolicyServer(first)
    policed.stub.allows = lambda *_: False

    assert is_denied(await sent(policed, case))


@pytest.mark.parametrize("case", NEEDY, ids=lambda case: case.name)
async def test_without_grants_the_policy_refuses_alone(case: Case, first: Lake) -> None:
    policed = PolicyServer(first, judged=False)
    policed.stub.allows = lambda *_: False

    assert is_denied(await sent(policed, case))


@pytest.mark.parametrize("case", NEEDY, ids=lambda case: case.name)
async def test_a_request_without_an_answer_of_the_policy_fails_for_now(case: Case, first: Lake) -> None:
    policed = PolicyServer(first)
    policed.stub.answer = Response(200, {}, b"{}")

    assert (await sent(policed, case)).status == 503
