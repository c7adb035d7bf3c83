"""The code with one rule on copies and restored catalogs left out: drawn programs must find each
(docs/recovery.md#copies)."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, cast

import pytest

from arco_catalog.operations import drop
from arco_catalog.protocol import cleaning, writing
from arco_catalog.protocol.catalog import Session
from arco_catalog.state.access import State
from arco_catalog.state.locations import Location
from arco_catalog.state.registry import RegistryState
from arco_catalog.state.restoration import Restoration
from arco_catalog.tasks.execution import TaskResult
from arco_catalog.upkeep.collection import collect
from arco_catalog.upkeep.purge import executor
from arco_catalog.upkeep.recovery import unpack
from arco_catalog.upkeep.recovery.backup import CatalogBackup


def forget_copies(within: pytest.MonkeyPatch) -> None:
    within.setattr(RegistryState, "copy_of", property(lambda head: None))


class CopiesForgotten:
    """The registry shows no copy while any step is within `forgetting`. Steps of several processes run concurrently: a
    patch in each would be undone in the wrong order, and stay."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._depth = 0
        show = cast(property, RegistryState.__dict__["copy_of"]).__get__
        patch.setattr(RegistryState, "copy_of", property(lambda head: None if self._depth else show(head)))

    @contextmanager
    def forgetting(self) -> Iterator[None]:
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1


def forget_copies_in_purges(within: pytest.MonkeyPatch) -> None:
    run, copies = executor._Purge.run, CopiesForgotten(within)

    async def unaware(purge: "executor._Purge") -> TaskResult:
        with copies.forgetting():
            return await run(purge)

    within.setattr(executor._Purge, "run", unaware)


def a_copy_that_is_not_recorded(patch: pytest.MonkeyPatch) -> None:
    forget_copies(patch)


def a_collection_in_a_copy(patch: pytest.MonkeyPatch) -> None:
    async def pass_over(session: Session) -> None:
        return None

    patch.setattr(collect, "require_original", pass_over)
    patch.setattr(Restoration, "is_of_the_backup", lambda restoration, written_ms: False)


def a_drop_in_a_copy_that_makes_a_purge(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(drop.Drop, "copy_of", property(lambda self: None, lambda self, value: None), raising=False)
    forget_copies_in_purges(patch)


def a_purge_that_goes_on_in_a_copy(patch: pytest.MonkeyPatch) -> None:
    forget_copies_in_purges(patch)


def a_commit_to_a_copy_that_cleans(patch: pytest.MonkeyPatch) -> None:
    copies = CopiesForgotten(patch)

    async def unaware(session: Session, entity: str, files: Sequence[Location]) -> None:
        with copies.forgetting():
            await cleaning.remove_old_files(session, entity, files)

    patch.setattr(writing, "remove_old_files", unaware)


def a_try_of_before_the_restore_taken_for_lost(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Restoration, "is_of_the_backup", lambda restoration, written_ms: False)


def a_purge_without_a_delete_that_goes_on_after_a_restore(patch: pytest.MonkeyPatch) -> None:
    async def may_have_deleted(state: State, task: str) -> bool:
        return True

    patch.setattr(unpack, "_may_have_deleted", may_have_deleted)


def transactions_that_commit_during_a_backup_read_once(patch: pytest.MonkeyPatch) -> None:
    async def members(self: CatalogBackup) -> Sequence[str] | None:
        return None

    patch.setattr(CatalogBackup, "_members_of_new_transactions", members)


def a_head_that_is_read_before_the_pointers(patch: pytest.MonkeyPatch) -> None:
    rightly = CatalogBackup._add_listed

    async def add_listed(self: CatalogBackup, prefix: str, *more: Any, **named: Any) -> None:
        if prefix == self.state.paths.markers:
            self.first = await self._read_head()  # type: ignore[attr-defined]
        await rightly(self, prefix, *more, **named)

    async def consistent_head(self: CatalogBackup) -> RegistryState:
        first: RegistryState = self.first  # type: ignore[attr-defined]
        return first

    patch.setattr(CatalogBackup, "_add_listed", add_listed)
    patch.setattr(CatalogBackup, "_consistent_head", consistent_head)


def the_largest_sequence_number_cached(patch: pytest.MonkeyPatch) -> None:
    rightly = State.cache_head

    def cache_head(self: State, head: RegistryState, *at: Any) -> None:
        known = self._caches.head
        if known is None or head.sequence >= known.value.sequence:
            rightly(self, head, *at)

    patch.setattr(State, "cache_head", cache_head)
