"""Where the objects of registry commits have only edits, everything that reads an earlier HEAD finds it
(docs/design/registry.md#whole-commit-objects)."""

import pytest

from arco_catalog.iceberg.errors import BadRequest, InternalError
from arco_catalog.operations.as_of import Listing, registry_at
from arco_catalog.operations.history import history
from arco_catalog.operations.listing import Paging, list_relations
from arco_catalog.operations.upgrade import upgrade
from arco_catalog.protocol.catalog import Settings
from arco_catalog.protocol.past_heads import past_head, past_head_body
from arco_catalog.state import commit_edits, registry
from arco_catalog.state.memory import PARSED_WEIGHT, Memory
from arco_catalog.state.registry import RegistryState
from arco_catalog.state.spilling import Limits
from storage_backends import Found, Missing, Unchanged, Version
from storage_backends.memory import MemoryStore
from tests.operations import registry_bytes
from tests.support.fake_runtime import FakeRuntime
from tests.support.page_tokens import decode_token, encode_token
from tests.support.past_heads import head_as_of
from tests.support.registry_versions import raise_version
from tools.support.catalog_fixture import NS, CountingFixture
from tools.support.wrapped_stores import CountingStore

TINY = Settings("wh", spill=Limits(embedded=300, segment=700))


@pytest.fixture(autouse=True)
def short_chains(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commit_edits, "WHOLE_EVERY", 5)


async def catalog(settings: Settings | None = None) -> CountingFixture:
    """A catalog with a table in a registry of version 2."""
    clock = FakeRuntime()
    made = CountingFixture(CountingStore(MemoryStore(now_ms=clock.now_ms)), clock, settings or Settings("wh"))
    await made.namespace("db")
    await made.table("t")
    await raise_version(made.session().state)
    return made


@pytest.fixture
async def fixture() -> CountingFixture:
    return await catalog()


async def head_of(fixture: CountingFixture) -> RegistryState:
    return await fixture.another().session().state.head()


async def body(fixture: CountingFixture, key: str) -> bytes | None:
    found = await fixture.store.get(key)
    return found.body if isinstance(found, Found) else None


async def test_a_create_writes_little_more_than_half_of_two_heads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commit_edits, "WHOLE_EVERY", 64)
    before, after = [await registry_bytes.bytes_of_a_create(100, version) for version in (1, 2)]
    assert before["HEAD"] == before["commit objects"]
    assert after["HEAD"] < 1.01 * before["HEAD"]
    assert after["HEAD"] + after["commit objects"] < 0.55 * 2 * before["HEAD"]


@pytest.mark.parametrize("settings", [Settings("wh"), TINY], ids=["embedded", "spilled"])
async def test_head_as_of_every_commit_can_be_read(settings: Settings) -> None:
    fixture = await catalog(settings)
    heads = {(await head_of(fixture)).id or "": await body(fixture, fixture.catalog.paths.manifest)}
    for number in range(12):
        await fixture.table(f"t{number}")
        heads[(await head_of(fixture)).id or ""] = await body(fixture, fixture.catalog.paths.manifest)
    state = fixture.another().session().state
    assert [await past_head_body(state, commit) for commit in heads] == [*heads.values()]
    whole = [commit for commit in heads if await body(fixture, state.paths.registry_commit(commit)) == heads[commit]]
    assert len(whole) == 2


async def test_a_head_is_computed_from_the_last_whole_object(fixture: CountingFixture) -> None:
    for number in range(3):
        await fixture.table(f"t{number}")
    state, paths = fixture.another().session().state, fixture.catalog.paths
    head = await head_of(fixture)
    commits = [commit for commit, _ in head.recent()]
    expected = await body(fixture, paths.manifest)
    repaired = await past_head_body(state, commits[1])
    for commit in commits[1:]:
        await fixture.store.delete(paths.registry_commit(commit))
    await state.create(paths.registry_commit(commits[1]), repaired)
    assert await past_head_body(state, commits[0]) == expected


async def test_a_past_head_costs_two_rounds_of_reads(fixture: CountingFixture) -> None:
    for number in range(3):
        await fixture.table(f"t{number}")
    head = await head_of(fixture)
    assert head.recent()[4][0] == head.ancestor
    cost = await fixture.cost(past_head(fixture.another().session().state, head.id or ""))
    assert (cost.depth, cost.calls) == (2, 5)


async def test_a_past_head_takes_memory_for_what_it_reads_before_it_reads(
    fixture: CountingFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        await fixture.table(f"t{number}")
    head, memory = await head_of(fixture), Memory(64 << 20)
    taken: list[int] = []

    async def get(key: str, if_changed_from: Version | None = None) -> Found | Unchanged | Missing:
        taken.append(memory.used)
        return await CountingStore.get(fixture.store, key, if_changed_from)

    state = fixture.another().session().state
    with memory.hold() as hold, monkeypatch.context() as patch:
        patch.setattr(fixture.store, "get", get)
        await past_head(state, head.id or "", hold)
        held = memory.used

    sizes = [len(await body(fixture, state.paths.registry_commit(commit)) or b"") for commit, _ in head.recent()[:5]]
    assert [bytes_taken > 0 for bytes_taken in taken] == [True] * 5
    assert held == PARSED_WEIGHT * sum(sizes)
    assert memory.used == 0


async def test_the_catalog_as_of_each_commit_is_shown() -> None:
    fixture = await catalog(TINY)
    clock = fixture.runtime
    assert isinstance(clock, FakeRuntime)
    instants = []
    for number in range(9):
        clock.ms += 1_000
        await fixture.table(f"u{number}")
        instants.append(clock.now_ms())
    clock.ms += 1_000
    for number, at_ms in enumerate(instants):
        session = fixture.another().session()
        listing = Listing(session, await registry_at(session, at_ms), at_ms)
        shown = [name async for kind, name in listing.level(NS) if kind == "table"]
        assert shown == ["t", *(f"u{each}" for each in range(number + 1))]


async def test_a_catalog_as_of_a_commit_whose_ancestor_is_gone_is_reported_as_lost(fixture: CountingFixture) -> None:
    await fixture.table("u")
    await fixture.table("v")
    head = await head_of(fixture)
    clock = fixture.runtime
    assert isinstance(clock, FakeRuntime)
    at_ms = clock.now_ms()
    clock.ms += 1_000
    await fixture.table("w")
    await fixture.store.delete(fixture.catalog.paths.registry_commit(head.ancestor or ""))
    with pytest.raises(InternalError, match="or one before it that it needs, is lost"):
        await registry_at(fixture.another().session(), at_ms)


async def test_history_is_read_from_edits(fixture: CountingFixture) -> None:
    for number in range(12):
        await fixture.table(f"t{number}")
    made = [each["name"] async for each in history(fixture.another().session()) if each["kind"] == "create-table"]
    assert len(made) == 13


NO_SEQUENCE = b'{"version":2,"id":"ID","at_ms":1,"recent":[],"changes":{}}'


@pytest.mark.parametrize(
    "junk",
    [None, b"{", b'{"version":2,"recent":[],"changes":{}}', NO_SEQUENCE],
    ids=["gone", "cut", "junk", "no sequence"],
)
async def test_a_commit_that_is_lost_ends_no_history(fixture: CountingFixture, junk: bytes | None) -> None:
    for number in range(6):
        await fixture.table(f"t{number}")
    commit = (await head_of(fixture)).recent()[2][0]
    key = fixture.catalog.paths.registry_commit(commit)
    await fixture.store.delete(key)
    if junk is not None:
        await fixture.session().state.create(key, junk.replace(b"ID", commit.encode()))
    shown = [each async for each in history(fixture.another().session())]
    assert [each["name"] for each in shown if each["kind"] == "create-table"] == ["t5", "t4", "t2", "t1", "t0", "t"]
    [lost] = [each for each in shown if each["kind"] == "lost"]
    head = await head_of(fixture)
    assert lost == {"commit": commit, "sequence": head.sequence - 2, "at_ms": None, "kind": "lost"}


@pytest.mark.parametrize("more", range(6))
async def test_a_lost_commit_with_the_next_list_ends_no_history(
    monkeypatch: pytest.MonkeyPatch, fixture: CountingFixture, more: int
) -> None:
    monkeypatch.setattr(registry, "RECENT_COMMITS", 8)
    for number in range(16 + more):
        await fixture.table(f"t{number}")
    head = await head_of(fixture)
    known = [each async for each in history(fixture.another().session(), own=True)]
    await fixture.store.delete(fixture.catalog.paths.registry_commit(head.before or ""))
    shown = [each async for each in history(fixture.another().session(), own=True)]
    lost = {"commit": head.before, "sequence": head.sequence - 8, "at_ms": None, "kind": "lost"}
    assert shown == [lost if each["commit"] == head.before else each for each in known]


async def test_the_end_of_a_history_whose_rest_cannot_be_found_is_shown(
    monkeypatch: pytest.MonkeyPatch, fixture: CountingFixture
) -> None:
    monkeypatch.setattr(registry, "RECENT_COMMITS", 2)
    for number in range(6):
        await fixture.table(f"t{number}")
    head = await head_of(fixture)
    paths, [_, (second, _)] = fixture.catalog.paths, head.recent()
    for commit in (second, head.before or ""):
        await fixture.store.delete(paths.registry_commit(commit))
    *_, last = [each async for each in history(fixture.another().session())]
    assert last == {"commit": head.before, "sequence": head.sequence - 2, "at_ms": None, "kind": "lost"}


async def test_an_upgrade_is_followed_by_edits() -> None:
    clock = FakeRuntime()
    fixture = CountingFixture(CountingStore(MemoryStore(now_ms=clock.now_ms)), clock)
    await fixture.namespace("db")
    await upgrade(fixture.session(), force=True)
    await fixture.table("t")
    head, paths = await head_of(fixture), fixture.catalog.paths
    objects = {key: await body(fixture, key) for key in (paths.registry_commit(each) for each, _ in head.recent())}
    assert head.ancestor is not None
    assert head_as_of(head.id or "", objects.get, paths) == await body(fixture, paths.manifest)


# Pages.


async def first_page(fixture: CountingFixture) -> str:
    """The token of the second page, of a HEAD whose commit has only edits. Another commit follows, which has, too."""
    for number in range(2):
        await fixture.table(f"t{number}")
    assert (await head_of(fixture)).ancestor is not None
    page = await list_relations(fixture.session(), NS, "table", Paging("", 1))
    assert page.next_page_token is not None
    await fixture.table("later")
    return page.next_page_token


async def pages_after(fixture: CountingFixture, token: str | None, *, in_one_process: bool) -> list[tuple[int, int]]:
    """Depth and calls of each page of one item, from a token on."""
    costs, process = [], fixture.another()
    while token is not None:
        process = process if in_one_process else fixture.another()
        with fixture.store.measure() as measured:
            page = await list_relations(process.session(), NS, "table", Paging(token, 1))
        costs.append((measured.depth, measured.calls))
        token = page.next_page_token
    return costs


@pytest.mark.parametrize("settings", [Settings("wh"), TINY], ids=["embedded", "spilled"])
async def test_a_later_page_reads_the_chain_of_its_head_once_a_process(settings: Settings) -> None:
    fixture = await catalog(settings)
    token = await first_page(fixture)
    segment = 1 if settings is TINY else 0
    assert await pages_after(fixture, token, in_one_process=True) == [(2 + segment, 4 + segment), (segment, segment)]
    assert await pages_after(fixture, token, in_one_process=False) == 2 * [(2 + segment, 4 + segment)]


async def test_the_next_page_reads_nothing_more_while_head_stands(fixture: CountingFixture) -> None:
    await fixture.table("u")
    process = fixture.another()
    page = await list_relations(process.session(), NS, "table", Paging("", 1))
    with fixture.store.measure() as measured:
        await list_relations(process.session(), NS, "table", Paging(page.next_page_token, 1))
    assert measured.calls == 0


async def test_pages_write_nothing(fixture: CountingFixture) -> None:
    with fixture.store.measure() as measured:
        token: str | None = ""
        while token is not None:
            page = await list_relations(fixture.another().session(), NS, "table", Paging(token, 1))
            token = page.next_page_token
        await pages_after(fixture, "", in_one_process=True)
    assert {kind for kind, _ in measured.log} == {"get"}


def renamed(token: str, name: str) -> str:
    """The token, as if it named another HEAD."""
    decoded = decode_token(token)
    assert isinstance(decoded, list)
    return encode_token([name, *decoded[1:]])


async def test_a_token_that_names_no_commit_is_refused(fixture: CountingFixture) -> None:
    token = await first_page(fixture)
    with pytest.raises(BadRequest, match="expired"):
        await list_relations(fixture.another().session(), NS, "table", Paging(renamed(token, 26 * "0"), 1))
    with pytest.raises(BadRequest, match="another listing"):
        await list_relations(fixture.another().session(), NS, "table", Paging(renamed(token, f"head-{26 * '0'}"), 1))


async def test_a_token_ends_with_a_commit_that_its_head_needs(fixture: CountingFixture) -> None:
    token = await first_page(fixture)
    for commit, _ in (await head_of(fixture)).recent()[2:4]:
        body_there = await body(fixture, fixture.catalog.paths.registry_commit(commit))
        await fixture.store.delete(fixture.catalog.paths.registry_commit(commit))
        with pytest.raises(BadRequest, match="expired"):
            await list_relations(fixture.another().session(), NS, "table", Paging(token, 1))
        await fixture.session().state.create(fixture.catalog.paths.registry_commit(commit), body_there or b"")
