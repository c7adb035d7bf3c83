"""The rules of collections left out, one at a time: each must make a run fail."""

from collections.abc import Callable, Sequence

import pytest

from arco_catalog.operations import listing
from arco_catalog.planning.collection import Fate, fate_of, is_older
from arco_catalog.protocol import evidence
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.idempotency import IdempotencyGuard
from arco_catalog.protocol.past_heads import past_head
from arco_catalog.state import commit_edits
from arco_catalog.state.access import State, commit_gone
from arco_catalog.state.commit_edits import is_whole
from arco_catalog.state.index import Edits, Index, location_key, relation_key
from arco_catalog.state.locations import Location
from arco_catalog.state.memory import Hold
from arco_catalog.state.needs import Steps
from arco_catalog.state.pointer import Pointer
from arco_catalog.state.registry import RegistryState
from arco_catalog.state.task import Status
from arco_catalog.state.tombstone import Tombstone
from arco_catalog.upkeep import walk
from arco_catalog.upkeep.collection import collect as collections
from arco_catalog.upkeep.collection import entities, files, markers, receipts, registry, tasks, tombstones
from arco_catalog.upkeep.collection import transactions as decisions
from arco_catalog.upkeep.collection.entities import Entities, WalkedEntity
from arco_catalog.upkeep.collection.names import Names
from arco_catalog.upkeep.collection.run import Run

Mutation = Callable[[pytest.MonkeyPatch], None]


def any_age(patch: pytest.MonkeyPatch, of: Callable[[Run], str]) -> None:
    """What is under this prefix may be of any age."""
    older = Run.older

    def young(self: Run, prefix: str, limit_ms: int) -> object:
        return older(self, prefix, 0 if prefix == of(self) else limit_ms)

    patch.setattr(Run, "older", young)


def lost_tries_of_pointers_that_have_not_moved(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(entities, "has_moved_past", lambda *times: True)


def lost_tries_without_a_walk(patch: pytest.MonkeyPatch) -> None:
    """What has no committed receipt yet is taken for lost."""

    async def unwalked(self: Entities, entity: str, written_ms: int) -> WalkedEntity | None:
        pointer = await self._run.session.state.pointer(entity)
        return None if pointer is None else WalkedEntity(pointer.metadata, written_ms, None)

    patch.setattr(Entities, "_walk", unwalked)


def files_that_a_registration_has_claimed(patch: pytest.MonkeyPatch) -> None:
    async def claimed(session: Session, entity: str, file: Location) -> bool:
        return True

    patch.setattr(files, "claim_for_removal", claimed)


def entities_without_a_fence_of_the_registry(patch: pytest.MonkeyPatch) -> None:
    async def unfenced(self: Entities, entity: str) -> bool:
        return not await self.is_named(entity)

    patch.setattr(Entities, "is_nameless", unfenced)
    patch.setattr(registry, "has_moved_past", lambda *times: True)


def pointers_of_any_age(patch: pytest.MonkeyPatch) -> None:
    any_age(patch, lambda run: run.paths.pointers)


def tombstones_as_they_were_seen(patch: pytest.MonkeyPatch) -> None:
    """Without a look whether the drop was undone."""

    def expired(index: Index, seen: Tombstone) -> Steps[Edits]:
        yield from ()
        return {
            seen.key: None,
            relation_key(seen.namespace, seen.name): None,
            **{location_key(place, seen.entity): None for place in seen.locations},
        }

    patch.setattr(tombstones, "expire", expired)


def tombstones_of_tables_that_were_not_walked(patch: pytest.MonkeyPatch) -> None:
    async def ready(run: Run, entities: Entities, tombstone: Tombstone) -> bool:
        return True

    patch.setattr(tombstones, "_is_ready", ready)


def receipts_without_a_floor(patch: pytest.MonkeyPatch) -> None:
    async def nowhere(*_: object) -> None:
        return None

    patch.setattr(receipts, "raise_floors", nowhere)


def the_receipt_of_the_current_file(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(receipts, "is_replaced", lambda *times: True)


def receipts_before_their_pending_ones(patch: pytest.MonkeyPatch) -> None:
    """Both rules that keep a file whose receipt went first: the order, and what lies behind the floor."""

    def fate(*, committed: bool, metadata_ms: int, floor_ms: int | None, current: bool) -> Fate:
        return fate_of(committed=committed, metadata_ms=metadata_ms, floor_ms=None, current=current)

    may_go = receipts._may_go

    async def first(run: Run, known: Entities, committed: receipts.Receipt) -> bool:
        exists = run.exists

        async def not_pending(key: str) -> bool:
            return "/pending/" not in key and await exists(key)

        patch.setattr(run, "exists", not_pending)
        return await may_go(run, known, committed)

    patch.setattr(receipts, "fate_of", fate)
    patch.setattr(receipts, "_may_go", first)


def markers_of_keys_that_may_be_used(patch: pytest.MonkeyPatch) -> None:
    """As soon as they are finished."""
    patch.setattr(markers, "is_older", lambda written_ms, now_ms, limit_ms: True)


def markers_that_are_taken_over_while_they_go(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(IdempotencyGuard, "check_not_expired", lambda self: None)


def slots_from_the_first_on(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        markers.Marker, "keys_from_last", property(lambda self: [self.key(slot) for slot in range(len(self.slots))])
    )


def unfinished_markers_that_nobody_closes(patch: pytest.MonkeyPatch) -> None:
    async def unclosed(run: Run, marker: markers.Marker) -> markers.Marker:
        return marker

    async def unfenced(run: Run, closed: Sequence[markers.Marker]) -> bool:
        return True

    patch.setattr(markers, "_close", unclosed)
    patch.setattr(markers, "_fence", unfenced)


def decisions_before_their_markers(patch: pytest.MonkeyPatch) -> None:
    """At once, while a marker may ask for them."""
    any_age(patch, lambda run: run.paths.transactions)
    patch.setattr(decisions, "is_outlived", lambda *rest: True)


def decisions_before_their_intents(patch: pytest.MonkeyPatch) -> None:
    async def settled(run: Run, key: str, transaction: str) -> bool:
        return True

    patch.setattr(decisions, "_settle_intents", settled)


def segments_that_a_page_needs(patch: pytest.MonkeyPatch) -> None:
    collected = registry._collect_segments

    async def of_head(run: Run, heads: Sequence[object]) -> None:
        await collected(run, heads[:1])  # type: ignore[arg-type]

    any_age(patch, lambda run: run.paths.index_segments)
    patch.setattr(registry, "_collect_segments", of_head)


def commits_of_a_head_that_has_not_moved(patch: pytest.MonkeyPatch) -> None:
    """A commit of the registry that is on its way loses its objects."""
    patch.setattr(registry, "has_moved_past", lambda *times: True)
    patch.setattr(registry, "is_older", lambda written_ms, now_ms, limit_ms: is_older(written_ms, now_ms, 2_000))


def commits_that_later_ones_need(patch: pytest.MonkeyPatch) -> None:
    async def unneeded(run: Run, history: registry.History, pipeline: object) -> int:
        return history.head.sequence + 1

    patch.setattr(registry, "_needed_from", unneeded)


def commits_that_a_page_needs(patch: pytest.MonkeyPatch) -> None:
    """Commits of any age go, but for those that HEAD needs."""

    async def needed_by_head(run: Run, history: registry.History, pipeline: object) -> int:
        return history.head.sequence - commit_edits.WHOLE_EVERY + 1

    patch.setattr(registry, "is_older", lambda written_ms, now_ms, limit_ms: is_older(written_ms, now_ms, 0))
    patch.setattr(registry, "_needed_from", needed_by_head)


def pages_of_whole_objects_alone(patch: pytest.MonkeyPatch) -> None:
    """No rule of a collection, but of what a page reads beside one (docs/design/registry.md#rule-18)."""

    async def whole(state: State, commit: str, hold: Hold) -> RegistryState:
        if not is_whole((await state.registry_commit(commit)).document):
            raise commit_gone(commit)
        return await past_head(state, commit, hold)

    patch.setattr(listing, "past_head", whole)


def views_before_they_are_forgotten(patch: pytest.MonkeyPatch) -> None:
    """A dropped view's pointer, with its files, while the drop can be undone."""

    async def nameless(self: Entities, entity: str) -> bool:
        pointer: Pointer | None = await self._run.session.state.pointer(entity)
        return pointer is not None and pointer.dropped_by is not None

    patch.setattr(Entities, "is_nameless", nameless)


def hints_that_nobody_puts_again(patch: pytest.MonkeyPatch) -> None:
    async def nothing(run: Run) -> None:
        return None

    patch.setattr(collections, "put_missing_hints", nothing)


def tasks_that_have_not_ended(patch: pytest.MonkeyPatch) -> None:
    """A task of any age goes while its table is being purged, and nobody puts its hint again."""
    hints_that_nobody_puts_again(patch)
    patch.setattr(tasks, "is_older", lambda written_ms, now_ms, limit_ms: True)

    async def unnamed(run: Run, task: str) -> bool:
        return False

    patch.setattr(tasks, "ENDED", frozenset(Status))
    patch.setattr(tasks, "_is_named", unnamed)


# Only programs that are drawn find the rest.


def intents_that_a_walk_does_not_fence(patch: pytest.MonkeyPatch) -> None:
    """And takes for aborted: a walk that leaves one undecided is not complete, which is a second line of defence."""

    async def take_for_aborted(session: Session, pointer: Pointer, *, dry: bool) -> tuple[Pointer, bool]:
        return pointer.resolved(committed=False), True

    async def fence_pointer(session: Session, entity: str) -> Pointer:
        pointer = await session.state.pointer(entity)
        if pointer is not None and pointer.intent is not None:
            return pointer
        return await evidence.fence_pointer(session, entity)

    patch.setattr(entities, "fence_pointer", fence_pointer)
    patch.setattr(walk, "_resolve", take_for_aborted)


def decisions_of_unsettled_names(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(decisions, "pending_transactions", lambda index: ())


def intended_names_that_are_walked(patch: pytest.MonkeyPatch) -> None:
    rightly = Entities._names

    async def _names(self: Entities, head: RegistryState, intended: Names | None = None) -> Names:
        return await rightly(self, head)

    patch.setattr(Entities, "_names", _names)


BUGS: list[Mutation] = [
    lost_tries_of_pointers_that_have_not_moved,
    lost_tries_without_a_walk,
    files_that_a_registration_has_claimed,
    entities_without_a_fence_of_the_registry,
    pointers_of_any_age,
    tombstones_as_they_were_seen,
    tombstones_of_tables_that_were_not_walked,
    receipts_without_a_floor,
    the_receipt_of_the_current_file,
    receipts_before_their_pending_ones,
    markers_of_keys_that_may_be_used,
    markers_that_are_taken_over_while_they_go,
    slots_from_the_first_on,
    unfinished_markers_that_nobody_closes,
    decisions_before_their_markers,
    decisions_before_their_intents,
    segments_that_a_page_needs,
    commits_of_a_head_that_has_not_moved,
    commits_that_later_ones_need,
    commits_that_a_page_needs,
    pages_of_whole_objects_alone,
    views_before_they_are_forgotten,
    tasks_that_have_not_ended,
    hints_that_nobody_puts_again,
]
