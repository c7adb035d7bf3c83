"""The event feed with one rule left out (docs/design/events.md): drawn programs must find each."""

from collections.abc import Collection, Sequence
from contextlib import aclosing

import pytest

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations import feed as reading
from arco_catalog.planning.feed import Chain, commit_record, merge
from arco_catalog.protocol.catalog import Session
from arco_catalog.state import receipt
from arco_catalog.state.access import State
from arco_catalog.state.feed import FeedRecord, FeedSegment, RegistryPosition
from arco_catalog.state.feed_cursors import FeedCursor, FeedCursors
from arco_catalog.state.listing import list_objects
from arco_catalog.state.pointer import MetadataFile, Pointer
from arco_catalog.state.registry import RegistryState
from arco_catalog.tasks.feed_stats import FeedStats
from arco_catalog.upkeep.feed import append, beginning, commit_chain, registry_chain, sequencer
from arco_catalog.upkeep.feed.commit_chain import NewCommits
from arco_catalog.upkeep.feed.feed_end import FeedEnd
from arco_catalog.upkeep.feed.past_segments import EnteredFiles
from arco_catalog.upkeep.feed.registry_chain import NewOperations
from arco_catalog.upkeep.feed.sequencer import Sequencer
from storage_backends import ANY, Applied, Version


def segments_that_replace_others(patch: pytest.MonkeyPatch) -> None:
    """docs/design/events.md#rule-1"""
    real = append._create

    async def create(session: Session, feed: FeedEnd, records: Sequence[FeedRecord], begun: bool) -> None:
        async def swap(key: str, body: bytes, expected: Version | None) -> object:
            outcome = await session.state.store.put(key, body, ANY)
            return outcome if isinstance(outcome, Applied) else Applied(Version(""), 0)

        patch.setattr(session.state, "swap", swap)
        await real(session, feed, records, begun)

    patch.setattr(append, "_create", create)


async def _committed(session: Session, entity: str) -> list[tuple[MetadataFile, JsonObject]]:
    """The committed receipts of an entity, by the times in their files."""
    found: list[tuple[MetadataFile, JsonObject]] = []
    async with aclosing(list_objects(session.state, session.state.paths.events)) as objects:
        keys = [listed.key async for listed in objects if "/iceberg/committed/" in listed.key]
    for key in keys:
        body = await session.state.read(key)
        if body is not None:
            document = receipt.parse(body.body, key)
            if document["entity"] == entity:
                location, ms = document["metadata_location"], document["metadata_ms"]
                assert isinstance(location, str)
                assert isinstance(ms, int)
                found.append((MetadataFile(location, ms), document))
    return sorted(found, key=lambda each: each[0].ms)


def a_cursor_by_time(patch: pytest.MonkeyPatch) -> None:
    """receipts of a later time than the last one that entered. (docs/design/events.md#rule-2)"""

    async def by_time(session: Session, entity: str, cursor: FeedCursor, *_: int) -> NewCommits:
        since = 0 if cursor.file is None else cursor.file.ms
        later = [each for each in await _committed(session, entity) if each[0].ms > since]
        records = [commit_record(entity, file, document) for file, document in later]
        return NewCommits(Chain(entity, records))

    patch.setattr(sequencer, "new_commits", by_time)


def receipts_in_the_order_in_which_they_are_found(patch: pytest.MonkeyPatch) -> None:
    """each receipt that has not entered, also one that is written a week late. (docs/design/events.md#rule-3)"""
    entered: dict[int, set[str]] = {}

    async def by_receipts(session: Session, entity: str, cursor: FeedCursor, *_: int) -> NewCommits:
        known = entered.setdefault(id(session.catalog), set())
        new = [each for each in await _committed(session, entity) if each[0].location not in known]
        records = []
        for file, document in new:
            known.add(file.location)
            records.append(commit_record(entity, file, document))
        return NewCommits(Chain(entity, records))

    patch.setattr(sequencer, "new_commits", by_receipts)


def operations_of_head_alone(patch: pytest.MonkeyPatch) -> None:
    """docs/design/events.md#rule-4"""
    real = registry_chain.new_operations

    async def last(session: Session, head: RegistryState, position: RegistryPosition, tail: int) -> NewOperations:
        found = await real(session, head, position, tail)
        return NewOperations([each for each in found.records if each.details["sequence"] == head.sequence], True)

    patch.setattr(sequencer, "new_operations", last)


def a_head_after_the_pointers(patch: pytest.MonkeyPatch) -> None:
    """docs/design/events.md#rule-5"""

    async def enter(
        self: Sequencer, session: Session, feed: FeedEnd, operations: Sequence[FeedRecord], stats: FeedStats
    ) -> bool:
        found = {}
        for entity, cursor in (await sequencer._moved(session, feed.cursors, operations))[0].items():
            new = await self._commits(session, feed, entity, cursor, stats)
            if new is not None:
                found[entity] = new
        assert feed.last is not None
        head = await session.state.head()
        later = (await registry_chain.new_operations(session, head, feed.last.registry, feed.tail)).records
        await append.append(session, feed, merge(later, [new.chain for new in found.values()]), stats)
        for entity, new in found.items():
            sequencer._note(feed, entity, new)
        return True

    patch.setattr(Sequencer, "_enter", enter)


def tables_of_transactions_that_may_abort(patch: pytest.MonkeyPatch) -> None:
    """docs/design/events.md#rule-5"""

    async def is_created(session: Session, entity: str, transaction: str) -> bool:
        return True

    patch.setattr(commit_chain, "_is_created", is_created)


def tables_without_an_operation(patch: pytest.MonkeyPatch) -> None:
    """each pointer that is listed belongs to a table. (docs/design/events.md#rule-5)"""
    real = FeedCursors.get

    def get(self: FeedCursors, entity: str) -> FeedCursor | None:
        return real(self, entity) or FeedCursor()

    patch.setattr(FeedCursors, "get", get)
    patch.setattr(beginning, "existing_entities", _existing_by(real))


def _existing_by(get: object) -> object:
    real = beginning.existing_entities

    async def existing(session: Session, head: RegistryState, cursors: FeedCursors) -> object:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(FeedCursors, "get", get)
            return await real(session, head, cursors)

    return existing


def intents_that_count_at_once(patch: pytest.MonkeyPatch) -> None:
    """docs/design/events.md#rule-6"""

    async def resolve(state: object, pointer: Pointer) -> Pointer:
        return pointer if pointer.intent is None else pointer.resolved(committed=True)

    patch.setattr(commit_chain, "resolve_for_read", resolve)


def cursors_before_their_segments(patch: pytest.MonkeyPatch) -> None:
    """docs/design/events.md#rule-7"""
    real = append._create

    async def create(session: Session, feed: FeedEnd, records: Sequence[FeedRecord], begun: bool) -> None:
        for record in records:
            if record.entity is not None and record.file is not None:
                feed.cursors.set(record.entity, FeedCursor(record.file))
        await feed.cursors.write(session.state)
        await real(session, feed, records, begun)

    patch.setattr(append, "_create", create)


def a_beginning_by_a_later_head(patch: pytest.MonkeyPatch) -> None:
    """docs/design/events.md#rule-9"""
    real = beginning.existing_entities

    async def existing(session: Session, head: RegistryState, cursors: FeedCursors) -> object:
        return await real(session, await session.state.head(), cursors)

    patch.setattr(beginning, "existing_entities", existing)


def a_restore_that_enters_everything_again(patch: pytest.MonkeyPatch) -> None:
    """docs/design/events.md#rule-10"""

    def all_again(
        entity: str, files: Sequence[MetadataFile], entered: Collection[str], *, is_gap: bool
    ) -> tuple[list[FeedRecord], Sequence[MetadataFile]]:
        return [], files

    patch.setattr(commit_chain, "_continued", all_again)


def a_restore_back_to_what_was_left(patch: pytest.MonkeyPatch) -> None:
    """a chain that leads to the cursor is taken for new, also after a restore. (docs/design/events.md#rule-10)"""
    real = commit_chain.new_commits

    async def new(session: Session, entity: str, cursor: FeedCursor, tail: int, pause_ms: int) -> NewCommits | None:
        before = FeedCursor(cursor.file, cursor.version, cursor.transaction)
        return await real(session, entity, before, tail, pause_ms)

    patch.setattr(sequencer, "new_commits", new)


def a_search_that_ends_at_a_restored_file(patch: pytest.MonkeyPatch) -> None:
    """a file that a restore made current again counts like one that a commit did. (docs/design/events.md#rule-10)"""
    real = EnteredFiles.go

    async def go(self: EnteredFiles, session: Session, segments: int) -> None:
        await real(self, session, segments)
        self.by_commits |= self.otherwise

    patch.setattr(EnteredFiles, "go", go)


def a_search_that_goes_on_although_others_entered_commits(patch: pytest.MonkeyPatch) -> None:
    """docs/design/events.md#rule-10"""

    def forget_none(self: FeedEnd, entered: Collection[str]) -> None:
        return

    patch.setattr(FeedEnd, "forget_searches", forget_none)


def dropped_tables_without_a_pointer_that_are_passed_over(patch: pytest.MonkeyPatch) -> None:
    """docs/design/events.md#rule-10"""
    patch.setattr(sequencer, "drops", lambda operations: {})


def a_remembered_end_of_the_feed_that_a_restore_removed(patch: pytest.MonkeyPatch) -> None:
    """docs/design/events.md#rule-2"""

    async def check_nothing(self: FeedEnd, session: Session) -> None:
        return

    patch.setattr(FeedEnd, "check_stored", check_nothing)


def tokens_that_name_a_number_alone(patch: pytest.MonkeyPatch) -> None:
    """docs/design/events.md#rule-12"""
    real = reading._start

    async def start(state: State, token: str | None) -> tuple[FeedSegment, int]:
        segment, number = await real(state, None)
        if token is not None:
            number = reading.number_of(token)
            while segment.next <= number and (following := await reading._following(state, segment)) is not None:
                segment = following
        return segment, number

    patch.setattr(reading, "_start", start)


BUGS = (
    segments_that_replace_others,
    a_cursor_by_time,
    receipts_in_the_order_in_which_they_are_found,
    operations_of_head_alone,
    a_head_after_the_pointers,
    tables_of_transactions_that_may_abort,
    tables_without_an_operation,
    intents_that_count_at_once,
    cursors_before_their_segments,
    a_beginning_by_a_later_head,
    a_restore_that_enters_everything_again,
    a_restore_back_to_what_was_left,
    a_search_that_ends_at_a_restored_file,
    a_search_that_goes_on_although_others_entered_commits,
    dropped_tables_without_a_pointer_that_are_passed_over,
    a_remembered_end_of_the_feed_that_a_restore_removed,
    tokens_that_name_a_number_alone,
)
