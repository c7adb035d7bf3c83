"""Requests of one process share registry commits, and none of them notices but by its speed."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from types import SimpleNamespace

import pytest

from arco_catalog.iceberg.errors import AlreadyExists, CommitStateUnknown, NoSuchTable
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.create import create_table
from arco_catalog.operations.drop import drop_table
from arco_catalog.operations.history import history
from arco_catalog.operations.load import load_table
from arco_catalog.operations.namespaces import create_namespace, load_namespace, update_properties
from arco_catalog.operations.rename import rename_table
from arco_catalog.planning.answers import Answer, encode_answer
from arco_catalog.protocol import group_commit
from arco_catalog.protocol.catalog import Settings
from arco_catalog.protocol.group_commit import GroupCommitter, Replan
from arco_catalog.protocol.prepared_commit import SWAP_ATTEMPTS
from arco_catalog.protocol.registry_execution import RegistryExecution
from arco_catalog.state import registry
from arco_catalog.state.access import State
from arco_catalog.state.marker import Slot, WriteSet
from arco_catalog.state.marker_log import MarkerLog
from arco_catalog.state.registry import RegistryState
from storage_backends import Applied, Found, Missing, Outcome, PreconditionFailed, Unchanged, Unknown, Version, When
from storage_backends.backoff import ATTEMPTS, full_jitter
from storage_backends.memory import MemoryStore
from tests.support.registry_versions import raise_version
from tools.support.catalog_fixture import NS, CatalogFixture
from tools.support.request_bodies import schema
from tools.support.wrapped_stores import CountingStore, DelayingStore

MANIFEST = "wh/_catalog/core/manifest.json"
COMMITS = "wh/_catalog/core/commits/"
CLIENTS = 64


class HeadHooks(MemoryStore):
    """A store with hooks around reads and writes of HEAD."""

    def __init__(self) -> None:
        super().__init__()
        self.swaps = 0
        self.first: list[Callable[[], Awaitable[object]]] = []
        """What happens before each of the next swaps that arrive."""
        self.answers: list[Callable[[Outcome], Outcome]] = []
        """For each of the next swaps, a function from the real outcome to the answered one."""
        self.reads: list[Callable[[], Awaitable[object]]] = []
        """What happens before each of the next reads of HEAD."""
        self.commits: list[Callable[[], Awaitable[object]]] = []
        """What happens before each of the next registry commits is written."""
        self.walked: list[str] = []
        """Registry commits that were read, which takes a walk back through history."""

    async def get(self, key: str, if_changed_from: Version | None = None) -> Found | Unchanged | Missing:
        if key == MANIFEST and self.reads:
            await self.reads.pop(0)()
        if key.startswith(COMMITS):
            self.walked.append(key)
        return await super().get(key, if_changed_from)

    async def put(self, key: str, body: bytes, when: When) -> Outcome:
        if key.startswith(COMMITS) and self.commits:
            await self.commits.pop(0)()
        if key != MANIFEST:
            return await super().put(key, body, when)
        self.swaps += 1
        if self.first:
            await self.first.pop(0)()
        outcome = await super().put(key, body, when)
        return self.answers.pop(0)(outcome) if self.answers else outcome


@pytest.fixture
def hooks() -> HeadHooks:
    return HeadHooks()


class Timeouts:
    """Timeouts that end when a test ends them, and never by themselves."""

    def __init__(self) -> None:
        self.all: list[asyncio.Timeout] = []

    def __call__(self, _: float) -> asyncio.Timeout:
        self.all.append(asyncio.timeout(None))
        return self.all[-1]

    def end(self, place: int) -> None:
        self.all[place].reschedule(0.0)


@pytest.fixture
def timeouts(monkeypatch: pytest.MonkeyPatch) -> Timeouts:
    """How long requests wait for the lock."""
    timeouts = Timeouts()
    monkeypatch.setattr(group_commit, "asyncio", SimpleNamespace(Lock=asyncio.Lock, timeout=timeouts))
    return timeouts


def a_minute() -> float:
    return 60.0


@pytest.fixture
async def fixture(hooks: HeadHooks) -> CatalogFixture:
    fixture = CatalogFixture(hooks)
    await fixture.namespace()
    await fixture.table()
    hooks.swaps = 0
    return fixture


@asynccontextmanager
async def crowd(
    fixture: CatalogFixture, hooks: HeadHooks, *requests: Awaitable[Answer], behind: str = "first"
) -> AsyncIterator[list[asyncio.Task[Answer]]]:
    """Requests that wait behind a create whose compare-and-swap is under way, and held back until the block ends."""
    go_on = asyncio.Event()
    hooks.first, hooks.swaps = [go_on.wait], 0
    first = asyncio.create_task(fixture.table(behind))
    await until(lambda: hooks.swaps == 1)
    tasks = [asyncio.create_task(_as_task(request)) for request in requests]
    await until(lambda: waiting(fixture) == len(tasks))
    yield tasks
    go_on.set()
    await first


def waiting(fixture: CatalogFixture) -> int:
    assert fixture.catalog.group_committer is not None
    return len(fixture.catalog.group_committer._queue)


async def _as_task(request: Awaitable[Answer]) -> Answer:
    return await request


async def until(so: Callable[[], bool]) -> None:
    """Lets others go on until it is so."""
    for _ in range(10_000):
        if so():
            return
        await asyncio.sleep(0)
    raise AssertionError("it never came to that")


async def operations_of(fixture: CatalogFixture, kind: str) -> list[object]:
    """The names in the registry's history of operations of a kind."""
    return [operation["name"] async for operation in history(fixture.session()) if operation["kind"] == kind]


async def exists(fixture: CatalogFixture, name: str) -> bool:
    try:
        await load_table(fixture.another().session(), NS, name)
    except NoSuchTable:
        return False
    return True


# Speed.


async def test_creates_beside_each_other_share_commits_and_each_is_made_once() -> None:
    fixture = CatalogFixture(CountingStore(DelayingStore(MemoryStore(), 0.002)))
    await fixture.namespace()
    before = (await fixture.session().state.head()).sequence

    made = await asyncio.gather(*(fixture.table(f"t{number}", key=fixture.key()) for number in range(CLIENTS)))

    assert (await fixture.session().state.head()).sequence - before <= 4
    assert sorted(map(str, await operations_of(fixture, "create-table"))) == sorted(f"t{n}" for n in range(CLIENTS))
    assert [(await load_table(fixture.another().session(), NS, f"t{n}")).entity for n in range(CLIENTS)] == [
        state.entity for state in made
    ]


async def test_without_sharing_each_create_makes_a_commit_of_its_own() -> None:
    fixture = CatalogFixture(DelayingStore(MemoryStore(), 0.001))
    fixture.catalog = replace(fixture.catalog, group_committer=None)
    await fixture.namespace()

    await asyncio.gather(*(fixture.table(f"t{number}") for number in range(4)))

    assert (await fixture.session().state.head()).sequence == 1 + 4


async def test_who_shares_a_commit_writes_none_of_its_own(fixture: CatalogFixture, hooks: HeadHooks) -> None:
    async with crowd(fixture, hooks, *(fixture.table(f"t{number}") for number in range(5))) as tasks:
        pass
    await asyncio.gather(*tasks)

    assert hooks.swaps == 2
    listed = (await hooks.list(COMMITS)).entries
    assert len(listed) == 4  # a namespace, a table, the first of these, and all others


async def test_a_crowd_larger_than_a_commit_takes_makes_several(
    fixture: CatalogFixture, hooks: HeadHooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_commit, "MAX_REQUESTS", 3)
    async with crowd(fixture, hooks, *(fixture.table(f"t{number}") for number in range(7))) as tasks:
        pass
    await asyncio.gather(*tasks)
    assert hooks.swaps == 1 + 3

    monkeypatch.setattr(group_commit, "MAX_BYTES", 1)
    drops = [drop_table(fixture.session(), NS, f"t{number}", purge=False) for number in range(3)]
    async with crowd(fixture, hooks, *drops, behind="second") as tasks:
        pass
    await asyncio.gather(*tasks)
    assert hooks.swaps == 1 + 3


# Everybody gets what it would have got alone.


async def test_of_two_creates_of_one_name_one_wins_and_others_succeed(
    fixture: CatalogFixture, hooks: HeadHooks
) -> None:
    names = ["a", "b", "a", "t", "c"]
    async with crowd(
        fixture, hooks, *(fixture.table(name, key=fixture.key()) for name in names if name != "t")
    ) as tasks:
        with pytest.raises(AlreadyExists):
            await fixture.table("t")
    answers = await asyncio.gather(*tasks, return_exceptions=True)

    assert [isinstance(answer, AlreadyExists) for answer in answers] == [False, False, True, False]
    assert await operations_of(fixture, "create-table") == ["c", "b", "a", "first", "t"]


async def test_all_kinds_of_changes_share_a_commit_each_planned_on_those_before(
    fixture: CatalogFixture, hooks: HeadHooks
) -> None:
    async with crowd(
        fixture,
        hooks,
        rename_table(fixture.session(), (NS, "t"), (NS, "u")),
        create_namespace(fixture.session(), ("another",), {"a": "1"}),
        update_properties(fixture.session(), NS, [], {"b": "2"}),
        fixture.table("v"),
    ) as tasks:
        pass
    await asyncio.gather(*tasks)

    assert hooks.swaps == 2
    assert [await exists(fixture, name) for name in "tuv"] == [False, True, True]
    assert (await load_namespace(fixture.another().session(), ("another",)))["properties"] is not None
    described = (await load_namespace(fixture.another().session(), NS))["properties"]
    assert isinstance(described, dict)
    assert described["b"] == "2"


async def test_two_changes_of_one_namespace_both_count(fixture: CatalogFixture, hooks: HeadHooks) -> None:
    changes = [update_properties(fixture.session(), NS, [], {name: "1"}) for name in "ab"]
    async with crowd(fixture, hooks, *changes) as tasks:
        pass
    await asyncio.gather(*tasks)

    described = (await load_namespace(fixture.another().session(), NS))["properties"]
    assert isinstance(described, dict)
    assert (described["a"], described["b"]) == ("1", "1")


async def test_a_drop_that_waited_never_drops_what_took_the_name_since(
    fixture: CatalogFixture, hooks: HeadHooks
) -> None:
    """It is bound to the entity that it planned on: before it drops another, it plans and binds itself anew."""
    entity, other = (await load_table(fixture.session(), NS, "t")).entity, fixture.another()
    async with crowd(fixture, hooks, drop_table(fixture.session(), NS, "t", purge=False)) as tasks:
        await rename_table(other.session(), (NS, "t"), (NS, "old"))
        await other.table("t")
    await asyncio.gather(*tasks)

    pointer = await fixture.another().session().state.pointer(entity)
    assert pointer is not None
    assert pointer.dropped_by is None
    assert [await exists(fixture, name) for name in ("old", "t")] == [True, False]


# When things go wrong.


async def test_a_group_that_lost_to_another_process_goes_again_on_what_that_left(
    fixture: CatalogFixture, hooks: HeadHooks
) -> None:
    other = fixture.another()

    async def overtake() -> None:
        await other.table("b")

    async with crowd(fixture, hooks, fixture.table("a"), fixture.table("b"), fixture.table("c")) as tasks:
        hooks.first.append(overtake)
    answers = await asyncio.gather(*tasks, return_exceptions=True)

    assert [isinstance(answer, AlreadyExists) for answer in answers] == [False, True, False]
    assert sorted(map(str, await operations_of(fixture, "create-table"))) == ["a", "b", "c", "first", "t"]


def unknown(_: Outcome) -> Outcome:
    return Unknown("lost")


def echo(outcome: Outcome) -> Outcome:
    assert isinstance(outcome, Applied)
    return PreconditionFailed(None, outcome.now_ms)


async def test_an_echo_of_a_shared_commit_is_recognised_by_everybody(fixture: CatalogFixture, hooks: HeadHooks) -> None:
    async with crowd(fixture, hooks, *(fixture.table(name) for name in "abc")) as tasks:
        hooks.answers += [lambda outcome: outcome, echo]
    await asyncio.gather(*tasks)

    assert sorted(map(str, await operations_of(fixture, "create-table"))) == ["a", "b", "c", "first", "t"]


async def test_a_lost_answer_of_a_shared_commit_is_made_definite(fixture: CatalogFixture, hooks: HeadHooks) -> None:
    async with crowd(fixture, hooks, *(fixture.table(name) for name in "abc")) as tasks:
        hooks.answers += [lambda outcome: outcome, unknown]
    await asyncio.gather(*tasks)

    assert sorted(map(str, await operations_of(fixture, "create-table"))) == ["a", "b", "c", "first", "t"]


@pytest.mark.parametrize("before", [True, False])
async def test_when_the_leader_is_cancelled_the_next_one_sends_the_very_same(
    fixture: CatalogFixture, hooks: HeadHooks, before: bool
) -> None:
    """Whether its compare-and-swap had landed or not; it was part of what was sent, so it is made as well."""
    sent = asyncio.Event()

    async def hang() -> None:
        sent.set()
        await asyncio.Event().wait()

    def cancel(outcome: Outcome) -> Outcome:
        tasks[0].cancel()
        return Unknown("cancelled")

    async with crowd(fixture, hooks, *(fixture.table(name) for name in "abc")) as tasks:
        if before:
            hooks.first.append(hang)
        else:
            hooks.answers += [lambda outcome: outcome, cancel]
    if before:
        await sent.wait()
        tasks[0].cancel()
    answers = await asyncio.gather(*tasks, return_exceptions=True)

    assert isinstance(answers[0], asyncio.CancelledError)
    assert not any(isinstance(answer, BaseException) for answer in answers[1:])
    assert sorted(map(str, await operations_of(fixture, "create-table"))) == ["a", "b", "c", "first", "t"]


async def test_what_the_next_one_sends_again_is_attempted_as_often_as_any_write(
    fixture: CatalogFixture, hooks: HeadHooks
) -> None:
    """Also in a registry with proposals: nothing of it may be proposed before its outcome is known."""
    await raise_version(fixture.session().state)
    sent, attempts = asyncio.Event(), list[int]()

    async def hang() -> None:
        attempts.append(len([*full_jitter(lambda: 0.5)]))
        sent.set()
        await asyncio.Event().wait()

    async def note() -> None:
        attempts.append(len([*full_jitter(lambda: 0.5)]))

    async with crowd(fixture, hooks, *(fixture.table(name) for name in "ab")) as tasks:
        hooks.first += [hang, note]
    await sent.wait()
    tasks[0].cancel()
    await tasks[1]

    assert attempts == [SWAP_ATTEMPTS, ATTEMPTS]


async def test_a_leader_that_is_cancelled_before_it_sent_leaves_the_others_to_lead(
    fixture: CatalogFixture, hooks: HeadHooks
) -> None:
    async with crowd(fixture, hooks, *(fixture.table(name) for name in "abc")) as tasks:
        tasks[0].cancel()
        tasks[1].cancel()
        await until(lambda: waiting(fixture) == 1)
    answers = await asyncio.gather(*tasks, return_exceptions=True)

    assert [isinstance(answer, asyncio.CancelledError) for answer in answers] == [True, True, False]
    assert sorted(map(str, await operations_of(fixture, "create-table"))) == ["c", "first", "t"]


async def test_who_waits_until_its_deadline_is_part_of_nothing(
    fixture: CatalogFixture, hooks: HeadHooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_commit, "LOCK_TIMEOUT_SECONDS", 60.0)
    body: JsonObject = {"name": "late", "schema": schema("x")}
    late = create_table(fixture.session(body, deadline_ms=3_000), NS, body)
    async with crowd(fixture, hooks, late, fixture.table("a")) as tasks:
        with pytest.raises(CommitStateUnknown):
            await tasks[0]
    await tasks[1]

    assert await operations_of(fixture, "create-table") == ["a", "first", "t"]


async def test_a_leader_without_time_reports_an_unknown_outcome_and_the_others_learn_theirs(
    fixture: CatalogFixture, hooks: HeadHooks
) -> None:
    body: JsonObject = {"name": "short", "schema": schema("x")}
    short = create_table(fixture.session(body, deadline_ms=3_000), NS, body)
    async with crowd(fixture, hooks, short, fixture.table("a"), fixture.table("b")) as tasks:
        hooks.first.append(asyncio.Event().wait)
    with pytest.raises(CommitStateUnknown):
        await tasks[0]
    await asyncio.gather(*tasks[1:])

    assert [await exists(fixture, name) for name in ("short", "a", "b")] == [True, True, True]


async def test_members_do_not_wait_long_for_one_whose_call_hangs(
    fixture: CatalogFixture, hooks: HeadHooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_commit, "LOCK_TIMEOUT_SECONDS", 0.01)
    hooks.first.append(asyncio.Event().wait)
    hanging = asyncio.create_task(fixture.table("hanging"))
    await until(lambda: hooks.swaps == 1)
    await asyncio.wait_for(asyncio.gather(*(fixture.table(name) for name in "abc")), 10)

    hanging.cancel()
    await asyncio.wait([hanging])
    assert sorted(map(str, await operations_of(fixture, "create-table"))) == ["a", "b", "c", "t"]


async def test_a_request_that_skipped_the_lock_is_not_refused_while_others_send_its_change(
    fixture: CatalogFixture, hooks: HeadHooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It goes on without the lock, reads HEAD, and meanwhile another plans it behind a drop that frees its name."""
    monkeypatch.setattr(group_commit, "LOCK_TIMEOUT_SECONDS", 0.01)
    reads, read_on, sent, land = (asyncio.Event() for _ in range(4))

    async def read_slowly() -> None:
        reads.set()
        await read_on.wait()

    async def send_slowly() -> None:
        sent.set()
        await land.wait()

    async with crowd(fixture, hooks, fixture.table("x", key=fixture.key())) as tasks:
        await fixture.another().table("x")
        hooks.reads.append(read_slowly)
        await reads.wait()
        hooks.first.append(send_slowly)
        drop = asyncio.create_task(_as_task(drop_table(fixture.session(), NS, "x", purge=False)))
        await sent.wait()
        read_on.set()
        answers = await asyncio.gather(*tasks, return_exceptions=True)
        land.set()
        await drop

    assert await exists(fixture, "x") is not isinstance(answers[0], AlreadyExists)


async def test_no_request_skips_the_lock_while_others_get_it(timeouts: Timeouts) -> None:
    group_committer, went, done = GroupCommitter(), list[str](), [asyncio.Event() for _ in range(3)]

    async def go(name: str, done: asyncio.Event) -> None:
        async with group_committer.lock(a_minute):
            went.append(name)
            await done.wait()

    tasks = [asyncio.create_task(go(name, event)) for name, event in zip("abc", done, strict=True)]
    await until(lambda: len(timeouts.all) == 3)
    done[0].set()
    await until(lambda: went == ["a", "b"])

    timeouts.end(2)
    await until(lambda: len(timeouts.all) == 4)
    assert went == ["a", "b"]
    timeouts.end(3)  # the lock was free since
    await until(lambda: went == ["a", "b", "c"])

    for event in done:
        event.set()
    await asyncio.gather(*tasks)


async def test_no_request_skips_the_lock_while_a_leader_commits_its_change(
    fixture: CatalogFixture, hooks: HeadHooks, timeouts: Timeouts
) -> None:
    assert fixture.catalog.group_committer is not None
    writes, write_on = asyncio.Event(), asyncio.Event()

    async def write_slowly() -> None:
        writes.set()
        await write_on.wait()

    async with fixture.catalog.group_committer.lock(a_minute):
        tasks = []
        for name in "ab":
            tasks.append(asyncio.create_task(fixture.table(name)))
            await until(lambda: waiting(fixture) == len(tasks))
        begun = len(timeouts.all)
        hooks.commits.append(write_slowly)
        timeouts.end(-2)
        await writes.wait()
        timeouts.end(-1)
        await until(lambda: len(timeouts.all) == begun + 1)  # it waits on
        write_on.set()
        await tasks[0]
    await tasks[1]

    assert hooks.swaps == 1
    assert len((await hooks.list(COMMITS)).entries) == 3  # a namespace, a table, and both of these


async def test_whose_turn_it_is_does_not_lead_while_another_makes_a_commit_of_what_it_brought(
    fixture: CatalogFixture, hooks: HeadHooks, timeouts: Timeouts
) -> None:
    """Its marker would be read as not in progress, and it would commit after a drop that frees its name."""
    assert fixture.catalog.group_committer is not None
    writes, write_on, reads, read_on, sent, land = (asyncio.Event() for _ in range(6))

    def slowly(arrived: asyncio.Event, go_on: asyncio.Event) -> Callable[[], Awaitable[object]]:
        async def wait() -> None:
            arrived.set()
            await go_on.wait()

        return wait

    hooks.answers.append(echo)
    await fixture.table("before")  # which HEAD is the newest is not known after a refusal: who leads reads it
    async with fixture.catalog.group_committer.lock(a_minute):
        create = asyncio.create_task(fixture.table("x", key=fixture.key()))
        await until(lambda: waiting(fixture) == 1)
        await fixture.another().table("x")
        drop = asyncio.create_task(_as_task(drop_table(fixture.session(), NS, "x", purge=False)))
        await until(lambda: waiting(fixture) == 2)
        hooks.commits.append(slowly(writes, write_on))
        timeouts.end(-1)
        await writes.wait()
        hooks.reads.append(slowly(reads, read_on))
    await reads.wait()  # by the create, which holds the lock
    hooks.first.append(slowly(sent, land))
    write_on.set()
    await sent.wait()
    read_on.set()
    [answer] = await asyncio.gather(create, return_exceptions=True)
    land.set()
    await drop

    assert await exists(fixture, "x") is not isinstance(answer, AlreadyExists)


async def test_a_request_that_was_superseded_while_it_waited_is_left_out(
    fixture: CatalogFixture, hooks: HeadHooks
) -> None:
    """Another process took the next slot of its key, fenced, and answered a failure: it may no longer commit."""
    key = fixture.key()
    body: JsonObject = {"name": "k", "schema": schema("x")}
    session = fixture.session(body, key=key, path="/create/k")
    async with crowd(fixture, hooks, create_table(session, NS, body), fixture.table("a")) as tasks:
        assert session.request.key is not None
        state = State(hooks, fixture.catalog.paths, fixture.catalog.caches, fixture.runtime)
        marker = MarkerLog(state, session.request.key_hash(), session.request.identity())
        assert len(await marker.read_on()) == 1
        assert await marker.put(Slot(fixture.runtime.ulid(), WriteSet(), {}, encode_answer(AlreadyExists("answered"))))
    await tasks[1]
    with pytest.raises(AlreadyExists, match="answered"):
        await tasks[0]

    assert await operations_of(fixture, "create-table") == ["a", "first", "t"]


async def test_a_walk_through_history_is_made_once_for_all_members(
    hooks: HeadHooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Evidence of an old attempt is as old as the attempt: the member that needs it searches it once, in its own
    time."""
    monkeypatch.setattr(registry, "RECENT_COMMITS", 2)
    fixture = CatalogFixture(hooks, settings=Settings("wh", in_progress_ms=0))
    await fixture.namespace()
    session = fixture.session({"name": "old", "schema": schema("x")}, key=(key := fixture.key()), path="/create/old")
    marker = session.marker()
    assert marker is not None
    assert await marker.put(Slot("died", WriteSet(registry=1), marker.identity.to_json(), None))
    for number in range(20):
        await create_namespace(fixture.session(), (f"n{number}",), {})
    write, land = asyncio.Event(), asyncio.Event()

    async def at_once() -> None:
        return

    hooks.commits = [at_once, at_once, write.wait]  # one in vain, the fence of the takeover, its own
    old = asyncio.create_task(fixture.table("old", key=key))
    await until(lambda: not hooks.commits)
    hooks.first, hooks.swaps = [land.wait], 0
    first = asyncio.create_task(fixture.table("first"))
    await until(lambda: hooks.swaps == 1)
    write.set()
    await until(lambda: waiting(fixture) == 1)
    walked, hooks.walked = hooks.walked, []
    land.set()
    await asyncio.gather(old, first)

    assert len(walked) == len(set(walked)) > 5
    assert hooks.walked == []
    assert await exists(fixture, "old")


async def test_an_error_of_one_member_is_raised_to_that_member_alone(
    fixture: CatalogFixture, hooks: HeadHooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    rightly = RegistryExecution.replan

    def replan(self: RegistryExecution, head: RegistryState) -> Replan | None:
        if self.commit.change.detail["name"] == "b":
            raise ZeroDivisionError
        return rightly(self, head)

    monkeypatch.setattr(RegistryExecution, "replan", replan)
    async with crowd(fixture, hooks, *(fixture.table(name) for name in "abc")) as tasks:
        pass
    answers = await asyncio.gather(*tasks, return_exceptions=True)

    assert [isinstance(answer, ZeroDivisionError) for answer in answers] == [False, True, False]
