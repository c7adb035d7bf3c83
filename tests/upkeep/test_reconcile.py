"""Every file that became current has its committed receipt in the end, whatever died
(docs/design/reconciliation.md#reconciler)."""

from collections.abc import Awaitable, Mapping

import pytest

from arco_catalog.iceberg.errors import CommitStateUnknown, Unavailable
from arco_catalog.iceberg.json import JsonObject, dumps, loads
from arco_catalog.operations.commit import commit_view
from arco_catalog.operations.create import create_view
from arco_catalog.operations.drop import drop_table
from arco_catalog.operations.receipts import receipts
from arco_catalog.operations.reconcile_stats import ReconcileStats
from arco_catalog.operations.register import register_table
from arco_catalog.operations.transaction import TableChange, commit_transaction
from arco_catalog.protocol.concurrency import gather
from arco_catalog.protocol.decisions import decide, read_decision
from arco_catalog.state import receipt
from arco_catalog.state.checkpoints import Checkpoints
from arco_catalog.upkeep.reconcile import reconcile
from storage_backends import ANY, Found, StoreUnavailable
from storage_backends import memory as memory_module
from tests.operations.test_transactions import creation
from tests.support.fake_runtime import FakeRuntime
from tests.support.scripted_store import Call, Match, Rule, ScriptedStore, put
from tools.support.catalog_fixture import NS, CatalogFixture
from tools.support.request_bodies import set_property, view_request
from tools.support.wrapped_stores import CountingStore

DEAD = StoreUnavailable("dead")


class Dying:
    """A write at which a client dies: that one and all after it do not happen."""

    def __init__(self, at: Match) -> None:
        self._at = at
        self._dead = False

    def __call__(self, call: Call) -> bool:
        self._dead = self._dead or (put()(call) and self._at(call))
        return self._dead and put()(call)


class ReceiptScenario:
    """A catalog whose receipts a test reads and deletes."""

    def __init__(self) -> None:
        clock = FakeRuntime()
        self.store = ScriptedStore(clock.now_ms)
        self.counting = CountingStore(self.store)
        self.fixture = CatalogFixture(self.counting, clock)

    async def receipts(self, stage: str = "committed") -> Mapping[str, bytes]:
        """All receipts of a stage by path."""
        keys = [key for key in self.store.keys("") if f"/iceberg/{stage}/" in key]
        found = [await self.store.get(key) for key in keys]
        return {key: answer.body for key, answer in zip(keys, found, strict=True) if isinstance(answer, Found)}

    async def lose(self, *stages: str, location: str | None = None) -> None:
        """Deletes receipts: all of them, or those of one metadata file."""
        for stage in stages:
            for key, body in (await self.receipts(stage)).items():
                if location is None or record(body)["metadata_location"] == location:
                    await self.store.delete(key)

    async def walk(self, *, dry: bool = False) -> ReconcileStats:
        """A run by a process that remembers nothing."""
        return await reconcile(self.fixture.another().session(), dry=dry)


def record(body: bytes) -> JsonObject:
    document = loads(body)
    assert isinstance(document, dict)
    return document


@pytest.fixture
async def scenario() -> ReceiptScenario:
    """Two tables and a view, with ten commits in all."""
    made = ReceiptScenario()
    fixture = made.fixture
    await fixture.namespace("db")
    for name in ("t", "u"):
        await fixture.table(name)
        for value in "abc":
            await fixture.commit(set_property("p", value), name)
    body = view_request()
    await create_view(fixture.session(body), NS, body)
    await commit_view(fixture.session(set_property("a", "2")), NS, "v", set_property("a", "2"))
    return made


async def locations(scenario: ReceiptScenario, name: str = "t") -> list[str]:
    """A table's metadata files, newest first."""
    return [str(record_["metadata_location"]) for record_ in await receipts(scenario.fixture.session(), NS, name)]


async def test_missing_receipts_are_written_as_their_writers_would_have(scenario: ReceiptScenario) -> None:
    written = await scenario.receipts()
    assert len(written) == 10
    await scenario.lose("committed")

    stats = await scenario.walk()

    assert await scenario.receipts() == written
    assert (stats.pointers, stats.walked, stats.files, stats.written, stats.incomplete) == (3, 3, 10, 10, 0)
    assert len(stats.missing) == 10


async def test_one_that_is_missing_in_the_middle_is_found(scenario: ReceiptScenario) -> None:
    written = await scenario.receipts()
    await scenario.lose("committed", location=(await locations(scenario))[2])

    stats = await scenario.walk()

    assert await scenario.receipts() == written
    assert [missing["metadata_location"] for missing in stats.missing] == [(await locations(scenario))[2]]
    [missing] = stats.missing
    assert (missing["table"], missing["principal"]) == ("db.t", "tester")
    assert "/iceberg/pending/" in str(missing["told_by"])


async def test_a_walk_that_is_killed_anywhere_is_made_good_by_the_next(scenario: ReceiptScenario) -> None:
    written = await scenario.receipts()
    writes = 0
    for fatal in range(1000):
        await scenario.lose("committed")
        for key in scenario.store.keys("wh/_catalog/operational/"):
            await scenario.store.delete(key)
        writes = 0

        def at(_: Call, fatal: int = fatal) -> bool:
            nonlocal writes
            writes += 1
            return writes > fatal

        scenario.store.rules = [Rule(Dying(at), fails=DEAD)]
        try:
            await scenario.walk()
            break
        except StoreUnavailable:
            scenario.store.rules = []
        await scenario.walk()
        assert await scenario.receipts() == written
    scenario.store.rules = []
    assert writes > 10
    assert await scenario.receipts() == written


async def test_two_walks_at_once_write_each_receipt_once(scenario: ReceiptScenario) -> None:
    written = await scenario.receipts()
    await scenario.lose("committed")

    one, two = await gather(scenario.walk(), scenario.walk())

    assert await scenario.receipts() == written
    assert one.written + two.written == 10


async def test_a_walk_beside_writers_leaves_no_commit_without_its_receipt(scenario: ReceiptScenario) -> None:
    await scenario.lose("committed")

    async def write(name: str) -> ReconcileStats:
        for value in range(10):
            await scenario.fixture.commit(set_property("p", str(value)), name)
        return ReconcileStats()

    await gather(scenario.walk(), write("t"), scenario.walk(), write("u"), scenario.walk())
    await scenario.walk()

    assert len(await scenario.receipts()) == 30
    announced = {
        key.replace("/pending/", "/committed/"): body for key, body in (await scenario.receipts("pending")).items()
    }
    assert await scenario.receipts() == {
        key: receipt.encode(receipt.committed(record(announced[key]))) for key in await scenario.receipts()
    }


async def test_a_dry_run_lists_what_is_missing_and_writes_nothing(scenario: ReceiptScenario) -> None:
    await scenario.lose("committed", location=(await locations(scenario))[1])
    before = scenario.store.keys()

    with scenario.counting.measure() as measured:
        stats = await scenario.walk(dry=True)

    assert measured.by_kind["put"] == measured.by_kind["delete"] == 0
    assert scenario.store.keys() == before
    assert [missing["metadata_location"] for missing in stats.missing] == [(await locations(scenario))[1]]
    assert stats.written == 0


async def test_a_dry_run_leaves_nothing_to_remember(scenario: ReceiptScenario) -> None:
    """What it saw missing is still to be written: no later walk may stop where it began."""
    assert (await scenario.walk(dry=True)).walked == 3
    assert (await scenario.walk(dry=True)).walked == 3
    assert (await Checkpoints.read(scenario.fixture.session().state)).by_entity == {}


async def test_tables_that_did_not_change_cost_nothing_but_their_place_in_a_list(
    scenario: ReceiptScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(22):
        await scenario.fixture.table(f"more{number}")
    await scenario.walk()
    monkeypatch.setattr(memory_module, "PAGE_SIZE", 10)

    with scenario.counting.measure() as measured:
        stats = await scenario.walk()

    assert (stats.pointers, stats.unchanged, stats.walked) == (25, 25, 0)
    gets = [key for kind, key in measured.log if kind == "get"]
    assert len([key for key in gets if "/operational/reconciler/" in key]) == 16
    head = "wh/_catalog/core/manifest.json"  # read for the intents that wait in it, then for the names
    assert [key for key in gets if "/operational/reconciler/" not in key] == [head, head]
    assert measured.by_kind["list"] == 3
    assert measured.by_kind["put"] == 0


async def test_a_table_that_moved_on_is_walked_back_to_where_the_last_walk_began(scenario: ReceiptScenario) -> None:
    await scenario.walk()
    await scenario.fixture.commit(set_property("p", "d"))
    await scenario.fixture.commit(set_property("p", "e"))

    stats = await scenario.walk()

    assert (stats.unchanged, stats.walked, stats.files) == (2, 1, 2)


async def test_a_pending_receipt_that_was_collected_is_not_needed(scenario: ReceiptScenario) -> None:
    written = await scenario.receipts()
    middle = (await locations(scenario))[1]
    await scenario.lose("pending", location=middle)
    await scenario.lose("committed", location=(await locations(scenario))[2])

    stats = await scenario.walk()

    assert await scenario.receipts() == written
    assert stats.unreadable == []


@pytest.mark.parametrize("place", [0, 1, 3])
async def test_where_both_are_gone_the_receipt_comes_from_metadata(scenario: ReceiptScenario, place: int) -> None:
    written = await scenario.receipts()
    files = await locations(scenario)
    await scenario.lose("pending", "committed", location=files[place])
    await scenario.lose("committed", location=files[2])

    stats = await scenario.walk()

    now = await scenario.receipts()
    assert now.keys() == written.keys()
    [(key, body)] = [(key, body) for key, body in now.items() if body != written[key]]
    restored, lost = record(body), record(written[key])
    assert (restored["source"], restored["principal"]) == ({"kind": "Restored"}, None)
    replaced = ("previous_metadata_location", "previous_metadata_ms")
    same = (
        *("event_id", "commit_key", "entity", "metadata_location", "metadata_ms", "table_uuid", "snapshot_id"),
        *replaced,
    )
    assert {each: restored[each] for each in same} == {each: lost[each] for each in same}
    assert {missing["told_by"] for missing in stats.missing if missing["table"] is None} == {files[place]}


async def test_a_views_newest_file_is_restored_and_a_lost_chain_is_reported(scenario: ReceiptScenario) -> None:
    commit = set_property("a", "3")
    await commit_view(scenario.fixture.session(commit), NS, "v", commit)
    record_ = [record(body) for body in (await scenario.receipts()).values()]
    newest, middle = sorted((each for each in record_ if each["entity_type"] == "view"), key=metadata_ms, reverse=True)[
        :2
    ]
    await scenario.lose("pending", "committed", location=str(newest["metadata_location"]))
    assert (await scenario.walk(dry=True)).unreadable == []

    await scenario.lose("pending", "committed", location=str(middle["metadata_location"]))
    stats = await scenario.walk()

    [reason] = stats.unreadable
    assert f"The metadata file before {middle['metadata_location']} is unknown" in reason
    assert (stats.incomplete, (await scenario.walk()).incomplete) == (1, 1)


def metadata_ms(record_: JsonObject) -> int:
    ms = record_["metadata_ms"]
    assert isinstance(ms, int)
    return ms


@pytest.mark.parametrize("damage", [None, b"", b"[]", b"{}", b"\x1f\x8bbroken", b'{"format-version":2}'])
async def test_metadata_that_cannot_be_read_is_skipped_and_reported(
    scenario: ReceiptScenario, damage: bytes | None
) -> None:
    files = await locations(scenario)
    await scenario.lose("pending", "committed", location=files[1])
    key = files[1].removeprefix("memory:///")
    if damage is None:
        await scenario.store.delete(key)
    else:
        await scenario.store.put(key, damage, ANY)
    await scenario.lose("committed", location=(await locations(scenario, "u"))[1])

    stats = await scenario.walk()

    entity = str(stats.unreadable[0]).partition(":")[0]
    assert len(stats.unreadable) == stats.incomplete == 1
    assert stats.written == 1, "the other table is served all the same"
    again = await scenario.walk()
    assert (again.walked, again.unchanged, [reason.partition(":")[0] for reason in again.unreadable]) == (
        1,
        2,
        [entity],
    )


@pytest.mark.parametrize("kind", ["iceberg_pointers", "iceberg/pending"])
async def test_a_record_that_is_no_record_stops_nothing_but_its_own_table(scenario: ReceiptScenario, kind: str) -> None:
    [broken, *_] = [key for key in scenario.store.keys("") if kind in key]
    await scenario.store.put(broken, b"{", ANY)

    stats = await scenario.walk()

    assert (stats.walked, stats.incomplete, len(stats.unreadable)) == (3, 1, 1)
    assert "is not JSON" in stats.unreadable[0]


async def test_an_undecided_intent_leaves_a_walk_incomplete_until_it_is_decided(scenario: ReceiptScenario) -> None:
    changes: list[TableChange] = [(NS, name, set_property("p", "both")) for name in ("t", "u")]
    await dies(scenario, commit_transaction(scenario.fixture.session(), changes), at=is_decision)

    stats = await scenario.walk()
    assert (stats.walked, stats.incomplete, stats.files, stats.written) == (3, 2, 10, 0)

    await decide_left(scenario, "committed")
    stats = await scenario.walk()
    assert (stats.unchanged, stats.incomplete, stats.written) == (1, 0, 2)
    stats = await scenario.walk()
    assert (stats.unchanged, stats.incomplete) == (3, 0)
    assert len(await locations(scenario)) == 5


async def test_an_aborted_transaction_earns_no_receipt_decision_collected_or_not(scenario: ReceiptScenario) -> None:
    changes: list[TableChange] = [(NS, name, set_property("p", "both")) for name in ("t", "u")]
    await dies(scenario, commit_transaction(scenario.fixture.session(), changes), at=is_decision)
    await decide_left(scenario, "aborted")
    assert (await scenario.walk()).incomplete == 0
    for key in (*scenario.store.keys("wh/_catalog/operational/"), *scenario.store.keys("wh/_catalog/transactions/")):
        await scenario.store.delete(key)

    stats = await scenario.walk()

    assert (stats.walked, stats.incomplete, stats.written, len(await scenario.receipts())) == (3, 0, 0, 10)


async def test_a_create_that_never_committed_earns_no_receipt(scenario: ReceiptScenario) -> None:
    await dies(scenario, scenario.fixture.table("orphan"), at=is_manifest)

    stats = await scenario.walk()

    assert (stats.pointers, stats.orphaned, stats.walked) == (4, 1, 3)
    assert len(await scenario.receipts()) == 10


@pytest.mark.parametrize(("status", "orphaned", "written"), [("pending", 2, 0), ("aborted", 2, 0), ("committed", 0, 2)])
async def test_tables_that_a_transaction_creates_are_there_once_it_committed(
    scenario: ReceiptScenario, status: str, orphaned: int, written: int
) -> None:
    await dies(scenario, commit_transaction(scenario.fixture.session(), [creation("w"), creation("x")]), at=is_decision)
    await decide_left(scenario, status)

    stats = await scenario.walk()

    assert (stats.orphaned, stats.walked, stats.written, stats.incomplete) == (orphaned, 5 - orphaned, written, 0)


async def dies(scenario: ReceiptScenario, operation: Awaitable[object], at: Match) -> None:
    """Has the client die in an operation."""
    scenario.store.rules = [Rule(Dying(at), fails=DEAD)]
    with pytest.raises((Unavailable, CommitStateUnknown)):
        await operation
    scenario.store.rules = []


def is_manifest(call: Call) -> bool:
    return call.key.endswith("/manifest.json")


def is_decision(call: Call) -> bool:
    return "/transactions/" in call.key and b'"status":"pending"' not in call.body


async def decide_left(scenario: ReceiptScenario, status: str) -> None:
    """Decides the one transaction that there is."""
    session = scenario.fixture.session()
    [key] = scenario.store.keys("wh/_catalog/transactions/")
    decision = await read_decision(session.state, key.rpartition("/")[2].removesuffix(".json"))
    assert decision is not None
    assert decision.status == "pending"
    if status == "committed":
        assert await decide(session.state, session.runtime, decision, "committed")
    elif status == "aborted":
        assert await decide(session.state, session.runtime, decision, "aborted")


async def test_a_registered_table_is_walked_back_to_the_file_that_it_came_with(scenario: ReceiptScenario) -> None:
    document = record((await scenario.fixture.commit(set_property("a", "1"))).metadata)
    folder = "memory:///wh/warehouse/elsewhere"
    body = dumps({**document, "location": folder})
    await scenario.store.put("wh/warehouse/elsewhere/metadata/00007-x.metadata.json", body, ANY)
    file = f"{folder}/metadata/00007-x.metadata.json"
    await register_table(scenario.fixture.session(), NS, "r", file, overwrite=False)
    await scenario.fixture.commit(set_property("b", "1"), "r")
    written = await scenario.receipts()
    await scenario.lose("committed")

    stats = await scenario.walk()

    assert (stats.incomplete, stats.unreadable) == (0, [])
    assert await scenario.receipts() == written
    assert file not in [record(body)["metadata_location"] for body in written.values()]


async def test_dropped_tables_are_walked_too(scenario: ReceiptScenario) -> None:
    written = await scenario.receipts()
    await drop_table(scenario.fixture.session(), NS, "t", purge=False)
    await drop_table(scenario.fixture.session(), NS, "u", purge=True)
    await scenario.lose("committed")

    assert (await scenario.walk()).orphaned == 0
    assert await scenario.receipts() == written


async def test_a_run_that_has_had_enough_reports_it_and_the_next_goes_on(scenario: ReceiptScenario) -> None:
    await scenario.lose("committed")
    heard: list[ReconcileStats] = []

    first = await reconcile(
        scenario.fixture.another().session(), concurrency=1, progress=heard.append, should_stop=lambda: bool(heard)
    )
    second = await scenario.walk()

    assert (first.stopped, first.walked, first.unchanged) == (True, 1, 0)
    assert (second.stopped, second.walked, second.unchanged) == (False, 2, 1)
    assert first.written + second.written == 10


async def test_progress_is_reported_after_each_batch(scenario: ReceiptScenario) -> None:
    report: list[int] = []

    await reconcile(scenario.fixture.session(), concurrency=2, progress=lambda stats: report.append(stats.walked))

    assert report == [2, 3]


async def test_a_tally_is_json(scenario: ReceiptScenario) -> None:
    await scenario.lose("committed", location=(await locations(scenario))[0])
    stats = await scenario.walk()

    assert record(dumps(stats.to_json())) == stats.to_json()
    assert stats.to_json()["written"] == 1


@pytest.mark.parametrize("damaged", [["4"], ["4", "6"], ["3", "4", "5"], ["8"], ["0"]])
async def test_commits_before_a_damaged_metadata_file_have_their_receipts_in_the_end(
    damaged: list[str],
) -> None:
    """No receipt is left, so metadata alone names the commits: each file names the one before it in a log."""
    scenario = ReceiptScenario()
    await scenario.fixture.namespace("db")
    files = [(await scenario.fixture.table()).metadata_location]
    files += [(await scenario.fixture.commit(set_property("p", value))).metadata_location for value in "12345678"]
    before = {key for stage in ("pending", "committed") for key in await scenario.receipts(stage)}
    for key in before:
        await scenario.store.delete(key)
    broken = {files[int(place)].removeprefix("memory:///") for place in damaged}
    bodies = {key: await scenario.store.get(key) for key in broken}
    for key in broken:
        await scenario.store.put(key, b"{", ANY)

    stats = await scenario.walk()

    assert len(await scenario.receipts()) == len(files) - len(damaged)
    assert (stats.incomplete, stats.unreadable_count) == (1, len(damaged))
    assert all(any(key in reason for reason in stats.unreadable) for key in broken)

    again = await scenario.walk()
    assert (again.files, again.incomplete, again.unreadable_count) == (len(damaged), 1, len(damaged))

    for key, found in bodies.items():
        assert isinstance(found, Found)
        await scenario.store.put(key, found.body, ANY)
    assert (await scenario.walk()).incomplete == 0
    assert len(await scenario.receipts()) == len(files)


async def test_commits_before_a_damaged_pending_receipt_have_their_receipts_in_the_end() -> None:
    scenario = ReceiptScenario()
    await scenario.fixture.namespace("db")
    await scenario.fixture.table()
    states = [await scenario.fixture.commit(set_property("p", value)) for value in "12345678"]
    for key in await scenario.receipts():
        await scenario.store.delete(key)
    pending = await scenario.receipts("pending")
    fourth = states[3].metadata_location
    [broken] = [key for key, body in pending.items() if record(body)["metadata_location"] == fourth]
    await scenario.store.put(broken, b"{", ANY)

    stats = await scenario.walk()

    assert len(await scenario.receipts()) == 8
    assert [broken in reason for reason in stats.unreadable] == [True]
