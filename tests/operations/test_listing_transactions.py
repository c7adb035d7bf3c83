"""What a listing shows was so at one instant, though it reads HEAD and the decisions of transactions one after the
other, and its pages with minutes in between."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from itertools import combinations_with_replacement

import pytest

from arco_catalog.iceberg.errors import BadRequest, Unavailable
from arco_catalog.iceberg.json import JsonValue
from arco_catalog.operations.drop import drop_table
from arco_catalog.operations.listing import ListingPage, Paging, list_relations
from arco_catalog.planning.name_intents import pending_transactions
from arco_catalog.protocol import instant
from arco_catalog.protocol.decisions import decide, read_decision
from arco_catalog.protocol.internal_commits import settle_decided
from arco_catalog.state.transaction import Decision
from tests.operations.test_intents_on_names import dies_before_its_decision
from tests.operations.test_transactions import creation
from tests.support.page_tokens import decode_token, encode_token
from tests.support.scripted_store import Rule, ScriptedStore, get
from tools.support.catalog_fixture import NS, CatalogFixture
from tools.support.wrapped_stores import CountingStore, DelayingStore

Step = Callable[[], Awaitable[None]]


@dataclass
class BetweenReads:
    """Lets other things happen between reads: before which read, and what, in order."""

    steps: list[tuple[int, Step]]
    reads: int = 0
    busy: bool = False

    async def __call__(self) -> None:
        if self.busy:  # a read beside the one before which something happens
            return
        self.reads += 1
        self.busy = True
        while self.steps and self.steps[0][0] <= self.reads:
            await self.steps.pop(0)[1]()
        self.busy = False


@dataclass
class TransactionScenario:
    """A catalog with transactions of crashed processes, which a test decides."""

    store: ScriptedStore = field(default_factory=ScriptedStore)
    transactions: dict[str, str] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)
    states: list[list[str]] = field(default_factory=list)
    """What the catalog held, from its first state to the present."""

    def __post_init__(self) -> None:
        self.fixture = CatalogFixture(self.store)

    async def lay(self, *names: str) -> None:
        """A transaction that would create these names, all of whose intents are there."""
        known = set(self.transactions.values())
        await dies_before_its_decision(self.fixture, *(creation(name) for name in names))
        head = await self.fixture.another().session().state.head()
        (mine,) = set(pending_transactions(head.index)) - known
        self.transactions[names[0]] = mine

    def seen(self) -> None:
        self.states.append(sorted(self.names))

    async def commits(self, *names: str) -> None:
        """Decides the transaction of these names, and settles nothing."""
        await self.decided(names[0], committed=True)
        self.names |= {*names}
        self.seen()

    async def decided(self, name: str, *, committed: bool) -> None:
        session = self.fixture.another().session()
        pending = await read_decision(session.state, self.transactions[name])
        assert isinstance(pending, Decision)
        assert await decide(session.state, session.runtime, pending, "committed" if committed else "aborted")

    async def settled(self, name: str) -> None:
        transaction = self.transactions[name]
        session = self.fixture.another().session()
        decision = await read_decision(session.state, transaction)
        assert decision is not None
        assert decision.status != "pending"
        await settle_decided(session, {transaction: decision.status == "committed"})

    async def made(self, name: str) -> None:
        await self.fixture.another().table(name)
        self.names.add(name)
        self.seen()

    async def dropped(self, name: str) -> None:
        await drop_table(self.fixture.another().session(), NS, name, purge=False)
        self.names.remove(name)
        self.seen()


async def built() -> TransactionScenario:
    """`m` is there; two transactions would create two names each, before and behind it."""
    scenario = TransactionScenario()
    await scenario.fixture.namespace("db")
    await scenario.made("m")
    await scenario.lay("a1", "z1")
    await scenario.lay("b2", "y2")
    scenario.states.clear()
    scenario.seen()
    return scenario


def names(listed: ListingPage) -> list[str]:
    return [str(item["name"]) for item in listed.items if isinstance(item, dict)]


async def page(scenario: TransactionScenario, token: str | None, size: int | None = None) -> ListingPage:
    """A page, to a process that remembers nothing."""
    return await list_relations(scenario.fixture.another().session(), NS, "table", Paging(token, size))


async def all_pages(scenario: TransactionScenario, size: int, between: Step) -> list[str]:
    found: list[str] = []
    token: str | None = ""
    for _ in range(20):
        listed = await page(scenario, token, size)
        found += names(listed)
        token = listed.next_page_token
        if token is None:
            return found
        await between()
    raise AssertionError("a listing without an end")


async def nothing() -> None:
    return None


def scripts(scenario: TransactionScenario) -> dict[str, list[Step]]:
    """Things that happen one after the other."""
    return {
        "one decides, then the other": [
            lambda: scenario.commits("a1", "z1"),
            lambda: scenario.commits("b2", "y2"),
            lambda: scenario.settled("a1"),
        ],
        "a table is made, then a transaction decides": [
            lambda: scenario.made("c"),
            lambda: scenario.commits("b2", "y2"),
            lambda: scenario.dropped("m"),
        ],
        "another is laid and decides first": [
            lambda: scenario.lay("c3", "x3"),
            lambda: scenario.commits("c3", "x3"),
            lambda: scenario.commits("a1", "z1"),
            lambda: scenario.settled("c3"),
        ],
        "what was created is dropped": [
            lambda: scenario.commits("a1", "z1"),
            lambda: scenario.settled("a1"),
            lambda: scenario.dropped("a1"),
            lambda: scenario.commits("b2", "y2"),
        ],
    }


READS = 5
SCRIPTS = ["one decides, then the other", "a table is made, then a transaction decides"]
SCRIPTS += ["another is laid and decides first", "what was created is dropped"]


@pytest.mark.parametrize("script", SCRIPTS)
@pytest.mark.parametrize("paged", [False, True])
async def test_whatever_happens_between_its_reads_a_list_shows_what_was_so_at_one_instant(
    script: str, paged: bool
) -> None:
    shown: set[tuple[str, ...]] = set()
    for moments in combinations_with_replacement(range(1, READS + 1), len(scripts(TransactionScenario())[script])):
        scenario = await built()
        between = BetweenReads(list(zip(moments, scripts(scenario)[script], strict=True)))
        scenario.store.rules = [Rule(get(), first=between)]
        found = await all_pages(scenario, 1, nothing) if paged else names(await page(scenario, None))
        scenario.store.rules = []
        assert found in scenario.states, f"{moments}: {found} was never so, but {scenario.states}"
        assert between.reads <= 16
        shown.add((*found,))
    assert len(shown) > 1


@pytest.mark.parametrize("before", [False, True])
async def test_all_pages_of_one_token_take_one_decision(before: bool) -> None:
    """Whether it was made before the first page or between the first and the second."""
    scenario = await built()
    await scenario.made("n")
    if before:
        await scenario.commits("a1", "z1")
    happens: list[Step] = [
        nothing if before else lambda: scenario.commits("a1", "z1"),
        lambda: scenario.commits("b2", "y2"),
    ]

    async def next_one() -> None:
        if happens:
            await happens.pop(0)()

    assert await all_pages(scenario, 1, next_one) == (["a1", "m", "n", "z1"] if before else ["m", "n"])


async def test_a_settled_transaction_changes_no_page_of_an_older_token() -> None:
    scenario = await built()
    await scenario.commits("a1", "z1")

    async def settle() -> None:
        await scenario.settled("a1")

    assert await all_pages(scenario, 2, settle) == ["a1", "m", "z1"]


async def test_a_decision_that_was_collected_changes_no_page_of_an_older_token() -> None:
    scenario = await built()
    await scenario.commits("b2", "y2")

    async def collect() -> None:
        for transaction in scenario.transactions.values():
            await scenario.store.delete(scenario.fixture.catalog.paths.transaction(transaction))

    assert await all_pages(scenario, 1, collect) == ["b2", "m", "y2"]


async def test_a_list_reads_each_transaction_once_and_concurrently() -> None:
    store = ScriptedStore()
    scenario = TransactionScenario(store)
    await scenario.fixture.namespace("db")
    await scenario.lay("a1", "b1", "c1", "d1")
    await scenario.lay("a2", "b2", "c2", "d2")
    counting = CountingStore(DelayingStore(store, 0.004))
    counted = CatalogFixture(counting)

    for token in (None, ""):
        with counting.measure() as measured:
            await list_relations(counted.session(), NS, "table", Paging(token, None))
        assert (measured.depth, measured.calls) == (2, 3)

    await scenario.commits("a1", "b1", "c1", "d1")
    with counting.measure() as measured:
        listed = await list_relations(counted.session(), NS, "table", Paging("", 1))
    assert names(listed) == ["a1"]
    assert measured.depth <= 4
    assert measured.calls <= 5


async def test_a_later_page_reads_no_decision() -> None:
    scenario = await built()
    await scenario.commits("a1", "z1")
    first = await page(scenario, "", 1)
    counting = CountingStore(scenario.store)
    with counting.measure() as measured:
        listed = await list_relations(
            CatalogFixture(counting).session(), NS, "table", Paging(first.next_page_token, None)
        )
    assert names(listed) == ["m", "z1"]
    assert measured.calls == 1


async def test_another_namespace_and_views_wait_for_no_decision() -> None:
    scenario = await built()
    await scenario.fixture.namespace("other")
    counting = CountingStore(scenario.store)
    for namespace, kind in ((("other",), "table"), (NS, "view")):
        with counting.measure() as measured:
            await list_relations(CatalogFixture(counting).session(), namespace, kind, Paging(None, None))
        assert measured.calls == 1


async def test_a_token_grows_by_a_bit_for_each_transaction() -> None:
    scenario = await built()
    await scenario.commits("b2", "y2")
    token = (await page(scenario, "", 1)).next_page_token
    assert token is not None
    decoded = decode_token(token)
    assert isinstance(decoded, list)
    commit, start, bits = decoded
    assert (start, bits) == ("relation\ndb\nm", "2")
    malformed: list[JsonValue] = ["", "0", "02", "-1", "0x2", "G", 2, None, ["2"]]
    for wrong in malformed:
        with pytest.raises(BadRequest, match="page token"):
            await page(scenario, encode_token([commit, start, wrong]))
    with pytest.raises(BadRequest, match="page token"):
        await page(scenario, encode_token([commit, start, "2", "2"]))
    assert names(await page(scenario, encode_token([commit, start, "f" * 5_000]))) == ["m", "y2", "z1"]
    assert names(await page(scenario, encode_token([commit, start]))) == ["m"]


async def test_a_list_that_finds_no_instant_may_be_retried(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(instant, "ROUNDS", 1)
    scenario = await built()
    await scenario.commits("a1", "z1")
    with pytest.raises(Unavailable, match="No consistent state could be read"):
        await page(scenario, None)
