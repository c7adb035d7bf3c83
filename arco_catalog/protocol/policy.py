"""Access that also needs the consent of a policy outside of the catalog, wherever the grants are judged
(docs/design/access.md#a-policy-outside-of-the-catalog)."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from itertools import chain, compress
from typing import Protocol

from arco_catalog.iceberg.errors import Forbidden, Refusal, Unavailable
from arco_catalog.planning.access import Requirement, Securable, denied
from arco_catalog.planning.names import no_such
from arco_catalog.planning.policy_questions import Actor, Question, questions_of, realm_questions
from arco_catalog.planning.privileges import Privilege
from arco_catalog.protocol.access import Access, Requirements
from arco_catalog.protocol.lookup import carry_out, carry_out_loaded
from arco_catalog.protocol.mutation import Freshness
from arco_catalog.state.access import State
from arco_catalog.state.index import Index
from arco_catalog.state.needs import Needs, Steps
from arco_catalog.state.reads import recorded
from arco_catalog.state.registry import RegistryState
from arco_catalog.state.runtime import Deadline

MAX_AGE_MS = 5_000
"""How long a decision that allows something may be used, after the policy was queried."""


class Policy(Protocol):
    """The interface of a policy outside of the catalog, which determines whether an actor may do something, in addition
    to the grants."""

    async def decide(self, actor: Actor, questions: Sequence[Question]) -> Sequence[int | None]:
        """Returns for each question the time at which the policy was queried, no longer ago than `MAX_AGE_MS`, if it
        allows what the question is about. None if it does not, which never comes from a cache, but may come without a
        query. Raises `Unavailable` without a readable answer."""
        ...

    @property
    def takes_batches(self) -> bool:
        """Whether many questions to the policy take few calls, so that it may be queried about all items of a list."""
        ...


class PolicyAccess(Access):
    """The access of one request that needs the rights that `inner` checks, and the consent of a policy. `requirements`
    are what the request's route and body require, in the catalog with the name `catalog`, or in the realm itself if
    that is None. `actor` is the caller where `inner` checks no grants. The policy is awaited until the request's
    `deadline`, however many calls its answers take."""

    inherits = False

    def __init__(
        self,
        inner: Access,
        policy: Policy,
        actor: Actor,
        catalog: str | None,
        requirements: Sequence[Requirement],
        deadline: Deadline,
        page_key: Callable[[], Awaitable[bytes]] | None = None,
    ) -> None:
        self.inner = inner
        self._policy = policy
        self._actor = actor
        self._catalog = catalog
        self._requirements = requirements
        self._deadline = deadline
        self._page_key = page_key
        self._decisions: dict[Question, int | None] = {}
        """The decisions of the policy since the request was judged last."""

    @property
    def checks_grants(self) -> bool:
        """Whether the request is checked against the caller's grants besides the policy."""
        return self.inner.checks_grants

    @property
    def of_grants(self) -> Access:
        """The check of grants that this access combines with the policy, which it does not query."""
        return self.inner

    @property
    def is_fresh(self) -> bool:
        """Whether the rights that `inner` has read are new enough for an error to rest on them."""
        return self.inner.is_fresh  # the policy is queried anew by each judgement

    async def page_key(self) -> bytes | None:
        """Returns the key of page tokens: from the function that was given for that, or else that of `inner`, which may
        be None."""
        return await self.inner.page_key() if self._page_key is None else await self._page_key()

    async def read(self, freshness: Freshness) -> None:
        """Reads the caller's rights as `inner` does, and does not query the policy."""
        await self.inner.read(freshness)

    async def has_changed(self) -> bool:
        """Reads the caller's rights as `inner` does, and returns whether they have changed. Does not query the policy,
        so that a change of the policy is not seen."""
        return await self.inner.has_changed()

    async def judge(self, state: State, head: RegistryState) -> None:
        """Judges the request by the grants, then by the policy: all requirements are put to `Policy.decide` again,
        which may have some cached as allowed. Raises the error of `inner`, `Unavailable` if the policy can't be
        queried, and `Forbidden`, or the error for a missing object, if it does not consent."""
        await self.inner.judge(state, head)
        self._decisions.clear()  # each attempt queries the policy again
        questions = await self._questions_on(state, head, self._requirements)
        await self._query(questions)
        refusal = self._refusal(questions)
        if refusal is not None:
            raise refusal

    def judge_loaded(self, index: Index, lookups: list[Needs]) -> bool:
        """Whether `inner` allows the request, and the policy has allowed all requirements within the last `MAX_AGE_MS`.
        Queries nothing: False if a decision is missing or older, or a segment is not loaded. Appends the lookups to
        `lookups`."""
        if not self.inner.judge_loaded(index, lookups):
            return False
        questions = carry_out_loaded(index, recorded(self._questions(index, self._requirements), lookups))
        now_ms = self._deadline.runtime.now_ms()
        times = [None] if questions is None else [self._decisions.get(question) for question in questions]
        return all(queried_ms is not None and 0 <= now_ms - queried_ms <= MAX_AGE_MS for queried_ms in times)

    def refusal(self, index: Index, requirement: Requirement) -> Steps[Refusal | None]:
        """Returns the error of the grants, or else that of the policy; None if both allow the requirement. Queries the
        policy only about questions that it has not decided since the request was judged last; `Unavailable` is raised
        if it can't be queried."""
        refusal = yield from self.inner.refusal(index, requirement)
        if refusal is not None:
            return refusal
        questions = yield from self._questions(index, [requirement])
        if self._undecided(questions):
            yield Needs(call=lambda: self._query(questions))
        return self._refusal(questions)

    async def held(
        self, state: State, head: RegistryState, privileges: Collection[Privilege], on: Securable
    ) -> frozenset[Privilege]:
        """Returns the privileges that the caller has by the grants, and that the policy allows. Queries the policy
        about them unless it has decided since the request was judged last. Raises `Unavailable`."""
        held = sorted(await self.inner.held(state, head, privileges, on))
        return frozenset(compress(held, await self._allows(state, head, [Requirement(each, on) for each in held])))

    async def prepare(self, state: State, head: RegistryState, requirements: Requirements) -> None:
        """Queries the policy at once about these requirements, without the questions that it has decided since the
        request was judged last, and keeps the decisions. Checks no grants. Raises `Unavailable`."""
        required = await carry_out(state, head.index, requirements(head.index))
        await self._query(await self._questions_on(state, head, required))

    async def lists(self, state: State, head: RegistryState, items: Sequence[Requirement]) -> Sequence[bool]:
        """Returns for every item whether the policy lets the caller see it; True for all, without a query, if the
        policy takes no batches. Checks no grants. Raises `Unavailable`."""
        if not self._policy.takes_batches:
            return [True] * len(items)
        return await self._allows(state, head, items)

    async def consents(
        self, state: State, head: RegistryState, required: Sequence[Requirement], actor: Actor
    ) -> Sequence[bool]:
        """Returns for each requirement whether the policy allows it to an actor, who need not be the caller, whatever
        grants there are. Always calls `Policy.decide`, which may have some cached as allowed, at once about all, and
        keeps no decision in this access. Raises `Unavailable`."""
        questions = [await self._questions_on(state, head, [each]) for each in required]
        distinct = [*dict.fromkeys(chain.from_iterable(questions))]
        decisions = dict(zip(distinct, await self._decide(actor, distinct), strict=True))
        return [_are_allowed(each, decisions) for each in questions]

    @property
    def actor(self) -> Actor:
        """The request's caller, for questions to the policy: as the realm knows it by the rights as last read, or,
        outside of a realm, as the credentials name it."""
        standing = self.inner.standing
        if standing is None:
            return self._actor
        return Actor(standing.name, standing.id, standing.role_names, self._actor.realm)

    def _refusal(self, questions: Sequence[Question]) -> Refusal | None:
        """Returns the error for the first of these questions to which the policy does not consent; None if it consents
        to all: that for a missing table or view if the policy consents to the question about a missing one
        (`if_absent`), else `Forbidden`. The decisions about all of them must be there (`_query`)."""
        refused = next((question for question in questions if self._decisions[question] is None), None)
        if refused is None:
            return None
        shown = refused.if_absent or refused
        if refused.name is not None and self._decisions[shown] is not None:
            refusal = no_such("table-like", refused.namespace, refused.name)
        else:
            refusal = Forbidden(f"The policy does not allow principal {self.actor.principal} {shown}")
        return denied(refusal, refused.action, refused.type.lower())

    async def _allows(self, state: State, head: RegistryState, requirements: Sequence[Requirement]) -> Sequence[bool]:
        """Returns for each requirement whether the policy allows it to the caller. Queries the policy at once about all
        questions that it has not decided since the request was judged last, and keeps the decisions."""
        questions = [await self._questions_on(state, head, [each]) for each in requirements]
        await self._query(chain.from_iterable(questions))
        return [_are_allowed(each, self._decisions) for each in questions]

    async def _questions_on(
        self, state: State, head: RegistryState, requirements: Iterable[Requirement]
    ) -> Sequence[Question]:
        """Returns the questions to the policy about these requirements, by this HEAD. May load segments."""
        return await carry_out(state, head.index, self._questions(head.index, requirements))

    def _questions(self, index: Index, requirements: Iterable[Requirement]) -> Steps[Sequence[Question]]:
        """Computes the questions to the policy about these requirements, which are of the catalog or of the realm
        itself."""
        if self._catalog is None:
            return realm_questions(requirements)
        return (yield from questions_of(index, self._catalog, requirements))

    async def _query(self, questions: Iterable[Question]) -> None:
        """Queries the policy at once about those of the questions that it has not decided since the request was judged
        last, and about their `if_absent`, and keeps the decisions. Raises `Unavailable` as `_decide` does."""
        unknown = self._undecided(questions)
        if unknown:
            decisions = await self._decide(self.actor, unknown)
            self._decisions.update(zip(unknown, decisions, strict=True))

    def _undecided(self, questions: Iterable[Question]) -> Sequence[Question]:
        """Returns those of the questions, and of their `if_absent`, that the policy has not decided since the request
        was judged last."""
        needed = chain.from_iterable((each, each.if_absent or each) for each in questions)
        return [each for each in dict.fromkeys(needed) if each not in self._decisions]

    async def _decide(self, actor: Actor, questions: Sequence[Question]) -> Sequence[int | None]:
        """Queries the policy about an actor's questions, and returns what `Policy.decide` returns. Raises `Unavailable`
        as that does, and at the request's deadline."""
        try:
            async with asyncio.timeout(max(0, self._deadline.left_ms()) / 1_000):
                return await self._policy.decide(actor, questions)
        except TimeoutError as late:
            raise Unavailable(
                "The deadline of this request has passed, and the policy has not answered: try again"
            ) from late


def _are_allowed(questions: Iterable[Question], decisions: Mapping[Question, int | None]) -> bool:
    """Whether the policy allows what all these questions are about, by its decisions."""
    return all(decisions[question] is not None for question in questions)
