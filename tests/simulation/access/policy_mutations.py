"""The rules of a policy outside of the catalog (docs/design/access.md), each left out: each must make a scenario
fail."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from arco_catalog.authentication.opa import PolicyAgent
from arco_catalog.iceberg.errors import Forbidden, Unavailable
from arco_catalog.planning.answers import Answer
from arco_catalog.planning.policy_questions import Actor, Question
from arco_catalog.protocol.commit_loop import CommitLoop
from arco_catalog.protocol.driver import Driver
from arco_catalog.protocol.policy import PolicyAccess
from arco_catalog.state.access import State
from arco_catalog.state.registry import RegistryState

Mutation = Callable[[pytest.MonkeyPatch], None]


def a_refusal_of_the_policy_remembered(patch: pytest.MonkeyPatch) -> None:
    rightly = PolicyAgent.decide

    async def decide(self: Any, actor: Actor, questions: Sequence[Question]) -> Sequence[int | None]:
        refused: set[tuple[str, Question]] = self.__dict__.setdefault("refused", set())
        if any((actor.id, question) in refused for question in questions):
            return [None] * len(questions)
        answers = await rightly(self, actor, questions)
        refused |= {(actor.id, each) for each, answer in zip(questions, answers, strict=True) if answer is None}
        return answers

    patch.setattr(PolicyAgent, "decide", decide)


def a_consent_remembered_for_a_minute(patch: pytest.MonkeyPatch) -> None:
    def cached(self: Any, actor: Actor, question: Question) -> int | None:
        queried_ms: int | None = self._allowed.get((actor, question))
        return None if queried_ms is None or self._now_ms() - queried_ms > 60_000 else queried_ms

    patch.setattr(PolicyAgent, "_cached", cached)


def no_answer_taken_for_a_refusal(patch: pytest.MonkeyPatch) -> None:
    rightly = PolicyAgent._result

    async def result(self: Any, url: str, given: Any) -> Any:
        try:
            return await rightly(self, url, given)
        except Unavailable:
            return [] if url == self._batch_url else False

    patch.setattr(PolicyAgent, "_result", result)


def no_answer_stored_as_the_answer_of_a_key(patch: pytest.MonkeyPatch) -> None:
    rightly = PolicyAccess.judge

    async def judge(self: PolicyAccess, state: State, head: RegistryState) -> None:
        try:
            await rightly(self, state, head)
        except Unavailable as error:
            raise Forbidden(error.message) from error

    patch.setattr(PolicyAccess, "judge", judge)


def a_policy_queried_in_front_of_the_marker(patch: pytest.MonkeyPatch) -> None:
    rightly = Driver.run

    async def run(self: Driver[Any]) -> Answer:
        await self.session.head()
        return await rightly(self)

    patch.setattr(Driver, "run", run)


def a_policy_queried_in_front_of_the_marker_alone(patch: pytest.MonkeyPatch) -> None:
    a_policy_queried_in_front_of_the_marker(patch)

    async def judge(self: CommitLoop[Any], head: RegistryState) -> None:
        access = self.access
        await (access.inner if isinstance(access, PolicyAccess) else access).judge(self.session.state, head)

    patch.setattr(CommitLoop, "judge", judge)


BUGS: tuple[Mutation, ...] = (
    a_refusal_of_the_policy_remembered,
    a_consent_remembered_for_a_minute,
    no_answer_taken_for_a_refusal,
    no_answer_stored_as_the_answer_of_a_key,
    a_policy_queried_in_front_of_the_marker,
    a_policy_queried_in_front_of_the_marker_alone,
)
