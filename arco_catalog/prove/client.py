"""A client of a run: carries out the steps of its program, and records what it sees."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count
from urllib.parse import quote

from arco_catalog.prove.answers import Answer, ForeignAnswer, names_in, table_in
from arco_catalog.prove.history import READS, Kind, Observation, Operation, RepeatedRequest, Status, TableState
from arco_catalog.prove.network import NEVER_SENT, Network
from arco_catalog.prove.program import Fault, Step
from arco_catalog.prove.requests import Base, Paths, Request, request_of

MAX_PAGES = 100


@dataclass(frozen=True, slots=True)
class KeyedRequest:
    """A request that a client sent with an idempotency key, and that may be sent again at the end of the run.
    `observation` is the place of the observation among those of the run, `bases` what its operation was based on."""

    request: Request
    observation: int
    bases: Sequence[Base]


@dataclass(slots=True)
class Recorder:
    """The history of a run while it grows. `clock` returns the time in milliseconds, `new_key` an idempotency key,
    None if the catalog takes none."""

    clock: Callable[[], int]
    new_key: Callable[[], str | None]
    numbers: "count[int]" = field(default_factory=count)
    observations: list[Observation] = field(default_factory=list)
    repeated: list[RepeatedRequest] = field(default_factory=list)
    keyed: list[KeyedRequest] = field(default_factory=list)
    unseen: list[tuple[KeyedRequest, asyncio.Task[Answer | None]]] = field(default_factory=list)
    """Answers that clients did not get."""
    foreign: list[str] = field(default_factory=list)
    """Operations with an answer that is none of the specification."""

    def next_number(self) -> int:
        """Returns the next number in the order of what was sent and received."""
        return next(self.numbers)


class Client:
    """A client of a run: carries out steps one after another, and remembers the last state of the tables that it saw.
    By itself it sends no request twice."""

    def __init__(self, network: Network, paths: Paths, recorder: Recorder) -> None:
        self._network = network
        self._paths = paths
        self._recorder = recorder
        self._seen: dict[str, Base] = {}

    async def run(self, step: Step, *, final: bool = False) -> Observation | None:
        """Carries out a step, and records the observation. Before a commit or a transaction it loads the tables, as
        observations of their own, unless the step uses the last state that the client saw. A change has a new
        idempotency key if the catalog takes them. Returns the observation; None for `NEVER_SENT`, or if a table could
        not be loaded."""
        operation = step.operation
        bases: list[Base] = []
        if operation.kind in (Kind.COMMIT, Kind.TRANSACTION):
            for number, name in enumerate(operation.names):
                if not (step.cached and name in self._seen):
                    load = Operation(f"{operation.id}.{'ab'[number]}", Kind.LOAD, (name,))
                    self._seen.pop(name, None)
                    await self.run(Step(load, server=step.server), final=final)
                if name not in self._seen:
                    return None
                bases.append(self._seen[name])
        elif operation.kind is Kind.LOAD and step.cached and operation.names[0] in self._seen:
            bases.append(self._seen[operation.names[0]])
        request = request_of(operation, self._paths, bases, self._recorder.clock())
        key = self._recorder.new_key() if operation.kind not in READS else None
        if key is not None:
            request = Request(request.method, request.path, request.body, {**request.headers, "Idempotency-Key": key})
        fault = step.fault if key is not None or step.fault is not Fault.DUPLICATED else Fault.NONE
        return await self._send(operation, request, bases, Step(operation, fault, step.delay_ms, step.server), final)

    async def send_again(self, keyed: KeyedRequest, server: int) -> None:
        """Sends a request with its key once more, at the end of a run. If its outcome was unknown, the observation of
        this answer replaces the first; else both are recorded for the checker, since they are to be equal. Records
        nothing where `_judge_again` returns None."""
        first = self._recorder.observations[keyed.observation]
        second = self._judge_again(keyed, (await self._network.send(keyed.request, server)).answer)
        if second is not None and first.status is Status.UNKNOWN:
            self._recorder.observations[keyed.observation] = second
        elif second is not None:
            self._recorder.repeated.append(RepeatedRequest(first, second))

    async def compare_unseen(self) -> None:
        """Waits for the answers that clients did not get, and records every known result together with the request's
        observation, if that is known by now from the client's answer or from `send_again`: both are to be equal."""
        for keyed, task in self._recorder.unseen:
            first = self._recorder.observations[keyed.observation]
            second = self._judge_again(keyed, await task)
            if second is not None and first.status is not Status.UNKNOWN:
                self._recorder.repeated.append(RepeatedRequest(first, second))

    def _judge_again(self, keyed: KeyedRequest, answer: Answer | None) -> Observation | None:
        """Returns the observation of another answer to a request, as sent at the time of the first; None without an
        answer, for status 5xx, and for an answer of a wrong form, which is kept as foreign."""
        if answer is None or answer is NEVER_SENT or answer.status is Status.UNKNOWN:
            return None
        first = self._recorder.observations[keyed.observation]
        second = self._observation(first.operation, first.invoked, answer, keyed.bases, first.final)
        return None if second.status is Status.UNKNOWN else second

    async def _send(
        self, operation: Operation, request: Request, bases: Sequence[Base], step: Step, final: bool
    ) -> Observation | None:
        """Sends the request of an operation, and records the observation, which is returned; for a listing reads the
        other pages too. Records also a request with an idempotency key, with the answers that the client does not get.
        Returns None, and records nothing, for `NEVER_SENT`."""
        recorder = self._recorder
        invoked = recorder.next_number()
        delivery = await self._network.send(request, step.server, step.fault, step.delay_ms)
        if delivery.answer is NEVER_SENT:
            return None
        answer, listed = delivery.answer, frozenset[str]()
        if operation.kind is Kind.LIST and answer is not None and answer.code == 200:
            names = await self._listed(operation, request, answer, step.server)
            answer, listed = (None, listed) if names is None else (answer, names)
        observation = self._observation(operation, invoked, answer, bases, final, listed)
        recorder.observations.append(observation)
        if "Idempotency-Key" in request.headers:
            keyed = KeyedRequest(request, len(recorder.observations) - 1, bases)
            recorder.keyed.append(keyed)
            recorder.unseen += ((keyed, task) for task in delivery.unseen)
        return observation

    async def _listed(
        self, operation: Operation, request: Request, answer: Answer, server: int
    ) -> frozenset[str] | None:
        """Reads the pages after the first one of a listing, which is `answer`, and returns the names in all, of at most
        `MAX_PAGES` pages; None if a page is missing or is no listing, which is recorded as foreign, or if there are
        more."""
        listed = frozenset[str]()
        for _ in range(MAX_PAGES):
            try:
                names, token = names_in(answer)
            except ForeignAnswer:
                self._recorder.foreign.append(operation.id)
                return None
            listed |= names
            if token is None:
                return listed
            page = Request("GET", f"{request.path}?pageToken={quote(token, safe='')}")
            more = (await self._network.send(page, server)).answer
            if more is None or more.code != 200:
                return None
            answer = more
        return None

    def _observation(
        self,
        operation: Operation,
        invoked: int,
        answer: Answer | None,
        bases: Sequence[Base],
        final: bool,
        listed: frozenset[str] = frozenset(),
    ) -> Observation:
        """Returns the observation of an answer, and remembers the table in it; after a 304, the table is the one that
        the client had seen. Without an answer the status is unknown; also after an answer of a wrong form, which is
        recorded as foreign."""
        states = tuple(base.state for base in bases) if operation.kind is not Kind.LOAD else ()
        if answer is None:
            return Observation(operation, Status.UNKNOWN, invoked, bases=states, final=final)
        number = self._recorder.next_number()
        tables: tuple[TableState, ...] = ()
        status = answer.status
        try:
            if status is Status.DONE and operation.kind in (Kind.CREATE, Kind.COMMIT, Kind.LOAD):
                base = bases[0] if answer.code == 304 and bases else table_in(answer)
                self._seen[operation.names[0]] = base
                tables = (base.state,)
        except ForeignAnswer:
            self._recorder.foreign.append(operation.id)
            status = Status.UNKNOWN
        return Observation(operation, status, invoked, number, answer.code, answer.error, tables, states, listed, final)
