"""The protocols with one rule left out, each of which must make the simulation fail: a search that finds nothing proves
something only if it finds what is there."""

from collections.abc import Callable
from typing import Any

import pytest

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations import evidence
from arco_catalog.operations.catalog import Session
from arco_catalog.operations.commit import CommitRelation
from arco_catalog.operations.driver import Driver
from arco_catalog.operations.mutation import Freshness, View
from arco_catalog.operations.table_view import TableView
from arco_catalog.state.access import State
from arco_catalog.state.marker import Binding
from arco_catalog.state.pointer import Pointer

AnyDriver = Driver[Any]
Plant = Callable[[pytest.MonkeyPatch], None]


def no_fence_at_a_takeover(patch: pytest.MonkeyPatch) -> None:
    async def fence(self: AnyDriver, earlier: dict[str, Binding]) -> str | None:
        for attempt, binding in earlier.items():
            if await evidence.landed(self.session.state, attempt, binding):
                return attempt
        return None

    patch.setattr(Driver, "fence", fence)


def the_next_slot_not_looked_at(patch: pytest.MonkeyPatch) -> None:
    async def see_next_slot_empty(self: AnyDriver) -> None:
        return None

    patch.setattr(Driver, "see_next_slot_empty", see_next_slot_empty)


def only_ones_own_id_looked_for(patch: pytest.MonkeyPatch) -> None:
    everybodys = Driver.attempts

    def attempts(self: AnyDriver) -> dict[str, Binding]:
        return {attempt: binding for attempt, binding in everybodys(self).items() if attempt == self.attempt.id}

    async def landed(state: State, attempt: str, binding: Binding) -> bool:
        return False

    patch.setattr(Driver, "attempts", attempts)
    patch.setattr(evidence, "landed", landed)


def a_failure_answered_without_a_final_slot(patch: pytest.MonkeyPatch) -> None:
    async def finalize(self: AnyDriver, answer: JsonObject, view: View) -> None:
        return None

    patch.setattr(Driver, "finalize", finalize)


def a_verdict_from_a_cached_base(patch: pytest.MonkeyPatch) -> None:
    def may_judge(self: AnyDriver, view: View) -> bool:
        return True

    patch.setattr(Driver, "may_judge", may_judge)


def a_base_read_after_the_look_at_the_next_slot(patch: pytest.MonkeyPatch) -> None:
    rightly = Driver.look

    async def look(self: AnyDriver, freshness: Freshness) -> View:
        if self.claimed is None:
            return await rightly(self, freshness)
        await self.see_next_slot_empty()
        view: View = await self.mutation.locate(freshness)
        if self.mutation.incomplete(view):
            await self.mutation.complete(view)
        return view

    patch.setattr(Driver, "look", look)


def a_name_validated_before_the_pointer_was_read(patch: pytest.MonkeyPatch) -> None:
    async def still_named(self: CommitRelation, view: TableView) -> TableView | None:
        return None  # `locate` read the name, and the pointer after it

    patch.setattr(CommitRelation, "still_named", still_named)


def evidence_from_the_current_location_only(patch: pytest.MonkeyPatch) -> None:
    def landed(self: Pointer, attempt: str, since: int) -> bool:
        return attempt in self.metadata.location

    patch.setattr(Pointer, "landed", landed)


def a_slot_that_names_no_entity(patch: pytest.MonkeyPatch) -> None:
    rightly = Driver.claim

    async def claim(self: AnyDriver, binding: Binding) -> None:
        await rightly(self, Binding())
        self.claimed = binding

    patch.setattr(Driver, "claim", claim)


def the_pointer_deleted_at_drop(patch: pytest.MonkeyPatch) -> None:
    async def delete(session: Session, entity: str, operation: str) -> None:
        await session.state.store.delete(session.state.paths.pointer(entity))

    patch.setattr(evidence, "mark_dropped", delete)


def a_drop_answered_before_its_mark(patch: pytest.MonkeyPatch) -> None:
    async def leave_marks(self: AnyDriver, attempt: str, binding: Binding) -> None:
        return None

    patch.setattr(Driver, "leave_marks", leave_marks)


BUGS: tuple[Plant, ...] = (
    no_fence_at_a_takeover,
    the_next_slot_not_looked_at,
    only_ones_own_id_looked_for,
    a_failure_answered_without_a_final_slot,
    a_verdict_from_a_cached_base,
    a_base_read_after_the_look_at_the_next_slot,
    a_name_validated_before_the_pointer_was_read,
    evidence_from_the_current_location_only,
    a_slot_that_names_no_entity,
    the_pointer_deleted_at_drop,
    a_drop_answered_before_its_mark,
)
