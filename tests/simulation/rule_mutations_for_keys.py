"""Rules of how a catalog reads idempotency keys left out, which programs of servers that disagree find."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from arco_catalog.protocol import commit_loop, key_resolution
from arco_catalog.protocol.catalog import Session
from arco_catalog.state.key_settings import KeyPolicy, KeySettings
from arco_catalog.state.marker import Slot, bound_to
from arco_catalog.state.marker_log import MarkerLog
from arco_catalog.state.registry import RegistryState


def keys_read_by_the_variables_of_each_server(patch: pytest.MonkeyPatch) -> None:
    async def settings(session: Session) -> KeySettings:
        return KeySettings(session.request.key_policy or KeyPolicy())

    patch.setattr(key_resolution, "_settings", settings)
    a_change_that_requests_under_way_do_not_notice(patch)


def a_change_that_requests_under_way_do_not_notice(patch: pytest.MonkeyPatch) -> None:
    def check_key_settings(session: Session, head: RegistryState) -> None:
        return None

    patch.setattr(commit_loop, "check_key_settings", check_key_settings)


def markers_of_an_earlier_dialect_that_no_request_looks_for(patch: pytest.MonkeyPatch) -> None:
    def previous_policies(self: KeySettings, now_ms: int) -> Sequence[KeyPolicy]:
        return ()

    patch.setattr(KeySettings, "previous_policies", previous_policies)


def markers_of_an_earlier_dialect_that_stay_open(patch: pytest.MonkeyPatch) -> None:
    async def is_begun(session: Session, log: MarkerLog, settings: KeySettings) -> bool:
        slots = await log.read_on()
        return bool(slots) and bound_to(slots[0], log.identity)

    patch.setattr(key_resolution, "_is_begun", is_begun)


def keys_accepted_by_the_variables_of_each_server(patch: pytest.MonkeyPatch) -> None:
    rightly = key_resolution._settings

    async def settings(session: Session) -> KeySettings:
        recorded, variables = await rightly(session), session.request.key_policy or KeyPolicy()
        return replace(recorded, policy=replace(recorded.policy, enabled=variables.enabled))

    patch.setattr(key_resolution, "_settings", settings)
    a_change_that_requests_under_way_do_not_notice(patch)


def markers_that_are_not_searched_while_keys_are_off(patch: pytest.MonkeyPatch) -> None:
    rightly = KeySettings.previous_policies

    def previous_policies(self: KeySettings, now_ms: int) -> Sequence[KeyPolicy]:
        return rightly(self, now_ms) if self.policy.enabled else ()

    patch.setattr(KeySettings, "previous_policies", previous_policies)


def markers_closed_while_keys_were_off_taken_for_new(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Slot, "is_keyless", property(lambda self: False))


def a_refusal_in_a_new_catalog_that_leaves_no_record(patch: pytest.MonkeyPatch) -> None:
    async def require_record(session: Session, head: RegistryState) -> None:
        return None

    patch.setattr(commit_loop, "require_record", require_record)
