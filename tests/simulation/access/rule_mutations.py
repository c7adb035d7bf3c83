"""The rules of docs/design/access.md, each left out: each must make a scenario fail."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from arco_catalog.operations import rename, undrop
from arco_catalog.operations.management import grants, principals
from arco_catalog.planning import judgement, securables
from arco_catalog.planning.access import Securable
from arco_catalog.planning.answers import Answer
from arco_catalog.protocol.commit_loop import CommitLoop
from arco_catalog.protocol.driver import Driver
from arco_catalog.protocol.mutation import Freshness
from arco_catalog.protocol.operation_request import OperationRequest
from arco_catalog.protocol.rights import CatalogAccess, no_such_principal
from arco_catalog.state.index import Edits, Index, Namespace
from arco_catalog.state.marker import RequestIdentity
from arco_catalog.state.needs import Needs, Steps, immediately
from arco_catalog.state.registry import RegistryState
from arco_catalog.state.roles import GrantEntry, grant_edits, grant_key

Mutation = Callable[[pytest.MonkeyPatch], None]


def rights_judged_in_front_of_the_marker(patch: pytest.MonkeyPatch) -> None:
    rightly = Driver.run

    async def run(self: Driver[Any]) -> Answer:
        await self.session.head()
        return await rightly(self)

    patch.setattr(Driver, "run", run)


def a_commit_judged_on_the_cached_head_alone(patch: pytest.MonkeyPatch) -> None:
    async def is_still_allowed(self: CommitLoop[Any], planned: RegistryState) -> bool:
        return True

    patch.setattr(CommitLoop, "is_still_allowed", is_still_allowed)


def a_load_judged_by_the_realm_as_it_is_remembered(patch: pytest.MonkeyPatch) -> None:
    rightly = CatalogAccess.read

    async def read(self: CatalogAccess, freshness: Freshness) -> None:
        await rightly(self, Freshness.CACHED)

    patch.setattr(CatalogAccess, "read", read)


def the_realm_not_read_again_beside_the_first_writes(patch: pytest.MonkeyPatch) -> None:
    async def has_changed(self: CatalogAccess) -> bool:
        return False

    patch.setattr(CatalogAccess, "has_changed", has_changed)


def a_reading_of_the_realm_that_was_cut_short_taken_for_whole(patch: pytest.MonkeyPatch) -> None:
    async def has_changed(self: CatalogAccess) -> bool:
        if self._fresh:
            return False
        self._fresh, before = True, self.standing
        self.standing, _ = await self._found(await self._realm.head())
        return self.standing != before

    patch.setattr(CatalogAccess, "has_changed", has_changed)


def a_principal_that_is_gone_refused_without_a_final_slot(patch: pytest.MonkeyPatch) -> None:
    rightly = CatalogAccess.read

    async def read(self: CatalogAccess, freshness: Freshness) -> None:
        await rightly(self, freshness)
        if self.standing is None:
            raise no_such_principal()

    patch.setattr(CatalogAccess, "read", read)


def members_of_a_batch_not_judged_again(patch: pytest.MonkeyPatch) -> None:
    def judge_loaded(self: CatalogAccess, index: Index, lookups: list[Needs]) -> bool:
        return True

    patch.setattr(CatalogAccess, "judge_loaded", judge_loaded)


def a_replay_for_another_principal(patch: pytest.MonkeyPatch) -> None:
    rightly = OperationRequest.identity

    def identity(self: OperationRequest) -> RequestIdentity:
        found = rightly(self)
        return RequestIdentity(found.method, found.path, found.query, found.payload, "whoever")

    patch.setattr(OperationRequest, "identity", identity)


def a_grant_stored_from_one_side(patch: pytest.MonkeyPatch) -> None:
    def one_side(role: str, grant: GrantEntry) -> Edits:
        key = grant_key(grant.securable, role)
        return {key: grant_edits(role, grant)[key]}

    patch.setattr(grants, "grant_edits", one_side)


def a_dropped_principal_that_keeps_its_roles(patch: pytest.MonkeyPatch) -> None:
    def names_under(index: Index, prefix: str) -> Mapping[str, str]:
        return {}

    patch.setattr(principals, "names_under", names_under)


def a_grant_by_name(patch: pytest.MonkeyPatch) -> None:
    rightly = securables.find_chain

    def found(index: Index, securable: Securable) -> Steps[tuple[Sequence[str], bool]]:
        chain, exists = yield from rightly(index, securable)
        return ([*chain[:-1], str(securable)] if exists and securable.name is not None else chain), exists

    patch.setattr(securables, "find_chain", found)
    patch.setattr(judgement, "find_chain", found)


def a_rename_that_leaves_the_old_name_in_grants(patch: pytest.MonkeyPatch) -> None:
    def renamed_grants(*about: object) -> Edits:
        return {}

    patch.setattr(rename, "renamed_grants", renamed_grants)


def a_tombstone_found_by_its_name(patch: pytest.MonkeyPatch) -> None:
    def is_dropped_from(index: Index, namespace: Namespace, namespace_entity: str | None) -> Steps[bool]:
        return immediately(True)

    patch.setattr(undrop, "is_dropped_from", is_dropped_from)


BUGS: tuple[Mutation, ...] = (
    rights_judged_in_front_of_the_marker,
    a_commit_judged_on_the_cached_head_alone,
    a_load_judged_by_the_realm_as_it_is_remembered,
    the_realm_not_read_again_beside_the_first_writes,
    a_reading_of_the_realm_that_was_cut_short_taken_for_whole,
    a_principal_that_is_gone_refused_without_a_final_slot,
    members_of_a_batch_not_judged_again,
    a_replay_for_another_principal,
    a_grant_stored_from_one_side,
    a_dropped_principal_that_keeps_its_roles,
    a_grant_by_name,
    a_rename_that_leaves_the_old_name_in_grants,
    a_tombstone_found_by_its_name,
)
