"""A campaign: many sequences of requests at one operation, each at a catalog of its own, and what became of them."""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from tests.fuzz.checks import audit, check_answer, check_unchanged, state_of
from tests.fuzz.requests import Fuzz
from tests.fuzz.services import Address, FuzzedService, InMemoryService, Request, model_version, planned, prepared
from tools.support.asgi_client import Answer

Listener = Callable[[Request, Answer], None]


@dataclass
class Tally:
    """How many answers of each status an operation gave; the slowest, in seconds."""

    statuses: Counter[tuple[str, int]] = field(default_factory=Counter)
    slowest: float = 0.0

    def count(self, request: Request, answer: Answer, seconds: float) -> None:
        self.statuses[request.label, answer.status] += 1
        self.slowest = max(self.slowest, seconds)

    def add(self, other: "Tally") -> None:
        self.statuses.update(other.statuses)
        self.slowest = max(self.slowest, other.slowest)

    @property
    def requests(self) -> int:
        return self.statuses.total()

    def by_status(self, label: str) -> Mapping[int, int]:
        """Answers of one operation."""
        return {status: count for (requested, status), count in sorted(self.statuses.items()) if requested == label}

    def success(self, label: str) -> float:
        """The share of answers that were 2xx or 304."""
        counts = self.by_status(label)
        return sum(count for status, count in counts.items() if status < 400) / max(1, sum(counts.values()))


def require_success(
    label: str, draw: Callable[[int | None], Tally], seeds: Sequence[int | None], is_enough: Callable[[float], bool]
) -> None:
    """Draws requests for an operation, by one seed after the other, until enough of them succeed by their share. Raises
    `AssertionError` if that is never so."""
    shares: list[float] = []
    for number in seeds:
        tally = draw(number)
        print(label, tally.by_status(label), f"{tally.requests} requests, slowest {tally.slowest:.3f} s")
        shares.append(tally.success(label))
        if is_enough(shares[-1]):
            return
    raise AssertionError(f"the shares of requests that succeed are not as they should be: {shares}")


async def exchange(service: FuzzedService, request: Request, tally: Tally) -> tuple[Answer, bool]:
    """One request and all that must be true of its answer. Also returns whether it changed something."""
    before = await state_of(service)
    began = service.stopwatch()
    answer = await service.send(request)
    seconds = service.stopwatch() - began
    tally.count(request, answer, seconds)
    check_answer(request, answer, seconds)
    after = await state_of(service)
    check_unchanged(request, answer, before, after)
    return answer, before != after


async def _play(service: FuzzedService, requests: list[Request], tally: Tally, listener: Listener | None) -> None:
    changed = False
    for request in requests:
        answer, effect = await exchange(service, request, tally)
        changed = changed or effect
        if listener is not None:
            listener(request, answer)
        if any(name == "Idempotency-Key" for name, _ in request.headers) and request.method in (
            "POST",
            "PUT",
            "DELETE",
        ):
            again = await service.send(request)
            assert again.status == answer.status, f"{answer.status}, and then {again.status}: {again.body!r}"
    if changed:
        await audit(service)


def in_memory(*, external: bool = False) -> Callable[[], InMemoryService]:
    """Makes copies of one catalog; `external`: one whose tables are another catalog's."""
    original = InMemoryService(external=external)

    async def prepare() -> None:
        await prepared(original)
        version, (plan_id, plan_task) = await model_version(original), await planned(original)
        original.address = replace(original.address, model_version=version, plan_id=plan_id, plan_task=plan_task)

    asyncio.run(prepare())
    return original.copy


def bounds(examples: int, *, derandomize: bool = True) -> settings:
    """How Hypothesis works here: no database, no deadline of its own (answers have one), failures made small."""
    return settings(
        max_examples=examples,
        derandomize=derandomize,
        database=None,
        deadline=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
        print_blob=False,
    )


def sequences(label: str, address: Address, fuzz: Fuzz) -> st.SearchStrategy[list[Request]]:
    """A few requests of any kind, then some for one operation."""
    before = st.lists(fuzz.any_request(address), max_size=2)
    aimed = st.lists(fuzz.requests(label, address), min_size=1, max_size=3)
    return st.builds(lambda first, last: [*first, *last], before, aimed)


def run(
    label: str,
    fresh: Callable[[], InMemoryService],
    examples: int,
    *,
    fuzz: Fuzz | None = None,
    number: int | None = None,
    listener: Listener | None = None,
) -> Tally:
    """Plays sequences at copies of a catalog in memory; `number` seeds them, None for the same ones each time. Raises
    AssertionError, with the smallest sequence found, where something was wrong."""
    tally = Tally()
    address = fresh().address

    def play(requests: list[Request]) -> None:
        try:
            asyncio.run(_play(fresh(), requests, tally, listener))
        except AssertionError as error:
            error.add_note("\n".join(["after", *(repr(request) for request in requests)]))
            raise

    test = given(sequences(label, address, fuzz or Fuzz()))(play)
    if number is not None:
        test = seed(number)(test)
    bounds(examples, derandomize=number is None)(test)()
    return tally
