"""Members of a group commit are judged without a call, by what the policy consented to in the last five seconds."""

import pytest

from arco_catalog.planning.access import Requirement, Securable
from arco_catalog.planning.policy_questions import Actor
from arco_catalog.planning.privileges import Privilege
from arco_catalog.protocol.access import ALLOW_ALL
from arco_catalog.protocol.policy import MAX_AGE_MS, PolicyAccess
from arco_catalog.state.registry import RegistryState
from arco_catalog.state.runtime import Deadline
from tests.support.http_service import HttpService
from tests.support.policy_stub import PolicyStub

ON_T = (Requirement(Privilege.TABLE_DROP, Securable(("db",), "t")),)


@pytest.mark.parametrize(("age_ms", "stays"), [(0, True), (MAX_AGE_MS, True), (MAX_AGE_MS + 1, False), (-1, False)])
async def test_a_member_stays_in_its_batch_while_consent_is_young(age_ms: int, stays: bool) -> None:
    service, stub = HttpService(), PolicyStub()
    agent = stub.agent(service.clock.now_ms)
    access = PolicyAccess(ALLOW_ALL, agent, Actor("ann", "1"), "wh", ON_T, Deadline.after(service.clock, 20_000))
    state, head = service.session().state, RegistryState.empty()
    assert not access.judge_loaded(head.index, [])

    await access.judge(state, head)
    service.clock.ms += age_ms

    assert access.judge_loaded(head.index, []) is stays
    assert len(stub.calls) == 1


async def test_what_the_policy_decides_between_needs_no_call_and_no_refusal_is_reused() -> None:
    service, stub = HttpService(), PolicyStub()
    agent = stub.agent(service.clock.now_ms, cache_ms=MAX_AGE_MS)
    access = PolicyAccess(ALLOW_ALL, agent, Actor("ann", "1"), "wh", ON_T, Deadline.after(service.clock, 20_000))
    state, head = service.session().state, RegistryState.empty()
    await access.judge(state, head)
    service.clock.ms += MAX_AGE_MS - 1
    await access.judge(state, head)  # by what is remembered: its age counts from the call

    service.clock.ms += 2

    assert len(stub.calls) == 1
    assert not access.judge_loaded(head.index, [])
