"""Plays a program: clients that send, time out, send again elsewhere under the same key, and note what they were
told; processes that serve them, with clocks of their own; reconcilers beside them."""

import asyncio
import math
from contextvars import ContextVar
from dataclasses import replace

from arco_catalog.iceberg.errors import (
    CommitStateUnknown,
    KeyInProgress,
    Refusal,
    Unavailable,
)
from arco_catalog.iceberg.json import JsonObject, JsonValue, loads
from arco_catalog.operations.load import load_table
from arco_catalog.operations.semantic_models import load_semantic_model
from arco_catalog.planning.answers import Answer, Document
from arco_catalog.protocol.access import ALLOW_ALL
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.driver import IN_PROGRESS
from arco_catalog.protocol.operation_request import IdempotencyKey, OperationRequest
from arco_catalog.state.key_settings import Dialect
from storage_backends import StoreError, Version
from tests.simulation.bucket import Stored
from tests.simulation.programs import bodies, keys
from tests.simulation.programs.appending import AUDIT, append_body, branch_updates, compaction_body, expiry_updates
from tests.simulation.programs.chance import Drawn
from tests.simulation.programs.history import Asked
from tests.simulation.programs.reading import read
from tests.simulation.programs.requests import READS, WORK, Clients, Request, Sending
from tests.simulation.programs.servers import Servers
from tests.simulation.programs.working import work
from tests.simulation.world import Died, Process
from tools.support.manifests import manifest_list
from tools.support.request_bodies import uuid7

TRIES = 60
NO_MANIFESTS = manifest_list([])
QUIET_AFTER = 400.0
"""Seconds after which nothing goes wrong any more: who still asks then must be answered."""
KEYLESS_TRIES = 2
"""How often an append without a key is sent again, whose outcome is unknown: engines do so if they do not find its
snapshot."""
KEYLESS_PAUSE = 10.0
"""Seconds after which it is sent again, at most."""
MAX_TIMED_SENDINGS = 3
"""Sendings after which a client waits as long as it takes."""

CALLS: ContextVar[list[int] | None] = ContextVar("calls", default=None)
"""Counts the calls to the store that one sending makes."""


class Player(Servers):
    """One run of one program."""

    def session(self, process: Process, asked: Asked, sending: Sending, key: str | None, attempts: set[str]) -> Session:
        """One sending of a request."""
        policy = keys.variables_of(process.name) if self.program.conditions.disagreeing else None
        parsed = None if key is None or policy is not None else IdempotencyKey.parse(key, Dialect.ICEBERG)
        seconds = sending.seconds or self.settings_of(process.name).request_ms / 1000
        deadline = process.runtime.now_ms() + int(seconds * 1000)
        if not self.program.conditions.jumps:
            asked.deadlines[process.name] = self.world.loop.time() + seconds
        kind = asked.request.kind
        source: JsonObject = {"kind": "AdminApi"}
        request = OperationRequest("POST", f"/{kind}", "", asked.body, asked.principal, source, deadline, parsed)
        return self.fixture(process).catalog.session(
            replace(request, key_text=None if policy is None else key, key_policy=policy, attempts=attempts), ALLOW_ALL
        )

    # The whole of it.

    async def play(self) -> None:
        """Lets everybody go, and waits until all is quiet."""
        self.begin_faults()
        await self.play_clients(self.program.clients)
        await self.end_faults()

    def begin_faults(self) -> None:
        """From now on calls go wrong, if they may."""
        if self.draws_faults:
            until = math.inf if self.program.conditions.months else self.world.loop.time() + QUIET_AFTER
            self.world.draw_faults(Drawn(self.world, self.program.conditions, until))

    async def play_clients(self, clients: Clients) -> None:
        """Lets these clients go, until each is done."""
        async with asyncio.TaskGroup() as group:
            clocks = group.create_task(self._clocks())
            await asyncio.wait([group.create_task(self._client(client)) for client in clients])
            clocks.cancel()

    async def end_faults(self) -> None:
        """No call goes wrong any more; waits until all is quiet."""
        self.world.draw_faults(None)
        for fixture in list(self.fixtures.values()):
            if fixture.catalog.background_tasks is not None:
                await fixture.catalog.background_tasks.drain()
        await self.world.settle()

    async def _clocks(self) -> None:
        """Sets clocks now and then, as whoever administers machines does."""
        while self.program.conditions.jumps:
            await asyncio.sleep(self._rng.uniform(0.1, 20.0))
            self.process(f"p{self._rng.randint(1, 3)}").runtime.jump(self._rng.randint(-600_000, 600_000))

    async def _client(self, client: tuple[Sending, ...]) -> None:
        for sending in client:
            await asyncio.sleep(sending.after)
            if sending.request.kind in WORK:
                await work(self, sending)
            elif sending.request.kind in READS:
                await read(self, sending)
            else:
                await self._ask(sending)

    # Requests.

    async def _ask(self, sending: Sending) -> None:
        self._numbers += 1
        principal, request = f"c{self._numbers}", sending.request
        body = await self._prepared(sending, principal, self._numbers)
        if body is None:
            return
        answer = await self._send(sending, request, principal, body)
        if request.kind == "stage" and isinstance(answer, Document) and answer.body is not None:
            staged = answer.body["metadata"]
            assert isinstance(staged, dict)
            finishing = Request("transaction", creates=request.names)
            principal += "s"
            name = request.names[0]
            one: JsonObject = {"identifier": {"namespace": [*name[0]], "name": name[1]}}
            body = {"table-changes": [{**one, **bodies.staged_body(principal, staged)}]}
            await self._send(sending, finishing, principal, body)

    async def _prepared(self, sending: Sending, principal: str, number: int) -> JsonObject | None:
        """The body; None if there is nothing to build it on."""
        request = sending.request
        if request.kind in ("append", "add-rows", "compact", "expire", "branch"):
            base = await self._loaded(sending)
            return None if base is None else await self._on_base(request, principal, base, number)
        if request.kind == "replace-model":
            process = self.process(sending.process)
            try:
                model = await process.run(load_semantic_model(self.fixture(process).session(), *request.names[0]))
            except (Refusal, StoreError):
                return None
            return None if isinstance(model, Died) else {"by": principal, "expected": model["entity-version"]}
        if request.kind == "register":
            files = sorted(self.history.state.files.items())
            kinds = {entity: pointer.get("type") for entity, pointer in self.recorder.pointers.items()}
            tables = [file for entity, file in files if kinds.get(entity) == "table"]
            if not tables:
                return None
            return {"file": tables[request.choice % len(tables)]}
        return self._body_of(request, principal)

    async def _loaded(self, sending: Sending) -> JsonObject | None:
        """The metadata of a table, as its client sees it; None if it gets none."""
        process = self.process(sending.process)
        try:
            seen = await process.run(load_table(self.fixture(process).session(), *sending.request.names[0]))
        except (Refusal, StoreError):
            return None
        if isinstance(seen, Died):
            return None
        base = loads(seen.metadata)
        assert isinstance(base, dict)
        return base

    async def _on_base(self, request: Request, principal: str, base: JsonObject, number: int) -> JsonObject | None:
        """The body of a commit that is built on what its client has loaded; None if there is nothing to do."""
        if request.kind == "append":
            self._write_manifest_list(base, number)
            return bodies.commit_body(request, principal, base, number)
        if request.kind == "add-rows":
            return await append_body(self.world, request, base, number)
        if request.kind == "compact":
            return await compaction_body(self.world, base, number)
        makes = request.kind == "branch"
        updates = branch_updates(base) if makes else expiry_updates(base)
        required: list[JsonValue] = [{"type": "assert-table-uuid", "uuid": base["table-uuid"]}]
        required += [{"type": "assert-ref-snapshot-id", "ref": AUDIT, "snapshot-id": None}] if makes else []
        return {"requirements": required, "updates": [*updates, bodies.marked(principal)]} if updates else None

    def _write_manifest_list(self, base: JsonObject, number: int) -> None:
        """An engine writes the files of a snapshot itself, and before it commits."""
        key = bodies.manifest_list(base, number).removeprefix("memory:///")
        self.world.fill({key: Stored(NO_MANIFESTS, Version(key), self._client_ms())})

    def _body_of(self, request: Request, principal: str) -> JsonObject:
        conditions = self.program.conditions
        match request.kind:
            case "transaction":
                return bodies.transaction_body(request, principal, conditions)
            case "create" | "stage":
                return bodies.new_table(request.names[0][1], principal, conditions, stage=request.kind == "stage")
            case "create-view":
                return bodies.new_view(request.names[0][1], principal)
            case "create-namespace":
                return {"updates": {"made-by": principal}}
            case "set-properties":
                removals = ["fixed"] if request.choice else []
                return {"removals": [*removals], "updates": {} if request.choice else {"fixed": "1"}}
            case "govern" | "govern-view" | "govern-namespace":
                return bodies.governance_patch(principal, owns=bool(request.choice))
            case "protect" | "protect-namespace":
                return bodies.protection_patch(principal, lifts=bool(request.choice))
            case "create-generic":
                return {"choice": request.choice}
            case "create-policy" | "update-policy":
                return {"by": principal}
            case "create-model":
                return bodies.new_model(principal)
            case (
                "drop"
                | "unregister"
                | "undrop"
                | "rename"
                | "drop-view"
                | "rename-view"
                | "drop-generic"
                | "drop-model"
                | "drop-policy"
                | "attach"
                | "detach"
                | "follow"
                | "drop-followed"
            ):
                return {}
            case "drop-namespace":
                return {}
            case _:
                return bodies.commit_body(request, principal, None, 0)

    async def _send(self, sending: Sending, request: Request, principal: str, body: JsonObject) -> Answer | None:
        """One client's way to an answer. Returns it if it was yes."""
        key_ms = None if sending.key_age_ms is None else self._client_ms() - sending.key_age_ms
        asked = Asked(principal, request, key_ms, self.world.loop.time(), body)
        self.history.asked.append(asked)
        key = None if key_ms is None else uuid7(key_ms, self.world.runtime)
        starts = [sending.process] if sending.twin is None else [sending.process, sending.twin]
        answers = await asyncio.gather(*(self._until_answered(asked, sending, start, key) for start in starts))
        return next((answer for answer in answers if answer is not None), None)

    def _client_ms(self) -> int:
        return self.world.runtime.now_ms()

    async def _until_answered(self, asked: Asked, sending: Sending, process: str, key: str | None) -> Answer | None:
        places = [process, *sending.others]
        old = sending.key_age_ms is not None and sending.key_age_ms > 3_600_000
        conditions = self.program.conditions
        tries = sending.tries or (3 if old else 8 if conditions.memory or conditions.ages else TRIES)
        for number in range(tries):
            worker = self.process(places[number % len(places)])
            alone = asked.sendings == 0 and sending.twin is None
            asked.sendings += 1
            start = self.world.loop.time()
            asked.starts.append(start)
            try:
                answer = await worker.run(self._once(worker, asked, sending, key))
            except Refusal as refusal:
                if number == 0 or key is not None:  # else it may be of a sending that was applied
                    self._told(asked, refusal, start)
                return None
            except KeyInProgress as told:  # also of an undecided transaction, or of a final slot that was not written
                asked.in_progress += alone and told.message == IN_PROGRESS
            except Unavailable:
                asked.undone = key is None and number == 0
            except (CommitStateUnknown, StoreError, TimeoutError):
                pass
            else:
                if not isinstance(answer, Died):
                    self._told(asked, answer, start)
                    return answer
            if key is None and (asked.request.kind != "add-rows" or number == KEYLESS_TRIES):
                return None  # nobody asks again: any outcome is right, and stays unknown
            asked.undone = False
            pause = KEYLESS_PAUSE if key is None else min(30.0, 2.0**number)
            await self.world.runtime.sleep(pause * self.world.runtime.random())
        asked.given_up = sending.tries is not None
        return None

    async def _once(self, process: Process, asked: Asked, sending: Sending, key: str | None) -> Answer:
        perform = bodies.performing(asked.request, asked.body)
        timeout = asyncio.timeout(sending.timeout if asked.sendings <= MAX_TIMED_SENDINGS else None)
        try:
            async with timeout:
                return await keys.served(lambda attempts: self.session(process, asked, sending, key, attempts), perform)
        except asyncio.CancelledError as error:
            # Python 3.11: a task group that failed while it was left has one cancellation too many on its account.
            if timeout.expired():
                raise TimeoutError from error
            raise

    def _told(self, asked: Asked, told: Answer | Refusal, start: float) -> None:
        """Notes the first answer, to a sending that began at `start`; every other must say the same."""
        if asked.told is None:
            asked.told, asked.until, asked.answered = told, self.world.loop.time(), start
        elif isinstance(told, Refusal) != isinstance(asked.told, Refusal):
            asked.contradiction = told
