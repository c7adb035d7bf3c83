"""One registry commit raises the version, while no older program is at work (docs/design/registry.md#versions)."""

from collections.abc import Sequence
from functools import partial

import pytest

from arco_catalog.iceberg.errors import InternalError
from arco_catalog.iceberg.json import dumps, loads
from arco_catalog.operations.history import history
from arco_catalog.operations.upgrade import QUIET_MS, Upgrade, preview_upgrade, upgrade
from arco_catalog.state import registry
from arco_catalog.state.registry import RegistryState
from arco_catalog.state.writers import LastCommit
from storage_backends import ANY
from tests.support.fake_runtime import FakeRuntime
from tests.support.scripted_store import Rule, ScriptedStore, lost, swap
from tools.support.catalog_fixture import CatalogFixture

HEAD = "wh/_catalog/core/manifest.json"


@pytest.fixture
def clock() -> FakeRuntime:
    return FakeRuntime()


@pytest.fixture
async def fixture(clock: FakeRuntime) -> CatalogFixture:
    """A catalog whose registry has the first version."""
    made = CatalogFixture(ScriptedStore(clock.now_ms), clock)
    await made.namespace("db")
    return made


async def head_of(fixture: CatalogFixture) -> RegistryState:
    return await fixture.another().session().state.head()


async def kinds(fixture: CatalogFixture) -> Sequence[object]:
    """The kinds of the operations in the history, the newest first."""
    return [each["kind"] async for each in history(fixture.another().session())]


async def commit_as_older_program(fixture: CatalogFixture, at_ms: int) -> None:
    """Makes a registry commit as a program of the first version without the field `writers`, which it repeats."""
    head = await head_of(fixture)
    made = head.successor(commit="older", at_ms=at_ms, edits={}, operations=[])
    document = loads(made.body)
    assert isinstance(document, dict)
    body = dumps({**document, "writers": head.document["writers"]}, sort_keys=True)
    await fixture.store.put("wh/_catalog/core/commits/older.json", body, ANY)
    await fixture.store.put(HEAD, body, ANY)


async def test_one_commit_raises_the_version_and_the_history_shows_it(fixture: CatalogFixture) -> None:
    before = (await head_of(fixture)).sequence

    assert await upgrade(fixture.session()) == Upgrade(before=1)

    head = await head_of(fixture)
    assert (head.format_version, head.sequence) == (2, before + 1)
    [first, *_] = [each async for each in history(fixture.another().session())]
    assert (first["kind"], first["from_version"], first["to_version"], first["principal"]) == (
        "upgrade",
        1,
        2,
        "tester",
    )


async def test_a_second_upgrade_writes_nothing(fixture: CatalogFixture) -> None:
    await upgrade(fixture.session())
    head = await head_of(fixture)

    assert await upgrade(fixture.another().session()) == Upgrade(before=2)
    assert (await head_of(fixture)).version == head.version


async def test_a_plan_writes_nothing(fixture: CatalogFixture) -> None:
    head = await head_of(fixture)

    assert await preview_upgrade(fixture.session()) == Upgrade(before=1)
    assert (await head_of(fixture)).version == head.version


async def test_a_commit_of_an_older_program_within_a_day_refuses_the_upgrade(
    fixture: CatalogFixture, clock: FakeRuntime
) -> None:
    at_ms = clock.now_ms()
    await commit_as_older_program(fixture, at_ms)
    await fixture.another().namespace("later")  # by this program

    refused = Upgrade(before=1, prevented_by=LastCommit("older", at_ms))
    assert await preview_upgrade(fixture.another().session()) == refused
    assert await upgrade(fixture.another().session()) == refused
    assert (await head_of(fixture)).format_version == 1
    assert "upgrade" not in await kinds(fixture)

    clock.ms += QUIET_MS
    assert await upgrade(fixture.another().session()) == Upgrade(before=1)
    assert (await head_of(fixture)).format_version == 2


async def test_force_upgrades_in_spite_of_an_older_program(fixture: CatalogFixture, clock: FakeRuntime) -> None:
    await commit_as_older_program(fixture, clock.now_ms())

    assert await upgrade(fixture.another().session(), force=True) == Upgrade(before=1)
    assert (await head_of(fixture)).format_version == 2


async def test_an_older_program_that_commits_during_the_upgrade_refuses_it(
    fixture: CatalogFixture, clock: FakeRuntime
) -> None:
    assert isinstance(fixture.store, ScriptedStore)
    fixture.store.rules = [Rule(swap(HEAD), first=partial(commit_as_older_program, fixture, clock.now_ms()), times=1)]

    found = await upgrade(fixture.session())

    assert found.prevented_by is not None
    assert (await head_of(fixture)).format_version == 1


async def test_an_upgrade_whose_answer_is_lost_is_reported_as_made(fixture: CatalogFixture) -> None:
    assert isinstance(fixture.store, ScriptedStore)
    fixture.store.rules = [Rule(swap(HEAD), answers=lost, times=1)]

    assert await upgrade(fixture.session()) == Upgrade(before=1)
    assert (await kinds(fixture)).count("upgrade") == 1


async def test_an_older_program_works_beside_a_newer_one_before_the_upgrade_and_refuses_after_it(
    fixture: CatalogFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An older program is one that reads up to version 1."""
    newer, older = fixture.another(), fixture.another()
    with monkeypatch.context() as patched:
        patched.setattr(registry, "NEWEST_VERSION", 1)
        await older.table("by-older")
    await newer.table("by-newer")
    with monkeypatch.context() as patched:
        patched.setattr(registry, "NEWEST_VERSION", 1)
        await older.table("by-older-again")
    assert (await kinds(fixture)).count("create-table") == 3
    assert (await upgrade(newer.session())).prevented_by is not None

    assert await upgrade(newer.session(), force=True) == Upgrade(before=1)

    with monkeypatch.context() as patched:
        patched.setattr(registry, "NEWEST_VERSION", 1)
        for server in (older, fixture.another()):
            with pytest.raises(
                InternalError, match="has version 2, and this program reads versions up to 1: use a newer"
            ):
                await server.table("refused")
    await newer.table("accepted")
