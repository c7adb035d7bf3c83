"""Restores, collections, checks and backups of a registry whose commit objects have only edits
(docs/design/registry.md#whole-commit-objects)."""

from pathlib import Path
from typing import Any

import pytest

from arco_catalog.cli.restore import as_text
from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.iceberg.json import JsonObject, JsonValue, dumps, loads
from arco_catalog.operations.listing import Paging, list_relations
from arco_catalog.planning.upkeep_settings import DAY_MS, HOUR_MS, Retention
from arco_catalog.protocol.catalog import Settings
from arco_catalog.protocol.past_heads import past_head_body
from arco_catalog.state import commit_edits, registry
from arco_catalog.state.access import KeyConflict
from arco_catalog.state.fields import mapping, objects, sequence, text
from arco_catalog.state.registry import RegistryState
from arco_catalog.state.spilling import Limits
from arco_catalog.upkeep.collection import registry as collected_registry
from arco_catalog.upkeep.collection.pipeline import PipelineProgress
from arco_catalog.upkeep.fsck.check import check
from arco_catalog.upkeep.fsck.examination import Examination
from arco_catalog.upkeep.fsck.findings import Finding
from arco_catalog.upkeep.fsck.repairs import CopyHead
from arco_catalog.upkeep.recovery.archive import Archive, ArchiveWriter
from arco_catalog.upkeep.recovery.backup import backup
from arco_catalog.upkeep.recovery.restore import Choices, restore
from arco_catalog.upkeep.recovery.unpack import restore_backup
from storage_backends import Found
from tests.support.registry_versions import raise_version
from tests.upkeep.collection.conftest import PATHS, Collections
from tools.support.catalog_fixture import NS

CHAIN = 5


@pytest.fixture(autouse=True)
def short_chains(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commit_edits, "WHOLE_EVERY", CHAIN)
    monkeypatch.setattr(collected_registry, "WHOLE_EVERY", CHAIN)


async def catalog(settings: Settings | None = None) -> Collections:
    """A catalog with a table in a registry of version 2."""
    made = Collections(settings)
    await made.fixture.namespace("db")
    await made.fixture.table("t")
    await raise_version(made.fixture.session().state)
    return made


async def head_of(made: Collections) -> RegistryState:
    return await made.fixture.another().session().state.head()


async def body(made: Collections, key: str) -> bytes:
    found = await made.store.get(key)
    assert isinstance(found, Found)
    return found.body


async def findings(made: Collections) -> list[Finding]:
    session = made.fixture.another().session(deadline_ms=DAY_MS)
    return [each async for each in check(Examination(session))]


async def restored(made: Collections, choices: Choices | None = None) -> JsonObject:
    return await restore(made.fixture.another().session(), choices or Choices(), dry=False)


async def damage(made: Collections, key: str, way: str) -> None:
    """Deletes the object of a commit, cuts it in half, or puts another commit in its place."""
    there = await body(made, key)
    others = [each for each in made.listed(PATHS.registry_commits) if each != key]
    await made.store.delete(key)
    if way != "gone":
        made_of = there[: len(there) // 2] if way == "cut" else await body(made, others[-1])
        await made.fixture.session().state.create(key, made_of)


# Restores.


@pytest.mark.parametrize("spill", [Limits(), Limits(embedded=300, segment=700)], ids=["embedded", "spilled"])
async def test_a_lost_head_comes_back_from_a_chain_of_any_length(spill: Limits) -> None:
    made = await catalog(Settings("wh", spill=spill))
    ancestors = set()
    for number in range(2 * CHAIN + 1):
        await made.fixture.another().table(f"t{number}", key=made.fixture.key())
        before, head = await body(made, PATHS.manifest), await head_of(made)
        ancestors.add(head.ancestor)
        await made.store.delete(PATHS.manifest)
        assert (await restored(made))["ok"] is True
        assert await body(made, PATHS.manifest) == before
        assert await findings(made) == []
    assert len(ancestors) == 4, "two ancestors at least, and whole commits"


async def test_a_lost_head_comes_back_from_the_longest_chain_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commit_edits, "WHOLE_EVERY", 64)
    made = await catalog()
    for number in range(62):
        await made.fixture.table(f"t{number}", key=made.fixture.key())
    before, head = await body(made, PATHS.manifest), await head_of(made)
    assert head.recent()[63][0] == head.ancestor
    await made.store.delete(PATHS.manifest)
    assert (await restored(made))["ok"] is True
    assert await body(made, PATHS.manifest) == before
    await made.fixture.table("later")
    assert (await head_of(made)).ancestor is None


async def test_an_older_head_can_be_put_back_and_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    made = await catalog()
    for number in range(3):
        await made.fixture.table(f"t{number}")
    chosen = await head_of(made)
    await made.fixture.table("lost")
    await restored(made, Choices(head=chosen.id, replace=True))
    assert (await head_of(made)).document == chosen.document
    for number in range(CHAIN):
        await made.fixture.another().table(f"u{number}")
        head = await head_of(made)
        state = made.fixture.another().session().state
        assert await past_head_body(state, head.id or "") == await body(made, PATHS.manifest)


@pytest.mark.parametrize("way", ["gone", "cut", "another"])
@pytest.mark.parametrize("place", [1, 2, 3, 4])
async def test_a_head_whose_chain_has_a_gap_is_reported_with_the_last_that_can_be_restored(
    place: int, way: str
) -> None:
    made = await catalog()
    heads = {(await head_of(made)).id: await body(made, PATHS.manifest)}
    for number in range(2 * CHAIN + 3):
        await made.fixture.table(f"t{number}", key=made.fixture.key())
        heads[(await head_of(made)).id] = await body(made, PATHS.manifest)
    head = await head_of(made)
    commits = [commit for commit, _ in head.recent()]
    assert commits[4] == head.ancestor
    await damage(made, PATHS.registry_commit(commits[place]), way)
    await made.store.delete(PATHS.manifest)
    before = made.listed()

    report = await restore(made.fixture.another().session(), Choices(), dry=True)

    found = mapping(report, "head")
    assert report["ok"] is False
    assert found["chosen"] == head.id
    assert "does not exist or is damaged" in text(found, "error")
    assert found["lost"] == [PATHS.registry_commit(commits[place])]
    [earlier] = [each["commit"] for each in objects(found, "alternatives")]
    assert earlier == commits[place + 1]
    assert commits[place] in as_text(report)
    assert str(earlier) in as_text(report)
    assert "No pointer" not in as_text(report)
    assert made.listed() == before
    with pytest.raises(BadRequest, match="does not exist or is damaged: choose another"):
        await restored(made, Choices(head=head.id))
    assert (await restored(made, Choices(head=str(earlier))))["ok"] is True
    assert await body(made, PATHS.manifest) == heads[str(earlier)]


async def test_a_chosen_commit_whose_object_is_another_whole_one_is_not_restored() -> None:
    made = await catalog()
    for number in range(CHAIN + 2):
        await made.fixture.table(f"t{number}", key=made.fixture.key())
    head = await head_of(made)
    chosen, whole = head.recent()[1][0], await body(made, PATHS.registry_commit(head.ancestor or ""))
    await made.store.delete(PATHS.registry_commit(chosen))
    await made.fixture.session().state.create(PATHS.registry_commit(chosen), whole)
    await made.store.delete(PATHS.manifest)
    with pytest.raises(BadRequest, match=f"it has the id of another commit, {head.ancestor}"):
        await restored(made, Choices(head=chosen))
    assert PATHS.manifest not in made.listed()


async def test_without_evidence_the_commits_that_may_have_been_head_and_those_before_a_gap_are_named() -> None:
    made = await catalog()
    for number in range(CHAIN + 3):
        await made.fixture.table(f"t{number}")
    commits = [commit for commit, _ in (await head_of(made)).recent()]
    await made.fixture.session().state.store.delete(PATHS.registry_commit(commits[2]))
    for pointer in made.listed(PATHS.pointers):
        await made.store.delete(pointer)
    await made.store.delete(PATHS.manifest)
    report = await restore(made.fixture.another().session(), Choices(), dry=True)
    found = mapping(report, "head")
    assert (found["chosen"], found["error"]) == (None, None)
    assert [each["commit"] for each in objects(found, "candidates")] == [commits[1], commits[0]]
    assert [each["commit"] for each in objects(found, "alternatives")] == [commits[3]]
    assert commits[3] in as_text(report)
    assert PATHS.registry_commit(commits[2]) in as_text(report)


async def test_an_earlier_commit_is_named_where_the_whole_object_is_lost_too() -> None:
    made = await catalog()
    for number in range(2 * CHAIN + 2):
        await made.fixture.table(f"t{number}", key=made.fixture.key())
    head = await head_of(made)
    commits = [commit for commit, _ in head.recent()]
    for commit in (head.ancestor or "", commits[1]):
        await made.store.delete(PATHS.registry_commit(commit))
    await made.store.delete(PATHS.manifest)
    found = mapping(await restore(made.fixture.another().session(), Choices(), dry=True), "head")
    assert [each["commit"] for each in objects(found, "alternatives")] == [
        commits[commits.index(head.ancestor or "") + 1]
    ]


async def losing_sibling(made: Collections, commit: str) -> str:
    """Makes the whole object of another commit with the parent of this one, whose swap was lost, and returns its id."""
    session = made.fixture.another().session()
    document = loads(await past_head_body(session.state, commit))
    assert isinstance(document, dict)
    other, listed = session.runtime.ulid(), sequence(document, "recent")
    recent: JsonValue = [[other, f"{other}-operation"], *listed[1:]]
    made_up = {**document, "id": other, "recent": recent, "operations": []}
    await session.state.create(PATHS.registry_commit(other), dumps(made_up, sort_keys=True))
    return other


@pytest.mark.parametrize("place", [0, 1])
async def test_a_commit_that_lost_its_swap_is_no_alternative(place: int) -> None:
    """Its object is whole, and was written beside the one that became HEAD, behind the gap."""
    made = await catalog()
    for number in range(2 * CHAIN + 3):
        await made.fixture.table(f"t{number}", key=made.fixture.key())
    head = await head_of(made)
    commits = [commit for commit, _ in head.recent()]
    loser = await losing_sibling(made, commits[place])
    await made.store.delete(PATHS.registry_commit(commits[2]))
    await made.store.delete(PATHS.manifest)

    found = mapping(await restore(made.fixture.another().session(), Choices(), dry=True), "head")

    assert found["chosen"] == head.id
    alternatives = [each["commit"] for each in objects(found, "alternatives")]
    assert alternatives == [commits[3]]
    assert loser not in alternatives


# Checks.


async def test_the_commit_of_head_that_came_back_with_only_edits_stays() -> None:
    """As an older version of it does that was restored between the check and the repair."""
    made = await catalog()
    await made.fixture.table("u")
    head = await head_of(made)
    key = PATHS.registry_commit(head.id or "")
    there = await body(made, key)
    assert there != await body(made, PATHS.manifest)

    assert not await CopyHead(head.id or "")(made.fixture.another().session())

    assert await body(made, key) == there


@pytest.mark.parametrize("place", range(4))
async def test_a_check_reports_each_commit_that_head_needs(place: int) -> None:
    made = await catalog()
    for number in range(2):
        await made.fixture.table(f"t{number}")
    head = await head_of(made)
    assert head.recent()[3][0] == head.ancestor
    lost = PATHS.registry_commit(head.recent()[place][0])
    await made.store.delete(lost)
    assert [(each.code.value, each.where) for each in await findings(made)] == [("commit-missing", lost)]


async def test_the_object_of_head_that_a_check_writes_anew_is_whole_and_part_of_later_chains() -> None:
    made = await catalog()
    await made.fixture.table("a")
    lost = PATHS.registry_commit((await head_of(made)).id or "")
    await made.store.delete(lost)
    [finding] = await findings(made)
    assert finding.repair is not None
    assert await finding.repair(made.fixture.another().session())
    assert await body(made, lost) == await body(made, PATHS.manifest)
    await made.fixture.table("b")
    assert await findings(made) == []


@pytest.mark.parametrize("way", ["gone", "cut", "another"])
@pytest.mark.parametrize("place", range(4))
async def test_a_repair_makes_a_commit_with_a_whole_object_where_the_chain_of_head_is_broken(
    place: int, way: str
) -> None:
    made = await catalog()
    for number in range(2):
        await made.fixture.table(f"t{number}")
    lost = PATHS.registry_commit((await head_of(made)).recent()[place][0])
    await damage(made, lost, way)
    repairs = [each.repair for each in await findings(made) if each.repair is not None]
    assert repairs
    done = [await repair(made.fixture.another().session()) for repair in repairs]
    assert done == [True, *([False] * (len(done) - 1))]
    assert all(each.repair is None for each in await findings(made))
    await made.fixture.another().table("later", key=made.fixture.key())
    before = await body(made, PATHS.manifest)
    await made.store.delete(PATHS.manifest)
    assert (await restored(made))["ok"] is True
    assert await body(made, PATHS.manifest) == before


async def test_a_lost_commit_that_head_does_not_need_has_no_repair() -> None:
    made = await catalog()
    for number in range(CHAIN):
        await made.fixture.table(f"t{number}")
    head = await head_of(made)
    await made.store.delete(PATHS.registry_commit([commit for commit, _ in head.recent()][CHAIN]))
    [finding] = await findings(made)
    assert (finding.code.value, finding.repair) == ("commit-missing", None)


async def test_a_check_reports_a_chain_that_gives_another_head() -> None:
    made = await catalog()
    for number in range(2):
        await made.fixture.table(f"t{number}")
    head = await head_of(made)
    key = PATHS.registry_commit(head.recent()[1][0])
    changed = (await body(made, key)).replace(b'"t0"', b'"t9"').replace(b"\\nt0", b"\\nt9")
    await made.store.delete(key)
    await made.fixture.session().state.create(key, changed)
    assert [each.code.value for each in await findings(made)] == ["commit-foreign"]


# Collections.


async def old_and_new(made: Collections) -> None:
    """Commits of a hundred days ago, and a few of today, which need those."""
    for number in range(2 * CHAIN):
        await made.fixture.table(f"old{number}")
    made.days(100)
    await made.fixture.another().table("new")
    await made.collect()
    made.days(1)


async def test_a_collection_leaves_the_commits_that_others_need() -> None:
    made = await catalog()
    count = len(made.listed(PATHS.registry_commits))
    await old_and_new(made)
    assert len(made.listed(PATHS.registry_commits)) < count + 2 * CHAIN + 1
    assert await findings(made) == []
    before = await body(made, PATHS.manifest)
    head = await head_of(made)
    await made.store.delete(PATHS.manifest)
    await restored(made, Choices(head=head.id))
    assert await body(made, PATHS.manifest) == before


async def unread_by_the_pipeline(monkeypatch: pytest.MonkeyPatch) -> tuple[Collections, RegistryState]:
    monkeypatch.setattr(registry, "RECENT_COMMITS", 8)
    monkeypatch.setattr(PipelineProgress, "has_read_commit", lambda self, sequence: False)
    made = await catalog()
    for number in range(16):
        await made.fixture.table(f"t{number}")
    made.days(100)
    await made.fixture.another().table("new")
    return made, await head_of(made)


@pytest.mark.parametrize("way", ["gone", "cut", "another"])
async def test_a_lost_commit_with_the_next_list_lets_no_unread_commit_be_collected(
    monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    made, head = await unread_by_the_pipeline(monkeypatch)
    await damage(made, PATHS.registry_commit(head.before or ""), way)
    there = made.listed(PATHS.registry_commits)
    assert (await made.collect()).unreadable == []
    assert {*there} <= {*made.listed(PATHS.registry_commits)}


async def test_a_history_that_ends_at_lost_commits_lets_no_unread_commit_be_collected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made, head = await unread_by_the_pipeline(monkeypatch)
    for commit in [head.before, *(commit for commit, _ in head.recent()[1:])]:
        await made.store.delete(PATHS.registry_commit(commit or ""))
    there = made.listed(PATHS.registry_commits)
    await made.collect()
    assert {*there} <= {*made.listed(PATHS.registry_commits)}


async def test_a_check_reports_an_ancestor_that_was_collected(monkeypatch: pytest.MonkeyPatch) -> None:
    async def none(*_: object) -> int:
        return 1_000_000

    monkeypatch.setattr(collected_registry, "_needed_from", none)
    made = await catalog()
    await old_and_new(made)
    found = await findings(made)
    assert {each.code.value for each in found} == {"commit-missing"}
    assert all("without it manifest.json could not be computed" in each.found for each in found)


async def test_an_idle_registry_keeps_what_its_head_needs() -> None:
    made = await catalog()
    for number in range(2 * CHAIN):
        await made.fixture.table(f"t{number}")
    counts = []
    for _ in range(30):
        made.days(7)
        await made.collect()
        assert await findings(made) == []
        counts.append(len(made.listed(PATHS.registry_commits)))
    assert max(counts[20:]) == max(counts[15:20]), "it grows without end"


async def test_a_page_token_of_a_standing_head_is_valid_for_a_week() -> None:
    made = await catalog(Settings("wh", spill=Limits(embedded=300, segment=700, least=300)))
    for number in range(4 * CHAIN):
        await made.fixture.table(f"t{number}")
    while len(objects := (await head_of(made)).recent()) and (await head_of(made)).ancestor != objects[CHAIN - 1][0]:
        await made.fixture.table(f"u{len(objects)}")
    made.days(300)  # the registry stands, and a token names a HEAD whose objects are old
    page = await list_relations(made.fixture.another().session(), NS, "table", Paging("", 1))
    await made.fixture.another().table("later")
    for _ in range(3):
        made.days(2.2)
        await made.collect()
        assert await list_relations(made.fixture.another().session(), NS, "table", Paging(page.next_page_token, 1))
    made.days(9)
    await made.fixture.another().table("last")
    made.days(100)
    await made.collect()
    with pytest.raises(BadRequest, match="expired"):
        await list_relations(made.fixture.another().session(), NS, "table", Paging(page.next_page_token, 1))


async def test_commits_that_become_a_week_old_during_a_collection_keep_what_they_need(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = await catalog(Settings("wh", retention=Retention(receipts_ms=7 * DAY_MS)))
    while (await head_of(made)).ancestor != (await head_of(made)).recent()[:CHAIN][-1][0]:
        await made.fixture.table(f"t{len((await head_of(made)).recent())}")
    made.days(6)
    page = await list_relations(made.fixture.another().session(), NS, "table", Paging("", 1))
    await made.fixture.another().table("later")
    made.runtime.ms += DAY_MS + HOUR_MS - 60_000
    needed_from = collected_registry._needed_from

    async def slowly(*arguments: Any) -> int:
        found = await needed_from(*arguments)
        made.runtime.ms += 120_000
        return found

    monkeypatch.setattr(collected_registry, "_needed_from", slowly)
    assert (await made.collect()).unreadable == []
    assert await list_relations(made.fixture.another().session(), NS, "table", Paging(page.next_page_token, 1))


@pytest.mark.parametrize("way", ["gone", "cut", "another"])
@pytest.mark.parametrize("more", range(CHAIN))
async def test_a_check_reports_a_lost_commit_with_the_next_list_and_examines_those_beyond_it(
    monkeypatch: pytest.MonkeyPatch, more: int, way: str
) -> None:
    monkeypatch.setattr(registry, "RECENT_COMMITS", 8)
    made = await catalog()
    for number in range(16 + more):
        await made.fixture.table(f"t{number}")
    lost, beyond = (await head_of(made)).before or "", made.listed(PATHS.registry_commits)[2]
    await damage(made, PATHS.registry_commit(lost), way)
    await made.store.delete(beyond)
    assert {finding.where for finding in await findings(made)} == {PATHS.registry_commit(lost), beyond}


async def test_a_check_reports_lost_commits_where_a_history_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    made, head = await unread_by_the_pipeline(monkeypatch)
    lost = [head.before or "", *(commit for commit, _ in head.recent()[1:])]
    for commit in lost:
        await made.store.delete(PATHS.registry_commit(commit))
    assert {PATHS.registry_commit(each) for each in lost} <= {finding.where for finding in await findings(made)}


# Backups.


async def backed_up(made: Collections, file: Path) -> Archive:
    writer = ArchiveWriter(file)
    writer.begin({"id": "01", "of": "memory:", "made_ms": 0, "realm": False, "prefix": "wh/"})
    await backup(made.fixture.another().session(deadline_ms=DAY_MS), None, writer)
    return await Archive.opened(file)


async def test_a_backup_has_the_chain_of_head(tmp_path: Path) -> None:
    made, other = await catalog(), Collections()
    for number in range(CHAIN + 2):
        await made.fixture.table(f"t{number}")
    head = await head_of(made)
    await restore_backup(other.fixture.session(), await backed_up(made, tmp_path / "lake.arco.tar.gz"), dry=False)
    assert await past_head_body(other.fixture.session().state, head.id or "") == await body(made, PATHS.manifest)


@pytest.mark.parametrize("more", range(CHAIN))
async def test_a_backup_has_the_history_beyond_a_lost_commit_with_the_next_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: int
) -> None:
    monkeypatch.setattr(registry, "RECENT_COMMITS", 8)
    made, other = await catalog(), Collections()
    for number in range(16 + more):
        await made.fixture.table(f"t{number}")
    await made.store.delete(PATHS.registry_commit((await head_of(made)).before or ""))
    there = made.listed(PATHS.registry_commits)
    await restore_backup(other.fixture.session(), await backed_up(made, tmp_path / "lake.arco.tar.gz"), dry=False)
    assert {*there} <= {*other.listed(PATHS.registry_commits)}


@pytest.mark.parametrize("repaired_first", [True, False])
async def test_a_backup_is_restored_beside_the_other_form_of_a_commit(tmp_path: Path, repaired_first: bool) -> None:
    made = await catalog()
    await made.fixture.table("u")
    own = PATHS.registry_commit((await head_of(made)).id or "")
    with_edits = await body(made, own)
    if not repaired_first:
        archive = await backed_up(made, tmp_path / "lake.arco.tar.gz")
    await made.store.delete(own)
    [finding] = await findings(made)
    assert finding.repair is not None
    assert await finding.repair(made.fixture.another().session())
    if repaired_first:
        archive = await backed_up(made, tmp_path / "lake.arco.tar.gz")
        await made.store.delete(own)
        await made.fixture.session().state.create(own, with_edits)
    await made.store.delete(PATHS.manifest)
    await restore_backup(made.fixture.another().session(), archive, dry=False)
    assert await findings(made) == []


async def test_a_backup_is_not_restored_beside_another_commit_of_the_same_id(tmp_path: Path) -> None:
    made = await catalog()
    await made.fixture.table("u")
    archive = await backed_up(made, tmp_path / "lake.arco.tar.gz")
    own = PATHS.registry_commit((await head_of(made)).id or "")
    whole = (await body(made, PATHS.manifest)).replace(b'"create-table"', b'"drop-table"')
    await made.store.delete(own)
    await made.fixture.session().state.create(own, whole)
    await made.store.delete(PATHS.manifest)
    with pytest.raises(KeyConflict):
        await restore_backup(made.fixture.another().session(), archive, dry=False)
